"""A judge job: which metric is judged on which turn, how likely it was to be chosen, and which metrics wait for its score.

What a queue keeps of a job is its payload: a head and, after a line feed, the turn in form ``turn.v1``, both JSON. :class:`Payload` is the
only code that writes or reads it. Queues outlive processes, so a payload says which version wrote it, and every later version reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from opentelemetry.trace import TraceState

from ..core import jsonio
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.scored_turn import Judged, Root, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .queues import Job
from .sampling import Chance, upstream_probability

VERSION = 2
"""Of the payload. Version 0 did not say its version, and is otherwise the same as 1; 2 is written where composites wait for the score."""
_WITHOUT_COMPOSITES = 1
_INNER = "inner "
SCORE_BYTES = 8 * 1024
"""What a judged score is assumed to hold in the worker's queue."""


class NewerPayload(Exception):
    """The payload was written by a later version of this package, which shares the queue with us."""


class Decision(NamedTuple):
    """The score that decided whether a metric is judged, in a cascade."""

    metric: str
    value: float | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """A metric that waits for the score of a job."""

    key: str
    """See :func:`key_of`."""
    metric: str
    """Its name."""
    chance: Chance
    """Its own, whatever is judged before it."""
    then: Sequence[Waiting] = ()
    """The metrics that wait for it in turn."""
    decided: Decision | None = None
    """The score after which it is judged, once that is there."""

    def written(self) -> dict[str, Any]:
        """As the payload holds it."""
        then = [one.written() for one in self.then]
        decided = {} if self.decided is None else {"decided": self.decided._asdict()}
        return {"key": self.key, "metric": self.metric, "chance": list(self.chance), "then": then, **decided}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Waiting:
        """The opposite of :meth:`written`."""
        then = tuple(map(cls.read, written["then"]))
        decided = written.get("decided")
        return cls(
            written["key"], written["metric"], Chance(*written["chance"]), then, None if decided is None else Decision(**decided)
        )


def all_in(waiting: Sequence[Waiting]) -> Iterator[Waiting]:
    """All metrics that wait, also those that wait for them."""
    for one in waiting:
        yield one
        yield from all_in(one.then)


@dataclass(frozen=True, slots=True)
class Inner:
    """The outcome of an inner metric of composites."""

    score: Score
    """Skipped, with the reason, for one that was not evaluated."""
    chance: Chance
    """With which it was evaluated."""
    cost_usd: float | None = None
    """What asking for it took, where its score does not leave by itself."""

    def written(self) -> dict[str, Any]:
        """As the payload holds it."""
        return {"score": self.score.to_dict(), "chance": list(self.chance), "cost_usd": self.cost_usd}

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Inner:
        """The opposite of :meth:`written`."""
        return cls(Score.from_dict(written["score"]), Chance(*written["chance"]), written["cost_usd"])


@dataclass(frozen=True, slots=True)
class Gathering:
    """Composites that wait for judged scores of one turn.

    Their inner metrics are asked one after the other, and each job takes along what those before it gave. So nothing is kept beside the
    queue: whatever process does the last one makes the composites, and what a process had when it died comes back with the job.
    """

    composites: Sequence[Waiting]
    """Those that have no result yet."""
    found: Mapping[str, Inner] = field(default_factory=dict)
    """The inner outcomes that there are, by key without the mark of :func:`key_of`."""
    next: Sequence[Waiting] = ()
    """What is asked after this job and what follows from its score."""

    def written(self) -> dict[str, Any]:
        """As the payload holds it."""
        return {
            "composites": [one.written() for one in self.composites], "found": {key: one.written() for key, one in self.found.items()},
            "next": [one.written() for one in self.next],
        }  # fmt: skip

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Gathering:
        """The opposite of :meth:`written`."""
        found = {key: Inner.read(one) for key, one in written["found"].items()}
        return cls(tuple(map(Waiting.read, written["composites"])), found, tuple(map(Waiting.read, written["next"])))


