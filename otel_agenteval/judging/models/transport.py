"""HTTP client that posts JSON to a model server, and the meaning of the server's replies.

Requests are hidden from instrumentations, so they never become a turn. Errors contain neither the key nor content, and nothing
is logged here.
"""

from __future__ import annotations

import codecs
import datetime
import re
import ssl
import urllib.parse
from collections.abc import Mapping
from typing import Any

from ...config.types import http_url
from ...core import jsonio
from ...core.clock import Clock
from ...core.errors import ConfigError, JudgeError, NotAnswered
from ...core.pacing import LONGEST_WAIT, retry_after
from ...core.threads import unseen
from .aws import Sign
from .connections import Bounds, BrokenAnswer, Connections, Reply, ReplyTooLarge

_EPOCH_SECONDS = 1e9
"""Numbers above are times, not spans."""
_MOST_REDIRECTS = 3
_OURS = {"User-Agent": "otel-agenteval", "Accept": "application/json"}
_FRAMING = frozenset(("content-length", "transfer-encoding"))
_HEADER_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_RETRIED = frozenset((408, 409, 424, 429, 498))
"""Statuses to retry in addition to 5xx. With 424, Bedrock's model failed. With 498, Groq has no capacity."""
_NEVER = frozenset((501, 505))
"""Statuses of servers without the feature, such as llama.cpp without ``--embeddings``."""
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
    """Client that posts JSON to one server, one request at a time per thread. Thread-safe.

    ``own_headers`` are the user's and replace ``headers``. ``timeout`` is in seconds, and ``largest_reply`` in bytes.
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
            raise ConfigError(f"base_url: must end with the API's version, such as /v1, without {path}")
        own = {name: value for name, value in own_headers.items() if name.lower() not in _FRAMING}
        replaced = {name.lower() for name in own}
        every = {**{name: value for name, value in {**_OURS, **headers}.items() if name.lower() not in replaced}, **own}
        _refuse_unsendable(every)
        self._headers = {**every, "Content-Type": "application/json", "Accept-Encoding": "identity"}
        self._sign = sign
        self._timeout = timeout
        self._clock = clock
        self._bounds = Bounds(largest_reply, _LONGEST_REFUSAL)
        self._connections = Connections(self.base_url, clock)

    def __repr__(self) -> str:
        return f"Transport({self.base_url!r})"

    def post(self, path: str, content: bytes, until: float) -> Reply:
        """Send a request, and follow redirects that keep it (307, 308) at the same host, which may change to HTTPS. ``until`` is
        the monotonic deadline. Raises a JudgeError without a reply.
        """
        url = f"{self.base_url}{path}"
        for _ in range(_MOST_REDIRECTS):
            reply = self._send(url, content, until)
            location = reply.headers.get("location")
            if reply.status not in (307, 308) or not location:
                break
            target = urllib.parse.urljoin(url, location)
            if not _is_same_server(url, target):
                status = reply.status
                raise NotAnswered("redirected to another server. Set base_url to its address", f"http_{status}", status=status)
            url = target
        return reply

    def _send(self, url: str, content: bytes, until: float) -> Reply:
        now = self._clock.monotonic()
        left = min(self._timeout, until - now)
        if left <= 0:
            raise JudgeError("no reply before the deadline", "timeout")
        headers = self._headers if self._sign is None else self._sign(url, content, self._headers)
        fault: NotAnswered
        try:
            with unseen(), self._connections.lend() as connection:
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


def _refuse_unsendable(headers: Mapping[str, str]) -> None:
    """Reject headers with invalid characters, which httpx would quote in its exception."""
    for name, value in headers.items():
        if _HEADER_NAME.fullmatch(name) is None:
            raise ConfigError(f"headers: invalid header name, got {name!r}. Use letters, digits and hyphens")
        if not (value.isascii() and value.isprintable()):
            what = "api_key" if name.lower() in ("authorization", "x-api-key", "x-goog-api-key") else f"headers.{name}"
            raise ConfigError(f"{what}: must contain only printable ASCII characters")


def _is_same_server(url: str, target: str) -> bool:
    one, other = urllib.parse.urlsplit(url), urllib.parse.urlsplit(target)
    upgrade = one.scheme == "http" and (other.scheme, other.port) == ("https", None)
    return one.hostname == other.hostname and (upgrade or (one.scheme, one.port) == (other.scheme, other.port))


def _reason_of(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate isn't trusted ({error.verify_message}). Set SSL_CERT_FILE to a file with trusted certificates"
    return str(error) if isinstance(error, BrokenAnswer) else type(error).__name__


# --- replies


def object_in(reply: Reply, asked: bytes, clock: Clock) -> dict[str, Any]:
    """Return the JSON object in the reply to the request ``asked``, or raise :class:`NotAnswered` with the reason of a rejection."""
    status, headers, raw = reply
    if not 200 <= status < 300:
        raise _refusal(reply, status, asked, clock)
    try:
        text = raw.removeprefix(codecs.BOM_UTF8)
        if headers.get("content-type", "").startswith("text/event-stream"):
            events = [jsonio.loads(data) for data in _EVENT.findall(text)]
            found = next((event for event in events if event.get("error")), {"events": events})
        else:
            found = jsonio.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise NotAnswered("the reply isn't a JSON object", "invalid_answer", status=status)
    error = found.get("error")
    if error and not found.keys() & {"choices", "output", "content", "candidates", "data"}:
        meant = _status_in(error)
        if meant is not None:
            raise _refusal(reply, meant, asked, clock)
        hints = _hints_in(raw, asked)
        what = "context_overflow" if "context" in hints else "insufficient_quota" if "credit" in hints else "server_error"
        raise NotAnswered("the reply is an error with status 200", what, status=status, hints=hints)
    return found


def _status_in(error: object) -> int | None:
    """Return the status in an error object, which routers pass on with status 200."""
    code = error.get("code") if isinstance(error, Mapping) else None
    code = int(code) if isinstance(code, str) and code.isascii() and code.isdigit() else code
    return code if type(code) is int and 400 <= code < 600 else None


def _refusal(reply: Reply, status: int, asked: bytes, clock: Clock) -> NotAnswered:
    hints = _hints_in(reply.body, asked)
    meaning = f" ({_MEANINGS[status]})" if status in _MEANINGS else ""
    error_type = f"http_{status}"
    transient = status in _RETRIED or (status >= 500 and status not in _NEVER)
    if status == 500 and "format" in hints and len(reply.body) < _LONGEST_REASON:
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
        retry_after=_requested_wait(reply, clock) if transient else 0.0, hints=hints,
    )  # fmt: skip


def _hints_in(raw: bytes, asked: bytes) -> frozenset[str]:
    """Return the subject of a rejection. Some servers quote the request, so its words count only if they name our settings."""
    words, ours = raw.decode("utf-8", "replace").lower(), asked.decode("utf-8", "replace").lower()
    hints = frozenset(
        hint
        for hint, spellings in _HINTS.items()
        if any(spelling in words and (hint in _OF_SETTINGS or spelling not in ours) for spelling in spellings)
    )
    return hints if words.strip() else hints | {"parameter"}  # an empty rejection can be about any parameter


def _requested_wait(reply: Reply, clock: Clock) -> float:
    in_ms, in_s = reply.headers.get("retry-after-ms"), reply.headers.get("retry-after")
    asked = retry_after(in_ms, clock) / 1_000 or retry_after(in_s, clock) or _until_reset(reply.headers, clock)
    found = None if asked else _RETRY_INFO.search(reply.body.decode("utf-8", "replace").lower())
    return min(LONGEST_WAIT, float(found[1])) if found else asked


def _until_reset(headers: Mapping[str, str], clock: Clock) -> float:
    """Return the seconds until the exhausted limits end. The headers have a span (``6m0s``), seconds, or a time."""
    waits = [0.0]
    for name, value in headers.items():
        found = _RESETS.fullmatch(name)
        if found is not None:
            of = found[1] or found[2] or ""
            left = (headers.get(f"{prefix}ratelimit-{place}") for prefix in ("x-", "anthropic-", "") for place in
                    (f"remaining-{of}", f"{of}-remaining", "remaining"))  # fmt: skip
            if next((text for text in left if text is not None), "0") in ("0", "0.0"):
                waits.append(_seconds_in(value.strip(), clock))
    return min(LONGEST_WAIT, max(waits))


def _seconds_in(value: str, clock: Clock) -> float:
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
    return max(0.0, number - clock.time_ns() / 1e9) if number > _EPOCH_SECONDS else max(0.0, number)
