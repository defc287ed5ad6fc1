"""What a person said of a turn: a thumb, a rating, an edited answer, a comment."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import ConfigError
from .score import Facts, Score
from .semconv import EVALUATION_NAME, EVENT, RESULT_ID

METRIC = "code_user_feedback"
"""The metric under which feedback counts: 1 is the best that somebody can say, 0 the worst."""
EVENT_NAME = "user_feedback"
"""Of the events and log records in which feedback travels; other spellings are read too."""
GOOD = frozenset((
    "up", "thumbs_up", "thumb_up", "thumbsup", "upvote", "like", "liked", "positive", "good", "helpful", "yes", "true", "accept", "accepted",
    "correct", "satisfied", "happy", "pass", "👍",
))  # fmt: skip
"""Words for 1."""
BAD = frozenset((
    "down", "thumbs_down", "thumb_down", "thumbsdown", "downvote", "dislike", "disliked", "negative", "bad", "unhelpful", "not_helpful", "no", "false",
    "reject", "rejected", "incorrect", "wrong", "dissatisfied", "unsatisfied", "unhappy", "fail", "edited", "👎",
))  # fmt: skip
"""Words for 0. An answer that somebody edited was not good enough as it was."""
_SEPARATORS = re.compile(r"[\s.\-]+")
_IDS = re.compile(r"(?:[0-9a-f]{2}-)?([0-9a-f]{32})(?:-([0-9a-f]{16}))?(?:-[0-9a-f]{2})?")
"""A turn id, a trace id, or a ``traceparent`` of W3C."""
_MAX_TEXT = 10_000
STARS = (1.0, 5.0)
"""The scale of a rating that does not say its own."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What a person said."""

    score: float
    """From 0 to 1."""
    value: float | None = None
    """What was given, where it was a number of another scale."""
    scale: tuple[float, float] | None = None
    """The worst and the best of that scale."""
    label: str | None = None
    """In a word."""
    comment: str | None = None
    """In a sentence."""
    edited: str | None = None
    """The answer as the person would have had it."""
    id: str = ""
    """The same for the same feedback, however often it is sent."""

    def score_of(self, turn_id: str, revision: int, threshold: float) -> Score:
        """The score of a turn that this is."""
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
    """Feedback as somebody gave it.

    Args:
        score: a number of the scale, or true or false.
        label: a word; it stands for a score where it is one of :data:`GOOD` or :data:`BAD`.
        comment: what was said.
        edited: the answer as it should have been.
        scale: the worst and the best score, ``[1, 5]``; by default ``[0, 1]``.
        id: the same for the same feedback; by default a hash of what was given.
        seed: of that hash.

    Raises:
        ConfigError: it says neither good nor bad, or a value is not allowed.
    """
    texts = {name: _text(name, value) for name, value in (("label", label), ("comment", comment), ("edited", edited), ("id", id))}
    number, ends = _number(score), _scale(scale)
    if score is None:
        found = 0.0 if texts["edited"] is not None else word_score(texts["label"] or "")
        if found is None:
            raise ConfigError(
                "feedback: a score is required, or a label that says good or bad (thumbs_up, thumbs_down, like, dislike, 👍, 👎, …), or the edited answer"
            )
    elif number is None:
        raise ConfigError(f"feedback.score: {_shown(score)} is not allowed; it must be a number, true or false")
    else:
        worst, best = ends
        if not min(ends) <= number <= max(ends):
            raise ConfigError(
                f"feedback.score: {number:g} is not within the scale {worst:g} to {best:g}; say which scale with scale"
            )
        found = (number - worst) / (best - worst)
    own = _hash(seed, str(score), *(str(texts[name]) for name in ("label", "comment", "edited")))
    given = number if score is not None and ends != (0.0, 1.0) else None
    return Feedback(
        found, given, ends if given is not None else None, texts["label"], texts["comment"], texts["edited"], texts["id"] or own
    )


def word_score(word: str) -> float | None:
    """1 for a word that says good, 0 for one that says bad, None for any other."""
    plain = normal(word)
    return 1.0 if plain in GOOD else 0.0 if plain in BAD else None


