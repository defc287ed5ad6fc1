"""The package is also a start-up hook of other programs: importing it must cost them nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pydantic", "numpy", "opentelemetry", "orjson", "httpx", "grpc", "prometheus_client", "yaml")


@pytest.mark.parametrize("module", ["otel_agenteval", "otel_agenteval.instrumentation.autoload"])
def test_importing_brings_in_no_other_package_and_starts_no_thread(module: str) -> None:
    program = f"import sys, threading, {module}; print(*sorted({{name.split('.')[0] for name in sys.modules}}), threading.active_count())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    *modules, threads = done.stdout.split()
    assert "otel_agenteval" in modules
    assert set(modules) & set(HEAVY) == set()
    assert threads == "1"


def test_the_program_above_would_see_a_heavy_package() -> None:
    program = "import sys, otel_agenteval.config.yaml, otel_agenteval.config.root; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert {"pydantic", "yaml"} <= set(done.stdout.split())
