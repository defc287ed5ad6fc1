"""What leaves of every recording: records, spans and metrics of our own writer are those of the protobuf classes and of the SDK."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from otel_agenteval.config.loader import load_config
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.outlets.base import Outlet
from otel_agenteval.outlets.otlp.metrics import MetricsEncoder
from tests.outlets.test_otlp_bytes import NOW, VERSION, assert_same_records
from tests.support.otlp_compared import metrics_of
from tests.support.otlp_reference import SdkMetrics
from tests.support.recordings import files_in
from tests.support.streams import Stream

DATA = Path(__file__).parent.parent / "data"
ARCHIVES = sorted(str(file.relative_to(DATA)) for file in (*DATA.glob("*.tar.xz"), *DATA.glob("recordings/*.tar.xz")))
CONFIG = {
    "conversation": {"metrics": ["code_agent_reliability", "code_agent_consistency"]},
    "privacy": {"export_content": True},
    "outlets": {"span_events": "off", "log_events": "off", "prometheus": None},
}


class Compared(Outlet):
    """Encodes every batch in both ways."""

    name = "compared"

    def __init__(self, sdk: SdkMetrics) -> None:
        self._sdk = sdk
        self.compared = 0
        """Records so far."""

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """See :class:`Outlet`."""
        self._sdk.outlet.emit(batch)
        self.compared += assert_same_records(batch)


@pytest.mark.parametrize("archive", ARCHIVES)
def test_everything_that_leaves_of_a_recording_is_the_same(archive: str) -> None:
    stream = Stream()
    stream.engine.shutdown()
    engine = stream.engine = engine_from(load_config(CONFIG), clock=stream.clock)
    sdk = SdkMetrics(engine.telemetry, VERSION, "engine-1")
    outlet = Compared(sdk)
    engine.outlets.add(outlet)
    for name, text in sorted(files_in(archive).items()):
        if name.endswith(".jsonl"):
            lines = text.splitlines()
            (stream.send_logs if name.endswith(".logs.jsonl") else stream.send)(lines)
    stream.finish()
    assert engine.outlets.errors == {}
    expected = metrics_of(sdk.request())
    counted = engine.telemetry.read("agenteval.results").values.items()
    sent = sum(value for key, value in counted if key[2] in ("pass", "fail", "ok", "vacuous", "error"))
    assert outlet.compared >= sent > 0, "and revisions, which are counted once"
    request = ExportMetricsServiceRequest.FromString(MetricsEncoder(engine.telemetry, VERSION, NOW).request(NOW + 1, "engine-1"))
    assert metrics_of(request) == expected
    engine.shutdown()
    sdk.close()
