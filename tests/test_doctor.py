"""``otel-agenteval doctor`` with real programs, packages and a real sidecar."""

from __future__ import annotations

import datetime
import os
import re
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.cli import diagnosis
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import packages
from otel_agenteval.core.errors import MissingExtra
from otel_agenteval.core.packages import Instrumentation
from otel_agenteval.dialects.capture import CAPTURES, of_package, of_scope
from otel_agenteval.engine.status import InternalErrors
from otel_agenteval.judging.models import judge_from
from otel_agenteval.judging.queues.redis_server import unreachable
from otel_agenteval.outlets.base import loggable
from otel_agenteval.server.receiver import ExportRequest
from tests.support.certificates import Authority
from tests.support.judges import ScriptedModels
from tests.support.process import PRELUDE, ROOT, environment
from tests.support.service import Sidecar, request, turn_of

SET_UP = "trace.set_tracer_provider(TracerProvider())\ntracer = trace.get_tracer('app')\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Return a folder for packages that have only metadata."""
    return tmp_path / "site"


def install(site: Path, name: str, version: str = "1.0", *, traces: tuple[str, ...] = (), group: str = "") -> None:
    """Create the metadata that ``pip`` writes for a package."""
    folder = site / f"{name.replace('-', '_')}-{version}.dist-info"
    folder.mkdir(parents=True)
    asked = "".join(f"Requires-Dist: {one} ; extra == 'instruments'\n" for one in traces)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{asked}")
    if group:
        (folder / "entry_points.txt").write_text(f"[{group}]\nit = it:It\n")


