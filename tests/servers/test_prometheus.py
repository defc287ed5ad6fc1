"""A real Prometheus scrapes what we serve: series, exemplars, and an alert from end to end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.demo import SCENES
from otel_agenteval.emit.prometheus import PrometheusOutlet
from tests.support.collector import Agent
from tests.support.prometheus import Alertmanager, Prometheus, Webhook
from tests.support.receiver import GrpcReceiver
from tests.support.servers import until

WELL = next(scene for scene in SCENES if scene.title == "all is well")
CIRCLES = next(scene for scene in SCENES if "circles" in scene.title)
METRIC = "code_repeated_tool_calls"

RULE = f"""
groups:
  - name: test
    rules:
      - alert: AgentTurnsBad
        expr: >-
          sum by (agent) (rate(agenteval_results_total{{metric="{METRIC}", outcome="fail"}}[4s]))
          / sum by (agent) (rate(agenteval_results_total{{metric="{METRIC}", outcome=~"pass|fail"}}[4s])) > 0.5
        for: 1s
"""


class InProcess:
    """A scripted agent that is evaluated in its own process, and serves the metrics."""

    def __init__(self, backend: GrpcReceiver) -> None:
        self.agent = Agent(backend.address, "in-process")
        self._processor = oa.AgentEvalSpanProcessor(
            {"outlets": {"log_events": False, "span_events": "off", "prometheus": {"port": 0}}}
        )
        self.agent.provider.add_span_processor(self._processor)
        (outlet,) = [each for each in self._processor.engine.pipeline.outlets if isinstance(each, PrometheusOutlet)]
        self.metrics = f"127.0.0.1:{outlet.port}"

    def close(self) -> None:
        self.agent.close()


@pytest.fixture
def app(backend: GrpcReceiver) -> Iterator[InProcess]:
    app = InProcess(backend)
    yield app
    app.close()


def test_prometheus_has_the_series_and_exemplars_lead_to_the_traces(
    app: InProcess, backend: GrpcReceiver, tmp_path: Path
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


def test_an_alert_fires_when_an_agent_turns_bad_and_resolves(app: InProcess, tmp_path: Path) -> None:
    (tmp_path / "rules.yml").write_text(RULE, encoding="utf-8")
    webhook = Webhook()
    with (
        Alertmanager(tmp_path, webhook.url) as alertmanager,
        Prometheus(tmp_path, {"agenteval": app.metrics}, [tmp_path / "rules.yml"], alertmanager.address) as prometheus,
    ):
        app.agent.play(2, WELL)
        until(lambda: prometheus.value("sum(agenteval_turns_total)") == 2, "good turns are scraped")
        until(lambda: app.agent.play(1, CIRCLES) or webhook.of("AgentTurnsBad", "firing"), "the alert", every=0.2)
        (alert,) = webhook.of("AgentTurnsBad", "firing")
        assert alert["labels"]["agent"] == "trip-planner"
        until(lambda: app.agent.play(1, WELL) or webhook.of("AgentTurnsBad", "resolved"), "its end", every=0.2)
    webhook.close()
