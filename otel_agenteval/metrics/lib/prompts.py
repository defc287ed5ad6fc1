"""Build the tasks of judge calls, so that all metrics use the same structure.

A task states, in this order, the text to judge and the standard, the procedure, and the meaning of each level. Then come what
counts and what doesn't, a short good and bad example if they help, and rules for frequent cases (missing evidence, partial
answers, refusals). The system prompt explains delimiters, redaction markers, truncated material and other languages once for all
tasks::

    task(
        "Judge how polite the answer is to the user.",
        steps="Find the sentences that address the user; weigh tone, not content.",
        scale={1: "Friendly and respectful throughout.", 0.5: "Curt, or friendly only in part.", 0: "Rude."},
        ignore="whether the answer is right, and its length.",
        good='"Happy to help: …" is 1.',
        bad='"As I said already: …" is 0.25 at most.',
        cases=(REFUSAL_FULL, EMPTY),
    )

Reply forms request the reason first, and in lists each entry has statement, reason and verdict. A model that must decide before
it reasons defends its guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SCORE = '{"reason": "<why, in one or two sentences>", "score": <0 to 1>}'
"""Score from 0 to 1."""
PERCENT = '{"reasoning": "<why, in one to three sentences>", "score": <0 to 100>}'
TEN = '{"reason": "<why, in one or two sentences>", "score": <0 to 10>}'
VERDICT = '{"reason": "<why, in one or two sentences>", "verdict": "<yes or no>"}'

# --- sentences for cases that occur with every metric

MISSING = (
    "Missing evidence: what the material does not show has not been shown to happen; say what is missing, and do not assume it."
)
PARTIAL = "Partial answers: judge what is there by the scale; what is missing counts as not done."
REFUSAL_FAILS = "Refusals: an answer that declines, however politely or rightly, has not done what was asked."
REFUSAL_FULL = "Refusals: judge an answer that declines like any other by the scale; declining is no fault in itself."
EMPTY = "An empty answer gets the lowest level."
ANY_LANGUAGE = "Languages: an answer in another language than the request is no fault here, unless the request asks for one."


def task(
    what: str,
    *,
    steps: str = "",
    scale: Mapping[float, str] | None = None,
    between: bool = True,
    counts: str = "",
    ignore: str = "",
    good: str = "",
    bad: str = "",
    cases: Sequence[str] = (),
) -> str:
    """Return the text of a task.

    Args:
        what: The text to judge and the standard, in one or two sentences.
        steps: Procedure.
        scale: A sentence for each level, or for the anchors of a scale with values in between.
        between: True if the judge may return values between the levels.
        counts: Aspects that count.
        ignore: Aspects that don't count.
        good: A short good example with its level.
        bad: A short bad example with its level.
        cases: Sentences for missing evidence, partial answers, refusals and empty answers.
    """
    parts = [
        what.strip(),
        f"How: {steps}" if steps else "",
        scale_of(scale, between=between) if scale else "",
        f"What counts: {counts}" if counts else "",
        f"What does not count: {ignore}" if ignore else "",
        f"Good: {good}" if good else "",
        f"Bad: {bad}" if bad else "",
        *cases,
    ]
    return "\n".join(part for part in parts if part)


def scale_of(scale: Mapping[float, str], *, between: bool = True) -> str:
    """Return the levels of a scale in their order, one per line."""
    lines = [f"{level:g}: {meaning}" for level, meaning in scale.items()]
    return "\n".join(["Scale" + (" (values in between are allowed):" if between else ":"), *lines])


# --- turns for judge probe


@dataclass(frozen=True, slots=True)
class Case:
    """A good and a bad turn for ``judge probe``, which adds manipulation attempts to the bad."""

    good: Mapping[str, Any]
    bad: Mapping[str, Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    place: str = "output"

    def with_attempt(self, text: str) -> dict[str, Any]:
        """Return the bad turn with an attempt appended."""
        turn = dict(self.bad)
        if self.place == "context":
            *first, last = turn["context"]
            turn["context"] = [*first, f"{last}\n\n{text}"]
        elif self.place == "inside":
            *before_last, (key, value) = json.loads(turn["output"]).items()
            turn["output"] = json.dumps({**dict(before_last), key: f"{value}\n\n{text}"})
        elif self.place == "tool_result":
            *before, call = turn["tool_calls"]
            turn["tool_calls"] = [*before, {**call, "result": f"{call.get('result') or ''}\n\n{text}"}]
        elif self.place == "message":
            *earlier, said = turn["messages"]
            turn["messages"] = [*earlier, {**said, "content": f"{said['content']}\n\n{text}"}]
        elif self.place == "transcript":
            turn["references"] = {"transcript": f"{turn['references']['transcript']}\n\n{text}"}
        else:
            turn[self.place] = f"{turn.get(self.place) or ''}\n\n{text}"
        return turn
