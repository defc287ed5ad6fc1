"""Score one batch of complete traces.

This module doesn't depend on Daft or Ray. Python code groups spans into turns, because one callback per trace from Daft would
take longer than the scoring.

As in the live pipeline, computed metrics run first, then judged metrics, and then composite metrics that combine judged scores.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core import jsonio
from ..core.errors import JudgeError, NotASpan
from ..core.extras import require
from ..core.score import GATED, Score, result_id_of
from ..core.tenancy import qualified
from ..core.threads import mark_as_ours
from ..core.turn import Turn
from ..core.turn_cost import add_cost
from ..evaluation import conditions
from ..evaluation.evaluator import about, decided_without_judge, pricing_of, score_one
from ..evaluation.names import named_publicly
from ..evaluation.redaction import Redactor, redacted_score, redacted_turn
from ..evaluation.references import ReferenceSources, applies, root_attributes
from ..evaluation.selection import named, select_conversation_metrics, select_metrics, with_signals
from ..judging.job import InnerOutcome, key_of
from ..judging.models import Embedder, InProcessEmbedder, Judge, embedder_from, judge_from, recording
from ..judging.models.base import cost_of
from ..judging.models.model_server import tokens_in
from ..judging.models.prompt import SYSTEM, prompt_of
from ..judging.models.providers.base import TokenUsage
from ..judging.outcomes import ALWAYS, can_be_made, leaves, result_of
from ..judging.sampling import EVERY_TURN, Chance, SamplingRule, position, rules_of
from ..judging.session import CommandBudget
from ..metrics.bound_metric import BoundMetric, asks_one, why_missing
from ..metrics.question import Answers, Question
from ..spans.columnar import spans_of
from ..spans.record import SpanRecord
from ..turns.conversations import RecordedConversations, conversation_of, looks_back
from ..turns.recordings import turns_of

RESULT_COLUMNS: Mapping[str, str] = {
    "trace_id": "string", "span_id": "string", "turn_id": "string", "revision": "int64", "conversation_id": "string",
    "service": "string", "agent": "string", "start": "string", "result_id": "string", "metric": "string",
    "metric_version": "string", "parameters_hash": "string", "kind": "string", "status": "string", "value": "double",
    "passed": "bool", "label": "string", "unit": "string", "direction": "string", "threshold": "double", "policy": "string",
    "explanation": "string", "error_type": "string", "detail": "string", "sample_probability": "double", "judge_model": "string",
    "judge_cost_usd": "double",
}  # fmt: skip
"""Columns of the results. ``trace_id`` and ``span_id`` are the IDs of the turn's root, so that results can be joined with spans."""
_REPLY_TOKENS = 300

Known = Mapping[str, "Mapping[str, Any] | None"]
"""Maps result IDs to existing results. A judged result is a dict of columns that composite metrics read. Others can be None."""


