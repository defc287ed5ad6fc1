"""A value that no database or wire format can store affects at most its own turn.

If a store is read-only for some time, everything waits until it can be stored, as in any outage.
"""

from __future__ import annotations

import itertools
import json
import logging
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest

from otel_agenteval.config.loader import load_config
from otel_agenteval.config.outlets import StoreOptions
from otel_agenteval.core import semconv
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.outlets.accounting import account
from otel_agenteval.outlets.base import MemoryOutlet
from otel_agenteval.outlets.fan_out import FanOut
from otel_agenteval.outlets.jsonl import JsonLinesOutlet
from otel_agenteval.outlets.otlp.outlet import OtlpOutlet
from otel_agenteval.outlets.otlp_metrics import OtlpMetricsOutlet
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.outlets.store.postgres import Connection, is_address
from otel_agenteval.outlets.store.sqlite import SCHEMA
from otel_agenteval.outlets.store.views import Filter, Summer, Views
from otel_agenteval.statistics.change import Found
from otel_agenteval.statistics.changes import Change
from tests.outlets.factories import SPAN_ID, scored_turn
from tests.outlets.test_store import Kept, score
from tests.support.clock import FakeClock
from tests.support.postgres import Anywhere, PostgresServer
from tests.support.receiver import GrpcReceiver

GOOD = 15


@pytest.fixture
def kept(anywhere: Anywhere, clock: FakeClock) -> Iterator[Kept]:
    """Return a store in a file, and in PostgreSQL."""
    kept = Kept(anywhere(), clock, content=True, attributes=["gen_ai.prompt.version"])
    yield kept
    kept.outlet.close()


def turn_of(number: int, **turn: Any) -> ScoredTurn:
    """Return a turn with two scores."""
    scores = score(2 * number), score(2 * number + 1, "code_b")
    scored = scored_turn(*scores, turn={"turn_id": f"{number:032x}-{SPAN_ID:016x}"}, root=Root(number + 1, SPAN_ID))
    for name, value in turn.items():
        setattr(scored.turn, name, value)  # past the checks that keep such values out of turns
    return scored


def batch_with(*poisoned: ScoredTurn) -> list[ScoredTurn]:
    """Return valid turns with other turns among them."""
    good = [turn_of(number) for number in range(GOOD)]
    for place, one in enumerate(poisoned):
        good.insert(3 + 7 * place, one)
    return good


def stored(kept: Kept) -> dict[str, dict[str, Any]]:
    with kept.reader() as reader:
        return {turn["turn_id"]: turn for turn in reader.turns(limit=1_000)}


def scores_stored(kept: Kept) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in kept.rows():
        found[row["turn_id"]] = found.get(row["turn_id"], 0) + 1
    return found


@pytest.mark.parametrize(
    ("fields", "column"),
    [
        ({"agent": {"a": 1}}, "agent"),
        ({"duration_s": 10**400}, "duration_s"),
        ({"duration_s": "long"}, None),  # a text in a column of numbers
        ({"complete": 2**64}, "complete"),
    ],
    ids=str,
)
def test_value_that_cannot_be_held_is_left_out(kept: Kept, fields: dict[str, Any], column: str | None, caplog: Any) -> None:
    caplog.set_level(logging.WARNING)
    kept.outlet.emit(batch_with(turn_of(1_000, **fields), turn_of(1_001, **fields)))
    found = stored(kept)
    assert len(found) == GOOD + 2
    assert set(scores_stored(kept).values()) == {2}
    assert kept.outcomes() == {"sent": 2 * (GOOD + 2)}
    assert kept.outlet.records.waiting == 0
    if column is not None:
        assert {found[turn_of(number).turn.turn_id][column] for number in (1_000, 1_001)} == {None}
        assert kept.telemetry.read(semconv.EMIT_ERRORS).values["store", "not_storable"] == 2
        (said,) = [record.getMessage() for record in caplog.records if "can't store" in record.getMessage()]
        assert column in said
        assert str(fields[column])[:20] not in said


