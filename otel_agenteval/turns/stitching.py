"""Join the parts of one turn that are in several traces, by comparing messages.

A hand-written loop has no span of its own, so each of its model calls is a trace (rules *tool call ids*, *repeated
messages*, *previous response*, *same conversation*, *next call*). docs/internals/turn-stitching-rules.md lists each rule
with a recording.

Only turns without an agent span are stitched.
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable, Iterator

from ..core.tenancy import number_in
from ..core.turn import Message
from ..dialects.step import INNER, LLM, TOOL, UNKNOWN, Step
from .reading.llm_calls import TurnCalls
from .reading.turn import TurnReader
from .roots import SpanGroup
from .threads import Threads

_ASKS_FOR_TOOLS = frozenset(("tool_calls", "tool_call", "tool_use", "function_call"))
_MAX_PAUSE_NS = 600 * 10**9
"""Maximum pause between two calls that are joined without a shared id."""
_MOST_RESPONSES = 8
"""Number of a part's latest responses that a later call may name as its previous response."""
_MOST_CANDIDATES = 64
"""Maximum number of waiting parts with a shared fact that one call is compared with, latest end first."""
_LATE_END_NS = 10**9
"""Tolerated overlap of two calls. A callback may end the span of a streamed response after the next call has started."""


def reader_of(group: SpanGroup) -> TurnReader:
    """Return the group's reader, which the group keeps."""
    if group.reader is None:
        calls = TurnCalls(group.root, group.members)
        if group.ancestor is not None:
            calls.share(group.ancestor)
        calls.until_ns = group.until_ns
        group.reader = TurnReader(calls)
    found: TurnReader = group.reader
    return found


def steps_of(group: SpanGroup) -> TurnCalls:
    return reader_of(group).calls


class _PlaceOfPart:
    """The place of a group in a piece. A more complete group may replace it."""

    __slots__ = ("group", "piece")

    def __init__(self, group: SpanGroup, piece: _Piece) -> None:
        self.group = group
        self.piece = piece


class _Piece:
    """One trace's part of a turn that other traces may continue."""

    __slots__ = (
        "began",
        "continues",
        "end_ns",
        "facts",
        "first",
        "lacks_request",
        "number",
        "places",
        "requested_ids",
        "response_ids",
        "result_ids",
        "since",
        "size",
        "waits",
    )  # fmt: skip

    def __init__(self, group: SpanGroup, turn: TurnCalls, began: float) -> None:
        self.places = deque((_PlaceOfPart(group, self),))
        self.began = self.since = began
        """When its first and its last part arrived."""
        self.number = 0
        """Place among the waiting parts, by the time at which it began to wait."""
        self.facts: tuple[Hashable, ...] = ()
        """Keys by which it is found while it waits."""
        self.end_ns = group.root.end_ns
        self.size = group.size
        self.response_ids: dict[str, None] = {}
        self._read_start(turn)
        self._read_end(turn)

    def _read_start(self, turn: TurnCalls) -> None:
        self.first = turn.llm[0]
        tail = after_last_answer(turn.inputs(self.first))
        self.result_ids = dict.fromkeys(result.call_id for message in tail for result in message.tool_results if result.call_id)
        """Ids of the tool calls whose results are in its first prompt."""
        self.lacks_request = bool(self.result_ids)
        """True if the part that requested those results is missing."""
        self.continues = bool(tail) and not has_user_message(tail)
        """True if its first prompt doesn't end with a user message."""

    def _read_end(self, turn: TurnCalls) -> None:
        last = turn.llm[-1]
        answers = turn.outputs(last)
        calls = [call for message in answers for call in message.tool_calls]
        self.requested_ids = dict.fromkeys(call.call_id for call in calls if call.call_id)
        """Ids of the tool calls that its last answer requested."""
        reason = last.finish_reason or next((message.finish_reason for message in answers if message.finish_reason), "")
        self.waits = last.error is None and (bool(calls) or reason.lower() in _ASKS_FOR_TOOLS)
        """True if it can't be the end of a turn."""
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
        """Join the part that continues this one. Returns the larger part, which now contains both."""
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
            whole.first, whole.result_ids, whole.lacks_request, whole.continues = (
                part.first,
                part.result_ids,
                part.lacks_request,
                part.continues,
            )
        for place in part.places:
            place.piece = whole
        whole.response_ids = responses
        whole.began = min(whole.began, part.began)
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
    """Return True for a message of a thread, or a model call alone in its trace, also below a gateway's spans or a loop's step."""
    return steps_of(group).root.thread is not None or is_bare_call(group) or _holds_one_call(group)


