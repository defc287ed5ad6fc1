"""Each request to another host has one deadline, even if the host answers byte by byte."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from otel_agenteval.cli.diagnosis import sidecar
from otel_agenteval.cli.main import main
from otel_agenteval.config.otlp import OtlpOptions
from otel_agenteval.config.webhook import WebhookOptions
from otel_agenteval.core.outbound import answer_of, client_to
from otel_agenteval.outlets.otlp.client import client_for
from otel_agenteval.outlets.webhook.outlet import WebhookOutlet
from tests.support.drips import PLACES, dripping

SECONDS = 0.3
BODY = b'{"turn_id": "t", "metrics": {"m": "ok"}, "scores": []}'


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


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("send", "late"),
    [(exported, ("ReadTimeout",)), (posted, ("ReadTimeout",)), (exported_by_grpc, ("DEADLINE_EXCEEDED", "UNAVAILABLE"))],
)
def test_a_receiver_that_drips_is_given_up(send: Callable[[str], str], late: tuple[str, ...], place: str) -> None:
    with dripping(place, BODY) as host:
        assert send(host.url) in late


@pytest.mark.parametrize("place", PLACES)
def test_commands_give_up_a_host_that_drips(
    place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from otel_agenteval.cli import why

    monkeypatch.setattr(why, "_TIMEOUT", SECONDS)
    monkeypatch.setattr(sidecar, "_TIMEOUT", SECONDS)
    with dripping(place, BODY) as host:
        assert main(["why", "t", "--url", host.url]) == 2
        assert "ReadTimeout" in capsys.readouterr().err
        (finding,) = sidecar.sidecar_findings(host.url, {})
    assert "timed out" in finding.text


def test_no_more_of_an_answer_is_read_than_is_wanted() -> None:
    with dripping("body", b"x" * 100) as host, client_to(host.url) as client:
        response, body = answer_of(client, "GET", host.url, seconds=30, most=3)
    assert (response.status_code, body) == (200, b"xxx")


def test_a_request_that_is_too_slow_to_take_is_given_up() -> None:
    """A receiver that reads nothing of a large request."""
    import socket

    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with client_to(url) as client, pytest.raises(httpx.WriteTimeout):
            answer_of(client, "POST", url, seconds=SECONDS, most=1, content=bytes(64 * 2**20))
