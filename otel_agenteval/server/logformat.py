"""Log formats of the sidecar and worker: text or JSON lines. Lines about a request contain its ID.

Log messages never contain turn content. Messages of unexpected exceptions are omitted, because they might contain turn content.
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

from ..core.display import escaped

FORMATS = ("text", "json")
LEVELS = ("debug", "info", "warning", "error")
DEFAULT_FORMAT, DEFAULT_LEVEL = "text", "info"

_log = logging.getLogger("otel_agenteval")

_SANE_ID = re.compile(r"[A-Za-z0-9._:=@/+-]{1,128}")
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Caller(NamedTuple):
    request_id: str
    client: str
    origin: str | None = None
    """Origin of the calling web page, if this page is allowed to read the response."""

    @classmethod
    def of(cls, headers: Mapping[str, str], client: str) -> Caller:
        """Return the caller of a request. Header names must be in lowercase.

        The request ID is the header ``x-request-id``. If this header is missing or invalid, the request ID is the trace ID in
        ``traceparent``, or a new ID. A valid ID has at most 128 characters from ``A-Z a-z 0-9 . _ : = @ / + -``.
        """
        given = headers.get("x-request-id", "")
        if _SANE_ID.fullmatch(given):
            return cls(given, client)
        trace = _TRACEPARENT.fullmatch(headers.get("traceparent", ""))
        return cls(trace[1] if trace else uuid.uuid4().hex, client)


caller: ContextVar[Caller | None] = ContextVar("otel_agenteval_caller", default=None)


class _Formatter(logging.Formatter):
    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatException(self, ei: Any) -> str:  # noqa: N802 - logging's name
        """Return the traceback and the exception type. The message is omitted, because it might quote a turn."""
        kind, _, where = ei
        return "".join([*traceback.format_tb(where), kind.__name__ if kind is not None else ""])


class TextFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = f"{self.formatTime(record)} {record.levelname} {escaped(record.getMessage())}"
        request = caller.get()
        if request is not None:
            line += f" request_id={request.request_id}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


class JsonFormatter(_Formatter):
    def format(self, record: logging.LogRecord) -> str:
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
    root = logging.getLogger()
    if root.handlers:
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if form == "json" else TextFormatter())
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    _log.setLevel(level.upper())
    if form == "json":  # keep other writers from mixing plain text into the JSON lines
        os.environ.setdefault("GRPC_VERBOSITY", "NONE")
        logging.captureWarnings(True)
        sys.excepthook = _uncaught
        threading.excepthook = lambda args: _uncaught(args.exc_type, args.exc_value, args.exc_traceback)


def _uncaught(kind: type[BaseException], error: BaseException | None, where: TracebackType | None) -> None:
    if not issubclass(kind, (KeyboardInterrupt, SystemExit)):
        _log.critical("uncaught exception: %s", kind.__name__, exc_info=(kind, error or kind(), where))
