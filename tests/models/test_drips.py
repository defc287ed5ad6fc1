"""Servers whose answers never end, though no single wait is long: a question has one deadline for all of it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import JudgeError
from tests.support.drips import PLACES, dripping

BODY = b'{"choices": [{"message": {"content": "{\\"score\\": 1}"}}], "data": [{"index": 0, "embedding": [1.0]}]}'
SECONDS = 0.3


def judged(url: str, **options: Any) -> Any:
    judge = oa.Judge(url, "m-1", timeout=SECONDS, deadline=SECONDS, sleep=lambda _: None, **options)
    try:
        return judge.ask("moderation", "Judge it.", {"response": "Paris"}, "{}")
    finally:
        judge.close()


def moderated(url: str) -> Any:
    return judged(url, endpoint="moderations")


def embedded(url: str) -> Any:
    embedder = oa.Embedder(url, "m-1", timeout=SECONDS, deadline=SECONDS, sleep=lambda _: None)
    try:
        return embedder.embed(["Paris"])
    finally:
        embedder.close()


def error_of(ask: Callable[[str], Any], url: str) -> str:
    with pytest.raises(JudgeError) as caught:
        ask(url)
    return caught.value.error_type


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("ask", [judged, moderated, embedded])
def test_a_model_server_that_drips_is_given_up(ask: Callable[[str], Any], place: str) -> None:
    with dripping(place, BODY) as host:
        assert error_of(ask, f"{host.url}/v1") == "timeout"


@pytest.mark.parametrize("place", PLACES)
def test_a_proxy_that_drips_is_given_up(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with dripping(place, BODY) as host:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, host.url)
        assert error_of(judged, "http://models.example/v1") == "timeout"


def test_a_tunnel_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    with dripping("headers", b"") as host:
        for name in ("HTTPS_PROXY", "https_proxy"):
            monkeypatch.setenv(name, host.url)
        assert error_of(judged, "https://models.example/v1") == "timeout"


def test_a_handshake_that_drips_is_given_up() -> None:
    with dripping("head", bytes(200)) as host:
        assert error_of(judged, f"https://127.0.0.1:{host.port}/v1") in ("timeout", "unreachable")


def test_a_name_that_is_not_resolved_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *a, **k: answered.wait(10) and [])
    assert error_of(judged, "http://models.example/v1") == "timeout"
    answered.set()
