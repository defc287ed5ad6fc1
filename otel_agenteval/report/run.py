"""Scores of one run, in a compact form for reports and comparisons."""

from __future__ import annotations

import codecs
import hashlib
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core import jsonio
from ..core.errors import AgentEvalError, ConfigError
from ..core.feedback import METRIC
from ..core.score import FIELDS, Facts, Score, pass_rate
from ..core.turn import Turn
from ..evaluation.turn_facts import FactValue
from ..metrics.bound_metric import BoundMetric
from ..outlets.accounting import answering_call, outcome
from ..outlets.turn_text import facts_in, reason_of
from ..statistics.intervals import Interval, wilson
from ..statistics.repeated import mean_by_case
from ..turns.recordings import open_recording

MOST_TEXT = 300
_SHORT_ID = 8
_HOW = "Pass a report that `otel-agenteval eval` or `experiment` wrote with --format jsonl"
_TURN_ID = re.compile(r"[0-9a-f]{32}-[0-9a-f]{16}")
MOST_WITH_FACTS = 10_000
BLANK = "the answer is blank"
"""Reason shown for a gate that was skipped as ``empty_output``. Such a gate fails, because a blank answer must not pass."""
PARAMETERS = "parameters_hash"
"""JSON key with a hash that distinguishes configurations of the same metric."""


@dataclass(frozen=True, slots=True)
class About:
    turn_id: str
    case_id: str | None = None
    agent: str | None = None
    model: str | None = None
    asked: str | None = None
    """The turn's input, redacted and shortened. Set only if content is shown and a score failed or has an error."""
    answered: str | None = None
    """The turn's output, redacted and shortened. Set under the same conditions as the input."""
    expected: str | None = None
    """The turn's ground truth or expected value. Set under the same conditions as the input."""
    case_turn: int | None = None
    conversation_id: str | None = None
    revision: int = 1

    @classmethod
    def of(cls, turn: Turn) -> About:
        call, case, place = answering_call(turn), turn.references.get("case_id"), turn.references.get("case_turn")
        known = None if case is None else str(case), turn.agent, call.model if call is not None else None
        case_turn = place if isinstance(place, int) else None
        return cls(turn.turn_id, *known, case_turn=case_turn, conversation_id=turn.conversation_id)

    @property
    def name(self) -> str:
        return self.case + (f", turn {self.case_turn}" if self.case_id and self.case_turn else "")

    @property
    def cluster(self) -> str:
        """Conversation ID or, if unknown, trace ID or turn ID. Turns in the same cluster aren't independent."""
        return self.conversation_id or (self.turn_id[:32] if _TURN_ID.fullmatch(self.turn_id) else self.turn_id)

    @property
    def case(self) -> str:
        return self.case_id or self.turn_id


@dataclass(slots=True, eq=False)
class ScoreRow:
    about: About
    series: MetricSeries
    outcome: str
    """Outcome: ``pass``, ``fail``, ``ok``, ``vacuous``, ``error``, or ``skipped``."""
    value: float | None
    passed: bool | None
    why: str
    """The score's explanation, error type, or skip reason. If ``about.answered`` is set, failures also include the detail."""

    @property
    def fails_gate(self) -> bool:
        return self.series.facts.policy == "gate" and (self.passed is False or self.outcome == "error" or self.why == BLANK)

    @property
    def has_value(self) -> bool:
        """False for blank answers and for errors without a verdict. True for all other scores, even if they were skipped."""
        return self.why not in (BLANK, "empty_output") and (self.outcome != "error" or self.passed is not None)


