"""Score events on the turn's root: with this SDK, with one that does as the specification says, and with an older one."""

from __future__ import annotations

import copy
import inspect
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import trace
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_agenteval as oa
from otel_agenteval import AgentEvalSpanProcessor
from otel_agenteval.core.semconv import EVENT
from tests.support.rig import Rig, chat_attributes, events_of

ROOT = "invoke_agent bot"
GATED = {"metrics": [{"code_tool_success": {}, "policy": "gate"}]}


class SpecSpan(sdk_trace._Span):
    """A span that is still recording while it is ending, as the specification says."""

    def end(self, end_time=None):
        end_time = end_time if end_time is not None else time.time_ns()
        self._span_processor._on_ending(self)
        with self._lock:
            self._end_time = end_time
            self._attributes._immutable = True
        self._span_processor.on_end(self._readable_span())


class OldMultiProcessor(SynchronousMultiSpanProcessor):
    """Of an SDK from before ``_on_ending``."""

    def _on_ending(self, span):
        pass


def old_provider():
    return TracerProvider(active_span_processor=OldMultiProcessor(), shutdown_on_exit=False)


def failing_turn(rig):
    """One tool fails, so that a score fails."""
    with rig.agent():
        rig.tool("broken", attributes={"error.type": "TimeoutError"})
        rig.chat("hello", "Hi.")


# --- the installed SDK


def test_exporters_before_and_after_us_see_the_same_events():
    early = InMemorySpanExporter()
    with Rig(before=[SimpleSpanProcessor(early)]) as rig:
        rig.run()
        (first,) = [span for span in early.get_finished_spans() if span.name == ROOT]
        assert events_of(first) == rig.score_events(ROOT) != {}


def test_the_event_says_what_the_convention_says():
    with Rig() as rig:
        failing_turn(rig)
        event = rig.score_events(ROOT)["code_tool_success"]
        assert event["gen_ai.evaluation.score.value"] == 0.0
        assert event["gen_ai.evaluation.score.label"] == "fail"
        assert event["agenteval.passed"] is False
        assert event["gen_ai.evaluation.explanation"]
        assert len(event["agenteval.result.id"]) == 32


def test_a_score_that_passed_has_no_explanation_on_the_span():
    with Rig() as rig:
        rig.run()
        event = rig.score_events(ROOT)["code_tool_success"]
        assert event["agenteval.passed"] is True
        assert "gen_ai.evaluation.explanation" not in event


def test_span_event_and_log_event_share_the_result_id():
    with Rig() as rig:
        rig.run()
        logged = {
            record.attributes["gen_ai.evaluation.name"]: record.attributes["agenteval.result.id"] for record in rig.log_events()
        }
        assert {name: event["agenteval.result.id"] for name, event in rig.score_events(ROOT).items()} == logged


def test_events_are_dated_when_the_root_ended():
    with Rig() as rig:
        rig.run()
        root = rig.exported(ROOT)
        assert {event.timestamp for event in root.events if event.name == EVENT} == {root.end_time}


def test_the_applications_own_events_stay_before_ours():
    with Rig() as rig:
        with rig.agent() as root:
            root.add_event("app.cache.miss", {"key": "a"})
            rig.chat("hello", "Hi.")
        names = [event.name for event in rig.exported(ROOT).events]
        assert names[0] == "app.cache.miss"
        assert set(names[1:]) == {EVENT}


def test_a_full_event_list_loses_none_of_the_applications_events():
    with Rig(span_limits=SpanLimits(max_events=10)) as rig:
        with rig.agent() as root:
            for i in range(10):
                root.add_event(f"app.{i}")
            rig.chat("hello", "Hi.")
        assert [event.name for event in rig.exported(ROOT).events] == [f"app.{i}" for i in range(10)]
        assert rig.count("agenteval.span_events") == {("no_room",): len(rig.log_events())}


def test_in_little_room_the_failed_and_gate_scores_come_first():
    with Rig(GATED, span_limits=SpanLimits(max_events=10)) as rig:
        with rig.agent() as root:
            for i in range(8):
                root.add_event(f"app.{i}")
            rig.tool("broken", attributes={"error.type": "TimeoutError"})
            rig.chat("hello", "")
        events = rig.score_events(ROOT)
        assert len(events) == 2
        assert all(event["agenteval.passed"] is False for event in events.values())
        assert next(iter(events)) == "code_tool_success"  # failed, and a gate
        counted = rig.count("agenteval.span_events")
        assert counted[("ending",)] == 2
        assert counted[("no_room",)] == len(rig.log_events()) - 2


def test_no_event_is_counted_as_dropped_by_the_sdk():
    with Rig(span_limits=SpanLimits(max_events=4)) as rig:
        failing_turn(rig)
        assert (len(rig.exported(ROOT).events), rig.exported(ROOT).dropped_events) == (4, 0)


# --- an SDK that does as the specification says


@pytest.fixture
def spec_sdk(monkeypatch):
    monkeypatch.setattr(sdk_trace, "_Span", SpecSpan)


