"""Normalize untrusted text before it is rated, and decode encoded or invisible text."""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from urllib.parse import unquote

import numpy as np

from ..texts import has_any

SUSPICIOUS = re.compile(
    "[\U000e0000-\U000e007f\u202d\u202e]|[\u200b-\u200d\u2060-\u2064\ufeff]{3}|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4}"
)
"""Pattern for invisible text: Unicode tags, directional overrides, and runs of zero-width characters or variation selectors."""


def may_hide(text: str) -> bool:
    """Return False if a text can't match :data:`SUSPICIOUS`. This check is faster than the pattern."""
    return not text.isascii() and has_any(_upper_bytes(text), (b"\x20", b"\xdb", b"\xfe"))


def _upper_bytes(text: str) -> bytes:
    """Return the upper byte of each UTF-16 code unit. Searching bytes is much faster than searching text."""
    return text.encode("utf-16-le", "surrogatepass")[1::2]


# --- folding -------------------------------------------------------------------------------------------------------

_INVISIBLE = [0xAD, 0x34F, 0x61C, 0x180E, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070), 0xFEFF]
_SELECTORS_AND_TAGS = (*range(0xFE00, 0xFE10), *range(0xE0000, 0xE01F0))
_DIACRITICS = range(0x300, 0x370)
_LATIN = (*range(0xC0, 0x250), *range(0x1E00, 0x1F00))
_LETTERS_AND_SIGNS = {
    "ı": "i", "ł": "l", "đ": "d", "ø": "o", "ß": "ss", "æ": "ae", "œ": "oe", "’": "'", "‘": "'", "ʼ": "'", "`": "'", "\u00a0": " ",
}  # fmt: skip


_PLAIN_CHARACTERS: dict[int, str | None] = {
    **dict.fromkeys((*_INVISIBLE, *_SELECTORS_AND_TAGS, *_DIACRITICS)),
    **{code: first.lower() for code in _LATIN if (first := unicodedata.normalize("NFD", chr(code))[0]).isascii()},
    **{ord(sign): letters for sign, letters in _LETTERS_AND_SIGNS.items()},
}
"""Translation table that simplifies accented Latin letters and typographic signs, and removes invisible characters."""


def _ranges(codes: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1] = found[-1][0], code
        else:
            found.append((code, code))
    return found


_TO_PLAIN = re.compile(f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in _ranges(_PLAIN_CHARACTERS))}]+")
_LOOKALIKES = str.maketrans("аеорсхуіјѕԁԛԝһӏьвмнткαοενικρτυχγѵցոս", "aeopcxyijsdqwhlbbmhtkaoevikptuxyvgnu")
_FOREIGN_LETTER = re.compile("[\u0370-\u058f]")
_WORD = re.compile(r"\w+")
_LATIN_AND_FOREIGN = re.compile("[a-z][\u0370-\u058f]|[\u0370-\u058f][a-z]")


def folded(text: str) -> str:
    """Normalize a text to lower case, without Latin accents and invisible signs. If a word mixes scripts, replace look-alikes."""
    if text.isascii():
        return text.lower()
    text = _TO_PLAIN.sub(lambda found: found.group().translate(_PLAIN_CHARACTERS), unicodedata.normalize("NFKC", text).lower())
    if is_mixed(text):
        text = _WORD.sub(_unmixed, text)
    return text


def is_mixed(text: str) -> bool:
    if text.isascii() or not has_any(_upper_bytes(text), (b"\x03", b"\x04", b"\x05")):
        return False
    return _FOREIGN_LETTER.search(text) is not None and _LATIN_AND_FOREIGN.search(text.lower()) is not None


def _unmixed(found: re.Match[str]) -> str:
    word = found.group()
    if word.isascii():
        return word
    plain = word.translate(_LOOKALIKES)
    return plain if plain.isascii() else word


# --- disguises -----------------------------------------------------------------------------------------------------


def _shape_of(sign: str) -> str:
    if sign.isalpha():
        return "x"
    if sign in "0134573@$!":
        return "0"
    return " " if sign in " ._*/-" else "."


_SHAPES = "".join(map(_shape_of, map(chr, range(128)))).encode().ljust(256, b"x")
"""Shape of each byte: ``x`` for letters, ``0`` for letter look-alikes such as ``@``, a space for gaps, a dot for other bytes."""
_SLOW = 4_000
"""Text length above which numpy is faster than a byte search at ruling out ``i g n o r e``."""
_SPELLED = re.compile(r"(?<!\w)[^\W_]([ ._*/-]{1,3})[^\W_](?:[ ._*/-]{1,3}[^\W_]){3,}(?![^\W_])")
_LEET = re.compile(r"[a-z][0134573@$!][a-z0-9@$!]|(?<!\w)[0134573@$!][a-z]{2}")
_LEAST_LEET = 3
"""Minimum number of words such as ``1gnore``. Fewer such words are probably IDs or names such as ``b2b``."""
_LEET_SEARCHED = 20_000
_LETTER_OF_DIGIT = str.maketrans("013457@$!", "oieastasi")
_LEET_WORD = re.compile(r"(?=[a-z@$!]{0,40}[0-9@$!])(?=[0-9@$!]{0,40}[a-z])[a-z0-9@$!]{2,40}(?!\w)")


