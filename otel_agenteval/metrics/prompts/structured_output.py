"""Prompts for the judge of a field."""

from __future__ import annotations

from ..lib.prompts import Case, task

SAME_MEANING = task(
    "Judge how similar in meaning the value of the field, which the criteria name, is to the ground truth.",
    steps="List what the ground truth states: facts, numbers, names, dates, negations. Look for each in the value, and for what the value states beyond "
    "it.",
    scale={
        1: "They mean the same.",
        0.75: "The same but for a small omission or addition.",
        0.5: "They agree in part: a main fact is missing or differs.",
        0.25: "The same subject, but most facts differ.",
        0: "No meaning in common, or they contradict each other in the main fact.",
    },
    counts="other numbers, units that are not the same amount, swapped names, a lost or added negation.",
    ignore="wording, language, order, format, spelling of dates and numbers, JSON or plain text. Whether either is true.",
    good='"1.5 km" and "1500 metres" is 1.',
    bad='"approved on 3 May" and "rejected on 3 May" is 0.',
    cases=(
        "Missing evidence: a value that is null, empty or a placeholder such as n/a is 0, unless the ground truth is so too.",
    ),
)

CASES = {
    "llm_semantic_field_equality": Case(
        good={"output": '{"city": "the capital of France"}', "ground_truth": "Paris"},
        bad={"output": '{"city": "a small fishing boat"}', "ground_truth": "Paris"},
        params={"field": "city"},
        place="inside",
    )
}
