"""These metrics check the text of the output. By default, most are case-sensitive and don't normalize whitespace or Unicode."""

from __future__ import annotations

import functools
import itertools
import re
import time
import unicodedata
from collections import Counter
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Predicate

from ...core import jsonio
from ...core.errors import MetricError
from ...core.extras import require
from ...core.finding import Finding, detail_of
from ...core.turn import Turn
from ...detectors.refusal import refusal_in
from ...detectors.texts import with_plain_apostrophes
from ..lib import regex
from ..lib.grounding import material_of
from ..lib.values import json_equal, truth_of
from ..registry import Param, Result, metric, skip, vacuous

TextOrNumber = str | bool | int | float

EXPECTED_OUTPUT = Param("expected_output", "expcted_output")
_SHOWN = 100
"""Maximum number of characters of matched text in ``detail``."""
_SHOWN_SIDE = 200
"""Maximum number of characters of ``expected`` and of ``actual`` in ``detail``."""


def _equality(output: str, value: Any) -> Result:
    if isinstance(value, (dict, list)):
        expected = jsonio.dumps(value)
        try:
            equal = json_equal(value, jsonio.loads_exact(output))
        except ValueError:
            equal = False
    else:
        expected = jsonio.rendered(value)
        equal = expected == output
    return Result(equal, detail={"expected": expected[:_SHOWN_SIDE], "actual": output[:_SHOWN_SIDE]})


@metric(
    needs=("output",),
    boolean=True,
    aliases={"trusys:equals": {}, "hpd:OutputEqualsEvaluator": {}, "trusys:not-equals": {"inverse": True}},
)
def code_equals(turn: Turn, *, value: Annotated[TextOrNumber | dict[str, Any] | list[Any], EXPECTED_OUTPUT]) -> Result:
    """Check that the output is exactly the expected text or JSON value.

    All characters must match, including case and spaces: ``paris`` doesn't equal ``Paris``. An empty output equals only an empty ``value``.

    If ``value`` is an object or list, the output is parsed as strict JSON and compared with ``value``. The order of keys doesn't matter, but
    the order of list entries does. ``1`` equals ``1.0``, but ``true`` doesn't equal ``1``. If the output isn't JSON, the metric fails.

    Parameters:
        value: Expected value. A number or boolean is converted to JSON text (``5.0`` to ``5``, ``True`` to ``true``). Aliases:
            ``expected_output``, ``expcted_output`` (spelled as in Trusys).

    Detail: ``expected`` and ``actual`` (the first 200 characters of each).

    If you use the metric name ``trusys:not-equals``, the default of ``inverse`` is true.
    """
    return _equality(turn.output or "", value)


@metric(needs=("output", "ground_truth"), boolean=True, aliases=("hpd:EqualsGroundTruthEvaluator",))
def code_equals_ground_truth(turn: Turn) -> Result:
    """Check that the output is exactly the turn's ground truth.

    The metric compares text and JSON in the same way as ``code_equals``.

    Detail: ``expected`` and ``actual`` (the first 200 characters of each).
    """
    return _equality(turn.output or "", turn.ground_truth)


def _search_text(value: TextOrNumber) -> str:
    if not (text := jsonio.rendered(value)):
        raise MetricError("invalid_parameter", "value: must not be empty, because every text contains the empty string")
    return text


@metric(
    needs=("output",),
    boolean=True,
    aliases={"trusys:contains": {}, "hpd:OutputContainsEvaluator": {}, "trusys:not-contains": {"inverse": True}},
)
def code_contains(turn: Turn, *, value: Annotated[TextOrNumber, EXPECTED_OUTPUT]) -> Result:
    """Check that the output contains a given string (case-sensitive).

    If ``value`` is empty, the score is an error, because every output contains the empty string.

    Parameters:
        value: String to search for. A number is converted to JSON text (``5.0`` to ``5``). Aliases: ``expected_output``,
            ``expcted_output`` (spelled as in Trusys).

    Detail: ``value``, as text.

    If you use the metric name ``trusys:not-contains``, the default of ``inverse`` is true.
    """
    text = _search_text(value)
    return Result(text in (turn.output or ""), detail={"value": text})


