"""Types that are common to all providers."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ....core.errors import JudgeError

Form = Literal["schema", "json", "plain"]
"""How the reply's form is enforced: by a JSON schema, by the server's JSON mode, or only by the prompt."""
Finish = Literal["stop", "length", "refusal"]
FORMS: tuple[Form, ...] = ("schema", "json", "plain")
MAX_TOKENS = 4096
"""Maximum output tokens in requests to Anthropic and Bedrock. Requests to other providers contain no limit."""
MORE_TOKENS = 16_384
"""Maximum output tokens of a repair request after a truncated reply. Some models write thoughts that exceed ``MAX_TOKENS``."""


@dataclass(frozen=True, slots=True)
class Media:
    """Image, audio, video, or document, as base64 data or as a URL that the model server fetches."""

    mime: str
    data: str = ""
    url: str = ""

    @property
    def kind(self) -> str:
        """Main type in the MIME type, such as ``image``, ``audio``, or ``video``."""
        return self.mime.partition("/")[0]

    @property
    def form(self) -> str:
        """Subtype in the MIME type, such as ``png``, ``wav``, or ``mp4``."""
        return self.mime.partition("/")[2].partition(";")[0]

    @property
    def uri(self) -> str:
        return self.url or f"data:{self.mime};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    role: Literal["user", "assistant"]
    text: str
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model: str
    system: str
    messages: tuple[ChatMessage, ...]
    form: Form = "json"
    schema: Mapping[str, Any] | None = None
    temperature: float | None = 0.0
    """Sampling temperature. None selects the model's default, because some models reject any explicit value."""
    room: int = MAX_TOKENS
    """Maximum output tokens. Only requests to Anthropic and Bedrock contain this limit."""
    stream: bool = False


@dataclass(frozen=True, slots=True)
class HttpRequest:
    path: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """Token counts from the server. Missing counts are None. ``input_tokens`` includes cached tokens."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ChatReply:
    text: str
    usage: TokenUsage
    finish: Finish | None = None
    """Reason why the reply ended: complete reply, truncation by a limit, or refusal. None if unknown."""


class Provider(Protocol):
    """Interface of the provider modules in this package."""

    def headers(self, api_key: str | None) -> dict[str, str]:
        """Return the headers, including the API key."""

    def request(self, chat: ChatRequest) -> HttpRequest:
        """Return the HTTP request for a judge call. If media aren't supported, raise a JudgeError."""

    def answer(self, body: Mapping[str, Any]) -> ChatReply:
        """Parse a response. If the response reports a failure or has an unexpected format, raise a JudgeError."""


# --- media -----------------------------------------------------------------------------------------------------------


def media_of(uri: str) -> Media | None:
    """Parse a ``data:`` or http(s) URI. If ``uri`` has no scheme, return None. For other schemes, and for an empty or invalid
    ``data:`` URI, raise a JudgeError.
    """
    scheme, colon, rest = uri.partition(":")
    scheme = scheme.lower() if colon else ""
    if scheme in ("http", "https"):
        return Media(mimetypes.guess_type(urllib.parse.urlsplit(uri).path)[0] or "image/*", url=uri)
    if scheme != "data":
        if scheme.isascii() and scheme[:1].isalpha() and all(c.isalnum() or c in "+-." for c in scheme):
            raise JudgeError("the media URI must start with data:, http:, or https:", "media_not_allowed")
        return None
    head, comma, body = rest.partition(",")
    mime, *parameters = head.split(";")
    try:
        raw = urllib.parse.unquote_to_bytes(body)
        if "base64" in (parameter.strip().lower() for parameter in parameters):
            raw = base64.b64decode(raw, validate=True)
        elif not comma:
            raw = b""
    except (ValueError, binascii.Error):
        raw = b""
    if not raw:
        raise JudgeError("the data: URI is empty or invalid", "invalid_media")
    return Media(mime.strip().lower() or "text/plain", base64.b64encode(raw).decode())


def unsupported_media(media: Media, provider: str) -> JudgeError:
    what = f"{media.kind} URLs" if media.url else media.kind
    return JudgeError(
        f"{provider} doesn't accept {what if what.isprintable() and len(what) < 40 else 'media of this type'}",
        "unsupported_media",
    )


class ClosedSchema(dict[str, Any]):
    """JSON schema that is closed by construction, so :func:`is_closed` skips its check."""


def is_closed(schema: Any) -> bool:
    """Return True if a schema requires all of its keys and forbids other keys. Strict servers require closed schemas."""
    if isinstance(schema, ClosedSchema):
        return True
    if isinstance(schema, list):
        return all(map(is_closed, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" and (
        schema.get("additionalProperties") is not False or set(schema.get("required", ())) != set(schema.get("properties", ()))
    ):
        return False
    return all(map(is_closed, schema.values()))
