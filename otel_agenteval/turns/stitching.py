"""Join model calls in separate traces into turns, by comparing IDs, messages, and token counts.

If an agent loop lacks an agent span, each model call can be a separate trace. A *piece* consists of one or more joined calls. A
piece waits if its last call requests tools, or if its first prompt has tool results that an unknown call requested. The rules, such
as *next call*, are in docs/internals/turn-stitching-rules.md. Of turns with agent spans, only a thread's messages are joined.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field

from ..core.tenancy import number_in
from ..core.turn import Message
from ..dialects.step import INNER, LLM, TOOL, UNKNOWN, Step
from ..spans.record import SpanRecord
from .reading.llm_calls import TurnCalls
from .reading.turn import TurnReader
from .roots import SpanGroup
from .threads import Threads

_ASKS_FOR_TOOLS = frozenset(("tool_calls", "tool_call", "tool_use", "function_call"))
_MAX_PAUSE_NS = 600 * 10**9
"""Maximum nanoseconds between two calls that are joined without a shared tool call ID or response ID."""
_MOST_RESPONSES = 8
"""Number of latest response IDs that a piece keeps, because a later call can refer to them."""
_MOST_CANDIDATES = 64
"""Maximum number of waiting pieces that are compared with one call, latest first."""
_LATE_END_NS = 10**9
"""Tolerated overlap of two calls in nanoseconds. A streamed response's span can end after the next call started."""


def reader_of(group: SpanGroup) -> TurnReader:
    if group.reader is None:
        calls = TurnCalls(group.root, group.members)
        if group.ancestor is not None:
            calls.share(group.ancestor)
        calls.until_ns = group.until_ns
        group.reader = TurnReader(calls)
    reader: TurnReader = group.reader
    return reader


def steps_of(group: SpanGroup) -> TurnCalls:
    return reader_of(group).calls


@dataclass(slots=True, eq=False)
class _PlaceOfPart:
    """Reference to one of a piece's span groups. A more complete group can replace this group."""

    group: SpanGroup
    piece: _Piece


