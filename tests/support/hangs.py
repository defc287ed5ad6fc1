"""External services and files that hang, and the effect on the sidecar."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import sqlite3
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tests.support.judges import SteadyModels
from tests.support.kafka import Kafka
from tests.support.postgres import postgres_server
from tests.support.process import ROOT
from tests.support.proxy import Proxy
from tests.support.receiver import GrpcReceiver, Received, Receiver, plain
from tests.support.redis_server import RedisServer
from tests.support.sender import TOGETHER, Sender, body, turn_id
from tests.support.servers import Process, answers, free_port, until
from tests.support.shim import HUNG, Shim
from tests.support.sidecar import Sidecar

DRAIN = 3
"""Seconds of ``serve.drain_timeout``."""
END_WITHIN = DRAIN + 5
NAMED_WITHIN = 30.0
_SCORED_WITHIN = 40.0
_DELIVERED_WITHIN = 120.0
_DELAY = 0.3
"""Seconds by which a slow server delays each piece of a response."""
HOWS = ("is frozen from the start", "freezes during use", "is silent", "is slow")
_BUT_SILENT = tuple(how for how in HOWS if how != "is silent")
Arrived = Callable[[], set[str]]


class Front(Protocol):
    """The address that the sidecar uses, with switches for the service behind it."""

    def silence(self) -> None:
        """Stop responding, but keep connections open."""

    def mute(self) -> None:
        """Accept everything, but respond to nothing."""

    def slow(self, seconds: float) -> None:
        """Delay each response."""

    def heal(self) -> None:
        """Respond again."""

    def close(self) -> None:
        """End."""


@dataclass(frozen=True)
class Thing:
    """A service or file that the sidecar uses.

    Attributes:
        run: function that starts it in a folder. It yields the port or path, the switch, and the ids of delivered turns.
        config: the configuration with that port or path.
        named: name of its check in ``/readyz?verbose``, or empty if the sidecar can't detect that it hangs.
        script: Python code to run in the sidecar's process, with ``PORT``.
        most: maximum sensible number of turns.
        lines: True if turns are counted in JSON lines, otherwise in the store.
        hows: the different ways to hang.
    """

    run: Callable[[Path], AbstractContextManager[tuple[Any, Front, Arrived | None]]]
    config: Callable[[Any], Mapping[str, Any]]
    named: str = ""
    script: str = ""
    most: int = 2_000
    lines: bool = True
    hows: Sequence[str] = HOWS


@dataclass(frozen=True)
class Hang:
    sent: int
    accepted: int
    scored: int
    """Number of turns in another outlet before the end of the fault."""
    readable: int
    """Number of accepted turns that the sidecar could read before the end of the fault."""
    named: float | None
    """Seconds until the health endpoint reported the hang."""
    is_named: bool
    """False if the health endpoint must report the hang, but doesn't."""
    ended: float
    """Seconds from SIGTERM to the exit."""
    lost: int
    """Number of acknowledged turns that are missing in the other outlet, or that weren't delivered after the fault."""

    @property
    def is_well(self) -> bool:
        """Return True if no promise is broken."""
        whole = self.sent == self.accepted > 0 and self.scored == self.readable
        return whole and self.is_named and self.ended < END_WITHIN and not self.lost


# --- services and files


class Models(SteadyModels):
    """Responses for every path, including webhooks."""

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path.endswith("/embeddings"):
            return super().answer(path, body)
        message = {"role": "assistant", "content": json.dumps({"score": 90, "reason": "It answers."})}
        usage = {"prompt_tokens": 10, "completion_tokens": 5}
        return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}], "usage": usage}


@contextmanager
def postgres(_: Path) -> Iterator[tuple[Any, Front, Arrived | None]]:
    import psycopg

    with postgres_server() as server:
        address = server.database()
        proxy = Proxy(server.port)

        def stored() -> set[str]:
            with psycopg.connect(address, autocommit=True) as db, contextlib.suppress(psycopg.errors.UndefinedTable):
                return {found for (found,) in db.execute("SELECT DISTINCT turn_id FROM agenteval.scores")}
            return set()

        yield address.replace(f":{server.port}/", f":{proxy.port}/"), proxy, stored
        proxy.close()


