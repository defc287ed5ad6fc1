"""Tokens that a model call read from a cache or wrote to it.

Conventions name them in many ways, and some count them beside the input instead of within it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..step import Step, as_int
from .words import words_of

_NO_TOTAL = frozenset(("cost", "aggregated"))


class CacheNames(NamedTuple):
    """Names of the attributes with counts that concern a cache."""

    read: tuple[str, ...]
    written: tuple[str, ...]
    total: tuple[str, ...]


NO_CACHES = CacheNames((), (), ())


def cache_names(names: Iterable[str]) -> CacheNames:
    """Return the names of counts among a span's attributes, or :data:`NO_CACHES` if no count concerns a cache."""
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
    return CacheNames(tuple(read), tuple(written), tuple(total)) if read or written else NO_CACHES


def count_caches(attributes: Mapping[str, Any], names: CacheNames, step: Step) -> None:
    """Fill the tokens read from and written to a cache, and add them to the input if it excludes them.

    That is the case if there are more of them than input, or if the stated total contains both.
    """
    if step.cached_tokens is None:
        step.cached_tokens = _largest(attributes, names.read)
    step.cache_write_tokens = _largest(attributes, names.written) or step.cache_write_tokens
    given, beside = step.input_tokens, (step.cached_tokens or 0) + (step.cache_write_tokens or 0)
    if given is not None and beside:
        total = _largest(attributes, names.total) or 0
        if beside > given or total == given + beside + (step.output_tokens or 0):
            step.input_tokens = given + beside


def _largest(attributes: Mapping[str, Any], names: Iterable[str]) -> int | None:
    return max((count for name in names if (count := as_int(attributes[name])) is not None), default=None)