class _Piece:
    """One or more joined span groups of one turn. Another trace might continue the turn."""

    __slots__ = (
        "continues", "end_ns", "first_arrival", "first_call", "index_keys", "lacks_request", "last_arrival", "number", "places",
        "requested_ids", "response_ids", "result_ids", "size", "waits",
    )  # fmt: skip

    def __init__(self, group: SpanGroup, turn: TurnCalls, first_arrival: float) -> None:
        self.places = deque((_PlaceOfPart(group, self),))
        self.first_arrival = self.last_arrival = first_arrival
        self.number = 0
        """Sequence number of this piece in the order in which pieces began to wait."""
        self.index_keys: tuple[Hashable, ...] = ()
        """Keys under which :class:`_PieceIndex` finds this piece while the piece waits."""
        self.end_ns = group.root.end_ns
        self.size = group.size
        self.response_ids: dict[str, None] = {}
        self._read_start(turn)
        self._read_end(turn)

    def _read_start(self, turn: TurnCalls) -> None:
        self.first_call = turn.llm[0]
        new_messages = after_last_answer(turn.inputs(self.first_call))
        results = (result for message in new_messages for result in message.tool_results)
        self.result_ids = dict.fromkeys(result.call_id for result in results if result.call_id)
        """Call IDs of new tool results, which are after the last assistant message in the first prompt."""
        self.lacks_request = bool(self.result_ids)
        """True if the first prompt has IDs of new tool results, but the model call that requested these tools is missing."""
        self.continues = bool(new_messages) and not has_user_message(new_messages)
        """True if the first prompt has new messages, and the user didn't send any of them."""

    def _read_end(self, turn: TurnCalls) -> None:
        last = turn.llm[-1]
        answers = turn.outputs(last)
        calls = [call for message in answers for call in message.tool_calls]
        self.requested_ids = dict.fromkeys(call.call_id for call in calls if call.call_id)
        reason = last.finish_reason or next((message.finish_reason for message in answers if message.finish_reason), "")
        self.waits = last.error is None and (bool(calls) or reason.lower() in _ASKS_FOR_TOOLS)
        """True if the last model call succeeded and requested tools, so another call must follow."""
        if last.response_id:
            self.response_ids[last.response_id] = None

    @property
    def first_group(self) -> SpanGroup:
        return self.places[0].group

    @property
    def last_group(self) -> SpanGroup:
        return self.places[-1].group

    @property
    def groups(self) -> list[SpanGroup]:
        return [place.group for place in self.places]

    @property
    def tenant(self) -> int:
        return number_in(self.first_group.root.trace_id)

    @property
    def start_ns(self) -> int:
        return self.first_group.root.start_ns

    def join(self, later: _Piece) -> _Piece:
        """Join this piece with the ``later`` piece that continues it. Return the larger piece, which now contains both pieces."""
        responses = {**self.response_ids, **later.response_ids}
        for response_id in [*responses][:-_MOST_RESPONSES]:
            del responses[response_id]
        if len(self.places) >= len(later.places):
            whole, part = self, later
            whole.places.extend(part.places)
            whole.requested_ids, whole.waits = part.requested_ids, part.waits
        else:
            whole, part = later, self
            whole.places.extendleft(reversed(part.places))
            whole.first_call, whole.result_ids = part.first_call, part.result_ids
            whole.lacks_request, whole.continues = part.lacks_request, part.continues
        for place in part.places:
            place.piece = whole
        whole.response_ids = responses
        whole.first_arrival = min(whole.first_arrival, part.first_arrival)
        whole.end_ns = max(whole.end_ns, part.end_ns)
        whole.size += part.size
        return whole

    def replace(self, place: _PlaceOfPart, whole: SpanGroup) -> None:
        self.end_ns = max(self.end_ns, whole.root.end_ns)
        self.size += whole.size - place.group.size
        place.group = whole
        if place is self.places[0]:
            self._read_start(steps_of(whole))
        if place is self.places[-1]:
            self._read_end(steps_of(whole))

    def joined(self) -> SpanGroup:
        first, *others = self.groups
        if not others:
            return first
        whole = SpanGroup.joined([first, *others])
        whole.until_ns = self.end_ns
        whole.reader = reader_of(first).extended([reader_of(group) for group in others], whole.until_ns)
        return whole


def may_go_on(group: SpanGroup) -> bool:
    """Return True if another trace might continue a group, which is a thread's message or a model call outside an agent."""
    turn = steps_of(group)
    root = turn.root
    if root.thread is not None or is_bare_call(group):
        return True
    # one call below a root without content: an application's span or a loop's step
    allowed_roles = {None, UNKNOWN, INNER, LLM, *((TOOL,) if root.role == INNER else ())}
    if root.role not in (None, INNER) or len(turn.llm) != 1 or not turn.of_role.keys() <= allowed_roles:
        return False
    return root.input_messages is None and root.input_value is None and root.output_messages is None and root.output_value is None


def is_bare_call(group: SpanGroup) -> bool:
    turn = steps_of(group)
    return turn.root.role == LLM and bool(turn.llm)


@dataclass(slots=True)
class _TenantPieces:
    parts: OrderedDict[int, _Piece] = field(default_factory=OrderedDict)
    size: int = 0


class _PieceIndex:
    """Index of waiting pieces. The index keys can also be computed from the model call that continues a piece."""

    def __init__(self) -> None:
        self._pieces: dict[Hashable, list[tuple[int, int, _Piece]]] = {}  # sorted (end, number, piece)

    def add(self, piece: _Piece) -> None:
        for key in piece.index_keys:
            bisect.insort(self._pieces.setdefault(key, []), (piece.end_ns, piece.number, piece))

    def remove(self, piece: _Piece) -> None:
        for key in piece.index_keys:
            pieces = self._pieces[key]
            del pieces[bisect.bisect_left(pieces, (piece.end_ns, piece.number))]
            if not pieces:
                del self._pieces[key]

    def ended(self, key: Hashable, first_ns: int, last_ns: int) -> list[_Piece]:
        """Return pieces with the index key ``key`` that ended from ``first_ns`` to ``last_ns``: the latest, latest first."""
        pieces = self._pieces.get(key, ())
        stop = bisect.bisect_left(pieces, (last_ns + 1,))
        latest = pieces[max(bisect.bisect_left(pieces, (first_ns,)), stop - _MOST_CANDIDATES - 1) : stop]
        return [piece for _, _, piece in reversed(latest)]


