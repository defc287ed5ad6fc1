"""What force_flush promises: everything that closed is handed over, or False."""

from __future__ import annotations

import threading
import time

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter, LogRecordExporter

from otel_agenteval import AgentEvalSpanProcessor
from otel_agenteval.outlets.base import Outlet
from tests.support.clock import FakeClock
from tests.support.rig import Rig


class BlockingOutlet(Outlet):
    """An outlet that waits until it is let go."""

    name = "blocking"

    def __init__(self):
        self.go = threading.Event()
        self.batches = []

    def emit(self, batch):
        self.go.wait(60)
        self.batches.append(batch)

    def flush(self, timeout):
        return self.go.wait(timeout)

    def close(self):
        self.go.set()


@pytest.fixture
def blocked():
    outlet = BlockingOutlet()
    with Rig({"exit_timeout": "1s"}) as rig:
        rig.engine.outlets.add(outlet)
        yield rig, outlet
        outlet.go.set()


def test_after_a_flush_the_closed_turns_are_in_the_outlets():
    with Rig() as rig:
        rig.run()
        assert rig.processor.force_flush()
        assert len(rig.kept) == 1
        assert rig.engine.worker.bytes == 0


def test_a_flush_does_not_close_open_turns():
    with Rig() as rig:
        with rig.agent():
            rig.chat("hello", "Hi.")
            assert rig.processor.force_flush()
            assert len(rig.kept) == 0
            assert rig.engine.assembler.open_turns == 1
        assert rig.turn().close_reason == "root_ended"


def test_a_flush_closes_what_is_due():
    clock = FakeClock()
    with Rig(clock=clock) as rig:
        with rig.agent():
            rig.start_chat("hello")
        clock.advance(5)
        assert rig.processor.force_flush()
        assert len(rig.kept) == 1


def test_a_flush_reaches_the_log_exporter_behind_a_batch():
    exporter = InMemoryLogRecordExporter()
    with Rig() as rig:
        rig.logger_provider.add_log_record_processor(BatchLogRecordProcessor(exporter, schedule_delay_millis=3_600_000))
        rig.run()
        assert rig.processor.force_flush()
        assert len(exporter.get_finished_logs()) == len(rig.log_events()) > 10


def test_the_tracer_provider_flushes_us_too():
    with Rig() as rig:
        rig.run()
        assert rig.provider.force_flush()
        assert len(rig.kept) == 1


def test_a_flush_is_false_while_an_outlet_blocks(blocked):
    rig, _ = blocked
    rig.run()
    assert rig.processor.force_flush(50) is False


def test_a_flush_that_was_false_is_true_once_the_outlet_goes_on(blocked):
    rig, outlet = blocked
    rig.run()
    rig.processor.force_flush(50)
    outlet.go.set()
    assert rig.processor.force_flush() is True
    assert len(outlet.batches) == 1


def test_a_flush_waits_no_longer_than_it_may(blocked):
    rig, _ = blocked
    rig.run()
    before = time.monotonic()
    rig.processor.force_flush(200)
    assert time.monotonic() - before < 5


def test_a_blocked_outlet_does_not_hold_up_the_agent(blocked):
    rig, outlet = blocked
    for _ in range(50):
        rig.run()
    assert len(rig.exported_names()) == 150
    assert outlet.batches == []


def test_a_queue_that_is_full_drops_and_counts():
    outlet = BlockingOutlet()
    with Rig({"queue": {"max_bytes": "8kB"}}) as rig:
        rig.engine.outlets.add(outlet)
        for _ in range(50):
            rig.run()
        outlet.go.set()
        evaluated = len(rig.turns())
        assert rig.count("agenteval.spans.dropped")[("queue_full",)] == 3 * (50 - evaluated) > 0


def test_a_flush_is_false_when_the_log_exporter_fails_to_flush():
    class Failing(LoggerProvider):
        def force_flush(self, timeout_millis=30_000):
            return False

    provider = Failing(shutdown_on_exit=False)
    processor = AgentEvalSpanProcessor({"outlets": {"prometheus": None}}, logger_provider=provider)
    with Rig(attach=False) as rig:
        rig.provider.add_span_processor(processor)
        rig.run()
        assert processor.force_flush() is False
    provider.shutdown()


def test_a_flush_from_many_threads_at_once_serves_them_all():
    with Rig() as rig:
        found = []

        def work():
            rig.run()
            found.append(rig.processor.force_flush())

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [True] * 8
        assert len(rig.kept) == 8


def test_shutdown_with_a_blocked_outlet_takes_no_longer_than_the_exit_timeout(blocked):
    rig, _ = blocked
    rig.run()
    before = time.monotonic()
    rig.processor.shutdown()
    assert time.monotonic() - before < 5


def test_a_log_exporter_that_raises_loses_its_records_only():
    class Broken(LogRecordExporter):
        def export(self, batch):
            raise OSError("no route")

        def shutdown(self):
            pass

        def force_flush(self, timeout_millis=30_000):
            return True

    with Rig() as rig:
        rig.logger_provider.add_log_record_processor(BatchLogRecordProcessor(Broken(), schedule_delay_millis=3_600_000))
        rig.run()
        rig.processor.force_flush()
        assert rig.log_events()
