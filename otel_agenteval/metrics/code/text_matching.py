"""Deterministic checks on the output text: no trimming, Unicode normalisation or case folding unless a metric says so."""

from __future__ import annotations

import functools
import itertools
import re
import time
from collections import Counter
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Predicate

from ...core import jsonio
from ...core.errors import MetricError
from ...core.extras import require
from ...core.turn import Turn
from ..lib import regex
from ..lib.references import truth_of
from ..lib.refusal import refusal_in
from ..lib.values import json_equal, rendered
from ..registry import Result, metric, skip, vacuous

TextOrNumber = str | bool | int | float

TRUSYS_VALUE = {"expected_output": "value", "expcted_output": "value"}
"""How Trusys also spells ``value``."""
_SHOWN = 100
"""Characters of matched text in ``detail``."""
_SHOWN_SIDE = 200
"""Characters of each side of a comparison in ``detail``."""


def _equality(output: str, value: Any) -> Result:
    """Objects and lists are compared with the output read as JSON, everything else as text."""
    if isinstance(value, (dict, list)):
        expected = jsonio.dumps(value)
        try:
            equal = json_equal(value, jsonio.loads(output))
        except ValueError:
            equal = False
    else:
        expected = rendered(value)
        equal = expected == output
    return Result(equal, detail={"expected": expected[:_SHOWN_SIDE], "actual": output[:_SHOWN_SIDE]})


@metric(
    needs=("output",),
    boolean=True,
    aliases={"trusys:equals": {}, "hpd:OutputEqualsEvaluator": {}, "trusys:not-equals": {"inverse": True}},
    spellings=TRUSYS_VALUE,
)
def code_equals(turn: Turn, *, value: TextOrNumber | dict[str, Any] | list[Any]) -> Result:
    """Whether the output is exactly the expected text, or the expected JSON value.

    Text is compared character by character: ``paris`` and ``Paris `` are not ``Paris``. An object or list is compared by
    structure with the output read as strict JSON: key order is ignored, list order counts, ``1`` equals ``1.0`` and ``true``
    does not equal ``1``; an output that is not JSON is not equal. An empty output equals only an empty ``value``.

    Parameters:
        value: required; a number or boolean means its JSON text (``5.0`` for ``5``, ``True`` for ``true``). Trusys
            also spells it ``expected_output`` and ``expcted_output``.

    Detail: ``expected``, ``actual``, the first 200 characters of each.

    Sources: Trusys equals and (with ``inverse``) not-equals, HPD OutputEqualsEvaluator.
    """
    return _equality(turn.output or "", value)


@metric(needs=("output", "ground_truth"), boolean=True, aliases=("hpd:EqualsGroundTruthEvaluator",))
def code_equals_ground_truth(turn: Turn) -> Result:
    """Whether the output is exactly the turn's ground truth.

    Compared as in ``code_equals``: text character by character, an object or list as JSON. Skipped with
    ``missing:ground_truth`` when there is none.

    Detail: ``expected``, ``actual``, the first 200 characters of each.

    Source: HPD EqualsGroundTruthEvaluator.
    """
    return _equality(turn.output or "", turn.ground_truth)


def _wanted(value: TextOrNumber) -> str:
    text = rendered(value)
    if not text:
        raise MetricError("invalid_parameter", "value must not be empty: every text contains the empty text")
    return text


@metric(
    needs=("output",),
    boolean=True,
    aliases={"trusys:contains": {}, "hpd:OutputContainsEvaluator": {}, "trusys:not-contains": {"inverse": True}},
    spellings=TRUSYS_VALUE,
)
def code_contains(turn: Turn, *, value: TextOrNumber) -> Result:
    """Whether the output contains a text, case-sensitive.

    An empty ``value`` is an error: a check that always passes hides a broken configuration.

    Parameters:
        value: required; a number is looked for as it is written in JSON (``5.0`` as ``5``). Trusys also spells it
            ``expected_output`` and ``expcted_output``.

    Detail: ``value``, as it was looked for.

    Sources: Trusys contains and (with ``inverse``) not-contains, HPD OutputContainsEvaluator.
    """
    text = _wanted(value)
    return Result(text in (turn.output or ""), detail={"value": text})


