"""The compose file: valid, without anything that reaches beyond the machine, and its programs work together as it says.

Containers cannot be had everywhere, so the programs are started here as the file starts them, on free ports.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_agenteval.cli.demo import SCENES
from otel_agenteval.config.loader import load_config
from otel_agenteval.evaluation.selection import select_metrics
from tests.support.process import ROOT
from tests.support.receiver import GrpcReceiver
from tests.support.servers import Process, answers, free_port, program, until

FOLDER = ROOT / "deploy" / "compose"
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))["services"]


def test_it_is_a_compose_file() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec", FOLDER / "compose.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_all_parts_and_each_is_locked_down() -> None:
    assert SERVICES.keys() == {"agent", "collector", "agenteval", "prometheus", "grafana", "traces"}
    for service in SERVICES.values():
        assert service["read_only"] is True
        assert service["cap_drop"] == ["ALL"]
        assert "no-new-privileges:true" in service["security_opt"]
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert service.keys() & {"image", "build"}
        assert not str(service.get("image", ":x")).endswith(":latest")
        assert all(other in SERVICES for other in service.get("depends_on", ()))


def mounts(service: str) -> dict[str, Path]:
    """Path in the container → path here, of what is bound from the repository."""
    bound = (volume.split(":") for volume in SERVICES[service].get("volumes", ()) if volume.startswith("."))
    return {inside: (FOLDER / source).resolve() for source, inside, *_ in bound}


def test_what_it_mounts_is_there_and_grafana_finds_sources_and_dashboards() -> None:
    assert [path for service in SERVICES for path in mounts(service).values() if not path.exists()] == []
    inside = mounts("grafana")
    assert list(inside["/etc/grafana/provisioning"].glob("datasources/*.yaml"))
    [provider] = yaml.safe_load((inside["/etc/grafana/provisioning"] / "dashboards" / "agenteval.yaml").read_text())["providers"]
    assert list(inside[provider["options"]["path"]].glob("*.json"))
    environment = SERVICES["grafana"]["environment"]
    home = Path(environment["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"])
    assert (inside[str(home.parent)] / home.name).exists()
    sources = (inside["/etc/grafana/provisioning"] / "datasources" / "agenteval.yaml").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\{(\w+)\}", sources)) <= environment.keys()


def test_the_configurations_are_good() -> None:
    select_metrics(load_config(FOLDER / "agenteval.yaml", {}))
    config = FOLDER / "prometheus.yaml"
    rules = mounts("prometheus")["/etc/prometheus/rules"]
    assert list(rules.glob("*.yaml"))
    done = subprocess.run([program("promtool"), "check", "config", "--syntax-only", config], capture_output=True, check=False)
    assert done.returncode == 0


class Here:
    """The services of the file as processes of this machine."""

    def __init__(self, folder: Path, backend: str) -> None:
        self._folder = folder
        ports = {"agenteval:14317", "agenteval:19464", "agenteval:14318", "collector:4317", "collector:4318", "prometheus:9090"}
        self.address = {name: f"127.0.0.1:{free_port()}" for name in sorted(ports)} | {"traces:4317": backend}

    def translated(self, text: str, service: str) -> str:
        """A text of the file with the addresses and paths of this machine."""
        for name, address in self.address.items():
            host, _, port = name.partition(":")
            text = text.replace(name, address)
            if host == service:
                text = text.replace(f"0.0.0.0:{port}", address)
        for inside, path in mounts(service).items():
            text = text.replace(inside, str(path))
        return text.replace("=/prometheus", f"={self._folder / 'prometheus'}")

    def command(self, service: str) -> list[str]:
        return [self.translated(part, service) for part in SERVICES[service]["command"]]

    def environment(self, service: str) -> dict[str, str]:
        return {name: self.translated(text, service) for name, text in SERVICES[service].get("environment", {}).items()}

    def start(self, service: str, before: list[str | Path], more: list[str], ready: str, **env: str) -> Process:
        return Process(
            [*before, *self.command(service), *more],
            log=self._folder / f"{service}.log",
            ready=answers(ready),
            env={**self.environment(service), **env},
        )


@pytest.fixture
def traces() -> Iterator[GrpcReceiver]:
    """What stands where the traces go."""
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()


@pytest.mark.slow
def test_the_agents_turns_are_scored_and_reach_prometheus_and_its_spans_the_traces(tmp_path: Path, traces: GrpcReceiver) -> None:
    here = Here(tmp_path, traces.address)
    ours = {"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(tmp_path)}
    http, health, telemetry = here.address["agenteval:14318"], free_port(), free_port()
    config = tmp_path / "prometheus.yaml"
    config.write_text(here.translated((FOLDER / "prometheus.yaml").read_text(encoding="utf-8"), "prometheus"), encoding="utf-8")
    (tmp_path / "rules").symlink_to(mounts("prometheus")["/etc/prometheus/rules"])
    listen = here.address["prometheus:9090"]
    sidecar = here.start(
        "agenteval", [sys.executable, "-m", "otel_agenteval"], [f"--http={http}", "--web=off"], f"http://{http}/readyz", **ours
    )
    collector = here.start(
        "collector",
        [program("otelcol")],
        [],
        f"http://127.0.0.1:{health}/",
        HEALTH_LISTEN=f"127.0.0.1:{health}",
        TELEMETRY_PORT=str(telemetry),
    )
    command = [part.replace(str(FOLDER / "prometheus.yaml"), str(config)) for part in here.command("prometheus")]
    prometheus = Process(
        [program("prometheus"), *command, f"--web.listen-address={listen}"],
        log=tmp_path / "prometheus.log", ready=answers(f"http://{listen}/-/ready"), cwd=tmp_path,
    )  # fmt: skip
    with sidecar, collector, prometheus:
        entry = [here.translated(part, "agent") for part in SERVICES["agent"]["entrypoint"]]
        command = [sys.executable, *entry[1:], *here.command("agent"), f"--turns={len(SCENES)}", "--every=0"]
        done = subprocess.run(command, env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, timeout=120, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        turns = f'sum(agenteval_turns_total{{agent="trip-planner",service_name="trains"}}) == {len(SCENES)}'
        until(lambda: asked(listen, "query", query=turns)["result"], "Prometheus has every turn", timeout=60)
        ends = {"start": "2020-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
        found = asked(listen, "query_exemplars", query="agenteval_turn_duration_seconds_bucket", **ends)
        exemplars = {exemplar["labels"]["trace_id"] for series in found for exemplar in series["exemplars"]}
        assert exemplars
        assert exemplars <= {span.trace_id.hex() for span in traces.spans()}
        assert len({span.trace_id for span in traces.spans()}) == len(SCENES)
        assert len([rule for group in asked(listen, "rules")["groups"] for rule in group["rules"]]) > 30
        assert sidecar.stop() == 0


def asked(address: str, path: str, **parameters: str) -> Any:
    with urllib.request.urlopen(f"http://{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=10) as answer:
        return json.load(answer)["data"]
