"""Situations of public reports on environments, child processes, failovers and receivers. Each docstring names the reports."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_agenteval.config.loader import effective_yaml, load_config
from otel_agenteval.core.errors import ConfigError, Unusable
from otel_agenteval.judging.queues.redis_server import Server, connect
from otel_agenteval.server.app import state_folder
from tests.support.otlp_json import write_lines
from tests.support.process import PRELUDE, output_of, run
from tests.support.redis_server import RedisServer
from tests.support.servers import free_port
from tests.support.service import Sidecar, left_in, turn_of

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")
needs_atexit = pytest.mark.skipif(sys.version_info < (3, 13), reason="forked children end without atexit")

# --- environment

SERVICE = MappingProxyType({
    "SERVICE_HOST": "10.96.0.7", "SERVICE_PORT": "14318", "SERVICE_PORT_OTLP_HTTP": "14318", "PORT": "tcp://10.96.0.7:14318",
    "PORT_14318_TCP": "tcp://10.96.0.7:14318", "PORT_14318_TCP_ADDR": "10.96.0.7", "PORT_14318_TCP_PORT": "14318", "PORT_14318_TCP_PROTO": "tcp",
})  # fmt: skip
"""What Kubernetes sets for a service, after the service's name."""


@pytest.mark.parametrize("name", ["", "OTEL_AGENTEVAL_", "JUDGE_", "METRICS_"])
def test_services_of_kubernetes_are_no_options(name: str) -> None:
    """sequin 2155, gpustack 5891, dify 539: Kubernetes sets variables for each service, such as ``otel-agenteval-metrics``."""
    given = {f"OTEL_AGENTEVAL_{name}{end}": value for end, value in SERVICE.items()}
    config = load_config(env={**given, "OTEL_AGENTEVAL_TURN__MAX_SPANS": "7"})
    assert config.turn.max_spans == 7


@pytest.mark.parametrize(
    "given",
    [
        {"SERVICE_PORT": "4318"},
        {"SERVE_PORT": "4318"},
        {"PORT": "tcp://10.96.0.7:1"},
        {"SERVICE_HOST": "example"},
        {"SERVICE_HOST": "example", "PORT": "4318"},
        {**SERVICE, "SERVE_HTTP": "127.0.0.1:1"},
        {**SERVICE, "PORTS": "1"},
    ],
    ids=str,
)
def test_misspelled_variables_are_refused(given: Mapping[str, str]) -> None:
    """Opposites of sequin 2155: variables that only look like those of a service."""
    with pytest.raises(ConfigError, match="unknown variable"):
        load_config(env={f"OTEL_AGENTEVAL_{end}": value for end, value in given.items()})


@pytest.mark.parametrize("end", ["\n", "\r\n", " ", "\t"])
def test_secrets_in_headers_may_end_with_a_line_end(end: str, tmp_path: Path) -> None:
    """kthena 1636, external-dns 5400, kubernetes 52919: a secret was made from the output of ``echo``."""
    file = tmp_path / "agenteval.yaml"
    file.write_text('judge: {headers: {Authorization: "Bearer ${env:KEY}"}, base_url: http://127.0.0.1:1/v1, model: m}\n')
    assert load_config(file, env={"KEY": f"s3cret{end}"}).judge.headers == {"authorization": "Bearer s3cret"}
    for inner in ("s3\ncret", "s3\x00cret", "s3\rcret: x\n"):
        with pytest.raises(ConfigError, match=r"judge\.headers: must be a mapping"):
            load_config(file, env={"KEY": inner})


def test_user_without_a_home_gets_an_error_with_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    """nixpkgs 411914, determined 10010: the container's user id has no entry in ``/etc/passwd``, and ``HOME`` is unset."""
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    with pytest.raises(ConfigError, match=r"can't create folder: Could not determine home directory.*judge\.queue\.path"):
        state_folder()


def test_state_folder_is_below_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opposites of nixpkgs 411914."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", " ")
    assert state_folder() == tmp_path / "home/.local/state/otel-agenteval"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    assert state_folder() == tmp_path / "state/otel-agenteval"


