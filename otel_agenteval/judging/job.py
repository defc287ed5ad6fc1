"""Judge jobs. Each job contains a metric, a turn, an inclusion probability, and the metrics that wait for the job's score.

A job's payload is a JSON header, a line feed, and the turn as JSON in ``turn.v1`` form. Only :class:`Payload` reads and writes
this format. Payloads can outlive the process that wrote them, so each payload has a version number.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opentelemetry.trace import TraceState

from ..core import jsonio
from ..core.score import Kind, Score
from ..core.turn import Turn
from ..evaluation.redaction import Exporter, Redactor
from ..evaluation.scored_turn import Judged, Root, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .queues import Job
from .sampling import Chance, upstream_probability

VERSION = 1
_INNER = "inner "
SCORE_BYTES = 8 * 1024
"""Assumed size of a judged score in the worker's queue, in bytes."""


class NewerPayload(Exception):
    """Error for a payload that a later version of otel-agenteval wrote to a shared queue."""


class Decision(NamedTuple):
    metric: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    key: str
    metric: str
    chance: Chance
    """Judging probability, until ``sample.cascade`` changes it based on another score."""
    then: Sequence[Waiting] = ()
    decided: Decision | None = None
    """For ``sample.cascade``: the metric that was judged first, and its score. None before that metric is judged."""

    def to_dict(self) -> dict[str, Any]:
        then = [one.to_dict() for one in self.then]
        decided = {} if self.decided is None else {"decided": self.decided._asdict()}
        return {"key": self.key, "metric": self.metric, "chance": list(self.chance), "then": then, **decided}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Waiting:
        then = tuple(map(cls.from_dict, data["then"]))
        decided = data.get("decided")
        return cls(data["key"], data["metric"], Chance(*data["chance"]), then, None if decided is None else Decision(**decided))


def flattened(waiting: Sequence[Waiting]) -> Iterator[Waiting]:
    for one in waiting:
        yield one
        yield from flattened(one.then)


@dataclass(frozen=True, slots=True)
class InnerOutcome:
    score: Score
    """Score of the composite's inner metric, or a skipped score with the reason why the metric wasn't evaluated."""
    chance: Chance
    cost_usd: float | None = None
    """Cost of the judge calls. None if the cost is unknown, or if the metric's own exported score reports the cost."""

    def to_dict(self) -> dict[str, Any]:
        return {"score": self.score.to_dict(), "chance": list(self.chance), "cost_usd": self.cost_usd}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> InnerOutcome:
        return cls(Score.from_dict(data["score"]), Chance(*data["chance"]), data["cost_usd"])


