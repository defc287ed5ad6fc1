"""Read access to the score store, for the web UI and for commands such as ``otel-agenteval why``."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import jsonio
from ...core.errors import ConfigError, StoreError
from ...core.score import FIELDS, Score
from ...evaluation.first_fault import Fault
from ...statistics.groups import GroupValue
from . import postgres, sqlite
from .statements import AT, CURRENT, EVERYTHING, SCORE_COLUMNS, TOP_LEVEL, Syntax, Where, among, is_vacuous, level_of, verdict_is

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...config.root import Config

LEAST_OF_ID = 4
EXAMPLES = 3
"""Maximum number of example turns per failure mode."""
MOST_VERDICTS = 1_000
"""Default number of failed verdicts, and of passed verdicts, in a sample."""
MOST_OF_COMMAND = 4_000
"""Sample size for CLI commands, which may take longer than a web page. Larger samples reveal weaker causes of failures."""
MOST_TEXTS = 2_000
"""Maximum number of failed turns whose texts are compared, per failure mode."""
_MOST_READ = 10_000
"""Maximum number of failures, passes, or turns that are read for a sample."""
_MOST_TURNS = 30_000
"""If fewer turns match, a sample can be drawn from a list of their IDs. Otherwise, the sample is drawn by sampling level."""
NO_CAUSES = "the store has no facts for the latest turns; set outlets.store.causes to true"
_RECENT = 200
_BLOCK = 2_000
_MOST_CHANGES = 100
_FIRST_LEVEL = 12
"""Minimum sampling level (see :func:`.statements.level_of`) for the smallest sample, which is tried first."""
_OF_VERDICT = (
    "turns.turn_id, turns.conversation_id, turns.service_version, turns.attributes, turns.facts, scores.verdict, "
    "coalesce(scores.sample_probability, 1.0)"
)
SPAN_OF_TRACE = re.compile(r"(.*[0-9a-f]{32}-)[0-9a-f]{16}")
"""Pattern for a complete turn ID. The group captures everything before the span ID."""


def backend_of(path: str | os.PathLike[str]) -> Any:
    return postgres if postgres.is_address(os.fspath(path)) else sqlite


def only_one(short: str, found: Sequence[str]) -> str | None:
    """Return the only ID in ``found``, or None if ``found`` is empty. If several IDs match ``short``, raise StoreError."""
    if len(found) > 1:
        more = ", …" if len(found) > 5 else ""
        raise StoreError(f"{short}: matches several turn IDs: {', '.join(found[:5])}{more}. Use a longer ID")
    return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filter for turns and scores to read. Unset fields match everything."""

    since: float | None = None
    """Earliest time of storage, as Unix time in seconds."""
    until: float | None = None
    agents: Sequence[str] = ()
    services: Sequence[str] = ()
    metrics: Sequence[str] = ()
    conversation_id: str | None = None
    revisions: bool = False
    failed: bool = False
    """If True, read only turns with a score (of ``metrics``, if set) that failed or ended in an error."""
    mode: str | None = None


EXPORTED: tuple[str, ...] = (
    "turn_id", "tenant", "trace_id", "span_id", "conversation_id", "service", "service_version", "agent", "model", "start", "duration_s", "cost_usd", "cost_estimated", "close_reason", "complete",
    "supersedes", "revision", "metric", "kind", "version", "type", "unit", "direction", "policy", "status", "value", "passed", "label",
    "threshold", "error_type", "explanation", "detail", "also", "sample_probability", "sample_upstream_probability", "sample_decided_by", "judge_model", "judge_cost_usd", "result_id",
    "scored_at",
)  # fmt: skip
"""Default keys, in order, of a row from :meth:`StoreReader.rows`."""
_BOOLEANS = ("complete", "passed", "is_conversation", "cost_estimated")
_JSON = ("detail", "also", "skipped", "content", "labels", "turns", "attributes", "tools", "facts", "fault")
_DECODE: dict[str, Callable[[Any], Any]] = {**dict.fromkeys(_BOOLEANS, bool), **dict.fromkeys(_JSON, jsonio.loads)}


