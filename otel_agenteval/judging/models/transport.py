"""HTTP client that posts JSON to a model server within a deadline.

Connection errors and the statuses 408, 409, 424, 498 and 5xx are retried after random pauses, and not before the time that the
server requests. Rate limits (429) are retried until the deadline. An account without credit isn't retried, because that doesn't change in seconds. Requests are hidden from
instrumentations, so they never become a turn. Errors contain neither the key nor content, and nothing is logged here.
"""

from __future__ import annotations

import codecs
import datetime
import itertools
import random
import re
import ssl
import threading
import urllib.parse
from collections.abc import Callable, Mapping
from typing import Any

from ...config.types import http_url
from ...core import jsonio
from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...core.pacing import LONGEST_WAIT, CircuitBreaker, TokenBucket, backoff, retry_after
from ...core.threads import unseen
from .aws import Sign
from .connections import Bounds, BrokenAnswer, Connections, ReplyTooLarge
from .request_options import RequestOptions

_EPOCH_SECONDS = 1e9
"""Numbers above are times, not spans."""
_MOST_REDIRECTS = 3
_OURS = {"User-Agent": "otel-agenteval", "Accept": "application/json"}
_FRAMING = frozenset(("content-length", "transfer-encoding"))
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_RATE_LIMITED = 429
_RETRIED = frozenset((408, 409, 424, 429, 498))
"""Statuses to retry in addition to 5xx. With 424, Bedrock's model failed. With 498, Groq has no capacity."""
_NEVER = frozenset((501, 505))
"""Statuses of servers without the feature, such as llama.cpp without ``--embeddings``."""
_ATTEMPTS = 3
_FAILURES_UNTIL_DOWN, _HOLD = 5, 30.0
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_LONGEST_REFUSAL = 65_536
_MEANINGS = {
    401: "api_key is missing or invalid", 402: "the account has no credit", 403: "api_key lacks permission",
    404: "path or model not found; base_url must end with the API's version, such as /v1", 413: "the request is too large",
    429: "too many requests", 501: "the server doesn't support this",
}  # fmt: skip
_HINTS = {
    "context": (
        "context_length", "context length", "context window", "too long", "too many tokens", "maximum context", "context size",
        "context_size", "context limit", "token count", "maximum prompt length", "maximum model length", "too large to process",
    ),
    "format": (
        "response_format", "json_object", "json_schema", "responsemimetype", "responsejsonschema", "output_config", "outputconfig",
        "textformat", "text.format", "structured output", "json mode", "schema", "grammar", "json_validate_failed", "failed_generation",
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
"""Words in a rejection that hint at its reason."""
_OF_SETTINGS = frozenset(("format", "temperature", "parameter", "system", "stream"))
_LONGEST_REASON = 2_000
"""Maximum length of a server error that can name a setting. Longer ones quote the request."""
_RESETS = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:reset(?:-(\w+))?|(\w+)-reset)")
"""Headers with the time at which a limit ends, by what it limits."""
_SPAN = re.compile(r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?")
_RETRY_INFO = re.compile(r'"retrydelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
"""Retry time in the body of Google's replies."""
_EVENT = re.compile(rb"^data:[ \t]*(\{.*)$", re.MULTILINE)
_ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/moderations")


class JsonTransport:
    """Client that posts JSON and returns the JSON object in the reply. Thread-safe."""

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        options: RequestOptions,
        *,
        largest_reply: int = 4 * 2**20,
        sign: Sign | None = None,
    ) -> None:
        try:
            self.base_url = http_url(base_url)
        except ValueError as error:
            raise ConfigError(f"base_url: {error}") from None
        path = next((path for path in _ENDPOINTS if self.base_url.endswith(path)), None)
        if path is not None:
            raise ConfigError(f"base_url: must end with the API's version, such as /v1, without {path}")
        given = {name: value for name, value in (options.headers or {}).items() if name.lower() not in _FRAMING}
        named = {name.lower() for name in given}
        headers = {**{name: value for name, value in {**_OURS, **headers}.items() if name.lower() not in named}, **given}
        _refuse_unsendable(headers)
        self._headers = {**headers, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._sign = sign
        self._timeout = options.timeout
        self._bounds = Bounds(largest_reply, _LONGEST_REFUSAL)
        self.clock = options.clock
        self._sleep = options.sleep
        self.limits = RateLimits(options)
        self._breaker = CircuitBreaker(self.clock, _FAILURES_UNTIL_DOWN, _HOLD)
        self._connections = Connections(self.base_url, self.clock)
        self._holds: dict[tuple[str, object], float] = {}
        """Monotonic time until which the server accepts no requests, by path and model."""

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    def post(
        self, path: str, body: Mapping[str, Any], *, until: float, tokens: int = 0, tried: Callable[[], None]
    ) -> dict[str, Any]:
        """Post a request and return the reply's JSON object, or raise a JudgeError. ``until`` is the monotonic deadline,
        ``tokens`` the expected number. ``tried`` is called before each attempt.
        """
        content = jsonio.dumps(body).encode()
        limited = (path, body.get("model"))
        failures = 0
        for attempt in itertools.count(1):
            self._leave_alone(limited, until)
            try:
                return self._attempt(path, content, until, tokens, tried)
            except NotAnswered as error:
                if error.transient and error.retry_after:
                    self._holds[limited] = self.clock.monotonic() + error.retry_after
                busy = error.error_type == "timeout" and self.limits.is_reduced
                failures += error.status != _RATE_LIMITED and not busy
                pause = error.retry_after + backoff(attempt, _FIRST_PAUSE, _LONGEST_PAUSE)
                too_late = self.clock.monotonic() + pause >= until
                if not error.transient or failures == _ATTEMPTS or too_late or not self._breaker.is_closed:
                    raise
            self._sleep(pause)
        raise AssertionError("unreachable")

    def _leave_alone(self, limited: tuple[str, object], until: float) -> None:
        """Wait as long as the server requested in any earlier reply, or raise if that is too long."""
        now = self.clock.monotonic()
        left = self._holds.get(limited, now) - now
        if left <= 0:
            return
        if now + left >= until:
            raise JudgeError(f"not called, because the server requested a pause of {left:.0f} s", "rate_limited", left)
        self._sleep(left + random.uniform(0, _FIRST_PAUSE))  # noqa: S311 - jitter

    def _attempt(self, path: str, content: bytes, until: float, tokens: int, tried: Callable[[], None]) -> dict[str, Any]:
        wait, probe = self._breaker.enter()
        if wait != 0:
            failures = self._breaker.failures
            raise JudgeError(f"not called, because the server failed {failures} times in a row", "circuit_open")
        alive: bool | None = None
        began = float("inf")
        try:
            self.limits.enter(tokens, until)
            try:
                tried()
                began = self.clock.monotonic()
                status, headers, raw = self._followed(path, content, until)
                alive = True
            finally:
                self.limits.leave(answered=alive is True)
            return self._object_in(status, headers, raw, content)
        except NotAnswered as error:
            alive = error.status is not None and (error.status < 500 or not error.transient)
            if error.error_type == "timeout" and not self.limits.slow_down(began):
                alive = None
            raise
        finally:
            self._breaker.leave(probe, alive, began=began)

    def _followed(self, path: str, content: bytes, until: float) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request, and follow redirects that keep it (307, 308) at the same host, which may change to HTTPS."""
        url = f"{self.base_url}{path}"
        for _ in range(_MOST_REDIRECTS):
            status, headers, raw = self._send(url, content, until)
            target = urllib.parse.urljoin(url, headers.get("location", ""))
            if status not in (307, 308) or not headers.get("location"):
                break
            if not _is_same_server(url, target):
                raise NotAnswered("redirected to another server; set base_url to its address", f"http_{status}", status=status)
            url = target
        return status, headers, raw

    def _send(self, url: str, content: bytes, until: float) -> tuple[int, Mapping[str, str], bytes]:
        now = self.clock.monotonic()
        left = min(self._timeout, until - now)
        if left <= 0:
            raise JudgeError("no reply before the deadline", "timeout")
        headers = self._headers if self._sign is None else self._sign(url, content, self._headers)
        fault: NotAnswered
        try:
            with unseen(), self._connections.one() as connection:
                return connection.post(url, headers, content, now + left, self._bounds)
        except TimeoutError:
            when = f"within {left:g} s" if left == self._timeout else "before the deadline"
            fault = NotAnswered(f"no reply {when}", "timeout", transient=True)
        except OSError as error:
            fault = NotAnswered(f"can't reach {self.base_url}: {_reason_of(error)}", "unreachable", transient=True)
        except ReplyTooLarge as error:
            fault = NotAnswered(str(error), "reply_too_large", status=error.status)
        except ImportError:
            fault = NotAnswered("can't use the SOCKS proxy; run pip install 'httpx[socks]'", "unreachable")
        except (ValueError, RuntimeError) as error:
            fault = NotAnswered(f"can't send the request to {self.base_url}: {type(error).__name__}", "unreachable")
        raise fault  # outside the handler, so that the error doesn't contain another library's exception

    def close(self) -> None:
        self._connections.close()

    def _object_in(self, status: int, headers: Mapping[str, str], raw: bytes, asked: bytes) -> dict[str, Any]:
        if not 200 <= status < 300:
            raise self._refusal(status, headers, raw, asked)
        try:
            text = raw.removeprefix(codecs.BOM_UTF8)
            is_stream = headers.get("content-type", "").startswith("text/event-stream")
            found = _stream_of(text) if is_stream else jsonio.loads(text)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise NotAnswered("the reply isn't a JSON object", "invalid_answer", status=status)
        error = found.get("error")
        if error and not found.keys() & {"choices", "output", "content", "candidates", "data"}:
            meant = _status_in(error)
            if meant is not None:
                raise self._refusal(meant, headers, raw, asked)
            hints = _hints_in(raw, asked)
            what = "context_overflow" if "context" in hints else "insufficient_quota" if "credit" in hints else "server_error"
            raise NotAnswered("the reply is an error with status 200", what, status=status, hints=hints)
        return found

    def _refusal(self, status: int, headers: Mapping[str, str], raw: bytes, asked: bytes) -> NotAnswered:
        hints = _hints_in(raw, asked)
        meaning = f" ({_MEANINGS[status]})" if status in _MEANINGS else ""
        error_type = f"http_{status}"
        transient = status in _RETRIED or (status >= 500 and status not in _NEVER)
        if status == 500 and "format" in hints and len(raw) < _LONGEST_REASON:
            transient = False
        if status in (400, 413, 422, 500) and "context" in hints:
            meaning, error_type, transient = " (the turn doesn't fit into the model's context)", "context_overflow", False
        elif status == 402 or (status in (400, 403, 429) and "credit" in hints):
            meaning, error_type, transient = " (the account has no credit)", "insufficient_quota", False
        elif status == 400 and "refusal" in hints:
            meaning, error_type = " (a content filter declined)", "refusal"
        elif status == 400 and "key" in hints:
            meaning = f" ({_MEANINGS[401]})"
        return NotAnswered(
            f"rejected with status {status}{meaning}", error_type, status=status, transient=transient,
            retry_after=self._asked_to_wait(headers, raw) if transient else 0.0, hints=hints,
        )  # fmt: skip

    def _asked_to_wait(self, headers: Mapping[str, str], raw: bytes) -> float:
        in_ms, given = headers.get("retry-after-ms"), headers.get("retry-after")
        asked = retry_after(in_ms, self.clock) / 1_000 or retry_after(given, self.clock) or self._until_reset(headers)
        found = None if asked else _RETRY_INFO.search(raw.decode("utf-8", "replace").lower())
        return min(LONGEST_WAIT, float(found[1])) if found else asked

    def _until_reset(self, headers: Mapping[str, str]) -> float:
        """Return the seconds until the exhausted limits end. The headers have a span (``6m0s``), seconds, or a time."""
        waits = [0.0]
        for name, value in headers.items():
            found = _RESETS.fullmatch(name)
            if found is not None:
                of = found[1] or found[2] or ""
                left = (headers.get(f"{prefix}ratelimit-{place}") for prefix in ("x-", "anthropic-", "") for place in
                        (f"remaining-{of}", f"{of}-remaining", "remaining"))  # fmt: skip
                if next((text for text in left if text is not None), "0") in ("0", "0.0"):
                    waits.append(self._span_of(value.strip()))
        return min(LONGEST_WAIT, max(waits))

    def _span_of(self, value: str) -> float:
        now = self.clock.time_ns() / 1e9
        span = _SPAN.fullmatch(value) if value else None
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
        return max(0.0, number - now) if number > _EPOCH_SECONDS else max(0.0, number)


def _stream_of(text: bytes) -> dict[str, Any]:
    """Return the events of an event stream, or the one that is an error."""
    events = [jsonio.loads(data) for data in _EVENT.findall(text)]
    return next((event for event in events if event.get("error")), {"events": events})


def _hints_in(raw: bytes, asked: bytes) -> frozenset[str]:
    """Return the subject of a rejection. Some servers quote the request, so its words count only if they name our settings."""
    words, ours = raw.decode("utf-8", "replace").lower(), asked.decode("utf-8", "replace").lower()
    hints = frozenset(
        hint
        for hint, spellings in _HINTS.items()
        if any(spelling in words and (hint in _OF_SETTINGS or spelling not in ours) for spelling in spellings)
    )
    return hints if words.strip() else hints | {"parameter"}  # an empty rejection can be about any parameter


def _is_same_server(url: str, target: str) -> bool:
    one, other = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
    if one.hostname != other.hostname:
        return False
    return (one.scheme, one.port) == (other.scheme, other.port) or (one.scheme, other.scheme, other.port) == (
        "http",
        "https",
        None,
    )


def _status_in(error: object) -> int | None:
    """Return the status in an error object, which routers pass on with status 200."""
    code = error.get("code") if isinstance(error, Mapping) else None
    code = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code
    return code if type(code) is int and 400 <= code < 600 else None


def _reason_of(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate isn't trusted ({error.verify_message}). Set SSL_CERT_FILE to a file with trusted certificates"
    return str(error) if isinstance(error, BrokenAnswer) else type(error).__name__


def _refuse_unsendable(headers: Mapping[str, str]) -> None:
    """Reject headers with invalid characters, which httpx would quote in its exception."""
    for name, value in headers.items():
        if _HEADER_NAME.fullmatch(name) is None:
            raise ConfigError(f"headers: invalid header name, got {name!r}. Use letters, digits and hyphens")
        if not (value.isascii() and value.isprintable()):
            what = "api_key" if name.lower() in ("authorization", "x-api-key", "x-goog-api-key") else f"headers.{name}"
            raise ConfigError(f"{what}: must contain only printable ASCII characters")


class RateLimits:
    """Limits on concurrency, requests and tokens per minute. None means no limit. Thread-safe. Many servers of local models
    process one request at a time, so each time-out halves the concurrency, and answers raise it again.
    """

    def __init__(self, options: RequestOptions) -> None:
        requests, tokens = options.requests_per_minute, options.tokens_per_minute
        self._clock, self._sleep = options.clock, options.sleep
        self._most = self._room = float("inf") if options.max_concurrency is None else options.max_concurrency
        """Maximum number of concurrent requests, as configured and at present."""
        self._running = 0
        self._free = threading.Condition()
        self._slowed = float("-inf")
        """Time of the last reduction. Later time-outs of requests that began before it have the same cause."""
        self._has_answered = False
        self._requests = None if requests is None else TokenBucket(requests / 60, self._clock.monotonic)
        self._tokens = None if tokens is None else TokenBucket(tokens / 60, self._clock.monotonic)

    def enter(self, tokens: int, until: float) -> None:
        """Wait for a slot until the monotonic deadline. :meth:`leave` must follow. A JudgeError takes nothing."""
        wait = self._take(1, tokens)
        late = self._clock.monotonic() + wait > until
        if wait and not late:
            self._sleep(wait)
        with self._free:
            left = max(0.0, until - self._clock.monotonic())
            if not late and self._free.wait_for(lambda: self._running + 1 <= self._room, left):
                self._running += 1
                return
        self._take(-1, -tokens)
        raise JudgeError("the rate or concurrency allows no call before the deadline", "rate_limited")

    def leave(self, *, answered: bool = True) -> None:
        with self._free:
            self._running -= 1
            self._has_answered |= answered
            if answered and self._room < self._most:
                self._room = min(self._most, self._room + 1 / self._room)
            self._free.notify_all()

    def slow_down(self, began: float) -> bool:
        """Halve the concurrency after a time-out. Return False if the server was only busy with requests sent before that."""
        with self._free:
            news = began >= self._slowed
            if news:
                self._room, self._slowed = max(1, (self._running + 1) // 2), self._clock.monotonic()
            return news or not self._has_answered

    @property
    def is_reduced(self) -> bool:
        """Return True if the server answers, but not as many concurrent requests as allowed."""
        return self._has_answered and self._room < self._most

    def correct(self, estimated: int, used: int) -> None:
        if self._tokens is not None:
            self._tokens.take(used - estimated)

    def _take(self, requests: int, tokens: int) -> float:
        waits = [
            bucket.take(amount) for bucket, amount in ((self._requests, requests), (self._tokens, tokens)) if bucket is not None
        ]
        return max(waits, default=0.0)
