"""Find access tokens by their published formats.

``data/tokens.json`` lists the formats, based on the issuers' documentation and on public rules of scanners such as gitleaks. The
patterns are written for this project. :func:`secret_spans` uses only formats with a type. A score contains a secret's position,
length, and, for long secrets in these formats, the first four characters, which are usually a public prefix.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from .texts import SCAN_LIMIT, DistinctRanges, has_any, lazy, table, word_set


class Token(NamedTuple):
    prefix: str
    body: str
    """Characters allowed after the prefix, in the syntax of a regular expression's character class."""
    least: int
    most: int
    glued: bool = True
    """True if the character before a token can be a letter or digit."""
    cut: bool = True
    """True if the start of a token at the end of a truncated text is recognized too."""
    type: str = ""
    literals: tuple[str, ...] = ()
    """Texts for a fast pre-check. Every prefix contains one of these texts. Not needed if the prefix starts with fixed text."""

    def starts(self) -> tuple[str, ...]:
        """Return texts for a fast pre-check. Every token contains at least one of these texts."""
        if self.literals:
            return tuple(self.literals)
        plain = re.split(r"[^A-Za-z0-9_-]", self.prefix, maxsplit=1)[0]
        is_repeated = self.prefix[len(plain) :].startswith(("?", "*", "{"))
        return (plain[:-1] if is_repeated else plain,)


class Format(NamedTuple):
    """A kind of secret that is recognized by its complete pattern."""

    pattern: re.Pattern[str]
    literals: tuple[str, ...]
    """Texts for a fast pre-check. Every match contains at least one of these texts."""
    type: str = ""

    def may_be_in(self, text: str) -> bool:
        return has_any(text, self.literals)


@cache
def tokens() -> tuple[Token, ...]:
    return tuple(Token(**row) for row in table("tokens.json")["prefixed"])


@cache
def formats(key: str) -> tuple[Format, ...]:
    rows = table("tokens.json")[key]
    return tuple(Format(lazy(row["pattern"]), tuple(row["literals"]), row.get("type", "")) for row in rows)


@cache
def _answer_formats() -> tuple[Format, ...]:
    """Return the formats with a type, in order of precedence for overlapping matches."""
    prefixed = (
        Format(
            lazy(rf"(?<![A-Za-z0-9_])(?:{token.prefix})[{token.body}]{{{token.least},{token.most}}}(?<!\.)(?![A-Za-z0-9_])"),
            token.starts(),
            token.type,
        )
        for token in tokens()
        if token.type
    )
    shaped = (form for form in formats("shaped") if form.type)
    return (*prefixed, *shaped, *formats("in_answers"))


_PLACEHOLDERS = ("example", "placeholder", "redacted", "xxxx", "your", "****", "....", "1234567890123456")
_SAMPLE_CLAIMS = ("IjEyMzQ1Njc4OTAi", "kpvaG4gRG9l", "Sm9obiBEb2", "pvaG4gRG9lI")
"""``"1234567890"`` and ``John Doe`` in base64, from the sample on jwt.io."""


def secret_spans(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the type, start, and end of secrets in typed formats. Placeholders and documentation samples are skipped."""
    text = text[:SCAN_LIMIT]
    taken = DistinctRanges()
    for form in _answer_formats():
        if form.may_be_in(text):
            for found in form.pattern.finditer(text):
                if not is_sample(form.type, found.group()) and taken.add(*found.span()):
                    yield form.type, *found.span()


@cache
def _beginnings() -> tuple[re.Pattern[str], tuple[str, ...]]:
    prefixes = "|".join(token.prefix for token in tokens() if token.type)
    shaped = {literal for form in _answer_formats() for literal in form.literals} - {
        start for token in tokens() for start in token.starts()
    }
    return lazy(rf"(?<![A-Za-z0-9])(?:{prefixes})"), tuple(shaped - {"://"})


def may_be_format(word: str) -> bool:
    prefix, literals = _beginnings()
    return has_any(word, literals) or prefix.search(word) is not None


def is_sample(type_: str, secret: str) -> bool:
    if type_.endswith(("private_key", "account_key")):
        return False
    if type_ == "url_password":
        user, _, secret = secret.rpartition("@")[0].split("://", 1)[1].partition(":")
        if secret == user or secret[0] in "{[<$%" or secret.casefold() in word_set("secrets.txt", "sample_passwords"):
            return True
    if type_ == "jwt" and any(claim in secret for claim in _SAMPLE_CLAIMS):
        return True
    plain = secret.casefold()
    tail = secret[-16:]
    return any(word in plain for word in _PLACEHOLDERS) or len(set(tail)) < min(6, len(tail) // 2)
