"""Judging while everything fails: every job has one end, budgets hold, and memory does not grow."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.judging import factory
from otel_agenteval.judging.models import judge_from
from tests.support.faulty import FAULTS, INPUT_TOKENS, OUTPUT_TOKENS, FaultyModel
from tests.support.process import PRELUDE, environment
from tests.support.rig import Rig

METRIC = "llm_relevance"
JOBS, BATCHES, THREADS = 2_000, 4, 16
USD_PER_TOKEN = 0.001
QUESTION_USD = (INPUT_TOKENS + OUTPUT_TOKENS) * USD_PER_TOKEN
USD_PER_HOUR = 60.0


class JumpingClock:
    """The real time, and what a test has jumped over."""

    def __init__(self) -> None:
        self.jumped = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.jumped

    def time_ns(self) -> int:
        return time.time_ns() + round(self.jumped * 1e9)


def is_ours(one: object) -> bool:
    """Whether an object is one of ours; but for what is remembered of traces, of which there may be thousands."""
    module = str(type(one).__module__)
    return module.startswith("otel_agenteval.") and not module.startswith(
        ("otel_agenteval.turns.", "otel_agenteval.statistics.estimates")
    )


class Bill:
    """What the server would bill, and when."""

    def __init__(self, clock: JumpingClock) -> None:
        self._clock = clock
        self._times: list[float] = []

    def add(self) -> None:
        self._times.append(self._clock.monotonic())

    def dearest_hour(self) -> float:
        """USD of the hour in which most was asked."""
        times, first, most = sorted(self._times), 0, 0
        for index, moment in enumerate(times):
            while times[first] < moment - 3_600:
                first += 1
            most = max(most, index + 1 - first)
        return most * QUESTION_USD


def work_off(rig: Rig, clock: JumpingClock) -> None:
    """Do all jobs, jumping to where the next ones are due."""
    judging = rig.engine.judging
    assert judging is not None

    def work() -> None:
        while judging.step():
            pass

    for _ in range(2_000):
        threads = [threading.Thread(target=work) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert rig.engine.flush(30)
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
    held: list[int] = []
    try:
        with Rig(config, clock=clock) as rig:
            assert rig.engine.judging is not None
            rig.engine.judging.may_start = False  # the test's threads do what its own would
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
                gc.collect()
                held.append(sum(map(is_ours, gc.get_objects())))
            results = {key[2]: value for key, value in rig.count("agenteval.results").items() if key[0] == METRIC}
            assert sum(results.values()) == JOBS
            assert sum(ends.values()) + results.get("dropped", 0) == JOBS
            assert len(ids) == sum(ends.values())  # none twice
            assert (ends["score"], ends.total() - ends["score"]) == (results["pass"], results.get("error", 0))
            assert ends["score"] > 0.8 * JOBS
            assert len(rig.engine.judging.queue.dead_letters()) == min(1_000, results.get("error", 0))
    finally:
        model.close()
    assert all(model.met[fault] > 10 for fault in FAULTS), model.met
    assert {"refusal", "reply_too_large"} <= ends.keys(), ends
    assert any(7 <= pause < 8 for pause in sleeps)  # Retry-After, and jitter
    assert USD_PER_HOUR * 0.5 < bill.dearest_hour() <= USD_PER_HOUR + 2 * THREADS * QUESTION_USD
    assert held[-1] - held[1] < JOBS // 20, held  # from the second batch on the rings of a thousand turns are full


AGENT = """
provider = TracerProvider()
trace.set_tracer_provider(provider)
handle = oa.instrument(config=json.loads(sys.argv[1]))
tracer = trace.get_tracer("acme.app")
for n in range(int(sys.argv[2])):
    turn(tracer, says=f"This is answer {n}.")
handle.flush(60)
print("queued", flush=True)
handle.drain(timeout=120)
print("drained", flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_killed_again_and_again_nothing_is_lost_and_nothing_is_scored_twice(tmp_path: Path) -> None:
    turns, kills, threads = 400, 3, 8
    answered = threading.Semaphore(0)
    # Only what is over at once: five late answers in a row, as a busy machine gives too, let all jobs wait for half a minute.
    faults = [fault for fault in FAULTS if fault not in ("busy", "hang", "drip")]
    model = FaultyModel(0.1, {"score": 90, "reason": "It answers."}, served=answered.release, faults=faults)
    file = tmp_path / "scores.jsonl"
    config = {
        "judge": {
            "base_url": model.url, "model": "m-1", "timeout": "30s", "max_concurrency": threads,
            "queue": {"backend": "sqlite", "path": str(tmp_path / "q.db"), "lease": "3s"},
        },
        "metrics": [METRIC], "inline": {"metrics": []}, "outlets": {"log_events": False, "prometheus": None, "jsonl": str(file)},
    }  # fmt: skip

    def start(new: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", textwrap.dedent(PRELUDE + AGENT), json.dumps(config), str(new)]
        process = subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
        running.append(process)
        return process

    running: list[subprocess.Popen[str]] = []
    try:
        for round_ in range(kills):
            process = start(turns - kills if round_ == 0 else 1)
            assert process.stdout is not None
            assert process.stdout.readline() == "queued\n"
            for _ in range(60):
                assert answered.acquire(timeout=90)  # a machine that is busy can look like a dead server
            os.kill(process.pid, signal.SIGKILL)
            assert process.wait(30) == -signal.SIGKILL
        assert file.read_text().count("\n") < turns  # it was killed in the middle
        last = start(1)
        out, _ = last.communicate(timeout=150)
        assert out.splitlines() == ["queued", "drained"]
    finally:
        model.close()
        for process in running:
            process.kill()
            process.communicate()
    lines = []
    for text in file.read_text().splitlines():
        try:
            lines.append(json.loads(text))
        except ValueError:  # a kill in the middle of a line
            continue
    ids = Counter(line["result_id"] for line in lines)
    assert len(ids) == turns
    assert len({line["turn_id"] for line in lines}) == turns
    # What was sent out and not yet acknowledged when a process was killed is sent again, under the same id.
    assert len(lines) - len(ids) <= kills * (threads + 1)
