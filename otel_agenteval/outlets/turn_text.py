"""Text rendering of a turn and its scores for a terminal.

Failed scores come first with their reasons, then measured values, passed scores and skipped ones. Control characters in the
turn's text are removed, so that an agent can't send commands to the terminal.
"""

from __future__ import annotations

import os
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from ..core.score import Score
from ..core.turn import ToolCall, Turn
from .accounting import outcome

_LABEL = 12  # width of "  agent     "
NAME_WIDTH = 30
_UNITS = {"s": " s", "{token}": " tokens", "{level}": "/10"}
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"


def colours_wanted(stream: TextIO) -> bool:
    """Return True if the stream supports color. ``NO_COLOR`` and ``TERM=dumb`` disable it."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int:
    """Return the width of a table: the terminal's within limits, or 100 for a file or pipe."""
    return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 140) if stream.isatty() else 100


def render_turn(
    turn: Turn,
    scores: Sequence[Score],
    width: int = 100,
    *,
    title: str = "",
    colour: bool = False,
    clean: Callable[[str], str] = str,
) -> str:
    """Return the text of a turn and its scores. ``clean`` redacts the turn's texts."""
    paint = Paint(colour)
    lines = [_heading(title or turn.turn_id or "turn", width, paint)]
    lines += _labelled("", " · ".join(_facts_of(turn)), width, paint)
    lines += _labelled("user", _content(turn.input, clean), width, paint)
    if turn.tool_calls:
        lines += _labelled("tools", ", ".join(_calls(turn.tool_calls)), width, paint)
    lines += _labelled("agent", _content(turn.output, clean), width, paint)
    if turn.error is not None:
        lines += _labelled("error", _plain(turn.error.type or "unknown"), width, paint)
    lines.append("")
    lines += _score_lines(scores, width, paint)
    return "\n".join(lines) + "\n"


def render_scores(scores: Sequence[Score], width: int = 100, *, title: str, colour: bool = False) -> str:
    """Return the text of scores alone, for a turn printed before."""
    paint = Paint(colour)
    return "\n".join([_heading(title, width, paint), *_score_lines(scores, width, paint)]) + "\n"


def _heading(title: str, width: int, paint: Paint) -> str:
    heading = f"── {_plain(title)} "
    return paint(heading + "─" * max(0, width - len(heading)), BOLD)


