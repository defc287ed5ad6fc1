"""Judging when processes are killed, exit or fork."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import otel_agenteval as oa
from otel_agenteval.cli.worker import processes_for, share_of
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.process import PRELUDE, environment, output_of
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig
from tests.support.servers import Process, until

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
    """Kills the process during a judge call."""

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
        script = PRELUDE + AGENT + "turn(tracer, says='Hello.')\nhandle.drain(timeout=60)\n"
        command = [sys.executable, "-c", textwrap.dedent(script), json.dumps(stored)]
        ready = subprocess.Popen(command, env=environment(), stdin=subprocess.DEVNULL)
        models.asking = ready
        assert ready.wait(60) == -signal.SIGKILL
        stored["outlets"] = {"log_events": True}
        with Rig(stored, clock=FakeClock(time_ns=time.time_ns())) as rig:
            assert not rig.engine.drain(0.3, judges=True)
            assert rig.log_events() == []
        with Rig(stored, clock=FakeClock(time_ns=time.time_ns() + 61_000_000_000)) as rig:
            assert rig.engine.drain(60, judges=True)
            [event] = rig.log_events()
            assert (event.attributes[semconv.EVALUATION_NAME], event.attributes[semconv.SCORE_VALUE]) == (METRIC, 0.9)
            assert event.attributes[semconv.TURN_ID].startswith(f"{event.trace_id:032x}")
        with Rig(stored, clock=FakeClock(time_ns=time.time_ns() + 200_000_000_000)) as rig:
            assert rig.engine.drain(60, judges=True)
            assert rig.log_events() == []
    finally:
        models.close()


QUIET = "import logging; logging.getLogger('otel_agenteval').setLevel(logging.ERROR)\n"
"""Code that turns off the warning about the budget."""


def test_an_exit_waits_for_what_can_be_done_now_and_for_nothing_else(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(GOOD)
    file = tmp_path / "scores.jsonl"
    limited = config(
        models, judge={"budget": {"calls_per_hour": 1}}, outlets={"jsonl": str(file)}, exit_timeout="10m"
    )  # longer than the script may take
    output_of(QUIET + AGENT + "turn(tracer)\nturn(tracer)\n", json.dumps(limited))
    [line] = [json.loads(line) for line in file.read_text().splitlines()]
    assert (line["metric"], line["value"]) == (METRIC, 0.9)


def test_a_forked_child_leaves_the_parent_s_jobs_to_the_parent(models: ScriptedModels, tmp_path: Path) -> None:
    models.play(GOOD, GOOD, GOOD)
    file = tmp_path / "scores.jsonl"
    given = config(models, judge={"budget": {"calls_per_hour": 2}}, outlets={"jsonl": str(file)}, exit_timeout="1s")
    script = """
    turn(tracer, "parent")
    assert handle.drain(timeout=60)
    turn(tracer, "parent")
    pid = os.fork()
    if pid == 0:
        judging = handle.processor.engine.judging
        assert judging.queue.depth == 0
        turn(tracer, "child")
        handle.drain(timeout=60)
        os._exit(0 if judging.queue.depth == 0 else 1)
    assert handle.drain(timeout=60)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    """
    assert output_of(QUIET + AGENT + textwrap.dedent(script), json.dumps(given)).split() == ["0"]
    agents = [json.loads(line)["agent"] for line in file.read_text().splitlines()]
    assert sorted(agents) == ["child", "parent", "parent"]


# --- ``worker --judge`` with several processes


SERVICE = {"base_url": "http://127.0.0.1:1/v1", "model": "m"}


def test_shares_add_up_to_the_limits() -> None:
    judge = {**SERVICE, "max_concurrency": 100, "requests_per_minute": 50, "servers": {"b": {"base_url": SERVICE["base_url"]}}}
    judge["servers"]["b"]["tokens_per_minute"] = 1_000  # type: ignore[index]
    config = oa.load_config({"judge": judge, "embedder": {**SERVICE, "max_concurrency": 7}})
    shares = [share_of(config, number, 3) for number in range(3)]
    assert sum(share.judge.max_concurrency for share in shares) == 100
    assert sum(share.judge.requests_per_minute or 0 for share in shares) == 50
    assert [share.judge.servers["b"].tokens_per_minute for share in shares] == [333, 333, 334]
    assert [share.embedder.max_concurrency for share in shares] == [2, 2, 3]
    assert {share.judge.servers["b"].requests_per_minute for share in shares} == {None}


def test_limit_below_the_number_of_processes_is_refused() -> None:
    config = oa.load_config({"judge": {**SERVICE, "max_concurrency": 100, "requests_per_minute": 2}})
    with pytest.raises(ConfigError, match="requests_per_minute"):
        share_of(config, 0, 3)


@pytest.mark.parametrize(
    ("judge", "cores", "expected"),
    [({}, 8, 1), ({"max_concurrency": 200}, 8, 4), ({"max_concurrency": 200}, 2, 2), ({"max_concurrency": 200, "requests_per_minute": 3}, 8, 3)],
)  # fmt: skip
def test_processes_grow_with_concurrency_up_to_cores(judge: dict[str, Any], cores: int, expected: int) -> None:
    assert processes_for(oa.load_config({"judge": {**SERVICE, **judge}}), cores) == expected


class Workers:
    """Two worker processes and their parent."""

    def __init__(self, folder: Path, config: dict[str, Any]) -> None:
        file = folder / "agenteval.yaml"
        file.write_text(json.dumps(config))
        self.log = folder / "log"
        command = [sys.executable, "-m", "otel_agenteval", "worker", "--judge", config["judge"]["queue"]["url"]]
        command += ["--config", str(file), "--metrics", "127.0.0.1:0", "--processes", "2"]
        self.process = Process(
            command, log=self.log, ready=lambda: "working: " in self.log.read_text(), env=environment(), cwd=folder, timeout=60
        )

    @property
    def children(self) -> list[psutil.Process]:
        return psutil.Process(self.process.pid).children()


@pytest.fixture(scope="module")
def server(tmp_path_factory: Any) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path_factory.mktemp("redis"))
    yield found
    found.stop()


def queued(server: RedisServer, models: ScriptedModels, folder: Path, turns: int, **judge: Any) -> dict[str, Any]:
    """Queue judge jobs, and return the workers' configuration."""
    config: dict[str, Any] = {
        "judge": {
            "base_url": models.url, "model": "scripted", **judge,
            "queue": {"backend": "redis", "url": server.url, "name": folder.name, "work": False},
        },
        "metrics": [METRIC],
        "inline": {"metrics": []},
    }  # fmt: skip
    with Rig(config) as agent:
        for number in range(turns):
            agent.run(f"question {number}")
        assert agent.engine.flush(60)
    return {**config, "outlets": {"log_events": False, "jsonl": str(folder / "scores.jsonl")}}


