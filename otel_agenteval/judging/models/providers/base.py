"""What all providers have in common: a question, an answer, and careful reading of what a server sends."""

from __future__ import annotations

import base64
import binascii
import mimetypes
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from ....core import jsonio
from ....core.errors import JudgeError

Form = Literal["schema", "json", "plain"]
"""How a reply is held to its form: by a JSON schema, by the server's JSON mode, or by the prompt alone."""
Finish = Literal["stop", "length", "refusal"]
FORMS: tuple[Form, ...] = ("schema", "json", "plain")
MAX_TOKENS = 4096
"""Length of a reply where the server insists on a limit."""
MORE_TOKENS = 16_384
"""The same for a reply that was cut by it: some models think at length before they reply."""
_LARGEST_COUNT = 10**9


@dataclass(frozen=True, slots=True)
class Media:
    """A picture, sound or film: its bytes in base64, or the address where the model's server may fetch it. We fetch nothing."""

    mime: str
    data: str = ""
    url: str = ""

    @property
    def kind(self) -> str:
        """``image``, ``audio``, ``video`` or whatever else the type begins with."""
        return self.mime.partition("/")[0]

    @property
    def form(self) -> str:
        """The type's second half: ``png``, ``wav``, ``mp4``."""
        return self.mime.partition("/")[2].partition(";")[0]

    @property
    def uri(self) -> str:
        """The address, or the bytes as a ``data:`` uri."""
        return self.url or f"data:{self.mime};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class Message:
    """What one side said."""

    role: Literal["user", "assistant"]
    text: str
    media: tuple[Media, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """What a request is built from."""

    model: str
    system: str
    messages: tuple[Message, ...]
    form: Form = "json"
    schema: Mapping[str, Any] | None = None
    """The schema of the reply, where the form is ``schema``."""
    temperature: float | None = 0.0
    """None leaves it to the model: some refuse any value."""
    room: int = MAX_TOKENS
    """Tokens that the reply may have where the server insists on a limit."""


@dataclass(frozen=True, slots=True)
class Request:
    """What is posted, and where below the base URL."""

    path: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the server counted them; None where it did not. Input includes what came from its cache."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered."""

    text: str
    usage: Usage
    finish: Finish | None = None
    """Why it ended: it was complete, it was cut at a limit, or the model or a filter declined; None if the answer does not say."""


class Provider(Protocol):
    """A module of this package."""

    def headers(self, api_key: str | None) -> dict[str, str]:
        """The headers that carry the key."""

    def request(self, question: Question) -> Request:
        """The request of a question.

        Raises:
            JudgeError: media that this provider does not take.
        """

    def answer(self, body: Mapping[str, Any]) -> Answer:
        """The answer in a response.

        Raises:
            JudgeError: the response has another form.
        """


# --- media -----------------------------------------------------------------------------------------------------------


def media_of(uri: str) -> Media | None:
    """What a ``data:`` or http(s) uri stands for; None for an opaque id, which has no scheme.

    Raises:
        JudgeError: another scheme (``file:`` and the like are never passed on), or a ``data:`` uri that cannot be read.
    """
    scheme, colon, rest = uri.partition(":")
    scheme = scheme.lower()
    if scheme == "data" and colon:
        return _data(rest)
    if scheme in ("http", "https") and colon:
        mime = mimetypes.guess_type(urllib.parse.urlsplit(uri).path)[0] or "image/*"
        return Media(mime, url=uri)
    if colon and _is_scheme(scheme):
        raise JudgeError("media of this scheme is not passed on; data:, http: and https: are", "media_not_allowed")
    return None


def _is_scheme(text: str) -> bool:
    return text.isascii() and text[:1].isalpha() and all(c.isalnum() or c in "+-." for c in text)


def _data(rest: str) -> Media:
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
        raise JudgeError("a data: uri holds nothing that can be read", "invalid_media")
    return Media(mime.strip().lower() or "text/plain", base64.b64encode(raw).decode())


def not_taken(media: Media, provider: str) -> JudgeError:
    """The error where a provider has no place for such media."""
    what = f"{media.kind} by address" if media.url else media.kind
    return JudgeError(
        f"{provider} takes no {what if what.isprintable() and len(what) < 40 else 'media of this type'}", "unsupported_media"
    )


class ClosedSchema(dict[str, Any]):
    """A schema that is known to be closed, see :func:`is_closed`."""


def is_closed(schema: Any) -> bool:
    """Whether a schema names every key and allows no other: what servers ask of one that they hold a model to strictly."""
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


# --- reading ---------------------------------------------------------------------------------------------------------


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, (dict, Mapping)) else {}  # nearly always a dict, which is found out much faster


def mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    """The mappings in a list; nothing for anything else."""
    return (item for item in value if isinstance(item, (dict, Mapping))) if isinstance(value, list) else iter(())


def text(value: Any) -> str:
    """The value if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: Any) -> int | None:
    """The value if it can be a number of tokens, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT else None


def added(*values: int | None) -> int | None:
    """The sum of those that are known; None if none is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def is_object(words: str) -> bool:
    """Whether a text is one JSON object, and nothing else."""
    try:
        return isinstance(jsonio.loads(words), dict)
    except ValueError:
        return False


def failed(provider: str) -> JudgeError:
    """The error of a response that says that there is no answer, and may go well the next time."""
    return JudgeError(f"{provider} failed midway", "server_error")


def no_answer(provider: str) -> JudgeError:
    """The error of a response that has another form."""
    return JudgeError(f"the judge's answer is none of {provider}", "invalid_answer")
