"""Measure how much of the system prompt's instructions an answer repeats.

Disguised and encoded copies count too. Rewordings count only if the answer or the user's input mentions instructions.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from typing import NamedTuple
from urllib.parse import unquote

from ..core.caches import remembered
from .prompt_sentences import gives_a_role, is_instruction, sentences
from .screen import Look, ScreenedWords
from .texts import has_any, lazy, words

RUN = 40
"""Minimum length of a copy that isn't a whole instruction, in letters. A letter outside ASCII counts as two to four letters."""
LONG = 55
"""Minimum length, in letters, of a copy that is a leak by itself (about 12 words). East Asian characters count as 3 letters."""
SEVERAL = 3
"""Minimum number of short copies from different sentences that together are a leak."""
_WHOLE = 20
"""Minimum length, in letters, of a completely repeated instruction that counts as a copy."""
_PROBE = 12
_STEP = _WHOLE - _PROBE + 1
"""Distance between probes, which are short parts of the prompt. Each copy contains at least one complete probe."""
_MOST = 5_000_000
"""Maximum cost of a direct search: the number of strings to find, multiplied by the number of letters in all texts."""
_UNREADABLE = 200
"""In a prompt with at least this many letters, all sentences count as instructions if none is recognized as one."""
_LOWER = bytes(range(256)).lower()
_NO_LETTERS = bytes(code for code in range(128) if not chr(code).isalnum())


class Leak(NamedTuple):
    """Result of comparing an answer with the instructions."""

    share: float
    """Share of the instructions' letters or words that the answer repeats, from 0 to 1."""
    longest: int
    """Number of letters in the longest copy, or 0 if the answer has no copy."""
    copies: int
    spans: tuple[tuple[int, int], ...]
    """Ranges of the copies in the answer. For disguised, encoded, or reworded copies, the answer's full range."""

    @property
    def is_long(self) -> bool:
        """True if the copies or rewordings are a leak regardless of the prompt's length."""
        return self.longest >= LONG or self.copies >= SEVERAL or (self.copies > 0 and not self.longest)


NONE = Leak(0.0, 0, 0, ())


def letters(text: str) -> str:
    """Convert a text to lower-case ASCII letters, digits, and other characters' UTF-8 bytes."""
    return text.encode("utf-8", "replace").translate(_LOWER, _NO_LETTERS).decode("latin-1")


class _Sentence:
    """A sentence, heading, or quotation in a system prompt."""

    def __init__(self, text: str, of_facts: bool | None) -> None:
        self.text = text
        self.letters = _exact(text)
        self._of_facts = of_facts

    @cached_property
    def instructs(self) -> bool:
        return self._of_facts is not None and is_instruction(self.text, self._of_facts)

    @cached_property
    def words(self) -> frozenset[str]:
        return _words_of(self.text)


class _Given:
    """Given texts other than the system prompt, prepared on first use."""

    def __init__(self, asked: str, others: Iterable[str]) -> None:
        self._asked, self._others = asked, others

    @cached_property
    def _texts(self) -> list[str]:
        return [self._asked, *self._others]

    @cached_property
    def letters(self) -> list[str]:
        return list(map(_exact, self._texts))

    @cached_property
    def words(self) -> frozenset[str]:
        return frozenset[str]().union(*map(_words_of, self._texts))


