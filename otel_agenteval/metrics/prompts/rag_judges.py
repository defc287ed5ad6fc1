"""Prompts for judges of retrieved context and of answers from it."""

from __future__ import annotations

from ..lib.prompts import MISSING, PARTIAL, REFUSAL_FULL, Case, task

_EXAMPLE = '"Japan is a country in Asia, and its capital is Tokyo." makes two: "Japan is a country in Asia." and "The capital of Japan is Tokyo."'
_SPLIT = (
    "Go through it sentence by sentence. Each {one} says one thing and can be understood alone: replace pronouns and what is implied by what "
    "they stand for; keep numbers, names, conditions and negations as they are."
)
_ALONE = "Decide each by itself and by the context alone."
_QUOTE = "quote the sentence of the context that decides it, or say that there is none; then give the verdict"

FAITHFUL = task(
    "Judge how faithful the answer is to the context: whether each claim that it makes is stated in the context or follows from it.",
    steps="List the claims of the answer; look for the sentence of the context behind each; then score by their share and weight.",
    scale={
        100: "Every claim is stated in the context or follows from it.",
        75: "A minor claim has no support.",
        50: "About half of what matters has support.",
        25: "Most of what matters has none.",
        0: "Nothing has support, or the main claim is contradicted.",
    },
    ignore="whether the answer is right, complete or helpful; what is true but not in the context does not count as faithful.",
    cases=("Greetings, questions and saying that the context does not tell are no claims. An answer without claims is 100.",),
)

STATEMENTS = task(
    "Split the answer into the statements that it makes. Do not judge them.",
    steps=_SPLIT.format(one="statement"),
    counts="what the answer says, right or wrong, and nothing else. The question only helps to understand it: make no statements of the question.",
    ignore="greetings, courtesies, questions, offers and instructions to the user.",
    good=_EXAMPLE,
    cases=("An answer that states nothing, such as a refusal without reasons, has an empty list.",),
)

INFERRED = task(
    "Decide for each statement whether it can be inferred from the context: yes or no.",
    steps=f"{_ALONE} For each statement in its order, {_QUOTE}.",
    counts="yes: the context states it, in any words, or it follows from it without further knowledge. no: the context says otherwise, says only a "
    "part of it, or nothing about it.",
    ignore="what you know yourself; whether the statement is true.",
    good='context "The shop is open from 9 to 17.", statement "The shop opens at 9.": yes.',
    bad='the same context, statement "The shop opens at 9 on Sundays.": no.',
)

RELEVANT = task(
    "Judge how relevant the answer is to the question: does it address what was asked, and does it stay on the topic?",
    steps="Say what the question asks for, part by part. Find where the answer addresses each part, then list what in it serves no part.",
    scale={
        100: "Addresses every part of the question, and nothing else.",
        75: "Addresses every part, with something that was not asked for; or all but a minor part.",
        50: "Addresses a part of it, or drowns it in other matter.",
        25: "Touches the topic, without addressing what was asked.",
        0: "Has nothing to do with the question.",
    },
    ignore="whether the answer is true or well written; a source, a caution or a next step that the question calls for is on topic.",
    good='asked for the price: "It costs 5 €, delivery included." is 100.',
    bad='asked for the price: "We have many fine products." is 25 at most.',
    cases=(
        PARTIAL,
        "Refusals: declining what was asked addresses the question without answering it: 50. A question back that is needed is 75.",
    ),
)

CHUNKS_USEFUL = task(
    "Judge how much of the context is useful for answering the question.",
    steps="Go through the passages in their order and say of each what it contributes to an answer; then score by their share and by their order.",
    scale={
        100: "Every passage contributes.",
        75: "Most do, and the useful ones come first.",
        50: "About half do, or the useful ones come late.",
        25: "A passage or two among many.",
        0: "None does.",
    },
    counts="a passage that holds a part of the answer, or what is needed to reach it.",
    ignore="a passage on the same subject that answers nothing of the question; style and length; passages that repeat a useful one count once.",
)

CHUNK_RELEVANT = task(
    "Decide whether the passage helps to answer the question.",
    steps="Say what the question needs; name what in the passage serves it, if anything; then decide.",
    counts="RELEVANT: it holds a part of the answer, or what is needed or useful to reach it. NOT_RELEVANT: all else, also a passage on the same "
    "subject that answers nothing of the question.",
    ignore="whether the passage is enough by itself, whether it is true, and its language.",
    good='question "When does the shop open?", passage "Opening hours: 9 to 17.": RELEVANT.',
    bad='the same question, passage "The shop was founded in 1950.": NOT_RELEVANT.',
)

TRUTH_HELD = task(
    "Judge how much of the information in the ground truth the context holds.",
    steps="List the facts of the ground truth; look for each in the context; then score by their share and weight.",
    scale={
        100: "All of it.",
        75: "All but a minor fact.",
        50: "About half of what matters.",
        25: "Little of what matters.",
        0: "None of it.",
    },
    counts="a fact that the context states in any words, or that follows from it. One that it contradicts is missing.",
    ignore="what else the context holds, its order and its length; what you know yourself.",
    cases=("Missing evidence: an empty context holds nothing.",),
)

