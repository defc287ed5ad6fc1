"""Judge jobs as a version of this package wrote them, kept so that every later version can be shown to read them.

``python -m tests.support.written_jobs FOLDER`` writes ``jobs.db`` (a queue in a file) and ``redis.json`` (the keys of a queue in Redis) as the
checked-out version does. Files of earlier versions stay as they are: a new form of the payload gets a folder of its own.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from opentelemetry.trace import TraceState

import otel_agenteval as oa
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.judging.queues import Job
from otel_agenteval.judging.queues.redis import RedisQueue
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig

FOLDER = Path(__file__).parent.parent / "data" / "judging"
ROOM = 1_000_000
NEAR, HELPFUL, KIND, WHOLE = "embed_written_near", "llm_written_helpful", "llm_written_kind", "llm_written_whole"
COMPOSITE = "code_composite_mean"


def define_metrics() -> None:
    """The metrics that the jobs are about: they are defined here so that no change of a built-in metric makes the jobs strangers."""

    @oa.metric(needs=("output",), version=3)
    def embed_written_near(turn: oa.Turn, embedder: Any) -> float:
        """Whether the output has a vector like that of the input."""
        one, other = embedder.embed([turn.input, turn.output])
        return float(sum(a * b for a, b in zip(one, other, strict=True)))

    @oa.metric(needs=("output",), version=2)
    def llm_written_helpful(turn: oa.Turn, judge: Any) -> float:
        """What the judge says."""
        return float(judge.ask("helpful", "Is it helpful?", {"output": turn.output}, '{"score": 0 to 1}')["score"])

    @oa.metric(needs=("output",))
    def llm_written_kind(turn: oa.Turn, judge: Any, *, tone: str = "warm") -> float:
        """What the judge says."""
        return float(judge.ask("kind", f"Is it {tone}?", {"output": turn.output}, '{"score": 0 to 1}')["score"])

    @oa.metric(needs=("output",))
    def llm_written_whole(turn: oa.Turn, judge: Any) -> float:
        """What the judge says."""
        return float(judge.ask("whole", "Did it go well?", {"output": turn.output}, '{"score": 0 to 1}')["score"])


def config(url: str, queue: Mapping[str, Any]) -> dict[str, Any]:
    """Three metrics that wait for each other, a composite of two of them, and one of conversations."""
    server = {"base_url": url, "model": "scripted", "max_concurrency": 1}
    return {
        "judge": {**server, "queue": dict(queue)},
        "embedder": server,
        "inline": {"metrics": []},
        "metrics": [
            NEAR,
            {HELPFUL: {}, "policy": "gate", "sample": {"rate": 0, "cascade": {"after": NEAR, "judge_if": f"score.{NEAR} < 0.5"}}},
            {
                KIND: {"tone": "calm"},
                "sample": {"rate": 0.5, "cascade": {"after": HELPFUL, "judge_if": f"score.{HELPFUL} < 0.5"}},
            },
            {COMPOSITE: {"metrics": [HELPFUL, {KIND: {"tone": "calm"}}]}},
        ],
        "conversation": {"metrics": [WHOLE]},
        "privacy": {"redact": ["email"]},
    }


def scored_turns() -> list[ScoredTurn]:
    """A turn of a tenant, the revision of another one that absorbs a third, and a conversation."""
    state = TraceState([("ot", "th:8"), ("acme", "1")])
    resource = {"service.name": "shop", "cloud.zones": ["a", "b"]}
    first = oa.Turn(
        turn_id="t-1", conversation_id="c-1", agent="bot", service="shop", tenant="blue", input="Write to ann@example.com, ü!", output="Done.",
        ground_truth="Sent.",
    )  # fmt: skip
    second = oa.Turn(turn_id="t-2.r1", revision=1, supersedes="t-2", agent="bot", input="And now?", output="Now too.")
    whole = oa.Turn(turn_id="conversation:c-1", conversation_id="c-1", agent="bot", input="Hello", output="Bye.")
    return [
        ScoredTurn(
            first, Root(0xA1, 0xB1, False, state, resource, "blue", {"team": "sales"}), [], sources={"ground_truth": "dataset"},
        ),
        ScoredTurn(second, Root(0xA2, 0xB2), [], "t-2", False, counted_as="t-2", absorbs=("t-3",)),
        ScoredTurn(whole, Root(0xA3, 0xB3, resource=resource), [], conversation=True),
    ]  # fmt: skip


def write(queue: Mapping[str, Any], clock: FakeClock) -> None:
    """Have a processor queue the jobs of these turns, and do the first one, so that the one that waited for it is queued."""
    define_metrics()
    models = ScriptedModels()
    models.play(vectors={"Write to [EMAIL_1], ü!": [0.6, 0.8], "Done.": [0.4, 0.0]})
    with Rig(config(models.url, queue), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False
        for scored in scored_turns():
            assert judging.plan(scored) == []
        assert judging.step()
        rig.turns()
    models.close()


def jobs_of(file: Path) -> list[Job]:
    """The jobs in a queue's file, in the order in which they were put."""
    with closing(sqlite3.connect(file)) as db:
        return [Job(*row) for row in db.execute("SELECT id, payload, priority, attempts FROM jobs ORDER BY number")]


