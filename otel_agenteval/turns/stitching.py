"""Where a turn begins and ends when the spans alone do not show it: then the messages decide.

:func:`separate` separates turns that share a parent (rule *shared parent*). :class:`Stitcher` joins what one turn left in
several traces: a hand-written loop has no span of its own, so each of its model calls is a trace (rules *tool call ids*,
*repeated messages*, *previous response*, *same conversation*, *next call*). docs/internals/turn-stitching-rules.md explains each rule with a recording.

Only turns without an agent's span are looked at: all others say for themselves what they are.
"""

from __future__ import annotations

import bisect
from collections import Counter, OrderedDict
from collections.abc import Iterable

from ..core.tenancy import number_in
from ..core.turn import Message
from ..dialects.step import AGENT, LLM, Step
from .reading.turn import TurnReader
from .roots import Group
from .threads import Threads

_ASKS_FOR_TOOLS = frozenset(("tool_calls", "tool_call", "tool_use", "function_call"))
_MAX_PAUSE_NS = 600 * 10**9
"""Calls that are further apart are not joined by anything weaker than an id."""
_MOST_RESPONSES = 8
"""Answers of a part that a later call is taken to name as the previous one: the last, or one shortly before it."""
_LATE_END_NS = 10**9
"""Some end the span of a streamed answer in a callback, which may run when the next call has begun."""


def reader_of(group: Group) -> TurnReader:
    """What its spans say, read once."""
    if group.reader is None:
        group.reader = TurnReader(group.root, group.members)
        if group.above is not None:
            group.reader.share(group.above)
        if group.until_ns is not None:
            group.reader.until_ns = group.until_ns
    found: TurnReader = group.reader
    return found


# --- several turns below one span


def separate(group: Group) -> list[Group]:
    """The turns of a group: several when runs of agents below its root answer one new user message each.

    A hand-off looks the same as far as spans go: two agents below one workflow. The difference is what the second one reads:
    after the first one's answer it finds a new message of the user.
    """
    reader = reader_of(group)
    if len(reader.llm) < 2 or len(reader.of_role.get(AGENT, ())) < 2:
        return [group]
    starts: list[Step] = []
    previous: Step | None = None
    for step in reader.llm:
        if reader.is_nested(step):
            continue
        if previous is not None and _answered_then_asked(reader, previous, step):
            branch = _branch(reader, previous, step)
            if branch is not None:
                starts.append(branch)
        previous = step
    return _cut(group, reader, starts) if starts else [group]


def _answered_then_asked(reader: TurnReader, previous: Step, step: Step) -> bool:
    """Whether a call's prompt holds the previous call's answer, and after it something that the user said."""
    answer = _last(reader.outputs(previous))
    if answer is None or answer.content is None or answer.tool_calls:
        return False
    messages = reader.inputs(step)
    tail = _tail(messages)
    if len(tail) == len(messages) or not _user_spoke(tail):
        return False
    said = _last(messages[: len(messages) - len(tail)])
    return said is not None and said.content is not None and answer.content in said.content


def _branch(reader: TurnReader, previous: Step, step: Step) -> Step | None:
    """The topmost span above ``step`` that began after the one above ``previous`` had ended; None if they share an agent's loop."""
    path = _up_to(reader, step, previous)
    above = _up_to(reader, previous, step)
    if not path or not above:
        return None
    branch, other = path[-1], above[-1]
    if reader.tree.parent(branch) is None or branch.record.start_ns < other.record.end_ns:
        return None
    return branch if any(at.role == AGENT for at in path) and any(at.role == AGENT for at in above) else None


def _up_to(reader: TurnReader, step: Step, beside: Step) -> list[Step]:
    """A span and what is above it, as far as that is not above ``beside`` too."""
    path = []
    at: Step | None = step
    while at is not None and at is not beside and not reader.tree.is_above(at, beside):
        path.append(at)
        at = reader.tree.parent(at)
    return path


