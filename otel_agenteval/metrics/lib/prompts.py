"""How the task of a judge is put together, so that every metric asks in the same way.

A task says, in this order: what is judged and by what; how to proceed; what each level means; what counts and what does not; a short good
and bad case where they help; and what to do in the cases that every judge meets (missing evidence, partial answers, refusals).
Delimiters, redaction marks, shortened material and other languages are explained in the system prompt, once for all.

    task(
        "Judge how polite the answer is to the user.",
        steps="Find the sentences that address the user; weigh tone, not content.",
        scale={1: "Friendly and respectful throughout.", 0.5: "Curt, or friendly only in part.", 0: "Rude."},
        ignore="whether the answer is right, and its length.",
        good='"Happy to help: …" is 1.',
        bad='"As I said already: …" is 0.25 at most.',
        cases=(REFUSAL_FULL, EMPTY),
    )

Reply forms list the reason first, and within entries statement, reason, verdict: a model that has to decide before it has thought defends
what it guessed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

SCORE = '{"reason": "<why, in one or two sentences>", "score": <0 to 1>}'
"""0 to 1."""
PERCENT = '{"reasoning": "<why, in one to three sentences>", "score": <0 to 100>}'
TEN = '{"reason": "<why, in one or two sentences>", "score": <0 to 10>}'
VERDICT = '{"reason": "<why, in one or two sentences>", "verdict": "<yes or no>"}'

# --- sentences for cases that every judge meets

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
    """The text of a task.

    Args:
        what: what is judged and by what: one or two sentences.
        steps: how to proceed.
        scale: a sentence for every level that can be given, or for the anchors of a scale that has levels between them.
        between: whether values between the levels may be given.
        counts: what counts.
        ignore: what does not.
        good: a short good case, and its level.
        bad: a short bad case, and its level.
        cases: sentences for missing evidence, partial answers, refusals, empty answers.
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
    """The levels of a scale, one a line, in the order given."""
    lines = [f"{level:g}: {meaning}" for level, meaning in scale.items()]
    return "\n".join(["Scale" + (" (values in between are allowed):" if between else ":"), *lines])


# --- how a prompt is probed


@dataclass(frozen=True, slots=True)
class Case:
    """Two turns that a judge has to tell apart, for ``judge probe``: in the bad one, attempts to talk it round are then put.

    Args:
        good: a turn of form ``turn.v1`` that the metric finds good.
        bad: one that it does not.
        params: required parameters of the metric.
        place: the field of the bad turn at whose end an attempt stands: ``output``, ``reasoning``, ``input``, ``context``, ``tool_result``,
            the last ``message`` of a conversation, the ``transcript`` of a recording, or ``inside`` the last text of an output that is a JSON object.
    """

    good: Mapping[str, Any]
    bad: Mapping[str, Any]
    params: Mapping[str, Any] = field(default_factory=dict)
    place: str = "output"

    def with_attempt(self, text: str) -> dict[str, Any]:
        """The bad turn with an attempt in it."""
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