class SystemPrompt:
    """A system prompt to compare with many answers. It is split into sentences on first use."""

    def __init__(self, system: str) -> None:
        self._system = system
        self._letters = letters(system)
        self.size = len(self._letters)
        self._probes = _probes_of(self._letters)

    @cached_property
    def _all_probes(self) -> frozenset[str]:
        return frozenset(self._probes)

    @cached_property
    def _pieces(self) -> list[_Sentence]:
        return [_Sentence(text, of_facts) for text, of_facts in sentences(self._system)]

    @cached_property
    def _wanted(self) -> str:
        return "".join(piece.letters for piece in self._pieces)

    @cached_property
    def _wanted_probes(self) -> list[str]:
        return self._probes if self._system.isascii() else _probes_of(self._wanted)

    @cached_property
    def _is_unreadable(self) -> bool:
        """True if no sentence of a long prompt is recognized as an instruction. All sentences then count as instructions."""
        return self.size >= _UNREADABLE and not any(piece.instructs for piece in self._pieces)

    def _instructs(self, piece: _Sentence) -> bool:
        return piece.instructs or self._is_unreadable

    def leak(self, look: Look, asked: str, others: Iterable[str]) -> Leak:
        """Measure how much of the prompt an answer leaks. Sentences that ``asked`` or another given text contains don't count."""
        output = look.text
        spelled = letters(output)
        candidates = [text for text in _disguised_texts(look, spelled) if self._shares_text_with(text)]
        about = _is_about_rules(look, asked)
        if not candidates and not about:
            return NONE
        given = _Given(asked, others)
        found = NONE
        if candidates:
            plain = _exact(output)
            counts = self._leak_test(plain, given)
            readings = (plain if text is spelled else text for text in candidates)
            found = max(self._compared(text, output, counts, about) for text in readings)
        return found if found.is_long or not about else max(found, self._reworded(output, given))

    def _shares_text_with(self, answer: str) -> bool:
        if len(self._probes) * len(answer) > _MOST:
            return True
        if len(answer) < len(self._probes):  # one of many short texts
            windows = (answer[at : at + _PROBE] for at in range(len(answer) - _PROBE + 1))
            if self._all_probes.isdisjoint(windows):
                return False
        for place, probe in enumerate(self._probes):
            if probe in answer:
                at = place * _STEP
                if any(self._letters[start : start + _WHOLE] in answer for start in range(max(0, at - _STEP + 1), at + 1)):
                    return True
        return False

    def _leak_test(self, answer: str, given: _Given) -> Callable[[_Sentence], bool]:
        """Return a function that checks if repeating a sentence is a leak. For ``You are …``, the answer must repeat the start."""

        @cache
        def is_known() -> Callable[[str], bool]:
            return _part_finder(given.letters, len(self._pieces))

        @cache
        def counts(piece: _Sentence) -> bool:
            return (
                self._instructs(piece)
                and not is_known()(piece.letters)
                and not (gives_a_role(piece.text) and piece.letters[:_PROBE] not in answer)
            )

        return counts

    def _compared(self, answer: str, output: str, counts: Callable[[_Sentence], bool], about: bool) -> Leak:
        may_repeat = True
        if len(self._probes) * len(answer) <= _MOST:
            probes = [probe in answer for probe in self._wanted_probes]
            may_repeat = any(map(all, zip(probes, probes[1:], probes[2:], strict=False)))  # each run contains three probes
            if not about and sum(probes) < SEVERAL:  # and each instruction contains one
                return NONE
        said = self._repeated_wholly(answer)
        if not may_repeat and len(said) < (1 if about else SEVERAL):
            return NONE
        copied = _copied(self._wanted, answer) if may_repeat else bytearray(len(self._wanted))
        whole = [(start, end) for start, end, piece in said if counts(piece)]
        if about or len(whole) >= SEVERAL:
            for start, end in whole:
                copied[start:end] = b"\1" * (end - start)
        return self._measured(copied, counts, answer, output) if 1 in copied else NONE

    def _repeated_wholly(self, answer: str) -> list[tuple[int, int, _Sentence]]:
        """Return the start, end, and sentence for each sentence of at least 20 letters that the answer completely contains."""
        found, at = [], 0
        is_said = _part_finder([answer], len(self._pieces))
        for piece in self._pieces:
            end = at + len(piece.letters)
            if end - at >= _WHOLE and is_said(piece.letters):
                found.append((at, end, piece))
            at = end
        return found

    def _measured(self, copied: bytearray, counts: Callable[[_Sentence], bool], answer: str, output: str) -> Leak:
        repeated = longest = count = at = current = 0
        stretches: list[str] = []
        for piece in self._pieces:
            end = at + len(piece.letters)
            part = copied[at:end]
            here = sum(part) if 1 in part and counts(piece) else 0
            for found in re.finditer(b"\1+", part) if here else ():
                stretch = self._wanted[at + found.start() : at + found.end()]
                stretches.append(stretch)
                current = (current if found.start() == 0 else 0) + _weight(stretch)
                longest = max(longest, current)
                current = current if found.end() == len(part) else 0
            if here:
                repeated += here
                count += here >= min(_WHOLE, len(part))
            elif len(piece.letters) > 2:  # not the number of a list item
                current = 0
            at = end
        if not repeated:
            return NONE
        total = sum(len(piece.letters) for piece in self._pieces if self._instructs(piece))
        return Leak(repeated / total, longest, count, _spans(stretches, answer, output))

    def _reworded(self, output: str, given: _Given) -> Leak:
        """Return the leak if an answer rewords instructions. The answer or the user's input must mention instructions."""
        answer = _words_of(output)
        if not any(len(piece.words & answer) >= _FEW for piece in self._pieces):
            return NONE
        new_words = (piece.words - given.words for piece in self._pieces if self._instructs(piece))
        rules = [rule for rule in new_words if len(rule) >= _FEW]
        told = [rule & answer for rule in rules]
        copied = [found for found, rule in zip(told, rules, strict=True) if len(found) >= _FEW and 2 * len(found) >= len(rule)]
        count = sum(map(len, told))
        if not copied or (len(copied) == 1 and count < _MANY and all(word.isdigit() or word.isalpha() for word in copied[0])):
            return NONE
        return Leak(count / sum(map(len, rules)), 0, len(copied), ((0, len(output)),))


