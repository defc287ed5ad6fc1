"""One batch of spans in, their scores out: the one function that every engine calls.

A batch holds whole traces; what is grouped, is grouped in here, in plain Python, because an engine that calls back per trace pays
more for the call than for the work. Nothing here knows the engine.
"""

from __future__ import annotations

import functools
import json
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core import jsonio
from ..core.errors import JudgeError, NotASpan
from ..core.extras import require
from ..core.score import Score, result_id_of
from ..core.threads import mark_as_ours
from ..core.turn import Turn
from ..evaluation.conditions import Known
from ..evaluation.evaluator import score_one
from ..evaluation.redaction import Redactor, redacted_score, redacted_turn
from ..evaluation.references import ReferenceSources, applies, root_attributes
from ..evaluation.selection import select_metrics
from ..judging.models import Embedder, Judge, LocalEmbedder, embedder_from, judge_from, recording
from ..judging.models.model_server import tokens_in
from ..judging.models.prices import cost_of
from ..judging.models.prompt import SYSTEM, question_of
from ..judging.models.providers import Usage
from ..judging.sampling import EVERY_TURN, Rule, position, rules_of
from ..metrics.bound_metric import BoundMetric
from ..metrics.registry import resolve
from ..spans.columnar import spans_of
from ..spans.record import SpanRecord
from ..turns.recordings import turns_of

_REPLY_TOKENS = 300
"""The assumed length of a reply in a dry run."""

RESULT_COLUMNS: Mapping[str, str] = {
    "trace_id": "string", "span_id": "string", "turn_id": "string", "revision": "int64", "conversation_id": "string",
    "service": "string", "agent": "string", "start": "string", "result_id": "string", "metric": "string",
    "metric_version": "string", "parameters_hash": "string", "kind": "string", "status": "string", "value": "double",
    "passed": "bool", "label": "string", "unit": "string", "direction": "string", "threshold": "double", "policy": "string",
    "explanation": "string", "error_type": "string", "detail": "string", "sample_probability": "double", "judge_model": "string",
    "judge_cost_usd": "double",
}  # fmt: skip
"""Columns of the results; ``trace_id`` and ``span_id`` are the turn root's, to join the spans by."""


