"""Contacts that an organization publishes, and which therefore aren't personal data of its users."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .numbers.reading import with_ascii_digits

_NO_DIGIT = re.compile(r"[^0-9]+")
_LEAST_DIGITS = 5


def is_public(found: str, public: Sequence[str]) -> bool:
    """Return True for a contact in any notation. ``*@acme.com`` is the whole domain. Numbers may lack the country's code."""
    return any(_is_same(found, contact) for contact in public)


def _is_same(found: str, contact: str) -> bool:
    if "@" in contact:
        address, wanted = found.strip().casefold(), contact.strip().casefold()
        return address.endswith(wanted[1:]) if wanted.startswith("*@") else address == wanted
    shorter, longer = sorted((_NO_DIGIT.sub("", with_ascii_digits(text)).lstrip("0") for text in (found, contact)), key=len)
    return len(shorter) >= _LEAST_DIGITS and longer.endswith(shorter)
