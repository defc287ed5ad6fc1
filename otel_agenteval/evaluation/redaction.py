"""Redact content before it leaves the process, for example to a judge or a queue's file.

``code_`` metrics read the original content, and only exported data is redacted. A marker with kind and number, such as
``[EMAIL_1]``, replaces the data. A judge can therefore recognize removed data, and repetitions of the same data.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Protocol

from ..config.root import Config
from ..core import jsonio
from ..core.finding import findings_in, value_at
from ..core.score import Score
from ..core.semconv import TURN_INPUT, TURN_OUTPUT
from ..core.turn import Turn
from ..detectors.redaction.find import is_telling, kind_by_name, may_hold, searcher
from ..detectors.redaction.named import named_beside
from ..detectors.redaction.numbers import digits_of
from ..detectors.redaction.views import decoded
from ..detectors.texts import lazy
from .names import NAME_ATTRIBUTES, WITHHELD

KINDS = ("email", "phone", "card", "ssn", "secret")
_MAX_NESTING = 60
_CONTAINERS = frozenset(("llm_calls", "tool_calls", "agent_runs", "spans", "handoffs", "retrievals", "messages"))
_IDS = frozenset(("turn_id", "tenant", "trace_id", "span_id", "id", "parent", "start", "close_reason"))
"""Identifiers in the ``turn.v1`` form, which aren't personal data, although their digits can look like personal data."""
MOST_EXPORTED = 4_096
"""Maximum number of characters per exported text."""
_OUR_WORD = re.compile(r"[A-Za-z][A-Za-z_.:]{0,39}")
_OUR_FACTS = frozenset(("vacuous", "reason", "by"))
"""Keys that stay in a score's detail when its texts are removed, because these keys determine the score's outcome."""
_HEX_ID = re.compile(r"[0-9a-f]{16}(?:[0-9a-f]{16})?(?:-[0-9a-f]{16})?")
_LEAST_CARD = 10**13
_MARKER = re.compile(r"\[(EMAIL|PHONE|CARD|SSN|SECRET)_([0-9]{1,6})\]")
_MOST_KEPT_FREE = 10_000
_SHORT, _MOST_CLEAN, _MOST_WORDS = 160, 2_048, 60


@cache
def _clean_words_of(kinds: frozenset[str]) -> set[Any]:
    """Return the cache of labels, error types, and details' ``(name, text)`` pairs that don't contain personal data."""
    return {None}


@lru_cache(maxsize=1_024)
def _kinds_of_names(names: tuple[Any, ...]) -> tuple[bool, bool]:
    """Return (True if no field name can contain personal data, True if at least one name (``phone``) reveals a value's kind)."""
    texts = [name for name in names if isinstance(name, str) and len(name) <= _SHORT]
    return len(texts) == len(names) and not any(map(may_hold, texts)), any(map(is_telling, texts))


def is_id(name: Any, value: Any) -> bool:
    """Return True for a telemetry identifier such as a trace ID, whose digits can look like personal data."""
    if not isinstance(name, str) or not name.endswith(("_id", "_ids")):
        return False
    ids = value if isinstance(value, (list, tuple)) else [value]
    return all(isinstance(item, str) and _HEX_ID.fullmatch(item) for item in ids)


