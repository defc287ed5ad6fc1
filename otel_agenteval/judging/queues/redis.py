"""Job queue in Redis or Valkey, which any number of processes can share.

Jobs are in streams, one per shard and priority, and all judge workers form one consumer group. So a stream's pending list and
lag show the amount of work to monitoring and autoscaling tools. Sorted sets hold the ends of leases and the times of retries.
Each change is one atomic script.

XCLAIM takes over a lease at its own end, because XAUTOCLAIM supports only one age for all. A hash has the token of each job's
last lease.

Streams are never trimmed. A job is removed when it is acknowledged, or when a more important one needs its room.

All keys of a shard have its hash tag, so a cluster stores them together. The server's clock applies to all processes. While
the server is unreachable, jobs wait in this process within a limit, and the server is retried with pauses.
"""

from __future__ import annotations

import itertools
import logging
import os
import random
import socket
import threading
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ...core import forks
from ...core.clock import SYSTEM_CLOCK, Clock
from .base import HELD_BYTES, Job, Leases
from .connect import unreachable
from .redis_server import Script, Server

_log = logging.getLogger("otel_agenteval")

GROUP = "judges"
"""Consumer group of all judge workers."""
_LEVELS = 8
"""Number of separate priorities. Values outside the range count as the highest or lowest one."""
_REMEMBERED_SECONDS = 86_400
_REMEMBERED = 200_000
"""Maximum number of finished jobs that a shard remembers."""
_DEAD_LETTERS = 1_000
_BATCH, _BATCH_BYTES = 100, 1024 * 1024
_FORGOTTEN_CONSUMER_MS = 86_400_000

