"""These metrics measure the word overlap of the output with reference texts.

Compare values only if they were computed with the same tokenizer and smoothing method. If there are several references,
``code_bleu`` compares the output with all references. Each other metric uses the reference that gives the highest value. In
``detail``, ``reference_index`` is the position of the best reference, starting at 0 and not counting blank references.

All tokenizers of these metrics handle scripts and encodings in the same way:

- Letters keep their accents and vowel signs, so words in Hindi or Tamil stay whole. In Arabic and Hebrew, a word with optional
  vowel signs differs from the same word without them.
- Text in scripts without spaces is split. In Chinese and Japanese, each character counts as a word. In Thai, Lao, Khmer, and
  Burmese, each written syllable counts as a word.
- Different encodings of a character are equal. Examples are an accented letter as one or two code points, full-width and plain
  digits, and an emoji with and without a variation selector. Most other invisible characters are ignored.

If a text that contains a word is compared with itself, the value is 1, with three exceptions:

- ``code_meteor`` is usually below 1, especially for short texts.
- ``code_bleu`` with ``method4`` smoothing is below 1 for texts of 2 to ``max_n - 1`` words, as in NLTK.
- ``code_rouge_n`` and ``code_gleu`` are 0 for texts shorter than their shortest n-gram.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from annotated_types import Ge, Le

from ...core import jsonio
from ...core.errors import MetricError
from ...core.fact_forms import a_document, one_or_more
from ...core.turn import Turn
from ..lib.tokens import Gram, Tokenizer, common_subsequence, ngrams, stem, tokens_of
from ..lib.values import Share, readable, reference, truth_of
from ..registry import Param, Result, metric, skip

_overlap_metric = functools.partial(
    metric, needs=("output",), uses=("ground_truth",), references=("references", "reference"), traits=("heavy",), version="2"
)

Texts = str | list[str]
Order = Annotated[int, Ge(1), Le(16)]
Measure = Literal["recall", "precision", "f1"]

TEXT_LIMIT = 100_000
"""Maximum number of characters of the output, and of all references together."""
PAIR_LIMIT = 1_000_000
"""Maximum product of output length and number of references, because each reference is compared with the whole output."""
WORD_LIMIT = TEXT_LIMIT // 2
"""Maximum number of words for ROUGE. For example, texts in scripts without spaces can exceed this limit."""
SKIP_BIGRAM_LIMIT = 1_000
"""Maximum number of words for skip-bigrams. A text of ``n`` words has about ``n * n / 2`` skip-bigrams."""

References = Annotated[Texts | None, Param("reference", "value", "expected_output", "expcted_output")]
Reference = Annotated[Texts | None, Param("references", "value", "expected_output", "expcted_output")]


def _references(turn: Turn, given: Texts | None) -> list[str]:
    found = reference(turn, given, "references", "reference")
    read = one_or_more(lambda one, path: a_document(one, path) if isinstance(one, Mapping) else one)
    return _texts(truth_of(turn) if found is None else readable(read, found, "references"))


def _texts(found: Any) -> list[str]:
    texts = [jsonio.rendered(text) for text in (found if isinstance(found, (list, tuple)) else [found]) if text is not None]
    return [text for text in texts if text.strip()] or texts


def _why_unusable(output: str, references: Sequence[str], *, missing: str = "references", empty: bool = True) -> Result | None:
    if not references or (empty and not references[0].strip()):
        return skip(f"missing:{missing}")
    if empty and not output.strip():
        return skip("empty_output")
    longest = max(len(output), sum(map(len, references)))
    return skip("too_long") if longest > TEXT_LIMIT or len(output) * len(references) > PAIR_LIMIT else None


class _Match(NamedTuple):
    precision: float
    recall: float
    f1: float


def _match(common: int, candidate: int, wanted: int) -> _Match:
    precision = common / candidate if candidate else 0.0
    recall = common / wanted if wanted else 0.0
    return _Match(precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0)


# --- BLEU and its relatives ---------------------------------------------------------------------------------------


@_overlap_metric(
    threshold=0.5,
    aliases={
        "trusys:bleu": {"tokenizer": "whitespace", "smoothing": "epsilon"},
        "hpd:BleuEvaluator": {"tokenizer": "ms", "smoothing": "method4"},
    },
)
def code_bleu(
    turn: Turn,
    *,
    references: References = None,
    max_n: Order = 4,
    tokenizer: Tokenizer = "ms",
    smoothing: Literal["method4", "epsilon"] = "method4",
) -> Result:
    """BLEU of the output: share of its word n-grams that the references contain.

    The value is a precision multiplied by a penalty for short outputs. The precision is the geometric mean of the precisions for
    n-grams of 1 to ``max_n`` words. An n-gram counts at most as often as it occurs in one reference. The penalty depends on the
    reference whose length is closest to the output's (the shorter reference if two are equally close). If the output is longer than
    this reference, the penalty is 1. Otherwise, the penalty is ``exp(1 - reference length / output length)``.

    The score is skipped with one of these reasons:

    - ``empty_output`` if the output is blank.
    - ``missing:references`` if there are no references, or only blank references. Blank references are ignored.
    - ``too_long`` if the output or all references together exceed 100,000 characters, or if the number of output characters times
      the number of references exceeds a million.

    Parameters:
        references: Reference text, or a list of reference texts. The default is the turn's references or, if unset, the
            turn's ground truth. Aliases: ``reference``, ``value``, ``expected_output``, ``expcted_output`` (spelled as in Trusys).
        max_n: Maximum number of words in an n-gram.
        tokenizer: How to split texts into words. ``ms`` converts text to upper case. Each symbol or punctuation mark is a separate
            word, except punctuation after a number. ``72.`` is one word and doesn't equal ``72``, so use ``word`` for short
            answers. ``word`` converts text to lower case and uses runs of letters and digits as words or, if there are none,
            symbols. ``whitespace`` converts text to lower case and splits it at whitespace.
        smoothing: How to avoid a precision of 0 for n-gram lengths without a match. ``method4`` (Chen and Cherry) replaces the
            number of matches with ``ln(output words) / (5 · 2)`` for the first such length, ``ln(output words) / (5 · 4)`` for the
            second, and so on. If the texts have no common word, the value is 0. ``epsilon`` replaces a precision of 0 with 1e-7,
            ignores n-grams longer than the output, and for each length counts only matches with the best reference.

    Detail: ``precisions`` (by n-gram length, after smoothing), ``brevity_penalty``, ``output_words``, and ``reference_words``.
    """
    output = turn.output or ""
    texts = _references(turn, references)
    if (unusable := _why_unusable(output, texts)) is not None:
        return unusable
    candidate = tokens_of(output, tokenizer)
    wanted = [tokens_of(text, tokenizer) for text in texts]
    words = len(candidate)
    closest = min((len(tokens) for tokens in wanted), key=lambda length: (abs(length - words), length))
    penalty = 1.0 if words > closest else math.exp(1 - closest / words) if words else 0.0
    smoothed = _smoothed_by_method4 if smoothing == "method4" else _smoothed_by_epsilon
    mean, precisions = smoothed(candidate, wanted, max_n)
    detail = {"precisions": precisions, "brevity_penalty": penalty, "output_words": words, "reference_words": closest}
    return Result(penalty * mean, detail=detail)


def _smoothed_by_method4(candidate: Sequence[str], references: Sequence[Sequence[str]], max_n: int) -> tuple[float, list[float]]:
    precisions: list[float] = []
    zeros = 0
    for n in range(1, max_n + 1):
        counts = ngrams(candidate, n)
        allowed: Counter[Gram] = Counter()
        for tokens in references:
            allowed |= ngrams(tokens, n) & counts
        common: float = allowed.total()
        if not common and n == 1:
            return 0.0, [0.0] * max_n
        if not common and len(candidate) > 1:
            zeros += 1
            common = math.log(len(candidate)) / (5 * 2**zeros)
        precisions.append(common / max(1, counts.total()))
    # A precision that is still 0 (an output of one word) is skipped. The other weights don't change.
    return math.exp(sum(math.log(precision) for precision in precisions if precision) / max_n), precisions


def _smoothed_by_epsilon(candidate: Sequence[str], references: Sequence[Sequence[str]], max_n: int) -> tuple[float, list[float]]:
    precisions: list[float] = []
    for n in range(1, min(max_n, len(candidate)) + 1):
        counts = ngrams(candidate, n)
        common = max((ngrams(tokens, n) & counts).total() for tokens in references)
        precisions.append(common / counts.total() or 1e-7)
    if not precisions:
        return 0.0, []
    return math.exp(sum(map(math.log, precisions)) / len(precisions)), precisions


@_overlap_metric(threshold=0.5, aliases=("hpd:GleuEvaluator",))
def code_gleu(
    turn: Turn, *, references: References = None, min_n: Order = 1, max_n: Order = 4, tokenizer: Tokenizer = "ms"
) -> Result:
    """Google-BLEU (GLEU) of the output: the lower of n-gram precision and recall.

    Precision and recall count n-grams of all lengths from ``min_n`` to ``max_n`` words together. For skip reasons, see
    ``code_bleu``.

    Parameters:
        references: Reference texts. See ``code_bleu``.
        min_n: Minimum number of words in an n-gram.
        max_n: Maximum number of words in an n-gram.
        tokenizer: Tokenizer. See ``code_bleu``.

    Detail: ``matches`` (number of common n-grams), ``output_runs`` and ``reference_runs`` (number of n-grams in each text), and
    ``reference_index``.
    """
    if min_n > max_n:
        raise MetricError("invalid_parameter", f"min_n: must be at most max_n ({max_n}), got {min_n}")
    output = turn.output or ""
    texts = _references(turn, references)
    if (unusable := _why_unusable(output, texts)) is not None:
        return unusable
    candidate = _ngrams_between(tokens_of(output, tokenizer), min_n, max_n)
    total = candidate.total()
    wanted = [_ngrams_between(tokens_of(text, tokenizer), min_n, max_n) for text in texts]
    common = [(runs & candidate).total() for runs in wanted]
    values = [matches / max(total, runs.total(), 1) for matches, runs in zip(common, wanted, strict=True)]
    index = values.index(max(values))
    detail = {"matches": common[index], "output_runs": total, "reference_runs": wanted[index].total(), "reference_index": index}
    return Result(values[index], detail=detail)


def _ngrams_between(tokens: Sequence[str], min_n: int, max_n: int) -> Counter[Gram]:
    runs: Counter[Gram] = Counter()
    for n in range(min_n, max_n + 1):
        runs.update(ngrams(tokens, n))
    return runs


@metric(
    needs=("output",), uses=("ground_truth",), threshold=0.5, aliases=("hpd:TextF1Evaluator",), traits=("heavy",), version="2"
)
def code_text_f1(
    turn: Turn, *, ground_truth: Annotated[Texts | None, Param("reference", "references")] = None, tokenizer: Tokenizer = "ms"
) -> Result:
    """F1 score of the output's words compared with the ground truth's words, in any order.

    Precision is the share of the output's words that also occur in the ground truth. Recall is the share of the ground truth's
    words that also occur in the output. If a word occurs twice in one text and once in the other, one occurrence matches.

    The score is skipped with one of these reasons:

    - ``empty_output`` if the output is blank.
    - ``missing:ground_truth`` if there is no ground truth, or if it is blank.
    - ``too_long`` if a text exceeds the limits of ``code_bleu``.

    Parameters:
        ground_truth: Text, or a list of texts. The default is the turn's ground truth.
        tokenizer: Tokenizer. See ``code_bleu``.

    Detail: ``precision`` and ``recall``.
    """
    output = turn.output or ""
    texts = _texts(truth_of(turn) if ground_truth is None else ground_truth)
    if (unusable := _why_unusable(output, texts, missing="ground_truth")) is not None:
        return unusable
    words = Counter(tokens_of(output, tokenizer))
    wanted = [Counter(tokens_of(text, tokenizer)) for text in texts]
    matches = [_match((words & one).total(), words.total(), one.total()) for one in wanted]
    best = max(matches, key=lambda found: found.f1)
    return Result(best.f1, detail={"precision": best.precision, "recall": best.recall})


# --- ROUGE --------------------------------------------------------------------------------------------------------


_Units = Callable[[Sequence[str]], Counter[Gram]]
_UNITS: dict[str, _Units | None] = {
    "rouge1": functools.partial(ngrams, n=1),
    "rouge2": functools.partial(ngrams, n=2),
    "rougeL": None,
    "rougeS": lambda tokens: Counter(itertools.combinations(tokens, 2)),
}


def _rouge(
    turn: Turn,
    reference: Texts | None,
    tokenizer: Tokenizer,
    measure: Measure,
    units: _Units | None,
    *,
    detail: dict[str, Any],
    least: int,
    most: int = WORD_LIMIT,
) -> Result:
    """Return the score for the reference with the highest ``measure``.

    ``units`` counts the n-grams or pairs to compare. With None, the longest common subsequence is used. If both a reference and
    the output have fewer than ``least`` words, the score is 1. If only the reference is that short, the score is 0.
    """
    output = turn.output or ""
    texts = _references(turn, reference)
    if (unusable := _why_unusable(output, texts, empty=False)) is not None:
        return unusable
    candidate = tokens_of(output, tokenizer)
    wanted = [tokens_of(text, tokenizer) for text in texts]
    if max(len(candidate), sum(map(len, wanted))) > most:
        return skip("too_long")
    counted = units(candidate) if units is not None else Counter()

    def match(tokens: Sequence[str]) -> _Match:
        if len(tokens) < least:
            alike = float(len(candidate) < least)
            return _Match(alike, alike, alike)
        if units is None:
            return _match(common_subsequence(candidate, tokens), len(candidate), len(tokens))
        wanted_units = units(tokens)
        return _match((counted & wanted_units).total(), counted.total(), wanted_units.total())

    matches = [match(tokens) for tokens in wanted]
    values: list[float] = [getattr(found, measure) for found in matches]
    index = values.index(max(values))
    return Result(values[index], detail={**detail, **matches[index]._asdict(), "reference_index": index})


@_overlap_metric(aliases=("hpd:RougeEvaluator",))
def code_rouge(
    turn: Turn,
    *,
    reference: Reference = None,
    variant: Literal["rougeL", "rouge1", "rouge2", "rougeS"] = "rougeL",
    measure: Measure = "recall",
    tokenizer: Tokenizer = "word",
) -> Result:
    """ROUGE of the output: its overlap with the reference text that matches best.

    ``variant`` selects the units to compare:

    - ``rouge1`` and ``rouge2``: n-grams of one or two words that both texts contain
    - ``rougeS``: pairs of words that occur in both texts in the same order, with any gap
    - ``rougeL``: the words of the longest common subsequence

    Recall is the share of the reference's units that match, and precision is the share of the output's units that match. If a
    unit occurs twice in one text and once in the other, one occurrence matches. The default measure is recall, which rewards long
    answers. ``rouge2`` and ``rougeS`` need references of at least two words, and the other variants need at least one word. If
    both the reference and the output are shorter, the value is 1. If only the reference is shorter, the value is 0.

    Without references or a ground truth, the score is skipped as ``missing:references``. If a text exceeds the limits of
    ``code_bleu``, or the output or all references together have more than 50,000 words (1,000 for ``rougeS``), the score is skipped
    as ``too_long``. An empty output isn't skipped.

    Parameters:
        reference: Reference text, or a list of reference texts. The default is the turn's references or, if unset, the
            turn's ground truth.
        variant: Units to compare, as described above.
        measure: Measure that the metric returns as its value. ``f1`` is the harmonic mean of precision and recall.
        tokenizer: Tokenizer. See ``code_bleu``.

    Detail: ``variant``, ``precision``, ``recall``, ``f1``, and ``reference_index``.
    """
    least = 2 if variant in ("rouge2", "rougeS") else 1
    most = SKIP_BIGRAM_LIMIT if variant == "rougeS" else WORD_LIMIT
    return _rouge(turn, reference, tokenizer, measure, _UNITS[variant], least=least, most=most, detail={"variant": variant})


@_overlap_metric(threshold=0.75, aliases=("trusys:rouge-n",))
def code_rouge_n(turn: Turn, *, reference: Reference = None, n: Order = 1, measure: Measure = "f1") -> Result:
    """ROUGE-N of the output: overlap of its n-grams with a reference text's n-grams.

    The metric uses the tokenizer ``word`` of ``code_bleu``. If an n-gram occurs twice in one text and once in the other, one
    occurrence matches. If the output or the reference has fewer than ``n`` words, the value is 0, even if the texts are equal. An
    empty output isn't skipped. The score is skipped for the same reasons as in ``code_rouge``.

    Parameters:
        reference: Reference text, or a list of reference texts. The default is the turn's references or, if unset, the
            turn's ground truth. Aliases: ``references``, ``value``, ``expected_output``, ``expcted_output`` (spelled as in Trusys).
        n: Number of words in an n-gram.
        measure: Measure that the metric returns as its value. ``f1`` is the harmonic mean of precision and recall.

    Detail: ``n``, ``precision``, ``recall``, ``f1``, and ``reference_index``.
    """
    return _rouge(turn, reference, "word", measure, functools.partial(ngrams, n=n), least=0, detail={"n": n})


# --- METEOR -------------------------------------------------------------------------------------------------------


@_overlap_metric(aliases=("hpd:MeteorEvaluator",))
def code_meteor(
    turn: Turn,
    *,
    references: References = None,
    alpha: Share = 0.9,
    beta: Annotated[float, Ge(0)] = 3.0,
    gamma: Share = 0.5,
    tokenizer: Tokenizer = "word",
    stemmer: Literal["suffix", "none"] = "suffix",
) -> Result:
    """Overlap of word stems between the output and a reference, similar to METEOR.

    The value is ``(1 - gamma · (chunks / m)^beta) · P·R / (alpha·P + (1 - alpha)·R)``:

    - ``m`` is the number of aligned words. The metric aligns each word stem of the output, in order, with the first equal stem of
      the reference that isn't aligned yet.
    - ``P`` is the precision: ``m`` divided by the number of words in the output.
    - ``R`` is the recall: ``m`` divided by the number of words in the reference.
    - ``chunks`` is the number of runs of aligned words that are contiguous in both texts. A different word order adds chunks.

    Unlike the original METEOR, the metric doesn't use synonyms and doesn't minimize the number of chunks. Identical texts are
    penalized too: a one-word text compared with itself has the value 0.5. If no word matches, the value is 0. If both texts are
    empty, the value is 1. Without references or a ground truth, the score is skipped as ``missing:references``. If a text
    exceeds the limits of ``code_bleu``, the score is skipped as ``too_long``.

    Parameters:
        references: Reference texts. See ``code_bleu``.
        alpha: Weight of recall in the harmonic mean of precision and recall.
        beta: Exponent of the order penalty.
        gamma: Weight of the order penalty.
        tokenizer: Tokenizer. See ``code_bleu``.
        stemmer: How to reduce words to stems. ``suffix`` removes ``ing``, ``ed``, ``es``, or ``s`` from words that are long enough.
            If ``ing`` or ``ed`` was removed, one of two equal final consonants is also removed (``stopped`` → ``stop``). ``none``
            keeps words unchanged. ``suffix`` doesn't change the words of the tokenizer ``ms``, because they are in upper case.

    Detail: ``matches``, ``precision``, ``recall``, ``chunks``, and ``reference_index``.
    """
    output = turn.output or ""
    texts = _references(turn, references)
    if (unusable := _why_unusable(output, texts, empty=False)) is not None:
        return unusable

    def words(text: str) -> list[str]:
        tokens = tokens_of(text, tokenizer)
        return list(map(stem, tokens)) if stemmer == "suffix" else tokens

    candidate = words(output)
    found = [_alignment(candidate, words(text), alpha, beta, gamma) for text in texts]
    values = [value for value, _ in found]
    index = values.index(max(values))
    return Result(values[index], detail={**found[index][1], "reference_index": index})


def _alignment(
    candidate: Sequence[str], wanted: Sequence[str], alpha: float, beta: float, gamma: float
) -> tuple[float, dict[str, float]]:
    if not candidate and not wanted:
        return 1.0, {"matches": 0, "precision": 1.0, "recall": 1.0, "chunks": 0}
    free: dict[str, list[int]] = {}
    for place in range(len(wanted) - 1, -1, -1):
        free.setdefault(wanted[place], []).append(place)
    matches = chunks = 0
    before: int | None = None  # position of the previous word's match, or None
    for token in candidate:
        places = free.get(token)
        here = places.pop() if places else None
        if here is not None:
            matches += 1
            chunks += before is None or here != before + 1
        before = here
    if not matches:
        return 0.0, {"matches": 0, "precision": 0.0, "recall": 0.0, "chunks": 0}
    precision, recall = matches / len(candidate), matches / len(wanted)
    mean = min(1.0, precision * recall / (alpha * precision + (1 - alpha) * recall))  # rounding can exceed 1
    value = (1 - gamma * (chunks / matches) ** beta) * mean
    return value, {"matches": matches, "precision": precision, "recall": recall, "chunks": chunks}