class Redactor:
    """Redactor of personal data and secrets in one turn. Equal data gets the same marker throughout the turn."""

    def __init__(self, kinds: Collection[str]) -> None:
        self.kinds = kinds
        self._numbers: dict[str, dict[str, int]] = {}
        self._search = searcher(frozenset(kinds))
        self._clean = _clean_words_of(frozenset(kinds))

    def text(self, text: str) -> str:
        """Replace personal data and secrets in a text with markers. Return the same object if nothing is found."""
        found = self._search(text) if self.kinds else ()
        if not found:
            return text
        for kind, number in _MARKER.findall(text):  # new markers must not reuse the numbers of markers in the text
            numbers = self._numbers.setdefault(kind.lower(), {})
            for taken in range(len(numbers) + 1, min(int(number), _MOST_KEPT_FREE) + 1):
                numbers[f"[{kind}_{taken}]"] = taken
        out: list[str] = []
        at = 0
        for start, end, kind in found:
            out += text[at:start], as_written(text, start, end, self._marker(kind, text[start:end]))
            at = end
        out.append(text[at:])
        redacted = "".join(out)
        if still_parses(text, redacted):
            return redacted
        before = jsonio.loads(text)  # redact value by value instead
        after = self.value(before)
        return text if after == before else jsonio.dumps(after)

    def score(self, score: Score, turn: Turn | None = None) -> Score:
        """Redact a score's texts. If ``turn`` is set, adjust the positions of findings to the redacted turn."""
        if self.is_clean(score):
            return score
        reworded = score.reworded(self.text, self._facts)
        for word, left in ((score.label, reworded.label), (score.error_type, reworded.error_type)):
            if word == left:
                self._remember_clean(word, word)
        findings = findings_in(score._detail) if turn is not None else []
        if turn is not None and findings:
            kept = findings_in(reworded.detail)
            reworded.detail["findings"] = [{**one, **self._moved(turn, was)} for one, was in zip(kept, findings, strict=True)]
        return reworded

    def is_clean(self, score: Score) -> bool:
        """Return False if a score might contain texts or large numbers that weren't checked yet."""
        clean, detail = self._clean, score._detail
        if score.explanation is not None or score.error_type not in clean or score.label not in clean or score._also:
            return False
        if not detail:
            return True
        are_plain, one_tells = _kinds_of_names(tuple(detail))
        if not are_plain:
            return False
        others = False
        for name, fact in detail.items():
            kind = fact.__class__
            is_figure = kind is float or kind is bool or fact is None or (kind is int and -1_000_000 < fact < 1_000_000)
            if not is_figure:
                others = True
                if not ((kind is str and (name, fact) in clean) or (kind is list and not fact)):
                    return False
        return not (others and one_tells)

    def _remember_clean(self, word: str | None, found: object) -> None:
        if word is not None and len(word) <= _SHORT:
            if len(self._clean) >= _MOST_CLEAN:
                self._clean.clear()
                self._clean.add(None)
            self._clean.add(found)

    def _moved(self, turn: Turn, finding: Mapping[str, Any]) -> dict[str, int]:
        """Return a finding's start and end in the redacted text, or 0 for both if they can't be determined."""
        value = value_at(turn, finding["path"])
        text = jsonio.text_of(value)
        places = [finding["start"], finding["end"]]
        moved, shift, left = list(places), 0, 0
        for start, end, kind in self._search(text):
            marker = as_written(text, start, end, self._marker(kind, text[start:end]))
            for i, place in enumerate(places):
                if place >= end:
                    moved[i] = place + shift + len(marker) - (end - start)
                elif place > start:
                    moved[i] = start + shift + (len(marker) if i else 0)
            shift += len(marker) - (end - start)
            left = end
        exact = not left or jsonio.text_of(self.value(value)) == self.text(text)
        return {"start": moved[0], "end": moved[1]} if exact else {"start": 0, "end": 0}

    def _facts(self, detail: Mapping[str, Any]) -> dict[str, Any]:
        left: dict[str, Any] = {}
        for name, item in detail.items():
            kept = item
            if not (item is None or isinstance(item, (bool, float)) or is_id(name, item)):
                kept = self._field(name, item, 1)
                if item.__class__ is str and kept == item:
                    self._remember_clean(item, (name, item))
            left[self._key(name)] = kept
        return left

    def turn(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """Redact a turn in the ``turn.v1`` form, except for its telemetry identifiers."""
        return {name: self._part(name, part, 1) for name, part in written.items()}

    def _part(self, name: str, part: Any, depth: int) -> Any:
        if name in _IDS:
            return part
        if name in NAME_ATTRIBUTES and isinstance(part, str):
            return NAME_ATTRIBUTES[name](part, self.kinds)
        if name in _CONTAINERS and isinstance(part, (list, tuple)) and depth < _MAX_NESTING:
            return [
                {key: self._part(key, item, depth + 1) for key, item in entry.items()}
                if isinstance(entry, Mapping)
                else self.value(entry, depth)
                for entry in part
            ]
        return self.value(part, depth)

    def value(self, value: Any, depth: int = 0) -> Any:
        """Redact a value, including keys and texts in lists and mappings. Values that are nested too deeply become None."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (Mapping, list, tuple)) and depth >= _MAX_NESTING:
            return None
        if isinstance(value, Mapping):
            name, keys = named_beside(value) or ("", ())
            return {self._key(key): self._field(name if key in keys else key, item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return self._words(value) or [self.value(item, depth + 1) for item in value]
        if isinstance(value, int) and value >= _LEAST_CARD:
            left = self.text(str(value))
            return value if left == str(value) else left
        return value

    def _field(self, name: Any, value: Any, depth: int) -> Any:
        """Redact a field's value. The field's name, such as ``phone``, can reveal the kind of data."""
        if not isinstance(name, str) or not self.kinds:
            return self.value(value, depth)
        if name in NAME_ATTRIBUTES and isinstance(value, str):
            return NAME_ATTRIBUTES[name](value, self.kinds)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            if (kind := kind_by_name(name, str(value), self.kinds)) is not None:
                return self._marker(kind, str(value))
        elif isinstance(value, (list, tuple)) and depth < _MAX_NESTING and is_telling(name.removesuffix("s")):
            return [self._field(name.removesuffix("s"), item, depth + 1) for item in value]
        return self.value(value, depth)

    def _words(self, words: Sequence[Any]) -> list[Any] | None:
        """Redact a command line as one text, because a word can reveal the next one's kind. For other or unchanged lists, return None."""
        if not 2 <= len(words) <= _MOST_WORDS or not all(isinstance(word, str) and len(word) <= _SHORT for word in words):
            return None
        if not any(word.startswith("-") or is_telling(word) for word in words):
            return None
        written = jsonio.dumps(list(words))
        left = self.text(written)
        read = jsonio.loads(left) if left != written else None
        return read if isinstance(read, list) and len(read) == len(words) else None

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) else key

    def _marker(self, kind: str, found: str) -> str:
        plain = decoded(found)
        same = plain.casefold() if kind == "email" else plain if kind == "secret" else digits_of(plain) or plain
        numbers = self._numbers.setdefault(kind, {})
        return f"[{kind.upper()}_{numbers.setdefault(same, len(numbers) + 1)}]"


