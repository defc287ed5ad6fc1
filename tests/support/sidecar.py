"""``otel-agenteval serve`` in a process of its own, on free ports."""

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
    """The sidecar, from its start to its end; :meth:`kill` and :meth:`start` give another process with the same ports and files.

    Args:
        folder: for its configuration, log and files.
        config: ours; turns are decided a second after their root unless it says otherwise.
        journal: whether it keeps one, in ``folder/journal``.
        script: Python to run before, in its process: for metrics of a test.
        options: more of the command line.
        env: variables of its environment.
        ready: when it is up; by default, when its health is answered, or when all of several processes are ready.
        processes: how many there are, and the most that :meth:`set_processes` may set.
        host: a name of this machine. ``127.1`` counts as reachable from other machines, and isn't.
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
        """Have so many processes from the next start on."""
        self.command[-1] = str(count)

    def metric(self, name: str, **labels: str) -> float:
        """One of its metrics by its name in Prometheus; absent is 0."""
        return value(f"http://{self.metrics}/metrics", name, **labels)

    def ledger(self) -> dict[str, Any]:
        """What the last process that ended by itself said became of everything."""
        return dict(json.loads([line for line in self.text().splitlines() if line.startswith('{"ledger"')][-1])["ledger"])
