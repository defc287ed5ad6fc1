"""Report on each metric's reliability, which compares human labels with a run's scores (text, JSON, or web page)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from ..core import jsonio
from ..core.errors import AgentEvalError, ConfigError, meant
from ..core.feedback import METRIC
from ..core.tenancy import turn_id_in
from ..evaluation.datasets import HASH_OF_INPUT, id_of_inputs, input_of, rows_in
from ..outlets.turn_text import number_of
from ..statistics.calibration import Confusion, Threshold, fit_threshold, interval_of, predicted_rate, rogan_gladen
from ..statistics.intervals import Interval, difference_interval
from ..statistics.tests import permutation
from ..statistics.weighted import Estimate
from ..turns.reading.app_events import feedback_in
from ..turns.recordings import Reading, read_items, to_stderr, wholes_of
from .formatting import number, percent, with_interval
from .render import Table, TabularReport
from .run import MetricSeries, Run, ScoreRow

_GOOD = frozenset(("pass", "passed", "good", "true", "yes", "1", "1.0", "up", "+", "ok", "correct", "thumbs_up", "👍"))
_BAD = frozenset(("fail", "failed", "bad", "false", "no", "0", "0.0", "down", "-", "wrong", "incorrect", "thumbs_down", "👎"))
_HEAD = 65_536
_SURE = 0.05
_GOOD_FROM = 0.5
_FEWEST_OF_A_MODEL = 5
_FEW = 30
"""Minimum number of labels with each verdict (good, bad). With fewer labels, intervals are too wide to rely on."""
_VERSION = re.compile(
    r"(?:[-@:](?:\d{3,}(?:-\d\d){0,2}|\d\d-(?:\d{4}|\d\d)|latest|preview|exp|free|extended|v\d+:\d+|v0\.\d+|\d+b)){1,3}$"
)
_EXPLORED = 0.2
"""Share of suggested turns that are drawn at random, so that people also check confident verdicts."""


@dataclass(frozen=True, slots=True)
class Label:
    turn: str
    good: bool
    metric: str | None = None
    """Metric to which the label applies, or None if the label applies to all of the turn's metrics."""
    drawn: bool = True
    """False if the turn wasn't drawn at random. The label of such a turn would bias rates."""
    by_input: bool = False
    """True if ``turn`` is a hash of the turn's input. The hash of a repeated input ends with a hyphen and a number."""


@dataclass(frozen=True, slots=True)
class Preference:
    """Preference of a judge for its own model's answers, compared with people's labels."""

    own: int
    others: int
    size: float
    """Excess of the judge's pass rate over people's for answers by the judge's own model, minus the excess for other answers."""
    interval: Interval
    p: float


@dataclass(frozen=True, slots=True)
class Trust:
    metric: str
    confusion: Confusion
    chosen: int
    """Number of labels for turns that weren't drawn at random. These labels are used only for the threshold."""
    threshold: Threshold | None
    current: float | None
    judged: int
    called_bad: int
    corrected: Estimate | None
    """Estimate of the true share of bad turns, corrected for the judge's error rates (Rogan and Gladen)."""
    preference: Preference | None
    """None if the judge's model is unknown, or if that model or the other models have too few labeled answers."""
    predicted: Estimate | None
    """Estimate of the true share of bad turns, from human labels and all turns' scores (PPI++)."""


