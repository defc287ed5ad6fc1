"""Kafka consumer that passes spans to the engine and commits the offsets of scored turns.

A single thread reads messages, determines which turns are open, commits offsets, and runs rebalance callbacks. When a partition is
revoked, the callback commits finished messages and drops the rest, which the next worker reads again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from ..config.yaml import expanded
from ..core import semconv
from ..core.errors import ConfigError, NotOtlp
from ..core.extras import require
from ..core.threads import OwnThread
from ..engine.engine import Engine
from ..engine.status import Checkpoint
from ..server.feed import Feed
from ..server.receiver import FULL
from ..spans.otlp import Signal
from .offsets import OtherVersion, Partition, Place

_log = logging.getLogger("otel_agenteval")

_AT_ONCE = 200
_POLL = 0.25
_FLUSH = 10.0
_BEHIND = 512
_SHORTLY, _BREATH = 2.0, 0.05
"""Seconds that scoring can lag before partitions pause, and seconds between checks. A pause discards read-ahead data."""
_MOVE = 5.0
_MOST_SNAPSHOTS = 4
_BUFFER_KB = 16 * 1024
_STATISTICS = 1.0
_ASK = 1.0
_PROBE, _SILENT = 5.0, 15.0
"""Seconds without broker answers before the reader sends a request, and seconds before the health check reports a fault."""
_STALLED = 20
"""Number of reads without a message after which the rest of a partition is assumed to be transaction markers."""

_JSON = (b"{", b" ", b"\t", b"\r")
"""Possible first bytes of a JSON request. A protobuf request starts with a line feed."""
_RECONNECT = {"reconnect.backoff.ms": 500, "reconnect.backoff.max.ms": 10_000}
_FOR_BOTH = ("bootstrap.", "broker.", "client.", "metadata.", "reconnect.", "sasl.", "security.", "socket.", "ssl.")

_COLON = re.compile(r"(?<!\$\{env):")

Key = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Address:
    """Parsed ``kafka://`` URL: brokers, topics, consumer group, and librdkafka options.

    Format: ``kafka://[user:password@]broker:9092,…/TOPIC?group=NAME&logs=TOPIC&dead=TOPIC&commit=SECONDS``. The scheme ``kafkas``
    uses TLS. Options whose names contain a dot are passed to librdkafka, such as ``&sasl.mechanism=SCRAM-SHA-512``. A password
    in the form ``${env:NAME}`` doesn't appear in the process list.
    """

    topics: Mapping[str, Signal]
    group: str
    dead: str | None
    """Topic for unreadable messages. The default (None) is the source topic's name with the suffix ``.agenteval.dead``."""
    every: float
    options: Mapping[str, Any] = field(repr=False)

    @classmethod
    def read(cls, url: str, env: Mapping[str, str] | None = None) -> Address:
        """Parse a URL. Raises ConfigError if the URL is invalid or an environment variable is missing."""
        env = os.environ if env is None else env
        parts = urlsplit("")
        with contextlib.suppress(ValueError):  # brackets don't match, for example
            parts = urlsplit(url)
        account, _, brokers = parts.netloc.rpartition("@")
        topics: dict[str, Signal] = {topic: "traces" for topic in parts.path.strip("/").split(",") if topic}
        if parts.scheme not in ("kafka", "kafkas") or not brokers or not topics:
            given_url = f"{parts.scheme}://{'***@' if account else ''}{brokers}{parts.path}" if parts.netloc else ""
            raise ConfigError(f"worker --spans: must be kafka://BROKER:9092/TOPIC (or kafkas://…), got {given_url!r}")
        given = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        topics |= {topic: "logs" for topic in given.pop("logs", "").split(",") if topic}
        group, dead, every = given.pop("group", "agenteval"), given.pop("dead", None), given.pop("commit", "2")
        unknown = [name for name in given if "." not in name]
        if unknown or not every.replace(".", "", 1).isdecimal():
            wrong = ", ".join(unknown) or f"commit={every}, which is not a number of seconds"
            raise ConfigError(f"worker --spans: options must be group, logs, dead, commit, or a librdkafka option, got {wrong}")
        options = {name: expanded(value, f"worker --spans: {name}", env) for name, value in given.items()}
        options["bootstrap.servers"] = brokers
        if account:
            user, _, password = _COLON.sub("\n", account, count=1).partition("\n")
            options |= {
                name: expanded(unquote(value), f"worker --spans: {name}", env)
                for name, value in (("sasl.username", user), ("sasl.password", password))
            }
            options.setdefault("sasl.mechanism", "PLAIN")
        sasl = "SASL_" if account else ""
        options.setdefault("security.protocol", f"{sasl}{'SSL' if parts.scheme == 'kafkas' else 'PLAINTEXT'}")
        return cls(topics, group, dead, float(every), options)