def _holds_one_call(group: SpanGroup) -> bool:
    """Return True if a turn is one model call below spans without their own content, or one step of an agent's loop."""
    turn = steps_of(group)
    root = turn.root
    beside = {None, UNKNOWN, INNER, LLM, *((TOOL,) if root.role == INNER else ())}
    if root.role not in (None, INNER) or len(turn.llm) != 1 or not turn.of_role.keys() <= beside:
        return False
    return root.input_messages is None and root.input_value is None and root.output_messages is None and root.output_value is None


def is_bare_call(group: SpanGroup) -> bool:
    """Return True if a turn is a model call in a separate trace."""
    turn = steps_of(group)
    return turn.root.role == LLM and bool(turn.llm)


class _TenantPieces:
    __slots__ = ("parts", "size")

    def __init__(self) -> None:
        self.parts: OrderedDict[int, _Piece] = OrderedDict()
        self.size = 0


class _PieceIndex:
    """An index of waiting parts by facts that the next call shares, so that a lookup's time doesn't depend on their number."""

    def __init__(self) -> None:
        self._pieces: dict[Hashable, list[tuple[int, int, _Piece]]] = {}

    def add(self, piece: _Piece) -> None:
        for fact in piece.facts:
            bisect.insort(self._pieces.setdefault(fact, []), (piece.end_ns, piece.number, piece))

    def remove(self, piece: _Piece) -> None:
        for fact in piece.facts:
            held = self._pieces[fact]
            del held[bisect.bisect_left(held, (piece.end_ns, piece.number))]
            if not held:
                del self._pieces[fact]

    def ended(self, fact: Hashable, first_ns: int, last_ns: int) -> list[_Piece]:
        """Return parts with a fact that ended within the given times, latest first, and one too many at most."""
        held = self._pieces.get(fact, ())
        stop = bisect.bisect_left(held, (last_ns + 1,))
        start = bisect.bisect_left(held, (first_ns,))
        return [piece for _, _, piece in held[max(start, stop - _MOST_CANDIDATES - 1) : stop][::-1]]

    def clear(self) -> None:
        self._pieces.clear()


