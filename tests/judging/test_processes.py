"""Judging across the ends of processes: killed, exiting, forking."""

from __future__ import annotations

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
from typing import Any

import pytest

from otel_agenteval.core import semconv
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.process import PRELUDE, environment, output_of
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig

METRIC = "llm_relevance"
GOOD = {"score": 90, "reason": "It answers."}
AGENT = """
provider = TracerProvider()
trace.set_tracer_provider(provider)
handle = oa.instrument(config=json.loads(sys.argv[1]))
tracer = trace.get_tracer("acme.app")
"""


def config(models: ScriptedModels, **more: Any) -> dict[str, Any]:
    judge = {"base_url": models.url, "model": "scripted", **more.pop("judge", {})}
    return {
        "judge": judge,
        "metrics": [METRIC],
        "inline": {"metrics": []},
        **more,
        "outlets": {"log_events": False, "prometheus": None, **more.get("outlets", {})},
    }


class Killing(ScriptedModels):
    """Kills the process that asks, before it answers."""

    asking: subprocess.Popen[bytes] | None = None

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        asking, self.asking = self.asking, None
        if asking is not None:
            os.kill(asking.pid, signal.SIGKILL)
            asking.wait()
        return super().answer(path, body)


def test_a_job_of_a_killed_process_comes_back_after_its_lease_and_gives_one_score(tmp_path: Path) -> None:
    models = Killing()
    try:
        models.play(GOOD, GOOD, GOOD)
        stored = config(models, judge={"queue": {"backend": "sqlite", "path": str(tmp_path / "q.db"), "lease": "1m"}})
        script = PRELUDE + AGENT + "turn(tracer, says='Hello.')\nhandle.drain(timeout=30)\n"
        command = [sys.executable, "-c", textwrap.dedent(script), json.dumps(stored)]
        ready = subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL)
        models.asking = ready
        assert ready.wait(30) == -signal.SIGKILL
        stored["outlets"] = {"log_events": True}
        with Rig(stored, clock=FakeClock(time_ns=time.time_ns())) as rig:
            assert not rig.engine.drain(0.3, judges=True)
            assert rig.log_events() == []
        with Rig(stored, clock=FakeClock(time_ns=time.time_ns() + 61_000_000_000)) as rig:
            assert rig.engine.drain(10, judges=True)
            [event] = rig.log_events()
            assert (event.attributes[semconv.EVALUATION_NAME], event.attributes[semconv.SCORE_VALUE]) == (METRIC, 0.9)
            assert event.attributes[semconv.TURN_ID].startswith(f"{event.trace_id:032x}")
        with Rig(stored, clock=FakeClock(time_ns=time.time_ns() + 200_000_000_000)) as rig:
            assert rig.engine.drain(10, judges=True)
            assert rig.log_events() == []
    finally:
        models.close()


class Slow(ScriptedModels):
    """Takes longer for each answer than a lease lasts."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self._seconds = seconds

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        threading.Event().wait(self._seconds)
        return super().answer(path, body)


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["sqlite", "redis"])
def test_two_processes_with_a_judge_slower_than_the_lease_ask_once_and_score_once(
    backend: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    jobs, models = 12, Slow(2.4)
    queue: dict[str, Any] = {"backend": "sqlite", "path": str(tmp_path / "q.db")}
    if backend == "redis":
        server = RedisServer(tmp_path / "redis")
        request.addfinalizer(server.stop)
        queue = {"backend": "redis", "url": server.url}
    request.addfinalizer(models.close)
    models.play(*[GOOD] * 3 * jobs)
    files = [tmp_path / f"scores-{i}.jsonl" for i in range(2)]
    script = (
        textwrap.dedent(PRELUDE + AGENT)
        + "for n in range(6): turn(tracer, says=f'It is {n}.')\nassert handle.drain(timeout=60)\n"
    )
    running = []
    for file in files:
        judge = {"queue": {**queue, "lease": "1s"}, "max_concurrency": 4}
        given = json.dumps(config(models, judge=judge, outlets={"jsonl": str(file)}))
        running.append(subprocess.Popen([sys.executable, "-c", script, given], env=environment(), stdin=subprocess.DEVNULL))
    assert [process.wait(90) for process in running] == [0, 0]
    scores = Counter(json.loads(line)["result_id"] for file in files for line in file.read_text().splitlines())
    assert (len(scores), set(scores.values())) == (jobs, {1})
    assert len(models.requests) == jobs


def test_a_process_that_ends_at_once_still_gets_its_judged_scores(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(GOOD)
    file = tmp_path / "scores.jsonl"
    output_of(AGENT + "turn(tracer)\n", json.dumps(config(models, outlets={"jsonl": str(file)})))
    [line] = [json.loads(line) for line in file.read_text().splitlines()]
    assert (line["metric"], line["value"]) == (METRIC, 0.9)


QUIET = "import logging; logging.getLogger('otel_agenteval').setLevel(logging.ERROR)\n"
"""Code that turns off the warning about the budget."""


def test_an_exit_does_not_wait_for_what_cannot_be_done_now(models: ScriptedModels) -> None:
    models.play(GOOD)
    limited = config(models, judge={"budget": {"calls_per_hour": 1}}, exit_timeout="30s")
    started = time.monotonic()
    output_of(QUIET + AGENT + "turn(tracer)\nturn(tracer)\n", json.dumps(limited))
    assert time.monotonic() - started < 15


def test_a_forked_child_leaves_the_parent_s_jobs_to_the_parent(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(GOOD, GOOD, GOOD)
    file = tmp_path / "scores.jsonl"
    given = config(models, judge={"budget": {"calls_per_hour": 2}}, outlets={"jsonl": str(file)}, exit_timeout="1s")
    script = """
    turn(tracer, "parent")
    assert handle.drain(timeout=10)
    turn(tracer, "parent")
    pid = os.fork()
    if pid == 0:
        judging = handle.processor.engine.judging
        assert judging.queue.depth == 0
        turn(tracer, "child")
        handle.drain(timeout=10)
        os._exit(0 if judging.queue.depth == 0 else 1)
    assert handle.drain(timeout=10)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    assert output_of(QUIET + AGENT + textwrap.dedent(script), json.dumps(given)).split() == ["0"]
    agents = [json.loads(line)["agent"] for line in file.read_text().splitlines()]
    assert sorted(agents) == ["child", "parent", "parent"]
