"""Recognize secrets without a published format, which look random or like a password."""

from __future__ import annotations

import re
from itertools import pairwise

from .lists import word_set
from .texts import lazy

_PLACEHOLDER = lazy(
    r"example|placeholder|redacted|changeme|change[-_ ]me|replace|insert|dummy|sample|fake|foobar|your|my[-_]?(?:api|secret|pass|token|key)|todo|x{4,}|\*{2,}|\u2022{2,}|\.{3}|\u2026|^[<\[{(%$@]|[<{]\w+[>}]|\$\{|\$\(|%\(|\{\{|_here\b|-here\b|<.*>",
    re.IGNORECASE,
)
_REFERENCE = lazy(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # a UUID
    r"|\$(?:2[abxy]?|5|6|1|argon2\w*|scrypt|pbkdf2\S*|y)\$.*|\{?(?:sha|ssha|md5|bcrypt|pbkdf2).*"  # a hash
    r"|%\w+%.*|(?:vault|arn|op|env|file|ssm|projects|ref\+\w+|encrypted)[:/].*|.*@sha256:.*"
    r"|(?:[a-z]\w*\.)*(?:env|environ|vars?|secrets|data|local|self|this|config|settings|models|values|params|process|module)\.[\w.]+!?;?"
    r"|[a-z_$]+[0-9]{0,2}(?:(?:\.|->|::)[a-z_$]+[0-9]{0,2}){2,}|[\w.]+\([^)]*\)?;?|https?:\S+|(?:~|\.{0,2})/\S+|[a-z]:\\\S+|[a-z_.-]{3,}=.*|[a-z_][a-z0-9_]{2,20}=[a-z_]+",
    re.IGNORECASE,
)
"""Text that stands for a secret or only has its looks: hashes, references to a vault, code, addresses and paths."""
_PLAIN = lazy(
    r"[0-9.,:/TZ+_-]+|v?[0-9]+(?:\.[0-9]+)+[\w.-]*|[A-Za-z]+[-_/.:]?[0-9]{1,4}|[0-9]{1,4}[-_/.]?[A-Za-z]+|[a-z]+(?:[_.-][a-z0-9]{1,15})+|[A-Z]+(?:_[A-Z0-9]{1,15})+|[A-Za-z]+(?:-[A-Za-z]+)+-?[0-9]{0,4}|[\w.-]+/[\w./#-]+|[\w.+-]+@[\w.-]+"
)
"""Numbers, dates, versions, variable names, calls and addresses."""
_KEYS_ON_A_KEYBOARD = lazy(r"(?:ctrl|cmd|shift|alt|strg)\b|f[0-9]{1,2}\Z", re.IGNORECASE)


def _is_no_secret(value: str, plain: str) -> bool:
    """Return True for placeholders, references, and samples from documentation, comics and lists of the worst passwords."""
    return (
        plain in word_set("secrets.txt", "sample_values")
        or _PLACEHOLDER.search(value) is not None
        or _REFERENCE.fullmatch(value) is not None
    )


def looks_random(value: str, *, least: int = 8) -> bool:
    """Return True if a value looks random, with a mix of letters and digits."""
    if not least <= len(value) <= 512 or not value.isascii():
        return False
    digits = sum(sign.isdigit() for sign in value)
    signs = sum(sign in "!@#$%^&*+=?~" for sign in value)
    if not digits and signs < 2:
        return False
    plain = value.casefold()
    if plain in word_set("secrets.txt", "no_values") or _is_no_secret(value, plain) or _PLAIN.fullmatch(value) is not None:
        return False
    if _KEYS_ON_A_KEYBOARD.match(value) is not None or _is_regular(plain) or not any(sign.isalpha() for sign in value):
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
_NO_CHOICE = lazy(
    r"v?[0-9]+(?:\.[0-9]+)+[\w.-]*|\w+(?:/[\w.#-]+)+|[A-Z]+(?:_[A-Z0-9]+)+|\w+\.\w+(?:\.\w+)*|[0-9]{1,3}[a-z]+|(?:sha|md|utf|base|aes|rsa|oauth|argon|bcrypt)-?[0-9]+\w*|[0-9-]+T[0-9:.]+(?:Z|[+-][0-9:]+)?",
    re.IGNORECASE,
)