@contextmanager
def redis(folder: Path) -> Iterator[tuple[Any, Front, Arrived | None]]:
    server, models = RedisServer(folder / "redis"), Models()
    proxy = Proxy(server.port)
    yield (proxy.port, models.url), proxy, lambda: turns_in(folder, "llm_relevance")
    proxy.close()
    models.close()
    server.stop()


def models_for(metric: str | None) -> Callable[[Path], AbstractContextManager[tuple[Any, Front, Arrived | None]]]:
    """Return a function that runs a server behind a proxy. The server accepts model calls, webhooks and other POST requests."""

    @contextmanager
    def run(folder: Path) -> Iterator[tuple[Any, Front, Arrived | None]]:
        models = Models()
        proxy = Proxy(int(models.url.split(":")[2].partition("/")[0]))
        yield f"http://127.0.0.1:{proxy.port}/v1", proxy, (lambda: turns_in(folder, metric)) if metric is not None else None
        proxy.close()
        models.close()

    return run


def receiver(kind: type[Receiver | GrpcReceiver]) -> Callable[[Path], AbstractContextManager[tuple[Any, Front, Arrived | None]]]:
    """Return a function that runs an OTLP endpoint behind a proxy."""

    @contextmanager
    def run(_: Path) -> Iterator[tuple[Any, Front, Arrived | None]]:
        server = kind()
        proxy = Proxy(server.port if isinstance(server, GrpcReceiver) else int(server.url.rpartition(":")[2]))
        yield f"http://127.0.0.1:{proxy.port}", proxy, lambda: in_receiver(server)
        proxy.close()
        server.close()

    return run


def in_receiver(received: Received) -> set[str]:
    """Return the ids of turns whose scores arrived."""
    return {str(plain(record.attributes)["agenteval.turn.id"]) for record in received.scores()}


class Pipe:
    """A named pipe with a reader."""

    def __init__(self, path: Path) -> None:
        self.path = path
        os.mkfifo(path)
        self._reads = threading.Event()
        self._delay = 0.0
        self._file: int | None = None
        self.heal()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            self._reads.wait()
            with contextlib.suppress(OSError, TypeError):  # no data yet, or closed
                os.read(self._file, 65_536 if not self._delay else 4_096)  # type: ignore[arg-type]
            time.sleep(self._delay or 0.01)

    def silence(self) -> None:
        """Keep the pipe open, and don't read."""
        self._reads.clear()

    def mute(self) -> None:
        """Close the pipe, so that it can't be opened for writing."""
        self._reads.clear()
        self.close()

    def slow(self, seconds: float) -> None:
        """Read 4 kB at a time."""
        self._delay = seconds

    def heal(self) -> None:
        if self._file is None:
            self._file = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
            fcntl.fcntl(self._file, 1031, 4_096)  # F_SETPIPE_SZ: a small pipe, which few lines fill
        self._delay = 0.0
        self._reads.set()

    def close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            os.close(file)


@contextmanager
def pipe(folder: Path) -> Iterator[tuple[Any, Front, Arrived | None]]:
    """Create a named pipe for an outlet."""
    found = Pipe(folder / "pipe")
    yield str(found.path), found, None
    found.close()


