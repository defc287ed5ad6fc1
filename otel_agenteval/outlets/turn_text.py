"""Text rendering of a turn and its scores for a terminal.

Errors and failed scores come first, with their reasons. Measured values follow, then the other scores. Control characters in turn
texts are replaced, so that an agent can't send commands to the terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TextIO

from ..core.display import NEEDED
from ..core.finding import describe, findings_in
from ..core.score import Score
from ..core.turn import ToolCall, Turn, usd_text

_LABEL = 12  # width of "  agent     "
NAME_WIDTH = 30
_FINDING = 13  # width of "    critical "
_SHORT_LABEL = 25
_UNITS = {"s": " s", "{token}": " tokens", "{level}": "/10", "/100": "/100"}
BOLD, DIM, RED, GREEN, YELLOW = "1", "2", "31", "32", "33"
_SEVERITIES = {"critical": RED, "warning": YELLOW}
_SPACES = re.compile(r"\s+")
_MARKS = {"error": ("!", YELLOW), "fail": ("✗", RED), "ok": ("·", BOLD), "vacuous": ("✓", GREEN), "pass": ("✓", GREEN)}


def colors_wanted(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def columns(stream: TextIO) -> int:
    """Return the table width (60 to 140): the variable ``COLUMNS`` or, if unset, the terminal width. If unknown, return 100."""
    is_known = stream.isatty() or os.environ.get("COLUMNS")
    return min(max(shutil.get_terminal_size((100, 24)).columns, 60), 140) if is_known else 100


def short_id(turn_id: str, is_conversation: bool) -> str:
    """Shorten a turn ID to the tenant and the ID's first 8 characters. Return a conversation ID unchanged."""
    return turn_id if is_conversation else turn_id[: turn_id.find(":") + 9]


def render_turn(
    turn: Turn,
    scores: Sequence[Score],
    width: int = 100,
    *,
    title: str = "",
    color: bool = False,
    clean: Callable[[str], str] = str,
) -> str:
    text = _Text(width, color)
    text.add_heading(title or turn.turn_id or "turn")
    text.add_line("", " · ".join(_facts_of(turn)))
    absent = "(not captured)" if turn.input is turn.output is None else "(none)"
    text.add_line("user", _content(turn.input, clean, absent))
    if turn.tool_calls:
        text.add_line("tools", ", ".join(_calls(turn.tool_calls)))
    text.add_line("agent", _content(turn.output, clean, absent))
    if turn.error is not None:
        text.add_line("error", turn.error.type or "unknown")
    text.lines.append("")
    text.add_scores(scores)
    return str(text)


def render_scores(scores: Sequence[Score], width: int = 100, *, title: str, color: bool = False) -> str:
    text = _Text(width, color)
    text.add_heading(title)
    text.add_scores(scores)
    return str(text)


def render_outcomes(
    outcomes: Mapping[str, str],
    scores: Sequence[Score],
    width: int = 100,
    *,
    evidence: Mapping[str, Sequence[Mapping[str, Any]]],
    color: bool = False,
) -> str:
    """Return each metric's outcome as text. Errors and failed scores come first. ``evidence`` contains each metric's findings, as
    returned by ``with_evidence``.
    """
    text = _Text(width, color)
    by_metric = {score.metric: score for score in scores}
    for word, (mark, code) in _MARKS.items():
        for score in by_metric.values():
            if score.summary.outcome == word:
                findings = evidence.get(score.metric, ())
                text.add_score(mark, code, score, _result_of(score, word, facts=not findings))
                for finding in findings:
                    text.add_finding(finding)
                count = score.detail.get("count")
                if findings and isinstance(count, int) and count > len(findings):
                    text.lines.append(f"    … and {number_of(count - len(findings), 'more finding')}")
    for name, became in sorted(outcomes.items(), key=lambda item: (item[1].startswith("skipped"), item)):
        if name not in by_metric:
            text.lines.append(f"  {text.paint(f'- {_plain(name):<{NAME_WIDTH}}', DIM)} {_plain(became)}".rstrip())
    return str(text)


