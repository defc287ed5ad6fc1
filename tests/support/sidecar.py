"""``otel-agenteval serve`` in a separate process, on free ports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from tests.support.collector import value
from tests.support.process import ROOT
from tests.support.servers import Process, answers, free_port


class Sidecar(Process):
    """The sidecar's process. After :meth:`kill`, :meth:`start` starts a new process with the same ports and files.

    Args:
        folder: folder for its configuration, log and files.
        config: configuration. By default, turns are decided one second after their root.
        journal: True to keep a journal in ``folder/journal``.
        script: Python code to run first in its process, such as a test's metrics.
        options: further command-line arguments.
        env: environment variables.
        ready: condition for readiness. By default, the health endpoint responds, or all of several processes are ready.
        processes: number of processes, and the maximum for :meth:`set_processes`.
        host: a name of this machine. ``127.1`` is treated as reachable from other machines, but isn't.
    """

    def __init__(
        self,
        folder: Path,
        config: Mapping[str, Any] | None = None,
        *,
        journal: bool = False,
        script: str = "",
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        ready: Callable[[], bool] | None = None,
        processes: int = 1,
        host: str = "127.0.0.1",
    ) -> None:
        beside = [10 * number for number in range(1, processes)]
        ports = {name: free_port(beside) for name in ("grpc", "http", "metrics", "web")}
        addresses = {name: f"{host}:{port}" for name, port in ports.items()}
        self.grpc, self.metrics = addresses["grpc"], addresses["metrics"]
        self.http, self.web = f"http://{addresses['http']}", f"http://{addresses['web']}"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"sidecar-{ports['grpc']}.yaml"
        merged = {"turn": {"decision_delay": "1s"}, **(config or {})}
        file.write_text(yaml.safe_dump(merged), encoding="utf-8")
        main = f"import sys\n{script}\nfrom otel_agenteval.cli.main import main\nsys.exit(main())"
        command = [sys.executable, "-c", main, "serve", "--config", str(file)]
        for name, address in addresses.items():
            command += [f"--{name}", address]
        if journal:
            command += ["--journal", str(folder / "journal")]
        command += [*options, "--processes", str(processes)]
        super().__init__(
            command,
            log=folder / f"sidecar-{ports['grpc']}.log",
            ready=ready or answers(f"{self.http}/healthz" if processes == 1 else f"http://{self.metrics}/readyz"),
            env={"PYTHONPATH": str(ROOT), "XDG_STATE_HOME": str(folder / "state"), **(env or {})},
            cwd=folder,
        )

    def set_processes(self, count: int) -> None:
        """Set the number of processes for the next start."""
        self.command[-1] = str(count)

    def metric(self, name: str, **labels: str) -> float:
        """Return one of its metrics by Prometheus name, or 0 if it is missing."""
        return value(f"http://{self.metrics}/metrics", name, **labels)

    def ledger(self) -> dict[str, Any]:
        """Return the ledger of the last process that exited by itself."""
        return dict(json.loads([line for line in self.text().splitlines() if line.startswith('{"ledger"')][-1])["ledger"])
