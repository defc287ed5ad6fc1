"""OTLP over gRPC.

The export methods are declared as client-streaming, which is the same on the wire. The handler then runs when a call begins,
before its message arrives. A sender without a token, or without room for its message, gets its response immediately.
A sender that never sends its message doesn't block a thread.

Messages stay compressed until the receiver reads them, because gRPC's gzip is slow and has no memory limit.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Executor
from contextvars import copy_context
from typing import Any

import grpc
from grpc import aio
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ..config.tls import TlsOptions
from ..config.types import split_address
from ..core.errors import ConfigError
from ..spans.otlp import Signal
from .admission import Budget, MemoryShare
from .certificates import certificate_of
from .inflate import sniffed
from .logformat import Caller, caller
from .receiver import ExportRequest, Receiver
from .responses import FAULT, Accepted, Refusal, Refused

_log = logging.getLogger("otel_agenteval")

ANSWER_WITHIN = 4.5
"""Seconds until a response is sent. A Collector gives up after 5 seconds and retries."""
_SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
}
SLOW_AFTER = 1.0
"""Seconds that a message can take to arrive while other calls wait for room."""
ROOM_WITHIN = 2.0
"""Seconds that a call waits for room before its sender is asked to retry."""


class _Reading:
    """Memory reservations for messages that are being received. gRPC returns a message only when it is complete, and doesn't
    report its size before. So each incoming message reserves the largest allowed size. If that doesn't fit, the call waits, and
    calls with slow messages are refused to make room. The newest call is served first.
    """

    def __init__(self, budget: Budget, max_body: int) -> None:
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        self.largest = min(max_body, budget.limit)
        self._waiting: list[asyncio.Future[MemoryShare]] = []
        self._readers: dict[asyncio.Future[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        budget.when_room(self._has_room)

    async def begin(self) -> MemoryShare:
        """Reserve room for a message, or raise a Refusal."""
        share = self._budget.share(self.largest)
        if share is not None:
            return share
        waiter: asyncio.Future[MemoryShare] = self._loop.create_future()
        self._waiting.append(waiter)
        self._watch()
        try:
            await asyncio.wait((waiter,), timeout=ROOM_WITHIN)
        except asyncio.CancelledError:
            if waiter.done():
                waiter.result().close()
            raise
        finally:
            if not waiter.done():
                self._waiting.remove(waiter)
        if not waiter.done():
            raise self._budget.no_room()
        return waiter.result()

    async def read(self, context: Any, timeout: float) -> bytes:
        """Receive the message of a call with room. Raises a Refusal if it doesn't arrive in time."""
        reading = asyncio.ensure_future(context.read())
        self._readers[reading] = self._loop.time()
        self._watch()
        try:
            await asyncio.wait((reading,), timeout=timeout)
            if not reading.done():
                raise Refusal("timeout", "the message didn't arrive within serve.body_timeout")
            if reading.cancelled():
                raise Refusal("overloaded", "the message took too long to arrive while other requests waited; retry later")
            body = reading.result()
        finally:
            self._readers.pop(reading, None)
            reading.cancel()
            del reading  # its exception and this frame would otherwise keep each other alive
        if body is aio.EOF:
            raise Refusal("bad_data", "the call has no message")
        found: bytes = body
        return found

    def _has_room(self) -> None:
        if self._waiting:
            self._loop.call_soon_threadsafe(self._serve_waiting)

    def _serve_waiting(self) -> None:
        while self._waiting:
            share = self._budget.share(self.largest)
            if share is None:
                return
            self._waiting.pop().set_result(share)

    def _watch(self) -> None:
        if self._timer is None and self._waiting and self._readers:
            oldest = next(iter(self._readers.values()))
            self._timer = self._loop.call_at(max(oldest + SLOW_AFTER, self._loop.time()), self._give_up_the_oldest)

    def _give_up_the_oldest(self) -> None:
        self._timer = None
        if self._waiting and self._readers:
            reading, began = next(iter(self._readers.items()))
            if began + SLOW_AFTER <= self._loop.time():
                del self._readers[reading]
                reading.cancel()
        self._watch()