class Stitcher:
    """Store of pieces. A piece waits until it is complete, or for ``patience`` seconds without a new trace. Not thread-safe.

    If ``max_bytes`` is exceeded, the largest tenant's oldest piece is released. A piece is also released if a trace is added at
    least ``max_age`` seconds after the piece's first trace.
    """

    def __init__(self, patience: float, max_bytes: float = math.inf, max_age: float = math.inf) -> None:
        self.patience = patience
        """Seconds that a piece waits for its next trace. If 0, pieces aren't held."""
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._threads = Threads()
        self.forget()

    def forget(self) -> None:
        self._threads.forget()
        self._bytes = 0
        self._numbers = itertools.count()
        self._held: OrderedDict[int, _Piece] = OrderedDict()
        self._shares: dict[int, _TenantPieces] = {}
        self._waiting = _PieceIndex()
        self._by_requested_id: dict[tuple[int, str], _Piece] = {}
        """Maps (tenant number, requested call ID) to a piece. The key has a tenant because call IDs aren't globally unique."""
        self._by_result_id: dict[tuple[int, str], _Piece] = {}
        self._by_response_id: dict[tuple[int, str], _Piece] = {}
        self._places: dict[int, _PlaceOfPart] = {}

    def __len__(self) -> int:
        return len(self._held) + len(self._threads)

    def add(self, group: SpanGroup, now: float, first_arrival: float | None = None) -> list[SpanGroup]:
        """Add a group. Return turns that can be evaluated now. If it replaces a group, pass that group's ``first_arrival``."""
        if self.patience <= 0 or not may_go_on(group):
            return [group]
        thread = steps_of(group).root.thread
        if thread is not None:
            self._threads.add(group, thread, now)
            return self._threads.due(now, now) if self._threads.size > self._max_bytes else []
        piece = _Piece(group, steps_of(group), now if first_arrival is None else first_arrival)
        self._places[id(group)] = piece.places[0]
        earlier = self._continued_piece(piece)
        if earlier is not None:
            piece = self._release(earlier).join(piece)  # the first part may still be missing
        for call_id in piece.requested_ids:
            later = self._by_result_id.get((piece.tenant, call_id))
            if later is not None and later.start_ns >= piece.start_ns:
                piece = piece.join(self._release(later))
                break
        piece.last_arrival = now
        return self._whole_or_held(piece, now)

    def holds(self, group: SpanGroup) -> bool:
        return id(group) in self._places

    def replace(self, group: SpanGroup, whole: SpanGroup, now: float) -> list[SpanGroup]:
        """Replace a waiting group with the more complete group ``whole``. Return the turns that can be evaluated now."""
        place = self._places.pop(id(group))
        piece = self._release(place.piece)
        if len(piece.places) == 1:
            return self.add(whole, now, piece.first_arrival)
        piece.replace(place, whole)
        piece.last_arrival = now
        self._places[id(whole)] = place
        return self._whole_or_held(piece, now)

    def release_parts(self, group: SpanGroup) -> Iterable[SpanGroup]:
        piece = self._release(self._places[id(group)].piece)
        self._untrack(piece)
        return piece.groups

    def _untrack(self, piece: _Piece) -> _Piece:
        for place in piece.places:
            del self._places[id(place.group)]
            del place.piece  # avoids a reference cycle
        return piece

    def _whole_or_held(self, piece: _Piece, now: float) -> list[SpanGroup]:
        """Return the turn if it is complete or too old. Otherwise, hold the turn, and return turns released to make room."""
        if not (piece.waits or piece.lacks_request) or now - piece.first_arrival >= self._max_age:
            return [self._untrack(piece).joined()]
        self._hold(piece)
        released = []
        while self._bytes > self._max_bytes:
            largest_share = max(self._shares.values(), key=lambda share: share.size)
            oldest = next(iter(largest_share.parts.values()))
            released.append(self._untrack(self._release(oldest)).joined())
        return released

    def due(self, now: float) -> list[SpanGroup]:
        overdue = []
        while self._held:
            oldest = next(iter(self._held.values()))
            if oldest.last_arrival + self.patience > now:
                break
            overdue.append(self._untrack(self._release(oldest)).joined())
        return overdue + self._threads.due(now - self.patience, now - self._max_age)

    def release_all(self) -> list[SpanGroup]:
        released = [self._untrack(self._release(piece)).joined() for piece in list(self._held.values())]
        released += self._threads.due(math.inf, math.inf)
        return sorted(released, key=lambda group: group.root.start_ns)

    def running(self, time_ns: int) -> Iterator[SpanRecord]:
        """Yield the first root of each held piece that was running, or waiting for a tool, at this time."""
        for piece in self._held.values():
            if piece.start_ns < time_ns and (piece.waits or time_ns <= piece.end_ns):
                yield piece.first_group.root

    def traces(self) -> set[int]:
        held = {record.trace_id for piece in self._held.values() for group in piece.groups for record in group.members}
        return held | self._threads.traces()

    def forget_traces(self, trace_ids: set[int]) -> list[SpanGroup]:
        """Drop and return these traces' waiting groups, and all groups joined with those groups."""
        pieces = [piece for piece in self._held.values() if any(group.root.trace_id in trace_ids for group in piece.groups)]
        dropped = [group for piece in pieces for group in self._untrack(self._release(piece)).groups]
        return dropped + self._threads.forget_traces(trace_ids)

    def _continued_piece(self, piece: _Piece) -> _Piece | None:
        for call_id in piece.result_ids:
            held = self._by_requested_id.get((piece.tenant, call_id))
            if held is not None and held.start_ns <= piece.start_ns:
                return held
        previous = piece.first_call.record.attributes.get("gen_ai.request.previous_response.id")
        if isinstance(previous, str) and (piece.tenant, previous) in self._by_response_id and piece.continues:
            return self._by_response_id[piece.tenant, previous]
        continued = (held for held in self._candidates(piece) if _follows(held, piece)) if piece.continues else ()
        return max(continued, key=lambda held: held.number, default=None) or self._only_waiting(piece)

    def _candidates(self, piece: _Piece) -> Iterator[_Piece]:
        """Yield waiting pieces that share a key with this call, latest first (rules *repeated messages*, *same conversation*)."""
        yielded: set[int] = set()
        for key in _keys_in_prompt(piece):
            for held in self._waiting.ended(key, piece.start_ns - _MAX_PAUSE_NS, piece.start_ns + _LATE_END_NS):
                if len(yielded) >= _MOST_CANDIDATES:
                    return
                if held.number not in yielded:
                    yielded.add(held.number)
                    yield held

    def _only_waiting(self, piece: _Piece) -> _Piece | None:
        """Return the only waiting piece that a call can continue by the rule *next call*, or None."""
        if not is_bare_call(piece.first_group):
            return None
        program = _program_key(piece.first_group, piece.first_call)
        candidates = self._waiting.ended(program, piece.start_ns - _MAX_PAUSE_NS, piece.start_ns)
        if len(candidates) > _MOST_CANDIDATES:
            return None
        continued = list(itertools.islice((held for held in candidates if _may_be_next(held, piece)), 2))
        return continued[0] if len(continued) == 1 else None

    def _hold(self, piece: _Piece) -> None:
        self._bytes += piece.size
        share = self._shares.setdefault(piece.tenant, _TenantPieces())
        share.size += piece.size
        share.parts[id(piece)] = self._held[id(piece)] = piece
        piece.number = next(self._numbers)
        piece.index_keys = tuple(dict.fromkeys(_keys_while_waiting(piece))) if piece.waits else ()
        self._waiting.add(piece)
        for index, keys in self._indexes(piece):
            index.update({(piece.tenant, key): piece for key in keys})

    def _release(self, piece: _Piece) -> _Piece:
        if self._held.pop(id(piece), None) is not None:
            self._bytes -= piece.size
            share = self._shares[piece.tenant]
            share.size -= piece.size
            del share.parts[id(piece)]
            if not share.parts:
                del self._shares[piece.tenant]
            self._waiting.remove(piece)
        for index, keys in self._indexes(piece):
            for key in keys:
                if index.get((piece.tenant, key)) is piece:
                    del index[piece.tenant, key]
        return piece

    def _indexes(self, piece: _Piece) -> tuple[tuple[dict[tuple[int, str], _Piece], Iterable[str]], ...]:
        return (
            (self._by_requested_id, piece.requested_ids),
            (self._by_result_id, piece.result_ids),
            (self._by_response_id, piece.response_ids),
        )


