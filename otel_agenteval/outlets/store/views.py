"""Queries for the web UI: filtered lists of turns, and hourly sums of scores.

Lists are read in blocks until a page is full or the request's time is over. Therefore, a search for rare turns among millions of
turns takes several short requests.

:class:`Summer` writes sums to the tables ``daily``, ``hourly``, and, for recent hours, ``minutely``. The table ``stale_minutes``
lists minutes whose turns aren't fully included in hourly sums. For hours with such minutes, a request reads the rows of
``minutely`` that are up to date (``summed`` equals ``marks``), and sums up the turns of the remaining minutes.
"""

from __future__ import annotations

import itertools
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from ...core import jsonio
from ...core.finding import Severity
from ...evaluation.turn_facts import FactCondition
from ...statistics.groups import GroupValue, is_amount
from ...statistics.weighted import Estimate, Sums
from .reader import MOST_VERDICTS, StoredModes, StoreReader, VerdictRow, backend_of, plain
from .statements import (
    AT,
    CURRENT,
    DAY,
    HOUR,
    HOURLY_COLUMNS,
    MINUTE,
    SEVERITY,
    TURN_COLUMNS,
    Syntax,
    Where,
    among,
    detail_has,
    is_vacuous,
    verdict_is,
)

Outcome = Literal["pass", "fail", "error"]
Order = Literal["newest", "oldest", "slowest", "costliest", "most_tokens"]

_BLOCKS = (200, 1_000, 4_000)
"""Number of turns per block. Later blocks are larger. After each block, the remaining time is checked."""
_FEW_SCORES = 1_000
"""If at most this many scores match, turns are read by ID instead of in blocks."""
_SEARCH_SECONDS = 0.1
MOST_COUNTED = 10_000
_MOST_CHANGED = 200
_LATEST_HOUR = 1 << 40
_LIST_COLUMNS = ", ".join(f"turns.{name}" for name in TURN_COLUMNS if name not in ("content", "labels"))
RANKED: dict[Order, Sequence[str]] = {"slowest": ["duration_s"], "costliest": ["cost_usd"], "most_tokens": ["input_tokens", "output_tokens"]}  # fmt: skip
_DIRECTIONS: dict[Order, tuple[str, str]] = {"oldest": ("ASC", ">"), **dict.fromkeys(("newest", *RANKED), ("DESC", "<"))}
"""Mapping from order to the SQL sort direction, and the operator that compares a turn's time with the preceding turn's time."""
GROUPS = {
    "agent": "agent", "service": "service", "version": "service_version", "model": "model", "tenant": "tenant", "judge": "judge_model",
}  # fmt: skip
MOST_GROUPS = 30
"""Default maximum number of groups in a list or in sums. Sums combine all further groups as :data:`OTHERS`."""
OTHERS = "(others)"
_SUM_COLUMNS = (
    "turns", "scored", "passed", "failed", "critical", "errors", "cost_usd", "priced", "estimated", "tokens", "duration_s", "timed", "wv", "wp",
)  # fmt: skip
_METRIC_COLUMNS = ("kind", "unit", "direction", "type", "threshold", "policy", "version")
_RECENT_TURNS = 200
"""Number of recent turns whose scores :meth:`Views.metrics_of` reads."""
_INTEGER_COLUMNS = frozenset(
    ("turns", "scored", "passed", "failed", "critical", "errors", "priced", "estimated", "tokens", "timed")
)
_MOMENT_COLUMNS = ("w", "wy", "wy2", "w2", "w2y", "w2y2")
_FAILED = (
    "EXISTS (SELECT 1 FROM scores WHERE scores.turn_id = turns.turn_id AND scores.revision = turns.revision AND verdict = 0)"
)
_TURN_GROUPS = "agent, service, service_version, model, tenant"


@dataclass(frozen=True, slots=True)
class Filter:
    since: float | None = None
    """Earliest start time of matching turns, as Unix time in seconds."""
    until: float | None = None
    agents: tuple[str, ...] = ()
    services: tuple[str, ...] = ()
    versions: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    tenant: str | None = None
    conversation: str | None = None
    metric: str | None = None
    """Metric name. If set, the next four fields apply only to this metric's scores."""
    outcome: Outcome | None = None
    """Outcome of ``metric`` or, if ``metric`` is unset, of any metric. Neutral metrics neither pass nor fail."""
    severity: Severity | None = None
    """Severity of a finding by ``metric`` or, if ``metric`` is unset, by any metric."""
    below: float | None = None
    above: float | None = None
    tool: str | None = None
    mode: str | None = None
    facts: tuple[FactCondition, ...] = ()
    error: bool = False
    text: str | None = None


class Cursor(NamedTuple):
    at: float
    turn_id: str


@dataclass(frozen=True, slots=True)
class TurnPage:
    turns: list[dict[str, Any]]
    end: Cursor | None
    """Position after the page's last turn, or None at the end of the list."""