def normal(name: str) -> str:
    """A name in small letters, its parts joined by ``_``."""
    return _SEPARATORS.sub("_", name.strip().lower())


def ids_of(turn: Any) -> tuple[int, int]:
    """The trace id and span id in ``TRACE_ID-SPAN_ID``, a ``traceparent`` or a span context; of a ``TRACE_ID`` alone the second is 0.

    Raises:
        ConfigError: it is none of these.
    """
    trace_id, span_id = getattr(turn, "trace_id", None), getattr(turn, "span_id", None)
    if isinstance(trace_id, int) and isinstance(span_id, int) and trace_id:
        return trace_id, span_id
    found = _IDS.fullmatch(turn.strip().lower()) if isinstance(turn, str) else None
    if found is None or not int(found[1], 16):
        raise ConfigError(
            f"feedback.turn_id: {_shown(turn)} is not allowed; it must be TRACE_ID-SPAN_ID, TRACE_ID, both in hex digits, or a traceparent"
        )
    return int(found[1], 16), int(found[2] or "0", 16)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None


def _scale(value: Any) -> tuple[float, float]:
    if value is None:
        return 0.0, 1.0
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2:
        worst, best = (_number(one) for one in value)
        if worst is not None and best is not None and worst != best:
            return worst, best
    raise ConfigError(f"feedback.scale: {_shown(value)} is not allowed; it must be the worst and the best score, as [1, 5]")


def _shown(value: Any) -> str:
    """A value in a message that may be logged: what somebody wrote is not quoted."""
    if value is None or isinstance(value, (bool, int, float)):
        return str(value)
    return f"a text of {len(value)} characters" if isinstance(value, str) else f"{type(value).__name__}"


