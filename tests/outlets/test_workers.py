"""Servers with several worker processes: each page shows the counts of all workers."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_agenteval.core import semconv
from otel_agenteval.core.telemetry import Family, merged
from tests.support import servers
from tests.support.process import ROOT, environment
from tests.support.servers import free_port

APP = "tests.support.worker_app"
TURNS = "agenteval_turns_total"
FAILED = 'agenteval_results_total{agent="desk",metric="code_tool_success",outcome="fail"}'
BIN = Path(sys.executable).parent
TEMPORARY = "t"  # a socket in it must have a short path
until = partial(servers.until, timeout=300.0)
"""A longer timeout, because two servers share the CPU with all other tests."""


class Server:
    """A web server with the application."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process = process
        self.port = port
        self.log = log

    def get(self, path: str, accept: str = "application/openmetrics-text; version=1.0.0") -> tuple[int, str]:
        """Return the process id and the body of a response."""
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", headers={"Accept": accept, "Connection": "close"})
        with urllib.request.urlopen(request, timeout=120) as response:
            return int(response.headers["X-Process"]), response.read().decode()

    def ask(self, least: int, workers: int = 2) -> int:
        """Send at least ``least`` requests, until ``workers`` processes have responded. Return their number. One turn fails."""
        answered = {self.get("/ask?fail=1")[0]}
        turns = 1
        while len(answered) < workers or turns < least:
            answered.add(self.get("/ask")[0])
            turns += 1
            assert turns < 3_000, answered
        return turns

    def pages(self, workers: int = 2) -> dict[int, str]:
        """Return a page of each worker."""
        found: dict[int, str] = {}

        def all_answered() -> bool:
            process, page = self.get("/metrics")
            found[process] = page
            return len(found) == workers

        until(all_answered, "each worker shows its page", every=0.001)
        return found

    def shows(self, turns: float) -> None:
        """Wait until each worker's page shows this number of turns."""
        until(lambda: all(sample(page, TURNS) == turns for page in self.pages().values()), f"{turns} turns are shown")


def sample(page: str, name: str) -> float:
    """Return the sum of a name's samples, or the one sample with these labels."""
    labels = r"(?:\{[^}]*\})?" if "{" not in name else ""
    return sum(float(found) for found in re.findall(rf"^{re.escape(name)}{labels} ([0-9.e+]+)", page, re.MULTILINE))


