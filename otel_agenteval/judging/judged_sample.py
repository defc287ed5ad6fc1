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

    def record_turn(self, metric: str, key: str, scored: ScoredTurn, proxies: tuple[float, float, float] | None) -> None:
        """Record a turn that takes part in a metric's draw."""
        for estimates in self._estimates_of(metric, key, scored) if proxies is not None else ():
            estimates.add_proxies(metric, scored.turn.agent or "", scored.first_id, proxies or ())

    def record_choice(self, metric: str, key: str, scored: ScoredTurn, chance: Chance) -> None:
        """Record a planned judge call. If it isn't answered, similar turns stand in for it."""
        for estimates in self._estimates_of(metric, key, scored):
            estimates.choose(metric, scored.turn.agent or "", chance.probability, group_of(chance.by), scored.first_id)

    def make_certain(self, metric: str, key: str, scored: ScoredTurn) -> None:
        """Let an already drawn turn stand only for itself, because a rule now chooses it."""
        for estimates in self._estimates_of(metric, key, scored):
            estimates.make_certain(metric, scored.first_id)

    def record_scores(self, scored: ScoredTurn) -> None:
        judged, turn = scored.judged, scored.turn
        if judged is None:
            return
        agent, trace = turn.agent or "", qualified(turn.tenant, f"{scored.root.trace_id:032x}")
        group = group_of(judged.decided_by) if judged.called_model else "itself"
        for score in scored.scores:
            if score.status != "ok" or score.value is None or score.vacuous:
                continue
            for estimates in self._estimates_of(score.metric, "", scored):
                value = score.value if estimates is self.estimates else score.verdict
                if value is not None:
                    estimates.add(
                        score.metric, agent, trace, scored.first_id, float(value), judged.probability, group, turn.revision, scored.absorbs,
                    )  # fmt: skip

    def _estimates_of(self, metric: str, key: str, scored: ScoredTurn) -> tuple[Estimates, ...]:
        if scored.conversation or is_inner(key):
            return ()
        if self.corrected is None or metric not in self.corrected.confusions:
            return (self.estimates,)
        return (self.estimates, self.corrected.verdicts)
