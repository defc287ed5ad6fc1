"""What of a turn's content may leave this process: for a queue and a judge, and beside its scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ..core import jsonio
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.redaction import Exporter, Redactor
from ..evaluation.scored_turn import ScoredTurn


class Content:
    """Applies the configured privacy to turns that are judged.

    Args:
        redact: kinds of personal data that are taken out before a turn becomes a job.
        exporter: what log events say of a turn's content; None is nothing.
    """

    def __init__(self, redact: Collection[str], exporter: Exporter | None) -> None:
        self._redact = redact
        self._exporter = exporter

    def written(self, scored: ScoredTurn) -> bytes:
        """The turn in form ``turn.v1``, JSON, as it leaves for a queue and a judge."""
        content = scored.turn.to_dict()
        if self._redact:
            content = (scored.redactor or Redactor(self._redact)).turn(content)
        return jsonio.dumps(content).encode()

    def score(self, score: Score, scored: ScoredTurn) -> Score:
        """A score of the turn, as it leaves for a queue beside it."""
        return (scored.redactor or Redactor(self._redact)).score(score) if self._redact else score

    def exported(self, turn: Turn, redactor: Redactor | None = None) -> Mapping[str, str]:
        """What leaves with the turn's scores, by attribute."""
        return {} if self._exporter is None else self._exporter(turn, redactor)
