"""Read tool definitions, the models' tool requests, and the tool results in later prompts.

Tool requests are matched with tool spans. Results are matched with requests by call ID or, without a known ID, by order.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import Any, Generic, TypeVar

from ...core import jsonio
from ...core.turn import Message, ToolRequest, ToolResponse
from ...core.wellformed import Later
from ...dialects.content import provider_runs
from ...dialects.payloads import arguments_of, parsed
from ...dialects.step import AGENT, ROOTS, Step
from .llm_calls import TurnCalls
from .steps import LONGEST_CONSTANT

# --- definitions of tools

OUTPUT_TOOLS = frozenset(("final_result", "final_answer", "set_model_response", "Handoff-complete_task"))
"""Names of framework tools whose arguments are the turn's answer."""


def is_output_tool(name: str | None) -> bool:
    return name in OUTPUT_TOOLS or (name is not None and name.startswith("final_result_"))


def tool_definitions(turn: TurnCalls) -> list[dict[str, Any]]:
    """Return the definitions of all tools in the turn, except output tools. Some definitions are recorded only on agent spans."""
    found: dict[str, dict[str, Any]] = {}
    seen: set[str] = set()
    for step in (turn.root, *turn.of_role.get(AGENT, ()), *turn.llm):
        raw = step.tool_definitions
        if raw.__class__ is str:
            if raw in seen:
                continue
            seen.add(raw)
            definitions, cut = _parse_constant(raw) if len(raw) < LONGEST_CONSTANT else _parse(raw)
            turn.cut |= cut
        else:
            definitions = _definitions_in(raw.reader(raw.raw) if raw.__class__ is Later else raw)
        for definition in definitions:
            if not is_output_tool(definition["name"]):
                found.setdefault(definition["name"], definition)
    return list(found.values())


def parameters_of(definition: Mapping[str, Any]) -> list[str]:
    schema = definition.get("parameters")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    return list(properties) if isinstance(properties, dict) else []


def _parse(raw: str) -> tuple[list[dict[str, Any]], bool]:
    """Return (tool definitions in a JSON text, True if the text is truncated)."""
    value, cut = jsonio.loads_or_text(raw)
    return _definitions_in(value), cut


_parse_constant = lru_cache(maxsize=32)(_parse)


def _definitions_in(raw: Any) -> list[dict[str, Any]]:
    """Return the tool definitions that have a name. Remove wrappers such as ``{"type": "function", "function": {…}}``."""
    found = []
    if isinstance(raw, dict):  # a model request with definitions
        config = raw.get("config")
        raw = raw.get("tools") or raw.get("function_tools") or (config.get("tools") if isinstance(config, dict) else None)
    for item in raw if isinstance(raw, (list, tuple)) else ():
        tool = parsed(item)
        if isinstance(tool, dict) and "role" in tool:  # messages that contain definitions
            tool = tool.get("content") if tool["role"] == "tool" and not tool.get("tool_call_id") else None
        if not isinstance(tool, dict):
            continue
        declared = tool.get("function_declarations")
        if isinstance(declared, list):
            found += _definitions_in(declared)
            continue
        definition = {**tool, **tool["function"]} if isinstance(tool.get("function"), dict) else dict(tool)
        if "name" not in definition and isinstance(definition.get("data"), dict):  # a serialized object with type and data
            definition = dict(definition["data"])
        if "parameters_json_schema" in definition:
            definition["parameters"] = definition["parameters_json_schema"]
        definition.pop("function", None)
        if isinstance(definition.get("name"), str):
            found.append(definition)
    return found


# --- results

T = TypeVar("T")


class TakenOnce(Generic[T]):
    """Items by key, in order of addition. An item can have several keys, but can be taken only once."""

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
    """Tool results in one agent loop's prompts, in order. If a later prompt repeats an earlier result, the repetition is ignored.
    Results of calls whose IDs are in ``known`` are omitted, because these results are matched by ID.
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
                self._responses.add(response, (name,), (name, jsonio.frozen(arguments_of(request.arguments))))

    def take(self, name: str | None, arguments: Mapping[str, Any] | None) -> Any:
        keys = [(name,)] if arguments is None else [(name, jsonio.frozen(arguments)), (name, jsonio.frozen(None))]
        response = self._responses.take(*keys)
        return response.result if response is not None else None


def since_user(messages: Sequence[Message]) -> Sequence[Message]:
    """Return the current turn's messages: the messages after the last user message or, without a user message, all messages."""
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        if message.role == "user" and message.content and not message.tool_results:
            return messages[index + 1 :]
    return messages


