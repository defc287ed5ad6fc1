"""What applications without any model send: spans and log records of the real SDK, one pair of OTLP/JSON files per application.

    python tests/recording/app_telemetry.py ARCHIVE FOLDER [FOLDER ...]

packs what ``ordinary_apps.py`` and ``ordinary_mixed.py`` wrote.
"""

from __future__ import annotations

import contextlib
import json
import logging
import lzma
import sys
import tarfile
import time
from pathlib import Path

import stage
from opentelemetry import _logs, trace
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, Status, StatusCode

CLIENT, SERVER, PRODUCER, CONSUMER, INTERNAL = SpanKind.CLIENT, SpanKind.SERVER, SpanKind.PRODUCER, SpanKind.CONSUMER, SpanKind.INTERNAL


def js(value) -> str:
    """JSON text, as applications put it into attributes."""
    return json.dumps(value, ensure_ascii=False)


class App:
    """One application: its providers, and short ways to make spans and log records with them."""

    def __init__(self, name: str, scope: str | None = None) -> None:
        self.name, self.scope = name, scope or f"acme.{name.replace('-', '_')}"
        resource = Resource.create({"service.name": name})
        self.spans, self.records = InMemorySpanExporter(), InMemoryLogRecordExporter()
        self.tracers = TracerProvider(resource=resource)
        self.tracers.add_span_processor(SimpleSpanProcessor(self.spans))
        self.loggers = LoggerProvider(resource=resource)
        self.loggers.add_log_record_processor(SimpleLogRecordProcessor(self.records))

    @contextlib.contextmanager
    def span(self, title: str, kind=INTERNAL, scope: str | None = None, fails: str | None = None, **attributes):
        """A span around what happens inside; dots in attribute names are written as double underscores."""
        tracer = self.tracers.get_tracer(scope or self.scope)
        with tracer.start_as_current_span(title, kind=kind) as span:
            self.say(span, **attributes)
            yield span
            if fails:
                span.record_exception(RuntimeError(fails))
                span.set_status(Status(StatusCode.ERROR, fails))

    def leaf(self, title: str, kind=INTERNAL, scope: str | None = None, fails: str | None = None, **attributes) -> None:
        """A span with nothing inside."""
        with self.span(title, kind, scope, fails, **attributes):
            time.sleep(0.001)

    @staticmethod
    def say(span, **attributes) -> None:
        """Set attributes; objects become JSON text."""
        for key, value in attributes.items():
            plain = isinstance(value, (str, int, float, bool)) or (isinstance(value, (list, tuple)) and all(isinstance(x, (str, int, float)) for x in value))
            span.set_attribute(key.replace("__", "."), value if plain else js(value))

    @staticmethod
    def event(name: str, **attributes) -> None:
        """An event on the span that is open."""
        trace.get_current_span().add_event(name, {key.replace("__", "."): value if isinstance(value, (str, int, float, bool)) else js(value) for key, value in attributes.items()})

    def log(self, body, event: str | None = None, scope: str | None = None, **attributes) -> None:
        """A log record; its body may be an object."""
        context = trace.get_current_span().get_span_context()
        self.loggers.get_logger(scope or self.scope).emit(LogRecord(
            timestamp=time.time_ns(), trace_id=context.trace_id, span_id=context.span_id, trace_flags=context.trace_flags,
            severity_number=SeverityNumber.INFO, severity_text="INFO", body=body, event_name=event,
            attributes={key.replace("__", "."): value for key, value in attributes.items()},
        ))  # fmt: skip

    def requests(self) -> dict[str, list[dict]]:
        """What was sent, by the ending of its file."""
        found: dict[str, list[dict]] = {}
        spans, records = self.spans.get_finished_spans(), self.records.get_finished_logs()
        if spans:
            found[".jsonl"] = [stage.as_json("traces", encode_spans(spans).SerializeToString(), "protobuf")]
        if records:
            found[".logs.jsonl"] = [stage.as_json("logs", encode_logs(records).SerializeToString(), "protobuf")]
        return found

    def write(self, folder: Path) -> None:
        """The files, without what belongs to the machine."""
        folder.mkdir(parents=True, exist_ok=True)
        for suffix, requests in self.requests().items():
            lines = [json.dumps(stage.neutral(request), ensure_ascii=False, separators=(",", ":")) for request in requests]
            (folder / f"{self.name}{suffix}").write_text("\n".join(lines) + "\n", encoding="utf-8")


def instrumented(app: App, *names: str):
    """The real instrumentations of these libraries, with the application's providers."""
    import importlib

    stack = contextlib.ExitStack()
    for name in names:
        module = importlib.import_module(f"opentelemetry.instrumentation.{name}")
        kind = next(value for key, value in vars(module).items() if key.lower() in (f"{name.replace('_', '')}instrumentor", f"{name}clientinstrumentor"))
        instrumentor = kind()
        instrumentor.instrument(tracer_provider=app.tracers, skip_dep_check=True)
        stack.callback(instrumentor.uninstrument)
    return stack


def pack(target: Path, *folders: Path) -> None:
    """``plain/NAME.jsonl`` and ``mixed-NAME/…`` in one archive; the same files give the same bytes."""
    with lzma.open(target, "wb", preset=9) as packed, tarfile.open(fileobj=packed, mode="w") as archive:
        for folder in folders:
            for path in sorted(folder.rglob("*.json*")):
                inside = path.relative_to(folder)
                entry = archive.gettarinfo(path, str(inside if len(inside.parts) > 1 else Path("plain") / inside))
                entry.mtime = entry.uid = entry.gid = 0
                entry.uname = entry.gname = ""
                entry.mode = 0o644
                with path.open("rb") as file:
                    archive.addfile(entry, file)


def record(apps: dict, folder: Path) -> None:
    """Run every application, each with providers of its own."""
    logging.disable(logging.CRITICAL)
    for name, run in apps.items():
        app = App(name)
        run(app)
        app.write(folder)


if __name__ == "__main__":
    pack(*map(Path, sys.argv[1:]))

__all__ = ["App", "CLIENT", "CONSUMER", "INTERNAL", "PRODUCER", "SERVER", "_logs", "instrumented", "js", "record"]
