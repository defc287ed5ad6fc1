"""Jobs that earlier versions queued are done as they were meant."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support import written_jobs
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig
from tests.support.written_jobs import COMPOSITE, FOLDER, HELPFUL, KIND, NEAR, WHOLE

WRITTEN_BY = sorted(folder.name for folder in FOLDER.iterdir())
VECTORS = {"And now?": [0.6, 0.8], "Now too.": [1.0, 0.0]}


def done(models: ScriptedModels, queue: dict[str, Any]) -> list[Any]:
    """What leaves when the jobs of a queue are done."""
    written_jobs.define_metrics()
    models.play({"score": 0.25}, {"score": 0.5}, {"score": 1.0}, vectors=VECTORS)
    with Rig(written_jobs.config(models.url, queue), clock=FakeClock()) as rig:
        assert rig.engine.judging is not None
        rig.engine.tick()
        assert rig.engine.drain(20, judges=True)
        assert rig.engine.judging.queue.depth == 0
        assert rig.engine.failures == {}
        return list(rig.kept)


def check(left: list[Any], version: str) -> None:
    found = {(scored.turn.turn_id, score.metric): (scored, score) for scored in left for score in scored.scores}
    made = found.pop(("t-1", COMPOSITE), None)
    assert (made is not None) == (version >= "v2"), "composites over judged scores came with version 2"
    assert made is None or (made[1].value, made[0].judged.probability, made[0].root.tenant) == (0.625, 1.0, "blue")
    assert found.keys() == {("t-1", HELPFUL), ("t-1", KIND), ("t-2.r1", NEAR), ("conversation:c-1", WHOLE)}
    scored, score = found["t-1", HELPFUL]
    assert (score.value, score.policy) == (0.25, "gate")
    assert score.detail["decided_by"] == {"metric": NEAR, "value": 0.24}
    assert (scored.root.trace_id, scored.root.span_id, scored.root.sampled) == (0xA1, 0xB1, False)
    assert scored.root.trace_state.to_header() == "ot=th:8,acme=1"
    assert scored.root.resource == {"service.name": "shop", "cloud.zones": ["a", "b"]}
    assert (scored.root.tenant, scored.root.labels) == ("blue", {"team": "sales"})
    assert (scored.judged.probability, scored.judged.decided_by, scored.judged.upstream) == (1.0, NEAR, 0.5)
    assert (scored.supersedes, scored.new, scored.first_id, scored.absorbs) == (None, True, "t-1", ())
    _, score = found["t-1", KIND]
    assert score.detail["decided_by"] == {"metric": HELPFUL, "value": 0.25}
    scored, score = found["t-2.r1", NEAR]
    assert score.value == 0.6
    assert "decided_by" not in score.detail
    assert (scored.supersedes, scored.new, scored.first_id, scored.absorbs) == ("t-2", False, "t-2", ("t-3",))
    assert (scored.root.tenant, scored.root.sampled) == (None, True)
    scored, _ = found["conversation:c-1", WHOLE]
    assert (scored.conversation, scored.turn.conversation_id) == (True, "c-1")


@pytest.mark.parametrize("version", WRITTEN_BY)
def test_jobs_in_a_file_of_an_earlier_version_are_done(models: ScriptedModels, tmp_path: Path, version: str) -> None:
    file = tmp_path / "jobs.db"
    shutil.copyfile(FOLDER / version / "jobs.db", file)
    check(done(models, {"backend": "sqlite", "path": str(file)}), version)


@pytest.mark.slow
@pytest.mark.parametrize("version", WRITTEN_BY)
def test_jobs_in_redis_of_an_earlier_version_are_done(models: ScriptedModels, tmp_path: Path, version: str) -> None:
    server = RedisServer(tmp_path / "redis")
    try:
        written_jobs.put_keys(server.client(), json.loads((FOLDER / version / "redis.json").read_text(encoding="utf-8")))
        check(done(models, {"backend": "redis", "url": server.url}), version)
    finally:
        server.stop()
