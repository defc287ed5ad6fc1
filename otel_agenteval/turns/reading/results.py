"""Match tool results in later prompts to tool calls by their order.

This is needed if requests and results have no ids, or other ids than the calls.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Container, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from ...core.jsonio import frozen
from ...core.turn import Message, ToolRequest, ToolResponse
from ...dialects.content import arguments_of


class _Answer(NamedTuple):
    arguments: Mapping[str, Any] | None
    """Arguments of the tool call, if the prompt contains them."""
    result: Any


class OrderedResults:
    """Tool results in the prompts of one agent's loop, by tool. Each is taken once.

    Args:
        prompts: messages before each of the loop's model calls, by start time. Later prompts repeat the earlier ones.
        known: ids of calls whose results are found by id.
    """

    def __init__(self, prompts: Iterable[Sequence[Message]], known: AbstractSet[str]) -> None:
        self._left: dict[str, _Left] = {}
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
        """Return the result of the next call of a tool with these arguments.

        Ask for calls in the order in which they were made.
        """
        answers = self._of_tool.get(name or "")
        if answers is None:
            return None
        left = self._left.get(name or "")
        if left is None:
            left = self._left[name or ""] = _Left(answers)
        return left.take(arguments)


class _Left:
    def __init__(self, answers: Sequence[_Answer]) -> None:
        self._answers = dict(enumerate(answers))
        self._bare: deque[int] = deque()
        """Places of results without known arguments."""
        self._alike: dict[Hashable, deque[int]] = {}
        for place, answer in enumerate(answers):
            if answer.arguments is None:
                self._bare.append(place)
            else:
                self._alike.setdefault(frozen(answer.arguments), deque()).append(place)

    def take(self, arguments: Mapping[str, Any] | None) -> Any:
        if arguments is None:
            place = next(iter(self._answers), None)
        else:
            place = first_left(self._alike.get(frozen(arguments), deque()), self._answers)
            bare = first_left(self._bare, self._answers)
            if place is None or (bare is not None and bare < place):
                place = bare
        return self._answers.pop(place).result if place is not None else None


def first_left(places: deque[int], among: Container[int]) -> int | None:
    """Return the first place that isn't taken, and drop those before it."""
    while places and places[0] not in among:
        places.popleft()
    return places[0] if places else None


def since_user(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages after the last user message. Those before belong to earlier turns."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.content and not message.tool_results:
            return messages[index + 1 :]
    return messages


def add_results_by_id(messages: Iterable[Message], requested: Iterable[str], results: dict[str, Any]) -> None:
    """Add the tool results in a prompt to ``results``, by call id.

    A call may have two ids, of an item and of the call. Results with other ids than the requests are in the order of
    the requests.

    Args:
        messages: the prompt.
        requested: ids that the answer before it requested.
        results: receives the results.
    """
    waiting: OrderedDict[str, None] = OrderedDict.fromkeys(requested)
    answered = True
    for message in messages:
        if message.tool_calls:
            if answered:
                waiting.clear()
            waiting.update((call.call_id, None) for call in message.tool_calls if call.call_id)
            answered = False
        for response in message.tool_results:
            answered = True
            if response.call_id:
                results[response.call_id] = response.result
            if response.call_id is not None and response.call_id in waiting:
                del waiting[response.call_id]
            elif waiting:
                results.setdefault(waiting.popitem(last=False)[0], response.result)


def _answered(messages: Iterable[Message]) -> Iterator[tuple[ToolRequest, ToolResponse]]:
    """Yield each request with its result.

    Results are matched by id. Those without an id are matched by tool name, and those without either in order.
    """
    waiting = _Waiting()
    for message in messages:
        for request in message.tool_calls:
            waiting.add(request)
        for response in message.tool_results:
            found = waiting.take(response)
            if found is not None:
                yield found, response
            elif response.name:  # no message contains the request
                yield ToolRequest(None, response.name, None), response


class _Waiting:
    def __init__(self) -> None:
        self._requests: dict[int, ToolRequest] = {}
        self._of_id: dict[str, deque[int]] = {}
        self._of_name: dict[str, deque[int]] = {}
        self._count = 0

    def add(self, request: ToolRequest) -> None:
        self._requests[self._count] = request
        if request.call_id:
            self._of_id.setdefault(request.call_id, deque()).append(self._count)
        if request.name:
            self._of_name.setdefault(request.name, deque()).append(self._count)
        self._count += 1

    def take(self, response: ToolResponse) -> ToolRequest | None:
        place = first_left(self._of_id.get(response.call_id, deque()), self._requests) if response.call_id else None
        if place is None and response.name:
            place = first_left(self._of_name.get(response.name, deque()), self._requests)
        elif place is None:
            place = next(iter(self._requests), None)
        return self._requests.pop(place) if place is not None else None
