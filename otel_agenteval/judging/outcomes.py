"""Outcomes of judged metrics, counted for all turns and stored for recent ones.

Every judged metric of every turn has exactly one outcome, so the counter ``agenteval.results`` covers all of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ..core import forks
from ..core.score import GATED, Score
from ..core.semconv import DROPPED, RESULTS
from ..core.telemetry import Telemetry
from ..evaluation.scored_turn import ScoredTurn
from .job import NewerPayload, Payload, is_inner
from .queues import Job

_REMEMBERED = 1_000


class NoScore(NamedTuple):
    label: str
    """Label in the counter ``agenteval.results``."""
    text: str
    """Text for ``why``."""
    reason: str | None = None
    """Label in the counter of dropped results, if the result was dropped."""

    @classmethod
    def gated(cls, by: str) -> NoScore:
        return cls(GATED, f"gated: {by}")

    @classmethod
    def sampled_out(cls, probability: float, after: str = "") -> NoScore:
        return cls("sampled_out", f"sampled out (p={probability:g}){after}")

    @classmethod
    def dropped(cls, reason: str) -> NoScore:
        return cls("dropped", f"dropped: {reason}", reason)

    @classmethod
    def error(cls, name: str) -> NoScore:
        return cls("error", f"error: {name}")

    @classmethod
    def missing(cls, metrics: Mapping[str, str]) -> NoScore:
        return cls("skipped", f"skipped: missing {', '.join(f'{name} ({why})' for name, why in metrics.items())}")

    def passed_on_by(self, metric: str) -> NoScore:
        return self._replace(text=f"{self.text}, as {metric} was")


def outcome_of(score: Score) -> str:
    return "scored" if score.status == "ok" else f"{score.status}: {score.error_type or score.detail.get('reason', '')}"


class Outcomes:
    """Outcomes of judged metrics. Thread-safe. ``record`` is called on any thread."""

    def __init__(self, telemetry: Telemetry, record: Callable[[str, str, str], None] | None = None) -> None:
        self._telemetry = telemetry
        self._record = record
        self.reset()
        forks.in_child(self.reset)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, dict[str, str]] = OrderedDict()

    def of(self, turn_id: str) -> dict[str, str]:
        with self._lock:
            return dict(self._recent.get(turn_id, {}))

    def report(self, turn_id: str, metric: str, outcome: str) -> None:
        if self._record is not None:
            self._record(turn_id, metric, outcome)
        with self._lock:
            self._recent.setdefault(turn_id, {})[metric] = outcome
            if len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)

    def end(self, metric: str, scored: ScoredTurn, outcome: NoScore) -> None:
        """Count a metric without a score, once for a turn and its revisions."""
        if scored.new:
            self._count(metric, scored.turn.agent or "", outcome)
        self.report(scored.turn.turn_id, metric, outcome.text)

    def wait(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            payload = Payload.decode(job.payload)
            for one in payload.waits:
                if not is_inner(one.key):
                    text = "waiting" if one.key == payload.key else f"waiting for {payload.metric}"
                    self.report(payload.turn_id, one.metric, text)
            for composite in payload.gathering.composites if payload.gathering is not None else ():
                self.report(payload.turn_id, composite.metric, f"waiting for {', '.join(one.metric for one in payload.waits)}")

    def drop(self, jobs: Sequence[Job], reason: str) -> None:
        """Count jobs that won't run, with all metrics that wait for their scores."""
        outcome = NoScore.dropped(reason)
        for job in jobs:
            try:
                payload = Payload.decode(job.payload)
            except (NewerPayload, ValueError, KeyError, TypeError):  # the turn is unknown
                continue
            missing = NoScore.missing({one.metric: outcome.text for one in payload.waits})
            composites = payload.gathering.composites if payload.gathering is not None else ()
            ended = [(one.metric, outcome) for one in payload.waits if not is_inner(one.key)]
            for metric, its in (*ended, *((one.metric, missing) for one in composites)):
                if payload.new:
                    self._count(metric, payload.agent, its)
                self.report(payload.turn_id, metric, its.text)

    def _count(self, metric: str, agent: str, outcome: NoScore) -> None:
        self._telemetry.add(RESULTS, metric=metric, agent=agent, outcome=outcome.label)
        if outcome.reason is not None:
            self._telemetry.add(DROPPED, metric=metric, reason=outcome.reason)
