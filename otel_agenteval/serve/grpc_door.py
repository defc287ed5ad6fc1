"""OTLP over gRPC.

The export methods are declared as if clients sent streams: on the wire that is the same, and the handler runs when a call
begins, before its message has come. So a sender without a token, or one that comes while there is no room, is answered
before its megabytes are read, and one that never sends its message does not hold a thread.

Messages stay packed: gRPC's own gzip is slow, and this way the bound holds while they are unpacked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

import grpc
from grpc import aio
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceResponse
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ..config import TlsOptions, split_address
from ..errors import ConfigError
from ..spans.otlp import Signal
from .answers import Accepted, Refusal
from .inflate import sniffed
from .intake import Intake, Request

_log = logging.getLogger("otel_agenteval")

ANSWER_WITHIN = 4.5
"""Seconds. A Collector gives up after 5, and sends again."""
_METHODS: dict[str, Signal] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
}


class GrpcDoor:
    """A gRPC server for traces and logs.

    Args:
        intake: takes what comes.
        threads: where requests are unpacked and told apart.
    """

    def __init__(self, intake: Intake, threads: Executor) -> None:
        self._intake = intake
        self._threads = threads
        self._server: aio.Server | None = None
        self._tls = TlsOptions()
        self._renew = False
        self.address = ""

    async def start(self, address: str, tls: TlsOptions) -> None:
        """Listen.

        Raises:
            ConfigError: the address or the certificate cannot be used.
        """
        options = self._intake.options
        self._server = server = aio.server(
            options=[
                ("grpc.max_receive_message_length", options.max_body),
                ("grpc.max_metadata_size", 16 * 1024),
                ("grpc.per_message_decompression", 0),
                ("grpc.so_reuseport", 0),  # a second server on the port must fail, not take half of it
                ("grpc.max_concurrent_streams", 128),
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
        """The certificate for the next connections, if there is another one; gRPC asks at each."""
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
        try:
            accepted = await self._taken(signal, metadata, context)
        except Refusal as refusal:
            found = refusal
        except asyncio.CancelledError:
            self._intake.count("grpc", signal, "cancelled")
            raise
        except Exception as error:
            # What is not caught here is UNKNOWN to the sender, which then drops the data.
            self._intake.engine.failed("grpc", error)
            found = Refusal("error", "internal error")
        else:
            self._intake.count("grpc", signal, "partial" if accepted.rejected else "ok")
            return _response(signal, accepted)
        self._intake.count("grpc", signal, found.kind)
        await context.abort(found.code, found.message, found.trailers())
        raise AssertionError  # abort raises

    async def _taken(self, signal: Signal, metadata: Any, context: Any) -> Accepted:
        intake = self._intake
        intake.authorize(next((str(value) for key, value in metadata or () if key == "authorization"), None))
        client = client_of(context.peer())
        intake.admit(client)
        size = 0
        try:
            try:
                body = await asyncio.wait_for(context.read(), intake.options.body_timeout)
            except asyncio.TimeoutError:
                raise Refusal("timeout", "the message did not come in time (serve.body_timeout)") from None
            if body is aio.EOF:
                raise Refusal("bad_data", "the call has no message")
            size = len(body)
            return await answer(intake, self._threads, Request(signal, body, sniffed(body), json=False))
        finally:
            intake.release(client, size)


async def answer(intake: Intake, threads: Executor, request: Request) -> Accepted:
    """Have a request taken, and answer in time.

    Raises:
        Refusal: as :meth:`Intake.take`; or it took too long, and the sender should send it again.
    """
    work = asyncio.get_running_loop().run_in_executor(threads, intake.take, request)
    done, _ = await asyncio.wait((work,), timeout=ANSWER_WITHIN)
    if not done:
        work.add_done_callback(lambda late: late.cancelled() or late.exception())  # nobody waits for it any more
        raise Refusal("overloaded", "it took too long; spans that come twice count once")
    return work.result()


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


def client_of(peer: str) -> str:
    """The address in ``ipv4:127.0.0.1:51000``, without the port."""
    kind, _, rest = peer.partition(":")
    return rest.rpartition(":")[0] if kind in ("ipv4", "ipv6") else peer


def _response(signal: Signal, accepted: Accepted) -> bytes:
    if not accepted.message:
        return b""
    response = response_of(signal, accepted)
    return response.SerializeToString()  # type: ignore[no-any-return]


def response_of(signal: Signal, accepted: Accepted) -> Any:
    """The message that says what was accepted."""
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


def certificate_of(tls: TlsOptions) -> Any:
    """The certificate for gRPC; None when there is none.

    Raises:
        ConfigError: a file cannot be read.
    """
    if tls.cert_file is None or tls.key_file is None:
        return None
    try:
        cert, key = Path(tls.cert_file).read_bytes(), Path(tls.key_file).read_bytes()
        client_ca = Path(tls.client_ca_file).read_bytes() if tls.client_ca_file is not None else None
    except OSError as error:
        raise ConfigError(f"serve.tls: {error.filename}: cannot be read: {error.strerror}") from None
    return grpc.ssl_server_certificate_configuration([(key, cert)], client_ca)
