"""Prompts for the judge of a workflow's output."""

from __future__ import annotations

from ..lib.prompts import MISSING, PARTIAL, REFUSAL_FAILS, Case, task

OUTPUT = task(
    "Judge the final output of a workflow by the criteria, and by the request that it was to fulfil.",
    steps="Check the output against each part of the request, then against each criterion, and name what is missing or wrong. The score follows from "
    "that, weighed by what it matters to whoever uses the output.",
    scale={
        100: "Meets the request and every criterion in full; ready for use.",
        75: "Meets them but for small points; usable as it is.",
        50: "Meets them in part; needs work before it can be used.",
        25: "Meets little of them; most would have to be done again.",
        0: "Meets none of them, or is about something else.",
    },
    counts="wrong facts, numbers that do not agree with one another, missing parts, a form that was not kept, notes and "
    "placeholders.",
    ignore="how the workflow got there, length as such, and taste where the criteria say nothing of it.",
    good="asked for three options with prices: three, each with its price, is 100.",
    bad="for the same, two options without a price are 25.",
    cases=(MISSING, PARTIAL, REFUSAL_FAILS),
)

_ASKED = "Name three European capitals with their rivers, as a list."
CASES = {
    "llm_workflow_output_quality": Case(
        {"input": _ASKED, "output": "- Paris: Seine\n- Vienna: Danube\n- London: Thames"},
        {"input": _ASKED, "output": "The draft is still to be written. See the notes on bicycles."},
    )
}