# --- index keys of waiting pieces and of the calls that continue them


def _keys_while_waiting(held: _Piece) -> Iterator[Hashable]:
    """Yield the keys under which to find a waiting piece when its turn's next call arrives."""
    tenant, turn = held.tenant, steps_of(held.last_group)
    last = turn.llm[-1]
    yield from ((tenant, "asks", call_id) for call_id in held.requested_ids)
    if last_answer(turn.outputs(last)) is None:
        yield tenant, "prompt", _hashes_of_beginnings(turn.inputs(last))[-1]
    elif not held.requested_ids:
        yield tenant, "user", _user_messages(turn)
    if (conversation := turn.conversation_id()) is not None:
        yield tenant, "conversation", conversation
    if _min_tokens(held) > 0 and is_bare_call(held.last_group):
        yield _program_key(held.last_group, last)


def _keys_in_prompt(piece: _Piece) -> Iterator[Hashable]:
    """Yield keys from a call's prompt under which to search for the piece that the call continues."""
    tenant, turn = piece.tenant, steps_of(piece.first_group)
    messages = turn.inputs(piece.first_call)
    repeated_answer = last_answer(messages)
    if repeated_answer is not None and repeated_answer.tool_calls:
        yield from ((tenant, "asks", call.call_id) for call in repeated_answer.tool_calls if call.call_id)
        yield tenant, "user", _user_messages(turn)
    hashes = _hashes_of_beginnings(messages)
    for length in range(len(messages) - 1, 0, -1):  # a prompt adds tool calls and results to the previous prompt
        if not (messages[length].tool_calls or messages[length].tool_results):
            break
        yield tenant, "prompt", hashes[length]
    if (conversation := turn.conversation_id()) is not None:
        yield tenant, "conversation", conversation