# --- addresses

TEAMS = "https://prod-00.westus.logic.azure.com:443/workflows/ab/triggers/manual/paths/invoke?api-version=2016-06-01&sp=%2Ftriggers&sig=S1gn"
OLD_TEAMS = "https://acme.webhook.office.com/webhookb2/aa-bb@cc-dd/IncomingWebhook/ee/ff"


@pytest.mark.parametrize(
    "url", [TEAMS, OLD_TEAMS, "https://chat.example/v1/spaces/A/messages?key=k&token=t", "https://hook.example/in/"]
)
def test_webhooks_may_have_queries(url: str) -> None:
    """backman 89, supercheck 195, apprise 1675: the addresses of Teams' webhooks contain a signature or an ``@``."""
    config = load_config({"outlets": {"webhook": {"url": url, "format": "teams"}}}, env={})
    assert config.outlets.webhook is not None
    assert config.outlets.webhook.url == url
    assert "S1gn" not in effective_yaml(config)


@pytest.mark.parametrize(
    "url", ["https://user:s3cret@hook.example", "https://hook.example/#a", "ftp://hook.example/", "hook", ""]
)
def test_addresses_with_credentials_arent_webhooks(url: str) -> None:
    """Opposites of backman 89."""
    with pytest.raises(ConfigError, match="without credentials or fragment") as error:
        load_config({"outlets": {"webhook": {"url": url}}}, env={})
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/v1?key=a", "http://me@127.0.0.1:1/v1"])
def test_addresses_of_servers_have_no_queries(url: str) -> None:
    """Opposites of backman 89: paths are appended to these addresses."""
    with pytest.raises(ConfigError, match="without credentials, query, or fragment"):
        load_config({"judge": {"base_url": url, "model": "m"}}, env={})


@pytest.mark.parametrize(
    "scheme", ["postgresql+psycopg", "postgress", "mysql", "sqlite", "Postgresql", "redis", " postgresql", "jdbc:postgresql"]
)
def test_stores_of_other_databases_are_refused(scheme: str) -> None:
    """OwlSQL 21, doctrine/dbal 5339: the address is taken for the name of a file, and its password is logged."""
    with pytest.raises(ConfigError, match="must be the path of a file, or start with postgresql://") as error:
        load_config({"outlets": {"store": f"{scheme}://me:s3cret@host/scores"}}, env={})
    assert "s3cret" not in str(error.value)


@pytest.mark.parametrize(
    "path",
    ["postgres://me:pw@host/scores", "postgresql://host/scores", "file:a.db", "C:\\scores.db", "C:/scores.db", "./x://y.db"],
)
def test_other_names_of_stores_stay(path: str) -> None:
    """Opposites of OwlSQL 21."""
    store = load_config({"outlets": {"store": path}}, env={}).outlets.store
    assert store is not None
    assert store.path == path


@pytest.mark.parametrize(
    ("hosts", "nodes"),
    [
        ("[2001:db8::1]:26380", [("2001:db8::1", 26380)]),
        ("[2001:db8::1]", [("2001:db8::1", 26379)]),
        ("[::1]:1,[::2]", [("::1", 1), ("::2", 26379)]),
        ("a, b:26380", [("a", 26379), ("b", 26380)]),
        ("me:p%40w@127.0.0.1:7", [("127.0.0.1", 7)]),
    ],
)
def test_sentinels_can_have_ipv6_addresses(hosts: str, nodes: list[tuple[str, int]]) -> None:
    """dify 42110, redisson 1724, gnocchi 1374: hosts and ports of Sentinels are split at the wrong colon."""
    manager = connect(f"redis+sentinel://{hosts}/turns").connection_pool.sentinel_manager
    found = [one.connection_pool.connection_kwargs for one in manager.sentinels]
    assert [(one["host"], one["port"]) for one in found] == nodes


# --- Redis


