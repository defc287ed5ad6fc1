"""No regular expression of the package takes more than linear time, for any text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.support.backtracking import attacks
from tests.support.growth import FLOOR, SIZES, steep
from tests.support.growth import seconds as seconds_of
from tests.support.patterns import PACKAGE, Used, patterns


class Limit(NamedTuple):
    """Patterns that are used only on trusted text, or only on text of limited length."""

    begins: tuple[str, ...]
    """Prefixes of the patterns' places."""
    characters: int
    why: str
    uses: frozenset[str] = frozenset()
    """The patterns' methods, if the source doesn't show them."""


PERSONAL = "detectors/personal.py:"
LIMITS = (
    Limit(("config/", "server/certificates.py"), 200, "read what an operator configured, or an operator's files"),
    Limit(("outlets/store/postgres.py",), 200, "sees an operator's address and a server's message"),
    Limit(("evaluation/selection.py", "metrics/descriptions.py"), 200, "read our own messages and docstrings"),
    Limit(
        tuple(f"judging/models/reply.py:{name}" for name in ("_TOKEN", "_CHOICE", "_NUMBER", "_RANGE", "_TRUTH")),
        200,
        "read the form of a reply, which a prompt of ours gives",
    ),
    Limit(
        ("judging/models/reply.py:_FENCE_BEFORE", "judging/models/reply.py:_LEAD_IN"), 200, "see the characters before an object"
    ),
    Limit(
        ("dialects/generic/kinds.py", "metrics/lib/code.py:<"), 200, "see names of spans, or one line of at most 200 characters"
    ),
    Limit(("core/price_table.json",), 500, "sees names and addresses of at most 500 characters"),
    Limit(
        ("detectors/redaction/emails.py:_ASCII_LOCAL", "detectors/redaction/emails.py:_LOCAL"),
        66,
        "see the characters before an @",
    ),
    Limit(("detectors/redaction/numbers.py:_has_card_groups",), 800, "sees digits as long as the pattern that found them allows"),
    Limit(("detectors/redaction/numbers.py:_is_part_of_longer_number",), 40, "sees what stands before a number"),
    Limit(("detectors/redaction/words.py:_UNCHOSEN",), 64, "sees a value of at most 64 characters"),
    Limit(("judging/models/reply.py:<",), 16_000, "is tried where the text begins", frozenset(("match",))),
    Limit(("dialects/content.py:_PLACEHOLDER",), 400, "sees a text of less than 400 characters"),
    Limit(("metrics/lib/values.py",), 300, "sees the beginning of a text that is shown in a score"),
    Limit(("detectors/urls.py:_RESERVED", "detectors/urls.py:_NAMESPACE_KEY"), 2_048, "see a host, or the key of a URL"),
    Limit(("detectors/identity_numbers.py",), 160, "sees what stands around a number, or is built from our own table"),
    Limit(
        ("detectors/injection/readers.py:REPORTED", "detectors/injection/readers.py:_SHORT_NAME"), 16_000, "see the whole text"
    ),
    Limit(
        ("detectors/injection/calls.py", "detectors/injection/readers.py"), 1_500, "see two sentences of at most 700 characters"
    ),
    Limit(("detectors/numbers/claims.py:_ROW",), 20, "sees what stands before a number"),
    Limit(
        ("detectors/numbers/grounded.py:_IDENTIFIER", "detectors/numbers/grounded.py:_is_identifier"),
        30,
        "see what is before a number",
    ),
    Limit((f"{PERSONAL}_ACCOUNT",), 30, "sees what stands before a number"),
    Limit((f"{PERSONAL}_BANK",), 250, "sees what stands around a number"),
    Limit((f"{PERSONAL}_COMPANY_LINE", f"{PERSONAL}is_called", f"{PERSONAL}nearest"), 160, "see what stands around a number"),
    Limit((f"{PERSONAL}_STREET_BEFORE",), 50, "sees what stands between a word for a home and a number"),
    Limit(("detectors/phones.py",), 80, "sees the digits of one number"),
    Limit(("detectors/prompt_sentences.py",), 600, "sees one sentence of at most 600 characters"),
    Limit(
        tuple(
            f"detectors/passwords.py:{name}"
            for name in ("_PLACEHOLDER", "_REFERENCE", "_PLAIN", "_NO_CHOICE", "_CHOSEN", "_IDENTIFIER")
        ),
        512,
        "see one word of at most 512 characters",
    ),
)


def slow_on(used: Used) -> str | None:
    """Return the text on which a pattern takes too long, with the times, prefix, repeated text and end. None if there is none."""
    limit = next((limit for limit in LIMITS if used.where.startswith(limit.begins)), None)
    characters = SIZES[-1] if limit is None else limit.characters
    used = used._replace(uses=(limit.uses if limit is not None else None) or used.uses)
    for before, pump, end in attacks(used.pattern, searched="search" in used.uses):

        def make(size: int, before: str = before, pump: str = pump, end: str = end) -> str | bytes:
            text = before + pump * (size // len(pump)) + end
            return text.encode("latin-1", "replace") if isinstance(used.pattern.pattern, bytes) else text

        if seconds_of(used, make(characters // 4)) < FLOOR / 20:
            continue
        times = steep(used, make, [characters // 16, characters // 4, characters])
        if times is not None:
            return f"{used.where} {times} {before!r} + {pump!r} × n + {end!r}: {used.pattern.pattern[:100]!r}"
    return None


def _places() -> Iterator[str]:
    for place in sorted(PACKAGE.rglob("*.py")):
        if re.search(r"\bre\.|lazy\(|quick\(|any_of\(", place.read_text(encoding="utf-8")):
            yield str(place.relative_to(PACKAGE).parent)


@pytest.mark.slow
@pytest.mark.parametrize("room", sorted(set(_places())))
def test_patterns_take_linear_time(room: str) -> None:
    mine = [used for used in patterns() if used.where.rpartition("/")[0] == room]
    assert not [slow for used in mine if (slow := slow_on(used)) is not None]