def redacted_turn(turn: Turn, kinds: Collection[str], redactor: Redactor | None = None) -> Turn:
    """Return a redacted turn. If ``kinds`` is empty, return the turn unchanged."""
    return Turn.from_dict((redactor or Redactor(kinds)).turn(turn.to_dict())) if kinds else turn


def redacted_or_empty(turn: Turn, redactor: Redactor) -> Turn:
    """Return a redacted turn, or a turn without content if redaction fails."""
    try:
        return Turn.from_dict(redactor.turn(turn.to_dict()))
    except Exception:
        return turn.without_content()


def redacted_text(text: str, kinds: Collection[str]) -> str:
    return Redactor(kinds).text(text)


def redacted_scores(scores: Iterable[Score], kinds: Collection[str]) -> list[Score]:
    """Return one turn's redacted scores. If redaction of a score fails, remove its texts."""
    redactor = Redactor(kinds)
    return [redacted_score(score, redactor) for score in scores] if kinds else list(scores)


def redacted_score(score: Score, redactor: Redactor, turn: Turn | None = None) -> Score:
    """Return a redacted score, or a score without texts if redaction fails."""
    try:
        return redactor.score(score, turn)
    except Exception:
        return without_texts(score)


def without_texts(score: Score) -> Score:
    """Return a score with its texts withheld. Keep the score's value, verdict, and single words."""

    def facts(detail: Mapping[str, Any]) -> dict[str, Any]:
        ours = ((name, item) for name, item in detail.items() if name in _OUR_FACTS)
        return {
            name: item for name, item in ours if item.__class__ is bool or (isinstance(item, str) and _OUR_WORD.fullmatch(item))
        }

    return score.reworded(lambda text: text if _OUR_WORD.fullmatch(text) else WITHHELD, facts)


class Exporter(Protocol):
    """Function that returns a turn's redacted content as log event attributes. ``redactor`` numbers the markers in the content."""

    def __call__(self, turn: Turn, redactor: Redactor | None = None, /) -> Mapping[str, str]: ...


