"""Read one turn's spans and their places in the span tree. Values are read once and cached."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from ...core.turn import ErrorInfo, Message, ToolRequest
from ...dialects.content import Decoded, decode, decode_longer, goes_on
from ...dialects.generic.kinds import ENDS, event_in
from ...dialects.generic.reading import conversation_in
from ...dialects.reader import read
from ...dialects.step import AGENT, INNER, LLM, TOOL, Step
from ...spans.record import SpanRecord

START = attrgetter("record.start_ns")
END = attrgetter("record.end_ns")
_AGENTS = (AGENT,)
_TOOLS = (TOOL,)
_CALLS = (LLM, TOOL)
_EVENTS = ENDS | {"start"}
_SHORT = 8
"""Number of ancestors per span that are checked one by one. To search farther ancestors, the span tree is built."""
_DEEPEST_TIE = 32
"""Maximum number of ancestors per span that are counted to sort spans with equal start times."""
_LONG_PROMPT = 1_000
"""Minimum length of a prompt that is compared with earlier prompts."""
_BEGINNING = 200
LONGEST_CONSTANT = 32_768
"""Maximum characters of instructions or tool definitions to cache after parsing. Many turns repeat the same text."""

if TYPE_CHECKING:
    computed_once = cached_property
else:

    class computed_once(cached_property):  # noqa: N801 - a decorator
        """Cached property without the lock that Python 3.11 and earlier use."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            value = instance.__dict__[self.attrname] = self.func(instance)
            return value


