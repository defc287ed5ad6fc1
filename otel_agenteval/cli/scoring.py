"""Shared code of commands that score recorded turns: options, models, evaluation in one or more processes, and gates."""

from __future__ import annotations

import argparse
import functools
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from ..config.loader import load_config
from ..config.root import Config
from ..core import jsonio
from ..core.display import LINES, escaped
from ..core.errors import ConfigError
from ..core.processes import jobs_of
from ..core.score import Score
from ..core.threads import mark_as_ours
from ..core.turn import Turn
from ..evaluation.case_metrics import CaseMetrics, expected_value
from ..evaluation.evaluator import begin
from ..evaluation.names import WITHHELD, named_publicly
from ..evaluation.redaction import Redactor, redacted_score
from ..evaluation.references import ReferenceSources, unread_columns
from ..evaluation.selection import named, select_conversation_metrics, select_group, select_metrics, with_signals
from ..evaluation.turn_facts import FactValue, facts_of
from ..judging.models import Embedder, InProcessEmbedder, Judge, JudgeGroup, embedder_from, judge_from
from ..judging.sampling import rules_of
from ..judging.session import CommandBudget
from ..metrics.bound_metric import BoundMetric, asked_in, asks_one
from ..metrics.registry import resolve
from ..outlets.accounting import outcome
from ..outlets.turn_text import number_of
from ..report import About, Rendering, Report, Run, compare, parameters_hash, unevaluated_gates
from ..report.differences import causes_of
from ..report.outputs import RunOutput, render_comparison
from ..report.run import MOST_TEXT
from ..turns.conversations import RecordedConversations, looks_back
from ..turns.recordings import Reading
from ..turns.spool import Key, TurnWork
from ..turns.spool import results as in_order
from . import FAILED, OK
from .options import add_scored_config, names_of, progress, report_reading


def add_scoring(parser: argparse.ArgumentParser, default: str) -> None:
    parser.add_argument(
        "--metrics", metavar="A,B",
        help="run only these metrics, with their configured parameters; @NAME runs a group or a preset",
    )  # fmt: skip
    add_scored_config(parser)
    parser.add_argument(
        "--format", action="append", choices=("jsonl", "table", "junit", "markdown", "html"),
        help=f"format of the report: one JSON object per score, a table per turn, JUnit XML, a Markdown summary for a pull request, or an HTML page; repeatable (default: by the suffix of --out, or {default})",
    )  # fmt: skip
    parser.add_argument(
        "--out", action="append", default=[], metavar="FILE",
        help="output file (default: standard output); for several --format options, repeat --out in the same order",
    )  # fmt: skip
    parser.add_argument(
        "--no-content", action="store_true", help="omit inputs and outputs from the reports; explanations can still quote them"
    )
    parser.add_argument(
        "--gate", action="store_true",
        help="exit with code 1 if a gate (a metric with policy: gate) fails or returns an error on any turn, or never has a verdict; a gate other than `llm_moderation` also fails if it is skipped as `empty_output`",
    )  # fmt: skip
    parser.add_argument(
        "--allow-unevaluated", action="store_true",
        help="with --gate: don't fail if a gate never has a verdict, or if there are no gates",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE",
        help="compare this run with an earlier run's scores in FILE (from --format jsonl); with --gate, a gate also fails if it regresses",
    )  # fmt: skip
    parser.add_argument(
        "--fail-on-regression", metavar="A,B|all",
        help="with --gate and --baseline: exit with code 1 if one of these metrics regresses",
    )  # fmt: skip


def open_models(
    config: Config, metrics: Sequence[BoundMetric], *, has_columns: bool = False
) -> tuple[Judge | JudgeGroup | None, Embedder | InProcessEmbedder | None, CommandBudget]:
    """Return the judge, the embedder, and the budget. Warn about metrics without the model or parameter that they require."""
    judge, embedder, budget = judge_from(config), embedder_from(config), CommandBudget(config)
    for kind, given, section in (("llm", judge, "judge"), ("embed", embedder, "embedder")):
        names = dict.fromkeys(metric.name for metric in asked_in(metrics) if metric.metric.kind == kind and not metric.missing)
        if names and given is None:
            where = f"Set {section}.base_url and {section}.model in the configuration"
            print(f"no {section} is configured, so these metrics are skipped: {', '.join(names)}. {where}", file=sys.stderr)
    for metric in metrics:
        if metric.missing is not None:
            what = f"the required parameter {metric.missing!r} is missing, so each score is an error"
            how = f"Set metrics: [{{{metric.metric.name}: {{{metric.missing}: …}}}}] in the configuration"
            if has_columns and metric.missing in ("value", metric.metric.spellings.get("value")):
                what_value = "expected value" if metric.missing == "value" else metric.missing
                how = f"Put the {what_value} into the column value, or pass --columns value=COLUMN"
            print(f"{metric.name}: {what}. {how}", file=sys.stderr)
    warn_of_new_budget(budget)
    return judge, embedder, budget


