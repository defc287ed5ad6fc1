"""A judge that is dead for an hour: bounded memory and disk, an agent that notices nothing, and work that goes on in its order."""

from __future__ import annotations

import gc
import re
from pathlib import Path
from typing import Any

import psutil
import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.circuit_breaker import CircuitBreaker
from otel_agenteval.judging import factory
from otel_agenteval.judging.models import judge_from
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

GOOD = {"score": 90, "reason": "It answers."}
METRIC = "llm_relevance"
BOUND = 1024 * 1024


class Dying(ScriptedModels):
    """Answers nothing while it is dead, and keeps count."""

    dead = True
    tried = 0

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.dead:
            self.tried += 1
            return 503, {"error": {"message": "down"}}
        return super().answer(path, body)


@pytest.fixture
def dying() -> Any:
    models = Dying()
    yield models
    models.close()


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["memory", "sqlite"])
def test_an_hour_without_a_judge_and_what_follows(
    dying: Dying, backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setattr(
        factory, "judge_from", lambda config: judge_from(config, clock=clock, sleep=lambda seconds: clock.advance(0.1))
    )
    file = tmp_path / "q.db"
    queue: dict[str, Any] = {"max_bytes": BOUND, "max_age": "45m", "lease": "10m"}
    queue |= {"backend": "sqlite", "path": str(file)} if backend == "sqlite" else {}
    sampled = {METRIC: {}, "sample": {"rate": 1, "always_if": "agent == 'vip'"}}
    given = {
        "judge": {"base_url": dying.url, "model": "m", "queue": queue, "attempts": 2, "deadline": "3s"},
        "metrics": [sampled], "inline": {"metrics": []},
    }  # fmt: skip
    with Rig(given, clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False  # the test does what its threads would
        claimed = _counting(judging.queue, monkeypatch)
        sizes, memory = [], []
        for minute in range(60):
            for number in range(10):
                rig.run("vip" if number == 0 else "bot", says=f"{minute}.{number} {'x' * 2_000}")
            rig.turns()
            rig.kept.clear()
            rig._spans.clear()
            rig._logs.clear()
            for _ in range(200):
                if not judging.step():
                    break
            clock.advance(60)
            sizes.append(judging.queue.bytes)
            if minute in (20, 59):
                gc.collect()
                memory.append(psutil.Process().memory_info().rss)
        assert max(sizes) <= BOUND
        assert max(sizes) > BOUND * 0.9  # it was full indeed
        assert memory[1] - memory[0] < 8 * 2**20, memory
        if backend == "sqlite":
            on_disk = sum(one.stat().st_size for one in tmp_path.iterdir())
            assert on_disk < 4 * BOUND + 6 * 2**20, on_disk  # the file, and a log that is emptied every thousand pages
        assert dying.tried < 120, dying.tried  # it was left alone
        assert claimed[0] < 60 * 40  # and the jobs too
        dropped = {key[1]: value for key, value in rig.count(semconv.RESULTS).items() if key[2] == "dropped"}
        assert dropped["bot"] > 300
        assert rig.count(semconv.DROPPED).keys() <= {(METRIC, "queue_full"), (METRIC, "too_old")}
        before = rig.count(semconv.RESULTS)
        assert not any(key[2] in ("pass", "error") for key in before), before  # no job was used up in trying

        # --- it is back
        waiting = judging.queue.depth
        dying.dead = False
        dying.play(*[GOOD] * waiting)
        for _ in range(40):
            clock.advance(30)
            while judging.step():
                pass
            assert rig.engine.flush(10)
            if not judging.queue.depth:
                break
        assert judging.queue.depth == 0
        answers = [_said(text) for text in dying.asked]
        vips = [one for one in answers if one[1] == 0]
        others = [one for one in answers if one[1] != 0]
        assert answers == [*sorted(vips), *sorted(others)]  # the most valuable first, and of those the oldest
        assert len(vips) > 40
        assert len(others) > 20
        assert min(answers)[0] >= 14  # what is older than 45 minutes nobody wants to know any more
        assert rig.engine.flush(10)
        results = rig.count(semconv.RESULTS)
        assert sum(results.values()) == 600
        assert results[(METRIC, "bot", "pass")] + results[(METRIC, "vip", "pass")] == len(answers)
        assert rig.count(semconv.DROPPED)[(METRIC, "too_old")] > 0


def _counting(queue: Any, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many jobs were claimed."""
    claimed, claim = [0], queue.claim

    def counted(n: int, lease: float) -> Any:
        found = claim(n, lease)
        claimed[0] += len(found)
        return found

    monkeypatch.setattr(queue, "claim", counted)
    return claimed


def _said(question: str) -> tuple[int, int]:
    """Minute and number of the turn that a question is about."""
    minute, number = re.search(r"(\d+)\.(\d+) xx", question).groups()
    return int(minute), int(number)


# --- one outage


def test_during_an_outage_all_wait_for_the_same_moment_and_one_tries() -> None:
    clock = FakeClock()
    outage = CircuitBreaker(clock)
    assert outage.enter() == (0.0, False)
    outage.leave(False, None, down=True)
    assert outage.enter() == (30.0, False)
    clock.advance(31)
    assert outage.enter() == (0.0, True)
    assert outage.enter() == (None, False)  # another one tries
    outage.leave(True, False)
    assert outage.enter() == (30.0, False)
    clock.advance(31)
    assert outage.enter() == (0.0, True)
    outage.leave(True, True)
    assert outage.enter() == (0.0, False)


def test_the_longer_an_outage_lasts_the_longer_are_its_pauses() -> None:
    clock = FakeClock()
    outage = CircuitBreaker(clock)
    outage.leave(False, None, down=True)
    pauses = []
    for _ in range(24):
        wait, _ = outage.enter()
        assert wait
        pauses.append(round(wait))
        clock.advance(wait + 0.001)
        assert outage.enter() == (0.0, True)
        outage.leave(True, False)
    assert pauses[0] == 30
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300


def test_a_try_that_asks_nothing_says_nothing_about_the_server() -> None:
    clock = FakeClock()
    outage = CircuitBreaker(clock)
    outage.leave(False, None, down=True)
    clock.advance(31)
    assert outage.enter() == (0.0, True)
    outage.leave(True, None)
    assert outage.enter() == (0.0, True)


def test_a_dead_judge_does_not_hold_up_the_embedder(dying: Dying) -> None:
    dying.play(vectors={"What is the capital of France?": [1.0, 0.0], "Paris.": [1.0, 0.0]})
    server = {"base_url": dying.url, "model": "m"}
    with Rig(
        {
            "judge": {**server, "deadline": "1s"},
            "embedder": server,
            "metrics": [METRIC, "embed_coherence"],
            "inline": {"metrics": []},
        }
    ) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging._runner.breakers.of("llm").leave(False, None, down=True)
        dying.dead = False
        for _ in range(3):
            rig.run()
        assert not rig.engine.drain(2, judges=True)
        assert {key[0]: value for key, value in rig.count(semconv.RESULTS).items()} == {"embed_coherence": 3}
        why = rig.engine.why(rig.turns()[0].turn_id) or {}
        assert why[METRIC] == "waiting: circuit_open"
