"""Conversion of text and values from other programs to a form that every encoder accepts.

Python text can contain lone surrogates, for example after a cut in the middle of an emoji. UTF-8, SQLite, protobuf, and JSON
parsers reject lone surrogates. Python values can have non-text keys, non-finite numbers, and unlimited nesting. A single invalid
value could make a whole batch, line, or job fail, so all input is converted on arrival.

This module also shortens names and checks counts, to fit the limits of databases, wire formats, and metric labels.
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
"""Characters that HTML or XML documents must not contain."""
_NOT_IN_DOCUMENTS = re.compile(f"[{_FORBIDDEN}]")
_NOT_IN_LABELS = re.compile(f"[{_FORBIDDEN}\r\u2028\u2029]")
MAX_DEPTH = 200
"""Maximum nesting depth that is kept. With the levels that a turn adds, this depth is below the JSON encoder's limit of 254."""
_LEAST_INT, _MOST_INT = -(2**63), 2**64 - 1
"""Range of integers that parsers and encoders accept."""
_WORDS = {None: "null", False: "false", True: "true"}


def well_formed(text: str) -> str:
    """Replace lone surrogates with U+FFFD, and convert surrogate pairs to characters."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def for_document(text: str) -> str:
    """Replace each character that HTML or XML doesn't allow with U+FFFD."""
    return _NOT_IN_DOCUMENTS.sub("\ufffd", text)


def for_label(text: str) -> str:
    r"""Escape control characters and line separators (except line feeds and tabs), at which some scrapers split lines, as ``\uXXXX``."""
    if text.isprintable():
        return text
    return _NOT_IN_LABELS.sub(lambda found: f"\\u{ord(found[0]):04x}", well_formed(text))


def plain(value: Any, depth: int = 0) -> Any:
    """Convert a value from another program to JSON types.

    Dictionary keys become text, and text becomes well-formed. Valid values and :class:`.Later` values are returned unchanged.

    - Bytes become base64, integers over 64 bits become floats, and sets become lists, sorted as text.
    - Decimals and numeric NumPy or pandas values become numbers or lists. Dates, UUIDs, and other objects become text.
    - Non-finite or huge numbers, values nested deeper than :data:`MAX_DEPTH`, and objects whose conversion fails become None.
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
    if isinstance(value, Mapping):
        return _plain_mapping(value, depth + 1) if depth < MAX_DEPTH else None
    if isinstance(value, (list, tuple, AbstractSet)):
        return _plain_items(value, depth + 1) if depth < MAX_DEPTH else None
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    try:
        if isinstance(value, (int, float)):  # enum members, and number types of other libraries
            return plain(value.__index__() if isinstance(value, int) else float(value))
        found = _written(value, True, _decimal_number)
        if found is not value:
            return plain(found, depth)
        return well_formed(str.__str__(value) if isinstance(value, str) else str(value))
    except Exception:  # methods of the application's objects can raise anything
        return None


def _plain_mapping(value: Mapping[Any, Any], depth: int) -> Mapping[Any, Any]:
    found: dict[str, Any] = {}
    changed = value.__class__ is not dict
    for key, inner in value.items():
        if key.__class__ is str:
            plain_key = well_formed(key)
        elif key is None or key.__class__ is bool:
            plain_key = _WORDS[key]  # as JSON encoders write it
        else:
            plain_key = plain(key)
            plain_key = "" if plain_key is None else str(plain_key)
        found[plain_key] = plain_inner = plain(inner, depth)
        changed = changed or plain_inner is not inner or plain_key is not key
    return found if changed else value


def _plain_items(value: Any, depth: int) -> Any:
    items = [plain(item, depth) for item in value]
    if isinstance(value, AbstractSet):
        return sorted(items, key=str)  # the same order in every process
    if all(item is before for item, before in zip(items, value, strict=True)):
        return value
    return tuple(items) if value.__class__ is tuple else items


def _real(number: int) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


_decimal_text = "{:f}".format
_LIBRARIES = ("datetime", "decimal", "uuid", "numpy", "pandas")


def written(value: Any, *, finite: bool = True) -> Any:
    """Convert dates, decimals, UUIDs, and NumPy or pandas numbers to their usual form in text or JSON.

    A decimal becomes text (``1.50``) or, inside an object or list, a number. Missing values become None. If ``finite`` is true,
    non-finite numbers also become None. Other libraries' objects and too deeply nested values stay unchanged.
    """
    try:
        return _written(value, finite, _decimal_text)
    except RecursionError:
        return value


def _written(value: Any, finite: bool, write_decimal: Callable[[decimal.Decimal], Any]) -> Any:
    kind = value.__class__
    if kind is dict:
        return {key: _written(inner, finite, _decimal_number) for key, inner in value.items()}
    if kind is list or kind is tuple:
        return kind(_written(inner, finite, _decimal_number) for inner in value)
    if kind is float:
        return None if finite and not math.isfinite(value) else value
    library = kind.__module__.partition(".")[0]
    if library not in _LIBRARIES or isinstance(value, type):
        return value
    if library in ("numpy", "pandas") and hasattr(value, "dtype"):
        if getattr(value, "ndim", 0):
            return _written(list(value), finite, _decimal_number)
        # without the cast, the item of a time in nanoseconds is a number
        item = (value.astype("datetime64[us]") if value.dtype.kind == "M" else value).item()
        return item if item.__class__.__module__ == "numpy" else _written(item, finite, write_decimal)
    if kind.__name__ in ("NAType", "NaTType"):  # missing values of pandas
        return None
    if isinstance(value, decimal.Decimal):
        return write_decimal(value) if value.is_finite() else None
    return _written_time(value) if isinstance(value, (datetime.date, datetime.time)) else str(value)


def _decimal_number(value: decimal.Decimal) -> float:
    return int(value) if value == value.to_integral_value() else float(value)


def _written_time(value: datetime.date | datetime.time) -> str:
    if not isinstance(value, datetime.datetime):
        return value.isoformat()
    if value.tzinfo is None and value.time() == datetime.time():
        return value.date().isoformat()
    return value.isoformat().replace("+00:00", "Z")


def decoded(raw: bytes) -> str:
    """Decode UTF-8, with U+FFFD for invalid bytes and encoded lone surrogates."""
    try:
        return well_formed(raw.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")


class Later:
    """Raw content, and the function that converts this content to JSON types on demand."""

    __slots__ = ("raw", "reader")

    def __init__(self, reader: Callable[[Any], Any], raw: Any) -> None:
        self.reader = reader
        self.raw = raw


# --- limits of names and counts

MOST = 2**63 - 1
"""Largest count that fits a database column and an OTLP integer."""
NAME_BYTES = 1024
"""Maximum length of a name in UTF-8 bytes. PostgreSQL can't index texts over 2,700 bytes."""
SHORT = NAME_BYTES // 4
"""Number of characters that always fit in ``NAME_BYTES``, because a character takes at most four bytes."""


def bounded_name(name: str) -> str:
    """Shorten a name to :data:`NAME_BYTES` bytes if it is longer.

    A shortened name ends with a hash of the full name, so long names that differ only at the end stay distinct.
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
    """Return the sum of the known counts, or None if all counts are unknown. The sum can exceed :data:`MOST`."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