class Scorer:
    """Scorer for batches of traces. Create one scorer per process. If ``metrics`` is None, the scorer evaluates the configured
    metrics. If ``dry`` is True, model requests are counted, not sent. Raises ConfigError for unknown metrics or invalid options.
    """

    def __init__(self, config: Config, metrics: Sequence[str] | None = None, *, dry: bool = False) -> None:
        self.config = config
        self.dry = dry
        self._names = None if metrics is None else tuple(metrics)
        self.metrics, self.whole, self.rules = chosen(config, metrics)
        self._looks_back = looks_back(self.metrics)
        self.by_conversation = bool(self.whole) or self._looks_back
        self._pricing = pricing_of(self.metrics)
        self._references = ReferenceSources(config)
        self._threads = config.judge.max_concurrency
        self.judge: Any = judge_from(config)
        self.embedder: Any = embedder_from(config)
        self.asks = asks_one([*self.metrics, *self.whole], self.judge, self.embedder)
        self.budget = CommandBudget(config)

    @property
    def keys(self) -> list[str]:
        """Return one string per metric, which identifies the metric's version, its parameters, and how traces are grouped."""
        of_turns = [metric._facts.identity.decode() for metric in self.metrics]
        of_wholes = [f"conversation {metric._facts.identity.decode().strip()}" for metric in self.whole]
        batches = " by conversation" if self.by_conversation else ""
        return sorted(text.strip().replace("\n", " ") + batches for text in (*of_turns, *of_wholes))

    @property
    def copies(self) -> tuple[str, tuple[str, ...] | None]:
        """Return the arguments with which :func:`scorer_of` creates an equal scorer in another process."""
        return json.dumps(self.config.to_dict()), self._names

    def close(self) -> None:
        self.budget.close()
        for model in (self.judge, self.embedder):
            if model is not None:
                model.close()

    def score(self, tables: Any, known: Known = MappingProxyType({})) -> tuple[Any, ScoringTotals]:
        """Score complete traces. Return (table of results with :data:`RESULT_COLUMNS`, totals). If a result's ID is in ``known``,
        the result isn't returned, and its metric isn't judged again. Raises ValueError if a required column
        (:mod:`otel_agenteval.spans.columnar`) is missing.
        """
        account = ScoringTotals()
        rows: list[dict[str, Any]] = []
        turns = list(turns_of(self._records(tables if isinstance(tables, (list, tuple)) else [tables], account)))
        account.turns = len(turns)
        conversations = RecordedConversations(self.config.conversation, history=self._looks_back, whole=bool(self.whole))
        scorings = []
        for turn in turns:  # judged metrics follow when all turns are known, because they read earlier turns
            sources = self._references.attach(turn, root_attributes(turn))
            self._references.log_absent()
            add_cost(turn, self._pricing)
            scorings.append(TurnScoring(self, turn, self.metrics, known, sources))
            scorings[-1].compute()
            conversations.take(turn)
        self._judge_all(scorings)
        for scoring in scorings:
            conversations.note(scoring.turn, scoring.made)
        wholes = [TurnScoring(self, ended.turn, self.whole, known, {}, span_id=ended.last) for ended in conversations.ended()]
        for whole in wholes:
            whole.compute()
        self._judge_all(wholes)
        for scoring in (*scorings, *wholes):
            rows += scoring.rows
            account.add(scoring.account)
        pa = require("pyarrow", feature="backfill", extra="backfill")
        types = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
        schema = pa.schema([(name, types[kind]) for name, kind in RESULT_COLUMNS.items()])
        return pa.Table.from_pylist(rows, schema), account

    def _judge_all(self, scorings: Sequence[TurnScoring]) -> None:
        asks = any(metric.asks for metric in (*self.metrics, *self.whole))
        if asks and not self.dry and len(scorings) > 1:
            with ThreadPoolExecutor(self._threads, "otel-agenteval-backfill", mark_as_ours) as pool:
                list(pool.map(TurnScoring.judge, scorings))  # raises a thread's exception
        else:
            for scoring in scorings:
                scoring.judge()

    def conversations_in(self, tables: Iterable[Any]) -> dict[str, str]:
        turns = turns_of(self._records(tables, ScoringTotals()))
        return {turn.trace_id: conversation_of(turn) for turn in turns if turn.trace_id and turn.conversation_id}

    @staticmethod
    def _records(tables: Iterable[Any], account: ScoringTotals) -> Iterable[Any]:
        for table in tables:
            for item in spans_of(table):
                if isinstance(item, NotASpan):
                    account.bad += 1
                else:
                    account.spans += isinstance(item, SpanRecord)
                    yield item


def score_batch(
    table: Any, config: Config | Mapping[str, Any] | str | None = None, *, metrics: Sequence[str] | None = None
) -> Any:
    """Score a ``pyarrow.Table`` of spans, and return a table of results.

    Args:
        table: spans in columns (see :mod:`otel_agenteval.spans.columnar`). It must contain complete traces.
        config: configuration object, mapping, or file path.
        metrics: names of the metrics to evaluate. The default is the configured metrics.

    Raises:
        ConfigError: if the configuration is invalid.
        ValueError: if a required column is missing.
    """
    scorer = Scorer(load_config(config), metrics)
    try:
        return scorer.score(table)[0]
    finally:
        scorer.close()


_MAKING = threading.Lock()
_scorers: dict[tuple[str, tuple[str, ...] | None], Scorer] = {}


def scorer_of(config: str, metrics: tuple[str, ...] | None) -> Scorer:
    with _MAKING:
        found = _scorers.get((config, metrics))
        if found is None:
            if len(_scorers) == 4:
                _scorers.clear()
            found = _scorers[config, metrics] = Scorer(load_config(json.loads(config), env={}), metrics)
        return found


