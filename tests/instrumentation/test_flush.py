"""force_flush delivers everything that has closed, or returns False."""

from __future__ import annotations

import threading

import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter

from otel_agenteval import AgentEvalSpanProcessor
from otel_agenteval.outlets.base import Outlet
from tests.support.rig import Rig


class BlockingOutlet(Outlet):
    """An outlet that blocks until the test releases it."""

    name = "blocking"

    def __init__(self):
        self.go = threading.Event()
        self.batches = []
        self.waited_out = False

    def emit(self, batch):
        self.waited_out = not self.go.wait(60)
        self.batches.append(batch)

    def flush(self, timeout):
        return self.go.wait(timeout)

    def close(self):
        self.go.set()


@pytest.fixture
def blocked():
    outlet = BlockingOutlet()
    with Rig({"exit_timeout": "100ms"}) as rig:
        rig.engine.outlets.add(outlet)
        yield rig, outlet
        outlet.go.set()


@pytest.mark.parametrize("flushed", ["processor", "provider"])
def test_a_flush_hands_over_closed_turns_only(flushed):
    with Rig() as rig:
        rig.run()
        with rig.agent():
            rig.chat("hello", "Hi.")
            assert getattr(rig, flushed).force_flush()
            assert len(rig.kept) == 1
            assert rig.engine.assembler.open_turns == 1
            assert rig.engine.worker.queue.bytes == 0
        assert rig.turns()[1].close_reason == "root_ended"


def test_a_flush_reaches_the_log_exporter_behind_a_batch():
    exporter = InMemoryLogRecordExporter()
    with Rig() as rig:
        rig.logger_provider.add_log_record_processor(BatchLogRecordProcessor(exporter, schedule_delay_millis=3_600_000))
        rig.run()
        assert rig.processor.force_flush()
        assert len(exporter.get_finished_logs()) == len(rig.log_events()) > 10


def test_a_flush_is_false_until_the_outlet_goes_on(blocked):
    rig, outlet = blocked
    rig.run()
    assert rig.processor.force_flush(50) is False
    outlet.go.set()
    assert rig.processor.force_flush() is True
    assert len(outlet.batches) == 1


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


def test_shutdown_does_not_wait_for_a_blocked_outlet(blocked):
    rig, outlet = blocked
    rig.run()
    rig.processor.shutdown()
    assert not outlet.waited_out
