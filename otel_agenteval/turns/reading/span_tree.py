"""Which of a turn's spans stand above which: answered in constant time, however deep they are nested.

Short ways up are walked; the tree is made only for turns that are deeper. Broken telemetry can hold a cycle: a span
in one has nothing above it here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property

from ...dialects.step import Step


class SpanTree:
    """The spans of one turn as a tree.

    Args:
        steps: all spans.
        by_id: the same, by span id.
    """

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
        """By span id: when a walk through the tree comes to a span, and below when it has left everything under it."""
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

    def is_above(self, upper: Step, lower: Step) -> bool:
        """Whether one span is an ancestor of the other."""
        at = self._enters.get(lower.record.span_id)
        start = self._enters.get(upper.record.span_id)
        return at is not None and start is not None and start < at <= self._leaves[upper.record.span_id]

    def below_fork(self, step: Step, other: Step) -> Step | None:
        """The topmost span above one, or itself, that isn't above the other one too; None if the span itself is, or is the other one."""
        if step is other or self.is_above(step, other):
            return None
        while (parent := self.parent(step)) is not None and parent is not other and not self.is_above(parent, other):
            far = self._far_above[step.record.span_id]
            step = parent if far is other or self.is_above(far, other) else far
        return step

    @cached_property
    def _far_above(self) -> dict[int, Step]:
        """For each span one above it, chosen so that any way up is short if each step goes there or to the parent."""
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
        """The span right above one."""
        found = self._by_id.get(step.record.parent_id) if step.record.span_id in self._enters else None
        return None if found is step else found

    def nearest(self, step: Step, kind: Hashable, wanted: Callable[[Step], bool]) -> Step | None:
        """The closest span above one that is ``wanted``. ``kind`` names what is wanted: the answers are kept under it."""
        known = self._nearest.get(kind)
        if known is None:
            known = self._nearest[kind] = {}
            for one in self._top_down:
                above = self.parent(one)
                if above is not None:
                    known[one.record.span_id] = above if wanted(above) else known[above.record.span_id]
                else:
                    known[one.record.span_id] = None
        return known.get(step.record.span_id)
