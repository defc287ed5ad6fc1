"""Score events on the turn's root, with this SDK, an SDK that follows the specification, and an older SDK."""

from __future__ import annotations

import copy
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.trace import SpanLimits, SpanProcessor, SynchronousMultiSpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_agenteval as oa
from otel_agenteval import AgentEvalSpanProcessor
from otel_agenteval.core.semconv import EVENT
from otel_agenteval.engine.ending_root import DeferredTurns
from tests.support.rig import Rig, events_of

ROOT = "invoke_agent bot"
GATED = {"metrics": [{"code_tool_success": {}, "policy": "gate"}]}


class SpecSpan(sdk_trace._Span):
    """A span that still records in ``on_ending``, as the specification requires."""

    def end(self, end_time=None):
        end_time = end_time if end_time is not None else time.time_ns()
        self._span_processor._on_ending(self)
        with self._lock:
            self._end_time = end_time
            self._attributes._immutable = True
        self._span_processor.on_end(self._readable_span())


class OldMultiProcessor(SynchronousMultiSpanProcessor):
    """The span processor of an SDK without ``_on_ending``."""

    def _on_ending(self, span):
        pass


def failing_turn(rig):
    """Run a turn with a failed tool, so that a score fails."""
    with rig.agent():
        rig.tool("broken", attributes={"error.type": "TimeoutError"})
        rig.chat("hello", "Hi.")


# --- the installed SDK


def test_the_event_says_what_the_convention_says():
    with Rig() as rig:
        failing_turn(rig)
        root, events = rig.exported(ROOT), rig.score_events(ROOT)
        failed, passed = events["code_tool_success"], events["code_empty_answer"]
        assert (failed["gen_ai.evaluation.score.value"], failed["gen_ai.evaluation.score.label"]) == (0.0, "fail")
        assert (failed["agenteval.passed"], passed["agenteval.passed"]) == (False, True)
        assert failed["gen_ai.evaluation.explanation"]
        assert "gen_ai.evaluation.explanation" not in passed
        logged = {
            record.attributes["gen_ai.evaluation.name"]: record.attributes["agenteval.result.id"] for record in rig.log_events()
        }
        assert {name: event["agenteval.result.id"] for name, event in events.items()} == logged
        assert {event.timestamp for event in root.events if event.name == EVENT} == {root.end_time}


@pytest.mark.parametrize("sdk", ["installed", "specified", "old"])
@pytest.mark.parametrize("own", [10, 9])
def test_a_full_event_list_loses_none_of_the_applications_events(own, sdk, monkeypatch):
    with Rig({"inline": {"budget": "10s"}}, provider=provider_of(sdk, monkeypatch, span_limits=SpanLimits(max_events=10))) as rig:
        with rig.agent() as root:
            for i in range(own):
                root.add_event(f"app.{i}")
            rig.chat("hello", "Hi.")
        span = rig.exported(ROOT)
        assert [event.name for event in span.events] == [*(f"app.{i}" for i in range(own)), *[EVENT] * (10 - own)]
        assert span.dropped_events == 0
        assert rig.count("agenteval.span_events")[("no_room",)] == len(rig.log_events()) - (10 - own)


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


# --- an SDK that does as the specification says


@pytest.fixture
def spec_sdk(monkeypatch):
    monkeypatch.setattr(sdk_trace, "_Span", SpecSpan)


def provider_of(sdk, monkeypatch, **options):
    """Return a provider of one of the three SDKs."""
    if sdk == "specified":
        monkeypatch.setattr(sdk_trace, "_Span", SpecSpan)
    processor = OldMultiProcessor() if sdk == "old" else None
    return TracerProvider(active_span_processor=processor, shutdown_on_exit=False, **options)


@pytest.mark.parametrize("sdk", ["installed", "specified"])
def test_exporters_before_and_after_us_see_the_same_events(sdk, monkeypatch):
    early = InMemorySpanExporter()
    with Rig(provider=provider_of(sdk, monkeypatch), before=[SimpleSpanProcessor(early)]) as rig:
        rig.run()
        (first,) = [span for span in early.get_finished_spans() if span.name == ROOT]
        assert events_of(first) == rig.score_events(ROOT) != {}
        assert rig.count("agenteval.span_events") == {("ending",): len(rig.log_events())}


# --- heavy metrics

HEAVY = {"metrics": [{"code_bleu": {"references": ["Hi there, you."]}}, "code_empty_answer"], "inline": {"metrics": []}}


@pytest.mark.parametrize("sdk", ["installed", "old"], ids=["deferred", "at the end of the root"])
def test_a_heavy_metric_runs_on_the_worker_only(sdk, monkeypatch):
    with Rig(HEAVY, provider=provider_of(sdk, monkeypatch)) as rig:
        rig.run(says="Hi there.")
        assert set(rig.score_events(ROOT)) == {"code_empty_answer"}
        assert {record.attributes["gen_ai.evaluation.name"] for record in rig.log_events()} == {"code_bleu", "code_empty_answer"}


# --- an SDK that only calls on_end


def test_without_the_hook_only_exporters_after_us_see_the_events():
    sent = []

    class Early(SpanProcessor):
        def on_end(self, span):
            sent.append([event.name for event in span.events])

    with Rig(provider=provider_of("old", None), before=[Early()]) as rig:
        rig.run()
        assert sent == [[], [], []]
        assert rig.turn().close_reason == "root_ended"
        events = rig.score_events(ROOT)
        assert events
        assert rig.count("agenteval.span_events") == {("late_order",): len(events)}


# --- outlets, one by one


def test_each_kind_of_events_can_be_off():
    with Rig({"outlets": {"span_events": "off"}}) as rig:
        failing_turn(rig)
        assert rig.log_events()
        assert rig.score_events(ROOT) == {}
        assert rig.count("agenteval.span_events") == {}
    with Rig({"outlets": {"log_events": False}}) as rig:
        rig.run()
        assert rig.log_events() == []
        assert rig.score_events(ROOT)


@pytest.mark.parametrize(
    ("config", "run", "passed"), [({}, failing_turn, False), (GATED, Rig.run, True)], ids=["failed", "a gate that passed"]
)
def test_notable_span_events_are_failures_and_gates(config, run, passed):
    with Rig({**config, "outlets": {"span_events": "notable"}}) as rig:
        run(rig)
        ((name, event),) = rig.score_events(ROOT).items()
        assert (name, event["agenteval.passed"]) == ("code_tool_success", passed)


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


# --- who evaluates, and when


@pytest.fixture
def evaluations():
    """Register a metric that records the thread of each evaluation."""
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


def test_turns_that_were_just_evaluated_are_not_counted_as_stuck_too() -> None:
    lost: list[str] = []
    group = SimpleNamespace(root=SimpleNamespace(span_id=1, end_ns=0))

    class Span:
        context = SimpleNamespace(span_id=2)

        @property
        def _events(self) -> None:
            """Read the events at the end of the evaluation, when the worker stops waiting for the other thread."""
            deferred.drop("stuck")

    services: Any = SimpleNamespace(
        composer=SimpleNamespace(compose=lambda closed: [group]),
        scorer=SimpleNamespace(evaluate=lambda group: SimpleNamespace(on_span=None)),
        span_events=SimpleNamespace(root_already_ended=lambda scored: None),
        lose=lambda closed, reason: lost.append(reason),
    )
    closed: Any = SimpleNamespace(size=1, trace_id=1)
    deferred = DeferredTurns(services, closed, Span())
    deferred.evaluate()
    assert (len(deferred.release(lambda scored: [scored])), lost) == (1, [])