def warn_of_unread_columns(columns: set[str], cases: CaseMetrics, metrics: Sequence[BoundMetric]) -> None:
    for message in unread_columns(columns - cases.reads, metrics):
        print(message, file=sys.stderr)


def warn_of_new_budget(budget: CommandBudget) -> None:
    """Print a note if the budget has limits that count only this run's spending."""
    if budget.is_limited and not budget.lasts:
        how = "To share it with other processes and runs, set judge.queue to {backend: sqlite, path: FILE}"
        print(f"judge.budget counts only this run. {how}", file=sys.stderr)


def close_models(judge: Judge | JudgeGroup | None, embedder: Embedder | InProcessEmbedder | None, budget: CommandBudget) -> None:
    """Print the judge's and the embedder's usage, and close their connections."""
    budget.close()
    for model in filter(None, (judge, embedder)):
        model.close()
        total = model.total()
        if total.requests:
            cost = "cost unknown" if total.unpriced == total.requests - total.failed else f"{total.cost_usd:.4g} USD"
            unpriced = f" (and {total.unpriced} requests of unknown cost)" if total.unpriced and "USD" in cost else ""
            counts = f"{number_of(total.requests, 'request')}, {total.failed:,} without an answer, {total.input_tokens + total.output_tokens:,} tokens"
            print(f"{model.model}: {counts}, {cost}{unpriced}", file=sys.stderr)


# --- evaluation


def results_of(files: Sequence[str], jobs: str | None, work: TurnWork, *, meet: bool) -> Iterator[Any]:
    """Yield the results of ``work`` on recorded turns. Then print the number of unreadable lines and the reason for missing turns."""
    reading = Reading(progress())
    yield from in_order(files, work, jobs=jobs_of(jobs), meet=meet, seen=reading)
    report_reading(reading)


def chosen(config: Config, names: str | None) -> tuple[list[BoundMetric], list[BoundMetric]]:
    """Return (turn metrics, conversation metrics) from ``--metrics`` or the configuration. Raise ConfigError if any is invalid."""
    selected, whole = select_metrics(config), select_conversation_metrics(config)
    for metrics in (selected, whole):
        rules_of(config, metrics)  # all turns are evaluated here, but invalid rules are still reported
    if names is None:
        return selected, whole
    of_turns: list[BoundMetric] = []
    of_whole: list[BoundMetric] = []
    for name in names_of(names, "--metrics"):
        if name.startswith("@"):
            more, more_whole = select_group(config, name[1:], selected)
            more = [bound for bound in more if bound not in of_turns]
        else:
            more, more_whole = named(config, [name], selected, whole)
        of_turns += more
        of_whole += more_whole
    return with_signals(of_turns, of_whole, selected), of_whole


class Evaluated(NamedTuple):
    about: About
    texts: Sequence[str]
    """The turn as text, in the format of each output."""
    scored: Sequence[tuple[Score, str]]
    """The turn's scores, each with a hash of the metric's parameters. Without ``with_scores``, only scores with an error."""
    facts: Mapping[str, FactValue]
    """The turn's properties. Empty unless the run is compared with a baseline."""

    def add_to(self, outputs: Iterable[RunOutput], run: Run, *, only_errors: bool = False) -> None:
        """Write the turn to the outputs, and add its scores and properties to ``run``."""
        for output, text in zip(outputs, self.texts, strict=True):
            output.add(text, self.scored)
        for score, parameters in self.scored:
            if score.status == "error" or not only_errors:
                run.add(self.about, score, parameters)
        if self.facts:
            run.add_facts(self.about.turn_id, self.facts)