@dataclass(frozen=True, slots=True)
class Paint:
    on: bool

    def __call__(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self.on and text else text


class _Text:
    def __init__(self, width: int, color: bool) -> None:
        self.lines: list[str] = []
        self.paint = Paint(color)
        self._width = width

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"

    def add_heading(self, title: str) -> None:
        heading = f"── {_plain(title)} "
        self.lines.append(self.paint(heading + "─" * max(0, self._width - len(heading)), BOLD))

    def add_line(self, label: str, text: str) -> None:
        first, *rest = self._wrapped(text, _LABEL, most=2)
        self.lines.append(f"  {self.paint(f'{label:<{_LABEL - 2}}', DIM)}{first}")
        self.lines += rest

    def add_scores(self, scores: Sequence[Score]) -> None:
        by_outcome: dict[str, list[Score]] = {word: [] for word in ("error", "fail", "ok", "pass", "vacuous", "skipped")}
        for score in scores:
            by_outcome["vacuous" if score.vacuous else score.summary.outcome].append(score)
        for word in ("error", "fail"):
            for score in by_outcome[word]:
                self.add_score(*_MARKS[word], score, _result_of(score, word))
        for score in by_outcome["ok"]:
            if score.severity is not None:
                self.add_score("·", YELLOW, score, reason_of(score))
        measured = [f"{short_name(score.metric)} {_value(score)}" for score in by_outcome["ok"] if score.severity is None]
        passed = [
            short_name(score.metric) + ("" if score.type == "boolean" else f" {_value(score)}") for score in by_outcome["pass"]
        ]
        skipped = [f"{short_name(score.metric)} ({score.detail.get('reason')})" for score in by_outcome["skipped"]]
        self._add_list("·", BOLD, "measured", measured)
        self._add_list("✓", GREEN, f"{len(passed)} passed", passed)
        self._add_list("-", DIM, "vacuous", [short_name(score.metric) for score in by_outcome["vacuous"]])
        self._add_list("-", DIM, "skipped", skipped)

    def add_score(self, mark: str, code: str, score: Score, note: str) -> None:
        """Add a score and the reason for its result, which is truncated to three lines."""
        first, *rest = self._wrapped(("gate; " if score.policy == "gate" else "") + note, 4 + NAME_WIDTH, most=3)
        name = _plain(score.metric)
        name = name if len(name) < NAME_WIDTH else name + " "
        self.lines.append(f"  {self.paint(f'{mark} {name:<{NAME_WIDTH}}' if first else f'{mark} {name}', code)}{first}")
        self.lines += rest

    def add_finding(self, finding: Mapping[str, Any]) -> None:
        """Add a finding: severity, type, place in the turn and, if known, the quoted text and the text compared with it."""
        severity = str(finding.get("severity", "warning"))
        code = _SEVERITIES.get(severity, BOLD)
        label, rest = f"{_plain(finding['type'])} in {_plain(finding['place'])}", []
        if "found" in finding and len(label) <= _SHORT_LABEL:
            label += f": {self._excerpt(finding, code, len(label) + 2)}"
        elif "found" in finding:
            rest = [self._excerpt(finding, code)]
        else:
            label += f", characters {finding['start']} to {finding['end']}" if finding["end"] > 0 else ""
            label += f": {_plain(describe(finding))}" if finding.get("text") or finding.get("nearest") else ""
        compared = finding.get("compared")
        if compared is not None:
            what = f"compared with {_plain(compared['place'])}: "
            rest.append(what + self._excerpt(compared, BOLD, len(what)))
        self.lines.append(f"    {self.paint(f'{_plain(severity):<8}', code)} {label}")
        self.lines += (" " * _FINDING + line for line in rest)

    def _excerpt(self, part: Mapping[str, str], code: str, taken: int = 0) -> str:
        """Return a finding's quoted text with as much surrounding text as fits on the line."""
        room = max(30, self._width - _FINDING - taken)
        found = _cut(_printable(part["found"]), room - 20)
        before, after = _printable(part["before"]).lstrip(), _printable(part["after"]).rstrip()
        beside = (room - len(found) - 2) // 2
        before = before if len(before) <= beside else "…" + before[len(before) - beside + 1 :]
        mark = self.paint(found, f"{BOLD};{code}") if self.paint.on else f"»{found}«" if found else ""
        return before + mark + _cut(after, room - len(before) - len(found) - 2)

    def _add_list(self, mark: str, code: str, label: str, items: Sequence[str]) -> None:
        if items:
            # an item is never broken: its spaces are hidden from the wrapping
            text = ", ".join(_plain(item).replace(" ", "\0") for item in items)
            lines = [line.replace("\0", " ") for line in textwrap.wrap(text, self._width - 15, break_on_hyphens=False)]
            self.lines.append(f"  {self.paint(f'{mark} {label:<11}', code)}{lines[0]}")
            self.lines += (" " * 15 + line for line in lines[1:])

    def _wrapped(self, text: str, indent: int, most: int) -> list[str]:
        lines = textwrap.wrap(_plain(text), self._width - indent, max_lines=most, placeholder=" …", break_on_hyphens=False)
        return [*lines[:1], *(" " * indent + line for line in lines[1:])] or [""]


def _facts_of(turn: Turn) -> Iterator[str]:
    case, place = (turn.references.get(name) for name in ("case_id", "case_turn"))
    if case is not None:
        yield _plain(f"case {case}" + (f", turn {place}" if place is not None else ""))
    yield _plain(turn.agent or "unnamed agent")
    if turn.llm_call_count is not None:
        yield number_of(turn.llm_call_count, "model call")
    if turn.tool_calls is not None:
        yield number_of(len(turn.tool_calls), "tool call")
    if turn.duration_s is not None:
        yield f"{turn.duration_s:.2f} s"
    if turn.cost_usd is not None:
        yield usd_text(turn.cost_usd, turn.cost_estimated)
    notes = {"incomplete": not turn.complete, "truncated": turn.truncated, "inferred": turn.reading == "inferred"}
    yield ", ".join([f"closed: {turn.close_reason or 'unknown'}", *(note for note, applies in notes.items() if applies)])


def _content(text: str | None, clean: Callable[[str], str], absent: str) -> str:
    return absent if text is None else _plain(clean(text)) or "(empty)"


def _calls(calls: Sequence[ToolCall]) -> Iterator[str]:
    """Yield tool names in call order, with a count for consecutive calls and a mark for failed calls: ``search ×3``, ``book ✗``."""
    for name, same in groupby(_plain(call.name or "?") + (" ✗" if call.error is not None else "") for call in calls):
        count = len([*same])
        yield name if count == 1 else f"{name} ×{count}"


def _result_of(score: Score, word: str, *, facts: bool = True) -> str:
    if word == "fail":
        return reason_of(score, facts=facts)
    if word == "error":
        text = f"error {score.error_type}"
    elif score.type == "boolean" and score.label:
        text = score.label
    else:
        text = _value(score) + (f" (at {_bound(score)})" if score.threshold is not None else "")
    text += ", nothing to evaluate" if word == "vacuous" else ""
    return f"{text}: {_plain(score.explanation)}" if score.explanation else text


def _bound(score: Score) -> str:
    return f"{'most' if score.direction == 'down' else 'least'} {score.threshold:g}"


def reason_of(score: Score, *, facts: bool = True) -> str:
    """Return a score's value, explanation, or threshold as one line. If ``facts`` is True, append texts from the score's detail."""
    about = _plain(score.explanation or "")
    if score.type == "numeric":
        bound = f", at {_bound(score)} passes" if score.threshold is not None else ""
        about = f"{_value(score)}: {about}" if about else _value(score) + bound
    return ": ".join(part for part in (about, "; ".join(facts_in(score.detail, about)) if facts else "") if part)


def facts_in(detail: Mapping[str, Any], shown: str) -> Iterator[str]:
    """Yield the findings in ``detail`` or, without findings, the other texts with their keys. Omit texts that are in ``shown``."""
    findings = [describe(one) for one in findings_in(detail) if str(one.get("text") or one["type"]) not in shown]
    if findings:
        yield ", ".join(findings[:5]) + (", …" if len(findings) > 5 else "")
        return
    for key, value in detail.items():
        items = value if isinstance(value, (list, tuple)) else [value] if isinstance(value, str) and value else ()
        new = [_fact(item) for item in items if _head(item) not in shown]
        if new:
            yield f"{key.replace('_', ' ')} {', '.join(new[:5])}{', …' if len(new) > 5 else ''}"


def _head(item: Any) -> str:
    return _plain(str(next(iter(item.values()), "") if isinstance(item, Mapping) else item))


def _fact(item: Any) -> str:
    if not isinstance(item, Mapping):
        return _head(item)
    facts = [f"{key} {_plain(str(value))}" for key, value in list(item.items())[1:] if isinstance(value, str) or key == "count"]
    return _head(item) + (f" ({', '.join(facts)})" if facts else "")


def _value(score: Score) -> str:
    if score.value is None or score.type == "boolean":
        return score.label or ("–" if score.value is None else "yes" if score.value else "no")
    value, bound = score.value, score.threshold
    form = f".{4 if value >= 0.001 else 6}f" if score.unit == "USD" else ",.0f" if value.is_integer() else ".3g"
    text = format(value, form)
    if bound is not None and score.passed is False and (float(text.replace(",", "")) - bound) * (value - bound) <= 0:
        text = repr(value)  # the rounded value would pass
    return f"${text}" if score.unit == "USD" else text + _UNITS.get(score.unit, "")


def _printable(text: str) -> str:
    kept = {found.start() for found in re.finditer(NEEDED, text)}
    shown = (ch if ch.isprintable() or at in kept else " " if ch.isspace() else "�" for at, ch in enumerate(text))
    return _SPACES.sub(" ", "".join(shown))


def _plain(text: str, most: int = 2_000) -> str:
    return _printable(text[:most]).strip()


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: str, limit: int = 300) -> str:
    """Return text without line breaks and control characters, truncated to ``limit`` characters."""
    return _cut(_plain(text, 4 * limit), limit)


def short_name(name: str) -> str:
    return name.removeprefix("code_")


def number_of(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"
