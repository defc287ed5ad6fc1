"""The result of one metric on one turn: a value, a reason for skipping, or an error."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Literal, NamedTuple, get_args

from .errors import ConfigError, nearest
from .finding import SEVERITIES, Severity, findings_in
from .wellformed import well_formed

Status = Literal["ok", "skipped", "error"]
Kind = Literal["code", "embed", "llm"]
Direction = Literal["up", "down", "neutral"]
ScoreType = Literal["numeric", "boolean"]
Policy = Literal["gate", "trend"]

GATED, SHED = "gated", "shed"
"""Values of ``detail["reason"]`` for metrics that didn't run, because a selector excluded the turn or because load was high."""
TASK_RAISED = "task_raised"
"""``error_type`` of scores that became errors because an experiment's task raised an exception. Unlike other errors, they fail."""
MOST_EXPLAINED = 20_000
"""Maximum number of characters in an explanation of a computed or judged score. Longer text is truncated."""
_CHOICES = {"status": get_args(Status), "direction": get_args(Direction), "type": get_args(ScoreType), "policy": get_args(Policy)}


class Facts(NamedTuple):
    """Fields that all scores of one configured metric share, such as ``unit`` and ``threshold``."""

    metric: str
    kind: Kind = "code"
    unit: str = "1"
    direction: Direction = "up"
    threshold: float | None = None
    type: ScoreType = "numeric"
    version: str = "1"
    policy: Policy = "trend"
    identity: bytes = b""
    """Bytes that identify the metric and its parameters. Part of the hash in ``result_id``."""

    @property
    def gives_verdict(self) -> bool:
        """True if the metric's scores pass or fail. A neutral metric has verdicts only with a threshold or the policy ``gate``."""
        return self.direction != "neutral" or self.threshold is not None or self.policy == "gate"


FIELDS = (
    "also", "detail", "direction", "error_type", "explanation", "kind", "label", "metric", "passed",
    "policy", "result_id", "status", "threshold", "type", "unit", "value", "version",
)  # fmt: skip


def result_id_of(facts: Facts, turn_id: str, revision: bytes) -> str:
    """Return the ID of a metric's result on a turn, as 32 hex digits. The ID depends only on the arguments, not on the result."""
    return hashlib.sha256(turn_id.encode() + facts.identity + revision).hexdigest()[:32]


class ScoreSummary:
    """Score fields that repeat across turns, such as verdict and severity. Scores with equal fields usually share one object."""

    __slots__ = ("outcome", "reason", "severity", "verdict")

    def __init__(self, score: Score, reason: str | None) -> None:
        if score.status == "skipped":
            self.outcome = _NOT_EVALUATED.get(reason or "", "skipped")
        elif score.status != "ok":
            self.outcome = score.status
        elif score.vacuous:
            self.outcome = "vacuous"
        else:
            self.outcome = "ok" if score.verdict is None else "pass" if score.verdict else "fail"
        """Outcome: ``pass``, ``fail``, ``ok`` (value without a :attr:`~Score.verdict`), ``vacuous``, ``error``, ``skipped``,
        ``gated`` (a selector excluded the turn), or ``dropped`` (high load)."""
        self.reason = reason
        """``detail["reason"]`` of a skipped metric, if it is text."""
        self.severity = score.severity
        self.verdict = score.verdict


_NOT_EVALUATED = {GATED: "gated", SHED: "dropped"}
_summaries: dict[Hashable, ScoreSummary] = {}
_MOST_SUMMARIES, _LONGEST_WORDS = 4_096, 256