def add_results_by_id(messages: Iterable[Message], requested: Iterable[str], results: dict[str, Any]) -> None:
    """Add a prompt's tool results to ``results`` by call ID. A result with an unknown ID belongs to the first request that doesn't
    have a result yet, because some APIs use two IDs per call.
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
    """Yield (request, result) pairs, matched by ID, name, or order. If a result with a tool name lacks a request, create it."""
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


# --- requests

Requested = tuple[ToolRequest, Step]
_CallKey = tuple[str | None, Hashable]


def tool_requests(turn: TurnCalls) -> list[Requested]:
    """Return all model calls' tool requests. If the turn doesn't have model calls, return all agent runs' tool requests."""
    steps = turn.llm or [step for role in ROOTS for step in turn.of_role.get(role, ()) if step.output_messages is not None]
    messages = ((message, step) for step in steps for message in turn.outputs(step))
    return [(request, step) for message, step in messages for request in (*provider_runs(message), *message.tool_calls)]


def requests_read_back(turn: TurnCalls, requested: list[Requested]) -> list[Requested]:
    """Return tool requests that appear only in later prompts, because the requesting call's span is missing or incomplete."""
    known = {id_without_name(request.name, request.call_id) for request, _ in requested}
    counts: Counter[_CallKey] | None = None
    found = []
    for step in turn.llm:
        messages = turn.inputs(step)
        first = _start_of_turn(turn, step, messages) if step is turn.llm[0] else 0
        found += [(request, step) for request in _with_new_ids(messages, first, known)]
        if any(request.call_id is None for one in messages[first:] for request in one.tool_calls):
            if counts is None:
                counts = Counter(_key(request) for request, _ in requested)
            found += [(request, step) for request in _more_than(counts, since_user(messages[first:]))]
    return found


def _start_of_turn(turn: TurnCalls, step: Step, messages: Sequence[Message]) -> int:
    """Return the index of the last user message or answer in the first call's prompt, or 0. Tool requests after this index belong
    to this turn. If the call itself requests tools, return ``len(messages)``, because earlier requests can be another turn's.
    """
    if not step.overwritten and turn.requests_of(step):
        return len(messages)
    for place in range(len(messages) - 1, 0, -1):
        message = messages[place]
        if message.role == "user" and not message.tool_results:  # also without content
            return place
        if message.role == "assistant" and message.content and not message.tool_calls:
            return place
    return 0


def _with_new_ids(messages: Sequence[Message], first: int, known: set[str]) -> Iterator[ToolRequest]:
    """Yield requests whose IDs aren't in ``known``, starting at the message with index ``first``. Add all IDs to ``known``."""
    for place, message in enumerate(messages):
        for request in message.tool_calls:
            if request.call_id and (call_id := id_without_name(request.name, request.call_id)) not in known:
                known.add(call_id)
                if place >= first:
                    yield request


def _more_than(counts: Counter[_CallKey], messages: Iterable[Message]) -> Iterator[ToolRequest]:
    """Yield requests without an ID that occur more often in ``messages`` than in ``counts``. Count the yielded requests."""
    in_prompt: Counter[_CallKey] = Counter()
    for request in (request for message in messages for request in message.tool_calls):
        key = _key(request)
        in_prompt[key] += 1
        if request.call_id is None and in_prompt[key] > counts[key]:
            counts[key] += 1
            yield request


def without_copies(requested: list[Requested], read_back: list[ToolRequest], results: Mapping[str, Any]) -> list[Requested]:
    """Drop requests that lack an ID or a result if a later prompt repeats the request with a new ID."""
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
    return request.name, jsonio.frozen(arguments_of(request.arguments))


class RequestMatcher:
    """Matcher that finds a tool span's request by call ID, or by tool name, arguments, or both."""

    def __init__(self, requests: Iterable[ToolRequest]) -> None:
        self._by_id: dict[str, ToolRequest] = {}
        self._left: TakenOnce[ToolRequest] = TakenOnce()
        self._indexed: set[Callable[[ToolRequest], Iterable[Hashable]]] = set()
        for request in requests:
            if request.call_id:
                self._by_id.setdefault(request.call_id, request)
            self._left.add(request, ("name", request.name))

    def take(self, name: str | None, call_id: str | None, raw: Any, arguments: dict[str, Any] | None) -> ToolRequest | None:
        """Return a tool span's request, or None. Each request is returned at most once to spans without its call ID.

        Args:
            name: the tool's name, or None if the span has only a class name.
            call_id: the call's ID, if known.
            raw: the arguments as recorded in the span.
            arguments: the parsed arguments, or None if they aren't an object.
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
    arguments = arguments_of(request.arguments)
    if arguments is not None:
        values = [*arguments.values()]
        for text in {*map(jsonio.text_of, values), jsonio.text_of(values)}:
            yield "value", request.name, text
