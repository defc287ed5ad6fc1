"""Failed turns, grouped by first fault. Each group (*failure mode*) has a rate, the change in this rate, and topics.

A *topic* is a set of turns in a failure mode whose texts are similar.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Literal, NamedTuple

from ..core.finding import value_at
from ..core.turn import Turn
from ..evaluation.first_fault import Fault
from ..evaluation.redaction import redacted_text
from ..outlets.store.reader import EXAMPLES, FailedTurns, ModeCounts, StoredModes, StoredTopic
from ..outlets.turn_text import number_of, one_line
from ..statistics.intervals import Interval, newcombe, wilson
from ..statistics.topics import LEAST, directions, distinguishing_words, general_texts, new_topics, positions
from .formatting import points, with_interval
from .render import Table, TabularReport

Trend = Literal["new", "growing", "steady", "shrinking", "gone"]
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
_LONGEST_TEXT = 1_000
_MOST_OTHERS = 500
_REDACTED = re.compile(r"\[[A-Z]+_\d+\]")
_WHOLE = 0.9
"""If a failure mode's only topic has more than this share of the texts, omit the topic, because it describes the whole mode."""


class ModeShare(NamedTuple):
    group: str | None
    turns: int
    rate: float | None
    """Share of all turns, estimated from the judged turns. None without turns."""
    interval: Interval


class FailureText(NamedTuple):
    turn_id: str
    text: str


@dataclass(frozen=True, slots=True)
class Topic:
    about: StoredTopic
    turns: int
    nearest: list[FailureText]
    """Up to three turns whose texts are nearest to the topic's center, nearest first."""

    @property
    def title(self) -> str:
        return f"{self.about.name}: {self.about.description}" if self.about.description else self.about.name


@dataclass(slots=True)
class FailureMode:
    fault: Fault
    """Fault of one turn in the failure mode. The faults of all its turns have the same kind, step, and error."""
    parts: list[ModeShare]
    rate: float
    interval: Interval
    change: Interval
    """95 % interval of the rate's change between the last two ``parts``. Parts are groups, or halves of the time range."""
    examples: list[str]
    topics: list[Topic] = field(default_factory=list)

    @property
    def turns(self) -> int:
        return sum(part.turns for part in self.parts)

    @property
    def trend(self) -> Trend:
        low, high = self.change
        if low > 0:
            return "growing" if self.parts[-2].turns else "new"
        if high < 0:
            return "shrinking" if self.parts[-1].turns else "gone"
        return "steady"


class FailedTurn(NamedTuple):
    turn_id: str
    at: float
    """Start time in seconds since the Unix epoch, or 0 if unknown."""
    fault: Fault
    text: str = ""


def counted(failed: Iterable[FailedTurn], totals: tuple[int, int], middle: float) -> StoredModes:
    """Count failed turns by failure mode. ``totals`` contains the total number of turns before ``middle`` and after it."""
    groups: dict[str, list[FailedTurn]] = {}
    for turn in sorted(failed, key=lambda turn: -turn.at):
        groups.setdefault(turn.fault.mode, []).append(turn)
    modes = []
    for turns in groups.values():
        after = sum(turn.at >= middle for turn in turns)
        before = len(turns) - after
        examples = [turn.turn_id for turn in turns[:EXAMPLES]]
        modes.append(
            ModeCounts(turns[0].fault, (FailedTurns(before, before, before), FailedTurns(after, after, after)), examples)
        )
    return StoredModes(modes, totals)


def modes_of(found: StoredModes) -> list[FailureMode]:
    modes = []
    for fault, parts, examples in found.modes:
        whole = FailedTurns(*(sum(column) for column in zip(*parts, strict=True)))
        share = _share(whole, sum(found.totals))
        of_parts = [_share(part, total) for part, total in zip(parts, found.totals, strict=True)]
        shares = [
            ModeShare(group, part.turns, one[0] / one[1] if one[1] else None, wilson(*one) if one[1] else (0.0, 1.0))
            for group, part, one in zip(found.groups or (None, None), parts, of_parts, strict=True)
        ]
        known = len(of_parts) > 1 and of_parts[-2][1] and of_parts[-1][1]
        change = newcombe(of_parts[-2], of_parts[-1]) if known else (-1.0, 1.0)
        modes.append(FailureMode(fault, shares, share[0] / share[1], wilson(*share), change, examples))
    return sorted(modes, key=lambda mode: (-mode.turns, mode.fault))