_COMMON = """
redis.replicate_commands()
local jobs, wait, again, idle, done, dead, totals = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]
local function stream(level) return KEYS[8 + level] end
local tokens = KEYS[8 + LEVELS]
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
local function owns(job, fence)
  local token = redis.call('HGET', tokens, job.id)
  return token and string.sub(token, 1, #fence) == fence
end
local function keep_tokens(lease) redis.call('EXPIRE', tokens, math.ceil(math.max(REMEMBERED, 4 * lease))) end
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
  redis.call('HDEL', tokens, job.id)
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
""".replace("LEVELS", str(_LEVELS)).replace("REMEMBERED", str(_REMEMBERED_SECONDS))

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
local n, lease, consumer, token, claimed = tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5], ARGV[6], {}
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
    redis.call('HSET', tokens, job.id, token)
    claimed[#claimed + 1] = {job.id, body, job.priority, tostring(job.attempts)}
  end
end
if #claimed > 0 then keep_tokens(lease) end
return claimed
""".replace("LEVELS", str(_LEVELS))

_EXTEND = """
local lease, lost = tonumber(ARGV[3]), {}
for i = 4, #ARGV, 2 do
  local job = read(ARGV[i])
  if job and owns(job, ARGV[i + 1]) then
    if not job.claimed then  -- it ended, and nobody else came
      job.claimed = true
      write(job)
      free(job.level, -job.size)
      redis.call('ZREM', again, job.id)
      redis.call('ZREM', idle, job.id)
    end
    redis.call('ZADD', wait, text(now + lease), job.id)
  else
    lost[#lost + 1] = ARGV[i]
  end
end
keep_tokens(lease)
return lost
"""

_RETRY = """
local job = read(ARGV[3])
if not job or not owns(job, ARGV[4]) then return 0 end
local due = ARGV[2] == '' and now + tonumber(ARGV[5]) or tonumber(ARGV[5])
redis.call('HDEL', tokens, job.id)
if ARGV[6] == '0' then job.attempts = job.attempts - 1 end
if job.claimed then
  rest(job, due)
else
  write(job)
  redis.call('ZREM', again, job.id)
  redis.call('ZADD', wait, text(due), job.id)
end
return 1
"""

_FINISH = """
local lost = {}
for i = 4, #ARGV, 4 do
  local job = read(ARGV[i])
  if job and owns(job, ARGV[i + 1]) then
    remove(job, true)
    redis.call('ZADD', done, text(now), job.id)
    if ARGV[i + 2] == '1' then redis.call('XADD', dead, 'MAXLEN', '~', ARGV[3], '*', 'id', job.id, 'reason', ARGV[i + 3]) end
  else
    lost[#lost + 1] = ARGV[i]
  end
end
return lost
"""


_put, _claim, _extend, _retry, _finish = (Script(_COMMON + text) for text in (_PUT, _CLAIM, _EXTEND, _RETRY, _FINISH))


class RedisQueue:
    """A :class:`~otel_agenteval.judging.queues.JobQueue` on a Redis or Valkey server.

    The server must have at least the features of Redis 5. The queue connects on first use. While the server is unreachable,
    reads and claims raise ``redis.exceptions.RedisError``. New jobs and acknowledgments wait.

    Args:
        url: see :func:`~otel_agenteval.judging.queues.connect.connect`.
        max_bytes: the maximum bytes of all jobs on the server, divided equally among the shards.
        clock: replaces the server's clock in tests.
        shards: the number of shards, equal for all processes. A job's id determines its shard.
        name: the prefix of all keys.
        held_bytes: the maximum bytes of jobs that wait in this process.
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
        self.max_bytes = max_bytes
        self._server = Server(url, self._tidy)
        self._clock = clock
        self._held_bytes = held_bytes
        self._shards = [_keys_of(f"{{{name}:{shard}}}") for shard in range(shards)]
        self._reset()
        forks.in_child(self._reopen)

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._closed = False
        self._consumer = f"{socket.gethostname()}-{os.getpid()}-{random.randrange(16**4):04x}"  # noqa: S311 - a name
        self._held: OrderedDict[str, Job] = OrderedDict()
        self._leases = Leases()
        self._unfinished: OrderedDict[str, tuple[str, str | None]] = OrderedDict()
        """Ended leases that the server doesn't know yet, with the reason for dead jobs."""
        self._unsent_bytes = 0
        self._left_out: list[Job] = []
        """Jobs that the server rejected in a later try. The next :meth:`put_many` returns them."""
        self._turn = itertools.count(random.randrange(len(self._shards)))  # noqa: S311 - the first shard to read

    @property
    def unsent(self) -> int:
        return len(self._held)

    @property
    def depth(self) -> int:
        return 0 if self._closed else self._totals("jobs") + len(self._held)

    @property
    def bytes(self) -> int:
        return 0 if self._closed else self._totals("bytes") + self._unsent_bytes

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        with self._lock:
            left_out, self._left_out = self._left_out, []
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
        with self._lock:
            if self._held or self._unfinished:
                self._catch_up(self._left_out)
        claimed: list[Job] = []
        token = self._leases.grant()
        begin = next(self._turn)
        for i in range(len(self._shards)):
            shard = self._shards[(begin + i) % len(self._shards)]
            rows = self._call(_claim, shard, n - len(claimed), repr(float(lease)), self._consumer, token)
            claimed += [_job_of(row, token) for row in rows]
            if len(claimed) == n:
                break
        return claimed

    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        by_shard: dict[int, list[str]] = {}
        for job_id, fence in map(self._leases.claimed, jobs):
            by_shard.setdefault(self._number_of(job_id), []).extend((job_id, fence))
        lost: list[str] = []
        for number, held in by_shard.items():
            lost += map(bytes.decode, self._call(_extend, self._shards[number], repr(float(lease)), *held))
        return lost

    def ack(self, job: Job | str) -> bool:
        return not self._finish([job], None)

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        return self._finish(jobs, None)

    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Put a claimed job back. If the server is unreachable, it is due when its lease ends."""
        job_id, fence = self._leases.claimed(job)
        when = at if self._clock is not SYSTEM_CLOCK else max(0.0, at - self._clock.time_ns() / 1e9)
        return bool(self._call(_retry, self._shard_of(job_id), job_id, fence, repr(float(when)), int(counted)))

    def dead(self, job: Job | str, reason: str) -> bool:
        return not self._finish([job], reason)

    def dead_letters(self) -> list[tuple[str, str]]:
        found: list[tuple[tuple[int, ...], str, str]] = []
        for shard in self._shards:
            for entry, fields in self._try(partial(_newest, key=shard[5])):
                when = tuple(int(part) for part in entry.split(b"-"))
                found.append((when, fields[b"id"].decode(), fields[b"reason"].decode()))
        return [(job_id, reason) for _, job_id, reason in sorted(found)]

    def flush(self) -> bool:
        with self._lock:
            self._catch_up(self._left_out)
            return not self._held and not self._unfinished

    def close(self) -> list[Job]:
        with self._lock:
            if self._closed:
                return []
            left, self._left_out = self._left_out, []
            if self._held or self._unfinished:
                self._catch_up(left)
            left += self._held.values()
            self._held.clear()
            self._unsent_bytes = 0
            self._closed = True
        self._server.close()
        return left

    def _reopen(self) -> None:
        closed = self._closed
        self._reset()
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

    def _call(self, script: Script, shard: Sequence[str], *args: Any) -> Any:
        now = "" if self._clock is SYSTEM_CLOCK else repr(self._clock.time_ns() / 1e9)
        return self._try(lambda client: script(client, shard, (GROUP, now, *args)))

    def _try(self, call: Callable[[Any], Any]) -> Any:
        return self._server.call(call)

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
            _log.warning("judge.queue.url: the server has maxmemory-policy %s and can delete jobs. Set it to noeviction", policy)

    # --- what waits here

    def _finish(self, jobs: Sequence[Job | str], reason: str | None) -> list[str]:
        """End leases, and return the ids of lost ones, or none while the server is unreachable."""
        with self._lock:
            given = dict(map(self._leases.claimed, jobs))
            self._unfinished.update((job_id, (fence, reason)) for job_id, fence in given.items())
            return [job_id for job_id in self._catch_up(self._left_out) if job_id in given]

    def _catch_up(self, left_out: list[Job]) -> list[str]:
        """Send waiting jobs and acknowledgments, and return the ids of jobs with a lost lease.

        Jobs without room are added to ``left_out``.
        """
        lost: list[str] = []
        try:
            self._send_finished(lost)
            self._send_held(left_out)
        except Exception as error:
            if not unreachable(error):
                raise
        return lost

    def _send_finished(self, lost: list[str]) -> None:
        while self._unfinished:
            by_shard: dict[int, list[Any]] = {}
            for job_id, (fence, reason) in itertools.islice(self._unfinished.items(), _BATCH):
                ended = (job_id, fence, int(reason is not None), reason or "")
                by_shard.setdefault(self._number_of(job_id), []).extend(ended)
            for number, finished in by_shard.items():
                lost += map(bytes.decode, self._call(_finish, self._shards[number], _DEAD_LETTERS, *finished))
                for job_id in finished[::4]:
                    del self._unfinished[job_id]

    def _send_held(self, left_out: list[Job]) -> None:
        for shard, batch in self._batches():
            args = [part for job in batch for part in (job.id, job.payload, job.priority, job.size, job.attempts)]
            bound = self.max_bytes // len(self._shards)
            rows = self._call(_put, shard, bound, _REMEMBERED_SECONDS, _REMEMBERED, *args)
            sent = {job.id: job for job in batch}
            left_out += [sent[row[0].decode()] if len(row) == 1 else _job_of(row) for row in rows]
            for job in batch:
                del self._held[job.id]
                self._unsent_bytes -= job.size

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
        f"{tag}:tokens",
    ]


def _job_of(row: Sequence[Any], token: str = "") -> Job:
    job_id, payload, priority, attempts = row
    return Job(job_id.decode(), payload, int(priority), int(attempts), token)
