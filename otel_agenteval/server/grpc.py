"""OTLP over gRPC.

The export methods are declared as if clients sent streams: on the wire that is the same, and the handler runs when a call
begins, before its message has come. So a sender without a token, or one that calls while there is no room, gets its response
before its megabytes are read, and one that never sends its message does not hold a thread.

Messages stay packed: gRPC's own gzip is slow, and this way the bound holds while they are unpacked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
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
from .admission import Budget, Share
from .certificates import certificate_of
from .inflate import sniffed
from .logformat import Caller, caller
from .receiver import Receiver, Request
from .responses import FAULT, Accepted, Refusal, Refused

_log = logging.getLogger("otel_agenteval")

ANSWER_WITHIN = 4.5
"""Seconds. A Collector gives up after 5, and sends again."""
_METHODS: dict[str, Signal] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
}


_PATIENCE = 1.0
"""Seconds that a message may take to come in while other calls wait for the room that it is given."""
_WAIT = 2.0
"""Seconds that a call waits for room before its sender is asked to retry."""


class _Reading:
    """Room for messages that are being read.

    gRPC gives a message when it has all of it, and does not give its size before. So while a message is read, it is charged as the
    largest one that is allowed. When there is no room for another one, the newest call waits, and calls whose messages take long to
    arrive give up their room.
    """

    def __init__(self, budget: Budget, max_body: int) -> None:
        self._budget = budget
        self._loop = asyncio.get_running_loop()
        self.largest = min(max_body, budget.limit)
        self._waiting: list[asyncio.Future[Share]] = []
        self._readers: dict[asyncio.Future[Any], float] = {}
        self._timer: asyncio.TimerHandle | None = None
        budget.when_room(self._has_room)

    async def begin(self) -> Share:
        """Room for a message.

        Raises:
            Refusal: there is none.
        """
        share = self._budget.share(self.largest)
        if share is not None:
            return share
        waiter: asyncio.Future[Share] = self._loop.create_future()
        self._waiting.append(waiter)
        self._watch()
        try:
            await asyncio.wait((waiter,), timeout=_WAIT)
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
        """The message of a call that has room for it.

        Raises:
            Refusal: it did not come in time, or there is none.
        """
        reading = asyncio.ensure_future(context.read())
        self._readers[reading] = self._loop.time()
        self._watch()
        try:
            await asyncio.wait((reading,), timeout=timeout)
            if not reading.done():
                raise Refusal("timeout", "the message did not come in time (serve.body_timeout)")
            if reading.cancelled():
                raise Refusal("overloaded", "the message takes too long to arrive while others wait")
            body = reading.result()
        finally:
            self._readers.pop(reading, None)
            reading.cancel()
            del reading  # what it raised would hold this frame, and this frame it
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
            self._timer = self._loop.call_at(max(oldest + _PATIENCE, self._loop.time()), self._give_up_the_oldest)

    def _give_up_the_oldest(self) -> None:
        self._timer = None
        if self._waiting and self._readers:
            reading, began = next(iter(self._readers.items()))
            if began + _PATIENCE <= self._loop.time():
                del self._readers[reading]
                reading.cancel()
        self._watch()


class GrpcServer:
    """A gRPC server for traces and logs.

    Args:
        receiver: accepts or refuses the requests.
        threads: where requests are unpacked and read.
    """

    def __init__(self, receiver: Receiver, threads: Executor) -> None:
        self._receiver = receiver
        self._threads = threads
        self._server: aio.Server | None = None
        self._reading: _Reading
        self._tls = TlsOptions()
        self._renew = False
        self.address = ""

    async def start(self, address: str, tls: TlsOptions) -> None:
        """Listen.

        Raises:
            ConfigError: the address or the certificate cannot be used.
        """
        options = self._receiver.options
        self._reading = _Reading(self._receiver.in_flight, options.max_body)
        self._server = server = aio.server(
            options=[
                ("grpc.max_receive_message_length", self._reading.largest),
                ("grpc.max_metadata_size", 16 * 1024),
                ("grpc.per_message_decompression", 0),
                ("grpc.so_reuseport", 0),  # a second server on the port must fail, not take half of it
                ("grpc.max_concurrent_streams", 128),
                ("grpc.max_allowed_incoming_connections", options.max_connections),
                ("grpc.http2.bdp_probe", 0),  # else each connection may grow to hold megabytes that are not read yet
                ("grpc.max_connection_age_ms", 300_000),  # so that senders find servers that were added
                ("grpc.max_connection_age_grace_ms", 30_000),
                ("grpc.max_connection_idle_ms", 600_000),
                ("grpc.server_handshake_timeout_ms", 10_000),
                ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
                ("grpc.keepalive_permit_without_calls", 1),
            ]
        )
        server.add_generic_rpc_handlers((_Methods(self._export),))
        host, _ = split_address(address)
        try:
            credentials = self._credentials(tls)
            port = server.add_secure_port(address, credentials) if credentials is not None else server.add_insecure_port(address)
        except RuntimeError:
            port = 0
        if not port:
            raise ConfigError(f"serve.grpc: {address} cannot be opened: in use, or no address of this machine")
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
        """The certificate for the next connections, if there is another one; gRPC calls this at each."""
        if not self._renew:
            return None
        self._renew = False
        try:
            return certificate_of(self._tls)
        except ConfigError as error:
            _log.warning("%s; the one before stays in use", error)
            return None

    def reload(self) -> None:
        """Read the certificate again."""
        self._renew = True

    async def stop(self, grace: float) -> None:
        """Take no new calls; let those that run end within ``grace`` seconds."""
        if self._server is not None:
            await self._server.stop(grace)

    async def _export(self, signal: Signal, metadata: Any, context: Any) -> bytes:
        request = Caller.of({key: value for key, value in metadata or () if isinstance(value, str)}, client_of(context.peer()))
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
            # An exception that is not caught here becomes UNKNOWN for the sender, which then drops the data.
            self._receiver.engine.failed("grpc", error)
            found = FAULT
        if isinstance(found, Accepted):
            self._receiver.count("grpc", signal, "partial" if found.rejected else "ok")
            return _response(signal, found)
        self._receiver.refused("grpc", signal, found)
        # Not abort(): what it raises is kept with the call, and holds every frame that it came through.
        context.set_trailing_metadata((*found.trailers(), *_id_of(request)))
        context.set_code(found.code)
        context.set_details(found.message)
        return b""

    async def _taken(self, signal: Signal, metadata: Any, context: Any) -> Accepted | Refused:
        receiver = self._receiver
        tenant = receiver.authorize(next((str(value) for key, value in metadata or () if key == "authorization"), None))
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
                    receiver, self._threads, Request(signal, body, sniffed(body), json=False, share=share, tenant=tenant), "grpc"
                )
            finally:
                share.close()
        finally:
            receiver.release(client, size)


async def answer(receiver: Receiver, threads: Executor, request: Request, transport: str) -> Accepted | Refused:
    """Receive a request, and respond in time. Its share is given back when the work ends, however late that is."""
    work = asyncio.get_running_loop().run_in_executor(threads, copy_context().run, _outcome, receiver, request, transport)
    request.share.keep_until(work)
    done, _ = await asyncio.wait((work,), timeout=ANSWER_WITHIN)
    return work.result() if done else _TOO_LATE


_TOO_LATE = Refusal(
    "overloaded", "receiving the request took too long; it can be sent again, because spans that come twice count once"
).answer


def _outcome(receiver: Receiver, request: Request, transport: str) -> Accepted | Refused:
    """The outcome of a request. Nothing is raised: an exception that a future keeps would hold the request with it."""
    try:
        return receiver.take(request)
    except Refusal as refusal:
        return refusal.answer
    except BaseException as error:  # SystemExit too must not reach the event loop
        receiver.engine.failed(transport, error)
        return FAULT


class _Methods(grpc.GenericRpcHandler):  # type: ignore[misc]  # grpc has no types
    def __init__(self, export: Callable[[Signal, Any, Any], Awaitable[bytes]]) -> None:
        self._export = export

    def service(self, handler_call_details: Any) -> Any:
        signal = _METHODS.get(handler_call_details.method)
        if signal is None:
            return None
        metadata = handler_call_details.invocation_metadata

        async def handler(_: Any, context: Any) -> bytes:
            return await self._export(signal, metadata, context)

        return grpc.stream_unary_rpc_method_handler(handler)


def _id_of(request: Caller) -> tuple[tuple[str, str], ...]:
    """The trailer by which a sender finds its request in our log."""
    return (("x-request-id", request.request_id),)


def client_of(peer: str) -> str:
    """The address in ``ipv4:127.0.0.1:51000``, without the port."""
    kind, _, address = peer.partition(":")
    return address.rpartition(":")[0] if kind in ("ipv4", "ipv6") else peer


def _response(signal: Signal, accepted: Accepted) -> bytes:
    if not accepted.message:
        return b""
    response = response_of(signal, accepted)
    return response.SerializeToString()  # type: ignore[no-any-return]


def response_of(signal: Signal, accepted: Accepted) -> Any:
    """The message for a request that was accepted, with what of it was rejected."""
    if signal == "traces":
        response: Any = ExportTraceServiceResponse()
        if accepted.message:
            response.partial_success.rejected_spans = accepted.rejected
    else:
        response = ExportLogsServiceResponse()
        if accepted.message:
            response.partial_success.rejected_log_records = accepted.rejected
    if accepted.message:
        response.partial_success.error_message = accepted.message
    return response
