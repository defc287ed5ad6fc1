"""Find the spans of a turn that match a query.

A query is an object of conditions, such as ``{"name_contains": "search"}``. Each condition is evaluated for all spans in one pass.
The time is therefore proportional to the number of spans times the size of the query.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import SpanInfo
from . import regex
from .values import json_equal

_DEEPEST_QUERY = 50

Answers = list[bool]
"""One boolean per span, in the order of the turn's spans."""
Counts = tuple[list[int], list[int]]
"""For each span, the number of its relatives (such as children), and the number of matching relatives."""


class Forest:
    """The parent and child relations of a turn's spans, by index.

    A parent that isn't in the turn is ignored. If parents form a cycle, the cycle's first span becomes a root. If several spans
    have the same ID, children belong to the first of these spans.
    """

    def __init__(self, spans: Sequence[SpanInfo]) -> None:
        self.spans = spans
        self.parents: list[int | None] = []
        self.order: list[int] = []
        """Indexes of the spans, parents before their children."""
        position: dict[str, int] = {}
        for index, span in enumerate(spans):
            position.setdefault(span.id, index)
        below: list[list[int]] = [[] for _ in spans]
        for index, span in enumerate(spans):
            parent = position.get(span.parent) if span.parent is not None else None
            self.parents.append(parent)
            if parent is not None:
                below[parent].append(index)
        placed = [False] * len(spans)
        roots = [index for index, parent in enumerate(self.parents) if parent is None]
        for start in (*roots, *range(len(spans))):
            if placed[start]:
                continue
            root = self._first_of_circle(start)  # spans without a path from a root are below a cycle
            self.parents[root] = None
            pending = [root]
            while pending:
                index = pending.pop()
                if not placed[index]:
                    placed[index] = True
                    self.order.append(index)
                    pending.extend(below[index])

    def _first_of_circle(self, start: int) -> int:
        """Return the root above ``start`` or, if ancestors form a cycle, the cycle's first span."""
        passed: dict[int, int] = {}
        at = start
        while at not in passed:
            passed[at] = len(passed)
            if (parent := self.parents[at]) is None:
                return at
            at = parent
        return min(index for index, step in passed.items() if step >= passed[at])

    def ancestors(self, matching: Answers) -> Counts:
        total, matched = [0] * len(self.spans), [0] * len(self.spans)
        for index in self.order:
            if (parent := self.parents[index]) is not None:
                total[index] = total[parent] + 1
                matched[index] = matched[parent] + matching[parent]
        return total, matched

    def children(self, matching: Answers) -> Counts:
        total, matched = [0] * len(self.spans), [0] * len(self.spans)
        for index, parent in enumerate(self.parents):
            if parent is not None:
                total[parent] += 1
                matched[parent] += matching[index]
        return total, matched

    def descendants(self, matching: Answers, stops: Answers) -> Counts:
        """Count each span's descendants and matching descendants. Spans above a span in ``stops`` don't count this span and its branch."""
        total, matched = [0] * len(self.spans), [0] * len(self.spans)
        for index in reversed(self.order):
            parent = self.parents[index]
            if parent is not None and not stops[index]:
                total[parent] += 1 + total[index]
                matched[parent] += matching[index] + matched[index]
        return total, matched


_SpanTest = Callable[[SpanInfo, Any], bool]
_Quantifier = Callable[[int, int], bool]


def _same_value(actual: Any, wanted: Any) -> bool:
    if isinstance(actual, bool) or isinstance(wanted, bool):
        return _truth(actual) is not None and _truth(actual) == _truth(wanted)
    return json_equal(actual, wanted) or jsonio.rendered(actual) == jsonio.rendered(wanted)


def _truth(value: Any) -> bool | None:
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.strip().lower()) if isinstance(value, str) else None


_OF_ONE_SPAN: dict[str, _SpanTest] = {
    "name_equals": lambda span, text: (span.name or "") == text,
    "name_contains": lambda span, text: text in (span.name or ""),
    "name_matches_regex": lambda span, pattern: regex.search(pattern, span.name or "") is not None,
    "has_attributes": lambda span, wanted: all(
        key in span.attributes and _same_value(span.attributes[key], value) for key, value in wanted.items()
    ),
    "has_attribute_keys": lambda span, keys: all(key in span.attributes for key in keys),
    "min_duration_s": lambda span, bound: span.duration_s is not None and span.duration_s >= bound,
    "max_duration_s": lambda span, bound: span.duration_s is not None and span.duration_s <= bound,
}
_QUANTIFIERS: dict[str, _Quantifier] = {
    "some": lambda total, matched: matched > 0,
    "all": lambda total, matched: matched == total,
    "no": lambda total, matched: matched == 0,
}
_OF_RELATIVES: dict[str, tuple[str, _Quantifier]] = {
    name: (relation, _QUANTIFIERS[name.partition("_")[0]])
    for relation, names in {
        "children": ("some_child_matches", "all_children_match", "no_child_matches"),
        "descendants": ("some_descendant_matches", "all_descendants_match", "no_descendant_matches"),
        "ancestors": ("some_ancestor_matches", "all_ancestors_match", "no_ancestor_matches"),
    }.items()
    for name in names
}
_BOUNDS: dict[str, tuple[str, bool]] = {
    "min_child_count": ("children", True),
    "max_child_count": ("children", False),
    "min_depth": ("ancestors", True),
    "max_depth": ("ancestors", False),
}
_TEXTS = frozenset(("name_equals", "name_contains", "name_matches_regex"))
_NUMBERS = frozenset((*_BOUNDS, "min_duration_s", "max_duration_s"))
_QUERIES = frozenset((*_OF_RELATIVES, "stop_recursing_when", "not"))
_LISTS = frozenset(("and", "or"))
KEYS = frozenset((*_OF_ONE_SPAN, *_BOUNDS, *_QUERIES, *_LISTS))