def _cut(group: Group, reader: TurnReader, starts: list[Step]) -> list[Group]:
    """One group for what began before the first of ``starts``, and one from each of them on."""
    times = sorted(start.record.start_ns for start in starts)
    parts: list[list[Step]] = [[] for _ in range(len(starts) + 1)]
    shared: set[int] = set()
    for start in starts:
        for step in reader.ancestors(start):
            if id(step) in shared:
                break
            shared.add(id(step))
    for step in reader.steps:
        if id(step) not in shared:
            parts[bisect.bisect_right(times, step.record.start_ns)].append(step)
    found = []
    for part in parts:
        root = _top(part, reader)
        if root is not None:
            piece = Group(root.record, [step.record for step in part], group.root_seen)
            piece.above, piece.portions = group.root, group.portions
            piece.reason, piece.complete, piece.size = group.reason, group.complete, group.size // len(parts)
            found.append(piece)
    return found


def _top(part: list[Step], reader: TurnReader) -> Step | None:
    """The topmost span of a part that holds, or is, its first agent or model call."""
    ids = {step.record.span_id for step in part}
    for step in part:
        if step.role in (AGENT, LLM):
            tops = [at for at in reader.ancestors(step) if at.record.span_id in ids]
            return tops[-1] if tops else step
    return None


# --- one turn in several traces


class _Piece:
    """One trace's part of a turn that may go on elsewhere."""

    __slots__ = (
        "answers",
        "asks",
        "continues",
        "end_ns",
        "first",
        "groups",
        "headless",
        "response_ids",
        "since",
        "size",
        "waits",
    )

    def __init__(self, group: Group, reader: TurnReader, since: float) -> None:
        self.groups = [group]
        self.since = since
        self.end_ns = group.root.end_ns
        self.size = group.size
        self.response_ids: dict[str, None] = {}
        """Of its last answers."""
        self._begins_with(reader)
        self._ends_with(reader)

    def _begins_with(self, reader: TurnReader) -> None:
        self.first = reader.llm[0]
        tail = _tail(reader.inputs(self.first))
        self.answers = {result.call_id for message in tail for result in message.tool_results if result.call_id}
        """Ids of the tool calls whose results its first prompt brings."""
        self.headless = bool(self.answers)
        """Whether the part that asked for those results is missing."""
        self.continues = bool(tail) and not _user_spoke(tail)
        """Whether its first prompt ends in something that is not the user's."""

    def _ends_with(self, reader: TurnReader) -> None:
        last = reader.llm[-1]
        answers = reader.outputs(last)
        calls = [call for message in answers for call in message.tool_calls]
        self.asks = {call.call_id for call in calls if call.call_id}
        """Ids of the tool calls that its last answer asked for."""
        reason = last.finish_reason or next((message.finish_reason for message in answers if message.finish_reason), "")
        self.waits = last.error is None and (bool(calls) or reason.lower() in _ASKS_FOR_TOOLS)
        """Whether it cannot be the end of a turn."""
        if last.response_id:
            self.response_ids[last.response_id] = None

    @property
    def tenant(self) -> int:
        """Its number."""
        return number_in(self.groups[0].root.trace_id)

    @property
    def start_ns(self) -> int:
        return self.groups[0].root.start_ns

    def append(self, later: _Piece) -> None:
        """The turn goes on with ``later``."""
        self.groups += later.groups
        self.asks, self.waits = later.asks, later.waits
        self.response_ids |= later.response_ids
        while len(self.response_ids) > _MOST_RESPONSES:
            del self.response_ids[next(iter(self.response_ids))]
        self.end_ns = max(self.end_ns, later.end_ns)
        self.size += later.size

    def replace(self, group: Group, whole: Group) -> None:
        """One of its groups is known better now."""
        at = self.groups.index(group)
        self.groups[at] = whole
        self.end_ns = max(self.end_ns, whole.root.end_ns)
        self.size += whole.size - group.size
        if at == 0:
            self._begins_with(reader_of(whole))
        if at == len(self.groups) - 1:
            self._ends_with(reader_of(whole))

    def joined(self) -> Group:
        """The whole turn."""
        if len(self.groups) == 1:
            return self.groups[0]
        whole = Group(self.groups[0].root, [record for group in self.groups for record in group.members])
        whole.root_seen = all(group.root_seen for group in self.groups)
        whole.reason, whole.complete = self.groups[-1].reason, all(group.complete for group in self.groups)
        whole.size = sum(group.size for group in self.groups)
        whole.portions = tuple(portion for group in self.groups for portion in group.portions)
        whole.seen = [seen for group in self.groups for seen in group.seen]
        whole.until_ns = self.end_ns
        whole.reader = reader_of(self.groups[0]).extended([reader_of(group) for group in self.groups[1:]], whole.until_ns)
        return whole