class Doctor:
    """Runs the command in this process, and records its exit code and output."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capture: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capture = monkeypatch, capture

    def __call__(self, folder: Path, *arguments: str, site: Path | None = None, **env: str) -> tuple[int, str]:
        with self._monkeypatch.context() as here:
            for name in [name for name in os.environ if name.startswith("OTEL_")]:
                here.delenv(name)
            capture = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY"}
            for name, value in {**environment(), "PYTHONPATH": str(ROOT), **capture, **env}.items():
                here.setenv(name, value)
            here.chdir(folder)
            if site is not None:
                here.syspath_prepend(str(site))
            packages.installed.cache_clear()
            try:
                code = main(["doctor", *arguments])
            finally:
                packages.installed.cache_clear()
        said = self._capture.readouterr()
        return code, said.out + said.err


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Doctor:
    return Doctor(monkeypatch, capfd)


def app(folder: Path, text: str) -> str:
    (folder / "app.py").write_text(PRELUDE + SET_UP + text)
    return "app.py"


@pytest.mark.parametrize(
    ("version", "instrumentations", "env", "code", "says"),
    [
        ("0.9", ["openinference-instrumentation-acme"], {}, 1, "creates no spans: it requires acme-llm >=1.0 (acme-llm 0.9)"),
        ("1.9", ["openinference-instrumentation-acme"], {}, 0, "✓ openinference-instrumentation-acme 1.0 captures content"),
        ("1.9", ["openinference-instrumentation-acme"], {"OPENINFERENCE_HIDE_INPUTS": "true"}, 1, "→ unset OPENINFERENCE_HIDE_INPUTS=true"),
        ("1.9", ["openinference-instrumentation-acme", "opentelemetry-instrumentation-genai-acme"], {}, 0, "-acme both trace acme-llm"),
    ],
    ids=["another version", "content", "no content", "two"],
)  # fmt: skip
def test_instrumentations_that_are_installed(
    doctor: Doctor, version: str, instrumentations: list[str], env: dict[str, str], code: int, says: str, tmp_path: Path, site: Path
) -> None:  # fmt: skip
    install(site, "acme-llm", version)
    for name in instrumentations:
        install(site, name, traces=("acme-llm >=1.0",), group="opentelemetry_instrumentor")
    found, said = doctor(tmp_path, site=site, **env)
    assert (found, says in said) == (code, True), said


def test_a_library_without_instrumentation(doctor: Doctor, tmp_path: Path, site: Path) -> None:
    install(site, "crewai", "1.0")
    code, said = doctor(tmp_path, site=site)
    assert code == 0
    assert "· crewai 1.0 is installed without an instrumentation" in said
    assert "pip install openinference-instrumentation-crewai" in said


@pytest.mark.parametrize(
    ("framework", "covered"), [("langchain-core", True), ("llama-index-core", True), ("crewai", False), ("acme-llm", False)]
)
@pytest.mark.parametrize("traced", [True, False])
def test_a_model_sdk_below_a_framework(
    framework: str, covered: bool, traced: bool, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {framework: "1.0", "cohere": "5.0"}
    found = [Instrumentation(f"openinference-instrumentation-{framework}", "1.0", (framework,), ())] if traced else []
    monkeypatch.setattr(diagnosis, "installed_packages", lambda: names)
    monkeypatch.setattr(diagnosis, "instrumentations", lambda: found)
    (advice,) = [advice for _, text, advice in diagnosis.instrumentation_findings({}) if text.startswith("cohere 5.0")]
    assert advice.startswith("only if your agent also calls it directly" if covered else "if your agent uses it")


@pytest.mark.parametrize(
    ("env", "says"),
    [
        ({"OTEL_SDK_DISABLED": "true"}, "✗ OTEL_SDK_DISABLED=true: the SDK creates no spans"),
        ({"OTEL_TRACES_SAMPLER": "always_off"}, "✗ OTEL_TRACES_SAMPLER=always_off: traces that start in this program aren't recorded"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.1"}, "· OTEL_TRACES_SAMPLER=traceidratio (0.1)"),
        ({"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT": "256"}, "· OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT=256: longer messages are truncated"),
        ({"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "NO_CONTENT"}, "opentelemetry-instrumentation-genai-openai"),
    ],
)  # fmt: skip
def test_variables_that_are_in_the_way(doctor: Doctor, env: dict[str, str], says: str, tmp_path: Path) -> None:
    code, said = doctor(tmp_path, **env)
    assert says in said
    assert code == ("· " not in says)


def test_a_program_whose_turns_are_as_they_should_be(doctor: Doctor, tmp_path: Path) -> None:
    name = app(tmp_path, "print('its own words')\nfor _ in range(3): turn(tracer, 'desk')\n")
    code, said = doctor(tmp_path, "--", sys.executable, name)
    assert code == 0, said
    assert "its own words" in said
    assert "✓ 6 spans and 0 log records arrived (app 6)" in said
    assert "✓ 3 turns: desk 3" in said
    assert "✓ all turns have input or output" in said
    assert "· no usage in the spans: code_token_usage is skipped" in said
    assert [path.name for path in tmp_path.iterdir()] == ["app.py"]


def test_a_single_turn_is_counted_in_the_singular(doctor: Doctor, tmp_path: Path) -> None:
    code, said = doctor(tmp_path, "--", sys.executable, app(tmp_path, "turn(tracer, 'desk')\n"))
    assert (code, "✓ 1 turn: desk 1\n" in said) == (0, True), said
    name = app(tmp_path, "tracer.start_span('chat', attributes={'gen_ai.operation.name': 'chat'}).end()")
    code, said = doctor(tmp_path, "--", sys.executable, name)
    assert "✓ 1 span and 0 log records arrived" in said
    assert (code, "✗ 1 turn with neither input nor output" in said) == (1, True), said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "✗ no spans: the program created a TracerProvider"),
        ("tracer.start_span('GET /').end()", "✗ the spans contain no turn"),
        (
            "trace.get_tracer('opentelemetry.instrumentation.openai_v2').start_span('c', attributes={'gen_ai.operation.name': 'chat'}).end()",
            "neither input nor output (opentelemetry.instrumentation.openai_v2)\n      → to capture content, check the settings of OpenTelemetry, older packages",
        ),
    ],
    ids=["no span", "no turn", "no content"],
)
def test_what_is_wrong_with_a_program(doctor: Doctor, text: str, says: str, tmp_path: Path) -> None:
    code, said = doctor(tmp_path, "--", sys.executable, app(tmp_path, text))
    assert code == 1
    assert says in said


def test_metrics_that_cannot_be_evaluated(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "agenteval.yaml").write_text("metrics: [code_contains, llm_faithfulness]\n")
    code, said = doctor(tmp_path, "--config", "agenteval.yaml")
    assert code == 1
    assert "✗ code_contains: the required parameter 'value' is missing" in said
    assert "✗ no judge is configured, so these metrics are skipped: llm_" in said


def test_servers_without_their_extra(doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Report: the documentation promised errors that name the extra, but the log had only names of exceptions."""
    monkeypatch.setattr("otel_agenteval.cli.diagnosis.installed", lambda module: False)
    (tmp_path / "agenteval.yaml").write_text(
        "outlets: {store: 'postgresql://x@127.0.0.1:1/x'}\njudge: {queue: {backend: redis, url: 'redis://127.0.0.1:1'}}\n"
    )
    code, said = doctor(tmp_path, "--config", "agenteval.yaml")
    assert code == 1
    assert "otel-agenteval[postgres]" in said
    assert "otel-agenteval[redis]" in said


