"""One way to the network for everything that asks a model: JSON over HTTP, within a deadline.

What cannot be sent, or may be answered later, is tried again: connection faults and the statuses 408, 409, 429 and 5xx, with full
jitter and as the server's Retry-After says. Requests are hidden from instrumentations, so that they never become somebody's
turn. Neither the key nor any content is in an error, and nothing is logged here.
"""

from __future__ import annotations

import email.utils
import json
import math
import random
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

from .. import jsonio
from ..clock import SYSTEM_CLOCK, Clock
from ..config import http_url
from ..errors import ConfigError, JudgeError
from .aws import Sign
from .connections import Connections
from .limits import Breaker, Limits

if TYPE_CHECKING:
    import httpx

_OURS = {"User-Agent": "otel-agenteval", "Accept": "application/json"}
_RETRIED = frozenset((408, 409, 429))
_ATTEMPTS = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 8.0
_LONGEST_REFUSAL = 65_536
_MEANINGS = {
    401: "the api_key is missing or not accepted", 403: "the api_key may not do this", 404: "no such path or model",
    413: "the request is too large", 429: "too many requests, or no credit",
}  # fmt: skip
_HINTS = {
    "context": ("context_length", "context length", "context window", "too long", "too many tokens", "maximum context"),
    "format": (
        "response_format", "json_object", "json_schema", "responsemimetype", "responsejsonschema", "output_config", "outputconfig",
        "textformat", "text.format", "structured output", "json mode", "schema", "grammar",
    ),
    "temperature": ("temperature",),
    "parameter": ("not supported", "unsupported", "unknown", "unrecognized", "unexpected", "extra input", "parameter", "bad request"),
    "refusal": ("content_filter", "content management policy"),
}  # fmt: skip
"""Words of a refusal that say what it is about."""


