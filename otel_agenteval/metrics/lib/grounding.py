"""Collect a turn's answer, and the texts that can support the answer's claims ("given texts").

The given texts are tool results and errors, user messages, retrieved documents, system instructions, tool definitions, and earlier
messages, including the agent's. Tool *arguments* and the agent's messages in this turn are excluded, because the model wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...core import jsonio
from ...core.turn import Message, ToolCall, Turn
from ...detectors.numbers.grounded import has_number, is_text_to_work_on
from ...detectors.screen import Look
from ...detectors.texts import SCAN_LIMIT, GivenTexts


def screen_of_output(turn: Turn) -> Look:
    """Return the answer as a :class:`Look`, which all detectors share. If the answer is unknown, its text is empty."""
    output = turn.output or ""
    screen: Look | None = turn.shared.get("screen")
    if screen is None or screen.whole is not output:
        screen = turn.shared["screen"] = Look(output)
    return screen


class GivenInTurn(GivenTexts):
    """The texts that the agent received in a turn, each with its path, such as ``messages[0].content``."""

    __slots__ = ("_turn", "found")

    def __init__(self, turn: Turn) -> None:
        super().__init__(self._values())
        self._turn = turn
        self.found: list[tuple[str, Any]] = []

    def _values(self) -> Iterator[Any]:
        for path, value in _given_values(self._turn):
            self.found.append((path, value))
            yield value

    def gap(self) -> str | None:
        """Return a skip reason if the given texts may be incomplete, or None.

        - ``missing:sources``: There are no given texts, or the text of a tool result, document, or attachment is unknown.
        - ``truncated``: The content was truncated before otel-agenteval received it.
        - ``too_long``: A text read so far is longer than :data:`SCAN_LIMIT`.
        """
        turn = self._turn
        if not any(self) or _has_unknown_parts(turn):
            return "missing:sources"
        if turn.truncated:
            return "truncated"
        return "too_long" if self.is_cut else None

    def has_results(self) -> bool:
        turn = self._turn
        if turn.context or any(document.content for retrieval in turn.retrievals for document in retrieval.documents):
            return True
        if any(call.result not in (None, "") or call.error is not None for call in turn.tool_calls or ()):
            return True
        return any(message.role == "tool" or message.tool_results for message in turn.messages)


def material_of(turn: Turn) -> Iterator[str]:
    yield from (jsonio.text_of(call.result)[:SCAN_LIMIT] for call in turn.tool_calls or () if call.result is not None)
    yield from turn.context
    yield from (document.content for retrieval in turn.retrievals for document in retrieval.documents if document.content)


def _given_values(turn: Turn) -> Iterator[tuple[str, Any]]:
    for i, call in enumerate(turn.tool_calls or ()):
        if call.result is not None:
            yield f"tool_calls[{i}].result", call.result
        if call.error is not None and call.error.message:
            yield f"tool_calls[{i}].error.message", call.error.message
    if turn.input:
        yield "input", turn.input
    yield from ((f"context[{i}]", text) for i, text in enumerate(turn.context))
    for i, retrieval in enumerate(turn.retrievals):
        for k, document in enumerate(retrieval.documents):
            if document.content:
                yield f"retrievals[{i}].documents[{k}].content", document.content
    if turn.system:
        yield "system", turn.system
    yield from _message_texts(turn.messages, turn.tool_calls or ())
    if turn.history:
        yield "history", turn.history
    if turn.tool_definitions:
        yield "tool_definitions", turn.tool_definitions


def _message_texts(messages: Sequence[Message], calls: Sequence[ToolCall]) -> Iterator[tuple[str, Any]]:
    """Yield each message and tool result with its path, except the agent's texts in this turn and the results of ``calls``."""
    asked = _last_user_message(messages)
    results: dict[str | None, Any] = {call.call_id: call.result for call in calls if call.call_id is not None}
    for i, message in enumerate(messages):
        if message.content and (i <= asked or message.role != "assistant"):
            yield f"messages[{i}].content", message.content
        for k, response in enumerate(message.tool_results):
            if response.result is not None and not _is_same_result(response.result, results.get(response.call_id)):
                yield f"messages[{i}].tool_results[{k}].result", response.result


def _is_same_result(sent: Any, result: Any) -> bool:
    if isinstance(result, str) and not isinstance(sent, str) and len(result) <= SCAN_LIMIT:
        try:
            result = jsonio.loads(result)
        except (ValueError, RecursionError):
            return False
    return bool(sent == result)


def _has_unknown_parts(turn: Turn) -> bool:
    messages = turn.messages
    if turn.attachments or any(message.attachments for message in messages):
        return True
    if any(call.result is None and call.state == "executed" for call in turn.tool_calls or ()):
        return not any(message.tool_results or message.role == "tool" for message in messages)
    return not turn.context and any(not document.content for retrieval in turn.retrievals for document in retrieval.documents)


def has_material(turn: Turn) -> bool:
    """Return True if a source other than the user's question can contain the answer's numbers.

    Tool calls, tool results, and retrieved documents are always enough. Instructions, tool definitions, and earlier messages are
    enough if they contain numbers. The user's input is enough if it contains numbers and a text to process.
    """
    earlier = turn.messages[: max(_last_user_message(turn.messages), 0)]
    return (
        bool(turn.tool_calls)
        or any(turn.context)
        or any(retrieval.documents for retrieval in turn.retrievals)
        or any(message.tool_results or message.role == "tool" for message in turn.messages)
        or has_number(turn.system or "")
        or any(has_number(str(value)[:SCAN_LIMIT]) for value in (turn.history, turn.tool_definitions) if value)
        or any(has_number(message.content) for message in earlier if message.content)
        or is_text_to_work_on(turn.input or "")
    )


def _last_user_message(messages: Sequence[Message]) -> int:
    return max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