@dataclass(slots=True)
class Account:
    """What a scoring took, or in a dry run would take."""

    spans: int = 0
    bad: int = 0
    """Rows that hold no span."""
    turns: int = 0
    scores: int = 0
    errors: int = 0
    known: int = 0
    """Scores that were there already."""
    questions: int = 0
    """Requests to judge and embedder; in a dry run those that are sure to be sent."""
    tokens: int = 0
    cost_usd: float = 0.0
    unpriced: int = 0
    """Questions whose price is not known."""
    metrics: dict[str, int] = field(default_factory=dict)
    """Questions by metric."""

    def add(self, other: Account) -> None:
        """Take in what another batch took."""
        for name in ("spans", "bad", "turns", "scores", "errors", "known", "questions", "tokens", "cost_usd", "unpriced"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for metric, count in other.metrics.items():
            self.metrics[metric] = self.metrics.get(metric, 0) + count


class Scorer:
    """Everything that scoring batches needs, made once per process.

    Args:
        config: what to evaluate, and with which models.
        metrics: names of the metrics to evaluate; None is those of the configuration.
        dry: send no request to a model; count those that would be sent.

    Raises:
        ConfigError: a name or value that is not allowed.
    """

    def __init__(self, config: Config, metrics: Sequence[str] | None = None, *, dry: bool = False) -> None:
        self.config = config
        self.dry = dry
        self.metrics, self._rules = chosen(config, metrics)
        self._references = ReferenceSources(config)
        self._judge: Any = judge_from(config)
        self._embedder: Any = embedder_from(config)
        self._threads = config.judge.max_concurrency
        self._seed = config.judge.seed or ""

    @property
    def keys(self) -> list[str]:
        """One text per metric that identifies it with its parameters and version."""
        return sorted({metric._facts.identity.decode().strip().replace("\n", " ") for metric in self.metrics})

    def close(self) -> None:
        """Release connections."""
        for model in (self._judge, self._embedder):
            if model is not None:
                model.close()

    def score(self, tables: Any, known: Collection[str] = frozenset()) -> tuple[Any, Account]:
        """The results of a batch of whole traces, as a ``pyarrow.Table`` of :data:`RESULT_COLUMNS`, and what they took.

        Args:
            tables: spans in columns, see :mod:`otel_agenteval.spans.columnar`: one table, or several that are one batch.
            known: ids of results that there are already: they are not made again.

        Raises:
            ValueError: a column that is needed is not there.
        """
        account = Account()
        rows: list[dict[str, Any]] = []
        turns = list(turns_of(self._records(tables if isinstance(tables, (list, tuple)) else [tables], account)))
        account.turns = len(turns)
        if any(metric.metric.kind != "code" for metric in self.metrics) and not self.dry and len(turns) > 1:
            with ThreadPoolExecutor(self._threads, "otel-agenteval-backfill", mark_as_ours) as pool:
                for found, took in pool.map(lambda turn: self._score_one(turn, known), turns):
                    rows += found
                    account.add(took)
        else:
            for turn in turns:
                found, took = self._score_one(turn, known)
                rows += found
                account.add(took)
        return _results(rows), account

    @staticmethod
    def _records(tables: Iterable[Any], account: Account) -> Iterable[Any]:
        for table in tables:
            for item in spans_of(table):
                if isinstance(item, NotASpan):
                    account.bad += 1
                else:
                    account.spans += isinstance(item, SpanRecord)
                    yield item

    def _score_one(self, turn: Turn, known: Collection[str]) -> tuple[list[dict[str, Any]], Account]:
        account = Account()
        sources = self._references.attach(turn, root_attributes(turn))
        revision = b"%d" % turn.revision
        scores: list[Score] = []
        rows: list[dict[str, Any]] = []
        redactor = Redactor(self.config.privacy.redact)
        for metric in sorted(
            self.metrics, key=lambda metric: metric.metric.kind != "code"
        ):  # conditions of samples name code scores
            if not applies(metric.when, turn):
                continue
            there = result_id_of(metric._facts, turn.turn_id or "", revision) in known
            judged = metric.metric.kind != "code"
            if judged and there:
                account.known += 1
                continue
            probability, seen = 1.0, turn
            if judged:
                probability = self._rules.get(metric, EVERY_TURN).chance(turn, Known(scores)).probability
                if position(turn.conversation_id or "" if turn.trace_id is None else turn.trace_id, self._seed) >= probability:
                    continue
                seen = redacted_turn(turn, self.config.privacy.redact, redactor)
            counting = _Counting(self._judge, self._embedder, self.config)
            with recording() as accounts:
                score = score_one(metric, seen, sources, judge=counting.judge if self.dry else self._judge,
                                  embedder=counting.embedder if self.dry else self._embedder)  # fmt: skip
            scores.append(score)
            if self.dry:
                _note(account, metric, counting.questions)
                continue
            if there:
                account.known += 1
            elif score.status != "skipped":
                leaving = redacted_score(score, redactor)
                rows.append(_row(turn, metric, leaving, probability if judged else None, accounts))
                account.scores += 1
                account.errors += score.status == "error"
            _note(account, metric, [(item.input_tokens or 0, item.output_tokens or 0, item.cost_usd) for item in accounts])
        return rows, account


def _note(account: Account, metric: BoundMetric, questions: Sequence[tuple[int, int, float | None]]) -> None:
    for tokens_read, tokens_written, cost in questions:
        account.questions += 1
        account.tokens += tokens_read + tokens_written
        account.cost_usd += cost or 0.0
        account.unpriced += cost is None
        account.metrics[metric.name] = account.metrics.get(metric.name, 0) + 1


def score_batch(
    table: Any, config: Config | Mapping[str, Any] | str | None = None, *, metrics: Sequence[str] | None = None
) -> Any:
    """Score whole traces: a ``pyarrow.Table`` of spans in, one of results out.

    Args:
        table: spans in columns, see :mod:`otel_agenteval.spans.columnar`; every trace in it is there as a whole.
        config: what to evaluate: a configuration, a mapping of its form, or a file.
        metrics: only these.

    Raises:
        ConfigError: a configuration that is not allowed.
        ValueError: a column that is needed is not there.
    """
    scorer = Scorer(load_config(config), metrics)
    try:
        return scorer.score(table)[0]
    finally:
        scorer.close()


_MAKING = threading.Lock()


def scorer_of(config: str, metrics: tuple[str, ...] | None) -> Scorer:
    """The scorer of this process for a configuration as JSON text: engines call with the same one again and again."""
    with _MAKING:
        return _scorer_of(config, metrics)


@functools.lru_cache(maxsize=4)
def _scorer_of(config: str, metrics: tuple[str, ...] | None) -> Scorer:
    return Scorer(load_config(json.loads(config), env={}), metrics)


def chosen(config: Config, names: Sequence[str] | None) -> tuple[list[BoundMetric], Mapping[BoundMetric, Rule]]:
    """The metrics of a run: those of the configuration, or the named ones with the parameters that it gives them; and their samples.

    Raises:
        ConfigError: a name that is not known, or a sample that is not valid.
    """
    selected = select_metrics(config)
    rules = rules_of(config, selected)
    if names is None:
        return selected, rules
    found: list[BoundMetric] = []
    for name in names:
        metric, preset = resolve(name)
        configured = [] if preset else [bound for bound in selected if bound.name == metric.name]
        found += configured or [BoundMetric(metric, preset)]
    return found, rules


class _Counting:
    """Stands for judge and embedder in a dry run: counts the first question of a metric, and does not answer it."""

    def __init__(self, judge: Judge | None, embedder: Embedder | LocalEmbedder | None, config: Config) -> None:
        self.questions: list[tuple[int, int, float | None]] = []
        self._config = config
        self.judge = self if judge is not None else None
        self.embedder = self if embedder is not None else None

    def ask(self, stage: str, task: str, data: Mapping[str, Any], reply: str, *, media: Sequence[str] = ()) -> dict[str, Any]:
        tokens = tokens_in([SYSTEM, question_of(task, data, reply, media).text])
        options = self._config.judge
        model = (options.model or "").rpartition("/")[2]
        cost = next(
            (
                found
                for name in dict.fromkeys((options.model or "", model))
                if (found := cost_of(name, options.base_url or "", Usage(tokens, _REPLY_TOKENS), options.prices)[0]) is not None
            ),
            None,
        )
        self.questions.append((tokens, _REPLY_TOKENS, cost))
        raise JudgeError("no request is sent in a dry run", "dry_run")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        tokens, options = tokens_in(texts), self._config.embedder
        cost = cost_of(options.model or "", options.base_url or "", Usage(tokens, 0), options.prices)[0]
        self.questions.append((tokens, 0, cost))
        raise JudgeError("no request is sent in a dry run", "dry_run")


def _row(turn: Turn, metric: BoundMetric, score: Score, probability: float | None, accounts: Sequence[Any]) -> dict[str, Any]:
    costs = [account.cost_usd for account in accounts if account.error_type is None]
    known = [cost for cost in costs if cost is not None]
    return {
        "trace_id": turn.trace_id, "span_id": (turn.turn_id or "").rpartition("-")[2], "turn_id": turn.turn_id,
        "revision": turn.revision, "conversation_id": turn.conversation_id, "service": turn.service, "agent": turn.agent,
        "start": None if turn.start is None else turn.start.isoformat(), "result_id": score.result_id, "metric": score.metric,
        "metric_version": score.version, "parameters_hash": metric.signature_hash, "kind": score.kind, "status": score.status,
        "value": score.value, "passed": score.verdict, "label": score.label, "unit": score.unit, "direction": score.direction,
        "threshold": score.threshold, "policy": score.policy, "explanation": score.explanation, "error_type": score.error_type,
        "detail": jsonio.dumps(score.detail) if score.detail else None, "sample_probability": probability,
        "judge_model": accounts[-1].model if accounts else None,
        "judge_cost_usd": sum(known) if known and len(known) == len(costs) else None,
    }  # fmt: skip


def result_schema() -> Any:
    """:data:`RESULT_COLUMNS` as a ``pyarrow.Schema``."""
    pa = require("pyarrow", feature="backfill", extra="parquet")
    types = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in RESULT_COLUMNS.items()])


def _results(rows: list[dict[str, Any]]) -> Any:
    pa = require("pyarrow", feature="backfill", extra="parquet")
    return pa.Table.from_pylist(rows, result_schema())
