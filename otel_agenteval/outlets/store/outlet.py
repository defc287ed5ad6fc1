"""Outlet that writes turns and scores to the store.

If a write fails, for example because the disk is full, up to ``queue_bytes`` of rows wait in memory.
"""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...config.outlets import StoreOptions
from ...core import jsonio, semconv
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import StoreError
from ...core.extras import require
from ...core.score import Score, outcome_of
from ...core.telemetry import Telemetry
from ...core.turn import Turn
from ...core.wellformed import bounded_name, well_formed
from ...evaluation.first_fault import Fault, failed_metric, first_fault
from ...evaluation.names import public_id, public_name
from ...evaluation.redaction import Redactor
from ...evaluation.scored_turn import Root, ScoredTurn
from ...evaluation.turn_facts import facts_of
from ..accounting import answering_call
from ..base import Outlet, RecordAccount, Setup, loggable
from .postgres import NotStorable, is_address
from .sqlite import SCHEMA
from .statements import REQUIRED, SCORE_COLUMNS, TURN_COLUMNS
from .writer import Retention, Rows, ScoreStore

if TYPE_CHECKING:
    from ...statistics.changes import Change

_log = logging.getLogger("otel_agenteval")

_MAX_OUTCOMES = 50_000
_HOUSEKEEPING = 60.0
_CHECKS_OF_SIZE = 8
"""Number of times that old rows are deleted per ``max_bytes`` written bytes, in addition to the regular deletions."""
_BYTES_OF_TURN, _BYTES_OF_SCORE = 3_000, 500

_LONGEST_PAUSE = 10.0
"""Maximum pause after a failed write, in seconds. Up to this limit, the pause is twice the duration of the failed write."""
_CHECKED = 60.0
"""If the last write was at least this many seconds ago, :meth:`StoreOutlet.check` tests the store."""
_TRIAL = Rows(
    turns=[{**dict.fromkeys(TURN_COLUMNS), "turn_id": "trial", "revision": 1, "is_conversation": 0, "stored_at": 0.0}],
    scores=[
        {
            **dict.fromkeys(SCORE_COLUMNS), "result_id": "trial", "turn_id": "trial", "revision": 1, "metric": "trial", "kind": "code", "status": "ok",
            "scored_at": 0.0,
        }
    ],
    outcomes=[("trial", "trial", "trial")],
)  # fmt: skip


@dataclass(slots=True)
class _Unit:
    turns: Sequence[dict[str, Any]] = ()
    absorbed: Sequence[tuple[str, str]] = ()
    scores: Sequence[tuple[Any, ...]] = ()
    """Rows as tuples in the order of ``SCORE_COLUMNS``. Dictionaries would need three times as much memory."""
    questions: Sequence[dict[str, Any]] = ()
    changes: Sequence[dict[str, Any]] = ()
    size: int = 0
    unmatched: Sequence[str] = ()


def _rows_of(units: Iterable[_Unit], outcomes: Sequence[tuple[str, str, str]] = ()) -> Rows:
    units = list(units)
    return Rows(
        [turn for unit in units for turn in unit.turns],
        [dict(zip(SCORE_COLUMNS, score, strict=True)) for unit in units for score in unit.scores],
        outcomes,
        [pair for unit in units for pair in unit.absorbed],
        [question for unit in units for question in unit.questions],
        [change for unit in units for change in unit.changes],
        {turn_id for unit in units for turn_id in unit.unmatched},
    )


