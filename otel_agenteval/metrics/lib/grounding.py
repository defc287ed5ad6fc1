"""What the agent was given, and whether it contains the numbers of its answer.

Given are: tool results, the user's words, retrieved documents, system instructions, messages that came before (also the
agent's own of earlier turns) and tool definitions. Tool *arguments* and the agent's own messages of this turn are
written by the model, so they cannot ground anything.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple

from ...core import jsonio
from ...core.turn import Turn

SCAN_LIMIT = 100_000
"""Characters of any one text that are looked at."""

_ESCAPED_CHARACTER = re.compile(r"\\{1,8}u([0-9a-fA-F]{4})")
_ESCAPED_SLASH = re.compile(r"\\{1,8}/")


def text_of(value: Any) -> str:
    """A tool result (or anything) as text, at most :data:`SCAN_LIMIT` characters; see :func:`unescaped`."""
    return unescaped(jsonio.text_of(value)[:SCAN_LIMIT])


def unescaped(text: str) -> str:
    r"""The text with ``\uXXXX`` and ``\/`` of serialized JSON undone, however often it was serialized."""
    if "\\" not in text:
        return text
    if "u" in text:
        text = _ESCAPED_CHARACTER.sub(lambda found: chr(int(found.group(1), 16)), text)
        if not text.isascii():  # a character outside the first plane came as two escapes
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return _ESCAPED_SLASH.sub("/", text)


class Given:
    """The texts that the agent was given in a turn, one after another as they are asked for, and what could not be read."""

    __slots__ = ("_cut", "_read", "_rest", "_turn")

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._read: list[str] = []
        self._rest = _given_values(turn)
        self._cut = False

    def __iter__(self) -> Iterator[str]:
        yield from self._read
        for value in self._rest:
            text = jsonio.text_of(value)
            if len(text) > SCAN_LIMIT:
                self._cut = True
                text = text[:SCAN_LIMIT]
            text = unescaped(text)
            self._read.append(text)
            yield text

    def gap(self) -> str | None:
        """Why a thing that no text holds can still have been given (a reason for a skipped score), or None.

        ``missing:sources``: results, documents or attachments whose text is unknown. ``truncated``: content was cut
        before it reached us. ``too_long``: it is longer than :data:`SCAN_LIMIT`.
        """
        turn = self._turn
        if not any(self) or _has_unknown_parts(turn):
            return "missing:sources"
        if turn.truncated:
            return "truncated"
        return "too_long" if self._cut else None


def _given_values(turn: Turn) -> Iterator[Any]:
    for call in turn.tool_calls or ():
        if call.result is not None:
            yield call.result
        if call.error is not None and call.error.message:
            yield call.error.message
    if turn.input:
        yield turn.input
    yield from turn.context
    for retrieval in turn.retrievals:
        yield from (document.content for document in retrieval.documents if document.content)
    if turn.system:
        yield turn.system
    messages = turn.messages
    asked = max((i for i, message in enumerate(messages) if message.role == "user"), default=-1)
    for i, message in enumerate(messages):
        if message.content and (i <= asked or message.role != "assistant"):
            yield message.content
        yield from (response.result for response in message.tool_results if response.result is not None)
    if turn.history:
        yield turn.history
    if turn.tool_definitions:
        yield turn.tool_definitions


def _has_unknown_parts(turn: Turn) -> bool:
    messages = turn.messages
    if turn.attachments or any(message.attachments for message in messages):
        return True
    if any(call.result is None and call.error is None for call in turn.tool_calls or ()):
        return not any(message.tool_results or message.role == "tool" for message in messages)
    return not turn.context and any(not document.content for retrieval in turn.retrievals for document in retrieval.documents)


# --- numbers -----------------------------------------------------------------------------------------------------


class Number(NamedTuple):
    """A number of an answer: the text, and every value that the text can mean."""

    text: str
    readings: tuple[tuple[float, float], ...]
    """``(value, half)``: half a unit of the last digit shown, so that a rounded number is held by the exact one."""
    is_small: bool
    """Whether it is a whole number up to 10 and nothing else, which needs no source."""


def _number(token: str, readings: tuple[tuple[float, float], ...]) -> Number:
    value, half = readings[0]
    return Number(token, readings, value <= _SMALL and half == 0.5 and len(readings) == 1)


_TOKEN = re.compile(r"[0-9]+(?:[.,'’\u00a0\u202f][0-9]+)*")
_SPACED = re.compile(r"(?<![0-9])[0-9]{1,3}(?:[ \u00a0\u202f][0-9]{3})+(?![0-9])")
_PIECE = re.compile(r"[0-9A-Za-z_][0-9A-Za-z_.,:'’\u00a0\u202f-]*")
_IDENTIFIER = re.compile(r"[A-Za-z_][-_.]?[0-9]")
_LIST_MARKER = re.compile(r"[0-9]{1,3}[.)](?![0-9])")
_FOOTNOTE = re.compile(r"[0-9]{1,3}\]")
_SCALE = re.compile(r"\s?(%|percent\b|per cent\b|thousand\b|million\b|billion\b)|([kKM]|mn|bn|B)\b")
_SCALES = {"%": 0.01, "p": 0.01, "k": 1e3, "t": 1e3, "m": 1e6, "b": 1e9}
_BEFORE_SCALE = frozenset("% \u00a0\u202fkKMmbB")
_DIGITS = bytes(48 if 48 <= code <= 57 else 32 if code <= 32 else 120 for code in range(256))
_NUMERIC = frozenset("0123456789.,")
_LONGEST_WORD = 200
_DEEPEST_LIST = 40
_SMALL = 10.0
_MAX_DIGITS = 300  # more overflow a float; no number of an answer has them
_SEARCHED_UP_TO = 50  # numbers that are searched for one by one; more are compared with all values of the texts at once
_MAX_OCCURRENCES = 20  # places where a number is looked at as text before its value decides
_MAX_OPERANDS = 12  # more numbers than this combine to almost anything


def numbers_in(text: str) -> tuple[list[Number], list[float]]:
    """The numbers of an answer that have to be grounded, and the small whole ones (0 to 10), which need not be.

    Left out: list markers at line starts, footnote marks ``[12]``, numbers inside URLs, identifiers (``GPT-4``, hex
    ids) and fenced code, ``24/7`` and ``100 %``.
    """
    shape = text.encode("ascii", "replace").translate(_DIGITS)  # one byte per character: positions stay
    at = shape.find(b"0")
    numbers: list[Number] = []
    small: list[Number] = []
    while at >= 0:
        end = shape.find(b" ", at)
        if end < 0:
            end = len(shape)
        if not _is_left_out(text, at, end):
            token = _TOKEN.match(text, at)
            if token is not None and shape.find(b"0", token.end(), end) < 0:  # the usual word: one number
                found = _read(text, token.group(), token.end())
            else:
                found = _numbers_of_word(text, at, end)
            for number in found:
                (small if number.is_small else numbers).append(number)
        at = shape.find(b"0", end)
    return numbers, [number.readings[0][0] for number in small]


def without_code(text: str) -> str:
    """The text without its fenced code blocks."""
    return "\n".join(text.split("```")[::2]) if "```" in text else text


def _is_left_out(text: str, at: int, end: int) -> bool:
    """Whether the word whose first digit stands at ``at`` holds no number that is a statement."""
    if end - at > _LONGEST_WORD and text[at:end].isascii():
        return True  # encoded data
    before = text[at - 1 : at] or " "
    if before not in " \n\t($€£":
        head = text[max(0, at - _LONGEST_WORD) : at]
        prefix = "" if before.isspace() else head.rsplit(None, 1)[-1]
        if "://" in prefix or "@" in prefix or prefix.startswith("www.") or _ends_in_name(prefix):
            return True
        if before == "[" and _FOOTNOTE.match(text, at):
            return True
    if text[at] == "2" and text.startswith("24/7", at):
        return True
    if not _LIST_MARKER.match(text, at):
        return False
    line = text.rfind("\n", max(0, at - _DEEPEST_LIST), at)
    return (line >= 0 or at <= _DEEPEST_LIST) and not text[line + 1 : at].strip(" \t>#*_-")


def _ends_in_name(prefix: str) -> bool:
    last = prefix[-2:-1] if prefix[-1:] in "-_./\\" else prefix[-1:]
    return last.isascii() and (last.isalpha() or last == "_")


def _numbers_of_word(text: str, at: int, end: int) -> list[Number]:
    word = text[at:end]
    if "://" in word:  # a footnote, list marker or bracket glued to a link
        word = re.split(r"\]\(|https?:", word, maxsplit=1)[0]
    found: list[Number] = []
    for piece in _PIECE.finditer(word):
        if not _IDENTIFIER.search(piece.group()):
            for token in _TOKEN.finditer(piece.group()):
                found += _read(text, token.group(), at + piece.start() + token.end())
    return found


def _read(text: str, token: str, end: int) -> Sequence[Number]:
    """The number that a run of digits ending at ``end`` of the text writes (several for a date)."""
    numbers = _numbers(token)
    if text[end : end + 1] not in _BEFORE_SCALE:
        return numbers
    scale = _scale_after(text, end)
    if scale == 1.0:
        return numbers
    return [
        _number(token, readings + tuple((value * scale, half * scale) for value, half in readings))
        for readings in _readings(token)
        if scale != 0.01 or readings[0][0] != 100.0
    ]


@lru_cache(maxsize=1024)
def _numbers(token: str) -> tuple[Number, ...]:
    return tuple(_number(token, readings) for readings in _readings(token))


def _scale_after(text: str, at: int) -> float:
    found = _SCALE.match(text, at)
    return _SCALES[found.group().lstrip()[0].lower()] if found is not None else 1.0


@lru_cache(maxsize=1024)
def _readings(token: str) -> tuple[tuple[tuple[float, float], ...], ...]:
    """The numbers that a run of digits and separators can mean: one (perhaps ambiguous), or several for a date or version."""
    if len(token) > _MAX_DIGITS:
        return ()
    if token.isdigit():
        return (((float(token), 0.5),),)
    groups = re.split(r"[^0-9]", token)
    if len(groups) == 2 and len(groups[1]) != 3 and "." in token:
        return (((float(token), 0.5 * 10.0 ** -len(groups[1])),),)
    marks = [ch for ch in token if not ch.isdigit()]
    *whole, last = groups
    decimal = marks[-1] in ".," and (len(marks) == 1 or (marks[-1] not in marks[:-1] and _in_thousands(whole)))
    readings = []
    if _in_thousands(groups) and len(set(marks)) == 1:
        readings.append((float("".join(groups)), 0.5))
    if decimal:
        readings.append((float(f"{''.join(whole)}.{last}"), 0.5 * 10.0 ** -len(last)))
    return (tuple(readings),) if readings else tuple(((float(group), 0.5),) for group in groups)


def _in_thousands(groups: list[str]) -> bool:
    """``1 234 567``, and ``12 34 567`` as in India."""
    first, *rest = groups
    return not rest or (len(first) <= 3 and first[0] != "0" and len(rest[-1]) == 3 and all(2 <= len(g) <= 3 for g in rest[:-1]))


def ungrounded_numbers(numbers: list[Number], small: list[float], given: Given, *, derived: bool) -> list[str]:
    """The numbers, as written, that no text holds, neither exactly nor rounded nor (``derived``) by showing the operands."""
    left = numbers
    for text in given if len(numbers) <= _SEARCHED_UP_TO else ():
        left = [number for number in left if not _is_written_in(number, text)]
        if not left:
            return []
    values = _values(given)
    left = [number for number in left if not any(_near(values, *reading) for reading in number.readings)]
    if left and derived:
        missing = {number.text for number in left}
        operands = [number.readings[0][0] for number in numbers if number.text not in missing] + small
        results = _results(list(dict.fromkeys(operands))[:_MAX_OPERANDS])
        left = [number for number in left if not any(_near(results, *reading) for reading in number.readings)]
    return list(dict.fromkeys(number.text for number in left))


def _is_written_in(number: Number, text: str) -> bool:
    """Whether a text shows the number as the answer writes it (``142.50``, ``1,200.75``) or as JSON does (``142.5``, ``1200.75``)."""
    token = number.text
    if _stands_in(token, text):
        return True
    if token.isdigit() or len(number.readings) != 1 or not (token[-1] == "0" or "," in token):
        return False
    value = number.readings[0][0]  # comparing the values of all numbers finds it too, at a hundred times the cost
    return _stands_in(str(int(value)) if value.is_integer() else repr(value), text)


def _stands_in(token: str, text: str) -> bool:
    """Whether the digits occur in the text as they are, not as a part of a longer number."""
    at = text.find(token)
    for _ in range(_MAX_OCCURRENCES):
        if at < 0:
            return False
        end = at + len(token)
        if text[at - 1 : at] not in _NUMERIC and text[end : end + 1] not in _NUMERIC:
            return True
        before, after = text[max(0, at - 2) : at], text[end : end + 2]
        if not (_continues(before[::-1]) or _continues(after)):
            return True
        at = text.find(token, end)
    return False


def _continues(beside: str) -> bool:
    """Whether the two characters beside a run of digits, nearest first, make it a part of a longer number."""
    return beside[:1].isdigit() or (beside[:1] in (".", ",") and beside[1:].isdigit())


def _values(texts: Iterable[str]) -> list[float]:
    """Every number that the texts can mean, sorted."""
    found: set[float] = set()
    for text in texts:
        for token in _TOKEN.findall(text):
            parts = (token, *token.split(",")) if "," in token else (token,)  # also a list of numbers without spaces
            for readings in chain.from_iterable(map(_readings, parts)):
                found.update(value for value, _ in readings)
        for spaced in _SPACED.findall(text):
            found.add(float("".join(ch for ch in spaced if ch.isdigit())[:_MAX_DIGITS]))
    return sorted(found)


def _results(operands: list[float]) -> list[float]:
    found: set[float] = set()
    for i, a in enumerate(operands):
        for b in operands[i:]:
            found.update((a + b, abs(a - b), a * b))
    return sorted(found)


def _near(values: list[float], value: float, half: float) -> bool:
    """Whether one of the sorted values, rounded to the digits shown, is this one."""
    slack = half * (1 + 1e-9) + abs(value) * 1e-15
    at = bisect_left(values, value - slack)
    return at < len(values) and values[at] <= value + slack
