"""What a value from outside may measure: databases, wire formats and label sets all have bounds, and one value beyond them costs its batch.

Counts and names are held to these bounds where they are read, so that nothing behind has to check them again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

MOST = 2**63 - 1
"""The largest count that a column and an OTLP integer hold."""
NAME_BYTES = 1024
"""The longest name in UTF-8. PostgreSQL refuses to index a text that is over 2,700 bytes."""


def bounded_name(name: str) -> str:
    """Return a name as it is, or its beginning with a mark that differs between names which differ only behind that."""
    if len(name) <= NAME_BYTES // 4:  # a character takes at most four bytes
        return name
    raw = name.encode(errors="replace")
    if len(raw) <= NAME_BYTES:
        return name
    mark = f"…[cut {hashlib.blake2b(raw, digest_size=4).hexdigest()}]"
    return raw[: NAME_BYTES - len(mark.encode())].decode(errors="ignore") + mark


def is_count(number: float) -> bool:
    """Return True if a number can be a count."""
    return 0 <= number <= MOST


def sum_of(counts: Iterable[int | None]) -> int | None:
    """Return the sum of the counts that are known; None if there are none. It may be beyond what a count may be."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
