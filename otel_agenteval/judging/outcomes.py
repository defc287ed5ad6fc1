"""What became of each judged metric on each turn: told for recent turns, and counted once for all."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence

from ..core.score import Score
from ..core.semconv import DROPPED, RESULTS
from ..core.telemetry import Telemetry
from ..evaluation.scored_turn import ScoredTurn
from .job import head_in, names_in
from .queues import Job

_RING = 1_000


def fate_of(score: Score) -> str:
    """What is said of a metric that has a score."""
    return "scored" if score.status == "ok" else f"{score.status}: {score.error_type or score.detail.get('reason', '')}"


class Fates:
    """The account of judged metrics. Thread-safe.

    Args:
        telemetry: where outcomes are counted.
        note: called, on any thread, with turn id, metric and fate.
    """

    def __init__(self, telemetry: Telemetry, note: Callable[[str, str, str], None] | None = None) -> None:
        self._telemetry = telemetry
        self._note = note
        self.reset()

    def reset(self) -> None:
        """Forget the turns: they are the parent's."""
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, dict[str, str]] = OrderedDict()

    def of(self, turn_id: str) -> dict[str, str]:
        """For each judged metric what became of it on a recent turn."""
        with self._lock:
            return dict(self._recent.get(turn_id, {}))

    def tell(self, turn_id: str, metric: str, fate: str) -> None:
        """How it stands with a metric on a turn."""
        if self._note is not None:
            self._note(turn_id, metric, fate)
        with self._lock:
            self._recent.setdefault(turn_id, {})[metric] = fate
            if len(self._recent) > _RING:
                self._recent.popitem(last=False)

    def end(self, metric: str, scored: ScoredTurn, outcome: str, fate: str, reason: str | None = None) -> None:
        """No score comes of a metric: count that, once per turn, not again for its revisions."""
        if scored.new:
            self._count(metric, scored.turn.agent or "", outcome, reason)
        self.tell(scored.turn.turn_id, metric, fate)

    def wait(self, jobs: Sequence[Job]) -> None:
        """Jobs go into the queue."""
        for job in jobs:
            head = head_in(job)
            self.tell(head["turn_id"], head["metric"], "waiting")
            for name in names_in(head["then"]):
                self.tell(head["turn_id"], name, f"waiting for {head['metric']}")

    def drop(self, jobs: Sequence[Job], reason: str) -> None:
        """Jobs that nobody will do, with what waits for their scores."""
        for job in jobs:
            head = head_in(job)
            for metric in (head["metric"], *names_in(head.get("then", ()))):
                if head["new"]:
                    self._count(metric, head["agent"], "dropped", reason)
                self.tell(head["turn_id"], metric, f"dropped: {reason}")

    def _count(self, metric: str, agent: str, outcome: str, reason: str | None) -> None:
        self._telemetry.add(RESULTS, metric=metric, agent=agent, outcome=outcome)
        if reason is not None:
            self._telemetry.add(DROPPED, metric=metric, reason=reason)
