"""Tables of the score store, and SQL syntax for each kind of database.

A :class:`Syntax` contains the SQL that differs between SQLite and PostgreSQL.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Syntax:
    """SQL syntax for one kind of database. Braces in attributes are placeholders for SQL expressions."""

    p: str
    types: Mapping[str, str]
    """Mapping from a column type in :data:`TABLES` to this database's name, if the name differs."""
    by_key_only: str
    """Table option that stores the table in the order of its primary key."""
    like: str
    contains: str
    field: str
    """Template to read a JSON object's field as text. Placeholders: the object, and a parameter (result of :attr:`field_name`)."""
    field_name: Callable[[str], str]
    number: str
    """Template to read a JSON object's field as a number. For text that isn't a number, the result is NULL."""
    floor: str
    integer: str
    total: str
    """Template for a group's sum as a float. The sum is 0.0 if the group has no values."""
    unindexed: str
    score_order: str

    def row(self, columns: Iterable[str]) -> str:
        return ", ".join(self.p for _ in columns)

    def insert(self, table: str, columns: Collection[str]) -> str:
        return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({self.row(columns)})"  # noqa: S608 - our own names


class StoreTable(NamedTuple):
    name: str
    columns: Mapping[str, str]
    indexes: Mapping[str, str]
    key: str = ""
    by_key_only: bool = False


TURN_COLUMNS: Mapping[str, str] = {
    "turn_id": "TEXT PRIMARY KEY", "trace_id": "TEXT", "span_id": "TEXT", "revision": "INTEGER NOT NULL", "supersedes": "TEXT",
    "superseded_by": "TEXT", "conversation_id": "TEXT", "service": "TEXT", "agent": "TEXT", "model": "TEXT", "start": "REAL",
    "duration_s": "REAL", "cost_usd": "REAL", "input_tokens": "INTEGER", "output_tokens": "INTEGER", "close_reason": "TEXT",
    "complete": "INTEGER", "is_conversation": "INTEGER NOT NULL DEFAULT 0", "skipped": "TEXT", "content": "TEXT",
    "instance_id": "TEXT", "stored_at": "REAL NOT NULL", "tenant": "TEXT", "labels": "TEXT", "service_version": "TEXT",
    "attributes": "TEXT", "tools": "TEXT", "error": "TEXT", "case_key": "TEXT", "cost_estimated": "INTEGER", "facts": "TEXT",
    "fault": "TEXT", "mode": "TEXT", "failed": "REAL", "user_id": "TEXT",
}  # fmt: skip
"""Columns of a turn's row.

``tenant`` is the tenant that sent the turn. ``labels`` is a JSON object with the tenant's labels. ``service_version`` is from the
root span's resource. ``attributes`` is a JSON object with the configured span attributes. ``start`` and ``stored_at`` are Unix
times in seconds. ``skipped`` is a JSON object with a reason per skipped metric. ``content`` is the turn as ``turn.v1`` JSON, if
configured. ``cost_estimated`` is 1 if ``cost_usd`` is an estimate. ``tools`` is a JSON list of the called tools. ``error`` is the
type of the error that ended the turn. Turns of the same test case have the same ``case_key``: the case ID or, if content is stored,
a hash of the input. ``facts`` is a JSON object from :func:`~otel_agenteval.evaluation.turn_facts.facts_of`. ``fault`` is a
:class:`~otel_agenteval.evaluation.first_fault.Fault` as a JSON object. Passed turns can have a fault, too. ``mode`` is the fault's
failure mode. ``failed`` is the number of failed turns that this turn represents, or NULL, for example if no score failed.
"""

