"""One batch of spans in, their scores out: the one function that every engine calls.

A batch holds whole traces; what is grouped, is grouped in here, in plain Python, because an engine that calls back per trace pays
more for the call than for the work. Nothing here knows the engine.
"""

from __future__ import annotations

import functools
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
from ..core.turn import Turn
from ..evaluation.references import ReferenceSources, root_attributes
from ..evaluation.selection import named, select_conversation_metrics, select_metrics
from ..judging.models import embedder_from, judge_from
from ..judging.sampling import Rule, rules_of
from ..metrics.bound_metric import BoundMetric, asks_one
from ..spans.columnar import spans_of
from ..spans.record import SpanRecord
from ..turns.conversations import Ended, conversation_of
from ..turns.recorded_conversations import RecordedConversations, looks_back
from ..turns.recordings import turns_of
from .turn_scoring import Account, Known, Scoring, TurnScoring

RESULT_COLUMNS: Mapping[str, str] = {
    "trace_id": "string", "span_id": "string", "turn_id": "string", "revision": "int64", "conversation_id": "string",
    "service": "string", "agent": "string", "start": "string", "result_id": "string", "metric": "string",
    "metric_version": "string", "parameters_hash": "string", "kind": "string", "status": "string", "value": "double",
    "passed": "bool", "label": "string", "unit": "string", "direction": "string", "threshold": "double", "policy": "string",
    "explanation": "string", "error_type": "string", "detail": "string", "sample_probability": "double", "judge_model": "string",
    "judge_cost_usd": "double",
}  # fmt: skip
"""Columns of the results; ``trace_id`` and ``span_id`` are the turn root's, to join the spans by."""


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
        self._names = None if metrics is None else tuple(metrics)
        self.metrics, self.whole, rules = chosen(config, metrics)
        self._looks_back = looks_back(self.metrics)
        self._references = ReferenceSources(config)
        self._threads = config.judge.max_concurrency
        self.setup = Scoring(config, judge_from(config), embedder_from(config), rules, dry)

    @property
    def keys(self) -> list[str]:
        """One text per metric that identifies it with its parameters and version, and how batches are made."""
        of_turns = [metric._facts.identity.decode() for metric in self.metrics]
        of_wholes = [f"conversation {metric._facts.identity.decode().strip()}" for metric in self.whole]
        batches = " by conversation" if self.by_conversation else ""
        return sorted(text.strip().replace("\n", " ") + batches for text in (*of_turns, *of_wholes))

    @property
    def by_conversation(self) -> bool:
        """Whether a batch has to hold whole conversations: some metric looks at more than one turn."""
        return bool(self.whole) or self._looks_back

    @property
    def asks(self) -> bool:
        """Whether a model may be asked."""
        return asks_one([*self.metrics, *self.whole], self.setup.judge, self.setup.embedder)

    @property
    def copies(self) -> tuple[str, tuple[str, ...] | None]:
        """What :func:`scorer_of` makes the same scorer from in another process."""
        return json.dumps(self.config.to_dict()), self._names

    def close(self) -> None:
        """Release connections."""
        for model in (self.setup.judge, self.setup.embedder):
            if model is not None:
                model.close()

    def score(self, tables: Any, known: Known = MappingProxyType({})) -> tuple[Any, Account]:
        """The results of a batch of whole traces, as a ``pyarrow.Table`` of :data:`RESULT_COLUMNS`, and what they took.

        Args:
            tables: spans in columns, see :mod:`otel_agenteval.spans.columnar`: one table, or several that are one batch.
            known: results that there are already, by id: they are not made again. What is made of judged scores needs theirs; None
                stands for other results.

        Raises:
            ValueError: a column that is needed is not there.
        """
        account = Account()
        rows: list[dict[str, Any]] = []
        turns = list(turns_of(self._records(tables if isinstance(tables, (list, tuple)) else [tables], account)))
        account.turns = len(turns)
        conversations = RecordedConversations(self.config.conversation, history=self._looks_back, whole=bool(self.whole))
        scorings = [self._scoring(turn, known, conversations) for turn in turns]
        self._judge_all(scorings)
        for scoring in scorings:
            conversations.note(scoring.turn, scoring.made)
        wholes = [self._scoring_of_whole(ended, known) for ended in conversations.ended()]
        self._judge_all(wholes)
        for scoring in (*scorings, *wholes):
            rows += scoring.rows
            account.add(scoring.account)
        return _results(rows), account

    def _scoring(self, turn: Turn, known: Known, conversations: RecordedConversations) -> TurnScoring:
        """A turn with the scores that are computed. Judges see what was said before it, and are asked when all turns are there."""
        sources = self._references.attach(turn, root_attributes(turn))
        scoring = TurnScoring(self.setup, turn, self.metrics, known, sources)
        scoring.compute()
        conversations.take(turn)
        return scoring

    def _scoring_of_whole(self, ended: Ended, known: Known) -> TurnScoring:
        scoring = TurnScoring(self.setup, ended.turn, self.whole, known, {}, span_id=ended.last)
        scoring.compute()
        return scoring

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
        """The conversation of each trace that has one, by trace id in hex: what belongs into one batch."""
        turns = turns_of(self._records(tables, Account()))
        return {turn.trace_id: conversation_of(turn) for turn in turns if turn.trace_id and turn.conversation_id}

    @staticmethod
    def _records(tables: Iterable[Any], account: Account) -> Iterable[Any]:
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


def chosen(
    config: Config, names: Sequence[str] | None
) -> tuple[list[BoundMetric], list[BoundMetric], Mapping[BoundMetric, Rule]]:
    """The metrics of a run, of turns and of conversations: those of the configuration, or the named ones with the parameters that it
    gives them; and their samples.

    Raises:
        ConfigError: a name that is not known, or a sample that is not valid.
    """
    selected, whole = select_metrics(config), select_conversation_metrics(config)
    rules = {**rules_of(config, selected), **rules_of(config, whole)}
    if names is None:
        return selected, whole, rules
    return *named(names, selected, whole), rules


def result_schema() -> Any:
    """:data:`RESULT_COLUMNS` as a ``pyarrow.Schema``."""
    pa = require("pyarrow", feature="backfill", extra="parquet")
    types = {"string": pa.string(), "int64": pa.int64(), "double": pa.float64(), "bool": pa.bool_()}
    return pa.schema([(name, types[kind]) for name, kind in RESULT_COLUMNS.items()])


def _results(rows: list[dict[str, Any]]) -> Any:
    pa = require("pyarrow", feature="backfill", extra="parquet")
    return pa.Table.from_pylist(rows, result_schema())