class StoreReader:
    """Read access to a score store. Use an instance on one thread only."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        backend = backend_of(path)
        self._sql: Syntax = backend.SYNTAX
        self._db = backend.open_reader(self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._db.close()

    def find(self, short: str) -> str | None:
        """Return the full turn ID for a shortened ID (at least 4 characters), or for an ID with another span of the same trace.

        ``short`` can lack the tenant's name. For an unknown ID, return None. If several turns match, raise StoreError.
        """
        known = "SELECT turn_id FROM turns UNION SELECT turn_id FROM outcomes"
        exact = self._db.execute(f"SELECT turn_id FROM ({known}) AS known WHERE turn_id = {self._sql.p}", (short,)).fetchone()
        if exact is not None or len(short) < LEAST_OF_ID:
            return short if exact is not None else None
        search = f"SELECT turn_id FROM ({known}) AS known WHERE"
        begins = f"{search} turn_id > {self._sql.p} AND turn_id < {self._sql.p} LIMIT 6"
        rows = self._db.execute(begins, (short, f"{short}\U0010ffff")).fetchall()
        if not rows and ":" not in short:
            behind_tenant = self._sql.contains.format("turn_id", self._sql.p)
            rows = self._db.execute(f"{search} {behind_tenant} LIMIT 6", (f":{short}",)).fetchall()
        found = only_one(short, [row[0] for row in rows])
        trace = SPAN_OF_TRACE.fullmatch(short) if found is None else None
        return found if trace is None else self.find(trace[1])

    def turn(self, turn_id: str) -> dict[str, Any] | None:
        row = self._db.execute(f"SELECT * FROM turns WHERE turn_id = {self._sql.p}", (turn_id,)).fetchone()
        return plain(row) if row is not None else None

    def turns(self, wanted: Wanted = Wanted(), limit: int = 100, before: float | None = None) -> list[dict[str, Any]]:
        """Return the latest turns that were stored before ``before``, newest first. For the next page, pass the last turn's
        ``stored_at`` as ``before``.
        """
        where = self._conditions(wanted, of_scores=False)
        where.compare("turns.stored_at <", before)
        statement = f"SELECT * FROM turns WHERE {where} ORDER BY stored_at DESC LIMIT {self._sql.p}"
        return [plain(row) for row in self._db.execute(statement, [*where.values, limit])]

    def contents(self, wanted: Wanted = Wanted()) -> Iterator[tuple[str, dict[str, Any] | None]]:
        """Yield pairs (turn ID, content as ``turn.v1`` JSON), oldest turn first. The content is None if it isn't stored."""
        where = self._conditions(wanted, of_scores=False)
        rows = self._db.execute(
            f"SELECT turn_id, content FROM turns WHERE {where} AND is_conversation = 0 ORDER BY stored_at, turn_id", where.values
        )
        return ((row["turn_id"], plain(row)["content"]) for row in rows)

    def scores(self, turn_id: str) -> list[dict[str, Any]]:
        rows = self._db.execute(
            f"SELECT {', '.join(f'scores.{name}' for name in SCORE_COLUMNS)} FROM scores JOIN turns USING (turn_id) WHERE turn_id = {self._sql.p} AND {CURRENT} ORDER BY metric, scores.revision",
            (turn_id,),
        )
        return [plain(row) for row in rows]

    def questions(self, result_id: str) -> list[dict[str, Any]]:
        """Return a score's judge calls, in order. If content isn't stored, return an empty list."""
        rows = self._db.execute(
            f"SELECT stage, model, question, reply FROM questions WHERE result_id = {self._sql.p} ORDER BY place", (result_id,)
        )
        return [dict(zip(row.keys(), tuple(row), strict=True)) for row in rows]

    def rows(self, wanted: Wanted = Wanted(), names: Sequence[str] = EXPORTED) -> Iterator[dict[str, Any]]:
        """Yield one row per score, with the keys in ``names``, oldest turn first."""
        where = self._conditions(wanted, of_scores=True)
        columns = ", ".join(f"scores.{name}" if name in SCORE_COLUMNS else f"turns.{name}" for name in names)
        rows = self._db.execute(
            f"SELECT {columns} FROM turns JOIN scores USING (turn_id) WHERE {where} ORDER BY turns.stored_at, {self._sql.score_order}",
            where.values,
        )
        return map(plain, rows)

    def groups(self, by: str, wanted: Wanted = Wanted()) -> dict[str, int]:
        """Return the number of scored turns per group. ``by`` is a key of :data:`GROUPED_BY` or the name of a stored attribute."""
        column, given = self._grouping(by)
        where = self._conditions(wanted, of_scores=True)
        rows = self._db.execute(
            f"SELECT {column} AS name, count(DISTINCT turns.turn_id) FROM turns JOIN scores USING (turn_id) WHERE {where} AND {column} IS NOT NULL "
            "GROUP BY name ORDER BY min(turns.stored_at)",
            [*given, *where.values, *given],
        )
        return {str(name): int(count) for name, count in rows}

    def values(self, by: str, groups: Sequence[str], wanted: Wanted = Wanted()) -> Iterator[GroupValue]:
        """Yield the score values of turns in ``groups``, oldest first. Omit vacuous scores (nothing to evaluate)."""
        column, given = self._grouping(by)
        return self._values(column, given, groups, self._conditions(wanted, of_scores=True))

    def _values(self, column: str, given: Sequence[str], groups: Sequence[str], where: Where) -> Iterator[GroupValue]:
        rows = self._db.execute(
            f"SELECT {column} AS name, scores.metric, scores.unit, scores.direction, coalesce(turns.conversation_id, turns.trace_id, turns.turn_id), scores.value, "
            f"coalesce(scores.sample_probability, 1.0), turns.case_key, scores.type, scores.passed FROM turns JOIN scores USING (turn_id) WHERE {where} "
            f"AND {among(column, groups, self._sql)} AND status = 'ok' AND value IS NOT NULL AND NOT {is_vacuous(self._sql)} ORDER BY turns.stored_at",
            [*given, *where.values, *given, *groups],
        )
        return (GroupValue(*row) for row in rows if row[6] > 0)

    def failures(self, wanted: Wanted = Wanted()) -> dict[str, int]:
        """Return a mapping from metric to number of failed turns, most failures first. Include metrics without failures."""
        where = self._conditions(wanted, of_scores=True)
        rows = self._db.execute(
            f"SELECT metric, count(CASE WHEN {verdict_is(False, self._sql)} THEN 1 END) AS failed FROM turns JOIN scores USING (turn_id) WHERE {where} "
            "GROUP BY metric ORDER BY failed DESC, metric",
            where.values,
        )
        return {metric: int(count) for metric, count in rows}

    def modes(self, wanted: Wanted = Wanted(), by: str | None = None) -> StoredModes:
        """Return the failure modes of turns that match ``wanted``, most frequent first.

        By default, each mode has a count for each half of the time range. If ``by`` is a key of :data:`GROUPED_BY` or the name of a
        stored attribute, each mode instead has a count for each group of turns with the same value.
        """
        failed = self._conditions(replace(wanted, failed=bool(wanted.metrics)), of_scores=False)
        every = self._conditions(wanted, of_scores=False)
        return self._modes(failed, every, "turns.stored_at", None if by is None else self._grouping(by))

    def _modes(
        self,
        failed: Where,
        every: Where,
        at: str,
        by: tuple[str, list[Any]] | None = None,
        sample: tuple[Where, int] | None = None,
        few: bool = False,
    ) -> StoredModes:
        """Return the failure modes of turns that match ``failed``. Totals count the turns that match ``every``.

        Turns are counted by group or, without ``by``, in each half of the time range. With a ``sample`` from
        :meth:`_failed_sample`, failed turns are counted only within the sample. If ``few`` is True, ``failed`` lists turn IDs, and
        the query uses only the index on turn IDs.
        """
        middle = None
        if by is None:
            parts, totals, middle = self._halves(every, at)
        else:
            column, bound = by
            parts = [_Part(column, bound, f"{column} IS NOT NULL", bound)]
            rows = self._db.execute(  # in order of appearance
                f"SELECT {column} AS name, count(*) FROM turns WHERE {every} AND {column} IS NOT NULL GROUP BY 1 ORDER BY min({at})",
                [*bound, *every.values, *bound],
            )
            totals = {name: int(turns) for name, turns in rows}
        mode_column, order = (self._sql.unindexed.format(one) if few else one for one in ("turns.mode", at))
        if sample is None:
            found = self._failed_by_mode(parts, mode_column, "turns", failed, 1)
        else:
            found = self._failed_by_mode(parts, mode_column, "scores CROSS JOIN turns", *sample)
        modes = []
        for mode in sorted(found, key=lambda mode: (-sum(one.turns for one in found[mode].values()), mode)):
            examples = self._db.execute(
                f"SELECT turn_id, fault FROM turns WHERE failed IS NOT NULL AND {mode_column} = {self._sql.p} AND {failed} ORDER BY {order} DESC LIMIT {EXAMPLES}",
                [mode, *failed.values],
            ).fetchall()
            if examples:  # otherwise they were deleted in the meantime
                fault = Fault(**jsonio.loads(examples[0]["fault"]))
                counts = tuple(found[mode].get(name, FailedTurns()) for name in totals)
                modes.append(ModeCounts(fault, counts, [row["turn_id"] for row in examples]))
        return StoredModes(modes, tuple(totals.values()), () if by is None else tuple(map(str, totals)), middle)

    def _halves(self, where: Where, at: str) -> tuple[list[_Part], dict[Any, int], float]:
        """Return both halves of the time range, the number of turns in each half, and the Unix time when the second half starts."""
        ends = [
            self._db.execute(f"SELECT {at} FROM turns WHERE {where} ORDER BY {at} {way} LIMIT 1", where.values).fetchone()
            for way in ("ASC", "DESC")
        ]
        middle = sum(float(row[0]) for row in ends if row is not None) / 2
        halves = [_Part(name, (), f"{at} {sign} {self._sql.p}", (middle,)) for name, sign in (("0", "<"), ("1", ">="))]
        totals = {}
        for number, half in enumerate(halves):
            statement = f"SELECT count(*) FROM turns WHERE {where} AND {half.condition}"
            totals[number] = int(self._db.execute(statement, [*where.values, *half.values]).fetchone()[0])
        return halves, totals, middle

    def _failed_by_mode(
        self, parts: Sequence[_Part], mode_column: str, tables: str, counted: Where, weight: int
    ) -> dict[str, dict[Any, FailedTurns]]:
        """Count the failed turns that match ``counted``, by failure mode and then by part. Multiply the counts by ``weight``."""
        found: dict[str, dict[Any, FailedTurns]] = {}
        for part in parts:
            rows = self._db.execute(
                f"SELECT mode, {part.name} AS part, {weight} * count(*), {weight} * sum(failed), {weight * weight} * sum(failed * failed) "
                # The comparison with '' makes SQLite read the index of modes, without the turns' rows.
                f"FROM {tables} WHERE failed IS NOT NULL AND {mode_column} > '' AND {counted} AND {part.condition} GROUP BY 1, 2",
                [*part.name_values, *counted.values, *part.values],
            )
            for mode, name, *sums in rows:
                found.setdefault(mode, {})[name] = FailedTurns(*sums)
        return found

    def _failed_sample(self, of_scores: Where, where: Where) -> tuple[Where, int]:
        """Return an SQL condition that samples failed scores, and the number of failed scores per sampled score."""
        level = _FIRST_LEVEL
        while level and self._count("scores", of_scores, _MOST_READ + 1, _levels(0, level - 1, TOP_LEVEL)) <= _MOST_READ:
            level -= 1
        found = Where(self._sql, "scores.turn_id = turns.turn_id", CURRENT, _levels(0, level, TOP_LEVEL))
        found.also(of_scores)
        found.also(where)
        return found, 1 << level

    def failure_texts(self, wanted: Wanted) -> Iterator[FailedContent]:
        where = self._conditions(replace(wanted, failed=bool(wanted.metrics)), of_scores=False)
        reason = (
            "SELECT max(explanation) FROM scores WHERE scores.turn_id = turns.turn_id AND scores.revision = turns.revision "
            f"AND kind = 'llm' AND {verdict_is(False, self._sql)}"
        )
        rows = self._db.execute(
            f"SELECT turn_id, fault, content, ({reason}) AS reason FROM turns WHERE failed IS NOT NULL AND {where} "
            f"ORDER BY {AT} DESC LIMIT {self._sql.p}",
            [*where.values, MOST_TEXTS],
        )
        for row in rows:
            found = plain(row)
            yield FailedContent(row["turn_id"], Fault(**found["fault"]), found["content"], row["reason"])

    def topics(self, model: str) -> list[StoredTopic]:
        rows = self._db.execute(
            f"SELECT {', '.join(StoredTopic._fields)} FROM topics WHERE model = {self._sql.p} ORDER BY first_seen, mode, id",
            (model,),
        )
        return [StoredTopic(*row)._replace(center=jsonio.loads(row["center"])) for row in rows]

    def verdicts(self, metric: str, wanted: Wanted = Wanted(), most: int = MOST_VERDICTS) -> list[VerdictRow]:
        """Return a metric's verdicts (all, or a random sample), each with the stored facts about its turn.

        If enough turns match, a sample contains about ``most`` to ``2 * most`` failed turns, and a similar number of passed turns.
        """
        where = self._conditions(replace(wanted, metrics=()), of_scores=True)
        of_turns = Where(self._sql)
        of_turns.compare("turns.stored_at >=", wanted.since)
        of_turns.compare("turns.stored_at <", wanted.until)
        return self._verdicts(metric, where, of_turns, Where(self._sql), most)

    def _verdicts(
        self, metric: str, where: Where, of_turns: Where, of_scores: Where, most: int = MOST_VERDICTS
    ) -> list[VerdictRow]:
        """Return all matching verdicts or a random sample of matching verdicts.

        ``where`` selects verdicts. ``of_turns`` contains only conditions for which the table ``turns`` has an index, and
        ``of_scores`` contains conditions on ``scores.at``. For the size of a sample, see :meth:`verdicts`.
        """
        of_scores.add(f"scores.metric = {self._sql.p} AND scores.verdict IN (0, 1)", metric)
        turns = self._count("turns", of_turns, _MOST_TURNS) if str(of_turns) != EVERYTHING else _MOST_TURNS
        if turns < _MOST_TURNS and turns < self._count("scores", of_scores, turns + 1):
            found = self._verdicts_by_turn(metric, of_turns, where, most)
        else:
            found = [row for verdict in (0, 1) for row in self._verdicts_by_level(verdict, of_scores, where, most)]
        return [_verdict_of(row) for row in found]

    def _verdicts_by_turn(self, metric: str, of_turns: Where, where: Where, most: int) -> list[sqlite3.Row]:
        """Return verdicts of turns that match ``of_turns``, in random order: about ``most`` failures and ``most`` passes."""
        listed = [row[0] for row in self._db.execute(f"SELECT turns.turn_id FROM turns WHERE {of_turns}", of_turns.values)]
        listed.sort(key=lambda turn_id: (-level_of(turn_id), turn_id))
        found: dict[int, list[sqlite3.Row]] = {0: [], 1: []}
        missing = [0, 1]
        for start in range(0, min(len(listed), _MOST_READ), _BLOCK):
            ids = listed[start : start + _BLOCK]
            rows = self._db.execute(
                f"SELECT {_OF_VERDICT} FROM scores CROSS JOIN turns WHERE {among('scores.turn_id', ids, self._sql)} AND scores.metric = {self._sql.p} "
                f"AND scores.verdict BETWEEN {missing[0]} AND {missing[-1]} AND turns.turn_id = scores.turn_id AND {where} AND turns.facts IS NOT NULL",
                [*ids, metric, *where.values],
            )
            for row in rows:
                found[row["verdict"]].append(row)
            missing = [verdict for verdict in found if len(found[verdict]) < most]
            if not missing:
                break
        return [*found[0], *found[1]]

    def _verdicts_by_level(self, verdict: int, of_scores: Where, where: Where, most: int) -> list[sqlite3.Row]:
        """Return verdicts from the smallest random sample that has at least ``most`` verdicts. Possible samples contain all scores,
        1/2 of the scores, 1/4, 1/8, and so on.
        """
        found: list[sqlite3.Row] = []
        read, level, lowest = 0, TOP_LEVEL, _FIRST_LEVEL
        while level >= 0 and len(found) < most:
            levels = _levels(verdict, lowest, level)
            read += self._count("scores", of_scores, _MOST_READ + 1, levels)
            if read > _MOST_READ:
                break
            found += self._db.execute(
                f"SELECT {_OF_VERDICT} FROM scores CROSS JOIN turns WHERE scores.turn_id = turns.turn_id AND {of_scores} AND {levels} AND {where} AND turns.facts IS NOT NULL",
                [*of_scores.values, *where.values],
            ).fetchall()
            level = lowest - 1
            lowest = max(0, level - (2 if 8 * read < most else 0))  # three levels have 7 times the turns of earlier levels
        return found

    def _count(self, table: str, where: Where, most: int, more: str = EVERYTHING) -> int:
        rows = f"SELECT 1 FROM {table} WHERE {where} AND {more} LIMIT {most}"
        return int(self._db.execute(f"SELECT count(*) FROM ({rows}) AS known", where.values).fetchone()[0])

    def facts(self, wanted: Wanted = Wanted()) -> list[VerdictRow]:
        return self._facts(self._conditions(wanted, of_scores=False), "turns.stored_at")

    def _facts(self, where: Where, at: str) -> list[VerdictRow]:
        rows = self._db.execute(
            f"SELECT turn_id, conversation_id, service_version, attributes, facts, 1 AS verdict, 1.0 FROM turns "
            f"WHERE {where} AND facts IS NOT NULL ORDER BY {at} DESC LIMIT {self._sql.p}",
            [*where.values, _MOST_READ],
        )
        return [_verdict_of(row) for row in rows]

    def keeps_causes(self) -> bool:
        """Return True if a recent turn has stored facts or a first fault, or if the store is empty."""
        recent = f"SELECT coalesce(facts, fault) AS cause FROM turns ORDER BY stored_at DESC LIMIT {_RECENT}"
        count, known = self._db.execute(f"SELECT count(*), count(cause) FROM ({recent}) AS recent").fetchone()
        return bool(known) or not count

    def has_metric(self, name: str) -> bool:
        return self._db.execute(f"SELECT 1 FROM scores WHERE metric = {self._sql.p} LIMIT 1", (name,)).fetchone() is not None

    def changes(self, since: float | None = None) -> list[dict[str, Any]]:
        """Return up to 100 detected changes in scores, newest first. ``since`` is a Unix time in seconds."""
        statement = f"SELECT * FROM changes WHERE at >= {self._sql.p} ORDER BY at DESC LIMIT {_MOST_CHANGES}"
        return [plain(row) for row in self._db.execute(statement, (since or 0.0,))]

    def why(self, turn_id: str) -> dict[str, str] | None:
        turn = self.turn(turn_id)
        rows = self._db.execute(f"SELECT metric, outcome FROM outcomes WHERE turn_id = {self._sql.p}", (turn_id,))
        outcomes = {row["metric"]: row["outcome"] for row in rows if row["outcome"] != "scored"}  # scores have their own rows
        if turn is None:
            return outcomes or None
        left_out = (turn["skipped"] or {}).items()
        skipped = {name: why if why.startswith(("gated: ", "dropped: ")) else f"skipped: {why}" for name, why in left_out}
        rows = self._db.execute(
            f"SELECT metric, status, error_type FROM scores WHERE turn_id = {self._sql.p} AND revision = {self._sql.p}",
            (turn_id, turn["revision"]),
        )
        scored = {row["metric"]: "scored" if row["status"] == "ok" else f"error: {row['error_type']}" for row in rows}
        return {**skipped, **outcomes, **scored}

    def _grouping(self, by: str) -> tuple[str, list[str]]:
        sql, column = self._sql, GROUPED_BY.get(by)
        return (column, []) if column is not None else (sql.field.format("turns.attributes", sql.p), [sql.field_name(by)])

    def _conditions(self, wanted: Wanted, *, of_scores: bool) -> Where:
        sql = self._sql
        where = Where(sql)
        if not wanted.revisions:
            where.add(CURRENT if of_scores else "turns.superseded_by IS NULL")
        where.compare("turns.stored_at >=", wanted.since)
        where.compare("turns.stored_at <", wanted.until)
        where.compare("turns.conversation_id =", wanted.conversation_id)
        if wanted.mode is not None:
            where.add(f"turns.failed IS NOT NULL AND turns.mode = {sql.p}", wanted.mode)
        where.among("turns.agent", wanted.agents)
        where.among("turns.service", wanted.services)
        if wanted.metrics:
            of_metrics = among("scores.metric", wanted.metrics, sql)
            scored = f"EXISTS (SELECT 1 FROM scores WHERE scores.turn_id = turns.turn_id AND {of_metrics})"
            where.add(of_metrics if of_scores else scored, *wanted.metrics)
        if wanted.failed:
            of_metric = f" AND {among('metric', wanted.metrics, sql)}" if wanted.metrics else ""
            wrong = f"{verdict_is(False, sql)} OR status = 'error'"
            where.add(
                f"EXISTS (SELECT 1 FROM scores WHERE scores.turn_id = turns.turn_id AND scores.revision = turns.revision AND ({wrong}){of_metric})",
                *wanted.metrics,
            )
        return where


