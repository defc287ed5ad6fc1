"""Measure on which recorded turns each metric is evaluated, and its values there. The recordings are in ``tests/data``.

    python scripts/metric_coverage.py [NAME ...]    prints the rows of these metrics
    python scripts/metric_coverage.py --healthy     prints failures of default metrics on healthy turns: turn, metric, reason

Turns are scored as live traffic is, as part of their conversations. Computed metrics have the parameters in :data:`PARAMETERS`.
Metrics that need references get the recording's true output and tools. Every third turn gets those of the turn before, so that
there are differences to find. A scripted judge and embedder replace real models. For judged metrics, only the share of evaluated
turns is therefore meaningful.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import re
import statistics
import sys
import tempfile
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))


import otel_agenteval as oa  # noqa: E402
from otel_agenteval.core.extras import extra_installed  # noqa: E402
from otel_agenteval.core.score import Score  # noqa: E402
from otel_agenteval.evaluation.evaluator import score_one  # noqa: E402
from otel_agenteval.judging.models.reply import schema_of  # noqa: E402
from otel_agenteval.metrics.bound_metric import BoundMetric, live_metric  # noqa: E402
from otel_agenteval.metrics.code.workflow import runs_of  # noqa: E402
from otel_agenteval.metrics.registry import Metric, catalog, default_pack  # noqa: E402
from otel_agenteval.turns.conversations import SIGNALS, whole  # noqa: E402
from scripts import promises  # noqa: E402
from scripts.coverage_notes import CONSTANT, EXAMPLES, NOT_RUN, PARAMETERS, WAYS_IN  # noqa: E402
from tests.support.check_turns import align, load_truth  # noqa: E402
from tests.support.recordings import unpack_all  # noqa: E402

DATA = ROOT / "tests" / "data"
PAGE = ROOT / "docs" / "reference" / "metrics" / "coverage.md"
KINDS = ("plain chat", "tools", "RAG", "multi-agent", "workflow", "conversation")
MOST_REPEATS = 2
"""Maximum number of identical tool calls in a healthy turn."""
SHARE_OF_HEALTHY = 0.005
"""Maximum share of healthy turns that fail a default metric."""


# --- recordings ------------------------------------------------------------------------------------------------------


@dataclass
class Recorded:
    """A turn of a recording, or a whole conversation."""

    name: str
    """``set/recording#number``."""
    kind: str
    turn: oa.Turn
    truth: Mapping[str, Any] | None = None
    """True inputs, outputs and tool calls, if they were recorded."""
    fed: oa.Turn = field(init=False)
    """The turn with references."""

    @property
    def healthy(self) -> bool:
        """True if the turn has an answer, and its truth contains no error, failed call, loop, or shortened or filtered answer."""
        if self.truth is None or self.truth["error"] or not self.truth["output"] or not all(c["ok"] for c in self.truth["tools"]):
            return False
        calls = Counter(json.dumps([call["name"], call.get("arguments")], sort_keys=True) for call in self.truth["tools"])
        answers = self.truth["llm"]
        return (
            max(calls.values(), default=0) <= MOST_REPEATS
            and all(answer.get("status") in (200, None) for answer in answers)
            and not any(answer.get("finish_reason") in ("length", "content_filter", "max_tokens") for answer in answers)
        )


def archives() -> list[Path]:
    """Return the paths of all archives of recordings."""
    return [*sorted(DATA.glob("*.tar.xz")), *sorted((DATA / "recordings").glob("*.tar.xz"))]


def read_recordings(chosen: Iterable[Path]) -> list[Recorded]:
    """Return the turns and conversations of some archives, with references."""
    found: list[Recorded] = []
    for archive in chosen:
        with tempfile.TemporaryDirectory() as place:
            unpack_all(archive, Path(place))
            for folder in sorted({path.parent for path in Path(place).rglob("*.jsonl")}):
                found += _turns_in(folder)
    before: Mapping[str, Any] | None = None
    for number, recorded in enumerate(found):
        recorded.fed = _fed(recorded, before if number % 3 == 2 else recorded.truth)
        before = recorded.truth or before
    return found


