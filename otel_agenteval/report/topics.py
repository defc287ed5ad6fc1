"""Topics of a failure mode: failed turns that are split by their texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ..core.finding import value_at
from ..core.turn import Turn
from ..evaluation.first_fault import Fault
from ..evaluation.redaction import redacted_text
from ..outlets.store.reader import EXAMPLES, StoredTopic
from ..outlets.turn_text import one_line
from ..statistics.topics import LEAST, NewTopic, directions, distinguishing_words, general_texts, new_topics, positions

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
_LONGEST_TEXT = 1_000
_LONGEST_NAME = 60
_MOST_OTHERS = 500
_REDACTED = re.compile(r"\[[A-Z]+_\d+\]")
_WHOLE = 0.9
"""Share of a mode's texts from which a single topic is the mode itself."""


class FailureText(NamedTuple):
    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Topic:
    about: StoredTopic
    turns: int
    nearest: list[FailureText]
    """Up to three turns, those nearest to the center first."""

    @property
    def title(self) -> str:
        return f"{self.about.name}: {self.about.description}" if self.about.description else self.about.name


def failure_text(turn: Turn | Mapping[str, Any] | None, fault: Fault, explanation: str | None, redact: Collection[str]) -> str:
    """Return the redacted text about a failed turn's failure, with a judge's ``explanation``, or an empty text."""
    message = value_at(turn, f"{fault.path}.error.message") or _reported_error(turn, fault)
    text = " ".join(part for part in (explanation, message) if isinstance(part, str) and part.strip())
    return redacted_text((text or str(value_at(turn, "input") or ""))[:_LONGEST_TEXT], redact)


def _reported_error(turn: Turn | Mapping[str, Any] | None, fault: Fault) -> str | None:
    """Return a tool's result that reports an error."""
    result = value_at(turn, f"{fault.path}.result") if fault.kind == "tool_error" else None
    return result if result is None or isinstance(result, str) else str(result)


class TopicFinder:
    def __init__(self, embed: Embed, model: str, known: Sequence[StoredTopic], now: float) -> None:
        self._embed = embed
        self._general = embed(general_texts())
        self._known = known
        self._now = now
        self.model = model

    def topics_of(self, mode: str, texts: Sequence[FailureText], others: Sequence[str]) -> list[Topic]:
        """Return a mode's topics, most frequent first. Known ones keep their ids. Words of a name are rare in ``others``."""
        texts = [one for one in texts if one.text.strip()]
        if len(texts) < 2 * LEAST:
            return []
        plain = [_REDACTED.sub(" ", one.text) for one in texts]
        placed = directions(self._embed(plain), self._general)
        topics = [topic for topic in self._known if topic.mode == mode]
        centers = [topic.center for topic in topics]
        found = new_topics(placed, centers)
        members = _members(placed, [*centers, *(new.center for new in found)])
        for at, new in enumerate(found, start=len(topics)):
            inside = {*members[at]}
            outside = [text for place, text in enumerate(plain) if place not in inside]
            words = distinguishing_words([plain[place] for place in members[at]], [*outside, *others[:_MOST_OTHERS]])
            topics.append(self._named(mode, new, words or [one_line(texts[members[at][0]].text, _LONGEST_NAME)], topics))
        shown = [
            Topic(about, len(of_topic), [texts[at] for at in of_topic[:EXAMPLES]])
            for about, of_topic in zip(topics, members, strict=True)
            if of_topic
        ]
        if len(shown) == 1 and shown[0].turns > _WHOLE * len(texts):
            return []
        return sorted(shown, key=lambda topic: (-topic.turns, topic.about.id))

    def _named(self, mode: str, new: NewTopic, words: Sequence[str], known: Sequence[StoredTopic]) -> StoredTopic:
        taken = {topic.id for topic in known}
        tried = (
            "\0".join([mode, *words[:number], *[""] * (number - len(words))]) for number in range(1, len(taken) + len(words) + 2)
        )
        ids = (hashlib.blake2b(text.encode(errors="replace"), digest_size=4).hexdigest() for text in tried)
        first = next(found for found in ids if found not in taken)
        return StoredTopic(mode, first, new.center, new.stability, " ".join(words), "", self._now)


def _members(placed: np.ndarray, centers: Sequence[Sequence[float]]) -> list[list[int]]:
    """Return the texts of each topic, those nearest to its center first."""
    found: list[list[tuple[float, int]]] = [[] for _ in centers]
    for at, position in enumerate(positions(placed, centers)):
        if position is not None:
            found[position.topic].append((-position.cosine, at))
    return [[at for _, at in sorted(of_topic)] for of_topic in found]
