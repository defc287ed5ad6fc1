"""HTTP requests with one deadline for name lookup, connection, proxy, headers, and body. httpx limits each wait separately, so a
host that sends one byte at a time could keep a request open forever.
"""

from __future__ import annotations

import functools
import logging
import ssl
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore
import httpx

from .clock import SYSTEM_CLOCK
from .contexts import setting
from .deadlines import Deadline, addresses_of
from .extras import installed
from .proxies import proxy_for

_DEADLINE: ContextVar[Deadline | None] = ContextVar("otel_agenteval_deadline", default=None)
_WRITTEN_AT_ONCE = 16_384
"""Maximum number of bytes to write between two checks of the deadline."""
_LIMITS = {"max_connections": 100, "max_keepalive_connections": 20}
_TRUSTING = threading.Lock()
# httpx logs complete addresses at INFO, and a webhook's or a media file's address can contain a secret.
logging.getLogger("httpx").addFilter(lambda _record: _DEADLINE.get() is None)


def bounded_by(deadline: Deadline) -> AbstractContextManager[None]:
    """Apply a deadline to all requests that this thread or task sends through :func:`pool_to`."""
    return setting(_DEADLINE, deadline)


def client_to(url: str, *, verify: ssl.SSLContext | None = None, headers: Mapping[str, str] | None = None) -> httpx.Client:
    return httpx.Client(
        transport=Transport(verify or trusted(), proxy_for(url)), trust_env=False, follow_redirects=False,
        headers={"accept-encoding": "identity", **(headers or {})},
    )  # fmt: skip


def answer_of(
    client: httpx.Client, method: str, url: str, *, seconds: float, most: int, **request: Any
) -> tuple[httpx.Response, bytes]:
    """Send a request, and return the response and up to ``most`` bytes of its body. ``seconds`` limits the complete request.
    Further arguments are passed to ``httpx.Client.stream``. If a request to a valid URL fails, raise an ``httpx.HTTPError``.
    """
    with (
        bounded_by(Deadline(SYSTEM_CLOCK, SYSTEM_CLOCK.monotonic() + seconds)),
        client.stream(method, url, timeout=seconds, **request) as response,
    ):
        body = bytearray()
        for piece in response.iter_raw():
            body += piece
            if len(body) >= most:
                break
        return response, bytes(body[:most])


def cause_of(error: BaseException) -> str:
    """Return the operating system's or TLS library's reason for a failed connection, or the error's type. Never include the URL."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return type(error).__name__ if error.__context__ is None else cause_of(error.__context__)


def trusted() -> ssl.SSLContext:
    """Return the default TLS context, based on ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` or on certifi's certificates."""
    with _TRUSTING:
        return _read_trusted()


_read_trusted = functools.cache(httpx.create_ssl_context)


def pool_to(verify: ssl.SSLContext, proxy: str | None, *, idle: float | None = 5.0) -> httpcore.ConnectionPool:
    """Return a connection pool that observes the deadline of :func:`bounded_by`. Unused connections are closed after ``idle``
    seconds, or never if ``idle`` is None. If the proxy requires a package that isn't installed, raise an ImportError.
    """
    given: dict[str, Any] = {"ssl_context": verify, "network_backend": _Backend(), "keepalive_expiry": idle, **_LIMITS}
    if proxy is None:
        return httpcore.ConnectionPool(**given)
    named = httpx.Proxy(proxy)
    given |= {"proxy_url": encoded(named.url), "proxy_auth": named.raw_auth}
    if named.url.scheme in ("http", "https"):
        return httpcore.HTTPProxy(**given)
    if installed("socksio"):
        return httpcore.SOCKSProxy(**given)
    raise ImportError("a SOCKS proxy requires the package socksio: pip install 'httpx[socks]'")


@functools.lru_cache(maxsize=64)
def encoded(text: httpx.URL | str) -> httpcore.URL:
    url = httpx.URL(text)
    return httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)


class Transport(httpx.BaseTransport):
    """Transport for an ``httpx.Client`` that uses the connections of :func:`pool_to`."""

    def __init__(self, verify: ssl.SSLContext, proxy: str | None = None) -> None:
        self._pool = pool_to(verify, proxy)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        assert isinstance(request.stream, httpx.SyncByteStream)
        with _faults_of_httpx():
            answer = self._pool.handle_request(
                httpcore.Request(
                    request.method, encoded(request.url), headers=request.headers.raw, content=request.stream,
                    extensions=request.extensions,
                )
            )  # fmt: skip
        assert isinstance(answer.stream, Iterable)
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(answer.stream), extensions=answer.extensions)

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _faults_of_httpx():
            yield from self._stream

    def close(self) -> None:
        close = getattr(self._stream, "close", None)
        if close is not None:
            close()


@contextmanager
def _faults_of_httpx() -> Iterator[None]:
    try:
        yield
    except (
        httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, httpcore.UnsupportedProtocol,
    ) as error:  # fmt: skip
        raise getattr(httpx, type(error).__name__)(str(error)) from error


class _Backend(httpcore.NetworkBackend):
    _plain = httpcore.SyncBackend()

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, local_address: str | None = None, socket_options: Any = None
    ) -> httpcore.NetworkStream:
        deadline = _DEADLINE.get()
        if deadline is None:
            return _Stream(self._plain.connect_tcp(host, port, timeout, local_address, socket_options))
        try:
            found = addresses_of(host, port, deadline)
            for number, (*_, address) in enumerate(found, 1):
                share = deadline.left() / (len(found) - number + 1)
                try:
                    return _Stream(self._plain.connect_tcp(str(address[0]), port, share, local_address, socket_options))
                except (httpcore.ConnectError, httpcore.ConnectTimeout):
                    if number == len(found):
                        raise
        except TimeoutError:
            raise httpcore.ConnectTimeout("timed out") from None
        except OSError as error:
            raise httpcore.ConnectError(type(error).__name__) from None
        raise httpcore.ConnectError("the host name has no address")


class _Stream(httpcore.NetworkStream):
    """Connection whose reads and writes end at the deadline of :func:`bounded_by`."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _seconds_left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        view = memoryview(buffer)
        for start in range(0, len(buffer), _WRITTEN_AT_ONCE):
            self._stream.write(bytes(view[start : start + _WRITTEN_AT_ONCE]), _seconds_left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, _seconds_left(timeout, httpcore.ConnectTimeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _seconds_left(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    deadline = _DEADLINE.get()
    if deadline is None:
        return timeout
    try:
        return deadline.left()
    except TimeoutError:
        raise late("timed out") from None
