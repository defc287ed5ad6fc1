"""Find personal data and secrets in a text and in its decoded forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache

from ...core.caches import remembered
from ..texts import lazy
from .commands import may_command
from .emails import emails
from .named import is_named_secret
from .numbers import cards, is_phone, is_phone_name, is_ssn, is_ssn_name, phones, ssns
from .secrets import secrets
from .views import views_of
from .words import may_name, strength_of

Find = tuple[int, int, str]

_MARKER = lazy(r"\[(?:EMAIL|PHONE|CARD|SSN|SECRET)(?:_[0-9]{1,6}|-[0-9a-f]{12})\]")
_WORDS = ("basic", "bearer", "login", "://", " at ", "(at)", "[at]", "{at}", "_at_")
_PLAIN_WORD = re.compile(r"[A-Za-z_]{1,40}")
_LONG = lazy(r"[A-Za-z0-9+/_.=-]{10}")
_NO_DIGITS = bytes(code for code in range(256) if not 48 <= code < 58)
_LEAST_DIGITS = 7


def may_hold(text: str) -> bool:
    """Return True if a text needs the full search. This fast check rules out most short sentences."""
    if len(text) < 5 or _PLAIN_WORD.fullmatch(text) is not None:
        return False
    if not text.isascii() or "@" in text or "\\" in text or "%" in text or "&" in text:
        return True
    if len(text.encode("ascii").translate(None, _NO_DIGITS)) >= _LEAST_DIGITS or _LONG.search(text) is not None:
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or may_name(lowered) or may_command(text, lowered)


def find_in(text: str, kinds: Collection[str]) -> tuple[Find, ...]:
    """Return personal data and secrets of ``kinds``, sorted by position, with overlaps merged. Recent results are cached."""
    return searcher(frozenset(kinds))(text)


@cache
def searcher(kinds: frozenset[str]) -> Callable[[str], tuple[Find, ...]]:
    return remembered(lambda text: tuple(_search(text, kinds)) if may_hold(text) else ())


_DETECTORS: tuple[tuple[str, Callable[[str], Iterator[tuple[int, int]]], int], ...] = (
    ("secret", secrets, 0),
    ("email", emails, 0),
    ("card", cards, 14),
    ("ssn", ssns, 9),
    ("phone", phones, _LEAST_DIGITS),
)
"""Detectors in order of precedence, each with the minimum number of digits. Merged matches get the first of their kinds."""
_RANK = {kind: rank for rank, (kind, _, _) in enumerate(_DETECTORS)}


def _search(text: str, kinds: Collection[str]) -> Iterator[Find]:
    found: list[Find] = []
    for view in views_of(text):
        digits = len(view.text.encode("ascii", "ignore").translate(None, _NO_DIGITS))
        for kind, detect, least_digits in _DETECTORS:
            if kind in kinds and digits >= least_digits:
                found += [(*view.origin(start, end), kind) for start, end in detect(view.text)]
    if found:
        yield from _merged(found, [marker.span() for marker in _MARKER.finditer(text)] if "[" in text else [])


def _merged(found: list[Find], markers: list[tuple[int, int]]) -> Iterator[Find]:
    found.sort(key=lambda find: (find[0], -find[1], _RANK[find[2]]))
    start, end, kind = -1, -1, ""
    passed = 0
    for begin, stop, its in found:
        while passed < len(markers) and markers[passed][1] <= begin:
            passed += 1
        if passed < len(markers) and markers[passed][0] < stop:  # don't redact a redaction mark again
            continue
        if begin < end:
            if _RANK[its] < _RANK[kind]:
                kind = its
            end = max(end, stop)
            continue
        if start >= 0:
            yield start, end, kind
        start, end, kind = begin, stop, its
    if start >= 0:
        yield start, end, kind


# --- values recognized by the name of their field


_LONGEST_KEPT = 64


@lru_cache(maxsize=4096)
def _meaning_of(name: str) -> tuple[bool, bool, int]:
    return is_phone_name(name), is_ssn_name(name), strength_of(name)


def is_telling(name: str) -> bool:
    return any(_meaning_of(name[-_LONGEST_KEPT:]))  # names come from the agent and can be arbitrarily long


def kind_by_name(name: str, value: str, kinds: Collection[str]) -> str | None:
    """Return the kind of a value by its field's name, as in ``{"phone": 5551234567}``, or None."""
    of_phone, of_ssn, strength = _meaning_of(name[-_LONGEST_KEPT:])
    if of_phone and "phone" in kinds and is_phone(value):
        return "phone"
    if of_ssn and "ssn" in kinds and is_ssn(value):
        return "ssn"
    return "secret" if strength and "secret" in kinds and is_named_secret(strength, value) else None
