"""Jobs in Redis or Valkey: any number of processes put them there, and any number work on them.

Jobs lie in streams, one per shard and priority, which judge workers read as one consumer group; so a stream's pending list and
lag tell every tool for Redis, and what scales workers by them, how much there is to do. Each change is one script, that is one step
for everybody. Beside the streams stand sorted sets: ends of leases and times of retries. A lease that ended is taken over with XCLAIM, at its own end
(XAUTOCLAIM knows one age for all). Nothing is ever trimmed: a job leaves when it is settled, or when a more important one needs
its room.

All keys of a shard carry its hash tag, so a cluster keeps them together. Time is the server's, for all processes the same.
While the server cannot be reached jobs wait in this process, within a bound, and nobody knocks more often than the pauses allow.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
import random
import socket
import threading
import time
import zlib
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..clock import SYSTEM_CLOCK, Clock
from .base import SLOTS, Demand, Job
from .base import Counter as Spending
from .connect import connect, normal, unreachable

_log = logging.getLogger("otel_agenteval")

GROUP = "judges"
"""The consumer group of all judge workers."""
_LEVELS = 8
"""Priorities that are kept apart: higher ones count as the highest, lower ones as the lowest."""
_REMEMBERED_SECONDS = 86_400
_REMEMBERED = 200_000
"""Settled jobs that a shard remembers at most."""
_DEAD_LETTERS = 1_000
_BATCH, _BATCH_BYTES = 100, 1024 * 1024
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
_OWED = 10_000
_WAIT_UNREACHED = 10.0
"""Seconds after which a question is tried again whose budget nobody could be asked for."""
_TOLD_FOR = 0.5
_HELD_BYTES = 16 * 1024 * 1024
_FORGOTTEN_CONSUMER_MS = 86_400_000

_COMMON = """
redis.replicate_commands()
local jobs, wait, again, idle, done, dead, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local function stream(level) return KEYS[8 + level] end
local group = ARGV[1]
local now
if ARGV[2] == '' then
  local t = redis.call('TIME')
  now = tonumber(t[1]) + tonumber(t[2]) / 1e6
else
  now = tonumber(ARGV[2])
end
local STEP = 2 ^ 45
local function text(x) return string.format('%.17g', x) end
local function read(id)
  local found = redis.call('HGET', jobs, id)
  if not found then return nil end
  local level, seq, attempts, size, claimed, priority = string.match(found, '^(%d+) (%d+) (%d+) (%d+) (%d) (-?%d+)$')
  return {id = id, level = tonumber(level), seq = tonumber(seq), attempts = tonumber(attempts), size = tonumber(size),
          claimed = claimed == '1', priority = priority}
end
local function write(job)
  redis.call('HSET', jobs, job.id, string.format('%d %.0f %d %d %d %s', job.level, job.seq, job.attempts, job.size,
                                                 job.claimed and 1 or 0, job.priority))
end
local function entry(job) return string.format('%.0f-0', job.seq) end
local function payload(job)
  local found = redis.call('XRANGE', stream(job.level), entry(job), entry(job))
  return found[1] and found[1][2][4] or ''
end
local function free(level, bytes) redis.call('HINCRBY', totals, 'free' .. level, bytes) end
local function rest(job, due)
  job.claimed = false
  write(job)
  free(job.level, job.size)
  redis.call('ZADD', idle, text(job.level * STEP + job.seq), job.id)
  redis.call('ZADD', wait, text(due), job.id)
end
local function promote()
  while true do
    local due = redis.call('ZRANGEBYSCORE', wait, '-inf', text(now), 'LIMIT', 0, 500)
    if #due == 0 then return end
    for _, id in ipairs(due) do
      redis.call('ZREM', wait, id)
      local job = read(id)
      if job then
        if job.claimed then
          job.claimed = false
          write(job)
          free(job.level, job.size)
          redis.call('ZADD', idle, text(job.level * STEP + job.seq), id)
        end
        redis.call('ZADD', again, text((LEVELS - job.level) * STEP + job.seq), id)
      end
    end
  end
