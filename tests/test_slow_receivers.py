"""Each request to another host has one deadline, even if the host responds byte by byte."""

from __future__ import annotations

import socket
from collections.abc import Callable

import httpx
import pytest

from otel_agenteval.cli import doctor, why
from otel_agenteval.cli.main import main
from otel_agenteval.config.outlets import OtlpOptions, WebhookOptions
from otel_agenteval.core.outbound import answer_of, client_to
from otel_agenteval.outlets.otlp.client import client_for
from otel_agenteval.outlets.webhook import WebhookOutlet
from tests.support import drips
from tests.support.drips import dripping

SECONDS = 0.3
GIVEN_UP = ("ReadTimeout", "ConnectTimeout", "DEADLINE_EXCEEDED", "UNAVAILABLE")
BODY = b'{"turn_id": "t", "metrics": {"m": "ok"}, "scores": []}' + b" " * 2_000


@pytest.fixture(autouse=True)
def _long_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow down the server, so that no client on a busy machine is slow enough to get a whole response."""
    monkeypatch.setattr(drips, "_WHOLE", 60.0)


def exported(url: str, protocol: str = "http") -> str:
    client = client_for(OtlpOptions(endpoint=url, protocol=protocol))  # type: ignore[arg-type]
    try:
        return client.send("logs", b"", SECONDS).reason
    finally:
        client.close()


def exported_by_grpc(url: str) -> str:
    return exported(url, "grpc")


def posted(url: str) -> str:
    outlet = WebhookOutlet(WebhookOptions(url=url), lambda: "engine-1")
    try:
        outlet._post(b"{}", SECONDS)
    except Exception as error:
        return str(error)
    return "taken"


@pytest.mark.parametrize(
    ("send", "place"), [(exported, "head"), (exported, "body"), (posted, "headers"), (posted, "body"), (exported_by_grpc, "head")]
)
def test_a_receiver_that_drips_is_given_up(send: Callable[[str], str], place: str) -> None:
    """The server sends the rest immediately if a client waits too long, and ``dripping`` then fails."""
    with dripping(place, BODY) as host:
        assert send(host.url) in GIVEN_UP


def test_commands_give_up_a_host_that_drips(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(why, "_TIMEOUT", SECONDS)
    monkeypatch.setattr(doctor, "_TIMEOUT", SECONDS)
    with dripping("body", BODY) as host:
        assert main(["why", "t", "--url", host.url]) == 2
        assert "Timeout" in capsys.readouterr().err
        (finding,) = doctor.sidecar_findings(host.url, {})
    assert "timed out" in finding.text


def test_no_more_of_an_answer_is_read_than_is_wanted() -> None:
    with dripping("body", b"x" * 100) as host, client_to(host.url) as client:
        response, body = answer_of(client, "GET", host.url, seconds=120, most=3)
    assert (response.status_code, body) == (200, b"xxx")


def test_a_request_that_is_too_slow_to_take_is_given_up() -> None:
    """The receiver doesn't read a large request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with client_to(url) as client, pytest.raises(httpx.WriteTimeout):
            answer_of(client, "POST", url, seconds=SECONDS, most=1, content=bytes(64 * 2**20))
