"""Scores return through the Collector to a file, a log store, the trace backend and Prometheus, with the agent process's values."""

from __future__ import annotations

import json
import math
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.demo import SCENES
from otel_agenteval.core.semconv import EVENT
from tests.support.collector import Agent, Collector
from tests.support.prometheus import Prometheus
from tests.support.receiver import GrpcReceiver, Receiver, plain
from tests.support.servers import free_port, until
from tests.support.sidecar import Sidecar


def process_scores(path: Path) -> dict[str, dict[str, Any]]:
    """Return the scores of the agent's process. Other systems have no verdict for neutral values."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]
    return {row["result_id"]: {"passed": None, **row} for row in rows}


def value_of(attribute: dict[str, Any]) -> Any:
    ((kind, value),) = attribute["value"].items()
    return int(value) if kind == "intValue" else value


def file_scores(path: Path) -> dict[str, dict[str, Any]]:
    """Return the records of the Collector's file exporter by result id: attributes and context."""
    found: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        for resource in json.loads(line)["resourceLogs"]:
            service = {each["key"]: value_of(each) for each in resource["resource"]["attributes"]}["service.name"]
            for record in (record for scope in resource["scopeLogs"] for record in scope["logRecords"]):
                assert record["eventName"] == EVENT
                attributes = {each["key"]: value_of(each) for each in record["attributes"]}
                row = {**attributes, "trace_id": record["traceId"], "span_id": record["spanId"], "service": service}
                assert found.setdefault(attributes["agenteval.result.id"], row) is row, "a record twice"
    return found


def test_scores_reach_file_log_store_and_prometheus_and_do_not_go_round(tmp_path: Path, backend: GrpcReceiver) -> None:
    log_store = Receiver()
    port = free_port()
    config = {
        "outlets": {
            "otlp": {"endpoint": f"http://127.0.0.1:{port}", "metrics_interval": "500ms", "evaluate_spans": "linked"},
        }
    }
    with (
        Prometheus(tmp_path) as prometheus,
        Sidecar(tmp_path, config) as sidecar,
        Collector(
            "scores",
            tmp_path,
            port,
            AGENTEVAL_ENDPOINT=sidecar.grpc,
            BACKEND_ENDPOINT=backend.address,
            LOG_STORE=log_store.url,
            PROMETHEUS=prometheus.url,
        ) as collector,
    ):
        agent = Agent(collector.grpc)
        own = {"outlets": {"log_events": False, "span_events": "off", "prometheus": None, "jsonl": str(tmp_path / "own.jsonl")}}
        agent.provider.add_span_processor(oa.AgentEvalSpanProcessor(own))
        agent.play()
        agent.close()
        here = process_scores(tmp_path / "own.jsonl")
        there = until(
            lambda: (f := file_scores(tmp_path / "scores.jsonl")).keys() >= here.keys() and f, "every score in the file"
        )
        assert there.keys() == here.keys()
        for result_id, row in there.items():
            expected = here[result_id]
            assert row["gen_ai.evaluation.name"] == expected["metric"]
            assert row.get("gen_ai.evaluation.score.value") == expected["value"]
            assert row.get("agenteval.passed") == expected["passed"]
            assert [row[key] for key in ("trace_id", "span_id", "service")] == [expected["trace_id"], expected["span_id"], "demo"]

        until(lambda: {plain(each.attributes)["agenteval.result.id"] for each in log_store.scores()} == here.keys(), "log store")
        until(lambda: len(backend.scores()) == len(here), "the trace backend has them too")
        until(lambda: len(backend.spans("evaluate trip-planner")) == len(SCENES), "spans that link to the turns")
        assert sidecar.metric("agenteval_spans_received_total") == len(
            [span for span in backend.spans() if not span.name.startswith("evaluate")]
        )

        until(lambda: prometheus.value("sum(agenteval_turns_total)") == len(SCENES), "the turns in Prometheus")
        sums, verdicts = defaultdict(list), Counter()
        for row in here.values():
            if row["unit"] == "1" and not row.get("detail", {}).get("vacuous"):
                sums[row["metric"]].append(row["value"])
            if row["passed"] is not None and not row.get("detail", {}).get("vacuous"):
                verdicts[row["metric"], "pass" if row["passed"] else "fail"] += 1
        counted = prometheus.query('sum by (metric, outcome) (agenteval_results_total{outcome=~"pass|fail"})')
        assert {(dict(labels)["metric"], dict(labels)["outcome"]): value for labels, value in counted.items()} == verdicts
        observed = {
            dict(labels)["metric"]: value for labels, value in prometheus.query("sum by (metric) (agenteval_score_sum)").items()
        }
        assert observed == {metric: pytest.approx(math.fsum(values)) for metric, values in sums.items()}
        until(lambda: prometheus.exemplars("agenteval_score_bucket"), "exemplars, by remote write too")
        assert {each["labels"]["trace_id"] for each in prometheus.exemplars("agenteval_score_bucket")} <= {
            row["trace_id"] for row in here.values()
        }
    log_store.close()
