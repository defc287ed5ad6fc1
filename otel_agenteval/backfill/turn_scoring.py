"""Score one recorded turn or conversation in a backfill.

The order is the same as in the live pipeline: computed metrics, judged metrics, composites of judged scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from ..config.root import Config
from ..core import jsonio
from ..core.errors import JudgeError
from ..core.score import GATED, Score, result_id_of
from ..core.tenancy import qualified
from ..core.turn import Turn
from ..evaluation import conditions, failed_turns
from ..evaluation.evaluator import about, score_one
from ..evaluation.names import named_publicly
from ..evaluation.redaction import Redactor, redacted_score, redacted_turn
from ..evaluation.references import applies
from ..judging.composites import ALWAYS, can_be_made, leaves, result_of
from ..judging.job import InnerOutcome, key_of
from ..judging.models import Embedder, InProcessEmbedder, Judge, recording
from ..judging.models.base import cost_of
from ..judging.models.model_server import tokens_in
from ..judging.models.prompt import SYSTEM, prompt_of
from ..judging.models.providers.base import TokenUsage
from ..judging.sampling import EVERY_TURN, Chance, SamplingRule, position
from ..judging.session import CommandBudget
from ..metrics.bound_metric import BoundMetric, why_missing
from ..metrics.question import Answers, Question

_REPLY_TOKENS = 300
"""Assumed length of a reply in a dry run."""

Known = Mapping[str, "Mapping[str, Any] | None"]
"""Existing results by id. Judged results have their columns, because composites use them."""


@dataclass(slots=True)
class ScoringTotals:
    """Counts and costs of a scoring. In a dry run, they are estimates."""

    spans: int = 0
    bad: int = 0
    """Rows that aren't spans."""
    turns: int = 0
    scores: int = 0
    errors: int = 0
    known: int = 0
    """Scores that existed before."""
    model_calls: int = 0
    """Requests to judges and embedders. In a dry run, the requests that are certain to be sent."""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Requests whose price isn't known."""
    metrics: dict[str, int] = field(default_factory=dict)
    """Requests by metric."""

    def add(self, other: ScoringTotals) -> None:
        for name in (one.name for one in fields(self) if one.name != "metrics"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for metric, count in other.metrics.items():
            self.metrics[metric] = self.metrics.get(metric, 0) + count


class Scoring(NamedTuple):
    config: Config
    judge: Any
    embedder: Any
    rules: Mapping[BoundMetric, SamplingRule]
    dry: bool
    """True if requests are counted instead of sent."""
    budget: CommandBudget

    @property
    def within_budget(self) -> tuple[Any, Any]:
        return self.budget.judge(self.judge), self.budget.embedder(self.embedder)


class TurnScoring:
    """The scoring of one turn or conversation. For a conversation, ``span_id`` is the root span id of its last turn."""

    def __init__(
        self,
        setup: Scoring,
        turn: Turn,
        metrics: Sequence[BoundMetric],
        known: Known,
        sources: Mapping[str, str],
        span_id: str | None = None,
    ) -> None:
        self.turn = turn
        self.rows: list[dict[str, Any]] = []
        self.account = ScoringTotals()
        self.made: list[Score] = []
        """Scores available now, from this run or an earlier one."""
        self._setup = setup
        self._metrics = metrics
        self._known = known
        self._sources = sources
        self._span_id = span_id
        self._whole = span_id is not None
        self._redactor = Redactor(setup.config.privacy.redact)
        self._found: dict[str, InnerOutcome] = {}
        """Scores from which composites are computed, by key."""
        subject = turn.conversation_id or "" if self._whole or turn.trace_id is None else turn.trace_id
        self._place = position(qualified(turn.tenant, subject), setup.config.judge.seed or "")

    def compute(self) -> None:
        for metric in self._metrics:
            if not metric.asks and applies(metric.when, self.turn):
                self._compute(metric)

    def judge(self) -> None:
        """Evaluate judged metrics, then compute their composites."""
        judged = [metric for metric in self._metrics if metric.asks]
        for metric in (metric for metric in judged if not metric.inner):
            if applies(metric.when, self.turn):
                self._judge(metric, self._chance(metric))
            else:
                self._found[self._key(metric)] = InnerOutcome(metric.left_out(GATED), Chance(0.0, ""))
        for metric in (metric for metric in judged if metric.inner):
            if applies(metric.when, self.turn):
                self._compose(metric)

    def _compute(self, metric: BoundMetric, *, is_result: bool = True) -> None:
        score = score_one(metric, self.turn, self._sources)
        self.made.append(score)
        self._found[self._key(metric)] = InnerOutcome(score, ALWAYS)
        if self._id(metric) in self._known:
            self.account.known += 1
        elif is_result:
            self._add_row(metric, score, None, ())

    def _chance(self, metric: BoundMetric) -> Chance:
        computed = conditions.Known([score for score in self.made if score.kind == "code"])
        return self._setup.rules.get(metric, EVERY_TURN).chance(self.turn, computed)

    def _judge(self, metric: BoundMetric, chance: Chance, *, is_result: bool = True) -> None:
        """Evaluate a judged metric, unless its score exists or the turn is sampled out."""
        if is_result and self._id(metric) in self._known:
            self.account.known += 1
            there = self._known[self._id(metric)]
            if there is None:
                score = metric.left_out("dropped", "an earlier run computed the score, but its columns are unavailable")
            else:
                detail = jsonio.loads(there["detail"]) if there.get("detail") else None
                score = Score.of(metric._facts, there["value"], there["passed"], "ok", there["label"], None, detail, None, None)
            self._record(metric, score, chance)
        elif self._place >= chance.probability:
            self._found[self._key(metric)] = InnerOutcome(metric.left_out("sampled_out"), chance)
        else:
            score, accounts, questions = self._judged_score(metric)
            self._record(metric, score, chance)
            if is_result:
                self._add_row(metric, score, chance.probability, accounts)
            account = self.account
            for tokens_read, tokens_written, cost in questions:
                account.model_calls += 1
                account.tokens += tokens_read + tokens_written
                account.cost_usd += cost or 0.0
                account.unpriced += cost is None
                account.metrics[metric.name] = account.metrics.get(metric.name, 0) + 1

    def _record(self, metric: BoundMetric, score: Score, chance: Chance) -> None:
        self._found[self._key(metric)] = InnerOutcome(score, chance)
        self.made.append(score)

    def _judged_score(self, metric: BoundMetric) -> tuple[Score, Sequence[Any], Sequence[tuple[int, int, float | None]]]:
        """Return a judged score, its judge calls, and the tokens and cost of each, estimated in a dry run."""
        setup = self._setup
        given = setup.judge if metric.metric.kind == "llm" else setup.embedder
        by_itself = None if given is None else failed_turns.decided(metric, self.turn)
        if by_itself is not None:
            return about(by_itself, self.turn), (), ()
        counting = _Counting(setup.judge, setup.embedder, setup.config)
        judge, embedder = (counting.judge, counting.embedder) if setup.dry else setup.within_budget
        seen = redacted_turn(self.turn, setup.config.privacy.redact, self._redactor)
        with recording() as accounts:
            score = score_one(metric, seen, self._sources, judge=judge, embedder=embedder)
        if setup.dry:
            return score, accounts, counting.questions
        return score, accounts, [(item.input_tokens or 0, item.output_tokens or 0, item.cost_usd) for item in accounts]

    def _compose(self, metric: BoundMetric) -> None:
        if self._id(metric) in self._known:
            self.account.known += 1
            return
        own = self._chance(metric)
        if self._place >= own.probability or not can_be_made(metric, self._found, conversation=self._whole):
            return
        for one in leaves(metric):
            if self._key(one) in self._found:
                continue
            if one.metric.kind == "code":
                self._compute(one, is_result=False)
            else:
                self._judge(one, own, is_result=False)
        made = result_of(metric, own, self._found, conversation=self._whole)
        if made is None or why_missing(made.score) is not None:
            return
        self._add_row(metric, about(made.score, self.turn), made.chance.probability, ())

    def _add_row(self, metric: BoundMetric, score: Score, probability: float | None, accounts: Sequence[Any]) -> None:
        if score.status == "skipped" or self._setup.dry:
            return
        turn = named_publicly(self.turn, self._setup.config.privacy.redact)
        self.rows.append(
            _row(turn, metric, redacted_score(score, self._redactor, self.turn), probability, accounts, self._span_id)
        )
        self.account.scores += 1
        self.account.errors += score.status == "error"

    def _key(self, metric: BoundMetric) -> str:
        return key_of(metric, conversation=self._whole)

    def _id(self, metric: BoundMetric) -> str:
        return result_id_of(metric._facts, self.turn.turn_id or "", b"%d" % self.turn.revision)


class _Counting(Answers):
    """Replaces judge and embedder in a dry run. Counts the first request of a metric, and doesn't answer it."""

    def __init__(self, judge: Judge | None, embedder: Embedder | InProcessEmbedder | None, config: Config) -> None:
        self.questions: list[tuple[int, int, float | None]] = []
        self._config = config
        self.judge = self if judge is not None else None
        self.embedder = self if embedder is not None else None

    def answer(self, question: Question) -> dict[str, Any]:
        tokens = tokens_in([SYSTEM, prompt_of(question).message.text])
        options = self._config.judge
        model = (options.model or "").rpartition("/")[2]
        usage = TokenUsage(tokens, _REPLY_TOKENS)
        costs = [cost_of(name, options.base_url or "", usage, options.prices)[0] for name in (options.model or "", model)]
        cost = costs[0] if costs[0] is not None else costs[1]
        self.questions.append((tokens, _REPLY_TOKENS, cost))
        raise JudgeError("requests are not sent in a dry run", "dry_run")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        tokens, options = tokens_in(texts), self._config.embedder
        cost = cost_of(options.model or "", options.base_url or "", TokenUsage(tokens, 0), options.prices)[0]
        self.questions.append((tokens, 0, cost))
        raise JudgeError("requests are not sent in a dry run", "dry_run")


def _row(
    turn: Turn, metric: BoundMetric, score: Score, probability: float | None, accounts: Sequence[Any], span_id: str | None
) -> dict[str, Any]:
    costs = [account.cost_usd for account in accounts if account.error_type is None]
    known = [cost for cost in costs if cost is not None]
    return {
        "trace_id": turn.trace_id, "span_id": span_id or (turn.turn_id or "").rpartition("-")[2], "turn_id": turn.turn_id,
        "revision": turn.revision, "conversation_id": turn.conversation_id, "service": turn.service, "agent": turn.agent,
        "start": None if turn.start is None else turn.start.isoformat(), "result_id": score.result_id, "metric": score.metric,
        "metric_version": score.version, "parameters_hash": metric.signature_hash, "kind": score.kind, "status": score.status,
        "value": score.value, "passed": score.verdict, "label": score.label, "unit": score.unit, "direction": score.direction,
        "threshold": score.threshold, "policy": score.policy, "explanation": score.explanation, "error_type": score.error_type,
        "detail": jsonio.dumps(score.detail) if score.detail else None, "sample_probability": probability,
        "judge_model": accounts[-1].model if accounts else None,
        "judge_cost_usd": sum(known) if known and len(known) == len(costs) else None,
    }  # fmt: skip