class Score:
    """One metric's result on one turn or conversation.

    Attributes:
        metric: canonical name: ``code_…``, ``embed_…``, or ``llm_…``.
        value: the number. ``None`` if ``status`` isn't ``ok`` or the metric returned only a label. Booleans are 1.0 and 0.0.
        passed: True if the value meets the threshold. Boolean and some other metrics set ``passed`` directly.
            ``None`` if the metric neither passes nor fails turns, and usually if ``status`` isn't ``ok``.
        status: ``ok``, ``skipped`` (see ``detail["reason"]``), or ``error`` (see ``error_type``).
        label: low-cardinality word for the result. If the metric returns no label but ``passed`` is known, ``pass`` or ``fail``
            (for a neutral detector, ``yes`` or ``no``).
        explanation: short text for people. It can quote the turn's content.
        detail: data behind the value. ``detail["vacuous"]`` is true if a perfect value only means "nothing to evaluate".
        also: companion results by name, each a Score.
        kind: ``code`` if the value was computed, ``embed`` if it comes from an embedder, or ``llm`` if it comes from a judge.
        unit: UCUM unit of ``value``, such as ``1``, ``s``, ``{token}``, ``USD``, ``{item}``, or ``{level}``.
        direction: ``up`` if more is better, ``down`` if less is better, or ``neutral``.
        threshold: the limit that ``value`` is compared with to set ``passed``.
        type: ``boolean`` or ``numeric``.
        version: the metric's version, which changes with the formula.
        error_type: low-cardinality name of the failure if ``status`` is ``error``.
        policy: ``gate`` (every turn must pass) or ``trend`` (watched over time).
        result_id: ID of the result, the same in every outlet. Empty until the pipeline assigns the score to a turn.
    """

    __slots__ = (
        "_also", "_detail", "_result_id", "_summary", "about", "error_type", "explanation", "facts", "label", "passed", "status", "value",
    )  # fmt: skip

    facts: Facts
    about: tuple[str, bytes] | None
    """ID and revision of the scored turn, or None outside a pipeline."""
    metric: str = property(attrgetter("facts.metric"))  # type: ignore[assignment]
    kind: Kind = property(attrgetter("facts.kind"))  # type: ignore[assignment]
    unit: str = property(attrgetter("facts.unit"))  # type: ignore[assignment]
    direction: Direction = property(attrgetter("facts.direction"))  # type: ignore[assignment]
    threshold: float | None = property(attrgetter("facts.threshold"))  # type: ignore[assignment]
    type: ScoreType = property(attrgetter("facts.type"))  # type: ignore[assignment]
    version: str = property(attrgetter("facts.version"))  # type: ignore[assignment]
    policy: Policy = property(attrgetter("facts.policy"))  # type: ignore[assignment]

    def __init__(
        self,
        metric: str,
        value: float | None = None,
        passed: bool | None = None,
        status: Status = "ok",
        label: str | None = None,
        explanation: str | None = None,
        detail: dict[str, Any] | None = None,
        also: dict[str, Score] | None = None,
        kind: Kind = "code",
        unit: str = "1",
        direction: Direction = "up",
        threshold: float | None = None,
        type: ScoreType = "numeric",  # noqa: A002 - the contract's field name
        version: str = "1",
        error_type: str | None = None,
        policy: Policy = "trend",
        result_id: str = "",
    ) -> None:
        self.facts = Facts(metric, kind, unit, direction, threshold, type, version, policy)
        self.value = value
        self.passed = passed
        self.status = status
        self.label = label
        self.explanation = explanation
        self._detail = detail
        self._also = also
        self.error_type = error_type
        self._result_id = result_id
        self._summary: ScoreSummary | None = None
        self.about = None

    @classmethod
    def of(
        cls,
        facts: Facts,
        value: float | None,
        passed: bool | None,
        status: Status,
        label: str | None,
        explanation: str | None,
        detail: dict[str, Any] | None,
        also: dict[str, Score] | None,
        error_type: str | None,
    ) -> Score:
        """Create a score of a configured metric, faster than the constructor. Long explanations are truncated."""
        score = cls.__new__(cls)
        score.facts = facts
        score.value = value
        score.passed = passed
        score.status = status
        score.label = label if label is None or label.isascii() else well_formed(label)
        is_fine = explanation is None or (explanation.isascii() and len(explanation) <= MOST_EXPLAINED)
        score.explanation = explanation if is_fine else well_formed(str(explanation)[:MOST_EXPLAINED])
        score._detail = detail
        score._also = also
        score.error_type = error_type
        score._result_id = ""
        score._summary = None
        score.about = None
        return score

    # Most scores have neither detail nor companions, so the dictionaries are created on first access.

    @property
    def detail(self) -> dict[str, Any]:
        """Data behind the value, such as findings. The dict is created on first use."""
        self._summary = None  # the caller may change the returned dict
        if self._detail is None:
            self._detail = {}
        return self._detail

    @property
    def also(self) -> dict[str, Score]:
        """Companion results by name. The dict is created on first use."""
        if self._also is None:
            self._also = {}
        return self._also

    @property
    def result_id(self) -> str:
        """ID of this result, or empty before the pipeline assigns the score to a turn. Computed on first use, to save time."""
        if not self._result_id and self.about is not None:
            turn_id, revision = self.about
            self._result_id = result_id_of(self.facts, turn_id, revision)
        return self._result_id

    @property
    def summary(self) -> ScoreSummary:
        """Summary for outlets, cached on first use. Access to :attr:`detail` resets the cache."""
        if self._summary is not None:
            return self._summary
        detail, status = self._detail, self.status
        reason = severity = None
        vacuous = False
        if detail:
            vacuous = bool(detail.get("vacuous"))
            if status == "skipped":
                given = detail.get("reason")
                reason = given if isinstance(given, str) else None
            if "findings" in detail:
                severity = self.severity
        key = self.facts, status, self.passed, self.label, self.error_type, reason, vacuous, severity
        try:
            found = _summaries.get(key)
        except TypeError:  # a score from a file can have a label of any type
            found = self._summary = ScoreSummary(self, reason)
            return found
        if found is None:
            found = ScoreSummary(self, reason)
            if len(f"{self.label}{self.error_type}{reason}") <= _LONGEST_WORDS:
                if len(_summaries) >= _MOST_SUMMARIES:
                    _summaries.clear()
                _summaries[key] = found
        self._summary = found
        return found

    @property
    def vacuous(self) -> bool:
        """True if the value only means that there was nothing to evaluate."""
        return self._detail is not None and bool(self._detail.get("vacuous"))

    @property
    def verdict(self) -> bool | None:
        """True if the turn passes, False if it fails, or None if there is no verdict.

        Outlets and reports show the verdict instead of ``passed``, which is the raw comparison. A neutral detector such as
        ``code_refusal`` sets ``passed``, but doesn't have a verdict.
        """
        return self.passed if self.facts.gives_verdict else None

    @property
    def severity(self) -> Severity | None:
        """Urgency of the result, or None if the metric didn't find a problem.

        The severity is the highest in ``detail["findings"]``. A failed score without findings is a ``warning``.
        """
        found = {one.get("severity") for one in findings_in(self._detail)} if self._detail else ()
        highest = next((severity for severity in reversed(SEVERITIES) if severity in found), None)
        return highest or ("warning" if self.verdict is False else None)

    def as_sent(self) -> dict[str, Any]:
        """Return the form that outlets export: :meth:`to_dict`, without ``passed`` if the score doesn't have a verdict."""
        out = self.to_dict()
        if self.verdict is None:
            del out["passed"]
        if self._also:
            out["also"] = {name: score.as_sent() for name, score in self._also.items()}
        return out

    def reworded(self, text: Callable[[str], str], facts: Callable[[dict[str, Any]], dict[str, Any]]) -> Score:
        """Return the score with ``text`` applied to all texts and ``facts`` to all details. The result can be this same object."""
        detail, also = self._detail, self._also
        label, explanation, error_type = (
            text(given) if given else given for given in (self.label, self.explanation, self.error_type)
        )
        if not (detail or also) and (label, explanation, error_type) == (self.label, self.explanation, self.error_type):
            return self
        same = Score.of(
            self.facts, self.value, self.passed, self.status, label, explanation, facts(detail) if detail else None,
            {name: one.reworded(text, facts) for name, one in also.items()} if also else None, error_type,
        )  # fmt: skip
        same._result_id, same.about = self._result_id, self.about
        return same

    def to_dict(self) -> dict[str, Any]:
        """Return the score as a JSON object. Empty fields are omitted, but ``value`` and ``passed`` are always included."""
        out: dict[str, Any] = {"metric": self.metric, "value": self.value, "passed": self.passed, "status": self.status}
        for key in ("label", "explanation", "threshold", "error_type", "result_id"):
            item = getattr(self, key)
            if item not in (None, ""):
                out[key] = item
        if self.detail:
            out["detail"] = self.detail
        if self.also:
            out["also"] = {name: score.to_dict() for name, score in self.also.items()}
        out.update(kind=self.kind, unit=self.unit, direction=self.direction, type=self.type, version=self.version)
        out["policy"] = self.policy
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Score:
        """Parse the output of :meth:`to_dict`. Absent keys get their defaults, but ``metric`` is required.

        Raises:
            ConfigError: If a key is unknown, or ``metric``, ``value``, ``passed``, or a choice such as ``status`` is invalid.
        """
        fields = dict(data)
        for key in fields:
            if key not in FIELDS:
                raise ConfigError(f"score.{key}: unknown key. Did you mean {' or '.join(nearest(key, FIELDS, 2))}?")
        if not isinstance(fields.get("metric"), str):
            raise ConfigError(f"score.metric: must be a metric name, got {fields.get('metric')!r}")
        for key, allowed in _CHOICES.items():
            if key in fields and fields[key] not in allowed:
                raise ConfigError(f"score.{key}: must be one of {', '.join(allowed)}, got {fields[key]!r}")
        value = fields.get("value")
        if value is not None:
            if not isinstance(value, (int, float)):
                raise ConfigError(f"score.value: must be a number, got {value!r}")
            fields["value"] = float(value)
        if fields.get("passed") not in (None, True, False):
            raise ConfigError(f"score.passed: must be true, false, or null, got {fields['passed']!r}")
        kind = fields["metric"].split("_", 1)[0]
        fields.setdefault("kind", kind if kind in ("code", "embed", "llm") else "code")
        fields["detail"] = dict(fields.get("detail") or {})
        fields["also"] = {name: cls.from_dict({"metric": name, **inner}) for name, inner in (fields.get("also") or {}).items()}
        return cls(**fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Score):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in FIELDS)

    __hash__ = None  # type: ignore[assignment]  # scores are values with mutable parts

    def _repr_html_(self) -> str:
        return scores_html([self], self.metric)

    def __repr__(self) -> str:
        shown = self.value if self.status == "ok" else f"{self.status}: {self.error_type or self.detail.get('reason', '')}"
        return f"Score({self.metric}={shown!r}, passed={self.passed})"


