"""Detect answers that decline the complete request.

The decision is based on the answer's sentences, not on a single phrase. Lexicons for 28 languages assign words to classes such as
negation, speaker, rule, result, failure, and missing data. The evidence consists of the classes in each sentence, the request, tool
calls, and the answer's length and numbers. All languages share the weights, which ``scripts/refusal_weights.py`` fits.

If the weighted sum of the evidence is close to zero, small text models contribute too. Quotations are ignored. Answers with code,
tables, or many numbers aren't refusals.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from ..text_model import text_model
from ..texts import has_any, table, with_plain_apostrophes, words
from .evidence import language_of, plain
from .model import Read, length, place_of_declining, read

_LONGEST = 2_000
"""Maximum length of a refusal, in Latin letters."""
_LONG = 400
_MANY_DIGITS = 12
"""Minimum number of digits that rules out a refusal in a long answer. Most phone numbers have fewer digits."""
_DIGITS = b"0123456789"
_UNDECIDED = 3.0
"""If the absolute value of the evidence is below this limit, the text models are used too."""
_MODEL_WEIGHT = 1.5
"""Weight of the text models' log-odds. It's above 1, because the models' log-odds are too close to zero."""
_THRESHOLD = 0.3
"""Minimum sum of evidence and model score for a refusal. A higher value means more missed refusals, but fewer false alarms."""
_PASSED_ON = 5
"""If the sentences that don't decline repeat at least this many words from tool results, the answer isn't a refusal."""
_TOLD = 12
"""An answer with at least this many words of the instructions isn't a refusal. Fewer words can describe the agent's scope."""
_WORD = re.compile(r"[^\W\d_]{5,}|[\u4e00-\u9fff]{2}")
_NUMBER = re.compile(r"[0-9][0-9.,:/-]*")
_MANY_NUMBERS = 8
_CODE = re.compile(r"^(?: {4}|\t)\S|^[^\S\n]*\|.*\|.*\|", re.MULTILINE)

_DECLINED = re.compile(
    r"""\{\s*"(?:status|state|result|decision|outcome|action|verdict|response_type|type|answer|error|refusal|code)"\s*:\s*"""
    r"""(?:"(?:declined?|refus(?:ed?|al)|rejected|denied|forbidden|blocked|(?:not|un)[_ -]?(?:allowed|permitted|supported|authori[sz]ed)|permission_denied|policy_violation|out_of_scope)"|true)""",
    re.IGNORECASE,
)
_REASON = re.compile(
    r""""(?:reason|message|explanation|error|detail|why|grund|motivo|raison)"\s*:\s*"[^"]{8}|null|\[\s*\]""", re.IGNORECASE
)

Kind = Literal["declines", "redirects"]


class Declined(NamedTuple):
    """A refusal: its kind, its language, and the position of the first sentence that declines."""

    kind: Kind
    language: str
    start: int
    end: int


def refusal_in(
    output: str, asked: str = "", acted: bool = False, material: Iterable[str] = (), instructions: str = ""
) -> Declined | None:
    """Return the refusal, or None. Prose that repeats much of ``material`` (tool results) or ``instructions`` isn't a refusal."""
    if output[:1] in ("{", "["):
        # the status of a JSON object must decline the request, and a reason, ``null`` or ``[]`` must be present
        if len(output) > _LONG or _DECLINED.match(output) is None or _REASON.search(output) is None:
            return None
        language = language_of(plain(asked[:_LONG]))
        return Declined("declines", language.name if language else "en", 0, len(output))
    if _delivers(output) or _reports(output := with_plain_apostrophes(output), acted):
        return None
    found = read(output, asked, acted)
    if found is None or not found.numbers:
        return None
    evidence = score_of(found)
    if evidence <= -_UNDECIDED:
        return None
    if evidence <= _UNDECIDED:
        # In the training cases, texts without a request are refusals more often than in real traffic. They get no bonus.
        invites = text_model("refusal_asked").score(asked) if asked.strip() else 0.0
        if evidence + _MODEL_WEIGHT * (text_model("refusal").score(output) + invites) <= _THRESHOLD:
            return None
    asked = plain(asked)
    if _passes_on(found.told, asked, material, _PASSED_ON) or _passes_on(plain(output), asked, (instructions,), _TOLD):
        return None
    signs = found.numbers
    declines = signs["no"] or signs["quit"] or signs["rule"] or signs["wrong"] or not signs["other"]
    return Declined("declines" if declines else "redirects", found.language, *place_of_declining(output, found.language))


def _passes_on(answer: str, asked: str, material: Iterable[str], least: int) -> bool:
    words = {word for word in _WORD.findall(answer) if word not in asked}
    return len(words) >= least and sum(map("\n".join(map(plain, material)).__contains__, words)) >= least


def _reports(output: str, acted: bool) -> bool:
    if not output.isascii():
        return False
    text = output.lower()
    if not (" the " in text or "you" in text or " is " in text or text.startswith("the ")):
        return False
    if has_any(text, words("refusal_words.txt", "english_pieces")):
        return False
    return acted or any(map(text.__contains__, "0123456789"))


def score_of(found: Read) -> float:
    """Return the log-odds of a refusal, with weights that ``scripts/refusal_weights.py`` fits."""
    weights: dict[str, float] = table("refusal_weights.json")
    return weights["bias"] + sum(weights[name] * value for name, value in found.numbers.items() if value)


def _delivers(output: str) -> bool:
    if len(output) > _LONGEST or output.lstrip()[:1] in ("", "{", "["):
        return True
    text = output.encode("ascii", "replace")
    digits = len(text) - len(text.translate(None, _DIGITS))
    if len(output) > _LONG and digits >= _MANY_DIGITS:
        return True
    if "```" in output or (("\n" in output or output[:1] in "| \t") and _CODE.search(output)):
        return True
    if digits >= _MANY_NUMBERS and len(_NUMBER.findall(output)) >= _MANY_NUMBERS:
        return True
    return not output.isascii() and length(output) > _LONGEST