def _turns_in(folder: Path) -> Iterator[Recorded]:
    truths = load_truth(folder / "truth.json") if (folder / "truth.json").exists() else {}
    recordings = defaultdict(list)
    for path in sorted(folder.glob("*.jsonl")):
        recordings[path.name.split(".")[0]].append(path)
    for name, paths in recordings.items():
        turns = list(oa.load_turns(paths, report=lambda line: None))
        truth = truths.get(f"{name}.jsonl", {"turns": []})["turns"]
        known = {id(turn): said for turn, said in zip(_aligned(turns, truth), truth, strict=True) if turn is not None}
        spoken: dict[str, list[oa.Turn]] = {}
        for number, turn in enumerate(turns):
            if turn.conversation_id:
                earlier = spoken.setdefault(turn.conversation_id, [])
                turn.history = [{"input": other.input, "output": other.output} for other in earlier]
                earlier.append(turn)
            yield Recorded(f"{folder.name}/{name}#{number + 1}", kind_of(turn), turn, known.get(id(turn)))
        for conversation in spoken.values():
            if len(conversation) > 1:
                yield Recorded(
                    f"{folder.name}/{name}#conversation", "conversation", whole(conversation, 1, _signals(conversation))
                )


def _aligned(turns: list[oa.Turn], truth: Sequence[Mapping[str, Any]]) -> list[oa.Turn | None]:
    """Return the turn that matches each entry of the truth, or None."""
    shown = [{"input": turn.input, "output": turn.output, "llm_calls": turn.llm_calls, "turn": turn} for turn in turns]
    return [found.get("turn") for found in align(shown, truth)]


def kind_of(turn: oa.Turn) -> str:
    """Return the kind of application, one of :data:`KINDS`."""
    if len({run.name for run in turn.agent_runs if run.name}) > 1 or turn.handoffs:
        return "multi-agent"
    if runs_of(turn):
        return "workflow"
    if turn.retrievals:
        return "RAG"
    return "tools" if turn.tool_calls else "plain chat"


