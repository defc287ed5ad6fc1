"""The verdict on an answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from .model import Read, read
from .rules import Kind, declines
from .text import length
from .weights import WEIGHTS

_LONGEST = 2_000
"""Longer answers deliver something (in Latin letters)."""
_THRESHOLD = -0.3
"""The share found still grows down to here, while of the recordings' ordinary answers one in a thousand reaches it."""
SECOND_OPINION = 1.5
"""What a sentence that declines by a known pattern adds. Fixed, not fitted: the patterns were made with the same cases."""
_NUMBER = re.compile(r"[0-9][0-9.,:/-]*")
_MANY_NUMBERS = 8
_CODE = re.compile(r"```|^(?: {4}|\t)\S|^\s*\|.*\|.*\|", re.MULTILINE)


class Refusal(NamedTuple):
    """A refusal: how it declines, and in which language."""

    kind: Kind
    language: str


def refusal_in(output: str, asked: str = "", acted: bool = False) -> Refusal | None:
    """The refusal that an answer is, or None. ``asked`` are the user's words; ``acted``: the agent called tools for it."""
    if _delivers(output):
        return None
    found = read(output, asked, acted)
    if found is None:
        return None
    score = score_of(found)
    if score <= _THRESHOLD and (score + SECOND_OPINION <= _THRESHOLD or declines(output, asked) is None):
        return None
    return Refusal(_kind(found), found.language)


def score_of(found: Read) -> float:
    """The weighed evidence: the logarithm of the odds."""
    return WEIGHTS["bias"] + sum(WEIGHTS[name] * value for name, value in found.numbers.items() if value)


def _delivers(output: str) -> bool:
    """What can be seen without reading: length, data, code, tables, many numbers."""
    if len(output) > _LONGEST or output.lstrip()[:1] in ("", "{", "["):
        return True
    may_be_code = "```" in output or "|" in output or "    " in output or "\t" in output
    if (may_be_code and _CODE.search(output)) or len(_NUMBER.findall(output)) >= _MANY_NUMBERS:
        return True
    return not output.isascii() and length(output) > _LONGEST


def _kind(found: Read) -> Kind:
    evidence = found.numbers
    declining = evidence["no"] or evidence["quit"] or evidence["rule"] or evidence["wrong"]
    return "declines" if declining or not evidence["other"] else "redirects"