@dataclass(frozen=True, slots=True)
class _Snapshot:
    checkpoint: Checkpoint
    positions: dict[Key, int]


_DIFFERS = re.compile(r"\[[^\[\]]*\]|[0-9]+")


class _Sparse(logging.Filter):
    """Log filter that usually passes each kind of message once a minute, because librdkafka logs each failed connection attempt."""

    def __init__(self) -> None:
        super().__init__()
        self._quiet_until: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message, now = _DIFFERS.sub("", record.getMessage()), time.monotonic()
        if now < self._quiet_until.get(message, 0.0):
            return False
        if len(self._quiet_until) >= 100:
            self._quiet_until.clear()
        self._quiet_until[message] = now + 60.0
        return True


_SPARSE = _Sparse()


class Patience:
    """Clock for closing turns that advances only while the consumer reads.

    A turn closes some time after its root span arrives. While the consumer pauses for a commit, a rebalance, or an outage, the
    turn's other spans might still be in Kafka. This clock stops during these pauses, so that a pause doesn't split a turn.
    """

    def __init__(self) -> None:
        self._seconds = time.monotonic()

    def __call__(self) -> float:
        return self._seconds

    def passes(self, seconds: float) -> None:
        """Advance the clock by the seconds spent reading. Only the reading thread may call this method."""
        self._seconds += seconds