def may_go_on(group: Group) -> bool:
    """Whether a turn can be a part of one: a model call that is a trace of its own, or a message of a thread."""
    return reader_of(group).root.thread is not None or is_bare_call(group)


def is_bare_call(group: Group) -> bool:
    """Whether a turn is a model call that is a trace of its own."""
    reader = reader_of(group)
    return reader.root.role == LLM and bool(reader.llm)


class Stitcher:
    """Holds parts of turns until the other parts have come, or the time is up. Not thread-safe: its owner serialises the calls.

    Args:
        patience: seconds that a part waits for its continuation.
        max_bytes: bytes that waiting parts may hold; beyond that the oldest part of the tenant that holds most goes first.
    """

    def __init__(self, patience: float, max_bytes: float = float("inf")) -> None:
        self.patience = patience
        """0: nothing is held any more."""
        self._max_bytes = max_bytes
        self._bytes = 0
        self._held: OrderedDict[int, _Piece] = OrderedDict()
        self._threads = Threads()
        self._held_by: Counter[int] = Counter()
        """Bytes of them, by tenant."""
        self._asked: dict[tuple[int, str], _Piece] = {}
        """By tenant and call id, as the next two: ids are unique only within a tenant."""
        self._answered: dict[tuple[int, str], _Piece] = {}
        self._responses: dict[tuple[int, str], _Piece] = {}
        self._piece_of: dict[int, _Piece] = {}
        """By the id of a group that it holds."""

    def __len__(self) -> int:
        return len(self._held) + len(self._threads)

    def add(self, group: Group, now: float) -> list[Group]:
        """Add a turn that seems to be over. Returns what really is: usually this turn, with its earlier parts; nothing while it waits."""
        if self.patience <= 0 or not may_go_on(group):
            return [group]
        thread = reader_of(group).root.thread
        if thread is not None:
            self._threads.add(group, thread, now)
            return self._threads.due(now) if self._threads.size > self._max_bytes else []
        piece = _Piece(group, reader_of(group), now)
        self._piece_of[id(group)] = piece
        before = self._before(piece)
        if before is not None:
            self._release(before)
            self._append(before, piece)
            before.since = now
            piece = before  # whose own beginning may still be missing
        after = self._after(piece)
        if after is not None:
            self._release(after)
            self._append(piece, after)
        return self._whole_or_held(piece)

    def holds(self, group: Group) -> bool:
        """Whether a turn is a part that waits."""
        return id(group) in self._piece_of

    def replace(self, group: Group, whole: Group, now: float) -> list[Group]:
        """More is known of a part that waits. Returns what is over by that, as :meth:`add`."""
        piece = self._release(self._piece_of.pop(id(group)))
        if len(piece.groups) == 1:
            return self.add(whole, now)
        piece.replace(group, whole)
        piece.since = now
        self._piece_of[id(whole)] = piece
        return self._whole_or_held(piece)

    def take_apart(self, group: Group) -> list[Group]:
        """No longer hold a part, and what it was joined with. Returns all of it."""
        piece = self._release(self._piece_of[id(group)])
        self._let_go(piece)
        return piece.groups

    def _append(self, piece: _Piece, later: _Piece) -> None:
        piece.append(later)
        for group in later.groups:
            self._piece_of[id(group)] = piece

    def _let_go(self, piece: _Piece) -> _Piece:
        for group in piece.groups:
            del self._piece_of[id(group)]
        return piece

    def _whole_or_held(self, piece: _Piece) -> list[Group]:
        """The turn that a part is, or what has to go out for it to wait."""
        if not (piece.waits or piece.headless):
            return [self._let_go(piece).joined()]
        self._hold(piece)
        found = []
        while self._bytes > self._max_bytes:
            most = max(self._held_by, key=self._held_by.__getitem__)
            oldest = next(held for held in self._held.values() if held.tenant == most)
            found.append(self._let_go(self._release(oldest)).joined())
        return found

    def due(self, now: float) -> list[Group]:
        """Parts whose continuation did not come in time: each is a turn as it is."""
        found = []
        while self._held:
            oldest = next(iter(self._held.values()))
            if oldest.since + self.patience > now:
                break
            found.append(self._let_go(self._release(oldest)).joined())
        return found + self._threads.due(now - self.patience)

    def release_all(self) -> list[Group]:
        """Everything that waits, by start time."""
        found = [self._let_go(self._release(piece)).joined() for piece in list(self._held.values())]
        found += self._threads.due(float("inf"))
        return sorted(found, key=lambda group: group.root.start_ns)

    def traces(self) -> set[int]:
        """The traces of what waits."""
        return {group.root.trace_id for piece in self._held.values() for group in piece.groups} | self._threads.traces()

    def forget_traces(self, trace_ids: set[int]) -> list[Group]:
        """Drop the parts that some traces begin or go on with, and return them."""
        found = [piece for piece in self._held.values() if any(group.root.trace_id in trace_ids for group in piece.groups)]
        dropped = [group for piece in found for group in self._let_go(self._release(piece)).groups]
        return dropped + self._threads.forget_traces(trace_ids)

    def forget(self) -> None:
        """Drop everything unevaluated: in a forked child, the parent owns it."""
        for index in (self._held, self._asked, self._answered, self._responses, self._piece_of):
            index.clear()
        self._held_by.clear()
        self._threads.forget()
        self._bytes = 0

    def _before(self, piece: _Piece) -> _Piece | None:
        for call_id in piece.answers:
            found = self._asked.get((piece.tenant, call_id))
            if found is not None and found.start_ns <= piece.start_ns:
                return found
        previous = piece.first.record.attributes.get("gen_ai.request.previous_response.id")
        if isinstance(previous, str) and (piece.tenant, previous) in self._responses and piece.continues:
            return self._responses[piece.tenant, previous]
        return next((held for held in reversed(self._held.values()) if _follows(held, piece)), None) or self._only_waiting(piece)

    def _only_waiting(self, piece: _Piece) -> _Piece | None:
        """Rule *next call*: where the prompt shows nothing else, sizes and times decide, and only if exactly one part fits."""
        fitting = [held for held in self._held.values() if _may_be_next(held, piece)]
        return fitting[0] if len(fitting) == 1 else None

    def _after(self, piece: _Piece) -> _Piece | None:
        for call_id in piece.asks:
            found = self._answered.get((piece.tenant, call_id))
            if found is not None and found.start_ns >= piece.start_ns:
                return found
        return None

    def _hold(self, piece: _Piece) -> None:
        self._bytes += piece.size
        self._held_by[piece.tenant] += piece.size
        self._held[id(piece)] = piece
        for index, keys in self._indexed(piece):
            index.update({(piece.tenant, key): piece for key in keys})

    def _release(self, piece: _Piece) -> _Piece:
        if self._held.pop(id(piece), None) is not None:
            self._bytes -= piece.size
            self._held_by[piece.tenant] -= piece.size
        for index, keys in self._indexed(piece):
            for key in keys:
                if index.get((piece.tenant, key)) is piece:
                    del index[piece.tenant, key]
        return piece

    def _indexed(self, piece: _Piece) -> tuple[tuple[dict[tuple[int, str], _Piece], Iterable[str]], ...]:
        return (self._asked, piece.asks), (self._answered, piece.answers), (self._responses, piece.response_ids)