SCORE_COLUMNS: Mapping[str, str] = {
    "result_id": "TEXT PRIMARY KEY", "turn_id": "TEXT NOT NULL", "revision": "INTEGER NOT NULL", "metric": "TEXT NOT NULL",
    "kind": "TEXT NOT NULL", "version": "TEXT", "type": "TEXT", "unit": "TEXT", "direction": "TEXT", "policy": "TEXT",
    "status": "TEXT NOT NULL", "value": "REAL", "passed": "INTEGER", "label": "TEXT", "threshold": "REAL", "error_type": "TEXT",
    "explanation": "TEXT", "detail": "TEXT", "also": "TEXT", "sample_probability": "REAL",
    "sample_upstream_probability": "REAL", "sample_decided_by": "TEXT", "judge_model": "TEXT",
    "judge_cost_usd": "REAL", "scored_at": "REAL NOT NULL",
}  # fmt: skip
"""Columns of a score's row. ``detail`` and ``also`` are JSON."""

VERDICT_COLUMNS: Mapping[str, str] = {"verdict": "INTEGER", "level": "INTEGER", "at": "REAL"}
"""Additional columns of a score's row, which :mod:`.writer` computes.

``verdict`` is 1 (passed), 0 (failed), or NULL if :func:`verdict_is` ignores the score. ``level`` is the turn's sampling level
(see :func:`level_of`). ``at`` is the turn's start time or, if unknown, the score's time.
"""
TOP_LEVEL = 16
"""Highest sampling level, which 2⁻¹⁶ of all turns have."""


