"""Scores as JSON lines in a file: one per score, for scripts, replays and people with ``grep``.

Explanations and details are written, redacted, and can quote the agent; nothing else of its content is. The file is its owner's alone.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Sequence
from io import FileIO
from typing import Any

from .. import jsonio
from ..files import private
from .base import ScoredTurn

_log = logging.getLogger("otel_agenteval")


class JsonLinesOutlet:
    """Appends to a file, each batch in one write, so that several processes can share it.

    The file is opened with the first score. When the disk fails, that batch is lost (the pipeline counts the OSError) and
    the next one opens the file again; at the end it is said how many scores were lost, and that not all was handed over.
    """

    name = "jsonl"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._file: FileIO | None = None
        self._torn = False
        """Whether the last write stopped within a line."""
        self._lost = 0
        self._ending = False

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Append the scores; skipped ones are not written.

        Raises:
            OSError: the file cannot be opened or written.
        """
        lines = [f"{jsonio.dumps(line)}\n" for scored in batch for line in lines_of(scored)]
        if not lines:
            return
        try:
            self._append("".join(lines).encode())
        except OSError:
            self._lost += len(lines)
            raise

    def flush(self, timeout: float) -> bool:
        """Nothing is buffered. At the end, whether nothing was lost."""
        return not (self._ending and self._lost)

    def begin_exit(self) -> None:
        """Say what was lost."""
        self._ending = True

    def close(self) -> None:
        """Close the file. A later batch would open it again."""
        self._let_go()
        if self._lost:
            _log.warning("%d scores could not be written to %s", self._lost, self._path)
            self._lost = 0

    def _let_go(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def _append(self, data: bytes) -> None:
        if self._file is None:
            self._file = FileIO(self._path, "a", opener=private)
        if self._torn:
            data = b"\n" + data
        written = 0
        try:
            while written < len(data):  # a disk that is almost full takes a part
                written += self._file.write(data[written:]) or 0
        except OSError:
            self._torn = data[written - 1 : written] != b"\n" if written else self._torn
            self._let_go()
            raise
        self._torn = False


def lines_of(scored: ScoredTurn) -> Iterator[dict[str, Any]]:
    """One object per score that was not skipped: where it belongs, then the score's own keys."""
    turn, root = scored.turn, scored.root
    place: dict[str, Any] = {
        "turn_id": turn.turn_id,
        "trace_id": f"{root.trace_id:032x}",
        "span_id": f"{root.span_id:016x}",
        "service": turn.service,
        "agent": turn.agent,
        "close_reason": turn.close_reason,
        "complete": turn.complete,
        "revision": turn.revision,
        "supersedes": scored.supersedes,
    }
    judged = scored.judged
    if judged is not None:
        place |= {
            "sample_probability": judged.probability, "sample_upstream_probability": judged.upstream, "sample_decided_by": judged.decided_by,
            "judge_model": judged.model, "judge_cost_usd": judged.cost_usd,
        }  # fmt: skip
    known = {key: value for key, value in place.items() if value is not None}
    for score in scored.scores:
        if score.status != "skipped":
            yield {**known, **score.to_dict()}