def test_name_that_is_too_long_for_an_index_is_left_out(kept: Kept) -> None:
    name = "".join(chr(0x4E00 + number * 7919 % 20_000) for number in range(100_000))  # random enough not to be compressed
    kept.outlet.emit(batch_with(turn_of(1_000, agent=name)))
    assert len(stored(kept)) == GOOD + 1
    assert kept.outlet.records.waiting == 0
    expected = None if is_address(str(kept.path)) else name
    assert stored(kept)[turn_of(1_000).turn.turn_id]["agent"] == expected


def test_score_that_cannot_be_held_leaves_the_others(kept: Kept) -> None:
    poisoned = turn_of(1_000)
    poisoned.scores = [score(7_000), score(7_001, "code_c", value=10**400), score(7_002, 2**70)]  # type: ignore[arg-type]
    kept.outlet.emit(batch_with(poisoned))
    assert scores_stored(kept)[poisoned.turn.turn_id] >= 2
    assert sum(scores_stored(kept).values()) >= 2 * GOOD + 2
    assert kept.outlet.records.waiting == 0


def test_many_poisoned_turns_leave_the_good_ones(kept: Kept) -> None:
    poisoned = [
        turn_of(1_000 + number, revision=2**64) if number % 2 else turn_of(1_000 + number, agent={}) for number in range(12)
    ]
    kept.outlet.emit([one for pair in itertools.zip_longest(batch_with(), poisoned) for one in pair if one is not None])
    assert len(stored(kept)) == GOOD + 6
    assert kept.outcomes() == {"sent": 2 * (GOOD + 6), "not_storable": 12}
    assert kept.outlet.records.waiting == 0


def test_turn_of_which_no_row_can_be_made_is_counted(kept: Kept) -> None:
    class Broken(list[Any]):
        def __iter__(self) -> Any:
            raise RuntimeError("a fault in reading")

    with pytest.raises(RuntimeError):
        kept.outlet.emit(batch_with(turn_of(1_000, tool_calls=Broken([1]))))
    assert len(stored(kept)) == GOOD
    assert kept.outcomes() == {"sent": 2 * GOOD, "fault": 2}
    assert kept.outlet.records.waiting == 0


def test_outcome_that_cannot_be_held_leaves_the_others(kept: Kept) -> None:
    kept.outlet.emit([turn_of(1)])
    turn_id = turn_of(1).turn.turn_id
    for metric, outcome in (("llm_a", "waiting"), ("llm_b", {"no": "text"}), ("llm_c", "waiting")):
        kept.outlet.record_outcome(turn_id, metric, outcome)  # type: ignore[arg-type]
    assert kept.outlet.flush(1)
    with kept.reader() as reader:
        why = reader.why(turn_id)
    assert why is not None
    assert {"llm_a", "llm_c"} <= why.keys()
    assert "llm_b" not in why


def test_outage_is_not_taken_for_a_poisoned_row(kept: Kept) -> None:
    """The database fails before the invalid row is found. Everything waits, and the row is found after the outage."""
    kept.outlet.emit([turn_of(900)])
    store = kept.outlet._store
    file, transaction = store._file, store._file.transaction
    left = [3]

    def sometimes() -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise ConnectionError("gone")
        return transaction()

    file.transaction = sometimes
    with pytest.raises(ConnectionError):
        kept.outlet.emit(batch_with(turn_of(1_000, revision=2**64)))
    waiting = kept.outlet.records.waiting
    assert waiting > 0
    assert "not_storable" not in kept.outcomes()
    file.transaction = transaction
    assert kept.outlet.flush(1)
    assert len(stored(kept)) == GOOD + 1
    assert kept.outcomes() == {"sent": 2 * (GOOD + 1), "not_storable": 2}


