"""Exporter that redacts and counts scored turns, then sends the turns to all outlets."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.score import Score
from ..core.semconv import METRIC_DURATION
from ..core.telemetry import Telemetry
from ..core.threads import Lane, LaneFull, is_meant_for_host
from ..evaluation.names import attributes_publicly, named_publicly
from ..evaluation.redaction import Exporter, Redactor, without_texts
from ..evaluation.scored_turn import Root, ScoredTurn
from .accounting import account
from .base import Outlet, RecordAccount, Setup, loggable

if TYPE_CHECKING:
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")
T = TypeVar("T")

MODULES: Mapping[str, str] = {
    "log_events": ".log_events", "prometheus": ".default_registry", "otlp_metrics": ".otlp_metrics", "jsonl": ".jsonl",
    "otlp_file": ".otlp_file", "console": ".console", "store": ".store.outlet", "webhook": ".webhook", "otlp": ".otlp.outlet",
}  # fmt: skip
"""Mapping from option in the ``outlets`` section to module, without ``span_events``. Outlets receive scores in this order."""
_CATCH_UP_SECONDS = 5.0
_RETRY_SECONDS = 0.05
_PATIENCE = 2.0
"""Maximum seconds that the worker waits for an outlet to accept scores. After that, the outlet's scores wait in memory."""
_WAITING_BYTES = 32 * 2**20
_CLOSE_SECONDS = 1.0
_MOST_RESOURCES = 64


def outlets_from(setup: Setup) -> list[Outlet]:
    """Return the enabled outlets. For an unusable option, such as an unreadable file, raise ConfigError.

    Each outlet module has a function ``outlet_from(wanted, setup)``, which returns the outlet for an option, or None if
    another outlet already exports the same data. To save time and memory, modules of disabled outlets aren't imported here.
    """
    made = [
        import_module(module, __package__).outlet_from(value, setup)
        for option, module in MODULES.items()
        if (value := getattr(setup.config.outlets, option)) not in (None, False, "off")
    ]
    return [outlet for outlet in made if outlet is not None]


