"""What a program sends, by running it."""

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
from .finding import BAD, GOOD, NOTE, Finding, Findings

_MOST_REASON = 40
"""Characters of the reason why a metric was skipped."""


def program_findings(program: Sequence[str], config: Config, metrics: Selected) -> Findings:
    """Run a program, and look at its spans."""
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as folder:
        out = Path(folder) / "spans.jsonl"
        code = run_recorded(program, out)
        if code:
            yield Finding(NOTE, f"it ended with exit code {code}")
        facts = facts_about(out)
        others = sorted({fact["python"] for fact in facts if fact.get("python") not in (None, sys.executable)})
        if others:
            yield Finding(NOTE, f"it ran in another Python, {others[0]}: what stands above is not about that one")
        if not out.exists():
            yield Finding(BAD, f"no span: {why_nothing(facts)}")
            return
        reading = Reading()
        items = list(read_items([out], reading, lambda line: None))
    spans = [item for item in items if isinstance(item, SpanRecord)]
    yield from span_findings(spans, reading)
    turns = list(turns_of(items))
    yield from turn_findings(turns, spans)
    if turns:
        yield from metric_findings(turns, config, metrics)


def span_findings(spans: Sequence[SpanRecord], reading: Reading) -> Findings:
    """Who made the spans."""
    scopes = Counter(span.scope or "a tracer without a name" for span in spans)
    named = ", ".join(f"{scope} {count}" for scope, count in scopes.most_common(6))
    yield Finding(GOOD, f"{reading.spans:,} spans and {reading.logs:,} log records came ({named})")
    cut = sum(span.truncated for span in spans)
    if cut:
        yield Finding(NOTE, f"{cut} spans lost attributes to a limit", "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT")


def turn_findings(turns: Sequence[Turn], spans: Sequence[SpanRecord]) -> Findings:
    """Which turns they make, and whether these say what was said."""
    if not turns:
        names = sorted({one.name for one in (of_scope(span.scope) for span in spans) if one is not None})
        advice = (
            f"spans of {', '.join(names)} came, but none of a model or an agent"
            if names
            else "install an instrumentation of your framework, and switch it on"
        )
        yield Finding(BAD, "no agent's turn among them", advice)
        return
    agents = Counter(turn.agent or "an agent without a name" for turn in turns)
    yield Finding(GOOD, f"{len(turns):,} turns: {', '.join(f'{name} {count}' for name, count in agents.most_common(5))}")
    silent = [turn for turn in turns if turn.input is None and turn.output is None]
    if silent:
        known = {one.name: one for one in (of_scope(span.scope) for span in spans) if one is not None}
        advice = "; ".join(f"{one.name}: {one.advice}" for one in known.values() if one.advice)
        yield Finding(
            BAD,
            f"{len(silent):,} of {len(turns):,} turns do not say what was asked or answered",
            advice or "docs/guides/capture-content.md has what makes instrumentations capture content",
        )
    else:
        yield Finding(GOOD, "they say what was asked and answered")
    unfinished = [turn for turn in turns if not turn.complete]
    if unfinished:
        yield Finding(
            NOTE,
            f"{len(unfinished):,} turns have no end: their root span never ended",
            "let the program end its spans before it exits",
        )


def metric_findings(turns: Sequence[Turn], config: Config, metrics: Selected) -> Findings:
    """Which of the configured metrics apply to them, and why the others do not."""
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
    yield Finding(GOOD if applied else BAD, f"{len(applied)} of {len(applied) + len(never)} computed metrics apply to them")
    for reason in dict.fromkeys(found.most_common(1)[0][0] for found in never.values()):
        names = [name for name, found in never.items() if found.most_common(1)[0][0] == reason]
        kind, _, lacks = reason.partition(":")
        why = f"no {lacks.replace('_', ' ')} in the spans" if kind == "missing" else reason
        yield Finding(NOTE, f"{why}: {', '.join(names)} {'has' if len(names) == 1 else 'have'} nothing to say")