class Evaluation:
    """Evaluation of recorded turns. A pickled copy in another process has no judge or embedder. ``with_scores`` adds all scores to
    the results, ``with_content`` adds the beginnings of a failed turn's input and output, and ``with_facts`` adds the turn's
    properties. By default, ``cases`` contains the cases in ``references.dataset``.
    """

    def __init__(
        self, config: Config, names: str | None, renderings: Sequence[Rendering] = (), *, with_scores: bool = False,
        with_content: bool = True, with_facts: bool = False, judge: Judge | JudgeGroup | None = None,
        embedder: Embedder | InProcessEmbedder | None = None, cases: CaseMetrics | None = None,
    ) -> None:  # fmt: skip
        self._config = config
        self._names = names
        self._renderings = renderings
        self._with_scores, self._with_content, self._with_facts = with_scores, with_content, with_facts
        self._judge, self._embedder = judge, embedder
        self._metrics, self._whole = chosen(config, names)
        self._references = ReferenceSources(config)
        self._cases = cases or CaseMetrics(config, self._metrics, self._references.cases)
        self._hashes = {metric._facts: parameters_hash(metric) for metric in (*self._cases.all, *self._whole)}

    def __reduce__(self) -> tuple[Any, ...]:
        config, kept = json.dumps(self._config.to_dict()), (self._with_scores, self._with_content, self._with_facts)
        return _copy, (config, self._names, self._renderings, *kept)

    @property
    def asks(self) -> bool:
        """True if at least one metric calls a model."""
        return asks_one([*self._cases.all, *self._whole], self._judge, self._embedder)

    @property
    def looks_at_conversations(self) -> bool:
        """True if at least one metric reads several turns of a conversation."""
        return bool(self._whole) or looks_back(self._cases.all)

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, Evaluated]]:
        """Yield each scored turn, then each scored conversation."""
        for key, turn, scores in self.scores(turns):
            yield key, self.render(turn, scores)

    def scores(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, Turn, list[Score]]]:
        """Yield each turn, then each conversation, with unredacted scores."""
        conversations = RecordedConversations(
            self._config.conversation, history=looks_back(self._cases.all), whole=bool(self._whole)
        )

        def begin_turn(turn: Turn) -> Callable[[], list[Score]]:
            finish = self._begin(turn, self._metrics)
            conversations.take(turn)
            return finish

        for key, turn, scores in self._finished((key, turn, begin_turn(turn)) for key, turn in turns):
            conversations.note(turn, scores)
            yield (0, key), turn, scores
        wholes = ((ended.turn, self._begin(ended.turn, self._whole)) for ended in conversations.ended())
        for key, turn, scores in self._finished(((str(turn.start), turn.turn_id), turn, finish) for turn, finish in wholes):
            yield (1, key), turn, scores

    def _begin(self, turn: Turn, metrics: Sequence[BoundMetric]) -> Callable[[], list[Score]]:
        references = self._references if metrics is self._metrics else None
        redact = self._config.privacy.redact
        return begin(turn, metrics, references, judge=self._judge, embedder=self._embedder, redact=redact, cases=self._cases)

    def _finished(self, begun: Iterable[tuple[Key, Turn, Callable[[], list[Score]]]]) -> Iterator[tuple[Key, Turn, list[Score]]]:
        """Yield the turns with their scores, in the order of ``begun``. If any metric calls a model, score turns concurrently."""
        if not self.asks:
            for key, turn, finish in begun:
                yield key, turn, finish()
            return
        most = self._config.judge.max_concurrency
        waiting: deque[tuple[Key, Turn, Future[list[Score]]]] = deque()
        pool = ThreadPoolExecutor(most, "otel-agenteval-eval", mark_as_ours)
        try:
            for key, turn, finish in begun:
                waiting.append((key, turn, pool.submit(finish)))
                if len(waiting) > most:
                    first, asked, future = waiting.popleft()
                    yield first, asked, future.result()
            while waiting:
                first, asked, future = waiting.popleft()
                yield first, asked, future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def render(self, turn: Turn, scores: Iterable[Score]) -> Evaluated:
        """Return a turn's redacted result, with the turn as text in the format of each output."""
        kinds = self._config.privacy.redact
        public = named_publicly(turn, kinds)
        about = About.of(public)  # the references have already set its case
        redactor = Redactor(kinds)
        scored = []
        for score in [redacted_score(score, redactor, turn) for score in scores]:
            if score.status != "skipped":
                score.about = (turn.turn_id, b"%d" % turn.revision)  # the score gets the same id as in other outlets
            scored.append((score, self._hashes[score.facts]))
        if self._with_content and any(outcome(score) in ("fail", "error") for score, _ in scored):
            known = expected_value(turn.references) if turn.ground_truth is None else turn.ground_truth
            expected = None if known is None else jsonio.text_of(known)
            texts_of = {"asked": turn.input, "answered": turn.output, "expected": expected}
            shown: dict[str, Any] = {name: _beginning_of(text, redactor) for name, text in texts_of.items()}
            about = replace(about, **shown)
        texts = [rendering(public, about, scored, redactor) for rendering in self._renderings]
        kept = [pair for pair in scored if self._with_scores or pair[0].status == "error"]
        return Evaluated(about, texts, kept, facts_of(public) if self._with_facts else {})