def level_of(turn_id: str) -> int:
    """Return a turn's sampling level. Half of all turns have level 1 or more, a quarter have level 2 or more, and so on."""
    bits = int.from_bytes(hashlib.blake2b(turn_id.encode(errors="replace"), digest_size=TOP_LEVEL // 8).digest(), "big")
    return (bits & -bits).bit_length() - 1 if bits else TOP_LEVEL


CHANGE_COLUMNS: Mapping[str, str] = {
    "at": "REAL NOT NULL", "metric": "TEXT NOT NULL", "agent": "TEXT", "service": "TEXT", "tenant": "TEXT", "verdict": "TEXT NOT NULL",
    "detector": "TEXT NOT NULL", "mean_before": "REAL", "mean_after": "REAL", "ci_low": "REAL", "ci_high": "REAL", "since": "REAL", "n_eff": "REAL",
    "version_before": "TEXT", "version": "TEXT", "turns": "TEXT", "instance_id": "TEXT",
}  # fmt: skip
"""Columns of a score change's row. ``ci_low`` and ``ci_high`` are confidence limits. ``turns`` is a JSON list of IDs."""

OUTCOME_COLUMNS: Mapping[str, str] = {
    "turn_id": "TEXT NOT NULL", "metric": "TEXT NOT NULL", "outcome": "TEXT NOT NULL", "at": "REAL NOT NULL",
}  # fmt: skip

QUESTION_COLUMNS: Mapping[str, str] = {
    "result_id": "TEXT NOT NULL", "place": "INTEGER NOT NULL", "turn_id": "TEXT NOT NULL", "stage": "TEXT", "model": "TEXT", "question": "TEXT", "reply": "TEXT",
}  # fmt: skip
"""Columns of a judge call's row. Judge calls are stored only with content. ``place`` is the call's position within the result."""

TOPIC_COLUMNS: Mapping[str, str] = {
    "mode": "TEXT NOT NULL", "id": "TEXT NOT NULL", "model": "TEXT NOT NULL", "center": "TEXT NOT NULL", "stability": "REAL NOT NULL", "name": "TEXT NOT NULL",
    "description": "TEXT NOT NULL", "first_seen": "REAL NOT NULL", "last_seen": "REAL NOT NULL",
}  # fmt: skip
"""Columns of a failure mode's topic. ``center`` is a vector from the embedding ``model``, as a JSON list."""

HOURLY_COLUMNS: Mapping[str, str] = {
    "hour": "INTEGER NOT NULL", "agent": "TEXT", "service": "TEXT", "service_version": "TEXT", "model": "TEXT", "tenant": "TEXT", "judge_model": "TEXT", "metric": "TEXT NOT NULL",
    "turns": "INTEGER", "scored": "INTEGER", "passed": "INTEGER", "failed": "INTEGER", "critical": "INTEGER", "errors": "INTEGER", "cost_usd": "REAL", "priced": "INTEGER", "estimated": "INTEGER", "tokens": "INTEGER",
    "duration_s": "REAL", "timed": "INTEGER", "wv": "REAL", "wp": "REAL", "least": "REAL", "most": "REAL", "w": "REAL", "wy": "REAL", "wy2": "REAL", "w2": "REAL", "w2y": "REAL", "w2y2": "REAL",
}  # fmt: skip
"""Columns of hourly sums. Each row covers turns of one hour with the same values in the filter columns, such as ``agent``.

There is one row per metric, plus a row with an empty ``metric`` for the turns themselves. ``critical`` counts scores with a
critical finding. ``priced`` counts turns or scores with a known cost, ``estimated`` with an estimated cost, and ``timed`` with a
known duration. ``wv`` is the total weight of verdicts, and ``wp`` is the total weight of passing verdicts. ``w`` is the total
weight of scores, ``wy`` is the sum of weight times value, ``w2y2`` is the sum of squared weight times squared value, and so on.
"""

_START = "coalesce(start, stored_at)"
# Indexes end with the columns that counts need, so that counting doesn't read the rows. For an index on an expression, PostgreSQL
# also needs the columns in the expression.
TABLES = (
    StoreTable(
        "turns", TURN_COLUMNS,
        {
            "turns_by_time": "(stored_at)",
            "turns_by_start": f"({_START}, turn_id, superseded_by, start, stored_at)",
            "turns_by_agent": "(agent, stored_at)",
            "turns_by_agent_and_start": f"(agent, {_START}, turn_id, superseded_by, start, stored_at)",
            "turns_by_tenant_and_start": f"(tenant, {_START}, turn_id, superseded_by, start, stored_at) WHERE tenant IS NOT NULL",
            "turns_by_conversation": "(conversation_id) WHERE conversation_id IS NOT NULL",
            "turns_by_user": "(user_id) WHERE user_id IS NOT NULL",
            "turns_by_case": "(case_key) WHERE case_key IS NOT NULL",
            "turns_that_supersede": "(supersedes) WHERE supersedes IS NOT NULL",
            "turns_by_mode": f"(mode, {_START}, failed, superseded_by, agent, tenant, service, service_version, model, start, stored_at) WHERE failed IS NOT NULL",
        },
    ),
    StoreTable(
        "scores", {**SCORE_COLUMNS, **VERDICT_COLUMNS},
        {
            "scores_by_turn": "(turn_id, metric, verdict)",
            "scores_by_verdict": "(metric, passed, value)",
            "scores_by_level": "(metric, verdict, level, at) WHERE verdict IS NOT NULL",
        },
    ),
    StoreTable("outcomes", OUTCOME_COLUMNS, {"outcomes_by_time": "(at)"}, key="turn_id, metric", by_key_only=True),
    StoreTable("questions", QUESTION_COLUMNS, {"questions_by_turn": "(turn_id)"}, key="result_id, place"),
    StoreTable("changes", CHANGE_COLUMNS, {"changes_by_time": "(at)"}),
    StoreTable("topics", TOPIC_COLUMNS, {}, key="mode, id", by_key_only=True),
    StoreTable("hourly", HOURLY_COLUMNS, {"hourly_by_hour": "(hour)"}),
    StoreTable("daily", HOURLY_COLUMNS, {"daily_by_hour": "(hour)"}),
    StoreTable("minutely", {"minute": "INTEGER NOT NULL", **HOURLY_COLUMNS}, {"minutely_by_minute": "(minute)"}),
    StoreTable("stale_minutes", {"minute": "INTEGER PRIMARY KEY", "marks": "INTEGER NOT NULL", "summed": "INTEGER NOT NULL"}, {}),
)  # fmt: skip
ADDED_COLUMNS: Sequence[Sequence[tuple[str, str]]] = ()
"""Columns that each store version added, as pairs (table, column). The first entry belongs to version 2."""
VERSION = 1 + len(ADDED_COLUMNS)

REQUIRED: frozenset[str] = frozenset(
    name
    for columns in (TURN_COLUMNS, SCORE_COLUMNS, CHANGE_COLUMNS, QUESTION_COLUMNS)
    for name, kind in columns.items()
    if "KEY" in kind or "NOT NULL" in kind
)

HOUR = 3600
DAY = 24
MINUTE = 60
"""Number of seconds per minute, and of minutes per hour. A row in the table ``minutely`` covers one minute."""
AT = "coalesce(turns.start, turns.stored_at)"
"""SQL for a turn's start time or, if unknown, the time when the turn was stored, in Unix seconds."""
CURRENT = "turns.superseded_by IS NULL AND scores.revision = turns.revision"
"""SQL condition that selects the latest revision, in joined rows of ``turns`` and ``scores``."""


def create_tables(sql: Syntax) -> list[str]:
    statements = []
    for table in TABLES:
        columns = [f"{name} {_column_type(kind, sql)}" for name, kind in table.columns.items()]
        key = [f"PRIMARY KEY ({table.key})"] if table.key else []
        end = sql.by_key_only if table.by_key_only else ""
        statements.append(f"CREATE TABLE {table.name} ({', '.join(columns + key)}){end}")
        statements += [f"CREATE INDEX {name} ON {table.name} {columns}" for name, columns in table.indexes.items()]
    return statements


def migrations(sql: Syntax, added: Sequence[Sequence[tuple[str, str]]] = ADDED_COLUMNS) -> list[list[str]]:
    kinds = {(table.name, column): _column_type(kind, sql) for table in TABLES for column, kind in table.columns.items()}
    return [[f"ALTER TABLE {table} ADD COLUMN {column} {kinds[table, column]}" for table, column in step] for step in added]


def _column_type(kind: str, sql: Syntax) -> str:
    name, space, constraints = kind.partition(" ")
    return sql.types.get(name, name) + space + constraints


def detail_has(part: str, sql: Syntax) -> str:
    """Return an SQL condition for scores whose ``detail`` contains the JSON fragment ``part``.

    Stored JSON escapes quotation marks in strings, so a fragment with quotation marks can't match within a string by accident.
    """
    found = sql.contains.format("scores.detail", f"'{part}'")
    return f"(scores.detail IS NOT NULL AND {found})"


def is_vacuous(sql: Syntax) -> str:
    return detail_has(VACUOUS, sql)


def verdict_is(passed: bool, sql: Syntax, column: str = "scores.passed") -> str:
    """Return an SQL condition for passing or failing verdicts. As in reports, vacuous and neutral scores are ignored."""
    return f"({column} = {int(passed)} AND scores.status = 'ok' AND scores.direction <> 'neutral' AND NOT {is_vacuous(sql)})"


VACUOUS = '"vacuous":true'
"""JSON fragment in the ``detail`` of vacuous scores."""
SEVERITY = '"severity":"{}"'
"""Template for the JSON fragment in a score's ``detail`` that indicates a finding with the given severity."""


def among(column: str, values: Sequence[Any], sql: Syntax) -> str:
    """Return an SQL condition that ``column`` contains one of ``values``. If ``values`` is empty, the condition is never true."""
    return f"{column} IN ({sql.row(values)})" if values else "1 = 0"


EVERYTHING = "1 = 1"


class Where:
    def __init__(self, sql: Syntax, *conditions: str) -> None:
        self.sql = sql
        self.values: list[Any] = []
        self._conditions = list(conditions)

    def __str__(self) -> str:
        return " AND ".join(self._conditions) or EVERYTHING

    def add(self, condition: str, *values: Any) -> None:
        self._conditions.append(condition)
        self.values += values

    def also(self, other: Where) -> None:
        self.add(str(other), *other.values)

    def compare(self, left: str, value: Any) -> None:
        """Add a comparison, unless ``value`` is None. ``left`` includes the operator, for example ``turns.stored_at <``."""
        if value is not None:
            self.add(f"{left} {self.sql.p}", value)

    def among(self, column: str, values: Sequence[Any]) -> None:
        if values:
            self.add(among(column, values, self.sql), *values)