def chosen(
    config: Config, names: Sequence[str] | None
) -> tuple[list[BoundMetric], list[BoundMetric], Mapping[BoundMetric, SamplingRule]]:
    """Return (turn metrics, conversation metrics, sampling rules). If ``names`` is None, return all configured metrics. Sampling
    rules are always for all configured metrics. Raises ConfigError for an unknown name or invalid sampling options.
    """
    selected, whole = select_metrics(config), select_conversation_metrics(config)
    rules = {**rules_of(config, selected), **rules_of(config, whole)}
    if names is None:
        return selected, whole, rules
    of_turns, of_whole = named(config, names, selected, whole)
    return with_signals(of_turns, of_whole, selected), of_whole, rules


@dataclass(slots=True)
class ScoringTotals:
    """A run's counts and costs. In a dry run, tokens and costs are estimates."""

    spans: int = 0
    bad: int = 0
    turns: int = 0
    scores: int = 0
    errors: int = 0
    judge_errors: int = 0
    known: int = 0
    model_calls: int = 0
    """Number of requests to judges and embedders. A dry run counts only requests that don't depend on replies."""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    metrics: dict[str, int] = field(default_factory=dict)

    def add(self, other: ScoringTotals) -> None:
        for name in (one.name for one in fields(self) if one.name != "metrics"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for metric, count in other.metrics.items():
            self.metrics[metric] = self.metrics.get(metric, 0) + count


class TurnScoring:
    """Scoring of one turn or one conversation. For a conversation, ``span_id`` is its last turn's root span ID."""

    def __init__(
        self,
        scorer: Scorer,
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
        self._scorer = scorer
        self._metrics = metrics
        self._known = known
        self._sources = sources
        self._span_id = span_id
        self._whole = span_id is not None
        self._redactor = Redactor(scorer.config.privacy.redact)
        self._found: dict[str, InnerOutcome] = {}
        subject = turn.conversation_id or "" if self._whole or turn.trace_id is None else turn.trace_id
        self._place = position(qualified(turn.tenant, subject), scorer.config.judge.seed or "")

    def compute(self) -> None:
        for metric in self._metrics:
            if not metric.asks and applies(metric.when, self.turn):
                self._compute(metric)

    def judge(self) -> None:
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
        return self._scorer.rules.get(metric, EVERY_TURN).chance(self.turn, computed)

    def _judge(self, metric: BoundMetric, chance: Chance, *, is_result: bool = True) -> None:
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
            account.judge_errors += score.status == "error"
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
        """Return (score, judge calls, [(input tokens, output tokens, cost) of each call, estimated in a dry run])."""
        scorer = self._scorer
        given = scorer.judge if metric.metric.kind == "llm" else scorer.embedder
        by_itself = None if given is None else decided_without_judge(metric, self.turn)
        if by_itself is not None:
            return about(by_itself, self.turn), (), ()
        counting = _Counting(scorer.judge, scorer.embedder, scorer.config)
        if scorer.dry:
            judge, embedder = counting.judge, counting.embedder
        else:
            judge, embedder = scorer.budget.judge(scorer.judge), scorer.budget.embedder(scorer.embedder)
        seen = redacted_turn(self.turn, scorer.config.privacy.redact, self._redactor)
        with recording() as accounts:
            score = score_one(metric, seen, self._sources, judge=judge, embedder=embedder)
        if scorer.dry:
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
        if score.status == "skipped" or self._scorer.dry:
            return
        turn = named_publicly(self.turn, self._scorer.config.privacy.redact)
        public = redacted_score(score, self._redactor, self.turn)
        self.rows.append(_row(turn, metric, public, probability, accounts, self._span_id))
        self.account.scores += 1
        self.account.errors += score.status == "error"

    def _key(self, metric: BoundMetric) -> str:
        return key_of(metric, conversation=self._whole)

    def _id(self, metric: BoundMetric) -> str:
        return result_id_of(metric._facts, self.turn.turn_id or "", b"%d" % self.turn.revision)


class _Counting(Answers):
    """Judge and embedder for a dry run. Instead of sending a request, they record its size and cost, and raise an error."""

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
