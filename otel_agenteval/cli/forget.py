"""``otel-agenteval forget``: delete a conversation's or a user's data."""

from __future__ import annotations

import argparse
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ..config.loader import load_config
from ..config.root import Config
from ..core.clock import SYSTEM_CLOCK, SystemClock
from ..core.errors import AgentEvalError, ConfigError, StoreError
from ..evaluation.names import public_id
from ..outlets.store.postgres import is_address, without_password
from ..outlets.store.sqlite import SCHEMA
from ..outlets.store.writer import Retention, ScoreStore
from ..outlets.turn_text import number_of
from . import OK, UNUSABLE
from .options import add_store

if TYPE_CHECKING:
    from ..core.turn import Turn

EXIT_CODES = {
    OK: "all matching data was deleted, or no data matched",
    UNUSABLE: "an argument is invalid, or the store, the journal, or the queue can't be used",
}
_LEASE, _AHEAD = 60.0, 1e9
_ALL, _AT_ONCE = 2**31, 500


def add_arguments(parser: argparse.ArgumentParser) -> None:
    whose = parser.add_mutually_exclusive_group(required=True)
    whose.add_argument("--conversation", type=_an_id, metavar="ID", help="delete the turns of this conversation")
    whose.add_argument("--user", type=_an_id, metavar="ID", help="delete the turns of this user (the span attribute `user.id`)")
    parser.add_argument("--tenant", type=_an_id, metavar="NAME", help="delete only this tenant's turns (default: all tenants)")
    add_store(parser)
    parser.add_argument(
        "--journal", metavar="DIR", help="journal of a stopped sidecar (default: serve.journal in the configuration)"
    )


def _an_id(text: str) -> str:
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    return text


def run(args: argparse.Namespace) -> int:
    config = _with_queue_of_sidecar(load_config(args.config))
    store = args.store or (config.outlets.store.path if config.outlets.store is not None else None)
    journal = args.journal or config.serve.journal
    queue, cache = config.judge.queue, config.judge.cache.path
    if store is None and journal is None and queue.backend == "memory" and cache is None:
        raise ConfigError("forget: no store, journal, queue, or cache is configured. Pass --config, --store, or --journal")
    _check_paths(args.journal, store)
    column: Literal["user_id", "conversation_id"] = "conversation_id" if args.user is None else "user_id"
    value = args.conversation if args.user is None else args.user
    values = dict.fromkeys((value, public_id(value, config.privacy.redact)))  # the second is its form in the store and the queue
    try:
        if journal is not None and Path(journal).exists():
            from ..server.journal_folder import forget_in_journal

            keys = ("user",) if args.user is not None else ("conversation", "session", "thread", "chat")  # of all frameworks
            is_meant = lambda key, found: str(found) == value and any(name in key.lower() for name in keys)  # noqa: E731
            print(f"journal {journal}: {number_of(forget_in_journal(str(journal), is_meant, args.tenant), 'trace')} deleted")
        if queue.backend != "memory":
            is_chosen = lambda turn: getattr(turn, column) in values and args.tenant in (None, turn.tenant)  # noqa: E731
            print(f"judge queue: {number_of(_forget_in_queue(config, is_chosen), 'job')} deleted")
        if cache is not None and Path(cache).exists():
            from ..judging.models.cache import VerdictCache

            verdicts = VerdictCache(str(cache), float("inf"), 1 << 62)
            print(f"judge cache {cache}: all {len(verdicts):,} replies deleted, because replies aren't stored by turn")
            verdicts.clear()
            verdicts.close()
        if store is not None:
            scores = ScoreStore(store, Retention(float("inf"), 1 << 62))
            turns = sum(scores.forget(column, one, args.tenant) for one in values)
            print(f"store {without_password(store)}: {number_of(turns, 'turn')} deleted")
            scores.close()
    except (sqlite3.Error, OSError, StoreError) as error:
        raise AgentEvalError(f"forget: {error}") from None
    return OK


def _check_paths(journal: str | None, store: str | None) -> None:
    if journal is not None and not Path(journal).is_dir():
        raise ConfigError(f"--journal: {journal}: folder not found")
    if store is not None and not is_address(store):
        fault = SCHEMA.fault_of(store) if Path(store).exists() else f"{store}: file not found"
        if fault is not None:
            raise ConfigError(fault)


def _with_queue_of_sidecar(config: Config) -> Config:
    from ..server.app import as_sidecar

    try:
        queue = as_sidecar(config).judge.queue
    except ConfigError:  # there is no state folder, so it can't contain a queue
        return config
    if queue.path is None or queue.backend == config.judge.queue.backend or not Path(queue.path).exists():
        return config
    return load_config(config, overrides={"judge": {"queue": {"backend": "sqlite", "path": queue.path}}})


def _forget_in_queue(config: Config, is_meant: Callable[[Turn], bool]) -> int:
    """Delete the jobs of matching turns, and return their number. Claim all jobs to check them, and requeue the others."""
    from ..judging.job import NewerPayload, Payload
    from ..judging.queues import Job, queue_from
    from ..judging.queues.redis_server import unreachable

    def failed(_: str, error: BaseException) -> None:
        raise AgentEvalError(f"judge.queue: can't be used: {error}")

    def found_in(job: Job) -> bool:
        try:
            return is_meant(Payload.decode(job.payload).turn())
        except (NewerPayload, ValueError, KeyError):  # the process that runs the job reports it
            return False

    path = config.judge.queue.path
    if path is not None and config.judge.queue.backend == "sqlite" and not Path(path).exists():
        return 0
    ahead, queue = (queue_from(config.judge.queue, clock, failed) for clock in (_Ahead(), SYSTEM_CLOCK))
    claimed, gone = dict[str, Job](), set[str]()
    try:
        # In Redis, one early claim per shard makes all its jobs due, and the others are then claimed in batches.
        early, shards = (1, config.judge.queue.shards) if config.judge.queue.backend == "redis" else (_ALL, 1)
        for _ in range(shards):
            claimed.update((job.id, job) for job in ahead.claim(early, _LEASE - _AHEAD))
        while jobs := queue.claim(_AT_ONCE, _LEASE):
            claimed.update((job.id, job) for job in jobs)
        meant = [job for job in claimed.values() if found_in(job)]
        gone = {job.id for job in meant} - {*queue.ack_many(meant)}
    except Exception as error:
        is_remote = config.judge.queue.backend == "redis"
        if not (unreachable(error) if is_remote else isinstance(error, (sqlite3.Error, OSError))):
            raise
        raise AgentEvalError(f"judge.queue: can't be used: {error}") from None
    finally:
        with suppress(Exception):  # otherwise, jobs become due when their leases end
            for job in claimed.values():
                if job.id not in gone:
                    queue.retry_at(job, SYSTEM_CLOCK.time_ns() / 1e9, counted=False)
            queue.flush()
        ahead.close()
        queue.close()
    return len(gone)


class _Ahead(SystemClock):
    """Clock far in the future, so that jobs that wait for a budget, a server, or another process can be claimed."""

    @staticmethod
    def time_ns() -> int:
        return SYSTEM_CLOCK.time_ns() + int(_AHEAD * 1e9)