def _hashes_of_beginnings(messages: list[Message]) -> list[int]:
    """Return one hash for each beginning of a prompt (the first 0, 1, 2, … messages)."""
    return list(itertools.accumulate(_roles_and_texts(messages), lambda before, message: hash((before, message)), initial=0))


def _program_key(group: SpanGroup, call: Step) -> Hashable:
    return number_in(group.root.trace_id), "program", call.request_model, group.root.scope


def _min_tokens(held: _Piece) -> int:
    """Return how many tokens the next call's prompt repeats: the last prompt's and, without tool call IDs, the last answer's."""
    last = steps_of(held.last_group).llm[-1]
    answer_tokens = 0 if held.requested_ids else last.output_tokens or 0  # without ids, only tokens can be compared
    return (last.input_tokens or 0) + answer_tokens


def _follows(held: _Piece, piece: _Piece) -> bool:
    """Return True if ``piece`` continues the waiting piece ``held`` by the rule *repeated messages* or *same conversation*."""
    if not _begins_soon_after(held, piece, _LATE_END_NS):
        return False
    turn, earlier = steps_of(piece.first_group), steps_of(held.last_group)
    answer = last_answer(earlier.outputs(earlier.llm[-1]))
    messages, earlier_messages = turn.inputs(piece.first_call), earlier.inputs(earlier.llm[-1])
    repeated_answer = last_answer(messages)
    if answer is not None and repeated_answer is not None and repeated_answer.tool_calls:
        if any(call.call_id in held.requested_ids for call in repeated_answer.tool_calls):
            return True
        if answer.tool_calls:
            is_repeated = _tool_names(answer) == _tool_names(repeated_answer)
        else:  # tool calls weren't captured, but the position in the prompt identifies the answer
            is_repeated = len(messages) - len(after_last_answer(messages)) == len(earlier_messages) + 1
        if not held.requested_ids and is_repeated and _user_messages(earlier) == _user_messages(turn):
            return True
    if not _begins_soon_after(held, piece):
        return False
    if answer is None and _adds_tools_only(earlier_messages, messages):
        return True
    conversation = turn.conversation_id()
    return conversation is not None and conversation == earlier.conversation_id()


