"""Finds all personal data and secrets in a text, including in its decoded views."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import cache, lru_cache

from ...core.caches import remembered
from .commands import may_command
from .emails import emails
from .named import is_named_secret
from .numbers import cards, is_phone, is_phone_name, is_ssn, is_ssn_name, phones, ssns
from .patterns import lazy
from .secrets import secrets
from .views import MAX_LAYERS, View, first_view, next_view
from .words import may_name, strength_of

Find = tuple[int, int, str]

_MARKER = lazy(r"\[(?:EMAIL|PHONE|CARD|SSN|SECRET)(?:_[0-9]{1,6}|-[0-9a-f]{12})\]")
_WORDS = ("basic", "bearer", "login", "://", " at ", "(at)", "[at]", "{at}", "_at_")
_PLAIN_WORD = re.compile(r"[A-Za-z_]{1,40}")
_LONG = lazy(r"[A-Za-z0-9+/_.=-]{10}")
_NO_DIGITS = bytes(code for code in range(256) if not 48 <= code < 58)
_LEAST_DIGITS = 7


def may_hold(text: str) -> bool:
    """Return True if a text needs the full search. The check takes a microsecond, and rules out most short sentences."""
    if len(text) < 5 or _PLAIN_WORD.fullmatch(text) is not None:
        return False
    if not text.isascii() or "@" in text or "\\" in text or "%" in text or "&" in text:
        return True
    if len(text.encode("ascii").translate(None, _NO_DIGITS)) >= _LEAST_DIGITS or _LONG.search(text) is not None:
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WORDS) or may_name(lowered) or may_command(text, lowered)


def finds(text: str, kinds: Collection[str]) -> tuple[Find, ...]:
    """Return data of the given kinds, in order and with overlaps merged. The finds in recent texts are kept."""
    return finder(frozenset(kinds))(text)


@cache
def finder(kinds: frozenset[str]) -> Callable[[str], tuple[Find, ...]]:
    """Return :func:`finds` for the given kinds."""
    return remembered(lambda text: tuple(_finds(text, kinds)) if may_hold(text) else ())


def _finds(text: str, kinds: Collection[str]) -> Iterator[Find]:
    found: list[Find] = []
    view: View | None = first_view(text)
    for _ in range(MAX_LAYERS + 1):
        if view is None:
            break
        for start, end, kind in _in_view(view.text, kinds):
            found.append((*view.origin(start, end), kind))
        view = next_view(view)
    if not found:
        return
    markers = [marker.span() for marker in _MARKER.finditer(text)] if "[" in text else []
    yield from _merged(found, markers)


def _in_view(text: str, kinds: Collection[str]) -> Iterator[Find]:
    for kind, detect in _DETECTORS:
        if kind in kinds:
            for start, end in detect(text):
                yield start, end, kind


def _enough_digits(text: str, least: int) -> bool:
    return len(text.encode("ascii", "ignore").translate(None, _NO_DIGITS)) >= least


def _cards(text: str) -> Iterator[tuple[int, int]]:
    return cards(text) if _enough_digits(text, 14) else iter(())


def _phones(text: str) -> Iterator[tuple[int, int]]:
    return phones(text) if _enough_digits(text, _LEAST_DIGITS) else iter(())


def _ssns(text: str) -> Iterator[tuple[int, int]]:
    return ssns(text) if _enough_digits(text, 9) else iter(())


_DETECTORS: tuple[tuple[str, Callable[[str], Iterator[tuple[int, int]]]], ...] = (
    ("secret", secrets),
    ("email", emails),
    ("card", _cards),
    ("ssn", _ssns),
    ("phone", _phones),
)
"""Detectors in order of precedence. Merged finds have the kind of the first."""
_RANK = {kind: rank for rank, (kind, _) in enumerate(_DETECTORS)}


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
    """Return True if a field with this name can contain personal data or a secret."""
    return any(_meaning_of(name[-_LONGEST_KEPT:]))  # names come from the agent and can be arbitrarily long


def kind_by_name(name: str, value: str, kinds: Collection[str]) -> str | None:
    """Return the kind of a whole value by its field's name, as in ``{"phone": 5551234567}``, or None."""
    of_phone, of_ssn, strength = _meaning_of(name[-_LONGEST_KEPT:])
    if of_phone and "phone" in kinds and is_phone(value):
        return "phone"
    if of_ssn and "ssn" in kinds and is_ssn(value):
        return "ssn"
    return "secret" if strength and "secret" in kinds and is_named_secret(strength, value) else None


def plainly(text: str) -> str:
    """Return a find fully decoded, so that different spellings of the same value are equal."""
    view: View | None = first_view(text)
    last = text
    for _ in range(MAX_LAYERS + 1):
        if view is None:
            break
        last, view = view.text, next_view(view)
    return last
