"""Evaluate the default metrics on labeled whole turns: ``tests/data/detectors/turns/{train,test}.jsonl.xz``.

``scripts/detectors.py`` prints the tables. A line is ``{"id", "lang", "domain", "ordinary", "labels", "note", "turn"}``. ``labels``
contains one entry per applicable detector: true if a careful reader sees the problem. An ordinary turn has no problem, and was not
written to resemble one.
"""

from __future__ import annotations

import json
import lzma
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import otel_agenteval as oa
from otel_agenteval.core.score import Score
from otel_agenteval.metrics.bound_metric import BoundMetric, live_metric
from otel_agenteval.metrics.registry import default_pack
from otel_agenteval.statistics.intervals import wilson

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "detectors" / "turns"
LABELED = (
    "secret_leak", "pii_leakage", "injection_markers", "system_prompt_leak", "ungrounded_urls", "repeated_tool_calls", "tool_success",
    "unknown_tool", "empty_answer", "turn_error", "refusal", "ungrounded_numbers",
)  # fmt: skip
"""Detectors that have labels, without the prefix ``code_``."""
_OPTIONAL = ("code_ungrounded_numbers",)
"""Detectors that aren't default metrics."""
_TURN_SIZE = range(3_000, 5_200)
"""Turns whose cost is measured have this many characters of JSON."""
_ROUNDS = 5


def turns(half: str) -> Iterator[Mapping[str, Any]]:
    """Yield the labeled turns of a half."""
    with lzma.open(FOLDER / f"{half}.jsonl.xz", "rt", encoding="utf-8", newline="\n") as lines:
        yield from map(json.loads, lines)


def is_signal(name: str) -> bool:
    """Return True for a detector without a verdict."""
    return live_metric(f"code_{name}", {}).metric.direction == "neutral"


def alarms(score: Score) -> bool:
    """Return True if a score reports a problem, by a failed verdict or a signal's finding."""
    if score.metric == "code_refusal":
        return score.value == 1.0
    return (
        score.verdict is False
        or (score.direction == "neutral" and score.type == "boolean" and score.value == 0.0)
        or (score.metric == "code_ungrounded_numbers" and score.status == "ok" and score.value != 1.0)
    )


@dataclass
class Counts:
    """Results of one detector on the labeled turns."""

    problems: int = 0
    found: int = 0
    innocent: int = 0
    false_alarms: int = 0
    ordinary_alarms: int = 0
    alarms: int = 0
    """Alarms on all turns, including turns without a label."""
    missed_ids: list[str] = field(default_factory=list)
    false_ids: list[str] = field(default_factory=list)


@dataclass
class Result:
    """Results of the default metrics on one half."""

    turns: int
    languages: int
    domains: int
    ordinary: int
    by_name: Mapping[str, Counts]
    ordinary_alarms: int
    """Failed verdicts of all default metrics on ordinary turns."""
    ordinary_alarmed: int
    """Ordinary turns with at least one failed verdict."""


def evaluate(half: str) -> Result:
    """Evaluate the default metrics on one half, as in live scoring.

    Raises:
        RuntimeError: If a metric fails.
    """
    metrics = {name.removeprefix("code_"): live_metric(name, {}) for name in (*default_pack(), *_OPTIONAL)}
    counts = {name: Counts() for name in LABELED}
    cases = list(turns(half))
    total, alarmed = 0, 0
    for case in cases:
        turn = oa.Turn.from_dict(case["turn"])
        failed = 0
        for name, metric in metrics.items():
            score = metric.evaluate(turn)
            if score.status == "error":
                raise RuntimeError(f"{case['id']}: {score.metric}: {score.error_type}")
            failed += case["ordinary"] and score.verdict is False
            if name in counts:
                _count(counts[name], case, name, alarms(score))
        total, alarmed = total + failed, alarmed + bool(failed)
    ordinary = sum(case["ordinary"] for case in cases)
    languages, domains = ({case[key] for case in cases} for key in ("lang", "domain"))
    return Result(len(cases), len(languages), len(domains), ordinary, counts, total, alarmed)


