"""JUnit XML: one testsuite per agent, one testcase per turn and metric.

Only gates that fail or have no verdict, and watched metrics that regressed or lost their values, are failures. A trend metric that
misses its threshold passes with a note in ``system-out``. A score with an error is an error. CI servers identify a testcase by agent
and name. For a turn with a case ID, these are the same in every run, so that CI servers can show the testcase's history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from ..core.wellformed import for_document
from ..outlets.turn_text import one_line
from .compare import Comparison
from .formatting import Report, describe_change, describe_pairing, effect_of, n_of, remarks
from .run import ScoreRow

_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#9;", "\n": "&#10;", "\r": "&#13;"})


class _Case(NamedTuple):
    """One testcase. ``kind`` is an element name, such as ``failure`` or ``error``, or empty for a passed test."""

    name: str
    kind: str = ""
    type: str = ""
    message: str = ""
    text: str = ""


def render_junit(report: Report) -> str:
    by_agent: dict[str, list[_Case]] = {}
    seen: Counter[tuple[str, str]] = Counter()
    for row in report.run.rows:
        agent, case = row.about.agent or "unnamed agent", _case_of(row)
        seen[agent, case.name] += 1
        if seen[agent, case.name] > 1:  # CI servers keep only one testcase of each name
            case = case._replace(name=f"{case.name} #{seen[agent, case.name]}")
        by_agent.setdefault(agent, []).append(case)
    suites = list(by_agent.items())
    if report.comparison is not None:
        suites.append(("comparison with the baseline", list(_cases_of(report.comparison))))
    if report.unevaluated:
        suites.append(("gates", [_Case(why.partition(":")[0], "failure", "gate", why) for why in report.unevaluated]))
    totals = Counter(case.kind for _, cases in suites for case in cases)
    tests = sum(len(cases) for _, cases in suites)
    head = f'<testsuites name="otel-agenteval" tests="{tests}" failures="{totals["failure"]}" errors="{totals["error"]}">'
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', head]
    for name, cases in suites:
        lines += _suite(name, cases)
    return "\n".join([*lines, "</testsuites>", ""])


def _case_of(row: ScoreRow) -> _Case:
    name = for_document(f"{row.series.label}[{row.about.name}]")
    if row.outcome == "skipped" and not row.fails_gate:
        return _Case(name, "skipped", "", row.why)
    if row.outcome == "error":
        return _Case(name, "error", row.why.partition(":")[0], row.why)
    if row.fails_gate:
        about = row.about
        said = (("input", about.asked), ("expected", about.expected), ("actual", about.answered))
        text = "\n".join(f"{label}: {text}" for label, text in said if text is not None)
        return _Case(name, "failure", "gate", row.why or "did not pass", text)
    if row.outcome == "fail":
        return _Case(name, "system-out", "", f"did not pass; a trend, not a gate. {row.why}")
    return _Case(name)


def _cases_of(comparison: Comparison) -> Iterator[_Case]:
    yield _Case("pairing", "system-out", "", "\n".join([describe_pairing(comparison), *remarks(comparison)]))
    for change in comparison.changes:
        name = f"{change.label} {change.measure}"
        message = f"{change.verdict}: {describe_change(change)}; {effect_of(change)}; {n_of(change)}"
        fails = change.watched and change.verdict == "regression"
        yield _Case(name, "failure", "regression", message) if fails else _Case(name, "system-out", "", message)
    for label in comparison.lost:
        yield _Case(f"{label} is comparable", "failure", "errors", "no value in this run")
    for label in comparison.missing:
        yield _Case(f"{label} is compared", "skipped", "", "missing in this run")


def _suite(name: str, cases: list[_Case]) -> Iterator[str]:
    kinds = Counter(case.kind for case in cases)
    about = f'tests="{len(cases)}" failures="{kinds["failure"]}" errors="{kinds["error"]}" skipped="{kinds["skipped"]}"'
    yield f'<testsuite name="{_escaped(name)}" {about}>'
    for case in cases:
        message, kind = _escaped(one_line(case.message)), f' type="{_escaped(case.type)}"' if case.type else ""
        text = _escaped("\n".join(filter(None, (case.message, case.text))))
        if case.kind == "system-out":
            element = f"<system-out>{_escaped(case.message)}</system-out>"
        elif case.kind == "skipped":
            element = f'<skipped{kind} message="{message}"/>'
        else:
            element = f'<{case.kind}{kind} message="{message}">{text}</{case.kind}>'
        head = f'<testcase classname="{_escaped(name)}" name="{_escaped(case.name)}"'
        yield f"{head}>{element}</testcase>" if case.kind else f"{head}/>"
    yield "</testsuite>"


def _escaped(text: str) -> str:
    return for_document(text).translate(_ESCAPES)
