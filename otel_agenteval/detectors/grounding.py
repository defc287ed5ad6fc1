"""Collect the texts that the agent was given in a turn, which can ground its answer.

Grounding texts are tool results, the user's words, retrieved documents, system instructions, tool definitions and earlier
messages, including the agent's own. The model writes the tool *arguments* and the messages of this turn itself, so they can't
ground anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..core import jsonio
from ..core.turn import Turn

SCAN_LIMIT = 100_000
"""Characters that are read of each text."""

_ESCAPED_CHARACTER = re.compile(r"\\{1,8}u([0-9a-fA-F]{4})")
_ESCAPED_SLASH = re.compile(r"\\{1,8}/")


def text_of(value: Any) -> str:
    """Return a value as text without JSON escapes, at most :data:`SCAN_LIMIT` characters."""
    return unescaped(jsonio.text_of(value)[:SCAN_LIMIT])


def unescaped(text: str) -> str:
    r"""Undo ``\uXXXX`` and ``\/`` escapes of JSON, even if it was serialized several times."""
    if "\\" not in text:
        return text
    if "u" in text:
        text = _ESCAPED_CHARACTER.sub(lambda found: chr(int(found.group(1), 16)), text)
        if not text.isascii():  # two escapes of a surrogate pair are one character
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _ESCAPED_SLASH.sub("/", text)


class Given:
    """The texts that the agent was given in a turn.

    Iteration reads the texts lazily and keeps them. :meth:`gap` returns the reason if some couldn't be read.
    """

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
        """Return why the agent may have been given something that no text contains, or None.

        The reason is used for a skipped score:

        - ``missing:sources``: The text of a result, document or attachment is unknown.
        - ``truncated``: The content was truncated before otel-agenteval received it.
        - ``too_long``: A text is longer than :data:`SCAN_LIMIT`.
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
