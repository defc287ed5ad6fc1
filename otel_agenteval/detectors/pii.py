"""Find personal data in text, fast enough for the agent's thread.

One pass converts the text to its *shape*: ``Call (555) 123-4567 now`` becomes ``A-000-000-0000-``. Digits become ``0``, capitals
become ``A``, spaces and separators become ``-``, and most other signs become ``.``. ``@`` and ``+`` stay, and all other characters
are removed. Most texts are ruled out because their shape doesn't contain certain substrings.

Malicious text can't slow down the patterns, because they don't nest unbounded repetitions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from .redaction.numbers import luhn_valid
from .texts import SCAN_LIMIT, Span

_SHAPE_OF = {
    b"0123456789": b"0",
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZ": b"A",
    b" -.\t\n": b"-",
    b'!"#$%&*,/:;<=>[\\]^_`{|}~': b".",
    b"@": b"@",
    b"+": b"+",
}
_SHAPES = bytes.maketrans(b"".join(_SHAPE_OF), b"".join(shape * len(signs) for signs, shape in _SHAPE_OF.items()))
_VANISHING = bytes(set(range(256)) - set(b"".join(_SHAPE_OF)))


_LOCAL_CHARACTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._%+-"
_LONGEST_LOCAL = 64
_DOMAIN = re.compile(r"[A-Za-z0-9.-]{1,253}\.[A-Za-z]{2,63}\b")


def _emails(text: str) -> Iterator[Span]:
    """Yield email addresses. Each search covers at most 64 characters before an ``@``."""
    at = text.find("@")
    end = 0
    while at >= 0:
        before = text[max(end, at - _LONGEST_LOCAL) : at]
        local = before[len(before.rstrip(_LOCAL_CHARACTERS)) :].lstrip(".%+-")
        domain = _DOMAIN.match(text, at + 1) if local else None
        if domain is not None:
            end = domain.end()
            yield at - len(local), end
        at = text.find("@", at + 1)


_CARD = re.compile(r"\b[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}[ -]?[0-9]{4}\b")
_SSN = re.compile(r"\b[0-9]{3}-[0-9]{2}-[0-9]{4}\b")
_PLAIN_PHONE = re.compile(r"\b[0-9]{3}[-.]?[0-9]{3}[-.]?[0-9]{4}\b")
_PHONE = re.compile(
    r"(?<![\w+])\+[0-9](?:[ .()-]{0,2}[0-9]){7,14}(?![0-9])"  # +country
    r"|\([0-9]{3}\)[ .-]?[0-9]{3}[ .-]?[0-9]{4}\b"
    r"|\b[0-9]{3}[ .-]?[0-9]{3}[ .-]?[0-9]{4}\b"
)
_NAME = re.compile(r"\b[A-Z][a-z]+ [A-Z][a-z]+\b")
_ADDRESS = re.compile(
    r"\b[0-9]{1,6}[A-Za-z]? (?:(?:[A-Z][A-Za-z']{0,30}(?:-[A-Za-z']{1,30})?\.?|[0-9]{1,3}(?:st|nd|rd|th)) ){1,4}"
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Boulevard|Blvd|Court|Ct|Place|Pl|Square|Sq|Terrace|Ter|Parkway|Pkwy"
    r"|Highway|Hwy|Way)\b"
)


def _matches(pattern: re.Pattern[str]) -> Callable[[str], Iterator[Span]]:
    return lambda text: (found.span() for found in pattern.finditer(text))


def _valid_cards(text: str) -> Iterator[Span]:
    for found in _CARD.finditer(text):
        if luhn_valid(found.group().replace(" ", "").replace("-", "")):
            yield found.span()


class Detector(NamedTuple):
    kind: str
    """Kind of data: ``email``, ``phone``, ``ssn``, ``credit_card``, ``name``, or ``address``."""
    confidence: float
    """Confidence that a match is personal data, from 0 to 1."""
    shape: re.Pattern[bytes]
    """Pattern for the text's shape. If it doesn't match, the text doesn't contain this kind of data."""
    spans: Callable[[str], Iterator[Span]]


class Rule(NamedTuple):
    """Detectors that run only if the text's shape contains any of the ``marks``."""

    marks: tuple[bytes, ...]
    detectors: tuple[Detector, ...]


_CARD_SHAPE = re.compile(rb"0000-?0000")
_SSN_DETECTOR = Detector("ssn", 0.98, re.compile(rb"000-00-0000"), _matches(_SSN))
_NUMBER_MARKS = (b"000-000", b"000000", b"000-00-0", b"+0")  # prices have the shape 000-00

EMAILS = Rule((b"@",), (Detector("email", 0.95, re.compile(b"@"), _emails),))
NUMBERS = Rule(
    _NUMBER_MARKS,
    (
        Detector("phone", 0.90, re.compile(rb"000-?000|\+0"), _matches(_PHONE)),
        _SSN_DETECTOR,
        Detector("credit_card", 0.85, _CARD_SHAPE, _valid_cards),
    ),
)
"""Phone numbers in many spellings, social security numbers, and valid card numbers."""
PLAIN_NUMBERS = Rule(
    _NUMBER_MARKS,
    (
        Detector("phone", 0.90, re.compile(rb"000-?000"), _matches(_PLAIN_PHONE)),
        _SSN_DETECTOR,
        Detector("credit_card", 0.85, _CARD_SHAPE, _matches(_CARD)),
    ),
)
"""Phone numbers of ten digits, social security numbers, and sixteen digits as card numbers."""
ADDRESSES = Rule((b"0-A", b"0A-A"), (Detector("address", 0.70, re.compile(rb"0A?-(?:[0A]+-{1,3}){1,8}A"), _matches(_ADDRESS)),))
NAMES = Rule((b"A-A",), (Detector("name", 0.60, re.compile(rb"A-A"), _matches(_NAME)),))


def find(text: str, rules: Iterable[Rule]) -> list[tuple[Detector, int, int]]:
    """Return ``(detector, start, end)`` of matches in the first :data:`SCAN_LIMIT` characters. Matches can overlap."""
    if len(text) > SCAN_LIMIT:
        text = text[:SCAN_LIMIT]
    shape = text.encode("ascii", "replace").translate(_SHAPES, _VANISHING)
    found: list[tuple[Detector, int, int]] = []
    for rule in rules:
        for mark in rule.marks:
            if mark in shape:
                for detector in rule.detectors:
                    if detector.shape.search(shape) is not None:
                        found += [(detector, start, end) for start, end in detector.spans(text)]
                break
    return found


def mask(value: str) -> str:
    return f"{value[:2]}{'*' * (len(value) - 4)}{value[-2:]}" if len(value) > 4 else "*" * len(value)
