"""Redaction of turn content for queues, judges and exported scores."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ..core import jsonio
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.redaction import Exporter, Redactor
from ..evaluation.scored_turn import ScoredTurn


@dataclass(eq=False)
class ContentFilter:
    _redact: Collection[str]
    _exporter: Exporter | None

    def written(self, scored: ScoredTurn) -> bytes:
        """Return the redacted turn as JSON in ``turn.v1`` form, for a queue and a judge."""
        content = scored.turn.to_dict()
        if self._redact:
            content = (scored.redactor or Redactor(self._redact)).turn(content)
        return jsonio.dumps(content).encode()

    def score(self, score: Score, scored: ScoredTurn) -> Score:
        return (scored.redactor or Redactor(self._redact)).score(score) if self._redact else score

    def exported(self, turn: Turn, redactor: Redactor | None = None) -> Mapping[str, str]:
        return {} if self._exporter is None else self._exporter(turn, redactor)