class _Part(NamedTuple):
    """SQL condition for one half of the time range, or SQL that groups turns by a column."""

    name: str
    name_values: Sequence[Any]
    condition: str
    values: Sequence[Any]


class FailedTurns(NamedTuple):
    """Counts of failed turns with one failure mode, in one half of the time range or in one group."""

    turns: int = 0
    represented: float = 0.0
    """Number of failed turns that the counted turns represent."""
    squares: float = 0.0
    """Each counted turn represents a number of failed turns. This value is the sum of these numbers' squares."""


class ModeCounts(NamedTuple):
    fault: Fault
    """Fault of the latest turn. All turns in the failure mode have a fault with the same kind, step, and error."""
    parts: tuple[FailedTurns, ...]
    examples: list[str]


class StoredModes(NamedTuple):
    modes: list[ModeCounts]
    totals: tuple[int, ...]
    """Total number of turns in each part (group, or half of the time range)."""
    groups: tuple[str, ...] = ()
    """Name of each group, in order of appearance. Empty if the parts are the halves of the time range."""
    middle: float | None = None
    """Unix time in seconds at which the second half of the time range starts."""


class FailedContent(NamedTuple):
    turn_id: str
    fault: Fault
    content: dict[str, Any] | None
    """The turn as ``turn.v1`` JSON, or None if the turn's content isn't stored."""
    explanation: str | None