@metric(
    needs=("output",),
    boolean=True,
    aliases=("trusys:icontains", "hpd:CaseInsensitiveContainsEvaluator"),
    spellings=TRUSYS_VALUE,
)
def code_icontains(turn: Turn, *, value: TextOrNumber) -> Result:
    """Whether the output contains a text, whatever the case.

    Both sides are lower-cased by the simple Unicode rule, which is not case folding: ``ß`` does not match ``SS``. An empty
    ``value`` is an error.

    Parameters:
        value: required; as in ``code_contains``.

    Detail: ``value``, as it was configured.

    Sources: Trusys icontains, HPD CaseInsensitiveContainsEvaluator.
    """
    text = _wanted(value)
    return Result(text.lower() in (turn.output or "").lower(), detail={"value": text})


_QUOTED_FIELD = re.compile(r'"((?:[^"\\]|""|\\.)*)"\s*(?:,|$)', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])|""')


@functools.lru_cache(maxsize=256)
def _fields(text: str) -> tuple[str, ...]:
    """The texts in a comma-separated text; quotes protect commas and white space.

    Raises:
        ValueError: a quote is not closed, or something follows it before the next comma.
    """
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == '"':
            quoted = _QUOTED_FIELD.match(text, at)
            if quoted is None:
                raise ValueError("a quote is not closed")
            found.append(_ESCAPED.sub(lambda escape: escape[1] or '"', quoted[1]))
            at = quoted.end()
        else:
            field = text[at:].split(",", 1)[0]
            found.append(field.strip())
            at += len(field) + 1
    return tuple(field for field in found if field)


def _well_quoted(value: TextOrNumber | list[TextOrNumber]) -> bool:
    try:
        return not isinstance(value, str) or _fields(value) is not None
    except ValueError:
        return False


Texts = Annotated[TextOrNumber | list[TextOrNumber], Predicate(_well_quoted)]


def _listed(value: TextOrNumber | list[TextOrNumber]) -> tuple[str, ...]:
    if isinstance(value, str):
        return _fields(value)
    return tuple(map(rendered, value)) if isinstance(value, list) else (rendered(value),)


def _case(text: str, ignore_case: bool) -> str:
    return text.lower() if ignore_case else text


@metric(
    needs=("output",),
    boolean=True,
    aliases=("trusys:contains-all", "hpd:ContainsAllEvaluator"),
    spellings=TRUSYS_VALUE,
)
def code_contains_all(turn: Turn, *, value: Texts, ignore_case: bool = False) -> Result:
    r"""Whether the output contains all of some texts.

    Case-sensitive. Without any text to look for, every output passes and is vacuous. Every output contains an empty text.

    Parameters:
        value: required; a list of texts or numbers, or one text with commas between them. In such a text fields are
            trimmed and empty ones dropped; double quotes protect commas and white space (``"red, green",blue``), a quote
            inside them is doubled or written ``\"``. A quote that is not closed is refused.
        ignore_case: whether both sides are lower-cased.

    Detail: ``missing``, the texts that do not occur, in their order.

    Sources: Trusys contains-all, HPD ContainsAllEvaluator.
    """
    wanted = _listed(value)
    if not wanted:
        return vacuous(True, missing=[])
    output = _case(turn.output or "", ignore_case)
    missing = [text for text in wanted if _case(text, ignore_case) not in output]
    return Result(not missing, detail={"missing": missing})


@metric(
    needs=("output",),
    boolean=True,
    aliases=("trusys:contains-any", "hpd:ContainsAnyEvaluator"),
    spellings=TRUSYS_VALUE,
)
def code_contains_any(turn: Turn, *, value: Texts, ignore_case: bool = False) -> Result:
    """Whether the output contains at least one of some texts.

    Case-sensitive. Without any text to look for, every output passes and is vacuous. Every output contains an empty text.

    Parameters:
        value: required; as in ``code_contains_all``.
        ignore_case: whether both sides are lower-cased.

    Detail: ``matched``, the first text of the list that occurs, or null.

    Sources: Trusys contains-any, HPD ContainsAnyEvaluator.
    """
    wanted = _listed(value)
    if not wanted:
        return vacuous(True, matched=None)
    output = _case(turn.output or "", ignore_case)
    matched = next((text for text in wanted if _case(text, ignore_case) in output), None)
    return Result(matched is not None, detail={"matched": matched})


