"""A client without a token uses limited memory, takes no place of a sender, and causes one log line."""

from __future__ import annotations

import contextlib
import ssl
import struct
import sys
from pathlib import Path

import grpc
import pytest

from tests.server.test_answers import call, connected, details, wait
from tests.support.attacks import ATTACKS, HEAD, HEADERS, PREFACE, SETTINGS, TOKEN, TRACES, flooded, frame, literal
from tests.support.certificates import Authority
from tests.support.service import Sidecar, turn_of


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(
    "attack", [name for name in ATTACKS if not name.startswith(("idle", "unread responses from the web UI"))]
)
def test_a_hundred_connections_take_little_memory(attack: str, tmp_path: Path) -> None:
    """Report: 48 connections over gRPC took 2.2 GB before the token was read, with a log line for each call."""
    found = flooded(attack, tmp_path)
    assert found.is_well, found


def test_senders_get_in_although_others_hold_connections(caplog: pytest.LogCaptureFixture) -> None:
    """Report: with 540 idle connections from one address, none of 10 senders got in, without a metric or a log line."""
    with Sidecar({"serve": {"token": "open-sesame", "client_connections": 8}}) as own, contextlib.ExitStack() as held:
        server = own.service._servers["grpc"]
        for _ in range(40):
            held.enter_context(connected(own, "grpc")).sendall(PREFACE + frame(SETTINGS, 0, 0))
        wait(lambda: server.connections <= 8 and server.refused["limit"] == 32)
        assert [call(own, turn_of(number), metadata=TOKEN) for number in range(1, 11)] == [b""] * 10
        assert (
            own.get("/metrics", "metrics")[1].count('agenteval_serve_connections_refused_total{listener="grpc",reason="limit"}')
            == 1
        )
    assert "serve.client_connections" in caplog.text


def test_connections_of_senders_make_no_room() -> None:
    with Sidecar({"serve": {"client_connections": 2}}) as own:
        channels = [grpc.insecure_channel(own.addresses["grpc"], options=[("grpc.channel_id", n)]) for n in range(2)]
        for channel in channels:
            assert channel.unary_unary(TRACES)(turn_of(1), timeout=60) == b""
        with connected(own, "grpc") as late:
            late.sendall(PREFACE)
            with contextlib.suppress(ConnectionError):
                assert late.recv(1) == b""
        for channel in channels:
            assert channel.unary_unary(TRACES)(turn_of(1), timeout=60) == b""
            channel.close()


def test_a_connection_without_a_call_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.server.grpc.HEAD_TIMEOUT", 0.1)
    with Sidecar({"serve": {"token": "open-sesame"}}) as own:
        for sent in (b"", PREFACE[:5], PREFACE + frame(SETTINGS, 0, 0) + frame(HEADERS, 0, 1, HEAD)):
            with connected(own, "grpc") as client:
                client.sendall(sent)
                while client.recv(4_096):
                    pass


def test_http1_on_the_grpc_port_is_refused_with_the_right_port(caplog: pytest.LogCaptureFixture) -> None:
    """Report: an OTLP/HTTP exporter logged bytes of HTTP/2 and retried, and the sidecar logged nothing."""
    with Sidecar() as own:
        with connected(own, "grpc") as client:
            client.sendall(b"POST /v1/traces HTTP/1.1\r\ncontent-length: 100000\r\n\r\n" + bytes(50_000))
            client.sendall(bytes(50_000))
            answer = b"".join(iter(lambda: client.recv(4_096), b""))
        assert answer.startswith(b"HTTP/1.1 400 this port accepts only gRPC; send OTLP/HTTP to serve.http")
        for sent in (b"\x16\x03\x01", b"GET", PREFACE[:10] + b"?"):
            with connected(own, "grpc") as client:
                client.sendall(sent)
                with contextlib.suppress(ConnectionError):
                    assert client.recv(1) == b""
        assert own.service.receiver.outcomes["grpc", "other", "bad_type"] == 1
        assert call(own, turn_of(1)) == b""
    assert "serve.http (default port 14318)" in caplog.text


def test_senders_connect_again_after_a_while_and_lose_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Senders reconnect, so that they discover added servers."""
    monkeypatch.setattr("otel_agenteval.server.grpc.HEAD_TIMEOUT", 0.05)
    monkeypatch.setattr("otel_agenteval.server.grpc._AGE", 0.05)
    with Sidecar() as own, grpc.insecure_channel(own.addresses["grpc"]) as channel:
        export = channel.unary_unary(TRACES)
        ends = []
        leave = own.service._servers["grpc"].leave
        monkeypatch.setattr(own.service._servers["grpc"], "leave", lambda one: (ends.append(one), leave(one)))
        wait(lambda: export(turn_of(1), timeout=60) != b"" or len(ends) >= 2)


def test_refused_calls_end_their_connection() -> None:
    with Sidecar({"serve": {"token": "open-sesame"}}) as own, connected(own, "grpc") as client:
        client.sendall(PREFACE + frame(SETTINGS, 0, 0))
        with contextlib.suppress(ConnectionError):
            for stream in range(1, 801, 2):
                client.sendall(frame(HEADERS, 4, stream, HEAD))
            while client.recv(65_536):
                pass
        wait(lambda: own.service._servers["grpc"].connections == 0)
        assert 100 <= own.service.receiver.outcomes["grpc", "traces", "unauthenticated"] <= 102
        assert details(call(own, turn_of(1)))[0] is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("padding", [None, 0, 9])
def test_messages_come_in_any_frames(padding: int | None, authority: Authority) -> None:
    """One byte per frame, with or without padding, with a length in the headers, behind TLS."""
    cert = authority.issue("server")
    message = turn_of(1)
    sent = struct.pack(">?I", False, len(message)) + message
    with Sidecar({"serve": {"tls": {"cert_file": str(cert[0]), "key_file": str(cert[1])}}}) as own:
        context = ssl.create_default_context(cafile=str(authority.file))
        context.set_alpn_protocols(["h2"])
        with context.wrap_socket(connected(own, "grpc"), server_hostname="localhost") as client:
            client.sendall(PREFACE + frame(SETTINGS, 0, 0))
            client.sendall(frame(HEADERS, 4, 1, HEAD + literal(b"content-length", str(len(sent)).encode())))
            for place in range(len(sent)):
                piece = sent[place : place + 1]
                if padding is not None:
                    piece = bytes((padding,)) + piece + bytes(padding)
                client.sendall(frame(0, (0 if padding is None else 8) | (place == len(sent) - 1), 1, piece))
            wait(lambda: own.service.receiver.outcomes["grpc", "traces", "ok"] == 1)
        assert len(own.turns()) == 1


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)
