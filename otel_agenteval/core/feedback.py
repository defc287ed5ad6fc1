"""User feedback on a turn: thumbs, ratings, edited answers, and comments."""

from __future__ import annotations

import functools
import hashlib
import logging
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from .errors import ConfigError
from .score import Facts, Score
from .semconv import EVALUATION_NAME, EVENT, RESULT_ID

_log = logging.getLogger("otel_agenteval")

METRIC = "code_user_feedback"
"""Metric name of feedback scores. The worst score is 0, and the best is 1."""
EVENT_NAME = "user_feedback"
"""Name of feedback events and log records. All names in :data:`NAMES` are also accepted."""
GOOD = frozenset((
    "up", "thumbs_up", "thumb_up", "thumbsup", "upvote", "like", "liked", "positive", "good", "helpful", "yes", "true", "accept", "accepted",
    "correct", "satisfied", "happy", "pass", "👍", "+1",
))  # fmt: skip
BAD = frozenset((
    "down", "thumbs_down", "thumb_down", "thumbsdown", "downvote", "dislike", "disliked", "negative", "bad", "unhelpful", "not_helpful", "no", "false",
    "reject", "rejected", "incorrect", "wrong", "dissatisfied", "unsatisfied", "unhappy", "fail", "edited", "👎", "-1",
))  # fmt: skip
"""Words that mean a score of 0, including ``edited``, because the user had to correct the answer."""
_SEPARATORS = re.compile(r"[\s.\-]+")
_SKIN_TONE = re.compile("[\U0001f3fb-\U0001f3ff\ufe0f]|:skin-tone-[1-6]|(?:_(?:medium|light|dark)){1,2}_skin_tone")
"""Pattern for skin tones in an emoji, or in an emoji's name in Slack or Mattermost."""
_IDS = re.compile(r"(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-([0-9a-f]{16}))?(?:-[0-9a-f]{2})?")
"""Pattern for a turn ID, a trace ID, or a W3C ``traceparent``."""
_MAX_TEXT = 10_000
_LARGEST = sys.float_info.max
STARS = (1.0, 5.0)


@dataclass(frozen=True, slots=True)
class Feedback:
    score: float
    value: float | None = None
    """The original number, if the scale isn't 0 to 1."""
    scale: tuple[float, float] | None = None
    """Scale of ``value``: the worst and the best value."""
    label: str | None = None
    comment: str | None = None
    edited: str | None = None
    id: str = ""
    """ID of the feedback, so that repeated deliveries count once."""

    @property
    def characters(self) -> int:
        return sum(len(text or "") for text in (self.label, self.comment, self.edited, self.id))

    def score_of(self, turn_id: str, revision: int, threshold: float) -> Score:
        facts = Facts(METRIC, "code", "1", "up", threshold, "numeric", "1", "trend")
        detail: dict[str, Any] = {
            name: value
            for name, value in (
                ("given", self.value), ("scale", None if self.scale is None else "{:g} to {:g}".format(*self.scale)),
                ("label", self.label), ("edited", self.edited),
            )
            if value is not None
        }  # fmt: skip
        passed = self.score >= threshold
        found = Score.of(facts, self.score, passed, "ok", "pass" if passed else "fail", self.comment, detail, None, None)
        found._result_id = _hash(turn_id, METRIC, str(revision), self.id)
        return found


def feedback_of(
    *,
    score: Any = None,
    label: Any = None,
    comment: Any = None,
    edited: Any = None,
    scale: Any = None,
    id: Any = None,  # noqa: A002 - as callers and requests name it
    seed: str = "",
) -> Feedback:
    """Build feedback from a rating, a label, a comment, or an edited answer.

    Args:
        score: a number within the scale. True means 1, and False means 0.
        label: a word. Without ``score`` and ``edited``, the word must be in :data:`GOOD` (score 1) or :data:`BAD` (score 0).
        comment: free text.
        edited: the corrected answer. If ``score`` is missing, the score is 0.
        scale: the worst and the best score, such as ``[1, 5]``. The default is ``[0, 1]``.
        id: ID of the feedback, so that repeated deliveries count once. The default is a hash of the score and the texts.
        seed: text to include in this hash, so that equal feedback from two users gets different IDs.

    Raises:
        ConfigError: If there is no score, known label, or edited answer, or if a value isn't allowed.
    """
    texts = {name: _text(name, value) for name, value in (("label", label), ("comment", comment), ("edited", edited), ("id", id))}
    number, ends = _number(score), _scale(scale)
    if score is None:
        found = 0.0 if texts["edited"] is not None else word_score(texts["label"] or "")
        if found is None:
            raise ConfigError(
                "feedback: no rating found. Pass a score, a known label (thumbs_up, thumbs_down, like, dislike, 👍, 👎, …), or the edited answer"
            )
    elif number is None:
        raise ConfigError(f"feedback.score: must be a finite number, true, or false, got {_described(score)}")
    else:
        worst, best = ends
        if not min(ends) <= number <= max(ends):
            raise ConfigError(
                f"feedback.score: must be within the scale {worst:g} to {best:g}, got {number:g}. To use another scale, set feedback.scale"
            )
        found = (number - worst) / (best - worst)
    own = _hash(seed, str(score), *(str(texts[name]) for name in ("label", "comment", "edited")))
    given = number if score is not None and ends != (0.0, 1.0) else None
    return Feedback(
        found, given, ends if given is not None else None, texts["label"], texts["comment"], texts["edited"], texts["id"] or own
    )


