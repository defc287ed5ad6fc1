"""Signals during a process's start don't kill it, and each has its effect."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.process import ROOT
from tests.support.servers import Process as Server
from tests.support.servers import free_port, until
from tests.support.sidecar import Sidecar

SENDS = """
import os, signal, sys

class Sends:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r} and ({everywhere} or "--child" in sys.argv):
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.{number})

sys.meta_path.insert(0, Sends())
Sends.find_spec(sys.meta_path[0], "at once")
"""
"""Code that each Python process runs first. It sends the process a signal at the import of a module, or immediately."""
EARLY, LATER = "otel_agenteval.cli.serve", "otel_agenteval.server.app"


def sent(folder: Path, module: str, number: str, *, everywhere: bool = True) -> dict[str, str]:
    """Return an environment in which processes, or only child processes, get a signal while they start."""
    (folder / "sitecustomize.py").write_text(SENDS.format(module=module, number=number, everywhere=everywhere))
    return {"PYTHONPATH": f"{folder}:{ROOT}"}


@pytest.mark.parametrize("module", [EARLY, LATER])
def test_sighup_during_the_start_is_a_reload_after_it(tmp_path: Path, module: str) -> None:
    with Sidecar(tmp_path, {}, env=sent(tmp_path, module, "SIGHUP")) as sidecar:
        until(lambda: "configuration reloaded" in sidecar.text(), "it reloads")
        assert sidecar.stop() == 0


@pytest.mark.parametrize(("number", "processes"), [("SIGTERM", 2), ("SIGINT", 1)])
def test_stop_during_the_start_ends_the_process_in_order(tmp_path: Path, number: str, processes: int) -> None:
    ended = Sidecar(tmp_path, {}, env=sent(tmp_path, LATER, number), journal=True, processes=processes, ready=lambda: True)
    assert ended.wait() == 0
    assert ended.ledger()["handed_over"] is True
    assert "Traceback" not in ended.text()


@pytest.mark.slow
@pytest.mark.parametrize("module", ["at once", LATER])
def test_sighup_during_the_start_of_children_reloads_them(tmp_path: Path, module: str) -> None:
    env = sent(tmp_path, module, "SIGHUP", everywhere=False)
    with Sidecar(tmp_path, {}, env=env, processes=2) as sidecar:
        until(lambda: sidecar.text().count("configuration reloaded") == 2, "both reload")
        assert "restarting it" not in sidecar.text()
        assert sidecar.stop() == 0


@pytest.mark.parametrize("number", ["SIGHUP", "SIGTERM"])
def test_worker_survives_sighup_and_ends_with_sigterm(tmp_path: Path, number: str) -> None:
    config = tmp_path / "agenteval.yaml"
    config.write_text(yaml.safe_dump({"judge": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}))
    command = [sys.executable, "-m", "otel_agenteval", "worker", "--judge", "redis://127.0.0.1:1", "--config", config]
    command += ["--metrics", f"127.0.0.1:{free_port()}"]
    worker = Server(command, log=tmp_path / "log", ready=lambda: True, env=sent(tmp_path, LATER, number), cwd=tmp_path)
    if number == "SIGHUP":
        until(lambda: "working: " in worker.text(), "it works")
        assert "SIGHUP: ignored" in worker.text()
        os.kill(worker.pid, signal.SIGTERM)
    assert worker.wait() == 0, worker.text()
