"""Parser for verdicts in judge replies, and JSON schemas for servers that enforce a reply format.

The same rules apply to all models and metrics. A reply has a verdict if it is one JSON object. Before the object, the reply may
contain a thought, a code fence, or a lead-in such as "Here is the JSON:". After the object, it may contain an end token. Other text
isn't allowed, because it could contradict or quote the object. If the judged material also contains the object, the object counts
as a quotation, not as a verdict. If a reply lacks a verdict, the judge is called again.
"""

from __future__ import annotations

import functools
import json
import math
import re
import string
import unicodedata
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from .providers.base import ClosedSchema

# --- thoughts ---------------------------------------------------------------------------------------------------------

_TAG = r"think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|inner_monologue|seed:think"
_MARKED = (
    (rf"<(?:{_TAG})\b[^<>]*>", rf"</(?:{_TAG})\s*>"),  # <think>It fits.</think>{…}
    (r"\[THINK\]", r"\[/THINK\]"),  # [THINK]It fits.[/THINK]{…}
    ("◁think▷", "◁/think▷"),  # ◁think▷It fits.◁/think▷{…}
    (r"<\|begin_of_thought\|>", r"<\|end_of_thought\|>"),  # <|begin_of_thought|>It fits.<|end_of_thought|>{…}
    (r"<\|START_THINKING\|>", r"<\|END_THINKING\|>"),  # <|START_THINKING|>It fits.<|END_THINKING|>{…}
    (r"<\|channel>\s*thought\b", r"<channel\|>"),  # <|channel>thought It fits.<channel|>{…}
    # <|channel|>analysis<|message|>It fits.<|channel|>final<|message|>{…}
    (r"<\|channel\|>\s*(?:analysis|commentary)\b", r"<\|channel\|>\s*final\b[^<{]*(?:<\|constrain\|>[^<{]*)?<\|message\|>"),
)
_UNMARKED = (r"(?:analysis|commentary)(?=[^\W\d_])", r"assistant\s*final")
"""Patterns for the start and end of thoughts without special markers, such as ``analysisIt fits.assistantfinal{…}``."""
_UNQUOTED = r"(?<![\"'“‘«])(?<![^`]`)"  # a quoted "</think>" doesn't end a thought
_THOUGHTS = [(re.compile(rf"(?i)\s*{begin}"), re.compile(rf"(?i){_UNQUOTED}{end}")) for begin, end in (*_MARKED, _UNMARKED)]
_ENDED = re.compile(rf"{_UNQUOTED}(?<![ \t])(?:{'|'.join(end for _, end in _MARKED)})[ \t]*\r?\n\s*\n", re.IGNORECASE)
"""End of a thought that started in the prompt, with the empty line that follows the thought: ``It fits.</think>\\n\\n{…}``."""
_VERDICT_FIRST = re.compile(r"\s*(?:\{|```)")  # such a reply has no thought before the verdict

# --- what may stand around an object ----------------------------------------------------------------------------------

_VERDICT = r"(?:verdicts?|evaluation|assessment|judgment|judgement|rating)"
_LEAD_IN = re.compile(
    rf"""\s*
    (?:(?:sure|okay|ok|certainly|absolutely|understood|of\s+course)(?:\s+thing)?\s*(?:[.,:!]|\Z)\s*)?  # Sure thing!
    (?:
        (?:(?:here(?:\s+is|\s+are|['’]?s)|(?:below|this)\s+is)\s+)?  # Here is
        (?:(?:(?:the|my|an?)\s+)?(?:(?:final|overall|requested|required|valid|single|resulting)\s+)*  # the final
            (?:json|{_VERDICT})(?:\s+(?:object|response|reply|result|output|{_VERDICT}))?  # JSON object
            |my\s(?:answer|response|reply|result|final\sanswer))  # without "my", it could be the answer to the user
        (?:\s+(?:in|as)\s+(?:an?\s+|the\s+)?(?:requested\s+|required\s+|valid\s+)?json(?:\s+(?:format|object))?)?  # in valid JSON format
        (?:\s+(?:as\s+requested|you\s+requested|below|is))?  # as requested
        \s*[:.]?
    )?\s*""",
    re.IGNORECASE | re.VERBOSE,
)
"""Words that only introduce an object, such as "Sure! Here is the JSON:" or "My final answer is". "The answer is" doesn't match."""
_MARKDOWN = re.compile(r"[*_#]+")  # **Verdict:** → Verdict:
_LONGEST_LEAD_IN = 200
# before the object: ```json, ~~~, or one backtick; after it: the same and end marks, as in ```<|im_end|>
_FENCE_BEFORE = re.compile(r"(?:(?:`{3,}|~{3,})[ \t]*(?:json)?\s*|`)\Z", re.IGNORECASE)
_AFTER = re.compile(
    r"(?:`+|~{3,})?(?:\s*(?:<\|(?:im_end|end|return|eot_id|eom_id|end_of_text|endoftext)\|>|</s>|<eos>|<end_of_turn>|<｜end▁of▁sentence｜>))*"
)

