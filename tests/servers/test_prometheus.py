"""A real Prometheus scrapes what we serve: series, exemplars, and an alert from end to end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import otel_agenteval as oa
from otel_agenteval.cli.demo import SCENES
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from tests.support.collector import Agent
from tests.support.prometheus import Alertmanager, Prometheus, Webhook
from tests.support.receiver import GrpcReceiver
from tests.support.servers import until
from tests.support.sidecar import Sidecar

WELL = next(scene for scene in SCENES if scene.title == "all is well")
CIRCLES = next(scene for scene in SCENES if "circles" in scene.title)
METRIC = "code_repeated_tool_calls"

RULES = Path(__file__).parent.parent.parent / "deploy" / "prometheus" / "rules"
FASTER = (
    (r"\[(\d+)m\]", r"[\1s]"),
    (r"\[(\d+)h\]", r"[\1m]"),
    (r"offset (\d+)h", r"offset \1m"),
    (r"for: (\d+)m", r"for: \1s"),
    (r"interval: (\d+)m", r"interval: \1s"),
    (r"interval: 30s", "interval: 500ms"),
)
"""What makes of an hour a minute, so that the shipped rules fire within a test."""


def hastened(folder: Path) -> list[Path]:
    """The shipped rules with time sixty times as fast."""
    files = []
    for path in sorted(RULES.glob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        for slow, fast in FASTER:
            text = re.sub(slow, fast, text)
        files.append(folder / path.name)
        files[-1].write_text(text, encoding="utf-8")
    assert files
    return files


class InProcess:
    """A scripted agent that is evaluated in its own process, and serves the metrics."""

    def __init__(self, backend: GrpcReceiver) -> None:
        self.agent = Agent(backend.address, "in-process")
        self._processor = oa.AgentEvalSpanProcessor(
            {"outlets": {"log_events": False, "span_events": "off", "prometheus": {"port": 0}}}
        )
        self.agent.provider.add_span_processor(self._processor)
        (outlet,) = [each for each in self._processor.engine.outlets if isinstance(each, PrometheusOutlet)]
        self.metrics = f"127.0.0.1:{outlet.port}"

    def close(self) -> None:
        self.agent.close()


class Behind:
    """A scripted agent that exports to a sidecar, which serves the metrics."""

    def __init__(self, backend: GrpcReceiver, folder: Path) -> None:
        self._sidecar = Sidecar(folder, {"turn": {"decision_delay": "200ms"}})
        self.agent = Agent(self._sidecar.grpc, "behind")
        exporter = OTLPSpanExporter(endpoint=backend.address, insecure=True)
        self.agent.provider.add_span_processor(SimpleSpanProcessor(exporter))
        self.metrics = self._sidecar.metrics

    def close(self) -> None:
        self.agent.close()
        self._sidecar.stop()


@pytest.fixture(params=["in the process", "sidecar"])
def app(request: pytest.FixtureRequest, backend: GrpcReceiver, tmp_path: Path) -> Iterator[InProcess | Behind]:
    app = InProcess(backend) if request.param == "in the process" else Behind(backend, tmp_path)
    yield app
    app.close()


def test_prometheus_has_the_series_and_exemplars_lead_to_the_traces(
    app: InProcess | Behind, backend: GrpcReceiver, tmp_path: Path
) -> None:
    with Prometheus(tmp_path, {"agenteval": app.metrics}) as prometheus:
        app.agent.play()
        until(lambda: prometheus.value("sum(agenteval_turns_total)") == len(SCENES), "every turn is counted")
        failed = f'sum(agenteval_results_total{{metric="{METRIC}", outcome="fail"}})'
        until(lambda: prometheus.value(failed) == 1, "the one bad turn")
        found = until(lambda: prometheus.exemplars(f'agenteval_score_bucket{{metric="{METRIC}"}}'), "exemplars")
        until(lambda: len(backend.spans("invoke_agent trip-planner")) == len(SCENES), "the traces")
    roots = {span.trace_id.hex(): span for span in backend.spans("invoke_agent trip-planner")}
    assert {each["labels"]["trace_id"] for each in found} <= set(roots)
    assert {each["labels"]["span_id"] for each in found} <= {root.span_id.hex() for root in roots.values()}
    (worst,) = [each["labels"]["trace_id"] for each in found if float(each["value"]) == 0]
    assert [span.trace_id.hex() for span in backend.spans() if span.name == "execute_tool search_trains"].count(worst) == 4


@pytest.mark.slow
@pytest.mark.parametrize("app", ["sidecar"], indirect=True)
def test_an_alert_fires_when_an_agent_turns_bad_and_resolves(app: Behind, tmp_path: Path) -> None:
    webhook = Webhook()
    with (
        Alertmanager(tmp_path, webhook.url) as alertmanager,
        Prometheus(tmp_path, {"agenteval": app.metrics}, hastened(tmp_path), alertmanager.address) as prometheus,
    ):
        app.agent.play(12, WELL)
        until(lambda: prometheus.value("sum(agenteval_turns_total)") == 12, "good turns are scraped")
        assert not webhook.alerts

        def alerts(status: str) -> list[dict[str, Any]]:
            return [each for each in webhook.of("AgentEvalQualityFallsFast", status) if each["labels"]["metric"] == METRIC]

        until(lambda: app.agent.play(1, CIRCLES) or alerts("firing"), "the alert", 60, every=0.2)
        (alert,) = alerts("firing")
        assert alert["labels"]["agent"] == "trip-planner"
        assert METRIC in alert["annotations"]["summary"]
        until(lambda: app.agent.play(1, WELL) or alerts("resolved"), "its end", 60, every=0.2)
    webhook.close()
