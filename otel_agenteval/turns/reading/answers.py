"""What tools answered to calls without ids: some write neither a request's id nor its answer's, so name, arguments and order decide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...core import jsonio
from ...core.turn import Message, ToolRequest, ToolResponse
from ...dialects.content import arguments_of

_Answered = list[tuple[ToolRequest, Any]]


class Answers:
    """The answers that the prompts of a turn hold, each to be taken once."""

    def __init__(self, prompts: Iterable[Sequence[Message]]) -> None:
        self._left: dict[tuple[str | None, str], _Answered] = {}
        for prompt in prompts:
            found: dict[tuple[str | None, str], _Answered] = {}
            for request, result in _answered(since_the_user(prompt)):
                found.setdefault(key_of(request), []).append((request, result))
            for key, answered in found.items():  # each prompt repeats what those before it held
                if len(answered) > len(self._left.get(key, ())):
                    self._left[key] = answered
        for key, answered in self._left.items():
            self._left[key] = answered[::-1]

    def take(self, name: str | None, arguments: Any) -> tuple[bool, Any]:
        """Whether a call was answered, and with what. Without arguments, the first answer to a call of that name."""
        if arguments is None:
            left = next((answered for (known, _), answered in self._left.items() if known == name and answered), None)
        else:
            left = self._left.get(key_of(ToolRequest(None, name, arguments)))
        return (True, left.pop()[1]) if left else (False, None)


def key_of(request: ToolRequest) -> tuple[str | None, str]:
    """The same for equal calls."""
    given = arguments_of(request.arguments)
    return request.name, jsonio.text_of(dict(sorted(given.items())) if given is not None else request.arguments)


def since_the_user(messages: Sequence[Message]) -> Sequence[Message]:
    """What follows the last thing that the user said."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.content and not message.tool_results:
            return messages[index + 1 :]
    return messages


def _answered(messages: Sequence[Message]) -> _Answered:
    waiting: list[ToolRequest] = []
    found: _Answered = []
    for message in messages:
        if message.tool_calls:
            waiting = list(message.tool_calls)
        for response in message.tool_results:
            request = _behind(waiting, response)
            if request is not None:
                waiting.remove(request)
                found.append((request, response.result))
    return found


def _behind(waiting: list[ToolRequest], response: ToolResponse) -> ToolRequest | None:
    """The request that an answer is for: by id, by name, else the first one."""
    for request in waiting:
        if request.call_id is not None and request.call_id == response.call_id:
            return request
    return next((request for request in waiting if response.name is None or request.name == response.name), None)