class StoredTopic(NamedTuple):
    """Cluster of similar failed turns within a failure mode. The cluster's ID stays the same in later runs."""

    mode: str
    id: str
    center: list[float]
    stability: float
    name: str
    description: str
    first_seen: float


class VerdictRow(NamedTuple):
    turn_id: str
    bad: bool
    facts: dict[str, Any]
    """Facts about the turn by name, including ``service.version`` and the stored attributes."""
    conversation: str
    weight: float


def _levels(verdict: int, lowest: int, highest: int) -> str:
    return f"scores.verdict = {verdict} AND scores.level IN ({', '.join(map(str, range(lowest, highest + 1)))})"


def _verdict_of(row: sqlite3.Row) -> VerdictRow:
    turn_id, conversation, version, attributes, facts, verdict, probability = row
    found = {**(jsonio.loads(attributes) if attributes else {}), **jsonio.loads(facts)}
    if version:
        found["service.version"] = version
    return VerdictRow(turn_id, not verdict, found, conversation or turn_id, 1 / max(probability, 1e-6))


GROUPED_BY: Mapping[str, str] = {
    "service.version": "turns.service_version", "version": "turns.service_version", "model": "turns.model", "gen_ai.request.model": "turns.model",
    "agent": "turns.agent", "gen_ai.agent.name": "turns.agent", "service": "turns.service", "service.name": "turns.service",
    "judge_model": "scores.judge_model", "tenant": "turns.tenant",
}  # fmt: skip
"""Mapping from grouping name to column. Other names refer to stored attributes."""