class Switch:
    """An address that leads to one of several servers, like a name that a failover points to another server."""

    def __init__(self, port: int) -> None:
        self.to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, server = self._listener.accept()[0], socket.create_connection(("127.0.0.1", self.to))
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                target.sendall(data)
        target.close()
        source.close()

    def close(self) -> None:
        self._listener.close()


@pytest.fixture
def two_servers(tmp_path: Path) -> Iterator[tuple[RedisServer, RedisServer]]:
    servers = RedisServer(tmp_path / "a"), RedisServer(tmp_path / "b", port=free_port())
    yield servers
    for server in servers:
        server.stop()


def test_failover_behind_one_address_is_followed(
    two_servers: tuple[RedisServer, RedisServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """spring-data-redis 3431, redis-client 69: connections to the demoted server stay open, and it refuses writes."""
    monkeypatch.setattr("otel_agenteval.judging.queues.redis_server._FIRST_PAUSE", 0.0)
    old, new = two_servers
    switch = Switch(old.port)
    server = Server(f"redis://127.0.0.1:{switch.port}")
    try:
        assert server.call(lambda client: client.set("x", 1))
        old.client().execute_command("REPLICAOF", "127.0.0.1", str(new.port))
        with pytest.raises(Unusable, match="read only"):  # the address hasn't changed yet
            server.call(lambda client: client.set("x", 2))
        switch.to = new.port
        assert server.call(lambda client: client.set("x", 3))
        assert new.client().get("x") == b"3"
        with pytest.raises(Exception, match="WRONGTYPE"):  # an opposite: such an error says nothing about the connection
            server.call(lambda client: client.lpush("x", 1))
        assert not server.failing
    finally:
        server.close()
        switch.close()


# --- child processes

CHILDREN = """
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider, config={"outlets": {"prometheus": None, "jsonl": sys.argv[1]}})
tracer = provider.get_tracer("app")
fork = multiprocessing.get_context("fork")
def work(name):
    turn(tracer, name)
"""


@needs_fork
@pytest.mark.parametrize(
    ("script", "agents"),
    [
        ("child = fork.Process(target=turn, args=(tracer, 'a')); child.start(); child.join()", ["a"]),
        ("turn(tracer, 'a')\nchild = fork.Process(target=turn, args=(tracer, 'b')); child.start(); child.join()", ["a", "b"]),
        ("pool = fork.Pool(1, maxtasksperchild=1); pool.map(work, 'abc', 1); pool.close(); pool.join()", [*"abc"]),
        ("with ProcessPoolExecutor(1, fork) as pool: list(pool.map(work, 'ab'))", ["a", "b"]),
        ("def ending():\n    turn(tracer, 'a'); sys.exit(3)\nchild = fork.Process(target=ending); child.start(); child.join()", ["a"]),
        ("turn(tracer, 'a')\nchild = fork.Process(target=print); child.start(); child.join()", ["a"]),
        ("turn(tracer, 'a')\nif os.fork() == 0: os._exit(0)\nos.wait()", ["a"]),
    ],
    ids=["process", "parent and process", "one task per process", "executor", "exit", "idle process", "plain fork"],
)  # fmt: skip
def test_last_turns_of_child_processes_are_scored(script: str, agents: list[str], tmp_path: Path) -> None:
    """opentelemetry-python 1567, opentelemetry-python-contrib 4916: such processes end without calling ``atexit``'s functions."""
    output_of(CHILDREN + script, str(tmp_path / "scores"))
    scores = [json.loads(line) for line in (tmp_path / "scores").read_text().splitlines()]
    assert sorted({score["agent"] for score in scores}) == agents
    assert len({score["result_id"] for score in scores}) == len(scores)


def test_last_turns_of_celery_workers_are_scored(tmp_path: Path) -> None:
    """opentelemetry-python-contrib 4916, dd-trace-py 6663: Celery replaces a process after ``worker_max_tasks_per_child`` tasks."""
    pytest.importorskip("celery")
    script = """
from celery import signals
pid = os.fork()
if pid == 0:
    turn(tracer, "a")
    signals.worker_process_shutdown.send(sender="worker", pid=os.getpid(), exitcode=0)
    os._exit(0)
os.waitpid(pid, 0)
"""
    output_of(CHILDREN + script, str(tmp_path / "scores"))
    assert "result_id" in (tmp_path / "scores").read_text()


@needs_fork
@pytest.mark.parametrize(
    ("child", "exits"),
    [
        ("child = fork.Process(target=work, args=('b',)); child.start(); child.join()", 1),
        ("if (pid := os.fork()) == 0: work('b'); end()\nos.waitpid(pid, 0)", 1),
        ("if (pid := os.fork()) == 0: work('b'); handle.shutdown(); end()\nos.waitpid(pid, 0)", 0),
        ("if (pid := os.fork()) == 0: end()\nos.waitpid(pid, 0)", 0),
    ],
    ids=["multiprocessing", "Celery", "Celery after a shutdown", "idle Celery"],
)
def test_child_process_that_hangs_ends(child: str, exits: int, tmp_path: Path) -> None:
    """Opposites of opentelemetry-python-contrib 4916: a parent waits for such a child, but exits of children had no limit, and
    Celery called the parent's handler too.
    """
    pytest.importorskip("celery")
    script = """
from celery import signals
from otel_agenteval.engine.engine import Engine
def hanging(engine):
    print("exit", flush=True); time.sleep(55)
Engine.exit = hanging
def end():
    signals.worker_process_shutdown.send(sender="worker", pid=os.getpid(), exitcode=0); os._exit(0)
turn(tracer, "a")
start = time.monotonic()
"""
    end = "\nassert time.monotonic() - start < 40\nsys.stdout.flush(); os._exit(0)"
    env = {"OTEL_AGENTEVAL_EXIT_TIMEOUT": "6s"}
    assert output_of(CHILDREN + script + child + end, str(tmp_path / "scores"), env=env) == "exit\n" * exits


@pytest.mark.parametrize("method", ["spawn", pytest.param("fork", marks=[needs_fork, needs_atexit])])
def test_thread_may_finish_a_turn_after_its_process(method: str, tmp_path: Path) -> None:
    """Opposites of opentelemetry-python 1567: these processes wait for threads, and then call ``atexit``'s functions."""
    work = """
def work(path):
    provider = TracerProvider()
    oa.instrument(tracer_provider=provider, config={"outlets": {"prometheus": None, "jsonl": path}})
    tracer, began = provider.get_tracer("app"), threading.Event()
    def late():
        with agent(tracer, "late"):
            began.set(); time.sleep(1); chat(tracer)
    threading.Thread(target=late).start()
    began.wait()
"""
    (tmp_path / "late_turn.py").write_text(PRELUDE + work)
    script = """
import multiprocessing
sys.path.insert(0, sys.argv[1])
import late_turn
child = multiprocessing.get_context(sys.argv[2]).Process(target=late_turn.work, args=(sys.argv[1] + "/scores",))
child.start(); child.join()
"""
    output_of(script, str(tmp_path), method)
    assert {json.loads(line).get("agent") for line in (tmp_path / "scores").read_text().splitlines()} == {"late"}


# --- current folder


@pytest.mark.parametrize("option", ["jsonl", "otlp_file", "store"])
def test_relative_files_stay_in_the_first_folder(option: str, tmp_path: Path) -> None:
    """vzlogger 377, erlang/otp 2264: a daemon changes its current folder after it has read its configuration."""
    (tmp_path / "first").mkdir()
    script = """
os.chdir(sys.argv[1] + "/first")
provider = TracerProvider()
config = {"outlets": {"prometheus": None, sys.argv[2]: "out"}}
handle = oa.instrument(tracer_provider=provider, config=config)
os.chdir(sys.argv[1])
turn(provider.get_tracer("app"))
"""
    output_of(script, str(tmp_path), option)
    assert (tmp_path / "first/out").stat().st_size > 0
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["jsonl", "otlp_file", "store"])
def test_deleted_current_folder_is_no_exception(option: str, tmp_path: Path) -> None:
    """Sibling of vzlogger 377: the current folder was deleted before the start."""
    script = """
os.mkdir(sys.argv[1] + "/gone"); os.chdir(sys.argv[1] + "/gone"); os.rmdir(sys.argv[1] + "/gone")
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider, config={"exit_timeout": "1s", "outlets": {"prometheus": None, sys.argv[2]: "out"}})
turn(provider.get_tracer("app"))
print(handle.flush(0.1))
"""
    done = run(PRELUDE + script, str(tmp_path), option)
    assert (done.returncode, done.stdout) == (0, "False\n")
    assert "Traceback" not in done.stderr


# --- receiving


def as_json(folder: Path, trace: int) -> bytes:
    """A turn as an OTLP/JSON request."""
    return write_lines([ExportTraceServiceRequest.FromString(turn_of(trace))], folder / "turn.json").read_bytes()


def test_json_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    """n8n 35933, Pode 1604: programs on Windows write U+FEFF before JSON."""
    headers = {"Content-Type": "application/json"}
    with Sidecar() as sidecar:
        for mark, status in (
            (b"", 200),
            (b"\xef\xbb\xbf", 200),
            (b"\xff\xfe", 400),
            (b"\xef\xbb\xbf\xef\xbb\xbf", 400),
            (b"\xef\xbb\xbf{", 400),
        ):
            assert sidecar.post("/v1/traces", mark + as_json(tmp_path, 1), headers)[0] == status
        assert len(sidecar.turns()) == 1
        body = json.dumps({"trace_id": f"{1:032x}", "score": 1}).encode()
        for mark, status in ((b"\xef\xbb\xbf", 200), (b"\xef\xbb", 400)):
            assert sidecar.post("/v1/feedback", mark + body, headers)[0] == status
        for empty in (b"", b" ", b"{}"):
            assert sidecar.post("/v1/traces", empty, headers)[0] == 200


def test_target_may_be_a_whole_url() -> None:
    """cpython 132741, hono/node-server 228, zoxy 233: a proxy passes on the whole URL, as servers must accept."""
    with Sidecar() as sidecar:
        own = f"http://{sidecar.addresses['http']}"
        for target, status in (
            (f"{own}/v1/traces", 200),
            (f"{own}/v1/traces?a=http://b/c", 200),
            (own, 404),
            (f"{own}/v1/x", 404),
            ("/http://a/v1/traces", 404),
            ("//a/v1/traces", 404),
        ):
            assert sidecar.post(target, turn_of(1))[0] == status, target
        assert sidecar.post(f"{own}/v1/traces", turn_of(1), {"Host": "evil.example"})[0] == 403


# --- journal


@pytest.mark.parametrize(
    ("damage", "turns", "is_reported"),
    [
        (lambda data: data, 3, False),
        (lambda data: b"", 0, False),
        (lambda data: data[:-9], 2, True),
        (lambda data: data + bytes(4096), 3, True),
        (lambda data: data[: len(data) // 2] + bytes([data[len(data) // 2] ^ 1]) + data[len(data) // 2 + 1 :], 1, True),
        (lambda data: bytes(len(data)), 0, True),
    ],
    ids=["whole", "empty", "truncated", "zeros at the end", "a bit", "zeros"],
)
def test_damaged_journal_is_reported(damage, turns: int, is_reported: bool, tmp_path: Path, caplog) -> None:  # type: ignore[no-untyped-def]
    """braft 436, ra 170, sierradb 13: after a power failure, a segment ends with zeros or is damaged."""
    left_in(tmp_path / "journal", *(("traces", turn_of(number), False, None) for number in (1, 2, 3)))
    [segment] = (tmp_path / "journal").rglob("*.requests")
    segment.write_bytes(damage(segment.read_bytes()))
    with Sidecar({"serve": {"journal": str(tmp_path / "journal")}}) as sidecar:
        assert len(sidecar.turns()) == turns
        assert sidecar.post("/v1/traces", turn_of(9))[0] == 200
    assert ("incomplete or damaged request" in caplog.text) is is_reported
