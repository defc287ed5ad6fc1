"""Scores as events on the span that they are about.

The only module that knows the inside of the SDK. The specification says that a span is still mutable in ``OnEnding``; where
the installed SDK agrees, its public ``add_event`` is used. The Python SDK freezes the span before it calls ``_on_ending``, but
the ended span that exporters get shares the event list. Inside ``_on_ending`` that list is replaced by one that knows where
its scores come from (:class:`DeferredEvents`): they are made by the worker, or by the first exporter that reads the list if it
comes earlier, and so reach every exporter in any order, without costing the agent's thread. Where neither works the event is
left out and counted. Which scores every exporter gets is noted in the scored turn: by default these have no log event.

The application's own events are never evicted: only the room that the span's limit leaves is used, failed and gate scores first.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Literal

from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util import BoundedList

from ..core import semconv
from ..core.score import Score
from ..evaluation.scored_turn import ScoredTurn
from .selection import is_notable

Mode = Literal["all", "notable", "off"]

ENDING, LATE_ORDER, NO_ROOM, ROOT_ALREADY_ENDED, UNSUPPORTED = (
    "ending",
    "late_order",
    "no_room",
    "root_already_ended",
    "unsupported",
)


class ScoreEvent(Event):
    """A score as a span event. Its attributes are made when they are first read: by an exporter, on a thread that is not the agent's."""

    _limit: int | None = None
    _made: dict[str, Any] | None = None

    def __init__(self, score: Score, time_ns: int, limit: int | None = None) -> None:
        # The base class's fields stay unset: everything that it reads from them is answered below.
        self._score = score
        self._time_ns = time_ns
        if limit is not None:
            self._limit = limit

    @property
    def name(self) -> str:
        """The same for all scores."""
        return semconv.EVENT

    @property
    def timestamp(self) -> int:
        """When the turn's root ended."""
        return self._time_ns

    @property
    def attributes(self) -> dict[str, Any]:
        """See :func:`attributes`."""
        if self._made is None:
            self._made = attributes(self._score, self._limit)
        return self._made

    @property
    def dropped_attributes(self) -> int:
        """None ever are."""
        return 0


class DeferredEvents(BoundedList):  # type: ignore[type-arg]  # generic in its stub only
    """A span's own events and its scores. Reading it makes the scores, if they are not made yet."""

    def __init__(self, own: Any, make: Callable[[], Sequence[Event] | None]) -> None:
        # The same queue and lock as the list that is replaced: what others still append to that one is here too.
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
    """Puts score events on a turn's root. What runs on the agent's thread does no I/O and takes no lock but the span's own."""

    def __init__(self, mode: Mode = "all") -> None:
        self.mode = mode
        self.outcomes: Counter[str] = Counter()
        """How many score events had which outcome."""

    def defer(self, span: Any, make: Callable[[], Sequence[Event] | None]) -> bool:
        """Inside the SDK's ``_on_ending(span)``: the first read of the span's events makes the scores too. False where that is impossible."""
        if self.mode == "off":
            return True
        events = getattr(span, "_events", None)
        if events.__class__ is not BoundedList or span.is_recording():
            return False
        span._events = DeferredEvents(events, make)
        return True

    def events_of(self, span: Any, scored: ScoredTurn, time_ns: int) -> list[ScoreEvent]:
        """The events that :meth:`defer` promised, counted and noted; as many as the span has room for."""
        if self.mode == "off":
            return []
        scores = scored.scores
        chosen = self._chosen(scores)
        if not chosen:
            return []
        held = span._events._dq
        if held.maxlen is not None:
            chosen = self._fitting(scores, chosen, held.maxlen - len(held))
        limit = getattr(getattr(span, "_limits", None), "max_attribute_length", None)
        self._note(scored, chosen)
        return [ScoreEvent(scores[place], time_ns, limit) for place in chosen]

    def write(self, span: Any, root: Any, scored: ScoredTurn, still_ending: bool) -> None:
        """Write the scores of a turn on its root, if the span is that; ``still_ending`` as the two ways below differ."""
        if root.trace_state is None or root.span_id != span.context.span_id:
            self.root_already_ended(scored)
        elif still_ending:
            self.while_ending(span, scored, root.end_ns)
        else:
            self.after_end(span, scored.scores, root.end_ns)

    def while_ending(self, span: Any, scored: ScoredTurn, time_ns: int) -> None:
        """Inside the SDK's ``_on_ending(span)``, where :meth:`defer` is impossible."""
        chosen = self._chosen(scored.scores)
        if not chosen:
            return
        if span.is_recording():  # an SDK that does as the specification says
            self._add_public(span, scored, chosen, time_ns)
            return
        self.outcomes[UNSUPPORTED] += len(chosen)

    def after_end(self, span: ReadableSpan, scores: Sequence[Score], time_ns: int) -> None:
        """Inside ``on_end(span)``, where ``_on_ending`` was never called: only exporters that come later see a longer copy."""
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
        """The turn closed after its root: the log event is the only one."""
        self.outcomes[ROOT_ALREADY_ENDED] += len(self._chosen(scored.scores))

    def _add_public(self, span: Any, scored: ScoredTurn, chosen: list[int], time_ns: int) -> None:
        limits = getattr(span, "_limits", None)
        most = getattr(limits, "max_events", None)
        room = len(chosen) if most is None else most - len(span.events)
        chosen = self._fitting(scored.scores, chosen, room)
        for place in chosen:
            span.add_event(semconv.EVENT, attributes(scored.scores[place], None), time_ns)
        self._note(scored, chosen)

    def _note(self, scored: ScoredTurn, chosen: Collection[int]) -> None:
        """Note the scores that every exporter of the root gets; nobody gets the root of a trace that is not kept."""
        self.outcomes[ENDING] += len(chosen)
        scored.on_span = frozenset(chosen) if scored.root.sampled else ()

    def _chosen(self, scores: Sequence[Score]) -> list[int]:
        """The places of the scores that the span is to carry."""
        if self.mode == "off":
            return []
        if self.mode == "all":
            return [place for place, score in enumerate(scores) if score.status != "skipped"]
        return [place for place, score in enumerate(scores) if is_notable(score)]

    def _fitting(self, scores: Sequence[Score], chosen: list[int], room: int) -> list[int]:
        """As many of the chosen as there is room for, the most important first."""
        if len(chosen) <= room:
            return chosen
        room = max(room, 0)
        self.outcomes[NO_ROOM] += len(chosen) - room
        return sorted(chosen, key=lambda place: (scores[place].verdict is not False, scores[place].policy != "gate"))[:room]


def attributes(score: Score, limit: int | None) -> dict[str, Any]:
    """The event's attributes: lean, because every one costs encoding and storage."""
    if score.status == "error":
        return {
            semconv.EVALUATION_NAME: score.metric,
            semconv.ERROR_TYPE: score.error_type or "error",
            semconv.RESULT_ID: score.result_id,
        }
    out: dict[str, Any] = {semconv.EVALUATION_NAME: score.metric}
    if score.value is not None:
        out[semconv.SCORE_VALUE] = score.value
    if score.label is not None:
        out[semconv.SCORE_LABEL] = score.label
    verdict = score.verdict
    if verdict is not None:
        out[semconv.PASSED] = verdict
        if not verdict and score.explanation:
            out[semconv.EXPLANATION] = score.explanation[:limit]
    out[semconv.RESULT_ID] = score.result_id
    return out
