"""HTTP client that posts JSON to a model server and interprets the replies.

Instrumentations in this process don't record these requests, so the requests don't become turns. Error messages never contain the
API key or turn content. This module doesn't log.

Each concurrent request has its own connection. A shared pool would check all connections for each request. With 200 connections,
these checks would take several times as long as the rest of the request.
"""

from __future__ import annotations

import codecs
import datetime
import os
import re
import secrets
import ssl
import threading
import urllib.parse
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from ...config.types import http_url
from ...core import jsonio
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.deadlines import Deadline
from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...core.pacing import LONGEST_WAIT, retry_after
from ...core.proxies import proxy_for
from ...core.threads import unseen
from .providers.bedrock import Sign

_EPOCH_SECONDS = 1e9  # larger numbers are times (seconds since 1970), smaller numbers are durations
_MAX_REDIRECTS = 3
_DEFAULT_HEADERS = {"User-Agent": "otel-agenteval", "Accept": "application/json"}
_FRAMING_HEADERS = frozenset(("content-length", "transfer-encoding"))
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_RETRIED_STATUSES = frozenset((408, 409, 424, 429, 498))
"""HTTP statuses to retry in addition to 5xx. Bedrock sends 424 if the model failed, and Groq sends 498 if capacity is exhausted."""
_UNSUPPORTED_STATUSES = frozenset((501, 505))
"""HTTP statuses of servers that don't support a feature, such as llama.cpp without ``--embeddings``."""
_MAX_REJECTION = 65_536
"""Maximum bytes of an error reply (any status except 2xx). Longer bodies are truncated."""
_IDLE_SECONDS = 30.0
_INFLATED_AT_ONCE = 65_536
_MEANINGS = {
    401: "api_key is missing or invalid", 402: "the account has no credit", 403: "api_key lacks permission",
    404: "path or model not found; base_url must end with the API version, such as /v1", 413: "the request is too large",
    429: "too many requests", 501: "the server doesn't support this",
}  # fmt: skip
_HINTS = {
    "context": (
        "context_length", "context length", "context window", "too long", "too many tokens", "maximum context", "context size",
        "context_size", "context limit", "token count", "maximum prompt length", "maximum model length", "too large to process",
    ),
    "format": (
        "response_format", "json_object", "json_schema", "responsemimetype", "responsejsonschema", "output_config", "outputconfig",
        "textformat", "text.format", "structured output", "structured-output", "structured_output", "json mode", "guided_", "guided decoding", "tool_choice", "schema", "grammar", "json_validate_failed", "failed_generation",
    ),
    "system": (
        "system role", "'system'", '"system"', "`system`", "system message", "system instruction", "developer instruction", "must alternate",
        "roles must", "only user and",
    ),
    "temperature": ("temperature",),
    "stream": ("streaming", "stream mode", "stream parameter", "stream must", "stream=", "'stream'", '"stream"', "`stream`"),
    "parameter": ("not supported", "unsupported", "unknown", "unrecognized", "unexpected", "extra input", "parameter", "bad request"),
    "refusal": ("content_filter", "content management policy"),
    "credit": ("insufficient_quota", "credit balance", "insufficient balance", "billing_hard_limit", "budget_exceeded"),
    "batch": ("batch", "array too long", "above_max_length", "too many inputs"),
    "key": ("api key not valid", "api_key_invalid"),
}  # fmt: skip
"""Mapping from a rejection's reason to words in the error reply that indicate this reason."""
_SETTING_HINTS = frozenset(("format", "temperature", "parameter", "system", "stream"))
_MAX_REASON = 2_000
"""Below this size in bytes, a 500 reply that names the reply format is final. A longer reply probably quotes the request."""
_RESET_HEADER = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:reset(?:-(\w+))?|(\w+)-reset)")
"""Pattern for names of headers that contain a rate limit's reset time. One of the groups contains the limit's name."""
_TIME_SPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_RETRY_INFO = re.compile(r'"retrydelay"\s*:\s*"(\d+(?:\.\d+)?)s"')  # in Google's replies
_SSE_DATA = re.compile(rb"^data:[ \t]*(\{.*)$", re.MULTILINE)
_ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/moderations")


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class BrokenAnswer(ConnectionError):
    """Error for a reply that is incomplete or isn't valid HTTP/1.1. The message doesn't quote the reply."""


class ReplyTooLarge(Exception):
    """Error for a successful reply that exceeds the size limit. The error's argument is the HTTP status."""


