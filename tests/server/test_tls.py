"""TLS, and client certificates."""

from __future__ import annotations

import datetime
import http.client
import json
import re
import socket
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.server.certificates import tls_context
from tests.support.certificates import Authority
from tests.support.servers import until
from tests.support.service import Sidecar, Transport, turn_of

DAY = datetime.timedelta(days=1)
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def serve(cert: tuple[Path, Path], client_ca: Path | None = None) -> dict[str, Any]:
    tls = {"cert_file": str(cert[0]), "key_file": str(cert[1])}
    return {"serve": {"tls": tls if client_ca is None else {**tls, "client_ca_file": str(client_ca)}}}


def sends(sidecar: Sidecar, transport: Transport, ca: Path, client: tuple[Path, Path] | None = None) -> bool:
    """Send a turn over TLS, and return True if it was accepted."""
    if transport == "grpc":
        own = (client[1].read_bytes(), client[0].read_bytes()) if client is not None else (None, None)
        with grpc.secure_channel(sidecar.addresses["grpc"], grpc.ssl_channel_credentials(ca.read_bytes(), *own)) as channel:
            try:
                return channel.unary_unary(TRACES)(turn_of(1), timeout=60) == b""
            except grpc.RpcError:
                return False
    context = ssl.create_default_context(cafile=str(ca))
    if client is not None:
        context.load_cert_chain(*client)
    host, _, port = sidecar.addresses["http"].rpartition(":")
    connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=60)
    try:
        connection.request("POST", "/v1/traces", turn_of(1), {"Content-Type": "application/x-protobuf"})
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_client_needs_a_certificate_of_the_authority(transport: Transport, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    with Sidecar(serve(authority.issue("server"), authority.file)) as sidecar:
        for client in (None, other.issue("stranger")):
            assert not sends(sidecar, transport, authority.file, client)
        assert sidecar.engine.assembler.received == 0
        assert sends(sidecar, transport, authority.file, authority.issue("agent"))
        assert sidecar.engine.assembler.received == 2


def test_certificates_of_clients_are_enough_for_other_machines(authority: Authority) -> None:
    config = serve(authority.issue("server"), authority.file)
    config["serve"]["http"] = "0.0.0.0:0"
    with Sidecar(config) as sidecar:
        assert sidecar.addresses["http"].startswith("0.0.0.0:")


@pytest.mark.parametrize("broken", ["cert_file", "key_file", "client_ca_file"])
def test_files_that_hold_no_certificate_are_named(broken: str, authority: Authority, tmp_path: Path) -> None:
    config = serve(authority.issue("server"), authority.file)
    (tmp_path / "empty").write_text("")
    written = tmp_path / "agenteval.yaml"
    for file, problem in ((tmp_path / "none", "can't read"), (tmp_path / "empty", "must be a PEM ")):
        config["serve"]["tls"][broken] = str(file)
        written.write_text(json.dumps(config))
        with pytest.raises(ConfigError, match=rf"agenteval.yaml:1: serve\.tls\.{broken}: {re.escape(str(file))}: {problem}"):
            tls_context(load_config(written).serve.tls, where=load_config(written).where)


def test_the_key_of_another_certificate_is_refused(authority: Authority) -> None:
    (cert, _), (_, key) = authority.issue("server"), authority.issue("other")
    with pytest.raises(ConfigError, match=rf"cert_file {cert} and key_file {key}"):
        Sidecar(serve((cert, key)))


def test_for_a_key_with_a_pass_phrase_nobody_is_asked(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.issue("server")
    secret = serialization.load_pem_private_key(key.read_bytes(), None)
    packed = serialization.BestAvailableEncryption(b"secret")
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, packed))
    with pytest.raises(ConfigError, match=rf"serve\.tls\.key_file: {key}: .*encrypted"):
        Sidecar(serve((cert, key)))


def test_a_renewed_certificate_is_used_after_a_reload(authority: Authority, tmp_path: Path) -> None:
    cert = authority.issue("server")
    config = serve(cert)
    with Sidecar(config) as sidecar:
        before = names(sidecar)
        renewed = authority.issue("renewed", (-DAY, 400 * DAY))
        expiry = x509.load_pem_x509_certificate(renewed[0].read_bytes()).not_valid_after_utc
        for old, new in zip(cert, renewed, strict=True):
            old.write_bytes(new.read_bytes())
        assert names(sidecar) == before == ["server", "server"]

        async def reload() -> None:
            sidecar.service.reload(load_config({"serve": {**config["serve"], "grpc": "127.0.0.1:0"}}))

        sidecar.on_loop(reload)
        assert sends(sidecar, "grpc", authority.file)
        assert names(sidecar) == ["renewed", "renewed"]
        assert expiries(sidecar) == {"cert_file": expiry.timestamp()}