@dataclass(slots=True)
class SumCell:
    """Sums over the scores of a metric or, if ``metric`` is empty, over turns."""

    group: str | None
    metric: str
    at: int
    """Unix time in seconds at which the cell's interval starts, or 0 for a query without ``step``."""
    turns: int
    scored: int
    passed: int
    failed: int
    """Number of failed scores or, if ``metric`` is empty, of turns with a failed score."""
    critical: int
    errors: int
    cost_usd: float
    priced: int
    estimated: int
    tokens: int
    duration_s: float
    timed: int
    wv: float
    wp: float
    least: float | None
    most: float | None
    w: float
    wy: float
    wy2: float
    w2: float
    w2y: float
    w2y2: float

    def estimate(self, unit: str | None) -> Estimate | None:
        """Return the estimated mean over all turns, or None without values. The estimate treats each turn as a separate trace."""
        if self.least is None or self.most is None:
            return None
        ends = self.least, math.inf if is_amount(unit or "1") else self.most
        return Sums.of_turns((self.w, self.wy, self.wy2), (self.w2, self.w2y, self.w2y2), ends).estimate()


class Views(StoreReader):
    """Read access to the score store for one web UI request. All reads use the same snapshot. Not thread-safe."""

    def __init__(self, path: str | os.PathLike[str], now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(path)
        self._now = now
        self._db.execute("BEGIN")  # all reads see one state, although sums change in the meantime

    def listed(self, wanted: Filter, limit: int = 100, start: Cursor | None = None, order: Order = "newest") -> TurnPage:
        """Return up to ``limit`` matching turns after ``start``, or fewer if the request's time is over. Orders such as ``slowest``
        rank only the turns that one request can read, not the whole store.
        """
        way, ranked, p = _DIRECTIONS[order][0], RANKED.get(order, ()), self._sql.p
        rank = " + ".join(f"coalesce(turns.{name}, 0)" for name in ranked)
        found: list[dict[str, Any]] = []
        for where, end, at in self._matching_blocks(wanted, start, order):
            rows = self._db.execute(
                f"SELECT {_LIST_COLUMNS}, {AT} AS at FROM turns WHERE {where} ORDER BY {rank or at} {way}, turn_id {way} LIMIT {p}",
                [*where.values, limit - (0 if ranked else len(found))],
            ).fetchall()
            found += map(plain, rows)
            start = end
            if ranked:
                found.sort(key=lambda turn: -sum(turn[name] or 0 for name in ranked))
                del found[limit:]
            elif len(found) == limit:
                return TurnPage(found, Cursor(found[-1]["at"], found[-1]["turn_id"]))
        return TurnPage(found, start)

    def counted(self, wanted: Filter) -> tuple[int, bool]:
        """Return the number of matching turns, up to :data:`MOST_COUNTED`, and whether all matching turns were counted."""
        count, start = 0, None
        for where, end, _ in self._matching_blocks(wanted, None, "newest"):
            count += self._db.execute(f"SELECT count(*) FROM turns WHERE {where}", where.values).fetchone()[0]
            start = end
            if count > MOST_COUNTED:
                return MOST_COUNTED, False
        return count, start is None

    def _matching_blocks(self, wanted: Filter, start: Cursor | None, order: Order) -> Iterator[tuple[Where, Cursor | None, str]]:
        """For each block of turns, yield an SQL condition, the position after the block, and the SQL for a turn's time. The
        iteration stops at the end of the list, or when the request's time is over.
        """
        where, sql = _where_turns(wanted, self._sql), self._sql
        few = self._few_turn_ids(wanted)
        if few is not None:
            where.add(among("turns.turn_id", few, sql), *few)
        begun = self._now()
        for number in itertools.count():
            if few is None and wanted.conversation is None:
                (block, start), at = self._block(wanted, start, order, _BLOCKS[min(number, len(_BLOCKS) - 1)]), AT
            else:
                at = sql.unindexed.format(AT)
                block, start = _where_time(wanted, sql, start, order, at), None
            block.also(where)
            yield block, start, at
            if start is None or self._now() >= begun + _SEARCH_SECONDS:
                return

    def conversations(self, ids: Sequence[str], tenant: str | None) -> list[dict[str, Any]]:
        """Return totals for each conversation in ``ids`` (such as turns, failures, and cost), latest conversation first."""
        where = Where(self._sql, "turns.superseded_by IS NULL AND turns.is_conversation = 0")
        where.among("conversation_id", ids or [""])
        where.compare("tenant =", tenant)
        rows = self._db.execute(
            f"SELECT conversation_id AS id, count(*) AS turns, count(CASE WHEN {_FAILED} THEN 1 END) AS failed, count(error) AS errors, sum(cost_usd) AS cost_usd, "
            f"max(cost_estimated) AS cost_estimated, sum(duration_s) AS duration_s, max({AT}) AS until FROM turns WHERE {where} GROUP BY 1 ORDER BY until DESC, 1",
            where.values,
        )
        return [{**dict(row), "cost_estimated": bool(row["cost_estimated"])} for row in rows]

    def all_listed(self, wanted: Filter, size: int) -> Iterator[dict[str, Any]]:
        """Yield all matching turns, latest first. Turns are read in pages of ``size`` turns."""
        page = self.listed(wanted, size)
        yield from page.turns
        while page.end is not None:
            page = self.listed(wanted, size, page.end)
            yield from page.turns

    def _block(self, wanted: Filter, start: Cursor | None, order: Order, size: int) -> tuple[Where, Cursor | None]:
        """Return an SQL condition for the next ``size`` turns by time, and the position after these turns (None at the end)."""
        where, p = _where_time(wanted, self._sql, start, order), self._sql.p
        way = _DIRECTIONS[order][0]
        alone = wanted.agents if len(wanted.agents) == 1 else ()
        of_agent = f" AND agent = {p}" if alone else ""
        last = self._db.execute(
            f"SELECT {AT}, turn_id FROM turns WHERE {where}{of_agent} ORDER BY {AT} {way}, turn_id {way} LIMIT 1 OFFSET {p}",
            [*where.values, *alone, size - 1],
        ).fetchone()
        if last is None:
            return where, None
        more = _DIRECTIONS["newest" if order == "oldest" else "oldest"][1]
        where.add(f"{AT} {more}= {p} AND ({AT}, turns.turn_id) {more}= ({p}, {p})", last[0], *last)  # for SQLite, both
        return where, Cursor(*last)

    def _few_turn_ids(self, wanted: Filter) -> list[str] | None:
        """Return the IDs of turns with a matching score. If a list of IDs wouldn't make the query faster, return None."""
        by_score = wanted.metric is not None and (wanted.outcome, wanted.below, wanted.above) != (None, None, None)
        if not by_score or wanted.conversation is not None:
            return None
        where = _where_score(wanted, self._sql)
        rows = self._db.execute(
            f"SELECT DISTINCT turn_id FROM (SELECT turn_id FROM scores WHERE {where} LIMIT {self._sql.p}) AS few",
            [*where.values, _FEW_SCORES + 1],
        ).fetchall()
        return [row[0] for row in rows] if len(rows) <= _FEW_SCORES else None

    def pairs(self, by: str, before: str, after: str, wanted: Filter, limit: int, start: str = "") -> list[tuple[str, str, str]]:
        """Return tuples (case, ID of latest turn in ``before``, ID of latest turn in ``after``) for cases in both groups."""
        where, times, p = _where_turns(wanted, self._sql), _where_time(wanted, self._sql), self._sql.p
        values = [*times.values, *where.values]
        latest = (
            f"SELECT case_key, turn_id, row_number() OVER (PARTITION BY case_key ORDER BY {AT} DESC, turn_id DESC) AS place FROM turns "
            f"WHERE case_key > {p} AND {GROUPS[by]} = {p} AND {times} AND {where}"
        )
        rows = self._db.execute(
            f"SELECT one.case_key, one.turn_id, other.turn_id FROM ({latest}) AS one JOIN ({latest}) AS other ON other.case_key = one.case_key AND other.place = 1 "
            f"WHERE one.place = 1 ORDER BY one.case_key LIMIT {p}",
            [start, before, *values, start, after, *values, limit],
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def group_values(self, by: str, groups: Sequence[str], wanted: Filter) -> Iterator[GroupValue]:
        """Yield the same score values as :meth:`values`, but select turns by a web UI filter."""
        where = _where_turns(wanted, self._sql)
        where.add(CURRENT)
        where.also(_where_time(wanted, self._sql))
        where.compare("scores.metric =", wanted.metric)
        return self._values(GROUPS[by], (), groups, where)

    def filtered_verdicts(self, wanted: Filter, most: int = MOST_VERDICTS) -> list[VerdictRow]:
        """Return the same verdicts as :meth:`verdicts`, but select turns by a web UI filter."""
        where, times = _where_facts(wanted, self._sql, "turns."), _where_time(wanted, self._sql)
        where.add(f"{CURRENT} AND {times}", *times.values)
        of_turns, of_scores = Where(self._sql), _where_time(wanted, self._sql, at="scores.at")
        if wanted.tenant is not None or len(wanted.agents) == 1:
            of_turns = _where_facts(replace(wanted, services=(), versions=(), models=()), self._sql, "turns.")
            of_turns.also(times)
        return self._verdicts(wanted.metric or "", where, of_turns, of_scores, most)

    def filtered_facts(self, wanted: Filter) -> list[VerdictRow]:
        where = _where_turns(wanted, self._sql)
        where.also(_where_time(wanted, self._sql))
        return self._facts(where, AT)

    def filtered_modes(self, wanted: Filter, by: str | None = None) -> StoredModes:
        """Return failure modes for a web UI filter. If the filter has a metric but no outcome, count only turns that fail this
        metric. ``by`` is a key of ``GROUPS``.
        """
        if wanted.metric is not None and wanted.outcome is None:
            wanted = replace(wanted, outcome="fail")
        every = _where_turns(replace(wanted, metric=None, outcome=None), self._sql)
        failed = _where_turns(wanted, self._sql, self._sql.unindexed.format("turns."))  # makes SQLite use the index of modes
        for where in (failed, every):
            where.also(_where_time(wanted, self._sql))
        sample, few = None, self._few_turn_ids(wanted)
        if few is not None:
            failed.add(among("turns.turn_id", few, self._sql), *few)
        elif wanted.metric is not None and wanted.outcome == "fail" and not wanted.conversation:
            of_scores = _where_time(wanted, self._sql, at="scores.at")
            of_scores.add(f"scores.metric = {self._sql.p}", wanted.metric)
            sample = self._failed_sample(of_scores, every)
        return self._modes(failed, every, AT, None if by is None else (GROUPS[by], []), sample, few is not None)

    def scores_of(self, turn_ids: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        rows = self._db.execute(
            "SELECT turn_id, metric, kind, value, threshold, passed, label, status, unit, direction FROM scores JOIN turns USING (turn_id) "
            f"WHERE {among('turn_id', turn_ids, self._sql)} AND {CURRENT} ORDER BY metric",
            list(turn_ids),
        )
        found: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault(row["turn_id"], []).append(plain(row))
        return found

    def texts_of(self, turn_ids: Sequence[str], length: int) -> list[tuple[str, str | None, str | None]]:
        """Return tuples (turn ID, input, output) for turns with stored content. Cut texts to ``length`` + 1 characters."""
        sql = self._sql
        field = sql.field.format("content", sql.p)
        rows = self._db.execute(
            f"SELECT turn_id, substr({field}, 1, {sql.p}), substr({field}, 1, {sql.p}) "
            f"FROM turns WHERE {among('turn_id', turn_ids, self._sql)} AND content IS NOT NULL",
            [sql.field_name("input"), length + 1, sql.field_name("output"), length + 1, *turn_ids],
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def changed_since(self, stored_at: float, wanted: Filter) -> list[dict[str, Any]]:
        """Return up to 200 turns that arrived or received scores after the Unix time ``stored_at``, earliest first."""
        where, p = _where_turns(wanted, self._sql), self._sql.p
        rows = self._db.execute(
            f"SELECT {_LIST_COLUMNS}, {AT} AS at FROM turns WHERE stored_at > {p} AND {where} ORDER BY stored_at LIMIT {p}",
            [stored_at, *where.values, _MOST_CHANGED],
        )
        return [plain(row) for row in rows]

    def last_stored(self) -> float:
        """Return the Unix time when a turn last arrived or received a score, or 0 for an empty store."""
        return float(self._db.execute("SELECT coalesce(max(stored_at), 0) FROM turns").fetchone()[0])

    def cells(self, wanted: Filter, by: str | None = None, step: int | None = None, groups: Sequence[str] = ()) -> list[SumCell]:
        """Return sums by group, metric, and interval of ``step`` seconds.

        Of the filter, only the time, metric, and columns such as ``agent`` apply. Without ``by``, all turns form one group. With
        ``by``, each value in ``groups`` (default: the most frequent values) is a group, and the group :data:`OTHERS` contains the
        rest. Unless ``step`` is less than an hour, the filter's times are rounded to full hours.
        """
        if step is not None and step < HOUR:
            times = " AND ".join([
                "1 = 1", *(f"{AT} {sign} {float(at)}" for sign, at in ((">=", wanted.since), ("<", wanted.until)) if at is not None)
            ])  # fmt: skip
            hours, source = 1, _sums_by_hour(times, self._sql, step)
            where = _where_hours(replace(wanted, since=None, until=None), self._sql)
        else:
            hours = (step or HOUR) // HOUR
            where, source = _where_hours(wanted, self._sql), self._sums(wanted, None if step is None else hours)
        group = "CAST(NULL AS TEXT)"
        if by is not None:
            column = GROUPS[by]
            kept = ", ".join([self._sql.p] * len(groups)) or f"SELECT name FROM ({_largest_groups(by)}) AS largest"
            group = f"CASE WHEN {column} IS NULL OR {column} IN ({kept}) THEN {column} ELSE '{OTHERS}' END"
        part = f"hour / {hours}" if step is not None else "0"
        places = "1, 2, 3" if step is not None else "1, 2"
        sums = ", ".join(f"{self._sql.total.format(name)} AS {name}" for name in (*_SUM_COLUMNS, *_MOMENT_COLUMNS))
        rows = self._db.execute(
            f"WITH sums AS (SELECT * FROM ({source}) AS every WHERE {where}) "
            f"SELECT {group} AS name, metric, {part} AS part, {sums}, min(least) AS least, max(most) AS most FROM sums "
            f"GROUP BY {places} ORDER BY {places}",
            [*where.values, *groups],
        )
        cells = []
        for row in rows:
            values: dict[str, Any] = {name: int(row[name]) if name in _INTEGER_COLUMNS else row[name] for name in row.keys()}  # noqa: SIM118 - a row's iterator gives values
            cells.append(SumCell(values.pop("name"), values.pop("metric"), int(values.pop("part")) * (step or 0), **values))
        return cells

    def groups_of(self, by: str, wanted: Filter, most: int = MOST_GROUPS) -> dict[str, int]:
        """Return up to ``most`` values of ``by`` with their turn count (for ``judge``: score count), most frequent first."""
        where = _where_hours(wanted, self._sql)
        rows = self._db.execute(
            f"WITH sums AS (SELECT * FROM ({self._sums(wanted)}) AS every WHERE {where}) {_largest_groups(by, most)}",
            where.values,
        )
        return {str(name): int(count) for name, count in rows}

    def releases(self, wanted: Filter) -> list[tuple[str, float]]:
        """Return the latest service versions, each with the time of its first turn. Versions are ordered by this time."""
        where, p = _where_hours(wanted, self._sql), self._sql.p
        rows = self._db.execute(
            f"SELECT service_version, min(hour) AS hour FROM ({self._sums(wanted, 1)}) AS sums WHERE metric = '' AND service_version IS NOT NULL AND {where} "
            f"GROUP BY 1 ORDER BY 2 DESC LIMIT {MOST_GROUPS}",
            where.values,
        ).fetchall()
        found = []
        for version, hour in rows:
            of_turns = _where_facts(wanted, self._sql, "turns.")
            first = self._db.execute(
                f"SELECT {AT} FROM turns WHERE {AT} >= {p} AND {AT} < {p} AND service_version = {p} AND {of_turns} ORDER BY {AT} LIMIT 1",
                (hour * HOUR, (hour + 1) * HOUR, version, *of_turns.values),
            ).fetchone()
            found.append((str(version), float(first[0] if first is not None else hour * HOUR)))
        return sorted(found, key=lambda one: one[1])

    def latest_of(self, wanted: Filter, most: int) -> list[dict[str, Any]]:
        """Return the latest turns' time, duration, cost, and failure. The filter covers time and columns such as ``agent``."""
        metric = [] if wanted.metric is None else [wanted.metric]
        failed = f"{_FAILED[:-1]} AND metric = {self._sql.p})" if metric else "failed IS NOT NULL"
        where, times = _where_facts(wanted, self._sql, "turns.", "turns.superseded_by IS NULL"), _where_time(wanted, self._sql)
        rows = self._db.execute(
            f"SELECT {AT} AS at, duration_s, cost_usd, {failed} AS failed FROM turns WHERE {times} AND {where} ORDER BY {AT} DESC LIMIT {self._sql.p}",
            (*metric, *times.values, *where.values, most),
        )
        return [dict(row) for row in rows]

    def knows_users(self) -> bool:
        return self._db.execute("SELECT 1 FROM turns WHERE user_id IS NOT NULL LIMIT 1").fetchone() is not None

    def metrics_of(self) -> dict[str, dict[str, Any]]:
        """Return each metric's properties, such as kind and unit, from one of the metric's scores, preferably a recent one."""
        facts = ", ".join(f"scores.{name}" for name in _METRIC_COLUMNS)
        rows = self._db.execute(
            f"SELECT metric, {facts} FROM scores WHERE turn_id IN (SELECT turn_id FROM turns ORDER BY {AT} DESC, turn_id DESC LIMIT {_RECENT_TURNS})"
        ).fetchall()
        found = {row["metric"]: {name: row[name] for name in _METRIC_COLUMNS} for row in rows}
        for (name,) in self._db.execute(_DISTINCT_METRICS).fetchall():
            if name not in found:
                row = self._db.execute(f"SELECT {facts} FROM scores WHERE metric = {self._sql.p} LIMIT 1", (name,)).fetchone()
                found[name] = {fact: row[fact] for fact in _METRIC_COLUMNS}
        return dict(sorted(found.items()))

    def extent(self, tenant: str | None = None) -> tuple[float, float] | None:
        """Return the times of the first and the last turn, or None if there are no turns. A tenant's times are rounded to hours."""
        if tenant is not None:
            query = f"SELECT min(hour), max(hour) FROM ({self._sums(Filter())}) AS sums WHERE tenant = {self._sql.p}"
            low, high = self._db.execute(query, (tenant,)).fetchone()
            return (low * HOUR, (high + 1) * HOUR) if low is not None else None
        first = self._db.execute(f"SELECT {AT} FROM turns ORDER BY {AT} LIMIT 1").fetchone()
        last = self._db.execute(f"SELECT {AT} FROM turns ORDER BY {AT} DESC LIMIT 1").fetchone()
        return (float(first[0]), float(last[0])) if first is not None else None

    def stale(self) -> list[int]:
        """Return the hours that need new sums, as hours since the Unix epoch."""
        return [row[0] for row in self._db.execute(f"SELECT DISTINCT minute / {MINUTE} AS hour FROM stale_minutes ORDER BY hour")]

    def unsummed(self, before: int) -> tuple[int, int] | None:
        """Return the latest hour before ``before`` that needs new sums, and its number of changes. If none exists, return None."""
        row = self._db.execute(
            f"SELECT minute / {MINUTE} AS hour, sum(marks) AS marks FROM stale_minutes WHERE minute < {self._sql.p} GROUP BY 1 ORDER BY 1 DESC LIMIT 1",
            (before * MINUTE,),
        ).fetchone()
        return (row["hour"], int(row["marks"])) if row is not None else None

    def unsummed_minutes(self, since: int) -> dict[int, int]:
        """Return the minutes since the hour ``since`` that need new sums, each mapped to its number of changes."""
        rows = self._db.execute(
            f"SELECT minute, marks FROM stale_minutes WHERE minute >= {self._sql.p} AND summed <> marks ORDER BY minute",
            (since * MINUTE,),
        )
        return {row["minute"]: row["marks"] for row in rows}

    def sums_of(self, first: int, last: int) -> list[tuple[Any, ...]]:
        """Compute rows of ``hourly`` from turns that started at or after ``first`` and before ``last`` (Unix times in seconds)."""
        rows = self._db.execute(_sums_by_hour(f"{AT} >= {first} AND {AT} < {last}", self._sql))
        return [tuple(row[name] for name in HOURLY_COLUMNS) for row in rows]

    def _sums(self, wanted: Filter, step: int | None = None) -> str:
        """Return SQL that combines stored daily, hourly, and minutely sums with new sums over the remaining turns.

        ``step`` is the interval length in hours. Only intervals of full days use daily sums.
        """
        first = 0 if wanted.since is None else int(wanted.since // HOUR)
        last = _LATEST_HOUR if wanted.until is None else int(wanted.until // HOUR)
        stale = [hour for hour in self.stale() if first <= hour <= last]
        changing = {hour // DAY for hour in stale}
        days = [
            row[0]
            for row in self._db.execute(f"SELECT DISTINCT hour / {DAY} FROM daily")
            if row[0] not in changing and row[0] * DAY >= first and (row[0] + 1) * DAY <= last
        ] if step is None or step % DAY == 0 else []  # fmt: skip
        names = ", ".join(HOURLY_COLUMNS)
        runs = _runs(sorted(days))
        within = " OR ".join(f"hour BETWEEN {low * DAY} AND {(high + 1) * DAY - 1}" for low, high in runs) or "1 = 0"
        found = (
            f"SELECT {names} FROM daily WHERE {within} UNION ALL SELECT {names} FROM hourly "
            f"WHERE hour BETWEEN {first} AND {last} AND NOT ({within}) AND hour NOT IN (SELECT minute / {MINUTE} FROM stale_minutes)"
        )
        if not stale:
            return found
        summed = [
            row[0]
            for row in self._db.execute("SELECT minute FROM stale_minutes WHERE summed = marks ORDER BY minute")
            if first <= row[0] // MINUTE <= last
        ]
        if summed:
            kept = " OR ".join(f"minute BETWEEN {low} AND {high}" for low, high in _runs(summed))
            found += f" UNION ALL SELECT {names} FROM minutely WHERE {kept}"
        spans = [f"({AT} >= {low * MINUTE} AND {AT} < {(high + 1) * MINUTE})" for low, high in _without(stale, summed)]
        if spans:
            fresh = _sums_by_hour(f"({' OR '.join(spans)})", self._sql)
            found += f" UNION ALL SELECT {names} FROM ({fresh}) AS fresh"
        return found


_DISTINCT_METRICS = """
WITH RECURSIVE names(name) AS (
  SELECT min(metric) FROM scores
  UNION ALL SELECT (SELECT min(metric) FROM scores WHERE metric > names.name) FROM names WHERE names.name IS NOT NULL
) SELECT name FROM names WHERE name IS NOT NULL
"""
"""Query for metric names that needs one index lookup per name. DISTINCT would read the entire index."""


class Summer:
    """Writer of sums for completed hours and for recent minutes that stopped changing. Not thread-safe."""

    _REST = 600.0
    """Seconds between the end of an hour and the computation of the hour's sums. Needed because turns can arrive late."""

    def __init__(self, path: str | os.PathLike[str], time_s: Callable[[], float]) -> None:
        self._path = path
        self._time_s = time_s
        backend = backend_of(path)
        self._file = backend.open_writer(os.fspath(path))
        self._sql: Syntax = backend.SYNTAX
        self._marks: dict[int, int] = {}
        """Minutes that needed new sums at the latest :meth:`sum_minutes`, each mapped to its number of changes (``marks``)."""

    def open(self) -> None:
        """Create the store file before the first turn. Can raise sqlite3.Error or OSError."""
        with self._file.connection():
            pass

    def sum_one(self) -> bool:
        """Compute sums for the latest completed hour that needs new sums. If no hour needs new sums, return False."""
        last = self._first_open_hour()
        with Views(self._path) as reader:
            found = reader.unsummed(last)
            if found is None:
                return False
            hour, marks = found
            sums = reader.sums_of(hour * HOUR, (hour + 1) * HOUR)
        within, p = (hour * MINUTE, (hour + 1) * MINUTE - 1), self._sql.p
        with self._file.transaction() as db:
            now = db.execute(f"SELECT sum(marks) FROM stale_minutes WHERE minute BETWEEN {p} AND {p}", within).fetchone()[0]
            if now == marks:  # otherwise turns arrived in the meantime, and the hour stays on the list
                db.execute(f"DELETE FROM stale_minutes WHERE minute BETWEEN {p} AND {p}", within)
                db.execute(f"DELETE FROM minutely WHERE minute BETWEEN {p} AND {p}", within)
                db.execute(f"DELETE FROM hourly WHERE hour = {p}", (hour,))
                db.executemany(self._sql.insert("hourly", HOURLY_COLUMNS), sums)
                self._sum_day(db, hour // DAY, last)
        return True

    def sum_minutes(self) -> int:
        """Compute sums for recent minutes that haven't changed since the previous call. Return the number of these minutes."""
        with Views(self._path) as reader:
            found = reader.unsummed_minutes(self._first_open_hour())
            resting = [minute for minute, marks in found.items() if self._marks.get(minute) == marks]
            sums = {minute: reader.sums_of(minute * MINUTE, (minute + 1) * MINUTE) for minute in resting}
        p = self._sql.p
        for minute, rows in sums.items():
            with self._file.transaction() as db:
                marks = found[minute]
                update = f"UPDATE stale_minutes SET summed = {p} WHERE minute = {p} AND marks = {p}"
                if db.execute(update, (marks, minute, marks)).rowcount:
                    db.execute(f"DELETE FROM minutely WHERE minute = {p}", (minute,))
                    db.executemany(self._sql.insert("minutely", ("minute", *HOURLY_COLUMNS)), [(minute, *row) for row in rows])
        self._marks = found
        return len(resting)

    def _first_open_hour(self) -> int:
        """Return the first hour that isn't completed yet, in hours since the Unix epoch."""
        return int((self._time_s() - self._REST) // HOUR)

    def close(self) -> None:
        self._file.close(for_good=True)

    def _sum_day(self, db: Any, day: int, last: int) -> None:
        """Delete a day's sums. If the day is complete and all of its hours have sums, recompute the day's sums."""
        p, total = self._sql.p, self._sql.total.format
        within = (day * DAY, (day + 1) * DAY - 1)
        db.execute(f"DELETE FROM daily WHERE hour BETWEEN {p} AND {p}", within)
        minutes = (within[0] * MINUTE, (within[1] + 1) * MINUTE - 1)
        stale = db.execute(f"SELECT 1 FROM stale_minutes WHERE minute BETWEEN {p} AND {p}", minutes).fetchone()
        if within[1] >= last or stale is not None:
            return
        of_turn = ("agent", "service", "service_version", "model", "tenant", "judge_model", "metric")
        names = [name for name in HOURLY_COLUMNS if name not in (*of_turn, "hour", "least", "most")]
        sums = [_sum_of_counts(name, self._sql) if name == "tokens" else total(name) for name in names]
        db.execute(
            f"INSERT INTO daily (hour, {', '.join(of_turn)}, least, most, {', '.join(names)}) "
            f"SELECT {within[0]}, {', '.join(of_turn)}, min(least), max(most), {', '.join(sums)} "
            f"FROM hourly WHERE hour BETWEEN {p} AND {p} GROUP BY {', '.join(of_turn)}",
            within,
        )


def _sum_of_counts(sum_of: str, sql: Syntax) -> str:
    total = sql.total.format(sum_of)
    return sql.integer.format(f"CASE WHEN {total} < 9e18 THEN {total} ELSE 9e18 END")


def _sums_by_hour(where: str, sql: Syntax, seconds: int = HOUR) -> str:
    """Return SQL that computes rows of ``hourly`` from turns that match ``where``. ``seconds`` is the interval length."""
    hour, total = sql.floor.format(f"{AT} / {seconds}"), sql.total.format
    counts = f"scores.status = 'ok' AND scores.value IS NOT NULL AND coalesce(scores.sample_probability, 1.0) > 0 AND NOT {is_vacuous(sql)}"
    tokens = _sum_of_counts("coalesce(input_tokens, 0.0) + coalesce(output_tokens, 0.0)", sql)
    moments = ("weight", "weight * y", "weight * y * y", "weight * weight", "weight * weight * y", "weight * weight * y * y")
    return f"""
SELECT {hour} AS hour, {_TURN_GROUPS}, CAST(NULL AS TEXT) AS judge_model, '' AS metric, count(*) AS turns, 0 AS scored, 0 AS passed, count(failed) AS failed, 0 AS critical, count(error) AS errors,
  {total("cost_usd")} AS cost_usd, count(cost_usd) AS priced, count(CASE WHEN cost_estimated = 1 THEN 1 END) AS estimated, {tokens} AS tokens,
  {total("duration_s")} AS duration_s, count(duration_s) AS timed, 0.0 AS wv, 0.0 AS wp,
  min(duration_s) AS least, max(duration_s) AS most, 0.0 AS w, 0.0 AS wy, 0.0 AS wy2, 0.0 AS w2, 0.0 AS w2y, 0.0 AS w2y2
FROM turns WHERE superseded_by IS NULL AND {where} GROUP BY 1, 2, 3, 4, 5, 6
UNION ALL
SELECT {hour}, {_TURN_GROUPS}, judge_model, metric, count(*), count(y), count(CASE WHEN passes THEN 1 END), count(CASE WHEN fails THEN 1 END), count(CASE WHEN is_critical THEN 1 END), count(CASE WHEN status = 'error' THEN 1 END),
  {total("judge_cost_usd")}, count(judge_cost_usd), 0, 0, 0.0, 0, {total("CASE WHEN passes OR fails THEN weight END")}, {total("CASE WHEN passes THEN weight END")}, min(y), max(y), {", ".join(map(total, moments))}
FROM (
  SELECT turns.start, turns.stored_at, {_TURN_GROUPS}, judge_model, metric, status, judge_cost_usd, {verdict_is(True, sql)} AS passes, {verdict_is(False, sql)} AS fails, {detail_has(SEVERITY.format("critical"), sql)} AS is_critical,
    CASE WHEN {counts} THEN value END AS y, CASE WHEN {counts} THEN 1.0 / coalesce(sample_probability, 1.0) END AS weight
  FROM turns JOIN scores USING (turn_id) WHERE {CURRENT} AND {where}
) AS turns GROUP BY 1, 2, 3, 4, 5, 6, 7, 8
"""


def _largest_groups(by: str, most: int = MOST_GROUPS) -> str:
    """Return SQL for the most frequent values of ``by`` in ``sums``. Judges rank by score count, other values by turn count."""
    counted, of = ("sum(scored)", "metric <> ''") if by == "judge" else ("sum(turns)", "metric = ''")
    column = GROUPS[by]
    return f"SELECT {column} AS name, {counted} AS counted FROM sums WHERE {of} AND {column} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {most}"


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = found[-1][0], number
        else:
            found.append((number, number))
    return found


def _without(hours: Sequence[int], minutes: Sequence[int]) -> list[tuple[int, int]]:
    """Return the minutes of ``hours`` that aren't in ``minutes``, as runs (first, last). Both arguments must be sorted."""
    found: list[tuple[int, int]] = []
    taken = deque(_runs(minutes))
    for first, last in _runs(hours):
        start, end = first * MINUTE, (last + 1) * MINUTE - 1
        while taken and taken[0][0] <= end:
            low, high = taken.popleft()
            if low > start:
                found.append((start, low - 1))
            start = high + 1
        if start <= end:
            found.append((start, end))
    return found


def _where_facts(wanted: Filter, sql: Syntax, table: str = "", *conditions: str) -> Where:
    """Return the filter's SQL condition on columns that both turns and sums have, such as ``agent``."""
    where = Where(sql, *conditions)
    where.among(f"{table}agent", wanted.agents)
    where.among(f"{table}service", wanted.services)
    where.among(f"{table}service_version", wanted.versions)
    where.among(f"{table}model", wanted.models)
    where.compare(f"{table}tenant =", wanted.tenant)
    return where


def _where_hours(wanted: Filter, sql: Syntax) -> Where:
    where = _where_facts(wanted, sql)
    if wanted.metric is not None:
        where.among("metric", ("", wanted.metric))
    where.compare("hour >=", int(wanted.since // HOUR) if wanted.since is not None else None)
    where.compare("hour <=", int(wanted.until // HOUR) if wanted.until is not None else None)
    return where


def _where_time(wanted: Filter, sql: Syntax, start: Cursor | None = None, order: Order = "newest", at: str = AT) -> Where:
    where = Where(sql)
    where.compare(f"{at} >=", wanted.since)
    where.compare(f"{at} <", wanted.until)
    if start is not None:
        way, p = _DIRECTIONS[order][1], sql.p
        where.add(f"{at} {way}= {p} AND ({at}, turns.turn_id) {way} ({p}, {p})", start.at, *start)
    return where


def _where_turns(wanted: Filter, sql: Syntax, table: str = "turns.") -> Where:
    """Return the filter's SQL condition on rows of ``turns``, except for the time range."""
    where = _where_facts(wanted, sql, table, "turns.superseded_by IS NULL")
    where.compare("turns.conversation_id =", wanted.conversation)
    if wanted.mode is not None:
        where.add(f"turns.failed IS NOT NULL AND turns.mode = {sql.p}", wanted.mode)
    for condition in wanted.facts:
        _add_fact(where, condition)
    if wanted.error:
        where.add("turns.error IS NOT NULL")
    if wanted.tool is not None:
        has_tool = sql.contains.format("turns.tools", sql.p)
        where.add(f"turns.tools IS NOT NULL AND {has_tool}", jsonio.dumps(wanted.tool))
    if wanted.text is not None:
        text = "".join(f"\\{letter}" if letter in "%_\\" else letter for letter in wanted.text)
        where.add(f"turns.content {sql.like} {sql.p} ESCAPE '\\'", f"%{text}%")
    if any(one is not None for one in (wanted.metric, wanted.outcome, wanted.severity, wanted.below, wanted.above)):
        if wanted.metric is not None and wanted.outcome == "fail":
            of_score = _where_score(replace(wanted, metric=None, outcome=None), sql, sql.unindexed)
            of_score.add(f"scores.metric = {sql.p} AND scores.verdict = 0", wanted.metric)
        else:  # with an index, SQLite would scan the verdicts for every turn
            of_score = _where_score(wanted, sql, sql.unindexed)
        where.add(
            f"EXISTS (SELECT 1 FROM scores WHERE scores.turn_id = turns.turn_id AND scores.revision = turns.revision AND {of_score})",
            *of_score.values,
        )
    return where


def _add_fact(where: Where, condition: FactCondition) -> None:
    sql, p, number = where.sql, where.sql.p, condition.number
    known, names = "turns.service_version", []
    if condition.name in ("user.id", "enduser.id"):
        known = "turns.user_id"
    elif condition.name != "service.version":
        known = f"coalesce({sql.field.format('turns.facts', p)}, {sql.field.format('turns.attributes', p)})"
        names = 2 * [sql.field_name(condition.name)]
    conditions: list[str] = []
    values: list[Any] = []
    if condition.sign == "=":  # a name, or one of a list
        conditions, values = (
            [f"{known} = {p}", sql.contains.format(known, p)],
            [*names, condition.value, *names, jsonio.dumps(condition.value)],
        )
    if number is not None:
        conditions.append(f"{sql.number.format(known)} {condition.sign.replace('≤', '<=')} {p}")
        values += [*names, number]
    where.add(f"({' OR '.join(conditions)})", *values)


def _where_score(wanted: Filter, sql: Syntax, column: str = "{}") -> Where:
    """Return the filter's SQL condition on rows of ``scores``. ``column`` is a format string for column names."""
    where = Where(sql)
    passed = column.format("scores.passed")
    if wanted.outcome == "error":
        where.add("scores.status = 'error'")
    elif wanted.outcome is not None:
        where.add(verdict_is(wanted.outcome == "pass", sql, passed))
    if wanted.severity is not None:
        where.add(detail_has(SEVERITY.format(wanted.severity), sql))
    where.compare(f"{column.format('scores.metric')} =", wanted.metric)
    where.compare(f"{column.format('scores.value')} <", wanted.below)
    where.compare(f"{column.format('scores.value')} >", wanted.above)
    return where
