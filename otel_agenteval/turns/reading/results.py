"""Match tool results in later prompts to tool calls by their order.

This is needed if requests and results have no ids, or other ids than the calls.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Generic, TypeVar

from ...core.jsonio import frozen
from ...core.turn import Message, ToolRequest, ToolResponse
from ...dialects.payloads import arguments_of

T = TypeVar("T")


class TakenOnce(Generic[T]):
    """Items of which each is taken once, found by their keys in the order in which they were added."""

    def __init__(self) -> None:
        self._left: dict[int, T] = {}
        self._places: dict[Hashable, deque[int]] = {}
        self._count = 0

    def add(self, item: T, *keys: Hashable) -> None:
        self._left[self._count] = item
        for key in keys:
            self._places.setdefault(key, deque()).append(self._count)
        self._count += 1

    def index(self, keys_of: Callable[[T], Iterable[Hashable]]) -> None:
        for place, item in self._left.items():
            for key in keys_of(item):
                self._places.setdefault(key, deque()).append(place)

    def take(self, *keys: Hashable) -> T | None:
        found = [place for key in keys if (place := self._first(key)) is not None]
        return self._left.pop(min(found)) if found else None

    def _first(self, key: Hashable) -> int | None:
        places = self._places.get(key, deque())
        while places and places[0] not in self._left:
            places.popleft()
        return places[0] if places else None


class OrderedResults:
    """Tool results by tool in the prompts of one agent's loop, each of which is taken once. Later prompts repeat the earlier
    ones. ``known`` has the ids of calls whose results are found by id.
    """

    def __init__(self, prompts: Iterable[Sequence[Message]], known: AbstractSet[str]) -> None:
        answers: dict[str, list[tuple[ToolRequest, ToolResponse]]] = {}
        for messages in prompts:
            found: dict[str, list[tuple[ToolRequest, ToolResponse]]] = {}
            for request, response in pairs_with_results(since_user(messages)):
                name = request.name or response.name
                if name is not None and request.call_id not in known and response.call_id not in known:
                    found.setdefault(name, []).append((request, response))
            for name, pairs in found.items():
                earlier = answers.setdefault(name, [])
                earlier += pairs[len(earlier) :]
        self._responses: TakenOnce[ToolResponse] = TakenOnce()
        for name, pairs in answers.items():
            for request, response in pairs:
                self._responses.add(response, (name,), (name, frozen(arguments_of(request.arguments))))

    def take(self, name: str | None, arguments: Mapping[str, Any] | None) -> Any:
        keys = [(name,)] if arguments is None else [(name, frozen(arguments)), (name, frozen(None))]
        response = self._responses.take(*keys)
        return response.result if response is not None else None


def since_user(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the messages after the last user message. Those before belong to earlier turns."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.content and not message.tool_results:
            return messages[index + 1 :]
    return messages


def add_results_by_id(messages: Iterable[Message], requested: Iterable[str], results: dict[str, Any]) -> None:
    """Add the tool results in a prompt, by call id. A call may have two ids, of an item and of the call. Results with other ids
    than the ``requested`` ones are in the order of the requests.
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


def pairs_with_results(messages: Iterable[Message]) -> Iterator[tuple[ToolRequest, ToolResponse]]:
    """Yield each request with its result, matched by id or, without an id, by tool name or order."""
    waiting: TakenOnce[ToolRequest] = TakenOnce()
    for message in messages:
        for request in message.tool_calls:
            waiting.add(request, "any", ("id", request.call_id), ("name", request.name))
        for response in message.tool_results:
            found = waiting.take(("id", response.call_id)) if response.call_id else None
            if found is None:
                found = waiting.take(("name", response.name) if response.name else "any")
            if found is not None:
                yield found, response
            elif response.name:  # no message contains the request
                yield ToolRequest(None, response.name, None), response