class GrpcServer:
    """gRPC server for traces and logs. ``threads`` decompress and parse requests."""

    def __init__(self, receiver: Receiver, threads: Executor) -> None:
        self._receiver = receiver
        self._threads = threads
        self._server: aio.Server | None = None
        self._reading: _Reading
        self._tls = TlsOptions()
        self._renew = False
        self.address = ""

    async def start(self, address: str, tls: TlsOptions) -> None:
        """Listen. Raises ConfigError if the address or the certificate can't be used."""
        options = self._receiver.options
        self._reading = _Reading(self._receiver.in_flight, options.max_body)
        self._server = server = aio.server(
            options=[
                ("grpc.max_receive_message_length", self._reading.largest),
                ("grpc.max_metadata_size", 16 * 1024),
                ("grpc.per_message_decompression", 0),
                ("grpc.so_reuseport", 0),  # a second server on the port must fail, not get half of the connections
                ("grpc.max_concurrent_streams", 128),
                ("grpc.max_allowed_incoming_connections", options.max_connections),
                ("grpc.http2.bdp_probe", 0),  # with it, each connection can buffer megabytes that nobody has read
                ("grpc.max_connection_age_ms", 300_000),  # so that senders discover added servers
                ("grpc.max_connection_age_grace_ms", 30_000),
                ("grpc.max_connection_idle_ms", 600_000),
                ("grpc.server_handshake_timeout_ms", 10_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ]
        )
        server.add_generic_rpc_handlers([self._service(name, signal) for name, signal in _SERVICES.items()])
        host, _ = split_address(address)
        try:
            credentials = self._credentials(tls)
            port = server.add_secure_port(address, credentials) if credentials is not None else server.add_insecure_port(address)
        except RuntimeError:
            port = 0
        if not port:
            raise ConfigError(f"serve.grpc: can't listen on {address}: the port is in use, or the address isn't on this machine")
        await server.start()
        self.address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    def _credentials(self, tls: TlsOptions) -> Any:
        self._tls = tls
        first = certificate_of(tls)
        if first is None:
            return None
        return grpc.dynamic_ssl_server_credentials(
            first, self._renewed, require_client_authentication=tls.client_ca_file is not None
        )

    def _renewed(self) -> Any:
        """Return the certificate if it changed. gRPC calls this for each new connection."""
        if not self._renew:
            return None
        self._renew = False
        try:
            return certificate_of(self._tls)
        except ConfigError as error:
            _log.warning("%s; the previous certificate stays in use", error)
            return None

    def reload(self) -> None:
        self._renew = True

    async def stop(self, grace: float) -> None:
        if self._server is not None:
            await self._server.stop(grace)

    def _service(self, name: str, signal: Signal) -> grpc.GenericRpcHandler:
        async def export(_: Any, context: Any) -> bytes:
            return await self._export(signal, context.invocation_metadata() or (), context)

        return grpc.method_handlers_generic_handler(name, {"Export": grpc.stream_unary_rpc_method_handler(export)})

    async def _export(self, signal: Signal, metadata: Any, context: Any) -> bytes:
        request = Caller.of({key: value for key, value in metadata if isinstance(value, str)}, client_of(context.peer()))
        caller.set(request)
        context.set_trailing_metadata(_id_of(request))
        try:
            found = await self._taken(signal, metadata, context)
        except Refusal as refusal:
            found = refusal.answer
        except asyncio.CancelledError:
            self._receiver.count("grpc", signal, "cancelled")
            raise
        except Exception as error:
            # An exception that isn't caught here becomes UNKNOWN for the sender, which then drops the data.
            self._receiver.engine.failed("grpc", error)
            found = FAULT
        if isinstance(found, Accepted):
            self._receiver.count("grpc", signal, "partial" if found.rejected else "ok")
            return response_of(signal, found).SerializeToString()  # type: ignore[no-any-return]
        self._receiver.refused("grpc", signal, found)
        # Not abort(): gRPC keeps its exception with the call, and so every frame of the traceback.
        context.set_trailing_metadata((*found.trailers(), *_id_of(request)))
        context.set_code(found.code)
        context.set_details(found.message)
        return b""

    async def _taken(self, signal: Signal, metadata: Any, context: Any) -> Accepted | Refused:
        receiver = self._receiver
        tenant = receiver.authorize(next((str(value) for key, value in metadata if key == "authorization"), None))
        client = client_of(context.peer())
        receiver.admit(client, tenant)
        size = 0
        try:
            share = await self._reading.begin()
            try:
                body = await self._reading.read(context, receiver.options.body_timeout)
                size = len(body)
                share.shrink(share.size - size)
                return await answer(
                    receiver,
                    self._threads,
                    ExportRequest(signal, body, sniffed(body), json=False, share=share, tenant=tenant),
                    "grpc",
                )
            finally:
                share.close()
        finally:
            receiver.release(client, size)


async def answer(receiver: Receiver, threads: Executor, request: ExportRequest, transport: str) -> Accepted | Refused:
    """Process a request on a thread and respond in time. The end of work frees its memory."""
    work = asyncio.get_running_loop().run_in_executor(threads, copy_context().run, _outcome, receiver, request, transport)
    request.share.keep_until(work)
    done, _ = await asyncio.wait((work,), timeout=ANSWER_WITHIN)
    return work.result() if done else _TOO_LATE


_TOO_LATE = Refusal("overloaded", "processing the request took too long; retry it, because repeated spans count once").answer


def _outcome(receiver: Receiver, request: ExportRequest, transport: str) -> Accepted | Refused:
    """Return the outcome, and never raise: a future would keep the exception and request."""
    try:
        return receiver.take(request)
    except Refusal as refusal:
        return refusal.answer
    except BaseException as error:  # SystemExit must not reach the event loop either
        receiver.engine.failed(transport, error)
        return FAULT


def _id_of(request: Caller) -> tuple[tuple[str, str], ...]:
    return (("x-request-id", request.request_id),)


def client_of(peer: str) -> str:
    """Return ``127.0.0.1`` for the peer ``ipv4:127.0.0.1:51000``."""
    kind, _, address = peer.partition(":")
    return address.rpartition(":")[0] if kind in ("ipv4", "ipv6") else peer


def response_of(signal: Signal, accepted: Accepted) -> Any:
    partial: dict[str, Any] | None = None
    if accepted.message:
        rejected = "rejected_spans" if signal == "traces" else "rejected_log_records"
        partial = {rejected: accepted.rejected, "error_message": accepted.message}
    response: Any = ExportTraceServiceResponse if signal == "traces" else ExportLogsServiceResponse
    return response(partial_success=partial)