def keys_of(client: Any) -> dict[str, Any]:
    """All keys of a server by name: their type, and what a client needs to make them again."""
    found = {}
    for name in sorted(client.keys("*")):
        kind = client.type(name).decode()
        value: Any = {
            "stream": lambda name: [[number.decode(), _hex(fields)] for number, fields in client.xrange(name)],
            "hash": lambda name: _hex(client.hgetall(name)),
            "zset": lambda name: [[member.hex(), score] for member, score in client.zrange(name, 0, -1, withscores=True)],
            "set": lambda name: sorted(member.hex() for member in client.smembers(name)),
            "string": lambda name: client.get(name).hex(),
        }[kind](name)  # fmt: skip
        groups = [group["name"].decode() for group in client.xinfo_groups(name)] if kind == "stream" else []
        found[name.decode()] = {"kind": kind, "value": value, "groups": groups}
    return found


def put_keys(client: Any, keys: Mapping[str, Any]) -> None:
    """Make the keys of :func:`keys_of` again."""
    for name, one in keys.items():
        kind, value = one["kind"], one["value"]
        if kind == "stream":
            for number, fields in value:
                client.xadd(name, _bytes(fields), id=number)
        elif kind == "hash":
            client.hset(name, mapping=_bytes(value))
        elif kind == "zset":
            client.zadd(name, {bytes.fromhex(member): score for member, score in value})
        elif kind == "set":
            client.sadd(name, *(bytes.fromhex(member) for member in value))
        else:
            client.set(name, bytes.fromhex(value))
        for group in one["groups"]:
            client.xgroup_create(name, group, "0", mkstream=True)


def _hex(fields: Mapping[bytes, bytes]) -> dict[str, str]:
    return {key.decode(): value.hex() for key, value in fields.items()}


def _bytes(fields: Mapping[str, str]) -> Any:
    return {key: bytes.fromhex(value) for key, value in fields.items()}


def main(arguments: Sequence[str]) -> None:
    """Write the files."""
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    clock = FakeClock()
    write({"backend": "sqlite", "path": str(folder / "jobs.db")}, clock)
    with closing(sqlite3.connect(folder / "jobs.db")) as db:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("VACUUM")
    with tempfile.TemporaryDirectory() as scratch:
        server = RedisServer(Path(scratch) / "redis")
        try:
            queue = RedisQueue(server.url, ROOM, clock)
            assert queue.put_many(jobs_of(folder / "jobs.db")) == []
            keys = keys_of(server.client())
            queue.close()
        finally:
            server.stop()
    (folder / "redis.json").write_text(json.dumps(keys, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