def _beginning_of(text: str | None, redactor: Redactor) -> str | None:
    """Return the redacted beginning of a text. If the text can't be redacted, return a placeholder instead."""
    if text is None:
        return None
    try:
        return redactor.text(text[: 4 * MOST_TEXT])[:MOST_TEXT]
    except Exception:
        return WITHHELD


@functools.lru_cache(maxsize=1)
def _copy(
    config: str, names: str | None, renderings: Sequence[Rendering], with_scores: bool, with_content: bool, with_facts: bool
) -> Evaluation:
    loaded = load_config(json.loads(config), env={})
    return Evaluation(loaded, names, renderings, with_scores=with_scores, with_content=with_content, with_facts=with_facts)


# --- the result of a run


def watched(args: argparse.Namespace, metrics: Sequence[BoundMetric]) -> set[str]:
    """Return the metrics, besides gates, whose regressions fail the run. If a metric can't regress, raise ConfigError."""
    if args.allow_unevaluated and not args.gate:
        raise ConfigError("--allow-unevaluated: requires --gate")
    if args.fail_on_regression is None:
        return set()
    if not args.gate or args.baseline is None:
        raise ConfigError("--fail-on-regression: requires --baseline FILE and --gate")
    names = names_of(args.fail_on_regression, "--fail-on-regression")
    watch = {name if name == "all" or "." in name else resolve(name)[0].name for name in names}
    for name in sorted(watch - {"all"}):
        directions = {metric.name: metric._facts.direction for metric in metrics}
        if name not in directions:
            raise ConfigError(
                f"--fail-on-regression: metric {name} isn't evaluated in this run. Add the metric to --metrics or the configuration"
            )
        if directions[name] == "neutral":
            raise ConfigError(f"--fail-on-regression: {name} is neutral and can't get worse. Choose a metric with a direction")
    return watch


def reported(args: argparse.Namespace, run: Run, metrics: Sequence[BoundMetric], baseline: Run | None, watch: set[str]) -> Report:
    """Create the report on a run. By default, gates without a verdict fail the run. ``--allow-unevaluated`` allows them."""
    comparison = None
    if baseline is not None:
        comparison = compare(baseline, run, Path(args.baseline).name, watch)
        comparison.causes = causes_of(comparison, run)
        if args.allow_unevaluated:
            with_errors = {row.series.label for row in run.rows if row.outcome == "error"}
            comparison.lost = [label for label in comparison.lost if label in {*comparison.missing, *with_errors}]
    unevaluated = [] if args.allow_unevaluated else unevaluated_gates(metrics, run)
    has_gate = args.fail_on_regression is not None or any(metric.policy == "gate" for metric in metrics)
    if args.gate and not args.allow_unevaluated and not has_gate:
        unevaluated.append("--gate: no metric in this run has policy: gate, so no metric can fail. Set policy: gate for a metric")
    return Report(run, comparison, unevaluated)


_WITH_COMPARISON = frozenset(("table", "markdown", "html"))


def gated(args: argparse.Namespace, report: Report, formats: Sequence[str]) -> int:
    """Print why ``--gate`` failed, and return the exit code. Also print the baseline comparison unless a report contains it."""
    if report.comparison is not None and _WITH_COMPARISON.isdisjoint(formats):
        print(escaped(render_comparison(report.comparison), LINES), end="", file=sys.stderr)
    if not args.gate or not report.failures:
        return OK
    for failure in report.failures:
        print(escaped(failure), file=sys.stderr)
    if report.unevaluated:
        print("to pass anyway, set --allow-unevaluated", file=sys.stderr)
    return FAILED