_MOST_ROWS = 40
_MARKS = {True: "✓", False: "✗", None: "·"}


def outcome_of(score: Score) -> str:
    """Return the outcome for ``why``: ``scored``, ``error: TYPE``, ``gated: SELECTOR``, ``dropped: shed``, or ``skipped: REASON``."""
    if score.status != "skipped":
        return "scored" if score.status == "ok" else f"error: {score.error_type}"
    reason = score.detail.get("reason", "")
    if reason == GATED:
        return f"{GATED}: {score.detail.get('by', '')}"
    return f"dropped: {SHED}" if reason == SHED else f"skipped: {reason}"


def scores_html(scores: Sequence[Score], title: str = "scores") -> str:
    """Return an HTML table of the first 40 scores. Errors come first, then failures, other scores, and skipped scores."""
    from .display import facts_html

    order = {"error": 0, "ok": 1, "skipped": 2}
    ranked = sorted(scores, key=lambda score: (order[score.status], score.verdict is not False, score.metric))
    lines = [(f"{_MARKS[score.verdict]} {score.metric}", _summary(score)) for score in ranked[:_MOST_ROWS]]
    more = f"{len(ranked)} scores" + (f", the first {_MOST_ROWS} are shown" if len(ranked) > _MOST_ROWS else "")
    return facts_html(title, more, lines)


def _summary(score: Score) -> str:
    if score.status != "ok":
        return f"{outcome_of(score)}: {score.explanation or ''}" if score.status == "error" else outcome_of(score)
    is_boolean = score.type == "boolean"
    text = f"{score.value:.4g}" if score.value is not None and not (is_boolean and score.label) else score.label or ""
    if score.threshold is not None and not is_boolean:
        text += f" ({'≤' if score.direction == 'down' else '≥'} {score.threshold:g})"
    return f"{text}: {score.explanation}" if score.explanation else text


def pass_rate(passed: float, failed: float) -> float | None:
    return passed / (passed + failed) if passed + failed > 0 else None


@dataclass(frozen=True, slots=True)
class Exchange:
    """Prompt of a judge call, and the reply. Both can contain the turn's content."""

    stage: str
    """Name of the metric step that made the call."""
    model: str
    question: str
    """Text of the last message, without media."""
    reply: str | None
