"""Record spans and their log records in a program that ``otel-agenteval record`` runs.

The recorder runs inside the program, and adds a processor to each SDK provider that the program creates. The recorder appends
each line in a single write, so several processes of the program can write to one file.
"""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import logging
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ..config.loader import RECORD_ENV
from ..core import jsonio

if TYPE_CHECKING:
    from opentelemetry.sdk._logs import ReadWriteLogRecord
    from opentelemetry.sdk.trace import ReadableSpan

_log = logging.getLogger("otel_agenteval")
_TRACES, _LOGS = "opentelemetry.sdk.trace", "opentelemetry.sdk._logs"


def begin() -> None:
    path = os.environ.get(RECORD_ENV)
    if not path:
        return
    file = RecordFile(path)
    file.add_fact({"python": sys.executable, "pid": os.getpid()})
    _when_imported(_TRACES, lambda module: _add(module.TracerProvider, "add_span_processor", lambda: _span_processor(file), file))
    _when_imported(
        _LOGS, lambda module: _add(module.LoggerProvider, "add_log_record_processor", lambda: _log_processor(file), file)
    )


@dataclass
class RecordFile:
    """Recording file, with a second file that describes the recorded processes. Only the first write error is logged."""

    path: str
    failed: bool = False

    def write(self, message: dict[str, Any]) -> None:
        self._append(self.path, message)

    def add_fact(self, fact: dict[str, Any]) -> None:
        """Append information about this process to the second file, for the report of ``otel-agenteval record``."""
        self._append(about(self.path), fact)

    def _append(self, path: str, line: dict[str, Any]) -> None:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(handle, jsonio.dumps(line).encode() + b"\n")
            finally:
                os.close(handle)
        except OSError as error:
            if not self.failed:
                self.failed = True
                _log.warning("%s: can't write the recording: %s", path, error.strerror)


def about(path: str) -> str:
    return f"{path}.about"


def _add(provider: Any, method: str, make: Callable[[], Any], file: RecordFile) -> None:
    make_provider = provider.__init__

    @functools.wraps(make_provider)
    def begin_provider(self: Any, *args: Any, **options: Any) -> None:
        make_provider(self, *args, **options)
        try:
            getattr(self, method)(make())
            file.add_fact({"made": type(self).__name__, "pid": os.getpid()})
        except Exception as error:  # never disturb the program
            _log.warning("otel-agenteval can't record spans or logs of a %s: %s", type(self).__name__, error)

    provider.__init__ = begin_provider


def _span_processor(file: RecordFile) -> Any:
    from opentelemetry.sdk.trace import SpanProcessor

    from ..spans.sdk import from_sdk
    from ..spans.writing import as_otlp_json

    class SpanRecorder(SpanProcessor):
        def on_end(self, span: ReadableSpan) -> None:
            try:
                for message in as_otlp_json([from_sdk(span)]):
                    file.write(message)
            except Exception as error:
                _log.warning("otel-agenteval can't record a span: %s", error)

    return SpanRecorder()


def _log_processor(file: RecordFile) -> Any:
    from opentelemetry.sdk._logs import LogRecordProcessor

    from ..spans.writing import log_as_json

    class LogRecorder(LogRecordProcessor):
        def on_emit(self, log_record: ReadWriteLogRecord) -> None:
            try:
                record: Any = log_record.log_record
                if record.trace_id and record.span_id:
                    scope = log_record.instrumentation_scope
                    file.write(
                        log_as_json(
                            record.trace_id, record.span_id, record.event_name or "", record.timestamp or record.observed_timestamp or 0,
                            dict(record.attributes or {}), record.body, scope.name if scope is not None else "",
                        )
                    )  # fmt: skip
            except Exception as error:
                _log.warning("otel-agenteval can't record a log record: %s", error)

        def shutdown(self) -> None:
            """Do nothing, because nothing is buffered."""

        def force_flush(self, timeout_millis: int = 30_000) -> bool:
            return True

    return LogRecorder()


# --- import hook for modules that the program may import later


def _when_imported(name: str, then: Callable[[ModuleType], None]) -> None:
    module = sys.modules.get(name)
    if module is not None:
        then(module)
    else:
        sys.meta_path.insert(0, _Watcher(name, then))


@dataclass(eq=False)
class _Watcher(importlib.abc.MetaPathFinder):
    """Import hook that calls ``then`` after the module ``name`` was imported."""

    name: str
    then: Callable[[ModuleType], None]

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                execute(module)
                self.then(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
