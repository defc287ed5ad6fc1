"""Define safety ratings and the policy that turns a rating into a decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from annotated_types import Ge

Severity = Annotated[float, Ge(0)]
Check = Literal["threshold", "action", "judge"]

BLOCK_FROM, WARN_FROM = 5.0, 3.0
BLOCKED_ACTIONS = ("block", "escalate")


class Rating(NamedTuple):
    score: float
    action: str
    """Recommended action, normalized by :func:`action_word`."""
    judge_passed: bool | None


@dataclass(frozen=True, slots=True)
class SafetyPolicy:
    """Thresholds and actions that decide if a rating is blocked or causes a warning."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    block_threshold: Severity = BLOCK_FROM
    warn_threshold: Severity = WARN_FROM
    blocked_actions: tuple[str, ...] = BLOCKED_ACTIONS

    def blocked_by(self, rating: Rating) -> Check | None:
        """Return the first check that a rating fails, or None. The comparison has no tolerance."""
        if rating.score >= self.block_threshold:
            return "threshold"
        if rating.action and rating.action in map(action_word, self.blocked_actions):
            return "action"
        return "judge" if rating.judge_passed is False else None

    def label_of(self, severity: float, blocked_by: Check | None) -> str:
        return "block" if blocked_by else "warn" if severity >= self.warn_threshold else "allow"


def action_word(value: Any) -> str:
    """Return a recommended action in normalized form, or an empty text for None."""
    return "" if value is None else str(value).strip().lower()