def _adds_tools_only(before: list[Message], messages: list[Message]) -> bool:
    added = messages[len(before) :]
    is_repeated = bool(before and added) and _roles_and_texts(messages[: len(before)]) == _roles_and_texts(before)
    return is_repeated and all(message.tool_calls or message.tool_results for message in added)


def _may_be_next(held: _Piece, piece: _Piece) -> bool:
    """Return True if ``piece`` might be the next call of ``held``: a call of the same model with more tokens, or a failed call."""
    last_group, call = held.last_group, piece.first_call
    if not _begins_soon_after(held, piece):
        return False
    has_ids, has_failed = bool(held.requested_ids), call.error is not None
    has_more_tokens = (call.input_tokens or 0) >= _min_tokens(held) + has_ids
    return (
        (has_more_tokens or (has_failed and has_ids))
        and (has_failed or steps_of(last_group).llm[-1].model == call.model)
        and _omits_tool_calls(held, piece)
        and dict(last_group.root.resource_attributes) == dict(piece.first_group.root.resource_attributes)
    )


def _omits_tool_calls(held: _Piece, piece: _Piece) -> bool:
    """Return True if the prompt of ``piece`` lacks the tool calls of ``held``, because tool calls aren't captured."""
    turn = steps_of(held.last_group)
    before, messages = turn.inputs(turn.llm[-1]), steps_of(piece.first_group).inputs(piece.first_call)
    if not messages:
        return not before
    if not held.requested_ids:
        return False
    if any(message.role in ("user", "assistant") for message in messages):
        return _roles_and_texts(before) == _roles_and_texts(messages)
    # Some APIs use two IDs per call: "call_1" and "fc_1".
    prefixes = {call_id.partition("_")[0] for call_id in held.requested_ids}
    return prefixes.isdisjoint(call_id.partition("_")[0] for call_id in piece.result_ids)


def _roles_and_texts(messages: list[Message]) -> list[tuple[str, str | None]]:
    return [(message.role, message.content) for message in messages]


def _begins_soon_after(held: _Piece, piece: _Piece, overlap_ns: int = 0) -> bool:
    if held.tenant != piece.tenant or piece.start_ns < held.start_ns:
        return False
    return held.end_ns - overlap_ns <= piece.start_ns <= held.end_ns + _MAX_PAUSE_NS


def after_last_answer(messages: list[Message]) -> list[Message]:
    """Return the messages after the last assistant message, or all messages if there isn't an assistant message."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return messages[index + 1 :]
    return messages


def last_answer(messages: list[Message]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "assistant"), None)


def has_user_message(messages: list[Message]) -> bool:
    return any(message.role == "user" and message.content and not message.tool_results for message in messages)


def _tool_names(message: Message) -> list[str | None]:
    return sorted((call.name for call in message.tool_calls), key=str)


def _user_messages(turn: TurnCalls) -> tuple[str | None, ...]:
    return tuple(one.content for one in turn.inputs(turn.llm[-1]) if one.role == "user" and not one.tool_results)
