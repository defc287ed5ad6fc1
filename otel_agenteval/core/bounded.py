"""Size limits for names and counts from outside.

Databases, wire formats and label sets have limits, and one oversized value can fail a whole batch. Readers apply these limits
once, so later stages don't check again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

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
