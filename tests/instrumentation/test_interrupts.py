"""If a metric raises SystemExit or similar exceptions, the worker reports a metric error, and the host's turns aren't lost."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.threads import OutOfTime, is_meant_for_host, mark_as_ours
from otel_agenteval.engine.worker import Worker
from otel_agenteval.outlets.base import Outlet
from tests.support.rig import Rig

try:
    from greenlet import GreenletExit
except ImportError:  # then the class is known by its name all the same

    class GreenletExit(BaseException):  # type: ignore[no-redef]
        """Like greenlet's exception."""


class Odd(BaseException):
    """A BaseException that no library sends to threads."""


MEANT_FOR_HOST = [KeyboardInterrupt, asyncio.CancelledError, GreenletExit]
EVERYTHING = [*MEANT_FOR_HOST, SystemExit, GeneratorExit, Odd, MemoryError]
raises: list[type[BaseException]] = []
"""Exceptions that the metric raises, one at a time. Then it succeeds."""


@pytest.fixture
def metric() -> Iterator[str]:
    raises.clear()

    @oa.metric()
    def code_raises_what_it_is_told(turn: oa.Turn) -> float | None:
        """Raises."""
        if raises:
            raise raises.pop(0)
        return 1.0

    yield "code_raises_what_it_is_told"
    raises.clear()


def rig_of(*metrics: str, **more: Any) -> Rig:
    return Rig({"inline": {"metrics": [*metrics, "code_empty_answer"]}, "outlets": {"span_events": "off"}}, **more)


def outcomes(rig: Rig) -> list[tuple[str, str | None]]:
    """Return status and error type of the metric's scores, in order."""
    return [(scored.scores[0].status, scored.scores[0].error_type) for scored in rig.scored()]


# --- on our threads


@pytest.mark.parametrize("kind", EVERYTHING)
def test_on_the_worker_it_is_an_error_of_that_metric(metric: str, kind: type[BaseException]) -> None:
    with rig_of(metric) as rig:
        raises.append(kind)
        rig.run("first")
        assert outcomes(rig) == [("error", kind.__name__)]
        thread = rig.engine.worker._thread
        rig.run("second")
        assert outcomes(rig) == [("error", kind.__name__), ("ok", None)]
        assert rig.engine.worker._thread is thread
        assert [scored.scores[1].status for scored in rig.scored()] == ["ok", "ok"]
        assert rig.engine.failures == {}


def test_the_warm_up_calls_metrics_of_ours_only() -> None:
    called: list[str | None] = []

    @oa.metric()
    def code_notes_its_turns(turn: oa.Turn) -> float | None:
        """Would hang or print."""
        called.append(turn.turn_id)
        raise SystemExit

    with rig_of("code_notes_its_turns") as rig:
        assert called == []
        rig.run()
        assert rig.scored()[0].scores[0].error_type == "SystemExit"
        assert called == [rig.turn().turn_id]


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_an_outlet_may_raise_it_too(kind: type[BaseException]) -> None:
    class Raising(Outlet):
        name = "raising"

        def emit(self, batch: Any) -> None:
            raise kind

        def flush(self, timeout: float) -> bool:
            raise kind

    outlet = Raising()
    with Rig() as rig:
        rig.engine.outlets.add(outlet, first=True)
        rig.run()
        assert rig.processor.force_flush() is False
        assert rig.kept
        assert rig.count("agenteval.emit.errors")[("raising", kind.__name__)] >= 1
        rig.engine.outlets.remove(outlet)


def end_from_outside(thread: threading.Thread) -> None:
    """Raise an exception in the thread at its next step, as a watchdog would."""
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)) == 1


def test_a_worker_that_is_ended_from_outside_is_replaced_and_counted() -> None:
    with Rig() as rig:
        rig.run("first")
        assert rig.scored()
        for n in range(3):
            thread = rig.engine.worker._thread
            assert thread is not None
            end_from_outside(thread)
            rig.engine.worker.wake()
            thread.join(60)
            assert not thread.is_alive()
            rig.run(f"after {n}")
            assert len(rig.scored()) == n + 2
        assert rig.count("agenteval.faults")[("worker",)] == 3


def test_what_a_worker_had_not_begun_when_its_batch_failed_is_handled_later() -> None:
    failed: list[str] = []
    handled: list[int] = []

    def handle(batch: list[Any]) -> list[Any]:
        while batch:
            item = batch.pop(0)
            if item == 2:
                raise SystemExit
            handled.append(item)
        return []

    worker = Worker(lambda timeout: True, 1_000, failed=lambda where, error: failed.append(where))
    worker.connect(handle)
    with worker._working:
        for n in range(5):
            assert worker.put(n, 10)
    assert worker.flush(60, outlets=False)
    assert (handled, failed, worker.queue.bytes, len(worker.queue)) == ([0, 1, 3, 4], ["worker"], 0, 0)
    assert worker.stop(60)


def test_a_batch_that_fails_before_anything_is_begun_costs_one_item_at_a_time() -> None:
    def handle(batch: list[Any]) -> list[Any]:
        raise MemoryError

    worker = Worker(lambda timeout: True, 1_000)
    worker.connect(handle)
    for n in range(5):
        assert worker.put(n, 10)
    assert worker.flush(60, outlets=False)
    assert (worker.queue.bytes, len(worker.queue)) == (0, 0)
    assert worker.stop(60)


