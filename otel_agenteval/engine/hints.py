"""What a user should know who wonders why no score comes: each thing is logged once, when it is certain enough.

``otel-agenteval doctor`` finds the same, and more, before anything runs.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from ..core.packages import broken
from ..dialects.capture import advice_for
from ..evaluation.scored_turn import ScoredTurn

if TYPE_CHECKING:
    from ..turns.roots import Group

_log = logging.getLogger("otel_agenteval")

SPANS_WITHOUT_TURN = 1_000
TURNS_WITHOUT_CONTENT = 20
TURNS_WITHOUT_SCORE = 100
_MOST_SCOPES = 8


class Hints:
    """Watches what comes and what comes of it, until each hint was given or is out of the question. Not thread-safe.

    Args:
        configured: names of the metrics that somebody asked for by name, and that are computed on turns.
    """

    def __init__(self, configured: Collection[str]) -> None:
        self._waits_for_turn = True
        self._waits_for_content = True
        self._without_content = 0
        self._scopes: dict[str, None] = {}
        self._never: dict[str, Counter[str]] = {name: Counter() for name in configured}
        """Metrics that have not applied to any turn, with the reasons."""
        self._turns = 0

    def look_at_spans(self, received: int) -> None:
        """So many spans have come."""
        if self._waits_for_turn and received >= SPANS_WITHOUT_TURN:
            self._waits_for_turn = False
            versions = broken()
            _log.warning(
                "%d spans came, and none of them is an agent's or a model's: %s `otel-agenteval doctor` looks", received,
                f"these trace nothing with the versions that are installed: {'; '.join(versions)}." if versions
                else "is an instrumentation for your framework installed and switched on?",
            )  # fmt: skip

    def look_at_group(self, scored: ScoredTurn, group: Group) -> None:
        """The spans of a turn and what was read of them. Costs next to nothing once a turn had content."""
        self._waits_for_turn = False
        if not self._waits_for_content:
            return
        turn = scored.turn
        if turn.output is not None or turn.input is not None:
            self._waits_for_content = False
            return
        self._without_content += 1
        for record in group.members:
            if len(self._scopes) < _MOST_SCOPES:
                self._scopes[record.scope] = None
        if self._without_content >= TURNS_WITHOUT_CONTENT:
            self._waits_for_content = False
            advice = advice_for([*self._scopes])
            _log.warning(
                "%d turns came, and none says what was asked or answered: most metrics skip them. %s", self._without_content,
                f"To capture content, set {advice}" if advice else "docs/guides/capture-content.md has what makes instrumentations capture content",
            )  # fmt: skip

    def look(self, done: Sequence[ScoredTurn]) -> None:
        """Turns that were scored. Costs next to nothing once every configured metric has applied."""
        if not self._never:
            return
        for scored in done:
            if not scored.of_turn_itself or scored.conversation or not scored.new:
                continue
            self._turns += 1
            for score in scored.scores:
                reasons = self._never.get(score.metric)
                if reasons is not None:
                    if score.status == "skipped":
                        reasons[str(score.detail.get("reason", "")) or "no reason"] += 1
                    else:
                        del self._never[score.metric]
        if self._turns >= TURNS_WITHOUT_SCORE:
            for name, reasons in sorted(self._never.items()):
                if reasons:
                    _log.warning(
                        "%s is configured, and applied to none of %d turns: %s. `otel-agenteval explain %s` says what it needs",
                        name, self._turns, reasons.most_common(1)[0][0], name,
                    )  # fmt: skip
            self._never = {}
