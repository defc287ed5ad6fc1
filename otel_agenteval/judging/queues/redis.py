"""Job queue, judge spending, and model server outages, which any number of processes can share through Redis or Valkey.

The queue is divided into shards. Each shard has one stream of jobs per priority, and all judge workers are in one consumer group.
Therefore, monitoring and autoscaling tools can derive the remaining work from each stream's pending list and lag. Sorted sets
contain lease ends and retry times. Each change is one atomic Lua script.

When a lease ends, XCLAIM reassigns the job. XAUTOCLAIM isn't used, because it requires the same idle time for all jobs. A hash
stores the latest lease token of each job.

Streams are never trimmed. A job is removed when it is acknowledged, when it fails, or when a job of higher priority needs the space.

All keys of a shard have the same hash tag, so a cluster stores them together. Leases use the server's clock. While the
server is unreachable, new jobs wait in this process, up to a size limit, and connection attempts continue with pauses.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import socket
import threading
import time
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from ...core import forks
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.threads import own_work
from .base import HELD_BYTES, SLOTS, Demand, Job, JobQueue
from .base import Counter as Spending
from .redis_server import Script, Server, tolerated

T = TypeVar("T")
_log = logging.getLogger("otel_agenteval")

GROUP = "judges"
_LEVELS = 8
"""Number of distinct priorities, starting at 0. Values outside this range are clamped."""
_REMEMBERED_SECONDS = 86_400
_REMEMBERED = 200_000
"""Maximum number of finished job IDs that each shard remembers."""
_DEAD_LETTERS = 1_000
_BATCH, _BATCH_BYTES = 100, 1024 * 1024
_FORGOTTEN_CONSUMER_MS = 86_400_000
_CLOSE_SECONDS = 1.0
"""Maximum seconds that ``close`` waits for another thread's server call."""

_put, _claim, _extend, _retry, _finish = (
    Script("common", name, LEVELS=_LEVELS, REMEMBERED=_REMEMBERED_SECONDS)
    for name in ("put", "claim", "extend", "retry", "finish")
)


