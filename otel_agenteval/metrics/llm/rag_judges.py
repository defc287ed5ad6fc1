"""These judged metrics evaluate the retrieved context, and answers based on it. If you have no ground truth, use
``llm_faithfulness``, ``llm_groundedness``, ``llm_hallucination``, ``llm_relevance``, ``llm_context_relevance``, or
``llm_context_precision``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ...core import jsonio
from ...core.turn import Turn
from ..lib.replies import (
    as_boolean,
    boolean,
    entries,
    invalid,
    judged_true,
    numbered,
    reason_of,
    reply_details,
    scored,
    texts,
    verdict_of,
    verdicts,
    word_of,
    yes_no,
)
from ..lib.values import Share, reference, truth_of
from ..prompts import SCORE, Prompts
from ..registry import EPSILON, Asks, Result, metric, skip, vacuous

_PROMPTS = Prompts("rag_judges")

_HOLISTIC_THRESHOLD = 0.7


def _listing(task: str, items: Sequence[str], what: str) -> str:
    return f"{task}\nThere are {len(items)} {what}: give one entry for each, in their order."


def _joined_context(context: Sequence[str]) -> str:
    return "\n---\n".join(context)


def _with_holistic_threshold(result: Result, threshold: float | None) -> Result:
    if threshold is None and result.value is not None:
        result.passed = result.value >= _HOLISTIC_THRESHOLD - EPSILON
    return result


@metric(
    needs=("input", "output", "context"),
    threshold=0.7,
    version="2",
    aliases={
        "agenteval:llm_faithfulness": {"method": "holistic"},
        "trusys:context-faithfulness": {"method": "statements"},
        "agentunit:faithfulness": {"method": "statements"},
        "agenteval:FaithfulnessMetric": {"method": "holistic"},
        "agentunit:FaithfulnessMetric": {},
    },
)
def llm_faithfulness(turn: Turn, judge: Asks, *, method: Literal["statements", "holistic"] = "statements") -> Result:
    """Rate how much of the answer follows from the context.

    The option ``method`` selects one of these procedures:

    - ``statements`` makes two judge calls. The first call lists the answer's statements. The second call decides whether each
      statement follows from the context. A statement without a verdict counts as unsupported. If the answer contains no statements,
      the value is 1 (vacuous).
    - ``holistic`` makes a single judge call, which returns a rating from 0 to 100. The value is this rating divided by 100.

    Parameters:
        method: Procedure, as described above.

    Detail with ``statements``: ``statements`` and ``unsupported``. Detail with ``holistic``: ``faithful_claims``,
    ``hallucinated_claims`` (repeated as ``unsupported``), and ``reasoning``.
    """
    question, answer, context = turn.input or "", turn.output or "", _joined_context(turn.context)
    if method == "holistic":
        reply = judge.ask(
            "faithfulness",
            _PROMPTS["faithful"],
            {"question": question, "answer": answer, "context": context},
            '{"reasoning": "<why, in one to three sentences>", "faithfulClaims": [<claims that the context supports>], '
            '"hallucinatedClaims": [<claims that it does not support>], "score": <0 to 100>}',
        )
        keys = {"faithful_claims": "faithfulClaims", "hallucinated_claims": "hallucinatedClaims"}
        result = scored(reply, top=100, why="reasoning", **keys)
        result.detail = {**(result.detail or {}), **reply_details(reply, unsupported="hallucinatedClaims")}
        return result
    # without the context, which would bias the list
    material = {"question": question, "answer": answer}
    reply = judge.ask("statements", _PROMPTS["statements"], material, '{"statements": ["<statement>", ...]}')
    if not (statements := texts(reply, "statements")):
        return vacuous(1.0, statements=[], unsupported=[])
    reply = judge.ask(
        "verdicts",
        _listing(_PROMPTS["inferred"], statements, "statements"),
        {"context": context, "statements": numbered(statements)},
        '{"verdicts": [{"statement": "<its number>", "reason": "<the sentence that supports it, or why none does>", "verdict": "<yes or no>"}, ...]}',
    )
    supported = yes_no(reply, len(statements))
    unsupported = [statement for statement, ok in zip(statements, supported, strict=True) if not ok]
    why = f"{sum(supported)} of {len(statements)} statements follow from the context"
    return Result(
        sum(supported) / len(statements), detail={"statements": statements, "unsupported": unsupported}, explanation=why
    )


@metric(needs=("input", "output"), threshold=0.7, version="2", aliases=("agenteval:llm_relevance", "agenteval:RelevanceMetric"))
def llm_relevance(turn: Turn, judge: Asks) -> Result:
    """Rate how well the answer addresses the question and stays on topic.

    A single judge call returns a rating from 0 to 100. The value is this rating divided by 100. If the answer is blank, the value
    is 0 and no judge is called.

    Detail: ``addresses_question``, ``stays_on_topic``, ``irrelevant_parts``, and ``reasoning``.
    """
    if not (turn.output or "").strip():
        return Result(0.0, explanation="the answer is empty")
    reply = judge.ask(
        "relevance",
        _PROMPTS["relevant"],
        {"question": turn.input or "", "answer": turn.output or ""},
        '{"reasoning": "<why, in one to three sentences>", "irrelevantParts": [<parts of the answer that do not belong>], '
        '"addressesQuestion": <true or false>, "staysOnTopic": <true or false>, "score": <0 to 100>}',
    )
    result = scored(reply, top=100, why="reasoning", irrelevant_parts="irrelevantParts")
    result.detail = {
        "addresses_question": as_boolean(reply.get("addressesQuestion")),
        "stays_on_topic": as_boolean(reply.get("staysOnTopic")),
        **(result.detail or {}),
    }
    return result


@metric(
    needs=("input", "context"),
    version="2",
    aliases={
        "agenteval:llm_context_precision": {"method": "holistic"},
        "hpd:ContextPrecisionEvaluator": {"method": "map"},
        "agentunit:retrieval_quality": {"method": "map"},
        "agentunit:RetrievalQualityMetric": {},
        "agenteval:ContextPrecisionMetric": {"method": "holistic"},
    },
)
def llm_context_precision(
    turn: Turn, judge: Asks, *, method: Literal["map", "holistic"] = "map", threshold: float | None = None
) -> Result:
    """Rate how well the retrieval ranks relevant chunks before irrelevant chunks.

    The option ``method`` selects one of these procedures:

    - ``map`` makes one judge call per chunk to decide whether the chunk is relevant. The value is the average precision: the mean
      of precision@k over the ranks k of the relevant chunks. For example, if only the first and third chunks are relevant, the
      value is (1/1 + 2/3) / 2. If no chunk is relevant, the value is 0.
    - ``holistic`` makes a single judge call, which returns a rating from 0 to 100. The value is this rating divided by 100.

    Parameters:
        method: Procedure, as described above.
        threshold: Lowest passing value. If null, the threshold is 0.7 with ``holistic``, and there is no verdict with ``map``.

    Detail with ``map``: ``verdicts`` (``RELEVANT`` or ``NOT_RELEVANT`` for each chunk), ``reasons``, and ``total_relevant``. Detail
    with ``holistic``: ``relevant_parts``, ``irrelevant_parts``, and ``reasoning``.
    """
    question = turn.input or ""
    if method == "holistic":
        reply = judge.ask(
            "context_precision",
            _PROMPTS["chunks_useful"],
            {"question": question, "context": _joined_context(turn.context)},
            '{"reasoning": "<why, in one to three sentences>", "relevantParts": [<the first words of each useful passage>], '
            '"irrelevantParts": [<the first words of each that is of no use>], "score": <0 to 100>}',
        )
        result = scored(reply, top=100, why="reasoning", relevant_parts="relevantParts", irrelevant_parts="irrelevantParts")
        return _with_holistic_threshold(result, threshold)
    found: list[str] = []
    reasons: list[str | None] = []
    for rank, chunk in enumerate(turn.context, 1):
        reply = judge.ask(
            f"chunk_{rank}",
            f"{_PROMPTS['chunk_relevant']}\nIt is passage {rank} of {len(turn.context)}; judge it alone.",
            {"question": question, "passage": chunk},
            '{"reason": "<what in it serves the question, or that nothing does>", "verdict": "<RELEVANT or NOT_RELEVANT>"}',
        )
        found.append(word_of(reply.get("verdict"), ("RELEVANT", "NOT_RELEVANT")))
        reasons.append(reason_of(reply))
    ranks = [rank for rank, verdict in enumerate(found, 1) if verdict == "RELEVANT"]
    precisions = [hits / rank for hits, rank in enumerate(ranks, 1)]
    why = f"{len(ranks)} of {len(found)} chunks are relevant"
    detail = {"verdicts": found, "total_relevant": len(ranks), "reasons": reasons}
    return Result(sum(precisions, 0.0) / len(ranks) if ranks else 0.0, detail=detail, explanation=why)


@metric(
    needs=("context", "ground_truth"),
    version="2",
    aliases={
        "agenteval:llm_context_recall": {"method": "holistic"},
        "hpd:ContextRecallEvaluator": {"method": "claims"},
        "trusys:context-recall": {"method": "claims", "threshold": 0.0},
        "agenteval:ContextRecallMetric": {"method": "holistic"},
    },
)
def llm_context_recall(
    turn: Turn, judge: Asks, *, method: Literal["claims", "holistic"] = "claims", threshold: float | None = None
) -> Result:
    """Rate how much of the ground truth the retrieved context supports.

    The option ``method`` selects one of these procedures:

    - ``claims`` makes two judge calls. The first call lists the claims in the ground truth. The second call decides whether the
      context supports each claim. A claim without a verdict counts as unsupported. If the ground truth contains no claims, the
      score is skipped as ``no_claims``.
    - ``holistic`` makes a single judge call, which returns a rating from 0 to 100. The value is this rating divided by 100.

    Parameters:
        method: Procedure, as described above.
        threshold: Lowest passing value. If null, the threshold is 0.7 with ``holistic``, and there is no verdict with ``claims``.

    Detail with ``claims``: ``claims`` as ``[{claim, verdict}]``, and ``missing`` (unsupported claims). Detail with ``holistic``:
    ``information_present``, ``information_missing``, and ``reasoning``.
    """
    truth, context = jsonio.text_of(truth_of(turn)), _joined_context(turn.context)
    if method == "holistic":
        reply = judge.ask(
            "context_recall",
            _PROMPTS["truth_held"],
            {"ground_truth": truth, "context": context},
            '{"reasoning": "<why, in one to three sentences>", "informationPresent": [<what of the ground truth the context holds>], '
            '"informationMissing": [<what it does not hold>], "score": <0 to 100>}',
        )
        keys = {"information_present": "informationPresent", "information_missing": "informationMissing"}
        return _with_holistic_threshold(scored(reply, top=100, why="reasoning", **keys), threshold)
    reply = judge.ask("claims", _PROMPTS["claims_of_truth"], {"ground_truth": truth}, '{"claims": ["<claim>", ...]}')
    if not (claims := texts(reply, "claims")):
        return skip("no_claims")
    reply = judge.ask(
        "verdicts",
        _listing(_PROMPTS["claims_held"], claims, "claims"),
        {"context": context, "claims": numbered(claims)},
        '{"verdicts": [{"claim": "<its number>", "reason": "<the sentence that supports it, or why none does>", '
        '"verdict": "<SUPPORTED or UNSUPPORTED>"}, ...]}',
    )
    found = verdicts(reply, len(claims), ("SUPPORTED", "UNSUPPORTED"), "UNSUPPORTED")
    pairs = list(zip(claims, found, strict=True))
    detail = {
        "claims": [{"claim": claim, "verdict": verdict} for claim, verdict in pairs],
        "missing": [claim for claim, verdict in pairs if verdict == "UNSUPPORTED"],
    }
    supported = found.count("SUPPORTED")
    why = f"the context supports {supported} of {len(claims)} claims"
    return Result(supported / len(claims), detail=detail, explanation=why)


@metric(
    needs=("input", "context"),
    version="2",
    aliases={
        "hpd:ContextRelevanceEvaluator": {"method": "holistic"},
        "trusys:context-relevance": {"method": "extract", "threshold": 0.0},
    },
)
def llm_context_relevance(turn: Turn, judge: Asks, *, method: Literal["extract", "holistic"] = "extract") -> Result:
    """Rate how much of the retrieved context is needed to answer the question.

    The option ``method`` selects one of these procedures:

    - ``extract`` makes a single judge call, which lists the needed chunks by number or text. The value is the share of needed
      chunks. If the judge finds the context insufficient, the value is 0.
    - ``holistic`` makes a single judge call, which returns a value from 0 to 1.

    Parameters:
        method: Procedure, as described above.

    Detail with ``extract``: ``relevant_units``, ``total_units``, and ``insufficient``. Detail with ``holistic``: ``reason``.
    """
    question, context = turn.input or "", turn.context
    if method == "holistic":
        material = {"question": question, "context": _joined_context(context)}
        return scored(judge.ask("context_relevance", _PROMPTS["context_relevant"], material, SCORE))
    reply = judge.ask(
        "extract",
        _PROMPTS["context_needed"],
        {"question": question, "context": "\n".join(f"[{number}] {chunk}" for number, chunk in enumerate(context))},
        '{"reason": "<what the question needs, and where it stands>", "relevant": [<number of a passage>, ...], "insufficient": <true or false>}',
    )
    insufficient = reply.get("insufficient") is not None and boolean(reply, "insufficient")
    listed = reply.get("relevant") if insufficient else entries(reply, "relevant")
    units = _chunks_listed(listed if isinstance(listed, list) else [], context)
    detail = {"relevant_units": len(units), "total_units": len(context), "insufficient": insufficient}
    if insufficient:
        return Result(0.0, detail=detail, explanation="the context is insufficient for an answer")
    why = f"{len(units)} of {len(context)} chunks are needed for an answer"
    return Result(len(units) / len(context), detail=detail, explanation=why)


def _chunks_listed(listed: Sequence[Any], context: Sequence[str]) -> set[int]:
    """Return the indexes of the chunks that the judge listed by index or text. For a repeated text, return the first index."""
    places: dict[str, int] = {}
    for place, chunk in enumerate(context):
        places.setdefault(chunk.strip(), place)
    found = set()
    for entry in listed:
        if isinstance(entry, str):
            text = entry.strip()
            number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else -1
            place = places.get(text, number) if text else -1
        else:
            place = entry if isinstance(entry, int) and not isinstance(entry, bool) else -1
        if 0 <= place < len(context):
            found.add(place)
    return found


@metric(
    needs=("output", "ground_truth"),
    threshold=0.7,
    version="3",
    aliases=(
        "agenteval:llm_answer_correctness",
        "agentunit:answer_correctness",
        "agenteval:AnswerCorrectnessMetric",
        "agentunit:AnswerCorrectnessMetric",
    ),
)
def llm_answer_correctness(turn: Turn, judge: Asks, *, exact_shortcut: bool = True) -> Result:
    """Rate how correct and complete the answer's facts are, compared with the ground truth.

    A single judge call returns a rating from 0 to 100. The value is this rating divided by 100. If a judge call is needed but the
    input is missing, the score is skipped as ``missing:input``.

    Parameters:
        exact_shortcut: If true and the answer equals the ground truth, the value is 1 and no judge is called. Leading and trailing
            whitespace is ignored.

    Detail: ``facts_correct``, ``facts_incorrect``, ``facts_missing``, and ``reasoning``. If no judge was called, ``shortcut`` is
    ``exact``.
    """
    answer, truth = turn.output or "", jsonio.text_of(truth_of(turn))
    if exact_shortcut and answer.strip() == truth.strip():
        return Result(1.0, detail={"shortcut": "exact"}, explanation="the answer is the ground truth")
    if not turn.input:
        return skip("missing:input")
    reply = judge.ask(
        "answer_correctness",
        _PROMPTS["correct"],
        {"question": turn.input, "answer": answer, "ground_truth": truth},
        '{"reasoning": "<why, in one to three sentences>", "factsCorrect": [<facts that the answer has right>], '
        '"factsIncorrect": [<facts that it has wrong>], "factsMissing": [<facts of the ground truth that it lacks>], "score": <0 to 100>}',
    )
    keys = {"facts_correct": "factsCorrect", "facts_incorrect": "factsIncorrect", "facts_missing": "factsMissing"}
    return scored(reply, top=100, why="reasoning", **keys)


@metric(needs=("output", "ground_truth"), version="2", aliases=("hpd:AnswerSimilarityEvaluator",))
def llm_answer_similarity(turn: Turn, judge: Asks) -> Result:
    """Similarity in meaning between the answer and the ground truth, from 0 to 1.

    A single judge call returns the value.

    Detail: ``reason``.
    """
    material = {"answer": turn.output or "", "ground_truth": jsonio.text_of(truth_of(turn))}
    return scored(judge.ask("answer_similarity", _PROMPTS["similar"], material, SCORE))


@metric(
    needs=("output", "context"),
    direction="down",
    version="2",
    aliases=("hpd:HallucinationEvaluator", "agentunit:hallucination_rate", "agentunit:HallucinationRateMetric"),
)
def llm_hallucination(turn: Turn, judge: Asks) -> Result:
    """Share of the answer's factual claims that the context contradicts.

    The first judge call lists the claims. The second call decides for each claim whether the context supports it, contradicts it,
    or does neither. Only contradicted claims increase the value. ``unsupported_rate`` is the share of claims that are neither
    supported nor contradicted.

    Unrecognized verdicts count as unsupported. If the judge returns fewer verdicts than claims, the score is an error. If the answer
    contains no claims, the value is 0 (vacuous). If the answer is blank, the score is skipped as ``empty_output``.

    Detail: numbers of claims (``supported``, ``contradicted``, ``unsupported``), ``contradicted_claims``, and ``unsupported_rate``.
    """
    answer, context = turn.output or "", _joined_context(turn.context)
    if not answer.strip():
        return skip("empty_output")
    # without the context, which would bias the list
    reply = judge.ask("claims", _PROMPTS["claims"], {"answer": answer}, '{"claims": ["<claim>", ...]}')
    if not (claims := texts(reply, "claims")):
        return vacuous(0.0, **_hallucinated([], []))
    reply = judge.ask(
        "verdicts",
        _listing(_PROMPTS["contradicted"], claims, "claims"),
        {"context": context, "claims": numbered(claims)},
        '{"verdicts": [{"claim": "<its number>", "reason": "<the sentence that decides it, or that there is none>", '
        '"verdict": "<SUPPORTED, CONTRADICTED or UNSUPPORTED>"}, ...]}',
    )
    given = [verdict_of(entry) for entry in entries(reply)[: len(claims)]]
    if len(given) < len(claims):  # the context could contradict the other claims
        raise invalid("verdicts", f"one per claim ({len(claims)})")
    found = [verdict.strip().upper() if isinstance(verdict, str) else "" for verdict in given]
    detail = _hallucinated(claims, found)
    why = f"the context contradicts {detail['contradicted']} of {len(claims)} claims"
    return Result(detail["contradicted"] / len(claims), detail=detail, explanation=why)


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
    needs=("input", "output", "context"),
    threshold=0.7,
    version="2",
    aliases=("agenteval:llm_groundedness", "agenteval:GroundednessMetric"),
)
def llm_groundedness(turn: Turn, judge: Asks, *, fabrication_cap: Share = 0.3) -> Result:
    """Rate how well the context supports the answer. The metric fails if any source, figure, or fact is invented.

    A single judge call returns a rating from 0 to 100. The value is this rating divided by 100. The rating is lower if the answer
    presents guesses as facts. If the judge lists invented elements, the metric fails regardless of the threshold, and the value is
    at most ``fabrication_cap``.

    Parameters:
        fabrication_cap: Highest value for an answer with invented elements.

    Detail: ``grounded_claims``, ``ungrounded_claims``, ``fabricated_elements``, ``uncertainty_acknowledged``, and ``reasoning``.
    """
    reply = judge.ask(
        "groundedness",
        _PROMPTS["grounded"],
        {"question": turn.input or "", "answer": turn.output or "", "context": _joined_context(turn.context)},
        '{"reasoning": "<why, in one to three sentences>", "groundedClaims": [<claims with support>], "ungroundedClaims": [<claims without>], '
        '"fabricatedElements": [<what is made up; empty if nothing is>], "uncertaintyAcknowledged": <true or false>, "score": <0 to 100>}',
    )
    fabricated = texts(reply, "fabricatedElements")
    result = scored(reply, top=100, why="reasoning", grounded_claims="groundedClaims", ungrounded_claims="ungroundedClaims")
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


@metric(needs=("input", "output", "ground_truth"), version="2", aliases=("trusys:factuality",))
def llm_factuality(
    turn: Turn, judge: Asks, *, scores: dict[Category, Share] | None = None, threshold: float | None = None
) -> Result:
    """Agreement of the answer's facts with the ground truth, in five categories.

    A single judge call selects one of these categories, which determines the value. If the judge returns an unknown category, the
    score is an error.

    | category | the answer … | default score |
    |---|---|---|
    | A | contains some or no facts of the ground truth and doesn't contradict it | 1 |
    | B | contains all facts of the ground truth and more, and doesn't contradict it | 1 |
    | C | contains exactly the facts of the ground truth | 1 |
    | D | contradicts the ground truth | 0 |
    | E | differs from the ground truth, but not in its facts | 1 |

    Parameters:
        scores: Scores of the categories. Omitted categories keep their default score. For example, ``{"A": 0.5}`` gives an
            incomplete answer the score 0.5.
        threshold: Lowest passing value. By default, any value above 0 passes.

    Detail: ``category`` and ``reason``.
    """
    reply = judge.ask(
        "category",
        _PROMPTS["category"],
        {"question": turn.input or "", "answer": turn.output or "", "ground_truth": jsonio.text_of(truth_of(turn))},
        '{"reason": "<the facts that they share and those on which they differ>", "category": "<A, B, C, D or E>"}',
    )
    values: dict[Any, float] = {**_CATEGORY_SCORES, **(scores or {})}
    category = word_of(reply.get("category"), tuple(_CATEGORY_SCORES), "category")
    value, reason = values[category], reason_of(reply)
    passed = value > 0 if threshold is None else None
    return Result(value, passed=passed, detail={"category": category, "reason": reason}, explanation=reason)


@metric(
    needs=("output",), references=("baseline_response", "noisy_input"), version="2", aliases=("hpd:NoiseSensitivityEvaluator",)
)
def llm_noise_sensitivity(
    turn: Turn, judge: Asks, *, baseline_response: str | None = None, noisy_input: str | None = None
) -> Result:
    """Robustness of the answer to noise in the input: 1 if the noise didn't affect the answer.

    A single judge call compares the answer with a baseline, which is the answer to the input without noise. The call returns the
    value, from 0 to 1. If there is no baseline, the score is skipped as ``missing:baseline``.

    Parameters:
        baseline_response: Answer to the input without noise. The default is the turn's reference ``baseline_response``.
        noisy_input: Input with noise. The default is the turn's reference ``noisy_input`` or, if unset, the turn's input.

    Detail: ``reason``.
    """
    baseline = jsonio.text_of(reference(turn, baseline_response, "baseline_response"))
    if not baseline.strip():
        return skip("missing:baseline")
    noisy = reference(turn, noisy_input, "noisy_input")
    noisy_text = jsonio.text_of(turn.input if noisy is None else noisy)
    material = {"noisy_input": noisy_text, "baseline_response": baseline, "response": turn.output or ""}
    return scored(judge.ask("noise_sensitivity", _PROMPTS["robust"], material, SCORE))


@metric(
    needs=("output",),
    uses=("ground_truth",),
    references=("reference_sql", "schema"),
    boolean=True,
    version="2",
    aliases=("hpd:SqlSemanticEquivalenceEvaluator",),
)
def llm_sql_semantic_equivalence(
    turn: Turn, judge: Asks, *, schema: str | dict[str, Any] | list[Any] | None = None, reference_sql: str | None = None
) -> Result:
    """Check that the output, an SQL query, returns the same results as a reference query.

    A single judge call returns true or false. If there is neither a reference query nor a ground truth, the score is skipped as
    ``missing:ground_truth``.

    Parameters:
        schema: Schema of the tables in both queries, as text or JSON. The default is the turn's reference ``schema``.
        reference_sql: Reference query. The default is the turn's reference ``reference_sql`` or, if unset, the turn's ground truth.

    Detail: ``equivalent`` and ``reason``.
    """
    wanted = jsonio.text_of(reference(turn, reference_sql, "reference_sql")) or jsonio.text_of(truth_of(turn))
    if not wanted:
        return skip("missing:ground_truth")
    tables = jsonio.text_of(reference(turn, schema, "schema"))
    reply = judge.ask(
        "equivalence",
        _PROMPTS["equivalent"],
        {"query": turn.output or "", "reference_sql": wanted, **({"schema": tables} if tables else {})},
        '{"reason": "<what differs on which database, or why nothing does>", "equivalent": <true or false>}',
    )
    return judged_true(reply, "equivalent")
