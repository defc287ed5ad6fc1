"""``serve --processes``: several sidecars behind a Collector that routes by trace id, with one ``/metrics``."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_agenteval.cli.main import main
from tests.support.collector import Agent, Collector, value
from tests.support.process import environment
from tests.support.receiver import GrpcReceiver
from tests.support.servers import free_port, until


class Fleet:
    """Two processes and their parent."""

    def __init__(self, folder: Path) -> None:
        self.port, self.metrics = free_port(beside=[10]), free_port()
        config = folder / "agenteval.yaml"
        outlets = {"log_events": False, "store": str(folder / "scores.db")}
        config.write_text(json.dumps({"turn": {"decision_delay": "500ms"}, "outlets": outlets}))
        self.log = folder / "log"
        command = [sys.executable, "-m", "otel_agenteval", "serve", "--processes", "2", "--config", str(config), "--http", "off"]
        command += ["--grpc", f"127.0.0.1:{self.port}", "--metrics", f"127.0.0.1:{self.metrics}", "--web", "off"]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(command, env=environment(), stdout=log, stderr=subprocess.STDOUT)
        until(lambda: "AGENTEVAL_ENDPOINTS" in self.log.read_text(), "both listen", 60)

    def metric(self, name: str, **labels: str) -> float:
        return value(f"http://127.0.0.1:{self.metrics}/metrics", name, **labels)

    def health(self, path: str) -> int:
        """Return the status of the parent's health endpoint."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/{path}", timeout=60) as answer:
                return int(answer.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def addresses(self) -> list[str]:
        return re.findall(r"^process \d: .*", self.log.read_text(), re.MULTILINE)

    def endpoints(self) -> str:
        found = re.search(r"AGENTEVAL_ENDPOINTS='(.*)'", self.log.read_text())
        assert found is not None
        return found[1]

    def stop(self) -> dict[str, Any]:
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(120) == 0, self.log.read_text()
        [line] = [line for line in self.log.read_text().splitlines() if line.startswith('{"ledger"')]
        ledger: dict[str, Any] = json.loads(line)["ledger"]
        return ledger


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    found = Fleet(tmp_path)
    yield found
    if found.process.poll() is None:
        found.process.kill()
        found.process.wait()


def test_a_collector_shares_the_traces_out_and_one_page_measures_all(fleet: Fleet, tmp_path: Path) -> None:
    assert fleet.addresses() == [f"process {n}: grpc=127.0.0.1:{fleet.port + 10 * n}" for n in (0, 1)]
    assert fleet.endpoints() == f"[127.0.0.1:{fleet.port}, 127.0.0.1:{fleet.port + 10}]"
    backend = GrpcReceiver()
    with Collector(
        "load_balancing", tmp_path, AGENTEVAL_ENDPOINTS=fleet.endpoints(), BACKEND_ENDPOINT=backend.address
    ) as collector:
        agent = Agent(collector.grpc)
        agent.play(40)
        until(lambda: fleet.metric("agenteval_turns_total") == 40, "all turns are scored", 60)
        agent.close()
    shares = [fleet.metric("agenteval_turns_total", process=str(i)) for i in range(2)]
    assert min(shares) >= 5
    assert sum(shares) == 40
    assert fleet.metric("agenteval_turns_total", complete="true") == 40
    request = urllib.request.Request(
        f"http://127.0.0.1:{fleet.metrics}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(request) as answer:
        families = {family.name: family for family in text_string_to_metric_families(answer.read().decode())}
    exemplars = [sample for sample in families["agenteval_score"].samples if sample.exemplar is not None]
    assert {sample.labels["process"] for sample in exemplars} == {"0", "1"}
    assert all(len(sample.exemplar.labels["trace_id"]) == 32 for sample in exemplars)
    ledger = fleet.stop()
    assert [one["turns"]["closed"] for one in ledger["processes"]] == [{"delay": int(share)} for share in shares]
    backend.close()


@pytest.mark.slow
def test_a_process_that_dies_is_started_again_on_its_port(fleet: Fleet) -> None:
    assert [fleet.metric("agenteval_processes", process=str(i)) for i in range(2)] == [1, 1]
    assert [fleet.health("healthz"), until(lambda: fleet.health("readyz") == 200 and 200, "both are ready")] == [200, 200]
    with urllib.request.urlopen(f"http://127.0.0.1:{fleet.metrics}/readyz?verbose", timeout=60) as answer:
        report = answer.read().decode()
    assert {f"[+] process {number}: requests: ok" for number in range(2)} <= set(report.splitlines())
    scrape = urllib.request.Request(f"http://127.0.0.1:{fleet.metrics}/metrics", headers={"User-Agent": "Prometheus/3.0"})
    urllib.request.urlopen(scrape, timeout=60).close()
    assert fleet.metric("agenteval_serve_scrapes_total", client="prometheus") == 1
    first = psutil.Process(fleet.process.pid).children()[0]
    os.kill(first.pid, signal.SIGSTOP)
    until(lambda: fleet.health("readyz") == 503, "one does not answer")
    assert fleet.health("healthz") == 200
    os.kill(first.pid, signal.SIGKILL)
    until(lambda: fleet.metric("agenteval_process_restarts_total") == 1, "it is missed")
    until(lambda: fleet.metric("agenteval_processes") == 2, "both are there again")
    until(lambda: fleet.health("readyz") == 200, "both are ready again")
    assert fleet.stop()["handed_over"]


def test_a_wrong_number_is_refused(capsys: Any) -> None:
    with pytest.raises(SystemExit):
        main(["serve", "--processes", "0"])
    assert "from 1 to 256" in capsys.readouterr().err