class RedisQueue(JobQueue):
    """Job queue on a Redis or Valkey server.

    The server must support the features of Redis 5. The first call connects. If the server is unreachable, :meth:`claim`,
    :meth:`extend`, :meth:`retry_at`, and read-only methods raise :class:`~otel_agenteval.core.errors.Unusable`.

    Args:
        url: server address. See :func:`.redis_server.connect`.
        max_bytes: maximum total bytes of jobs on the server, divided equally among the shards.
        clock: replaces the server's clock in tests.
        shards: number of shards, the same for all processes. A job's ID determines its shard.
        name: prefix of all keys.
        held_bytes: see :class:`.base.JobQueue`.
    """

    is_shared = True

    def __init__(
        self,
        url: str,
        max_bytes: int,
        clock: Clock = SYSTEM_CLOCK,
        *,
        shards: int = 1,
        name: str = "agenteval",
        held_bytes: int = HELD_BYTES,
    ) -> None:
        self._server = Server(url, self._tidy)
        names = (
            *("jobs", "wait", "again", "idle", "done", "dead", "totals"),
            *(f"stream:{level}" for level in range(_LEVELS)),
            "tokens",
        )
        self._shards = [[f"{{{name}:{shard}}}:{key}" for key in names] for shard in range(shards)]
        self._closed = False
        super().__init__(max_bytes, clock, held_bytes)

    def _reset(self) -> None:
        super()._reset()
        self._consumer = f"{socket.gethostname()}-{os.getpid()}-{random.randrange(16**4):04x}"  # noqa: S311 - a name
        self._turn = itertools.count(random.randrange(len(self._shards)))  # noqa: S311 - the first shard to read
        if self._closed:  # a forked child's server is new
            self._server.close()

    def claim(self, n: int, lease: float) -> list[Job]:
        with self._lock:
            self._outbox.hold()
            self._send()
        claimed: list[Job] = []
        token = self._new_token()
        begin = next(self._turn)
        for i in range(len(self._shards)):
            shard = self._shards[(begin + i) % len(self._shards)]
            rows = self._call(_claim, shard, n - len(claimed), repr(float(lease)), self._consumer, token)
            claimed += [_job_of(row, token) for row in rows]
            if len(claimed) == n:
                break
        return claimed

    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        lost: list[str] = []
        for shard, fences in self._by_shard(dict(map(self._fence, jobs))):
            held = itertools.chain.from_iterable(fences.items())
            lost += map(bytes.decode, self._call(_extend, shard, repr(float(lease)), *held))
        return lost

    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Return a claimed job to the queue. If this call raises an error, the job becomes due when its lease ends."""
        job_id, fence = self._fence(job)
        when = at if self._clock is not SYSTEM_CLOCK else max(0.0, at - self._clock.time_ns() / 1e9)
        return bool(self._call(_retry, self._shards[self._number_of(job_id)], job_id, fence, repr(float(when)), int(counted)))

    def dead_letters(self) -> list[tuple[str, str]]:
        found: list[tuple[tuple[int, ...], str, str]] = []
        for shard in self._shards:
            for entry, fields in self._server.call(lambda client, key: client.xrevrange(key, count=_DEAD_LETTERS), shard[5]):
                when = tuple(int(part) for part in entry.split(b"-"))
                found.append((when, fields[b"id"].decode(), fields[b"reason"].decode()))
        return [(job_id, reason) for _, job_id, reason in sorted(found)]

    def close(self) -> list[Job]:
        if self._closed:
            return []
        alone = self._lock.acquire(timeout=_CLOSE_SECONDS)
        try:
            with own_work():  # no second wait for a server that doesn't answer
                lost = self._take_unsent() if alone else [*self._outbox.held.copy().values(), *self._outbox.incoming]
            self._closed = True
        finally:
            if alone:
                self._lock.release()
        self._server.close()
        return lost

    def _number_of(self, job_id: str) -> int:
        return zlib.crc32(job_id.encode()) % len(self._shards)

    def _by_shard(self, by_id: Mapping[str, T]) -> Iterator[tuple[list[str], dict[str, T]]]:
        found: dict[int, dict[str, T]] = {}
        for job_id, value in by_id.items():
            found.setdefault(self._number_of(job_id), {})[job_id] = value
        for number, share in found.items():
            yield self._shards[number], share

    @property
    def is_failing(self) -> bool:  # type: ignore[override]
        return self._server.failing

    def _total(self, name: str) -> int:
        if self._closed:
            return 0
        return sum(int(self._server.call(lambda client, key: client.hget(key, name), shard[6]) or 0) for shard in self._shards)

    def _call(self, script: Script, shard: Sequence[str], *args: Any) -> Any:
        now = "" if self._clock is SYSTEM_CLOCK else repr(self._clock.time_ns() / 1e9)
        return self._server.call(script, shard, (GROUP, now, *args))

    def _tidy(self, client: Any) -> None:
        """Remove old consumers, and warn if the server's eviction policy can delete jobs."""
        from redis.exceptions import ResponseError

        for key in (key for shard in self._shards for key in shard[7 : 7 + _LEVELS]):
            try:
                for consumer in client.xinfo_consumers(key, GROUP):
                    if consumer["idle"] > _FORGOTTEN_CONSUMER_MS and not consumer["pending"]:
                        client.xgroup_delconsumer(key, GROUP, consumer["name"])
            except ResponseError:  # the stream doesn't exist yet, or access is denied
                continue
        try:
            memory = client.info("memory")
        except ResponseError:
            return
        policy = memory.get("maxmemory_policy", "noeviction")
        if memory.get("maxmemory") and policy != "noeviction":
            _log.warning("judge.queue.url: set maxmemory-policy to noeviction, got %s, which can delete jobs", policy)

    def _send(self) -> list[str]:
        lost: list[str] = []
        all_ended = self._outbox.ended
        with tolerated():
            while all_ended:
                for shard, ended in self._by_shard(dict(itertools.islice(all_ended.items(), _BATCH))):
                    args: list[Any] = []
                    for job_id, ending in ended.items():
                        args += job_id, ending.fence, int(ending.outcome == "failed"), ending.reason
                    lost += map(bytes.decode, self._call(_finish, shard, _DEAD_LETTERS, *args))
                    for job_id in ended:
                        del all_ended[job_id]
            for shard, jobs in self._by_shard(self._outbox.held):
                for batch in _batches(jobs.values()):
                    self._send_jobs(shard, batch)
        return lost

    def _send_jobs(self, shard: Sequence[str], jobs: Sequence[Job]) -> None:
        args = [part for job in jobs for part in (job.id, job.payload, job.priority, job.size, job.attempts)]
        limit = self.max_bytes // len(self._shards)
        rows = self._call(_put, shard, limit, _REMEMBERED_SECONDS, _REMEMBERED, *args)
        sent = {job.id: job for job in jobs}
        self._outbox.left_out += [sent[row[0].decode()] if len(row) == 1 else _job_of(row) for row in rows]
        self._outbox.remove_held(jobs)


