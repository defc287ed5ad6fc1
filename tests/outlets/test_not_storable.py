"""One turn with a value that a database or a wire format cannot hold costs that value, or at most that turn, and no other."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from prometheus_client import CollectorRegistry, generate_latest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import Root, ScoredTurn
from otel_agenteval.outlets.accounting import account
from otel_agenteval.outlets.base import MemoryOutlet
from otel_agenteval.outlets.fan_out import FanOut
from otel_agenteval.outlets.jsonl import JsonLinesOutlet
from otel_agenteval.outlets.log_events import LogEventOutlet
from otel_agenteval.outlets.otlp.metrics import MetricsEncoder
from otel_agenteval.outlets.otlp.outlet import OtlpOutlet
from otel_agenteval.outlets.otlp_metrics import OtlpMetricsOutlet
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.outlets.store.postgres import is_address
from otel_agenteval.outlets.store.views import Filter, Summer, Views
from otel_agenteval.statistics.change import Found
from otel_agenteval.statistics.changes import Change
from tests.outlets.factories import SPAN_ID, scored_turn
from tests.outlets.test_store import Kept, score
from tests.support.clock import FakeClock
from tests.support.postgres import Anywhere
from tests.support.receiver import GrpcReceiver

GOOD = 40


@pytest.fixture
def kept(anywhere: Anywhere, clock: FakeClock) -> Iterator[Kept]:
    """In a file, and in PostgreSQL."""
    kept = Kept(anywhere(), clock, content=True, attributes=["gen_ai.prompt.version"])
    yield kept
    kept.outlet.close()


def turn_of(number: int, **turn: Any) -> ScoredTurn:
    """A turn with two scores."""
    scored = scored_turn(
        score(2 * number), score(2 * number + 1, "code_b"), turn={"turn_id": f"{number:032x}-{SPAN_ID:016x}"}, root=Root(number + 1, SPAN_ID)
    )  # fmt: skip
    for name, value in turn.items():
        setattr(scored.turn, name, value)  # past the checks that keep such values out of turns
    return scored


def batch_with(*poisoned: ScoredTurn) -> list[ScoredTurn]:
    """Good turns with others among them."""
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


POISON = [
    pytest.param({"agent": {"a": 1}}, "agent", id="an object"),
    pytest.param({"duration_s": 10**400}, "duration_s", id="a number that no float is"),
    pytest.param({"duration_s": "long"}, None, id="a text in a column of numbers"),
    pytest.param({"complete": 2**64}, "complete", id="an integer of 65 bits"),
]


@pytest.mark.parametrize(("fields", "column"), POISON)
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


def test_half_of_a_surrogate_pair_is_mended(kept: Kept) -> None:
    kept.outlet.emit(batch_with(turn_of(1_000, agent="a\ud800b")))
    assert stored(kept)[turn_of(1_000).turn.turn_id]["agent"] == "a\ufffdb"
    assert len(stored(kept)) == GOOD + 1


def test_turn_without_a_required_value_is_dropped_and_counted(kept: Kept, caplog: Any) -> None:
    kept.outlet.emit(batch_with(turn_of(1_000, revision=2**64)))
    assert len(stored(kept)) == GOOD
    assert kept.outcomes() == {"sent": 2 * GOOD, "not_storable": 2}
    assert kept.outlet.records.waiting == 0
    kept.outlet.emit([turn_of(1_001)])
    assert len(stored(kept)) == GOOD + 1


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
        kept.outlet.note_outcome(turn_id, metric, outcome)  # type: ignore[arg-type]
    assert kept.outlet.flush(1)
    with kept.reader() as reader:
        why = reader.why(turn_id)
    assert why is not None
    assert {"llm_a", "llm_c"} <= why.keys()
    assert "llm_b" not in why


def test_outage_is_not_taken_for_a_poisoned_row(kept: Kept) -> None:
    """The database is gone before the row with the fault is found: everything waits, and is told apart once it is back."""
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
    for number in range(60):
        usage = {"input_tokens": most, "output_tokens": most}
        kept.outlet.emit([scored_turn(score(number), turn={"turn_id": f"{number:032x}-{1:016x}", "usage": usage})])
        clock.advance(1_800)
    clock.advance(3 * 86_400)
    for summed in (False, True):
        if summed:
            summer = Summer(str(kept.path), lambda: clock.time_ns() / 1e9)
            while summer.sum_one():
                pass
            summer.close()
        with Views(str(kept.path)) as views:
            (cell,) = [cell for cell in views.cells(Filter()) if cell.metric == ""]
            assert cell.turns == 60
            assert cell.tokens >= most


# --- other outlets


def broken() -> ScoredTurn:
    """A turn that nothing can be made of."""
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
    assert outlet.flush(20)
    assert len(receiver.scores()) == 2 * GOOD
    assert outlet.records.to_dict() == {"made": 2 * GOOD + 2, "delivered": 2 * GOOD, "waiting": 0, "failed": {"fault": 2}}
    outlet.close()
    receiver.close()


def test_log_events_are_written_without_a_broken_turn() -> None:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider(shutdown_on_exit=False)
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    with pytest.raises(AttributeError):
        LogEventOutlet(provider, "engine-1", "0.1.0").emit(batch_with(broken()))
    assert len(exporter.get_finished_logs()) == 2 * GOOD
    provider.shutdown()


def test_every_outlet_gets_a_batch_without_a_broken_turn() -> None:
    kept: list[ScoredTurn] = []
    fan_out = FanOut([MemoryOutlet(kept)], Telemetry())
    fan_out.emit(batch_with(broken()))
    assert len(kept) == GOOD
    assert fan_out.errors == {("pipeline", "AttributeError"): 1}


def test_counters_beyond_64_bits_can_be_exported() -> None:
    telemetry, reader = Telemetry(), InMemoryMetricReader()
    provider = MeterProvider([reader], shutdown_on_exit=False)
    outlet = OtlpMetricsOutlet(provider, telemetry, "0.1.0")
    usage = {"input_tokens": 2**63 - 1, "output_tokens": 7}
    for number in range(3):
        account(telemetry, scored_turn(score(number), turn={"usage": usage}))
    data = reader.get_metrics_data()
    assert data is not None
    sent = encode_metrics(data)
    points = {
        point.attributes[3].value.string_value: point
        for metric in sent.resource_metrics[0].scope_metrics[0].metrics
        if metric.name == "agenteval.turn.tokens"
        for point in metric.sum.data_points
    }
    assert points["input"].as_double == pytest.approx(3 * 2.0**63)
    assert points["output"].as_int == 21
    assert MetricsEncoder(telemetry, "0.1.0", 0).request(1, "engine-1")
    registry = CollectorRegistry()
    shown = PrometheusOutlet(telemetry, registry=registry)
    assert "agenteval_turn_tokens_total" in generate_latest(registry).decode()
    shown.close()
    outlet.close()
    provider.shutdown()
