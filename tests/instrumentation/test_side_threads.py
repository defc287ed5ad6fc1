"""Metrics that open media run on separate threads. Nothing else waits for them, and no score is lost or emitted too early."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import otel_agenteval as oa
from otel_agenteval.engine.worker import Worker
from tests.support.clock import FakeClock
from tests.support.media import image, scenery, uri
from tests.support.process import output_of
from tests.support.rig import Rig
from tests.support.servers import until

PNG = uri(image(scenery(64, 48)), "image/png")


class Gate:
    """Blocks the metric until the test opens the gate."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.threads: list[str] = []

    def look(self) -> float:
        self.threads.append(threading.current_thread().name)
        self.open.wait(120)
        return 1.0


@pytest.fixture
def gate() -> Iterator[Gate]:
    found = Gate()

    @oa.metric(traits=("media",))
    def code_slow_look(turn: oa.Turn) -> float:
        """Looks at what is attached, for as long as the test wants."""
        return found.look() if any(message.attachments for message in turn.messages) else 0.0

    yield found
    found.open.set()


def with_image(rig: Rig, name: str = "seer") -> None:
    parts = [{"type": "text", "content": "What is this?"}, {"type": "uri", "modality": "image", "uri": PNG}]
    with rig.agent(name):
        said = {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": parts}])}
        rig.start_chat(None, "A tree.", attributes=said).end()


def config(**more: Any) -> dict[str, Any]:
    return {"inline": {"metrics": ["code_latency"]}, "metrics": ["code_slow_look"], **more}


def scores_of(rig: Rig, agent: str) -> list[str]:
    return [
        score.metric for scored in list(rig.kept) if scored.turn.agent == agent for score in scored.scores if score.status == "ok"
    ]


def test_turns_without_media_do_not_wait_for_those_with_some(gate: Gate) -> None:
    with Rig(config()) as rig:
        with_image(rig)
        until(lambda: gate.threads, "this", 60, 0.005)
        rig.run("reader")
        until(lambda: scores_of(rig, "reader"), "this", 60, 0.005)
        assert scores_of(rig, "seer") == []
        mark, _ = rig.engine.worker.mark(lambda: None)
        assert not rig.engine.worker.queue.has_handled(mark), "a receiver may not forget the spans yet"
        assert not rig.engine.drain(0.05, judges=False)
        gate.open.set()
        assert rig.engine.drain(60, judges=False)
        assert rig.engine.worker.queue.has_handled(mark)
        assert sorted(scores_of(rig, "seer")) == ["code_latency", "code_slow_look"]
        assert set(gate.threads) == {"otel-agenteval-side"}
        assert rig.engine.worker.queue.bytes == 0


def test_several_are_looked_at_at_once_and_no_more_than_there_are_threads(gate: Gate) -> None:
    with Rig(config()) as rig:
        for number in range(9):
            with_image(rig, f"seer-{number}")
        until(lambda: len(gate.threads) == 4, "this", 60, 0.005)
        assert not rig.engine.flush(0.1)
        assert len(gate.threads) == 4
        gate.open.set()
        assert rig.engine.flush(60)
        assert all(sorted(scores_of(rig, f"seer-{number}")) == ["code_latency", "code_slow_look"] for number in range(9))


def test_what_others_of_its_metrics_say_comes_with_it_and_judges_are_planned_after(gate: Gate) -> None:
    gate.open.set()
    metrics = [{"code_slow_look": {}}, {"llm_relevance": {}, "sample": {"rate": 0, "always_if": "score.code_slow_look >= 1"}}]
    with Rig(config(metrics=metrics, judge={"base_url": "http://127.0.0.1:9/v1", "model": "m"})) as rig:
        with_image(rig)
        assert rig.engine.flush(60)
        (scored,) = rig.kept
        assert rig.engine.why(scored.turn.turn_id)["llm_relevance"].startswith("waiting"), "the condition saw the score"


def test_a_composite_of_them_is_not_evaluated_while_the_agent_waits(gate: Gate) -> None:
    gate.open.set()
    with Rig(config(metrics=[{"code_composite_mean": {"metrics": ["code_slow_look"]}}])) as rig:
        with_image(rig)
        assert rig.engine.flush(60)
        assert gate.threads == ["otel-agenteval-side"]


def test_the_end_of_the_process_counts_what_it_cannot_wait_for(gate: Gate) -> None:
    with Rig(config(exit_timeout="200ms")) as rig:
        with_image(rig)
        until(lambda: gate.threads, "this", 60, 0.005)
        rig.processor.shutdown()
        results = {(key[0], key[2]): value for key, value in rig.count("agenteval.results").items()}
        assert results == {("code_latency", "dropped"): 1, ("code_slow_look", "dropped"): 1}
        gate.open.set()


FORK = """
opened, looks = threading.Event(), []

@oa.metric(traits=("media",))
def code_slow_look(turn):
    'Looks at what is attached.'
    looks.append(turn.agent)
    opened.wait(120)
    return 1.0

provider = TracerProvider()
config = {"outlets": {"prometheus": None, "jsonl": sys.argv[1], "log_events": False}, "inline": {"metrics": ["code_latency"]}, "metrics": ["code_slow_look"]}
handle = oa.instrument(tracer_provider=provider, config=config)
tracer = provider.get_tracer("app")
said = json.dumps([{"role": "user", "parts": [{"type": "uri", "modality": "image", "uri": "data:image/png;base64,AAAA"}]}])

def turn(name):
    with trace.use_span(trace.INVALID_SPAN), agent(tracer, name):
        tracer.start_span("chat m", attributes={"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.input.messages": said}).end()

turn("parent's")
while not looks:
    time.sleep(0.01)
pid = os.fork()
if pid == 0:
    opened.set()
    turn("child's")
    os._exit(0 if handle.flush(60) and handle.processor.engine.worker.queue.bytes == 0 else 1)
print(os.waitpid(pid, 0)[1])
opened.set()
print(handle.flush(60))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_looks_at_its_own_and_leaves_the_parent_s_to_the_parent(tmp_path: Path) -> None:
    assert output_of(FORK, str(tmp_path / "scores")).split() == ["0", "True"]
    found = [json.loads(line) for line in (tmp_path / "scores").read_text().splitlines()]
    assert sorted((score["agent"], score["metric"]) for score in found) == [
        ("child's", "code_latency"), ("child's", "code_slow_look"), ("parent's", "code_latency"), ("parent's", "code_slow_look"),
    ]  # fmt: skip


def test_turn_leaves_without_its_media_if_they_hang(gate: Gate) -> None:
    clock = FakeClock()
    with Rig(config(), clock=clock) as rig:
        with_image(rig)
        until(lambda: gate.threads, "the metric looks", 60, 0.005)
        clock.advance(599)
        assert not rig.engine.drain(0.05, judges=False)
        clock.advance(1)
        assert rig.engine.drain(60, judges=False)
        (scored,) = rig.kept
        assert {score.metric: score.error_type for score in scored.scores} == {
            "code_latency": None,
            "code_slow_look": "media_timeout",
        }
        gate.open.set()
        with_image(rig, "another")
        assert rig.engine.drain(60, judges=False)
        assert [scored.turn.agent for scored in rig.kept] == ["seer", "another"]
        assert rig.engine.worker.queue.bytes == 0


# --- the threads


class Item(NamedTuple):
    name: str
    size: int = 5
    trace_key: int = 1


TURN, SEEN = Item("turn"), Item("seen")


class Setting(Worker):
    """A worker that moves "turn" to a side thread, from which "seen" returns."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.done: list[Any] = []
        self.failures: list[str] = []
        self._work_aside = work
        super().__init__(lambda _: True, 1_000, failed=self._note)
        self.connect(self._handled_here)

    def _handled_here(self, batch: list[Any]) -> Sequence[Any]:
        for item in batch:
            self.done.append(item.name)
            if item is TURN:
                self.set_aside(SEEN, lambda: self.done.append(self._work_aside()), lambda: SEEN)
        return ()

    def _note(self, where: str, error: BaseException) -> None:
        self.failures.append(type(error).__name__)


def test_where_no_thread_can_be_started_the_work_is_left_to_the_item() -> None:
    worker = Setting(lambda: "work")
    worker.may_start = False
    worker.put(TURN, 5)
    assert worker.flush(60, outlets=False)
    assert (worker.done, worker.queue.bytes) == (["turn", "seen"], 0)


def test_work_that_fails_brings_its_item_back() -> None:
    worker = Setting(lambda: 1 / 0)
    worker.put(TURN, 5)
    assert worker.flush(60, outlets=False)
    assert (worker.done, worker.failures, worker.queue.bytes) == (["turn", "seen"], ["ZeroDivisionError"], 0)
    assert worker.stop(60)
