"""Selection and attributes of a turn's scores for events, shared by span events, log events and OTLP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..config.types import LogEvents
from ..core import semconv
from ..core.score import Score
from ..evaluation.scored_turn import ScoredTurn

if TYPE_CHECKING:
    from ..config.root import Config


def is_notable(score: Score) -> bool:
    """Return True if a score needs attention: it failed, is an error or belongs to a gate."""
    return score.status == "error" or (score.status == "ok" and (score.policy == "gate" or score.verdict is False))


def severity_number(score: Score) -> int:
    """Return the severity of a score's log record, by OpenTelemetry's numbers: 9 INFO, 13 WARN or 17 ERROR."""
    severity = score.summary.severity
    if severity == "critical":
        return 17
    return 13 if severity == "warning" or score.status == "error" else 9


def add_result(found: dict[str, Any], score: Score) -> None:
    """Add the attributes of a score's result to its event, except for an error."""
    if score.status == "error":
        found[semconv.ERROR_TYPE] = score.error_type or "_OTHER"
        return
    if score.value is not None:
        found[semconv.SCORE_VALUE] = float(score.value)
    if score.label is not None:
        found[semconv.SCORE_LABEL] = score.label
    summary = score.summary
    if summary.verdict is not None:
        found[semconv.PASSED] = summary.verdict
    if summary.severity is not None:
        found[semconv.SEVERITY] = summary.severity


def scores_sent(scored: ScoredTurn) -> list[Score]:
    """Return the scores that outlets emit. Skipped ones are only counted."""
    return [score for score in scored.scores if score.status != "skipped"]


def scores_to_log(scored: ScoredTurn, mode: LogEvents) -> list[Score]:
    """Return the scores for log events. ``auto``: those that the exported root doesn't have."""
    if mode == "notable":
        return [score for score in scored.scores if is_notable(score)]
    carried = scored.on_span
    if mode == "auto" and carried:
        return [score for place, score in enumerate(scored.scores) if score.status != "skipped" and place not in carried]
    return scores_sent(scored) if mode != "off" else []


def log_mode(wanted: LogEvents, config: Config) -> LogEvents:
    """Return the effective mode: ``all`` instead of ``auto`` if log events contain content."""
    return "all" if wanted == "auto" and config.privacy.export_content else wanted
