"""Spans from a real Kafka broker, read by real worker processes."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.kafka.consumer import Address, KafkaSource, Patience
from otel_agenteval.server.feed import Feed
from tests.support.certificates import Authority
from tests.support.collector import value
from tests.support.kafka import Kafka
from tests.support.process import ROOT
from tests.support.proxy import Proxy
from tests.support.servers import Process, free_port, until
from tests.support.turns_on_wire import Message, apart, messages_of, write

kafka_client = pytest.importorskip("confluent_kafka")
PASSWORD = "s3cret/with:odd@signs"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: Any) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def kafka(authority: Authority, tmp_path_factory: Any) -> Iterator[Kafka]:
    """Return a broker with four partitions per topic, and a second address with TLS and an account."""
    folder = tmp_path_factory.mktemp("kafka")
    with Kafka(folder, partitions=4, account=("reader", PASSWORD), certificate=authority.issue("broker")) as broker:
        yield broker


@pytest.fixture
def topic(request: Any) -> str:
    """Return a new topic."""
    return f"spans-{abs(hash(request.node.name)) % 10**8}"


def produce(kafka: Kafka, topic: str, messages: Sequence[Message], form: Callable[[int], str] = lambda i: "proto") -> None:
    producer = kafka_client.Producer({"bootstrap.servers": kafka.address})
    for i, message in enumerate(messages):
        producer.produce(topic, getattr(message, form(i)), message.trace_id.hex())
        producer.poll(0)
    assert producer.flush(120) == 0


class SpanWorker(Process):
    """An ``otel-agenteval worker --spans`` process."""

    def __init__(
        self, folder: Path, address: str, topic: str, name: str = "worker", query: str = "", scheme: str = "kafka", **config: Any
    ) -> None:
        self.scores = folder / f"{name}.jsonl"
        self.port = free_port()
        given = {
            "turn": {"decision_delay": "300ms"},
            "outlets": {"log_events": False, "jsonl": str(self.scores)},
            "serve": {"metrics": f"127.0.0.1:{self.port}", "drain_timeout": "5s"},
            **config,
        }
        file = folder / f"{name}.yaml"
        file.write_text(json.dumps(given))
        url = f"{scheme}://{address}/{topic}?group={topic}&commit=0.5&session.timeout.ms=6000&heartbeat.interval.ms=500{query}"
        command = [sys.executable, "-m", "otel_agenteval", "worker", "--config", file, "--spans", url]
        env = {"PYTHONPATH": str(ROOT), "KAFKA_PASSWORD": PASSWORD}
        super().__init__(command, log=folder / f"{name}.log", ready=lambda: True, env=env)

    def metric(self, name: str, **labels: str) -> float:
        try:
            return value(f"http://127.0.0.1:{self.port}/metrics", name, **labels)
        except OSError:
            assert self.running, self.text()[-3000:]
            return 0.0


def rows(*workers: SpanWorker) -> dict[str, tuple[Any, ...]]:
    return written(*(worker.scores for worker in workers))


def said_by(lines: Sequence[str]) -> dict[str, tuple[Any, ...]]:
    """Return the scores of JSON lines by result id. Scores with the same id must be equal."""
    found: dict[str, tuple[Any, ...]] = {}
    for row in map(json.loads, lines):
        if row["status"] != "skipped":
            known = tuple(row.get(key) for key in ("turn_id", "metric", "value", "passed"))
            assert found.setdefault(row["result_id"], known) == known
    return found


def written(*files: Path) -> dict[str, tuple[Any, ...]]:
    """Return the content of files, without an incomplete last line of a killed worker."""
    lines = (line for file in files if file.exists() for line in file.read_text().splitlines(keepends=True))
    return said_by([line for line in lines if line.endswith("}\n")])


def expected(messages: Sequence[Message], folder: Path, capsys: Any) -> dict[str, tuple[Any, ...]]:
    """Return the scores of ``eval`` for the same spans."""
    assert main(["eval", str(write(messages, folder / "all.jsonl"))]) == 0
    return said_by(capsys.readouterr().out.splitlines())


def uncommitted(kafka: Kafka, topic: str) -> int:
    """Return the number of messages that the group hasn't committed."""
    consumer = kafka_client.Consumer({"bootstrap.servers": kafka.address, "group.id": topic})
    try:
        places = consumer.committed([kafka_client.TopicPartition(topic, i) for i in range(4)], timeout=60)
        left = 0
        for place in places:
            low, high = consumer.get_watermark_offsets(place, timeout=60)
            left += high - (place.offset if place.offset >= 0 else low)
        return left
    finally:
        consumer.close()