@metric(needs=("output",), boolean=True, aliases=("trusys:icontains", "hpd:CaseInsensitiveContainsEvaluator", "hpd:IContains"))
def code_icontains(turn: Turn, *, value: Annotated[TextOrNumber, EXPECTED_OUTPUT]) -> Result:
    """Check that the output contains a given string (ignoring case).

    The output and ``value`` are lowercased, not case-folded, so ``ß`` doesn't match ``SS``. If ``value`` is empty, the score is an error.

    Parameters:
        value: String to search for. See ``code_contains``.

    Detail: ``value``, as text.
    """
    text = _search_text(value)
    return Result(text.lower() in (turn.output or "").lower(), detail={"value": text})


_QUOTED_FIELD = re.compile(r'"((?:[^"\\]|""|\\.)*)"\s*(?:,|$)', re.DOTALL)
_ESCAPED = re.compile(r'\\(["\\])|""')


@functools.lru_cache(maxsize=256)
def _split_fields(text: str) -> tuple[str, ...]:
    """Split a text at commas outside quotes. Raise ValueError if a quote is misplaced."""
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
        elif text[at] == '"':
            if (quoted := _QUOTED_FIELD.match(text, at)) is None:
                raise ValueError("a quote is not closed")
            found.append(_ESCAPED.sub(lambda escape: escape[1] or '"', quoted[1]))
            at = quoted.end()
        else:
            field = text[at:].split(",", 1)[0]
            found.append(field.strip())
            at += len(field) + 1
    return tuple(found)


def _well_quoted(value: TextOrNumber | list[TextOrNumber]) -> bool:
    try:
        return not isinstance(value, str) or _split_fields(value) is not None
    except ValueError:
        return False


Texts = Annotated[TextOrNumber | list[TextOrNumber], Predicate(_well_quoted)]


def _texts_to_find(value: TextOrNumber | list[TextOrNumber]) -> tuple[str, ...]:
    texts = (
        _split_fields(value) if isinstance(value, str) else map(jsonio.rendered, value if isinstance(value, list) else [value])
    )
    return tuple(text for text in texts if text.strip())


def _folded(text: str, ignore_case: bool) -> str:
    return text.lower() if ignore_case else text


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-all", "hpd:ContainsAllEvaluator"), version="2")
def code_contains_all(turn: Turn, *, value: Annotated[Texts, EXPECTED_OUTPUT], ignore_case: bool = False) -> Result:
    r"""Check that the output contains all of the given strings.

    Blank strings are ignored. If all strings are blank, every output passes (vacuous).

    Parameters:
        value: A list of values, or one string with comma-separated items. Whitespace around comma-separated items is
            ignored. To keep commas and whitespace, put an item in double quotes (``"red, green",blue``). Inside double quotes,
            write a double quote as ``""`` or ``\"``. An unclosed quote is an error.
        ignore_case: If true, case is ignored.

    Detail: ``missing`` (strings that the output doesn't contain, in the order of ``value``).
    """
    if not (wanted := _texts_to_find(value)):
        return vacuous(True, missing=[])
    output = _folded(turn.output or "", ignore_case)
    missing = [text for text in wanted if _folded(text, ignore_case) not in output]
    return Result(not missing, detail={"missing": missing})


@metric(needs=("output",), boolean=True, aliases=("trusys:contains-any", "hpd:ContainsAnyEvaluator"), version="2")
def code_contains_any(turn: Turn, *, value: Annotated[Texts, EXPECTED_OUTPUT], ignore_case: bool = False) -> Result:
    """Check that the output contains at least one of the given strings.

    Blank strings are ignored. If all strings are blank, every output passes (vacuous).

    Parameters:
        value: Strings to search for. See ``code_contains_all``.
        ignore_case: If true, case is ignored.

    Detail: ``matched`` (the first string of ``value`` that the output contains, or null).
    """
    if not (wanted := _texts_to_find(value)):
        return vacuous(True, matched=None)
    output = _folded(turn.output or "", ignore_case)
    matched = next((text for text in wanted if _folded(text, ignore_case) in output), None)
    return Result(matched is not None, detail={"matched": matched})


@metric(needs=("output",), boolean=True, aliases=("hpd:StartsWithEvaluator",))
def code_starts_with(turn: Turn, *, value: TextOrNumber, ignore_case: bool = False) -> Result:
    """Check that the output starts with a given string.

    If ``value`` is empty, the score is an error.

    Parameters:
        value: Expected start of the output. A number is converted to JSON text, as in ``code_contains``.
        ignore_case: If true, case is ignored.

    Detail: ``value``, as text.
    """
    text = _search_text(value)
    found = _folded(turn.output or "", ignore_case).startswith(_folded(text, ignore_case))
    return Result(found, detail={"value": text})


