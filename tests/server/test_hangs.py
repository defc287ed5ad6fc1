"""Something outside the process hangs: scoring and the other outlets go on, health names it, and SIGTERM ends the sidecar."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.outlets.store.postgres import Connection
from tests.support.postgres import PostgresServer
from tests.support.proxy import Proxy
from tests.support.rig import chat_attributes
from tests.support.servers import until
from tests.support.service import AGENT
from tests.support.service import request as request_of
from tests.support.sidecar import Sidecar

TURNS, DRAIN = 300, 3
BLOCKED = """
import time
import otel_agenteval as oa

@oa.metric()
def code_blocked(turn: oa.Turn) -> float:
    '''Waits for a service that never answers.'''
    time.sleep(10_000)
    return 1.0
"""


@contextmanager
def silent_server() -> Iterator[int]:
    """A server that accepts connections and reads, but never answers."""
    held: list[socket.socket] = []

    def read(connection: socket.socket) -> None:
        try:
            while connection.recv(65_536):
                pass
        except OSError:
            pass

    def accept() -> None:
        while True:
            try:
                held.append(server.accept()[0])
            except OSError:
                return
            threading.Thread(target=read, args=(held[-1],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=512) as server:
        threading.Thread(target=accept, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
    for one in held:
        one.close()


def config_of(what: str, port: int, folder: Path) -> dict[str, Any]:
    """The configuration in which something hangs."""
    there = f"127.0.0.1:{port}"
    judged = {"model": "m", "base_url": f"http://{there}/v1", "timeout": "60s"}
    match what:
        case "store":
            return {"outlets": {"store": f"postgresql://u:p@{there}/scores"}}
        case "queue":
            return {
                "metrics": [{"llm_relevance": {}, "sample": {"rate": 1.0}}],
                "judge": {**judged, "queue": {"backend": "redis", "url": f"redis://{there}/0"}},
            }
        case "judge":
            return {"metrics": [{"llm_relevance": {}, "sample": {"rate": 1.0}}], "judge": judged}
        case "otlp":
            return {"outlets": {"otlp": {"endpoint": f"http://{there}", "protocol": "http"}}}
        case "webhook":
            return {"outlets": {"webhook": {"url": f"http://{there}/hook"}}}
        case "metric":
            return {"inline": {"metrics": ["code_blocked", "code_refusal"]}}
        case "pipe":
            os.mkfifo(folder / "pipe")
            return {"outlets": {"otlp_file": str(folder / "pipe")}}
    raise ValueError(what)


def with_lines(given: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A configuration with JSON lines, which show what is scored."""
    return {
        **given, "turn": {"decision_delay": "100ms"}, "exit_timeout": "1s", "serve": {"drain_timeout": f"{DRAIN}s"},
        "outlets": {**given.get("outlets", {}), "jsonl": str(folder / "scores.jsonl")},
    }  # fmt: skip


def turns_in(folder: Path) -> int:
    file = folder / "scores.jsonl"
    return len({json.loads(line)["turn_id"] for line in file.read_text().splitlines()}) if file.exists() else 0


def stored_in(address: str) -> int:
    db = Connection(address, read_only=True)
    try:
        return int(db.execute("SELECT count(DISTINCT turn_id) FROM turns", ()).fetchone()[0])
    except Exception:  # the tables don't exist yet
        return 0
    finally:
        db.close()


def read_page(sidecar: Sidecar) -> None:
    """Read the page, which reads the store."""
    with suppress(OSError), urllib.request.urlopen(f"{sidecar.web}/api/v1/turns", timeout=60):
        pass


def ends_after(sidecar: Sidecar) -> float:
    """Seconds from SIGTERM to the end."""
    started = time.monotonic()
    sidecar.stop(60)
    return time.monotonic() - started


def health(sidecar: Sidecar) -> dict[str, str]:
    """Reasons of the checks that don't hold, by name."""
    request = urllib.request.Request(f"{sidecar.http}/readyz?verbose", headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return {check["name"]: check["reason"] for check in json.load(answer)["checks"] if not check["ok"]}


def send(sidecar: Sidecar, numbers: range) -> None:
    for number in numbers:
        said = chat_attributes("What is the capital of France?", "Paris.")
        body = request_of(
            {"trace": number, "id": 1, "attributes": AGENT}, {"trace": number, "id": 2, "parent": 1, "attributes": said}
        )
        request = urllib.request.Request(f"{sidecar.http}/v1/traces", body, {"Content-Type": "application/x-protobuf"})
        with urllib.request.urlopen(request, timeout=30):
            pass


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "named"),
    [
        ("store", "outlet store"), ("queue", "judge queue"), ("judge", None), ("otlp", "outlet otlp"), ("webhook", None),
        ("metric", "metric code_blocked"), ("pipe", "outlet otlp_file"),
    ],
)  # fmt: skip
def test_scoring_goes_on_and_health_tells(what: str, named: str | None, tmp_path: Path) -> None:
    with silent_server() as port:
        given = config_of(what, port, tmp_path)
        reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK) if what == "pipe" else None
        with Sidecar(tmp_path, with_lines(given, tmp_path), script=BLOCKED if what == "metric" else "") as sidecar:
            send(sidecar, range(1, TURNS + 1))
            until(lambda: turns_in(tmp_path) == TURNS, "all turns are scored", timeout=40)
            if named is not None:
                until(lambda: named in health(sidecar), "health names it", timeout=30)
            assert ends_after(sidecar) < DRAIN + 5
        if reader is not None:
            os.close(reader)


@pytest.mark.slow
def test_store_that_freezes_while_it_is_used_gets_everything_later(postgres: PostgresServer, tmp_path: Path) -> None:
    proxy = Proxy(postgres.port)
    address = postgres.database()
    given = {"outlets": {"store": address.replace(f":{postgres.port}/", f":{proxy.port}/")}}
    with Sidecar(tmp_path, with_lines(given, tmp_path), journal=True) as sidecar:
        send(sidecar, range(1, 51))
        until(lambda: stored_in(address) == 50, "the first turns are stored")
        proxy.silence()
        threading.Thread(target=read_page, args=(sidecar,), daemon=True).start()
        send(sidecar, range(51, TURNS + 1))
        until(lambda: turns_in(tmp_path) == TURNS, "all turns are scored", timeout=40)
        until(lambda: "outlet store" in health(sidecar), "health names it", timeout=30)
        assert ends_after(sidecar) < DRAIN + 5
        proxy.heal()
        sidecar.start()
        until(lambda: stored_in(address) == TURNS, "the others are stored")
    proxy.close()
