"""OTLP receiver for gRPC, built on the packages h2 and hpack, because limits must apply before a call is authenticated.

If a sender lacks a valid token, the call is refused when it starts, before its message arrives. Messages stay compressed until the
receiver reads them. Responses follow https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import asyncio
import base64
import re
import struct
from collections.abc import Mapping
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import RequestReceived, StreamEnded, StreamReset
from h2.exceptions import ProtocolError
from h2.settings import SettingCodes, Settings

from ..spans.otlp import Signal
from .admission import MemoryShare, too_large
from .auth import Tenant
from .http_server import HEAD_TIMEOUT, TLS_HANDSHAKE, WRITE_TIMEOUT, Pieces, SocketListener, client_of
from .logformat import Caller, caller
from .receiver import ExportRequest, Receiver
from .responses import FAULT, Accepted, Refusal, Refused, response_of

_METHODS: dict[str, Signal] = {
    "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "traces",
    "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "logs",
}
METADATA = 8 * 1024
"""Maximum decompressed bytes of a call's headers. A call that exceeds this limit ends its connection."""
_STREAMS = 100
_STRIKES = 100
"""Maximum number of consecutive non-OTLP, unauthenticated, or canceled calls. The next such call ends the connection."""
_AGE = 300.0
"""About this many seconds after its start, a connection is closed gracefully, so that senders discover new servers."""
_LAST_CALLS = 30.0
_WINDOW = 2**31 - 1
"""Flow-control window in bytes: the maximum, because the memory budget and the socket already limit unread data."""
_READ, _FIRST_READ = 256 * 1024, 4 * 1024
_PREFACE, _LARGEST_FRAME = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 16 * 1024
_FRAME = struct.Struct(">BHBBI")
_DATA, _HEADERS = 0x0, (0x1, 0x9)
_END_STREAM, _END_HEADERS, _PADDED = 0x1, 0x4, 0x8
_PREFIX = struct.Struct(">?I")
_GOAWAY = struct.pack(">IBIII", 8 << 8 | 0x7, 0, 0, _WINDOW, 0)
"""GOAWAY frame. After this frame, the sender starts no new calls on the connection."""
_GRPC_ONLY = "this port accepts only gRPC; send OTLP/HTTP to serve.http (default port 14318)"
_HTTP1 = re.compile(rb"[A-Z]{3,7} /")
_HTTP1_ANSWER = f"HTTP/1.1 400 {_GRPC_ONLY}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n".encode()


class GrpcServer(SocketListener):
    def __init__(self, receiver: Receiver, threads: Executor) -> None:
        super().__init__(receiver.options.max_connections, receiver.options.client_connections)
        self.buffer = memoryview(bytearray(_READ))
        """Buffer for data that a connection has just read. All connections share it, because the data is handled immediately."""
        self.receiver = receiver
        self.threads = threads

    async def _listen(self, host: str, port: int, **options: Any) -> asyncio.Server:
        return await asyncio.get_running_loop().create_server(lambda: _GrpcConnection(self), host, port, **options)

    def _make_room(self, client: str | None) -> bool:
        """Close the oldest connection that has no authenticated call, so that unknown clients can't block senders."""
        for one in self._connections:
            assert isinstance(one, _GrpcConnection)
            if not one.is_known and (client is None or client == one.client):
                one.is_known = True  # it is closing, and mustn't make room twice
                one.abort()
                return True
        return False


class _Protocol(H2Connection):
    MAX_CLOSED_STREAMS = 1024  # by default, h2 would keep 65,536 dictionary entries


_CONFIG = H2Configuration(
    client_side=False, header_encoding="latin-1",
    # calls aren't forwarded, and our names and values are valid
    validate_inbound_headers=False, normalize_inbound_headers=False, validate_outbound_headers=False, normalize_outbound_headers=False,
)  # fmt: skip