@metric(needs=("output",), boolean=True, extra="text", aliases=("hpd:OutputMatchesRegexEvaluator",))
def code_regex_match(
    turn: Turn,
    *,
    pattern: str,
    flags: Annotated[str, Predicate(set("ims").issuperset)] = "",
    timeout_ms: Annotated[float, Gt(0)] = 100,
) -> Result:
    r"""Check that a regular expression matches somewhere in the output.

    Patterns use RE2, whose search time is proportional to the text's length, so no pattern can block the agent. RE2 doesn't support
    look-around or back-references. Its ``\b``, ``\d``, and ``\w`` match only ASCII. The metric searches the first 100,000
    characters of the output. If RE2 rejects the pattern, the score is an error.

    Parameters:
        pattern: Regular expression.
        flags: Any combination of ``i`` (ignore case), ``m`` (``^`` and ``$`` match at each line), and ``s`` (``.`` matches newlines).
        timeout_ms: Maximum processor time in milliseconds. If the search takes longer, the metric returns the error ``timeout``.

    Detail: for the first match, ``span`` (``[start, end]``) and ``matched`` (at most 100 characters). ``truncated`` is true if the
    metric didn't search the whole output.
    """
    output = turn.output or ""
    regex.compiled(pattern, flags)  # compile before timing starts
    started = time.thread_time()
    found = regex.search(pattern, output, flags)
    if (time.thread_time() - started) * 1000 > timeout_ms:
        raise MetricError("timeout", f"pattern: the search took longer than {timeout_ms} ms")
    detail: dict[str, object] = {"truncated": True} if len(output) > regex.SCAN_LIMIT else {}
    if found is not None:
        detail |= {"span": list(found.span()), "matched": found.group()[:_SHOWN]}
    return Result(found is not None, detail=detail)


_WORD = re.compile(r"\b[^\W_](?:[^\W_]|['\u2019\u2010\u2011-])*\b")

Bound = Annotated[int, Ge(0)]


def in_range(count: int, exact: int | None, least: int | None, most: int | None) -> bool:
    if exact is not None:
        return count == exact
    return (least is None or count >= least) and (most is None or count <= most)


@metric(needs=("output",), boolean=True, version="3", aliases=("hpd:WordCountEvaluator",))
def code_word_count(
    turn: Turn,
    *,
    exact: Bound | None = None,
    min: Bound | None = None,  # noqa: A002 - the catalog's parameter name
    max: Bound | None = None,  # noqa: A002 - the catalog's parameter name
    tokenizer: Literal["words", "whitespace"] = "words",
) -> Result:
    """Check that the number of words in the output is within a range.

    A word starts with a letter or digit of any script, and continues with letters, digits, apostrophes, and hyphens (plain or
    typographic). "it's" and "well-known" are one word each. Punctuation and names that contain ``_`` don't count as words. In
    scripts without spaces, such as Chinese and Thai, all text up to the next space or punctuation mark counts as one word. If you
    don't set a limit, every output passes.

    Parameters:
        exact: Exact number of words. Overrides ``min`` and ``max``.
        min: Minimum number of words.
        max: Maximum number of words.
        tokenizer: With ``whitespace``, words are separated only by whitespace, so "a - b" has three words.

    Detail: ``word_count``.
    """
    output = turn.output or ""
    if not output.isascii():
        output = "".join(
            char for char in output if unicodedata.category(char)[0] != "M" and char not in "\u00ad\u200c\u200d\u2060"
        )
    count = len(output.split()) if tokenizer == "whitespace" else sum(1 for _ in _WORD.finditer(output))
    return Result(in_range(count, exact, min, max), detail={"word_count": count})


REFUSAL_PHRASES = (
    "i can't", "i cannot", "i'm unable", "i am unable", "i won't", "i will not", "i can't assist", "i cannot help",
    "i'm sorry, but", "i am sorry, but",
)  # fmt: skip


def _plain_apostrophes(text: str) -> str:
    return with_plain_apostrophes(text.lower()).replace("\u2019", "'")


