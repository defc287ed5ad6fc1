"""Outlet that adds a turn's scores as events to the turn's root span.

Only this module changes SDK internals. The specification allows changes to a span in ``OnEnding``. If an SDK allows it, scores are
added with the public ``add_event``. The Python SDK freezes the span before ``_on_ending``, but exporters read the span's event
list. Therefore, ``_on_ending`` replaces the event list with :class:`DeferredEvents`. Later, the worker adds the scores. If an
exporter reads the list earlier, the list itself adds the scores. All exporters get the scores, without extra work on the agent's
thread.

If an SDK doesn't call ``_on_ending``, only exporters that run later get the scores. If an SDK's span can't be changed, the events
are omitted and counted. By default, a score that all exporters get as a span event isn't also sent as a log event. Scores never
evict the application's events. If the span's event limit doesn't allow all scores, failed scores and gates come first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any, Literal

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList

from ..core import semconv
from ..core.score import Score
from ..evaluation.scored_turn import ScoredTurn
from .log_events import add_result, is_notable

Mode = Literal["all", "notable", "off"]

ENDING, LATE_ORDER, NO_ROOM = "ending", "late_order", "no_room"
ROOT_ALREADY_ENDED, UNSUPPORTED = "root_already_ended", "unsupported"


class ScoreEvent(Event):
    """Span event for a score. The attributes are created when an exporter first reads them."""

    _name = semconv.EVENT
    _attributes = None
    _made: dict[str, Any] | None = None

    def __init__(self, score: Score, time_ns: int, limit: int | None = None) -> None:
        # instead of the base class's constructor, which is slower
        self._score = score
        self._timestamp = time_ns
        self._limit = limit

    @property
    def attributes(self) -> dict[str, Any]:
        if self._made is None:
            self._made = attributes(self._score, self._limit)
        return self._made


class PromisedEvents:
    """Events for a turn's scores. The events are created when an exporter reads them.

    Hundreds of turns can wait for export, and the garbage collector visits each object. Therefore, a single tuple contains the
    arguments for all scores.
    """

    __slots__ = ("_about", "_limit", "_parts", "_time_ns")

    def __init__(self, scores: Iterable[Score], time_ns: int, limit: int | None) -> None:
        parts: list[Any] = []
        self._about = None
        for score in scores:
            explanation = score.explanation if score.verdict is False else None
            detail = score.detail if score.severity is not None else None
            parts += (
                score.facts, score.value, score.passed, score.status, score.label, explanation, detail, None, score.error_type
            )  # fmt: skip
            self._about = score.about
        self._parts = tuple(parts)
        self._time_ns = time_ns
        self._limit = limit

    def __call__(self) -> list[ScoreEvent]:
        found: list[ScoreEvent] = []
        for place in range(0, len(self._parts), _PARTS):
            score = Score.of(*self._parts[place : place + _PARTS])
            score.about = self._about
            found.append(ScoreEvent(score, self._time_ns, self._limit))
        return found


_PARTS = 9


class DeferredEvents(BoundedList):  # type: ignore[type-arg]  # generic in its stub only
    """Event list of a span. The list adds the turn's scores when it is first read."""

    def __init__(self, own: Any, make: Callable[[], Sequence[Event] | None]) -> None:
        # Shares queue and lock with the replaced list, so events that others still append there are included.
        self.dropped = own.dropped
        self._dq: deque[Any] = own._dq
        self._lock = own._lock
        self._make: Callable[[], Sequence[Event] | None] | None = make

    def _complete(self) -> None:
        make = self._make
        if make is not None:
            events = make()
            with self._lock:
                if self._make is not None and events is not None:
                    self._make = None
                    self._dq.extend(events)

    def promise(self, make: Callable[[], Sequence[Event]]) -> None:
        """Replace the function that creates the score events. If a reader has already started to read the list, do nothing."""
        if self._lock.acquire(blocking=False):
            try:
                if self._make is not None:
                    self._make = make
            finally:
                self._lock.release()

    def __len__(self) -> int:
        self._complete()
        return super().__len__()

    def __iter__(self) -> Iterator[Any]:
        self._complete()
        return super().__iter__()

    def __getitem__(self, index: Any) -> Any:
        self._complete()
        return super().__getitem__(index)

    def __deepcopy__(self, memo: Any) -> Any:
        return BoundedList.from_seq(self._dq.maxlen, list(self))