def _probes_of(spelled: str) -> list[str]:
    return [spelled[at : at + _PROBE] for at in range(0, len(spelled) - _PROBE + 1, _STEP)]


def _copied(wanted: str, answer: str) -> bytearray:
    """Return one byte per letter of ``wanted``: 1 if the letter is in a run of :data:`RUN` letters that ``answer`` contains."""
    runs = {answer[i : i + RUN] for i in range(len(answer) - RUN + 1)}
    copied = bytearray(len(wanted))
    end = 0
    for i in range(len(wanted) - RUN + 1):
        if wanted[i : i + RUN] in runs:
            start = max(i, end)
            copied[start : i + RUN] = b"\1" * (i + RUN - start)
            end = i + RUN
    return copied


def _part_finder(texts: list[str], count: int) -> Callable[[str], bool]:
    """Return a function that checks if any of the texts contains a string. ``count`` is the expected number of calls."""

    def contained(part: str) -> bool:
        return any(part in text for text in texts)

    if count * sum(map(len, texts)) <= _MOST:
        return contained
    probes = {text[at : at + _PROBE] for text in texts for at in range(len(text) - _PROBE + 1)}
    return lambda part: (len(part) < _PROBE or {part[:_PROBE], part[-_PROBE:]} <= probes) and contained(part)


prompt = remembered(SystemPrompt, times=4)


# --- rewordings ----------------------------------------------------------------------------------------------------

_FEW, _MANY = 4, 8
"""Minimum repeated words per instruction, and in total if an answer repeats one instruction without a code such as ``A1``."""
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = lazy("[\u0e00-\u0e7f\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_STEM = 5


def _words_of(text: str) -> frozenset[str]:
    found: set[str] = set()
    for word in _WORD.findall(unicodedata.normalize("NFKC", text).lower()):
        if not word.isascii() and _UNSPACED.search(word) is not None:
            found.update(word[at : at + 2] for at in range(len(word) - 1))
        elif len(word) >= _STEM - 1 or not word.isalpha():
            found.add(word[:_STEM])
    return frozenset(found)


_RULES = words("prompt_words.txt", "instructions")
_BEYOND_ASCII = tuple(stem for stem in _RULES if re.search("[a-z]{3}", stem) is None)
_SCREENED_RULES = ScreenedWords(stem for stem in _RULES if stem not in _BEYOND_ASCII)


def _is_about_rules(look: Look, asked: str) -> bool:
    if has_any(asked.lower(), _RULES):
        return True
    if _SCREENED_RULES.may_be_in(look):
        return has_any(look.text.lower(), _RULES)
    return not look.text.isascii() and has_any(look.text.lower(), _BEYOND_ASCII)


# --- copies --------------------------------------------------------------------------------------------------------


def _weight(spelled: str) -> int:
    """Count the letters of a copied text. Each Chinese, Japanese, or Korean character counts as three letters."""
    return sum(3 if ch in "\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xeb\xec\xed" else 1 for ch in spelled if not "\x80" <= ch <= "\xbf")


def _spans(stretches: Iterable[str], answer: str, output: str) -> tuple[tuple[int, int], ...]:
    """Return the ranges of copies in an answer. For a disguised or encoded copy, return the answer's full range."""
    if answer != _exact(output):
        return ((0, len(output)),)
    ends = [0]
    for sign in output:
        ends.append(ends[-1] + len(_exact(sign)))
    places = sorted((answer.find(stretch[:RUN]), len(stretch)) for stretch in stretches)
    spans: list[tuple[int, int]] = []
    for at, length in places:
        if at >= 0:
            start, end = _characters_with(ends, at + 1) - 1, _characters_with(ends, at + length)
            if spans and not any(map(str.isalnum, output[spans[-1][1] : start])):
                start = spans.pop()[0]
            spans.append((start, end))
    return tuple(spans)


def _characters_with(ends: list[int], count: int) -> int:
    """Return the length, in characters, of a text's shortest prefix that has ``count`` letters."""
    return min(bisect_left(ends, count), len(ends) - 1)


_INVISIBLE = dict.fromkeys((0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2065), 0xFEFF))
_NO_WORD = re.compile(
    r"(?:[^\w\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0900-\u0dff\u0e00-\u109f\u1780-\u17ff]|_)+"
)
"""Pattern for characters outside words. Vowel signs, which aren't word characters for regular expressions, don't match."""


