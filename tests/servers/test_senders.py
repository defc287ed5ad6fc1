"""Senders to ``otel-agenteval serve`` (Python and Node.js SDKs, rotel, Collector) give the scores of the agent's own process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import otel_agenteval as oa
from otel_agenteval.cli.demo import SCENES
from tests.support.collector import Agent, Alternating, Collector
from tests.support.receiver import GrpcReceiver
from tests.support.rotel import Rotel
from tests.support.servers import program, until
from tests.support.sidecar import Sidecar

OFF: dict[str, Any] = {"log_events": False, "span_events": "off", "prometheus": None}


def whole_lines(path: Path) -> list[str]:
    """Return the lines of a file that is still written. An incomplete last line is left out."""
    return [line for line in path.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")]


def scores_in(path: Path) -> dict[str, dict[str, Any]]:
    """Return the scores of a JSON lines file by result id, without fields that depend on when a turn was closed or scored."""
    lines = [json.loads(line) for line in whole_lines(path)] if path.exists() else []
    assert len({line["result_id"] for line in lines}) == len(lines), "a score twice"
    return {line["result_id"]: {key: line[key] for key in line.keys() - {"close_reason", "scored_at"}} for line in lines}


@contextmanager
def sidecar(folder: Path) -> Iterator[Sidecar]:
    with Sidecar(folder / "sidecar", {"outlets": {"jsonl": str(folder / "sidecar.jsonl")}}) as running:
        yield running


def compare(agent: Agent, folder: Path) -> None:
    """Check that every turn has the same scores in the agent's process and in the sidecar."""
    processor = oa.AgentEvalSpanProcessor({"outlets": {**OFF, "jsonl": str(folder / "process.jsonl")}})
    agent.provider.add_span_processor(processor)
    agent.play()
    agent.close()
    assert agent.failed == 0
    here = scores_in(folder / "process.jsonl")
    assert len({score["trace_id"] for score in here.values()}) == len(SCENES)
    until(lambda: len(scores_in(folder / "sidecar.jsonl")) >= len(here), "as many scores in the sidecar")
    assert scores_in(folder / "sidecar.jsonl") == here


def test_rotel(tmp_path: Path) -> None:
    with sidecar(tmp_path) as running, Rotel(tmp_path, running.http, "http") as rotel:
        compare(Agent(rotel.grpc), tmp_path)


def test_a_collector(tmp_path: Path, backend: GrpcReceiver) -> None:
    with (
        sidecar(tmp_path) as running,
        Collector("sidecar", tmp_path, AGENTEVAL_ENDPOINT=running.grpc, BACKEND_ENDPOINT=backend.address) as collector,
    ):
        compare(Agent(collector.grpc), tmp_path)


def test_two_tiers_of_collectors_and_two_of_ours(tmp_path: Path, backend: GrpcReceiver) -> None:
    with sidecar(tmp_path) as one, sidecar(tmp_path) as other:
        gateway = {"AGENTEVAL_ENDPOINTS": str([one.grpc, other.grpc]), "BACKEND_ENDPOINT": backend.address}
        with (
            Collector("load_balancing", tmp_path, **gateway) as first,
            Collector("load_balancing", tmp_path, **gateway) as second,
        ):
            compare(Agent(Alternating(first.grpc, second.grpc)), tmp_path)
        assert one.metric("agenteval_turns_total") + other.metric("agenteval_turns_total") == len(SCENES)
        assert (
            one.metric("agenteval_turns_total", complete="false") + other.metric("agenteval_turns_total", complete="false") == 0
        )


def test_the_sdk_of_node(tmp_path: Path) -> None:
    script = Path(__file__).with_name("node_agent.js")
    with sidecar(tmp_path) as running:
        for protocol, url in (("grpc", f"http://{running.grpc}"), ("http", f"{running.http}/v1/traces")):
            command = [program("node-with-otel"), script, protocol, url, "2"]
            done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
            assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr

        def success() -> list[float]:
            found = scores_in(tmp_path / "sidecar.jsonl").values()
            return sorted(score["value"] for score in found if score["metric"] == "code_tool_success")

        until(lambda: len(success()) == 4, "four turns")
        assert success() == [0.0, 0.0, 1.0, 1.0]
        assert running.metric("agenteval_turns_total", agent="shop", service_name="node-shop", complete="true") == 4
        assert running.metric("agenteval_spans_received_total") == 4 * 4
