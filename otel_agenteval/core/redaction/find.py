"""Everything in a text that may not leave, in every view of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

from .emails import emails
from .numbers import cards, digits_of, phones, ssns
from .patterns import lazy
from .secrets import is_named_secret, secrets
from .views import MAX_LAYERS, View, first_view, folded, next_view

Find = tuple[int, int, str]
"""Where it begins and ends, and its kind."""

_MARKER = lazy(r"\[(?:EMAIL|PHONE|CARD|SSN|SECRET)_[0-9]{1,6}\]")
_WORDS = (
    "pass",
    "pwd",
    "secret",
    "token",
    "auth",
    "key",
    "cookie",
    "basic",
    "bearer",
    "credential",
    "kennwort",
    "senha",
    "login",
    "curl",
    " -u",
    "--user",
    "://",
    " at ",
    "(at)",
    "[at]",
    "{at}",
    "_at_",
)
_PLAIN_WORD = re.compile(r"[A-Za-z_]{1,40}")
_LONG = lazy(r"[A-Za-z0-9+/_.=-]{10}")
_NO_DIGITS = bytes(code for code in range(256) if not 48 <= code < 58)
_LEAST_DIGITS = 7


def may_hold(text: str) -> bool:
    """Whether a text needs a closer look: it costs a microsecond, and most short sentences need none."""
    if len(text) < 5 or _PLAIN_WORD.fullmatch(text) is not None:
        return False
    if not text.isascii() or "@" in text or "\\" in text or "%" in text or "&" in text:
        return True
    if len(text.encode("ascii").translate(None, _NO_DIGITS)) >= _LEAST_DIGITS or _LONG.search(text) is not None:
        return True
    lowered = text.lower()
    return any(word in lowered for word in _WORDS)


def finds(text: str, kinds: Collection[str]) -> Iterator[Find]:
    """What of these kinds stands in a text, in order; no two overlap. What overlaps is one find."""
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
    markers = [marker.span() for marker in _MARKER.finditer(text)] if "_" in text and "[" in text else []
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
"""By precedence: what overlaps is of the first one's kind."""
_RANK = {kind: rank for rank, (kind, _) in enumerate(_DETECTORS)}


def _merged(found: list[Find], markers: list[tuple[int, int]]) -> Iterator[Find]:
    found.sort(key=lambda find: (find[0], -find[1], _RANK[find[2]]))
    start, end, kind = -1, -1, ""
    passed = 0
    for begin, stop, its in found:
        while passed < len(markers) and markers[passed][1] <= begin:
            passed += 1
        if passed < len(markers) and markers[passed][0] < stop:  # a marker of ours stays what it is
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


# --- what a field's name says about its value

_LONGEST_KEPT = 64
_TELLING_NAME = lazy(
    r"pass|pwd|secret|key|token|auth|cred|cookie|phone|mobil|tel|fax|cell|msisdn|whatsapp|ssn|social|tax|contrase|senha|kennwort",
    re.IGNORECASE,
)
_PHONE_NAME = lazy(
    r"(?:phone|mobile|cell|fax|tel|telephone|telefon|telefono|msisdn|whatsapp)(?:[_-]?(?:number|no|nr|num))?[0-9]?\Z",
    re.IGNORECASE,
)
_SSN_NAME = lazy(r"(?:ssn|social[_ -]?security(?:[_ -]?(?:number|no))?)\Z", re.IGNORECASE)
_PHONE_VALUE = lazy(r"\+?[0-9](?:[ ()./-]{0,3}[0-9]){6,14}")


def is_telling(name: str) -> bool:
    """Whether the name of a field can show that its value may not leave."""
    # Names come from the agent and can have any length: long ones are not cached.
    return _is_telling(name) if len(name) <= _LONGEST_KEPT else _TELLING_NAME.search(name) is not None


@lru_cache(maxsize=4096)
def _is_telling(name: str) -> bool:
    return _TELLING_NAME.search(name) is not None


def kind_by_name(name: str, value: str, kinds: Collection[str]) -> str | None:
    """What a whole value is by the name of its field, as in ``{"phone": 5551234567}``."""
    if "phone" in kinds and _PHONE_NAME.search(name) is not None and _PHONE_VALUE.fullmatch(folded(value).strip()) is not None:
        return "phone"
    if "ssn" in kinds and _SSN_NAME.search(name) is not None and len(digits_of(value)) == 9:
        return "ssn"
    if value.isdigit() and "pass" not in name.lower() and "pwd" not in name.lower():
        return None
    if "secret" in kinds and is_telling(name) and is_named_secret(name, value):
        return "secret"
    return None


def plainly(text: str) -> str:
    """A find as its reader sees it: however it is written, it is the same one."""
    view: View | None = first_view(text)
    last = text
    for _ in range(MAX_LAYERS + 1):
        if view is None:
            break
        last, view = view.text, next_view(view)
    return last
