"""What the agent was given, and whether it contains the URLs of its answer.

Given are: tool results, the user's words, retrieved documents, system instructions, messages that came before (also the
agent's own of earlier turns) and tool definitions. Tool *arguments* and the agent's own messages of this turn are
written by the model, so they cannot ground anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import unquote

from ...core import jsonio
from ...core.turn import Turn

SCAN_LIMIT = 100_000
"""Characters of any one text that are looked at."""

_ESCAPED_CHARACTER = re.compile(r"\\{1,8}u([0-9a-fA-F]{4})")
_ESCAPED_SLASH = re.compile(r"\\{1,8}/")


def text_of(value: Any) -> str:
    """A tool result (or anything) as text, at most :data:`SCAN_LIMIT` characters; see :func:`unescaped`."""
    return unescaped(jsonio.text_of(value)[:SCAN_LIMIT])


def unescaped(text: str) -> str:
    r"""The text with ``\uXXXX`` and ``\/`` of serialized JSON undone, however often it was serialized."""
    if "\\" not in text:
        return text
    if "u" in text:
        text = _ESCAPED_CHARACTER.sub(lambda found: chr(int(found.group(1), 16)), text)
        if not text.isascii():  # a character outside the first plane came as two escapes
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _ESCAPED_SLASH.sub("/", text)


class Given:
    """The texts that the agent was given in a turn, one after another as they are asked for, and what could not be read."""

    __slots__ = ("_cut", "_read", "_rest", "_turn")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._read: list[str] = []
        self._rest = _given_values(turn)
        self._cut = False

    def __iter__(self) -> Iterator[str]:
        yield from self._read
        for value in self._rest:
            text = jsonio.text_of(value)
            if len(text) > SCAN_LIMIT:
                self._cut = True
                text = text[:SCAN_LIMIT]
            text = unescaped(text)
            self._read.append(text)
            yield text

    def gap(self) -> str | None:
        """Why a thing that no text holds can still have been given (a reason for a skipped score), or None.

        ``missing:sources``: results, documents or attachments whose text is unknown. ``truncated``: content was cut
        before it reached us. ``too_long``: it is longer than :data:`SCAN_LIMIT`.
        """
        turn = self._turn
        if not any(self) or _has_unknown_parts(turn):
            return "missing:sources"
        if turn.truncated:
            return "truncated"
        return "too_long" if self._cut else None


def _given_values(turn: Turn) -> Iterator[Any]:
    for call in turn.tool_calls or ():
        if call.result is not None:
            yield call.result
        if call.error is not None and call.error.message:
            yield call.error.message
    if turn.input:
        yield turn.input
    yield from turn.context
    for retrieval in turn.retrievals:
        yield from (document.content for document in retrieval.documents if document.content)
    if turn.system:
        yield turn.system
    messages = turn.messages
    asked = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    for i, message in enumerate(messages):
        if message.content and (i <= asked or message.role != "assistant"):
            yield message.content
        yield from (response.result for response in message.tool_results if response.result is not None)
    if turn.history:
        yield turn.history
    if turn.tool_definitions:
        yield turn.tool_definitions


def _has_unknown_parts(turn: Turn) -> bool:
    messages = turn.messages
    if turn.attachments or any(message.attachments for message in messages):
        return True
    if any(call.result is None and call.error is None for call in turn.tool_calls or ()):
        return not any(message.tool_results or message.role == "tool" for message in messages)
    return not turn.context and any(not document.content for retrieval in turn.retrievals for document in retrieval.documents)


# --- URLs --------------------------------------------------------------------------------------------------------

_URL = re.compile(r"https?://([^\s<>\"`\\|{}\[\]^\u3000-\u303f\uff00-\uffef]{1,2048})", re.IGNORECASE)
_URL_REST = re.compile(r"[^\s<>\"`\\|{}\[\]^\u3000-\u303f\uff00-\uffef]{1,2048}")
_NEXT_URL = re.compile(r"[,;)]*https?$")
_RESERVED_HOST = re.compile(r"(?:.*\.)?(?:example(?:\.(?:com|net|org))?|test|invalid|localhost|127\.0\.0\.1)(?::[0-9]+)?")


def urls_in(text: str) -> dict[str, str]:
    """The http(s) URLs of an answer as ``{normalised: as written}``; reserved hosts (``example.com``) are left out."""
    if "://" not in text:
        return {}
    found: dict[str, str] = {}
    for match in _URL.finditer(text.replace("\\_", "_")):
        url = _url_key(match.group(1))
        if url and not _RESERVED_HOST.fullmatch(_host(url)):
            found.setdefault(url, match.group().rstrip(".,;:!?'*)"))
    return found


def _url_key(rest: str) -> str:
    """What identifies a page: host, path and query; no scheme, ``www.``, fragment, closing punctuation, ``/`` or case."""
    rest = rest.split("#", 1)[0].replace("&amp;", "&")
    while rest and (rest[-1] in ".,;:!?'*_~/" or (rest[-1] == ")" and rest.count(")") > rest.count("("))):
        rest = rest[:-1]
    if "%" in rest:
        rest = unquote(rest)
    return rest.lower().removeprefix("www.")


def _host(url: str) -> str:
    return re.split(r"[/?]", url, maxsplit=1)[0].rpartition("@")[2]


def ungrounded_urls(urls: Iterable[str], given: Given) -> list[str]:
    """The normalised URLs that no text holds. A bare site is also held by any page of it, with or without a scheme."""
    left = list(urls)
    for text in given:
        if not left:
            break
        lowered = text.lower()
        pages = {host: _pages(lowered, host) for host in set(map(_host, left))}
        left = [url for url in left if not _is_among(url, pages[_host(url)])]
    return left


def _is_among(url: str, pages: set[str]) -> bool:
    if url in pages or (pages and url == _host(url)):
        return True
    # Chinese or Japanese text can stand directly behind a URL.
    return not url.isascii() and _url_key(url[: next(i for i, ch in enumerate(url) if not ch.isascii())]) in pages


def _pages(text: str, host: str) -> set[str]:
    """The normalised URLs of a site in a text; each part of the text is read once."""
    found: set[str] = set()
    at = text.find(host)
    while at >= 0:
        end = at + len(host)
        before = text[at - 1 : at]
        if not (before.isalnum() or before == "-" or (before == "." and text[max(0, at - 4) : at] != "www.")):
            match = _URL_REST.match(text, at)
            rest, _, following = (match.group() if match is not None else host).partition("://")
            key = _url_key(_NEXT_URL.sub("", rest) if following else rest)
            if _host(key) == host:  # not the beginning of a longer name
                found.add(key)
            end = max(end, at + len(rest))
        at = text.find(host, end)
    return found