class KafkaSource:
    """Kafka consumer on a separate thread. Raises MissingExtra if confluent-kafka is missing, and ConfigError for invalid options."""

    def __init__(self, engine: Engine, feed: Feed, address: Address, patience: Patience) -> None:
        self._kafka = require("confluent_kafka", feature="spans from Kafka", extra="kafka")
        self._engine = engine
        self._feed = feed
        self._passed_over: set[int] = set()
        self._address = address
        self._patience = patience
        self._partitions: dict[Key, Partition] = {}
        self._dead: dict[Key, set[int]] = {}
        """Maps a partition to the offsets of messages that the dead-letter topic hasn't acknowledged yet."""
        self._stopping = threading.Event()
        self._rejoin = False
        self._paused = False
        self._behind_since = 0.0
        self._stalled = 0
        self._heard_at = self._asked_at = time.monotonic()
        self._committed_at = 0.0
        self._measured_at = 0.0
        self.messages: Counter[tuple[str, str]] = Counter()
        self.rebalances: Counter[str] = Counter()
        self._snapshots: deque[_Snapshot] = deque()
        self._lags: dict[Key, int] = {}
        self._uncommitted: dict[Key, int] = {}
        self._consumer: Any = None
        self._producer: Any = None
        try:
            self._open()
        except self._kafka.KafkaException as error:
            raise ConfigError(f"worker --spans: {error.args[0].str()}") from None
        self._thread = OwnThread(self._run, "otel-agenteval-kafka")
        watch = self._engine.telemetry.watch
        self._engine.telemetry.expect(semconv.KAFKA_MESSAGES, topic=tuple(address.topics))
        self._engine.telemetry.expect(semconv.KAFKA_REBALANCES)
        watch(semconv.KAFKA_LAG, lambda: [({"topic": t, "partition": str(p)}, n) for (t, p), n in self._lags.copy().items()])
        watch(
            semconv.KAFKA_REPLAY,
            lambda: [({"topic": t, "partition": str(p)}, n) for (t, p), n in self._uncommitted.copy().items()],
        )
        watch(semconv.KAFKA_MESSAGES, lambda: [({"topic": t, "outcome": o}, n) for (t, o), n in self.messages.copy().items()])
        watch(semconv.KAFKA_PARTITIONS, lambda: [({}, len(self._partitions))])
        watch(semconv.KAFKA_REBALANCES, lambda: [({"kind": kind}, n) for kind, n in self.rebalances.copy().items()])

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float) -> bool:
        self._stopping.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def trouble(self) -> str:
        silent = time.monotonic() - self._heard_at
        return f"no answer from the brokers for {silent:.0f} s" if silent > _SILENT else ""

    # --- the thread

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._rejoin = False
            try:
                self._join()
            except BaseException as error:  # the group couldn't be joined or left
                self._engine.failed("kafka", error)
                self._rejoin = True
            if self._rejoin:
                self._stopping.wait(1.0)

    def _open(self) -> None:
        logs = logging.getLogger("otel_agenteval.kafka")
        logs.addFilter(_SPARSE)
        self._consumer = self._kafka.Consumer(
            {
                "partition.assignment.strategy": "range",  # span and log topics: the same partition numbers go to the same member
                "session.timeout.ms": 10_000,
                **_RECONNECT,
                **self._address.options,
                "group.id": self._address.group,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": self._address.options.get("auto.offset.reset", "earliest"),
                "queued.max.messages.kbytes": _BUFFER_KB,
                "allow.auto.create.topics": True,
            },
            logger=logs,
        )
        connection = {name: value for name, value in self._address.options.items() if name.startswith(_FOR_BOTH)}
        self._producer = self._kafka.Producer({**_RECONNECT, **connection, "acks": "all"}, logger=logs)

    def _join(self) -> None:
        if self._consumer is None:
            self._open()
        try:
            self._consumer.subscribe(
                list(self._address.topics), on_assign=self._on_assigned, on_revoke=self._on_revoked, on_lost=self._on_lost
            )
            while not self._stopping.is_set() and not self._rejoin:
                try:
                    self._poll()
                except BaseException as error:  # whatever failed, uncommitted messages are read again
                    self._engine.failed("kafka", error)
                    self._stopping.wait(1.0)
        finally:
            self._producer.flush(_FLUSH)
            self._commit(_FLUSH)
            self._consumer.close()
            self._consumer = None
            self._forget([self._kafka.TopicPartition(*key) for key in self._partitions])

    def _poll(self) -> None:
        began = time.monotonic()
        behind = self._is_behind()
        self._behind_since = (self._behind_since or began) if behind else 0.0
        if behind and began - self._behind_since < _SHORTLY:  # pausing discards the read-ahead buffer
            self._stopping.wait(_BREATH)
            self._commit_now_and_then()
            return
        if self._paused != behind:
            self._paused = behind
            (self._consumer.pause if behind else self._consumer.resume)(self._consumer.assignment())
        messages = self._consumer.consume(_AT_ONCE, _POLL)
        for message in messages:
            self._read_message(message)
        listened = min(_POLL, time.monotonic() - began)  # a longer time includes a rebalance, or waiting for the CPU
        came = any(message.error() is None for message in messages)
        if came:
            self._stalled, self._heard_at = 0, time.monotonic()
        elif time.monotonic() - max(self._heard_at, self._asked_at) > _PROBE:
            self._asked_at = time.monotonic()
            with contextlib.suppress(self._kafka.KafkaException):
                self._consumer.list_topics(next(iter(self._address.topics)), timeout=_ASK)
                self._heard_at = time.monotonic()
        if not self._paused and (came or self._is_at_the_end()):
            self._patience.passes(listened)
        self._commit_now_and_then()
        now = time.monotonic()
        if now - self._measured_at >= _STATISTICS:
            self._measured_at = now
            for key, partition in self._partitions.items():
                _, high = self._consumer.get_watermark_offsets(self._kafka.TopicPartition(*key), cached=True)
                if high >= 0:
                    self._lags[key] = max(0, high - partition.position)

    def _commit_now_and_then(self) -> None:
        self._producer.poll(0)
        if time.monotonic() - self._committed_at >= self._address.every:
            self._commit()
            self._committed_at = time.monotonic()

    def _is_behind(self) -> bool:
        status = self._engine.status
        if status.waiting_turns > (_BEHIND // 2 if self._paused else _BEHIND):
            return True
        return status.queue_fill() > FULL or sum(map(len, self._dead.values())) > _AT_ONCE

    def _is_at_the_end(self) -> bool:
        """Return True if the reader seems to have read all messages in its partitions, or if no turn is waiting for spans."""
        if not self._partitions or not self._engine.intake.waits:
            return True
        wanted = [self._kafka.TopicPartition(*key, self._kafka.OFFSET_END) for key in self._partitions]
        try:
            ends = self._consumer.offsets_for_times(wanted, timeout=_ASK)
        except self._kafka.KafkaException:
            return False
        if any(end.error is not None for end in ends):
            return False
        if all(end.offset <= self._partitions[end.topic, end.partition].position for end in ends):
            self._stalled = 0
            return True
        self._stalled += 1
        return self._stalled > _STALLED

    def _read_message(self, message: Any) -> None:
        if message.error() is not None:
            if message.error().code() != self._kafka.KafkaError._PARTITION_EOF:
                _log.warning("kafka: can't read messages: %s", message.error().name())
            return
        topic, offset = message.topic(), message.offset()
        partition = self._partitions.get((topic, message.partition()))
        if partition is None or offset < partition.position:  # revoked in the meantime, or a duplicate
            return
        body = message.value() or b""
        signal, is_json = self._address.topics[topic], body[:1] in _JSON
        try:
            batch = self._feed.read(signal, body, is_json)
            if offset < partition.begin:
                partition.skip(offset, batch.traces)
                self._passed_over |= partition.passed_over
                self.messages[topic, "replayed"] += 1
                return
            before = len(partition.passed_over)
            self._feed.pass_on(batch, self._passed_over)
            partition.note(offset, batch.traces - self._passed_over)
            if before and not partition.passed_over:
                self._update_passed_over()
            self.messages[topic, "taken"] += 1
        except NotOtlp as error:
            self._send_dead_letter(message, partition, str(error))
        except Exception as error:
            self._engine.failed("kafka_message", error)
            self._send_dead_letter(message, partition, type(error).__name__)

    def _send_dead_letter(self, message: Any, partition: Partition, reason: str) -> None:
        """Send an unreadable message to the dead-letter topic. Later offsets aren't committed until it is acknowledged."""
        topic, number, offset = message.topic(), message.partition(), message.offset()
        if offset < partition.begin:
            partition.skip(offset, ())
            return  # already in the dead-letter topic
        partition.note(offset, ())
        waiting = self._dead.setdefault((topic, number), set())
        waiting.add(offset)
        self.messages[topic, "dead_letter"] += 1

        def delivered(error: Any, _: Any) -> None:
            if error is None:
                waiting.discard(offset)
            else:
                _log.warning("kafka: can't write to the dead-letter topic, retrying: %s", error.name())
                send()

        def send() -> None:
            headers = {"reason": reason, "topic": topic, "partition": str(number), "offset": str(offset)}
            target = self._address.dead or f"{topic}.agenteval.dead"
            self._producer.produce(target, message.value(), message.key(), headers=headers, on_delivery=delivered)

        send()

    def _commit(self, patience: float = 0.0) -> None:
        """Take a snapshot of the open turns. When all turns that closed before a snapshot are scored, commit the snapshot's
        offsets. Wait up to ``patience`` seconds until closed turns are scored.
        """
        if not self._partitions:
            return
        if len(self._snapshots) < _MOST_SNAPSHOTS or patience:
            positions = {key: partition.position for key, partition in self._partitions.items()}
            self._snapshots.append(_Snapshot(self._engine.status.checkpoint(self._seen_traces()), positions))
        if patience:
            self._engine.evaluate_closed(patience)
        done = None
        while self._snapshots and self._engine.status.has_passed(self._snapshots[0].checkpoint):
            done = self._snapshots.popleft()
        if done is not None and not self._commit_of(done):
            self._snapshots.appendleft(done)
        for key, partition in self._partitions.items():
            self._uncommitted[key] = max(0, partition.position - partition.place.offset)

    def _seen_traces(self) -> set[int]:
        return set().union(*(partition.traces.keys() for partition in self._partitions.values()))

    def _commit_of(self, snapshot: _Snapshot) -> bool:
        """Commit the offsets of turns that closed before the snapshot. Return False if delivering or committing fails."""
        # an evaluated part of a turn can still wait for other parts
        held = snapshot.checkpoint.held | self._engine.intake.held(self._seen_traces())
        partitions = {
            key: self._partitions[key]
            for key, position in snapshot.positions.items()
            if key in self._partitions and position >= self._partitions[key].begin
        }
        places = {
            key: partition.done(held, (*self._dead.get(key, ()), snapshot.positions[key]))
            for key, partition in partitions.items()
        }
        moved = {key: place for key, place in places.items() if place != partitions[key].place}
        if not moved:
            return True
        if not (self._engine.flush_outlets(_FLUSH) and self._engine.flush_jobs()):
            return False
        offsets = [
            self._kafka.TopicPartition(topic, number, place.offset, place.metadata()) for (topic, number), place in moved.items()
        ]
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except self._kafka.KafkaException as error:
            self._engine.failed("kafka_commit", error)
            return False
        for key, place in moved.items():
            partitions[key].commit(place)
        return True

    # --- rebalances, on the same thread

    def _on_assigned(self, consumer: Any, partitions: list[Any]) -> None:
        self._rejoin = True  # stays True if an exception escapes
        self.rebalances["assigned"] += len(partitions)
        self._snapshots.clear()
        for committed in consumer.committed(partitions, timeout=30.0):
            low, high = consumer.get_watermark_offsets(committed, timeout=30.0)
            offset = committed.offset if committed.offset >= 0 else low
            if committed.offset < 0 and self._address.options.get("auto.offset.reset") == "latest":
                offset = high
            try:
                place = Place.read(offset, committed.metadata)
            except OtherVersion as fault:  # this partition stays unread, but the others are read
                _log.error("worker --spans: %s/%d: %s", committed.topic, committed.partition, fault)
                continue
            place = Place(max(place.offset, low), max(place.since, low))
            where = committed.topic, committed.partition
            self._partitions[where] = Partition(place, high)
            _log.info("kafka: scoring %s/%d from offset %d (reading trace IDs from offset %d)", *where, *place)
        consumer.assign([self._kafka.TopicPartition(*key, found.position) for key, found in self._partitions.items()])
        consumer.resume(consumer.assignment())  # a partition that was paused when it moved would stay paused
        self._paused = self._rejoin = False

    def _on_revoked(self, consumer: Any, partitions: list[Any]) -> None:
        self.rebalances["revoked"] += len(partitions)
        self._commit(_MOVE)
        self._forget(partitions)

    def _on_lost(self, consumer: Any, partitions: list[Any]) -> None:
        self.rebalances["lost"] += len(partitions)
        self._forget(partitions)

    def _forget(self, partitions: list[Any]) -> None:
        gone: set[int] = set()
        self._snapshots.clear()
        for found in partitions:
            key = found.topic, found.partition
            partition = self._partitions.pop(key, None)
            if partition is not None:
                gone.update(partition.traces)
            for kept in (self._dead, self._lags, self._uncommitted):
                kept.pop(key, None)
        self._engine.intake.forget_traces(gone)
        self._update_passed_over()

    def _update_passed_over(self) -> None:
        self._passed_over = set().union(*(partition.passed_over for partition in self._partitions.values()))
