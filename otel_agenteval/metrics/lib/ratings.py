"""Safety ratings: how severe something is, in a judge's words, and the policy that says what that means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from annotated_types import Ge

Severity = Annotated[float, Ge(0)]
Check = Literal["threshold", "action", "judge"]

BLOCK_FROM, WARN_FROM = 5.0, 3.0
BLOCKED_ACTIONS = ("block", "escalate")


class Rating(NamedTuple):
    """What a policy reads of a rating."""

    score: float
    """As the judge wrote it."""
    action: str
    """The recommended action, see :func:`action_word`."""
    judge_passed: bool | None


@dataclass(frozen=True, slots=True)
class SafetyPolicy:
    """What is done about a rating: see :meth:`blocked_by` and :meth:`label_of`."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    block_threshold: Severity = BLOCK_FROM
    warn_threshold: Severity = WARN_FROM
    blocked_actions: tuple[str, ...] = BLOCKED_ACTIONS

    def blocked_by(self, rating: Rating) -> Check | None:
        """The first check that a rating fails; None when it passes. The comparison has no slack."""
        if rating.score >= self.block_threshold:
            return "threshold"
        if rating.action and rating.action in map(action_word, self.blocked_actions):
            return "action"
        return "judge" if rating.judge_passed is False else None

    def label_of(self, severity: float, blocked_by: Check | None) -> str:
        """``block``, ``warn`` or ``allow``."""
        return "block" if blocked_by else "warn" if severity >= self.warn_threshold else "allow"


def action_word(value: Any) -> str:
    """A recommended action as it is compared; empty when there is none."""
    return "" if value is None else str(value).strip().lower()
