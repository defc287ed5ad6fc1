"""Tokens that a model call read from a cache or wrote to it, and tokens of its reasoning. Conventions name them in many ways, and
some don't count them within the input or output.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..attributes import as_int
from ..step import Step
from .words import words_of

_NO_TOTAL = frozenset(("cost", "aggregated"))


class CacheNames(NamedTuple):
    """Names of the attributes with totals and with counts that concern a cache."""

    read: tuple[str, ...]
    written: tuple[str, ...]
    total: tuple[str, ...]


def cache_names(names: Iterable[str]) -> CacheNames:
    read: list[str] = []
    written: list[str] = []
    total: list[str] = []
    for name in names:
        words = set(words_of(name))
        if words.isdisjoint(("token", "tokens", "usage")) or words & {"non", "no", "uncached", "audio"}:
            continue
        if not words.isdisjoint(("cache", "cached")):
            (read if words.isdisjoint(("write", "creation")) else written).append(name)
        elif "total" in words and words.isdisjoint(_NO_TOTAL):
            total.append(name)
    return CacheNames(tuple(read), tuple(written), tuple(total))


def correct_counts(attributes: Mapping[str, Any], names: CacheNames, step: Step) -> None:
    """Fill cache tokens, and add them to the input and reasoning to the output if these exclude them. That is the case if the
    stated total contains both, or if a cache has more tokens than the input.
    """
    if step.cached_tokens is None:
        step.cached_tokens = _largest(attributes, names.read)
    step.cache_write_tokens = _largest(attributes, names.written) or step.cache_write_tokens
    given, made, thought = step.input_tokens, step.output_tokens or 0, step.reasoning_tokens or 0
    beside = (step.cached_tokens or 0) + (step.cache_write_tokens or 0)
    total = _largest(attributes, names.total) or 0
    if given is not None and beside and (beside > given or total - given - beside in (made, made + thought)):
        given = step.input_tokens = given + beside
    if thought and total == (given or 0) + made + thought:
        step.output_tokens = made + thought


def _largest(attributes: Mapping[str, Any], names: Iterable[str]) -> int | None:
    return max((count for name in names if (count := as_int(attributes[name])) is not None), default=None)