class JsonTransport:
    """Client that posts JSON to one server. Thread-safe. Each thread sends one request at a time. The user configures
    ``own_headers``, which replace ``headers`` of the same name. ``timeout`` is in seconds, and ``largest_reply`` is in bytes.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        own_headers: Mapping[str, str],
        *,
        timeout: float,
        clock: Clock,
        largest_reply: int,
        sign: Sign | None,
    ) -> None:
        try:
            self.base_url = http_url(base_url)
        except ValueError as error:
            raise ConfigError(f"base_url: {error}") from None
        path = next((path for path in _ENDPOINTS if self.base_url.endswith(path)), None)
        if path is not None:
            raise ConfigError(f"base_url: must end with the API version, such as /v1, without {path}")
        own = {name: value for name, value in own_headers.items() if name.lower() not in _FRAMING_HEADERS}
        own_names = {name.lower() for name in own}
        kept = {name: value for name, value in {**_DEFAULT_HEADERS, **headers}.items() if name.lower() not in own_names}
        for name, value in {**kept, **own}.items():  # httpx would quote an invalid header in its exception
            if _HEADER_NAME.fullmatch(name) is None:
                raise ConfigError(f"headers: invalid header name, got {name!r}. Use letters, digits, and hyphens")
            if not (value.isascii() and value.isprintable()):
                option = "api_key" if name.lower() in ("authorization", "x-api-key", "x-goog-api-key") else f"headers.{name}"
                raise ConfigError(f"{option}: must contain only printable ASCII characters")
        self._headers = {**kept, **own, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._sign = sign
        self._timeout = timeout
        self._clock = clock
        self._largest_reply = largest_reply
        self._connections = Connections(self.base_url, clock)

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    def post(self, path: str, content: bytes, until: float) -> Reply:
        """Send a request without retries, and return the reply. If no reply arrives, raise a JudgeError. ``until`` is the monotonic
        deadline. Redirects (307 and 308) are followed only on the same server, or to HTTPS on the same host.
        """
        from ...core.outbound import bounded_by, encoded  # imports httpx

        url = f"{self.base_url}{path}"
        for _ in range(_MAX_REDIRECTS):
            now = self._clock.monotonic()
            seconds = min(self._timeout, until - now)
            if seconds <= 0:
                raise JudgeError("no reply before the deadline", "timeout")
            # not sampled, so that a gateway that traces its calls doesn't send judge calls to a sidecar as turns
            sent = {"traceparent": f"00-{secrets.token_hex(16)}-{secrets.token_hex(8)}-00", **self._headers}
            signed_headers = sent if self._sign is None else self._sign(url, content, sent)
            deadline = Deadline(self._clock, now + seconds)
            failure: NotAnswered | None = None
            try:
                headers = [(name.encode("ascii"), value.encode("ascii")) for name, value in signed_headers.items()]
                with (
                    unseen(), self._connections.lend() as pool, bounded_by(deadline),
                    pool.stream("POST", encoded(url), headers=headers, content=content) as response,
                ):  # fmt: skip
                    reply = _read(response, self._largest_reply)
                deadline.left()  # raises a TimeoutError after the deadline
            except Exception as error:
                failure = self._not_answered(error, seconds)
                if failure is None:
                    raise
            if failure is not None:
                raise failure  # outside the handler, so that it isn't chained to an exception that contains headers or the reply
            target = _redirect_target(reply, url)
            if target is None:
                break
            url = target
        return reply

    def _not_answered(self, error: Exception, seconds: float) -> NotAnswered | None:
        import httpcore

        if isinstance(error, httpcore.LocalProtocolError):
            error = ValueError()
        elif isinstance(error, (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, zlib.error)):
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, OSError):  # the system or TLS error behind it, if any
                cause = cause.__cause__ or cause.__context__
            error = cause or BrokenAnswer(f"the reply isn't valid HTTP/1.1 ({type(error).__name__})")
        if isinstance(error, (TimeoutError, httpcore.TimeoutException)):
            when = f"within {seconds:g} s" if seconds == self._timeout else "before the deadline"
            return NotAnswered(f"no reply {when}", "timeout", transient=True)
        if isinstance(error, OSError):
            reason = str(error) if isinstance(error, BrokenAnswer) else type(error).__name__
            if isinstance(error, ssl.SSLCertVerificationError):
                reason = (
                    f"certificate isn't trusted ({error.verify_message}); set SSL_CERT_FILE to a file with trusted certificates"
                )
            return NotAnswered(f"can't reach {self.base_url}: {reason}", "unreachable", transient=True)
        if isinstance(error, ReplyTooLarge):
            return NotAnswered("the reply exceeds the size limit", "reply_too_large", status=error.args[0])
        if isinstance(error, ImportError):
            return NotAnswered("a SOCKS proxy requires an extra package; run pip install 'httpx[socks]'", "unreachable")
        if isinstance(error, (ValueError, RuntimeError)):
            return NotAnswered(f"can't send the request to {self.base_url}: {type(error).__name__}", "unreachable")
        return None

    def close(self) -> None:
        self._connections.close()


class Connections:
    def __init__(self, url: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._idle: deque[tuple[Any, float]] = deque()
        self._times_closed = 0
        """Number of calls to :meth:`close`. If this number changes while a connection is lent, the connection isn't kept."""

    @contextmanager
    def lend(self) -> Iterator[Any]:
        """Lend a connection to the block. If the server closed the connection, the next request reopens the connection.

        The most recently used connection is lent first, because that connection is most likely still open.
        """
        from ...core.outbound import pool_to, trusted  # imports httpx

        with self._lock:
            if self._process != os.getpid():  # after a fork connections belong to the parent
                self._reset()
            times_closed = self._times_closed
            idle = self._idle.pop()[0] if self._idle else None
        connection = idle or pool_to(trusted(), proxy_for(self._url), idle=None)
        try:
            yield connection
        finally:
            now = self._clock.monotonic()
            with self._lock:
                to_close = []
                if self._process == os.getpid() and times_closed == self._times_closed:
                    self._idle.append((connection, now))
                    while self._idle[0][1] < now - _IDLE_SECONDS:
                        to_close.append(self._idle.popleft()[0])
                else:
                    to_close.append(connection)
            for unused in to_close:
                unused.close()

    def close(self) -> None:
        with self._lock:
            idle = [] if self._process != os.getpid() else [connection for connection, _ in self._idle]
            self._idle.clear()
            self._times_closed += 1
        for connection in idle:
            connection.close()