@dataclass(slots=True, eq=False)
class MetricSeries:
    facts: Facts
    parameters: str = ""
    """Hash of the parameters without the threshold. Empty if no other parameter is set."""
    number: int = 1
    rows: list[ScoreRow] = field(default_factory=list)

    @property
    def label(self) -> str:
        """Metric name in reports. If a metric is configured several times, the second configuration is ``name#2``, and so on."""
        return self.facts.metric if self.number == 1 else f"{self.facts.metric}#{self.number}"

    @property
    def evaluated(self) -> list[ScoreRow]:
        """Rows that have a value and aren't vacuous."""
        return [row for row in self.rows if row.outcome in ("pass", "fail", "ok") and row.value is not None]

    @property
    def verdicts(self) -> list[ScoreRow]:
        """Rows that count in the pass rate. If a task raised an exception, its rows count as failed."""
        return [row for row in self.rows if row.passed is not None and row.outcome != "vacuous"]

    def summary(self) -> SeriesSummary:
        values = [row.value for row in self.evaluated if row.value is not None]
        p50, p95 = np.quantile(values, (0.5, 0.95)).tolist() if values else (None, None)
        by_case: dict[str, list[float]] = {}  # the turns of a case aren't independent
        for row in self.verdicts:
            by_case.setdefault(row.about.case, []).append(float(bool(row.passed)))
        interval = None
        if by_case and len(by_case) == len(self.verdicts):
            interval = wilson(sum(value for (value,) in by_case.values()), len(by_case))
        elif (estimate := mean_by_case(by_case, is_share=True)) is not None:
            interval = estimate.interval
        return SeriesSummary(
            len(values), Counter(row.outcome for row in self.rows), float(np.mean(values)) if values else None, p50, p95,
            sum(row.fails_gate for row in self.rows), sum(bool(row.passed) for row in self.verdicts), len(self.verdicts), interval,
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    n: int
    """Number of values, excluding vacuous scores, errors, and skipped scores."""
    outcomes: Counter[str]
    mean: float | None
    p50: float | None
    p95: float | None
    gates_failed: int
    passed: int
    judged: int
    """Number of verdicts. Turns whose task raised an exception count as failed."""
    rate_interval: Interval | None = None
    """95 % interval of the pass rate. None without verdicts, or if cases were repeated and there are too few."""

    @property
    def pass_rate(self) -> float | None:
        return pass_rate(self.passed, self.judged - self.passed)


class Run:
    """Scores of one run. Turns (by ID) and metrics are in the order in which their scores were added."""

    def __init__(self, scale: int = 1) -> None:
        self.scale = scale
        self.turns: dict[str, About] = {}
        self.series: dict[tuple[str, str], MetricSeries] = {}
        self.facts: dict[str, Mapping[str, FactValue]] = {}
        """Properties of turns (facts) by turn ID, for up to :data:`MOST_WITH_FACTS` random turns."""
        self._facts_below = 1 << 32
        self._short: tuple[int, int] | None = None
        """Cached pair: number of turns, and number of ID characters that distinguish these turns."""

    def add(self, about: About, score: Score, parameters: str = "") -> None:
        if about.revision >= self.turns.setdefault(about.turn_id, about).revision:
            self.turns[about.turn_id] = about
        score = on_scale(score, self.scale)
        key = (score.metric, parameters)
        if (series := self.series.get(key)) is None:
            number = 1 + sum(name == score.metric for name, _ in self.series)
            series = self.series[key] = MetricSeries(score.facts, parameters, number)
        is_blank = score.status == "skipped" and score.facts.policy == "gate" and score.detail.get("reason") == "empty_output"
        is_blank = is_blank and score.metric != "llm_moderation"  # a blank answer contains nothing to moderate
        reason = BLANK if is_blank else why(score, facts=score.verdict is False and about.answered is not None)
        series.rows.append(ScoreRow(about, series, outcome(score), score.value, score.verdict, reason))

    def add_facts(self, turn_id: str, facts: Mapping[str, FactValue]) -> None:
        """Add a turn's facts. Above :data:`MOST_WITH_FACTS` turns, keep a random half."""
        if zlib.crc32(turn_id.encode()) < self._facts_below:
            self.facts[turn_id] = facts
        if len(self.facts) > MOST_WITH_FACTS:
            self._facts_below //= 2
            self.facts = {name: kept for name, kept in self.facts.items() if zlib.crc32(name.encode()) < self._facts_below}

    def short_name(self, about: About) -> str:
        """Return a turn's display name: the case ID, or a prefix of the turn ID that is unique in the run."""
        if about.case_id is not None:
            return about.name
        if self._short is None or self._short[0] != len(self.turns):
            longest = max(map(len, self.turns), default=0)
            length = next(
                (n for n in range(_SHORT_ID, longest) if len({one[:n] for one in self.turns}) == len(self.turns)), longest
            )
            self._short = (len(self.turns), length)
        return about.turn_id[: self._short[1]]

    @property
    def rows(self) -> Iterator[ScoreRow]:
        return (row for series in self.series.values() for row in series.rows)

    @classmethod
    def read(cls, path: str, scale: int = 1) -> Run:
        """Read scores from JSON lines. For an invalid line, or without scores, raise AgentEvalError.

        Scores of replaced revisions and turns are dropped. If a turn has several scores of a metric with the same parameters,
        only the last score is kept, except for user feedback.
        """
        run, replaced = cls(scale), set[str]()
        with open_recording(path) as stream:
            try:
                for number, line in enumerate(stream, 1):
                    if line.strip():
                        replaced.add(run._add_line(line.removeprefix(codecs.BOM_UTF8), f"{path}:{number}"))
            except (OSError, EOFError) as problem:
                raise AgentEvalError(f"{path}: cannot be read: {problem}") from None
        if not run.series:
            raise AgentEvalError(f"{path}: no scores found. {_HOW}")
        run.turns = {turn_id: about for turn_id, about in run.turns.items() if turn_id not in replaced}
        newest = {(about.turn_id, about.revision) for about in run.turns.values()}
        for series in run.series.values():
            rows = [row for row in series.rows if (row.about.turn_id, row.about.revision) in newest]
            has_several = series.facts.metric == METRIC  # a turn can get feedback from several users
            series.rows = rows if has_several else [*{row.about.turn_id: row for row in rows}.values()]
        return run

    def _add_line(self, line: bytes, where: str) -> str:
        """Add the score in ``line``. Return the ID of the turn that the scored turn replaces, or ""."""
        try:
            data = jsonio.loads(line)
            if not isinstance(data, dict) or not isinstance(data.get("turn_id"), str):
                raise ConfigError("must be an object with a turn_id")
            known = {key: data[key] for key in ("case_id", "agent", "model", "conversation_id") if isinstance(data.get(key), str)}
            numbers = {key: data[key] for key in ("case_turn", "revision") if isinstance(data.get(key), int)}
            score = Score.from_dict({key: value for key, value in data.items() if key in FIELDS})
        except (ValueError, ConfigError, AttributeError, TypeError) as problem:
            raise AgentEvalError(f"{where}: invalid score: {str(problem)[:120]}. {_HOW}") from None
        self.add(About(data["turn_id"], **known, **numbers), score, str(data.get(PARAMETERS, "")))
        earlier = data.get("supersedes")
        return earlier if isinstance(earlier, str) and earlier != data["turn_id"] else ""


def on_scale(score: Score, scale: int) -> Score:
    """Convert a score on the scale from 0 to 1 to the report's scale. Verdicts and scores on other scales stay the same."""
    if scale == 1 or score.unit != "1" or score.type == "boolean":
        return score
    threshold = None if score.threshold is None else score.threshold * scale
    value = None if score.value is None else score.value * scale
    facts = score.facts._replace(unit=f"/{scale}", threshold=threshold)
    return Score.of(
        facts, value, score.passed, score.status, score.label, score.explanation, score.detail, score.also, score.error_type
    )


def line_of(turn: Turn, about: About, score: Score, parameters: str) -> dict[str, Any]:
    """Return a score as an object of ``--format jsonl``: the turn's keys, then the score's keys."""
    place: Mapping[str, Any] = {
        "turn_id": turn.turn_id, "case_id": about.case_id, "case_turn": about.case_turn, "conversation_id": turn.conversation_id, "service": turn.service,
        "agent": turn.agent, "model": about.model, PARAMETERS: parameters or None,
    }  # fmt: skip
    return {**{key: value for key, value in place.items() if value is not None}, **score.as_sent()}


def parameters_hash(metric: BoundMetric) -> str:
    """Return a hash (12 hex digits) of a metric's parameters without the threshold. If no other parameter is set, return ""."""
    params = metric.params if metric.series_params is None else metric.series_params
    given = sorted((key, value) for key, value in params.items() if key != "threshold")
    return hashlib.sha256(repr(given).encode(errors="replace")).hexdigest()[:12] if given else ""


def why(score: Score, *, facts: bool = False) -> str:
    """Return the reason for a score as text. If ``facts`` is true, add the score's detail, which can quote the turn."""
    if score.status == "skipped":
        return str(score.detail.get("reason") or "not applicable")
    if score.status == "error":
        return f"{score.error_type}: {score.explanation}" if score.explanation else str(score.error_type)
    text = score.explanation or (reason_of(score, facts=False) if score.verdict is False else "")
    return ": ".join(filter(None, (text, "; ".join(facts_in(score.detail, text)) if facts else "")))