@dataclass(frozen=True, slots=True)
class Gathering:
    """Composites that wait for their inner metrics' scores on one turn.

    Inner metrics are judged one after the other, and each job contains the earlier outcomes. Therefore, the process that runs the
    last job can compute the composites.
    """

    composites: Sequence[Waiting]
    found: Mapping[str, InnerOutcome] = field(default_factory=dict)
    """Inner metrics' outcomes so far, by metric key without the prefix ``inner`` (see :func:`unmarked`)."""
    next: Sequence[Waiting] = ()
    """Metrics to judge after this job and its follow-up jobs."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "composites": [one.to_dict() for one in self.composites], "found": {key: one.to_dict() for key, one in self.found.items()},
            "next": [one.to_dict() for one in self.next],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Gathering:
        found = {key: InnerOutcome.from_dict(one) for key, one in data["found"].items()}
        return cls(tuple(map(Waiting.from_dict, data["composites"])), found, tuple(map(Waiting.from_dict, data["next"])))


@dataclass(frozen=True, slots=True)
class Payload:
    key: str
    metric: str
    turn_id: str
    revision: int
    agent: str
    at: float
    position: float
    chance: Chance
    root: Root
    body: bytes
    conversation: bool = False
    new: bool = True
    supersedes: str | None = None
    counted_as: str | None = None
    absorbs: Sequence[str] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    decided: Decision | None = None
    then: Sequence[Waiting] = ()
    gathering: Gathering | None = None

    @property
    def waits(self) -> Iterator[Waiting]:
        """Yield the job's metric, and all metrics (but not composites) that wait for this job."""
        yield Waiting(self.key, self.metric, self.chance)
        yield from flattened(self.then)
        yield from flattened(self.gathering.next if self.gathering is not None else ())

    @classmethod
    def for_metric(
        cls, metric: BoundMetric, scored: ScoredTurn, chance: Chance, position: float, at: float, body: bytes, key: str = ""
    ) -> Payload:
        turn = scored.turn
        return cls(
            key or key_of(metric, conversation=scored.conversation), metric.name, turn.turn_id, turn.revision, turn.agent or "", at, position, chance,
            scored.root, body, scored.conversation, scored.new, scored.supersedes, scored.counted_as, tuple(scored.absorbs),
            dict(scored.sources),
        )  # fmt: skip

    def encode(self) -> bytes:
        root = self.root
        head = {
            "v": VERSION, "key": self.key, "metric": self.metric, "turn_id": self.turn_id, "revision": self.revision, "agent": self.agent,
            "conversation": self.conversation, "new": self.new, "supersedes": self.supersedes, "at": self.at,
            "counted_as": self.counted_as, "absorbs": list(self.absorbs), "position": self.position, "chance": list(self.chance),
            "decided": None if self.decided is None else self.decided._asdict(),
            "then": [one.to_dict() for one in self.then], "sources": dict(self.sources),
            "trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}", "sampled": root.sampled,
            "trace_state": root.trace_state.to_header() if root.trace_state else "", "resource": dict(root.resource),
            "tenant": root.tenant, "labels": dict(root.labels), "gathering": None if self.gathering is None else self.gathering.to_dict(),
        }  # fmt: skip
        return jsonio.dumps(head).encode() + b"\n" + self.body

    @classmethod
    def decode(cls, data: bytes) -> Payload:
        """Parse a stored payload. Raises :class:`NewerPayload` if a later version wrote it, or other exceptions if it's damaged."""
        text, _, body = data.partition(b"\n")
        head: dict[str, Any] = jsonio.loads(text)
        if head["v"] > VERSION:
            raise NewerPayload
        decided, gathering = head["decided"], head["gathering"]
        state = TraceState.from_header([head["trace_state"]]) if head["trace_state"] else None
        root = Root(
            int(head["trace_id"], 16), int(head["span_id"], 16), head["sampled"], state, head["resource"], head["tenant"],
            head["labels"],
        )  # fmt: skip
        return cls(
            head["key"], head["metric"], head["turn_id"], head["revision"], head["agent"], head["at"], head["position"],
            Chance(*head["chance"]), root, body, head["conversation"], head["new"], head["supersedes"], head["counted_as"],
            tuple(head["absorbs"]), head["sources"], None if decided is None else Decision(**decided),
            tuple(map(Waiting.from_dict, head["then"])), None if gathering is None else Gathering.from_dict(gathering),
        )  # fmt: skip

    def turn(self) -> Turn:
        return Turn.written(jsonio.loads(self.body))

    def scored_turn(self, turn: Turn) -> ScoredTurn:
        return ScoredTurn(
            turn, self.root, (), self.supersedes, self.new, conversation=self.conversation, counted_as=self.counted_as, absorbs=self.absorbs,
        )  # fmt: skip

    def job(self, metric: BoundMetric) -> Job:
        """Return the job for the queue. The job ID equals the score's result ID, so that the queue ignores duplicates."""
        score = metric.left_out("")
        score.about = (self.turn_id, b"%d" % self.revision)
        return Job(score.result_id, self.encode(), 2 * (self.chance.by == "rule") + (metric.policy == "gate"))


def key_of(metric: BoundMetric, *, conversation: bool, inner: bool = False) -> str:
    """Return a process-independent key for a metric and its parameters. Set ``inner`` if only composites use the metric."""
    about = "conversation" if conversation else "turn"
    return f"{_INNER if inner else ''}{about} {metric.metric.name} {metric.signature_hash} {metric.metric.version}"


def is_inner(key: str) -> bool:
    return key.startswith(_INNER)


def unmarked(key: str) -> str:
    return key.removeprefix(_INNER)


def judged_by(
    kind: Kind, chance: Chance, root: Root, model: str | None = None, cost_usd: float | None = None, **more: Any
) -> Judged:
    return Judged(kind, chance.probability, model, cost_usd, chance.by, upstream_probability(root.trace_state), **more)


def judged_turn(
    scored: ScoredTurn, score: Score, judged: Judged, seconds: float = 0.0, content: Mapping[str, str] | None = None
) -> ScoredTurn:
    return ScoredTurn(
        scored.turn.without_content(), scored.root, [score], scored.supersedes, scored.new, conversation=scored.conversation,
        size=SCORE_BYTES, seconds=seconds, judged=judged, content=content or {}, redactor=scored.redactor,
        counted_as=scored.counted_as, absorbs=scored.absorbs,
    )  # fmt: skip


@dataclass(eq=False)
class ContentFilter:
    _redact: Collection[str]
    _exporter: Exporter | None

    def redacted_json(self, scored: ScoredTurn) -> bytes:
        content = scored.turn.to_dict()
        if self._redact:
            content = (scored.redactor or Redactor(self._redact)).turn(content)
        return jsonio.dumps(content).encode()

    def score(self, score: Score, scored: ScoredTurn) -> Score:
        return (scored.redactor or Redactor(self._redact)).score(score) if self._redact else score

    def exported(self, turn: Turn, redactor: Redactor | None = None) -> Mapping[str, str]:
        return {} if self._exporter is None else self._exporter(turn, redactor)