def read_labels(path: str) -> list[Label]:
    """Read labels from a JSONL, CSV, or Parquet file. For an invalid label, raise a :class:`ConfigError` with the row's position.

    Columns are ``turn_id`` or ``case_id``, ``label`` (such as pass or fail, yes or no, 1 or 0, 👍 or 👎), and optionally ``metric``.
    A row without an ID is matched by its ``input``, unless several rows have this input. Rows with an empty label are skipped and
    counted in the output. If ``by`` contains a person's name, the person's later label for the same turn and metric replaces the
    earlier label (``null`` withdraws it). If ``chosen`` is set and isn't ``random``, the turn wasn't drawn at random.
    """
    found: dict[tuple[object, ...], Label] = {}
    seen, empty = Counter[str](), 0
    for number_of_row, (place, row) in enumerate(rows_in(path, "labels")):
        turn, label = _first(row, "turn_id", "case_id", "id"), _first(row, "label", "good", "passed")
        metric, by, is_hash = row.get("metric") or None, row.get("by"), False
        if turn is None and (asked := input_of(dict(row))) is not None:
            turn, is_hash = id_of_inputs([jsonio.rendered(asked)], seen), True
        key = (str(turn), metric, str(by)) if by else (number_of_row,)
        found.pop(key, None)
        if turn is not None and label is None and not row.keys().isdisjoint(("label", "good", "passed")):
            empty += not by  # a person can withdraw a label
            continue
        if turn is None or label is None:
            raise ConfigError(
                f"labels: {place}: must have a label, and one of turn_id, case_id, or input. Found columns: {', '.join(sorted(row)) or 'none'}"
            )
        word = str(label).strip().lower()
        if word not in _GOOD and word not in _BAD:
            raise ConfigError(f"labels: {place}: unknown label, got {label!r}. Use pass or fail, yes or no, or 1 or 0")
        found[key] = Label(str(turn), word in _GOOD, metric, row.get("chosen") in (None, "", "random"), is_hash)
    if not found:
        raise ConfigError(f"labels: {path}: file contains no labels")
    if empty:
        to_stderr(f"labels: {path}: skipped {number_of(empty, 'row')} without a label")
    return [replace(one, turn=f"{one.turn}-1") if one.by_input and seen[one.turn] > 1 else one for one in found.values()]


def for_run(labels: Sequence[Label], run: Run) -> list[Label]:
    """Return the labels whose input isn't repeated. Remove the file names that the web UI adds to turn IDs.

    Print the numbers of labels that have a repeated input or don't match a score, and of turns with contradicting labels.
    """
    known = {name for about in run.turns.values() for name in (about.turn_id, about.case_id)}
    hashes = (HASH_OF_INPUT.fullmatch(name or "") for name in known.union(one.turn for one in labels if one.by_input))
    repeated = {match[0].removesuffix(match[1]) for match in hashes if match and match[1]}
    unique = [one for one in labels if not one.by_input or repeated.isdisjoint((one.turn, one.turn.rpartition("-")[0]))]
    if others := len(labels) - len(unique):
        to_stderr(f"labels: ignored {number_of(others, 'label')} with a repeated input; add the column case_id")
    metrics = {None, *(series.facts.metric for series in run.series.values())}
    found = [one if one.turn in known else replace(one, turn=one.turn.partition(":")[2] or one.turn) for one in unique]
    verdicts = Counter((turn, metric) for turn, metric, _ in {(one.turn, one.metric, one.good) for one in found})
    if conflicts := len({turn for (turn, _), count in verdicts.items() if count > 1}):
        to_stderr(f"labels: {number_of(conflicts, 'turn')} with contradicting labels; the last label counts")
    if stray := [one for one in found if one.turn not in known or one.metric not in metrics]:
        of = f" of {stray[0].metric}" if stray[0].turn in known else ""
        to_stderr(f"labels: {number_of(len(stray), 'label')} without a score, such as {stray[0].turn}{of}")
    return found


