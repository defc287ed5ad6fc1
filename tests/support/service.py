"""The sidecar in this process, on free loopback ports, and the SDK's exporters that send to it."""

from __future__ import annotations

import asyncio
import http.client
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from typing_extensions import Self

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.clock import SYSTEM_CLOCK
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.server.app import Service
from otel_agenteval.server.journal_folder import ALONE, JournalFolder
from otel_agenteval.server.wal import Journal
from otel_agenteval.spans.otlp import Signal

Transport = Literal["grpc", "http"]
ANY_PORT = "127.0.0.1:0"


class Sidecar:
    """A running :class:`Service`. Turns close when the test calls :meth:`turns`, or when the test's clock moves.

    Args:
        config: configuration, in addition to defaults that listen on free ports.
        clock: clock of the service.
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, clock: Any = SYSTEM_CLOCK) -> None:
        given = dict(config or {})
        listening = dict.fromkeys(("grpc", "http", "metrics", "web"), ANY_PORT)
        given["serve"] = {**listening, "drain_timeout": "10s", **given.get("serve", {})}
        given["statistics"] = {
            "state": None,
            **given.get("statistics", {}),
        }  # otherwise, each test would continue with the state of another test
        self.kept: deque[ScoredTurn] = deque()
        self.ledger: dict[str, Any] = {}
        self.service = Service(load_config(given), clock=clock)
        self.engine.keep_turns(self.kept)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="sidecar", daemon=True)
        self._thread.start()
        try:
            self.on_loop(self.service.start)
        except BaseException:
            self._end_loop()
            raise
        self.addresses = self.service.addresses

    @property
    def engine(self) -> Any:
        """Return the current engine. A reload replaces it."""
        return self.service.engine

    def on_loop(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Run a coroutine on the service's event loop."""

        async def run() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> dict[str, Any]:
        """Drain as on SIGTERM, and return the ledger."""
        if self._thread.is_alive():
            self.ledger = self.on_loop(self.service.drain)
            self._end_loop()
        return self.ledger

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    # --- results

    def turns(self) -> list[Turn]:
        """Close and evaluate all open turns, and return every turn."""
        engine = self.engine
        with engine.assembler.lock:
            closed = engine.assembler.close_all("delay")
        engine.intake.take(closed)
        assert engine.worker.flush(30)
        return [scored.turn for scored in self.kept]

    def scores(self) -> dict[tuple[str, str], Any]:
        """Return the content of every score by turn id and metric, without durations."""
        self.turns()
        return said_by(self.kept)

    # --- requests

    def post(
        self,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        server: str = "http",
        method: str = "POST",
    ) -> tuple[int, dict[str, str], bytes]:
        """Send an HTTP request. Return the status, the headers (in lower case) and the body."""
        host, _, port = self.addresses[server].rpartition(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        try:
            chunked = "Transfer-Encoding" in (headers or {})
            connection.request(
                method, path, body, {"Content-Type": "application/x-protobuf", **(headers or {})}, encode_chunked=chunked
            )
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()
        finally:
            connection.close()

    def get(self, path: str, server: str = "http", headers: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Send a GET request. Return the status and the text."""
        status, _, body = self.post(path, headers=headers, server=server, method="GET")
        return status, body.decode()

    def exporter(self, transport: Transport, **options: Any) -> Any:
        """Return the SDK's own exporter, configured to send to this sidecar."""
        if transport == "grpc":
            return GrpcExporter(endpoint=self.addresses["grpc"], insecure=True, timeout=60, **options)
        return HttpExporter(endpoint=f"http://{self.addresses['http']}/v1/traces", timeout=60, **options)

    def provider(self, exporter: Any) -> TracerProvider:
        """Return a provider that sends every span immediately."""
        provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        return provider


def left_in(folder: Path, *requests: tuple[Signal, bytes, bool, str | None]) -> None:
    """Write requests to the journal of a service with one process: signal, body, True for JSON, and tenant."""
    whole = JournalFolder(str(folder))
    folder.mkdir(exist_ok=True)
    whole.share_out(ALONE)
    journal = Journal(whole.part(0), 1 << 30)
    for signal, body, is_json, tenant in requests:
        journal.append(signal, body, is_json, tenant).wait()
    journal.close(delivered=False)


def said_by(scored: Iterable[ScoredTurn]) -> dict[tuple[str, str], Any]:
    """Return the content of scores by turn id and metric."""
    return {
        (item.turn.turn_id, score.metric): (
            score.status, score.value, score.passed, score.label, score.explanation, score.detail.get("reason"), score.result_id,
        )
        for item in scored
        for score in item.scores
    }  # fmt: skip


def request(*spans: Mapping[str, Any], scope: str = "acme", service: str = "shop") -> bytes:
    """Return an ExportTraceServiceRequest of given spans: ``trace``, ``id``, ``parent`` (numbers), ``name``, ``attributes``."""
    message = ExportTraceServiceRequest()
    group = message.resource_spans.add()
    attribute = group.resource.attributes.add()
    attribute.key, attribute.value.string_value = "service.name", service
    scope_group = group.scope_spans.add()
    scope_group.scope.name = scope
    for span in spans:
        made = scope_group.spans.add(
            trace_id=span.get("trace", 1).to_bytes(16, "big"),
            span_id=span.get("id", 1).to_bytes(8, "big"),
            name=span.get("name", "chat m-1"),
            start_time_unix_nano=span.get("start", 1_700_000_000_000_000_000),
            end_time_unix_nano=span.get("end", 1_700_000_001_000_000_000),
            flags=span.get("flags", 0x100),
        )
        if span.get("parent"):
            made.parent_span_id = span["parent"].to_bytes(8, "big")
        for key, value in span.get("attributes", {}).items():
            pair = made.attributes.add()
            pair.key = key
            if isinstance(value, int):
                pair.value.int_value = value
            else:
                pair.value.string_value = value
    return message.SerializeToString()


AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}


def turn_of(trace: int, *, parent: int = 0) -> bytes:
    """Return a request with one whole turn: an agent with a model call."""
    return request(
        {"trace": trace, "id": 1, "parent": parent, "name": "invoke_agent bot", "attributes": AGENT},
        {"trace": trace, "id": 2, "parent": 1, "attributes": CHAT},
    )
