"""Labels from people who use the web UI, stored in the file that ``calibrate`` reads."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import jsonio
from ..core.files import private
from .parameters import Problem

CHOICES = ("random", "doubtful", "hand")
FIELDS: Mapping[str, Mapping[str, Any]] = {
    "turn_id": {"description": "ID of the turn", "type": "string", "minLength": 1, "maxLength": 200},
    "label": {"description": "pass or fail; null removes an earlier label", "enum": ["pass", "fail", None]},
    "metric": {"description": "metric that the label applies to; if absent, the label applies to the whole turn", "type": ["string", "null"], "minLength": 1, "maxLength": 200},
    "value": {"description": "correct value of the score", "type": ["number", "null"], "minimum": -1e9, "maximum": 1e9},
    "rating": {"description": "1 to 5", "type": ["number", "null"], "minimum": 1, "maximum": 5},
    "comment": {"description": "free text", "type": ["string", "null"], "maxLength": 10_000},
    "chosen": {
        "description": "how the turn was chosen: random, doubtful (close to the threshold), or hand (by a person). Rates use only random turns",
        "enum": [*CHOICES, None],
    },
}  # fmt: skip
"""JSON Schema for the keys of a label. ``turn_id`` and ``label`` are required."""


class Labels:
    """Thread-safe file of labels. For each person, turn, and metric, the latest label applies. The first label creates the file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._read: tuple[int, int] = (-1, -1)
        self._labels: dict[tuple[str, str, str], dict[str, Any]] = {}

    def add(self, given: Any, by: str, at: float) -> dict[str, Any]:
        """Store and return a label (see :data:`FIELDS`). If the label is invalid or the file can't be written, raise Problem."""
        label = {**_checked(given), "by": by, "at": at}
        line = jsonio.dumps({key: value for key, value in label.items() if value is not None or key == "label"}) + "\n"
        with self._lock:
            try:
                with os.fdopen(private(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND), "a", encoding="utf-8") as file:
                    file.write(line)
            except OSError as error:
                raise Problem(503, f"can't store the label: {error.strerror or error}") from None
        return label

    def all(self) -> list[dict[str, Any]]:
        """Return the current labels, earliest first. Removed labels aren't included."""
        with self._lock:
            self._refresh()
            return [label for label in self._labels.values() if label.get("label") is not None]

    def _refresh(self) -> None:
        """Read the file if it has changed, because other processes can also write to it."""
        try:
            state = Path(self.path).stat()
        except OSError:
            self._labels = {}
            return
        if (state.st_size, state.st_mtime_ns) == self._read:
            return
        found: dict[tuple[str, str, str], dict[str, Any]] = {}
        for line in Path(self.path).read_bytes().split(b"\n"):
            try:
                row = jsonio.loads(line)
            except ValueError:
                continue  # the last line may be incomplete
            if isinstance(row, dict) and row.get("turn_id"):
                found.pop(key := (str(row["turn_id"]), str(row.get("metric") or ""), str(row.get("by") or "")), None)
                found[key] = row
        self._read, self._labels = (state.st_size, state.st_mtime_ns), found


def _checked(given: Any) -> dict[str, Any]:
    if not isinstance(given, dict):
        raise Problem(400, f"label: must be an object, got {type(given).__name__}; known keys: {', '.join(FIELDS)}")
    for key in given:
        if key not in FIELDS:
            raise Problem(400, f"{key[:40]!r}: unknown key of a label; known keys: {', '.join(FIELDS)}")
    if "label" not in given or given["label"] not in ("pass", "fail", None):
        raise Problem(400, 'label: required; must be "pass", "fail", or null')
    for key in ("turn_id", "metric", "comment"):
        text, least, most = given.get(key), FIELDS[key].get("minLength", 0), FIELDS[key]["maxLength"]
        if (text is not None or key == "turn_id") and not (isinstance(text, str) and least <= len(text) <= most):
            raise Problem(400, f"{key}: must be a string of {least} to {most:,} characters")
    if given.get("chosen") not in (None, *CHOICES):
        raise Problem(400, f"chosen: must be one of {', '.join(CHOICES)}, got {str(given['chosen'])[:40]!r}")
    for key in ("value", "rating"):
        value, least, most = given.get(key), FIELDS[key]["minimum"], FIELDS[key]["maximum"]
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most):
            raise Problem(400, f"{key}: must be a number from {least:g} to {most:g}, got {str(value)[:40]!r}")
    return {key: given.get(key) for key in FIELDS}
