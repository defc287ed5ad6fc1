"""A turn and its scores for a person at a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from .model import Turn
from .score import Score

_UNITS = {"s": " s", "{token}": " tokens", "USD": " USD", "{item}": "", "{level}": " / 10", "1": ""}


def render_turn(turn: Turn, scores: Sequence[Score], width: int = 100) -> str:
    """A heading with what happened, and one line per score; skipped metrics share the last line."""
    calls = turn.tool_calls or []
    seconds = f"{turn.duration_s:.2f} s" if turn.duration_s is not None else "duration unknown"
    facts = [turn.agent or "no agent name", f"{turn.llm_call_count or 0} model calls", f"{len(calls)} tool calls", seconds]
    facts.append(f"closed: {turn.close_reason}" + ("" if turn.complete else " (incomplete)"))
    lines = [f"── turn {turn.turn_id[:12]}…{turn.turn_id[-8:]} " + "─" * max(0, width - 31), f"   {' · '.join(facts)}"]
    for label, text in (("user ", turn.input), ("agent", turn.output)):
        lines.append(f"   {label}  {_short(text, width - 12)}")
    if calls:
        lines.append(f"   tools  {_short(', '.join(call.name + (' ✗' if call.error else '') for call in calls), width - 12)}")
    if turn.error is not None:
        lines.append(f"   error  {turn.error.type}")
    for score in scores:
        if score.status != "skipped":
            lines.append(_line(score, width))
    skipped = [f"{score.metric.removeprefix('code_')} ({score.detail.get('reason')})" for score in scores if score.status == "skipped"]
    if skipped:
        lines.append(f"   skipped: {', '.join(skipped)}")
    return "\n".join(lines) + "\n"


def _line(score: Score, width: int) -> str:
    if score.status == "error":
        return f"   ! {score.metric:<30} error: {score.error_type}"
    mark = " " if score.passed is None else "✓" if score.passed else "✗"
    value = f"{score.value:.4g}{_UNITS.get(score.unit, ' ' + score.unit)}"
    note = "nothing to evaluate" if score.vacuous else score.explanation or ""
    return f"   {mark} {score.metric:<30} {value:<14} {_short(note, width - 50)}".rstrip()


def _short(text: str | None, width: int) -> str:
    if text is None:
        return "(not captured)"
    flat = " ".join(text.split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"