class Stitcher:
    """Holds parts of turns until their other parts arrive or ``patience`` seconds are over. Not thread-safe. Beyond
    ``max_bytes``, the oldest part of the tenant with the largest share is released. ``max_age`` seconds after its first part, a
    turn is released even if it continues.
    """

    def __init__(self, patience: float, max_bytes: float = math.inf, max_age: float = math.inf) -> None:
        self.patience = patience
        """Seconds that a part waits. With 0, no part is held."""
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._threads = Threads()
        self._clear()

    def _clear(self) -> None:
        self._bytes = 0
        self._numbers = itertools.count()
        self._held: OrderedDict[int, _Piece] = OrderedDict()
        self._shares: dict[int, _TenantPieces] = {}
        self._waiting = _PieceIndex()
        self._asked: dict[tuple[int, str], _Piece] = {}
        """By tenant and call id, because ids are unique only within a tenant. The next two dictionaries have such keys too."""
        self._answered: dict[tuple[int, str], _Piece] = {}
        self._responses: dict[tuple[int, str], _Piece] = {}
        self._places: dict[int, _PlaceOfPart] = {}
        """Places by the id of their group."""

    def __len__(self) -> int:
        return len(self._held) + len(self._threads)

    def add(self, group: SpanGroup, now: float) -> list[SpanGroup]:
        """Add a turn, and return the turns that can be evaluated. The list is empty until then."""
        return self._add(group, now, now)

    def _add(self, group: SpanGroup, now: float, began: float) -> list[SpanGroup]:
        if self.patience <= 0 or not may_go_on(group):
            return [group]
        thread = steps_of(group).root.thread
        if thread is not None:
            self._threads.add(group, thread, now)
            return self._threads.due(now, now) if self._threads.size > self._max_bytes else []
        piece = _Piece(group, steps_of(group), began)
        self._places[id(group)] = piece.places[0]
        before = self._before(piece)
        if before is not None:
            piece = self._release(before).join(piece)  # an even earlier part may still be missing
        after = self._after(piece)
        if after is not None:
            piece = piece.join(self._release(after))
        piece.since = now
        return self._whole_or_held(piece, now)

    def stop_holding(self) -> None:
        self.patience = 0.0

    def holds(self, group: SpanGroup) -> bool:
        return id(group) in self._places

    def replace(self, group: SpanGroup, whole: SpanGroup, now: float) -> list[SpanGroup]:
        """Replace a waiting group by a more complete one. Returns the turns that can be evaluated, like :meth:`add`."""
        place = self._places.pop(id(group))
        piece = self._release(place.piece)
        if len(piece.places) == 1:
            return self._add(whole, now, piece.began)
        piece.replace(place, whole)
        piece.since = now
        self._places[id(whole)] = place
        return self._whole_or_held(piece, now)

    def release_parts(self, group: SpanGroup) -> Iterable[SpanGroup]:
        """Stop holding a group and the groups joined with it, and return all of them."""
        piece = self._release(self._places[id(group)].piece)
        self._untrack(piece)
        return piece.groups

    def _untrack(self, piece: _Piece) -> _Piece:
        for place in piece.places:
            del self._places[id(place.group)]
            del place.piece  # only the garbage collector could free a cycle
        return piece

    def _whole_or_held(self, piece: _Piece, now: float) -> list[SpanGroup]:
        """Return the turn if it is complete. Hold it otherwise, and return the turns released to make room."""
        if not (piece.waits or piece.lacks_request) or now - piece.began >= self._max_age:
            return [self._untrack(piece).joined()]
        self._hold(piece)
        found = []
        while self._bytes > self._max_bytes:
            most = max(self._shares.values(), key=lambda share: share.size)
            found.append(self._untrack(self._release(next(iter(most.parts.values())))).joined())
        return found

    def due(self, now: float) -> list[SpanGroup]:
        """Return parts whose continuation didn't arrive in time, each as a turn."""
        found = []
        while self._held:
            oldest = next(iter(self._held.values()))
            if oldest.since + self.patience > now:
                break
            found.append(self._untrack(self._release(oldest)).joined())
        return found + self._threads.due(now - self.patience, now - self._max_age)

    def release_all(self) -> list[SpanGroup]:
        found = [self._untrack(self._release(piece)).joined() for piece in list(self._held.values())]
        found += self._threads.due(math.inf, math.inf)
        return sorted(found, key=lambda group: group.root.start_ns)

    def traces(self) -> set[int]:
        held = {record.trace_id for piece in self._held.values() for group in piece.groups for record in group.members}
        return held | self._threads.traces()

    def forget_traces(self, trace_ids: set[int]) -> list[SpanGroup]:
        """Drop and return the waiting groups of the given traces, and the groups joined with them."""
        found = [piece for piece in self._held.values() if any(group.root.trace_id in trace_ids for group in piece.groups)]
        dropped = [group for piece in found for group in self._untrack(self._release(piece)).groups]
        return dropped + self._threads.forget_traces(trace_ids)

    def forget(self) -> None:
        self._clear()
        self._threads.forget()

    def _before(self, piece: _Piece) -> _Piece | None:
        for call_id in piece.result_ids:
            found = self._asked.get((piece.tenant, call_id))
            if found is not None and found.start_ns <= piece.start_ns:
                return found
        previous = piece.first.record.attributes.get("gen_ai.request.previous_response.id")
        if isinstance(previous, str) and (piece.tenant, previous) in self._responses and piece.continues:
            return self._responses[piece.tenant, previous]
        following = (held for held in self._candidates(piece) if _follows(held, piece)) if piece.continues else ()
        return max(following, key=lambda held: held.number, default=None) or self._only_waiting(piece)

    def _candidates(self, piece: _Piece) -> Iterator[_Piece]:
        """Yield waiting parts that share a fact of *repeated messages* or *same conversation* with a call, latest end first."""
        seen: dict[int, None] = {}
        for fact in _facts_before(piece):
            for held in self._waiting.ended(fact, piece.start_ns - _MAX_PAUSE_NS, piece.start_ns + _LATE_END_NS):
                if len(seen) >= _MOST_CANDIDATES:
                    return
                if held.number not in seen:
                    seen[held.number] = None
                    yield held

    def _only_waiting(self, piece: _Piece) -> _Piece | None:
        """Return the only part that a call may continue by the rule *next call*, judged by sizes and times."""
        if not is_bare_call(piece.first_group):
            return None
        program = _program_key(piece.first_group, piece.first)
        candidates = self._waiting.ended(program, piece.start_ns - _MAX_PAUSE_NS, piece.start_ns)
        if len(candidates) > _MOST_CANDIDATES:
            return None
        fitting = list(itertools.islice((held for held in candidates if _may_be_next(held, piece)), 2))
        return fitting[0] if len(fitting) == 1 else None

    def _after(self, piece: _Piece) -> _Piece | None:
        for call_id in piece.requested_ids:
            found = self._answered.get((piece.tenant, call_id))
            if found is not None and found.start_ns >= piece.start_ns:
                return found
        return None

    def _hold(self, piece: _Piece) -> None:
        self._bytes += piece.size
        share = self._shares.setdefault(piece.tenant, _TenantPieces())
        share.size += piece.size
        share.parts[id(piece)] = self._held[id(piece)] = piece
        piece.number = next(self._numbers)
        piece.facts = tuple(dict.fromkeys(_facts_of(piece))) if piece.waits else ()
        self._waiting.add(piece)
        for index, keys in self._indexed(piece):
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
        for index, keys in self._indexed(piece):
            for key in keys:
                if index.get((piece.tenant, key)) is piece:
                    del index[piece.tenant, key]
        return piece

    def _indexed(self, piece: _Piece) -> tuple[tuple[dict[tuple[int, str], _Piece], Iterable[str]], ...]:
        return (self._asked, piece.requested_ids), (self._answered, piece.result_ids), (self._responses, piece.response_ids)


