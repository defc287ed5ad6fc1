"""Score one batch of spans.

Every engine calls this module with whole traces. Grouping happens here in plain Python, because a callback per trace
would cost an engine more than the scoring. This module doesn't depend on an engine.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import MappingProxyType
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..core.errors import NotASpan
from ..core.extras import require
from ..core.threads import mark_as_ours
from ..core.turn_cost import add_cost
from ..evaluation.evaluator import pricing_of
from ..evaluation.references import ReferenceSources, root_attributes
from ..evaluation.selection import named, select_conversation_metrics, select_metrics
from ..evaluation.signals import with_signals
from ..judging.models import embedder_from, judge_from
from ..judging.sampling import SamplingRule, rules_of
from ..judging.session import CommandBudget
from ..metrics.bound_metric import BoundMetric, asks_one
from ..spans.columnar import spans_of
from ..spans.record import SpanRecord
from ..turns.conversations import RecordedConversations, conversation_of, looks_back
from ..turns.recordings import turns_of
from .turn_scoring import Known, Scoring, ScoringTotals, TurnScoring

RESULT_COLUMNS: Mapping[str, str] = {
    "trace_id": "string", "span_id": "string", "turn_id": "string", "revision": "int64", "conversation_id": "string",
    "service": "string", "agent": "string", "start": "string", "result_id": "string", "metric": "string",
    "metric_version": "string", "parameters_hash": "string", "kind": "string", "status": "string", "value": "double",
    "passed": "bool", "label": "string", "unit": "string", "direction": "string", "threshold": "double", "policy": "string",
    "explanation": "string", "error_type": "string", "detail": "string", "sample_probability": "double", "judge_model": "string",
    "judge_cost_usd": "double",
}  # fmt: skip
"""Columns of the results. ``trace_id`` and ``span_id`` refer to the turn's root, to join results with spans."""


class Scorer:
    """Scores batches. Created once per process. Without ``metrics``, it evaluates the configured metrics. With ``dry``, it
    counts model requests instead of sending them. Raises ConfigError if a name or value isn't allowed.
    """

    def __init__(self, config: Config, metrics: Sequence[str] | None = None, *, dry: bool = False) -> None:
        self.config = config
        self.dry = dry
        self._names = None if metrics is None else tuple(metrics)
        self.metrics, self.whole, rules = chosen(config, metrics)
        self._looks_back = looks_back(self.metrics)
        self._pricing = pricing_of(self.metrics)
        self._references = ReferenceSources(config)
        self._threads = config.judge.max_concurrency
        self.setup = Scoring(config, judge_from(config), embedder_from(config), rules, dry, CommandBudget(config))

    @property
    def keys(self) -> list[str]:
        """Return a text per metric that identifies its parameters and version, and whether batches are whole conversations."""
        of_turns = [metric._facts.identity.decode() for metric in self.metrics]
        of_wholes = [f"conversation {metric._facts.identity.decode().strip()}" for metric in self.whole]
        batches = " by conversation" if self.by_conversation else ""
        return sorted(text.strip().replace("\n", " ") + batches for text in (*of_turns, *of_wholes))

    @property
    def by_conversation(self) -> bool:
        return bool(self.whole) or self._looks_back

    @property
    def asks(self) -> bool:
        return asks_one([*self.metrics, *self.whole], self.setup.judge, self.setup.embedder)

    @property
    def copies(self) -> tuple[str, tuple[str, ...] | None]:
        """Return the arguments with which :func:`scorer_of` creates an equal scorer elsewhere."""
        return json.dumps(self.config.to_dict()), self._names

    def close(self) -> None:
        self.setup.budget.close()
        for model in (self.setup.judge, self.setup.embedder):
            if model is not None:
                model.close()

    def score(self, tables: Any, known: Known = MappingProxyType({})) -> tuple[Any, ScoringTotals]:
        """Return the :data:`RESULT_COLUMNS` of a batch of whole traces (:mod:`otel_agenteval.spans.columnar`), with counts and
        costs. Results that are ``known`` by id aren't computed again. Composites use the columns of judged ones. Other ones are
        None. Raises ValueError if a required column is missing.
        """
        account = ScoringTotals()
        rows: list[dict[str, Any]] = []
        turns = list(turns_of(self._records(tables if isinstance(tables, (list, tuple)) else [tables], account)))
        account.turns = len(turns)
        conversations = RecordedConversations(self.config.conversation, history=self._looks_back, whole=bool(self.whole))
        scorings = []
        for turn in turns:  # judged metrics follow when all turns are known, because they read earlier ones
            sources = self._references.attach(turn, root_attributes(turn))
            self._references.log_absent()
            add_cost(turn, self._pricing)
            scorings.append(TurnScoring(self.setup, turn, self.metrics, known, sources))
            scorings[-1].compute()
            conversations.take(turn)
        self._judge_all(scorings)
        for scoring in scorings:
            conversations.note(scoring.turn, scoring.made)
        wholes = []
        for ended in conversations.ended():
            wholes.append(TurnScoring(self.setup, ended.turn, self.whole, known, {}, span_id=ended.last))
            wholes[-1].compute()
        self._judge_all(wholes)
        for scoring in (*scorings, *wholes):
            rows += scoring.rows
            account.add(scoring.account)
        pa = require("pyarrow", feature="backfill", extra="parquet")
        types = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
        schema = pa.schema([(name, types[kind]) for name, kind in RESULT_COLUMNS.items()])
        return pa.Table.from_pylist(rows, schema), account

    def _judge_all(self, scorings: Sequence[TurnScoring]) -> None:
        asks = any(metric.asks for metric in (*self.metrics, *self.whole))
        if asks and not self.dry and len(scorings) > 1:
            with ThreadPoolExecutor(self._threads, "otel-agenteval-backfill", mark_as_ours) as pool:
                for _ in pool.map(TurnScoring.judge, scorings):
                    pass
        else:
            for scoring in scorings:
                scoring.judge()

    def conversations_in(self, tables: Iterable[Any]) -> dict[str, str]:
        """Return the conversation of each trace that has one, by trace id in hex. Its traces must be in one batch."""
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
    """Score a ``pyarrow.Table`` of spans, and return one of results.

    Args:
        table: spans in columns (see :mod:`otel_agenteval.spans.columnar`). It must contain whole traces.
        config: a configuration object, a mapping, or the path of a file.
        metrics: names of the metrics to evaluate. None selects those of the configuration.

    Raises:
        ConfigError: the configuration is invalid.
        ValueError: a required column is missing.
    """
    scorer = Scorer(load_config(config), metrics)
    try:
        return scorer.score(table)[0]
    finally:
        scorer.close()


_MAKING = threading.Lock()
_scorers: dict[tuple[str, tuple[str, ...] | None], Scorer] = {}


def scorer_of(config: str, metrics: tuple[str, ...] | None) -> Scorer:
    """Return this process's scorer for a configuration as JSON text, cached for later calls."""
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
    """Return the metrics of turns, the metrics of conversations, and their sampling rules. Without ``names``, these are the
    configured metrics. Named metrics keep their configured parameters. Raises ConfigError if a name is unknown, or sampling
    options are invalid.
    """
    selected, whole = select_metrics(config), select_conversation_metrics(config)
    rules = {**rules_of(config, selected), **rules_of(config, whole)}
    if names is None:
        return selected, whole, rules
    of_turns, of_whole = named(config, names, selected, whole)
    return with_signals(of_turns, of_whole, selected), of_whole, rules
