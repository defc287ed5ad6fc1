"""The payload of a judge job: one codec, which says its version."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.trace import TraceState

from otel_agenteval.core.score import Score
from otel_agenteval.evaluation.scored_turn import Root
from otel_agenteval.judging.job import VERSION, Decision, Gathering, InnerOutcome, NewerPayload, Payload, Waiting
from otel_agenteval.judging.queues import Job
from otel_agenteval.judging.sampling import Chance
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

ROOT = Root(0xA1, 0xB1, False, TraceState([("ot", "th:8")]), {"service.name": "shop"}, "blue", {"team": "sales"})
PLAIN = Payload("turn llm_x 0 1", "llm_x", "t-1", 1, "bot", 5.0, 0.25, Chance(0.5, "rate"), Root(1, 2), b'{"turn_id":"t-1"}')
FULL = replace(
    PLAIN, revision=2, conversation=True, new=False, supersedes="t-0", counted_as="t", absorbs=("t-3",), root=ROOT,
    sources={"ground_truth": "dataset"}, decided=Decision("embed_x", 0.24),
    then=(Waiting("turn llm_y 0 1", "llm_y", Chance(0.1, "rate"), (Waiting("turn llm_z 0 1", "llm_z", Chance(1.0, "rule")),)),),
)  # fmt: skip
GATHERING = replace(
    PLAIN, gathering=Gathering(
        (Waiting("turn code_mean 0 1", "code_mean", Chance(0.5, "rate")),),
        {"turn llm_y 0 1": InnerOutcome(Score("llm_y", 0.5, detail={"reason": "a"}), Chance(0.5, "rate"), 0.01)},
        (Waiting("inner turn llm_z 0 1", "llm_z", Chance(1.0, "rule"), (), Decision("embed_x", None)),),
    ),
)  # fmt: skip


@pytest.mark.parametrize("payload", [PLAIN, FULL, GATHERING], ids=["plain", "full", "with composites"])
def test_a_payload_is_read_as_it_was_written(payload: Payload) -> None:
    read = Payload.decode(payload.encode())
    assert (read.root.trace_state or TraceState()).to_header() == (payload.root.trace_state or TraceState()).to_header()
    assert replace(read, root=payload.root) == payload
    assert replace(read.root, trace_state=None) == replace(payload.root, trace_state=None)


def test_a_payload_of_a_later_version_is_not_guessed_at() -> None:
    later = PLAIN.encode().replace(b'"v":1', b'"v":%d' % (VERSION + 1))
    with pytest.raises(NewerPayload):
        Payload.decode(later)


def config(models: ScriptedModels, path: Path) -> dict[str, Any]:
    server = {"base_url": models.url, "model": "scripted", "queue": {"backend": "sqlite", "path": str(path)}}
    return {"judge": {**server, "attempts": 2}, "inline": {"metrics": []}, "metrics": ["llm_relevance"]}


def test_a_job_of_a_later_version_stays_for_a_process_that_can_read_it(models: ScriptedModels, tmp_path: Path) -> None:
    models.play()
    clock = FakeClock()
    with Rig(config(models, tmp_path / "jobs.db"), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        judging.queue.put_many([Job("later", b'{"v":99,"form":"another"}\n')])
        for _ in range(5):
            assert judging.step()
            assert not judging.step()
            clock.advance(301)
        assert judging.queue.depth == 1
        assert judging.queue.dead_letters() == []
        assert rig.engine.failures == {}


def test_a_payload_that_is_none_ends_as_a_dead_letter(models: ScriptedModels, tmp_path: Path) -> None:
    models.play()
    clock = FakeClock()
    with Rig(config(models, tmp_path / "jobs.db"), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        judging.queue.put_many([Job("broken", b"\xff\n{}")])
        while judging.queue.depth:
            judging.step()
            clock.advance(301)
        assert [name for name, _ in judging.queue.dead_letters()] == ["broken"]
        assert rig.engine.failures == {"judging": 2}