def _share(failed: FailedTurns, total: int) -> tuple[float, float]:
    """Return the effective numbers of failed turns and of all turns (numbers of independent turns with the same variance)."""
    total = max(total, failed.turns)
    if not failed.turns:
        return 0.0, float(total)
    of_one = failed.squares / failed.represented
    return min(failed.represented, total) / of_one, total / of_one


# --- topics


def failure_text(turn: Turn | Mapping[str, Any] | None, fault: Fault, explanation: str | None, redact: Collection[str]) -> str:
    """Return a failure's redacted explanation and error message. If both are missing, return the turn's input."""
    message = value_at(turn, f"{fault.path}.error.message")
    if not message and fault.kind == "tool_error":  # the tool's result contains the error
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
        """Return a mode's topics, most frequent first. Known topics keep their IDs. ``others`` contains texts from other modes."""
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
            words = words or [one_line(texts[of_topic[0]].text, 60)]
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


def _members(vectors: Any, centers: Sequence[Sequence[float]]) -> list[list[int]]:
    """Return one list per topic: the indexes of the topic's texts, nearest to the topic's center first."""
    nearest = sorted((one.topic, -one.cosine, at) for at, one in enumerate(positions(vectors, centers)) if one is not None)
    return [[at for topic, _, at in nearest if topic == number] for number in range(len(centers))]


def _new_id(mode: str, words: Sequence[str], taken: Collection[str]) -> str:
    """Return a unique hash of the failure mode and the topic's first words. If needed, more words make the hash unique."""
    texts = ("\0".join([mode, *words[:number], *[""] * (number - len(words))]) for number in count(1))
    ids = (hashlib.blake2b(text.encode(errors="replace"), digest_size=4).hexdigest() for text in texts)
    return next(each for each in ids if each not in taken)


# --- as texts ------------------------------------------------------------------------------------------------------

_MOST_GROUPS = 4
"""Maximum number of groups in a table. With more groups, only the last groups are shown."""


def as_report(modes: Sequence[FailureMode]) -> TabularReport:
    title = f"{number_of(sum(mode.turns for mode in modes), 'turn')} failed, in {number_of(len(modes), 'failure mode')}"
    groups = [part.group for part in modes[0].parts if part.group is not None][-_MOST_GROUPS:] if modes else []
    heads = (
        "id",
        "mode",
        "failed turns",
        *(map("of {}".format, groups) if groups else ["of all turns"]),
        f"trend, {groups[-2]} → {groups[-1]}" if len(groups) > 1 else "trend",
        "change, 95 % interval",
        "examples",
    )
    rows: list[tuple[str, ...]] = []
    for mode in modes:
        down, up = mode.change
        shares = [with_interval(part.rate, part.interval) for part in mode.parts if part.group is not None][-_MOST_GROUPS:]
        cells = (
            mode.fault.mode, mode.fault.title, f"{mode.turns:,}", *(shares or [with_interval(mode.rate, mode.interval)]), mode.trend,
            f"{points(down)} … {points(up)}", " ".join(mode.examples),
        )  # fmt: skip
        rows.append(cells)
        for topic in mode.topics:
            first = f"  {topic.about.id}", f"  {topic.title}", f"{topic.turns:,}", f"stability {topic.about.stability:.2f}"
            rows.append((*first, *[""] * (len(cells) - len(first) - 1), " ".join(one.turn_id for one in topic.nearest)))
    return TabularReport("Failure modes", [Table(title, heads, rows)], as_data(modes))


def as_data(modes: Sequence[FailureMode]) -> list[dict[str, Any]]:
    return [
        {
            "id": mode.fault.mode, "kind": mode.fault.kind, "step": mode.fault.step or None, "error": mode.fault.error or None, "failed": mode.turns,
            **(
                {"halves": [part.turns for part in mode.parts]}
                if any(part.group is None for part in mode.parts)
                else {"groups": [{**part._asdict(), "interval": list(part.interval)} for part in mode.parts]}
            ),
            "rate": mode.rate, "interval": list(mode.interval), "change": list(mode.change), "trend": mode.trend, "examples": mode.examples,
            "topics": [
                {
                    "id": topic.about.id, "name": topic.about.name, "description": topic.about.description or None, "failed": topic.turns,
                    "stability": topic.about.stability, "examples": [one.turn_id for one in topic.nearest],
                }
                for topic in mode.topics
            ],
        }
        for mode in modes
    ]  # fmt: skip
