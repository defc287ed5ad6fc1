"""Result of an experiment: trials (repetitions of a case) with turns and scores, summarized by metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..core.display import table_html
from ..core.score import Score, pass_rate
from ..core.turn import Turn
from ..outlets.accounting import outcome
from ..statistics.repeated import FEWEST_CASES, Tries, consistency, mean_by_case, pass_at_k, pass_hat_k
from .compare import Comparison, compare
from .formatting import errors_in, number, percent, share
from .frames import ScoredTurns
from .outputs import render_comparison
from .render import aligned
from .run import About, Run, line_of, why


class Trial(NamedTuple):
    """One repetition of a case."""

    case_id: str
    repetition: int
    scored: Sequence[tuple[Turn, Sequence[Score]]]
    """The trial's turns in order, with their scores. If metrics evaluated the conversation, it follows as the last item."""
    error: str | None
    seconds: float
    reached_max_turns: bool = False
    """True if the conversation ended at the case's ``max_turns``, maybe before the simulated user had finished."""
    place: str = ""
    """Position in the dataset, such as ``qa.csv:3``, if the dataset has no ID for the case."""


class Summary(NamedTuple):
    """Results of one metric over all cases. The 95 % intervals are computed over cases, because repetitions aren't independent."""

    metric: str
    unit: str
    cases: int
    n: int
    """Number of values, excluding vacuous scores, errors, and skipped scores."""
    mean: float | None
    low: float | None
    """Lower end of the 95 % interval, or None with too few cases (fewer than five, or more if some have fewer values)."""
    high: float | None
    passed: int
    judged: int
    """Number of trials with a verdict. Trials whose task raised an exception count as failed."""
    pass_rate: float | None
    pass_at_k: float | None
    """Probability that at least one of k trials passes. k is the number of repetitions, or lower if a case has fewer verdicts."""
    pass_hat_k: float | None
    """Probability that all k trials pass."""
    consistency: float | None
    """Share of repeated cases whose trials all have the same verdict. None without repeated cases."""
    errors: int
    """Number of error scores, including scores of trials whose task raised an exception."""
    skipped: int
    type: str = "numeric"


class Experiment:
    """The result of :func:`otel_agenteval.evaluate`."""

    def __init__(self, trials: Sequence[Trial], scale: int = 1) -> None:
        self.trials = list(trials)
        self.scale = scale

    @property
    def turns(self) -> list[Turn]:
        """Turns of all trials. A conversation that metrics evaluate as a whole follows its turns as an additional turn."""
        return [turn for trial in self.trials for turn, _ in trial.scored]

    @property
    def scored(self) -> ScoredTurns:
        """Turns of all trials, each with its scores."""
        return ScoredTurns(pair for trial in self.trials for pair in trial.scored)

    @property
    def failures(self) -> list[Trial]:
        """Trials that failed a metric or whose task raised an exception."""
        return [
            trial
            for trial in self.trials
            if trial.error or any(outcome(score) == "fail" for _, scores in trial.scored for score in scores)
        ]

    def summary(self) -> list[Summary]:
        """Return a summary of each metric over all cases, in the order of the metrics."""
        found: dict[str, list[tuple[Trial, Score]]] = {}
        for trial in self.trials:
            for score in chain.from_iterable(scores for _, scores in trial.scored):
                found.setdefault(score.metric, []).append((trial, score))
        k = max((trial.repetition for trial in self.trials), default=1)
        return [_summary(name, scores, k) for name, scores in found.items()]

    def frame(self) -> Any:
        """Return a pandas DataFrame with one row per score.

        The columns are ``case_id``, ``repetition``, ``turn`` (the turn's number in a conversation, or NA), and all columns of
        :meth:`ScoredTurns.frame`.

        Raises:
            MissingExtra: If pandas isn't installed.
        """
        frame = self.scored.frame()
        rows = [(trial, About.of(turn)) for trial in self.trials for turn, scores in trial.scored for _ in scores]
        frame.insert(0, "case_id", [trial.case_id for trial, _ in rows])
        frame.insert(1, "repetition", [trial.repetition for trial, _ in rows])
        frame.insert(2, "turn", [about.case_turn for _, about in rows])
        return frame.astype({"turn": "Int64"})

    def run(self) -> Run:
        """Return the scores in the form that reports and comparisons use."""
        run = Run(self.scale)
        for turn, scores in self.scored:
            about = About.of(turn)
            for score in scores:
                run.add(about, score)
        return run

    def compare(self, baseline: Experiment | str | Path, watch: Sequence[str] = ()) -> Comparison:
        """Compare this experiment with an earlier experiment, case by case.

        The result contains each metric's difference, interval, and p-value, corrected for the number of tests.

        Args:
            baseline: an experiment, or a file written by :meth:`write` or ``otel-agenteval eval --format jsonl``.
            watch: metrics whose regression is a failure, in addition to metrics with the policy ``gate``. ``all`` watches every
                metric.

        Raises:
            AgentEvalError: If the file can't be read or contains no score.
        """
        if isinstance(baseline, Experiment):
            return compare(baseline.run(), self.run(), "the earlier experiment", watch)
        return compare(Run.read(str(baseline), scale=self.scale), self.run(), Path(baseline).name, watch)

    def compared(self, baseline: Experiment | str | Path) -> str:
        """Return the result of :meth:`compare` as text."""
        return render_comparison(self.compare(baseline))

    def write(self, path: str | Path) -> None:
        """Write the scores as a baseline for later experiments.

        Each line is one score as JSON, as in ``otel-agenteval eval --format jsonl``. Scores can quote inputs and outputs.
        """
        from ..core import jsonio

        with Path(path).open("w", encoding="utf-8") as file:
            for turn, scores in self.scored:
                about = About.of(turn)
                file.writelines(jsonio.dumps(line_of(turn, about, score, "")) + "\n" for score in scores)

    def __str__(self) -> str:
        lines = [aligned(list(_cells(self))), *errors_in(self.run())]
        for one in self.summary():
            scored = [score for _, scores in self.scored for score in scores if one.skipped and score.metric == one.metric]
            without = (score for score in scored if score.status == "skipped" or score.vacuous)
            for reason, count in Counter(why(score) or "nothing to evaluate" for score in without).most_common(1):
                if not one.n and not one.errors:
                    lines.append(f"{one.metric} was skipped on every turn: {reason}")
                elif reason.startswith("missing:") and 2 * count >= len(scored):
                    lines.append(f"{one.metric}: {count:,} of {len(scored):,} scores were skipped: {reason}")
        raised = [trial for trial in self.trials if trial.error]
        lines += [f"{trial.place or trial.case_id}, repetition {trial.repetition}: {trial.error}" for trial in raised[:5]]
        if len(raised) > 5:
            lines.append(f"and {len(raised) - 5} more trials raised exceptions")
        if full := [trial.place or trial.case_id for trial in self.trials if trial.reached_max_turns]:
            names = ", ".join(dict.fromkeys(full[:5]))
            lines.append(f"conversations that reached max_turns: {len(full)} ({names}{', …' * (len(full) > 5)})")
        return "\n".join(lines)

    def __repr__(self) -> str:
        cases = len({trial.case_id for trial in self.trials})
        return f"Experiment({cases} cases, {len(self.trials)} trials, {len(self.failures)} with a failure)"

    def _repr_html_(self) -> str:
        heads, *rows = _cells(self)
        return table_html(repr(self), heads, rows)