def test_change_waits_for_the_database(kept: Kept) -> None:
    store = kept.outlet._store
    file, transaction = store._file, store._file.transaction

    def gone() -> Any:
        raise ConnectionError("gone")

    file.transaction = gone
    with pytest.raises(ConnectionError):
        kept.outlet.announce(
            Change("code_b", "travel", "worse", Found("bets", 0.9, 0.5, (-0.5, -0.3), 1.0, 50.0), 2.0), Root(1, 2)
        )
    file.transaction = transaction
    assert kept.outlet.flush(1)
    with kept.reader() as reader:
        assert [change["verdict"] for change in reader.changes()] == ["worse"]


def test_sums_of_hours_hold_the_largest_counts(kept: Kept, clock: FakeClock) -> None:
    most = 2**63 - 1
    usage = {"input_tokens": most, "output_tokens": most}
    for number in range(6):
        kept.outlet.emit([scored_turn(score(number), turn={"turn_id": f"{number:032x}-{1:016x}", "usage": usage})])
        clock.advance(12 * 3_600)
    clock.advance(3 * 86_400)
    for summed in (False, True):
        if summed:
            summer = Summer(str(kept.path), lambda: clock.time_ns() / 1e9)
            while summer.sum_one():
                pass
            summer.close()
        with Views(str(kept.path)) as views:
            (cell,) = [cell for cell in views.cells(Filter()) if cell.metric == ""]
            assert cell.turns == 6
            assert cell.tokens >= most


# --- other outlets


def broken() -> ScoredTurn:
    """Return a turn that can't be rendered."""
    scored = turn_of(1_000)
    scored.root = None  # type: ignore[assignment]
    return scored


def test_json_lines_are_written_without_a_broken_turn(tmp_path: Path) -> None:
    telemetry = Telemetry()
    outlet = JsonLinesOutlet(tmp_path / "lines", telemetry)
    with pytest.raises(AttributeError):
        outlet.emit(batch_with(broken()))
    lines = [json.loads(line) for line in (tmp_path / "lines").read_text().splitlines()]
    assert len({line["turn_id"] for line in lines}) == GOOD
    assert outlet.records.to_dict() == {"made": 2 * GOOD + 2, "delivered": 2 * GOOD, "waiting": 0, "failed": {"fault": 2}}
    outlet.close()


def test_otlp_records_are_sent_without_a_broken_turn() -> None:
    receiver = GrpcReceiver()
    config = load_config({"outlets": {"otlp": {"endpoint": f"http://{receiver.address}", "metrics_interval": 0}}}, {})
    assert config.outlets.otlp is not None
    outlet = OtlpOutlet(config.outlets.otlp, Telemetry(), lambda: "engine-1", "0.1.0")
    with pytest.raises(AttributeError):
        outlet.emit(batch_with(broken()))
    assert outlet.flush(60)
    assert len(receiver.scores()) == 2 * GOOD
    assert outlet.records.to_dict() == {"made": 2 * GOOD + 2, "delivered": 2 * GOOD, "waiting": 0, "failed": {"fault": 2}}
    outlet.close()
    receiver.close()


def test_every_outlet_gets_a_batch_without_a_broken_turn() -> None:
    kept: list[ScoredTurn] = []
    fan_out = FanOut([MemoryOutlet(kept)], Telemetry())
    fan_out.emit(batch_with(broken()))
    assert len(kept) == GOOD
    assert fan_out.errors == {("pipeline", "AttributeError"): 1}


def test_counters_beyond_64_bits_can_be_exported() -> None:
    telemetry, reader, registry = Telemetry(), InMemoryMetricReader(), CollectorRegistry()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    outlets = OtlpMetricsOutlet(provider, telemetry, "0.1.0"), PrometheusOutlet(telemetry, registry=registry)
    for number in range(3):
        usage = {"input_tokens": 2**63 - 1, "output_tokens": 7}
        account(telemetry, scored_turn(score(number), turn={"usage": usage}))
    data = reader.get_metrics_data()
    assert data is not None
    points = {
        point.attributes[3].value.string_value: point
        for metric in encode_metrics(data).resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "agenteval.turn.tokens"
        for point in metric.sum.data_points
    }
    assert points["input"].as_double == pytest.approx(3 * 2.0**63)
    assert points["output"].as_int == 21
    assert "agenteval_turn_tokens_total" in generate_latest(registry).decode()
    for outlet in outlets:
        outlet.close()
    provider.shutdown()


