"""Prompts for general judges of answers."""

from __future__ import annotations

from ..lib.prompts import MISSING, PARTIAL, Case, task

COHERENT = task(
    "Judge how coherent the answer is as a text.",
    steps="Read it from beginning to end. At each step ask whether the thought follows from what came before and whether it agrees with it. "
    "Quote statements that contradict each other before you decide.",
    scale={
        100: "Every thought follows, the order is sensible, nothing contradicts anything else.",
        75: "One jump or a clumsy order; nothing contradicts.",
        50: "Several jumps, or a contradiction in a minor point.",
        25: "A contradiction in what matters, or hard to follow for the most part.",
        0: "A jumble: sentences without a connection.",
    },
    ignore="whether it is true, complete, polite or right for the question; its length, and whether it is a list, a table or code.",
    good='"The fee is 5 €. It is waived from 500 € on, so you pay nothing." is 100.',
    bad='"There is no fee. The fee of 5 € is due today." is 25 at most.',
    cases=("An answer of one clear sentence is coherent. Declining, or asking back, is judged like any other text.",),
)

FLUENT = task(
    "Judge the language of the text, in the language in which it is written.",
    steps="Quote errors of grammar, spelling and word choice, then phrases that no native writer would use, then say how easily it reads.",
    scale={
        100: "Flawless, and reads as if a careful native writer wrote it.",
        75: "One or two slips that do not disturb.",
        50: "Several errors or awkward phrases; it is understood without effort.",
        25: "Errors in most sentences; it is understood with effort.",
        0: "It cannot be understood.",
    },
    counts="the rules of the text's own language and region; of two languages in one text without a reason, the mixture is an error.",
    ignore="what it says, whether it is true, its length; code, names, quotations, technical terms, and the terse style of lists and tables.",
    bad='"I has sended you the invoice yesterday." is 25.',
)

RUBRIC = task(
    "Judge the answer by the rubric, and by nothing else.",
    steps="Take the rubric requirement by requirement. For each, find the words of the answer that meet it or miss it. Then give the score "
    "and the verdict that follow from these.",
    scale={
        1: "Every requirement is met.",
        0.75: "All that matters is met; something small is missing.",
        0.5: "Met in part: about half of what matters.",
        0.25: "Little of it is met.",
        0: "Not met, or the opposite of it.",
    },
    counts="pass is true only where the rubric as a whole is met; where it names its own levels or its own rule for passing, these decide. A "
    "rubric that forbids something is met by an answer without it.",
    ignore="qualities that the rubric does not speak of, such as length, style or politeness.",
    cases=(MISSING, PARTIAL, "An answer that declines, or is empty, is judged by the rubric like any other."),
)

ASPECT = task(
    "Decide whether the answer meets the rubric.",
    steps="Take the rubric requirement by requirement, and find the words of the answer that meet it or miss it; then decide.",
    counts="true: all of it is met. false: it is not met, only in part, or the answer does not show whether it is.",
    ignore="qualities that the rubric does not speak of, such as length, style or politeness.",
    good='rubric "names a price", answer "It costs 5 €.": true.',
    bad='rubric "names a price and a date", answer "It costs 5 €.": false.',
    cases=(MISSING, "An answer that declines, or is empty, is judged by the rubric like any other."),
)

CUSTOM = task(
    "Judge how well the answer meets the rubric, and nothing else.",
    steps="Take the rubric requirement by requirement. For each, find the words of the answer that meet it or miss it. Then give one score "
    "that follows from these.",
    scale={
        1: "Every requirement is met.",
        0.75: "All that matters is met; something small is missing.",
        0.5: "Met in part: about half of what matters.",
        0.25: "Little of it is met.",
        0: "Not met, or the opposite of it.",
    },
    counts="where the rubric names levels of its own, these decide; a level of 1 to 5 becomes 0 to 1 by (level - 1) / 4.",
    ignore="qualities that the rubric does not speak of, such as length, style or politeness.",
    cases=(MISSING, PARTIAL, "An answer that declines, or is empty, is judged by the rubric like any other."),
)

_ASKED = "When is my order A-17 delivered?"
_CLEAR = "Your order A-17 is delivered on Friday between 9 and 12. You do not have to be at home."
_JUMBLE = "Friday it. There is no order. Your order A-17 is deliver yesterday and on Monday, so it never come, enjoy."
_RUBRIC = "Names the day of delivery and says whether somebody has to be at home."

CASES = {
    "llm_coherence": Case(good={"input": _ASKED, "output": _CLEAR}, bad={"input": _ASKED, "output": _JUMBLE}),
    "llm_fluency": Case(good={"output": _CLEAR}, bad={"output": _JUMBLE}),
    **{
        name: Case(
            good={"input": _ASKED, "output": _CLEAR},
            bad={"input": _ASKED, "output": "Please look at our web site."},
            params={"rubric": _RUBRIC},
        )
        for name in ("llm_rubric", "llm_aspect_critic", "llm_custom_judge")
    },
    "llm_g_eval": Case(
        good={"input": _ASKED, "output": _CLEAR},
        bad={"input": _ASKED, "output": "Please look at our web site."},
        params={"criteria": _RUBRIC},
    ),
}