end
local function remove(job, delivered)
  redis.call('HDEL', jobs, job.id)
  redis.call('HINCRBY', totals, 'jobs', -1)
  redis.call('HINCRBY', totals, 'bytes', -job.size)
  if not job.claimed then free(job.level, -job.size) end
  if delivered then
    redis.call('ZREM', wait, job.id)
    redis.call('ZREM', again, job.id)
    redis.call('ZREM', idle, job.id)
    redis.call('XACK', stream(job.level), group, entry(job))
  else
    redis.call('HINCRBY', totals, 'new' .. job.level, -1)
  end
  redis.call('XDEL', stream(job.level), entry(job))
end
local function number(field) return tonumber(redis.call('HGET', totals, field) or '0') end
""".replace("LEVELS", str(_LEVELS))

_PUT = """
local max_bytes, left = tonumber(ARGV[3]), {}
redis.call('HINCRBY', totals, 'jobs', 0)  -- refused by a server without memory, as the first write of a script only is
redis.call('ZREMRANGEBYSCORE', done, '-inf', text(now - tonumber(ARGV[4])))
redis.call('ZREMRANGEBYRANK', done, 0, -tonumber(ARGV[5]) - 1)
promote()
local function fits(level, size)
  local short = number('bytes') + size - max_bytes
  if short <= 0 then return true end
  local could = 0
  for lower = 0, level - 1 do could = could + number('free' .. lower) end
  if could < short then return false end
  for lower = 0, level - 1 do
    while short > 0 do
      local rested = redis.call('ZRANGEBYSCORE', idle, text(lower * STEP), '(' .. text((lower + 1) * STEP), 'LIMIT', 0, 1)[1]
      local fresh = redis.call('XRANGE', stream(lower), string.format('%.0f-1', number('read' .. lower)), '+', 'COUNT', 1)[1]
      local out = rested or (fresh and fresh[2][2])  -- what was read before came before
      if not out then break end
      local job = read(out)
      left[#left + 1] = {job.id, payload(job), job.priority, tostring(job.attempts)}
      remove(job, rested and true or false)
      short = short - job.size
    end
  end
  return true
end
for i = 6, #ARGV, 5 do
  local id, body, size, attempts = ARGV[i], ARGV[i + 1], tonumber(ARGV[i + 3]), tonumber(ARGV[i + 4])
  local level = math.max(0, math.min(tonumber(ARGV[i + 2]), LEVELS - 1))
  if redis.call('HEXISTS', jobs, id) == 0 and not redis.call('ZSCORE', done, id) then
    if not fits(level, size) then
      left[#left + 1] = {id}
    else
      if redis.call('EXISTS', stream(level)) == 0 then redis.call('XGROUP', 'CREATE', stream(level), group, '0', 'MKSTREAM') end
      local job = {id = id, level = level, seq = redis.call('HINCRBY', totals, 'seq', 1), attempts = attempts, size = size,
                   claimed = false, priority = ARGV[i + 2]}
      redis.call('XADD', stream(level), entry(job), 'id', id, 'job', body)
      write(job)
      redis.call('HINCRBY', totals, 'jobs', 1)
      redis.call('HINCRBY', totals, 'bytes', size)
      redis.call('HINCRBY', totals, 'new' .. level, 1)
      free(level, size)
    end
  end
end
return left
""".replace("LEVELS", str(_LEVELS))

_CLAIM = """
local n, lease, consumer, claimed = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], {}
promote()
while #claimed < n do
  local first = redis.call('ZRANGE', again, 0, 0)[1]
  local job = first and read(first)
  local level = LEVELS - 1
  while level >= 0 and number('new' .. level) <= 0 do level = level - 1 end
  local body
  if job and job.level >= level then
    redis.call('ZREM', again, job.id)
    redis.call('ZREM', idle, job.id)
    body = payload(job)
    redis.call('XCLAIM', stream(job.level), group, consumer, 0, entry(job), 'RETRYCOUNT', job.attempts + 1, 'FORCE', 'JUSTID')
  elseif level >= 0 then
    local found = redis.call('XREADGROUP', 'GROUP', group, consumer, 'COUNT', 1, 'STREAMS', stream(level), '>')
    if not found then
      redis.call('HSET', totals, 'new' .. level, 0)
    else
      local item = found[1][2][1]
      job, body = read(item[2][2]), item[2][4]
      redis.call('HINCRBY', totals, 'new' .. level, -1)
      redis.call('HSET', totals, 'read' .. level, string.match(item[1], '^%d+'))
    end
  else
    break
  end
  if body then
    job.claimed, job.attempts = true, job.attempts + 1
    write(job)
    free(job.level, -job.size)
    redis.call('ZADD', wait, text(now + lease), job.id)
    claimed[#claimed + 1] = {job.id, body, job.priority, tostring(job.attempts)}
  end
end
return claimed
""".replace("LEVELS", str(_LEVELS))

_RETRY = """
local job = read(ARGV[3])
if job and job.claimed then
  if ARGV[5] == '0' then job.attempts = job.attempts - 1 end
  rest(job, ARGV[2] == '' and now + tonumber(ARGV[4]) or tonumber(ARGV[4]))
end
"""

_FINISH = """
for i = 4, #ARGV, 3 do
  local job = read(ARGV[i])
  if job then
    local delivered = job.claimed or redis.call('ZSCORE', idle, job.id)
    remove(job, delivered and true or false)
    redis.call('ZADD', done, text(now), job.id)
    if ARGV[i + 1] == '1' then redis.call('XADD', dead, 'MAXLEN', '~', ARGV[3], '*', 'id', job.id, 'reason', ARGV[i + 2]) end
  end
end
"""


class _Script:
    """A script of the server's, called by its hash, and sent whole when the server does not have it."""

    def __init__(self, text: str, *, common: bool = True) -> None:
        self._text = _COMMON + text if common else text
        self._hash = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, client: Any, keys: Sequence[str], args: Sequence[Any]) -> Any:
        from redis.exceptions import NoScriptError

        try:
            return client.evalsha(self._hash, len(keys), *keys, *args)
        except NoScriptError:
            return client.eval(self._text, len(keys), *keys, *args)


_put, _claim, _retry, _finish = (_Script(text) for text in (_PUT, _CLAIM, _RETRY, _FINISH))


class _Server:
    """A client that is made at first use, and that leaves a server alone for a while which could not be reached.

    Args:
        url: see :func:`~otel_agenteval.queues.connect.connect`.
        opened: called with each new client.
    """

    def __init__(self, url: str, opened: Callable[[Any], None] = lambda client: None) -> None:
        self._url = normal(url)
        self._opened = opened
        self.reset()

    def reset(self) -> None:
        """In a forked child: the connections are the parent's."""
        self._lock = threading.Lock()
        self._client: Any = None
        self._closed = False
        self._pause = 0.0
        self._quiet_until = 0.0

    def call(self, call: Callable[[Any], Any]) -> Any:
        """One call, unless the last one failed a moment ago.

        Raises:
            redis.exceptions.RedisError: the server cannot be reached, or refused.
        """
        if time.monotonic() < self._quiet_until:
            raise _not_connected("the server of the queue could not be reached a moment ago")
        try:
            found = call(self._open())
        except Exception as error:
            if unreachable(error):
                self._pause = min(_LONGEST_PAUSE, max(_FIRST_PAUSE, self._pause * 2))
                self._quiet_until = time.monotonic() + self._pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
            raise
        self._pause = 0.0
        return found

    def close(self) -> None:
        """Leave the server."""
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                if self._closed:
                    raise _not_connected("the queue is closed")
                client = connect(self._url)
                self._opened(client)
                self._client = client
            return self._client


def _not_connected(text: str) -> Exception:
    from redis.exceptions import ConnectionError as NotConnected

    return NotConnected(text)


class RedisQueue:
    """A :class:`~otel_agenteval.queues.JobQueue` on a server of Redis (from 5) or Valkey, connected to at first use.

    Args:
        url: see :func:`~otel_agenteval.queues.connect.connect`.
        max_bytes: bound of all jobs on the server, in equal parts by shard.
        clock: tests date leases and retries with it; else the server does.
        shards: number of parts; the same for all processes. Jobs belong to one by their ids.
        name: what every key begins with.
        held_bytes: bound of the jobs that wait in this process while the server cannot be reached.

    What reads or claims raises ``redis.exceptions.RedisError`` while the server cannot be reached. What is put, or settled, waits.
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
        held_bytes: int = _HELD_BYTES,
    ) -> None:
        self.max_bytes = max_bytes
        self._server = _Server(url, self._tidy)
        self._clock = clock
        self._held_bytes = held_bytes
        self._shards = [_keys_of(f"{{{name}:{shard}}}") for shard in range(shards)]
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._consumer = f"{socket.gethostname()}-{os.getpid()}-{random.randrange(16**4):04x}"  # noqa: S311 - a name
        self._held: OrderedDict[str, Job] = OrderedDict()
        self._unsettled: OrderedDict[str, str | None] = OrderedDict()
        """Jobs that are done, or dead for a reason, while nobody could be told."""
        self._unsent_bytes = 0
        self._turn = itertools.count(random.randrange(len(self._shards)))  # noqa: S311 - where to begin

    @property
    def unsent(self) -> int:
        """Jobs that this process holds because the server cannot be reached."""
        return len(self._held)

    @property
    def depth(self) -> int:
        """Jobs that wait or are claimed, by whatever process."""
        return 0 if self._closed else self._totals("jobs") + len(self._held)

    @property
    def bytes(self) -> int:
        """Bytes of them."""
        return 0 if self._closed else self._totals("bytes") + self._unsent_bytes

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs; returns those that there is no room for."""
        left_out: list[Job] = []
        with self._lock:
            for job in jobs:
                if job.id in self._held:
                    continue
                if self._unsent_bytes + job.size > self._held_bytes and self._held:
                    self._catch_up(left_out)
                if self._unsent_bytes + job.size > self._held_bytes and self._held:
                    left_out.append(job)
                    continue
                self._held[job.id] = job
                self._unsent_bytes += job.size
            self._catch_up(left_out)
        return left_out

    def claim(self, n: int, lease: float) -> list[Job]:
        """Up to ``n`` jobs that are due, for ``lease`` seconds; the highest priority first within each shard."""
        with self._lock:
            if self._held or self._unsettled:
                self._catch_up([])  # what finds no room on the server stays here and is returned to who puts next
        claimed: list[Job] = []
        begin = next(self._turn)
        for i in range(len(self._shards)):
            shard = self._shards[(begin + i) % len(self._shards)]
            rows = self._call(_claim, shard, n - len(claimed), repr(float(lease)), self._consumer)
            claimed += [_job_of(row) for row in rows]
            if len(claimed) == n:
                break
        return claimed

    def ack(self, job_id: str) -> None:
        """It is done."""
        self._settle({job_id: None})

    def ack_many(self, job_ids: Sequence[str]) -> None:
        """They are done."""
        self._settle(dict.fromkeys(job_ids))

    def retry_at(self, job_id: str, at: float, *, counted: bool = True) -> None:
        """Give a claimed job back, due at a time. Without the server it comes back at the end of its lease."""
        when = at if self._clock is not SYSTEM_CLOCK else max(0.0, at - self._clock.time_ns() / 1e9)
        self._call(_retry, self._shard_of(job_id), job_id, repr(float(when)), int(counted))

    def dead(self, job_id: str, reason: str) -> None:
        """It cannot be done."""
        self._settle({job_id: reason})

    def dead_letters(self) -> list[tuple[str, str]]:
        """(id, reason) of the last thousand of each shard."""
        found: list[tuple[tuple[int, ...], str, str]] = []
        for shard in self._shards:
            for entry, fields in self._try(partial(_newest, key=shard[5])):
                when = tuple(int(part) for part in entry.split(b"-"))
                found.append((when, fields[b"id"].decode(), fields[b"reason"].decode()))
        return [(job_id, reason) for _, job_id, reason in sorted(found)]

    def flush(self) -> bool:
        """Try to hand over what this process holds; whether nothing is left of it."""
        with self._lock:
            self._catch_up([])
            return not self._held and not self._unsettled

    def close(self) -> list[Job]:
        """Leave the server; returns the jobs that it never got."""
        with self._lock:
            if self._closed:
                return []
            left: list[Job] = []
            if self._held or self._unsettled:
                self._catch_up(left)
            left += self._held.values()
            self._held.clear()
            self._unsent_bytes = 0
            self._closed = True
        self._server.close()
        return left

    def after_fork_in_child(self) -> None:
        """The child connects for itself; what could not be sent is the parent's."""
        closed = self._closed
        self._reset()
        self._server.reset()
        self._closed = closed
        if closed:
            self._server.close()

    # --- the server

    def _number_of(self, job_id: str) -> int:
        return zlib.crc32(job_id.encode()) % len(self._shards)

    def _shard_of(self, job_id: str) -> list[str]:
        return self._shards[self._number_of(job_id)]

    def _totals(self, field: str) -> int:
        return sum(self._try(partial(_read, key=shard[6], field=field)) for shard in self._shards)

    def _call(self, script: _Script, shard: Sequence[str], *args: Any) -> Any:
        now = "" if self._clock is SYSTEM_CLOCK else repr(self._clock.time_ns() / 1e9)
        return self._try(lambda client: script(client, shard, (GROUP, now, *args)))

    def _try(self, call: Callable[[Any], Any]) -> Any:
        return self._server.call(call)

    def _tidy(self, client: Any) -> None:
        """Remove consumers that ended long ago; warn of a server that throws jobs away when its memory is full."""
        from redis.exceptions import ResponseError

        for key in (key for shard in self._shards for key in shard[7:]):
            try:
                for consumer in client.xinfo_consumers(key, GROUP):
                    if consumer["idle"] > _FORGOTTEN_CONSUMER_MS and not consumer["pending"]:
                        client.xgroup_delconsumer(key, GROUP, consumer["name"])
            except ResponseError:  # no such stream so far, or not allowed to look
                continue
        try:
            memory = client.info("memory")
        except ResponseError:
            return
        policy = memory.get("maxmemory_policy", "noeviction")
        if memory.get("maxmemory") and policy != "noeviction":
            _log.warning("the server of the judge queue has maxmemory-policy %s: it can throw jobs away; set noeviction", policy)

    # --- what waits here

    def _settle(self, jobs: Mapping[str, str | None]) -> None:
        with self._lock:
            self._unsettled.update(jobs)
            self._catch_up([])

    def _catch_up(self, left_out: list[Job]) -> None:
        """Send what waits in this process, as far as the server takes it."""
        try:
            while self._unsettled:
                some = dict(itertools.islice(self._unsettled.items(), _BATCH))
                by_shard: dict[int, list[Any]] = {}
                for job_id, reason in some.items():
                    by_shard.setdefault(self._number_of(job_id), []).extend((job_id, int(reason is not None), reason or ""))
                for number, settled in by_shard.items():
                    self._call(_finish, self._shards[number], _DEAD_LETTERS, *settled)
                    for job_id in settled[::3]:
                        del self._unsettled[job_id]
            for shard, batch in self._batches():
                args = [part for job in batch for part in (job.id, job.payload, job.priority, job.size, job.attempts)]
                bound = self.max_bytes // len(self._shards)
                rows = self._call(_put, shard, bound, _REMEMBERED_SECONDS, _REMEMBERED, *args)
                sent = {job.id: job for job in batch}
                left_out += [sent[row[0].decode()] if len(row) == 1 else _job_of(row) for row in rows]
                for job in batch:
                    del self._held[job.id]
                    self._unsent_bytes -= job.size
        except Exception as error:
            if not unreachable(error):
                raise

    def _batches(self) -> Iterator[tuple[list[str], list[Job]]]:
        by_shard: dict[int, list[Job]] = {}
        for job in self._held.values():
            by_shard.setdefault(self._number_of(job.id), []).append(job)
        for shard, jobs in by_shard.items():
            batch: list[Job] = []
            size = 0
            for job in jobs:
                batch.append(job)
                size += job.size
                if len(batch) == _BATCH or size > _BATCH_BYTES:
                    yield self._shards[shard], batch
                    batch, size = [], 0
            if batch:
                yield self._shards[shard], batch


def _newest(client: Any, key: str) -> Any:
    return client.xrevrange(key, count=_DEAD_LETTERS)


def _read(client: Any, key: str, field: str) -> int:
    return int(client.hget(key, field) or 0)


def _keys_of(tag: str) -> list[str]:
    return [
        *(f"{tag}:{name}" for name in ("jobs", "wait", "again", "idle", "done", "dead", "totals")),
        *(f"{tag}:stream:{level}" for level in range(_LEVELS)),
    ]


def _job_of(row: Sequence[Any]) -> Job:
    job_id, payload, priority, attempts = row
    return Job(job_id.decode(), payload, int(priority), int(attempts))


_USED = """
local function used(key, oldest)
  local sum, first = 0, nil
  local found = redis.call('HGETALL', key)
  for i = 1, #found, 2 do
    local slot = tonumber(found[i])
    if slot < oldest then
      redis.call('HDEL', key, found[i])
    else
      sum = sum + tonumber(found[i + 1])
      if not first or slot < first then first = slot end
    end
  end
  return sum, first
end
local function add(key, slot, amount, window)
  redis.call('HINCRBYFLOAT', key, slot, amount)
  redis.call('EXPIRE', key, math.ceil(window * 2))
end
"""
_TAKE = (
    _USED
    + """
local wait, at = 0, tonumber(ARGV[1])
for i, key in ipairs(KEYS) do
  local slot, window, amount = tonumber(ARGV[5 * i - 3]), tonumber(ARGV[5 * i - 2]), tonumber(ARGV[5 * i - 1])
  local limit, below = tonumber(ARGV[5 * i]), tonumber(ARGV[5 * i + 1])
  local sum, first = used(key, slot - SLOTS)
  if not (sum < below and (sum <= 0 or sum + amount <= limit)) then
    wait = math.max(wait, ((first or slot) + SLOTS + 1) * (window / SLOTS) - at)
  end
end
if wait == 0 then
  for i, key in ipairs(KEYS) do add(key, ARGV[5 * i - 3], ARGV[5 * i - 1], tonumber(ARGV[5 * i - 2])) end
end
return string.format('%.17g', wait)
""".replace("SLOTS", str(SLOTS))
)
_ADD = (
    _USED
    + """
for i, key in ipairs(KEYS) do add(key, ARGV[3 * i - 2], ARGV[3 * i], tonumber(ARGV[3 * i - 1])) end
"""
)
_READ = _USED + "return string.format('%.17g', (used(KEYS[1], tonumber(ARGV[1]))))"
_spend, _correct, _spent = (_Script(text, common=False) for text in (_TAKE, _ADD, _READ))


class RedisSpendBook:
    """A :class:`~otel_agenteval.queues.SpendBook` on a server: what all processes spend counts, in one step for everybody.

    Args:
        url: as for :class:`RedisQueue`.
        name: what every key begins with.

    While the server cannot be reached there is no room: nobody is asked, and corrections wait here.
    """

    def __init__(self, url: str, name: str = "agenteval") -> None:
        self._server = _Server(url)
        self._name = name
        self._forget()

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._owed: deque[tuple[Spending, float, float]] = deque(maxlen=_OWED)
        """Corrections that the server could not be told."""

    def take(self, demands: Sequence[Demand], at: float) -> float:
        """Add all amounts at once if there is room for each, and 0; else the seconds until there may be."""
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
        try:
            self._pay()
            return float(self._server.call(lambda client: _spend(client, keys, (repr(at), *args))))
        except Exception as error:
            if not unreachable(error):
                raise
            return _WAIT_UNREACHED

    def add(self, amounts: Sequence[tuple[Spending, float]], at: float) -> None:
        """Correct what was taken at a time."""
        with self._lock:
            self._owed.extend((counter, amount, at) for counter, amount in amounts)
        try:
            self._pay()
        except Exception as error:
            if not unreachable(error):
                raise

    def _pay(self) -> None:
        """Tell the server what it was not told yet."""
        while self._owed:
            with self._lock:
                some = [self._owed.popleft() for _ in range(min(len(self._owed), _BATCH))]
            args = [text for counter, amount, at in some for text in (counter.slot(at), counter.window, repr(amount))]
            keys = [self._key(counter) for counter, _, _ in some]
            try:
                self._server.call(partial(_correct, keys=keys, args=args))
            except BaseException:
                with self._lock:
                    self._owed.extendleft(reversed(some))
                raise

    def used(self, counter: Spending, at: float) -> float:
        """What was spent within the window that ends at a time."""
        return float(self._server.call(lambda client: _spent(client, [self._key(counter)], (counter.slot(at) - SLOTS,))))

    def close(self) -> None:
        """Leave the server; what was spent stays there."""
        self._server.close()

    def after_fork_in_child(self) -> None:
        """The child connects for itself; what could not be told is the parent's."""
        self._forget()
        self._server.reset()

    def _key(self, counter: Spending) -> str:
        return f"{{{self._name}:spent}}:{counter.unit}:{counter.window:g}:{counter.account}"


def _number(value: float) -> str:
    return "1e308" if value == float("inf") else repr(value)


class RedisOutages:
    """What all workers know of a judge that is down: until when nobody asks it. Without the server each knows for itself.

    Args:
        url: as for :class:`RedisQueue`.
        name: what every key begins with.
    """

    def __init__(self, url: str, name: str = "agenteval") -> None:
        self._server = _Server(url)
        self._name = name
        self._told: dict[str, tuple[float, float]] = {}

    def until(self, kind: str) -> float:
        """When somebody tries next, in seconds since the Unix epoch; 0 when the judge is up as far as is known."""
        at, found = self._told.get(kind, (-1.0, 0.0))
        if time.monotonic() - at > _TOLD_FOR:
            found = self._try(lambda client: float(client.get(self._key(kind)) or 0.0)) or 0.0
            self._told[kind] = time.monotonic(), found
        return found

    def tell(self, kind: str, until: float, seconds: float) -> None:
        """It is down, for so many seconds from now on; 0 says that it is up again."""
        self._told.pop(kind, None)
        key = self._key(kind)
        if seconds > 0:
            self._try(lambda client: client.set(key, repr(until), px=max(1, round(seconds * 1000))))
        else:
            self._try(lambda client: client.delete(key))

    def close(self) -> None:
        """Leave the server."""
        self._server.close()

    def after_fork_in_child(self) -> None:
        """The child connects for itself."""
        self._server.reset()

    def _try(self, call: Callable[[Any], Any]) -> Any:
        try:
            return self._server.call(call)
        except Exception as error:
            if not unreachable(error):
                raise
            return None

    def _key(self, kind: str) -> str:
        return f"{{{self._name}:outage}}:{kind}"
