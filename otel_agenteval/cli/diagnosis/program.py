"""Checks of a program's spans. The program is run."""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from ...config.root import Config
from ...core.turn import Turn
from ...dialects.capture import of_scope
from ...engine.selected import Selected
from ...evaluation.evaluator import evaluate
from ...evaluation.references import ReferenceSources
from ...spans.record import SpanRecord
from ...turns.recordings import Reading, read_items, turns_of
from ..recorded_program import facts_about, run_recorded, why_nothing
from .finding import BAD, GOOD, NOTE, DoctorFinding, Findings

_MOST_REASON = 40
"""Maximum characters of a reason for a skipped metric."""


def program_findings(program: Sequence[str], config: Config, metrics: Selected) -> Findings:
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as folder:
        out = Path(folder) / "spans.jsonl"
        code = run_recorded(program, out)
        if code:
            yield DoctorFinding(NOTE, f"the program exited with code {code}")
        facts = facts_about(out)
        others = sorted({fact["python"] for fact in facts if "python" in fact and not _is_this_python(fact["python"])})
        if others:
            yield DoctorFinding(NOTE, f"the program ran in another Python, {others[0]}; the checks above are about this one")
        if not out.exists():
            yield DoctorFinding(BAD, f"no spans: {why_nothing(facts)}")
            return
        reading = Reading()
        items = list(read_items([out], reading, lambda line: None))
    spans = [item for item in items if isinstance(item, SpanRecord)]
    yield from span_findings(spans, reading)
    turns = list(turns_of(items))
    yield from turn_findings(turns, spans)
    if turns:
        yield from metric_findings(turns, config, metrics)


def _is_this_python(path: str | None) -> bool:
    """Return True if the path is this interpreter, also under another name in the same environment (``python3``)."""
    if path is None:
        return True
    here, other = Path(sys.executable), Path(path)
    return here.parent == other.parent and here.resolve() == other.resolve()


def span_findings(spans: Sequence[SpanRecord], reading: Reading) -> Findings:
    scopes = Counter(span.scope or "a tracer without a name" for span in spans)
    named = ", ".join(f"{scope} {count}" for scope, count in scopes.most_common(6))
    yield DoctorFinding(GOOD, f"{reading.spans:,} spans and {reading.logs:,} log records arrived ({named})")
    cut = sum(span.truncated for span in spans)
    if cut:
        yield DoctorFinding(NOTE, f"{cut} spans lost attributes to a limit", "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT")


def turn_findings(turns: Sequence[Turn], spans: Sequence[SpanRecord]) -> Findings:
    """Check that the spans form turns with content."""
    known = {one.name: one for span in spans if (one := of_scope(span.scope)) is not None}
    if not turns:
        advice = "install and enable an instrumentation of your framework"
        if known:
            advice = f"spans of {', '.join(sorted(known))} arrived, but none is an agent or a model call"
        yield DoctorFinding(BAD, "the spans have no turn", advice)
        return
    agents = Counter(turn.agent or "an unnamed agent" for turn in turns)
    yield DoctorFinding(GOOD, f"{len(turns):,} turns: {', '.join(f'{name} {count}' for name, count in agents.most_common(5))}")
    silent = [turn for turn in turns if turn.input is None and turn.output is None]
    if silent:
        advice = "; ".join(f"{one.name}: {one.advice}" for one in known.values() if one.advice)
        what = f"{len(silent):,} of {len(turns):,} turns have neither input nor output"
        yield DoctorFinding(BAD, what, advice or "see docs/guides/capture-content.md")
    else:
        yield DoctorFinding(GOOD, "all turns have input or output")
    unfinished = [turn for turn in turns if not turn.complete]
    if unfinished:
        what = f"{len(unfinished):,} turns are incomplete: a span never ended"
        yield DoctorFinding(NOTE, what, "end all spans before the program exits")


def metric_findings(turns: Sequence[Turn], config: Config, metrics: Selected) -> Findings:
    """Yield how many computed metrics apply to the turns, and why the others don't."""
    applied: Counter[str] = Counter()
    reasons: dict[str, Counter[str]] = {}
    references = ReferenceSources(config)
    for turn in turns:
        for score in evaluate(turn, metrics.computed, references):
            if score.status == "skipped":
                reasons.setdefault(score.metric, Counter())[str(score.detail.get("reason", ""))[:_MOST_REASON]] += 1
            else:
                applied[score.metric] += 1
    never = {name: found for name, found in reasons.items() if name not in applied}
    yield DoctorFinding(
        GOOD if applied else BAD, f"{len(applied)} of {len(applied) + len(never)} computed metrics apply to the turns"
    )
    for reason in dict.fromkeys(found.most_common(1)[0][0] for found in never.values()):
        names = [name for name, found in never.items() if found.most_common(1)[0][0] == reason]
        kind, _, lacks = reason.partition(":")
        why = f"no {lacks.replace('_', ' ')} in the spans" if kind == "missing" else reason
        yield DoctorFinding(NOTE, f"{why}: {', '.join(names)} {'is' if len(names) == 1 else 'are'} skipped")