def test_log_names_a_missing_extra(caplog: pytest.LogCaptureFixture) -> None:
    error = MissingExtra("a queue in Redis", "redis")
    assert not unreachable(error)
    InternalErrors().report("judge_queue", error)
    assert "otel-agenteval[redis]" in caplog.text
    assert "otel-agenteval[redis]" in loggable(error)


def test_error_of_a_missing_extra_begins_with_the_section(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report: the message began with ``judge.Bedrock without an API key requires``."""
    monkeypatch.setitem(sys.modules, "botocore.auth", None)
    url = "https://bedrock-runtime.eu-west-1.amazonaws.com"
    with pytest.raises(oa.ConfigError, match=r"^judge: Bedrock without an API key requires the extra \[bedrock\]"):
        judge_from(load_config({"judge": {"base_url": url, "model": "bedrock/x"}}))


@pytest.mark.parametrize(
    ("replies", "says", "code"),
    [
        ([{"reason": "yes", "score": 90}, {"reason": "no", "score": 5}], "✓ scripted replies, and scores a good case better than a bad one", 0),
        ([401], "check judge.base_url, judge.model, and judge.api_key\n", 1),
        ([429] * 9, "the server limits the rate. Wait and try again, or raise your limit at the provider\n", 1),
        ([{"reason": "no", "score": 5}] * 2, "→ use a more capable model\n", 1),
        (["I can't score this"] * 2, "judge.api_key, or use a more capable model\n", 1),
    ],
    ids=["good", "no key", "rate limit", "wrong verdict", "no verdict"],
)  # fmt: skip
def test_whether_the_judge_answers(
    replies: list[object], says: str, code: int, models: ScriptedModels, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "SPAN_ONLY")
    monkeypatch.setattr(diagnosis, "_PATIENCE", 2.0 if 429 in replies else 30.0)
    file = tmp_path / "agenteval.yaml"
    file.write_text(f"judge: {{base_url: '{models.url}', model: scripted, api_key: k, attempts: 1}}\nmetrics: [llm_relevance]\n")
    models.play(*replies)
    found = main(["doctor", "--config", str(file)])
    said = capsys.readouterr().out
    assert says in said
    assert found == code


def test_outlets_that_cannot_be_reached(models: ScriptedModels, tmp_path: Path, doctor: Doctor) -> None:
    conversation = "conversation: {metrics: [code_latency, code_cost]}"
    file = tmp_path / "outlets.yaml"
    for otlp, webhook, code in (("http://127.0.0.1:1", models.url, 1), (models.url.removesuffix("/v1"), models.url, 0)):
        file.write_text(f"outlets: {{otlp: {{endpoint: '{otlp}'}}, webhook: {{url: '{webhook}'}}}}\n{conversation}\n")
        found, said = doctor(tmp_path, "--config", file.name)
        assert (found, "✗ outlets.otlp.endpoint: can't connect to 127.0.0.1:1: " in said) == (code, bool(code)), said
        assert "✓ outlets.webhook.url: 127.0.0.1:" in said
        assert "2 metrics on each conversation" in said


def test_installed_instrumentation_without_spans_is_named(doctor: Doctor, tmp_path: Path, site: Path) -> None:
    install(site, "openinference-instrumentation-acme", group="openinference_instrumentor")
    for text in ("", "tracer.start_span('GET /').end()"):
        code, said = doctor(tmp_path, "--", sys.executable, app(tmp_path, text), site=site)
        assert (code, "It().instrument(), from it" in said) == (1, True), said


@pytest.mark.parametrize(
    ("url", "advice"),
    [
        ("http://127.0.0.1:1/v1", "nothing listens at judge.base_url. Start the server, or correct the address"),
        ("http://judge.invalid/v1", "check judge.base_url and the server"),
    ],
    ids=["refused", "no such host"],
)
def test_unreachable_judge_is_not_blamed_on_the_model(url: str, advice: str, tmp_path: Path, doctor: Doctor) -> None:
    (tmp_path / "judge.yaml").write_text(
        f"judge: {{base_url: '{url}', model: m, api_key: k, attempts: 1}}\nmetrics: [llm_relevance]\n"
    )
    code, said = doctor(tmp_path, "--config", "judge.yaml")
    assert (code, f"→ {advice}\n" in said) == (1, True), said


def at(sidecar: Sidecar, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = main(["doctor", "--url", f"http://{sidecar.addresses['metrics']}"])
    return code, capsys.readouterr().out.partition("http://")[2]


def test_a_sidecar_before_and_after_its_first_spans(capsys: pytest.CaptureFixture[str]) -> None:
    with Sidecar() as sidecar:
        assert sidecar.post("/v1/traces", b"")[0] == 200  # a request without spans
        code, said = at(sidecar, capsys)
        assert (code, "✗ the sidecar received no spans" in said, "Prometheus hasn't scraped" in said) == (1, True, True)

        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        sidecar.turns()
        sidecar.get("/metrics", "metrics", {"User-Agent": "Prometheus/3.5.0"})
        code, said = at(sidecar, capsys)
        assert code == 0, said
        assert "✓ 2 spans received, 1 turn\n" in said
        assert "✓ scraped by prometheus" in said

        attributes = {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 7}
        for trace in range(2, 5):
            assert sidecar.post("/v1/traces", request({"trace": trace, "attributes": attributes}, scope="haystack"))[0] == 200
        sidecar.turns()
        code, said = at(sidecar, capsys)
        assert code == 1
        assert "✗ 3 traces of haystack: turns without input and output" in said
        assert "HAYSTACK_CONTENT_TRACING_ENABLED=true" in said


def test_a_sidecar_with_failing_outlets_and_refused_requests(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "scores.db").mkdir()
    outlets = {"store": str(tmp_path / "scores.db"), "otlp": {"endpoint": "http://127.0.0.1:9"}}
    with Sidecar({"outlets": outlets, "serve": {"token": "secret", "drain_timeout": "1s"}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 401
        assert sidecar.post("/v1/traces", b"x", {"Authorization": "Bearer secret"})[0] == 400
        assert sidecar.post("/v1/traces", turn_of(1), {"Authorization": "Bearer secret"})[0] == 200
        with sidecar.engine.assembler.lock:
            closed = sidecar.engine.assembler.close_all("delay")
        sidecar.engine.intake.take(closed)
        sidecar.engine.flush(2)
        code, said = at(sidecar, capsys)
    assert code == 1
    for outlet in outlets:
        assert re.search(
            rf"✗ outlet {outlet}: .*waiting, 0 dropped\n +→ docs/operate/runbook.md#agentevaloutletdelivers", said
        ), said
    assert "refused request: bad_data\n      → docs/operate/runbook.md#agentevalrequestsrefused" in said
    assert "refused request: unauthenticated\n      → docs/operate/runbook.md#agentevalunauthenticated" in said


def test_sidecar_with_problems_that_only_it_sees(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = datetime.timedelta(days=1)
    cert, key = Authority(tmp_path).issue("server", (-2 * day, -day))
    tls = {"cert_file": str(cert), "key_file": str(key)}
    spans = request({"trace": 1, "attributes": {}}).replace((1).to_bytes(16, "big"), bytes(16))
    with Sidecar({"serve": {"tls": tls, "grpc": None}}) as sidecar:
        host, _, port = sidecar.addresses["http"].rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as plain:
            plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
            while plain.recv(1000):
                pass
        sidecar.service.receiver.process(ExportRequest("traces", spans, "", json=False))
        sidecar.service.reload_failed()
        sidecar.service.receiver.count("http", "traces", "unauthenticated")
        code, said = at(sidecar, capsys)
        assert code == 1
        for line, section in (
            ("✗ authentication: the last request had no valid token", "unauthenticated"),
            ("✗ configuration: the last reload failed; the log contains the reason", "reloadfailed"),
            ("✗ certificate cert_file: expired", "certificateexpires"),
            ("· 1 refused connection: scheme", "connectionsrefused"),
            ("· 1 dropped span: without a valid trace or span ID", "spansdropped"),
        ):
            assert f"{line}\n      → docs/operate/runbook.md#agenteval{section}\n" in said, said
        sidecar.service.receiver.count("http", "traces", "ok")
        assert "✗ authentication" not in at(sidecar, capsys)[1]


@pytest.mark.parametrize(
    ("more", "code", "says", "silent"),
    [
        ([], 0, "1 turn\n", ("this Python", "configuration\n")),
        (["--config", "of.yaml"], 1, "outlets.store.path: folder not found", ("this Python",)),
        (["--", sys.executable, "-c", ""], 1, "OTEL_SDK_DISABLED=true", ()),
    ],
    ids=["sidecar only", "configuration", "program"],
)
def test_url_checks_this_python_only_for_a_program(
    doctor: Doctor, more: list[str], code: int, says: str, silent: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "of.yaml").write_text("outlets: {store: missing/scores.db}\n")
    with Sidecar() as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        sidecar.turns()
        url = f"http://{sidecar.addresses['metrics']}"
        found, said = doctor(tmp_path, "--url", url, *more, OTEL_SDK_DISABLED="true")
    assert (found, says in said) == (code, True), said
    assert not [section for section in silent if section in said], said


def test_url_ignores_an_invalid_local_configuration(doctor: Doctor, tmp_path: Path) -> None:
    with Sidecar() as sidecar:
        url = f"http://{sidecar.addresses['metrics']}"
        code, said = doctor(tmp_path, "--url", url, OTEL_AGENTEVAL_TURN__MAX_OPEN="x")
    assert (code, "the sidecar received no spans" in said) == (1, True), said
    assert doctor(tmp_path, OTEL_AGENTEVAL_TURN__MAX_OPEN="x")[0] == 2


@pytest.mark.parametrize(
    ("token", "port", "says"),
    [
        ("secret", "web", "status 401\n      → this is the web UI; use the metrics address"),
        (None, "web", "status 404\n      → use the metrics address"),
        ("secret", "http", "status 404\n      → use the metrics address"),
        (
            None,
            "grpc",
            "status 400 this port accepts only gRPC; send OTLP/HTTP to serve.http (default port 14318)\n      → use the",
        ),
    ],
)
def test_url_of_another_port_names_the_metrics_address(
    token: str | None, port: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"serve": {"token": token}, "outlets": {"store": str(tmp_path / "scores.db")}}
    with Sidecar(config) as sidecar:
        code, said = main(["doctor", "--url", f"http://{sidecar.addresses[port]}"]), capsys.readouterr().out
    assert (code, f"/metrics can't be read: {says}" in said) == (1, True), said
    assert "mozilla" not in said
    assert "by default http://127.0.0.1:19464" in said


class Guarded(BaseHTTPRequestHandler):
    """A web UI behind a proxy that requires a token."""

    def do_GET(self) -> None:
        known = self.headers["Authorization"] == "Bearer open"
        body = b"agenteval_build_info 1\n" if known else b""
        self.send_response(200 if known else 401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_a_page_behind_a_token(capsys: pytest.CaptureFixture[str]) -> None:
    with HTTPServer(("127.0.0.1", 0), Guarded) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        assert main(["doctor", "--url", url]) == 1
        said = capsys.readouterr().out
        assert "can't be read: status 401" in said
        assert "--header 'Authorization: Bearer …'" in said
        assert main(["doctor", "--url", url, "--header", "Authorization: Bearer open"]) == 1
        assert "the sidecar received no spans" in capsys.readouterr().out
        assert main(["doctor", "--url", url, "--header", "Authorization"]) == 2
        assert "--header: must be 'NAME: VALUE'" in capsys.readouterr().err
        server.shutdown()
    for url, code in (("http://127.0.0.1:1", 1), ("127.0.0.1:1", 2)):  # where no sidecar is, and no URL
        assert main(["doctor", "--url", url]) == code
        printed = capsys.readouterr()
        assert url in printed.out + printed.err


@pytest.mark.parametrize(
    ("scope", "begins"),
    [
        ("openinference.instrumentation.openai", "OpenInference"),
        ("opentelemetry.instrumentation.openai_v2", "OpenTelemetry, older packages"),
        ("opentelemetry.instrumentation.genai.openai", "OpenTelemetry (`"),
        ("opentelemetry.instrumentation.google_genai", "OpenTelemetry (`opentelemetry-instrumentation-genai"),
        ("opentelemetry.instrumentation.botocore.bedrock-runtime", "OpenTelemetry (`opentelemetry-instrumentation-botocore"),
        ("opentelemetry.instrumentation.openai", "OpenLLMetry"),
        ("ai", "Vercel AI SDK"),
        ("airline.web", None),
    ],
)
def test_a_scope_says_who_captures(scope: str, begins: str | None) -> None:
    found = of_scope(scope)
    assert found is None if begins is None else found is not None and found.name.startswith(begins)


def test_packages_are_found_by_their_names() -> None:
    assert of_package("openinference-instrumentation-openai") is CAPTURES[0]
    assert of_package("Google_ADK") is not None
    assert "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT" in (of_package("azure-ai-projects") or CAPTURES[0]).variables
    assert of_package("requests") is None


@pytest.mark.parametrize(
    ("package", "content", "opts_in", "captured"),
    [
        ("opentelemetry-instrumentation-genai-openai", "SPAN_ONLY", False, True),
        ("opentelemetry-instrumentation-genai-openai", "true", False, False),  # an unknown mode means no content
        ("opentelemetry-instrumentation-openai-v2", "true", False, True),
        ("opentelemetry-instrumentation-openai-v2", "true", True, False),
        ("opentelemetry-instrumentation-openai-v2", "SPAN_ONLY", False, False),
        ("opentelemetry-instrumentation-openai-v2", "SPAN_ONLY", True, True),
        ("opentelemetry-instrumentation-openai-v2", "", True, False),
    ],
)
def test_content_counts_as_captured_only_if_the_package_reads_the_value(
    package: str, content: str, opts_in: bool, captured: bool
) -> None:
    capture = of_package(package)
    assert capture is not None
    env = {"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": content}
    env |= {"OTEL_SEMCONV_STABILITY_OPT_IN": "http,gen_ai_latest_experimental"} if opts_in else {}
    assert capture.is_on(env) is captured
