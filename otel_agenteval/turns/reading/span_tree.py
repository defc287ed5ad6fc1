"""Find the ancestors of a turn's spans in constant time, at any depth. Only deeper turns need it. Spans in a cycle, which broken
telemetry may contain, have no ancestors here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property

from ...dialects.step import Step


class SpanTree:
    """The spans of one turn as a tree."""

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
        """When a walk through the tree enters each span, by span id. ``_leaves`` has the time after everything below it."""
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
        """Return the topmost of ``step`` and its ancestors that isn't ``other`` or above it, if any."""
        if step is other or self.is_ancestor(step, other):
            return None
        while (parent := self.parent(step)) is not None and parent is not other and not self.is_ancestor(parent, other):
            far = self._far_ancestor[step.record.span_id]
            step = parent if far is other or self.is_ancestor(far, other) else far
        return step

    @cached_property
    def _far_ancestor(self) -> dict[int, Step]:
        """Return a distant ancestor of each span. With steps to it or to the parent, every path to the root is short."""
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
        """Return the closest ancestor for which ``wanted`` returns True. ``kind`` names the condition for the cache."""
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
