"""Normalize foreign text to the form that a model reads, and decode its hidden parts."""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from ..lists import words
from .languages import Language, latin_triggers, other_triggers
from .quads import has_piece

# --- fast pre-check ------------------------------------------------------------------------------------------------

_KEPT = "<|[]#%&\\"
_SQUEEZE = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ013457@$!", b"abcdefghijklmnopqrstuvwxyzoieastasi")
_SQUEEZED_AWAY = bytes(code for code in range(128) if not chr(code).isalnum() and chr(code) not in _KEPT + "@$!")
_SHAPE = bytes.maketrans(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/-_", b"a" * 66
)  # characters of base64 and hex
_LONG_TOKEN = b"a" * 40
SUSPICIOUS = re.compile(
    "[\U000e0000-\U000e007f\u202d\u202e]|[\u200b-\u200d\u2060-\u2064\ufeff]{3}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}"
)
"""Tag characters, directional overrides, and rows of zero-width characters or variation selectors."""
_OTHER_SCRIPT = re.compile("[\u0370-\u1dff\u2e80-\ud7ff]")


def squeezed(text: str) -> bytes:
    """Return the ASCII letters in lower case, without spaces and punctuation.

    Digits that replace letters are converted back: ``1 g.n.0 r 3`` → ``ignore``.
    """
    return text.encode("ascii", "ignore").translate(_SQUEEZE, _SQUEEZED_AWAY)


def is_harmless(text: str) -> bool:
    """Return True if the text can't contain a marker.

    Such a text has no trigger of any language, no escapes, no long tokens and no invisible characters.
    """
    if not text.isascii() and _has_foreign_piece(text):
        return False
    if ("\\" in text and ("\\u" in text or "\\x" in text)) or ("&" in text and "&#" in text):
        return False
    if ("%" in text and "%20" in text) or "<!--" in text:
        return False
    if "style=" in text and ("display:" in text or "opacity:" in text or "font-size:0" in text):
        return False
    data = text.encode("ascii", "replace")
    capitals = data.translate(None, _NO_NAME)
    if b"AI" in capitals or b"KI" in capitals or b"IA" in capitals:  # these letters are rarely adjacent in the text itself
        for name in (b"AI", b"KI", b"IA", b"A.I."):
            if name in data and _NAME.search(text):
                return False
    return not has_piece(text) and _LONG_TOKEN not in data.translate(_SHAPE)


_NO_NAME = bytes(code for code in range(256) if code not in b"AIK")
_NAME = re.compile(r"(?<![A-Za-z0-9])(?:A\.I\.|(?:AI|KI|IA)s?)(?![A-Za-z0-9])")


def _has_foreign_piece(text: str) -> bool:
    if SUSPICIOUS.search(text):
        return True
    if _OTHER_SCRIPT.search(text) is None:
        return False
    text = text.lower()
    if any(sign in text for sign in "\u200b\u200c\u200d\u2060\ufeff\xad"):
        text = text.translate(_NOTHING)
    if _FOREIGN_LETTER.search(text) and _LATIN_AND_FOREIGN.search(text):
        return True
    for _, pieces in other_triggers():
        for piece in pieces:
            if piece in text:
                return True
    for piece in words("injection_words.txt", "machines"):
        if piece in text:
            return True
    return text.startswith("бот")


_SHORT = 120
"""Texts below this length may lack the frequent words of their language."""


def languages_of(text: str) -> list[Language]:
    """Return the languages in which a folded text can contain an instruction."""
    letters = squeezed(text)
    written = None if len(text) < _SHORT else set(text.split())
    found = [
        language
        for language, pieces in latin_triggers()
        if language.name == "en"
        or ((written is None or not written.isdisjoint(language.frequent)) and any(piece in letters for piece in pieces))
    ]
    if not text.isascii():
        found += [language for language, pieces in other_triggers() if any(piece in text for piece in pieces)]
    return found


# --- folding -------------------------------------------------------------------------------------------------------

_INVISIBLE = [0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF]
_NOTHING: dict[int, str | None] = {
    **dict.fromkeys(_INVISIBLE), **dict.fromkeys(range(0xFE00, 0xFE10)), **dict.fromkeys(range(0xE0000, 0xE01F0)),
}  # fmt: skip


def _bare_letters() -> dict[int, str | None]:
    """Return a map from Latin letters with diacritics to plain ones.

    The map also replaces typographic signs.
    """
    bare: dict[int, str | None] = {**_NOTHING, **dict.fromkeys(range(0x300, 0x370))}
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00)):
        first = unicodedata.normalize("NFD", chr(code))[0]
        if first.isascii() and first != chr(code):
            bare[code] = first.lower()
    signs = {
        "ı": "i",
        "ł": "l",
        "đ": "d",
        "ø": "o",
        "ß": "ss",
        "æ": "ae",
        "œ": "oe",
        "’": "'",
        "‘": "'",
        "ʼ": "'",
        "`": "'",
        "\u00a0": " ",
    }
    bare.update({ord(sign): plain for sign, plain in signs.items()})
    return bare