@pytest.mark.usefixtures("spec_sdk")
def test_a_span_that_is_still_recording_gets_its_events_through_the_public_method(monkeypatch):
    added = []
    monkeypatch.setattr(
        SpecSpan, "add_event", lambda self, name, attributes=None, timestamp=None: added.append((name, attributes))
    )
    with Rig() as rig:
        rig.run()
        assert len(added) == len(rig.log_events())
        assert {name for name, _ in added} == {EVENT}


@pytest.mark.usefixtures("spec_sdk")
def test_with_such_an_sdk_all_exporters_see_the_events():
    early = InMemorySpanExporter()
    with Rig(before=[SimpleSpanProcessor(early)]) as rig:
        rig.run()
        (first,) = [span for span in early.get_finished_spans() if span.name == ROOT]
        assert events_of(first) == rig.score_events(ROOT) != {}
        assert rig.count("agenteval.span_events") == {("ending",): len(rig.log_events())}


@pytest.mark.usefixtures("spec_sdk")
def test_with_such_an_sdk_the_applications_events_are_not_evicted_either():
    with Rig(span_limits=SpanLimits(max_events=10)) as rig:
        with rig.agent() as root:
            for i in range(9):
                root.add_event(f"app.{i}")
            rig.chat("hello", "Hi.")
        names = [event.name for event in rig.exported(ROOT).events]
        assert names == [*(f"app.{i}" for i in range(9)), EVENT]


@pytest.mark.usefixtures("spec_sdk")
def test_with_such_an_sdk_the_turn_lasts_until_the_hook():
    with Rig() as rig:
        rig.run()
        assert 0 < rig.turn().duration_s < 60


# --- heavy metrics

HEAVY = {"metrics": [{"code_bleu": {"references": ["Hi there, you."]}}, "code_empty_answer"], "inline": {"metrics": []}}


@pytest.mark.parametrize("provider", [lambda: None, old_provider], ids=["deferred", "at the end of the root"])
def test_a_heavy_metric_runs_on_the_worker_only(provider):
    by_the_worker = {}

    class Watched:
        def __init__(self, bound):
            self._bound = bound

        def __getattr__(self, name):
            return getattr(self._bound, name)

        def evaluate(self, turn, **asked):
            by_the_worker[self._bound.name] = any(
                frame.function == "run" and frame.filename.endswith("pipeline.py") for frame in inspect.stack()
            )
            return self._bound.evaluate(turn, **asked)

    with Rig(HEAVY, provider=provider()) as rig:
        evaluator = rig.engine.pipeline.evaluator
        evaluator.metrics, evaluator.heavy = [[Watched(bound) for bound in some] for some in (evaluator.metrics, evaluator.heavy)]
        rig.run(says="Hi there.")
        assert set(rig.score_events(ROOT)) == {"code_empty_answer"}
        assert {record.attributes["gen_ai.evaluation.name"] for record in rig.log_events()} == {"code_bleu", "code_empty_answer"}
        assert by_the_worker["code_bleu"]
        assert provider() is None or not by_the_worker["code_empty_answer"]


# --- an SDK that only calls on_end


def test_without_the_hook_exporters_after_us_see_the_events():
    with Rig(provider=old_provider()) as rig:
        rig.run()
        assert rig.score_events(ROOT)
        assert rig.count("agenteval.span_events") == {("late_order",): len(rig.log_events())}


def test_without_the_hook_an_exporter_that_already_sent_the_span_has_no_event():
    sent = []

    class Early(SpanProcessor):
        def on_end(self, span):
            sent.append([event.name for event in span.events])

    with Rig(provider=old_provider(), before=[Early()]) as rig:
        rig.run()
        assert sent == [[], [], []]


def test_without_the_hook_the_turn_is_the_same():
    with Rig(provider=old_provider()) as rig:
        with rig.tracer.start_as_current_span("POST /chat"):
            rig.run("first", says="One.")
            rig.run("second", says="Two.")
        assert [(turn.agent, turn.output, turn.close_reason) for turn in rig.turns()] == [
            ("first", "One.", "root_ended"), ("second", "Two.", "root_ended"),
        ]  # fmt: skip


def test_without_the_hook_the_applications_events_are_not_evicted():
    provider = TracerProvider(
        active_span_processor=OldMultiProcessor(), shutdown_on_exit=False, span_limits=SpanLimits(max_events=3)
    )
    with Rig(provider=provider) as rig:
        with rig.agent() as root:
            root.add_event("app.a")
            root.add_event("app.b")
            rig.chat("hello", "Hi.")
        assert [event.name for event in rig.exported(ROOT).events] == ["app.a", "app.b", EVENT]


# --- outlets, one by one


def test_span_events_off_writes_none_and_counts_none():
    with Rig({"outlets": {"span_events": "off"}}) as rig:
        failing_turn(rig)
        assert rig.log_events()
        assert rig.score_events(ROOT) == {}
        assert rig.count("agenteval.span_events") == {}


