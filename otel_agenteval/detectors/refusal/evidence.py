"""Find language-independent evidence in the words of an answer and its request."""

from __future__ import annotations

import re
import sys
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from ..injection.normalise import folded
from ..texts import lazy, sections

LANGUAGES = (
    *("en", "de", "fr", "es", "it", "pt", "nl", "pl", "tr", "ru", "uk", "ar", "he", "hi"),
    *("ja", "zh", "ko", "vi", "id", "sv", "da", "cs", "fi", "ro", "hu", "el", "th", "fa"),
)


class Lexicon(NamedTuple):
    no: tuple[str, ...]
    me: tuple[str, ...]
    """Words for the speaker, such as "I" or "assistant", and first-person verbs such as "help"."""
    rule: tuple[str, ...]
    """Words for rules, secrecy, and authority, such as "private" or "reserved"."""
    wrong: tuple[str, ...]
    """Words for reasons to decline a request."""
    scope: tuple[str, ...]
    """Words for the speaker's purpose and abilities."""
    quit: tuple[str, ...]
    """Verbs for declining, or for leaving something unchanged."""
    other: tuple[str, ...]
    instead: tuple[str, ...]
    """Words for alternatives and regret."""
    done: tuple[str, ...]
    """Words that report success or consent, such as "here it is"."""
    failed: tuple[str, ...]
    """Words for failed attempts and temporary unavailability."""
    lack: tuple[str, ...]
    """Words for data that the user still has to provide, and for searches without results."""
    asked: tuple[str, ...]
    """First words of factual questions that can be answered with "no"."""
    touchy: tuple[str, ...]
    """Words in requests that agents commonly decline."""
    common: tuple[str, ...] = ()
    """Frequent words that identify a language in Latin script. Empty for languages whose entries match any substring."""


def lexicon(language: str) -> Lexicon:
    """Load a language's words by class from ``data/refusal``, in their usual spelling.

    ``word`` matches a complete word, ``stem*`` matches the start of a word, and ``*end`` matches the end of a word. An entry with a
    space matches a phrase in a sentence. In languages without spaces, or with attached particles, entries match any substring.
    """
    return Lexicon(**{section: tuple(entries) for section, entries in sections(f"refusal/{language}.txt").items()})


CLASSES = ("no", "me", "rule", "wrong", "scope", "quit", "other", "instead", "done", "failed", "lack")
_ALL = (*CLASSES, "asked", "touchy")
BITS = {field: 1 << place for place, field in enumerate(_ALL)}
_KNOWN = 20_000
"""Maximum number of words per language whose classes are cached."""
_ELIDING = frozenset(("fr", "it"))
"""Languages that join short words to the next word with an apostrophe, as in ``l'eau``."""
_PIECES_ONLY = frozenset(("ar", "he", "hi", "ja", "zh", "ko", "th", "fa"))
_SCRIPTS = (
    ("ja", lazy("[\u3040-\u30ff]")), ("ko", lazy("[\uac00-\ud7a3]")), ("zh", lazy("[\u4e00-\u9fff]")),
    ("fa", lazy("[\u067e\u0686\u0698\u06af\u06cc]")), ("ar", lazy("[\u0600-\u06ff]")), ("he", lazy("[\u0590-\u05ff]")),
    ("hi", lazy("[\u0900-\u097f]")), ("th", lazy("[\u0e00-\u0e7f]")), ("el", lazy("[\u0370-\u03ff]")), ("uk", lazy("[іїєґ]")),
    ("ru", lazy("[\u0400-\u04ff]")),
)  # fmt: skip
_OTHER_SCRIPT = lazy("[\u0370-\u1dff\u2e80-\ud7ff]")
_SIGNS = str.maketrans(dict.fromkeys(map(ord, '.,;:!?()[]{}"“”„«»‘*_~…¡¿—–/|#>-'), " "))
_ASCII_SIGNS = bytes(32 if code in _SIGNS and code < 128 else code for code in range(256))
_OTHER_SIGNS = tuple(chr(code) for code in _SIGNS if code >= 128)
_ARABIC_MARKS: dict[int, str | None] = {**dict.fromkeys(range(0x64B, 0x653)), 0x640: None, 0x622: "ا", 0x623: "ا", 0x625: "ا"}

_ARABIC = re.compile("[\u0600-\u06ff]")


class LexiconTable(NamedTuple):
    """A lexicon for fast lookup. Each word, stem, ending, and substring is mapped to its classes, with one bit per class."""

    name: str
    common: frozenset[str]
    words: dict[str, int]
    stems: dict[str, int]
    stem_lengths: tuple[int, ...]
    ends: dict[str, int]
    end_lengths: tuple[int, ...]
    phrases: dict[str, dict[str, list[tuple[str, int]]]]
    """Phrases by their first word, then by their second word."""
    pieces: tuple[tuple[str, int], ...]
    known: dict[str, int]
    """Cache of the class bits of single words."""
    without: dict[int, set[str]]
    """Cache of words that belong to none of the requested classes. The key contains the bits of these classes."""


def plain(text: str) -> str:
    text = folded(text)
    return text if _ARABIC.search(text) is None else text.translate(_ARABIC_MARKS)