def test_processes_do_each_job_once_within_one_budget(server: RedisServer, models: ScriptedModels, tmp_path: Path) -> None:
    models.play(*[GOOD] * 4)
    budget = {"calls_per_hour": 4, "soft": 1.0}
    workers = Workers(tmp_path, queued(server, models, tmp_path, 9, budget=budget))
    assert len(workers.children) == 2
    until(lambda: len(models.requests) >= 4, "the budget is used")
    until(lambda: "judge.budget" in workers.log.read_text(), "jobs wait for the budget")
    os.kill(workers.process.pid, signal.SIGHUP)
    until(lambda: "SIGHUP: ignored" in workers.log.read_text(), "the parent ignores a reload")
    os.kill(workers.process.pid, signal.SIGTERM)
    assert workers.process.wait() == 0, workers.log.read_text()
    assert len(models.requests) == 4
    [line] = [line for line in workers.log.read_text().splitlines() if line.startswith('{"ledger"')]
    assert len(json.loads(line)["ledger"]["processes"]) == 2
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert len({score["turn_id"] for score in scores}) == len(scores) == 4


@pytest.mark.slow
def test_processes_end_with_their_killed_parent(server: RedisServer, models: ScriptedModels, tmp_path: Path) -> None:
    workers = Workers(tmp_path, queued(server, models, tmp_path, 0))
    children = workers.children
    workers.process.kill()
    until(lambda: not any(child.is_running() for child in children), "they end", 30)
