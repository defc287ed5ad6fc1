"""Probes and scrapes get responses, whatever senders do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import Metric

from tests.server.test_answers import busy, connected, wait
from tests.support.service import Sidecar


def test_both_ports_say_how_we_are() -> None:
    with Sidecar({"serve": {"token": "s3cret"}}) as own:
        for server in ("http", "metrics"):
            assert own.get("/healthz", server) == own.get("/readyz", server) == (200, "ok\n")
            assert own.get("/healthz", server, {"Host": "10.0.0.7"})[0] == 200  # as a kubelet asks
            assert own.post("/readyz", server=server)[0] == 405
            assert own.post("/healthz", server=server, method="HEAD")[::2] == (200, b"")
        with busy(own):
            assert own.get("/readyz", "metrics") == (503, "overloaded: evaluation is behind\n")
            assert own.get("/healthz", "metrics")[0] == 200
        assert own.get("/metrics", "metrics")[0] == 200


def test_connections_of_senders_do_not_use_up_those_of_probes() -> None:
    with Sidecar({"serve": {"max_connections": 8, "client_connections": 8}}) as own:
        held = [connected(own) for _ in range(8)]
        server: Any = own.service._servers["http"]
        wait(lambda: len(server._connections) == 8)
        with pytest.raises((ConnectionError, OSError)):
            own.get("/healthz")
        for path in ("/healthz", "/readyz", "/metrics"):
            assert own.get(path, "metrics")[0] == 200
        for one in held:
            one.close()


def test_a_busy_event_loop_does_not_hold_up_probes() -> None:
    with Sidecar() as own:
        entered, go = threading.Event(), threading.Event()

        async def block() -> None:
            entered.set()
            go.wait(60)

        blocked = asyncio.run_coroutine_threadsafe(block(), own._loop)
        assert entered.wait(60)
        for path in ("/healthz", "/readyz", "/metrics"):
            assert own.get(path, "metrics")[0] == 200
        go.set()
        blocked.result(60)


class Slow:
    """A metrics collector that blocks until it is released."""

    def __init__(self) -> None:
        self.asked = 0
        self.entered, self.go = threading.Event(), threading.Event()

    def collect(self) -> Iterator[Metric]:
        self.asked += 1
        self.entered.set()
        self.go.wait(60)
        yield Metric("slow", "It is.", "gauge")

    def describe(self) -> list[Metric]:
        return []


def test_a_page_that_takes_long_is_written_once_and_holds_up_nobody() -> None:
    with Sidecar() as own:
        slow = Slow()
        own.service.registry.register(slow)
        found: list[tuple[int, str]] = []
        scrapes = [threading.Thread(target=lambda: found.append(own.get("/metrics", "metrics"))) for _ in range(3)]
        for scrape in scrapes:
            scrape.start()
        assert slow.entered.wait(60)
        wait(lambda: own.service._servers["metrics"].connections == 3)
        assert own.get("/healthz", "metrics") == (200, "ok\n")
        slow.go.set()
        for scrape in scrapes:
            scrape.join(60)
        assert [status for status, _ in found] == [200] * 3
        assert all("# HELP slow It is." in page for _, page in found)
        assert slow.asked <= 2  # one that came before its head was read may be the next
