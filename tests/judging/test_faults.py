"""Judging with many faults: every job ends once, budgets hold, and memory doesn't grow."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.judging import factory
from otel_agenteval.judging.models import judge_from
from tests.judging.test_live import held
from tests.support.faulty import FAULTS, INPUT_TOKENS, OUTPUT_TOKENS, FaultyModel
from tests.support.rig import Rig

METRIC = "llm_relevance"
JOBS, BATCHES, THREADS = 500, 4, 16
USD_PER_TOKEN = 0.001
QUESTION_USD = (INPUT_TOKENS + OUTPUT_TOKENS) * USD_PER_TOKEN
USD_PER_HOUR = 15.0


class JumpingClock:
    """Real time plus the time that the test skipped."""

    def __init__(self) -> None:
        self.jumped = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.jumped

    def time_ns(self) -> int:
        return time.time_ns() + round(self.jumped * 1e9)


class Bill:
    """Costs that the server would bill, with their times."""

    def __init__(self, clock: JumpingClock) -> None:
        self._clock = clock
        self._times: list[float] = []

    def add(self) -> None:
        self._times.append(self._clock.monotonic())

    def dearest_hour(self) -> float:
        """Return the USD of the most expensive hour."""
        times, first, most = sorted(self._times), 0, 0
        for index, moment in enumerate(times):
            while times[first] < moment - 3_600:
                first += 1
            most = max(most, index + 1 - first)
        return most * QUESTION_USD


def work_off(rig: Rig, clock: JumpingClock) -> None:
    """Do all jobs, and skip the time until the next jobs are due."""
    judging = rig.engine.judging
    assert judging is not None

    def work() -> None:
        with suppress(sqlite3.OperationalError):  # a busy file: the judging threads pause and go on, and so does this test
            while judging.step():
                pass

    for _ in range(2_000):
        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert rig.engine.flush(60)
        if not judging.queue.depth:
            return
        clock.jumped += 60
    raise AssertionError(f"{judging.queue.depth} jobs have no end")


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_with_faults_every_job_has_one_end_within_the_budget(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, sleeps = JumpingClock(), []
    bill = Bill(clock)
    model = FaultyModel(0.3, {"score": 90, "reason": "It answers."}, served=bill.add)
    monkeypatch.setattr(factory, "judge_from", lambda config: judge_from(config, clock=clock, sleep=sleeps.append))
    prices = {"m-1": {"input": USD_PER_TOKEN * 1e6, "output": USD_PER_TOKEN * 1e6}}
    queue = {"backend": "sqlite", "path": str(tmp_path / "q.db")} if backend == "sqlite" else {}
    judge = {
        "base_url": model.url, "model": "m-1", "timeout": "150ms", "prices": prices, "queue": queue, "max_concurrency": THREADS,
        "budget": {"usd_per_hour": USD_PER_HOUR, "soft": 1},
    }  # fmt: skip
    config = {"judge": judge, "metrics": [METRIC], "inline": {"metrics": []}}
    ends: Counter[str] = Counter()
    ids: set[str] = set()
    try:
        with Rig(config, clock=clock) as rig:
            judging = held(rig)
            for batch in range(BATCHES):
                for n in range(JOBS // BATCHES):
                    rig.run(says=f"{batch} {n}: {'Lyon is a city. ' * 20}")
                work_off(rig, clock)
                for event in rig.log_events():
                    attributes = dict(event.attributes)
                    ids.add(attributes[semconv.RESULT_ID])
                    scored = semconv.SCORE_VALUE in attributes
                    assert scored != (semconv.ERROR_TYPE in attributes)
                    ends["score" if scored else attributes[semconv.ERROR_TYPE]] += 1
                rig._logs.clear()
                rig._spans.clear()
                rig.kept.clear()
            results = {key[2]: value for key, value in rig.count("agenteval.results").items() if key[0] == METRIC}
            assert sum(results.values()) == JOBS
            assert sum(ends.values()) + results.get("dropped", 0) == JOBS
            assert len(ids) == sum(ends.values())  # none twice
            assert (ends["score"], ends.total() - ends["score"]) == (results["pass"], results.get("error", 0))
            assert ends["score"] > 0.8 * JOBS
            assert len(judging.queue.dead_letters()) == min(1_000, results.get("error", 0))
    finally:
        model.close()
    assert all(model.met[fault] > 5 for fault in FAULTS), model.met
    assert {"refusal", "reply_too_large"} <= ends.keys(), ends
    assert any(7 <= pause < 8 for pause in sleeps)  # Retry-After, and jitter
    assert USD_PER_HOUR * 0.5 < bill.dearest_hour() <= USD_PER_HOUR + 2 * THREADS * QUESTION_USD