def _first(row: Mapping[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def labels_of_feedback(run: Run) -> list[Label]:
    rows = (row for series in run.series.values() if series.facts.metric == METRIC for row in series.rows)
    found = [Label(row.about.turn_id, row.passed) for row in rows if row.passed is not None]
    if not found:
        raise AgentEvalError(f"--feedback: the run contains no {METRIC} scores")
    return found


def labels_in_traces(path: str) -> list[Label] | None:
    """Return user feedback in recorded traces as labels. For other files, return None. Without feedback, raise AgentEvalError."""
    try:
        with Path(path).open("rb") as file:
            if re.search(rb'"resource(Spans|Logs)"', file.read(_HEAD)) is None:
                return None
    except OSError:
        return None
    found = []
    for group in wholes_of(read_items([path], Reading(), to_stderr)):
        feedback = feedback_in(group.members)
        if feedback:
            found.append(Label(turn_id_in(group.root.trace_id, group.root.span_id), feedback[-1].score >= _GOOD_FROM))
    if not found:
        raise AgentEvalError(f"labels: {path}: the traces contain no user feedback")
    return found


def trust_in(run: Run, labels: Sequence[Label], metric: str | None = None, judge: str | None = None) -> list[Trust]:
    """Return the reliability of labeled metrics, or only of ``metric``. Without verdicts on labeled turns, raise AgentEvalError."""
    by_turn: dict[str, list[Label]] = {}
    for label in labels:
        by_turn.setdefault(label.turn, []).append(label)
    wanted = (one for one in run.series.values() if metric in (None, one.facts.metric) and one.facts.metric != METRIC)
    found = [_trust(series, labeled, judge) for series in wanted if (labeled := list(_labeled(series, by_turn)))]
    if not found:
        names = [series.facts.metric for series in run.series.values()]
        if metric is not None and metric not in names:
            raise AgentEvalError(f"--metric: {metric}: no score of this metric{meant(metric, names)}")
        of = f" of {metric}" if metric is not None else ""
        raise AgentEvalError(f"labels: no labeled turn has a verdict{of}. Labels must have a score's turn_id, case_id, or input")
    return found


def _labeled(series: MetricSeries, by_turn: Mapping[str, Sequence[Label]]) -> Iterator[tuple[Label, ScoreRow]]:
    for row in series.verdicts:
        for turn in dict.fromkeys((row.about.turn_id, row.about.case_id)):
            of_metric = [label for label in by_turn.get(turn or "", ()) if label.metric in (None, series.facts.metric)]
            for label in of_metric[-1:]:  # only a turn's last label
                yield label, row


def _trust(series: MetricSeries, every: Sequence[tuple[Label, ScoreRow]], judge: str | None) -> Trust:
    labeled = [(label.good, row) for label, row in every if label.drawn]
    confusion = Confusion.of([(good, bool(row.passed)) for good, row in labeled])
    verdicts = series.verdicts
    called_bad = sum(not row.passed for row in verdicts)
    scored = [(label.good, row.value) for label, row in every if row.value is not None]
    predicted = predicted_rate(
        [(good, float(bool(row.passed))) for good, row in labeled], [float(bool(row.passed)) for row in verdicts]
    )
    return Trust(
        series.label, confusion, len(every) - len(labeled), fit_threshold(scored, series.facts.threshold, lower_is_better=series.facts.direction == "down") if scored else None,
        series.facts.threshold, len(verdicts), called_bad, rogan_gladen(called_bad, len(verdicts), confusion), _preference(labeled, judge),
        None if predicted is None else Estimate(1 - predicted.mean, 1 - predicted.high, 1 - predicted.low, predicted.n_eff),
    )  # fmt: skip


def _preference(labeled: Sequence[tuple[bool, ScoreRow]], judge: str | None) -> Preference | None:
    groups: dict[bool, list[float]] = {True: [], False: []}
    for good, row in labeled:
        if judge and row.about.model:  # the same model can have names with different providers and dates
            names = {_VERSION.sub("", name.lower().rpartition("/")[2]) for name in (judge, row.about.model)}
            groups[len(names) == 1].append(float(bool(row.passed)) - float(good))
    own, others = groups[True], groups[False]
    if min(len(own), len(others)) < _FEWEST_OF_A_MODEL:
        return None
    size = float(np.mean(own) - np.mean(others))
    return Preference(len(own), len(others), size, difference_interval(others, own), permutation(others, own))


def to_label(run: Run, labels: Sequence[Label], count: int, metric: str | None = None) -> list[dict[str, Any]]:
    """Suggest unlabeled turns. Most suggested turns have scores near a metric's threshold, and about one in five is drawn at random."""
    known = {label.turn for label in labels}
    rows = [
        row
        for series in run.series.values()
        if metric is None or series.facts.metric == metric
        for row in series.verdicts
        if row.value is not None and row.about.turn_id not in known and row.about.case_id not in known
    ]
    explored = [rows[place] for place in np.random.default_rng(len(rows)).permutation(len(rows))[: round(count * _EXPLORED)]]
    by_metric: dict[str, list[ScoreRow]] = {}
    thresholds = [0.5 if row.series.facts.threshold is None else row.series.facts.threshold for row in rows]
    doubtful = sorted(zip(rows, thresholds, strict=True), key=lambda item: abs((item[0].value or 0.0) - item[1]))
    for row, _ in doubtful:
        by_metric.setdefault(row.series.label, []).append(row)
    unsure = [row for several in zip_longest(*by_metric.values()) for row in several if row is not None]
    chosen: dict[str, ScoreRow] = {}
    for row in (*explored, *unsure):
        chosen.setdefault(row.about.turn_id, row)
    return [
        {
            "turn_id": turn, "case_id": row.about.case_id, "metric": row.series.facts.metric, "score": row.value, "passed": row.passed,
            "label": None, "chosen": "random" if any(row is one for one in explored) else "doubtful",
        }
        for turn, row in list(chosen.items())[:count]
    ]  # fmt: skip


# --- as texts ------------------------------------------------------------------------------------------------------


def _share(share: float | None, n: int) -> str:
    found = interval_of(share, n)
    return "–" if found is None else f"{with_interval(share, found)} of {n}"


def _rows(trust: Trust) -> Iterator[tuple[str, str]]:
    of = trust.confusion
    called_bad = trust.called_bad / trust.judged if trust.judged else None
    yield "labeled turns", f"{of.n}: {of.bad} bad, {of.good} good"
    yield "found, missed, false alarms, passed", f"{of.found}, {of.missed}, {of.alarms}, {of.passed}"
    yield "agreement with people", _share(of.agreement, of.n)
    yield "agreement beyond chance (kappa)", "–" if of.kappa is None else number(of.kappa)
    yield "bad turns found (recall)", _share(of.recall, of.bad)
    yield "correct alarms (precision)", _share(of.precision, of.found + of.alarms)
    yield "good turns passed (specificity)", _share(of.specificity, of.good)
    yield "turns that the metric fails", _share(called_bad, trust.judged)
    for method, found in (("Rogan–Gladen", trust.corrected), ("PPI++", trust.predicted)):
        yield f"estimated bad turns ({method})", "–" if found is None else with_interval(found.mean, (found.low, found.high))
    if (own := trust.preference) is not None:
        yield (
            "preference for its own model's answers",
            f"{with_interval(own.size, own.interval)}, of {own.own} own and {own.others} others, p = {own.p:.3f}",
        )
    if trust.corrected is not None:
        yield "correct alarms at the Rogan–Gladen rate", percent(of.precision_at(trust.corrected.mean))
    if trust.threshold is not None:
        value, fitted = trust.threshold
        hint = "no threshold is better" if value == trust.current else f"these labels suggest {number(value)}"
        rates = f"with recall {percent(fitted.recall)}, specificity {percent(fitted.specificity)}"
        yield "threshold", f"{number(trust.current)}; {hint}, {rates}"


def _warnings(trust: Trust) -> list[str]:
    of, found = trust.confusion, []
    if trust.chosen:
        found.append(f"{trust.metric}: {trust.chosen} labels of turns not drawn at random are used only for the threshold")
    if min(of.bad, of.good) < _FEW:
        found.append(
            f"{trust.metric}: {of.bad} bad and {of.good} good labels; with fewer than {_FEW} of each, intervals are wide"
        )
    if of.recall is not None and of.specificity is not None and of.recall + of.specificity <= 1:
        found.append(f"{trust.metric}: doesn't distinguish bad turns from good turns better than chance")
    own = trust.preference
    if own is not None and own.p < _SURE and own.size > 0:
        found.append(f"{trust.metric}: prefers answers of its own model; use another judge for these answers")
    return found


def as_report(found: Sequence[Trust]) -> TabularReport:
    tables = [Table(trust.metric, ("", "with 95 % interval"), [*_rows(trust)]) for trust in found]
    warnings = [_warnings(trust) for trust in found]
    data = [
        {
            "metric": trust.metric, "labelled": trust.confusion.n, "chosen": trust.chosen, "confusion": trust.confusion._asdict(), "agreement": trust.confusion.agreement,
            "kappa": trust.confusion.kappa, "recall": trust.confusion.recall, "precision": trust.confusion.precision,
            "specificity": trust.confusion.specificity, "judged": trust.judged, "said_bad": trust.called_bad,
            "corrected": None if trust.corrected is None else trust.corrected._asdict(),
            "predicted": None if trust.predicted is None else trust.predicted._asdict(),
            "threshold": trust.current, "suggested_threshold": None if trust.threshold is None else trust.threshold.value,
            "self_preference": None if trust.preference is None else asdict(trust.preference),
            "warnings": texts,
        }
        for trust, texts in zip(found, warnings, strict=True)
    ]  # fmt: skip
    return TabularReport("Judge calibration", tables, data, [text for texts in warnings for text in texts])