def _signals(turns: Iterable[oa.Turn]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for turn in turns:
        for name, signal in SIGNALS.items():
            score = _asked(live_metric(name, {}), turn)[0]
            if score.value is not None:
                found.setdefault(turn.turn_id, {})[signal] = score.value
    return found


def _fed(recorded: Recorded, truth: Mapping[str, Any] | None) -> oa.Turn:
    """Return the turn with references, as a dataset would contain them."""
    turn = copy.copy(recorded.turn)
    answer = str(truth["output"] or "") if truth else ""
    tools = [call["name"] for call in truth["tools"]] if truth else []
    turn.references = {"expected_tools": tools or ["get_weather"], "spec": answer, **EXAMPLES}
    turn.ground_truth = answer or None
    if turn.retrieved_ids:
        turn.relevant_ids = turn.retrieved_ids[-1:] if len(answer) % 2 else turn.retrieved_ids[:1]
    return turn


# --- scores ----------------------------------------------------------------------------------------------------------


class Scripted:
    """A judge and an embedder with pseudo-random answers that depend only on the call."""

    def __init__(self) -> None:
        self.asked = 0

    def ask(self, stage: str, task: str, data: Any, reply: str, *, schema: Any = None, **more: Any) -> dict[str, Any]:
        self.asked += 1
        ranges = {key: (float(low), float(high)) for key, low, high in re.findall(r'"(\w+)": <([0-9.]+) to ([0-9.]+)', reply)}
        spread = random.Random(zlib.crc32(f"{stage} {task} {list(data.values())[:1]}".encode()))  # noqa: S311
        found: dict[str, Any] = self._made(schema or schema_of(reply) or {"type": "object"}, "", ranges, spread)
        return found

    def _made(self, schema: Mapping[str, Any], key: str, ranges: Mapping[str, tuple[float, float]], spread: random.Random) -> Any:
        kind = schema.get("type")
        if "enum" in schema:
            return spread.choice(schema["enum"])
        if kind == "object":
            return {name: self._made(part, name, ranges, spread) for name, part in schema.get("properties", {}).items()}
        if kind == "array":
            return [self._made(schema.get("items", {}), key, ranges, spread) for _ in range(4)]
        if kind in ("number", "integer"):
            low, high = ranges.get(key, (0.0, 1.0))
            return low + (high - low) * spread.choice((0, 0.25, 0.5, 0.75, 1))
        return spread.random() < 0.5 if kind == "boolean" else "as scripted"

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        self.asked += 1
        draws = (random.Random(zlib.crc32(text.encode())) for text in texts)  # noqa: S311
        return [[draw.uniform(-0.2, 1) for _ in range(8)] for draw in draws]


def _asked(metric: BoundMetric, turn: oa.Turn) -> tuple[Score, bool]:
    model = Scripted()
    score = score_one(metric, turn, judge=model, embedder=model)
    return score, model.asked > 0


@dataclass
class Row:
    """Results of one metric on all recordings."""

    metric: Metric
    fed: bool = False
    """True if the turns had references."""
    seen: Counter[str] = field(default_factory=Counter)
    """Number of turns by kind."""
    evaluated: Counter[str] = field(default_factory=Counter)
    values: list[float] = field(default_factory=list)
    passed: list[bool] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def constant(self) -> bool:
        """True if all values are the same."""
        return len({round(value, 6) for value in self.values}) == 1

    @property
    def share(self) -> float:
        """Share of turns and conversations on which the metric is evaluated."""
        return self.evaluated.total() / max(1, self.seen.total())


def measure(metric: Metric, recorded: Sequence[Recorded]) -> Row | None:
    """Evaluate a metric on all recordings, or return None if it can't run here."""
    if metric.combines or metric.name in NOT_RUN or (metric.extra is not None and not extra_installed(metric.extra)):
        return None
    bound = live_metric(metric.name, PARAMETERS.get(metric.name, {}))
    row = _measured(bound, ((one.kind, one.turn) for one in recorded))
    if not row.evaluated and (metric.references or metric.reads & {"ground_truth", "relevant_ids"}):
        row = _measured(bound, ((one.kind, one.fed) for one in recorded))
        row.fed = True
    return row


def _measured(bound: BoundMetric, turns: Iterable[tuple[str, oa.Turn]]) -> Row:
    row, judged = Row(bound.metric), bound.metric.kind != "code"
    for kind, turn in turns:
        row.seen[kind] += 1
        score, asked = _asked(bound, turn) if judged else (score_one(bound, turn), False)
        if asked or (score.status == "ok" and not score.vacuous and not judged):
            row.evaluated[kind] += 1
            if score.status == "ok" and score.value is not None and not score.vacuous:
                row.values.append(score.value)
                row.passed += [] if score.verdict is None else [score.verdict]
        else:
            row.reasons[str(score.detail.get("reason") or ("nothing to evaluate" if score.vacuous else score.error_type))] += 1
    return row


# --- the page --------------------------------------------------------------------------------------------------------


_WRITTEN_BY = (
    "This page shows how often each metric returns a value for the recorded turns in `tests/data`, which we scored like live traffic. "
    "To regenerate the tables of metrics, run `python scripts/gen_docs.py --measure coverage`."
)
_LEGEND = (
    (
        "For metrics marked *(given)*, we added reference data, because spans rarely contain it. "
        "Most turns get their own answer as ground truth, and their own calls as expected tools. Every third turn gets those of the preceding turn. The columns are:"
    ),
    "",
    (
        "- **Plain chat** to **Conversation**: Percentage of turns (or conversations) of this kind for which the metric returns a value that isn't vacuous. "
        "For `llm_` and `embed_` metrics, the percentage of turns for which the metric calls the judge or the embedding model."
    ),
    (
        "- **Values**: Number of distinct values, and after the colon the lowest, median, and highest value. "
        "Empty for judged metrics, because the values depend on the model."
    ),
    "- **Passed**: Percentage of values that pass. Empty for judged metrics, and a dash (–) for metrics without a verdict.",
)


def page(rows: Mapping[str, Row | None], recorded: Sequence[Recorded]) -> str:
    """Return the content of ``docs/reference/metrics/coverage.md``."""
    count = Counter(one.kind for one in recorded)
    turns = len(recorded) - count["conversation"]
    kinds = ", ".join(f"{count[kind]:,} {kind}" for kind in KINDS if kind != "conversation")
    about = (
        f"The recordings have {turns:,} turns ({kinds}) and {count['conversation']:,} conversations with more than one turn. "
        "Each turn counts only for the first matching kind: multi-agent, workflow, RAG, tools, or plain chat."
    )
    lines = [
        "# Coverage",
        "",
        _WRITTEN_BY,
        "",
        about,
        "",
        *_LEGEND,
        "",
    ]
    families: dict[str, list[str]] = {}
    for name in rows:
        families.setdefault(oa.get_metric(name).metric.family, []).append(name)
    for family, names in sorted(families.items()):
        lines += [f"## [{family}]({family}.md)", ""]
        run = {name: row for name in names if (row := rows[name]) is not None}
        more = ["Values", "Passed"] if any(row.metric.kind == "code" for row in run.values()) else []
        columns = ["Metric", *(kind[0].upper() + kind[1:] for kind in KINDS), *more]
        head = [f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
        lines += [*head, *(_line(name, row, more) for name, row in run.items()), ""] if run else []
        notes: dict[str, list[str]] = {}
        for name in names:
            notes.setdefault(_note(name, rows[name]), []).append(f"`{name}`")
        notes.pop("", None)
        lines += [*(f"- {', '.join(named)}: {said}" for said, named in notes.items()), ""] if notes else []
    return "\n".join([*lines, promises.section()])


def _line(name: str, row: Row, more: Sequence[str]) -> str:
    shares = [_percent(row.evaluated[kind], row.seen[kind]) for kind in KINDS]
    if row.metric.kind != "code":
        return f"| {_named(name, row)} | {' | '.join(shares)} |" + " |" * len(more)
    passed = _percent(sum(row.passed), len(row.passed)) if row.passed else "–"
    return f"| {_named(name, row)} | {' | '.join(shares)} | {_spread(row)} | {passed} |"


def _spread(row: Row) -> str:
    if not row.values:
        return "–"
    low, middle, high = min(row.values), statistics.median(row.values), max(row.values)
    distinct = len({round(value, 6) for value in row.values})
    return f"{distinct}: {_short(low)}" if distinct == 1 else f"{distinct}: {_short(low)}, {_short(middle)}, {_short(high)}"


def _short(value: float) -> str:
    return f"{value:.3g}"


def _percent(part: int, of: int) -> str:
    if not of:
        return "–"
    share = 100 * part / of
    return f"{share:.0f}" if part in (0, of) else f"{min(99, max(1, round(share)))}"


def _named(name: str, row: Row | None) -> str:
    return f"`{name}`" + (" (given)" if row is not None and row.fed else "")


def _note(name: str, row: Row | None) -> str:
    if row is None:
        return NOT_RUN.get(name, "not measured, because its value depends on the metrics that it combines.")
    if name in CONSTANT and (row.constant or not row.evaluated):
        return CONSTANT[name]
    if not row.evaluated:
        why, _ = row.reasons.most_common(1)[0]
        return f"always skipped, usually as `{why}`."
    return ""


def unexplained(rows: Mapping[str, Row | None]) -> list[str]:
    """Return metrics with constant or missing values that lack an explanation, and explanations that are outdated."""
    faults = []
    for name, row in rows.items():
        if row is None:
            faults += [] if name in NOT_RUN or oa.get_metric(name).metric.combines else [f"{name}: was not run, for no reason"]
            continue
        constant = row.constant and row.metric.kind == "code"
        if constant and name not in CONSTANT:
            faults.append(
                f"{name}: is {row.values[0]:g} on all {len(row.values)} turns; add the reason to CONSTANT in scripts/coverage_notes.py"
            )
        if name in CONSTANT and row.evaluated and not constant and not row.metric.inline:
            faults.append(f"{name}: is not constant, and its explanation says so")
        missing = row.reasons.most_common(1)[0][0].removeprefix("missing:") if not row.evaluated and row.reasons else ""
        if not row.evaluated and missing not in WAYS_IN and name not in CONSTANT:
            faults.append(f"{name}: is never evaluated ({missing}), and nothing feeds it")
    return faults


# --- healthy turns ---------------------------------------------------------------------------------------------------


def failures(recorded: Iterable[Recorded]) -> Iterator[tuple[str, str, str]]:
    """Yield (turn, metric, reason) for each failed score of a default metric on a healthy turn."""
    pack = [live_metric(name, {}) for name in default_pack()]
    for one in recorded:
        if one.healthy:
            for bound in pack:
                score = score_one(bound, one.turn)
                if score.passed is False and bound.metric.direction != "neutral":
                    yield (
                        one.name,
                        bound.name,
                        score.explanation or json.dumps(score.detail, ensure_ascii=False, default=str)[:200],
                    )


def print_failures(recorded: Sequence[Recorded]) -> bool:
    """Print the failures and their numbers. Return True if their share is small enough."""
    healthy = sum(one.healthy for one in recorded)
    found = list(failures(recorded))
    for turn, metric, why in found:
        print(f"{turn:60} {metric:28} {why}")
    by_metric = Counter(metric for _, metric, _ in found)
    print(f"\n{'metric':30} {'turns':>6}   of {healthy:,} healthy turns")
    for name in default_pack():
        print(f"{name:30} {by_metric[name]:6}   {100 * by_metric[name] / healthy:.2f} %")
    turns = len({turn for turn, _, _ in found})
    print(f"{'any of them':30} {turns:6}   {100 * turns / healthy:.2f} %")
    return turns <= SHARE_OF_HEALTHY * healthy


def measured(recorded: Sequence[Recorded], names: Sequence[str] = ()) -> dict[str, Row | None]:
    """Measure the named metrics, or all metrics if ``names`` is empty."""
    return {metric.name: measure(metric, recorded) for metric in catalog() if not names or metric.name in names}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="metrics; default all")
    parser.add_argument("--healthy", action="store_true", help="print failures of default metrics on healthy turns")
    options = parser.parse_args(arguments)
    recorded = read_recordings(archives())
    if options.healthy:
        return 0 if print_failures(recorded) else 1
    rows = measured(recorded, options.names)
    faults = unexplained(rows)
    print("\n".join(faults), file=sys.stderr)
    for name, row in rows.items():
        print(_line(name, row) if row is not None else f"`{name}`:", _note(name, row))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