class Interrupted(KeyboardInterrupt):
    """Error raised on Ctrl+C. Contains the finished trials."""

    def __init__(self, experiment: Experiment) -> None:
        super().__init__()
        self.experiment = experiment


def _summary(metric: str, found: Sequence[tuple[Trial, Score]], k: int) -> Summary:
    values: dict[str, list[float]] = {}
    verdicts: dict[str, dict[int, bool]] = {}
    """Verdict by case ID and then by repetition. A trial with several turns passes if all of its turns pass."""
    for trial, score in found:
        if score.status == "ok" and not score.vacuous and score.value is not None:
            values.setdefault(trial.case_id, []).append(score.value)
        if score.verdict is not None and not score.vacuous:
            trials = verdicts.setdefault(trial.case_id, {})
            trials[trial.repetition] = trials.get(trial.repetition, True) and score.verdict
    tries = [Tries(len(passed), sum(passed.values())) for passed in verdicts.values()]
    passed, judged = sum(one.passed for one in tries), sum(one.n for one in tries)
    estimate = mean_by_case(values, is_share=found[0][1].unit == "1")
    mean = None if estimate is None else estimate.mean
    low, high = (None, None) if estimate is None or estimate.interval is None else estimate.interval
    return Summary(
        metric, found[0][1].unit, len(values), sum(map(len, values.values())), mean, low, high, passed, judged,
        pass_rate(passed, judged - passed),
        sum(pass_at_k(one, min(k, one.n)) for one in tries) / len(tries) if tries else None,
        sum(pass_hat_k(one, min(k, one.n)) for one in tries) / len(tries) if tries else None, consistency(tries),
        sum(score.status == "error" for _, score in found), sum(score.status == "skipped" for _, score in found),
        found[0][1].type,
    )  # fmt: skip


def _cells(experiment: Experiment) -> Iterator[list[str]]:
    summaries = [summary for summary in experiment.summary() if summary.n or summary.errors]
    k = max((trial.repetition for trial in experiment.trials), default=1)
    repeated = [f"pass@{k}", f"pass^{k}", "consistent"] if k > 1 else []
    yield ["metric", "cases", "mean", "95 % interval", "passed", *repeated, "errors", "skipped"]
    for one in summaries:
        factor = experiment.scale if one.unit == "1" and one.type != "boolean" else 1
        mean, low, high = (number(None if found is None else found * factor, one.unit) for found in (one.mean, one.low, one.high))
        interval = f"needs {'more' if one.cases >= FEWEST_CASES else FEWEST_CASES} cases" if one.n else ""
        if one.low is not None:
            interval = f"{low} … {high}" if one.low != one.high else "unknown"
        repeated = [percent(one.pass_at_k), percent(one.pass_hat_k), percent(one.consistency)] if k > 1 else []
        rate = share(one.passed, one.judged, whole=not (one.errors or one.skipped))
        yield [one.metric, str(one.cases), mean, interval, rate, *repeated, str(one.errors or ""), str(one.skipped or "")]
