"""If an external service hangs, scoring and other outlets continue, health reports it, and SIGTERM ends the sidecar."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.support.hangs import hang
from tests.support.sender import body
from tests.support.servers import until
from tests.support.service import Sidecar


@pytest.mark.slow
@pytest.mark.parametrize(
    ("what", "how"),
    [
        ("PostgreSQL", "freezes during use"), ("Redis", "freezes during use"), ("judge server", "is silent"), ("OTLP/gRPC receiver", "is silent"),
        ("webhook receiver", "freezes during use"), ("server that a metric calls", "is frozen from the start"),
        ("pipe for OTLP lines", "is frozen from the start"), ("pipe for JSON lines", "freezes during use"),
    ],
)  # fmt: skip
def test_scoring_goes_on_and_nothing_is_lost(what: str, how: str, tmp_path: Path) -> None:
    """``scripts/fault_matrix.py`` covers other services and other ways to hang."""
    found = hang(what, how, tmp_path, 300)
    assert found.is_well, found


def test_health_names_a_silent_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.judging.runner._PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        judge = {"base_url": f"http://127.0.0.1:{silent.getsockname()[1]}/v1", "model": "m", "queue": {"backend": "memory"}}
        metrics = [{"llm_relevance": {}, "sample": {"rate": 1.0}}]
        with Sidecar({"judge": judge, "metrics": metrics, "serve": {"drain_timeout": "200ms"}}) as own:
            assert "judge:" not in own.get("/readyz?verbose")[1]
            own.post("/v1/traces", body([1]))
            own.turns()
            until(lambda: "[-] judge: no answer for" in own.get("/readyz?verbose")[1], "health names it", timeout=20)
            assert own.get("/readyz")[0] == 200