@cache
def table_of(language: str) -> LexiconTable:
    entries_of = lexicon(language)
    words: dict[str, int] = {}
    stems: dict[str, int] = {}
    ends: dict[str, int] = {}
    phrases: dict[str, int] = {}
    pieces: dict[str, int] = {}
    for field in _ALL:
        for written in getattr(entries_of, field):
            entry = plain(written.replace("-", " ") if language not in _PIECES_ONLY else written)
            if language in _ELIDING:
                entry = entry.replace("'", "' ").strip()
            if language in _PIECES_ONLY:
                into, key = pieces, entry
            elif entry.startswith("*"):
                into, key = ends, entry[1:]
            elif entry.endswith("*"):
                into, key = stems, entry[:-1]
            elif " " in entry:
                into, key = phrases, f" {entry.strip()} "
            else:
                into, key = words, entry
            into[key] = into.get(key, 0) | BITS[field]
    by_words: dict[str, dict[str, list[tuple[str, int]]]] = {}
    for phrase, bits in phrases.items():
        first, second = (*phrase.split(None, 2), "")[:2]
        by_words.setdefault(first, {}).setdefault(second, []).append((phrase, bits))
    return LexiconTable(
        language, frozenset((*entries_of.common, *words)) if entries_of.common else frozenset(), words, stems,
        tuple(sorted(set(map(len, stems)))), ends, tuple(sorted(set(map(len, ends)))), by_words,
        tuple(pieces.items()), {}, {},
    )  # fmt: skip


_LATIN = tuple(language for language in LANGUAGES if language not in dict(_SCRIPTS))


def language_of(text: str) -> LexiconTable | None:
    """Return the lexicon for a text from :func:`plain`, or None if letters and frequent words don't identify the language."""
    if not text.isascii() and _OTHER_SCRIPT.search(text):
        for name, letters in _SCRIPTS:
            if len(letters.findall(text)) * (1 if name not in ("uk", "fa") else 12) > len(text) * 0.25:
                return table_of(name)
    languages = _languages_of_words()
    total = sum([languages.get(word, 0) for word in frozenset(words_of(text))])
    if not total:
        return None
    counts = memoryview(total.to_bytes(2 * len(_LATIN), sys.byteorder)).cast("H").tolist()
    if sys.byteorder == "big":
        counts.reverse()
    return table_of(_LATIN[counts.index(max(counts))])


@cache
def _languages_of_words() -> dict[str, int]:
    """Map each frequent word to an integer with a 16-bit counter per language. The sum for a text counts the words of each language."""
    found: dict[str, int] = {}
    for place, language in enumerate(_LATIN):
        for word in table_of(language).common:
            found[word] = found.get(word, 0) | 1 << 16 * place
    return found


def words_of(text: str) -> list[str]:
    text = text.encode("utf-8", "surrogatepass").translate(_ASCII_SIGNS).decode("utf-8", "surrogatepass")  # faster than as text
    for sign in () if text.isascii() else _OTHER_SIGNS:
        if sign in text:
            text = text.replace(sign, " ")
    return text.split()


def pieces_in(text: str, table: LexiconTable) -> tuple[tuple[str, int], ...]:
    """Return the lexicon's substrings that occur in a text. Each sentence is then searched only for these substrings."""
    return tuple([piece for piece in table.pieces if piece[0] in text])


def classes(sentence: str, table: LexiconTable, pieces: tuple[tuple[str, int], ...]) -> int:
    """Return the class bits of a sentence's words. ``pieces`` are the substrings to search for (see :func:`pieces_in`)."""
    found = 0
    for piece, bits in pieces:
        if piece in sentence:
            found |= bits
    if not table.words:
        return found
    words = words_of(sentence.replace("'", "' ") if table.name in _ELIDING else sentence)
    spaced = f" {' '.join(words)} "
    known = table.known
    for word in words:
        known_bits = known.get(word)
        found |= _word(word, table) if known_bits is None else known_bits
    phrases = table.phrases
    for first, second in pairwise(words):
        if first in phrases:
            for phrase, of_phrase in phrases[first].get(second, ()):
                if phrase in spaced:
                    found |= of_phrase
    return found


def has_class(text: str, table: LexiconTable, wanted: int) -> bool:
    """Return True if a text has a word or phrase of the ``wanted`` classes. This check is fast, but ignores substrings."""
    words = words_of(text.replace("'", "' ") if table.name in _ELIDING else text)
    different = frozenset(words)
    without = table.without.setdefault(wanted, set())
    for word in different - without:
        if _word(word, table) & wanted:
            return True
        if len(without) < _KNOWN:
            without.add(word)
    spaced = ""
    for first in different & table.phrases.keys():
        for second in different & table.phrases[first].keys():
            for phrase, bits in table.phrases[first][second]:
                if bits & wanted:
                    spaced = spaced or f" {' '.join(words)} "
                    if phrase in spaced:
                        return True
    return False


def _word(word: str, table: LexiconTable) -> int:
    found = table.words.get(word, 0)
    for length in table.stem_lengths:
        if length > len(word):
            break
        found |= table.stems.get(word[:length], 0)
    for length in table.end_lengths:
        if length >= len(word):
            break
        found |= table.ends.get(word[-length:], 0)
    if len(table.known) < _KNOWN:
        table.known[word] = found
    return found
