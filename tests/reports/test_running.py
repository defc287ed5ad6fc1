"""Situations of public reports on running beside other programs. Each docstring names the reports. See README.md in this folder."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics_families
from prometheus_client.parser import text_string_to_metric_families as text_families

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import StoreError, Unusable
from otel_agenteval.core.proxies import proxy_for
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.outlets.store.postgres import PostgresDatabase
from otel_agenteval.outlets.store.reader import StoreReader, Wanted
from tests.outlets.test_webhook import Receiver, Rigged, gate
from tests.support.browser import chromium
from tests.support.otlp_json import write_lines
from tests.support.page import ServedPage
from tests.support.postgres import PostgresServer
from tests.support.service import Sidecar, turn_of
from tests.support.stored_turns import filled, some_turns


def recorded(folder: Path, turns: int = 1) -> Path:
    """Write a file with recorded turns."""
    requests = [ExportTraceServiceRequest.FromString(turn_of(number)) for number in range(1, turns + 1)]
    return write_lines(requests, folder / "traces.jsonl")


# --- command line


@pytest.mark.parametrize("closed", [("stdout",), ("stderr",), ("stdin", "stdout", "stderr")], ids="+".join)
def test_commands_run_without_standard_streams(closed: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nab 990, crudini 82: a service manager starts the command with closed streams, which are None in Python."""
    file, out = str(recorded(tmp_path)), tmp_path / "out.jsonl"
    for name in closed:
        monkeypatch.setattr(sys, name, None)
    assert main(["eval", file, "--format", "jsonl", "--out", str(out)]) == 0
    assert out.read_text()
    assert main(["metrics"]) == 0
    assert main(["turns", str(tmp_path / "missing")]) == 2
    for name in closed:
        getattr(sys, name).close()