@metric(needs=("output",), boolean=True, aliases=("hpd:StartsWithEvaluator",))
def code_starts_with(turn: Turn, *, value: TextOrNumber, ignore_case: bool = False) -> Result:
    """Whether the output begins with a text.

    Case-sensitive; leading white space is not stripped. An empty ``value`` is an error.

    Parameters:
        value: required; as in ``code_contains``.
        ignore_case: whether both sides are lower-cased.

    Detail: ``value``, as it was looked for.

    Source: HPD StartsWithEvaluator.
    """
    text = _wanted(value)
    found = _case(turn.output or "", ignore_case).startswith(_case(text, ignore_case))
    return Result(found, detail={"value": text})


def _known_flags(flags: str) -> bool:
    return set(flags) <= set("ims")


@metric(needs=("output",), boolean=True, extra="text", aliases=("hpd:OutputMatchesRegexEvaluator",))
def code_regex_match(
    turn: Turn,
    *,
    pattern: str,
    flags: Annotated[str, Predicate(_known_flags)] = "",
    timeout_ms: Annotated[float, Gt(0)] = 100,
) -> Result:
    r"""Whether a regular expression matches somewhere in the output.

    The search is not anchored. The engine is RE2 (extra ``[text]``), so no pattern can hang the agent: it has no look-around
    and no back-references, and ``\b``, ``\d`` and ``\w`` mean ASCII. Only the first 100 000 characters are searched. A
    pattern that RE2 does not accept is an error.

    Parameters:
        pattern: required.
        flags: any of ``i`` (ignore case), ``m`` (``^`` and ``$`` at every line), ``s`` (``.`` takes newlines).
        timeout_ms: milliseconds of processor time after which the result is an error (``timeout``) instead.

    Detail: ``span`` ``[start, end]`` and ``matched`` (at most 100 characters) of the first match; ``truncated`` when the
    output was longer than what was searched.

    Source: HPD OutputMatchesRegexEvaluator.
    """
    output = turn.output or ""
    regex.compiled(pattern, flags)  # before the clock starts: it happens once
    started = time.thread_time()
    found = regex.search(pattern, output, flags)
    if (time.thread_time() - started) * 1000 > timeout_ms:
        raise MetricError("timeout", f"the search took longer than {timeout_ms} ms")
    detail: dict[str, object] = {"truncated": True} if len(output) > regex.SCAN_LIMIT else {}
    if found is not None:
        detail |= {"span": list(found.span()), "matched": found.group()[:_SHOWN]}
    return Result(found is not None, detail=detail)


_WORD = re.compile(r"\b[^\W_](?:[^\W_]|['-])*\b")

Bound = Annotated[int, Ge(0)]


@metric(needs=("output",), boolean=True, aliases=("hpd:WordCountEvaluator",))
def code_word_count(
    turn: Turn,
    *,
    min: Bound | None = None,  # noqa: A002 - the catalogue's parameter name
    max: Bound | None = None,  # noqa: A002 - the catalogue's parameter name
    exact: Bound | None = None,
    tokenizer: Literal["words", "whitespace"] = "words",
) -> Result:
    """Whether the output has as many words as it should.

    A word begins with a letter or digit (of any script) and goes on with letters, digits, apostrophes and hyphens: "it's"
    and "well-known" are one word each, punctuation alone is not a word. Bounds are inclusive; ``exact`` wins over ``min`` and
    ``max``; without any bound every output passes.

    Parameters:
        min, max, exact: numbers of words.
        tokenizer: ``whitespace`` counts the pieces between white space instead ("a - b" has 3).

    Detail: ``word_count``.

    Source: HPD WordCountEvaluator.
    """
    output = turn.output or ""
    count = len(output.split()) if tokenizer == "whitespace" else sum(1 for _ in _WORD.finditer(output))
    if exact is not None:
        passed = count == exact
    else:
        passed = (min is None or count >= min) and (max is None or count <= max)
    return Result(passed, detail={"word_count": count})


