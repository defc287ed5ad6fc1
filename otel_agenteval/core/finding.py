"""Detectors' findings: type, severity, and position in the turn.

A score lists its findings in ``detail["findings"]``. Findings contain positions and short or masked texts, so they can be
stored without the turn's content. :func:`evidence` adds the original text from the turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from . import jsonio

Severity = Literal["info", "warning", "critical"]
SEVERITIES: Sequence[Severity] = get_args(Severity)
"""Severities, least urgent first. ``info`` findings are only counted. ``critical`` requires a person's immediate action."""
LISTED = 10
"""Maximum number of findings listed in a score's detail. The detail's ``count`` usually includes all findings."""
_STEP = re.compile(r"([a-z_]+)|\[([0-9]+)\]")
_BESIDE = 60
_LONGEST = 400
_NEAR = 0.6
"""Minimum similarity of two texts, or minimum ratio of the smaller to the larger of two numbers, for :func:`is_near`."""
_ONE_NUMBER = re.compile(r"[^\d]*(\d[\d.,\s]*?)(?:[.,](\d\d?|\d{4,}))?[^\d]*")
_REQUIRED = {"path": str, "start": int, "end": int, "type": str}


class Finding(NamedTuple):
    """Problem that a detector found. ``start`` and ``end`` are character positions in the text (or compact JSON) at ``path``."""

    path: str
    """Path in the turn, such as ``output``, ``tool_calls[2].result``, or ``retrievals[0].documents[1].content``."""
    start: int
    end: int
    type: str
    severity: Severity = "warning"
    text: str | None = None
    """Text that the detector found. Sensitive text is masked, so that the finding can be stored without the turn's content."""
    compared_with: str | None = None
    """Path of the text that the finding contradicts or was compared with."""
    nearest: str | None = None
    """The most similar text in the value at ``compared_with``."""

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


def detail_of(findings: Sequence[Finding], **more: Any) -> dict[str, Any]:
    ranked = sorted(findings, key=lambda one: -SEVERITIES.index(one.severity))
    return {"findings": [one.to_dict() for one in ranked[:LISTED]], "count": len(findings), **more}


def findings_in(detail: Mapping[str, Any] | None) -> list[Mapping[str, Any]]:
    """Return the findings in a score's detail. Skip entries that lack required fields."""
    found = (detail or {}).get("findings")
    return [
        one
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, Mapping) and all(isinstance(one.get(name), kind) for name, kind in _REQUIRED.items())
    ]


def value_at(turn: Any, path: str) -> Any:
    """Return the value at a path such as ``tool_calls[1].result``, or None. ``turn`` is a Turn or a ``turn.v1`` object."""
    steps = _STEP.findall(path)
    for name, index in steps:
        try:
            if index:
                turn = turn[int(index)]
            else:
                turn = turn.get(name) if isinstance(turn, Mapping) else getattr(turn, name, None)
        except (IndexError, KeyError, TypeError):
            return None
    return turn if steps else None


def place_of(turn: Any, path: str) -> str:
    """Return a readable path: ``tool_calls[1].result`` → ``search result (call 2)``. Omit the number of a turn's only call."""
    call, _, rest = path.partition(".")
    name = value_at(turn, f"{call}.name") if call.startswith("tool_calls[") else None
    if not isinstance(name, str):
        return path
    number = int(call[len("tool_calls[") : -1]) + 1
    return f"{name} {rest}" + (f" (call {number})" if len(value_at(turn, "tool_calls")) > 1 else "")


def describe(finding: Mapping[str, Any]) -> str:
    """Return a finding's text or type, its path (if not ``output``), and the text that it resembles: ``468 (context[0]: 498)``."""
    what = finding.get("text") or finding["type"]
    where = [] if finding["path"] == "output" else [finding["path"]]
    if "nearest" in finding and is_near(str(what), str(finding["nearest"])):
        where.append(f"{finding.get('compared_with', 'nearest')}: {finding['nearest']}")
    return f"{what} ({', '.join(where)})" if where else str(what)


def is_near(found: str, candidate: str) -> bool:
    """Return True if ``found`` might be a mistaken copy of ``candidate``: 468 and 498 are near, but 64.50 and 35 aren't."""
    numbers = (_ONE_NUMBER.fullmatch(text[:_LONGEST]) for text in (found, candidate))
    values = [float("".join(re.findall(r"\d", one[1])) + f".{one[2] or 0}") if one else -1.0 for one in numbers]
    if min(values) >= 0:
        return min(values) >= _NEAR * max(values)
    from difflib import SequenceMatcher  # imported on first use

    return SequenceMatcher(None, found[:_LONGEST], candidate[:_LONGEST], autojunk=False).ratio() >= _NEAR


class Evidence(NamedTuple):
    """Finding with surrounding text. ``before``, ``found``, and ``after`` are consecutive excerpts of the turn's text."""

    finding: Mapping[str, Any]
    before: str
    found: str
    after: str


def evidence(turn: Any, detail: Mapping[str, Any] | None) -> list[Evidence]:
    """Return each finding in a score's detail, with surrounding text from the turn. Skip findings outside the turn's text."""
    return [found for finding in findings_in(detail) if (found := _evidence_of(turn, finding)) is not None]


def _evidence_of(turn: Any, finding: Mapping[str, Any]) -> Evidence | None:
    text = jsonio.text_of(value_at(turn, finding["path"]))
    start, end = finding["start"], finding["end"]
    return _around(text, start, end, finding) if 0 <= start < end <= len(text) else None


def _around(text: str, start: int, end: int, finding: Mapping[str, Any]) -> Evidence:
    return Evidence(finding, text[max(0, start - _BESIDE) : start], text[start:end], text[end : end + _BESIDE])


def with_evidence(scores: Iterable[Mapping[str, Any]], turn: Any) -> list[dict[str, Any]]:
    """Return the stored scores, each with a list ``evidence`` of its findings. Each finding has a readable ``place`` and, if the
    turn contains the text, ``before``, ``found``, and ``after``. ``compared`` is the text that the finding was compared with.
    """
    return [{**score, "evidence": [_with_texts(turn, one) for one in findings_in(score.get("detail"))]} for score in scores]


def _with_texts(turn: Any, finding: Mapping[str, Any]) -> dict[str, Any]:
    shown = {**finding, "place": place_of(turn, finding["path"])}
    found = _evidence_of(turn, finding)
    if found is not None:
        shown |= _texts(found)
    path, nearest = (str(finding.get(name) or "") for name in ("compared_with", "nearest"))
    text = jsonio.text_of(value_at(turn, path))
    if path and text and (not nearest or found is None or is_near(found.found, nearest)):
        start = max(0, text.find(nearest))
        end = start + len(nearest) if text.startswith(nearest, start) else start  # otherwise, the start of the text
        place = {"path": path, "start": start, "end": end, "place": place_of(turn, path)}
        shown["compared"] = {**place, **_texts(_around(text, start, end, finding))}
    return shown


def _texts(one: Evidence) -> dict[str, str]:
    before = f"…{one.before}" if len(one.before) == _BESIDE else one.before
    after = f"{one.after}…" if len(one.after) == _BESIDE else one.after
    found = one.found if len(one.found) <= _LONGEST else f"{one.found[:_LONGEST]}…"
    return {"before": before, "found": found, "after": after}