def all_is_done(kafka: Kafka, topic: str, wanted: dict[str, tuple[Any, ...]], *workers: SpanWorker) -> None:
    """Wait until the workers have written all expected scores and committed their messages."""
    until(lambda: len(rows(*workers)) >= len(wanted), "all scores")
    until(lambda: uncommitted(kafka, topic) == 0, "everything is committed")


def test_partition_with_offsets_of_another_version_is_not_read(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    messages = messages_of(40)
    produce(kafka, topic, messages, lambda i: "proto")
    consumer = kafka_client.Consumer({"bootstrap.servers": kafka.address, "group.id": topic})
    newer = kafka_client.TopicPartition(topic, 0, 1, "agenteval.v2 from=0")
    consumer.commit(offsets=[newer], asynchronous=False)
    consumer.close()
    worker = SpanWorker(tmp_path, kafka.address, topic)
    try:
        until(lambda: "upgrade otel-agenteval" in worker.text(), "it is told")
        until(lambda: worker.metric("agenteval_kafka_partitions") == 3, "the others are read")
        until(lambda: worker.metric("agenteval_turns_total") > 0, "their turns are scored")
    finally:
        worker.stop()
    consumer = kafka_client.Consumer({"bootstrap.servers": kafka.address, "group.id": topic})
    (found,) = consumer.committed([kafka_client.TopicPartition(topic, 0)], timeout=60)
    consumer.close()
    assert (found.offset, found.metadata) == (1, "agenteval.v2 from=0")


@pytest.mark.slow
def test_what_was_said_comes_by_a_topic_of_log_records(kafka: Kafka, topic: str, tmp_path: Path, capsys: Any) -> None:
    """Two workers each receive spans and log records of the same traces."""
    messages = messages_of(60)
    spans, logs = apart(messages)
    for name, some in ((topic, spans[:2]), (f"{topic}-logs", logs[:1])):
        produce(kafka, name, some)
    config: dict[str, Any] = {"query": f"&logs={topic}-logs", "turn": {"decision_delay": "2s"}}
    workers = [SpanWorker(tmp_path, kafka.address, topic, f"worker-{i}", **config) for i in range(2)]
    try:
        until(lambda: all(worker.metric("agenteval_kafka_partitions") == 4 for worker in workers), "two of each topic")
        produce(kafka, topic, spans[2:])
        produce(kafka, f"{topic}-logs", logs[1:], lambda i: "json" if i % 2 else "proto")
        wanted = expected(messages, tmp_path, capsys)
        all_is_done(kafka, topic, wanted, *workers)
    finally:
        for worker in workers:
            worker.stop()
    assert rows(*workers) == wanted
    assert all(rows(worker) for worker in workers)


def test_what_cannot_be_read_goes_to_the_dead_letters_with_its_reason(kafka: Kafka, topic: str, tmp_path: Path) -> None:
    messages = messages_of(10)
    poison = [Message(b"x", b"\xff\xff nonsense", b""), Message(b"y", b'{"neither": 1}', b"")]
    produce(kafka, topic, [*messages[:5], *poison, *messages[5:]])
    worker = SpanWorker(tmp_path, kafka.address, topic)
    consumer = kafka_client.Consumer(
        {"bootstrap.servers": kafka.address, "group.id": f"{topic}-dead", "auto.offset.reset": "earliest"}
    )
    try:
        until(lambda: worker.metric("agenteval_kafka_messages_total", outcome="dead_letter") == 2, "counted")
        until(lambda: uncommitted(kafka, topic) == 0, "it is passed")
        consumer.subscribe([f"{topic}.agenteval.dead"])
        found = [message for message in consumer.consume(2, 120) if message.error() is None]
        assert {message.value() for message in found} == {b"\xff\xff nonsense", b'{"neither": 1}'}
        headers = [dict(message.headers()) for message in found]
        assert all(one["reason"] for one in headers)
        assert {one["topic"].decode() for one in headers} == {topic}
        assert len({turn for turn, *_ in rows(worker).values()}) == 10
    finally:
        consumer.close()
        worker.stop()


@pytest.mark.slow
def test_a_turn_that_is_open_is_read_again_by_who_gets_its_partition(
    kafka: Kafka, topic: str, tmp_path: Path, capsys: Any
) -> None:
    """After the first half of every turn, one worker is killed and another leaves. Then the second half arrives."""
    messages = messages_of(120, together=10_000)
    first, rest = messages[::2], messages[1::2]
    produce(kafka, topic, first)
    one = SpanWorker(tmp_path, kafka.address, topic, "one")
    until(lambda: one.metric("agenteval_kafka_messages_total", outcome="taken") == 120, "read by one")
    assert rows(one) == {}
    one.kill()
    two = SpanWorker(tmp_path, kafka.address, topic, "two")
    three = SpanWorker(tmp_path, kafka.address, topic, "three")
    workers = [one, two, three]
    try:
        until(
            lambda: two.metric("agenteval_kafka_partitions") == three.metric("agenteval_kafka_partitions") == 2,
            "shared out",
        )
        until(lambda: two.metric("agenteval_turns_open") + three.metric("agenteval_turns_open") == 120, "read again")
        two.stop()
        until(lambda: three.metric("agenteval_turns_open") == 120, "all are the third's")
        assert rows(*workers) == {}
        produce(kafka, topic, rest)
        wanted = expected(messages, tmp_path, capsys)
        all_is_done(kafka, topic, wanted, *workers)
    finally:
        for worker in workers:
            worker.stop()
    assert rows(*workers) == wanted


def test_partitions_that_move_while_reading_pauses_are_read_again(
    kafka: Kafka, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    produce(kafka, topic, messages_of(200))
    engine = engine_from(load_config({"outlets": {"log_events": False, "prometheus": None}}, {}))
    options = "session.timeout.ms=6000&heartbeat.interval.ms=300"
    address = Address.read(f"kafka://{kafka.address}/{topic}?group={topic}&{options}")
    source = KafkaSource(engine, Feed(engine, engine.config.serve), address, Patience())
    behind = [True]
    monkeypatch.setattr(source, "_is_behind", lambda: behind[0] and source.rebalances["assigned"] > 0)
    source.start()
    strategy = {"partition.assignment.strategy": "range", "group.id": topic}
    other = kafka_client.Consumer({"bootstrap.servers": kafka.address, **strategy})
    try:
        until(lambda: source._paused, "reading pauses")
        other.subscribe([topic])
        until(lambda: other.consume(1, 0.2) is not None and len(other.assignment()) == 2, "two partitions have moved")
        other.close()
        until(lambda: source.rebalances["assigned"] >= 10, "and come back")  # 4, then 2, then 4
        behind[0] = False
        until(lambda: source.messages[topic, "taken"] >= 400, "all is read")
    finally:
        assert source.stop(120)
        engine.shutdown()


class Told(Patience):
    """Counts the seconds of reading, and lets turns wait only when told."""

    heard, runs = 0.0, False

    def passes(self, seconds: float) -> None:
        self.heard += seconds
        super().passes(seconds if self.runs else 0.0)


@pytest.mark.slow
def test_turns_do_not_age_while_their_partition_is_away(
    topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    """The roots have arrived, but their other spans are in a broker that can't be read."""
    messages = messages_of(60, together=10_000)
    behind = free_port()
    proxy = Proxy(behind)
    scores = tmp_path / "worker.jsonl"
    patience = Told()
    config = {"turn": {"decision_delay": "300ms"}, "outlets": {"log_events": False, "prometheus": None, "jsonl": str(scores)}}
    engine = engine_from(load_config(config, {}), waited=patience)
    address = Address.read(f"kafka://127.0.0.1:{proxy.port}/{topic}?group={topic}&session.timeout.ms=300000")
    source = KafkaSource(engine, Feed(engine, engine.config.serve), address, patience)
    monkeypatch.setattr("otel_agenteval.kafka.consumer._SILENT", 2.0)
    looks: list[bool] = []
    is_at_the_end = source._is_at_the_end
    monkeypatch.setattr(source, "_is_at_the_end", lambda: looks.append(is_at_the_end()) or looks[-1])
    with Kafka(tmp_path / "kafka", partitions=4, behind=behind, proxy=proxy.port) as broker:
        produce(broker, topic, messages[1::2])  # agents without their calls
        source.start()
        try:
            until(lambda: source.messages[topic, "taken"] == 60 and looks[-1:] == [True], "the roots are there")
            proxy.cut()
            cut = len(looks)
            produce(broker, topic, messages[0::2])
            until(lambda: len(looks) >= cut + 2, "a look that began after the cut")
            heard, seen = patience.heard, len(looks)
            until(lambda: len(looks) >= seen + 3, "it looks again and again")
            assert heard > 0.0, "turns age while the broker is there"
            assert (patience.heard, looks[seen:]) == (heard, [False] * len(looks[seen:]))
            until(lambda: "no answer" in source.trouble, "health names the broker")
            proxy.heal()
            until(lambda: source.messages[topic, "taken"] == 120, "the rest is there")
            assert source.trouble == ""
            patience.runs = True
            wanted = expected(messages, tmp_path, capsys)
            until(lambda: len(written(scores)) >= len(wanted), "all scores")
        finally:
            assert source.stop(120)
            engine.shutdown()
            proxy.close()
    assert written(scores) == wanted


def test_a_broker_behind_tls_and_an_account(kafka: Kafka, authority: Authority, topic: str, tmp_path: Path, capsys: Any) -> None:
    """Spans as protobuf and as JSON give the scores of ``eval``, but only with the right password."""
    messages = messages_of(20)
    produce(kafka, topic, messages, lambda i: "json" if i % 2 else "proto")
    options = f"&ssl.ca.location={authority.file}&sasl.mechanism=SCRAM-SHA-512"
    wrong = SpanWorker(tmp_path, f"reader:wr0ng-one@{kafka.secure}", topic, "wrong", options, "kafkas")
    worker = SpanWorker(tmp_path, f"reader:${{env:KAFKA_PASSWORD}}@{kafka.secure}", topic, "right", options, "kafkas")
    try:
        wanted = expected(messages, tmp_path, capsys)
        all_is_done(kafka, topic, wanted, worker)
        until(lambda: worker.metric("agenteval_kafka_lag") == 0, "no lag")
        until(lambda: "Authentication failed" in wrong.text(), "the log tells")
    finally:
        worker.stop()
        wrong.stop()
    assert rows(worker) == wanted
    assert rows(wrong) == {}
    assert PASSWORD not in worker.text()
    assert "wr0ng-one" not in wrong.text()


def test_broker_that_hangs_up_is_named_once_a_minute(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as broker:
        worker = SpanWorker(tmp_path, f"127.0.0.1:{broker.getsockname()[1]}", "spans", "w")
        try:
            for _ in range(8):
                broker.accept()[0].close()
            assert 0 < worker.text().count(" FAIL ") <= 4  # two kinds, of the consumer and of the producer
        finally:
            worker.stop()


@pytest.mark.parametrize("option", ["ssl.ca.location=/no/such/file.pem", "no.such.option=1"])
def test_an_option_that_the_client_does_not_take_ends_the_worker(option: str, tmp_path: Path, capsys: Any) -> None:
    config = tmp_path / "agenteval.yaml"
    config.write_text("outlets: {log_events: false}")
    url = f"kafkas://reader:s3cret@127.0.0.1:9/spans?{option}"
    assert main(["worker", "--config", str(config), "--metrics", "off", "--spans", url]) == 2
    said = capsys.readouterr().err
    assert "worker --spans" in said
    assert "s3cret" not in said


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("redis://h/t?sasl.password=s3cret", "kafka://"),
        ("kafka://user:s3cret@/", "kafka://"),
        ("kafka://user:s3cret@[::1/t", "kafka://"),
        ("kafka://user:${env:NO_SUCH_VARIABLE}@h/t", "NO_SUCH_VARIABLE"),
        ("kafka://h:9092/t?gruop=x", "gruop"),
        ("kafka://h:9092/t?commit=soon", "commit"),
    ],
)
def test_a_wrong_address_is_told_without_its_password(url: str, named: str) -> None:
    with pytest.raises(ConfigError, match=named) as raised:
        Address.read(url)
    assert "s3cret" not in str(raised.value)


def test_an_address_has_accounts_topics_and_options_of_the_client() -> None:
    found = Address.read("kafkas://judge:p%40ss@a:1,b:2/spans,more?group=g&logs=records&sasl.mechanism=SCRAM-SHA-512&commit=5")
    assert found.topics == {"spans": "traces", "more": "traces", "records": "logs"}
    assert (found.group, found.every) == ("g", 5.0)
    assert found.options == {
        "bootstrap.servers": "a:1,b:2", "sasl.username": "judge", "sasl.password": "p@ss", "sasl.mechanism": "SCRAM-SHA-512",
        "security.protocol": "SASL_SSL",
    }  # fmt: skip
    assert "p@ss" not in repr(found)