_BARE = _bare_letters()
_LOOKALIKES = str.maketrans(
    "аеорсхуіјѕԁԛԝһӏьвмнткαοενικρτυχγѵցոս",
    "aeopcxyijsdqwhlbbmhtkaoeviikptuxyvgnu"[: len("аеорсхуіјѕԁԛԝһӏьвмнткαοενικρτυχγѵցոս")],
)
_FOREIGN_LETTER = re.compile("[\u0370-\u058f]")
_WORD = re.compile(r"\w+")
_LATIN_AND_FOREIGN = re.compile("[a-z][\u0370-\u058f]|[\u0370-\u058f][a-z]")
_SPELLED = re.compile(r"(?<!\w)[^\W_]([ ._*/-]{1,3})[^\W_](?:[ ._*/-]{1,3}[^\W_]){3,}(?![^\W_])")
_LEET = re.compile(r"[a-z][0134573@$!][a-z0-9@$!]|(?<!\w)[0134573@$!][a-z]{2}")
_LETTER_OF_DIGIT = str.maketrans("013457@$!", "oieastasi")
_MIXED_WORD = re.compile(r"(?=[a-z@$!]{0,40}[0-9@$!])(?=[0-9@$!]{0,40}[a-z])[a-z0-9@$!]{2,40}(?!\w)")


_BEYOND_ASCII = re.compile("[`\x80-\U0010ffff]+")


def _bared(found: re.Match[str]) -> str:
    return found.group().translate(_BARE)


def folded(text: str) -> str:
    """Return the text in lower case, without diacritics, invisible characters and look-alikes.

    Compatibility characters become plain ones, and look-alikes become Latin letters.
    """
    if text.isascii():
        return text.lower()
    text = _BEYOND_ASCII.sub(_bared, unicodedata.normalize("NFKC", text).lower())
    if _FOREIGN_LETTER.search(text) and _LATIN_AND_FOREIGN.search(text):
        text = _WORD.sub(_unmixed, text)
    return text


def _unmixed(found: re.Match[str]) -> str:
    word = found.group()
    if word.isascii():
        return word
    plain = word.translate(_LOOKALIKES)
    return plain if plain.isascii() else word


def disguises(text: str) -> Iterator[str]:
    """Yield other readings of a folded text.

    One joins words that are spelled letter by letter, and one replaces digits with letters.
    """
    if _SPELLED.search(text):
        yield _SPELLED.sub(_joined, text)
    if len(_LEET.findall(text[:20_000])) >= 3:
        yield _MIXED_WORD.sub(lambda found: found.group().translate(_LETTER_OF_DIGIT), text)


def _joined(found: re.Match[str]) -> str:
    letters = found.group()
    gap = found.group(1)
    if gap != " ":
        return letters.replace(gap, "")
    return "".join(" " if part.isspace() and len(part) > 1 else part.strip(" ") for part in re.split(r"( +)", letters))


# --- hidden parts --------------------------------------------------------------------------------------------------

_MOST_PAYLOADS = 20
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{40,8000}={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){20,}")
_PERCENT = re.compile(r"(?<![\w.~+-])(?:[\w.~+-]*%[0-9A-Fa-f]{2}){3}[\w.~+%-]*")
_BACKSLASH_X = re.compile(r"(?:\\x[0-9a-fA-F]{2}){8,}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{3,}")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_PRINTABLE = 0.9


def payloads(text: str) -> Iterator[str]:
    """Yield the decoded hidden parts of a text.

    Encodings are base64, hex, percent signs, rot13, tag characters and variation selectors.
    """
    for count, found in enumerate(_TOKEN.finditer(text)):
        if count == _MOST_PAYLOADS:
            break
        token = found.group()
        for read in (_of_hex, _of_base64):
            plain = read(token)
            if plain is not None:
                yield plain
                break
    if "%" in text:
        yield from (unquote(found.group().replace("+", " ")) for found in _PERCENT.finditer(text))
    if "\\x" in text:
        yield from (
            bytes.fromhex(found.group().replace("\\x", "")).decode("utf-8", "replace") for found in _BACKSLASH_X.finditer(text)
        )
    letters = squeezed(text)
    if b"vafgehp" in letters or b"vtaber" in letters or b"cebzcg" in letters:
        yield codecs.encode(text, "rot13")
    if not text.isascii():
        for found in _TAGS.finditer(text):
            yield "".join(chr(ord(tag) - 0xE0000) for tag in found.group())
        for found in _SELECTORS.finditer(text):
            codes = (ord(c) - 0xFE00 if c <= "\ufe0f" else ord(c) - 0xE0100 + 16 for c in found.group())
            yield bytes(codes).decode("utf-8", "replace")


def _of_hex(token: str) -> str | None:
    return _readable(bytes.fromhex(token)) if _HEX.fullmatch(token) else None


def _of_base64(token: str) -> str | None:
    token = token.rstrip("=").replace("-", "+").replace("_", "/")
    try:
        return _readable(base64.b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError):
        return None


def _readable(data: bytes) -> str | None:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    printable = sum(map(str.isprintable, text)) + text.count("\n")
    return text if printable >= _PRINTABLE * len(text) and " " in text else None


def without_entities(text: str) -> str:
    """Decode HTML entities, such as the one for ``<``."""
    return html.unescape(text) if "&" in text else text