class Clients:
    """Clients of the sidecar that don't read its responses."""

    MANY = 40

    def __init__(self, path: str) -> None:
        self._request = f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()
        self._how: Callable[[socket.socket], None] | None = None
        self._open: list[socket.socket] = []
        self._port = 0

    def attach(self, port: int) -> None:
        """Connect the clients if a way to hang is set, and remember the port."""
        self._port = port
        for _ in range(self.MANY if self._how is not None else 0):
            one = socket.create_connection(("127.0.0.1", port), timeout=10)
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
            self._open.append(one)
            threading.Thread(target=self._how, args=(one,), daemon=True).start()

    def _set(self, how: Callable[[socket.socket], None]) -> None:
        self._how = how
        if self._port:
            self.attach(self._port)

    def _send(self, one: socket.socket) -> None:
        with contextlib.suppress(OSError):
            one.sendall(self._request * 200)

    def silence(self) -> None:
        """Send requests, but don't read responses."""
        self._set(self._send)

    def mute(self) -> None:
        """Send only the beginning of a request."""
        self._set(lambda one: one.sendall(self._request[:10]))

    def slow(self, seconds: float) -> None:
        """Read responses byte by byte."""

        def read(one: socket.socket) -> None:
            with contextlib.suppress(OSError):
                one.sendall(self._request)
                while one.recv(1):
                    time.sleep(seconds)

        self._set(read)

    def heal(self) -> None:
        """Disconnect."""
        self._how = None
        while self._open:
            self._open.pop().close()

    close = heal


@contextmanager
def hung_disk(folder: Path) -> Iterator[tuple[Any, Front, Arrived | None]]:
    """Let writes to some files hang."""
    with Shim(folder) as shim:
        yield str(folder / HUNG), shim, lambda: turns_in(folder, name=f"{HUNG}.jsonl") | stored_in(folder, f"{HUNG}.db")


def clients(path: str) -> Callable[[Path], AbstractContextManager[tuple[Any, Front, Arrived | None]]]:
    """Return a function that runs clients of a path."""

    @contextmanager
    def run(_: Path) -> Iterator[tuple[Any, Front, Arrived | None]]:
        found = Clients(path)
        yield "/metrics" if path == "/metrics" else "", found, None
        found.close()

    return run


METRIC = """
import urllib.request
import otel_agenteval as oa

@oa.metric()
def code_asks(turn: oa.Turn) -> float:
    '''Asks a server, without a timeout.'''
    with urllib.request.urlopen(urllib.request.Request("PORT", b"{}")) as answer:
        return float(answer.status == 200)
"""


def _judged(metric: str) -> Mapping[str, Any]:
    return {"metrics": [{metric: {}, "sample": {"rate": 1.0}}]}


THINGS: Mapping[str, Thing] = {
    "PostgreSQL": Thing(postgres, lambda address: {"outlets": {"store": address}}, "outlet store"),
    "Redis": Thing(
        redis,
        lambda at: {
            **_judged("llm_relevance"),
            "judge": {"model": "m", "base_url": at[1], "queue": {"backend": "redis", "url": f"redis://127.0.0.1:{at[0]}/0", "lease": "20s"}},
        },
        "judge queue", most=100,
    ),
    "judge server": Thing(
        models_for("llm_relevance"), lambda url: {**_judged("llm_relevance"), "judge": {"model": "m", "base_url": url, "queue": {"lease": "20s"}}}, "judge", most=100
    ),
    "embedding server": Thing(
        models_for("embed_coherence"),
        lambda url: {**_judged("embed_coherence"), "embedder": {"model": "m", "base_url": url}, "judge": {"queue": {"lease": "20s"}}}, "embedder", most=100,
    ),
    "OTLP/gRPC receiver": Thing(
        receiver(GrpcReceiver), lambda url: {"outlets": {"otlp": {"endpoint": url, "protocol": "grpc"}}}, "outlet otlp"
    ),
    "OTLP/HTTP receiver": Thing(
        receiver(Receiver), lambda url: {"outlets": {"otlp": {"endpoint": url, "protocol": "http"}}}, "outlet otlp"
    ),
    "webhook receiver": Thing(
        models_for(None),
        lambda url: {
            "metrics": [{"code_max_duration": {"max_seconds": 0.5}}],
            "outlets": {"webhook": {"url": url, "about": ["failed", "errors"], "every": "0s"}},
        },
        "outlet webhook",
    ),
    "server that a metric calls": Thing(
        models_for(None), lambda _: {"inline": {"metrics": ["code_asks", "code_refusal"]}}, "metric code_asks", METRIC, most=40
    ),
    "pipe for OTLP lines": Thing(pipe, lambda path: {"outlets": {"otlp_file": path}}, "outlet otlp_file"),
    "pipe for JSON lines": Thing(pipe, lambda path: {"outlets": {"jsonl": path}}, "outlet jsonl", lines=False),
    "network disk with JSON lines": Thing(
        hung_disk, lambda path: {"outlets": {"jsonl": f"{path}.jsonl"}}, "outlet jsonl", lines=False, hows=_BUT_SILENT
    ),
    "network disk with the store": Thing(
        hung_disk, lambda path: {"outlets": {"store": f"{path}.db"}}, "outlet store", hows=_BUT_SILENT
    ),
    "Prometheus scraper": Thing(clients("/metrics"), lambda _: {}),
    "web UI client": Thing(clients("/api/v1/turns?limit=100"), lambda _: {}, lines=False),
}  # fmt: skip