CLAIMS_OF_TRUTH = task(
    "Split the ground truth into the claims that it makes. Do not judge them.",
    steps=_SPLIT.format(one="claim"),
    counts="what the ground truth says, and nothing else.",
    good=_EXAMPLE,
    cases=("A ground truth that claims nothing has an empty list.",),
)

CLAIMS_HELD = task(
    "Decide for each claim whether the context supports it.",
    steps=f"{_ALONE} For each claim in its order, {_QUOTE}.",
    counts="SUPPORTED: the context states it, in any words, or it follows from it. UNSUPPORTED: the context says otherwise, says only a part of it, or "
    "nothing about it.",
    ignore="what you know yourself; whether the claim is true.",
    good='context "The shop is open from 9 to 17.", claim "The shop opens at 9.": SUPPORTED.',
    bad='the same context, claim "The shop opens at 9 on Sundays.": UNSUPPORTED.',
)

CONTEXT_NEEDED = task(
    "List the passages of the context that are needed to answer the question, by their numbers.",
    steps="Say what the question needs. Go through the passages and name those that hold a part of it. Then say whether together they are enough.",
    counts="insufficient is true where the passages together do not allow an answer to what was asked.",
    ignore="a passage on the same subject that answers nothing; one that repeats another is needed only once.",
    good='question "When does it open?", [0] "It opens at 9." [1] "It was founded in 1950.": relevant [0], insufficient false.',
)

CONTEXT_RELEVANT = task(
    "Judge how relevant the context is to the question.",
    steps="Say what the question needs, then what share of the context serves it.",
    scale={
        1: "All of it serves to answer the question.",
        0.75: "Most of it does.",
        0.5: "About half of it.",
        0.25: "Little of it.",
        0: "None of it does.",
    },
    ignore="matter on the same subject that answers nothing of the question; whether the context is true.",
    cases=("Missing evidence: a context that is on the point but not enough for an answer is judged by what of it serves.",),
)

CORRECT = task(
    "Judge how correct and complete the answer to the question is, compared with the ground truth, which is right.",
    steps="List the facts of the ground truth that answer the question. Find each in the answer: right, wrong or missing. Then score.",
    scale={
        100: "Every fact is there, and none is contradicted.",
        75: "Right; a minor fact is missing.",
        50: "About half of what matters is right, the rest is missing.",
        25: "Little of it is right, or a fact that matters is wrong.",
        0: "Wrong or missing altogether.",
    },
    counts="the same fact in other words, units, formats or languages. A wrong fact weighs more than a missing one.",
    ignore="wording, order, style; further facts that do not contradict the ground truth.",
    good='ground truth "5 km", answer "About 5,000 metres." is 100.',
    bad='ground truth "in May", answer "In March." is 0.',
    cases=(PARTIAL, "Refusals: an answer that declines has no fact right, unless the ground truth declines too."),
)

SIMILAR = task(
    "Judge how similar in meaning the answer is to the ground truth.",
    steps="Say what each of the two says in one sentence; compare these.",
    scale={
        1: "They mean the same.",
        0.75: "The same but for a minor point.",
        0.5: "They share a main point and differ in another.",
        0.25: "They share the subject, and little else.",
        0: "No meaning in common, or one says the opposite.",
    },
    ignore="wording, order, style, length and language.",
    good='"It rains." and "There is rain." is 1.',
    bad='"It rains." and "It does not rain." is 0.',
    cases=("An answer that declines is similar only to a ground truth that declines. An answer that is empty is 0.",),
)

CLAIMS = task(
    "List the factual claims of the answer that can be verified. Do not judge them.",
    steps=_SPLIT.format(one="claim"),
    counts="what the answer says, right or wrong, and nothing else.",
    ignore="opinions, questions, courtesies, offers, instructions, and remarks about the answer itself.",
    good=_EXAMPLE,
    cases=("An answer without claims, such as a refusal without reasons, has an empty list.",),
)

CONTRADICTED = task(
    "Decide for each claim what the context says to it.",
    steps=f"{_ALONE} For each claim in its order, {_QUOTE}.",
    counts="SUPPORTED: the context states it, in any words, or it follows from it. CONTRADICTED: the context says what cannot be true together with "
    "it. UNSUPPORTED: the context says neither, or only a part of it.",
    ignore="what you know yourself; a claim that is false but that the context does not touch is UNSUPPORTED.",
    good='context "Open from 9 to 17.", claim "It opens at 9.": SUPPORTED; claim "It sells shoes.": UNSUPPORTED.',
    bad='the same context, claim "It closes at 20.": CONTRADICTED.',
)