def _follows(held: _Piece, piece: _Piece) -> bool:
    """Rules *repeated messages* and *same conversation*: no ids, but the prompt goes on where the held part stopped."""
    if not held.waits or not piece.continues or not _soon_after(held, piece, _LATE_END_NS):
        return False
    reader, earlier = reader_of(piece.groups[0]), reader_of(held.groups[-1])
    asked = _last(earlier.outputs(earlier.llm[-1]))
    messages = reader.inputs(piece.first)
    before = messages[: len(messages) - len(_tail(messages))]
    repeated = _last(before)
    if asked is not None and repeated is not None and repeated.tool_calls:
        if held.asks & {call.call_id for call in repeated.tool_calls if call.call_id}:
            return True
        # An answer that only says that it asks for tools is known by its place.
        alike = _names(asked) == _names(repeated) if asked.tool_calls else len(before) == len(earlier.inputs(earlier.llm[-1])) + 1
        if not held.asks and alike and _user_messages(earlier) == _user_messages(reader):
            return True
    if not _soon_after(held, piece):
        return False
    if asked is None and _adds_tools_only(earlier.inputs(earlier.llm[-1]), messages):
        return True
    conversation = reader.conversation_id()
    return conversation is not None and conversation == earlier.conversation_id()


def _adds_tools_only(before: list[Message], messages: list[Message]) -> bool:
    """Whether a prompt repeats the one before, and goes on with requests and results of tools."""
    more = messages[len(before) :]
    repeated = bool(before and more) and _said(messages[: len(before)]) == _said(before)
    return repeated and all(message.tool_calls or message.tool_results for message in more)


