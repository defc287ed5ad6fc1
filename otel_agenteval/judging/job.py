"""What a job says: which metric on which turn, by what chance it was chosen, and which metrics wait for its score.

Its payload is a head and, after a line feed, the turn in form ``turn.v1``, both JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.trace import TraceState

from ..core import jsonio
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.scored_turn import Judged, Root, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .queues import Job
from .sampling import Chance, upstream_probability

SCORE_BYTES = 8 * 1024
"""What a judged score is taken to hold in the worker's queue."""


def key_of(metric: BoundMetric, *, conversation: bool) -> str:
    """What a metric is called from process to process: with other parameters or another version it is another one."""
    return f"{'conversation' if conversation else 'turn'} {metric.name} {metric.signature_hash} {metric.metric.version}"


def head_of(
    metric: BoundMetric,
    scored: ScoredTurn,
    chance: Chance,
    place: float,
    at: float,
    decided: Mapping[str, Any] | None,
    then: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    """The head of a job.

    Args:
        metric: what is to be judged.
        scored: the turn, with its inline scores.
        chance: by which the metric was chosen.
        place: of the turn in the draw.
        at: when the turn was offered, in seconds since the epoch.
        decided: the score that decided it, in a cascade.
        then: the metrics that wait for this one's score, as heads say it.
    """
    root, turn = scored.root, scored.turn
    return {
        "key": key_of(metric, conversation=scored.conversation), "metric": metric.name, "turn_id": turn.turn_id, "revision": turn.revision,
        "agent": turn.agent or "", "conversation": scored.conversation, "new": scored.new, "supersedes": scored.supersedes, "at": at,
        "counted_as": scored.counted_as, "absorbs": list(scored.absorbs),
        "place": place, "chance": list(chance), "decided": decided, "then": then, "sources": dict(scored.sources),
        "trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}", "sampled": root.sampled,
        "trace_state": root.trace_state.to_header() if root.trace_state else "", "resource": dict(root.resource),
        **({"tenant": root.tenant, "labels": dict(root.labels)} if root.tenant is not None else {}),
    }  # fmt: skip


def job_of(score: Score, head: Mapping[str, Any], metric: BoundMetric, chance: Chance, body: bytes) -> Job:
    """The job that makes a score; it is called as its result will be."""
    score.about = (head["turn_id"], b"%d" % head["revision"])
    return Job(score.result_id, jsonio.dumps(head).encode() + b"\n" + body, 2 * (chance.by == "rule") + (metric.policy == "gate"))


def head_in(job: Job) -> dict[str, Any]:
    """The head of a job."""
    head: dict[str, Any] = jsonio.loads(job.payload.partition(b"\n")[0])
    return head


def body_in(job: Job) -> bytes:
    """The turn of a job, as it was written."""
    return job.payload.partition(b"\n")[2]


def root_in(head: Mapping[str, Any]) -> Root:
    """The root that a head tells of."""
    return Root(
        int(head["trace_id"], 16), int(head["span_id"], 16), head["sampled"],
        TraceState.from_header([head["trace_state"]]) if head["trace_state"] else None, head["resource"],
        head.get("tenant"), head.get("labels", {}),
    )  # fmt: skip


def names_in(waiting: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of all metrics that wait, also for those that wait."""
    return [name for one in waiting for name in (one["metric"], *names_in(one["then"]))]


def about(score: Score, turn: Turn) -> Score:
    """The score, with the id that its turn gives it."""
    if score.status != "skipped":
        score.about = (turn.turn_id, b"%d" % turn.revision)
    return score


def rendered(
    scored: ScoredTurn, score: Score, judged: Judged, seconds: float = 0.0, content: Mapping[str, str] | None = None
) -> ScoredTurn:
    """A score of its own, about the same turn."""
    return ScoredTurn(
        scored.turn.without_content(), scored.root, [score], scored.supersedes, scored.new, conversation=scored.conversation,
        size=SCORE_BYTES, seconds=seconds, judged=judged, content=content or {}, redactor=scored.redactor,
        counted_as=scored.counted_as, absorbs=scored.absorbs,
    )  # fmt: skip


def upstream_of(root: Root) -> float | None:
    """How likely the trace was kept by whoever sampled it before us."""
    return upstream_probability(root.trace_state)
