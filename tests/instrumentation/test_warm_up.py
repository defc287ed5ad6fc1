"""The warm-up runs on a separate thread, which doesn't affect forks, exits and short programs."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.engine import engine
from otel_agenteval.engine.engine import WarmUp
from tests.support.process import output_of


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WARM_UP_DELAY", 0.0)


class Steps:
    """Steps that the test releases one by one."""

    def __init__(self, count: int, fault: BaseException | None = None) -> None:
        self.done = 0
        self.may = threading.Semaphore(0)
        self.began = threading.Semaphore(0)
        self._count, self._fault = count, fault

    def __call__(self) -> Iterator[None]:
        for _ in range(self._count):
            self.began.release()
            self.may.acquire()
            self.done += 1
            if self._fault is not None:
                raise self._fault
            yield


def never(where: str, error: BaseException) -> None:
    """Fail the test if a step fails."""
    raise AssertionError(where) from error


def started(steps: Steps, failed: Any = never) -> WarmUp:
    """Return a warm-up that has started its first step."""
    found = WarmUp(steps, failed)
    found.start()
    assert steps.began.acquire(timeout=60)
    return found


def test_a_stop_waits_for_the_step_in_hand_and_begins_no_other() -> None:
    steps = Steps(3)
    found = started(steps)
    stopping = threading.Thread(target=found.stop)
    stopping.start()
    assert found._stop.wait(60)
    assert stopping.is_alive()
    steps.may.release()
    stopping.join(60)
    assert found._thread is not None
    assert (steps.done, found._thread.is_alive()) == (1, False)


def test_a_program_that_ends_before_the_first_step_pays_for_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "WARM_UP_DELAY", 3600.0)
    steps = Steps(1)
    found = WarmUp(steps, never)
    found.start()
    found.stop()
    assert found._thread is not None
    assert (steps.done, found._thread.is_alive()) == (0, False)


def test_a_step_that_goes_wrong_is_reported_and_ends_it() -> None:
    failed: list[tuple[str, BaseException]] = []
    fault = SystemExit()
    steps = Steps(3, fault)
    found = started(steps, lambda where, error: failed.append((where, error)))
    steps.may.release()
    assert found._thread is not None
    found._thread.join(60)
    assert (failed, steps.done) == ([("warm_up", fault)], 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
def test_a_fork_waits_for_the_step_in_hand_and_the_child_begins_anew() -> None:
    script = """
from otel_agenteval.engine import engine
engine.WARM_UP_DELAY = 0.0
began, may, log = threading.Event(), threading.Event(), []
def steps():
    log.append("begun")
    began.set()
    may.wait()
    log.append("done")
    yield
    log.append("next")
    yield
first = engine.WarmUp(steps, print)
first.start()
began.wait()
threading.Timer(0.1, may.set).start()
pid = os.fork()
if pid == 0:
    first._thread.join(60)
    print(log[:2], log[-3:], flush=True)
    os._exit(0)
os.waitpid(pid, 0)
first._thread.join(60)
print(log)
"""
    assert output_of(script).splitlines() == ["['begun', 'done'] ['begun', 'done', 'next']", "['begun', 'done', 'next']"]


def test_a_processor_that_nobody_holds_any_more_goes_with_its_warm_up() -> None:
    processor = oa.AgentEvalSpanProcessor({"inline": {"metrics": ["code_latency"]}, "outlets": {"prometheus": None}})
    thread = processor.engine.warm_up._thread
    assert thread is not None
    thread.join(60)
    held = weakref.ref(processor.engine)
    processor.shutdown()
    del processor
    gc.collect()
    assert held() is None
