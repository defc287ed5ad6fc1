"""One way to the network for everything that asks a model: JSON over HTTP, within a deadline.

What cannot be sent, or may be answered later, is tried again: connection faults and the statuses 408, 409, 424, 429, 498 and 5xx, with
full jitter and as the server says, by whatever header or field it does. While a server asks to be left alone, it is not asked. An
account without credit is not asked again: that does not pass in seconds. Requests are hidden from instrumentations, so that they never become a
turn. Neither the key nor any content is in an error, and nothing is logged here.
"""

from __future__ import annotations

import email.utils
import math
import random
import re
import ssl
from collections.abc import Callable, Mapping
from typing import Any

from ...config.types import http_url
from ...core import jsonio
from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...core.unseen import unseen
from .aws import Sign
from .connections import Connections
from .http1 import Bounds, BrokenAnswer, ReplyTooLarge
from .limits import Breaker, Limits
from .request_options import RequestOptions

_OURS = {"User-Agent": "otel-agenteval", "Accept": "application/json"}
_RETRIED = frozenset((408, 409, 424, 429, 498))
"""Beside 5xx. 424: Bedrock's model failed; 498: Groq has no capacity left."""
_NEVER = frozenset((501, 505))
"""What a server says that cannot do it: llama.cpp without ``--embeddings``."""
_ATTEMPTS = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_LONGEST_REFUSAL = 65_536
_MEANINGS = {
    401: "the api_key is missing or not accepted", 402: "the account has no credit", 403: "the api_key may not do this",
    404: "no such path or model; base_url ends with the API's version, as in /v1", 413: "the request is too large",
    429: "too many requests", 501: "it cannot do this",
}  # fmt: skip
_HINTS = {
    "context": (
        "context_length", "context length", "context window", "too long", "too many tokens", "maximum context", "context size",
        "context_size", "context limit", "token count", "maximum prompt length", "maximum model length", "too large to process",
    ),
    "format": (
        "response_format", "json_object", "json_schema", "responsemimetype", "responsejsonschema", "output_config", "outputconfig",
        "textformat", "text.format", "structured output", "json mode", "schema", "grammar",
    ),
    "temperature": ("temperature",),
    "parameter": ("not supported", "unsupported", "unknown", "unrecognized", "unexpected", "extra input", "parameter", "bad request"),
    "refusal": ("content_filter", "content management policy"),
    "credit": ("insufficient_quota", "credit balance", "insufficient balance", "billing_hard_limit", "budget_exceeded"),
    "batch": ("batch", "array too long", "above_max_length", "too many inputs"),
    "key": ("api key not valid", "api_key_invalid"),
}  # fmt: skip
"""Words of a refusal that say what it is about."""
_OF_SETTINGS = frozenset(("format", "temperature", "parameter"))
_RETRY_INFO = re.compile(r'"retrydelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
"""Google's way to ask for time, in the body."""
_LONGEST_HOLD = 86_400.0
_ENDPOINTS = ("/chat/completions", "/completions", "/responses", "/messages", "/embeddings", "/moderations")


class Transport:
    """Posts JSON and gives back the JSON object that came. Thread-safe.

    Args:
        base_url: what paths are appended to.
        headers: the provider's, sent with each request; they hold the key.
        options: how requests are made.
        largest_reply: bytes.
        sign: makes the headers that sign a request.
    """

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
            raise ConfigError(f"base_url: this value is not allowed; {error}") from None
        path = next((path for path in _ENDPOINTS if self.base_url.endswith(path)), None)
        if path is not None:
            raise ConfigError(
                f"base_url: {path} at its end is not allowed; it must be the address up to and including the version"
            )
        headers = {**headers, **(options.headers or {})}
        _refuse_unsendable(headers)
        given = {name.lower() for name in headers}
        ours = {name: value for name, value in _OURS.items() if name.lower() not in given}
        self._headers = {**ours, **headers, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._sign = sign
        self._timeout = options.timeout
        self._bounds = Bounds(largest_reply, _LONGEST_REFUSAL)
        self.clock = options.clock
        self._sleep = options.sleep
        self.limits = Limits(
            options.max_concurrency, options.requests_per_minute, options.tokens_per_minute, options.clock, options.sleep
        )
        self._breaker = Breaker(self.clock)
        self._connections = Connections(self.base_url, self.clock)
        self._holds: dict[tuple[str, object], float] = {}
        """By path and model, until when the server wants to be left alone, in seconds of the monotonic clock."""

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    def post(
        self, path: str, body: Mapping[str, Any], *, until: float, tokens: int = 0, tried: Callable[[], None]
    ) -> dict[str, Any]:
        """The answer to one request.

        Args:
            path: appended to the base URL.
            body: JSON.
            until: when to give up, in seconds of the monotonic clock.
            tokens: an estimate, for the rate.
            tried: called before each attempt.

        Raises:
            JudgeError: there was no answer in time, or the answer is a refusal or no JSON object.
        """
        content = jsonio.dumps(body).encode()
        limited = (path, body.get("model"))
        for attempt in range(1, _ATTEMPTS + 1):
            self._leave_alone(limited, until)
            try:
                return self._attempt(path, content, until, tokens, tried)
            except NotAnswered as error:
                if error.transient and error.retry_after:
                    self._holds[limited] = self.clock.monotonic() + error.retry_after
                pause = error.retry_after + random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1)))  # noqa: S311 - jitter
                too_late = self.clock.monotonic() + pause >= until
                if not error.transient or attempt == _ATTEMPTS or too_late or not self._breaker.closed:
                    raise
            self._sleep(pause)
        raise AssertionError("unreachable")

    def _leave_alone(self, limited: tuple[str, object], until: float) -> None:
        """Wait as long as the server asked for, in whichever question it did.

        Raises:
            JudgeError: that is longer than there is time.
        """
        now = self.clock.monotonic()
        left = self._holds.get(limited, now) - now
        if left <= 0:
            return
        if now + left >= until:
            raise JudgeError(f"not asked: the server wants to be left alone for {left:.0f} s", "rate_limited", left)
        self._sleep(left + random.uniform(0, _FIRST_PAUSE))  # noqa: S311 - jitter

    def _attempt(self, path: str, content: bytes, until: float, tokens: int, tried: Callable[[], None]) -> dict[str, Any]:
        probe = self._breaker.admit()
        alive: bool | None = None
        began = float("inf")
        try:
            self.limits.enter(tokens, until)
            try:
                tried()
                began = self.clock.monotonic()
                status, headers, raw = self._send(path, content, until)
            finally:
                self.limits.leave()
            alive = True
            return self._object_in(status, headers, raw, content)
        except NotAnswered as error:
            alive = error.status is not None and (error.status < 500 or not error.transient)
            raise
        finally:
            self._breaker.leave(probe, alive, began)

    def _send(self, path: str, content: bytes, until: float) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of what came.

        Raises:
            NotAnswered: nothing came, or not all of it in time.
        """
        now = self.clock.monotonic()
        left = min(self._timeout, until - now)
        if left <= 0:
            raise JudgeError("no answer before the deadline", "timeout")
        url = f"{self.base_url}{path}"
        headers = self._headers if self._sign is None else self._sign(url, content, self._headers)
        fault: NotAnswered
        try:
            with unseen(), self._connections.one() as connection:
                return connection.post(url, headers, content, now + left, self._bounds)
        except TimeoutError:
            fault = NotAnswered(f"no answer within {left:g} s", "timeout", transient=True)
        except OSError as error:
            fault = NotAnswered(f"could not be reached: {_reason_of(error)}", "unreachable", transient=True)
        except ReplyTooLarge as error:
            fault = NotAnswered(str(error), "reply_too_large", status=error.status)
        except ImportError:
            fault = NotAnswered("could not be asked: a SOCKS proxy needs pip install 'httpx[socks]'", "unreachable")
        except (ValueError, RuntimeError) as error:
            fault = NotAnswered(f"could not be asked: {type(error).__name__}", "unreachable")
        raise fault  # outside of the handler: nothing of another library is in it

    def close(self) -> None:
        """Release connections. A later request makes new ones."""
        self._connections.close()

    def _object_in(self, status: int, headers: Mapping[str, str], raw: bytes, asked: bytes) -> dict[str, Any]:
        if not 200 <= status < 300:
            raise self._refusal(status, headers, raw, asked)
        try:
            found = jsonio.loads(raw)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise NotAnswered("the answer is no JSON object", "invalid_answer", status=status)
        error = found.get("error")
        if error and not found.keys() & {"choices", "output", "content", "candidates", "data"}:
            meant = _status_in(error)
            if meant is not None:
                raise self._refusal(meant, headers, raw, asked)
            hints = _hints_in(raw, asked)
            what = "context_overflow" if "context" in hints else "insufficient_quota" if "credit" in hints else "server_error"
            raise NotAnswered("the answer is an error with status 200", what, status=status, hints=hints)
        return found

    def _refusal(self, status: int, headers: Mapping[str, str], raw: bytes, asked: bytes) -> NotAnswered:
        hints = _hints_in(raw, asked)
        meaning = f" ({_MEANINGS[status]})" if status in _MEANINGS else ""
        error_type = f"http_{status}"
        transient = status in _RETRIED or (status >= 500 and status not in _NEVER)
        if status in (400, 413, 422, 500) and "context" in hints:
            meaning, error_type, transient = " (the material does not fit the model's context)", "context_overflow", False
        elif status == 402 or (status in (400, 403, 429) and "credit" in hints):
            meaning, error_type, transient = " (the account has no credit)", "insufficient_quota", False
        elif status == 400 and "refusal" in hints:
            meaning, error_type = " (a filter declined)", "refusal"
        elif status == 400 and "key" in hints:
            meaning = f" ({_MEANINGS[401]})"
        return NotAnswered(
            f"refused with status {status}{meaning}", error_type, status=status, transient=transient,
            retry_after=self._asked_to_wait(headers, raw) if transient else 0.0, hints=hints,
        )  # fmt: skip

    def _asked_to_wait(self, headers: Mapping[str, str], raw: bytes) -> float:
        """Seconds that a refusal asks for, at most a day: in milliseconds, in seconds or by a date in a header, or in its body; else 0."""
        asked = self._retry_after(headers.get("retry-after-ms")) / 1_000 or self._retry_after(headers.get("retry-after"))
        found = None if asked else _RETRY_INFO.search(raw.decode("utf-8", "replace").lower())
        return min(_LONGEST_HOLD, float(found[1]) if found else asked)

    def _retry_after(self, header: str | None) -> float:
        """From a number or a date; 0 for anything else."""
        if not header:
            return 0.0
        try:
            asked = float(header)
        except ValueError:
            try:
                asked = email.utils.parsedate_to_datetime(header).timestamp() - self.clock.time_ns() / 1e9
            except (ValueError, OverflowError):
                return 0.0
        return 0.0 if math.isnan(asked) else max(0.0, asked)


def _hints_in(raw: bytes, asked: bytes) -> frozenset[str]:
    """What a refusal is about. Some servers quote what they refuse: words that the question holds prove nothing, but for our settings."""
    words, ours = raw.decode("utf-8", "replace").lower(), asked.decode("utf-8", "replace").lower()
    hints = frozenset(
        hint
        for hint, spellings in _HINTS.items()
        if any(spelling in words and (hint in _OF_SETTINGS or spelling not in ours) for spelling in spellings)
    )
    return hints if words.strip() else hints | {"parameter"}  # it says nothing: it may be about anything


def _status_in(error: object) -> int | None:
    """The status that an error within an answer says it has: proxies and routers pass on what they received."""
    code = error.get("code") if isinstance(error, Mapping) else None
    code = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code
    return code if type(code) is int and 400 <= code < 600 else None


def _reason_of(error: OSError) -> str:
    """Why there was no answer, without any address or content."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message}); SSL_CERT_FILE names a file of those that are"
    return str(error) if isinstance(error, BrokenAnswer) else type(error).__name__


def _refuse_unsendable(headers: Mapping[str, str]) -> None:
    """Refuse a value that cannot be a header: it would come back in the exception of another library."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            what = "api_key" if name.lower() in ("authorization", "x-api-key", "x-goog-api-key") else f"headers.{name}"
            raise ConfigError(f"{what}: this value is not allowed; it must consist of printable ASCII characters")