WAYS: Mapping[str, Sequence[str]] = {**{what: thing.hows for what, thing in THINGS.items()}, "Kafka": HOWS}
"""Ways to hang, by service or file."""


# --- the row


def hang(what: str, how: str, folder: Path, turns: int) -> Hang:
    """Run a sidecar with a hanging service or file, and return the result."""
    thing = THINGS[what]
    turns = min(turns, thing.most)
    with thing.run(folder) as (at, front, arrived):
        other = (lambda: turns_in(folder)) if thing.lines else (lambda: stored_in(folder))
        breaks: Mapping[str, Callable[[], None]] = {"is silent": front.mute, "is slow": lambda: front.slow(_DELAY)}
        begin = breaks.get(how, front.silence)
        if how != "freezes during use":
            begin()
        config = with_other(thing.config(at), folder, lines=thing.lines)
        env = front.env if isinstance(front, Shim) else {}
        with Sidecar(folder, config, script=thing.script.replace("PORT", str(at)), env=env, journal=True) as sidecar:
            if isinstance(front, Clients):
                address = sidecar.metrics if at else sidecar.web
                front.attach(int(address.rpartition(":")[2]))
            sender = Sender([int(sidecar.http.rpartition(":")[2])], turns, hold=0.5 if how == "freezes during use" else 1.0)
            if how == "freezes during use":
                sender.until(0.5)
                _wait(lambda: arrived() if arrived is not None else other(), turns // 2, _SCORED_WITHIN)
                begin()
            watch = _Watch(sidecar.http, thing.named)
            sender.end(_SCORED_WITHIN)
            scored = len(_wait(other, len(sender.accepted), _SCORED_WITHIN))
            must_be_named = bool(thing.named) and how != "is slow"
            named = watch.result(wait=must_be_named)
            ended = ends_after(sidecar)
            front.heal()
            wanted = {turn_id(number) for number in sender.accepted}
            sidecar.start()
            places = [other] if arrived is None else [other, arrived]
            lost = wanted - set.intersection(*(_wait(place, len(wanted), _DELIVERED_WITHIN) for place in places))
    return Hang(
        turns, len(sender.accepted), scored, len(sender.accepted), named, named is not None or not must_be_named, ended, len(lost)
    )


def hang_of_kafka(how: str, folder: Path, turns: int) -> Hang:
    """Run a worker whose broker hangs, and return the result. The worker can't read turns that arrive during the hang."""
    import confluent_kafka

    behind, port = free_port(), free_port()
    proxy = Proxy(behind)
    config = with_other({}, folder)
    config["serve"]["metrics"] = f"127.0.0.1:{port}"
    file = folder / "worker.yaml"
    file.write_text(json.dumps(config))
    url = f"kafka://127.0.0.1:{proxy.port}/spans?group=g&commit=0.5&session.timeout.ms=6000&heartbeat.interval.ms=500"
    command = [sys.executable, "-m", "otel_agenteval", "worker", "--config", file, "--spans", url]
    address = f"http://127.0.0.1:{port}"
    with Kafka(folder / "kafka", behind=behind, proxy=proxy.port) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.address, "log_level": 0})

        def produce(first: int, last: int) -> None:
            for start in range(first, last + 1, TOGETHER):
                producer.produce("spans", body(range(start, min(start + TOGETHER, last + 1))))
            assert producer.flush(60) == 0

        half = turns // 2 if how == "freezes during use" else turns
        produce(1, half)
        if how != "freezes during use":
            {"is silent": proxy.mute, "is slow": lambda: proxy.slow(_DELAY)}.get(how, proxy.silence)()
        environment = {"PYTHONPATH": str(ROOT)}
        with Process(command, log=folder / "worker.log", ready=answers(f"{address}/healthz"), env=environment) as worker:
            if how == "freezes during use":
                _wait(lambda: turns_in(folder), half, _SCORED_WITHIN)
                proxy.silence()
                produce(half + 1, turns)
            readable = 0 if how in ("is silent", "is frozen from the start") else half
            watch = _Watch(address, "kafka")
            scored = len(_wait(lambda: turns_in(folder), readable, _SCORED_WITHIN))
            named = watch.result(wait=how != "is slow")
            ended = ends_after(worker)
            proxy.heal()
            worker.start()
            lost = turns - len(_wait(lambda: turns_in(folder), turns, _DELIVERED_WITHIN))
    proxy.close()
    return Hang(turns, turns, scored, readable, named, named is not None or how == "is slow", ended, lost)


