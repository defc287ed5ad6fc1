"""The one place where metrics run: on an agent's thread, on the worker, for a judge's job, in ``eval`` and in a backfill.

scores = run(metrics, turn, sources)      # selectors, time budget, load shedding, where references came from
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import MetricError
from ..core.score import GATED, SHED, Score
from ..core.turn import Turn
from ..media.sharing import sharing
from ..metrics.bound_metric import BoundMetric
from ..metrics.registry import Asks, Embeds
from .expected import ExpectedMetrics
from .failed_turns import decided
from .load_shedding import Shedding
from .redaction import redacted_turn
from .references import ReferenceSources, applies, excluded_by, note_sources, root_attributes
from .scored_turn import ScoredTurn

_WARM_UP = {
    "turn_id": "warm-up", "duration_s": 1.0, "input": "a@b.example", "output": "See https://a.example, 17 of 4111 1111 1111 1111." + " It is as long as most answers are." * 3,
    "system": "You are an assistant that answers in one sentence and never more than that.",
    "tool_calls": [{"name": "t", "arguments": {"q": "x"}, "result": "17"}] * 3,
    "tool_definitions": [{"name": "t", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}],
    "llm_calls": [{"model": "gpt-4o", "provider": "openai", "input_tokens": 1, "output_tokens": 1, "finish_reason": "stop"}],
    "usage": {"input_tokens": 1, "output_tokens": 1},
}  # fmt: skip


_warm: set[tuple[str, str]] = set()
"""The metrics that have evaluated it."""


class Outcome(NamedTuple):
    """What came of running metrics on one turn."""

    scores: list[Score]
    cut: Sequence[BoundMetric]
    """The metrics for which the time budget left no room."""
    seconds: float


def score_one(
    metric: BoundMetric, turn: Turn, sources: Mapping[str, str] | None = None, *, judge: Any = None, embedder: Any = None
) -> Score:
    """Evaluate one metric on a turn whose selector lets it in, and whose references are attached.

    ``skipped`` where the metric itself says that it does not apply (``applies`` of :func:`~otel_agenteval.metrics.registry.metric`).

    Args:
        metric: what to evaluate.
        turn: the turn.
        sources: where each of its references came from.
        judge: for an ``llm_`` metric.
        embedder: for an ``embed_`` metric.
    """
    return _score(metric, turn, sources, (turn.turn_id, b"%d" % turn.revision), judge, embedder)


def _score(
    metric: BoundMetric, turn: Turn, sources: Mapping[str, str] | None, about: tuple[str, bytes], judge: Any, embedder: Any
) -> Score:
    score = metric.not_applicable(turn) if metric.applies is not None else None
    if score is None:
        score = metric.evaluate(turn, judge=judge, embedder=embedder)
    if sources:
        note_sources(metric, score, sources)
    if score.status != "skipped":
        score.about = about
    return score


def run(
    metrics: Sequence[BoundMetric],
    turn: Turn,
    sources: Mapping[str, str] | None = None,
    *,
    budget: float | None = None,
    shed: bool = False,
) -> Outcome:
    """Evaluate computed metrics on a turn whose references are attached.

    A metric whose selector excludes the turn is ``skipped`` as gated. A heavy one is skipped as shed while that is asked for.

    Args:
        metrics: what to evaluate, in this order.
        turn: the turn.
        sources: where each of its references came from.
        budget: seconds of this thread's work after which the rest is cut.
        shed: whether heavy metrics are left out.
    """
    scores: list[Score] = []
    about = (turn.turn_id, b"%d" % turn.revision)
    clock = time.perf_counter
    start = clock()
    start_cpu = time.thread_time() if budget is not None else 0.0  # a system call, which some machines make expensive
    deadline = start + budget if budget is not None else float("inf")
    for index, metric in enumerate(metrics):
        if metric.when is not None:
            excluded = excluded_by(metric.when, turn)
            if excluded is not None:
                scores.append(metric.left_out(GATED, f"when.{excluded}"))
                continue
        if shed and metric.heavy:
            scores.append(metric.left_out(SHED))
            continue
        if metric.applies is not None or sources:
            scores.append(_score(metric, turn, sources, about, None, None))
        else:  # most metrics
            score = metric.evaluate(turn)
            if score.status != "skipped":
                score.about = about
            scores.append(score)
        if budget is not None and clock() > deadline:
            spent = time.thread_time() - start_cpu
            if spent > budget:
                turn.forget_shared()
                return Outcome(scores, metrics[index + 1 :], clock() - start)
            deadline = clock() + budget - spent  # the thread was waiting for its turn, not working
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
) -> list[Score]:
    """Score a single turn, with its references, by the metrics that apply to it.

    ``redact`` names what is removed from the turn for metrics that ask a judge or an embedder.
    """
    return begin(turn, metrics, references, judge=judge, embedder=embedder, redact=redact)()


def begin(
    turn: Turn,
    metrics: Sequence[BoundMetric],
    references: ReferenceSources | None = None,
    *,
    judge: Asks | None = None,
    embedder: Embeds | None = None,
    redact: Collection[str] = (),
) -> Callable[[], list[Score]]:
    """As :func:`evaluate`, up to the metrics that ask a model. Returns what asks them, on any thread, and gives the scores of all.

    What is done with the turn in between only judges see, as live: what was said before it in its conversation.
    """
    sources = references.attach(turn, root_attributes(turn)) if references is not None else {}

    def score(metric: BoundMetric) -> Score:
        given = embedder if metric.metric.kind == "embed" else judge
        found = None if given is None else decided(metric, turn)
        if found is not None:
            return about(found, turn)
        seen = turn if metric.metric.kind == "code" else redacted_turn(turn, redact)
        return score_one(metric, seen, sources, judge=judge, embedder=embedder)

    score_once = Once(metrics, turn, score)
    wanted = [metric for metric in metrics if applies(metric.when, turn)]
    with sharing():
        for metric in wanted:
            if not metric.asks:
                score_once(metric)

    def rest() -> list[Score]:
        with sharing():
            return [score_once(metric) for metric in wanted]

    return rest


def about(score: Score, turn: Turn) -> Score:
    """A score that belongs to a turn."""
    if score.status != "skipped":
        score.about = (turn.turn_id, b"%d" % turn.revision)
    return score


class Once:
    """Scores metrics on one turn, each once: a composite takes the scores that there are, and has the others made.

    Args:
        metrics: those that are configured: a composite sees one of them as it is configured, also where it does not apply to the turn.
        turn: the turn.
        score: scores a metric that is no composite.
    """

    def __init__(self, metrics: Sequence[BoundMetric], turn: Turn, score: Callable[[BoundMetric], Score]) -> None:
        self._configured = {metric.key: metric for metric in metrics}
        self._turn = turn
        self._score = score
        self._scores: dict[tuple[str, str], Score] = {}

    def __call__(self, metric: BoundMetric) -> Score:
        """The score of a metric that applies to the turn."""
        found = self._scores.get(metric.key)
        if found is None:
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
    """Runs the configured metrics that are computed: on turns as they close, and on conversations as they end.

    Args:
        metrics: of turns, in this order.
        whole: of conversations.
        references: what turns are compared with.
        budget: seconds that one turn may take where the agent or an exporter waits for it.
        shedding: what is left out while the worker cannot follow.
        expected: whether ``expect()`` turns on the metrics that can use what it gives.
    """

    def __init__(
        self,
        metrics: Sequence[BoundMetric],
        whole: Sequence[BoundMetric],
        references: ReferenceSources,
        budget: float,
        shedding: Shedding,
        expected: bool = True,
    ) -> None:
        self.shedding = shedding
        self.evaluations = 0
        """How often metrics ran on something: a sign of life."""
        self.reload(metrics, whole, references, budget, expected)

    def reload(
        self,
        metrics: Sequence[BoundMetric],
        whole: Sequence[BoundMetric],
        references: ReferenceSources,
        budget: float,
        expected: bool,
    ) -> None:
        """Other metrics and references from the next turn, and the next end of a conversation, on."""
        self.metrics = [metric for metric in metrics if not metric.heavy]
        """Evaluated when a turn closes, also where an exporter or the agent waits for it."""
        self.heavy = [metric for metric in metrics if metric.heavy]
        """Evaluated after them, on the worker alone."""
        self.whole = whole
        self.references = references
        self._budget = budget
        self._expected = ExpectedMetrics([metric.name for metric in metrics]) if expected else None

    @property
    def names(self) -> list[str]:
        """Of the metrics of turns."""
        return [metric.name for metric in (*self.metrics, *self.heavy)]

    def warm_up(self) -> Iterator[None]:
        """Evaluate a made-up turn step by step, so that the first real one does not pay for imports and first compilations.

        Only by metrics of ours: what others do with a turn that never was, and how long it takes them, is unknown. Once in a process: what
        that brings is everybody's.
        """
        turn = Turn.from_dict(_WARM_UP)
        for metric in (*self.metrics, *self.heavy):
            if metric.metric.is_ours and metric.key not in _warm:
                metric.load()
                yield
                metric.evaluate(turn)
                _warm.add(metric.key)
                yield

    def evaluate(self, scored: ScoredTurn, attributes: Mapping[str, Any], *, waited_for: bool = False) -> None:
        """Give a turn its references and the scores of all metrics that are not heavy.

        Args:
            scored: the turn as it was composed; what is left over is noted in it.
            attributes: of the turn's root.
            waited_for: whether the agent waits: past the time budget, the rest is left over.
        """
        self.evaluations += 1
        scored.sources = self.references.attach(scored.turn, attributes)
        found = run(self.metrics, scored.turn, scored.sources, budget=self._budget if waited_for else None)
        scored.scores, scored.seconds = found.scores, found.seconds
        scored.pending = [*found.cut, *self.heavy]
        if scored.sources and self._expected is not None:
            scored.pending += self._expected.of(scored.sources)

    def opens_media(self, scored: ScoredTurn) -> bool:
        """Whether a metric that was left over opens media, and the turn has some."""
        if not any(metric.opens_media for metric in scored.pending):
            return False
        return bool(scored.turn.attachments) or any(message.attachments for message in scored.turn.messages)

    def finish_media(self, scored: ScoredTurn) -> None:
        """Evaluate those of the metrics that were left over that open media. On a thread that may wait."""
        self._finish(scored, [metric for metric in scored.pending if metric.opens_media])

    def leave_out_media(self, scored: ScoredTurn) -> None:
        """Give those of the metrics that were left over that open media an error each: nobody could open them in time."""
        late = MetricError("media_timeout", "the media of the turn could not be opened in time")
        errors = [about(metric.failed(late), scored.turn) for metric in scored.pending if metric.opens_media]
        scored.scores = [*scored.scores, *errors]
        scored.pending = [metric for metric in scored.pending if not metric.opens_media]

    def finish(self, scored: ScoredTurn) -> None:
        """Evaluate what was left over. On the worker."""
        if scored.pending:
            self._finish(scored, scored.pending)

    def _finish(self, scored: ScoredTurn, metrics: Sequence[BoundMetric]) -> None:
        self.evaluations += 1
        with sharing():
            found = run(metrics, scored.turn, scored.sources, shed=self.shedding.leaves_out("heavy"))
        scored.scores = [*scored.scores, *found.scores]
        scored.seconds += found.seconds
        # Taken out last: a thread that is interrupted meanwhile leaves it to the next.
        scored.pending = [metric for metric in scored.pending if metric not in metrics] if metrics is not scored.pending else ()

    def evaluate_whole(self, scored: ScoredTurn, *, signals_only: bool = False) -> None:
        """Evaluate a conversation; where nothing but signals is new, only with the metrics that look at those."""
        self.evaluations += 1
        metrics = [m for m in self.whole if "session" in m.metric.reads] if signals_only else self.whole
        found = run(metrics, scored.turn)
        scored.scores, scored.seconds = found.scores, found.seconds
