"""Certificates: encryption, and clients that must have one."""

from __future__ import annotations

import datetime
import http.client
import re
import ssl
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from tests.support.certificates import Authority
from tests.support.service import CHAT, Sidecar, Transport, turn_of

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):  # they win over what the exporter is told
        monkeypatch.delenv(name, raising=False)
    return Authority(tmp_path)


def serve(cert: tuple[Path, Path], client_ca: Path | None = None) -> dict[str, Any]:
    tls = {"cert_file": str(cert[0]), "key_file": str(cert[1])}
    return {"serve": {"tls": tls if client_ca is None else {**tls, "client_ca_file": str(client_ca)}}}


def exporter(sidecar: Sidecar, transport: Transport, ca: Path, client: tuple[Path, Path] | None = None) -> Any:
    if transport == "grpc":
        own = (client[1].read_bytes(), client[0].read_bytes()) if client is not None else (None, None)
        credentials = grpc.ssl_channel_credentials(ca.read_bytes(), *own)
        return GrpcExporter(endpoint=f"https://{sidecar.addresses['grpc']}", credentials=credentials, timeout=2)
    own_files = {"client_certificate_file": str(client[0]), "client_key_file": str(client[1])} if client is not None else {}
    url = f"https://{sidecar.addresses['http']}/v1/traces"
    return HttpExporter(endpoint=url, certificate_file=str(ca), timeout=2, **own_files)


def send(sidecar: Sidecar, sender: Any) -> None:
    provider = sidecar.provider(sender)
    provider.get_tracer("t").start_span("chat", attributes=CHAT).end()
    sender.shutdown()


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_spans_come_encrypted(transport: Transport, authority: Authority) -> None:
    with Sidecar(serve(authority.issue("server"))) as sidecar:
        send(sidecar, exporter(sidecar, transport, authority.file))
        assert len(sidecar.turns()) == 1


@pytest.mark.parametrize("transport", ["grpc", "http"])
def test_a_client_needs_a_certificate_of_the_authority(transport: Transport, authority: Authority, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other")
    with Sidecar(serve(authority.issue("server"), authority.file)) as sidecar:
        for client in (None, other.issue("stranger")):
            send(sidecar, exporter(sidecar, transport, authority.file, client))
        assert sidecar.engine.assembler.received == 0
        send(sidecar, exporter(sidecar, transport, authority.file, authority.issue("agent")))
        assert sidecar.engine.assembler.received == 1


def test_certificates_of_clients_are_enough_for_other_machines(authority: Authority) -> None:
    config = serve(authority.issue("server"), authority.file)
    config["serve"]["http"] = "0.0.0.0:0"
    with Sidecar(config) as sidecar:
        assert sidecar.addresses["http"].startswith("0.0.0.0:")


@pytest.mark.parametrize("broken", ["cert_file", "key_file", "client_ca_file"])
def test_files_that_hold_no_certificate_are_named(broken: str, authority: Authority, tmp_path: Path) -> None:
    config = serve(authority.issue("server"), authority.file)
    (tmp_path / "empty").write_text("")
    for file in (tmp_path / "none", tmp_path / "empty"):
        config["serve"]["tls"][broken] = str(file)
        with pytest.raises(ConfigError, match=rf"serve\.tls.*{broken}.*{re.escape(str(file))}"):
            Sidecar(config)


def test_the_key_of_another_certificate_is_refused(authority: Authority) -> None:
    (cert, _), (_, key) = authority.issue("server"), authority.issue("other")
    with pytest.raises(ConfigError, match=rf"cert_file {cert} and key_file {key}: KEY_VALUES_MISMATCH"):
        Sidecar(serve((cert, key)))


def test_for_a_key_with_a_pass_phrase_nobody_is_asked(authority: Authority, tmp_path: Path) -> None:
    cert, key = authority.issue("server")
    secret = serialization.load_pem_private_key(key.read_bytes(), None)
    packed = serialization.BestAvailableEncryption(b"secret")
    key.write_bytes(secret.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, packed))
    with pytest.raises(ConfigError, match=rf"serve\.tls\.key_file: {key}: the key is encrypted"):
        Sidecar(serve((cert, key)))


def test_a_renewed_certificate_is_used_after_a_reload(authority: Authority, tmp_path: Path) -> None:
    cert = authority.issue("server")
    config = serve(cert)
    with Sidecar(config) as sidecar:
        before = names(sidecar)
        renewed = authority.issue("renewed")
        for old, new in zip(cert, renewed, strict=True):
            old.write_bytes(new.read_bytes())
        assert names(sidecar) == before == ["server", "server"]

        async def reload() -> None:
            sidecar.service.reload(load_config({"serve": {**config["serve"], "grpc": "127.0.0.1:0"}}))

        sidecar.on_loop(reload)
        credentials = grpc.ssl_channel_credentials(authority.file.read_bytes())
        with grpc.secure_channel(sidecar.addresses["grpc"], credentials) as channel:
            assert channel.unary_unary(TRACES)(turn_of(1), timeout=5) == b""
        assert names(sidecar) == ["renewed", "renewed"]


def names(sidecar: Sidecar) -> list[str]:
    """Who the HTTP and the gRPC server say they are."""
    found = []
    for name in ("http", "grpc"):
        host, _, port = sidecar.addresses[name].rpartition(":")
        context = ssl.create_default_context(cafile=str(sidecar.service.options.tls.cert_file))
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"] if name == "grpc" else ["http/1.1"])
        connection = http.client.HTTPSConnection(host, int(port), context=context, timeout=10)
        connection.connect()
        raw = connection.sock.getpeercert(binary_form=True)
        connection.close()
        certificate = x509.load_der_x509_certificate(raw)
        found.append(str(certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value))
    return found


DAY = datetime.timedelta(days=1)


@pytest.mark.parametrize(
    ("valid", "said"),
    [
        ((-2 * DAY, -DAY), "the certificate expired on {until}, so TLS connections fail; renew it"),
        ((-90 * DAY, 13 * DAY), "the certificate expires on {until}; renew it"),
        ((-9 * DAY, DAY), "the certificate expires on {until}; renew it"),
        ((DAY, 90 * DAY), "the certificate isn't valid before {since}"),
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
        expected = f"serve.tls.cert_file: {files[0]}: " + said.format(since=since.strftime(form), until=until.strftime(form))
        assert told == ([expected] if said else [])
        page = sidecar.get("/metrics", "metrics")[1]
        name = "agenteval_serve_certificate_expiry_timestamp_seconds"
        found = {line.split('"')[1]: float(line.split()[1]) for line in page.splitlines() if line.startswith(name + "{")}
        assert found.keys() == {"cert_file", "client_ca_file"}
        assert found["cert_file"] == until.timestamp()
        authority.issue("server", (-DAY, 400 * DAY))
        sidecar.service.reload(load_config(sidecar_config(sidecar, files, authority)))
        assert sidecar.service._valid["cert_file"].end > until.timestamp() or until.year > 2050


def sidecar_config(sidecar: Sidecar, files: tuple[Path, Path], authority: Authority) -> dict[str, Any]:
    given = serve(files, authority.file)
    given["serve"] |= {
        name: getattr(sidecar.service.options, name) for name in ("grpc", "http", "metrics", "web", "drain_timeout")
    }
    given["serve"]["drain_timeout"] = "10s"
    return given
