"""Read the tool requests of models, and match them to the spans of the tools."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

from ...core import jsonio
from ...core.turn import Message, ToolRequest
from ...dialects.payloads import arguments_of
from ...dialects.step import ROOTS, Step
from .llm_calls import TurnCalls
from .results import TakenOnce, since_user

Requested = tuple[ToolRequest, Step]
"""A request, and the span of the model call that made it."""
_CallKey = tuple[str | None, Hashable]


def tool_requests(turn: TurnCalls) -> list[Requested]:
    """Return the tool requests of model calls or, without model calls, of runs."""
    steps = turn.llm or [
        step for role in ROOTS for step in turn.of_role.get(role, ()) if step.output_messages is not None
    ]  # fmt: skip
    return [(request, step) for step in steps for request in turn.requests_of(step)]


def requests_read_back(turn: TurnCalls, requested: list[Requested]) -> list[Requested]:
    """Return the requests that only a later prompt contains, because an instrumentation lost streamed ones."""
    known = {id_without_name(request.name, request.call_id) for request, _ in requested}
    counts: Counter[_CallKey] | None = None
    found = []
    for step in turn.llm:
        found += [(request, step) for request in _with_new_ids(turn, step, known)]
        messages = turn.inputs(step)
        if step is not turn.llm[0] and any(request.call_id is None for one in messages for request in one.tool_calls):
            if counts is None:
                counts = Counter(_key(request) for request, _ in requested)
            found += [(request, step) for request in _more_than(counts, since_user(messages))]
    return found


def _with_new_ids(turn: TurnCalls, step: Step, known: set[str]) -> Iterator[ToolRequest]:
    """Yield this turn's requests in a prompt whose ids aren't in ``known``, and add all ids to it."""
    messages = turn.inputs(step)
    # Requests in the first prompt belong to earlier turns, unless one span describes many calls.
    first = len(messages) if step is turn.llm[0] else 0
    if first and step.overwritten:
        first = max((i for i, message in enumerate(messages) if message.role == "user" and not message.tool_results), default=0)
    for place, message in enumerate(messages):
        for request in message.tool_calls:
            if request.call_id and (call_id := id_without_name(request.name, request.call_id)) not in known:
                known.add(call_id)
                if place >= first:
                    yield request


def _more_than(counts: Counter[_CallKey], messages: Iterable[Message]) -> Iterator[ToolRequest]:
    """Yield requests without ids that a prompt contains more often than ``counts`` says, and add them to it."""
    in_prompt: Counter[_CallKey] = Counter()
    for request in (request for message in messages for request in message.tool_calls):
        key = _key(request)
        in_prompt[key] += 1
        if request.call_id is None and in_prompt[key] > counts[key]:
            counts[key] += 1
            yield request


def without_copies(requested: list[Requested], read_back: list[ToolRequest], results: Mapping[str, Any]) -> list[Requested]:
    """Drop requests without an id, or without a result, that a later prompt repeats with a new id."""
    copies = Counter(map(_key, read_back))
    kept = []
    for request, step in requested:
        if (not request.call_id or request.call_id not in results) and copies[key := _key(request)] > 0:
            copies[key] -= 1
        else:
            kept.append((request, step))
    return kept


def id_without_name(name: str | None, call_id: str | None) -> str:
    call_id = call_id or ""
    return call_id.removeprefix(f"{name}__") if "__" in call_id else call_id


def _key(request: ToolRequest) -> _CallKey:
    """Return a key that is equal for calls of one tool with the same arguments."""
    return request.name, jsonio.frozen(arguments_of(request.arguments))


class RequestMatcher:
    """Matches requests to the spans of the calls by call id or by name and arguments, one of which may be missing."""

    def __init__(self, requests: Iterable[ToolRequest]) -> None:
        self._by_id: dict[str, ToolRequest] = {}
        self._left: TakenOnce[ToolRequest] = TakenOnce()
        self._indexed: set[Callable[[ToolRequest], Iterable[Hashable]]] = set()
        for request in requests:
            if request.call_id:
                self._by_id.setdefault(request.call_id, request)
            self._left.add(request, ("name", request.name))

    def take(self, name: str | None, call_id: str | None, raw: Any, arguments: dict[str, Any] | None) -> ToolRequest | None:
        """Return a span's request, which no other span gets unless it has the same id.

        Args:
            name: The tool's name, or None if the span has only the name of a class.
            call_id: The call's id, if known.
            raw: The arguments as the span has them.
            arguments: The arguments as an object, if they are one.
        """
        if call_id and call_id in self._by_id:
            return self._by_id[call_id]
        if arguments is None and (raw is None or name is None):
            return None if name is None else self._left.take(("name", name))
        self._index(_argument_keys)
        frozen = jsonio.frozen(arguments)
        if name is None:
            return self._left.take(("arguments", frozen))
        if arguments is not None:
            return self._left.take(("arguments", name, frozen))
        self._index(_value_keys)
        return self._left.take(("arguments", name, frozen), ("value", name, jsonio.text_of(raw)))

    def _index(self, keys_of: Callable[[ToolRequest], Iterable[Hashable]]) -> None:
        if keys_of not in self._indexed:
            self._indexed.add(keys_of)
            self._left.index(keys_of)


def _argument_keys(request: ToolRequest) -> Iterable[Hashable]:
    frozen = jsonio.frozen(arguments_of(request.arguments))
    return ("arguments", frozen), ("arguments", request.name, frozen)


def _value_keys(request: ToolRequest) -> Iterator[Hashable]:
    """Yield keys for the text of each argument, and of the list of all arguments."""
    arguments = arguments_of(request.arguments)
    if arguments is not None:
        values = [*arguments.values()]
        for text in {*map(jsonio.text_of, values), jsonio.text_of(values)}:
            yield "value", request.name, text
