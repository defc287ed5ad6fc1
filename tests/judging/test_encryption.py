"""Turns in a queue's file, encrypted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.encryption import Seal
from otel_agenteval.core.errors import ConfigError, SealError
from otel_agenteval.judging.models import seal_from
from otel_agenteval.judging.queues import Job, MemoryQueue, SqliteQueue
from otel_agenteval.judging.queues.sealed import SealedQueue
from tests.judging.test_live import held
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

Fernet = pytest.importorskip("cryptography.fernet").Fernet
ONE, TWO = Fernet.generate_key().decode(), Fernet.generate_key().decode()
WORDS = "the agent said this and nothing else"


def config(models: ScriptedModels, path: Path, key: str | None) -> dict[str, Any]:
    judge = {"base_url": models.url, "model": "scripted", "queue": {"backend": "sqlite", "path": str(path / "q.db")}}
    return {"judge": {**judge, "encryption_key": key}, "metrics": ["llm_relevance"], "inline": {"metrics": []}}


def file_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.iterdir())


@pytest.mark.parametrize(("key", "readable"), [(None, True), (ONE, False)], ids=["open", "sealed"])
def test_the_file_of_a_queue_holds_no_content_once_there_is_a_key(
    models: ScriptedModels, tmp_path: Path, key: str | None, readable: bool
) -> None:
    models.play({"score": 90})
    with Rig(config(models, tmp_path, key)) as rig:
        judging = held(rig)
        rig.run(says=WORDS)
        rig.scored()
        assert (WORDS.encode() in file_of(tmp_path)) is readable
        assert judging.step()
        rig.scored()
        [event] = rig.log_events()
        assert event.attributes[semconv.SCORE_VALUE] == 0.9
        assert WORDS in models.asked[0]


def test_with_another_key_jobs_wait_and_say_why(models: ScriptedModels, tmp_path: Path, clock: FakeClock) -> None:
    models.play({"score": 90})
    with Rig(config(models, tmp_path, ONE), clock=clock) as rig:
        judging = held(rig)
        rig.run(says=WORDS)
        rig.scored()
    with Rig(config(models, tmp_path, TWO), clock=clock) as rig:
        judging = held(rig)
        with pytest.raises(SealError, match="encryption_key"):
            judging.step()
        assert judging.queue.depth == 1
    clock.advance(301)
    with Rig(config(models, tmp_path, f"{TWO}, {ONE}"), clock=clock) as rig:
        assert rig.engine.drain(60, judges=True)
        assert len(rig.log_events()) == 1
    assert len(models.requests) == 1


@pytest.mark.parametrize("key", ["", ",", "short", f"{ONE},short"], ids=["empty", "comma", "short", "one of two"])
def test_a_key_that_is_none_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ConfigError, match="encryption_key") as caught:
        seal_from(load_config({"judge": {"encryption_key": key}}, {}))
    assert "short" not in str(caught.value)


def test_a_sealed_queue_keeps_the_order_and_the_outcomes_of_jobs(clock: FakeClock, tmp_path: Path) -> None:
    queue = SealedQueue(SqliteQueue(str(tmp_path / "q.db"), 100_000, clock), Seal(ONE), clock)
    assert queue.put_many([Job("a", b"1"), Job("b", b"2", 2), Job("c", b"3"), Job("d", b"4")]) == []
    assert [(job.id, job.payload, job.attempts) for job in queue.claim(3, 60)] == [("b", b"2", 1), ("a", b"1", 1), ("c", b"3", 1)]
    queue.ack("a")
    queue.dead("b", "why")
    queue.retry_at("c", clock.time_ns() / 1e9 + 5)
    assert (queue.depth, queue.dead_letters(), queue.bytes > 500) == (2, [("b", "why")], True)
    clock.advance(5)
    assert [job.id for job in queue.claim(3, 60)] == ["c", "d"]
    assert queue.close() == []


def test_jobs_that_make_room_come_back_readable(clock: FakeClock) -> None:
    queue = SealedQueue(MemoryQueue(1_500, clock), Seal(ONE), clock)
    assert queue.put_many([Job("low", b"x" * 600)]) == []
    assert queue.put_many([Job("high", b"y" * 600, 2)]) == [Job("low", b"x" * 600)]
    assert queue.close() == [Job("high", b"y" * 600, 2)]