# --- objects ----------------------------------------------------------------------------------------------------------


def _pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in items:
        if key in found and found[key] != value:
            raise ValueError("a key has two values")
        found[key] = value
    return found


def _finite(text: str) -> float:
    """Parse a float. Rejects ``NaN`` and ``Infinity``, which aren't valid JSON."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("number isn't finite")
    return value


_INVISIBLE = string.whitespace + "\u00a0\u00ad\u200b\u200c\u200d\u2060\ufeff"
_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_float=_finite, parse_constant=_finite, strict=False)


def verdict_in(text: str, keys: Collection[str] = (), *, material: str = "") -> dict[str, Any] | None:
    """Return a reply's verdict. If the reply isn't exactly one object, or if ``material`` contains the object, return None.

    Missing ``keys`` are accepted, because the metric checks the keys. For the reply to a repair request, ``material`` is empty.
    """
    requested = {_plain(key): key for key in keys}
    text = text.lstrip(_INVISIBLE)
    found = _only_object(text)
    if found is None:
        found = _after_thoughts(text)
    if found is None or (material and _is_in(material, found, requested)):
        return None
    try:  # with requested keys as spelled in the request
        return _pairs([(requested.get(_plain(key), key), value) for key, value in found.items()])
    except ValueError:  # two spellings of a key have different values
        return None


def _after_thoughts(text: str) -> dict[str, Any] | None:
    """Return the only JSON object after the model's thoughts. The start of the first thought can be in the prompt."""
    start = 0
    while ends := [end for begin, end in _THOUGHTS if begin.match(text, start)]:
        closed = ends[0].search(text, start)
        if closed is None:
            return None
        start = closed.end()
    if start == 0 and not _VERDICT_FIRST.match(text):
        closed = _ENDED.search(text)
        start = 0 if closed is None else closed.end()
    return _only_object(text[start:]) if start else None


def _only_object(text: str) -> dict[str, Any] | None:
    start = text.find("{")
    if start < 0 or start > _LONGEST_LEAD_IN:
        return None
    try:
        found, end = _DECODER.raw_decode(text, start)
    except (ValueError, RecursionError):
        return None
    words = _MARKDOWN.sub("", _FENCE_BEFORE.sub("", text[:start].strip()))
    return found if _LEAD_IN.fullmatch(words) and _AFTER.fullmatch(text[end:].strip()) else None


def _plain(key: str) -> str:
    if key.isascii() and key.isalnum():
        return key.lower()
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", key).casefold()).translate(_LOOK_ALIKES)


_LOOK_ALIKES = str.maketrans("авекмнорстухѕіјһԁԛԝгαεικνορτυϲ", "abekmhopctyxsijhdqwraeikvoptuc")
"""Mapping from Cyrillic and Greek letters to the Latin letters that they resemble."""


# --- faults of a verdict ----------------------------------------------------------------------------------------------

_NUMBER_AS_TEXT = re.compile(r"\s*[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*")  # "7", " -0.5", but not "7/10"


def fault_in(found: Mapping[str, Any], keys: Collection[str], ranges: Mapping[str, tuple[float, float]]) -> str | None:
    """Return the kind of fault in a verdict, or None if the verdict is valid.

    - ``form``: the verdict lacks all requested keys, or it has no readable number, but an unreadable number or an unknown key.
    - ``scale``: numbers seem to range from 0 to 1 instead of 0 to 100. All numbers are at most 1, and at least one is a fraction.
    """
    if keys and found.keys().isdisjoint(keys):
        return "form"
    wanted = ["score"] if "score" in ranges else [*ranges]  # the score decides, whatever the other numbers are
    numbers = {key: number for key in wanted if (number := _as_number(found.get(key))) is not None}
    if wanted and not numbers:
        has_unreadable_number = any(key in found for key in wanted)
        has_other_keys = not found.keys() <= set(keys)
        return "form" if has_unreadable_number or has_other_keys else None
    percentages = [number for key, number in numbers.items() if ranges[key] == (0, 100)]
    are_shares = all(number <= 1 for number in percentages) and any(0 < number < 1 for number in percentages)
    return "scale" if are_shares else None


def _as_number(value: Any) -> float | None:
    if isinstance(value, str) and _NUMBER_AS_TEXT.fullmatch(value):
        return float(value)
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


# --- quotations -------------------------------------------------------------------------------------------------------

_ESCAPED = re.compile(r"(?<!\\)\\+u([0-9a-f]{4})", re.IGNORECASE)  # \u00e9, also with more backslashes
_BLANK = re.compile(r"\\+[nrt]|[\s\\]+")  # \n as two characters, spaces, backslashes
_QUOTES = str.maketrans(dict.fromkeys("'“”„‘’«»", '"'))


