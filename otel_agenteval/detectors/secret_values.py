"""Recognize secrets without a published format, which look random or like a password."""

from __future__ import annotations

import re
from itertools import pairwise

from .lists import word_set
from .redaction.patterns import lazy
from .redaction.values import no_values


def _is_sample(plain: str) -> bool:
    """Return True for sample passwords from documentation, comics and lists of the worst passwords."""
    return plain in word_set("secrets.txt", "sample_values")


_PLACEHOLDER = lazy(
    r"example|placeholder|redacted|changeme|change[-_ ]me|replace|insert|dummy|sample|fake|foobar|your|my[-_]?(?:api|secret|pass|token|key)|todo|x{4,}|\*{2,}|\u2022{2,}|\.{3}|\u2026|^[<\[{(%$]|[<{]\w+[>}]|\$\{|\$\(|%\(|\{\{|_here\b|-here\b|<.*>",
    re.IGNORECASE,
)
_UUID = lazy(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}", re.IGNORECASE)
_HASHED = lazy(r"\$(?:2[abxy]?|5|6|1|argon2\w*|scrypt|pbkdf2\S*|y)\$|\{?(?:sha|ssha|md5|bcrypt|pbkdf2)", re.IGNORECASE)
_PLAIN = lazy(
    r"[0-9.,:/TZ+_-]+|v?[0-9]+(?:\.[0-9]+)+[\w.-]*|[A-Za-z]+[-_/.:]?[0-9]{1,4}|[0-9]{1,4}[-_/.]?[A-Za-z]+|[a-z]+(?:[_.-][a-z0-9]{1,15})+|[A-Z]+(?:_[A-Z0-9]{1,15})+|[A-Za-z]+(?:-[A-Za-z]+)+-?[0-9]{0,4}|\w+\([^)]*\)?;?|https?:\S+|(?:\.{0,2}/|[A-Z]:\\)\S+|[\w.-]+/[\w./#-]+|[\w.+-]+@[\w.-]+"
)
"""Numbers, dates, versions, variable names, calls and addresses."""
_KEYS_ON_A_KEYBOARD = lazy(r"(?:ctrl|cmd|shift|alt|strg)\b|f[0-9]{1,2}\Z", re.IGNORECASE)


def looks_random(value: str, *, least: int = 8) -> bool:
    """Return True if a value looks random, with a mix of letters and digits."""
    if not least <= len(value) <= 512 or not value.isascii():
        return False
    plain = value.casefold()
    if _is_sample(plain) or plain in no_values() or _PLACEHOLDER.search(value) is not None or _UUID.fullmatch(value) is not None:
        return False
    if (
        _HASHED.match(value) is not None
        or _PLAIN.fullmatch(value) is not None
        or _KEYS_ON_A_KEYBOARD.match(value) is not None
        or _is_regular(plain)
    ):
        return False
    digits = sum(sign.isdigit() for sign in value)
    letters = sum(sign.isalpha() for sign in value)
    signs = sum(sign in "!@#$%^&*+=?~" for sign in value)
    if not letters or (not digits and signs < 2):
        return False
    mixed = any(sign.isupper() for sign in value) and any(sign.islower() for sign in value)
    return (mixed and (digits >= 1 or signs >= 2)) or (signs >= 1 and digits >= 1) or (digits >= 3 and len(value) >= 16)


def _is_regular(plain: str) -> bool:
    """Return True for a sequence, a repetition or a part of the alphabet."""
    if len(set(plain)) < min(6, len(plain) // 2 + 1):
        return True
    half = plain[: max(4, len(plain) // 3)]
    if len(plain) >= 12 and plain.count(half) >= 2 and len(plain) >= 2 * len(half):
        return True
    steps = sum(ord(b) - ord(a) == 1 for a, b in pairwise(plain))
    return steps * 2 > len(plain)


_CHOSEN = lazy(r"(?=.*[0-9])(?=.*[A-Za-z])[!-~]{6,64}")


def may_be_chosen(value: str) -> bool:
    """Return True if a person may have chosen a value as a password.

    Such a value has letters and digits and isn't a known sample.
    """
    plain = value.casefold()
    if (
        _CHOSEN.fullmatch(value) is None
        or _is_sample(plain)
        or _PLACEHOLDER.search(value) is not None
        or _HASHED.match(value) is not None
        or _UUID.fullmatch(value) is not None
    ):
        return False
    return _NO_CHOICE.fullmatch(value) is None


_NO_CHOICE = lazy(
    r"v?[0-9]+(?:\.[0-9]+)+[\w.-]*|[\w.]+\([^)]*\)?;?|https?:\S+|(?:\.{0,2}/|[A-Z]:\\)\S+|\w+(?:/[\w.#-]+)+|[A-Z]+(?:_[A-Z0-9]+)+|\w+\.\w+(?:\.\w+)*|[0-9]{1,3}[a-z]+|(?:sha|md|utf|base|aes|rsa|oauth|argon|bcrypt)-?[0-9]+\w*",
    re.IGNORECASE,
)


PUBLIC = lazy(
    r"\bsha-?[0-9]*\b|md5|checksum|digest|integrity|fingerprint|\betag|commit|revision|\bhash|bcrypt|public[ _-]?key|publishable|primary key|sort key|partition key|foreign key|trace[ _-]?id|request[ _-]?id|client[ _-]?id|keyboard|press|shortcut|uuid|\bguid|\bnonce=|sample|fake|dummy|made[- ]up|not (?:a )?real|fictional|fictitious|beispiel|ejemplo|par exemple|esempio|exemplo|przykład|например|rejected|too weak|zu schwach|would be|such as|e\.g\.|for example|for instance|z\. ?b\.",
    re.IGNORECASE,
)
_NO_SECRET_AFTER = lazy(
    r"@|\s?(?:hash|hint|policy|policies|rule|rules|requirement|strength|length|manager|reset|field|count|limit|usage|budget|expir\w*|type|id\b|ids\b|name\b|version|ring|endpoint|url|uri|should|must|can|may|cannot|muss|müssen|doit|debe|deve|должен|should|fingerprint|_hash)|s? (?:are|have|with|like|such)\b|[_-](?:hash|id|policy|url|file|path|name|count|limit|type)",
    re.IGNORECASE,
)


def needs_no_secret(text: str, at: int) -> bool:
    """Return True if the text after a word for secrets shows another topic.

    Examples are a password policy, a hash and a password's length.
    """
    return _NO_SECRET_AFTER.match(text, at) is not None