REFUSAL_PHRASES = (
    "i can't",
    "i cannot",
    "i'm unable",
    "i am unable",
    "i won't",
    "i will not",
    "i can't assist",
    "i cannot help",
    "i'm sorry, but",
    "i am sorry, but",
)
"""What a refusal is recognised by."""


def _plain_apostrophes(text: str) -> str:
    return text.lower().replace("\u2019", "'")


@functools.lru_cache(maxsize=64)
def _phrase_search(phrases: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
    """The phrases as one pattern (one pass over the text instead of one per phrase), and in their order."""
    plain = tuple(_plain_apostrophes(phrase) for phrase in phrases if phrase)
    return (re.compile("|".join(map(re.escape, plain))), plain) if plain else None


@metric(
    needs=("output",),
    boolean=True,
    direction="neutral",
    inline=True,
    groups=("quality",),
    live={"method": "answer"},
    aliases=("hpd:RefusalEvaluator",),
)
def code_refusal(
    turn: Turn, *, phrases: tuple[str, ...] = REFUSAL_PHRASES, method: Literal["phrases", "answer"] = "phrases"
) -> Result:
    """Whether the output is a refusal. A detector: 1 means that a refusal was found, not that all is well.

    ``method="answer"`` asks what the answer does: it is a refusal when the evidence that it declines (for want of permission, ability or will, because
    it is wrong, because it is not what the agent is for, or by sending the user elsewhere) outweighs the evidence that it delivers (a report, figures,
    a quotation, a fact that answers the question). Limits of the world ("we can't ship on Sundays"), failures, apologies, corrections, questions for
    missing data, quotations, letters and translations are none, nor is partial help. Tool calls and the user's words count too: "no" answers "may I ...?" and
    declines "give me ...". 28 languages, among them English, German, French, Spanish, Russian, Arabic, Hindi, Japanese and Chinese; answers of more
    than 2 000 characters, code, tables and long ones with many figures are none; JSON is one when its state says so (``"status": "declined"``) with a
    reason or without data.

    ``method="phrases"`` looks for phrases such as "I cannot" or "I'm sorry, but" anywhere in the output, whatever the case; typographic
    apostrophes count as plain ones. It over-triggers on "I can't wait to help".

    A configuration takes ``answer`` unless told otherwise; ``evaluate()`` and the name ``hpd:RefusalEvaluator`` take ``phrases``. An empty output is
    not a refusal. To require that there is no refusal, set ``inverse``.

    Parameters:
        phrases: what to look for, instead of the default list; empty ones are ignored. Only with ``method="phrases"``.
        method: ``phrases`` or ``answer``.

    Detail: ``matched``, the first phrase of the list that occurs; with ``answer`` how it refuses: ``declines``, or ``redirects`` where it only sends
    the user elsewhere; then also ``language``.

    Source: HPD RefusalEvaluator.
    """
    if method == "answer":
        if tuple(phrases) != REFUSAL_PHRASES:
            raise MetricError("invalid_parameter", "phrases are only looked for with method: phrases; leave out one of the two")
        refusal = refusal_in(turn.output or "", turn.input or "", bool(turn.tool_calls))
        if refusal is None:
            return Result(False)
        return Result(True, detail={"matched": refusal.kind, "language": refusal.language})
    search = _phrase_search(phrases)
    if search is None:
        return Result(False)
    pattern, plain = search
    text = _plain_apostrophes(turn.output or "")
    if pattern.search(text) is None:
        return Result(False)
    return Result(True, detail={"matched": next(phrase for phrase in plain if phrase in text)})


@metric(needs=("output",), aliases=("hpd:KeywordCoverageEvaluator",))
def code_keyword_coverage(turn: Turn, *, keywords: list[str], ignore_case: bool = True, inverse: bool = False) -> Result:
    """Share of the keywords that occur in the output.

    A keyword counts once, however often it occurs, and also as a part of a word; one that is listed twice counts twice. Without
    keywords it is 1 and vacuous.

    Parameters:
        keywords: required; a list of texts.
        ignore_case: whether both sides are lower-cased.
        inverse: whether the value is 1 minus the share.

    Detail: ``found``, ``missing`` (keywords, in their order).

    Source: HPD KeywordCoverageEvaluator.
    """
    if not keywords:
        return vacuous(_inverted(1.0, inverse), found=[], missing=[])
    output = _case(turn.output or "", ignore_case)
    found = [keyword for keyword in keywords if _case(keyword, ignore_case) in output]
    missing = [keyword for keyword in keywords if _case(keyword, ignore_case) not in output]
    return Result(_inverted(len(found) / len(keywords), inverse), detail={"found": found, "missing": missing})


def _inverted(value: float, inverse: bool) -> float:
    return 1.0 - value if inverse else value


def _expected(turn: Turn, expected: TextOrNumber | None) -> str | None:
    """The text to compare the output with: the parameter, else the ground truth, else None."""
    given = truth_of(turn) if expected is None else expected
    return None if given is None else rendered(given)


def _bigrams(text: str) -> Counter[tuple[str, str]]:
    return Counter(itertools.pairwise(text))


@metric(needs=("output",), uses=("ground_truth",), aliases=("hpd:ContentSimilarityEvaluator",), heavy=True)
def code_content_similarity(
    turn: Turn,
    *,
    expected: TextOrNumber | None = None,
    mode: Literal["multiset", "seed"] = "multiset",
    inverse: bool = False,
) -> Result:
    """How alike the output and a text are by their pairs of neighbouring characters (Sørensen-Dice).

    Twice the pairs that both have, over the pairs of both; a pair counts as often as it occurs on the side that has it less
    often. Case and white space count. Two empty texts are 1, one empty text is 0; texts of one character, which have no pairs,
    are 1 when they are equal and 0 otherwise.

    Parameters:
        expected: the text to compare with; default the turn's ground truth. Skipped with ``missing:criteria`` when there is
            neither.
        mode: ``seed`` counts each pair that both have only once, as HPD does, so that a text can be less than 1 like itself.
        inverse: whether the value is 1 minus the similarity.

    Detail: ``common`` (pairs that both have), ``output_pairs``, ``expected_pairs``.

    Source: HPD ContentSimilarityEvaluator.
    """
    wanted = _expected(turn, expected)
    if wanted is None:
        return skip("missing:criteria")
    output = turn.output or ""
    ours, theirs = _bigrams(output), _bigrams(wanted)
    shared = ours & theirs
    common = shared.total() if mode == "multiset" else len(shared)
    pairs = ours.total() + theirs.total()
    value = 2 * common / pairs if pairs else float(output == wanted)
    detail = {"common": common, "output_pairs": ours.total(), "expected_pairs": theirs.total()}
    return Result(_inverted(value, inverse), detail=detail)


LEVENSHTEIN_LIMIT = 5_000
"""Characters of either side above which no edit distance is computed: its time is the product of the lengths."""


@metric(needs=("output",), uses=("ground_truth",), extra="text", aliases=("hpd:LevenshteinEvaluator",), heavy=True)
def code_levenshtein_similarity(turn: Turn, *, expected: TextOrNumber | None = None, inverse: bool = False) -> Result:
    """How alike the output and a text are by the edits between them: 1 - distance / length of the longer text.

    The distance is the smallest number of inserted, deleted and substituted characters (code points); case counts. Two empty
    texts are 1. Skipped with ``too_long`` when either text has more than 5 000 characters. Needs the extra ``[text]``.

    Parameters:
        expected: the text to compare with; default the turn's ground truth. Skipped with ``missing:criteria`` when there is
            neither.
        inverse: whether the value is 1 minus the similarity.

    Detail: ``distance``.

    Source: HPD LevenshteinEvaluator.
    """
    wanted = _expected(turn, expected)
    if wanted is None:
        return skip("missing:criteria")
    output = turn.output or ""
    longest = max(len(output), len(wanted))
    if longest > LEVENSHTEIN_LIMIT:
        return skip("too_long")
    levenshtein = require("rapidfuzz.distance", feature="code_levenshtein_similarity", extra="text").Levenshtein
    distance = levenshtein.distance(output, wanted)
    return Result(_inverted(1 - distance / longest if longest else 1.0, inverse), detail={"distance": distance})