def may_be_chosen(value: str) -> bool:
    """Return True if a value has letters and digits and isn't a known sample, so that a person may have chosen it."""
    return (
        _CHOSEN.fullmatch(value) is not None
        and not _is_no_secret(value, value.casefold())
        and _NO_CHOICE.fullmatch(value) is None
    )


_IDENTIFIER = lazy(
    r"(?:0x)?[0-9a-f]{7,}|[0-9A-Z]+(?:[-/ ][0-9A-Z]+)*|[a-z]{2,6}1[02-9ac-hj-np-z]{25,}"
    r"|[a-z]+[0-9]{0,2}(?:[-_.](?:[a-z]+[0-9]{0,2}|[0-9]{1,2}))*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\w+(?:[-./]\w+)*[:@][\w.^~+-]+(?:@\S+)?"
)


def is_identifier(value: str) -> bool:
    """Return True for looks of commits, parcels, accounts, wallets, code: secrets only with a word right before the value."""
    return _IDENTIFIER.fullmatch(value) is not None


PUBLIC = lazy(
    r"\bsha-?[0-9]*\b|\brsa key|md5|checksum|digest|integrity|fingerprint|\betag|commit|revision|\bhash|bcrypt|public[ _-]?key|publishable|primary key|sort key|partition key|foreign key|trace[ _-]?id|request[ _-]?id|client[ _-]?id|keyboard|press|shortcut|uuid|\bguid|\bnonce=|sample|fake|dummy|made[- ]up|not (?:a )?real|fictional|fictitious|beispiel|ejemplo|par exemple|esempio|exemplo|przykład|например|rejected|too weak|zu schwach|would be|such as|e\.g\.|for example|for instance|z\. ?b\."
    r"|\bcursor\b|continuation|(?:page|next|sync|mint|contract)[ _-]?token|tokeni[sz]|looks? like",
    re.IGNORECASE,
)
_NO_SECRET_AFTER = lazy(
    r"@|\s?(?:hash|hint|policy|policies|rule|rules|requirement|strength|length|manager|reset|field|count|limit|usage|budget|expir\w*|type|id\b|ids\b|name\b|version|ring|endpoint|url|uri|should|must|can|may|cannot|muss|müssen|doit|debe|deve|должен|should|fingerprint|_hash|mint\b)|s? (?:are|have|with|like|such)\b"
    r"|[_-](?!prod|live|stag|test|dev|v?[0-9]\b|old|new|db|value)[a-z0-9]",
    re.IGNORECASE,
)
_OPEN_TEMPLATE = lazy(r"(?:\$\{|\{\{|\$\(|<%|#\{|%\()[^}>)\n]{0,60}\Z")


def needs_no_secret(text: str, start: int, end: int) -> bool:
    """Return True if a word for secrets is part of another word, or precedes another topic (policy, hash, length)."""
    before = text[max(0, start - 1) : start]
    return (
        before in ("/", ":", "+")
        or before.isdigit()
        or text[end : end + 1] == "+"
        or _NO_SECRET_AFTER.match(text, end) is not None
    )


_SAYS_SO = lazy(r"[:=：→`\"'“„«「『*]\W{0,6}\Z|\b(?:is|are|was|to|ist|lautet|es|est|è|é|är|er|là)\W{1,6}\Z", re.IGNORECASE)


def may_be_meant(text: str, name_end: int, start: int, end: int) -> bool:
    """Return True unless a value looks like an identifier and only stands somewhere after the word for secrets."""
    if not is_identifier(text[start:end]) or (end - start >= 32 and start - name_end < 3):
        return True
    return _SAYS_SO.search(text, name_end, start) is not None


def is_filled_in(text: str, start: int) -> bool:
    """Return True if a template is open before a position: ``{{ .Values``, ``${{ secrets``."""
    return _OPEN_TEMPLATE.search(text, max(0, start - 70), start) is not None