def exporter_of(config: Config) -> Exporter | None:
    """Return an :class:`Exporter` that returns content for log events, or None if the configuration doesn't export content."""
    kinds = config.privacy.redact

    def export(turn: Turn, redactor: Redactor | None = None, /) -> dict[str, str]:
        try:
            return exported(turn, kinds, redactor)
        except Exception:  # export the score without content that can't be redacted
            return {}

    return export if config.privacy.export_content else None


def exported(turn: Turn, kinds: Collection[str], redactor: Redactor | None = None) -> dict[str, str]:
    """Return the turn's input and output as attributes, redacted and truncated to :data:`MOST_EXPORTED` characters each."""
    redactor = redactor or Redactor(kinds)
    texts = ((TURN_INPUT, turn.input), (TURN_OUTPUT, turn.output))
    return {name: redactor.text(text)[:MOST_EXPORTED] for name, text in texts if text}


# --- text that contains JSON, which stays valid: a marker in place of a number becomes a JSON string

_NUMBER = lazy(r"-?[0-9]+")
_LOOK_BACK = 2_000
_SPACE = r"(?:\s|\\+[nrt])"
_AFTER_KEY = lazy(rf'(?<!\\)(\\*)"{_SPACE}*:{_SPACE}*\Z')
_IN_LIST_OF_KEY = lazy(rf'(?<!\\)(\\*)"{_SPACE}*:{_SPACE}*\[(?:[^\[\]{{}}"\\]|\\+[nrt]|\\*"[^"\\]*\\*")*\Z')
_BEFORE_ITEM = lazy(rf"[\[,]{_SPACE}*\Z")
_AFTER_VALUE = lazy(rf"{_SPACE}*(?:[,}}\]]|\Z)")
_LAST_QUOTE = lazy(r'(?<!\\)(\\*)"([^"]*)\Z')


def as_written(text: str, start: int, end: int, marker: str) -> str:
    """Return a marker in the form that the position ``start`` requires. A marker that replaces a JSON number needs quotes."""
    if _NUMBER.fullmatch(text, start, end) is None or _AFTER_VALUE.match(text, end) is None:
        return marker
    before = text[max(0, start - _LOOK_BACK) : start].removesuffix("-")
    key = _AFTER_KEY.search(before[-300:]) or (_IN_LIST_OF_KEY.search(before) if _BEFORE_ITEM.search(before[-300:]) else None)
    if key is not None:
        return _quoted(marker, len(key.group(1)))
    if _BEFORE_ITEM.search(before[-300:]) is None or text.lstrip()[:1] not in ("[", "{"):
        return marker
    if (quote := _LAST_QUOTE.search(before)) is None:
        return _quoted(marker, 0)
    slashes, since = len(quote.group(1)), quote.group(2).strip()
    opens = since[:1] not in (",", ":", "]", "}")
    return _quoted(marker, 2 * slashes + 1 if opens else slashes)


def _quoted(marker: str, slashes: int) -> str:
    quote = "\\" * slashes + '"'
    return f"{quote}{marker}{quote}"


def still_parses(before: str, after: str) -> bool:
    """Return True if JSON (also inside its strings) is still valid after a change, or if ``before`` isn't JSON."""
    if before.lstrip()[:1] not in ("{", "["):
        return True
    parsed = _parsed(before)
    return parsed is None or _alike(parsed, _parsed(after), 0)


def _parsed(text: str) -> Any:
    try:
        found = jsonio.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def _alike(before: Any, after: Any, depth: int) -> bool:
    if depth > 60:
        return True
    if isinstance(before, dict):
        if not isinstance(after, dict) or len(before) != len(after):
            return False
        return all(_alike(a, b, depth + 1) for a, b in zip(before.values(), after.values(), strict=True))
    if isinstance(before, list):
        return (
            isinstance(after, list)
            and len(before) == len(after)
            and all(_alike(a, b, depth + 1) for a, b in zip(before, after, strict=True))
        )
    if isinstance(before, str):
        return isinstance(after, str) and (before == after or still_parses(before, after))
    return after is not None or before is None
