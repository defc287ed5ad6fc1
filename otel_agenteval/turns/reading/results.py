"""What tools returned, as later prompts hold it, found by order where requests and results have other ids than calls, or none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from ...core.turn import Message, ToolRequest, ToolResponse
from ...dialects.content import arguments_of


class _Answer(NamedTuple):
    arguments: Mapping[str, Any] | None
    """What was given to the tool, as far as the prompt says so."""
    result: Any


class OrderedResults:
    """The answers in the prompts of one agent's loop, by tool, each of which is taken once.

    Args:
        prompts: the messages before each of its model calls, by start time. A later prompt repeats the earlier ones.
        known: ids of calls whose results are found by id.
    """

    def __init__(self, prompts: Iterable[Sequence[Message]], known: AbstractSet[str]) -> None:
        self._of_tool: dict[str, list[_Answer]] = {}
        for messages in prompts:
            found: dict[str, list[_Answer]] = {}
            for request, response in _answered(since_user(messages)):
                name = request.name or response.name
                if name is not None and request.call_id not in known and response.call_id not in known:
                    found.setdefault(name, []).append(_Answer(arguments_of(request.arguments), response.result))
            for name, answers in found.items():
                earlier = self._of_tool.setdefault(name, [])
                earlier += answers[len(earlier) :]

    def take(self, name: str | None, arguments: Mapping[str, Any] | None) -> Any:
        """The result of the next call of a tool with these arguments; calls are asked for in the order in which they were made."""
        answers = self._of_tool.get(name or "", [])
        for place, answer in enumerate(answers):
            if answer.arguments is None or arguments is None or answer.arguments == arguments:
                del answers[place]
                return answer.result
        return None


def since_user(messages: Sequence[Message]) -> Sequence[Message]:
    """What came after the last thing that a user said: all before belongs to earlier turns."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.content and not message.tool_results:
            return messages[index + 1 :]
    return messages


def _answered(messages: Iterable[Message]) -> Iterator[tuple[ToolRequest, ToolResponse]]:
    """Each request with its answer: of the same id, else of the same tool, else in their order."""
    waiting: list[ToolRequest] = []
    for message in messages:
        waiting += message.tool_calls
        for response in message.tool_results:
            found = _asked_for(response, waiting)
            if found is not None:
                waiting.remove(found)
                yield found, response
            elif response.name:  # the request stands in no message
                yield ToolRequest(None, response.name, None), response


def _asked_for(response: ToolResponse, waiting: Sequence[ToolRequest]) -> ToolRequest | None:
    if response.call_id:
        found = next((call for call in waiting if call.call_id == response.call_id), None)
        if found is not None:
            return found
    if response.name:
        return next((call for call in waiting if call.name == response.name), None)
    return waiting[0] if waiting else None
