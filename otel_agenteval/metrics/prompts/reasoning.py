"""Prompts for judges of reasoning."""

from __future__ import annotations

from ..lib.prompts import Case, task

COHERENT = task(
    "Judge whether the reasoning leads to the answer.",
    steps="Follow the reasoning to what it concludes; compare that with the answer. Name the step that does not follow before you decide.",
    scale={
        1: "Each step follows from those before, and the answer is what the reasoning concludes.",
        0.75: "One small leap; the answer is what it concludes.",
        0.5: "A step contradicts another, or the answer adds something that was not reasoned about.",
        0.25: "The answer differs from the conclusion in what matters.",
        0: "The answer has nothing to do with the reasoning, or says the opposite.",
    },
    counts="that thoughts which were tried and given up are given up openly: that is no contradiction.",
    ignore="whether reasoning and answer are true, their style and length.",
    good='"5 days from Monday is Saturday; the shop is closed then, so Monday." and "On Monday." is 1.',
    bad='"It must be Monday." and "On Friday." is 0.25 at most.',
    cases=(
        "Missing evidence: reasoning that breaks off before a conclusion is 0.5 at most.",
        "Declining is coherent if the reasoning decides to; an empty answer is 0.",
    ),
)

GROUNDED = task(
    "Judge whether the reasoning is grounded in its sources: the results of the tools, the context and the user's input.",
    steps="List what the reasoning takes for a fact about the matter. For each, find the place in a source that states it, or from which it "
    "follows; then score by the share and weight of those that have one.",
    scale={
        1: "Every fact stands in a source, or follows from one.",
        0.75: "A minor fact has no source.",
        0.5: "About half of what matters has a source.",
        0.25: "Most of what matters has none.",
        0: "Nothing can be traced, or the reasoning contradicts its sources.",
    },
    counts="a contradicted fact weighs more than one without a source.",
    ignore="common knowledge, plans, questions, and guesses that are called so.",
    bad='result "timeout", reasoning "The tool says 18 °C." is 0.',
    cases=(
        "Missing evidence: a result may have been cut off; what is cut off is neither for nor against a fact, unless the rest contradicts it.",
    ),
)

EFFICIENT = task(
    "Judge how efficient the reasoning is for the task.",
    steps="Say first how much thought the task needs: none, a step or two, or many. Then mark repetitions, detours, and doubts about what is "
    "certain. The score compares the two.",
    scale={
        1: "Minimal and targeted: every step is needed.",
        0.75: "A few words more than needed.",
        0.5: "About half of it is repetition, detour or doubt about what is certain.",
        0.25: "Most of it is not needed.",
        0: "Vastly over-reasoned: pages on what is plain.",
    },
    counts="the lengths of the whole texts, in characters: the end of the reasoning may be cut off, and long reasoning on a hard task is no fault.",
    ignore="whether the reasoning is right, and its style.",
    good='task "17 × 3", reasoning "17 × 3 = 51." is 1.',
    bad="the same in 2,000 characters with three ways to check it is 0.25 at most.",
    cases=("Too little thought is no fault here. Reasoning that ends in declining is judged like any other.",),
)

_ASKED = "Do I need a coat in Paris?"
_CALLS = [{"name": "weather", "arguments": {"city": "Paris"}, "result": "18 °C, sunny"}]
_THOUGHT = "The tool says 18 °C and sunny in Paris. That is mild, so no coat is needed."
_ASTRAY = "The tool says that it snows. It always snows. Or perhaps not. Let me think again. Perhaps it snows. " * 3

_PAIR = Case(
    good={"input": _ASKED, "reasoning": _THOUGHT, "tool_calls": _CALLS, "output": "No, it is 18 °C and sunny."},
    bad={"input": _ASKED, "reasoning": _ASTRAY, "tool_calls": _CALLS, "output": "No, it is 18 °C and sunny."},
    place="reasoning",
)

CASES = dict.fromkeys(("llm_reasoning_coherence", "llm_reasoning_groundedness", "llm_reasoning_efficiency"), _PAIR)