def _redirect_target(reply: Reply, url: str) -> str | None:
    """Return the redirect target, or None without a redirect. If the target is on another server, raise NotAnswered."""
    location = reply.headers.get("location")
    if reply.status not in (307, 308) or not location:
        return None
    target = urllib.parse.urljoin(url, location)
    old, new = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
    is_upgrade = old.scheme == "http" and (new.scheme, new.port) == ("https", None)
    if old.hostname == new.hostname and (is_upgrade or (old.scheme, old.port) == (new.scheme, new.port)):
        return target
    status = reply.status
    raise NotAnswered("redirected to another server. Set base_url to its address", f"http_{status}", status=status)


# --- replies


def _read(response: Any, largest: int) -> Reply:
    """Read a response and its body. If a 2xx body exceeds ``largest`` bytes, raise ReplyTooLarge. Truncate error bodies."""
    status = response.status
    if status < 200:
        raise BrokenAnswer("the server switched to another protocol")
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    pieces = response.iter_stream()
    if headers.get("content-encoding", "").lower() in ("gzip", "deflate"):
        pieces = _decompressed(pieces)
    limit = largest if status < 300 else _MAX_REJECTION
    body = bytearray()
    for piece in pieces:
        body += piece
        if len(body) > limit:
            if status < 300:
                raise ReplyTooLarge(status)
            break
    return Reply(status, headers, bytes(body[:limit]))


def _decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a body piece by piece. Some servers compress bodies even though the request doesn't allow compression."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    for piece in pieces:
        compressed = piece
        while compressed and not inflater.eof:
            yield inflater.decompress(compressed, _INFLATED_AT_ONCE)
            compressed = inflater.unconsumed_tail


def object_in(reply: Reply, request: bytes, clock: Clock) -> dict[str, Any]:
    """Return the JSON object in a reply. For a rejection or an invalid reply, raise :class:`NotAnswered`."""
    status, headers, body = reply
    if not 200 <= status < 300:
        raise _rejection(reply, status, request, clock)
    try:
        text = body.removeprefix(codecs.BOM_UTF8)
        if headers.get("content-type", "").startswith("text/event-stream"):
            events = [jsonio.loads(data) for data in _SSE_DATA.findall(text)]
            answer = next((event for event in events if event.get("error")), {"events": events})
        else:
            answer = jsonio.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise NotAnswered("the reply isn't a JSON object", "invalid_answer", status=status)
    error = answer.get("error")
    if error and not answer.keys() & {"choices", "output", "content", "candidates", "data"}:
        code = error.get("code") if isinstance(error, Mapping) else None  # some routers send an error's status only here
        code = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code
        if type(code) is int and 400 <= code < 600:
            raise _rejection(reply, code, request, clock)
        hints = _hints_in(body, request)
        error_type = "context_overflow" if "context" in hints else "insufficient_quota" if "credit" in hints else "server_error"
        raise NotAnswered("the server returned an error with status 200", error_type, status=status, hints=hints)
    return answer


