from __future__ import annotations

import importlib
import json
import logging

import pytest
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa
from otel_agenteval import AgentEvalSpanProcessor
from tests.support.process import PRELUDE, output_of, run
from tests.support.rig import Rig

QUIET = {"outlets": {"prometheus": None, "log_events": False}}
instrument_module = importlib.import_module("otel_agenteval.instrumentation.attach")


@pytest.fixture
def provider():
    provider = TracerProvider(shutdown_on_exit=False)
    yield provider
    provider.shutdown()


def ours(provider):
    return [item for item in provider._active_span_processor._span_processors if isinstance(item, AgentEvalSpanProcessor)]


# --- idempotent, whichever way it comes


def test_a_second_call_that_brings_another_configuration_says_that_it_is_not_used(provider, caplog):
    first = oa.instrument(tracer_provider=provider, config=QUIET)
    assert oa.instrument(tracer_provider=provider, config=QUIET) is oa.instrument(tracer_provider=provider) is first
    assert caplog.messages == []
    for options in ({"config": {"metrics": ["code_latency"]}}, {"prometheus_port": 0}):
        caplog.clear()
        assert oa.instrument(tracer_provider=provider, **options) is first
        [message] = caplog.messages
        assert message.startswith("instrument(): this provider is already instrumented")


def test_a_second_call_returns_the_same_handle(provider):
    first = oa.instrument(tracer_provider=provider, config=QUIET)
    assert first.enabled
    assert oa.instrument(tracer_provider=provider, config=QUIET) is first
    assert ours(provider) == [first.processor]


def test_after_an_explicit_processor_it_attaches_no_other(provider):
    processor = AgentEvalSpanProcessor(QUIET)
    provider.add_span_processor(processor)
    handle = oa.instrument(tracer_provider=provider, config=QUIET)
    assert handle.processor is processor
    assert ours(provider) == [processor]


def test_instrument_after_shutdown_attaches_a_new_engine(provider):
    first = oa.instrument(tracer_provider=provider, config=QUIET)
    for config in (QUIET, {**QUIET, "inline": {"metrics": ["code_latency"]}}):
        first.shutdown()
        handle = oa.instrument(tracer_provider=provider, config=config)
        assert handle is not first
        with provider.get_tracer("t").start_as_current_span("a", attributes={"gen_ai.operation.name": "invoke_agent"}):
            turn_id = oa.turn_id()
        assert handle.flush()
        assert handle.why(turn_id)
        assert first.why(turn_id) is None
        first = handle
    assert list(handle.why(turn_id)) == ["code_latency"]


@pytest.mark.parametrize("judges", [8, 0, None])
def test_drain_refuses_a_timeout_in_the_wrong_place(judges, provider):
    for handle in (oa.instrument(tracer_provider=provider, config=QUIET), oa.Handle(None)):
        with pytest.raises(TypeError, match="timeout"):
            handle.drain(judges)


def test_a_provider_that_compares_by_its_fields_gets_one_handle():
    class Wrapping(TracerProvider):  # as Logfire's, which is a dataclass
        __hash__ = None

        def __eq__(self, other):
            return isinstance(other, Wrapping)

    one, other = Wrapping(), Wrapping()
    handle = oa.instrument(tracer_provider=one, config=QUIET)
    assert oa.instrument(tracer_provider=one) is handle
    assert oa.instrument(tracer_provider=other, config=QUIET) is not handle
    one.shutdown()
    other.shutdown()


def test_of_two_explicit_processors_the_second_does_nothing_and_says_so_once(caplog):
    with Rig(QUIET) as rig:
        second = AgentEvalSpanProcessor(QUIET)
        rig.provider.add_span_processor(second)
        with caplog.at_level(logging.WARNING, "otel_agenteval"):
            rig.run()
            rig.run()
        assert second.engine.assembler.received == 0
        assert len(rig.turns()) == 2
        assert len(caplog.records) == 1


def test_a_bad_configuration_is_an_error_of_the_caller(provider):
    with pytest.raises(oa.ConfigError, match=r"outlets\.span_events"):
        oa.instrument(tracer_provider=provider, config={"outlets": {"span_events": "some"}})
    assert ours(provider) == []


def test_prometheus_port_serves_the_metrics_there(provider):
    handle = oa.instrument(tracer_provider=provider, config=QUIET, prometheus_port=0)
    (outlet,) = handle.processor.engine.outlets
    assert outlet.port > 0
    handle.shutdown()
    assert outlet.port is None


# --- without a provider


WRONG = [
    ("OTEL_AGENTEVAL_OUTLETS_CONSOLE", "true", "Did you mean OTEL_AGENTEVAL_OUTLETS__CONSOLE?"),
    ("OTEL_AGENTEVAL_TURN__MAX_BYTES", "many", "turn.max_bytes"),
    ("OTEL_AGENTEVAL_CONFIG_FILE", "/no/such/file.yaml", "file not found"),
    ("OTEL_AGENTEVAL_ENABLED", "fasle", "OTEL_AGENTEVAL_ENABLED: must be true or false, got 'fasle'"),
    ("OTEL_AGENTEVAL_ENABLED", "disabled", "OTEL_AGENTEVAL_ENABLED: must be true or false, got 'disabled'"),
    ("OTEL_AGENTEVAL_INLINE__METRICS", "[code_no_such_metric]", "code_no_such_metric"),
]