@dataclass(frozen=True, slots=True)
class Payload:
    """Everything that is needed to do a job, in whatever process."""

    key: str
    """Of the metric, see :func:`key_of`."""
    metric: str
    """Its name."""
    turn_id: str
    revision: int
    agent: str
    at: float
    """When the job was planned, in seconds since the Unix epoch."""
    place: float
    """The turn's place in the draw, see :mod:`.sampling`."""
    chance: Chance
    root: Root
    body: bytes
    """The turn in form ``turn.v1``, JSON, without what may not leave."""
    conversation: bool = False
    new: bool = True
    supersedes: str | None = None
    counted_as: str | None = None
    absorbs: Sequence[str] = ()
    sources: Mapping[str, str] = field(default_factory=dict)
    """Where each of the turn's references came from."""
    decided: Decision | None = None
    then: Sequence[Waiting] = ()
    """The metrics that wait for this one's score."""
    gathering: Gathering | None = None
    """The composites that wait for it, too."""

    @property
    def waits(self) -> Iterator[Waiting]:
        """Every metric that has no outcome if this job is never done, with this one itself; composites apart."""
        yield Waiting(self.key, self.metric, self.chance)
        yield from all_in(self.then)
        yield from all_in(self.gathering.next if self.gathering is not None else ())

    @classmethod
    def of(
        cls, metric: BoundMetric, scored: ScoredTurn, chance: Chance, place: float, at: float, body: bytes, key: str = ""
    ) -> Payload:
        """That of a metric on a turn that has its inline scores."""
        turn = scored.turn
        return cls(
            key or key_of(metric, conversation=scored.conversation), metric.name, turn.turn_id, turn.revision, turn.agent or "", at, place, chance,
            scored.root, body, scored.conversation, scored.new, scored.supersedes, scored.counted_as, tuple(scored.absorbs),
            dict(scored.sources),
        )  # fmt: skip

    def encode(self) -> bytes:
        """As a queue keeps it."""
        root = self.root
        head = {
            "v": VERSION if self.gathering is not None else _WITHOUT_COMPOSITES, "key": self.key, "metric": self.metric, "turn_id": self.turn_id, "revision": self.revision, "agent": self.agent,
            "conversation": self.conversation, "new": self.new, "supersedes": self.supersedes, "at": self.at,
            "counted_as": self.counted_as, "absorbs": list(self.absorbs), "place": self.place, "chance": list(self.chance),
            "decided": None if self.decided is None else self.decided._asdict(),
            "then": [one.written() for one in self.then], "sources": dict(self.sources),
            "trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}", "sampled": root.sampled,
            "trace_state": root.trace_state.to_header() if root.trace_state else "", "resource": dict(root.resource),
            **({"tenant": root.tenant, "labels": dict(root.labels)} if root.tenant is not None else {}),
            **({"gathering": self.gathering.written()} if self.gathering is not None else {}),
        }  # fmt: skip
        return jsonio.dumps(head).encode() + b"\n" + self.body

    @classmethod
    def decode(cls, data: bytes) -> Payload:
        """The opposite of :meth:`encode`, for payloads of this version and all earlier ones.

        Raises:
            NewerPayload: a later version wrote it.
            ValueError, KeyError: it is no payload.
        """
        text, _, body = data.partition(b"\n")
        head: dict[str, Any] = jsonio.loads(text)
        if head.get("v", 0) > VERSION:
            raise NewerPayload
        decided = head["decided"]
        state = TraceState.from_header([head["trace_state"]]) if head["trace_state"] else None
        root = Root(
            int(head["trace_id"], 16), int(head["span_id"], 16), head["sampled"], state, head["resource"], head.get("tenant"),
            head.get("labels", {}),
        )  # fmt: skip
        return cls(
            head["key"], head["metric"], head["turn_id"], head["revision"], head["agent"], head["at"], head["place"],
            Chance(*head["chance"]), root, body, head["conversation"], head["new"], head["supersedes"], head.get("counted_as"),
            tuple(head.get("absorbs", ())), head["sources"], None if decided is None else Decision(**decided),
            tuple(map(Waiting.read, head["then"])), Gathering.read(head["gathering"]) if "gathering" in head else None,
        )  # fmt: skip

    def turn(self) -> Turn:
        """The turn that is judged."""
        return Turn.written(jsonio.loads(self.body))

    def scored_turn(self, turn: Turn) -> ScoredTurn:
        """The turn, known by the same ids as where the job was planned; without scores."""
        return ScoredTurn(
            turn, self.root, (), self.supersedes, self.new, conversation=self.conversation, counted_as=self.counted_as, absorbs=self.absorbs,
        )  # fmt: skip

    def job(self, score: Score, metric: BoundMetric) -> Job:
        """The job for a queue. Its id is that of the score that it makes, so that it is queued only once."""
        score.about = (self.turn_id, b"%d" % self.revision)
        return Job(score.result_id, self.encode(), 2 * (self.chance.by == "rule") + (metric.policy == "gate"))


def key_of(metric: BoundMetric, *, conversation: bool, inner: bool = False) -> str:
    """What a metric is known by from process to process: with other parameters or another version it is another one.

    One that is judged for composites alone has a mark before it (``inner``): its score is not sent out.
    """
    about = "conversation" if conversation else "turn"
    return f"{_INNER if inner else ''}{about} {metric.name} {metric.signature_hash} {metric.metric.version}"


def is_inner(key: str) -> bool:
    """Whether a metric is judged for composites alone."""
    return key.startswith(_INNER)


def unmarked(key: str) -> str:
    """The key without the mark."""
    return key.removeprefix(_INNER)


def judged_turn(
    scored: ScoredTurn, score: Score, judged: Judged, seconds: float = 0.0, content: Mapping[str, str] | None = None
) -> ScoredTurn:
    """A judged score on its way out, apart from the turn's inline scores."""
    return ScoredTurn(
        scored.turn.without_content(), scored.root, [score], scored.supersedes, scored.new, conversation=scored.conversation,
        size=SCORE_BYTES, seconds=seconds, judged=judged, content=content or {}, redactor=scored.redactor,
        counted_as=scored.counted_as, absorbs=scored.absorbs,
    )  # fmt: skip


def upstream_of(root: Root) -> float | None:
    """How likely head samplers were to keep the trace; None where nothing says so."""
    return upstream_probability(root.trace_state)