def disguises(text: str) -> Iterator[str]:
    """Yield copies of a normalized text, each without one kind of disguise: ``i g n o r e`` or ``1gn0re`` becomes ``ignore``."""
    shape = text.encode("ascii", "replace").translate(_SHAPES)
    if _may_be_spelled(shape) and _SPELLED.search(text):
        yield _SPELLED.sub(_joined, text)
    has_leet = b"0" in shape and shape.count(b"x0x") >= _LEAST_LEET
    if has_leet and len(_LEET.findall(text[:_LEET_SEARCHED])) >= _LEAST_LEET:
        yield _LEET_WORD.sub(lambda found: found.group().translate(_LETTER_OF_DIGIT), text)


def _may_be_spelled(shape: bytes) -> bool:
    """Return False if a text can't contain four single letters in a row, such as ``i g n o``."""
    if len(shape) > _SLOW:
        gaps = np.frombuffer(shape, np.uint8) == ord(" ")
        single = gaps[1:-6] & gaps[3:-4] & gaps[5:-2]  # a gap at each second place
        double = gaps[1:] & gaps[:-1]
        if not single.any() and not double.any():
            return False
    return b"x x x x " in shape or b"x  x  x  x" in shape


def _joined(found: re.Match[str]) -> str:
    letters, gap = found.group(), found.group(1)
    if gap != " ":
        return letters.replace(gap, "")
    parts = re.split(r"( +)", letters)  # more than one space separates words
    return "".join(" " if part.isspace() and len(part) > 1 else part.strip(" ") for part in parts)


# --- hidden parts --------------------------------------------------------------------------------------------------

_MOST_PAYLOADS = 20
_TOKEN = re.compile(r"[A-Za-z0-9+/_-]{40,8000}={0,2}")
_TOKEN_SHAPES = bytes(ord("a" if chr(code) in "+/-_" or chr(code).isalnum() else " ") for code in range(128)).ljust(256)
"""Byte table that maps token characters to ``a``. Searching for a run of ``a`` is faster than a pattern."""
_LONG_TOKEN = b"a" * 40
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}){20,}")
_PERCENT = re.compile(r"(?<![\w.~+-])(?:[\w.~+-]*%[0-9A-Fa-f]{2}){3}[\w.~+%-]*")
_PERCENTS = re.compile(r"%[0-9A-Fa-f]{2}(?:[\w.~+-]*%[0-9A-Fa-f]{2}){2}")
"""Fast pre-check: every match of ``_PERCENT`` contains a match of this pattern."""
_BACKSLASH_X = re.compile(r"(?:\\x[0-9a-fA-F]{2}){8,}")
_TAGS = re.compile("[\U000e0020-\U000e007e]{3,}")
_SELECTORS = re.compile("[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}")
_PRINTABLE = 0.9
"""Minimum share of printable characters in a decoded text. Binary data has fewer."""


def payloads(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield ``(decoded, start, end)`` of base64, hex, hex escapes, percent-encoding, rot13, tags, and variation selectors."""
    encoded = text.encode("ascii", "replace")
    for found in islice(_tokens(text, encoded.translate(_TOKEN_SHAPES)), _MOST_PAYLOADS):
        if (plain := _decoded_token(found.group())) is not None:
            yield plain, *found.span()
    for pattern, decode in _encodings(text):
        for found in pattern.finditer(text):
            yield decode(found.group()), *found.span()
    if has_any(encoded.lower(), _ROTATED):
        yield codecs.encode(text, "rot13"), 0, len(text)


def _encodings(text: str) -> Iterator[tuple[re.Pattern[str], Callable[[str], str]]]:
    if "%" in text and _PERCENTS.search(text) is not None:
        yield _PERCENT, lambda text: unquote(text.replace("+", " "))
    if "\\x" in text:
        yield _BACKSLASH_X, lambda text: bytes.fromhex(text.replace("\\x", "")).decode("utf-8", "replace")
    if may_hide(text):
        yield _TAGS, lambda text: "".join(chr(ord(tag) - 0xE0000) for tag in text)
        # The first 16 byte values have selectors in the first block, all other values in the second.
        yield (
            _SELECTORS,
            lambda text: bytes(ord(c) - (0xFE00 if c <= "\ufe0f" else 0xE00F0) for c in text).decode("utf-8", "replace"),
        )


def _tokens(text: str, shape: bytes) -> Iterator[re.Match[str]]:
    start = shape.find(_LONG_TOKEN)
    while start >= 0 and (found := _TOKEN.match(text, start)) is not None:
        yield found
        start = shape.find(_LONG_TOKEN, found.end())


_ROTATED = b"vafgehp", b"vtaber", b"cebzcg"
"""Rot13 of frequent words in instructions: "instruc", "ignore", and "prompt"."""


def _decoded_token(token: str) -> str | None:
    text = _readable(bytes.fromhex(token)) if _HEX.fullmatch(token) else None
    if text is not None:
        return text
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