class Paint:
    """ANSI colors, or plain text."""

    def __init__(self, on: bool) -> None:
        self._on = on

    def __call__(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._on and text else text


# --- the turn --------------------------------------------------------------------------------------------------------


def _facts_of(turn: Turn) -> Iterator[str]:
    yield _plain(turn.agent or "unnamed agent")
    if turn.llm_call_count is not None:
        yield number_of(turn.llm_call_count, "model call")
    if turn.tool_calls is not None:
        yield number_of(len(turn.tool_calls), "tool call")
    if turn.duration_s is not None:
        yield f"{turn.duration_s:.2f} s"
    yield (
        f"closed: {turn.close_reason or 'unknown'}"
        + ("" if turn.complete else ", incomplete")
        + (", truncated" if turn.truncated else "")
        + (", inferred" if turn.reading == "inferred" else "")
    )


def _content(text: str | None, clean: Callable[[str], str]) -> str:
    return "(not captured)" if text is None else _plain(clean(text)) or "(empty)"


def _calls(calls: Sequence[ToolCall]) -> Iterator[str]:
    """Yield tool names in order, with repeated ones counted: ``search ×3, book ✗``."""
    shown = [_plain(call.name or "?") + (" ✗" if call.error is not None else "") for call in calls]
    at = 0
    while at < len(shown):
        end = at
        while end < len(shown) and shown[end] == shown[at]:
            end += 1
        yield shown[at] if end - at == 1 else f"{shown[at]} ×{end - at}"
        at = end


def _labelled(label: str, text: str, width: int, paint: Paint) -> list[str]:
    first, *rest = textwrap.wrap(_plain(text), width - _LABEL, max_lines=2, placeholder=" …", break_on_hyphens=False) or [""]
    return [f"  {paint(f'{label:<{_LABEL - 2}}', DIM)}{first}", *(" " * _LABEL + line for line in rest)]


# --- its scores ------------------------------------------------------------------------------------------------------


def _score_lines(scores: Sequence[Score], width: int, paint: Paint) -> Iterator[str]:
    by_outcome: dict[str, list[Score]] = {word: [] for word in ("error", "fail", "ok", "pass", "skipped")}
    for score in scores:
        by_outcome["pass" if score.vacuous else outcome(score)].append(score)
    for score in by_outcome["error"]:
        why = f": {_plain(score.explanation)}" if score.explanation else ""
        yield from _row("!", YELLOW, score, f"error {score.error_type}{why}", width, paint)
    for score in by_outcome["fail"]:
        yield from _row("✗", RED, score, reason_of(score), width, paint)
    measured = [f"{short_name(score.metric)} {_value(score)}" for score in by_outcome["ok"]]
    passed = [_passed(score) for score in by_outcome["pass"]]
    skipped = [f"{short_name(score.metric)} ({_plain(str(score.detail.get('reason')))})" for score in by_outcome["skipped"]]
    yield from _list("·", BOLD, "measured", measured, width, paint)
    yield from _list("✓", GREEN, f"{len(passed)} passed", passed, width, paint)
    yield from _list("-", DIM, "skipped", skipped, width, paint)


def render_outcomes(outcomes: Mapping[str, str], scores: Sequence[Score], width: int = 100, *, colour: bool = False) -> str:
    """Return the text with each metric's outcome on a turn, failed scores first."""
    paint = Paint(colour)
    rows = {score.metric: score for score in scores}
    lines: list[str] = []
    for word, mark, code in (
        ("error", "!", YELLOW),
        ("fail", "✗", RED),
        ("ok", "·", BOLD),
        ("vacuous", "✓", GREEN),
        ("pass", "✓", GREEN),
    ):
        for score in (one for one in rows.values() if outcome(one) == word):
            lines += _row(mark, code, score, _said(score, word), width, paint)
    for name, became in sorted(outcomes.items(), key=lambda item: (item[1].startswith("skipped"), item)):
        if name not in rows:
            lines += [f"  {paint(f'- {_plain(name):<{NAME_WIDTH}}', DIM)} {_plain(became)}".rstrip()]
    return "\n".join(lines) + "\n"


def _said(score: Score, word: str) -> str:
    """Return a score in one line: why it failed, or its value, threshold and explanation."""
    if word == "error":
        return f"error {score.error_type}{f': {_plain(score.explanation)}' if score.explanation else ''}"
    if word == "fail":
        return reason_of(score)
    least = f" (at {'most' if score.direction == 'down' else 'least'} {score.threshold:g})" if score.threshold is not None else ""
    value = score.label if score.type == "boolean" and score.label else f"{_value(score)}{least}"
    text = f"{value}{', nothing to evaluate' if word == 'vacuous' else ''}"
    return f"{text}: {_plain(score.explanation)}" if score.explanation else text


def _row(mark: str, code: str, score: Score, note: str, width: int, paint: Paint) -> Iterator[str]:
    indent = 4 + NAME_WIDTH
    gate = "gate; " if score.policy == "gate" else ""
    first, *rest = textwrap.wrap(_plain(gate + note), width - indent, max_lines=3, placeholder=" …", break_on_hyphens=False) or [
        ""
    ]
    name = _plain(score.metric)
    name = name if len(name) < NAME_WIDTH else name + " "
    yield f"  {paint(f'{mark} {name:<{NAME_WIDTH}}' if first else f'{mark} {name}', code)}{first}"
    yield from (" " * indent + line for line in rest)


def _list(mark: str, code: str, label: str, items: Sequence[str], width: int, paint: Paint) -> Iterator[str]:
    if not items:
        return
    indent = 4 + 11
    # an item is never broken: its spaces are hidden from the wrapping
    text = ", ".join(_plain(item).replace(" ", "\0") for item in items)
    lines = [line.replace("\0", " ") for line in textwrap.wrap(text, width - indent, break_on_hyphens=False)]
    yield f"  {paint(f'{mark} {label:<11}', code)}{lines[0]}"
    yield from (" " * indent + line for line in lines[1:])


def reason_of(score: Score) -> str:
    """Return why a score failed, in one line: its explanation or threshold, and further facts."""
    about = _plain(score.explanation or "")
    if score.type == "numeric":
        bound = (
            f", {'at most' if score.direction == 'down' else 'at least'} {score.threshold:g} passes"
            if score.threshold is not None
            else ""
        )
        about = f"{_value(score)}: {about}" if about else _value(score) + bound
    return ": ".join(part for part in (about, "; ".join(_facts(score.detail, about))) if part)


def _facts(detail: Mapping[str, Any], shown: str) -> Iterator[str]:
    """Yield the texts in a detail that aren't shown yet, lists first."""
    listed = [value for value in detail.values() if isinstance(value, (list, tuple))]
    for items in listed:
        new = [_fact(item) for item in items if _head(item) not in shown]
        if new:
            yield ", ".join(new[:5]) + (", …" if len(new) > 5 else "")
    for key, value in detail.items():
        if isinstance(value, str) and value and _plain(value) not in shown:
            yield f"{key.replace('_', ' ')} {_plain(value)}"


def _head(item: Any) -> str:
    """Return the name of an item in a list: the first value of a mapping."""
    return _plain(str(next(iter(item.values()), "") if isinstance(item, Mapping) else item))


def _fact(item: Any) -> str:
    if not isinstance(item, Mapping):
        return _head(item)
    facts = [f"{key} {_plain(str(value))}" for key, value in list(item.items())[1:] if isinstance(value, str) or key == "count"]
    return _head(item) + (f" ({', '.join(facts)})" if facts else "")


def _passed(score: Score) -> str:
    if score.type == "boolean" or score.vacuous:
        return short_name(score.metric)
    return f"{short_name(score.metric)} {_value(score)}"


def _value(score: Score) -> str:
    if score.value is None:
        return score.label or "–"
    if score.type == "boolean":
        return "yes" if score.value else "no"
    if score.unit == "USD":
        return f"${score.value:.{4 if score.value >= 0.001 else 6}f}"
    number = f"{score.value:,.0f}" if score.value.is_integer() else f"{score.value:.3g}"
    return number + _UNITS.get(score.unit, "")


# --- text ------------------------------------------------------------------------------------------------------------


def _plain(text: str) -> str:
    """Return the text on one line, without control characters."""
    return " ".join("".join(ch if ch.isprintable() else " " if ch.isspace() else "�" for ch in text[:2_000]).split())


def one_line(text: str, limit: int = 300) -> str:
    """Return text without line breaks or control characters, truncated to ``limit``."""
    plain = " ".join("".join(ch if ch.isprintable() else " " if ch.isspace() else "�" for ch in text[: 4 * limit]).split())
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"


def short_name(name: str) -> str:
    return name.removeprefix("code_")


def number_of(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