@dataclass(slots=True, eq=False)
class _GrpcCall:
    signal: Signal
    request: Caller
    tenant: Tenant | None
    encoding: str
    share: MemoryShare
    timer: asyncio.TimerHandle
    prefix: bytes = b""
    length: int = 0
    pieces: Pieces = field(default_factory=Pieces)
    task: asyncio.Task[None] | None = None


class _GrpcConnection(asyncio.BufferedProtocol):
    def __init__(self, server: GrpcServer) -> None:
        self._server = server
        self._receiver = server.receiver
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.client = ""
        self.is_known = False
        self._rest = b""
        self._calls: dict[int, _GrpcCall] = {}
        self._strikes = self._received = self._header_bytes = 0
        self._has_begun = self._is_refused = False
        self._closing = False
        self._protocol: Any = None

    # --- the connection

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self.client = client_of(transport)
        if not self._server.enter(self):
            transport.abort()
            return
        self._protocol = protocol = _Protocol(_CONFIG)
        limits = {
            SettingCodes.MAX_CONCURRENT_STREAMS: _STREAMS,
            SettingCodes.MAX_HEADER_LIST_SIZE: METADATA,
            SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW,
        }
        protocol.local_settings = Settings(client=False, initial_values=limits)
        protocol.decoder.max_header_list_size = METADATA
        protocol.initiate_connection()  # sent after the client's preface, so that HTTP/1 gets an answer
        protocol.increment_flow_control_window(_WINDOW - 65_535)
        self._timer = self._loop.call_later(HEAD_TIMEOUT, self._close_unless_known)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._protocol is not None:
            for stream in list(self._calls):
                self._cancel(stream)
            self._timer.cancel()
            self._protocol.__dict__.clear()  # it refers to itself, so that only the garbage collector would free it
            self._server.leave(self)
        self.ended.set_result(None)

    def pause_writing(self) -> None:
        """Stop reading from a sender that doesn't read its responses. After 30 seconds, end the connection."""
        self._transport.pause_reading()
        self._timer.cancel()
        self._timer = self._loop.call_later(WRITE_TIMEOUT, self.abort)

    def resume_writing(self) -> None:
        self._timer.cancel()
        self._transport.resume_reading()
        self._close_gracefully()

    def get_buffer(self, sizehint: int) -> memoryview:
        left = len(self._rest)
        buffer = self._server.buffer
        buffer[:left] = self._rest
        return buffer[left : _READ if self.is_known else left + _FIRST_READ]

    def buffer_updated(self, nbytes: int) -> None:
        if self._protocol is None or self._is_refused:
            return
        try:
            self._rest = self._frames(self._server.buffer[: len(self._rest) + nbytes])
            self._flush()
        except ProtocolError:
            self._flush()  # the reason
            self._close()
        except Exception as error:
            self._receiver.engine.failed("grpc", error)
            self.abort()

    def close_if_idle(self) -> None:
        self._close_gracefully(0.0)

    def abort(self) -> None:
        self._transport.abort()

    def _close_unless_known(self) -> None:
        if self.is_known:
            self._timer = self._loop.call_later(_AGE, self._close_gracefully)
        else:
            self._close_gracefully()

    def _close_gracefully(self, after: float = 1.0) -> None:
        """Announce the connection's end. Wait ``after`` seconds, then at most 30 more seconds for running calls."""
        self._closing = True
        if self._has_begun:
            self._transport.write(_GOAWAY)
        self._timer.cancel()
        self._timer = self._loop.call_later(after, self._close_if_done, _LAST_CALLS)

    def _close_if_done(self, within: float = 0.0) -> None:
        if not self._calls:
            self._close()
        elif within:
            self._timer = self._loop.call_later(within, self.abort)

    def _close(self) -> None:
        self._transport.close()
        self._timer.cancel()
        self._timer = self._loop.call_later(WRITE_TIMEOUT, self.abort)  # for a sender that doesn't read what is left

    def _flush(self) -> None:
        if self._has_begun:
            self._transport.write(self._protocol.data_to_send())

    def _frames(self, data: memoryview) -> bytes:
        at = 0 if self._has_begun else self._read_preface(data)
        while self._has_begun and len(data) - at >= _FRAME.size:
            high, low, kind, flags, stream = _FRAME.unpack_from(data, at)
            begin = at + _FRAME.size
            end = begin + (high << 16 | low)
            if end - begin > _LARGEST_FRAME or self._strikes > _STRIKES:
                raise ProtocolError
            if end > len(data):
                break
            if kind == _DATA:  # with h2, it would take ten times as long
                self._receive(stream, data[begin:end], flags)
            else:
                if kind in _HEADERS:
                    self._header_bytes = 0 if flags & _END_HEADERS else self._header_bytes + end - begin
                    if self._header_bytes > METADATA:
                        raise ProtocolError
                self._parse(data[at:end])
            at = end
        return bytes(data[at:])

    def _read_preface(self, data: memoryview) -> int:
        """Return the position after the HTTP/2 preface (0 if incomplete). Refuse HTTP/1 clients. For other data, raise ProtocolError."""
        if _PREFACE.startswith(bytes(data[: len(_PREFACE)])):
            if len(data) < len(_PREFACE):
                return 0
            self._parse(_PREFACE)
            self._has_begun = True
            return len(_PREFACE)
        if data[:2] == TLS_HANDSHAKE:
            self._server.refuse_tls(self.client)
        if _HTTP1.match(data) is None:
            raise ProtocolError
        self._is_refused = True
        caller.set(Caller.of({}, self.client))
        self._receiver.refused("grpc", "other", Refused("bad_type", _GRPC_ONLY, None))
        self._transport.write(_HTTP1_ANSWER)
        self._timer.cancel()
        self._timer = self._loop.call_later(1.0, self._close)  # closing now would make the kernel discard the answer
        return len(data)

    def _parse(self, frame: bytes | memoryview) -> None:
        for event in self._protocol.receive_data(frame):
            if isinstance(event, RequestReceived):
                self._begin(event.stream_id, dict(event.headers))  # type: ignore[arg-type]
            elif isinstance(event, StreamEnded):
                self._complete(event.stream_id)
            elif isinstance(event, StreamReset):
                self._cancel(event.stream_id)

    # --- calls

    def _begin(self, stream: int, named: Mapping[str, str]) -> None:
        request = Caller.of(named, self.client)
        caller.set(request)
        receiver = self._receiver
        signal = _METHODS.get(named.get(":path", ""))
        try:
            if named.get(":method") != "POST" or not named.get("content-type", "").startswith("application/grpc"):
                raise Refusal("bad_type", _GRPC_ONLY)
            if signal is None:
                raise Refusal("not_found", "unknown method; export traces or logs with OTLP")
            tenant = receiver.authorize(named.get("authorization"))
            self.is_known = True
            receiver.admit(self.client, tenant)
        except Refusal as refusal:
            self._strikes += refusal.answer.kind in ("unauthenticated", "bad_type", "not_found")
            self._respond(stream, signal or "other", request, refusal.answer)
            return
        except Exception as error:
            receiver.engine.failed("grpc", error)
            self._respond(stream, signal or "other", request, FAULT)
            return
        timer = self._loop.call_later(receiver.options.body_timeout, self._time_out, stream)
        share = MemoryShare(receiver.in_flight)
        self._calls[stream] = _GrpcCall(signal, request, tenant, named.get("grpc-encoding", ""), share, timer)

    def _receive(self, stream: int, data: memoryview, flags: int) -> None:
        self._received += len(data)
        if self._received > _WINDOW // 2:
            self._transport.write(struct.pack(">IBII", 4 << 8 | 0x8, 0, 0, self._received))  # WINDOW_UPDATE
            self._received = 0
        call = self._calls.get(stream)
        if call is None or call.task is not None:
            return
        if flags & _PADDED and data:
            data = data[1 : max(1, len(data) - data[0])]
        try:
            self._add_data(call, data)
        except Refusal as refusal:
            self._end(stream, refusal.answer)
            return
        if flags & _END_STREAM:
            self._protocol.streams[stream]._expected_content_length = None  # h2 hasn't seen the data
            self._parse(_FRAME.pack(0, 0, _DATA, _END_STREAM, stream))

    def _add_data(self, call: _GrpcCall, data: memoryview) -> None:
        missing = _PREFIX.size - len(call.prefix)
        if missing:
            call.prefix += data[:missing]
            data = data[missing:]
            if len(call.prefix) < _PREFIX.size:
                return
            _, call.length = _PREFIX.unpack(call.prefix)
            limit = self._receiver.options.max_body
            if call.length > limit:
                raise too_large(limit)
            self._receiver.in_flight.check(call.length)
        if call.pieces.size + len(data) > call.length:
            raise Refusal("bad_data", "the call has more than one message")
        call.share.grow(len(data))
        call.pieces.add(data)

    def _time_out(self, stream: int) -> None:
        self._end(stream, Refusal("timeout", "the message didn't arrive within serve.body_timeout").answer)
        self._flush()

    def _complete(self, stream: int) -> None:
        call = self._calls.get(stream)
        if call is None:
            return
        call.timer.cancel()
        if len(call.prefix) < _PREFIX.size or call.pieces.size < call.length:
            self._end(stream, Refusal("bad_data", "the call has no complete message").answer)
            return
        encoding = call.encoding if call.prefix[0] else ""
        request = ExportRequest(call.signal, call.pieces.joined(), encoding, json=False, share=call.share, tenant=call.tenant)
        call.task = self._loop.create_task(self._answer(stream, call, request))

    async def _answer(self, stream: int, call: _GrpcCall, request: ExportRequest) -> None:
        caller.set(call.request)
        try:
            found = await self._receiver.answer(request, "grpc", self._server.threads)
        except Exception as error:
            self._receiver.engine.failed("grpc", error)
            found = FAULT
        self._end(stream, found)
        self._flush()

    def _end(self, stream: int, found: Accepted | Refused | None) -> None:
        call = self._calls.pop(stream)
        call.timer.cancel()
        call.share.close()
        self._receiver.release(self.client, call.pieces.size)
        if found is not None:
            caller.set(call.request)
            self._strikes = 0
            self._respond(stream, call.signal, call.request, found)
        if self._closing:
            self._flush()
            self._close_if_done()

    def _cancel(self, stream: int) -> None:
        call = self._calls.get(stream)
        if call is not None:
            if call.task is not None:
                call.task.cancel()
            self._end(stream, None)
            self._receiver.count("grpc", call.signal, "cancelled")
            self._strikes += 1

    def _respond(self, stream: int, signal: str, request: Caller, found: Accepted | Refused) -> None:
        head = [(":status", "200"), ("content-type", "application/grpc"), ("grpc-accept-encoding", "identity,deflate,gzip")]
        end = [("x-request-id", request.request_id)]
        message: bytes | None = None
        if isinstance(found, Accepted):
            self._receiver.count("grpc", signal, "partial" if found.rejected else "ok")
            message = response_of(signal, found).SerializeToString()
            end.append(("grpc-status", "0"))
        else:
            self._receiver.refused("grpc", signal, found)
            end += [("grpc-status", str(found.code)), ("grpc-message", quote(found.message, " !\"#$&'()*+,/:;<=>?@[\\]^`{|}"))]
            end += [(name, base64.b64encode(value).rstrip(b"=").decode()) for name, value in found.trailers()]
        protocol = self._protocol
        with suppress(ProtocolError):  # the sender has cancelled the call, or its flow control blocks the response
            if message is None:
                protocol.send_headers(stream, head + end, end_stream=True)
            else:
                protocol.send_headers(stream, head)
                protocol.send_data(stream, _PREFIX.pack(False, len(message)) + message)
                protocol.send_headers(stream, end, end_stream=True)
        with suppress(ProtocolError):
            if not protocol.streams[stream].closed:
                protocol.reset_stream(stream)  # anything else that it sends is ignored