def score_of_row(row: Mapping[str, Any]) -> Score:
    """Convert a row of :meth:`StoreReader.scores` to a score, without companion scores (``also``)."""
    return Score.from_dict({key: row[key] for key in FIELDS if key != "also" and row.get(key) is not None})


def fault_of_row(row: Mapping[str, Any]) -> Fault | None:
    """Return a failed turn's first fault. If the turn passed or the rules found no fault, return None."""
    fault = Fault(**row["fault"]) if row.get("failed") and row.get("fault") else None
    return fault if fault is not None and fault.path else None


def cost_in(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``cost_usd`` and ``cost_estimated`` from a turn's row, without unknown values."""
    return {name: turn[name] for name in ("cost_usd", "cost_estimated") if turn.get(name) is not None}


def plain(row: sqlite3.Row) -> dict[str, Any]:
    """Convert a database row to a dictionary, with JSON columns and booleans decoded."""
    found = dict(row)
    for name, decode in _DECODE.items():
        if found.get(name) is not None:
            found[name] = decode(found[name])
    return found


def store_path(given: str | None, config: Config) -> str:
    if given is not None:
        return given
    if config.outlets.store is None:
        raise ConfigError("--store: no store is configured. Add --store FILE, or set outlets.store")
    return config.outlets.store.path
