"""Topics of a failure mode: failed turns that are split by their texts."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from ..core.finding import value_at
from ..core.turn import Turn
from ..evaluation.first_fault import Fault
from ..evaluation.redaction import redacted_text
from ..outlets.store.reader import EXAMPLES, StoredTopic
from ..outlets.turn_text import one_line
from ..statistics.topics import LEAST, directions, distinguishing_words, general_texts, new_topics, positions

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
    message = value_at(turn, f"{fault.path}.error.message")
    if not message and fault.kind == "tool_error":  # the tool's result reports the error
        result = value_at(turn, f"{fault.path}.result")
        message = None if result is None else str(result)
    text = " ".join(part for part in (explanation, message) if isinstance(part, str) and part.strip())
    return redacted_text((text or str(value_at(turn, "input") or ""))[:_LONGEST_TEXT], redact)


class TopicFinder:
    def __init__(self, embed: Embed, model: str, known: Sequence[StoredTopic], now: float) -> None:
        self._embed = embed
        self._general = embed(general_texts())
        self._known = known
        self._now = now
        self.model = model

    def topics_of(self, mode: str, texts: Sequence[FailureText], others: Sequence[str]) -> list[Topic]:
        """Return a mode's topics, most frequent first. Known ones keep their ids. Words of a name are rare in ``others``."""
        texts = [each for each in texts if each.text.strip()]
        if len(texts) < 2 * LEAST:
            return []
        plain = [_REDACTED.sub(" ", each.text) for each in texts]
        vectors = directions(self._embed(plain), self._general)
        topics = [topic for topic in self._known if topic.mode == mode]
        found = new_topics(vectors, [topic.center for topic in topics])
        members = _members(vectors, [*(topic.center for topic in topics), *(new.center for new in found)])
        for new, of_topic in zip(found, members[len(topics) :], strict=True):
            inside = {*of_topic}
            outside = [text for at, text in enumerate(plain) if at not in inside]
            words = distinguishing_words([plain[at] for at in of_topic], [*outside, *others[:_MOST_OTHERS]])
            words = words or [one_line(texts[of_topic[0]].text, _LONGEST_NAME)]
            new_id = _new_id(mode, words, {topic.id for topic in topics})
            topics.append(StoredTopic(mode, new_id, new.center, new.stability, " ".join(words), "", self._now))
        shown = [
            Topic(about, len(of_topic), [texts[at] for at in of_topic[:EXAMPLES]])
            for about, of_topic in zip(topics, members, strict=True)
            if of_topic
        ]
        if len(shown) == 1 and shown[0].turns > _WHOLE * len(texts):
            return []
        return sorted(shown, key=lambda topic: (-topic.turns, topic.about.id))


def _members(vectors: np.ndarray, centers: Sequence[Sequence[float]]) -> list[list[int]]:
    """Return the indexes of each topic's texts, those nearest to its center first."""
    nearest = [
        (position.topic, -position.cosine, at) for at, position in enumerate(positions(vectors, centers)) if position is not None
    ]
    found: list[list[int]] = [[] for _ in centers]
    for topic, _, at in sorted(nearest):
        found[topic].append(at)
    return found


def _new_id(mode: str, words: Sequence[str], taken: Collection[str]) -> str:
    """Return a hash of the mode and as few words as are needed to make it unique. More empty words make it unique at last."""
    texts = ("\0".join([mode, *words[:number], *[""] * (number - len(words))]) for number in count(1))
    ids = (hashlib.blake2b(text.encode(errors="replace"), digest_size=4).hexdigest() for text in texts)
    return next(each for each in ids if each not in taken)
