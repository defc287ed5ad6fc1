"""Which scores of a turn leave as events. Whatever counts as one is decided here, for span events, log events and OTLP alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..config.types import LogEvents
from ..core.score import Score
from ..evaluation.scored_turn import ScoredTurn

if TYPE_CHECKING:
    from ..config.root import Config

__all__ = ["LogEvents", "is_notable", "log_mode", "scores_sent", "scores_to_log"]


def is_notable(score: Score) -> bool:
    """Whether a score is one that somebody should look at: failed, an error, or of a gate."""
    return score.status == "error" or (score.status == "ok" and (score.policy == "gate" or score.verdict is False))


def scores_sent(scored: ScoredTurn) -> list[Score]:
    """The scores that leave at all: skipped ones are only counted."""
    return [score for score in scored.scores if score.status != "skipped"]


def scores_to_log(scored: ScoredTurn, mode: LogEvents) -> list[Score]:
    """The scores of a turn that leave as log events.

    Args:
        scored: the turn.
        mode: ``all`` of them, ``notable`` ones, none (``off``), or (``auto``) those that the exported root span does not carry.
    """
    if mode == "notable":
        return [score for score in scored.scores if is_notable(score)]
    carried = scored.on_span
    if mode == "auto" and carried:
        return [score for place, score in enumerate(scored.scores) if score.status != "skipped" and place not in carried]
    return scores_sent(scored) if mode != "off" else []


def log_mode(wanted: LogEvents, config: Config) -> LogEvents:
    """What an outlet's ``log_events`` means beside the rest of the configuration: only log events carry content, so with it all leave."""
    return "all" if wanted == "auto" and config.privacy.export_content else wanted