class SpanEventOutlet:
    """Writer of score events on a turn's root span. Never does I/O, because this code runs on the agent's thread."""

    def __init__(self, mode: Mode = "all") -> None:
        self.mode = mode
        self.outcomes: Counter[str] = Counter()

    def defer(self, span: Any, make: Callable[[], Sequence[Event] | None]) -> bool:
        """Delay the creation of score events until the span's events are first read. If span events are off, do nothing. If the SDK
        doesn't support deferred events, return False.
        """
        if self.mode == "off":
            return True
        events = getattr(span, "_events", None)
        if events.__class__ is not BoundedList or span.is_recording():
            return False
        span._events = DeferredEvents(events, make)
        return True

    def events_of(self, span: Any, scored: ScoredTurn, time_ns: int) -> PromisedEvents | None:
        """Return events for the selected scores, up to the span's event limit. If no scores are selected, return None."""
        scores = scored.scores
        chosen = self._chosen(scores)
        if not chosen:
            return None
        held = span._events._dq
        if held.maxlen is not None:
            chosen = self._fitting(scores, chosen, held.maxlen - len(held))
        limit = getattr(getattr(span, "_limits", None), "max_attribute_length", None)
        self._record_ending(scored, chosen)
        return PromisedEvents([scores[place] for place in chosen], time_ns, limit)

    def write(self, span: Any, root: Any, scored: ScoredTurn, still_ending: bool) -> None:
        """Write a turn's scores to its root span. ``still_ending`` is True in ``_on_ending`` and False in ``on_end``."""
        if root.trace_state is None or root.span_id != span.context.span_id:
            self.root_already_ended(scored)
        elif still_ending:
            self._while_ending(span, scored, root.end_ns)
        else:
            self._after_end(span, scored.scores, root.end_ns)

    def _while_ending(self, span: Any, scored: ScoredTurn, time_ns: int) -> None:
        """Write scores during the SDK's ``_on_ending(span)``, for SDKs without support for :meth:`defer`."""
        chosen = self._chosen(scored.scores)
        if not chosen:
            return
        if not span.is_recording():  # the SDK doesn't comply with the specification
            self.outcomes[UNSUPPORTED] += len(chosen)
            return
        most = getattr(getattr(span, "_limits", None), "max_events", None)
        if most is not None:
            chosen = self._fitting(scored.scores, chosen, most - len(span.events))
        for place in chosen:
            span.add_event(semconv.EVENT, attributes(scored.scores[place], None), time_ns)
        self._record_ending(scored, chosen)

    def _after_end(self, span: ReadableSpan, scores: Sequence[Score], time_ns: int) -> None:
        """Write scores in ``on_end``, for SDKs that don't call ``_on_ending``. Only exporters that run later get the scores."""
        chosen = self._chosen(scores)
        try:
            events = span._events
            if events.__class__ is tuple or events.__class__ is list:
                span._events = (*events, *(ScoreEvent(scores[place], time_ns) for place in chosen))
                self.outcomes[LATE_ORDER] += len(chosen)
                return
            held = events._dq  # type: ignore[attr-defined]
            room = len(chosen) if held.maxlen is None else held.maxlen - len(held)
            chosen = self._fitting(scores, chosen, room)
            added = [ScoreEvent(scores[place], time_ns) for place in chosen]
            span._events = type(events).from_seq(held.maxlen, [*held, *added])  # type: ignore[attr-defined]
            self.outcomes[LATE_ORDER] += len(chosen)
        except AttributeError:
            self.outcomes[UNSUPPORTED] += len(chosen)

    def root_already_ended(self, scored: ScoredTurn) -> None:
        """Count the scores of a turn that closed after its root span ended. These scores don't become span events."""
        self.outcomes[ROOT_ALREADY_ENDED] += len(self._chosen(scored.scores))

    def _record_ending(self, scored: ScoredTurn, chosen: Collection[int]) -> None:
        """Count the ``chosen`` scores as span events. If the root span is sampled, record that all exporters get these scores."""
        self.outcomes[ENDING] += len(chosen)
        scored.on_span = frozenset(chosen) if scored.root.sampled else ()

    def _chosen(self, scores: Sequence[Score]) -> list[int]:
        if self.mode == "all":
            return [place for place, score in enumerate(scores) if score.status != "skipped"]
        return [place for place, score in enumerate(scores) if self.mode == "notable" and is_notable(score)]

    def _fitting(self, scores: Sequence[Score], chosen: list[int], room: int) -> list[int]:
        if len(chosen) <= room:
            return chosen
        room = max(room, 0)
        self.outcomes[NO_ROOM] += len(chosen) - room
        return sorted(chosen, key=lambda place: (scores[place].verdict is not False, scores[place].policy != "gate"))[:room]


def attributes(score: Score, limit: int | None) -> dict[str, Any]:
    """Return the attributes of a score's event. The list is short, because each attribute costs encoding time and storage."""
    found: dict[str, Any] = {semconv.EVALUATION_NAME: score.metric}
    add_result(found, score)
    if score.explanation and found.get(semconv.PASSED) is False:
        found[semconv.EXPLANATION] = score.explanation[:limit]
    found[semconv.RESULT_ID] = score.result_id
    return found
