"""All outlets as one: what every scored turn goes through on its way out, and what is asked of every outlet at once."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..core.semconv import METRIC_DURATION
from ..core.telemetry import Telemetry
from ..core.threads import is_meant_for_host
from ..evaluation.names import attributes_publicly, named_publicly
from ..evaluation.redaction import Exporter, Redactor, without_texts
from ..evaluation.scored_turn import Root, ScoredTurn
from .accounting import account
from .base import Outlet, RecordAccount, told_of

if TYPE_CHECKING:
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")

_CATCH_UP_SECONDS = 5.0
"""How long :meth:`FanOut.catch_up` waits for outlets that are behind."""
_RETRY_SECONDS = 0.05
_MOST_RESOURCES = 64


class FanOut:
    """Redacts and counts scored turns, and emits them through every outlet. An outlet that fails is counted; the others still run.

    Args:
        outlets: where scores leave, in this order.
        telemetry: gets the counts and observations of turns and scores.
        redact: kinds of personal data and secrets that are taken out of names, and of what scores say, before any outlet sees them.
        exported: what log events say of a turn's content; None is nothing.
    """

    def __init__(
        self, outlets: Iterable[Outlet], telemetry: Telemetry, redact: Collection[str] = (), exported: Exporter | None = None
    ) -> None:
        self._outlets: list[Outlet] = []
        self._telemetry = telemetry
        self._kinds = frozenset(redact)
        self._exported = exported
        self.keeps_content = exported is not None
        self.keeps_spans = False
        """Whether anything that leaves is made from what was said in a turn."""
        self.errors: Counter[tuple[str, str]] = Counter()
        """How often an outlet failed, by its name and the reason."""
        self.look_for_changes: Callable[[Sequence[ScoredTurn]], Iterable[tuple[Change, Root]]] = lambda batch: ()
        """The changes of scores that a batch shows."""
        self._keeps_all = False
        self._resources: dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        """Attributes of resources, by identity, and as they may leave: many turns share them."""
        self._behind: dict[str, bool] = {}
        """Outlets that did not take what came last; whether they were waited for."""
        for outlet in outlets:
            self.add(outlet)

    def __iter__(self) -> Iterator[Outlet]:
        return iter(self._outlets)

    def add(self, outlet: Outlet, *, first: bool = False) -> None:
        """Emit through one more outlet, after the others or before them."""
        if self._keeps_all:
            outlet.keep_all()
        self.keeps_content = self.keeps_content or outlet.keeps_content
        self.keeps_spans = self.keeps_spans or outlet.keeps_spans
        self._outlets.insert(0 if first else len(self._outlets), outlet)

    def remove(self, outlet: Outlet) -> None:
        """Emit through an outlet no more. It is not closed."""
        self._outlets.remove(outlet)

    # --- scored turns on their way out

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Redact and count scored turns, and send them through every outlet."""
        batch = [scored for scored in batch if self._prepare(scored)]
        for outlet in self._outlets:
            try:
                outlet.emit(batch)
                self._behind.pop(outlet.name, None)
            except BaseException as error:  # an outlet's fault is a counter
                if is_meant_for_host(error):
                    raise
                self._behind.setdefault(outlet.name, False)
                self.count_error(outlet.name, type(error).__name__, error)
        try:
            changes = self.look_for_changes(batch)
        except Exception as error:  # the scores have left
            self.count_error("changes", type(error).__name__)
            return
        for change, root in changes:
            self.announce(change, root)

    def announce(self, change: Change, root: Root) -> None:
        """Tell every outlet of a change of scores."""
        _log.log(logging.WARNING if change.verdict == "worse" else logging.INFO, "%s", change.title)
        self._each(lambda outlet: outlet.announce(change, root))

    def _prepare(self, scored: ScoredTurn) -> bool:
        """Redact and count one turn; False if that is impossible, and it cannot leave."""
        try:
            self.name(scored)
            self.redact(scored)
            account(self._telemetry, scored)
            judged = scored.judged
            if not scored.said_later:
                self._telemetry.observe(METRIC_DURATION, scored.seconds, kind="code" if judged is None else judged.kind)
            if scored.of_turn_itself and self._exported is not None:
                scored.content = self._exported(scored.turn, scored.redactor)
        except Exception as error:  # the other turns of the batch leave
            self.count_error("pipeline", type(error).__name__)
            return False
        return True

    def name(self, scored: ScoredTurn) -> None:
        """Give a turn the names and ids that may leave, once all that reads the others is evaluated."""
        if not self._kinds or scored.named:
            return
        root = scored.root
        known = self._resources.get(id(root.resource))
        if known is None or known[0] is not root.resource:
            known = root.resource, attributes_publicly(root.resource, self._kinds)
            if len(self._resources) >= _MOST_RESOURCES:
                self._resources.clear()
            self._resources[id(root.resource)] = known
        if known[1] is not root.resource:
            scored.root = replace(root, resource=known[1])
        scored.turn, scored.named = named_publicly(scored.turn, self._kinds), True

    def redact(self, scored: ScoredTurn) -> None:
        """Take out of what scores say whatever may not leave. What was redacted already is not looked at again."""
        if not self._kinds:
            return
        if scored.redactor is None:
            scored.redactor = Redactor(self._kinds)
        if scored.redacted == len(scored.scores):
            return
        scores = list(scored.scores)
        for index in range(scored.redacted, len(scores)):
            try:
                scores[index] = scored.redactor.score(scores[index])
            except Exception as error:  # the score leaves, what could not be looked through does not
                self.count_error("redaction", type(error).__name__)
                scores[index] = without_texts(scores[index])
        scored.scores, scored.redacted = scores, len(scores)

    def note_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        """A judged metric gave no score, or none yet: tell every outlet why. Safe from any thread."""
        for outlet in self._outlets:
            outlet.note_outcome(turn_id, metric, outcome)

    def count_error(self, outlet: str, reason: str, error: BaseException | None = None) -> None:
        """Count a failure of an outlet, and log it the first time: of a file that fails also which, and why."""
        key = (outlet, reason)
        self.errors[key] += 1
        if self.errors[key] == 1:
            _log.warning("outlet %s failed: %s (counted from now on)", outlet, reason if error is None else told_of(error))

    # --- outlets that cannot deliver at the moment

    def start(self) -> None:
        """Begin at once what else begins with the first turn: a server's outlets send what an earlier process left behind."""
        self._each(lambda outlet: outlet.start())

    def check(self) -> None:
        """Have every outlet deliver what waits, or find out whether it could: a fault shows before the next turn comes. May take seconds."""
        self._each(lambda outlet: outlet.check())

    def keep_all(self) -> None:
        """From now on no outlet drops a score for lack of room: nothing is evaluated while one has none (see :meth:`can_emit`)."""
        self._keeps_all = True
        self._each(lambda outlet: outlet.keep_all())

    def can_emit(self) -> bool:
        """Whether every outlet has room for more; one that has none tries again to deliver what it holds."""
        if not self._keeps_all:
            return True
        full = [outlet for outlet in self._outlets if outlet.full]
        for outlet in full:
            self._flush_one(outlet, 0.0)
        return not any(outlet.full for outlet in full)

    def catch_up(self) -> None:
        """Wait a moment for outlets that could not take the last scores, once until they can again.

        A job that is acknowledged does not come back from its queue when this process dies, and its score would be lost with it.
        """
        until = time.monotonic() + _CATCH_UP_SECONDS
        for outlet in self._outlets:
            if self._behind.get(outlet.name) is False:
                self._behind[outlet.name] = True
                while not self._flush_one(outlet, max(0.0, until - time.monotonic())) and time.monotonic() < until:
                    time.sleep(_RETRY_SECONDS)

    def records(self) -> dict[str, RecordAccount]:
        """The account of the records of each outlet that has one."""
        return {outlet.name: outlet.records for outlet in self._outlets if outlet.records is not None}

    def flush(self, timeout: float) -> bool:
        """Flush every outlet; False unless all had delivered everything in time."""
        return self._flush(self._outlets, timeout)

    def _flush(self, outlets: Iterable[Outlet], timeout: float) -> bool:
        deadline = time.monotonic() + timeout
        done = [self._flush_one(outlet, max(0.0, deadline - time.monotonic())) for outlet in outlets]  # each gets its chance
        return all(done)

    def _flush_one(self, outlet: Outlet, timeout: float) -> bool:
        try:
            return outlet.flush(timeout)
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            self.count_error(outlet.name, type(error).__name__, error)
            return False

    # --- end of life

    def begin_exit(self) -> None:
        """This is the end: outlets start no thread any more, and a flush now waits for their receivers."""
        self._each(lambda outlet: outlet.begin_exit())

    def end_exit(self, timeout: float) -> bool:
        """Flush at interpreter exit the outlets that have no provider to do it; False unless these had delivered everything."""
        return self._flush([outlet for outlet in self._outlets if outlet.flushed_at_exit], timeout)

    def close(self) -> None:
        """Close every outlet."""
        self._each(lambda outlet: outlet.close())

    def after_fork_in_child(self) -> None:
        """What the parent counted and holds is the parent's."""
        self.errors.clear()
        self._behind.clear()
        self._each(lambda outlet: outlet.after_fork_in_child())

    def _each(self, call: Callable[[Outlet], None]) -> None:
        for outlet in self._outlets:
            try:
                call(outlet)
            except Exception as error:
                self.count_error(outlet.name, type(error).__name__, error)