# --- facts that a waiting part shares with the call that continues it


def _facts_of(held: _Piece) -> Iterator[Hashable]:
    """Yield facts of a waiting part. It shares one with the call that continues it (:func:`_facts_before`, :func:`_program_key`)."""
    tenant, turn = held.tenant, steps_of(held.last_group)
    last = turn.llm[-1]
    yield from ((tenant, "asks", call_id) for call_id in held.requested_ids)
    asked = last_answer(turn.outputs(last))
    if asked is None:
        yield tenant, "prompt", _hashes(turn.inputs(last))[-1]
    elif not held.requested_ids:
        yield tenant, "user", _user_messages(turn)
    conversation = turn.conversation_id()
    if conversation is not None:
        yield tenant, "conversation", conversation
    if _min_tokens(held) > 0 and is_bare_call(held.last_group):
        yield _program_key(held.last_group, last)


def _facts_before(piece: _Piece) -> Iterator[Hashable]:
    """Yield the facts that a part waiting for this call has, according to the call's prompt."""
    tenant, turn = piece.tenant, steps_of(piece.first_group)
    messages = turn.inputs(piece.first)
    repeated = last_answer(messages[: len(messages) - len(after_last_answer(messages))])
    if repeated is not None and repeated.tool_calls:
        yield from ((tenant, "asks", call.call_id) for call in repeated.tool_calls if call.call_id)
        yield tenant, "user", _user_messages(turn)
    hashes = _hashes(messages)
    for length in range(len(messages) - 1, 0, -1):  # a prompt adds tool calls and results to the one before
        if not (messages[length].tool_calls or messages[length].tool_results):
            break
        yield tenant, "prompt", hashes[length]
    conversation = turn.conversation_id()
    if conversation is not None:
        yield tenant, "conversation", conversation


def _hashes(messages: list[Message]) -> list[int]:
    return list(itertools.accumulate(_texts(messages), lambda before, text: hash((before, text)), initial=0))


def _program_key(group: SpanGroup, call: Step) -> Hashable:
    """Return a key for the tenant, requested model and instrumentation scope of a call."""
    return number_in(group.root.trace_id), "program", call.request_model, group.root.scope


def _min_tokens(held: _Piece) -> int:
    """Return the minimum number of tokens in the call that a part waits for."""
    last = steps_of(held.last_group).llm[-1]
    return (last.input_tokens or 0) + (
        0 if held.requested_ids else last.output_tokens or 0
    )  # without ids, only tokens can be compared


