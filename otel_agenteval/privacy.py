"""What is taken out of a turn before its content leaves the process: to a judge, or to the file of a queue.

Scores are computed on what was really said; only what goes out is redacted. A find is replaced by its kind and a number, as in
``[EMAIL_1]``, so that a judge still sees that something was there, and whether it is the same as elsewhere in the turn.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from .config import Config
from .metrics._pii import EMAILS, NUMBERS, SCAN_LIMIT, find
from .metrics._secrets import secret_spans
from .model import Turn
from .names import TURN_INPUT, TURN_OUTPUT

KINDS = ("email", "phone", "card", "ssn", "secret")
"""What can be taken out."""
_KIND_OF = {"email": "email", "phone": "phone", "credit_card": "card", "ssn": "ssn"}
_OVERLAP = 10_000
"""Characters that two windows over a long text share: no find is longer, so none is cut in half."""
_MAX_NESTING = 60
_CONTAINERS = frozenset(("llm_calls", "tool_calls", "agent_runs", "spans", "handoffs", "retrievals", "messages"))
_IDS = frozenset(("turn_id", "trace_id", "span_id", "id", "parent", "call_id", "response_id", "start", "close_reason"))
"""Identifiers of ours and of the telemetry, where the form ``turn.v1`` has them: nobody's data, and digits enough to look like it."""
MOST_EXPORTED = 4_096
"""Characters of each text."""
_DIGIT = re.compile(r"\d")
_BETWEEN_DIGITS = re.compile(r"\D+")


class Redactor:
    """Takes personal data and secrets out of the texts of one turn: the same find has the same marker throughout it.

    Args:
        kinds: what is taken out.
    """

    def __init__(self, kinds: Collection[str]) -> None:
        self._kinds = kinds
        self._numbers: dict[str, dict[str, int]] = {}

    def text(self, text: str) -> str:
        """A text in which every find is replaced by its kind and number."""
        out: list[str] = []
        at = 0
        for start, end, kind in sorted(_finds(text, self._kinds)):
            if start >= at:
                out += text[at:start], self._marker(kind, text[start:end])
            at = max(at, end)
        out.append(text[at:])
        return "".join(out) if at else text

    def turn(self, written: Mapping[str, Any]) -> dict[str, Any]:
        """A turn of the form ``turn.v1``, with the identifiers of telemetry left as they are."""
        return {name: self._part(name, part, 1) for name, part in written.items()}

    def _part(self, name: str, part: Any, depth: int) -> Any:
        if name in _IDS:
            return part
        if name in _CONTAINERS and isinstance(part, (list, tuple)) and depth < _MAX_NESTING:
            return [
                {key: self._part(key, item, depth + 1) for key, item in entry.items()}
                if isinstance(entry, Mapping)
                else self.value(entry, depth)
                for entry in part
            ]
        return self.value(part, depth)

    def value(self, value: Any, depth: int = 0) -> Any:
        """Anything of texts, lists and mappings, keys included; what is nested too deep to be looked at is left out."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, (Mapping, list, tuple)) and depth >= _MAX_NESTING:
            return None
        if isinstance(value, Mapping):
            return {self._key(key): self.value(item, depth + 1) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            return [self.value(item, depth + 1) for item in value]
        return value

    def _key(self, key: Any) -> Any:
        return self.text(key) if isinstance(key, str) and ("@" in key or _DIGIT.search(key)) else key

    def _marker(self, kind: str, found: str) -> str:
        same = found.casefold() if kind == "email" else found if kind == "secret" else _BETWEEN_DIGITS.sub("", found)
        numbers = self._numbers.setdefault(kind, {})
        return f"[{kind.upper()}_{numbers.setdefault(same, len(numbers) + 1)}]"


def redacted_turn(turn: Turn, kinds: Collection[str]) -> Turn:
    """The turn as it may leave. The same turn if there is nothing to take out."""
    return Turn.from_dict(redacted(turn.to_dict(), kinds)) if kinds else turn


def redacted(written: Mapping[str, Any], kinds: Collection[str]) -> dict[str, Any]:
    """A turn of the form ``turn.v1`` as it may leave."""
    return Redactor(kinds).turn(written)


def redacted_text(text: str, kinds: Collection[str]) -> str:
    """A text that stands alone, as it may leave."""
    return Redactor(kinds).text(text)


def exporter_of(config: Config) -> Callable[[Turn], Mapping[str, str]] | None:
    """What log events say of a turn's content; None where it stays here."""
    kinds = config.privacy.redact

    def export(turn: Turn) -> dict[str, str]:
        try:
            return exported(turn, kinds)
        except Exception:  # what could not be redacted does not leave; the score does
            return {}

    return export if config.privacy.export_content else None


def exported(turn: Turn, kinds: Collection[str]) -> dict[str, str]:
    """What the user said and got, as attributes that may leave: redacted, and cut after :data:`MOST_EXPORTED` characters."""
    redactor = Redactor(kinds)
    found = {}
    for name, text in ((TURN_INPUT, turn.input), (TURN_OUTPUT, turn.output)):
        if text:
            # What the cut of the first line might split lies behind that of the second.
            found[name] = redactor.text(text[: 2 * MOST_EXPORTED])[:MOST_EXPORTED]
    return found


def _finds(text: str, kinds: Collection[str]) -> Iterator[tuple[int, int, str]]:
    for offset in range(0, max(len(text) - _OVERLAP, 1), SCAN_LIMIT - _OVERLAP):
        window = text[offset : offset + SCAN_LIMIT]
        for detector, start, end in find(window, (EMAILS, NUMBERS)):
            kind = _KIND_OF.get(detector.kind)
            if kind in kinds:
                yield offset + start, offset + end, str(kind)
        if "secret" in kinds:
            for _, start, end in secret_spans(window):
                yield offset + start, offset + end, "secret"
