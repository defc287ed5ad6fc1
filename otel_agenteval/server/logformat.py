"""The log of a server or worker: text, or one JSON object per line; both with the id of the request that a record is about.

Messages never hold content of agents, and no exception's text is written, which might.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Mapping
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple

from ..core.terminal import escaped

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
DEFAULT_FORMAT, DEFAULT_LEVEL = "text", "info"

_log = logging.getLogger("otel_agenteval")

_SANE_ID = re.compile(r"[A-Za-z0-9._:=@/+-]{1,128}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Caller(NamedTuple):
    """A request that is being answered."""

    request_id: str
    client: str
    """Address of the peer."""

    @classmethod
    def of(cls, headers: Mapping[str, str], client: str) -> Caller:
        """From a request's headers (names in lower case): its ``x-request-id``, else the trace id of its ``traceparent``, else a new id.

        An id that is longer than 128 characters, or has others than ``A-Z a-z 0-9 . _ : = @ / + -``, is not taken.
        """
        given = headers.get("x-request-id", "")
        if _SANE_ID.fullmatch(given):
            return cls(given, client)
        trace = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
        return cls(trace[1] if trace else uuid.uuid4().hex, client)


caller: ContextVar[Caller | None] = ContextVar("otel_agenteval_caller", default=None)
"""The request that this task or thread works on."""


class _Formatter(logging.Formatter):
    """What both formats have in common. Times are UTC."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Where it was raised and its type. Its message is left out: it may quote an agent."""
        kind, _, where = ei
        return _trace(kind, where)


class TextFormatter(_Formatter):
    """Time, level, message, and the request's id; what could begin a line of its own is escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text: one line, and below it the frames of an exception."""
        line = f"{self.formatTime(record)} {record.levelname} {escaped(record.getMessage())}"
        request = caller.get()
        if request is not None:
            line += f" request_id={request.request_id}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(_Formatter):
    """One JSON object: ``time``, ``level``, ``logger``, ``message``, ``pid``, and where there is one ``request_id``, ``exception``."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as a line of JSON."""
        line: dict[str, Any] = {
            "time": self.formatTime(record), "level": record.levelname.lower(), "logger": record.name,
            "message": record.getMessage(), "pid": record.process,
        }  # fmt: skip
        request = caller.get()
        if request is not None:
            line["request_id"] = request.request_id
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line)


def set_up(form: str = DEFAULT_FORMAT, level: str = DEFAULT_LEVEL) -> None:
    """Log to standard error. Nothing changes where the host of this process has set up logging.

    Args:
        form: one of :data:`FORMATS`.
        level: one of :data:`LEVELS`, of our own records; of others' there are warnings and errors.
    """
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    _log.setLevel(level.upper())
    if form == "json":  # whatever else would write lines of its own
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        logging.captureWarnings(True)
        sys.excepthook = _uncaught
        threading.excepthook = lambda args: _uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _uncaught(kind: type[BaseException], error: BaseException | None, where: TracebackType | None) -> None:
    if not issubclass(kind, (KeyboardInterrupt, SystemExit)):
        _log.critical("uncaught: %s", kind.__name__, exc_info=(kind, error or kind(), where))


def _trace(kind: type[BaseException] | None, where: TracebackType | None) -> str:
    return "".join([*traceback.format_tb(where), kind.__name__ if kind is not None else ""])