def _text(name: str, value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise ConfigError(f"feedback.{name}: {_shown(value)} is not allowed; it must be text")
    return value[:_MAX_TEXT]


def _hash(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]


# --- feedback in events and attributes, as others write it ---------------------------------------------------------------

_SCORES = (
    "score",
    "value",
    "rating",
    "stars",
    "vote",
    "thumb",
    "thumbs",
    "feedback",
    "sentiment",
    "reaction",
    "is_positive",
    "positive",
    "liked",
    "helpful",
)
_RATINGS = frozenset(("rating", "stars", "user_rating", "star_rating"))
_COMMENTS = ("comment", "comments", "explanation", "text", "message", "reason", "note")
_EDITED = ("edited", "edited_output", "edited_response", "edited_answer", "correction", "corrected_output", "edit")
_MOST = ("max", "max_score", "max_rating", "out_of", "best")
_LEAST = ("min", "min_score", "min_rating", "worst")
_WORDS_OF_EVENTS = {"thumbs_up": 1.0, "thumb_up": 1.0, "upvote": 1.0, "thumbs_down": 0.0, "thumb_down": 0.0, "downvote": 0.0}
_SUBJECTS = (
    "user",
    "human",
    "response",
    "answer",
    "message",
    "chat",
    "agent",
    "llm",
    "ai",
    "gen_ai",
    "gen_ai_user",
    "gen_ai_evaluation_user",
    "app",
    "customer",
)
NAMES = frozenset((
    "feedback", "rating", "user_rating", "star_rating", "thumbs_up_down", "user_score", "user_vote", *_WORDS_OF_EVENTS,
    *(f"{subject}_feedback" for subject in _SUBJECTS),
))  # fmt: skip
"""Names of events that are feedback, in their :func:`normal` form."""
LOGFIRE_SCOPE = "logfire.feedback"
"""Scope of the spans in which Logfire records feedback: each a child of the span that it is about."""
LOGFIRE_FEEDBACK = "logfire.feedback.name"
"""Their attribute that names the attribute with the value."""
_known_names: dict[str, bool] = {}


def is_feedback(name: str) -> bool:
    """Whether an event of this name is feedback."""
    found = _known_names.get(name)
    if found is None:
        found = normal(name) in NAMES
        if len(_known_names) < 1_000:
            _known_names[name] = found
    return found


def is_feedback_record(name: str, attributes: Mapping[str, Any]) -> bool:
    """Whether an event or log record is feedback: by its name, or as an evaluation of such a name that is none of ours."""
    if name == EVENT:
        return RESULT_ID not in attributes and is_feedback(str(attributes.get(EVALUATION_NAME, "")))
    return is_feedback(name)


def in_record(name: str, attributes: Mapping[str, Any], body: Any = None, seed: str = "") -> Feedback | None:
    """As :func:`in_event`, of anything that :func:`is_feedback_record`."""
    return in_event(EVENT_NAME if name == EVENT else name, attributes, body, seed)


def in_event(name: str, attributes: Mapping[str, Any], body: Any = None, seed: str = "") -> Feedback | None:
    """The feedback in an event or log record that is feedback by its name; None where it says nothing that can be read.

    Attributes are known by the last part of their names: ``score``, ``user_feedback.score`` and ``app.feedback.score`` are the same.
    """
    said: dict[str, Any] = {}
    if isinstance(body, Mapping):
        said.update({normal(str(key)).rpartition(".")[2]: value for key, value in body.items()})
    for key, value in attributes.items():
        said[normal(key.rpartition(".")[2])] = value
    score_key = next((key for key in _SCORES if isinstance(said.get(key), (bool, int, float))), None)
    word = next((said[key] for key in ("label", *_SCORES) if isinstance(said.get(key), str) and said[key]), None)
    comment = next((said[key] for key in _COMMENTS if isinstance(said.get(key), str) and said[key]), None)
    if comment is None and isinstance(body, str) and body and normal(body) not in NAMES:
        comment = body
    edited = next((said[key] for key in _EDITED if isinstance(said.get(key), str) and said[key]), None)
    plain = normal(name)
    score: Any = said[score_key] if score_key is not None else None
    scale = None
    if score is None and word is not None and word_score(word) is None and (as_number := _written(word)) is not None:
        score, word = as_number, None
    if score is not None and not isinstance(score, bool):
        scale = _scale_of(score, said, rating=score_key in _RATINGS or plain in _RATINGS)
    if score is None and word is None and edited is None:
        score = _WORDS_OF_EVENTS.get(plain)
    try:
        return feedback_of(score=score, label=word, comment=comment, edited=edited, scale=scale, id=_id_in(said), seed=seed)
    except ConfigError:
        return None


def _scale_of(score: float, said: Mapping[str, Any], *, rating: bool) -> tuple[float, float] | None:
    """The scale of a number: what stands beside it, one to five for ratings, and -1 to 1 for a thumb down."""
    most = next((number for key in _MOST if (number := _number(said.get(key))) is not None), None)
    least = next((number for key in _LEAST if (number := _number(said.get(key))) is not None), None)
    if most is not None:
        usual = 1.0 if rating else 0.0
        return (usual if least is None else least), most
    if rating:
        return STARS if score <= STARS[1] else (1.0, 10.0)
    return (-1.0, 1.0) if score == -1 else None


def _written(word: str) -> float | None:
    try:
        return _number(float(word))
    except ValueError:
        return None


def _id_in(said: Mapping[str, Any]) -> str | None:
    found = said.get("feedback_id", said.get("id"))
    return found if isinstance(found, str) and found else None


def in_annotation(attributes: Mapping[str, Any], seed: str = "") -> Feedback | None:
    """The feedback in the attributes of a span that Logfire made for it."""
    name = attributes.get(LOGFIRE_FEEDBACK)
    if not isinstance(name, str):
        return None
    return in_event(name, {"value": attributes.get(name), "comment": attributes.get("logfire.feedback.comment")}, None, seed)


def in_attribute(name: str, value: Any, seed: str = "") -> Feedback | None:
    """The feedback in a span attribute that the configuration names; None where it cannot be read."""
    last = name.rpartition(".")[2]
    return in_event(last, {last if normal(last) in _SCORES else "value": value}, None, seed)