def _follows(held: _Piece, piece: _Piece) -> bool:
    """Return True if a prompt continues a part without ids (rules *repeated messages* and *same conversation*)."""
    if not _soon_after(held, piece, _LATE_END_NS):
        return False
    turn, earlier = steps_of(piece.first_group), steps_of(held.last_group)
    asked = last_answer(earlier.outputs(earlier.llm[-1]))
    messages = turn.inputs(piece.first)
    before = messages[: len(messages) - len(after_last_answer(messages))]
    repeated = last_answer(before)
    if asked is not None and repeated is not None and repeated.tool_calls:
        if any(call.call_id in held.requested_ids for call in repeated.tool_calls):
            return True
        # An answer whose tool calls weren't captured is recognized by its place in the prompt.
        alike = _names(asked) == _names(repeated) if asked.tool_calls else len(before) == len(earlier.inputs(earlier.llm[-1])) + 1
        if not held.requested_ids and alike and _user_messages(earlier) == _user_messages(turn):
            return True
    if not _soon_after(held, piece):
        return False
    if asked is None and _adds_tools_only(earlier.inputs(earlier.llm[-1]), messages):
        return True
    conversation = turn.conversation_id()
    return conversation is not None and conversation == earlier.conversation_id()


def _adds_tools_only(before: list[Message], messages: list[Message]) -> bool:
    """Return True if a prompt repeats the one before and adds only tool calls and results."""
    more = messages[len(before) :]
    repeated = bool(before and more) and _texts(messages[: len(before)]) == _texts(before)
    return repeated and all(message.tool_calls or message.tool_results for message in more)


def _may_be_next(held: _Piece, piece: _Piece) -> bool:
    """Return True if a call of the same program, with more tokens in its prompt, may continue a held part."""
    group = held.last_group
    earlier = steps_of(group)
    last = earlier.llm[-1]
    spent = _min_tokens(held)
    return (
        _soon_after(held, piece)
        and (
            (piece.first.input_tokens or 0) >= spent + bool(held.requested_ids)
            or (piece.first.error is not None and bool(held.requested_ids))
        )
        and (last.model == piece.first.model or piece.first.error is not None)
        and _omits_tool_calls(held, piece)
        and dict(group.root.resource_attributes) == dict(piece.first_group.root.resource_attributes)
    )


def _omits_tool_calls(held: _Piece, piece: _Piece) -> bool:
    """Return True if a prompt omits the requested tool calls, alone or with other content."""
    turn = steps_of(held.last_group)
    before, messages = turn.inputs(turn.llm[-1]), steps_of(piece.first_group).inputs(piece.first)
    if not messages:
        return not before
    if not held.requested_ids:
        return False
    if any(message.role in ("user", "assistant") for message in messages):
        return _texts(before) == _texts(messages)
    kinds = {call_id.partition("_")[0] for call_id in held.requested_ids}  # some APIs give a call both a call id and an item id
    return kinds.isdisjoint(call_id.partition("_")[0] for call_id in piece.result_ids)


def _texts(messages: list[Message]) -> list[tuple[str, str | None]]:
    return [(message.role, message.content) for message in messages]


def _soon_after(held: _Piece, piece: _Piece, overlap_ns: int = 0) -> bool:
    if held.tenant != piece.tenant or piece.start_ns < held.start_ns:
        return False
    return held.end_ns - overlap_ns <= piece.start_ns <= held.end_ns + _MAX_PAUSE_NS


def after_last_answer(messages: list[Message]) -> list[Message]:
    """Return the messages after the last message of a model."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return messages[index + 1 :]
    return messages


def last_answer(messages: list[Message]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "assistant"), None)


def has_user_message(messages: list[Message]) -> bool:
    return any(message.role == "user" and message.content and not message.tool_results for message in messages)


def _names(message: Message) -> list[str | None]:
    return sorted((call.name for call in message.tool_calls), key=str)


def _user_messages(turn: TurnCalls) -> tuple[str | None, ...]:
    messages = turn.inputs(turn.llm[-1])
    return tuple(message.content for message in messages if message.role == "user" and not message.tool_results)