def test_notable_span_events_are_the_failed_ones_only():
    with Rig({"outlets": {"span_events": "notable"}}) as rig:
        failing_turn(rig)
        assert set(rig.score_events(ROOT)) == {"code_tool_success"}


def test_notable_span_events_include_gates_that_passed():
    with Rig({**GATED, "outlets": {"span_events": "notable"}}) as rig:
        rig.run()
        assert set(rig.score_events(ROOT)) == {"code_tool_success"}
        assert rig.score_events(ROOT)["code_tool_success"]["agenteval.passed"] is True


def test_log_events_off_leaves_the_span_events():
    with Rig({"outlets": {"log_events": False}}) as rig:
        rig.run()
        assert rig.log_events() == []
        assert rig.score_events(ROOT)


def test_with_every_outlet_off_turns_are_still_evaluated():
    with Rig({"outlets": {"span_events": "off", "log_events": False}}) as rig:
        rig.run()
        assert rig.turn()
        names = [outlet.name for outlet in rig.engine.outlets]
        assert (names, rig.score_events(ROOT)) == (["memory"], {})  # what the rig itself keeps


def test_the_json_lines_outlet_is_on_when_it_has_a_file(tmp_path):
    with Rig({"outlets": {"jsonl": str(tmp_path / "scores.jsonl"), "log_events": False}}) as rig:
        rig.run()
        assert rig.turn()
        assert len((tmp_path / "scores.jsonl").read_text().splitlines()) == len(rig.score_events(ROOT))


def test_a_turn_larger_than_may_be_read_inline_has_log_events_only():
    with Rig() as rig:
        with rig.agent():
            rig.chat("x" * 1_500_000, "Hi.")
        assert rig.turn().output == "Hi."
        assert rig.score_events(ROOT) == {}
        assert rig.count("agenteval.span_events").keys() == {("root_already_ended",)}


@pytest.mark.usefixtures("spec_sdk")
def test_a_budget_of_nothing_leaves_the_other_metrics_to_the_worker():
    with Rig({"inline": {"budget": 0}}) as rig:
        rig.run()
        assert len(rig.score_events(ROOT)) <= 1
        assert len(rig.log_events()) > 10


def test_events_on_a_lone_model_call_are_on_its_own_span():
    with Rig() as rig:
        span = rig.tracer.start_span(
            "chat m-1", context=trace.set_span_in_context(trace.INVALID_SPAN), attributes=chat_attributes("hi", "Hi.")
        )
        span.end()
        assert rig.score_events("chat m-1")


# --- who evaluates, and when


@pytest.fixture
def evaluations():
    """A metric that notes the thread of each of its evaluations."""
    threads = []

    @oa.metric()
    def code_note_thread(turn):
        """Notes the thread that evaluates it."""
        threads.append(threading.get_ident())
        return 1.0

    return threads


NOTED = {"inline": {"metrics": ["code_note_thread"]}}


def test_the_agents_thread_does_not_evaluate(evaluations):
    provider = TracerProvider(shutdown_on_exit=False)
    processor = AgentEvalSpanProcessor({**NOTED, "outlets": {"prometheus": None}})
    provider.add_span_processor(processor)
    evaluations.clear()  # the warm-up
    with provider.get_tracer("acme.app").start_as_current_span("a", attributes={"gen_ai.operation.name": "invoke_agent"}) as span:
        pass
    assert processor.force_flush()
    assert len(evaluations) == 1
    assert evaluations[0] != threading.get_ident()
    assert [event.name for event in span.events] == [EVENT]
    provider.shutdown()


def test_an_exporter_that_is_faster_than_the_worker_gets_the_events_and_the_turn_is_evaluated_once(evaluations):
    with Rig(NOTED) as rig:
        evaluations.clear()
        rig.run()
        assert EVENT in [event.name for event in rig.exported(ROOT).events]
        assert evaluations == [threading.get_ident()]
        assert len(rig.log_events()) == 1
        assert len(evaluations) == 1


def test_two_threads_that_read_at_once_see_the_same_events(evaluations):
    with Rig(NOTED, attach=False) as rig:
        rig.provider.add_span_processor(rig.processor)
        evaluations.clear()
        with rig.agent() as root:
            pass
        with ThreadPoolExecutor(8) as pool:
            seen = list(pool.map(lambda _: tuple(event.name for event in root.events), range(64)))
        assert set(seen) == {(EVENT,)}
        assert len(evaluations) == 1


def test_a_copy_of_the_span_keeps_its_events():
    with Rig() as rig:
        rig.run()
        span = rig.exported(ROOT)
        assert [event.name for event in copy.deepcopy(span._events)] == [event.name for event in span.events]


def test_a_metric_that_breaks_the_evaluation_leaves_the_exporter_alone(monkeypatch):
    with Rig() as rig:
        monkeypatch.setattr(rig.engine.pipeline.composer, "read", lambda *_: 1 / 0)
        rig.run()
        assert [event.name for event in rig.exported(ROOT).events] == []
        assert rig.engine.outlets.errors == {("span_events", "ZeroDivisionError"): 1}