# --- outages


@contextmanager
def read_only(address: str) -> Iterator[None]:
    """Simulate a failover: connections break, and new connections are read-only."""
    name = address.rpartition("/")[2]
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        admin.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        )
        try:
            yield
        finally:
            admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


def emit_in_vain(kept: Kept, numbers: range) -> None:
    for number in numbers:
        with pytest.raises((OSError, sqlite3.Error)):
            kept.outlet.emit([turn_of(number)])


def check_stored(kept: Kept, turns: int) -> None:
    assert kept.outlet.flush(1)
    assert scores_stored(kept) == {turn_of(number).turn.turn_id: 2 for number in range(turns)}
    assert kept.outcomes() == {"sent": 2 * turns}
    kept.outlet.close()


def test_read_only_database_delays_turns(postgres: PostgresServer, clock: FakeClock) -> None:
    address = postgres.database()
    kept = Kept(address, clock)
    kept.outlet.emit([turn_of(0)])
    with read_only(address):
        emit_in_vain(kept, range(1, 20))
    check_stored(kept, 20)


def test_read_only_file_delays_turns(tmp_path: Path, clock: FakeClock) -> None:
    kept = Kept(tmp_path / "scores.db", clock)
    kept.outlet.emit([turn_of(0)])
    kept.outlet._store._file._db.execute("PRAGMA query_only = on")  # as a connection that was opened while the file was read-only
    emit_in_vain(kept, range(1, 2))
    check_stored(kept, 2)


def test_outage_of_many_default_turns_fits_in_memory(tmp_path: Path, clock: FakeClock) -> None:
    """300 turns with a score of each default metric wait for the store in a tenth of the default queue, without a journal."""
    folder = tmp_path / "later"
    kept = Kept(folder / "scores.db", clock, queue_bytes=StoreOptions.queue_bytes // 10)
    for batch in range(3):
        turns = []
        for number in range(batch * 100, batch * 100 + 100):
            scores = [score(number * 25 + place, f"code_{place}") for place in range(25)]
            turns.append(scored_turn(*scores, turn={"turn_id": f"{number:032x}-1"}))
        with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
            kept.outlet.emit(turns)
    folder.mkdir()
    assert kept.outlet.flush(1)
    assert kept.outcomes() == {"sent": 300 * 25}
    kept.outlet.close()


def test_store_of_a_newer_version_delays_turns(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    kept.outlet.emit([turn_of(0)])
    path = str(kept.path)
    change = "UPDATE version SET number = {}" if is_address(path) else "PRAGMA user_version = {}"

    def set_version(number: int) -> None:
        kept.outlet._store._file.close()
        with closing(Connection(path, read_only=False) if is_address(path) else sqlite3.connect(path)) as db:
            db.execute(change.format(number))

    set_version(SCHEMA.version + 1)
    FanOut([kept.outlet], kept.telemetry).emit([turn_of(1)])
    assert "upgrade otel-agenteval" in caplog.text
    set_version(SCHEMA.version)
    check_stored(kept, 2)


def test_attempt_that_fails_slowly_is_not_made_for_every_turn(tmp_path: Path, clock: FakeClock) -> None:
    kept = Kept(tmp_path / "scores.db", clock)
    file, transaction = kept.outlet._store._file, kept.outlet._store._file.transaction
    attempts = []

    def away() -> None:
        attempts.append(1)
        clock.advance(5)
        raise ConnectionError

    file.transaction = away
    emit_in_vain(kept, range(10))
    assert len(attempts) == 1
    clock.advance(11)
    emit_in_vain(kept, range(10, 20))
    assert len(attempts) == 2
    kept.outlet.begin_exit()
    assert not kept.outlet.flush(4)
    assert len(attempts) == 2, "at exit, there's no time for an attempt that takes 5 s"
    file.transaction = transaction
    assert kept.outlet.flush(6)
    check_stored(kept, 20)