def _count(of: Counts, case: Mapping[str, Any], name: str, alarm: bool) -> None:
    of.alarms += alarm
    label = case["labels"].get(name, False if case["ordinary"] else None)
    if label is None:
        return
    if label:
        of.problems += 1
        of.found += alarm
        if not alarm:
            of.missed_ids.append(case["id"])
    else:
        of.innocent += 1
        of.false_alarms += alarm
        of.ordinary_alarms += alarm and case["ordinary"]
        if alarm:
            of.false_ids.append(case["id"])


def costs() -> dict[str, float]:
    """Return each default metric's time on ordinary turns of about 4 kB, in multiples of ``json.loads`` of the same turn.

    ``all`` is the time of all default metrics together.
    """
    texts = [json.dumps(case["turn"]) for half in ("train", "test") for case in turns(half) if case["ordinary"]]
    texts = [text for text in texts if len(text) in _TURN_SIZE]
    metrics = {name: live_metric(name, {}) for name in (*default_pack(), *_OPTIONAL)}
    default = [metric for name, metric in metrics.items() if name not in _OPTIONAL]
    least = dict.fromkeys(("json", *metrics, "all"), float("inf"))
    for _ in range(_ROUNDS):
        least["json"] = min(least["json"], _timed(json.loads, texts))
        for name, chosen in {**{name: [metric] for name, metric in metrics.items()}, "all": default}.items():
            read = [oa.Turn.from_dict(json.loads(text)) for text in texts]
            least[name] = min(least[name], _timed(partial(_run, chosen), read))
    return {name.removeprefix("code_"): seconds / least["json"] for name, seconds in least.items() if name != "json"}


def _run(metrics: Sequence[BoundMetric], turn: oa.Turn) -> None:
    for metric in metrics:
        metric.evaluate(turn)


def _timed(work: Any, items: Sequence[Any]) -> float:
    start = time.thread_time()
    for item in items:
        work(item)
    return time.thread_time() - start


def cascade(result: Result) -> list[str]:
    """Return the results of a judge that is called only for turns with an ungrounded number."""
    numbers = result.by_name["ungrounded_numbers"]
    return [
        f"If you call a judge only for turns with `score.code_ungrounded_numbers < 1`, the judge reads {numbers.alarms} of the {result.turns} turns",
        f"({numbers.alarms / result.turns:.0%}). These turns include {numbers.found} of the {numbers.problems} turns with an invented number".replace(
            "%)", " %)"
        )
        + f" ({numbers.found / numbers.problems:.0%}).".replace("%)", " %)"),
        "To configure this, see [Call a judge about unknown numbers](../../guides/set-up-a-judge.md#call-a-judge-about-unknown-numbers).",
    ]


def share(part: int, whole: int) -> str:
    """Return a share with its 95 % interval, such as ``4 % (2–7)``, or a dash without turns."""
    if not whole:
        return "–"
    low, high = wilson(part, whole)
    return f"{part / whole:.0%} ({low:.0%}–{high:.0%})".replace("%", " %").replace(" %–", "–")


def table(result: Result, cost: Mapping[str, str]) -> list[str]:
    lines = [
        "| Detector | Result | Problems | Found (95 %) | Innocent turns | False alarms (95 %) | Alarms per 1,000 ordinary turns | Cost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, of in result.by_name.items():
        kind = "signal" if is_signal(name) else "verdict"
        per_thousand = f"{1000 * of.ordinary_alarms / result.ordinary:.0f}"
        cells = (
            kind, of.problems, share(of.found, of.problems), of.innocent, share(of.false_alarms, of.innocent), per_thousand,
            cost.get(name, "–"),
        )  # fmt: skip
        lines.append(f"| `code_{name}` | {' | '.join(map(str, cells))} |")
    lines.append(
        f"| all verdicts of the default metrics | verdict | | | | | **{1000 * result.ordinary_alarms / result.ordinary:.0f}** | {cost.get('all', '–')} |"
    )
    return lines
