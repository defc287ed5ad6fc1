"""Count how completely each instrumentation scope's turns could be read, and warn about missing turns or texts.

The counts show which frameworks lack a dialect (parser).
"""

from __future__ import annotations

import logging
import math
import threading
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..core.turn import Turn
from ..dialects.capture import advice_on
from ..dialects.reader import CALLER, CONTENT, TURN, UnreadTrace
from ..spans.record import SpanRecord

if TYPE_CHECKING:
    from .reading.turn import TurnReader

_MOST_SCOPES = 100
_OTHERS = "_other"
_MOST_ANSWERS = 256
_SHORTEST_ANSWER = 8
"""Minimum length of an answer that is compared with answers in other traces."""
_MOST_NAMES = 4
_log = logging.getLogger("otel_agenteval")


@dataclass(slots=True)
class _Waiting:
    warning: str
    traces: int = 0
    answers: set[int] = field(default_factory=set)


class Readings:
    """Thread-safe counts of turns, and of traces without a turn or without texts, by instrumentation scope.

    Each scope causes at most one warning per kind of missing data. Missing texts cause a warning immediately. A missing turn, or a
    tool without a turn, causes a warning after ``enough`` traces or in :meth:`finish`. If ``enough`` is infinite, ``finish`` logs
    all warnings. A turn with texts suppresses warnings (except about tools) for its scope, and for scopes that repeat its answer.
    """

    def __init__(self, enough: float = 3) -> None:
        self._enough = enough
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._scopes: set[str] = set()
        self._read: set[str] = set()
        """Scopes without warnings, because their turns have texts, or their traces repeat answers of turns that have texts."""
        self._answers: dict[int, None] = {}
        self._waiting: dict[tuple[str, str], _Waiting] = {}
        """Maps (scope, kind of missing data) to a warning that isn't logged yet."""
        self.turns: Counter[tuple[str, str]] = Counter()
        self.unread: Counter[tuple[str, str]] = Counter()
        self.limited: Counter[str] = Counter()

    def note(self, turn: Turn, reader: TurnReader) -> None:
        """Count a turn's first revision. If the turn has texts, suppress warnings about its instrumentation scopes."""
        root, inferred = reader.root.record.scope, reader.inferred_scope()
        call = scope_of_call(reader)
        # Don't parse texts only to count the turn.
        unused = "output" not in vars(turn) and not self._waiting and self._read.issuperset((root, call))
        output = None if unused else turn.output
        has_text = unused or output is not None or turn.input is not None or bool(turn.attachments)
        if turn.revision == 1:
            with self._lock:
                how = "none" if not has_text else "exact" if inferred is None else "inferred"
                self.turns[self._label(inferred or root), how] += 1
                if reader.calls.limited:
                    self.limited.update(reader.calls.limited)
        if has_text:
            self._note_readable((root, call))
            self._note_answer(output)
        elif turn.revision == 1:
            records = [step.record for step in reader.calls.steps]
            if _was_answered(turn, records):
                self._add(call, CONTENT, records)

    def note_unread(self, trace: UnreadTrace | None) -> None:
        """Count a trace without a turn, unless its warnings are suppressed. Ignore None (a trace unrelated to agents)."""
        if trace is not None:
            answers = {_key(answer) for answer in trace.answers if len(answer) >= _SHORTEST_ANSWER}
            if answers.isdisjoint(self._answers):
                self._add(trace.scope, trace.missing, answers=answers)
            else:
                self._note_readable((trace.scope,))

    def finish(self, *, log: bool = True) -> None:
        for key in [*self._waiting]:
            self._report(key, log)

    def add(self, other: Readings) -> None:
        self.turns += other.turns
        self.unread += other.unread
        self._read |= other._read
        self._answers.update(other._answers)
        for key, theirs in other._waiting.items():
            waiting = self._waiting.setdefault(key, _Waiting(theirs.warning))
            waiting.traces += theirs.traces
            waiting.answers |= theirs.answers
        self._read.update(key[0] for key, waiting in self._waiting.items() if waiting.answers & self._answers.keys())
        for key in [key for key in self._waiting if key[0] in self._read and key[1] != CALLER]:
            del self._waiting[key]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def _note_answer(self, output: str | None) -> None:
        if output is None or len(output) < _SHORTEST_ANSWER:
            return
        answer = _key(output)
        with self._lock:
            self._answers[answer] = None
            if len(self._answers) > _MOST_ANSWERS:
                del self._answers[next(iter(self._answers))]
            copies = [key[0] for key, waiting in self._waiting.items() if answer in waiting.answers]
        self._note_readable(copies)

    def _note_readable(self, scopes: Iterable[str]) -> None:
        if self._read.issuperset(scopes):
            return
        with self._lock:
            if len(self._read) < _MOST_SCOPES:
                self._read.update(scopes)
            for key in [key for key in self._waiting if key[0] in scopes and key[1] != CALLER]:
                del self._waiting[key]

    def _add(self, scope: str, missing: str, records: Sequence[SpanRecord] = (), answers: Iterable[int] = ()) -> None:
        with self._lock:
            key = self._label(scope), missing
            if key[0] in self._read and missing != CALLER:
                return
            if self.unread[key]:
                self.unread[key] += 1
                return
            waiting = self._waiting.get(key)
            if waiting is None:
                waiting = self._waiting[key] = _Waiting(_warning(scope, missing, records))
            waiting.traces += 1
            waiting.answers.update(answers)
            ready = waiting.traces >= self._enough or (missing == CONTENT and math.isfinite(self._enough))
        if ready:
            self._report(key)

    def _report(self, key: tuple[str, str], log: bool = True) -> None:
        with self._lock:
            waiting = self._waiting.pop(key, None)
            if waiting is None:
                return
            self.unread[key] += waiting.traces
        if log:
            counted = "; further traces are counted in agenteval.unread_traces" if math.isfinite(self._enough) else ""
            _log.warning("%s%s", waiting.warning, counted)

    def _label(self, scope: str) -> str:
        if scope in self._scopes or len(self._scopes) < _MOST_SCOPES:
            self._scopes.add(scope)
            return scope
        return _OTHERS