@contextmanager
def running(folder: Path, *command: str, **env: str) -> Iterator[Server]:
    """Start a server, and wait until it responds."""
    port = free_port()
    log = folder / "server.log"
    temporary = folder / TEMPORARY
    temporary.mkdir(exist_ok=True)
    variables = environment({"TMPDIR": str(temporary), "WORKER_APP_FOLDER": str(folder), **env})
    program = [str(BIN / command[0]), *(part.format(port=port) for part in command[1:])]
    with log.open("wb") as out:
        process = subprocess.Popen(program, stdout=out, stderr=out, cwd=ROOT, env=variables)
    try:
        yield Server(process, port, log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(60)
        finally:
            process.kill()


@contextmanager
def serving(folder: Path, *command: str, **env: str) -> Iterator[Server]:
    """Start a web server, and wait until it responds."""
    with running(folder, *command, **env) as server:

        def answers() -> bool:
            assert server.process.poll() is None, server.log.read_text()
            return bool(server.get("/metrics"))

        until(answers, "the server answers")
        yield server


GUNICORN = ("gunicorn", "--workers", "2", "--bind", "127.0.0.1:{port}", "--no-control-socket", f"{APP}:wsgi")
SERVERS = {
    "gunicorn": (*GUNICORN, "--preload"),
    "uvicorn": ("uvicorn", "--workers", "2", "--port", "{port}", "--log-level", "warning", f"{APP}:asgi"),
}


@pytest.mark.parametrize("name", SERVERS)
def test_each_worker_shows_the_turns_of_all(name: str, tmp_path: Path) -> None:
    if name == "uvicorn":
        pytest.importorskip("fastapi", reason="not installed beside the lowest versions")
    with serving(tmp_path, *SERVERS[name]) as server:
        turns = server.ask(10)
        server.shows(turns)
        for page in server.pages().values():
            assert sample(page, FAILED) == 1
            assert sample(page, "agenteval_build_info") == 1  # a gauge that is no sum
            families = {family.name: family for family in text_string_to_metric_families(page)}
            buckets = [one for one in families["agenteval_turn_duration_seconds"].samples if one.name.endswith("_bucket")]
            assert any(one.exemplar is not None and len(one.exemplar.labels["trace_id"]) == 32 for one in buckets)
    assert "Traceback" not in server.log.read_text()


def test_workers_that_die_keep_their_counts_and_lose_their_port(tmp_path: Path) -> None:
    """Two servers of one shell. Each adds up its own workers, and one uses our port."""
    port = str(free_port())
    ours = {"OTEL_AGENTEVAL_OUTLETS__PROMETHEUS__PORT": port}
    with serving(tmp_path, *GUNICORN) as server, serving(tmp_path, *GUNICORN, "--threads", "4", **ours) as other:
        turns, others = server.ask(9), other.ask(6)
        for generation in range(2):  # also those that were added up before
            server.shows(turns)
            os.kill(next(iter(server.pages())), signal.SIGKILL)
            turns += server.ask(1)
            server.shows(turns)
            assert all(sample(page, FAILED) == generation + 2 for page in server.pages().values())
        (folder,) = {path.parent for path in (tmp_path / TEMPORARY).glob("otel-agenteval-*/*/default.*-*.json")}
        assert len(list(folder.glob("default.*-*.json"))) == 2  # the living

        until(lambda: sample(page_of(port), TURNS) == others, "the port shows all turns")
        (held,) = (tmp_path / TEMPORARY).glob("otel-agenteval-*/*/port-*.held")
        until(lambda: written(held.parent) == others, "all turns are in files")
        os.kill(int(held.read_text().partition("-")[0]), signal.SIGKILL)
        others += other.ask(2)
        until(lambda: sample(page_of(port), TURNS) == others, "another worker has the port")
    assert "can't listen" not in server.log.read_text()


def test_the_folder_of_prometheus_client_is_used_where_it_is_set(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    with serving(tmp_path, *GUNICORN, PROMETHEUS_MULTIPROC_DIR=str(shared)) as server:
        turns = server.ask(10)
        server.shows(turns)
        assert "trace_id" in next(iter(server.pages().values()))  # the format of these files has none
        files = [path.stat() for path in shared.glob("*agenteval-*.db")]
        assert files
        assert all(one.st_blocks * 512 >= one.st_size for one in files), "a sparse memory map ends a process on a full disk"
        text = collected_by_their_collector(shared)
        assert sample(text, TURNS) == turns
        assert sample(text, FAILED) == 1
        assert sample(text, "agenteval_turn_duration_seconds_count") == turns
        assert sample(text, "agenteval_build_info") == 1
        assert not list((tmp_path / TEMPORARY).iterdir())
    gauges_left = "no process is left that has a gauge"
    until(lambda: sample(collected_by_their_collector(shared), "agenteval_build_info") == 0, gauges_left)
    assert sample(collected_by_their_collector(shared), TURNS) == turns


def collected_by_their_collector(folder: Path) -> str:
    """Serve pages under gunicorn as the documentation of ``prometheus_client`` describes."""
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
    return generate_latest(registry).decode()


def test_what_multiprocessing_starts_counts_too(tmp_path: Path) -> None:
    page = run(
        tmp_path,
        """
        import multiprocessing, sys
        from prometheus_client import REGISTRY, generate_latest
        from tests.support import worker_app
        def work(turns):
            for _ in range(turns): worker_app.answer()
            worker_app.handle.flush(300)
        if __name__ == "__main__":
            work(2)
            contexts = map(multiprocessing.get_context, ("fork", "spawn", "forkserver"))
            children = [context.Process(target=work, args=(turns,)) for turns, context in enumerate(contexts, 3)]
            for child in children: child.start()
            for child in children: child.join(300)
            work(1)
            sys.stdout.write(generate_latest(REGISTRY).decode())
        """,
    )
    assert sample(page, TURNS) == 2 + 3 + 4 + 5 + 1


def test_a_program_of_one_process_writes_nothing(tmp_path: Path) -> None:
    page = run(
        tmp_path,
        """
        import subprocess, sys, threading
        from prometheus_client import REGISTRY, generate_latest
        from tests.support import worker_app
        worker_app.answer()
        other = "from tests.support import worker_app as w; w.answer(); w.handle.flush(300)"
        subprocess.run([sys.executable, "-c", other], check=True)
        worker_app.handle.flush(300)
        assert not [one for one in threading.enumerate() if "workers" in one.name]
        sys.stdout.write(generate_latest(REGISTRY).decode())
        """,
    )
    assert sample(page, TURNS) == 1
    assert not list((tmp_path / TEMPORARY).iterdir())


def test_worker_knows_if_it_has_siblings(tmp_path: Path) -> None:
    known = run(
        tmp_path,
        """
        import multiprocessing
        from otel_agenteval.core.lineage import has_other_workers
        def work(together, answers):
            together.wait(300)
            answers.put(has_other_workers())
            together.wait(300)
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                context = multiprocessing.get_context(method)
                for count in (1, 2):
                    together, answers = context.Barrier(count), context.SimpleQueue()
                    children = [context.Process(target=work, args=(together, answers)) for _ in range(count)]
                    for child in children: child.start()
                    for child in children: print(answers.get())
                    for child in children: child.join(300)
            print(has_other_workers())
        """,
    )
    assert known.split() == ["False", "True", "True", "False", "True", "True", "False"]


def test_port_of_the_first_process_is_no_conflict(tmp_path: Path) -> None:
    """The first process opens the port before it has children, so no file says so. It never scores a turn itself."""
    warned = run(
        tmp_path,
        """
        import logging, multiprocessing, sys
        from otel_agenteval.core.telemetry import Telemetry
        from otel_agenteval.outlets import prometheus
        from tests.support.servers import free_port
        def work(port, warnings):
            prometheus._CLAIMED_WITHIN = -1.0  # a port without a known owner belongs to another program at once
            outlet = prometheus.PrometheusOutlet(Telemetry(), port=port)
            warnings.put((outlet._take_port(), outlet.trouble))
        if __name__ == "__main__":
            own, other = free_port(), free_port()
            held = prometheus.PrometheusOutlet(Telemetry(), port=own)
            spawn = multiprocessing.get_context("spawn")
            warnings = spawn.SimpleQueue()
            child = spawn.Process(target=work, args=(own, warnings))
            child.start()
            print(*warnings.get())
            child.join(300)
        """,
    )
    assert warned.split() == ["False"]


def run(folder: Path, program: str) -> str:
    """Return the output of a program in a file, which processes started by multiprocessing need."""
    script, temporary = folder / "program.py", folder / TEMPORARY
    script.write_text(textwrap.dedent(program))
    temporary.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, str(script)],
        capture_output=True,
        text=True,
        timeout=400,
        env=environment({"TMPDIR": str(temporary)}),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout


def page_of(port: str) -> str:
    """Return the page of our port. Raises OSError while no process has the port."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=120) as response:
        return str(response.read().decode())


def written(folder: Path) -> float:
    """Return the number of turns in the files of all workers."""
    pages = [json.loads(path.read_text()) for path in folder.glob("port-*.*-*.json")]
    return sum(value for page in pages for _, value in page["families"].get("agenteval.turns", [[]])[0])


@pytest.mark.slow
def test_workers_of_celery(tmp_path: Path) -> None:
    port = str(free_port())
    env = {"OTEL_AGENTEVAL_OUTLETS__PROMETHEUS__PORT": port}
    with running(
        tmp_path, "celery", "-A", f"{APP}:celery", "worker", "--concurrency", "2", "--without-mingle", "--without-gossip", **env
    ) as server:
        code = f"from {APP} import celery; [celery.send_task('ask', kwargs={{'fail': n == 0}}) for n in range(12)]"
        variables = environment({"WORKER_APP_FOLDER": str(tmp_path)})
        subprocess.run([sys.executable, "-c", code], check=True, timeout=400, env=variables, cwd=ROOT)
        done = tmp_path / "done.jsonl"
        until(lambda: done.exists() and len(done.read_text().splitlines()) == 12, "all tasks are done")
        assert server.process.poll() is None, server.log.read_text()
        until(lambda: sample(page_of(port), TURNS) == 12, "the port shows all turns")
        assert sample(page_of(port), FAILED) == 1
        assert len({json.loads(line)["process"] for line in done.read_text().splitlines()}) == 2


def test_a_folder_that_cannot_be_had_is_said_once(tmp_path: Path) -> None:
    page = run(
        tmp_path,
        """
        import os, sys, logging
        logging.basicConfig(stream=sys.stdout)
        from prometheus_client import REGISTRY, generate_latest
        os.environ["PROMETHEUS_MULTIPROC_DIR"] = sys.argv[0] + "/x"
        from tests.support import worker_app
        for _ in range(3):
            worker_app.answer(); worker_app.handle.flush(300)
        print(generate_latest(REGISTRY).decode())
        """,
    )
    assert page.count("PROMETHEUS_MULTIPROC_DIR") == 1
    assert sample(page, TURNS) == 3
    assert sample(page, 'agenteval_emit_errors_total{outlet="prometheus",reason="workers_apart"}') == 1


def labels_of(name: str) -> tuple[str, ...]:
    return ("m", "a", "1h", "raw") if name.startswith(semconv.ESTIMATE_PASSES) else ("m", "a", "1h")


def estimates(**found: float) -> Any:
    instruments = {one.name: one for one in semconv.INSTRUMENTS}

    class Fixed:
        def read(self, name: str) -> Family:
            value = found.get(name.rpartition(".")[2])
            return Family(instruments[name], {} if value is None else {labels_of(name): value}, {})

    return Fixed()


def test_estimates_of_two_workers_are_weighted_and_not_added() -> None:
    members = [
        estimates(mean=0.8, ci_low=0.7, ci_high=0.9, n_eff=100.0, pass_rate=0.9),
        estimates(mean=0.4, ci_low=0.2, ci_high=0.6, n_eff=25.0, pass_rate=0.5),
        estimates(),
    ]
    found = {name: merged(name, members).values[labels_of(name)] for name in semconv.ESTIMATES}
    assert found[semconv.ESTIMATE_N] == 125
    assert found[semconv.ESTIMATE_MEAN] == pytest.approx(0.72)
    assert found[semconv.ESTIMATE_PASSES] == pytest.approx(0.82)
    assert found[semconv.ESTIMATE_PASSES_LOW] == pytest.approx(0.82 - (20.0**2 + 7.5**2) ** 0.5 / 125)
    half = (10.0**2 + 5.0**2) ** 0.5 / 125
    assert found[semconv.ESTIMATE_LOW] == pytest.approx(0.72 - half)
    assert found[semconv.ESTIMATE_HIGH] == pytest.approx(0.72 + half)


@pytest.mark.parametrize(
    ("name", "values", "shown"),
    [
        (semconv.BUDGET_REMAINING, (5.0, 4.9), 4.9),
        (semconv.BUDGET_CALLS, (8.0, 9.0), 8.0),
        (semconv.QUEUE_SIZE, (10.0, 20.0), 20.0),
        (semconv.QUEUE_CAPACITY, (64.0, 64.0), 64.0),
        (semconv.TURNS_OPEN, (1.0, 2.0), 3.0),
    ],
)
def test_gauges_of_shared_things_are_not_summed(name: str, values: tuple[float, ...], shown: float) -> None:
    members = [estimates(**{name.rpartition(".")[2]: value}) for value in values]
    assert list(merged(name, members).values.values()) == [shown]