@functools.lru_cache(maxsize=64)
def _phrase_search(phrases: tuple[str, ...]) -> tuple[re.Pattern[str], tuple[str, ...]] | None:
    plain = tuple(_plain_apostrophes(phrase) for phrase in phrases if phrase)
    return (re.compile("|".join(map(re.escape, plain))), plain) if plain else None


@metric(
    needs=("output",), direction="neutral", boolean=True, groups=("default", "quality"), aliases=("hpd:RefusalEvaluator",),
    version="2", live={"method": "answer"},
)  # fmt: skip
def code_refusal(
    turn: Turn, *, phrases: tuple[str, ...] = REFUSAL_PHRASES, method: Literal["phrases", "answer"] = "phrases"
) -> Result:
    """Detect a refusal: 1 if the output is a refusal, otherwise 0.

    With ``method="answer"``, the metric compares evidence that the answer declines the request or fulfills it:

    - declines: statements about missing permission, ability, or willingness, about possible harm, or about a limited scope, and
      statements that redirect the user elsewhere
    - fulfills: reports, figures, quotes, and facts that answer the question

    The metric also considers tool calls and the user's input: "no" answers "may I ...?" but declines "give me ...". It supports 28
    languages, including English, German, French, Spanish, Russian, Arabic, Hindi, Japanese, and Chinese.

    With ``method="answer"``, these outputs usually don't count as refusals:

    - small talk, and other answers that don't contain a word for declining or redirecting
    - real-world limits ("we can't ship on Sundays"), failures, error texts, apologies, corrections, and partial help
    - quotes, letters, translations, and questions for missing data
    - answers with at least 12 different words from the system instructions, except words from the user's input. A word has at
      least five letters, or two Chinese characters
    - answers with at least 5 such words from tool results or documents, in sentences that don't decline
    - answers of more than 2,000 characters (800 in Chinese), code, tables, and answers with many numbers
    - JSON. Exception: an object of at most 400 characters that starts with a status such as ``"status": "declined"``, and also
      contains a reason, a null value, or an empty list
    - an empty output

    The metric can't decide whether a refusal is justified, or whether an answer is true. With ``method="answer"``, the metric
    misses about one in five unusually worded refusals, such as "Mum's the word".

    With ``method="phrases"``, the metric searches the output for phrases such as "I cannot" or "I'm sorry, but". The search ignores
    case and the type of apostrophe, and mistakes "I can't wait to help" for a refusal.

    The default method is ``answer``. If you set ``phrases``, call ``get_metric``, or use one of the metric's names from other
    tools, the default is ``phrases``. An inner metric of a composite metric follows the same rules. To fail a turn on refusals, set
    ``inverse`` to true.

    Parameters:
        phrases: Phrases to search for, instead of the default list. Only allowed with ``method="phrases"``.
        method: Detection method. The default depends on how you use the metric, as described above.

    Detail: ``matched``. With ``phrases``, ``matched`` is the first phrase in the list that the output contains, in lower case. With ``answer``,
    ``matched`` is ``redirects`` if the answer only refers the user to others, otherwise ``declines``. The detail then also contains
    ``language``, and ``findings`` with the first sentence that declines.
    """
    if method == "answer":
        if tuple(phrases) != REFUSAL_PHRASES:
            raise MetricError("invalid_parameter", "phrases: only allowed with `method: phrases`")
        acted = bool(turn.tool_calls)
        refusal = refusal_in(turn.output or "", turn.input or "", acted, material_of(turn), turn.system or "")
        if refusal is None:
            return Result(False)
        finding = Finding("output", refusal.start, refusal.end, refusal.kind, "info")
        return Result(True, detail=detail_of([finding], matched=refusal.kind, language=refusal.language))
    if (search := _phrase_search(phrases)) is None:
        return Result(False)
    pattern, plain = search
    text = _plain_apostrophes(turn.output or "")
    matched = next((phrase for phrase in plain if phrase in text), None) if pattern.search(text) else None
    return Result(matched is not None, detail=None if matched is None else {"matched": matched})