def _exact(text: str) -> str:
    """Return a text's normalized letters and digits in the encoding of :func:`letters`."""
    if text.isascii():
        return letters(text)
    text = unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).lower()
    return _NO_WORD.sub("", text).encode("utf-8", "replace").decode("latin-1")


# --- disguises -----------------------------------------------------------------------------------------------------

_LEET = str.maketrans(
    {"0": "o", "1": "i", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "@": "a", "$": "s", "!": "i", "|": "i"}
)
_HOMOGLYPHS = str.maketrans(
    "аеорсухіјѕһԁԛԝӏΑΒΕΖΗΙΚΜΝΟΡΤΥΧοαενιρτυАВЕКМНОРСТУХІЈЅ", "aeopcyxijshdqwlabezhikmnoptyxoaeviptuabekmhopctyxijs"
)
_MIXED = re.compile("[a-z][\u0370-\u058f]|[\u0370-\u058f][a-z]")
_WIDE_OR_HIDDEN = "\u200b\u200c\u200d\u2060\ufeff\u00adａｅ"
_ROTATED = (" gur ", " lbh ", " naq ", " haq ", " qre ", " qr ", " yn ", " ry ")
"""Frequent short words in rot13, such as ``gur`` for "the"."""
_SCREENED_ROTATED = ScreenedWords(_ROTATED)
_ENCODED = re.compile(r"[A-Za-z0-9+/_-]{24,}(?:\s[A-Za-z0-9+/_-]{8,})*={0,2}")
_HEX = re.compile(r"(?:[0-9a-fA-F]{2}[\s:,]{0,2}){20,}")
_SHAPE = bytes(97 if chr(code) in "+/-_" or (code < 128 and chr(code).isalnum()) else 32 for code in range(256))
_HEX_SHAPE = bytes(104 if chr(code) in "0123456789abcdef" else 32 for code in range(256))


def _disguised_texts(look: Look, answer: str) -> Iterator[str]:
    """Yield the letters of an answer and of its decoded forms, such as decoded base64. Cheap tests skip most decoders."""
    output = look.text
    ascii_only = output.isascii()
    yield answer
    text = output.lower()
    if not ascii_only:
        if has_any(output, _WIDE_OR_HIDDEN) or "\xf0\x9d" in answer or output.isupper():  # mathematical letters
            yield _exact(output)
        if ("а" in text or "ο" in text or "е" in text) and _MIXED.search(text) is not None:
            yield _exact(unicodedata.normalize("NFKC", output).lower().translate(_HOMOGLYPHS))
    if " ." in output or " ," in output or "\n." in output or output.startswith("."):
        yield _exact(text[::-1])
        yield _exact("\n".join(line[::-1] for line in text.splitlines()))
        yield _exact(" ".join(word[::-1] for word in text.split()))
    if ascii_only and _SCREENED_ROTATED.may_be_in(look) and has_any(text, _ROTATED):
        yield letters(codecs.encode(text, "rot13"))
    if ascii_only and ("3v3" in answer or "y0u" in answer):
        yield letters(text.translate(_LEET))
    if "%20" in output:
        yield _exact(unquote(output))
    if "\\u" in output:
        yield _exact(re.sub(r"\\u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), output))
    yield from map(_exact, _decoded_texts(look, answer))


def _decoded_texts(look: Look, answer: str) -> Iterator[str]:
    output = look.text
    if b"h" * RUN in answer.encode("latin-1").translate(_HEX_SHAPE):
        for found in _HEX.finditer(output):
            digits = re.sub(r"[^0-9a-fA-F]", "", found.group())
            yield bytes.fromhex(digits[: len(digits) // 2 * 2]).decode("utf-8", "replace")
    if b"a" * 24 in look.written.translate(_SHAPE):
        for found in _ENCODED.finditer(output):
            packed = re.sub(r"\s", "", found.group()).rstrip("=").translate(str.maketrans("-_", "+/"))
            try:
                yield base64.b64decode(packed[: len(packed) // 4 * 4]).decode("utf-8", "replace")
            except binascii.Error:
                continue