class StoreOutlet(Outlet):
    name = "store"
    may_hang = True
    records: RecordAccount

    def __init__(
        self,
        wanted: StoreOptions,
        telemetry: Telemetry,
        instance_id: Callable[[], str],
        redact: Collection[str] = (),
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        if is_address(wanted.path):
            require("psycopg", feature="outlets.store.path: a score store in PostgreSQL", extra="postgres")
        self.keeps_content = wanted.content
        self.keeps_spans = bool(wanted.attributes)
        self._attributes = wanted.attributes
        self._causes = wanted.causes
        self._store = ScoreStore(wanted.path, Retention(wanted.max_age, wanted.max_bytes), clock)
        self._telemetry = telemetry
        self._instance_id = instance_id
        self._redact = redact
        self._clock = clock
        self.records = RecordAccount(self.name, telemetry)
        self._max_waiting = wanted.queue_bytes
        self._max_unchecked = wanted.max_bytes // _CHECKS_OF_SIZE
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        """Lock that guards writes. Needed because a flush can run on another thread."""
        self._waiting: deque[_Unit] = deque()
        self._bytes = 0
        self._outcomes: deque[tuple[str, str, str]] = deque(maxlen=_MAX_OUTCOMES)
        self._housekeeping: float | None = None
        self._unchecked = 0
        """Bytes written since rows were last deleted."""
        self._written: float | None = None
        self._fault: BaseException | None = None
        self._is_ending = False
        self._failed_after = 0.0
        self._next_try = 0.0
        """Monotonic time until which new turns don't trigger writes. If the server is unavailable, an attempt can take seconds."""
        self._warned_of: set[str] = set()

    def record_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        self._outcomes.append((turn_id, metric, outcome))

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Write a batch and all waiting rows. If the write fails, the batch's rows wait, too."""
        units, fault = self.render(batch, self._unit)
        with self._lock:
            self._add(units)
            self._unchecked += sum(unit.size for unit in units)
            if self._fault is not None and self._clock.monotonic() < self._next_try:
                raise self._fault.with_traceback(None)
            self._write()
            self._delete_old()
        if fault is not None:
            raise fault

    def _delete_old(self) -> None:
        now = self._clock.monotonic()
        if self._housekeeping is None or now >= self._housekeeping or self._unchecked > self._max_unchecked:
            done, self._unchecked = self._store.retain(), 0
            self._housekeeping = now + (_HOUSEKEEPING if done else 1.0)

    def announce(self, change: Change, root: Root) -> None:
        found = change.found
        low, high = found.difference
        row = {
            "at": change.at, "metric": change.metric, "agent": change.agent, "service": _name(root.resource.get(semconv.SERVICE_NAME)),
            "tenant": root.tenant, "verdict": change.verdict, "detector": found.detector, "mean_before": found.before, "mean_after": found.after,
            "ci_low": low, "ci_high": high, "since": found.since, "n_eff": found.n, "version_before": found.version_before,
            "version": found.version, "turns": jsonio.dumps([one.turn_id for one in found.exemplars]), "instance_id": self._instance_id(),
        }  # fmt: skip
        with self._lock:
            self._add([_Unit(changes=[row], size=_BYTES_OF_TURN)])
            self._write()

    def flush(self, timeout: float) -> bool:
        """Write waiting rows. With SQLite, wait at most two seconds for another process's lock. At exit, if the last attempt failed
        after more than ``timeout`` seconds, give up immediately.
        """
        try:
            with self._lock:
                if self._is_ending and self._failed_after > timeout:
                    return False
                self._write()
        except (sqlite3.Error, OSError, StoreError):
            return False
        return True

    def begin_exit(self) -> None:
        self._is_ending = True

    def close(self) -> None:
        if not self.flush(0) and self._waiting:
            self.lose_rest(self._forget([*self._waiting]), "score")
            self._reset()
        self._store.close()

    def _add(self, units: Sequence[_Unit]) -> None:
        self._waiting.extend(units)
        self._bytes += sum(unit.size for unit in units)
        self.records.add(sum(len(unit.scores) for unit in units))
        while self._bytes > self._max_waiting and len(self._waiting) > 1 and not self._keeps_all:
            self.records.finish("queue_full", self._forget([self._waiting[0]]))

    def _write(self) -> None:
        outcomes = [self._outcomes.popleft() for _ in range(len(self._outcomes))]
        units = list(self._waiting)
        if not units and not outcomes:
            return
        began = self._clock.monotonic()
        try:
            try:
                self._store.write(_rows_of(units, outcomes))
            except NotStorable:
                self._write_halves(units)
                for outcome in outcomes:
                    try:
                        self._store.write(Rows(outcomes=[outcome]))
                    except NotStorable:
                        self._count_left_out("an outcome")
            else:
                self.records.finish("sent", self._forget(units))
        except BaseException as error:
            self._outcomes.extendleft(reversed(outcomes))
            self._trouble = loggable(error)
            now = self._clock.monotonic()
            self._fault, self._failed_after, self._next_try = error, now - began, now + min(_LONGEST_PAUSE, 2 * (now - began))
            raise
        self._trouble, self._fault, self._failed_after, self._written = "", None, 0.0, self._clock.monotonic()

    def check(self) -> None:
        """Write waiting rows, and delete old rows. If the last write isn't recent, test the store."""
        with self._lock:
            self._write()
            if self._trouble or self._written is None or self._clock.monotonic() - self._written >= _CHECKED:
                try:
                    self._store.can_write(_TRIAL)
                except Exception as error:
                    self._trouble = loggable(error)
                    raise
                self._trouble, self._written = "", self._clock.monotonic()
            self._delete_old()

    def _forget(self, units: Sequence[_Unit]) -> int:
        """Remove ``units`` from the start of the queue. Return the number of removed scores."""
        for unit in units:
            self._waiting.popleft()
            self._bytes -= unit.size
        return sum(len(unit.scores) for unit in units)

    def _write_halves(self, units: Sequence[_Unit]) -> None:
        """Write ``units`` in successively smaller parts, until each unit that the database can't store is isolated."""
        if len(units) == 1:
            self._write_storable_part(units[0])
            return
        half = len(units) // 2
        for part in (units[:half], units[half:]):
            try:
                self._store.write(_rows_of(part))
            except NotStorable:
                self._write_halves(part)
            else:
                self.records.finish("sent", self._forget(part))

    def _write_storable_part(self, unit: _Unit) -> None:
        """Write a unit without rows and values that the database can't store. If the turn's row can't be stored, write nothing."""
        given = _rows_of([unit])
        fields = ("turns", "scores", "questions", "changes")
        kept = given._replace(**{field: self._storable(field, getattr(given, field)) for field in fields})
        try:
            if len(kept.turns) < len(given.turns):
                raise NotStorable
            self._store.write(kept)
        except NotStorable:
            kept = Rows()
        self.records.finish("not_storable", self._forget([unit]) - len(kept.scores))
        self.records.finish("sent", len(kept.scores))

    def _storable(self, field: str, rows: Iterable[Mapping[str, Any]]) -> list[Any]:
        """Return ``rows``, with None for optional values that the database can't store. Omit rows that still can't be stored."""

        def can_be_stored(row: Any) -> bool:
            return self._store.can_write(Rows()._replace(**{field: [row]}))

        found: list[Mapping[str, Any]] = []
        for row in rows:
            if can_be_stored(row):
                found.append(row)
                continue
            kept = {name: value if name in REQUIRED else None for name, value in row.items()}
            if not can_be_stored(kept):
                self._count_left_out("a row")
                continue
            for name, value in row.items():
                if value is not None and name not in REQUIRED:
                    tried = {**kept, name: well_formed(value) if isinstance(value, str) else value}
                    if can_be_stored(tried):
                        kept = tried
                    else:
                        self._count_left_out(f"the {name} of a row")
            found.append(kept)
        return found

    def _count_left_out(self, what: str) -> None:
        self._telemetry.add(semconv.EMIT_ERRORS, outlet=self.name, reason="not_storable")
        if what not in self._warned_of:
            self._warned_of.add(what)
            _log.warning("outlet store: the database can't store %s, so it is omitted (further cases are only counted)", what)

    def _unit(self, scored: ScoredTurn) -> _Unit:
        turn, questions = self._turn_row(scored), self._question_rows(scored)
        scores = [tuple(self._score_row(scored, score).values()) for score in scored.scores if score.status != "skipped"]
        size = _BYTES_OF_TURN + _BYTES_OF_SCORE * len(scores)
        size += sum(len(text) for row in (turn, *questions) for text in row.values() if text.__class__ is str)
        size += sum(len(text) for score in scores for text in score if text.__class__ is str)
        absorbed = [(scored.turn.turn_id, other) for other in scored.absorbs]
        unmatched = [scored.turn.turn_id] if scored.is_feedback and scored.turn.close_reason is None else ()
        return _Unit([turn], absorbed, scores, questions, size=size, unmatched=unmatched)

    def _turn_row(self, scored: ScoredTurn) -> dict[str, Any]:
        turn, root = scored.turn, scored.root
        call, usage = answering_call(turn), turn.usage
        skipped = {one.metric: outcome_of(one).removeprefix("skipped: ") for one in scored.scores if one.status == "skipped"}
        tools = dict.fromkeys(call.name for call in turn.tool_calls or () if call.name)
        facts, fault = (facts_of(turn) if scored.of_turn_itself else {}, self._fault_of(scored)) if self._causes else ({}, None)
        failed = None
        if self._causes and any(score.verdict is False for score in scored.scores):
            # number of failed turns that this turn represents
            failed = 1.0 if scored.judged is None else 1 / max(scored.judged.probability, 1e-6)
        return {
            "turn_id": turn.turn_id, "tenant": root.tenant, "labels": _json(dict(root.labels)), "trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}",
            "revision": turn.revision, "supersedes": scored.supersedes, "superseded_by": None,
            "conversation_id": turn.conversation_id, "service": turn.service, "service_version": _name(root.resource.get(semconv.SERVICE_VERSION)), "agent": turn.agent,
            "model": call.model if call is not None else None, "start": turn.start.timestamp() if turn.start is not None else None,
            "duration_s": turn.duration_s, "cost_usd": turn.cost_usd, "cost_estimated": None if turn.cost_usd is None else turn.cost_estimated,
            "input_tokens": usage.input_tokens if usage is not None else None,
            "output_tokens": usage.output_tokens if usage is not None else None,
            "close_reason": turn.close_reason, "complete": turn.complete, "is_conversation": scored.conversation,
            "skipped": _json(skipped), "content": self._content(scored),
            # Later scores come without the turn's spans.
            "attributes": self._attributes_of(scored) if self._attributes and scored.of_turn_itself else None,
            "tools": _json([*tools]), "error": None if turn.error is None else turn.error.type or "error", "case_key": self._case_of(turn),
            "facts": _json(facts),
            "fault": None if fault is None else jsonio.dumps(fault._asdict()), "mode": None if fault is None else fault.mode,
            "failed": failed, "user_id": turn.user_id,
            "instance_id": self._instance_id(), "stored_at": self._clock.time_ns() / 1e9,
        }  # fmt: skip

    def _fault_of(self, scored: ScoredTurn) -> Fault | None:
        """Return the turn's first fault (step that went wrong). If no rule finds a fault, return a fault with the failed metric's
        name, or None if no metric failed. Passed turns are also searched, because a judge's score can fail later.
        """
        fault = None
        try:
            fault = first_fault(scored.turn, scored.scores, self._redact) if scored.of_turn_itself else None
        except Exception as error:  # only the fault that couldn't be found is dropped
            self._telemetry.add(semconv.EMIT_ERRORS, outlet=self.name, reason=type(error).__name__)
        return fault or failed_metric(scored.scores)

    def _case_of(self, turn: Turn) -> str | None:
        case = turn.references.get("case_id")
        if case is not None:
            return public_name(bounded_name(str(case)), self._redact)
        if not self.keeps_content or not turn.input:  # a hash would reveal a guessable input
            return None
        return f"#{hashlib.blake2b(turn.input.encode(errors='replace'), digest_size=8).hexdigest()}"

    def _attributes_of(self, scored: ScoredTurn) -> str | None:
        found: dict[str, Any] = {}
        for name in self._attributes:
            places = (*(span.attributes for span in scored.spans), scored.root.resource)
            value = next((place[name] for place in places if isinstance(place.get(name), (str, int, float, bool))), None)
            if value is not None:
                found[name] = public_id(value, self._redact) if isinstance(value, str) else jsonio.dumps(value)
        return _json(found)

    def _content(self, scored: ScoredTurn) -> str | None:
        if not self.keeps_content or not scored.of_turn_itself:  # later scores come with a turn without content
            return None
        content = scored.turn.to_dict()
        if not self._redact:
            return jsonio.dumps(content)
        try:
            return jsonio.dumps((scored.redactor or Redactor(self._redact)).turn(content))
        except Exception as error:  # only the content that couldn't be redacted is dropped
            self._telemetry.add(semconv.EMIT_ERRORS, outlet=self.name, reason=type(error).__name__)
            return None

    def _question_rows(self, scored: ScoredTurn) -> list[dict[str, Any]]:
        """Return one row per judge call of a judged score. For other scores, or if content isn't stored, return an empty list."""
        if not self.keeps_content or scored.judged is None or len(scored.scores) != 1:
            return []
        redactor = (scored.redactor or Redactor(self._redact)) if self._redact else None

        def clean(text: str | None) -> str | None:
            return text if redactor is None or text is None else redactor.text(text)

        (score,) = scored.scores
        try:
            return [
                {
                    "result_id": score.result_id, "place": place, "turn_id": scored.turn.turn_id, "stage": one.stage, "model": one.model,
                    "question": clean(one.question), "reply": clean(one.reply),
                }
                for place, one in enumerate(scored.judged.exchanges)
            ]  # fmt: skip
        except Exception as error:  # texts that couldn't be redacted are dropped
            self._telemetry.add(semconv.EMIT_ERRORS, outlet=self.name, reason=type(error).__name__)
            return []

    def _score_row(self, scored: ScoredTurn, score: Score) -> dict[str, Any]:
        judged = scored.judged
        return {
            "result_id": score.result_id, "turn_id": scored.turn.turn_id, "revision": scored.turn.revision, "metric": score.metric,
            "kind": score.kind, "version": score.version, "type": score.type, "unit": score.unit, "direction": score.direction,
            "policy": score.policy, "status": score.status, "value": score.value, "passed": score.verdict, "label": score.label,
            "threshold": score.threshold, "error_type": score.error_type, "explanation": score.explanation,
            "detail": _json(score.detail), "also": _json({name: one.as_sent() for name, one in score.also.items()}),
            "sample_probability": judged.probability if judged is not None else None,
            "sample_upstream_probability": judged.upstream if judged is not None else None,
            "sample_decided_by": judged.decided_by if judged is not None else None,
            "judge_model": judged.model if judged is not None else None,
            "judge_cost_usd": judged.cost_usd if judged is not None else None, "scored_at": self._clock.time_ns() / 1e9,
        }  # fmt: skip


def _name(value: Any) -> str | None:
    return bounded_name(well_formed(value)) if isinstance(value, str) and value else None


def _json(value: dict[str, Any] | list[Any]) -> str | None:
    return jsonio.dumps(value) if value else None


def outlet_from(wanted: StoreOptions, setup: Setup) -> Outlet:
    if not is_address(wanted.path):
        setup.warn_of_fault(("outlets", "store", "path"), wanted.path, SCHEMA.fault_of, "nothing is stored")
    return StoreOutlet(wanted, setup.telemetry, setup.instance_id, setup.config.privacy.redact, setup.clock)
