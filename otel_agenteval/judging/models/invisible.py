"""Detection of invisible characters, which are written out so that a judge sees them.

Invisible characters can hide instructions from people (as tag characters, or as bytes in variation selectors), reverse the
writing direction, or split words to defeat filters. Characters that a script or an emoji needs are kept.
"""

from __future__ import annotations

import itertools
import re
import unicodedata

_TAGS = "\U000e0000-\U000e007f"
_SELECTORS = "\ufe00-\ufe0f\U000e0100-\U000e01ef"
_OTHERS = (
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters except line breaks and tabs
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0080-\U000e00ff\U000e01f0-\U000e0fff"
)
_UNSEEN = re.compile(f"(?P<tags>[{_TAGS}]+)|(?P<selectors>[{_SELECTORS}]+)|[{_OTHERS}]+")
_FLAGS = frozenset(
    "".join(chr(0xE0000 + ord(letter)) for letter in region) + "\U000e007f" for region in ("gbeng", "gbsct", "gbwls")
)
"""Tags after a black flag that make the flags of England, Scotland and Wales."""
_BLACK_FLAG, _KEYCAP, _ZWNJ, _ZWJ = "\U0001f3f4", "\u20e3", "\u200c", "\u200d"
_VIRAMA = 9
"""Combining class of the sign that removes a letter's vowel. The joiner after it affects how it is written."""
_PRESENTATION = ("\ufe0e", "\ufe0f")
_JOINED = re.compile(
    "[\u0600-\u08ff\u0900-\u0dff\u0f00-\u109f\u1780-\u18af\u1900-\u1aaf\u1b00-\u1cff\ua840-\ua9ff\uaa00-\uaaff\ufb50-\ufdff\ufe70-\ufefc"
    "\U00010a00-\U00010aff\U00011000-\U000116ff\U0001e900-\U0001e95f]"
)
"""Scripts with joining letters: Arabic and related scripts, those of India and Southeast Asia, Mongolian."""
_MONGOLIAN = re.compile("[\u1820-\u18aa]")
_LONGEST_LIST = 64
"""Maximum number of different characters in a row that are named. For more, only their number is given."""


def visible(text: str) -> str:
    """Write out invisible characters. Examples: ``⟨U+200B⟩``, ``⟨hidden text: "…"⟩``, ``⟨hidden bytes: …⟩``."""
    if text.isascii() and text.replace("\n", "").replace("\t", "").replace("\r", "").isprintable():
        return text  # true for most texts, and 20 times as fast
    return _UNSEEN.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    run, text = found[0], found.string
    before, after = text[max(0, found.start() - 1) : found.start()], text[found.end() : found.end() + 1]
    if _is_needed(run, before, after):
        return run
    if found["tags"]:
        if before == _BLACK_FLAG and run in _FLAGS:
            return run
        hidden = "".join(chr(ord(tag) - 0xE0000) for tag in run)
        return _text(hidden) if any(character.isprintable() for character in hidden) else _names(run)
    if found["selectors"] and len(run) > 1:
        kept = run[:1] if _is_needed(run[:1], before, run[1]) else ""
        return kept + _bytes(run[len(kept) :])
    return _names(run)


def _is_needed(run: str, before: str, after: str) -> bool:
    """Return True if a character affects how a reader sees the text around it."""
    if not before or len(run) != 1:
        return False
    if run in _PRESENTATION:
        return after == _KEYCAP if before in "0123456789#*" else _is_symbol(before)
    if run == _ZWJ and (_is_symbol(before) or before in _PRESENTATION) and _is_symbol(after):
        return True
    if run in (_ZWJ, _ZWNJ):
        return bool(_JOINED.match(before) and (_JOINED.match(after) or unicodedata.combining(before) == _VIRAMA))
    return "\u180b" <= run <= "\u180f" and run != "\u180e" and _MONGOLIAN.match(before) is not None


def _is_symbol(character: str) -> bool:
    return bool(character) and (unicodedata.category(character) in ("So", "Sk", "Sm") or character in "©®‼⁉〰〽㊗㊙")


def _bytes(selectors: str) -> str:
    """Write out the bytes in variation selectors, the n-th of which encodes byte n - 1."""
    if len(selectors) == 1:
        return _names(selectors)
    raw = bytes(code - 0xFE00 if (code := ord(one)) < 0xE0000 else code - 0xE0100 + 16 for one in selectors)
    try:
        hidden = raw.decode()
    except UnicodeDecodeError:
        return f"⟨hidden bytes: {raw.hex()}⟩"
    return _text(hidden) if hidden.isprintable() else f"⟨hidden bytes: {raw.hex()}⟩"


def _text(hidden: str) -> str:
    return f'⟨hidden text: "{"".join(one if one.isprintable() else f"⟨U+{ord(one):04X}⟩" for one in hidden)}"⟩'


def _names(run: str) -> str:
    if len(run) == 1:
        return f"⟨U+{ord(run):04X}⟩"
    named = [(character, len(list(same))) for character, same in itertools.groupby(run)]
    shown = "".join(f"⟨U+{ord(one):04X}{f'×{count}' if count > 1 else ''}⟩" for one, count in named[:_LONGEST_LIST])
    left = sum(count for _, count in named[_LONGEST_LIST:])
    return f"{shown}⟨{left} more characters that nobody sees⟩" if left else shown