class TurnSteps:
    """Spans of one turn. To avoid a reference cycle, spans don't refer to the turn."""

    def __init__(self, root: SpanRecord, members: Iterable[SpanRecord]) -> None:
        self._set_steps(root, [read(record) for record in members])

    def _set_steps(self, root: SpanRecord, steps: list[Step]) -> None:
        steps.sort(key=START)
        _join_events(steps)
        if len(set(map(START, steps))) < len(steps):
            _order_ties(steps)
        self.steps = steps
        self.by_id: dict[int, Step] = {}
        self.cut = False
        """True if any content that was read so far had been truncated before arrival."""
        self.limited: list[str] = []
        """Kinds of values that were omitted or truncated because they exceeded a limit."""
        of_role: dict[str | None, list[Step]] = {}
        for step in steps:
            record = step.record
            self.by_id[record.span_id] = step
            self.cut |= record.truncated
            if step.limited:
                self.limited += step.limited
            if step.role in of_role:
                of_role[step.role].append(step)
            else:
                of_role[step.role] = [step]
        for step in of_role.get(INNER, ()):  # some agents have a name only in their loop's steps
            if step.agent:
                ancestor = self.by_id.get(step.record.parent_id)
                if ancestor is not None and ancestor.role == AGENT and ancestor.agent is None:
                    ancestor.agent = step.agent
        self.of_role = of_role
        self.root = self.by_id.get(root.span_id) or read(root)
        self._decoded: dict[tuple[int, str], Decoded] = {}
        self._prompts: dict[int, Decoded] = {}
        """Decoded long prompts by span ID. Later prompts can begin with the same messages, which are then reused."""
        self.ancestor: Step | None = None
        self.until_ns: int | None = None

    def share(self, ancestor: SpanRecord) -> None:
        self.ancestor = read(ancestor)

    def conversation_id(self) -> str | None:
        found: str | None = self.root.conversation_id or self.first("conversation_id")
        if found is None and self.ancestor is not None:
            found = self.ancestor.conversation_id
        if not found:  # ids that no dialect reads
            above = () if self.ancestor is None else (self.ancestor,)
            found = conversation_in((self.root, *self.steps, *above))
        return found

    def user_id(self) -> str | None:
        return self.root.user_id or self.first("user_id") or (self.ancestor.user_id if self.ancestor is not None else None)

    def first(self, field: str) -> Any:
        return next((value for step in self.steps if (value := getattr(step, field)) is not None), None)

    @computed_once
    def tree(self) -> SpanTree:
        return SpanTree(self.steps, self.by_id)

    def drop_tree(self) -> None:
        vars(self).pop("tree", None)

    def parent(self, step: Step) -> Step | None:
        parent = self.by_id.get(step.record.parent_id)
        return parent if parent is not step else None

    def ancestors(self, step: Step) -> Iterable[Step]:
        tree = self.tree
        at = tree.parent(step)
        while at is not None:
            yield at
            at = tree.parent(at)

    def nearest(self, step: Step, roles: tuple[str | None, ...]) -> Step | None:
        by_id = self.by_id
        at = step
        for _ in range(_SHORT):
            ancestor = by_id.get(at.record.parent_id)
            if ancestor is None or ancestor is step:
                return None
            if ancestor.role in roles:
                return ancestor
            at = ancestor
        return self.tree.nearest(step, roles, lambda ancestor: ancestor.role in roles)

    def agent_of(self, step: Step) -> str | None:
        found = self.nearest(step, _AGENTS)
        if found is not None and not found.agent:
            found = self.tree.nearest(found, "named agent", lambda above: above.role == AGENT and bool(above.agent))
        return found.agent if found is not None else None

    def agent_at(self, step: Step) -> str | None:
        return step.agent or self.agent_of(step)

    def loop_of(self, step: Step) -> int:
        """Return the span ID of the agent run that contains ``step``, or 0 if ``step`` isn't in an agent run."""
        agent = self.nearest(step, _AGENTS)
        return agent.record.span_id if agent is not None else 0

    def is_nested(self, step: Step) -> bool:
        return self.nearest(step, _TOOLS) is not None

    def forget_messages(self, step: Step) -> None:
        """Discard a span's decoded messages after its raw messages have changed."""
        for field in ("input_messages", "output_messages"):
            self._decoded.pop((step.record.span_id, field), None)

    def decode(self, step: Step, field: str, role: str) -> Decoded:
        key = (step.record.span_id, field)
        found = self._decoded.get(key)
        if found is None:
            raw = getattr(step, field)
            if field == "system" and raw.__class__ is str and len(raw) < LONGEST_CONSTANT:
                found = _decode_constant(raw, role)
            elif field == "input_messages" and step.role == LLM and raw.__class__ is str and len(raw) > _LONG_PROMPT:
                found = self._decode_prompt(step)
            else:
                found = decode(raw, role)
            self._decoded[key] = found
            self.cut |= found.truncated
        return found

    def _decode_prompt(self, step: Step) -> Decoded:
        """Decode a call's prompt. If the prompt begins with an earlier call's prompt, reuse the earlier prompt's messages."""
        longer = [step]
        before = self._prompt_before.get(step.record.span_id)
        while before is not None and goes_on(longer[-1].input_messages, before.input_messages):
            longer.append(before)
            if before.record.span_id in self._prompts:
                break
            before = self._prompt_before.get(before.record.span_id)
        known: Decoded | None = None
        shorter = ""
        for one in reversed(longer):
            raw, found = one.input_messages, self._prompts.get(one.record.span_id)
            if found is None:
                found = (None if known is None else decode_longer(raw, shorter, known)) or decode(raw, "user")
                self._prompts[one.record.span_id] = found
            shorter, known = raw, found
        return self._prompts[step.record.span_id]

    @computed_once
    def _prompt_before(self) -> dict[int, Step]:
        """Maps a call's span ID to the latest earlier call whose prompt begins with the same ``_BEGINNING`` characters."""
        found: dict[int, Step] = {}
        latest: dict[str, Step] = {}
        for step in self.of_role.get(LLM, ()):
            raw = step.input_messages
            if raw.__class__ is str:
                beginning = raw[:_BEGINNING]
                if beginning in latest:
                    found[step.record.span_id] = latest[beginning]
                latest[beginning] = step
        return found

    def inputs(self, step: Step) -> list[Message]:
        return self.decode(step, "input_messages", "user").messages

    def outputs(self, step: Step) -> list[Message]:
        """Return the messages that a model call returned (usually one per choice)."""
        return self.decode(step, "output_messages", "assistant").messages

    def requests_of(self, step: Step) -> list[ToolRequest]:
        return [request for message in self.outputs(step) for request in message.tool_calls]


def _join_events(steps: list[Step]) -> None:
    """Join spans that are events of one call, such as ``tool.start-3`` and ``tool.success-3``, into the first span. If no start
    event has the number of an end event, join this end event with the latest start event.
    """
    calls: dict[tuple[int, str, str], Step] = {}
    latest: dict[str, Step] = {}
    ended: set[int] = set()
    named = [
        (step, *found)
        for step in steps
        if step.role in _CALLS and "-" in step.record.name and (found := event_in(step.record.name)) is not None
    ]
    if not named:
        return
    events = [one for one in named if one[2] in _EVENTS]
    for step, stem, event in sorted(events, key=lambda one: (one[0].record.start_ns, one[2] != "start")):
        key = (step.record.parent_id, stem, step.record.name.rpartition("-")[2])
        ends = event in ("success", "error")
        candidates = () if event == "start" else (calls.get(key), latest.get(stem))
        call = next((one for one in candidates if one is not None and not (ends and one.record.span_id in ended)), step)
        if ends:
            ended.add(call.record.span_id)
        if call is step:
            calls[key] = latest[stem] = step
        else:
            _join(call, step, event)


