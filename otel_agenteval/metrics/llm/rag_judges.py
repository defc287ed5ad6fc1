"""Judges of answers from retrieved material: what was found, and what was made of it. Each call of the model costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le

from ...core import jsonio
from ...core.turn import Turn
from ..lib.prompts import SCORE
from ..lib.references import reference, truth_of
from ..lib.replies import (
    as_boolean,
    boolean,
    entries,
    number_within,
    numbered,
    reason_of,
    shown,
    texts,
    verdict_of,
    verdicts,
    word,
    yes_no,
)
from ..prompts import rag_judges as prompts
from ..registry import EPSILON, Asks, Result, metric, skip, vacuous

_HOLISTIC_THRESHOLD = 0.7


def _of(task: str, items: Sequence[str], what: str) -> str:
    return f"{task}\nThere are {len(items)} {what}: give one entry for each, in their order."


def _joined(context: Sequence[str]) -> str:
    return "\n---\n".join(context)


def _percent(reply: Mapping[str, Any], **keys: str) -> Result:
    """The value of a reply with ``score`` 0..100 and ``reasoning``; ``keys`` are what else it says, for the detail."""
    detail = {**shown(reply, **keys), "reasoning": reason_of(reply, "reasoning")}
    value = number_within(reply, 0, 100) / 100
    return Result(value, detail=detail, explanation=detail["reasoning"])


def _unit(reply: Mapping[str, Any]) -> Result:
    """The value of a reply with ``score`` 0..1 and ``reason``."""
    detail: dict[str, Any] = {"reason": reason_of(reply)}
    value = number_within(reply, 0, 1)
    return Result(value, detail=detail, explanation=detail["reason"])


def _with_holistic_threshold(result: Result, threshold: float | None) -> Result:
    """Only the holistic method has a threshold of its own; one that is configured is compared with elsewhere."""
    if threshold is None and result.value is not None:
        result.passed = result.value >= _HOLISTIC_THRESHOLD - EPSILON
    return result


@metric(
    version="2",
    needs=("input", "output", "context"),
    threshold=0.7,
    aliases={
        "agenteval:llm_faithfulness": {"method": "holistic"},
        "trusys:context-faithfulness": {"method": "statements"},
        "agentunit:faithfulness": {"method": "statements"},
        "agenteval:FaithfulnessMetric": {},
        "agentunit:FaithfulnessMetric": {},
    },
)
def llm_faithfulness(turn: Turn, judge: Asks, *, method: Literal["statements", "holistic"] = "statements") -> Result:
    """How much of what the answer states follows from the context.

    By statements two questions: which statements the answer makes, and for each one whether it can be inferred from the context;
    the value is the share of those that can. A statement without a verdict cannot, and further verdicts are ignored. An answer
    that states nothing is 1 and vacuous. Holistic: one question, the value is the judge's score of 0..100, divided by 100.

    Parameters:
        method: ``statements`` or ``holistic``.

    Detail: ``statements`` and ``unsupported``, those of them that do not follow; holistic: ``faithful_claims``,
    ``hallucinated_claims`` (and the same as ``unsupported``) and ``reasoning``.

    Sources: AgentEval FaithfulnessMetric (holistic), Trusys context-faithfulness and AgentUnit FaithfulnessMetric (statements).
    """
    question, answer, context = turn.input or "", turn.output or "", _joined(turn.context)
    if method == "holistic":
        reply = judge.ask(
            "faithfulness",
            prompts.FAITHFUL,
            {"question": question, "answer": answer, "context": context},
            '{"reasoning": "<why, in one to three sentences>", "faithfulClaims": [<claims that the context supports>], '
            '"hallucinatedClaims": [<claims that it does not support>], "score": <0 to 100>}',
        )
        result = _percent(reply, faithful_claims="faithfulClaims", hallucinated_claims="hallucinatedClaims")
        result.detail = {**(result.detail or {}), **shown(reply, unsupported="hallucinatedClaims")}
        return result
    reply = judge.ask(
        "statements",
        prompts.STATEMENTS,  # without the context, which would colour what it finds
        {"question": question, "answer": answer},
        '{"statements": ["<statement>", ...]}',
    )
    statements = texts(reply, "statements")
    if not statements:
        return vacuous(1.0, statements=[], unsupported=[])
    reply = judge.ask(
        "verdicts",
        _of(prompts.INFERRED, statements, "statements"),
        {"context": context, "statements": numbered(statements)},
        '{"verdicts": [{"statement": "<its number>", "reason": "<the sentence that supports it, or why none does>", "verdict": "<yes or no>"}, ...]}',
    )
    supported = yes_no(reply, len(statements))
    unsupported = [statement for statement, ok in zip(statements, supported, strict=True) if not ok]
    return Result(
        sum(supported) / len(statements),
        detail={"statements": statements, "unsupported": unsupported},
        explanation=f"{sum(supported)} of {len(statements)} statements follow from the context",
    )


@metric(
    version="2",
    needs=("input", "output"),
    threshold=0.7,
    aliases=("agenteval:llm_relevance", "agenteval:RelevanceMetric"),
)
def llm_relevance(turn: Turn, judge: Asks) -> Result:
    """Whether the answer addresses the question and stays on its topic.

    One question to the judge; the value is its score of 0..100, divided by 100. An empty answer is 0, and the judge is not asked.

    Detail: ``addresses_question``, ``stays_on_topic``, ``irrelevant_parts`` and ``reasoning``.

    Source: AgentEval RelevanceMetric.
    """
    if not (turn.output or "").strip():
        return Result(0.0, explanation="the answer is empty")
    reply = judge.ask(
        "relevance",
        prompts.RELEVANT,
        {"question": turn.input or "", "answer": turn.output or ""},
        '{"reasoning": "<why, in one to three sentences>", "irrelevantParts": [<parts of the answer that do not belong>], '
        '"addressesQuestion": <true or false>, "staysOnTopic": <true or false>, "score": <0 to 100>}',
    )
    result = _percent(reply, irrelevant_parts="irrelevantParts")
    result.detail = {
        "addresses_question": as_boolean(reply.get("addressesQuestion")),
        "stays_on_topic": as_boolean(reply.get("staysOnTopic")),
        **(result.detail or {}),
    }
    return result


@metric(
    version="2",
    needs=("input", "context"),
    aliases={
        "agenteval:llm_context_precision": {"method": "holistic"},
        "hpd:ContextPrecisionEvaluator": {"method": "map"},
        "agentunit:retrieval_quality": {"method": "map"},
        "agentunit:RetrievalQualityMetric": {},
        "agenteval:ContextPrecisionMetric": {},
    },
)
def llm_context_precision(
    turn: Turn, judge: Asks, *, method: Literal["map", "holistic"] = "map", threshold: float | None = None
) -> Result:
    """Whether what was retrieved helps to answer the question, and comes before what does not.

    By ``map`` one question per chunk, in rank order: is it relevant? The value is the average precision, that is the mean over the
    relevant chunks of "share of relevant ones among this and all before": relevant, not, relevant gives (1/1 + 2/3) / 2. No
    relevant chunk is 0. Holistic: one question, the value is the judge's score of 0..100, divided by 100.

    Parameters:
        method: ``map``, or ``holistic``, which costs one call whatever the number of chunks.
        threshold: bound of ``passed``; default 0.7 for ``holistic``, none for ``map``.

    Detail: ``verdicts`` (``RELEVANT`` or ``NOT_RELEVANT`` for each chunk), ``reasons`` and ``total_relevant``; holistic: ``relevant_parts``,
    ``irrelevant_parts`` and ``reasoning``.

    Sources: HPD ContextPrecisionEvaluator (map), which takes every chunk for relevant; AgentEval ContextPrecisionMetric
    (holistic); AgentUnit RetrievalQualityMetric.
    """
    question = turn.input or ""
    if method == "holistic":
        reply = judge.ask(
            "context_precision",
            prompts.CHUNKS_USEFUL,
            {"question": question, "context": _joined(turn.context)},
            '{"reasoning": "<why, in one to three sentences>", "relevantParts": [<the first words of each useful passage>], '
            '"irrelevantParts": [<the first words of each that is of no use>], "score": <0 to 100>}',
        )
        result = _percent(reply, relevant_parts="relevantParts", irrelevant_parts="irrelevantParts")
        return _with_holistic_threshold(result, threshold)
    found: list[str] = []
    reasons: list[str | None] = []
    for rank, chunk in enumerate(turn.context, 1):
        reply = judge.ask(
            f"chunk_{rank}",
            f"{prompts.CHUNK_RELEVANT}\nIt is passage {rank} of {len(turn.context)}; judge it alone.",
            {"question": question, "passage": chunk},
            '{"reason": "<what in it serves the question, or that nothing does>", "verdict": "<RELEVANT or NOT_RELEVANT>"}',
        )
        found.append(word(reply.get("verdict"), ("RELEVANT", "NOT_RELEVANT")))
        reasons.append(reason_of(reply))
    return Result(
        _average_precision([verdict == "RELEVANT" for verdict in found]),
        detail={"verdicts": found, "total_relevant": found.count("RELEVANT"), "reasons": reasons},
        explanation=f"{found.count('RELEVANT')} of {len(found)} chunks are relevant",
    )


def _average_precision(relevant: Sequence[bool]) -> float:
    hits, total = 0, 0.0
    for rank, hit in enumerate(relevant, 1):
        if hit:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


@metric(
    version="2",
    needs=("context", "ground_truth"),
    aliases={
        "agenteval:llm_context_recall": {"method": "holistic"},
        "hpd:ContextRecallEvaluator": {"method": "claims"},
        "trusys:context-recall": {"method": "claims"},
        "agenteval:ContextRecallMetric": {},
    },
)
def llm_context_recall(
    turn: Turn, judge: Asks, *, method: Literal["claims", "holistic"] = "claims", threshold: float | None = None
) -> Result:
    """How much of the ground truth is found in what was retrieved.

    By claims two questions: which claims the ground truth (not the answer) makes, and for each one whether the context supports
    it; the value is the share of those that it does. A claim without a verdict is unsupported, and further verdicts are ignored.
    A ground truth without claims is skipped with ``no_claims``. Holistic: one question, the value is the judge's score of 0..100,
    divided by 100.

    Parameters:
        method: ``claims`` or ``holistic``.
        threshold: bound of ``passed``; default 0.7 for ``holistic``, none for ``claims``.

    Detail: ``claims`` ``[{claim, verdict}]`` and ``missing``, the claims that are unsupported; holistic: ``information_present``,
    ``information_missing`` and ``reasoning``.

    Sources: HPD ContextRecallEvaluator, Trusys context-recall (claims); AgentEval ContextRecallMetric (holistic).
    """
    truth, context = jsonio.text_of(truth_of(turn)), _joined(turn.context)
    if method == "holistic":
        reply = judge.ask(
            "context_recall",
            prompts.TRUTH_HELD,
            {"ground_truth": truth, "context": context},
            '{"reasoning": "<why, in one to three sentences>", "informationPresent": [<what of the ground truth the context holds>], '
            '"informationMissing": [<what it does not hold>], "score": <0 to 100>}',
        )
        result = _percent(reply, information_present="informationPresent", information_missing="informationMissing")
        return _with_holistic_threshold(result, threshold)
    reply = judge.ask(
        "claims",
        prompts.CLAIMS_OF_TRUTH,
        {"ground_truth": truth},
        '{"claims": ["<claim>", ...]}',
    )
    claims = texts(reply, "claims")
    if not claims:
        return skip("no_claims")
    reply = judge.ask(
        "verdicts",
        _of(prompts.CLAIMS_HELD, claims, "claims"),
        {"context": context, "claims": numbered(claims)},
        '{"verdicts": [{"claim": "<its number>", "reason": "<the sentence that supports it, or why none does>", '
        '"verdict": "<SUPPORTED or UNSUPPORTED>"}, ...]}',
    )
    found = verdicts(reply, len(claims), ("SUPPORTED", "UNSUPPORTED"), "UNSUPPORTED")
    pairs = list(zip(claims, found, strict=True))
    return Result(
        found.count("SUPPORTED") / len(claims),
        detail={
            "claims": [{"claim": claim, "verdict": verdict} for claim, verdict in pairs],
            "missing": [claim for claim, verdict in pairs if verdict == "UNSUPPORTED"],
        },
        explanation=f"the context supports {found.count('SUPPORTED')} of {len(claims)} claims",
    )


@metric(
    version="2",
    needs=("input", "context"),
    aliases={"hpd:ContextRelevanceEvaluator": {"method": "holistic"}, "trusys:context-relevance": {"method": "extract"}},
)
def llm_context_relevance(turn: Turn, judge: Asks, *, method: Literal["extract", "holistic"] = "extract") -> Result:
    """How much of what was retrieved is needed to answer the question.

    By ``extract`` one question: which chunks are needed? The value is their share of all chunks. The judge names a chunk by its
    number (from 0) or its text; what names no chunk is not counted, and a chunk counts once. 0 when the judge finds the context
    insufficient for an answer. Holistic: one question, the value is the judge's score of 0..1.

    Parameters:
        method: ``extract`` or ``holistic``.

    Detail: ``relevant_units``, ``total_units`` and ``insufficient``; holistic: ``reason``.

    Sources: Trusys context-relevance (extract), HPD ContextRelevanceEvaluator (holistic).
    """
    question, context = turn.input or "", turn.context
    if method == "holistic":
        reply = judge.ask(
            "context_relevance",
            prompts.CONTEXT_RELEVANT,
            {"question": question, "context": _joined(context)},
            SCORE,
        )
        return _unit(reply)
    reply = judge.ask(
        "extract",
        prompts.CONTEXT_NEEDED,
        {"question": question, "context": "\n".join(f"[{number}] {chunk}" for number, chunk in enumerate(context))},
        '{"reason": "<what the question needs, and where it stands>", "relevant": [<number of a passage>, ...], "insufficient": <true or false>}',
    )
    insufficient = reply.get("insufficient") is not None and boolean(reply, "insufficient")
    listed = reply.get("relevant") if insufficient else entries(reply, "relevant")
    units = _units(listed if isinstance(listed, list) else [], context)
    return Result(
        0.0 if insufficient else len(units) / len(context),
        detail={"relevant_units": len(units), "total_units": len(context), "insufficient": insufficient},
        explanation="the context is insufficient for an answer"
        if insufficient
        else f"{len(units)} of {len(context)} chunks are needed for an answer",
    )


def _units(listed: Sequence[Any], context: Sequence[str]) -> set[int]:
    """The chunks that are named, by their text or their place; of chunks with one text it is the first."""
    places: dict[str, int] = {}
    for place, chunk in enumerate(context):
        places.setdefault(chunk.strip(), place)
    found = set()
    for entry in listed:
        if isinstance(entry, str):
            text = entry.strip()
            place = places.get(text, _place(text)) if text else -1
        else:
            place = entry if isinstance(entry, int) and not isinstance(entry, bool) else -1
        if 0 <= place < len(context):
            found.add(place)
    return found


def _place(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1


@metric(
    version="2",
    needs=("input", "output", "ground_truth"),
    threshold=0.7,
    aliases=(
        "agenteval:llm_answer_correctness",
        "agentunit:answer_correctness",
        "agenteval:AnswerCorrectnessMetric",
        "agentunit:AnswerCorrectnessMetric",
    ),
)
def llm_answer_correctness(turn: Turn, judge: Asks, *, exact_shortcut: bool = True) -> Result:
    """Whether the answer says what the ground truth says: its facts are right, and none is missing.

    One question to the judge; the value is its score of 0..100, divided by 100. An answer that is the ground truth, up to white
    space around it, is 1, and the judge is not asked.

    Parameters:
        exact_shortcut: whether equal texts need no judge.

    Detail: ``shortcut`` (``exact``) where no judge was asked; else ``facts_correct``, ``facts_incorrect``, ``facts_missing`` and
    ``reasoning``.

    Sources: AgentEval AnswerCorrectnessMetric; AgentUnit AnswerCorrectnessMetric, whose exact match is the shortcut.
    """
    answer, truth = turn.output or "", jsonio.text_of(truth_of(turn))
    if exact_shortcut and answer.strip() == truth.strip():
        return Result(1.0, detail={"shortcut": "exact"}, explanation="the answer is the ground truth")
    reply = judge.ask(
        "answer_correctness",
        prompts.CORRECT,
        {"question": turn.input or "", "answer": answer, "ground_truth": truth},
        '{"reasoning": "<why, in one to three sentences>", "factsCorrect": [<facts that the answer has right>], '
        '"factsIncorrect": [<facts that it has wrong>], "factsMissing": [<facts of the ground truth that it lacks>], "score": <0 to 100>}',
    )
    return _percent(reply, facts_correct="factsCorrect", facts_incorrect="factsIncorrect", facts_missing="factsMissing")


@metric(version="2", needs=("output", "ground_truth"), aliases=("hpd:AnswerSimilarityEvaluator",))
def llm_answer_similarity(turn: Turn, judge: Asks) -> Result:
    """How close in meaning the answer is to the ground truth.

    One question to the judge; the value is its score of 0..1.

    Detail: ``reason``.

    Source: HPD AnswerSimilarityEvaluator.
    """
    reply = judge.ask(
        "answer_similarity",
        prompts.SIMILAR,
        {"answer": turn.output or "", "ground_truth": jsonio.text_of(truth_of(turn))},
        SCORE,
    )
    return _unit(reply)


@metric(
    version="2",
    needs=("output", "context"),
    direction="down",
    aliases=("hpd:HallucinationEvaluator", "agentunit:hallucination_rate", "agentunit:HallucinationRateMetric"),
)
def llm_hallucination(turn: Turn, judge: Asks) -> Result:
    """Share of the answer's factual claims that the context contradicts. Less is better.

    Two questions: which factual claims the answer makes, and for each one whether the context supports it, contradicts it, or
    neither. Claims that it neither supports nor contradicts do not count against the answer (see ``unsupported_rate``); so does
    a claim without a verdict or with any other word. An answer without claims is 0 and vacuous; an empty answer is
    skipped with ``empty_output``.

    Detail: ``supported``, ``contradicted`` and ``unsupported`` (how many claims), ``contradicted_claims``, ``unsupported_rate``.

    Sources: HPD HallucinationEvaluator; AgentUnit HallucinationRateMetric, which compares texts only.
    """
    answer, context = turn.output or "", _joined(turn.context)
    if not answer.strip():
        return skip("empty_output")
    reply = judge.ask(
        "claims",
        prompts.CLAIMS,  # without the context, which would colour what it finds
        {"answer": answer},
        '{"claims": ["<claim>", ...]}',
    )
    claims = texts(reply, "claims")
    if not claims:
        return vacuous(0.0, **_hallucinated([], []))
    reply = judge.ask(
        "verdicts",
        _of(prompts.CONTRADICTED, claims, "claims"),
        {"context": context, "claims": numbered(claims)},
        '{"verdicts": [{"claim": "<its number>", "reason": "<the sentence that decides it, or that there is none>", '
        '"verdict": "<SUPPORTED, CONTRADICTED or UNSUPPORTED>"}, ...]}',
    )
    given = [verdict_of(entry) for entry in entries(reply)[: len(claims)]]
    found = [verdict.strip().upper() if isinstance(verdict, str) else "" for verdict in given]
    found += [""] * (len(claims) - len(found))
    detail = _hallucinated(claims, found)
    return Result(
        detail["contradicted"] / len(claims),
        detail=detail,
        explanation=f"the context contradicts {detail['contradicted']} of {len(claims)} claims",
    )


def _hallucinated(claims: Sequence[str], found: Sequence[str]) -> dict[str, Any]:
    supported, contradicted = found.count("SUPPORTED"), found.count("CONTRADICTED")
    unsupported = len(claims) - supported - contradicted
    return {
        "supported": supported,
        "contradicted": contradicted,
        "unsupported": unsupported,
        "contradicted_claims": [claim for claim, verdict in zip(claims, found, strict=True) if verdict == "CONTRADICTED"],
        "unsupported_rate": unsupported / len(claims) if claims else 0.0,
    }


@metric(
    version="2",
    needs=("input", "output", "context"),
    threshold=0.7,
    aliases=("agenteval:llm_groundedness", "agenteval:GroundednessMetric"),
)
def llm_groundedness(turn: Turn, judge: Asks, *, fabrication_cap: Annotated[float, Ge(0), Le(1)] = 0.3) -> Result:
    """Whether the answer is backed by the context, without made-up sources or figures and without guesses presented as facts.

    One question to the judge; the value is its score of 0..100, divided by 100. Anything made up (``fabricatedElements``; blank
    entries do not count) fails whatever the threshold is, and the value is then at most ``fabrication_cap``.

    Parameters:
        fabrication_cap: the most that an answer with something made up can get, 0..1.

    Detail: ``grounded_claims``, ``ungrounded_claims``, ``fabricated_elements``, ``uncertainty_acknowledged`` and ``reasoning``.

    Source: AgentEval GroundednessMetric.
    """
    reply = judge.ask(
        "groundedness",
        prompts.GROUNDED,
        {"question": turn.input or "", "answer": turn.output or "", "context": _joined(turn.context)},
        '{"reasoning": "<why, in one to three sentences>", "groundedClaims": [<claims with support>], "ungroundedClaims": [<claims without>], '
        '"fabricatedElements": [<what is made up; empty if nothing is>], "uncertaintyAcknowledged": <true or false>, "score": <0 to 100>}',
    )
    fabricated = texts(reply, "fabricatedElements")
    result = _percent(reply, grounded_claims="groundedClaims", ungrounded_claims="ungroundedClaims")
    result.detail = {
        **(result.detail or {}),
        "fabricated_elements": fabricated,
        "uncertainty_acknowledged": as_boolean(reply.get("uncertaintyAcknowledged")),
    }
    if fabricated:
        result.value = min(result.value or 0.0, fabrication_cap)
        result.passed = False
    return result


Category = Literal["A", "B", "C", "D", "E"]
_CATEGORY_SCORES: dict[Category, float] = {"A": 1.0, "B": 1.0, "C": 1.0, "D": 0.0, "E": 1.0}


@metric(version="2", needs=("input", "output", "ground_truth"), aliases=("trusys:factuality",))
def llm_factuality(
    turn: Turn,
    judge: Asks,
    *,
    scores: dict[Category, Annotated[float, Ge(0), Le(1)]] | None = None,
    threshold: float | None = None,
) -> Result:
    """Whether the facts of the answer agree with those of the ground truth.

    One question to the judge, which sorts the answer into one of five categories: A, less than the ground truth and consistent
    with it; B, more and consistent; C, the same; D, in disagreement; E, different only in what does not matter for the facts. The
    value is the category's score. Any other category is an error.

    Parameters:
        scores: the value of a category, 0..1; default 1 for A, B, C and E, and 0 for D. What is left out keeps its default: with
            ``{"A": 0.5}`` an incomplete answer is worth half.
        threshold: bound of ``passed``; default anything above 0.

    Detail: ``category``, ``reason``.

    Source: Trusys factuality.
    """
    reply = judge.ask(
        "category",
        prompts.CATEGORY,
        {"question": turn.input or "", "answer": turn.output or "", "ground_truth": jsonio.text_of(truth_of(turn))},
        '{"reason": "<the facts that they share and those on which they differ>", "category": "<A, B, C, D or E>"}',
    )
    values: dict[Any, float] = {**_CATEGORY_SCORES, **(scores or {})}
    category = word(reply.get("category"), tuple(_CATEGORY_SCORES), "category")
    value, reason = values[category], reason_of(reply)
    passed = value > 0 if threshold is None else None
    return Result(value, passed=passed, detail={"category": category, "reason": reason}, explanation=reason)


@metric(
    version="2", needs=("output",), references=("baseline_response", "noisy_input"), aliases=("hpd:NoiseSensitivityEvaluator",)
)
def llm_noise_sensitivity(
    turn: Turn, judge: Asks, *, baseline_response: str | None = None, noisy_input: str | None = None
) -> Result:
    """Whether noise in the input left the answer as it was: 1 when it had no effect.

    One question to the judge, which compares the answer to the noisy input with a baseline, the answer to the clean one; the value
    is its score of 0..1. Meant for data sets; skipped with ``missing:baseline`` without a baseline.

    Parameters:
        baseline_response: the answer to the clean input; default the turn's reference ``baseline_response``.
        noisy_input: the input with the noise; default the turn's reference ``noisy_input``, else its input.

    Detail: ``reason``.

    Source: HPD NoiseSensitivityEvaluator.
    """
    baseline = jsonio.text_of(reference(turn, baseline_response, "baseline_response"))
    if not baseline.strip():
        return skip("missing:baseline")
    noisy = reference(turn, noisy_input, "noisy_input")
    reply = judge.ask(
        "noise_sensitivity",
        prompts.ROBUST,
        {
            "noisy_input": jsonio.text_of(turn.input if noisy is None else noisy),
            "baseline_response": baseline,
            "response": turn.output or "",
        },
        SCORE,
    )
    return _unit(reply)


@metric(
    version="2",
    needs=("output",),
    uses=("ground_truth",),
    references=("reference_sql", "schema"),
    boolean=True,
    aliases=("hpd:SqlSemanticEquivalenceEvaluator",),
)
def llm_sql_semantic_equivalence(
    turn: Turn, judge: Asks, *, schema: str | dict[str, Any] | list[Any] | None = None, reference_sql: str | None = None
) -> Result:
    """Whether the output, an SQL query, gives the same results as a reference query.

    One question to the judge, which says true or false (also yes, 1, pass; no, 0, fail). Skipped with ``missing:ground_truth``
    when there is neither a reference query nor a ground truth.

    Parameters:
        schema: the tables that both run on, as text or any JSON; default the turn's reference ``schema``, else none.
        reference_sql: the reference query; default the turn's reference ``reference_sql``, else its ground truth.

    Detail: ``equivalent``, ``reason``.

    Source: HPD SqlSemanticEquivalenceEvaluator.
    """
    wanted = jsonio.text_of(reference(turn, reference_sql, "reference_sql")) or jsonio.text_of(truth_of(turn))
    if not wanted:
        return skip("missing:ground_truth")
    tables = jsonio.text_of(reference(turn, schema, "schema"))
    reply = judge.ask(
        "equivalence",
        prompts.EQUIVALENT,
        {"query": turn.output or "", "reference_sql": wanted, **({"schema": tables} if tables else {})},
        '{"reason": "<what differs on which database, or why nothing does>", "equivalent": <true or false>}',
    )
    equivalent, reason = boolean(reply, "equivalent"), reason_of(reply)
    return Result(equivalent, detail={"equivalent": equivalent, "reason": reason}, explanation=reason)
