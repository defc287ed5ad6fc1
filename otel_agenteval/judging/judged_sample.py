"""Estimates for all turns, which judged turns feed."""

from __future__ import annotations

from ..core.telemetry import Telemetry
from ..core.tenancy import qualified
from ..evaluation.scored_turn import ScoredTurn
from ..statistics.corrected import Corrected
from ..statistics.estimates import Estimates, group_of
from .job import is_inner
from .sampling import Chance


class JudgedSample:
    """The judged turns as a sample of all turns, without conversations and inner metrics."""

    def __init__(self, estimates: Estimates, corrected: Corrected | None = None) -> None:
        self.estimates = estimates
        self.corrected = corrected

    def watch(self, telemetry: Telemetry) -> None:
        self.estimates.watch(telemetry)
        if self.corrected is not None:
            self.corrected.watch(telemetry)

    def see(self, metric: str, key: str, scored: ScoredTurn, proxies: tuple[float, float, float] | None) -> None:
        if proxies is not None and _counts(scored, key):
            for estimates in self._estimates_of(metric):
                estimates.add_proxies(metric, scored.turn.agent or "", scored.first_id, proxies)

    def choose(self, metric: str, key: str, scored: ScoredTurn, chance: Chance) -> None:
        """Record a planned judge call. If it isn't answered, similar turns stand in for it."""
        if _counts(scored, key):
            for estimates in self._estimates_of(metric):
                agent = scored.turn.agent or ""
                estimates.choose(metric, agent, chance.probability, group_of(chance.by), scored.first_id)

    def make_certain(self, metric: str, key: str, scored: ScoredTurn) -> None:
        """Let an already drawn turn stand only for itself, because a rule now chooses it."""
        if _counts(scored, key):
            for estimates in self._estimates_of(metric):
                estimates.make_certain(metric, scored.first_id)

    def add(self, scored: ScoredTurn) -> None:
        judged, turn = scored.judged, scored.turn
        if judged is None or scored.conversation:
            return
        agent, trace = turn.agent or "", qualified(turn.tenant, f"{scored.root.trace_id:032x}")
        group = group_of(judged.decided_by) if judged.called_model else "itself"
        for score in scored.scores:
            if score.status != "ok" or score.value is None or score.vacuous:
                continue
            for estimates in self._estimates_of(score.metric):
                value = score.value if estimates is self.estimates else score.verdict
                if value is not None:
                    estimates.add(
                        score.metric, agent, trace, scored.first_id, float(value), judged.probability, group, turn.revision, scored.absorbs,
                    )  # fmt: skip

    def _estimates_of(self, metric: str) -> tuple[Estimates, ...]:
        if self.corrected is None or metric not in self.corrected.confusions:
            return (self.estimates,)
        return (self.estimates, self.corrected.verdicts)


def _counts(scored: ScoredTurn, key: str) -> bool:
    return not scored.conversation and not is_inner(key)