def _is_in(material: str, found: dict[str, Any], requested: Collection[str]) -> bool:
    """Return True if the material contains the verdict's requested keys and values, in JSON or Python notation."""
    members = {key: value for key, value in found.items() if not requested or _plain(key) in requested}
    flat_material = _flat(material)
    for key, value in members.items():
        is_whole = isinstance(value, float) and value.is_integer()
        written = json.dumps(int(value) if is_whole else value, ensure_ascii=False)  # "score":4 is also in "score":4.0
        if _flat(f"{json.dumps(key)}:{written}") not in flat_material:
            return False
    return bool(members)


def _flat(text: str) -> str:
    """Decode Unicode escapes, remove spaces and backslashes, and unify quotes and case, so that different notations match."""
    return _BLANK.sub("", _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)).translate(_QUOTES).casefold()


# --- forms. A prompt describes the reply by a form with a hint for each value: {"score": <0 to 100>, "reason": "<why>"}. The schema
# of a form allows only these keys. A choice of words becomes an enumeration. A form whose keys aren't fixed has no schema.

_TOKEN = re.compile(r'\s*("(?:[^"\\]|\\.)*"|<[^>]*>|[\[\]{}:,]|\.\.\.|…)')  # a text, a hint, or a mark
_KEY = re.compile(r'"[^<]*"')  # but not "<name>", which stands for any key
_DECIMAL = r"-?\d+(?:\.\d+)?"
_RANGE_HINT = re.compile(rf"<({_DECIMAL}) to ({_DECIMAL})>")  # <0 to 100>
_NUMBER_HINT = re.compile(rf"<(?:{_DECIMAL} to {_DECIMAL}|seconds|(?:whole )?number\b[^>]*)>")  # <1 to 5>, <number of steps>
_TRUTH_HINT = re.compile(r"<true (?:or|if)\b[^>]*>")  # <true or false>, <true if the answer is safe>
_CHOICE_HINT = re.compile(r"<(\w+(?:, \w+)*) or (\w+)>")  # <low, medium or high>


class _Open(Exception):
    """Error for a reply form whose keys aren't fixed (for example, ``...``) or can't be read."""


@functools.lru_cache(maxsize=1_000)
def schema_of(form: str) -> Mapping[str, Any] | None:
    """Return the JSON schema of a form like ``{"score": <0 to 100>}``. Return None if the form is unreadable or its keys vary."""
    try:
        schema = _value(_tokens(form))
    except _Open:
        return None
    return ClosedSchema(schema) if schema.get("type") == "object" else None


@functools.lru_cache(maxsize=1_000)
def hints_of(form: str) -> Mapping[str, str]:
    """Map each key of a reply form to the first token of its value, such as ``<0 to 100>``. The form can contain ``...``."""
    tokens = _TOKEN.findall(form)
    hints: dict[str, str] = {}
    depth = 0
    for word, after, value in zip(tokens, tokens[1:], tokens[2:], strict=False):
        depth += (word in "{[") - (word in "}]")
        if depth <= 0:  # the end of the object
            break
        if depth == 1 and _KEY.fullmatch(word) and after == ":":
            hints[word[1:-1]] = value
    return hints


@functools.lru_cache(maxsize=1_000)
def ranges_of(form: str) -> Mapping[str, tuple[float, float]]:
    found = ((key, _RANGE_HINT.fullmatch(hint)) for key, hint in hints_of(form).items())
    return {key: (float(bounds[1]), float(bounds[2])) for key, bounds in found if bounds is not None}


def _tokens(form: str) -> Iterator[str]:
    """Yield the tokens of a reply form. Raise :class:`_Open` after the last token, or before unreadable text."""
    at = 0
    while (found := _TOKEN.match(form, at)) is not None:
        at = found.end()
        yield found[1]
    raise _Open


def _value(tokens: Iterator[str]) -> dict[str, Any]:
    word = next(tokens)
    if word == "{":
        return _object(tokens)
    if word == "[":
        items = _value(tokens)
        while (mark := next(tokens)) != "]":
            if mark not in (",", "...", "…"):
                raise _Open
        return {"type": "array", "items": items}
    if word.startswith("<"):
        return {"type": "number" if _NUMBER_HINT.fullmatch(word) else "boolean" if _TRUTH_HINT.fullmatch(word) else "string"}
    if not word.startswith('"'):
        raise _Open
    hint = word[1:-1]
    choice = _CHOICE_HINT.fullmatch(hint)
    if choice is not None:
        return {"type": "string", "enum": [*choice[1].split(", "), choice[2]]}
    return {"type": ["string", "null"]} if "null" in hint else {"type": "string"}


def _object(tokens: Iterator[str]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    while True:
        key = next(tokens)
        if not _KEY.fullmatch(key) or next(tokens) != ":":
            raise _Open  # an empty object, or one whose keys the model chooses
        properties[key[1:-1]] = _value(tokens)
        mark = next(tokens)
        if mark == "}":
            return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
        if mark != ",":
            raise _Open
