"""Each score is exported once as an event: on the exported span if possible, otherwise as a log event."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import SpanLimits, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

import otel_agenteval as oa
from otel_agenteval.engine import ending_root
from tests.judging.test_live import GOOD, config, drain
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.receiver import GrpcReceiver, plain
from tests.support.rig import Rig

AUTO = {"outlets": {"log_events": "auto"}}
ROOT = "invoke_agent bot"
NAME, RESULT_ID = "gen_ai.evaluation.name", "agenteval.result.id"


class OldMultiProcessor(SynchronousMultiSpanProcessor):
    """The span processor of an SDK without ``_on_ending``."""

    def _on_ending(self, span: Any) -> None:
        pass


def logged(rig: Rig) -> set[str]:
    """Return the result ids of the log events."""
    return {str(record.attributes[RESULT_ID]) for record in rig.log_events()}


def on_spans(rig: Rig) -> set[str]:
    """Return the result ids of the span events."""
    return {event[RESULT_ID] for name in set(rig.exported_names()) for event in rig.score_events(name).values()}


def all_of(rig: Rig) -> set[str]:
    """Return the result ids of all scores."""
    return {score.result_id for scored in rig.scored() for score in scored.scores if score.status != "skipped"}


def failing(rig: Rig) -> None:
    """Run a turn with one failed score."""
    with rig.agent():
        rig.tool("broken", attributes={"error.type": "TimeoutError"})
        rig.chat("hello", "Hi.")


HEAVY = {"metrics": [{"code_bleu": {"references": ["Hi there, you."]}}, "code_empty_answer"], "inline": {"metrics": []}}


@pytest.mark.parametrize(
    ("config", "options", "carried"),
    [
        pytest.param({}, {}, None, id="all"),
        pytest.param(HEAVY, {}, 1, id="no heavy metric"),
        pytest.param({"outlets": {"span_events": "notable"}}, {}, 1, id="notable"),
        pytest.param({}, {"span_limits": SpanLimits(max_events=3)}, 3, id="no room for more"),
        pytest.param({"outlets": {"span_events": "off"}}, {}, 0, id="off"),
        pytest.param({}, {"sampler": oa.record_all(ALWAYS_OFF)}, 0, id="not sampled"),
        pytest.param({}, {"old": True}, 0, id="too late"),
    ],
)
def test_each_score_leaves_once(config: dict[str, Any], options: dict[str, Any], carried: int | None) -> None:
    """Scores are on the span up to a maximum number, and otherwise in the log."""
    if options.pop("old", False):
        options["provider"] = TracerProvider(active_span_processor=OldMultiProcessor(), shutdown_on_exit=False)
    config = {**config, "outlets": {**AUTO["outlets"], **config.get("outlets", {})}}
    with Rig(config, **options) as rig:
        failing(rig)
        exported = on_spans(rig) if carried != 0 else set()
        assert len(exported) == (len(all_of(rig)) if carried is None else carried)
        assert logged(rig) == all_of(rig) - exported
        assert all_of(rig)


def test_a_turn_that_closes_after_its_root_and_one_that_is_revised_leave_as_log_events() -> None:
    clock = FakeClock()
    with Rig({**AUTO, "turn": {"decision_delay": "2s"}}, clock=clock) as rig:
        with rig.agent():
            chat = rig.start_chat("tell me", "All of it.")
        clock.advance(3)
        rig.engine.intake.tick()
        first = all_of(rig)
        assert logged(rig) == first != set()
        chat.end()
        clock.advance(30)
        rig.engine.intake.tick()
        assert {scored.turn.revision for scored in rig.scored()} == {1, 2}
        assert logged(rig) == all_of(rig) > first
        assert on_spans(rig) == set()


def test_a_judged_score_leaves_as_a_log_event(models: ScriptedModels) -> None:
    models.play(GOOD)
    with Rig(config(models, **AUTO)) as rig:
        rig.run()
        assert drain(rig)
        assert [record.attributes["agenteval.metric.kind"] for record in rig.log_events()] == ["llm"]
        assert {event[NAME] for event in rig.score_events(ROOT).values()} == {"code_latency"}


def test_with_content_every_score_leaves_as_a_log_event() -> None:
    with Rig({**AUTO, "privacy": {"export_content": True}}) as rig:
        rig.run(says="Paris.")
        assert logged(rig) == all_of(rig) == on_spans(rig)
        assert {record.attributes["agenteval.turn.output"] for record in rig.log_events()} == {"Paris."}


def test_a_reader_that_did_not_get_the_events_in_time_leaves_them_to_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending_root, "_PATIENCE", 0.01)
    begun, read = threading.Event(), threading.Event()

    @oa.metric()
    def code_waits_for_a_reader(turn: oa.Turn) -> float:
        """Ends when somebody has read the span without it."""
        begun.set()
        assert read.wait(60)
        return 1.0

    provider = TracerProvider(shutdown_on_exit=False)
    with Rig({**AUTO, "inline": {"metrics": ["code_waits_for_a_reader"]}}, provider=provider, attach=False) as rig:
        begun.clear()
        read.set()  # the warm-up
        provider.add_span_processor(rig.processor)
        read.clear()
        begun.clear()
        with rig.agent() as root:
            pass
        assert begun.wait(60)
        assert list(root.events) == []
        read.set()
        assert logged(rig) == all_of(rig) != set()


@pytest.mark.parametrize(("mode", "some"), [("all", True), ("notable", True), ("off", False)])
def test_the_other_modes_do_not_look_at_the_span(mode: str, some: bool) -> None:
    with Rig({"outlets": {"log_events": mode}}) as rig:
        failing(rig)
        wanted = {event[RESULT_ID] for event in rig.score_events(ROOT).values() if event.get("agenteval.passed") is False}
        assert logged(rig) == (all_of(rig) if mode == "all" else wanted if some else set())


# --- our own OTLP outlet in place of a logger provider


@pytest.fixture
def receiver() -> Iterator[GrpcReceiver]:
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()


@pytest.mark.parametrize("mode", ["auto", "all", "notable", "off"])
def test_instrument_with_our_own_connection(receiver: GrpcReceiver, mode: str) -> None:
    exporter = InMemoryLogRecordExporter()
    logger_provider = LoggerProvider(shutdown_on_exit=False)
    logger_provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    provider = TracerProvider(shutdown_on_exit=False)
    otlp = {"endpoint": f"http://{receiver.address}", "log_events": mode, "metrics_interval": 0}
    outlets = {"prometheus": None, "otlp": otlp, "span_events": "notable"}
    handle = oa.instrument(tracer_provider=provider, logger_provider=logger_provider, config={"outlets": outlets})
    tracer = provider.get_tracer("app")
    with tracer.start_as_current_span("a", attributes={"gen_ai.operation.name": "invoke_agent"}) as root:
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t", "error.type": "Timeout"}
        tracer.start_span("execute_tool t", attributes=tool).end()
    assert handle.flush(60)
    sent = {plain(record.attributes)[RESULT_ID] for record in receiver.scores()}
    noted = {str((item.log_record.attributes or {})[RESULT_ID]) for item in exporter.get_finished_logs()}
    carried = {str((event.attributes or {})[RESULT_ID]) for event in root.events}  # type: ignore[attr-defined]  # the SDK's span
    handle.shutdown()
    assert carried
    if mode in ("auto", "all"):
        assert noted == set(), "our own connection has them"
        assert sent > carried if mode == "all" else sent and not sent & carried
    else:
        assert sent == (carried if mode == "notable" else set())
        assert noted
        assert not noted & carried