@metric(needs=("output",), aliases=("hpd:KeywordCoverageEvaluator",))
def code_keyword_coverage(turn: Turn, *, keywords: list[str], ignore_case: bool = True, inverse: bool = False) -> Result:
    """Share of the keywords that occur in the output.

    A keyword is found even if it is part of a longer word. A keyword that occurs several times in the output counts once. A keyword
    that you list twice counts twice. Blank keywords are ignored. If all keywords are blank, the share is 1 (vacuous).

    Parameters:
        keywords: Keywords to search for.
        ignore_case: If true, case is ignored.
        inverse: If true, the value is 1 minus the share.

    Detail: ``found`` and ``missing`` (keywords, in the order of ``keywords``).
    """
    keywords = [keyword for keyword in keywords if keyword.strip()]
    if not keywords:
        return vacuous(_inverted(1.0, inverse), found=[], missing=[])
    output = _folded(turn.output or "", ignore_case)
    missing = [keyword for keyword in keywords if _folded(keyword, ignore_case) not in output]
    found = [keyword for keyword in keywords if keyword not in missing]
    return Result(_inverted(len(found) / len(keywords), inverse), detail={"found": found, "missing": missing})


def _inverted(value: float, inverse: bool) -> float:
    return 1.0 - value if inverse else value


def _expected(turn: Turn, expected: TextOrNumber | None) -> list[str]:
    given = truth_of(turn) if expected is None else expected
    return [jsonio.rendered(text) for text in (given if isinstance(given, list) else [given]) if text is not None]


@metric(needs=("output",), uses=("ground_truth",), aliases=("hpd:ContentSimilarityEvaluator",), traits=("heavy",))
def code_content_similarity(
    turn: Turn, *, expected: TextOrNumber | None = None, mode: Literal["multiset", "seed"] = "multiset", inverse: bool = False
) -> Result:
    """Similarity of the output and the expected text, based on common character pairs.

    The value is the Sørensen-Dice coefficient: twice the number of common pairs of neighboring characters, divided by the total
    number of pairs in both texts. If a pair occurs twice in one text and once in the other, the texts have one common pair. If
    neither text contains a pair, the value is 1 if the texts are equal, and otherwise 0.

    If there are several ground truths, the most similar one counts. Without an expected text, the score is skipped as ``missing:criteria``.

    Parameters:
        expected: Expected text. The default is the turn's ground truth.
        mode: With ``seed``, each distinct common pair counts only once, as in HPD-Agent, so equal texts can have a value below 1.
        inverse: If true, the value is 1 minus the similarity.

    Detail: ``common``, ``output_pairs``, and ``expected_pairs`` (numbers of pairs).
    """
    if not (wanted := _expected(turn, expected)):
        return skip("missing:criteria")
    output = turn.output or ""
    ours = Counter(itertools.pairwise(output))

    def alike(text: str) -> tuple[float, int, int]:
        theirs = Counter(itertools.pairwise(text))
        shared = ours & theirs
        common = shared.total() if mode == "multiset" else len(shared)
        pairs = ours.total() + theirs.total()
        return 2 * common / pairs if pairs else float(output == text), common, theirs.total()

    value, common, pairs = max(map(alike, wanted))
    return Result(_inverted(value, inverse), detail={"common": common, "output_pairs": ours.total(), "expected_pairs": pairs})


LEVENSHTEIN_LIMIT = 5_000
"""Maximum number of characters of each text. The time for an edit distance grows with the product of the lengths."""


@metric(needs=("output",), uses=("ground_truth",), aliases=("hpd:LevenshteinEvaluator",), extra="text", traits=("heavy",))
def code_levenshtein_similarity(turn: Turn, *, expected: TextOrNumber | None = None, inverse: bool = False) -> Result:
    """Similarity of the output and the expected text: ``1 - edit distance / longer length``.

    The edit distance is the lowest number of inserted, deleted, and substituted characters (code points). If both texts are empty,
    the value is 1. If there are several ground truths, the most similar one counts.

    Without an expected text, the score is skipped as ``missing:criteria``. If the output or all expected texts together have more
    than 5,000 characters, the score is skipped as ``too_long``.

    Parameters:
        expected: Expected text. The default is the turn's ground truth.
        inverse: If true, the value is 1 minus the similarity.

    Detail: ``distance``.
    """
    if not (wanted := _expected(turn, expected)):
        return skip("missing:criteria")
    output = turn.output or ""
    if max(len(output), sum(map(len, wanted))) > LEVENSHTEIN_LIMIT:
        return skip("too_long")
    levenshtein = require("rapidfuzz.distance", feature="code_levenshtein_similarity", extra="text").Levenshtein
    value, distance = max(
        (1 - levenshtein.normalized_distance(output, text), -levenshtein.distance(output, text)) for text in wanted
    )
    return Result(_inverted(value, inverse), detail={"distance": -distance})
