"""``worker --judge`` with several processes: they divide the limits, and share jobs and budget."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

import otel_agenteval as oa
from otel_agenteval.config.shares import processes_for, share_of
from otel_agenteval.core.errors import ConfigError
from tests.support.judges import ScriptedModels
from tests.support.process import environment
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig
from tests.support.servers import Process, until

METRIC = "llm_relevance"
GOOD = {"score": 90, "reason": "It answers."}
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
    """Two processes and their parent."""

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
        assert agent.engine.flush(10)
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