def _may_be_next(held: _Piece, piece: _Piece) -> bool:
    """Whether a call can be the one that a held part waits for: it was sent more than all before it, and by the same program."""
    group = held.groups[-1]
    earlier = reader_of(group)
    last = earlier.llm[-1]
    spent = last.input_tokens or 0
    if not held.asks:  # nothing else can be compared
        spent += last.output_tokens or 0
    return (
        held.waits
        and _soon_after(held, piece)
        and spent > 0
        and ((piece.first.input_tokens or 0) >= spent + bool(held.asks) or (piece.first.error is not None and bool(held.asks)))
        and last.request_model == piece.first.request_model
        and (last.model == piece.first.model or piece.first.error is not None)
        and group.root.scope == piece.groups[0].root.scope
        and _shows_less(held, piece)
        and dict(group.root.resource_attributes) == dict(piece.groups[0].root.resource_attributes)
    )


def _shows_less(held: _Piece, piece: _Piece) -> bool:
    """Whether a prompt leaves out what the model asked tools for: all content, what the server keeps, or nothing but that."""
    reader = reader_of(held.groups[-1])
    before, messages = reader.inputs(reader.llm[-1]), reader_of(piece.groups[0]).inputs(piece.first)
    if not messages:
        return not before
    if not held.asks:
        return False
    if any(message.role in ("user", "assistant") for message in messages):
        return _said(before) == _said(messages)
    kinds = {call_id.partition("_")[0] for call_id in held.asks}  # a call has two ids where one of them is an item's
    return kinds.isdisjoint(call_id.partition("_")[0] for call_id in piece.answers)


def _said(messages: list[Message]) -> list[tuple[str, str | None]]:
    return [(message.role, message.content) for message in messages]


def _soon_after(held: _Piece, piece: _Piece, overlap_ns: int = 0) -> bool:
    if held.tenant != piece.tenant or piece.start_ns < held.start_ns:
        return False
    return held.end_ns - overlap_ns <= piece.start_ns <= held.end_ns + _MAX_PAUSE_NS


def _tail(messages: list[Message]) -> list[Message]:
    """What came after the last thing that a model said."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].role == "assistant":
            return messages[index + 1 :]
    return messages


def _last(messages: list[Message]) -> Message | None:
    return next((message for message in reversed(messages) if message.role == "assistant"), None)


def _user_spoke(messages: list[Message]) -> bool:
    return any(message.role == "user" and message.content and not message.tool_results for message in messages)


def _names(message: Message) -> list[str | None]:
    return sorted((call.name for call in message.tool_calls), key=str)


def _user_messages(reader: TurnReader) -> list[str | None]:
    return [message.content for message in reader.inputs(reader.llm[-1]) if message.role == "user" and not message.tool_results]