def word_score(word: str) -> float | None:
    plain = _SKIN_TONE.sub("", word.strip().lower()).strip(":")
    plain = plain if plain == "-1" else normal(plain)
    return 1.0 if plain in GOOD else 0.0 if plain in BAD else None


def normal(name: str) -> str:
    return _SEPARATORS.sub("_", name.strip().lower())


def ids_of(turn: Any) -> tuple[int, int]:
    """Return the trace ID and span ID (or 0) in an ID (without tenant), ``traceparent``, or span context, or raise a ConfigError."""
    trace_id, span_id = getattr(turn, "trace_id", None), getattr(turn, "span_id", None)
    if isinstance(trace_id, int) and isinstance(span_id, int) and trace_id:
        return trace_id, span_id
    found = _IDS.fullmatch(turn.strip().lower()) if isinstance(turn, str) else None
    if found is None or not int(found[1], 16):
        hint = ". Call oa.turn_id() inside a span" if turn is None else ""
        raise ConfigError(
            f"feedback.turn_id: must be TRACE_ID-SPAN_ID or TRACE_ID in hex digits, or a traceparent, got {_described(turn)}{hint}"
        )
    return int(found[1], 16), int(found[2] or "0", 16)


@functools.cache
def warn_unmatched() -> None:
    _log.warning(
        "user feedback: the given ID doesn't match exactly one turn, so the feedback isn't linked. Further cases are only counted in "
        'agenteval_feedback_total{outcome="unmatched"}. With several workers, see docs/guides/user-feedback.md#several-workers'
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and -_LARGEST <= value <= _LARGEST else None


def _scale(value: Any) -> tuple[float, float]:
    if value is None:
        return 0.0, 1.0
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        worst, best = (_number(one) for one in value)
        if worst is not None and best is not None and 0 < abs(best - worst) <= _LARGEST:
            return worst, best
    raise ConfigError(
        f"feedback.scale: must be two different numbers, the worst and the best score, got {_described(value)}. Example: [1, 5]"
    )


def _described(value: Any) -> str:
    """Describe a value for an error message. User text isn't quoted, because messages are logged."""
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    return f"a text of {len(value)} characters" if isinstance(value, str) else f"{type(value).__name__}"


def _text(name: str, value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ConfigError(f"feedback.{name}: must be text, got {_described(value)}")
    return value[:_MAX_TEXT]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


_SCORES = (
    "score", "value", "rating", "stars", "vote", "thumb", "thumbs", "feedback", "sentiment", "reaction", "is_positive", "positive",
    "liked", "helpful",
)  # fmt: skip
_RATINGS = frozenset(("rating", "stars", "user_rating", "star_rating"))
_COMMENTS = ("comment", "comments", "explanation", "text", "message", "reason", "note")
_EDITED = ("edited", "edited_output", "edited_response", "edited_answer", "correction", "corrected_output", "edit")
_MOST = ("max", "max_score", "max_rating", "out_of", "best")
_LEAST = ("min", "min_score", "min_rating", "worst")
_WORDS_OF_EVENTS = {"thumbs_up": 1.0, "thumb_up": 1.0, "upvote": 1.0, "thumbs_down": 0.0, "thumb_down": 0.0, "downvote": 0.0}
_SUBJECTS = (
    "user", "human", "response", "answer", "message", "chat", "agent", "llm", "ai", "gen_ai", "gen_ai_user", "gen_ai_evaluation_user",
    "app", "customer",
)  # fmt: skip
NAMES = frozenset((
    "feedback", "rating", "user_rating", "star_rating", "thumbs_up_down", "user_score", "user_vote", *_WORDS_OF_EVENTS,
    *(f"{subject}_feedback" for subject in _SUBJECTS),
))  # fmt: skip
"""Names of feedback events, normalized by :func:`normal`."""
LOGFIRE_SCOPE = "logfire.feedback"
"""Instrumentation scope of Logfire's feedback spans. Each span is a child of the rated span."""
LOGFIRE_FEEDBACK = "logfire.feedback.name"
"""Attribute of a Logfire feedback span. Its value is the name of the attribute with the rating."""
_known_names: dict[str, bool] = {}


def is_feedback(name: str) -> bool:
    found = _known_names.get(name)
    if found is None:
        found = normal(name) in NAMES
        if len(_known_names) < 1_000:
            _known_names[name] = found
    return found


def is_feedback_record(name: str, attributes: Mapping[str, Any]) -> bool:
    """Return True for user feedback, and for another tool's evaluation result whose name is a feedback name."""
    if name == EVENT:
        return RESULT_ID not in attributes and is_feedback(str(attributes.get(EVALUATION_NAME, "")))
    return is_feedback(name)


def in_record(name: str, attributes: Mapping[str, Any], body: Any = None, seed: str = "") -> Feedback | None:
    """Return the feedback in a record that :func:`is_feedback_record` accepts, or None if the rating can't be parsed."""
    return in_event(EVENT_NAME if name == EVENT else name, attributes, body, seed)


def in_event(name: str, attributes: Mapping[str, Any], body: Any = None, seed: str = "") -> Feedback | None:
    """Return the feedback in an event or log record, or None if the rating can't be parsed. Only the last component of an
    attribute name counts: ``score``, ``user_feedback.score``, and ``app.feedback.score`` are equivalent.
    """
    values: dict[str, Any] = {}
    if isinstance(body, Mapping):
        values.update({normal(str(key)).rpartition(".")[2]: value for key, value in body.items()})
    for key, value in attributes.items():
        values[normal(key.rpartition(".")[2])] = value

    def first_text(*keys: str) -> str | None:
        return next((values[key] for key in keys if isinstance(values.get(key), str) and values[key]), None)

    score_key = next((key for key in _SCORES if isinstance(values.get(key), (bool, int, float))), None)
    word = first_text("label", *_SCORES)
    comment = first_text(*_COMMENTS)
    if comment is None and isinstance(body, str) and body and normal(body) not in NAMES:
        comment = body
    plain = normal(name)
    score: Any = values[score_key] if score_key is not None else None
    edited, scale = first_text(*_EDITED), None
    if score is None and word is not None and word_score(word) is None:
        with suppress(ValueError):
            score = _number(float(word))
            word = None if score is not None else word
    if score is not None and not isinstance(score, bool):
        scale = _scale_of(score, values, rating=score_key in _RATINGS or plain in _RATINGS)
    if score is None and word is None and edited is None:
        score = _WORDS_OF_EVENTS.get(plain)
    try:
        feedback_id = first_text("feedback_id" if "feedback_id" in values else "id")
        return feedback_of(score=score, label=word, comment=comment, edited=edited, scale=scale, id=feedback_id, seed=seed)
    except ConfigError:
        return None


def _scale_of(score: float, values: Mapping[str, Any], *, rating: bool) -> tuple[float, float] | None:
    most = next((number for key in _MOST if (number := _number(values.get(key))) is not None), None)
    least = next((number for key in _LEAST if (number := _number(values.get(key))) is not None), None)
    if most is not None:
        return (least if least is not None else 1.0 if rating else 0.0), most
    if rating:
        return STARS if score <= STARS[1] else (1.0, 10.0)
    return (-1.0, 1.0) if score == -1 else None


def in_annotation(attributes: Mapping[str, Any], seed: str = "") -> Feedback | None:
    """Return the feedback in a Logfire feedback span's attributes, or None if the rating is missing or can't be parsed."""
    name = attributes.get(LOGFIRE_FEEDBACK)
    if not isinstance(name, str):
        return None
    return in_event(name, {"value": attributes.get(name), "comment": attributes.get("logfire.feedback.comment")}, None, seed)


def in_attribute(name: str, value: Any, seed: str = "") -> Feedback | None:
    """Return the feedback in a configured span attribute, or None if the attribute's value can't be parsed."""
    last = name.rpartition(".")[2]
    return in_event(last, {last if normal(last) in _SCORES else "value": value}, None, seed)