class FanOut:
    """Exporter that sends scored turns to each outlet, in the order of ``outlets``.

    Turns are first redacted and counted. If an outlet fails, the failure is counted and the other outlets continue. ``redact``
    lists the kinds of data to redact. The function ``exported`` returns the turn content to export.
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
        self.errors: Counter[tuple[str, str]] = Counter()
        self._keeps_all = False
        self._resources: dict[int, tuple[Mapping[str, Any], Mapping[str, Any]]] = {}
        """Mapping from the ``id()`` of resource attributes to (original, redacted) attributes. Turns often share a resource."""
        self._lanes: dict[str, Lane] = {}
        """Mapping from outlet name to the thread of an outlet that can hang."""
        self._is_ending = False
        self._behind: dict[str, bool] = {}
        """For each outlet that didn't accept the latest batch: True if :meth:`catch_up` has already waited for this outlet."""
        for outlet in outlets:
            self.add(outlet)

    def __iter__(self) -> Iterator[Outlet]:
        return iter(self._outlets)

    def add(self, outlet: Outlet, *, first: bool = False) -> None:
        if self._keeps_all:
            outlet.keep_all()
        self.keeps_content = self.keeps_content or outlet.keeps_content
        self.keeps_spans = self.keeps_spans or outlet.keeps_spans
        self._outlets.insert(0 if first else len(self._outlets), outlet)
        if outlet.may_hang:
            name = outlet.name
            self._lanes[name] = Lane(_PATIENCE, _WAITING_BYTES, lambda error: self.count_error(name, type(error).__name__, error))

    def trouble_of(self, outlet: Outlet) -> str:
        lane = self._lanes.get(outlet.name)
        stuck = 0.0 if lane is None else lane.stuck
        return f"no answer for {stuck:.0f} s" if stuck else outlet.trouble

    def remove(self, outlet: Outlet) -> None:
        self._outlets.remove(outlet)

    def emit(self, batch: Sequence[ScoredTurn]) -> Sequence[ScoredTurn]:
        """Redact, count, and export scored turns. Omit turns for which redaction or counting failed, and return the others."""
        batch = [scored for scored in batch if self._prepare(scored)]
        for outlet in self._outlets:
            try:
                if self._do(outlet, partial(outlet.emit, batch), batch):
                    self._behind.pop(outlet.name, None)
                else:
                    self._behind.setdefault(outlet.name, False)
            except BaseException as error:  # an outlet's failure is only counted
                if is_meant_for_host(error):
                    raise
                self._behind.setdefault(outlet.name, False)
                self.count_error(outlet.name, type(error).__name__, error)
        return batch

    def _do(self, outlet: Outlet, work: Callable[[], None], batch: Sequence[ScoredTurn] = ()) -> bool:
        """Run ``work``, on a separate thread if the outlet can hang. If ``work`` is queued behind a hanging call, return False.

        If ``work`` isn't done in time, raise TimeoutError. If the queue is full, raise LaneFull.
        """
        lane = self._lanes.get(outlet.name)
        if lane is None:
            work()
            return True
        try:
            return lane.do(work, sum(scored.size for scored in batch), must=self._keeps_all)
        except LaneFull:
            if outlet.records is not None:
                outlet.records.lose("no_answer", batch)
            raise

    def announce(self, change: Change, root: Root) -> None:
        _log.log(logging.WARNING if change.verdict == "worse" else logging.INFO, "%s", change.title)
        self._each(lambda outlet: self._do(outlet, partial(outlet.announce, change, root)))

    def _prepare(self, scored: ScoredTurn) -> bool:
        """Redact and count one turn. On failure, return False, so that the turn isn't exported."""
        try:
            self.name(scored)
            self.redact(scored)
            account(self._telemetry, scored)
            judged = scored.judged
            if not scored.is_feedback:
                self._telemetry.observe(METRIC_DURATION, scored.seconds, kind="code" if judged is None else judged.kind)
            if scored.of_turn_itself and self._exported is not None:
                scored.content = self._exported(scored.turn, scored.redactor)
        except Exception as error:  # the other turns of the batch are still emitted
            self.count_error("pipeline", type(error).__name__)
            return False
        return True

    def name(self, scored: ScoredTurn) -> None:
        """Redact the names and IDs in a turn. Called after all metrics that read names or IDs have been evaluated."""
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
        if not self._kinds:
            return
        if scored.redactor is None:
            scored.redactor = Redactor(self._kinds)
        redactor, scores = scored.redactor, scored.scores
        if scored.redacted == len(scores):
            return
        changed: dict[int, Score] = {}
        for index in range(scored.redacted, len(scores)):
            score = scores[index]
            try:
                if not redactor.is_clean(score):
                    changed[index] = redactor.score(score, scored.turn)
            except Exception as error:  # the score is emitted without the texts that couldn't be redacted
                self.count_error("redaction", type(error).__name__)
                changed[index] = without_texts(score)
        if changed:
            scored.scores = [changed.get(index, score) for index, score in enumerate(scores)]
        scored.redacted = len(scores)

    def record_outcome(self, turn_id: str, metric: str, outcome: str) -> None:
        for outlet in self._outlets:
            outlet.record_outcome(turn_id, metric, outcome)

    def count_error(self, outlet: str, reason: str, error: BaseException | None = None) -> None:
        """Count an outlet's failure. Log only the first failure for each outlet and reason."""
        key = (outlet, reason)
        self.errors[key] += 1
        if self.errors[key] == 1:
            _log.warning(
                "outlet %s failed: %s (further failures are only counted)", outlet, reason if error is None else loggable(error)
            )

    def start(self) -> None:
        self._each(lambda outlet: outlet.start())

    def warm_up(self) -> Iterator[None]:
        for outlet in self._outlets:
            yield from outlet.warm_up()

    def check(self) -> None:
        self._each(lambda outlet: self._ask(outlet, outlet.check, _PATIENCE))

    def keep_all(self) -> None:
        """Call :meth:`Outlet.keep_all` of all outlets. Callers must not evaluate turns while :meth:`can_emit` returns False."""
        self._keeps_all = True
        self._each(lambda outlet: outlet.keep_all())

    def can_emit(self) -> bool:
        """Return True until :meth:`keep_all` is called. Then, flush full outlets, and return True if no outlet or queue is full."""
        if not self._keeps_all:
            return True
        full = [outlet for outlet in self._outlets if outlet.full]
        for outlet in full:
            self._flush_one(outlet, 0.0)
        return not any(outlet.full for outlet in full) and not any(lane.full for lane in self._lanes.values())

    def catch_up(self) -> None:
        """Wait up to five seconds for outlets that didn't accept the latest batch. Wait for each outlet only once per outage.

        The worker calls this method before it acknowledges judge jobs. After the acknowledgment, only this process holds the jobs'
        scores.
        """
        until = time.monotonic() + _CATCH_UP_SECONDS
        for outlet in self._outlets:
            if self._behind.get(outlet.name) is False:
                self._behind[outlet.name] = True
                while not self._flush_one(outlet, max(0.0, until - time.monotonic())) and time.monotonic() < until:
                    time.sleep(_RETRY_SECONDS)

    def records(self) -> dict[str, RecordAccount]:
        return {outlet.name: outlet.records for outlet in self._outlets if outlet.records is not None}

    def flush(self, timeout: float, *, at_exit: bool = False) -> bool:
        deadline = time.monotonic() + timeout
        outlets = [outlet for outlet in self._outlets if outlet.flushed_at_exit or not at_exit]
        outlets.sort(key=lambda outlet: outlet.name in self._lanes and self._lanes[outlet.name].stuck)  # stuck outlets last
        done = [self._flush_one(one, max(0.0, deadline - time.monotonic())) for one in outlets]
        return all(done)

    def failing(self) -> str:
        return "; ".join(f"outlet {one.name}: {reason}" for one in self._outlets if (reason := self.trouble_of(one)))

    def _ask(self, outlet: Outlet, work: Callable[[], T], seconds: float) -> T:
        lane = self._lanes.get(outlet.name)
        return work() if lane is None else lane.ask(work, seconds)

    def _flush_one(self, outlet: Outlet, timeout: float) -> bool:
        lane = self._lanes.get(outlet.name)
        if lane is not None and lane.stuck and not self._is_ending:
            return False  # the other outlets must not wait
        try:
            return self._ask(outlet, partial(outlet.flush, timeout), timeout)
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            self.count_error(outlet.name, type(error).__name__, error)
            return False

    def begin_exit(self) -> None:
        self._is_ending = True
        self._each(lambda outlet: outlet.begin_exit())

    def start_no_threads(self) -> None:
        for lane in self._lanes.values():
            lane.start_no_thread()

    def close(self) -> None:
        self._each(lambda outlet: self._ask(outlet, outlet.close, _CLOSE_SECONDS))

    def after_fork_in_child(self) -> None:
        self.errors.clear()
        self._behind.clear()
        self._each(lambda outlet: outlet.after_fork_in_child())

    def _each(self, call: Callable[[Outlet], object]) -> None:
        for outlet in self._outlets:
            try:
                call(outlet)
            except Exception as error:
                self.count_error(outlet.name, type(error).__name__, error)