class NotAnswered(JudgeError):
    """Nobody answered, or with a refusal."""

    def __init__(
        self,
        message: str,
        error_type: str,
        *,
        status: int | None = None,
        transient: bool = False,
        retry_after: float = 0.0,
        hints: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(message, error_type)
        self.status = status
        self.transient = transient
        """Whether it may go well the next time."""
        self.retry_after = retry_after
        """Seconds that the server asks to wait."""
        self.hints = hints
        """What a refusal is about: ``context``, ``format``, ``temperature``, ``refusal``, or some ``parameter``."""


class Transport:
    """Posts JSON and gives back the JSON object that came. Thread-safe.

    Args:
        base_url: what paths are appended to.
        headers: sent with each request; they hold the key.
        timeout: seconds that one attempt may take, to the last byte.
        max_concurrency: requests at once.
        requests_per_minute: attempts.
        tokens_per_minute: of input and output, as estimated and then as counted by the server.
        largest_reply: bytes.
        sign: makes the headers that sign a request.
        clock: for tests.
        sleep: for tests.
    """

    def __init__(
        self,
        base_url: str,
        headers: Mapping[str, str],
        *,
        timeout: float = 30.0,
        max_concurrency: int | None = None,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
        largest_reply: int = 4 * 2**20,
        sign: Sign | None = None,
        clock: Clock = SYSTEM_CLOCK,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            self.base_url = http_url(base_url)
        except ValueError as error:
            raise ConfigError(f"base_url: this is not allowed; {error}") from None
        _refuse_unsendable(headers)
        given = {name.lower() for name in headers}
        ours = {name: value for name, value in _OURS.items() if name.lower() not in given}
        self._headers = {**ours, **headers, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._sign = sign
        self._timeout = timeout
        self._largest = largest_reply
        self.limits = Limits(max_concurrency, requests_per_minute, tokens_per_minute, clock, sleep)
        self._breaker = Breaker(clock)
        self.clock = clock
        self._sleep = sleep
        self._connections = Connections(self.base_url, clock)
        self._urls: dict[str, httpx.URL] = {}
        """Parsed ones; there is one for each path that is asked."""

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
            JudgeError: nobody answered in time, or the answer is a refusal or no JSON object.
        """
        content = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace")
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                return self._attempt(path, content, until, tokens, tried)
            except NotAnswered as error:
                pause = error.retry_after + random.uniform(0, min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1)))  # noqa: S311 - jitter
                too_late = self.clock.monotonic() + pause >= until
                if not error.transient or attempt == _ATTEMPTS or too_late or not self._breaker.closed:
                    raise
            self._sleep(pause)
        raise AssertionError("unreachable")

    def _attempt(self, path: str, content: bytes, until: float, tokens: int, tried: Callable[[], None]) -> dict[str, Any]:
        probe = self._breaker.admit()
        alive: bool | None = None
        try:
            self.limits.enter(tokens, until)
            try:
                tried()
                status, headers, raw = self._send(path, content, until)
            finally:
                self.limits.leave()
            alive = status < 500
            return self._object_in(status, headers, raw)
        except NotAnswered as error:
            alive = error.status is not None and error.status < 500
            raise
        finally:
            self._breaker.tell(probe, alive)

    def _send(self, path: str, content: bytes, until: float) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of what came.

        Raises:
            NotAnswered: nothing came, or not all of it in time.
        """
        import httpx

        left = min(self._timeout, until - self.clock.monotonic())
        if left <= 0:
            raise JudgeError("no answer before the deadline", "timeout")
        url = f"{self.base_url}{path}"
        headers = self._headers if self._sign is None else self._sign(url, content, self._headers)
        stop = self.clock.monotonic() + left
        fault: NotAnswered
        try:
            request = httpx.Request(
                "POST", self._parsed(url), headers=headers, content=content, extensions={"timeout": httpx.Timeout(left).as_dict()}
            )
            with _unseen(), self._connections.one() as connection, closing(connection.handle_request(request)) as response:
                return response.status_code, response.headers, self._read(response, stop)
        except httpx.TimeoutException:
            fault = NotAnswered(f"no answer within {left:g} s", "timeout", transient=True)
        except httpx.TransportError as error:
            fault = NotAnswered(f"could not be reached: {type(error).__name__}", "unreachable", transient=True)
        except (NotAnswered, httpx.HTTPError, httpx.InvalidURL, ValueError, RuntimeError) as error:
            fault = (
                error
                if isinstance(error, NotAnswered)
                else NotAnswered(f"could not be asked: {type(error).__name__}", "unreachable")
            )
        raise fault  # outside of the handler: the other library's exception holds the request, and with it the key

    def _parsed(self, url: str) -> httpx.URL:
        import httpx

        found = self._urls.get(url)
        if found is None:
            found = self._urls[url] = httpx.URL(url)
        return found

    def _read(self, response: httpx.Response, stop: float) -> bytes:
        most = self._largest if response.is_success else _LONGEST_REFUSAL
        found = bytearray()
        for chunk in response.iter_bytes():
            found += chunk
            if len(found) > most:
                if response.is_success:
                    raise NotAnswered("the answer is too large", "reply_too_large", status=response.status_code)
                break
            if self.clock.monotonic() > stop:
                raise NotAnswered("the answer came too slowly", "timeout", transient=True)
        return bytes(found)

    def close(self) -> None:
        """Release connections. A later request makes new ones."""
        self._connections.close()

    def _object_in(self, status: int, headers: Mapping[str, str], raw: bytes) -> dict[str, Any]:
        if not 200 <= status < 300:
            raise self._refusal(status, headers, raw)
        try:
            found = jsonio.loads(raw)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise NotAnswered("the answer is no JSON object", "invalid_answer", status=status)
        if found.get("error") and not found.keys() & {"choices", "output", "content", "candidates", "data"}:
            raise NotAnswered("the answer is an error with status 200", "server_error", status=status)
        return found

    def _refusal(self, status: int, headers: Mapping[str, str], raw: bytes) -> NotAnswered:
        words = raw.decode("utf-8", "replace").lower()
        hints = frozenset(hint for hint, spellings in _HINTS.items() if any(spelling in words for spelling in spellings))
        if not words.strip():  # it says nothing: it may be about anything
            hints |= {"parameter"}
        meaning = f" ({_MEANINGS[status]})" if status in _MEANINGS else ""
        error_type = f"http_{status}"
        if status in (400, 413, 422) and "context" in hints:
            meaning, error_type = " (the material does not fit the model's context)", "context_overflow"
        elif status == 400 and "refusal" in hints:
            meaning, error_type = " (a filter declined)", "refusal"
        return NotAnswered(
            f"refused with status {status}{meaning}", error_type, status=status, transient=status in _RETRIED or status >= 500,
            retry_after=self._retry_after(headers.get("retry-after")), hints=hints,
        )  # fmt: skip

    def _retry_after(self, header: str | None) -> float:
        """Seconds, from a number of them or a date; 0 for anything else."""
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


def _refuse_unsendable(headers: Mapping[str, str]) -> None:
    """A value that cannot stand in a header would come back in the exception of somebody else."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            what = "api_key" if name.lower() in ("authorization", "x-api-key", "x-goog-api-key") else f"headers.{name}"
            raise ConfigError(f"{what}: this is not allowed; printable ASCII characters are")


@contextmanager
def _unseen() -> Iterator[None]:
    """Hide what is done inside from the instrumentations of HTTP clients and from span processors."""
    from opentelemetry import context

    hidden = context.get_current()
    for key in ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY"):
        hidden = context.set_value(getattr(context, key, key), True, hidden)
    hidden = context.set_value("suppress_instrumentation", True, hidden)  # the key of older instrumentations
    token = context.attach(hidden)
    try:
        yield
    finally:
        context.detach(token)
