"""Tests of the compose file: it is valid and local, and its services refer to each other correctly."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from otel_agenteval.config.loader import load_config
from otel_agenteval.evaluation.selection import select_metrics
from tests.support.process import ROOT
from tests.support.servers import program

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
    """Return the files that are mounted from the repository, by path in the container."""
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


def test_what_one_part_asks_for_another_part_listens_on() -> None:
    listening = {
        f"{name}:{port}"
        for name, service in SERVICES.items()
        for port in re.findall(r"0\.0\.0\.0:(\d+)", str(service.get("command")) + str(service.get("environment")))
    }
    texts = (str(SERVICES), (FOLDER / "prometheus.yaml").read_text(encoding="utf-8"))
    asked = {address for text in texts for address in re.findall(rf"\b(?:{'|'.join(SERVICES)}):\d{{4,5}}\b", text)}
    assert len(asked) > 3
    known = {"prometheus:9090", "traces:4317", "traces:16686"}  # where these programs listen by default
    assert asked <= listening | known, (asked, listening)
