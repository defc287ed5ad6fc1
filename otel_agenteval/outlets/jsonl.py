"""Outlet that writes scores to a JSON Lines file, one line per score.

Explanations and details can quote the redacted turn. Other turn content isn't written. Only the owner can read a new file.
"""

from __future__ import annotations

import datetime
import errno
import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from io import FileIO
from typing import Any

from ..core import jsonio
from ..core.files import fault_of_file, fixed, is_at, private
from ..core.telemetry import Telemetry
from ..core.turn import iso
from ..evaluation.scored_turn import ScoredTurn
from .accounting import answering_call
from .base import Outlet, RecordAccount, Setup, loggable

_log = logging.getLogger("otel_agenteval")

_MAX_WAITING = 16 * 2**20
_WRITE_BYTES = 1 << 20
"""Maximum bytes per write. A line that exceeds this limit is written by itself."""


class JsonLinesOutlet(Outlet):
    """Outlet that appends complete lines to a file, so that several processes can share the file.

    The first score opens the file. If a write fails, lines wait in memory for the next batch or flush. Unless :meth:`keep_all` was
    called, ``max_waiting`` limits the bytes of waiting lines.
    """

    name = "jsonl"
    may_hang = True
    of_what = "scores"
    records: RecordAccount

    def __init__(self, path: str | os.PathLike[str], telemetry: Telemetry | None = None, max_waiting: int = _MAX_WAITING) -> None:
        self._path = str(fixed(path))
        self._max_waiting = max_waiting
        self.records = RecordAccount(self.name, telemetry)
        self._reset()

    def _reset(self) -> None:
        self._file: FileIO | None = None
        self._torn = False
        """True if the last write ended in the middle of a line."""
        self._waiting: deque[bytes] = deque()
        self._bytes = 0

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        made, fault = self.render(batch, lambda scored: [jsonio.dumps(line).encode() + b"\n" for line in self.lines(scored)])
        lines = [line for some in made for line in some]
        self.records.add(len(lines))
        if self.full and not self._keeps_all:
            with suppress(OSError):  # the disk may have room again
                self._write()
        for index, line in enumerate(lines):
            if self.full and not self._keeps_all:
                self.records.finish("queue_full", len(lines) - index)
                break
            self._waiting.append(line)
            self._bytes += len(line)
        self._write()
        if fault is not None:
            raise fault

    def lines(self, scored: ScoredTurn) -> Iterator[dict[str, Any]]:
        """Yield one JSON object for each score that isn't skipped. The turn's keys precede the score's keys."""
        turn, root = scored.turn, scored.root
        place: dict[str, Any] = {
            "turn_id": turn.turn_id, "tenant": root.tenant, "labels": dict(root.labels) or None,
            "trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}", "conversation_id": turn.conversation_id,
            "service": turn.service, "agent": turn.agent, "model": call.model if (call := answering_call(turn)) is not None else None,
            "start": None if turn.start is None else iso(turn.start), "scored_at": iso(datetime.datetime.now(datetime.timezone.utc)),
            "cost_usd": turn.cost_usd, "cost_estimated": turn.cost_estimated or None, "close_reason": turn.close_reason,
            "complete": turn.complete, "revision": turn.revision, "supersedes": scored.supersedes,
        }  # fmt: skip
        judged = scored.judged
        if judged is not None:
            place |= {
                "sample_probability": judged.probability, "sample_upstream_probability": judged.upstream, "sample_decided_by": judged.decided_by,
                "judge_model": judged.model, "judge_cost_usd": judged.cost_usd,
                "judge_input_truncated": judged.input_truncated or None,
            }  # fmt: skip
        known = {key: value for key, value in place.items() if value is not None}
        for score in scored.scores:
            if score.status != "skipped":
                yield {**known, **score.as_sent()}

    def check(self) -> None:
        """Write waiting lines. Test whether the file is writable, without creating the file."""
        self._write()
        self._trouble = fault_of_file(self._path) or ""

    def flush(self, timeout: float) -> bool:
        try:
            self._write()
        except OSError:
            return False
        return True

    def close(self) -> None:
        """Write waiting lines and close the file. Lines that can't be written are counted as dropped."""
        if not self.flush(0):
            lost = len(self._waiting)
            self.records.finish("shutdown", lost)
            _log.warning("%d %s were dropped, because they couldn't be written to %s", lost, self.of_what, self._path)
        self._close_file()
        self._reset()

    def after_fork_in_child(self) -> None:
        self._close_file()
        super().after_fork_in_child()

    def _close_file(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _write(self) -> None:
        while self._waiting:
            lines: list[bytes] = []
            size = 0
            for line in self._waiting:
                if lines and size + len(line) > _WRITE_BYTES:
                    break
                lines.append(line)
                size += len(line)
            try:
                done = self._append(b"".join(lines))  # an almost full disk accepts a part, and the next write raises the reason
            except OSError as error:
                self._close_file()
                named = OSError(error.errno, error.strerror, error.filename or self._path)  # a write's error names no file
                self._trouble = loggable(named)
                raise named from error
            self._trouble = ""
            written = 0
            while self._waiting and done >= len(self._waiting[0]):
                line = self._waiting.popleft()
                done -= len(line)
                self._bytes -= len(line)
                written += 1
            self._torn = done > 0  # a torn line is written again from its beginning
            self.records.finish("sent", written)

    def _append(self, data: bytes) -> int:
        if self._file is not None and not is_at(self._path, self._file.fileno()):  # rotated
            self._close_file()
            self._torn = False
        if self._file is None:
            self._file = FileIO(self._path, "a", opener=private)
        if self._torn:
            if not self._file.write(b"\n"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self._path)
            self._torn = False
        return self._file.write(data) or 0


def outlet_from(wanted: str, setup: Setup) -> Outlet:
    setup.warn_of_fault(("outlets", "jsonl"), wanted, fault_of_file, "scores aren't written")
    return JsonLinesOutlet(wanted, setup.telemetry)