def _refuse(path: str, wanted: str) -> MetricError:
    return MetricError("invalid_query", f"{path}: {wanted}")


def checked_query(query: Any, path: str = "query", depth: int = 0) -> dict[str, Any]:
    """Validate a query, and return it without null conditions.

    Raises:
        MetricError: If a condition is unknown, invalid, or next to ``or`` at the same level, or if the query is nested too deeply.
        MissingExtra: If a condition requires the package ``google-re2``, and it isn't installed.
    """
    if not isinstance(query, Mapping):
        raise _refuse(path, "must be an object of conditions")
    if depth > _DEEPEST_QUERY:
        raise _refuse("query", f"must be nested at most {_DEEPEST_QUERY} levels deep")
    given = {}
    for key, value in query.items():
        if key not in KEYS:
            raise _refuse(f"{path}.{key}", f"unknown condition; allowed: {', '.join(sorted(KEYS))}")
        if value is not None:
            given[key] = _checked_value(key, value, f"{path}.{key}", depth)
    if "or" in given and len(given) > 1:
        raise _refuse(f"{path}.or", "must be the only condition at its level. Move this condition below 'and'")
    return given


def _checked_value(key: str, value: Any, path: str, depth: int) -> Any:
    if key in _QUERIES:
        return checked_query(value, path, depth + 1)
    if key in _LISTS:
        if not isinstance(value, (list, tuple)):
            raise _refuse(path, "must be a list of queries")
        return [checked_query(inner, f"{path}[{index}]", depth + 1) for index, inner in enumerate(value)]
    if key in _TEXTS:
        if not isinstance(value, str):
            raise _refuse(path, "must be a string")
        if key == "name_matches_regex":
            regex.compiled(value)
    elif key in _NUMBERS:
        if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
            raise _refuse(path, "must be a number")
    elif key == "has_attributes":
        if not isinstance(value, Mapping):
            raise _refuse(path, "must be an object of attributes")
    elif not isinstance(value, (list, tuple)) or not all(isinstance(name, str) for name in value):
        raise _refuse(path, "must be a list of attribute names")
    return value


def matching_spans(query: Mapping[str, Any], forest: Forest) -> Answers:
    if "or" in query:
        return _combined(any, query["or"], forest)
    found = [True] * len(forest.spans)
    for key, wanted in query.items():
        if key != "stop_recursing_when":  # only modifies other conditions
            found = [one and other for one, other in zip(found, _matches(key, wanted, query, forest), strict=True)]
    return found


def _matches(key: str, wanted: Any, query: Mapping[str, Any], forest: Forest) -> Answers:
    if key == "and":
        return _combined(all, wanted, forest)
    if key == "not":
        return [not answer for answer in matching_spans(wanted, forest)]
    if key in _OF_ONE_SPAN:
        return [_OF_ONE_SPAN[key](span, wanted) for span in forest.spans]
    if key in _BOUNDS:
        relation, least = _BOUNDS[key]
        everything = [True] * len(forest.spans)
        counts, _ = forest.children(everything) if relation == "children" else forest.ancestors(everything)
        return [count >= wanted if least else count <= wanted for count in counts]
    relation, holds = _OF_RELATIVES[key]
    answers = matching_spans(wanted, forest)
    if relation == "descendants":
        stop = query.get("stop_recursing_when")
        both = forest.descendants(answers, [False] * len(answers) if stop is None else matching_spans(stop, forest))
    else:
        both = forest.children(answers) if relation == "children" else forest.ancestors(answers)
    return [holds(total, matched) for total, matched in zip(*both, strict=True)]


def _combined(quantifier: Callable[[Iterable[bool]], bool], queries: Sequence[Mapping[str, Any]], forest: Forest) -> Answers:
    answers = [matching_spans(query, forest) for query in queries]
    return [quantifier(column[index] for column in answers) for index in range(len(forest.spans))]
