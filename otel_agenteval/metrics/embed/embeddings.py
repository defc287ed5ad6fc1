"""These metrics compare texts, based on their embeddings.

Each metric sends all uncached texts of a turn in one request, unless the server rejects it as too large. A value that is a negative
cosine, or a negative mean of cosines, becomes 0. Cosines of a zero vector are 0. Don't compare values from different models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import numpy
from annotated_types import Ge, Le, MinLen

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import Turn
from ..lib import applies
from ..lib.tokens import long_words
from ..lib.values import Words, word_list
from ..registry import EPSILON, Embeds, Param, Result, metric, skip, vacuous

Vector = Sequence[float]


def _as_arrays(one: Vector, other: Vector) -> tuple[numpy.ndarray, numpy.ndarray]:
    left, right = numpy.asarray(one, dtype=float), numpy.asarray(other, dtype=float)
    if left.shape != right.shape or left.ndim != 1:
        raise MetricError("invalid_answer", "embedder: returned vectors of different lengths")
    return left, right


def _direction(vector: numpy.ndarray) -> numpy.ndarray | None:
    if (largest := numpy.max(numpy.abs(vector), initial=0.0)) == 0:
        return None
    scaled: numpy.ndarray = vector / largest  # avoids overflow and underflow of the squares
    scaled /= numpy.linalg.norm(scaled)
    return scaled


def cosine(one: Vector, other: Vector) -> float:
    left, right = (_direction(vector) for vector in _as_arrays(one, other))
    return 0.0 if left is None or right is None else float(min(1.0, max(-1.0, left @ right)))


def share(similarity: float) -> float:
    return min(1.0, max(0.0, similarity))


_GRADES = ((0.9, "Excellent"), (0.75, "Good"), (0.6, "Satisfactory"), (0.4, "Needs Improvement"), (0.2, "Poor"))


def _blank(text: str | None) -> bool:
    return not (text or "").strip()


@metric(
    needs=("output", "ground_truth"),
    threshold=0.7,
    aliases=("agenteval:embed_answer_similarity", "agenteval:AnswerSimilarityMetric"),
)
def embed_answer_similarity(turn: Turn, embedder: Embeds) -> Result:
    """Cosine similarity between the embeddings of the answer and the ground truth.

    If the ground truth is a list of texts, the highest similarity counts. A blank answer is skipped as ``empty_output``.

    Detail: ``cosine_similarity`` (-1..1) and ``interpretation`` (Excellent from 0.9, Good from 0.75, Satisfactory from 0.6, Needs
    Improvement from 0.4, Poor from 0.2, otherwise Very Poor).
    """
    if _blank(output := turn.output or ""):
        return skip("empty_output")
    truth = turn.ground_truth
    are_texts = isinstance(truth, list) and all(isinstance(text, str) and text.strip() for text in truth)
    answer, *wanted = embedder.embed([output, *map(jsonio.text_of, truth if truth and are_texts else [truth])])
    similarity = max(cosine(one, answer) for one in wanted)
    grade = next((word for bound, word in _GRADES if similarity >= bound - EPSILON), "Very Poor")
    return Result(share(similarity), detail={"cosine_similarity": similarity, "interpretation": grade})


def _with_context(embedder: Embeds, text: str, context: Sequence[str], aggregate: Literal["joined", "max", "mean"]) -> Result:
    if all(_blank(chunk) for chunk in context):
        return skip("missing:context")
    # Embedders refuse blank texts, so blank chunks are omitted.
    chunks = ["\n---\n".join(context)] if aggregate == "joined" else [chunk for chunk in context if not _blank(chunk)]
    first, *others = embedder.embed([text, *chunks])
    found = [cosine(first, other) for other in others]
    similarity = sum(found) / len(found) if aggregate == "mean" else max(found)
    return Result(share(similarity), detail={"cosine_similarity": similarity})


@metric(
    needs=("output", "context"),
    threshold=0.5,
    aliases=("agenteval:embed_response_context", "agenteval:ResponseContextSimilarityMetric"),
)
def embed_response_context(turn: Turn, embedder: Embeds, *, aggregate: Literal["joined", "max"] = "joined") -> Result:
    """Cosine similarity between the embeddings of the answer and the retrieved context.

    A blank answer is skipped as ``empty_output``, and a blank context as ``missing:context``.

    Parameters:
        aggregate: ``joined`` embeds the context as one text, with a line ``---`` between chunks. ``max`` embeds each chunk
            separately and uses the chunk that is most similar to the answer. ``max`` suits long contexts better.

    Detail: ``cosine_similarity`` (-1..1).
    """
    output = turn.output or ""
    return skip("empty_output") if _blank(output) else _with_context(embedder, output, turn.context, aggregate)


@metric(
    needs=("input", "context"), threshold=0.5, aliases=("agenteval:embed_query_context", "agenteval:QueryContextSimilarityMetric")
)
def embed_query_context(turn: Turn, embedder: Embeds, *, aggregate: Literal["joined", "max", "mean"] = "joined") -> Result:
    """Cosine similarity between the embeddings of the question and the retrieved context.

    If the whole context is blank, the score is skipped as ``missing:context``.

    Parameters:
        aggregate: ``joined`` embeds the context as one text, with a line ``---`` between chunks. ``max`` embeds each chunk
            separately and uses the chunk that is most similar to the question. ``mean`` uses the mean similarity of the chunks.

    Detail: ``cosine_similarity`` (-1..1).
    """
    return _with_context(embedder, turn.input or "", turn.context, aggregate)


# --- configured text


def _value_and_verdict(
    answer: Vector, wanted: Vector, measure: Literal["cosine", "dot", "euclidean"], threshold: float, *, inverse: bool
) -> tuple[float, bool]:
    left, right = _as_arrays(answer, wanted)
    if measure == "euclidean":
        length = float(numpy.linalg.norm(left - right))
        near, far = length <= threshold + EPSILON, length >= threshold - EPSILON
        value = 1 / (1 + length)
    else:
        similarity = cosine(answer, wanted) if measure == "cosine" else float(left @ right)
        near, far = similarity >= threshold - EPSILON, similarity <= threshold + EPSILON
        value = share(similarity) if measure == "cosine" else similarity
    return (1 - value, far) if inverse else (value, near)


@metric(needs=("output",), threshold=0.75, aliases=("trusys:similar",))
def embed_similar(
    turn: Turn,
    embedder: Embeds,
    *,
    value: Annotated[Words | Annotated[list[Words], MinLen(1)], Param("expected_output", "expcted_output")],
    metric: Literal["cosine", "dot", "euclidean"] = "cosine",  # the parameter's name in the catalog
    threshold: float = 0.75,
    inverse: bool = False,
) -> Result:
    """Similarity between the output and a text of your choice, based on their embeddings.

    The option ``metric`` selects the measure:

    | ``metric`` | passes if | value |
    |---|---|---|
    | ``cosine`` | the similarity is at least the threshold | the similarity, or 0 if it is negative |
    | ``dot`` | the similarity is at least the threshold | the similarity |
    | ``euclidean`` | the distance is at most the threshold | ``1 / (1 + distance)`` |

    If ``value`` is a list, the metric passes if one of its texts passes. The score has the value of the first text that passes. If no text
    passes, the score has the highest of the texts' values.

    If ``inverse`` is true, the output must differ from all texts. The conditions in the table are reversed, and each value
    becomes ``1 - value``. The score's value is the lowest of these values.

    If the output is blank, the score is skipped as ``empty_output``.

    Parameters:
        value: Text to compare with, or a list of texts.
        metric: Measure of similarity.
        threshold: Lowest similarity, or highest distance, that passes.
        inverse: If true, the output must differ from the texts.

    Detail: ``index``, the position (from 0) of the text that determines the value.
    """
    if _blank(output := turn.output or ""):
        return skip("empty_output")
    wanted = [value] if isinstance(value, str) else value
    answer, *others = embedder.embed([output, *wanted])
    found = [_value_and_verdict(answer, other, metric, threshold, inverse=inverse) for other in others]
    values, passes = [value for value, _ in found], [passed for _, passed in found]
    if inverse:
        index, passed = values.index(min(values)), all(passes)
    else:
        index = passes.index(True) if True in passes else values.index(max(values))
        passed = passes[index]
    return Result(values[index], passed=passed, detail={"index": index})


# --- within a conversation


@metric(applies=applies.question_and_answer, threshold=0.5, aliases=("pandaprobe:coherence",))
def embed_coherence(turn: Turn, embedder: Embeds) -> Result:
    """Similarity between the embeddings of question and answer, a cheap but weak sign of coherence.

    If a text is blank, the value is 1 (vacuous).

    Detail: ``coherence_gap`` (1 minus the value, rounded to four decimals) and, for a blank text, ``note``.
    """
    asked, answered = turn.input or "", turn.output or ""
    if _blank(asked) or _blank(answered):
        return vacuous(1.0, coherence_gap=0.0, note="empty_input_or_output")
    similarity = share(cosine(*embedder.embed([asked, answered])))
    return Result(similarity, detail={"coherence_gap": round(1 - similarity, 4)})


@metric(uses=("history",), threshold=0.5, version="2", aliases=("pandaprobe:loop_detection",))
def embed_loop_detection(
    turn: Turn,
    embedder: Embeds,
    *,
    window: Annotated[int, Ge(1), Le(100)] = 3,
    stop_words: Literal["default"] | list[str] = "default",
) -> Result:
    """Novelty of the answer: 1 if it differs from the preceding answers, 0 if it repeats one.

    The metric compares the answer with each answer in the last ``window`` turns of ``history``. The value is ``1 - max(cosine *
    jaccard)`` over these answers. Turns without an answer count toward ``window``.

    The Jaccard index compares the sets of distinct lowercase words. Stop words and words of one character are ignored. For scripts
    without spaces, the index compares characters or syllables, as in ``code_bleu``. If no words remain, the index is 0.

    If the answer is blank, or none of the last ``window`` turns has an answer, the value is 1 (vacuous).

    Parameters:
        window: Number of earlier turns to compare the answer with.
        stop_words: Words to ignore. ``default`` is a list of 70 English words.

    Detail: ``window_size`` (number of compared answers), ``max_hybrid`` (highest ``hybrid_score``), and ``comparisons``, oldest
    first. Each comparison has ``trace_index`` (position in ``history``, from 0), ``cosine_similarity``, ``jaccard_similarity``, and
    ``hybrid_score`` (their product). All similarities and scores are rounded to four decimals.
    """
    output = turn.output or ""
    newest = enumerate(turn.history[-window:], max(0, len(turn.history) - window))
    outputs = ((place, jsonio.text_of(one.get("output"))) for place, one in newest)
    earlier = [] if _blank(output) else [(place, text) for place, text in outputs if not _blank(text)]
    if not earlier:
        return vacuous(1.0, window_size=0, max_hybrid=0.0, comparisons=[])
    ignored = frozenset(word_list("stop_words") if stop_words == "default" else map(str.lower, stop_words))
    now, *before = embedder.embed([output, *(text for _, text in earlier)])
    words = long_words(output, 2) - ignored
    highest, comparisons = 0.0, []
    for (index, text), vector in zip(earlier, before, strict=True):
        others = long_words(text, 2) - ignored
        shared = len(words & others) / len(words | others) if words or others else 0.0
        near = share(cosine(now, vector))
        highest = max(highest, near * shared)
        similarities = {"cosine_similarity": near, "jaccard_similarity": shared, "hybrid_score": near * shared}
        comparisons.append({"trace_index": index, **{name: round(value, 4) for name, value in similarities.items()}})
    detail = {"window_size": len(comparisons), "max_hybrid": round(highest, 4), "comparisons": comparisons}
    return Result(1 - highest, detail=detail)