def _rejection(reply: Reply, status: int, request: bytes, clock: Clock) -> NotAnswered:
    hints = _hints_in(reply.body, request)
    meaning = f" ({_MEANINGS[status]})" if status in _MEANINGS else ""
    error_type = f"http_{status}"
    is_transient = status in _RETRIED_STATUSES or (status >= 500 and status not in _UNSUPPORTED_STATUSES)
    if status == 500 and "format" in hints and len(reply.body) < _MAX_REASON:
        is_transient = False
    if status in (400, 413, 422, 500) and "context" in hints:
        meaning, error_type, is_transient = " (the turn doesn't fit into the model's context)", "context_overflow", False
    elif status == 402 or (status in (400, 403, 429) and "credit" in hints):
        meaning, error_type, is_transient = " (the account has no credit)", "insufficient_quota", False
    elif status == 400 and "refusal" in hints:
        meaning, error_type = " (a content filter declined)", "refusal"
    elif status == 400 and "key" in hints:
        meaning = f" ({_MEANINGS[401]})"
    return NotAnswered(
        f"rejected with status {status}{meaning}", error_type, status=status, transient=is_transient,
        retry_after=_requested_wait(reply, clock) if is_transient else 0.0, hints=hints,
    )  # fmt: skip


def _hints_in(body: bytes, request: bytes) -> frozenset[str]:
    """Return the keys of ``_HINTS`` that a rejection indicates. Words from the request are ignored, unless they name a setting."""
    rejection, quotable = body.decode("utf-8", "replace").lower(), request.decode("utf-8", "replace").lower()
    if not rejection.strip():  # the reason can be any parameter
        return frozenset(("parameter",))
    hints = set()
    for hint, spellings in _HINTS.items():
        if any(spelling in rejection and (hint in _SETTING_HINTS or spelling not in quotable) for spelling in spellings):
            hints.add(hint)
    return frozenset(hints)


def _requested_wait(reply: Reply, clock: Clock) -> float:
    """Return the wait in seconds that ``reply`` requests or, without such a request, the seconds until its rate limits reset."""
    headers = reply.headers
    wait = retry_after(headers.get("retry-after-ms"), clock) / 1_000 or retry_after(headers.get("retry-after"), clock)
    if wait:
        return wait
    waits = [0.0]
    for name, value in headers.items():
        reset = _RESET_HEADER.fullmatch(name)  # "x-ratelimit-reset-tokens", "anthropic-ratelimit-tokens-reset"
        if reset is not None:
            limit = reset[1] or reset[2] or ""
            remaining = (headers.get(f"{prefix}ratelimit-{suffix}") for prefix in ("x-", "anthropic-", "") for suffix in
                         (f"remaining-{limit}", f"{limit}-remaining", "remaining"))  # fmt: skip
            if next((count for count in remaining if count is not None), "0") in ("0", "0.0"):
                waits.append(_seconds_in(value.strip(), clock))
    retry_info = None if any(waits) else _RETRY_INFO.search(reply.body.decode("utf-8", "replace").lower())
    return min(LONGEST_WAIT, float(retry_info[1]) if retry_info else max(waits))


def _seconds_in(value: str, clock: Clock) -> float:
    """Convert a number of seconds, a duration (``6m0s``), or a time (``2026-11-30T12:00:00Z``) to seconds from now."""
    span = _TIME_SPAN.fullmatch(value) if value else None
    if span is not None:
        hours, minutes, seconds, ms = (float(part or 0) for part in span.groups())
        return hours * 3_600 + minutes * 60 + seconds + ms / 1_000
    try:
        number = float(value)
    except ValueError:
        try:
            number = datetime.datetime.fromisoformat(value.replace("Z", "+00:00")).timestamp()
        except ValueError:
            return 0.0
    return max(0.0, number - clock.time_ns() / 1e9) if number > _EPOCH_SECONDS else max(0.0, number)
