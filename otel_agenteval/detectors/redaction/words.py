"""Words for secrets in many languages, with the strength of the evidence that the value next to them is one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from ..lists import words
from ..texts import lazy

PASSWORD, KEY, WEAK = 3, 2, 1
"""Strength of a name.

A password's value counts unless it is an everyday word, a key's if it mixes letters and digits, and a weak name's if it looks
random.
"""

_PASSWORDS = (
    r"pass?(?:word|wd|wort|phrase|code)|passord|kennw(?:or)?t|codewort|contrase(?:ñ|n|ny)a|senha|palavra_passe|mot_de_passe|mdp|wachtwoord|l[öo]senord(?:et)?|has[łl]o"
    r"|hesl[oa]|adgangskode|salasana|jelsz[óo]|lozinka|parol[ăea]|[şs]ifre(?:si|niz)?|(?:kata_)?sandi|парол[ьяіїею]\w{0,2}|κωδικός"
    r"|(?:c[óo]d(?:e|igo|ice)|clave|chave|chiave)_(?:d[ei]_|d_)?(?:acceso|acc[èe]s|acesso|accesso)|(?:zugangs|zugriffs)code"
    r"|(?:ssh|store|key|smtp|ftp|db|database|sql|pg|postgres|mongo|redis|user|usr|root|admin|require|my|mail|ldap|proxy|imap|http|wifi|vnc|sasl|auth|wp|priv|sudo|become|app|svc|service|account"
    r"|login|hub|git|registry|docker|new|old|test|default|basic)_?pass|(?:bind|root)pw|masterauth|(?:^|_)(?:pwd|pswd|psk|pw)"
    r"|secret_?(?:str|bytes)|(?:client|app|application|api|shared|webhook|consumer|jwt|session|signing|hmac|oauth|auth|totp|otp|mfa|2fa|django|flask|nextauth|cookie)_?secret"
)
_KEYS = (
    r"(?:api|app|secret|private|access|auth|encryption|encrypt|signing|sign|master|account|shared_?access|service|webhook|consumer|client|storage|subscription|license|deploy|ssh"
    r"|session|admin|root|jwt|hmac|aes|wi_?fi|wlan|wpa2?)_?keys?(?:_base)?|secret_?(?:access_?key|string|value|text)"
    r"|(?:access|auth|refresh|id|api|bearer|session|secret|security|bot|csrf|xsrf|device|verification|verify|reset|personal_?access|oauth2?|jwt|deploy|push|registration|invite"
    r"|login|user|service|github|gitlab|slack|npm|vault|auth0|hf|discord|telegram)_?tokens?|(?:_|redis_?cli_)auth|authtoken|credential|(?:proxy_)?authorization|(?:set_)?cookie"
    r"|(?:^|_)(?:pass|clave|chave|chiave|cl[ée]|sleutel|klucz|ключ|токен)|(?:api|zugriffs|geheim)_?schlüssel"
)
_WEAK_ONES = r"(?:^|_)(?:tokens?|secrets?|credentials?|passkey|auth|code_verifier|connection_?string)"
_SUFFIX = r"(?:_?(?:[0-9]{1,2}|prod|dev|test|live|staging|old|new|plain|text|value))?"
_STRENGTHS = tuple(
    (strength, lazy(rf"(?:{names}){_SUFFIX}\Z")) for strength, names in ((PASSWORD, _PASSWORDS), (KEY, _KEYS), (WEAK, _WEAK_ONES))
)
_NO_NAME = lazy(
    r"(?:^|_)(?:ask|no|prompt|has|is|show|hide|forgot|reset|toggle|remember|without|allow|need)_pass|(?:page|next|cursor|continuation|sync|offset)_?token"
)
"""Names of switches and of positions in lists."""


@cache
def _unspaced() -> dict[str, int]:
    """Return the strength of names in scripts that don't separate words or that join them to their neighbors."""
    return {
        name: strength
        for section, strength in (("unspaced_passwords", PASSWORD), ("unspaced_keys", KEY))
        for name in words("secrets.txt", section)
    }


_STEM = lazy(lambda: "|".join((*words("secrets.txt", "name_stems"), *_unspaced())))
"""A stem that every identifier or spaced name contains, in lower case, or an unspaced name.

The stems have few different first letters, because each costs time.
"""
_LONGEST = 64
_SPLIT = lazy(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s.\-/:'’]+")
_AFTER = lazy(r"[\w$-]{0,64}(?:\.\w{1,64}){0,4}", re.ASCII)
_AFTER_LATIN = lazy(r"[A-Za-z0-9_$\u00c0-\u052f-]{0,64}(?:\.[A-Za-z0-9_\u00c0-\u052f]{1,64}){0,4}")
_WORDS_BEFORE = lazy(r"(?:[^\W\d_]{1,14}[ '’-]){1,3}\Z")
_MARKER = lazy(r"\[SECRET_[0-9]{1,6}\]")
_LAST_WORDS = lazy(r"keys?|tokens?|secret|value|passe|acceso|accès|acc?esso|schlüssel|sleutel")


class Name(NamedTuple):
    """A name that marks the value next to it as a secret."""

    start: int
    end: int
    strength: int


def strength_of(name: str) -> int:
    """Return the strength of a name, or 0 if it doesn't mark a secret."""
    return _strength_of(name[-_LONGEST:])


@lru_cache(maxsize=4096)
def _strength_of(name: str) -> int:
    lowered = name.casefold()
    whole = _unspaced().get(lowered.strip(" :：*_"))
    if whole is not None:
        return whole
    if not may_name(lowered):
        return 0
    plain = _SPLIT.sub("_", name.strip(" :：*$-")).lower().rstrip("_")
    if _NO_NAME.search(plain) is not None:
        return 0
    return next((strength for strength, names in _STRENGTHS if names.search(plain) is not None), 0)


def may_name(lowered: str) -> bool:
    return _STEM.search(lowered) is not None


def names_in(text: str, lowered: str) -> Iterator[Name]:
    """Yield every name in a text. ``lowered`` is the text in lower case, with the same length."""
    after = _AFTER if text.isascii() else _AFTER_LATIN
    done = 0
    for stem in _STEM.finditer(lowered):
        if stem.start() < done:
            continue
        strength = _unspaced().get(stem.group())
        if strength is not None:
            yield Name(*stem.span(), strength)
            continue
        rest = after.match(text, stem.end())
        done = stem.end() if rest is None else rest.end()
        start, floor = stem.start(), max(0, stem.start() - _LONGEST)
        while start > floor and (text[start - 1] in "_$.-" or (text[start - 1].isalnum() and text[start - 1] < "\u0530")):
            start -= 1
        name = _strongest_name(text, start, done) if _MARKER.match(text, max(0, start - 1)) is None else None
        if name is not None:
            yield name


def _strongest_name(text: str, start: int, end: int) -> Name | None:
    """Return the strongest name that ends here: the word, with up to three words before it."""
    word = text[start:end]
    best = Name(start, end, strength_of(word))
    if _LAST_WORDS.fullmatch(word.lower()) is not None:
        before = _WORDS_BEFORE.search(text, max(0, start - 45), start)
        floor = before.start() if before is not None else start
        for begin in range(start - 2, floor - 1, -1):
            if begin == floor or not text[begin - 1].isalpha():
                best = max(best, Name(begin, end, strength_of(text[begin:end])), key=lambda name: name.strength)
    return best if best.strength else None
