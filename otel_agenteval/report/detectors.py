"""Report on detector alarms: counts, recurring patterns, and settings that silence patterns.

A *pattern* is a property that the findings of several turns share, such as the host of a URL. Only the functions in
:data:`PATTERN_OF` depend on a particular detector.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..config.editing import Addition
from ..core.finding import Evidence, evidence, value_at
from ..core.score import Score
from ..core.turn import Turn
from ..detectors.numbers.reading import form_of, with_ascii_digits
from ..detectors.urls import host_of, key_of
from ..evaluation.redaction import Redactor
from ..outlets.turn_text import BOLD, NAME_WIDTH, Paint, number_of

RECURS = 3
"""Minimum number of conversations with a pattern to suggest a setting. A turn without a conversation ID is its own conversation."""
LISTED = 10
_LONGEST = 200
_WIDTH = 50
_DIGITS = re.compile(r"[0-9]+")
_PLAIN_NUMBER = re.compile(r"\D?[ \u00a0]?(?:#+(?:[.,]#*)?|#{1,3}(?:[.,' \u00a0]###)+(?:[.,]#+)?)[ \u00a0]?[^\w\s]?")
"""Pattern for number formats such as ``#,###.##`` and ``##%``. Settings that ignore formats would nearly disable the detector."""
_CONTACTS = ("email", "phone", "iban", "bank_account")
_BETWEEN_DIGITS = re.compile(r"[^0-9+]+")
_INDEX = re.compile(r"\[[0-9]+\]")


class Pattern(NamedTuple):
    text: str
    setting: tuple[str, str] | None = None
    """Metric parameter and value that silence the pattern, or None if this is impossible."""
    general: str | None = None
    """Broader pattern without personal data. Both patterns are counted, but the narrower pattern is shown only if it recurs."""


# --- alarms of a turn


class TurnAlarms(NamedTuple):
    turn_id: str
    conversation: str
    evaluated: frozenset[str]
    alarms: Mapping[str, Sequence[Pattern]]
    failed: bool


def alarms_in(turn: Turn, scores: Sequence[Score], kinds: Collection[str]) -> TurnAlarms:
    """Return a turn's alarms. Data of the types in ``kinds`` (``privacy.redact``) is removed, except contacts that a setting can allow."""
    redactor = Redactor(kinds)
    alarms: dict[str, list[Pattern]] = {}
    for score in scores:
        is_signal = score.status == "ok" and not score.facts.gives_verdict
        if score.detail.get("findings") if is_signal else score.verdict is False:
            known = alarms.setdefault(score.metric, [])
            known += [pattern for pattern in dict.fromkeys(_patterns(turn, score, redactor)) if pattern not in known]
    evaluated = frozenset(score.metric for score in scores if score.status == "ok")
    failed = any(score.verdict is False for score in scores)
    return TurnAlarms(turn.turn_id, turn.conversation_id or turn.turn_id, evaluated, alarms, failed)


def _patterns(turn: Turn, score: Score, redactor: Redactor) -> Iterator[Pattern]:
    pattern_of = PATTERN_OF.get(score.metric, _place)
    findings = score.detail.get("findings") or ()
    for finding in findings:
        (found,) = evidence(turn, {"findings": [finding]}) or [Evidence(finding, "", "", "")]
        pattern = pattern_of(turn, found)
        if pattern.general is not None:
            yield Pattern(pattern.general)
        elif redactor.text(pattern.text) != pattern.text:
            pattern = Pattern(redactor.text(pattern.text))
        yield pattern._replace(text=pattern.text[:_LONGEST])
    if not findings:
        why = _DIGITS.sub("#", redactor.text(score.explanation or score.detail.get("matched") or score.label or score.metric))
        yield Pattern(why[:_LONGEST])


# --- many turns


@dataclass(slots=True)
class _Counted:
    example: str
    turns: int = 0
    conversations: set[str] = field(default_factory=set)
    is_confirmed: bool = False

    @property
    def recurs(self) -> bool:
        return len(self.conversations) >= RECURS


@dataclass(slots=True)
class _Detector:
    evaluated: int = 0
    alarms: int = 0
    labeled: int = 0
    right: int = 0
    patterns: dict[Pattern, _Counted] = field(default_factory=dict)

    def listed(self) -> list[tuple[Pattern, _Counted]]:
        shown = [(pattern, counted) for pattern, counted in self.patterns.items() if counted.recurs or pattern.general is None]
        return sorted(shown, key=lambda item: (-item[1].turns, item[0].general is None, item[0].text))[:LISTED]