def _key(answer: str) -> int:
    return zlib.crc32(answer.encode("utf-8", "replace"))


def scope_of_call(reader: TurnReader) -> str:
    return (reader.calls.llm[0] if reader.calls.llm else reader.root).record.scope


def _was_answered(turn: Turn, records: Sequence[SpanRecord]) -> bool:
    """Return True if missing texts are suspicious, because a successful turn has tool calls, model output, events, or logs."""
    if turn.error is not None:
        return False
    if turn.tool_calls or any(call.output_tokens or call.finish_reason or call.response_id for call in turn.llm_calls):
        return True
    return bool(_unread_in(records))


def _unread_in(records: Sequence[SpanRecord]) -> list[str]:
    names = [event.name for record in records for event in record.events if event.name != "exception"]
    return [*dict.fromkeys((*names, *(part.name or "unnamed" for record in records for part in record.logs)))]


def _warning(scope: str, missing: str, records: Sequence[SpanRecord]) -> str:
    where = f"the instrumentation scope {scope or '(none)'!r}"
    advice = advice_on(missing, [*dict.fromkeys((scope, *(record.scope for record in records)))])
    if missing == CALLER:
        return f"a tool's trace in {where} can't be assigned to a turn; {advice}"
    if missing == TURN:
        return f"a trace in {where} seems to have an agent's or model's spans, but has no turn; {advice}"
    names = ", ".join(_unread_in(records)[:_MOST_NAMES])
    unread = f", and its span events and log records ({names}) have no readable text" if names else ""
    return f"a turn in {where} has no input and no output{unread}; {advice}"
