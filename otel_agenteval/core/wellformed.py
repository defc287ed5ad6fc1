"""Converts foreign text and values to a form that every encoder accepts.

Python text can contain lone surrogates, which UTF-8, SQLite, protobuf and JSON parsers reject. Python values can have keys
other than text, non-finite numbers and unlimited nesting. Programs produce all of these, for example by truncating text in the
middle of an emoji. To protect the batch, line or job that contains such a value, all input passes through one of these
functions on arrival.

Databases, wire formats and label sets also limit names and counts, and one oversized value can fail a whole batch.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import hashlib
import math
import re
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_NON_CHARACTERS = "".join(chr(plane + last) for plane in range(0, 0x11_0000, 0x1_0000) for last in (0xFFFE, 0xFFFF))
_FORBIDDEN = f"\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef{_NON_CHARACTERS}"
"""Characters that a document in HTML or XML must not contain."""
_NOT_IN_DOCUMENTS = re.compile(f"[{_FORBIDDEN}]")
_NOT_IN_LABELS = re.compile(f"[{_FORBIDDEN}\r\u2028\u2029]")
MAX_DEPTH = 200
"""Deepest nesting that is kept. With the levels that a turn adds, this stays below the JSON encoder's limit of 254."""
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1
"""Range of integers that parsers and encoders accept."""
_WORDS = {None: "null", False: "false", True: "true"}


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced by U+FFFD, and surrogate pairs joined."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def for_document(text: str) -> str:
    """Return the text with U+FFFD for each character that HTML or XML doesn't allow."""
    return _NOT_IN_DOCUMENTS.sub("\ufffd", text)


def for_label(text: str) -> str:
    r"""Return the text with escapes such as ``\u2028`` for line ends and control characters but the line feed, because scrapers
    split the page with ``str.splitlines``.
    """
    if text.isprintable():
        return text
    return _NOT_IN_LABELS.sub(lambda found: f"\\u{ord(found[0]):04x}", well_formed(text))


def plain(value: Any, depth: int = 0) -> Any:
    """Convert a foreign value to JSON types.

    Dictionary keys become text, and text becomes well-formed. Values that need no change, and :class:`.Later` values, are
    returned as they are.

    - Bytes become base64, integers over 64 bits become floats, and other objects become their text.
    - Non-finite numbers, and values nested deeper than :data:`MAX_DEPTH`, become None.
    """
    kind = value.__class__
    if kind is str:
        return well_formed(value)
    if kind is int:
        return value if _LEAST_INT <= value <= _MOST_INT else _real(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if value is None or kind is bool or kind is Later:
        return value
    if isinstance(value, (Mapping, list, tuple, AbstractSet)):
        return None if depth >= MAX_DEPTH else _plain_container(value, depth + 1)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    try:
        if isinstance(value, (int, float)):  # enum members, and number types of other libraries
            return plain(value.__index__() if isinstance(value, int) else float(value))
        found = _written(value, True)
        return (
            well_formed(str.__str__(value) if isinstance(value, str) else str(value)) if found is value else plain(found, depth)
        )
    except Exception:  # methods of the application's objects can raise anything
        return None


_LIBRARIES = ("datetime", "decimal", "uuid", "numpy", "pandas")


def written(value: Any, *, finite: bool = True) -> Any:
    """Return a value with dates, decimals, ids and numbers of libraries as people write them in text or JSON.

    A decimal is a text (``1.50``), or a number inside an object or list. Missing values become None, and so do non-finite ones
    if ``finite``. Objects of other libraries are unchanged, and so is what is nested too deeply.
    """
    try:
        return _written(value, finite, inside=False)
    except RecursionError:
        return value


def _written(value: Any, finite: bool, inside: bool = True) -> Any:
    kind = value.__class__
    if kind is dict:
        return {key: _written(inner, finite) for key, inner in value.items()}
    if kind is list or kind is tuple:
        return kind(_written(inner, finite) for inner in value)
    if kind is float:
        return None if finite and not math.isfinite(value) else value
    module = kind.__module__.partition(".")[0]
    if module not in _LIBRARIES or isinstance(value, type):
        return value
    if module in ("numpy", "pandas") and hasattr(value, "dtype"):
        if getattr(value, "ndim", 0):
            return _written(list(value), finite)
        value = (value.astype("datetime64[us]") if value.dtype.kind == "M" else value).item()
        return value if value.__class__.__module__ == "numpy" else _written(value, finite, inside)
    return None if kind.__name__ in ("NAType", "NaTType") else _written_scalar(value, inside)


def _written_scalar(value: Any, inside: bool) -> Any:
    if isinstance(value, decimal.Decimal):
        if not value.is_finite():
            return None
        return (int(value) if value == value.to_integral_value() else float(value)) if inside else format(value, "f")
    if isinstance(value, datetime.datetime):
        if value.tzinfo is None and value.time() == datetime.time():
            return value.date().isoformat()
        return value.isoformat().replace("+00:00", "Z")
    return value.isoformat() if isinstance(value, (datetime.date, datetime.time)) else str(value)


def _plain_container(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        made: dict[str, Any] = {}
        changed = value.__class__ is not dict
        for key, inner in value.items():
            its_key = well_formed(key) if key.__class__ is str else _key(key)
            made[its_key] = found = plain(inner, depth)
            changed = changed or found is not inner or its_key is not key
        return made if changed else value
    items = [plain(item, depth) for item in value]
    if isinstance(value, AbstractSet):
        return sorted(items, key=str)  # the same order in every process
    if all(item is before for item, before in zip(items, value, strict=True)):
        return value
    return tuple(items) if value.__class__ is tuple else items


def _key(key: Any) -> str:
    """Return a dictionary key as JSON encoders write it."""
    if key is None or key.__class__ is bool:
        return _WORDS[key]
    return str(found) if (found := plain(key)) is not None else ""


def _real(number: int) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def decoded(raw: bytes) -> str:
    """Decode UTF-8, with U+FFFD for invalid bytes. An encoded lone surrogate becomes a single one."""
    try:
        return well_formed(raw.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


class Later:
    """Raw content, and the function that converts it to JSON types when needed."""

    __slots__ = ("raw", "reader")

    def __init__(self, reader: Callable[[Any], Any], raw: Any) -> None:
        self.reader = reader
        self.raw = raw


MOST = 2**63 - 1
"""Largest count that fits a database column and an OTLP integer."""
NAME_BYTES = 1024
"""Longest name, in bytes of UTF-8. PostgreSQL refuses to index texts longer than 2,700 bytes."""
SHORT = NAME_BYTES // 4
"""Names with at most this many characters are never longer, because a character takes at most four bytes."""


def bounded_name(name: str) -> str:
    """Return the name, shortened to :data:`NAME_BYTES` bytes if it is longer.

    A shortened name ends with a hash of the full name, so two long names that differ only at the end stay distinct.
    """
    if len(name) <= SHORT:
        return name
    raw = name.encode(errors="replace")
    if len(raw) <= NAME_BYTES:
        return name
    mark = f"…[cut {hashlib.blake2b(raw, digest_size=4).hexdigest()}]"
    return raw[: NAME_BYTES - len(mark.encode())].decode(errors="ignore") + mark


def is_count(number: float) -> bool:
    return 0 <= number <= MOST


def sum_of(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the known counts, or None if all are unknown. The sum can exceed :data:`MOST`."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
