"""Checks of a program's spans. The program is run."""

from __future__ import annotations

import math
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from ...config.root import Config
from ...core.turn import Turn
from ...dialects.capture import advice_on, advice_without_turn
from ...dialects.reader import CONTENT
from ...engine.selected import Selected
from ...evaluation.evaluator import evaluate
from ...evaluation.references import ReferenceSources
from ...spans.record import SpanRecord
from ...turns.readings import Readings, scope_of_call
from ...turns.recordings import Reading, read_items, read_turns, wholes_of
from ...turns.roots import SpanGroup
from ...turns.stitching import reader_of
from ..reading import named
from ..record import facts_about, run_recorded, why_nothing
from . import BAD, GOOD, DoctorFinding, Findings, bad, good, missing_finding, note

_MOST_REASON = 40
"""Maximum characters of a reason for a skipped metric."""


def program_findings(program: Sequence[str], config: Config, metrics: Selected) -> Findings:
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as folder:
        out = Path(folder) / "spans.jsonl"
        code = run_recorded(program, out)
        if code:
            yield note(f"the program exited with code {code}")
        facts = facts_about(out)
        here = Path(sys.executable)
        pythons = sorted({fact["python"] for fact in facts if fact.get("python") is not None})
        # the same environment can have several names of one interpreter, such as python3
        others = [one for one in pythons if Path(one).parent != here.parent or Path(one).resolve() != here.resolve()]
        if others:
            yield note(f"the program ran in another Python, {others[0]}; the checks above are about this one")
        if not out.exists():
            yield bad(f"no spans: {why_nothing(facts)}")
            return
        reading = Reading()
        items = list(read_items([out], reading, lambda line: None))
    spans = [item for item in items if isinstance(item, SpanRecord)]
    yield from span_findings(spans, reading)
    readings = Readings(math.inf)
    found = [*read_turns(wholes_of(items, readings.note_unread), readings)]
    readings.finish(log=False)
    yield from turn_findings(found, reading.scopes)
    for (scope, missing), count in readings.unread.items():
        if missing != CONTENT:
            yield missing_finding(scope, missing, count)
    turns = [turn for _, turn in found]
    if turns:
        yield from metric_findings(turns, config, metrics)


def span_findings(spans: Sequence[SpanRecord], reading: Reading) -> Findings:
    yield good(f"{reading.spans:,} spans and {reading.logs:,} log records arrived ({named(reading.scopes)})")
    cut = sum(span.truncated for span in spans)
    if cut:
        yield note(f"{cut} spans lost attributes to a limit", "raise OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT")


def turn_findings(found: Sequence[tuple[SpanGroup, Turn]], scopes: Iterable[str]) -> Findings:
    """Check that the spans of these scopes form turns with content."""
    if not found:
        yield bad("the spans have no turn", advice_without_turn([*scopes]))
        return
    turns = [turn for _, turn in found]
    agents = Counter(turn.agent or "an unnamed agent" for turn in turns)
    yield good(f"{len(turns):,} turns: {', '.join(f'{name} {count}' for name, count in agents.most_common(5))}")
    silent = [group for group, turn in found if turn.input is None and turn.output is None and turn.error is None]
    if silent:
        silent_scopes = [*dict.fromkeys(scope_of_call(reader_of(group)) for group in silent)]
        what = f"{len(silent):,} of {len(turns):,} turns have neither input nor output ({', '.join(silent_scopes)})"
        yield bad(what, advice_on(CONTENT, [*silent_scopes, *scopes]))
    else:
        yield good("all turns have input or output, or failed")
    unfinished = [turn for turn in turns if not turn.complete]
    if unfinished:
        what = f"{len(unfinished):,} turns are incomplete: a span never ended"
        yield note(what, "end all spans before the program exits")


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
        yield note(f"{why}: {', '.join(names)} {'is' if len(names) == 1 else 'are'} skipped")