class Suggestion(NamedTuple):
    metric: str
    parameter: str
    value: str
    turns: int

    def __str__(self) -> str:
        return str(Addition(self.metric, self.parameter, [self.value]))


class DetectorReport:
    """Alarms by detector. ``labels`` maps (turn, metric) to True for a real alarm. ``signals`` are metrics without verdicts."""

    def __init__(self, metrics: Sequence[str], labels: Mapping[tuple[str, str], bool], signals: Collection[str] = ()) -> None:
        self.turns = 0
        self.failed = 0
        self._detectors = {name: _Detector() for name in metrics}
        self._labels = labels
        self._signals = signals

    def add(self, turn: TurnAlarms) -> None:
        self.turns += 1
        self.failed += turn.failed
        for name in turn.evaluated:
            self._detectors[name].evaluated += 1
        for name, patterns in turn.alarms.items():
            detector = self._detectors[name]
            label = self._labels.get((turn.turn_id, name))
            detector.alarms += 1
            detector.labeled += label is not None
            detector.right += label is True
            for pattern in patterns:
                counted = detector.patterns.setdefault(pattern, _Counted(turn.turn_id))
                counted.turns += 1
                counted.is_confirmed |= label is True
                if not counted.recurs:
                    counted.conversations.add(turn.conversation)

    def _ranked(self) -> list[tuple[str, _Detector]]:
        return sorted(self._detectors.items(), key=lambda item: (-item[1].alarms, item[0]))

    def suggestions(self) -> list[Suggestion]:
        """Return the suggested settings in the order of their numbers in the report."""
        return [
            Suggestion(name, *pattern.setting, counted.turns)
            for name, detector in self._ranked()
            for pattern, counted in detector.listed()
            if pattern.setting is not None and counted.recurs and not counted.is_confirmed
        ]

    def rate(self, alarms: int) -> float:
        return round(1000 * alarms / self.turns, 1) if self.turns else 0.0

    def as_data(self) -> dict[str, Any]:
        numbers = self._numbers()
        return {
            "turns": self.turns,
            "failed_turns": self.failed,
            "detectors": [
                {
                    "metric": name,
                    "signal": name in self._signals,
                    "evaluated": one.evaluated,
                    "alarms": one.alarms,
                    "per_1000_turns": self.rate(one.alarms),
                    **({"labeled": one.labeled, "right": one.right} if one.labeled else {}),
                    "patterns": [
                        {
                            "pattern": pattern.text,
                            "turns": counted.turns,
                            "turn_id": counted.example,
                            **({"confirmed": True} if counted.is_confirmed else {}),
                            **({"suggestion": numbers[name, pattern.setting]} if (name, pattern.setting) in numbers else {}),
                        }
                        for pattern, counted in one.listed()
                    ],
                }
                for name, one in self._ranked()
            ],
            "suggestions": [{"number": at, **one._asdict()} for at, one in enumerate(self.suggestions(), 1)],
        }

    def _numbers(self) -> dict[tuple[str, tuple[str, str] | None], int]:
        return {(one.metric, (one.parameter, one.value)): at for at, one in enumerate(self.suggestions(), 1)}

    def render(self, *, color: bool = False) -> str:
        """Return the tables for a terminal: detectors with their patterns, then the suggested settings."""
        paint = Paint(color)
        labels = "  right of labeled" if any(one.labeled for one in self._detectors.values()) else ""
        head = f"{number_of(self.turns, 'turn'):<{NAME_WIDTH}}{'evaluated':>11}{'alarms':>9}{'per 1,000':>11}{labels}"
        lines = [paint(head, BOLD)]
        never = [name for name, one in self._ranked() if not one.evaluated]
        for name, one in self._ranked():
            if one.evaluated:
                lines += self._rows(name, one)
        lines.append(f"{'turns with a failed verdict':<{NAME_WIDTH}}{'':>11}{self.failed:>9,}{self.rate(self.failed):>11,}")
        if never:
            lines += textwrap.wrap(f"never applied: {', '.join(never)}", 100, subsequent_indent=" " * 15)
        if suggestions := self.suggestions():
            lines += ["", paint(f"suggested settings, for patterns in at least {RECURS} conversations", BOLD)]
            lines += [f"{f'[{at}]':>6} {one.turns:>6,}  {one}" for at, one in enumerate(suggestions, 1)]
        return "\n".join(lines)

    def _rows(self, name: str, one: _Detector) -> Iterator[str]:
        if not one.alarms:
            yield f"{name:<{NAME_WIDTH}}{one.evaluated:>11,}{'–':>9}{'–':>11}"
            return
        more = "  signal" if name in self._signals else ""
        more += f"  {one.right:,} of {one.labeled:,}" if one.labeled else ""
        yield f"{name:<{NAME_WIDTH}}{one.evaluated:>11,}{one.alarms:>9,}{self.rate(one.alarms):>11,}{more}"
        numbers = self._numbers()
        for pattern, counted in one.listed():
            number = numbers.get((name, pattern.setting))
            mark = f"[{number}]" if number else "real" if counted.is_confirmed else ""
            text = pattern.text if len(pattern.text) <= _WIDTH else f"{pattern.text[: _WIDTH - 1]}…"
            yield f"{mark:>6} {counted.turns:>6,}  {text:<{_WIDTH}} {counted.example.partition('-')[0]}"

    def render_change(self, after: DetectorReport) -> str:
        """Return the numbers of alarms before and after a configuration change, by detector."""
        pairs = [(name, one.alarms, after._detectors[name].alarms) for name, one in self._ranked() if name in after._detectors]
        pairs = [
            *((name, old, new) for name, old, new in pairs if old or new),
            ("turns with a failed verdict", self.failed, after.failed),
        ]
        return "\n".join(
            f"{name:<{NAME_WIDTH}}{old:>8,} → {new:<8,} per 1,000: {self.rate(old):,} → {after.rate(new):,}"
            for name, old, new in pairs
        )