def test_a_turn_that_is_out_of_time_once_it_is_composed_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with rig_of() as rig:
        watchdog = rig.engine.pipeline._watchdog
        end, late = watchdog.end, [OutOfTime]

        def ends_late() -> None:
            end()
            if late:
                raise late.pop()

        monkeypatch.setattr(watchdog, "end", ends_late)
        rig.run("long", user="x " * 700_000)
        assert rig.scored() == []
        assert rig.count("agenteval.results") == {("code_empty_answer", "long", "dropped"): 1}


# --- a flush keeps its time


def test_a_flush_keeps_its_time_when_the_worker_is_gone_and_the_metric_hangs() -> None:
    hangs, released = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    @oa.metric()
    def code_hangs(turn: oa.Turn) -> float | None:
        """Hangs."""
        threads.append(threading.current_thread())
        hangs.set()
        released.wait(60)
        return 1.0

    with rig_of("code_hangs") as rig:
        worker = rig.engine.worker
        with worker._working:
            rig.run()
            thread = worker._thread
            assert thread is not None
            end_from_outside(thread)
        assert rig.engine.flush(0.05) is False
        assert threading.current_thread() not in threads
        released.set()
        assert rig.turn()


def test_where_no_thread_can_be_started_a_flush_ends_between_two_items() -> None:
    handled: list[int] = []

    def handle(batch: list[Any]) -> list[Any]:
        handled.extend(batch)
        batch.clear()
        time.sleep(0.02)  # a metric that takes its time
        return []

    worker = Worker(lambda timeout: True, 1_000)
    worker.connect(handle)
    worker.may_start = False
    for n in range(3):
        assert worker.put(n, 10)
    assert worker.flush(0.01) is False
    assert handled == [0]
    assert worker.flush(60, outlets=False)
    assert handled == list(range(3))


def test_a_flush_by_the_worker_itself_does_not_wait() -> None:
    said: list[bool] = []
    rigs: list[Rig] = []

    @oa.metric()
    def code_flushes(turn: oa.Turn) -> float | None:
        """Flushes."""
        said.append(rigs[0].engine.flush(60))
        return 1.0

    with rig_of("code_flushes") as rig:
        rigs.append(rig)
        rig.run()
        assert rig.turn()
        assert said == [False]


# --- on the host's threads


def read_by_the_host(rig: Rig, kind: type[BaseException]) -> None:
    """Let the host's exporter read spans before the worker, and interrupt the exporter during evaluation."""
    with rig.engine.worker._working:
        rig.run()
        raises.append(kind)
        len(rig.exported("invoke_agent bot")._events)


@pytest.mark.parametrize("kind", MEANT_FOR_HOST)
def test_what_is_meant_for_the_host_reaches_its_exporter_and_the_worker_evaluates(metric: str, kind: type[BaseException]) -> None:
    with Rig({"inline": {"metrics": [metric]}}) as rig:
        with pytest.raises(kind):
            read_by_the_host(rig, kind)
        assert outcomes(rig) == [("ok", None)]
        assert rig.turn().revision == 1
        assert set(rig.score_events("invoke_agent bot")) == {metric}


@pytest.mark.parametrize("kind", [SystemExit, GeneratorExit, Odd])
def test_what_a_metric_makes_up_does_not_end_the_host(metric: str, kind: type[BaseException]) -> None:
    with Rig({"inline": {"metrics": [metric]}}) as rig:
        read_by_the_host(rig, kind)
        assert outcomes(rig) == [("error", kind.__name__)]


@pytest.fixture
def at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use an SDK in which the host's thread evaluates turns after their root has ended."""
    monkeypatch.setattr(oa.AgentEvalSpanProcessor, "_on_ending", lambda self, span: None)


def exit_on(number: int, frame: Any) -> None:
    """Exit, as a server's SIGTERM handler does."""
    raise SystemExit(7)


@pytest.mark.parametrize(("number", "kind"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, SystemExit)])
@pytest.mark.usefixtures("at_the_end")
def test_a_signal_that_comes_while_a_metric_runs_reaches_the_host(number: int, kind: type[BaseException]) -> None:
    sent: list[int] = []

    @oa.metric()
    def code_is_interrupted(turn: oa.Turn) -> float | None:
        """Takes long enough for a signal."""
        if not sent:
            sent.append(number)
            os.kill(os.getpid(), number)
        return 1.0

    before = signal.signal(number, signal.default_int_handler if number == signal.SIGINT else exit_on)
    try:
        with rig_of("code_is_interrupted") as rig:
            with pytest.raises(kind):
                rig.run()
            assert outcomes(rig) == [("ok", None)]
    finally:
        signal.signal(number, before)


@pytest.mark.parametrize("kind", EVERYTHING)
def test_evaluate_lets_out_only_what_is_meant_for_its_caller(metric: str, kind: type[BaseException]) -> None:
    raises.append(kind)
    bound = oa.get_metric(metric)
    if kind in MEANT_FOR_HOST:
        with pytest.raises(kind):
            bound.evaluate(oa.Turn(output="x"))
    else:
        assert bound.evaluate(oa.Turn(output="x")).error_type == kind.__name__


@pytest.mark.parametrize("name", ["ours", "OtelBatchSpanRecordProcessor"])
def test_nobody_interrupts_threads_of_ours_or_of_the_sdk(name: str) -> None:
    initializer: Callable[[], None] = mark_as_ours if name == "ours" else lambda: None
    with ThreadPoolExecutor(1, name, initializer) as pool:
        assert not any(pool.map(is_meant_for_host, [kind() for kind in EVERYTHING]))