def test_closed_standard_input_is_empty(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Sibling of nab 990: ``turns -`` gets no input."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["turns", "-"]) == 2
    assert "no spans or log records found" in capsys.readouterr().err
    sys.stdin.close()


@pytest.mark.parametrize(
    "arguments", [("metrics",), ("turns", "FILE"), ("eval", "FILE", "--format", "jsonl", "--out", "/dev/full")]
)
def test_full_disk_is_one_line(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """vcztools 141, GaNDLF 581: no space is left for the output."""
    file = str(recorded(tmp_path))
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code = main([file if one == "FILE" else one for one in arguments])
    assert (code, capsys.readouterr().err) == (2, "otel-agenteval: can't write the output: No space left on device\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "gbk", "utf-8"])
def test_lines_are_json_in_any_encoding(encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """hamster 94, wordfence-cli 232, aider 4665: the locale's encoding lacks characters of the answer."""
    file, raw = recorded(tmp_path), io.BytesIO()
    file.write_text(file.read_text().replace("bot", "Bär ✓ 店 😀"), encoding="utf-8")
    with io.TextIOWrapper(raw, encoding=encoding) as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["turns", str(file)]) == 0
        assert json.loads(raw.getvalue().decode(encoding))["agent"] == "Bär ✓ 店 😀"


def test_turn_without_start_has_no_duration(tmp_path: Path) -> None:
    """opentelemetry-js 4202: a JavaScript exporter writes times as objects, so they are unknown. The duration was 0 or 57 years."""
    for start, end in (({"low": 1, "high": 4}, {"low": 2, "high": 4}), ("0", "1795960000000000000"), (None, None)):
        span = {"traceId": "1" * 32, "spanId": "1" * 16, "startTimeUnixNano": start, "endTimeUnixNano": end}
        span["attributes"] = [{"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}}]
        (tmp_path / "t.jsonl").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}))
        (turn,) = oa.load_turns([tmp_path / "t.jsonl"])
        assert (turn.start, turn.duration_s) == (None, None)


# --- secrets


def test_configuration_in_a_log_has_no_secrets() -> None:
    """braintrust-sdk-javascript 912, unleash-java-sdk 206: an object in a log line contained the API key."""
    config = load_config(
        {
            "judge": {"base_url": "http://127.0.0.1:9/v1", "model": "m", "api_key": "hidden-1"},
            "serve": {"token": "hidden-2", "tenants": []},
            "outlets": {
                "store": "postgresql://user:hidden-3@host/db",
                "webhook": {"url": "https://hooks.example.com/hidden-4"},
                "otlp": {"endpoint": "http://127.0.0.1:9", "headers": {"x-any": "hidden-5"}},
            },
        },
        {},
    )
    for shown in (
        config,
        config.judge,
        config.serve,
        config.outlets,
        config.outlets.store,
        config.outlets.webhook,
        config.outlets.otlp,
    ):
        assert "hidden" not in f"{shown} {shown!r}"
    assert "model='m'" in repr(config.judge)
    assert config.judge.api_key == "hidden-1"


# --- stores and /metrics


def stored(path: str) -> None:
    """Store one turn in a file."""
    with Sidecar({"outlets": {"store": path}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        sidecar.turns()


@pytest.mark.parametrize("name", ["file:a.db", "file:b.db?mode=memory", "c#1.db", "d?mode=ro.db", "e%41.db"])
def test_names_of_store_files_arent_addresses(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ALEAPP 711, mulder 86, memU 503: SQLite reads a part of the file name as a URI, and opens another file."""
    monkeypatch.chdir(tmp_path)
    stored(name)
    assert [file.name for file in Path().iterdir()] == [name]
    with StoreReader(name) as store:
        assert len(store.turns(Wanted())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_store_in_read_only_folder_can_be_read() -> None:
    """grafana-sqlite-datasource 167, deja-vu 2702: a store in WAL mode is mounted without permission to write."""
    with tempfile.TemporaryDirectory() as name:  # other users can't enter a folder of pytest
        file, unfinished = Path(name, "scores.db"), Path(name, "unfinished.db")
        stored(str(file))
        unfinished.write_bytes(file.read_bytes())
        Path(f"{unfinished}-wal").write_bytes(b"x")  # rows may wait there
        for path in (file, unfinished, Path(name)):
            path.chmod(0o555)
        os.seteuid(65534)
        try:
            with StoreReader(str(file)) as store:
                assert len(store.turns(Wanted())) == 1
            with pytest.raises(StoreError, match="can't read"):
                StoreReader(str(unfinished))
            with pytest.raises(StoreError, match="file not found"):
                StoreReader(f"{name}/missing.db")
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("is_set", [False, True])
def test_pooler_that_ignores_options_needs_a_search_path(
    is_set: bool, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pgbouncer 674, 1176, nextcloud-mcp-server 1032: the pooler drops the search path, so tables get into another schema."""
    import psycopg

    address = postgres.database()
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(f"ALTER ROLE agenteval {'SET' if is_set else 'RESET'} search_path {'= agenteval' if is_set else ''}")
    direct = psycopg.connect
    monkeypatch.setattr(psycopg, "connect", lambda *given, **more: direct(*given, **{**more, "options": ""}))
    try:
        if is_set:
            stored(address)
            with StoreReader(address) as store:
                assert len(store.turns(Wanted())) == 1
        else:
            with pytest.raises(Unusable, match="pooler ignores the search_path option"), PostgresDatabase(address).connection():
                pass
            with pytest.raises(StoreError, match="can't read the score store: the connection pooler ignores the search_path"):
                StoreReader(address)
        with direct(address) as db:
            tables = db.execute("SELECT DISTINCT schemaname FROM pg_tables WHERE tablename = 'turns'").fetchall()
            assert tables == ([("agenteval",)] if is_set else [])
    finally:
        with direct(address, autocommit=True) as db:
            db.execute("ALTER ROLE agenteval RESET search_path")


@pytest.mark.parametrize("most", [1, 1_000])
def test_registry_that_the_application_emptied_is_no_failure(most: int) -> None:
    """client_python 815, prometheus_flask_exporter 17: tests unregister all collectors before the next start."""
    registry, telemetry = CollectorRegistry(), Telemetry()
    outlet = PrometheusOutlet(telemetry, registry=registry)
    for collector in list(registry._collector_to_names)[:most]:
        registry.unregister(collector)
    outlet.close()
    again = PrometheusOutlet(telemetry, registry=registry)
    telemetry.add(semconv.TURNS, agent="bot", service_name="shop", close_reason="root_ended", complete="true")
    assert b"agenteval_turns_total" in generate_latest(registry)
    again.close()
    again.close()
    assert generate_latest(registry) == b""


@pytest.mark.parametrize("escaping", ["dots", "underscores", "values", "allow-utf-8", None])
@pytest.mark.parametrize("form", ["text/plain", "application/openmetrics-text"])
def test_scrapers_can_choose_any_escaping(form: str, escaping: str | None) -> None:
    """client_python 1177: with some escapings, the names of samples don't belong to any metric."""
    with Sidecar() as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        sidecar.turns()
        accept = f"{form}; version=1.0.0" + (f"; escaping={escaping}" if escaping else "")
        status, text = sidecar.get("/metrics", "metrics", {"Accept": accept})
    read: Any = text_families if form == "text/plain" else openmetrics_families
    found = {family.name: family.type for family in read(text)}
    assert (status, found["agenteval_score"], found["agenteval_turns"]) == (200, "histogram", "counter")
    assert "unknown" not in found.values()


# --- webhooks


@pytest.fixture
def hooked() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_repeated_webhook_message_has_the_same_id(hooked: Receiver) -> None:
    """documenso 3204, EcoTask-backend 59: the receiver took a message, but its answer got lost, so the message comes again."""
    rig = Rigged(hooked)
    rig.emit(gate())
    hooked.answers = [503]
    assert not rig.outlet.flush(60)
    rig.outlet.begin_exit()  # which flushes in spite of the failure
    rig.flush()
    rig.clock.advance(5)
    rig.emit(gate())  # an equal one, but later
    rig.flush()
    first, again, later = (json.loads(raw)["id"] for raw in hooked.raw)
    assert first == again != later
    rig.outlet.close()


def test_message_with_a_further_notice_has_another_id(hooked: Receiver) -> None:
    """Sibling of documenso 3204: what was merged meanwhile must not be taken for a repetition."""
    rig = Rigged(hooked)
    rig.emit(gate())
    hooked.answers = [503]
    assert not rig.outlet.flush(60)
    rig.emit(gate())
    rig.outlet.begin_exit()
    rig.flush()
    first, merged = (json.loads(raw) for raw in hooked.raw)
    assert (first["id"] != merged["id"], merged["notices"][0]["count"]) == (True, 2)
    rig.outlet.close()


@pytest.mark.parametrize("excluded", ["127.0.0.0/8", "10.0.0.0/8, 127.0.0.1/32", "localhost,127.0.0.1"])
def test_no_proxy_can_contain_address_ranges(excluded: str, hooked: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """hermes-agent 59667, kubernetes-client/javascript 233: servers in an excluded range are called through the proxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")  # nobody listens there
    monkeypatch.setenv("no_proxy", excluded)
    rig = Rigged(hooked)
    rig.emit(gate())
    rig.flush()
    assert rig.counted()["delivered"] == 1
    rig.outlet.close()


@pytest.mark.parametrize(
    ("url", "is_direct"),
    [
        ("https://10.1.2.3:8000/v1", True),
        ("https://10.9.0.1/", False),
        ("https://[fd00::7]:8000", True),
        ("https://10.example/", False),
    ],
)
def test_addresses_outside_of_ranges_use_the_proxy(url: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Siblings of hermes-agent 59667: other addresses, IPv6, and names that look like addresses."""
    monkeypatch.setenv("https_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "10.1.0.0/16,fd00::/8,not/a/range")
    assert (proxy_for(url) is None) == is_direct


# --- receiving


PAGE = "https://shop.example"
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,authorization"}


@pytest.mark.parametrize(("server", "path"), [("http", "/v1/traces"), ("http", "/v1/feedback"), ("web", "/api/v1/turns")])
def test_browser_may_send_from_an_allowed_page(server: str, path: str) -> None:
    """opentelemetry-collector 7237, 13402: a browser asks first (OPTIONS), and hides responses that don't allow its page."""
    with Sidecar({"serve": {"allowed_origins": [PAGE], "token": "t"}}) as sidecar:
        status, headers, _ = sidecar.post(path, headers={"Origin": PAGE, **ASKS}, server=server, method="OPTIONS")
        assert status == 200
        assert headers["access-control-allow-origin"] == PAGE
        assert headers["access-control-allow-headers"] == ASKS["Access-Control-Request-Headers"]
        assert "POST" in headers["access-control-allow-methods"]
        for asked in (ASKS, {}):
            status, headers, _ = sidecar.post(
                path, headers={"Origin": "https://evil.example", **asked}, server=server, method="OPTIONS"
            )
            assert (status, "access-control-allow-origin" in headers) == (403, False)
        assert sidecar.post(path, headers=ASKS, server=server, method="OPTIONS")[0] in (401, 405)
        odd = {"Origin": PAGE, **ASKS, "Access-Control-Request-Headers": "x-\xe9"}
        assert sidecar.post(path, headers=odd, server=server, method="OPTIONS")[0] == 200


@pytest.mark.parametrize(("token", "status"), [("t", 200), ("wrong", 401)])
def test_allowed_page_may_read_responses(token: str, status: int) -> None:
    """opentelemetry-collector 13402, also for a refused request."""
    with Sidecar({"serve": {"allowed_origins": [PAGE], "token": "t"}}) as sidecar:
        headers = {"Origin": PAGE, "Sec-Fetch-Site": "cross-site", "Authorization": f"Bearer {token}"}
        found, answered, _ = sidecar.post("/v1/traces", turn_of(1), headers)
        assert (found, answered["access-control-allow-origin"], answered["vary"]) == (status, PAGE, "origin")
        del headers["Origin"], headers["Sec-Fetch-Site"]
        assert "access-control-allow-origin" not in sidecar.post("/v1/traces", turn_of(1), headers)[1]


def test_grpc_to_the_http_port_names_the_other_port(caplog: pytest.LogCaptureFixture) -> None:
    """grpc-go 7254, jaeger 4858: an SDK's gRPC exporter sends to the port for HTTP."""
    with Sidecar() as sidecar:
        host, _, port = sidecar.addresses["http"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=10) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
            assert b"send OTLP/gRPC to serve.grpc" in client.recv(1_000)
    assert "serve.grpc (default port 14317)" in caplog.text


@pytest.mark.parametrize(
    ("address", "has_brackets"),
    [
        ("::1:4318", True),
        (":::4318", True),
        ("[::1]", True),
        ("[::1]:x", True),
        ("4318", False),
        (":4318", False),
        ("host", False),
    ],
)
def test_error_about_an_address_explains_brackets(address: str, has_brackets: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """owncast 1398, unleash-edge 1275: an IPv6 address without brackets, and other addresses."""
    assert main(["serve", "--http", address]) == 2
    assert ("[::1]:14318" in capsys.readouterr().err) is has_brackets


# --- web UI


class Forwarder(BaseHTTPRequestHandler):
    """A proxy that serves the web UI below ``/eval``, and removes this part of the path."""

    page = ""

    def do_GET(self) -> None:
        answer = httpx.get(self.page + self.path.removeprefix("/eval")) if self.path.startswith("/eval/") else httpx.Response(404)
        self.send_response(answer.status_code)
        for name in ("content-type", "content-security-policy", "etag"):
            self.send_header(name, answer.headers.get(name, ""))
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the browser went to another view
            self.wfile.write(answer.content)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.mark.slow
def test_page_works_below_a_path_of_a_proxy(tmp_path: Path) -> None:
    """mlflow 597, 1120, mlflow-oidc-auth 198: scripts and data are requested from the start of the site."""
    with ServedPage(filled(tmp_path / "scores.db", some_turns(3))) as page, chromium() as browser:
        forwarder = type("Forwarding", (Forwarder,), {"page": page.url})
        with ThreadingHTTPServer(("127.0.0.1", 0), forwarder) as server:
            threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
            site = f"http://127.0.0.1:{server.server_port}/eval"
            tab = browser.new_page()
            tab.goto(f"{site}/")
            tab.click("nav >> text=Turns")
            tab.click(".rows .row a")
            tab.wait_for_selector("h2")
            turn = tab.url
            assert turn.startswith(f"{site}/turn/")
            tab.go_back()
            tab.wait_for_selector(".rows .row")
            for address in (turn, f"{site}/turns/", f"{site}/turns?group=conversation"):
                tab.goto(address)
                tab.wait_for_selector("main h1, main h2")
                assert "Not found" not in tab.inner_text("main")
            tab.goto(f"{site}/turns")
            links = {link.get_attribute("href") for link in tab.query_selector_all("a[href*=export]")}
            assert {urlsplit(str(link)).path for link in links} == {"/eval/api/v1/export"}
            server.shutdown()


@pytest.mark.parametrize(("path", "start"), [("/", "./"), ("/turns", "./"), ("/turns/", "./../"), ("/turn/a", "./../")])
def test_scripts_of_the_page_have_relative_addresses(path: str, start: str, tmp_path: Path) -> None:
    """Siblings of mlflow 597: addresses at each depth."""
    with ServedPage(filled(tmp_path / "scores.db", some_turns(1))) as page:
        text = page.client.get(path).text
        assert f'src="{start}static/app.js"' in text
        assert '"/static' not in text
        assert page.client.get(urljoin(path, f"{start}static/app.js")).status_code == 200