# --- patterns of findings


def _host(turn: Turn, found: Evidence) -> Pattern:
    link = found.finding.get("text") or found.found
    host = host_of(key_of(link.partition("://")[2] or link))
    is_plain = link[:_WIDTH] in found.found and not any(sign in link for sign in "[]()<> ")
    if "." not in host or not is_plain:  # a disguised link, which nobody should allow
        return _place(turn, found)
    return Pattern(host, ("allowed", host))


def _contact(turn: Turn, found: Evidence) -> Pattern:
    if found.finding["type"] not in _CONTACTS or not found.found:
        return _place(turn, found)
    kind = found.finding["type"]
    written = _BETWEEN_DIGITS.sub(" ", with_ascii_digits(found.found)) if kind == "phone" else found.found
    text = " ".join(written.split())
    return Pattern(text, ("public", text), f"{kind} *@{text.rpartition('@')[2]}" if kind == "email" else kind)


def _number(turn: Turn, found: Evidence) -> Pattern:
    if not found.found:
        return _place(turn, found)
    text = with_ascii_digits(found.before + found.found + found.after)
    form = form_of(text, len(found.before), len(found.before) + len(found.found))
    return Pattern(form, ("ignored", form) if "#" in form and not _PLAIN_NUMBER.fullmatch(form) else None)


def _tool(turn: Turn, found: Evidence) -> Pattern:
    name = _tool_at(turn, found) or found.finding.get("text")
    return Pattern(name, ("may_repeat", name)) if name else _place(turn, found)


def _secret(turn: Turn, found: Evidence) -> Pattern:
    head, shortened, _ = (found.finding.get("text") or "").partition("…")  # other secrets can have any length
    return Pattern(f"{found.finding['type']} {head}{shortened}" if head else found.finding["type"])


def _place(turn: Turn, found: Evidence) -> Pattern:
    """Return a finding's type and place in the turn, without indexes, such as ``instruction_override in search result``."""
    path = found.finding["path"]
    tool = _tool_at(turn, found)
    place = f"{tool} {path.partition('.')[2]}" if tool else _INDEX.sub("", path)
    return Pattern(f"{found.finding['type']} in {place.strip()}")


def _tool_at(turn: Turn, found: Evidence) -> str | None:
    path = found.finding["path"]
    return getattr(value_at(turn, path.partition(".")[0]), "name", None) if path.startswith("tool_calls[") else None


PATTERN_OF: Mapping[str, Callable[[Turn, Evidence], Pattern]] = {
    "code_pii_leakage": _contact,
    "code_repeated_tool_calls": _tool,
    "code_secret_leak": _secret,
    "code_ungrounded_numbers": _number,
    "code_ungrounded_urls": _host,
}