GROUNDED = task(
    "Judge how well the answer to the question is grounded in the context.",
    steps="List the claims of the answer and the sentence of the context behind each. Then look for what is made up: sources, quotations, names, "
    "figures, statistics. Then score.",
    scale={
        100: "Everything is grounded, and guesses are called guesses.",
        75: "A minor claim has no support.",
        50: "About half of what matters has support, or a guess is told as a fact.",
        25: "Most of what matters has none.",
        0: "Nothing is grounded.",
    },
    counts="fabricated is what is specific and stands nowhere in question or context; a wrong inference is ungrounded, but not fabricated.",
    ignore="common knowledge that nobody would look up; style and completeness.",
    good='context "It opens at 9.", answer "At 9; on Sundays I cannot tell." is 100.',
    bad='the same context, answer "At 9, as 87 % of our guests like." has a fabricated figure.',
    cases=(REFUSAL_FULL, "An answer without claims is 100."),
)

CATEGORY = task(
    "Compare the facts of the answer to the question with those of the ground truth, and choose the one category that fits.",
    steps="List the facts of each. Look for one on which they disagree; if there is one, it is D. Else compare what each has that the other has not.",
    counts="A: the answer gives only a part of the ground truth's facts, and all that it gives is consistent with them.\n"
    "B: the answer gives all of the ground truth's facts and further ones, and is consistent with them.\n"
    "C: the answer gives the same facts as the ground truth.\n"
    "D: the answer disagrees with the ground truth on a fact.\n"
    "E: the answers differ, but not in anything that matters for the facts.",
    ignore="style, grammar, punctuation, units and formats.",
    cases=("Refusals and empty answers: an answer that gives no fact of the ground truth and contradicts none is A.",),
)

ROBUST = task(
    "The response answers an input with noise in it; the baseline response answers the same input without the noise. Judge how little the noise "
    "changed.",
    steps="Say what each response says; list what is different in content and in quality; then score.",
    scale={
        1: "The noise had no effect.",
        0.75: "A minor point is different.",
        0.5: "A main point is different or missing, the rest is the same.",
        0.25: "Little of the baseline is left.",
        0: "Derailed: another subject, or an answer to the noise.",
    },
    counts="what is different, for better or worse, also where the response declines and the baseline does not.",
    ignore="wording, order, length, and whether either is true.",
    cases=(MISSING,),
)

EQUIVALENT = task(
    "Decide whether the query and the reference query return the same results on every database with these tables.",
    steps="Compare tables and joins, conditions, grouping, columns, duplicates, nulls, order and limits, in this order. Look for a database on which "
    "the results differ; one is enough for false.",
    counts="rows and their number, columns and their order, and an order of rows that the reference query asks for.",
    ignore="wording, aliases, layout, the way in which the same result is reached, and speed.",
    good='"SELECT a FROM t WHERE b > 1" and "select t.a from t where not b <= 1" with b never null: true.',
    bad='"SELECT a FROM t" and "SELECT DISTINCT a FROM t" with a not unique: false.',
    cases=(
        "Text that is no query, or that declines, is false. Missing evidence: without a schema, assume nothing about keys and nulls.",
    ),
)

_ASKED = "When does the shop open?"
_CONTEXT = ["The shop in Main Street is open from 9 to 17 on weekdays.", "It is closed on Sundays."]
_OFF = ["The shop was founded in 1950 by two sisters.", "Its first products were candles."]
_TRUTH = "It opens at 9 on weekdays."
_RIGHT, _WRONG = "The shop opens at 9 on weekdays.", "The shop opens at 11 on Sundays, as 87 % of our customers wish."

_ANSWERS = Case(
    good={"input": _ASKED, "output": _RIGHT, "context": _CONTEXT, "ground_truth": _TRUTH},
    bad={"input": _ASKED, "output": _WRONG, "context": _CONTEXT, "ground_truth": _TRUTH},
)
_RETRIEVED = Case(
    good={"input": _ASKED, "output": _RIGHT, "context": _CONTEXT[:1], "ground_truth": _TRUTH},
    bad={"input": _ASKED, "output": _RIGHT, "context": _OFF, "ground_truth": _TRUTH},
    place="context",
)

CASES = {
    **dict.fromkeys(
        (
            "llm_faithfulness", "llm_answer_correctness", "llm_answer_similarity", "llm_hallucination", "llm_groundedness", "llm_factuality",
        ),
        _ANSWERS,
    ),
    **dict.fromkeys(("llm_context_precision", "llm_context_recall", "llm_context_relevance"), _RETRIEVED),
    "llm_relevance": Case(good={"input": _ASKED, "output": _RIGHT}, bad={"input": _ASKED, "output": "Candles are made of wax."}),
    "llm_noise_sensitivity": Case(
        good={"input": "WHEN,, does the -- shop open asap pls ???", "output": _RIGHT},
        bad={"input": "WHEN,, does the -- shop open asap pls ???", "output": "Please is a polite word."},
        params={"baseline_response": _RIGHT},
    ),
    "llm_sql_semantic_equivalence": Case(
        good={"output": "SELECT name FROM users WHERE age >= 18", "ground_truth": "select u.name from users u where u.age > 17"},
        bad={"output": "SELECT name FROM users", "ground_truth": "select u.name from users u where u.age > 17"},
        params={"schema": "users(name TEXT, age INTEGER NOT NULL)"},
    ),
}  # fmt: skip
