"""Servers with several worker processes: whichever is scraped shows what all of them counted."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

ROOT = Path(__file__).parent.parent.parent
APP = "tests.support.worker_app"
TURNS = "agenteval_turns_total"
FAILED = 'agenteval_results_total{agent="desk",metric="code_tool_success",outcome="fail"}'
BIN = Path(sys.executable).parent
PATIENCE = 30.0
TEMPORARY = "t"  # a socket in it must have a short path


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


class Server:
    """Some server with the application, and what it answers."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log

    def get(self, path: str, accept: str = "application/openmetrics-text; version=1.0.0") -> tuple[int, str]:
        """Which process answered, and what."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept, "Connection": "close"})
        with urllib.request.urlopen(request, timeout=20) as response:
            return int(response.headers["X-Process"]), response.read().decode()

    def ask(self, least: int, workers: int = 2) -> int:
        """Ask until that many processes have answered; how many turns that made. One of them fails."""
        answered = {self.get("/ask?fail=1")[0]}
        turns = 1
        while len(answered) < workers or turns < least:
            answered.add(self.get("/ask")[0])
            turns += 1
            assert turns < 3_000, answered
        return turns

    def pages(self, workers: int = 2) -> dict[int, str]:
        """A page of each worker."""
        found: dict[int, str] = {}
        end = time.monotonic() + PATIENCE
        while len(found) < workers:
            process, page = self.get("/metrics")
            found[process] = page
            assert time.monotonic() < end, found.keys()
        return found


def sample(page: str, name: str) -> float:
    """The sum over the samples of a name, or the one sample of a name with labels."""
    labels = r"(?:\{[^}]*\})?" if "{" not in name else ""
    return sum(float(found) for found in re.findall(rf"^{re.escape(name)}{labels} ([0-9.e+]+)", page, re.MULTILINE))


def until(holds: Callable[[], bool]) -> None:
    """Wait for what other processes do in their own time."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def running(folder: Path, *command: str, **env: str) -> Iterator[Server]:
    """A server, until it answers."""
    port = free_port()
    log = folder / "server.log"
    temporary = folder / TEMPORARY
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), "WORKER_APP_FOLDER": str(folder), **env}
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(BIN / command[0]), *(part.format(port=port) for part in command[1:])],
            stdout=out,
            stderr=out,
            cwd=ROOT,
            env=environment,
        )
    try:
        yield Server(process, port, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        finally:
            process.kill()


@contextmanager
def serving(folder: Path, *command: str, **env: str) -> Iterator[Server]:
    """A web server, from when it answers on."""
    with running(folder, *command, **env) as server:

        def answers() -> bool:
            assert server.process.poll() is None, server.log.read_text()
            try:
                server.get("/metrics")
            except OSError:
                return False
            return True

        until(answers)
        yield server


GUNICORN = ("gunicorn", "--workers", "2", "--bind", "127.0.0.1:{port}", "--no-control-socket", f"{APP}:wsgi")
SERVERS = {
    "gunicorn": GUNICORN,
    "gunicorn with preload": (*GUNICORN, "--preload"),
    "gunicorn with threads": (*GUNICORN, "--threads", "4"),
    "uvicorn": ("uvicorn", "--workers", "2", "--port", "{port}", "--log-level", "warning", f"{APP}:asgi"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_each_worker_shows_the_turns_of_all(name: str, tmp_path: Path) -> None:
    if name == "uvicorn":
        pytest.importorskip("fastapi", reason="not installed beside the lowest versions")
    with serving(tmp_path, *SERVERS[name]) as server:
        turns = server.ask(10)
        until(lambda: all(sample(page, TURNS) == turns for page in server.pages().values()))
        for page in server.pages().values():
            assert sample(page, FAILED) == 1
            assert sample(page, "agenteval_build_info") == 1  # a gauge that is no sum
            families = {family.name: family for family in text_string_to_metric_families(page)}
            buckets = [one for one in families["agenteval_turn_duration_seconds"].samples if one.name.endswith("_bucket")]
            assert any(one.exemplar is not None and len(one.exemplar.labels["trace_id"]) == 32 for one in buckets)
    assert "Traceback" not in server.log.read_text()


def test_what_a_worker_counted_stays_when_it_dies(tmp_path: Path) -> None:
    with serving(tmp_path, *GUNICORN) as server:
        turns = server.ask(10)
        until(lambda: all(sample(page, TURNS) == turns for page in server.pages().values()))
        for generation in range(3):  # also those that were added up before
            os.kill(next(iter(server.pages())), signal.SIGKILL)
            more = server.ask(1)
            turns += more
            until(lambda: all(sample(page, TURNS) == turns for page in server.pages().values()))  # noqa: B023 - called at once
            assert all(sample(page, FAILED) == generation + 2 for page in server.pages().values())
        (folder,) = (tmp_path / TEMPORARY).glob("otel-agenteval-*/*")
        assert len(list(folder.glob("default.*-*.json"))) == 2  # the living


def test_two_servers_of_one_shell_do_not_mix(tmp_path: Path) -> None:
    with serving(tmp_path, *GUNICORN) as one, serving(tmp_path, *GUNICORN) as other:
        turns = one.ask(5)
        others = other.ask(9)
        until(lambda: all(sample(page, TURNS) == turns for page in one.pages().values()))
        until(lambda: all(sample(page, TURNS) == others for page in other.pages().values()))


def test_the_folder_of_prometheus_client_is_used_where_it_is_set(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    with serving(tmp_path, *GUNICORN, PROMETHEUS_MULTIPROC_DIR=str(shared)) as server:
        turns = server.ask(10)
        until(lambda: all(sample(page, TURNS) == turns for page in server.pages().values()))
        assert "trace_id" in next(iter(server.pages().values()))  # the format of these files has none
        text = collected_by_their_collector(shared)
        assert sample(text, TURNS) == turns
        assert sample(text, FAILED) == 1
        assert sample(text, "agenteval_turn_duration_seconds_count") == turns
        assert sample(text, "agenteval_build_info") == 1
        assert not list((tmp_path / TEMPORARY).iterdir())
    until(
        lambda: sample(collected_by_their_collector(shared), "agenteval_build_info") == 0
    )  # no process is left that has a gauge
    assert sample(collected_by_their_collector(shared), TURNS) == turns


def collected_by_their_collector(folder: Path) -> str:
    """As pages are made under gunicorn by the documentation of ``prometheus_client``."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.multiprocess import MultiProcessCollector

    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return generate_latest(registry).decode()


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_what_multiprocessing_starts_counts_too(start: str, tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import multiprocessing, sys\n"
        "from prometheus_client import REGISTRY, generate_latest\n"
        "from tests.support import worker_app\n"
        "def work(turns):\n"
        "    for _ in range(turns): worker_app.answer()\n"
        "    worker_app.handle.flush(10)\n"
        "if __name__ == '__main__':\n"
        "    work(2)\n"
        f"    context = multiprocessing.get_context({start!r})\n"
        "    children = [context.Process(target=work, args=(turns,)) for turns in (3, 4)]\n"
        "    for child in children: child.start()\n"
        "    for child in children: child.join(50)\n"
        "    work(1)\n"
        "    sys.stdout.write(generate_latest(REGISTRY).decode())\n"
    )
    page = run(script, tmp_path)
    assert sample(page, TURNS) == 10


def test_a_program_of_one_process_writes_nothing(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import subprocess, sys, threading\n"
        "from prometheus_client import REGISTRY, generate_latest\n"
        "from tests.support import worker_app\n"
        "worker_app.answer()\n"
        "subprocess.run([sys.executable, '-c', 'from tests.support import worker_app as w; w.answer(); w.handle.flush(10)'], check=True)\n"
        "worker_app.handle.flush(10)\n"
        "assert not [one for one in threading.enumerate() if 'workers' in one.name]\n"
        "sys.stdout.write(generate_latest(REGISTRY).decode())\n"
    )
    assert sample(run(script, tmp_path), TURNS) == 1
    assert not list((tmp_path / TEMPORARY).iterdir())


def run(script: Path, folder: Path, **env: str) -> str:
    temporary = folder / TEMPORARY
    temporary.mkdir(exist_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), **env}
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=100, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def page_of(port: str) -> str:
    """What a port of ours shows; nothing while no process has it."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as response:
            return str(response.read().decode())
    except OSError:
        return ""


def written(folder: Path) -> float:
    """The turns that the files of all workers show."""
    pages = [json.loads(path.read_text()) for path in folder.glob("port-*.*-*.json")]
    return sum(value for page in pages for _, value in page["families"].get("agenteval.turns", [[]])[0])


def test_one_worker_has_the_port_and_another_takes_it_over(tmp_path: Path) -> None:
    port = str(free_port())
    with serving(tmp_path, *GUNICORN, OTEL_AGENTEVAL_OUTLETS__PROMETHEUS__PORT=port) as server:
        turns = server.ask(6)

        until(lambda: sample(page_of(port), TURNS) == turns)
        (held,) = (tmp_path / TEMPORARY).glob("otel-agenteval-*/*/port-*.held")
        until(lambda: written(held.parent) == turns)  # what a worker counted in its last second goes with it
        holder = int(held.read_text().partition("-")[0])
        os.kill(holder, signal.SIGKILL)
        until(lambda: sample(page_of(port), TURNS) == turns)
        turns += server.ask(2)
        until(lambda: sample(page_of(port), TURNS) == turns)
    assert "can't listen" not in server.log.read_text()


@pytest.mark.slow
def test_workers_of_celery(tmp_path: Path) -> None:
    port = str(free_port())
    env = {"OTEL_AGENTEVAL_OUTLETS__PROMETHEUS__PORT": port}
    with running(
        tmp_path, "celery", "-A", f"{APP}:celery", "worker", "--concurrency", "2", "--without-mingle", "--without-gossip", **env
    ) as server:
        os.environ["WORKER_APP_FOLDER"] = str(tmp_path)
        try:
            code = (
                "from celery import Celery; from pathlib import Path; import os\n"
                "f = Path(os.environ['WORKER_APP_FOLDER'])\n"
                "[(f / n).mkdir(exist_ok=True) for n in ('queue', 'control')]\n"
                "a = Celery('worker_app', broker='filesystem://')\n"
                "a.conf.broker_transport_options = {'data_folder_in': str(f/'queue'), 'data_folder_out': str(f/'queue'), 'control_folder': str(f/'control')}\n"
                "[a.send_task('ask', kwargs={'fail': n == 0}) for n in range(12)]\n"
            )
            subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
        finally:
            del os.environ["WORKER_APP_FOLDER"]
        done = tmp_path / "done.jsonl"
        until(lambda: done.exists() and len(done.read_text().splitlines()) == 12)
        assert server.process.poll() is None, server.log.read_text()

        until(lambda: sample(page_of(port), TURNS) == 12)
        assert sample(page_of(port), FAILED) == 1
        assert len({json.loads(line)["process"] for line in done.read_text().splitlines()}) == 2


def test_a_folder_that_cannot_be_had_is_said_once(tmp_path: Path) -> None:
    script = tmp_path / "program.py"
    script.write_text(
        "import os, sys, logging\n"
        "logging.basicConfig(stream=sys.stdout)\n"
        "from prometheus_client import CollectorRegistry, REGISTRY, generate_latest\n"
        "os.environ['PROMETHEUS_MULTIPROC_DIR'] = sys.argv[0] + '/x'\n"
        "from tests.support import worker_app\n"
        "for _ in range(3):\n"
        "    worker_app.answer(); worker_app.handle.flush(10)\n"
        "print(generate_latest(REGISTRY).decode())\n"
    )
    page = run(script, tmp_path)
    assert page.count("PROMETHEUS_MULTIPROC_DIR") == 1
    assert sample(page, TURNS) == 3
    assert sample(page, 'agenteval_emit_errors_total{outlet="prometheus",reason="workers_apart"}') == 1


def estimates(**found: float) -> Any:
    from otel_agenteval.core import semconv
    from otel_agenteval.core.telemetry import Family

    instruments = {one.name: one for one in semconv.INSTRUMENTS}

    class Fixed:
        def read(self, name: str) -> Family:
            value = found.get(name.rpartition(".")[2])
            return Family(instruments[name], {} if value is None else {("m", "a", "1h"): value}, {})

    return Fixed()


def test_estimates_of_two_workers_are_weighted_and_not_added() -> None:
    from otel_agenteval.core import semconv
    from otel_agenteval.core.telemetry import merged

    members = [
        estimates(mean=0.8, ci_low=0.7, ci_high=0.9, n_eff=100.0),
        estimates(mean=0.4, ci_low=0.2, ci_high=0.6, n_eff=25.0),
        estimates(),
    ]
    found = {name: merged(name, members).values[("m", "a", "1h")] for name in semconv.ESTIMATES}
    assert found[semconv.ESTIMATE_N] == 125
    assert found[semconv.ESTIMATE_MEAN] == pytest.approx(0.72)
    half = (10.0**2 + 5.0**2) ** 0.5 / 125
    assert found[semconv.ESTIMATE_LOW] == pytest.approx(0.72 - half)
    assert found[semconv.ESTIMATE_HIGH] == pytest.approx(0.72 + half)