def _batches(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    batch: list[Job] = []
    size = 0
    for job in jobs:
        batch.append(job)
        size += job.size
        if len(batch) == _BATCH or size > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _job_of(row: Sequence[Any], token: str = "") -> Job:
    job_id, payload, priority, attempts = row
    return Job(job_id.decode(), payload, int(priority), int(attempts), token)


# --- spending and outages

_MOST_UNSENT, _AT_ONCE = 10_000, 100
"""Maximum number of spending corrections that wait for the server, and maximum number per request."""
_WAIT_UNREACHED = 10.0
"""Seconds until a judge call is tried again if the budget couldn't be read."""
_READ_FOR = 0.5
"""Seconds for which a cached outage state is used."""
_spend, _correct, _spent = (Script("spent", name, SLOTS=SLOTS) for name in ("spend", "correct", "read_spent"))


class RedisSpendBook:
    """Record of judge spending on a Redis or Valkey server. All changes are atomic. If the server is unreachable, models aren't
    called, and corrections wait in this process.
    """

    def __init__(self, url: str, name: str = "agenteval") -> None:
        self._server = Server(url)
        self._name = name
        self._forget()
        forks.in_child(self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._unsent: deque[tuple[Spending, float, float]] = deque(maxlen=_MOST_UNSENT)

    def spend(self, demands: Sequence[Demand], at: float) -> float:
        if not demands:
            return 0.0
        args = [
            text
            for demand in demands
            for text in (
                demand.counter.slot(at), demand.counter.window, repr(demand.amount), _number(demand.limit), _number(demand.below),
            )
        ]  # fmt: skip
        keys = [self._key(demand.counter) for demand in demands]
        with tolerated():
            self._pay()
            return float(self._server.call(_spend, keys, (repr(at), *args)))
        return _WAIT_UNREACHED

    def add(self, amounts: Sequence[tuple[Spending, float]], at: float) -> None:
        with self._lock:
            self._unsent.extend((counter, amount, at) for counter, amount in amounts)
        with tolerated():
            self._pay()

    def _pay(self) -> None:
        while some := self._next_unsent():
            args = [text for counter, amount, at in some for text in (counter.slot(at), counter.window, repr(amount))]
            keys = [self._key(counter) for counter, _, _ in some]
            try:
                self._server.call(_correct, keys, args)
            except BaseException:
                with self._lock:
                    self._unsent.extendleft(reversed(some))
                raise

    def _next_unsent(self) -> list[tuple[Spending, float, float]]:
        with self._lock:
            return [self._unsent.popleft() for _ in range(min(len(self._unsent), _AT_ONCE))]

    def used(self, counter: Spending, at: float) -> float:
        return float(self._server.call(_spent, [self._key(counter)], (counter.slot(at) - SLOTS,)))

    def close(self) -> None:
        self._server.close()

    def _key(self, counter: Spending) -> str:
        return f"{{{self._name}:spent}}:{counter.unit}:{counter.window:g}:{counter.account}"


def _number(value: float) -> str:
    return "1e308" if value == float("inf") else repr(value)


class RedisOutages:
    def __init__(self, url: str, name: str = "agenteval") -> None:
        self._server = Server(url)
        self._name = name
        self._read: dict[str, tuple[float, float]] = {}

    def until(self, kind: str) -> float:
        at, found = self._read.get(kind, (-1.0, 0.0))
        if time.monotonic() - at > _READ_FOR:
            found = 0.0
            with tolerated():
                found = float(self._server.call(lambda client: client.get(self._key(kind))) or 0.0)
            self._read[kind] = time.monotonic(), found
        return found

    def report(self, kind: str, until: float, seconds: float) -> None:
        self._read.pop(kind, None)
        key, ms = self._key(kind), max(1, round(seconds * 1000))
        with tolerated():
            if seconds > 0:
                self._server.call(lambda client: client.set(key, repr(until), px=ms))
            else:
                self._server.call(lambda client: client.delete(key))

    def close(self) -> None:
        self._server.close()

    def _key(self, kind: str) -> str:
        return f"{{{self._name}:outage}}:{kind}"