@pytest.mark.parametrize(("variable", "value", "named"), WRONG)
@pytest.mark.parametrize("door", ["instrument", "processor", "exporter"])
def test_wrong_environment_turns_scoring_off_with_one_line(door, variable, value, named, provider, monkeypatch, caplog):
    monkeypatch.setenv(variable, value)

    def start(config=None):
        if door == "instrument":
            return oa.instrument(tracer_provider=provider, config=config).enabled
        kind = AgentEvalSpanProcessor if door == "processor" else oa.AgentEvalSpanExporter
        return kind(config).engine.enabled

    assert not start()
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert named in record.getMessage()
    assert "\n" not in record.getMessage()
    with pytest.raises(oa.ConfigError):  # a fault of the code is no fault of the environment
        start({"outlets": {"span_events": "some"}})
    with pytest.raises(oa.ConfigError, match=named.replace("?", r"\?")):
        start({"strict": True})
    monkeypatch.setenv("OTEL_AGENTEVAL_STRICT", "yes")
    with pytest.raises(oa.ConfigError):
        start()


@pytest.mark.parametrize("switch", ["no", "off", "0", "FALSE"])
def test_it_can_be_switched_off_in_every_spelling(switch, provider, monkeypatch):
    monkeypatch.setenv("OTEL_AGENTEVAL_ENABLED", switch)
    assert not oa.instrument(tracer_provider=provider).enabled


def test_without_an_sdk_provider_it_warns_once_with_the_fix(monkeypatch, caplog):
    instrument_module.warn_no_provider.cache_clear()
    monkeypatch.setattr("opentelemetry.trace._TRACER_PROVIDER", None)  # a framework of an earlier test may have set one
    with caplog.at_level(logging.WARNING, "otel_agenteval"):
        handles = [oa.instrument(config=QUIET) for _ in range(2)]
    assert [handle.enabled for handle in handles] == [False, False]
    (record,) = caplog.records
    assert "set_tracer_provider" in record.getMessage()
    assert "create_provider=True" in record.getMessage()
    assert record.getMessage().endswith("pip install opentelemetry-distro")


def test_a_handle_that_is_off_answers_everything(monkeypatch):
    monkeypatch.setenv("OTEL_AGENTEVAL_ENABLED", "false")
    handle = oa.instrument(tracer_provider=TracerProvider(shutdown_on_exit=False))
    assert (handle.enabled, handle.processor, handle.flush(0), handle.drain(timeout=0), handle.why("x")) == (
        False,
        None,
        True,
        True,
        None,
    )
    handle.shutdown()


def test_create_provider_sets_a_tracer_provider_and_no_other():
    printed = output_of("""
        from opentelemetry import metrics
        before = [type(_logs.get_logger_provider()).__name__, type(metrics.get_meter_provider()).__name__]
        handle = oa.instrument(create_provider=True, config={"outlets": {"otlp_metrics": True, "prometheus": None}})
        assert isinstance(trace.get_tracer_provider(), TracerProvider)
        turn(trace.get_tracer("app"))
        handle.flush()
        after = [type(_logs.get_logger_provider()).__name__, type(metrics.get_meter_provider()).__name__]
        print(json.dumps([handle.processor.engine.assembler.received, before, after]))
    """)
    received, before, after = json.loads(printed)
    assert received == 2
    assert before == after
    assert not any(name in ("LoggerProvider", "MeterProvider") for name in after)


def test_it_attaches_to_the_provider_that_is_set():
    printed = output_of("""
        from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
        records = InMemoryLogRecordExporter()
        _logs.set_logger_provider(LoggerProvider())
        _logs.get_logger_provider().add_log_record_processor(SimpleLogRecordProcessor(records))
        provider = TracerProvider()
        trace.set_tracer_provider(provider)
        handle = oa.instrument(create_provider=True, config={"outlets": {"log_events": "all", "prometheus": None}})
        assert trace.get_tracer_provider() is provider
        turn(trace.get_tracer("app"))
        handle.flush()
        print({item.log_record.event_name for item in records.get_finished_logs()})
    """)
    assert printed == "{'gen_ai.evaluation.result'}\n"


# --- switched off

OFF = pytest.mark.parametrize(
    "variable",
    [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_AGENTEVAL_ENABLED": "false"}],
    ids=["by OTEL_SDK_DISABLED", "by OTEL_AGENTEVAL_ENABLED"],
)
SWITCHED_OFF = """
import psutil
threads = set(threading.enumerate())
config = {"outlets": {"prometheus": {"port": 0}, "jsonl": sys.argv[1]}}
"""
NOTHING_THERE = """
listening = [c for c in psutil.Process().net_connections() if c.status == "LISTEN"]
print(len(set(threading.enumerate()) - threads), len(listening), os.path.exists(sys.argv[1]))
"""


def off(door, variable, tmp_path):
    done = run(PRELUDE + SWITCHED_OFF + door + NOTHING_THERE, str(tmp_path / "scores.jsonl"), env=variable)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


@OFF
def test_off_no_door_starts_a_thread_port_or_file(variable, tmp_path):
    doors = """
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider, config=config)
turn(provider.get_tracer("app"))
handle.flush()
for processor in (oa.AgentEvalSpanProcessor(config), SimpleSpanProcessor(oa.AgentEvalSpanExporter(config))):
    provider = TracerProvider()
    provider.add_span_processor(processor)
    turn(provider.get_tracer("app"))
    provider.force_flush()
"""
    assert off(doors, variable, tmp_path) == "0 0 False\n"


def test_switched_on_the_same_script_starts_thread_port_and_file(tmp_path):
    door = """
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider, config=config)
turn(provider.get_tracer("app"))
handle.flush()
handle.processor.engine.warm_up.stop()
"""
    assert off(door, {"OTEL_AGENTEVAL_ENABLED": "true"}, tmp_path) == "3 1 True\n"  # the file has a thread
