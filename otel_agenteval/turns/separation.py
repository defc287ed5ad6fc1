"""Separate turns that share one parent span by comparing their messages (stitching rule *shared parent*).

docs/internals/turn-stitching-rules.md describes this rule and names an example recording.
"""

from __future__ import annotations

import bisect

from ..dialects.generic.kinds import is_turn
from ..dialects.step import AGENT, LLM, Step
from .reading.llm_calls import TurnCalls
from .roots import SpanGroup
from .stitching import after_last_answer, has_user_message, last_answer, steps_of


def separate(group: SpanGroup) -> list[SpanGroup]:
    """Split a span group if several agents below its root (or spans with names like ``turn``) each answer a new user message."""
    turn = steps_of(group)
    if len(turn.llm) < 2:
        return [group]
    named = any(is_turn(step.record.name) for step in turn.steps)
    if not named and len(turn.of_role.get(AGENT, ())) < 2:
        return [group]
    starts: list[Step] = []
    previous: Step | None = None
    for step in turn.llm:
        if turn.is_nested(step):
            continue
        if previous is not None:
            answered = _answered_before_question(turn, previous, step)
            if answered or (named and _has_new_question(turn, previous, step)):
                branch = _branch(turn, previous, step)
                if branch is not None and (answered or is_turn(branch.record.name)):
                    starts.append(branch)
        previous = step
    return _cut(group, turn, starts) if starts else [group]


def _answered_before_question(turn: TurnCalls, previous: Step, step: Step) -> bool:
    """Return True if the prompt of ``step`` contains the answer of ``previous``, followed by a user message."""
    answer = last_answer(turn.outputs(previous))
    if answer is None or answer.content is None or answer.tool_calls:
        return False
    messages = turn.inputs(step)
    tail = after_last_answer(messages)
    if len(tail) == len(messages) or not has_user_message(tail):
        return False
    text = last_answer(messages[: len(messages) - len(tail)])
    return text is not None and text.content is not None and answer.content in text.content


def _has_new_question(turn: TurnCalls, previous: Step, step: Step) -> bool:
    """Return True if the prompt of ``step`` ends with a new user message, and ``previous`` answered without tool requests."""
    answer = last_answer(turn.outputs(previous))
    messages, before = turn.inputs(step), turn.inputs(previous)
    if answer is None or answer.tool_calls or not messages or not before or messages[-1].tool_results:
        return False
    asked = [message.content for message in before if message.role == "user"]
    return messages[-1].role == "user" and messages[-1].content not in asked


def _branch(turn: TurnCalls, previous: Step, step: Step) -> Step | None:
    """Return the branch that contains ``step`` if it is a run or turn that began after the branch with ``previous`` ended."""
    branch, other = turn.tree.below_fork(step, previous), turn.tree.below_fork(previous, step)
    if branch is None or other is None or turn.tree.parent(branch) is None or branch.record.start_ns < other.record.end_ns:
        return None
    if _is_next_run(turn, branch):
        return branch  # the application still used the context of an ended run
    return branch if _is_of_agent(turn, step, branch) and _is_of_agent(turn, previous, other) else None


def _is_next_run(turn: TurnCalls, run: Step) -> bool:
    above = turn.tree.parent(run)
    if above is None or run.role != AGENT or run.agent != above.agent or not _ended_before(above, run):
        return False
    return not any(step.role is not None and step.record.end_ns > run.record.start_ns for step in turn.ancestors(above))


def _ended_before(step: Step | None, later: Step) -> bool:
    return step is not None and step.role == AGENT and step.record.end_ns < later.record.start_ns


def _is_of_agent(turn: TurnCalls, step: Step, top: Step) -> bool:
    if AGENT in (step.role, top.role) or is_turn(top.record.name):
        return True
    agent = turn.tree.nearest(step, AGENT, lambda ancestor: ancestor.role == AGENT)
    return agent is not None and turn.tree.is_ancestor(top, agent)


def _cut(group: SpanGroup, turn: TurnCalls, starts: list[Step]) -> list[SpanGroup]:
    """Split a group into turns. ``starts`` contains the first span of every turn except the first turn."""
    times = sorted(start.record.start_ns for start in starts)
    parts: list[list[Step]] = [[] for _ in range(len(starts) + 1)]
    shared: set[int] = set()
    for start in starts:
        for step in turn.ancestors(start):
            if id(step) in shared or _ended_before(step, start):
                break
            shared.add(id(step))
    for step in turn.steps:
        if id(step) not in shared:
            parts[bisect.bisect_right(times, step.record.start_ns)].append(step)
    found = []
    for part in parts:
        root = _top(part, turn)
        if root is not None:
            piece = SpanGroup(root.record, [step.record for step in part], group.root_seen)
            piece.ancestor, piece.pending = group.root, group.pending
            piece.reason, piece.complete, piece.size = group.reason, group.complete, group.size // len(parts)
            found.append(piece)
    return found


def _top(part: list[Step], turn: TurnCalls) -> Step | None:
    ids = {step.record.span_id for step in part}
    for step in part:
        if step.role in (AGENT, LLM):
            ancestors = [at for at in turn.ancestors(step) if at.record.span_id in ids]
            return ancestors[-1] if ancestors else step
    return None