def with_other(given: Mapping[str, Any], folder: Path, *, lines: bool = True) -> dict[str, Any]:
    """Return a configuration with a second outlet, which shows the scored turns."""
    other = {"jsonl": str(folder / "scores.jsonl")} if lines else {"store": str(folder / "scores.db")}
    return {
        "inline": {"metrics": ["code_latency", "code_empty_answer"]}, **given,
        "turn": {"decision_delay": "100ms"}, "exit_timeout": "1s", "serve": {"drain_timeout": f"{DRAIN}s"},
        "outlets": {**given.get("outlets", {}), **other},
    }  # fmt: skip


def _wait(found: Arrived, count: int, timeout: float) -> set[str]:
    with contextlib.suppress(AssertionError):
        until(lambda: len(found()) >= count, "they arrive", timeout)
    return found()


class _Watch:
    """Wait in a thread until the health endpoint reports a check."""

    def __init__(self, address: str, name: str) -> None:
        self._address, self._name = address, name
        self._began = time.monotonic()
        self._over = threading.Event()
        self._named: float | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while self._name and self._named is None and time.monotonic() - self._began < NAMED_WITHIN and not self._over.wait(0.2):
            with contextlib.suppress(OSError):
                if self._name in health(self._address):
                    self._named = time.monotonic() - self._began

    def result(self, *, wait: bool) -> float | None:
        """Return the seconds until the check was reported, or None. Without ``wait``, don't wait for it."""
        if not wait:
            self._over.set()
        self._thread.join()
        return self._named


def turns_in(folder: Path, metric: str | None = None, name: str = "scores.jsonl") -> set[str]:
    """Return the ids of turns in the JSON lines, or only of turns with a metric."""
    file = folder / name
    found = set()
    for line in file.read_text().splitlines() if file.exists() else ():
        with contextlib.suppress(ValueError):  # an incomplete line
            row = json.loads(line)
            if metric in (None, row["metric"]):
                found.add(row["turn_id"])
    return found


def stored_in(folder: Path, name: str = "scores.db") -> set[str]:
    """Return the ids of turns in the store."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{folder / name}?mode=ro", uri=True)) as db,
    ):
        return {found for (found,) in db.execute("SELECT DISTINCT turn_id FROM scores")}
    return set()


def health(address: str) -> dict[str, str]:
    """Return the reasons of failed health checks, by name."""
    request = urllib.request.Request(f"{address}/readyz?verbose", headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return {check["name"]: check["reason"] for check in json.load(answer)["checks"] if not check["ok"]}


def ends_after(sidecar: Process) -> float:
    """Return the seconds from SIGTERM to the exit, at most 60."""
    started = time.monotonic()
    with contextlib.suppress(AssertionError):
        sidecar.stop(60)
    return time.monotonic() - started
