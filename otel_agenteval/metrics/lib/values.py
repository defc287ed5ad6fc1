"""Find reference data, compare and format values as JSON, and shorten texts for a score."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path
from typing import Annotated, Any

from annotated_types import Ge, Le, MinLen

from ...core import jsonio
from ...core.errors import ConfigError, MetricError
from ...core.fact_forms import READERS
from ...core.files import load_yaml
from ...core.forms import Reader
from ...core.turn import Turn
from ...core.wellformed import plain


class _Stripped:
    @staticmethod
    def __get_pydantic_core_schema__(source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import str_schema

        return str_schema(strip_whitespace=True)


Words = Annotated[str, _Stripped, MinLen(1)]
Share = Annotated[float, Ge(0), Le(1)]


def json_equal(left: Any, right: Any) -> bool:
    """Return True if two values are structurally equal.

    The order of keys doesn't matter, but the order of list items does. ``1`` equals ``1.0``, and ``True`` differs from ``1``. The
    comparison isn't recursive, so nesting can have any depth.
    """
    pending = [(left, right)]
    while pending:
        one, other = pending.pop()
        if isinstance(one, dict):
            if not isinstance(other, dict) or one.keys() != other.keys():
                return False
            pending.extend((inner, other[key]) for key, inner in one.items())
        elif isinstance(one, (list, tuple)):
            if not isinstance(other, (list, tuple)) or len(one) != len(other):
                return False
            pending.extend(zip(one, other, strict=True))
        elif not _leaves_equal(one, other):
            return False
    return True


_LEAVES = (str, int, float, type(None))


def _leaves_equal(one: Any, other: Any) -> bool:
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, _LEAVES) and isinstance(other, (*_LEAVES, dict, list, tuple)):
        if float in (one.__class__, other.__class__):  # an integer over 64 bits equals the float that it becomes in a turn
            return bool(one == other or plain(one) == plain(other))
        return bool(one == other)
    # at least one of them has a type that JSON doesn't have, such as bytes, a date or a set
    return one is other or repr(one) == repr(other) or json_equal(plain(one), plain(other))


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=repr)


def canonical(value: Any) -> str:
    """Return a value as compact JSON, with sorted keys if possible. ``1`` and ``1.0`` remain different."""
    try:
        return _CANONICAL.encode(value)
    except (TypeError, ValueError, RecursionError):  # keys of mixed types, cycles, too deep
        return jsonio.dumps(value)


def reference(turn: Turn, given: Any, *names: str) -> Any:
    """Return ``given`` or, if it is None, the turn's first existing reference, in the order of ``names``.

    An empty ``given`` is also returned. For example, an empty list of expected tools means that no tool is expected.
    """
    if given is not None:
        return given
    references = turn.references
    return next((references[name] for name in names if references.get(name) is not None), None)


def fact(turn: Turn, name: str) -> Any:
    """Return data that the application provided in a turn field or reference, normalized.

    Raises:
        MetricError: If the data has an unknown key or a value of the wrong type.
    """
    if not (given := getattr(turn, name)):
        given = turn.references.get(name, given)
        if given in (None, "", [], {}):
            return given
    return readable(READERS[name], given, name, name)


def readable(read: Reader, given: Any, path: str, kind: str = "reference") -> Any:
    try:
        return read(given, path)
    except ConfigError as error:
        raise MetricError(f"invalid_{kind}", str(error)) from None


def truth_of(turn: Turn) -> Any:
    """Return the turn's ground truth, or None if it is missing or empty. 0 isn't empty."""
    known = turn.ground_truth
    return known if known or isinstance(known, (int, float)) else None


@functools.cache
def word_list(name: str) -> Any:
    return load_yaml(Path(__file__).with_name("word_lists.yaml"))[name]


_PIECE = re.compile(r"[\w.@+%-]*\Z")
"""The word characters and ``.@+%-`` at the end of a text: ``token=abc1`` → ``abc1``."""
_TELLING = re.compile(r"[\d@%]")
"""Pattern for a character that is typical of addresses, numbers, and tokens."""
_LAST_WORD_REVERSED = re.compile(r"\S*(?:[\d\s()./-]*\d[+(]?)?")
"""Matches the last word of a text if the text is reversed. A phone or card number with spaces counts as one word.

For example, the last word of ``call +1 (415) 55`` is ``+1 (415) 55``.
"""


def excerpt(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, cut between words if possible.

    Avoid a cut inside an address or number, because later redaction wouldn't recognize a partial address or number.
    """
    if len(text) <= limit:
        return text
    head = text[:limit]
    last_word = _LAST_WORD_REVERSED.match(head[::-1])
    kept = head[: limit - last_word.end()] if last_word is not None else head
    if not kept:  # a single word is cut, but not inside an address, number or token
        piece = _PIECE.search(head)
        kept = head[: piece.start()] if piece is not None and _TELLING.search(piece[0]) else head
    return kept.rstrip()