def names(sidecar: Sidecar) -> list[str]:
    """Return the names in the certificates of the HTTP and the gRPC server."""
    found = []
    for name in ("http", "grpc"):
        host, _, port = sidecar.addresses[name].rpartition(":")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"] if name == "grpc" else ["http/1.1"])
        with context.wrap_socket(socket.create_connection((host, int(port)), timeout=60)) as connection:
            certificate = x509.load_der_x509_certificate(connection.getpeercert(binary_form=True) or b"")
        found.append(str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value))
    return found


def expiries(sidecar: Sidecar) -> dict[str, float]:
    """Return the expiry times of certificates in ``/metrics``, by option."""
    page = sidecar.get("/metrics", "metrics")[1]
    name = "agenteval_serve_certificate_expiry_timestamp_seconds{"
    return {line.split('"')[1]: float(line.split()[1]) for line in page.splitlines() if line.startswith(name)}


@pytest.mark.parametrize(
    ("valid", "said"),
    [
        ((-2 * DAY, -DAY), "{until}"),
        ((-90 * DAY, 13 * DAY), "{until}"),
        ((DAY, 90 * DAY), "{since}"),
        ((-DAY / 4, DAY * 3 / 4), ""),  # a short one, of which most is left
        ((-DAY, 11_000 * DAY), ""),  # past 2050 the form of times is another
    ],
)
def test_a_certificate_that_is_not_valid_or_soon_will_not_be_is_said(
    valid: tuple[datetime.timedelta, datetime.timedelta], said: str, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.issue("server", valid)
    leaf = x509.load_pem_x509_certificate(files[0].read_bytes())
    since, until = leaf.not_valid_before_utc, leaf.not_valid_after_utc
    with Sidecar(serve(files, authority.file)) as sidecar:
        form = "%Y-%m-%d %H:%M UTC"
        told = [record.getMessage() for record in caplog.records if "serve.tls.cert_file" in record.getMessage()]
        assert len(told) == bool(said)
        dates = said.format(since=since.strftime(form), until=until.strftime(form))
        assert all(f"serve.tls.cert_file: {files[0]}: " in line and dates in line for line in told)
        found = expiries(sidecar)
        assert (found.keys(), found["cert_file"]) == ({"cert_file", "client_ca_file"}, until.timestamp())


@pytest.mark.parametrize("protocol", ["grpc", "http", "web"])
def test_tls_on_a_plain_port_is_logged(protocol: str, caplog: pytest.LogCaptureFixture) -> None:
    with Sidecar() as sidecar:
        host, _, port = sidecar.addresses[protocol].rpartition(":")
        for _ in range(2):
            with socket.create_connection((host, int(port))) as plain, pytest.raises(OSError):  # noqa: PT011
                ssl.create_default_context().wrap_socket(plain, server_hostname="localhost")
    assert caplog.text.count(f"{host}:{port}: refused 127.0.0.1: TLS on a plain port") == 1


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_failed_handshakes_are_counted_and_logged_by_reason(
    transport: Transport, authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    other = Authority(tmp_path, "other")
    with Sidecar(serve(authority.issue("server"), authority.file)) as sidecar:
        host, _, port = sidecar.addresses[transport].rpartition(":")
        for first in (b"POST /v1/traces HTTP/1.1\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            with socket.create_connection((host, int(port)), timeout=60) as plain:
                plain.sendall(first)
                while plain.recv(1000):  # an alert
                    pass
        assert not sends(sidecar, transport, other.file, authority.issue("agent"))
        for client in (None, other.issue("stranger")):
            assert not sends(sidecar, transport, authority.file, client)
        refused = sidecar.service._servers[transport].refused
        reasons = ["scheme", "client_certificate", "server_certificate"][
            : 3 if transport == "http" else 2
        ]  # grpcio only disconnects
        until(lambda: all(refused[reason] for reason in reasons), f"{refused}")
        assert (refused["limit"], refused["handshake"]) == (0, 0)
        series = f'agenteval_serve_connections_refused_total{{listener="{transport}",reason="scheme"}} 2.0'
        assert series in sidecar.get("/metrics", "metrics")[1]
    lines = [line for line in caplog.messages if "TLS handshake" in line]
    assert len(lines) == len(reasons)
    advice = {"scheme": "https://", "client_certificate": "client certificate", "server_certificate": "serve.tls.cert_file"}
    assert all(sum(advice[reason] in line for line in lines) == 1 for reason in reasons)