def _join(call: Step, step: Step, event: str) -> None:
    for field, value in vars(step).items():
        if getattr(call, field) is None:
            setattr(call, field, value)
    if event == "error" and call.error is None:
        call.error = ErrorInfo("error", step.record.status_message or None)
    call.duration_s = (step.record.end_ns - call.record.start_ns) / 1e9
    step.role = None


def _order_ties(steps: list[Step]) -> None:
    """Sort spans by start time. If start times are equal (JavaScript rounds times), sort ancestors first, then shorter prompts."""
    by_id = {step.record.span_id: step for step in steps}

    def place(step: Step) -> tuple[int, int, int, int, int, int]:
        start, depth, at = step.record.start_ns, 0, by_id.get(step.record.parent_id)
        while at is not None and at.record.start_ns == start and depth < _DEEPEST_TIE:
            depth, at = depth + 1, by_id.get(at.record.parent_id)
        prompt = len(step.input_messages) if step.role == LLM and isinstance(step.input_messages, str) else 0
        return start, depth, prompt, step.input_tokens or 0, step.record.end_ns, step.record.span_id

    steps.sort(key=place)


@lru_cache(maxsize=32)
def _decode_constant(raw: str, role: str) -> Decoded:
    """Decode a text that many calls repeat, and cache the result. Callers must not change the messages, because they are shared."""
    return decode(raw, role)


# --- span tree with ancestors in constant time. Spans in a cycle (broken telemetry) have no ancestors


class SpanTree:
    def __init__(self, steps: Sequence[Step], by_id: Mapping[int, Step]) -> None:
        self._by_id = by_id
        self._nearest: dict[Hashable, dict[int, Step | None]] = {}
        children: dict[int, list[Step]] = {}
        stack: list[tuple[Step, bool]] = []
        for step in by_id.values():
            parent = by_id.get(step.record.parent_id)
            if parent is None or parent is step:
                stack.append((step, False))
            else:
                children.setdefault(step.record.parent_id, []).append(step)
        self._top_down: list[Step] = []
        self._enters: dict[int, int] = {}
        """Maps a span ID to the span's number in a depth-first walk. ``_leaves`` has the largest number in each subtree."""
        self._leaves: dict[int, int] = {}
        clock = 0
        while stack:
            step, left = stack.pop()
            span_id = step.record.span_id
            if left:
                self._leaves[span_id] = clock
                continue
            clock += 1
            self._enters[span_id] = clock
            self._top_down.append(step)
            stack.append((step, True))
            stack.extend((child, False) for child in children.get(span_id, ()))

    def is_ancestor(self, upper: Step, lower: Step) -> bool:
        at = self._enters.get(lower.record.span_id)
        start = self._enters.get(upper.record.span_id)
        return at is not None and start is not None and start < at <= self._leaves[upper.record.span_id]

    def below_fork(self, step: Step, other: Step) -> Step | None:
        """Return the topmost span among ``step`` and its ancestors that isn't an ancestor of ``other``, or None."""
        if step is other or self.is_ancestor(step, other):
            return None
        while (parent := self.parent(step)) is not None and parent is not other and not self.is_ancestor(parent, other):
            far = self._far_ancestor[step.record.span_id]
            step = parent if far is other or self.is_ancestor(far, other) else far
        return step

    @cached_property
    def _far_ancestor(self) -> dict[int, Step]:
        """Maps a span ID to a distant ancestor, so that a walk to the root visits fewer spans."""
        found: dict[int, Step] = {}
        depth: dict[int, int] = {}
        for step in self._top_down:
            parent = self.parent(step)
            at = step.record.span_id
            if parent is None:
                found[at], depth[at] = step, 0
                continue
            up = parent.record.span_id
            far = found[up].record.span_id
            depth[at] = depth[up] + 1
            farther = found[far]
            found[at] = farther if depth[up] - depth[far] == depth[far] - depth[farther.record.span_id] else parent
        return found

    def parent(self, step: Step) -> Step | None:
        found = self._by_id.get(step.record.parent_id) if step.record.span_id in self._enters else None
        return None if found is step else found

    def nearest(self, step: Step, kind: Hashable, wanted: Callable[[Step], bool]) -> Step | None:
        """Return the closest ancestor for which ``wanted`` returns True, or None. Results are cached under ``kind``."""
        known = self._nearest.get(kind)
        if known is None:
            known = self._nearest[kind] = {}
            for one in self._top_down:
                ancestor = self.parent(one)
                if ancestor is not None:
                    known[one.record.span_id] = ancestor if wanted(ancestor) else known[ancestor.record.span_id]
                else:
                    known[one.record.span_id] = None
        return known.get(step.record.span_id)
