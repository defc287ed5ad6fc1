"""Instrumentation without code changes, by ``opentelemetry-instrument`` and environment variables."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from tests.support.process import run
from tests.support.receiver import GrpcReceiver

INSTRUMENT = Path(sys.executable).parent / "opentelemetry-instrument"
AGENT = """
import json, logging
logging.basicConfig()
from opentelemetry import trace
tracer = trace.get_tracer("app")
with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}):
    tracer.start_span("chat m-1", attributes={
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1",
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Hi."}]}]),
    }).end()
print("the agent ran")
"""
"""An application without otel-agenteval in its code."""

pytestmark = pytest.mark.skipif(not INSTRUMENT.exists(), reason="opentelemetry-instrumentation is not installed")


@pytest.fixture
def start(tmp_path):
    """Run the application as ``opentelemetry-instrument python app.py`` does, with the SDK of a distribution."""
    site = tmp_path / "site"
    (site / "a_distro-1.0.dist-info").mkdir(parents=True)
    (site / "a_distro-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: a-distro\nVersion: 1.0\n")
    (site / "a_distro-1.0.dist-info" / "entry_points.txt").write_text(
        "[opentelemetry_configurator]\nconfigurator = a_distro:Configurator\n"
    )
    (site / "a_distro.py").write_text(
        "from opentelemetry.sdk._configuration import _OTelSDKConfigurator\nclass Configurator(_OTelSDKConfigurator):\n    pass\n"
    )
    root = Path(__file__).parent.parent.parent
    quiet = {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}

    def start(**env):
        everything = {
            **quiet, "PYTHONPATH": f"{root}:{site}", "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "*",
            "OTEL_AGENTEVAL_OUTLETS__JSONL": str(tmp_path / "scores"), **env,
        }  # fmt: skip
        done = run(AGENT, env=everything, command=[str(INSTRUMENT), sys.executable])
        assert (done.returncode, done.stdout) == (0, "the agent ran\n"), done.stderr
        scores = (
            [json.loads(line) for line in (tmp_path / "scores").read_text().splitlines()]
            if (tmp_path / "scores").exists()
            else []
        )
        return scores, done.stderr

    return start


def test_with_the_switch_on_the_agent_is_scored_by_options_of_the_environment(start):
    scores, complaints = start(OTEL_AGENTEVAL_ENABLED="yes", OTEL_AGENTEVAL_INLINE__METRICS="[code_empty_answer]")
    assert {(score["agent"], score["close_reason"], score["metric"]) for score in scores} == {
        ("bot", "root_ended", "code_empty_answer")
    }
    assert complaints == ""


@pytest.mark.parametrize("value", ["", "maybe"])
def test_only_true_switches_it_on_and_what_is_neither_true_nor_false_is_told(start, value):
    scores, complaints = start(OTEL_AGENTEVAL_ENABLED=value)
    assert scores == []
    if value == "":
        assert complaints == ""
    else:
        assert f"OTEL_AGENTEVAL_ENABLED: must be true or false, got '{value}'" in complaints


def test_a_bad_configuration_is_one_warning_and_the_agent_runs(start):
    scores, complaints = start(OTEL_AGENTEVAL_ENABLED="true", OTEL_AGENTEVAL_OUTLETS__SPAN_EVENTS="some")
    assert scores == []
    assert "otel-agenteval is off" in complaints
    assert "OTEL_AGENTEVAL_OUTLETS__SPAN_EVENTS" in complaints
    assert "Traceback" not in complaints


def test_processor_and_exporter_together_score_a_turn_once(start):
    scores, complaints = start(OTEL_TRACES_EXPORTER="agenteval", OTEL_AGENTEVAL_ENABLED="true")
    assert len({score["result_id"] for score in scores}) == len(scores) > 0
    assert {score["close_reason"] for score in scores} == {"root_ended"}, "it is the processor that works"
    assert "AgentEvalSpanExporter does nothing" in complaints


def test_the_exporter_scores_and_writes_nothing_on_the_spans(start):
    receiver = GrpcReceiver()
    try:
        scores, complaints = start(
            OTEL_TRACES_EXPORTER="agenteval,otlp_proto_grpc",
            OTEL_EXPORTER_OTLP_ENDPOINT=f"http://{receiver.address}",
            OTEL_EXPORTER_OTLP_INSECURE="true",
        )
        assert complaints == ""
        assert {score["close_reason"] for score in scores} <= {"exit", "shutdown"}, "it waits as a sidecar does"
        assert {score["agent"] for score in scores} == {"bot"}
        (root,) = receiver.spans("invoke_agent bot")
        assert not root.events
    finally:
        receiver.close()


# --- declarative configuration

DECLARED = """
file_format: "1.0"
resource: {attributes: [{name: service.name, value: shop}]}
tracer_provider:
  processors:
    - batch: {exporter: {agenteval: %s}}
"""
declarative = pytest.mark.skipif(
    importlib.util.find_spec("opentelemetry.configuration") is None, reason="opentelemetry-configuration is not installed"
)


def declared(folder: Path, text: str) -> str:
    file = folder / "otel.yaml"
    file.write_text(text)
    return str(file)


@declarative
def test_the_exporter_in_a_declarative_configuration_scores_the_agent(start, tmp_path):
    text = DECLARED % "{inline: {metrics: [code_empty_answer, code_turn_error]}}"
    scores, complaints = start(OTEL_CONFIG_FILE=declared(tmp_path, text))
    assert "otel" not in complaints.replace(
        "OTEL_CONFIG_FILE is set; ignoring configurator kwargs", ""
    )  # the SDK says that of itself
    assert {(score["metric"], score["agent"], score["service"]) for score in scores} == {
        ("code_empty_answer", "bot", "shop"), ("code_turn_error", "bot", "shop"),
    }  # fmt: skip


@declarative
def test_a_bad_option_in_a_declarative_configuration_lets_the_agent_run(start, tmp_path):
    scores, complaints = start(OTEL_CONFIG_FILE=declared(tmp_path, DECLARED % "{inline: {metric: []}}"))
    assert scores == []
    assert "inline.metric" in complaints
    assert "Traceback" not in complaints


def test_the_entry_point_modules_import_nothing_but_the_standard_library():
    done = run("""
        import sys
        before = set(sys.modules)
        import importlib.util, pathlib
        spec = importlib.util.find_spec("otel_agenteval.instrumentation.autoload")
        import otel_agenteval.instrumentation.autoload
        print(sorted({name.split(".")[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names)))
    """)
    assert done.stdout == "['otel_agenteval']\n", done.stderr
