"""Detect changes in many turns' scores, and save the statistics, so that they survive a restart."""

from __future__ import annotations

import fcntl
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..config.turn import StatisticsOptions
from ..core import forks, jsonio
from ..core.clock import Clock
from ..core.files import another_version, private
from ..core.semconv import SERVICE_VERSION
from ..core.telemetry import Telemetry
from ..evaluation.scored_turn import Root, ScoredTurn

if TYPE_CHECKING:
    from ..statistics.changes import Change, Changes

_log = logging.getLogger("otel_agenteval")

_EVERY = 60.0
_FILES = 64
"""Maximum number of processes that share a configured path. Each process uses its own file."""
_FORM = 1


class Restorable(Protocol):
    def state(self) -> Any:
        """Return the state as JSON-compatible values."""

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Restore a state that is ``passed`` seconds old."""


class ScoreStatistics:
    """Detector of score changes, which also saves and restores its state and ``estimates`` (statistics from judged samples)."""

    def __init__(
        self, options: StatisticsOptions, estimates: Mapping[str, Restorable | None], telemetry: Telemetry, clock: Clock
    ) -> None:
        wanted = options.changes
        self.changes: Changes | None = None
        if wanted.detect is True:
            from ..statistics.change import DetectorOptions  # numpy is only imported if changes are detected
            from ..statistics.changes import Changes

            self.changes = Changes(DetectorOptions(float(wanted.false_alarm_every), wanted.least, wanted.reference), clock)
            self.changes.watch(telemetry)
        self._kept: dict[str, Restorable] = {
            name: one for name, one in {**estimates, "changes": self.changes}.items() if one is not None
        }
        self._clock = clock
        keeps = options.state not in (None, "auto") and bool(self._kept)
        self._file = StateFile(str(options.state)) if keeps else None
        self._due = clock.monotonic() + _EVERY
        self._restore()
        forks.in_child(self._begin_in_child)

    def _restore(self) -> None:
        found = self._file.read() if self._file is not None else None
        if found is None:
            return
        passed = max(0.0, self._clock.time_ns() / 1e9 - (at if isinstance(at := found.get("at"), (int, float)) else 0.0))
        for name, what in self._kept.items():
            if found.get(name) is not None:
                try:
                    what.restore(found[name], passed)
                except (KeyError, TypeError, ValueError, IndexError) as error:
                    kind = type(error).__name__
                    _log.warning("statistics.state: %s: %s can't be restored, starting from zero: %s", self._file, name, kind)

    def reopen(self) -> None:
        """Switch from a file such as ``statistics.1.json`` to the first unlocked file. Call this before counting scores."""
        if self._file is not None and self._file.path != self._file.first:
            self._file.close()
            self._file = StateFile(str(self._file.first))
            self._restore()

    def changes_in(self, batch: Sequence[ScoredTurn]) -> list[tuple[Change, Root]]:
        """Return (score change, root of the turn that revealed this change) for each change that ``batch`` reveals."""
        changes = self.changes
        if changes is None:
            return []
        found = []
        for scored in batch:
            if not scored.new and not scored.is_feedback:
                continue
            root, judged, turn = scored.root, scored.judged, scored.turn
            weight = 1.0 / judged.probability if judged is not None and judged.probability > 0 else 1.0
            version = root.resource.get(SERVICE_VERSION)
            of_version = version if version.__class__ is str else None
            seen = changes.add(scored.scores, turn.agent or "", weight, of_version, turn.turn_id or None, root.tenant)
            found += [(change, root) for change in seen]
        return found

    def tick(self) -> None:
        """Save the state once per minute. Never raises."""
        if self._file is not None and self._clock.monotonic() >= self._due:
            self._due = self._clock.monotonic() + _EVERY
            self.save()

    def save(self) -> None:
        if self._file is None:
            return
        try:
            known = {name: what.state() for name, what in self._kept.items()}
        except Exception as error:  # a failure must not affect anything else
            self._file.warn(error)
            return
        self._file.write({"form": _FORM, "at": self._clock.time_ns() / 1e9, **known})

    def close(self) -> None:
        self.save()
        if self._file is not None:
            self._file.close()

    def _begin_in_child(self) -> None:
        if self._file is not None:
            self._file.close()  # this doesn't release the parent's lock
            self._file = None
        if self.changes is not None:
            self.changes.reset()


class StateFile:
    """File with saved statistics, which one process locks.

    If several processes use one path, all except the first process use ``statistics.1.json``, ``statistics.2.json``, and so on.
    """

    def __init__(self, path: str) -> None:
        self._lock: int | None = None
        self._warned = False
        self._writing = threading.Lock()
        self.path = self.first = first = Path(path)
        for number in range(_FILES):
            self.path = first if not number else first.with_name(f"{first.stem}.{number}{first.suffix}")
            try:
                first.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                lock = private(f"{self.path}.lock", os.O_RDWR | os.O_CREAT)
            except OSError as error:
                self.warn(error)
                return
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(lock)
                continue
            self._lock = lock
            return

    def __str__(self) -> str:
        return str(self.path)

    def read(self) -> dict[str, Any] | None:
        """Return the saved state, or None if the file is missing or unusable, or if this object doesn't hold the file's lock."""
        if self._lock is None:
            return None
        try:
            found = jsonio.loads(self.path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.warn(error)
            return None
        form = found.get("form") if isinstance(found, dict) else None
        if isinstance(form, int) and form != _FORM:
            fault = another_version(form, _FORM, "remove the file")
            _log.warning(
                "statistics.state: %s: file %s, or set another file; until then, estimates and changes are not kept",
                self.path,
                fault,
            )
            self.close()  # the file stays unchanged
            return None
        return found if form == _FORM else None

    def write(self, state: dict[str, Any]) -> None:
        if self._lock is None:
            return
        partial = f"{self.path}.partial"
        with self._writing:
            try:
                with os.fdopen(private(partial, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                    file.write(jsonio.dumps(state).encode())
                Path(partial).replace(self.path)
            except (OSError, ValueError, TypeError) as error:
                self.warn(error)

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def warn(self, error: BaseException) -> None:
        if not self._warned:
            self._warned = True
            why = getattr(error, "strerror", None) or type(error).__name__
            _log.warning("statistics.state: %s: file unusable, so a restart can lose estimates and changes: %s", self.path, why)
