"""Run metrics on turns.

This module runs metrics: on an agent's thread, on the worker, in judge jobs, in ``eval``, and in backfills. :func:`run`
applies selectors, the time budget, and load shedding. :func:`score_one` adds the sources of references to a score.
"""

from __future__ import annotations

import importlib
import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core.errors import MetricError
from ..core.extras import extra_installed
from ..core.score import GATED, SHED, Score
from ..core.turn import Turn
from ..core.turn_cost import Pricing, add_cost
from ..media.rules import sharing
from ..metrics.bound_metric import BoundMetric, live_metric, log_exceptions
from ..metrics.registry import Asks, Embeds, builtin, indexed
from .limits import ForeignMetrics, Shedding
from .redaction import redacted_turn
from .references import INVALID, ReferenceSources, applies, excluded_by, root_attributes, sources_of
from .scored_turn import ScoredTurn

if TYPE_CHECKING:
    from .case_metrics import CaseMetrics

_log = logging.getLogger("otel_agenteval")

_WARM_UP = {
    "turn_id": "warm-up", "duration_s": 1.0, "input": "a@b.example", "output": "See https://a.example, 17 of 4111 1111 1111 1111." + " It is as long as most answers are." * 3,
    "system": "You are an assistant that answers in one sentence and never more than that.",
    "tool_calls": [{"name": "t", "arguments": {"q": "x"}, "result": "17"}] * 3,
    "tool_definitions": [{"name": "t", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}],
    "llm_calls": [{"model": "gpt-4o", "provider": "openai", "input_tokens": 1, "output_tokens": 1, "finish_reason": "stop"}],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip
_IMPORTED_FIRST = ("numpy", "otel_agenteval.detectors.injection", "otel_agenteval.detectors.prompt_leak")
"""Slow imports that many metrics need. :meth:`Evaluator.warm_up` imports each module in a separate step."""
_warm: set[tuple[str, str]] = set()
"""(name, parameter hash) of each metric that has evaluated the warm-up turn."""


def pricing_of(metrics: Sequence[BoundMetric]) -> Pricing:
    """Return the prices that the cost metrics use, so that a turn's cost matches their scores."""
    costs = [one.params for one in metrics if one.metric.name in ("code_cost", "code_max_cost")]
    prices = {model: price for params in reversed(costs) for model, price in (params.get("prices") or {}).items()}
    return Pricing(prices, not costs or any(params.get("estimate", True) for params in costs))


class Outcome(NamedTuple):
    scores: list[Score]
    cut: Sequence[BoundMetric]
    """Metrics that didn't run because the time budget was used up."""
    seconds: float


def score_one(
    metric: BoundMetric,
    turn: Turn,
    sources: Mapping[str, str] | None = None,
    *,
    judge: Any = None,
    embedder: Any = None,
    foreign: ForeignMetrics | None = None,
) -> Score:
    """Evaluate one metric on a turn whose references are attached. The caller must check the metric's selector.

    ``sources`` contains the source of each reference. The score is ``skipped`` if the metric's ``applies`` function (see
    :func:`~otel_agenteval.metrics.registry.metric`) excludes the turn.
    """
    try:
        used = sources_of(metric, sources) if sources else None
    except MetricError as error:
        return about(metric.failed(error), turn)
    score = metric.not_applicable(turn) if metric.applies is not None else None
    if score is None and foreign is not None and not metric.metric.is_ours:
        score = foreign.evaluate(metric, turn)
    elif score is None:
        score = metric.evaluate(turn, judge=judge, embedder=embedder)
    if used and score.status == "ok":
        score.detail["reference_from"] = used
    return about(score, turn)


def about(score: Score, turn: Turn) -> Score:
    """Return the score with ``about`` set to the turn's ID and revision. Return a skipped score unchanged."""
    if score.status != "skipped":
        score.about = (turn.turn_id, b"%d" % turn.revision)
    return score


def run(
    metrics: Sequence[BoundMetric],
    turn: Turn,
    sources: Mapping[str, str] | None = None,
    *,
    budget: float | None = None,
    shed: bool = False,
    foreign: ForeignMetrics | None = None,
) -> Outcome:
    """Evaluate computed metrics, in order, on a turn whose references are attached.

    If a metric's selector excludes the turn, the score is skipped as ``gated``. If ``shed`` is true, heavy metrics are skipped as
    ``shed``. ``foreign`` limits the time of metrics that aren't built in. After ``budget`` CPU seconds, no other metric starts.
    """
    scores: list[Score] = []
    subject = (turn.turn_id, b"%d" % turn.revision)
    clock = time.perf_counter
    start = clock()
    start_cpu = time.thread_time() if budget is not None else 0.0  # a system call, slow on some machines
    deadline = start + budget if budget is not None else float("inf")
    for index, metric in enumerate(metrics):
        if metric.when is not None and (excluded := excluded_by(metric.when, turn)) is not None:
            scores.append(metric.left_out(GATED, f"when.{excluded}"))
            continue
        if shed and metric.heavy:
            scores.append(metric.left_out(SHED))
            continue
        if metric.applies is not None or sources or (foreign is not None and not metric.metric.is_ours):
            scores.append(score_one(metric, turn, sources, foreign=foreign))
        else:  # most metrics
            score = metric.evaluate(turn)
            if score.status != "skipped":
                score.about = subject
            scores.append(score)
        if budget is not None and clock() > deadline:
            spent = time.thread_time() - start_cpu
            if spent > budget:
                turn.forget_shared()
                return Outcome(scores, metrics[index + 1 :], clock() - start)
            deadline = clock() + budget - spent  # part of the time, the thread was waiting for a CPU
    turn.forget_shared()
    return Outcome(scores, (), clock() - start)


def evaluate(
    turn: Turn,
    metrics: Sequence[BoundMetric],
    references: ReferenceSources | None = None,
    *,
    judge: Asks | None = None,
    embedder: Embeds | None = None,
    redact: Collection[str] = (),
    cases: CaseMetrics | None = None,
) -> list[Score]:
    """Attach references to a turn, and evaluate the metrics that apply to the turn.

    ``cases`` contains the metrics for each dataset case. Data of the kinds in ``redact`` is redacted for judges and embedders.
    """
    return begin(turn, metrics, references, judge=judge, embedder=embedder, redact=redact, cases=cases)()


def begin(
    turn: Turn,
    metrics: Sequence[BoundMetric],
    references: ReferenceSources | None = None,
    *,
    judge: Asks | None = None,
    embedder: Embeds | None = None,
    redact: Collection[str] = (),
    cases: CaseMetrics | None = None,
) -> Callable[[], list[Score]]:
    """Run the first step of :func:`evaluate` (metrics that don't call a model). Return a function for the second step.

    The returned function can run on any thread. It evaluates the remaining metrics and returns all scores. Changes to
    the turn between the two steps, for example to its history, affect only judged metrics, as in the live pipeline.
    """
    sources = references.attach(turn, root_attributes(turn)) if references is not None else {}
    if references is not None:
        references.log_absent()
    if cases is not None and references is not None:
        metrics = cases.of(references.case_of(turn))
    add_cost(turn, pricing_of(metrics))

    def score(metric: BoundMetric) -> Score:
        given = embedder if metric.metric.kind == "embed" else judge
        found = None if given is None else decided_without_judge(metric, turn)
        if found is not None:
            return about(found, turn)
        sent = turn if metric.metric.kind == "code" else redacted_turn(turn, redact)
        return score_one(metric, sent, sources, judge=judge, embedder=embedder)

    score_once = Once(metrics, turn, score)
    wanted = [metric for metric in metrics if applies(metric.when, turn)]
    with sharing():
        for metric in wanted:
            if not metric.asks:
                score_once(metric)

    def finish() -> list[Score]:
        with sharing():
            scores = [score_once(metric) for metric in wanted]
        log_exceptions()
        return scores

    return finish


class Once:
    """Cache that scores each metric on a turn only once. An entry's ``when`` in ``metrics`` also applies to inner metrics."""

    def __init__(self, metrics: Sequence[BoundMetric], turn: Turn, score: Callable[[BoundMetric], Score]) -> None:
        self._configured = {metric.key: metric for metric in metrics}
        self._turn = turn
        self._score = score
        self._scores: dict[tuple[str, str], Score] = {}

    def __call__(self, metric: BoundMetric) -> Score:
        if (found := self._scores.get(metric.key)) is None:
            if metric.inner:
                found = about(metric.over([self._inner(one) for one in metric.inner]), self._turn)
            else:
                found = self._score(metric)
            self._scores[metric.key] = found
        return found

    def _inner(self, metric: BoundMetric) -> Score:
        configured = self._configured.get(metric.key, metric)
        excluded = None if configured.when is None else excluded_by(configured.when, self._turn)
        return self(configured) if excluded is None else configured.left_out(GATED, f"gated: when.{excluded}")


class Evaluator:
    """Component that runs all configured computed metrics on closed turns and ended conversations.

    ``budget`` limits the CPU seconds for one turn while the agent waits. ``shedding`` selects the metrics to skip
    under overload. ``foreign`` limits the time of metrics that aren't built in. If ``expected`` is True, references from
    ``expect()`` turn on metrics that read these references.
    """

    def __init__(
        self, metrics: Sequence[BoundMetric], whole: Sequence[BoundMetric], references: ReferenceSources, budget: float,
        shedding: Shedding, expected: bool = True, foreign: ForeignMetrics | None = None,
    ) -> None:  # fmt: skip
        self.shedding = shedding
        self.foreign = foreign
        self.evaluations = 0
        """Number of evaluation steps, which grows while the evaluator is working."""
        self.reload(metrics, whole, references, budget, expected)

    def reload(
        self, metrics: Sequence[BoundMetric], whole: Sequence[BoundMetric], references: ReferenceSources, budget: float,
        expected: bool,
    ) -> None:  # fmt: skip
        """Replace the metrics and references. The change applies to later evaluations."""
        self.metrics = [metric for metric in metrics if not metric.heavy]
        """Metrics that run when a turn closes, even if an exporter or the agent waits."""
        self.heavy = [metric for metric in metrics if metric.heavy]
        """Metrics that run later, usually on the worker."""
        self.whole = whole
        self.references = references
        if self.foreign is not None:
            self.foreign.keep_only((*metrics, *whole))
        self._foreign = self.foreign if any(not metric.metric.is_ours for metric in (*metrics, *whole)) else None
        self._budget = budget
        self._pricing = pricing_of(metrics)
        self._expected = ExpectedMetrics([metric.metric.name for metric in metrics]) if expected else None

    @property
    def names(self) -> list[str]:
        return [metric.name for metric in (*self.metrics, *self.heavy)]

    def warm_up(self) -> Iterator[None]:
        """Evaluate a fictional turn step by step, so that the first real turn is fast.

        The warm-up imports modules and compiles patterns. It doesn't run custom metrics, because these might be slow or have side
        effects. Each metric runs once per process.
        """
        ours = [metric for metric in (*self.metrics, *self.heavy) if metric.metric.is_ours and metric.key not in _warm]
        for module in _IMPORTED_FIRST if ours else ():
            importlib.import_module(module)
            yield
        turn = Turn.from_dict(_WARM_UP)
        for metric in ours:
            if metric.key not in _warm:
                metric.load()
                yield
                metric.evaluate(turn)
                _warm.add(metric.key)
                yield

    def evaluate(self, scored: ScoredTurn, attributes: Mapping[str, Any], *, waited_for: bool = False) -> None:
        """Attach references to a closed turn and compute its first scores.

        Afterwards, ``scored.pending`` contains heavy metrics and metrics that ``expect()`` turns on. If ``waited_for`` is True, the
        list also contains metrics that didn't run because the time budget was used up.
        """
        self.evaluations += 1
        scored.sources = self.references.attach(scored.turn, attributes)
        add_cost(scored.turn, self._pricing)
        found = run(self.metrics, scored.turn, scored.sources, budget=self._budget if waited_for else None, foreign=self._foreign)
        scored.scores, scored.seconds = found.scores, found.seconds
        scored.pending = [*found.cut, *self.heavy]
        if scored.sources and self._expected is not None:
            scored.pending += self._expected.of(scored.sources)

    def opens_media(self, scored: ScoredTurn) -> bool:
        """Return True if the turn has media and a pending metric opens media."""
        if not any(metric.opens_media for metric in scored.pending):
            return False
        return bool(scored.turn.attachments) or any(message.attachments for message in scored.turn.messages)

    def finish_media(self, scored: ScoredTurn) -> None:
        """Evaluate the pending metrics that open media. Call this on a thread that is allowed to wait."""
        self._finish(scored, [metric for metric in scored.pending if metric.opens_media])

    def fail_media(self, scored: ScoredTurn) -> None:
        """Set the scores of pending metrics that open media to errors. Call this method after a timeout."""
        late = MetricError("media_timeout", "opening the turn's media took too long")
        scored.add_scores([about(metric.failed(late), scored.turn) for metric in scored.pending if metric.opens_media])
        scored.pending = [metric for metric in scored.pending if not metric.opens_media]

    def finish(self, scored: ScoredTurn) -> None:
        self.references.log_absent()
        if scored.pending:
            self._finish(scored, scored.pending)

    def _finish(self, scored: ScoredTurn, metrics: Sequence[BoundMetric]) -> None:
        self.evaluations += 1
        with sharing():
            found = run(metrics, scored.turn, scored.sources, shed=self.shedding.skips("heavy"), foreign=self._foreign)
        scored.add_scores(found.scores)
        scored.seconds += found.seconds
        # Removed last, so that another thread evaluates them if this one is interrupted.
        scored.pending = [metric for metric in scored.pending if metric not in metrics] if metrics is not scored.pending else ()

    def evaluate_whole(self, scored: ScoredTurn, *, signals_only: bool = False) -> None:
        """Evaluate a conversation. If ``signals_only`` is true, run only the metrics that read signals."""
        self.evaluations += 1
        metrics = [m for m in self.whole if "session" in m.metric.reads] if signals_only else self.whole
        found = run(metrics, scored.turn, foreign=self._foreign)
        scored.scores, scored.seconds = found.scores, found.seconds


# --- ``code_`` metrics that references from ``expect()`` turn on, without configuration, if their packages are installed

_OF_OTHER_FORMS = frozenset(("code_json_equals", "code_audio_transcription_quality", "code_bleu"))
"""Metrics that ``expect()`` doesn't turn on, because they compare JSON or transcripts, or fail very short answers (BLEU)."""
_READ_ANYWAY = frozenset(("context", "history", "session", "metadata", "attachments"))
"""References that don't turn on metrics, because too many metrics read these references."""
_MOST_KEPT = 256  # maximum number of cached combinations of references


class ExpectedMetrics:
    """Additional metrics for turns with references from ``expect()``."""

    def __init__(self, configured: Collection[str]) -> None:
        self._configured = frozenset(configured)
        self._known: dict[frozenset[str], Sequence[BoundMetric]] = {}

    def of(self, sources: Mapping[str, str]) -> Sequence[BoundMetric]:
        """Return the additional metrics for a turn. ``sources`` contains the source of each reference."""
        given = frozenset([name.partition(".")[0] for name, source in sources.items() if source.startswith(("expect", INVALID))])
        if not given:
            return ()
        if (found := self._known.get(given)) is None:
            if len(self._known) >= _MOST_KEPT:
                self._known.clear()
            names = [name for name in turned_on_by(given) if name not in self._configured]
            found = self._known[given] = [live_metric(name, {}) for name in names]
            if names:
                _log.info("expect() sets %s, which turns on the metrics %s", ", ".join(sorted(given)), ", ".join(names))
        return found


def turned_on_by(given: Collection[str]) -> list[str]:
    known = [metric for name in builtin() if name not in _OF_OTHER_FORMS and (metric := indexed(name)) is not None]
    return [
        metric.name
        for metric in known
        if metric.kind == "code"
        and not (metric.combines or metric.required)
        and not (metric.reads - _READ_ANYWAY).isdisjoint(given)
        and (metric.extra is None or extra_installed(metric.extra))
    ]


# --- task scores of failed and canceled turns, without a judge call
#
# A turn that ended in an error didn't do its task. Without an answer, the judge isn't called, and the turn would be
# missing from averages. The live pipeline, ``eval`` and a backfill therefore score it 0. A direct call of a metric's
# ``evaluate()`` skips it, as the metric's definition states.

OF_THE_TASK = frozenset(("llm_task_completion", "llm_task_success"))
TURN_FAILED, CANCELLED = "turn_failed", "cancelled"


def decided_without_judge(metric: BoundMetric, turn: Turn) -> Score | None:
    """Return a task metric's score for a failed or canceled turn, or None if the metric must run as usual."""
    if metric.metric.name not in OF_THE_TASK or turn.error is None or metric.missing is not None:
        return None
    if (turn.turn_id or "").rpartition(":")[2].startswith("conversation-"):  # a conversation continues after a failed turn
        return None
    if turn.error.is_cancellation:
        return metric.left_out(CANCELLED)
    return metric.scored(0.0, {"decided_by": TURN_FAILED}, passed=False) if gave_nothing(turn) else None


def gave_nothing(turn: Turn) -> bool:
    """Return True if the turn certainly lacks an answer. If content wasn't captured, an answer might exist."""
    if turn.output is not None or not turn.complete or turn.truncated:
        return turn.output == ""
    if turn.input is None:  # content capture is probably off
        return False
    last = turn.llm_calls[-1] if turn.llm_calls else None
    if last is None or last.error is not None:
        return True
    message = turn.messages[-1] if turn.messages else None
    if message is not None and (message.role == "tool" or (message.role == "assistant" and message.tool_calls)):
        return True  # the turn ended while it used tools
    return last.output_tokens == 0
