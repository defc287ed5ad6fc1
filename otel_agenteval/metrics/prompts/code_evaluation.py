"""Prompts for judges of code."""

from __future__ import annotations

from ..lib.prompts import Case, task

READABLE = task(
    "Judge how readable the code in the output is for somebody who has to change it.",
    steps="Look at naming, structure (length and nesting of functions, repetition), comments and docstrings, and consistency of style. The reason "
    "names the gravest weakness.",
    scale={
        10: "A pleasure to read: names say what things are, short units, comments where they are needed.",
        7.5: "Good; small lapses, such as a vague name or a missing comment.",
        5: "Readable with effort: long or nested units, several vague names.",
        2.5: "Hard to read: one block, names of one letter, no structure.",
        0: "Cannot be understood.",
    },
    counts="the code alone, by the usual style of its language. Short code needs few comments.",
    ignore="whether it is correct, fast or safe; the text around it; the language of names and comments, if it is one throughout.",
    good="def total(prices): return sum(prices) is 10.",
    bad="def f(a,b,c): with x1, x2, x3 and five nested ifs is 2.5.",
    cases=("Partial code: judge the fragment as one; what is left out on purpose is no fault.",),
)
CORRECT = task(
    "Judge how correctly the code in the output does what the specification asks for. You read it; nothing is run.",
    steps="List what the specification asks for, with edge cases that it implies (empty, negative, missing, very large input). Follow the code through "
    "each of them. Then name the issues: what goes wrong, and for which input. The score follows from the issues.",
    scale={
        10: "Meets the specification in full, in all cases.",
        7.5: "Right in all usual cases; an edge case is wrong.",
        5: "Right in part: a part of the specification is missing or wrong.",
        2.5: "Mostly wrong, or does not run; the idea is right.",
        0: "Does not do what was asked for at all.",
    },
    counts="errors in logic, syntax, types, interfaces and names that were asked for; functions that do not exist in the language or library.",
    ignore="style, speed, and the text around the code, unless the specification asks for it. Extra code that does no harm.",
    good='"sum of a list", code: return sum(xs): 10.',
    bad='"mean of a list, 0 if empty", code: return sum(xs) / len(xs): 7.5, it fails on an empty list.',
    cases=(
        "Missing evidence: what code calls and does not show works as its name says; where the specification is vague, its plainest meaning counts.",
        "Partial answers: parts that are left as a comment or TODO are missing. No issues: an empty list.",
    ),
)

_ASKED = "Write a Python function mean(xs) that gives the mean of a list of numbers, and 0 for an empty list."
_GOOD = '```python\ndef mean(xs):\n    """Mean of a list of numbers; 0 for an empty list."""\n    return sum(xs) / len(xs) if xs else 0\n```'
_BAD = "```python\ndef q(a):\n  l=0;O=1\n  for l1 in a:\n   for ll in a: O=O*l1-l;l=O\n  return print(l,O,\n```"
CASES = dict.fromkeys(
    ("llm_code_readability", "llm_code_correctness"), Case({"input": _ASKED, "output": _GOOD}, {"input": _ASKED, "output": _BAD})
)
