"""Measure what happens to turns under faults, with real servers around ``otel-agenteval serve`` and one fault at a time.

    python scripts/fault_matrix.py                 # all rows, about one hour
    python scripts/fault_matrix.py --quick --only "SIGKILL during a burst"
    python scripts/fault_matrix.py --write --only "hang: *"     # updates these rows of benchmarks/fault-matrix.md

A row of the first table sends turns, resends refused requests, causes and ends the fault, and counts the delivered turns. It
requests ``/healthz`` all the time. The rows for hangs, reloads and memory are in ``tests/support``: ``hangs.py``, ``reloads.py``
and ``attacks.py``. Small disks are tmpfs mounts in a mount namespace of this script. ``fault_shim.c`` makes disks hang and clocks
jump. A proxy interrupts networks. The exit status is 1 if a row loses turns that the documentation promises to keep, or breaks
another promise of its table.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import http.client
import itertools
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import grpc  # noqa: E402
import psutil  # noqa: E402

from tests.support.attacks import ATTACKS, CONNECTIONS, flooded  # noqa: E402 - of this checkout
from tests.support.certificates import Authority  # noqa: E402
from tests.support.hangs import WAYS, Models, hang, hang_of_kafka  # noqa: E402
from tests.support.proxy import Proxy  # noqa: E402
from tests.support.receiver import GrpcReceiver, plain  # noqa: E402
from tests.support.reloads import CHANGES, OPTIONS, reloaded  # noqa: E402
from tests.support.sender import Sender, turn_id  # noqa: E402
from tests.support.servers import answers, until  # noqa: E402
from tests.support.service import AGENT, request  # noqa: E402
from tests.support.shim import CannotBeHad, Shim  # noqa: E402
from tests.support.sidecar import Sidecar  # noqa: E402

PAGE = ROOT / "benchmarks" / "fault-matrix.md"
NOT_RUN = "not run"
IN_NAMESPACE = "AGENTEVAL_FAULT_MATRIX_MOUNTS"
QUIET_WITHIN = 40.0
_FELT_WITHIN = 30.0
SILENT_AT_MOST = 5.0
"""Maximum seconds without a response to ``/healthz``. It is generous because the machine may be busy."""
SPACE = 6 << 20
"""Size of a small disk, in bytes."""


@dataclass
class Outcome:
    """One row of the table. The unit is turns unless stated otherwise."""

    sent: int
    accepted: int
    refused: int
    """Number of requests that got no response or were refused with a request to retry."""
    scored: int
    delivered: int
    lost: int
    """Acknowledged turns that weren't delivered."""
    memory: int
    """Peak resident memory of any process, in MB."""
    silence: float
    """Longest time in which a running process didn't respond to ``/healthz``, in seconds."""


@dataclass
class Bench:
    """Environment of a row: a sidecar with a journal, a store and JSON lines in ``folder``, and ``turns`` turns to send."""

    folder: Path
    turns: int
    config: dict[str, Any] = field(default_factory=dict)
    journal: Path | None = None
    env: dict[str, str] = field(default_factory=dict)
    processes: int = 1
    peak: int = 0
    silence: float = 0.0
    sidecar: Sidecar = field(init=False)

    @property
    def lines(self) -> Path:
        return Path(self.config.get("outlets", {}).get("jsonl", self.folder / "scores.jsonl"))

    @property
    def store(self) -> Path:
        return Path(self.config.get("outlets", {}).get("store", self.folder / "scores.db"))

    @property
    def ports(self) -> list[int]:
        """Ports for OTLP over HTTP, one for each process."""
        first = int(self.sidecar.http.rpartition(":")[2])
        return [first + 10 * number for number in range(self.processes)]

    def start(self, most: int = 1) -> Sidecar:
        """Start the sidecar, and watch its memory and health. ``most`` is the highest number of processes in this row."""
        outlets = {"jsonl": str(self.lines), "store": str(self.store), **self.config.get("outlets", {})}
        config = {
            "turn": {"decision_delay": "300ms"}, "inline": {"metrics": ["code_latency", "code_empty_answer"]},
            "judge": {"queue": {"backend": "memory"}}, **self.config, "outlets": outlets,
        }  # fmt: skip
        options = ["--journal", str(self.journal or self.folder / "journal")]
        self.sidecar = Sidecar(self.folder, config, options=options, env=self.env, processes=most)
        for watch in (self._watch_memory, self._watch_health):
            threading.Thread(target=watch, daemon=True).start()
        if most != self.processes:
            self.sidecar.stop(timeout=40)
            self.restart(self.processes)
        return self.sidecar

    def restart(self, processes: int) -> None:
        self.processes = processes
        self.sidecar.set_processes(processes)
        self.sidecar.start()

    def send(self, **options: Any) -> Sender:
        return Sender(self.ports, self.turns, **options)

    def _watch_memory(self) -> None:
        while True:
            with contextlib.suppress(psutil.Error, OSError, ValueError, IndexError):
                process = psutil.Process(self.sidecar.pid)
                for one in (process, *process.children()):
                    status = Path(f"/proc/{one.pid}/status").read_text()
                    self.peak = max(self.peak, int(status.partition("VmHWM:")[2].split()[0]) // 1024)
            time.sleep(0.05)

    def _watch_health(self) -> None:
        """Request ``/healthz`` all the time, and record the longest pause between two responses of the same process."""
        healthy = answers(f"http://{self.sidecar.metrics}/healthz")
        of, last = 0, 0.0
        while True:
            pid = self.sidecar.pid
            with contextlib.suppress(OSError, http.client.HTTPException):
                healthy()
                now = time.monotonic()
                if pid == self.sidecar.pid == of:
                    self.silence = max(self.silence, now - last)
                of, last = pid, now
            time.sleep(0.05)

    def feel(self, message: str) -> None:
        """Wait until the sidecar has logged the effect of a fault.

        Raises:
            RuntimeError: If the message isn't logged. The row would then show nothing.
        """
        until = time.monotonic() + _FELT_WITHIN
        while message not in self.sidecar.text():
            if time.monotonic() > until:
                raise RuntimeError(f"the fault had no effect: {message!r} isn't in the log")
            time.sleep(0.05)

    def in_lines(self) -> set[str]:
        if not self.lines.exists():
            return set()
        found = set()
        for line in self.lines.read_bytes().splitlines():
            with contextlib.suppress(ValueError):
                found.add(json.loads(line)["turn_id"])
        return found

    def in_store(self, where: str = "1") -> set[str]:
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(sqlite3.connect(f"file:{self.store}?mode=ro", uri=True)) as db,
        ):
            return {row[0] for row in db.execute(f"SELECT DISTINCT turn_id FROM scores WHERE {where}")}  # noqa: S608 - ours
        return set()

    def finish(
        self, sender: Sender, delivered: Callable[[], set[str]] | None = None, scored: Callable[[], set[str]] | None = None
    ) -> Outcome:
        """Send the rest, wait until all turns are delivered or the time is up, stop the sidecar, and count."""
        sender.end()
        delivered, scored = delivered or self.in_lines, scored or self.in_store
        wanted = {turn_id(number) for number in sender.accepted}
        until = time.monotonic() + QUIET_WITHIN
        while not wanted <= delivered() and time.monotonic() < until:
            time.sleep(0.3)
        if self.sidecar.running:
            with contextlib.suppress(AssertionError):
                self.sidecar.stop(timeout=40)
        arrived = delivered() & wanted
        return Outcome(
            self.turns, len(wanted), sender.refused, len(scored() & wanted), len(arrived), len(wanted) - len(arrived), self.peak,
            self.silence,
        )  # fmt: skip


# --- the rows -----------------------------------------------------------------------------------------------------------


def sigterm_during_a_burst(bench: Bench) -> Outcome:
    """Stop the sidecar with SIGTERM while turns are sent, and start it again."""
    sidecar = bench.start()
    sender = bench.send(hold=0.75)
    sender.until(0.5)
    sidecar.stop(timeout=40)
    sender.release()
    sidecar.start()
    return bench.finish(sender)


def sigkill_during_a_burst(bench: Bench) -> Outcome:
    """Kill the sidecar while turns are sent, and start it again."""
    sidecar = bench.start()
    sender = bench.send(hold=0.75)
    sender.until(0.5)
    sidecar.kill()
    sender.release()
    sidecar.start()
    return bench.finish(sender)


def stop_during_a_replay(bench: Bench) -> Outcome:
    """Kill the sidecar with open turns, stop it while it replays its journal, and start it again."""
    bench.config["turn"] = {"decision_delay": "5s"}
    sidecar = bench.start()
    sender = bench.send()
    sender.until(1.0)
    sidecar.kill()
    sidecar.start()  # /healthz responds while the journal is replayed
    os.kill(sidecar.pid, signal.SIGTERM)
    with contextlib.suppress(AssertionError):
        sidecar.stop(timeout=40)
    sidecar.start()
    return bench.finish(sender)


def processes_changed(bench: Bench, before: int, after: int) -> Outcome:
    """Kill ``before`` processes with open turns while turns are sent, and start ``after`` processes."""
    bench.config["turn"] = {"decision_delay": "5s"}
    bench.processes = before
    sidecar = bench.start(max(before, after))
    sender = bench.send(hold=0.75)
    sender.until(0.5)
    sidecar.kill()
    sender.release()
    bench.restart(after)
    sender.ports = bench.ports
    return bench.finish(sender)


def journal_disk_full(bench: Bench, left: int = 256 << 10, *, restart: bool = False) -> Outcome:
    """Fill the journal's disk except for ``left`` bytes, and free the space later. ``restart`` kills and starts the full sidecar."""
    with small_disk(bench.folder / "small") as disk:
        bench.journal = disk / "journal"
        bench.config["turn"] = {"decision_delay": "5s" if restart else "300ms"}
        bench.start()
        if restart:
            sender = bench.send(hold=0.5)
            sender.until(0.5)
        ballast = fill(disk, left)
        if restart:
            bench.sidecar.kill()
            bench.sidecar.start()
            sender.release()
        else:
            sender = bench.send()
        sender.until_refused()
        ballast.unlink()
        return bench.finish(sender)


def outlet_disk_full(bench: Bench, outlet: str, file: str, room: int, *where: Callable[[], set[str]]) -> Outcome:
    """Fill the disk of an outlet except for ``room`` bytes, and free the space later."""
    with small_disk(bench.folder / "small") as disk:
        bench.config["outlets"] = {outlet: str(disk / file)}
        bench.start()
        ballast = fill(disk, room)
        sender = bench.send()
        sender.until(0.5)
        bench.feel(f"outlet {outlet} failed")
        ballast.unlink()
        return bench.finish(sender, *where)


def json_lines_disk_full(bench: Bench) -> Outcome:
    return outlet_disk_full(bench, "jsonl", "scores.jsonl", 16 << 10)


def store_disk_full(bench: Bench) -> Outcome:
    return outlet_disk_full(bench, "store", "scores.db", 64 << 10, bench.in_store, bench.in_lines)


def database_read_only(bench: Bench) -> Outcome:
    """Make the store's database read-only for some time, as after a failover."""
    import psycopg

    from tests.support.postgres import postgres_server

    with postgres_server() as server:
        address = server.database()
        name = address.rpartition("/")[2]
        bench.config["outlets"] = {"store": address}
        bench.start()
        with psycopg.connect(address, autocommit=True) as db:
            sender = bench.send()
            sender.until(0.3)
            db.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()", (name,)
            )
            bench.feel("outlet store failed")
            sender.until(0.9, 10)
            db.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")

            def stored() -> set[str]:
                return {turn_id for (turn_id,) in db.execute("SELECT DISTINCT turn_id FROM agenteval.scores")}

            return bench.finish(sender, stored, bench.in_lines)


def poisoned_rows(bench: Bench) -> Outcome:
    """Send turns that no database can store unchanged, and one per batch that this database refuses."""
    sidecar = bench.start()

    def forbid() -> bool:
        with (
            contextlib.closing(sqlite3.connect(f"file:{bench.store}?mode=rw", uri=True)) as db,
            contextlib.suppress(sqlite3.Error),
        ):
            db.execute(
                "CREATE TRIGGER refuses BEFORE INSERT ON turns WHEN new.agent = 'poison' BEGIN SELECT RAISE(ABORT, 'no'); END"
            )
            return True
        return False

    until(forbid, "the store has its tables")
    most, least = {"gen_ai.usage.input_tokens": 2**63 - 1, "gen_ai.usage.output_tokens": 2**63 - 1}, -(2**63)
    poison = [{"gen_ai.agent.name": "poison"}, most, {"gen_ai.usage.input_tokens": least}, {"gen_ai.agent.name": "n" * 10**6}]
    sender = bench.send()
    connection = http.client.HTTPConnection("127.0.0.1", int(sidecar.http.rpartition(":")[2]), timeout=10)
    for number in itertools.count(10**6):
        span = {"trace": number, "id": 1, "name": "invoke_agent bot", "attributes": {**AGENT, **poison[number % len(poison)]}}
        connection.request("POST", "/v1/traces", request(span), {"Content-Type": "application/x-protobuf"})
        connection.getresponse().read()
        if len(sender.accepted) >= sender.turns and number > 10**6 + 20:
            break
    connection.close()
    bench.feel("the database can't store")
    return bench.finish(sender, bench.in_store, bench.in_lines)


def disk_hangs(bench: Bench) -> Outcome:
    """Let no sync return for some time, as on a hanging network disk."""
    with Shim(bench.folder) as shim:
        bench.env |= shim.env
        bench.start()
        sender = bench.send(threads=12)
        sender.until(0.3)
        shim.set(hang=1)
        sender.until_refused(3)
        shim.set()
        return bench.finish(sender)


def clock_jumps(bench: Bench, seconds: int) -> Outcome:
    """Let the wall clock jump by some seconds."""
    with Shim(bench.folder) as shim:
        bench.env |= shim.env
        bench.start()
        sender = bench.send()
        sender.until(0.3)
        shim.set(offset=seconds)
        return bench.finish(sender)


def _over_otlp(bench: Bench, port: int, **more: Any) -> None:
    bench.config["outlets"] = {"otlp": {"endpoint": f"http://127.0.0.1:{port}", "protocol": "grpc", "timeout": "1s", **more}}


def _arrived(receivers: Sequence[GrpcReceiver]) -> Callable[[], set[str]]:
    return lambda: {
        str(plain(record.attributes)["agenteval.turn.id"]) for receiver in receivers for record in receiver.scores()
    }  # fmt: skip


def receiver_down(bench: Bench) -> Outcome:
    """Break connections to the receiver of scores, and refuse new connections."""
    receiver = GrpcReceiver()
    proxy = Proxy(receiver.port)
    _over_otlp(bench, proxy.port)
    bench.start()
    proxy.cut()
    sender = bench.send()
    sender.until(0.7)
    bench.feel("outlet otlp")
    proxy.heal()
    found = bench.finish(sender, _arrived([receiver]))
    proxy.close()
    receiver.close()
    return found


def receiver_slow(bench: Bench) -> Outcome:
    """Keep connections to the receiver open, but transfer nothing."""
    receiver = GrpcReceiver()
    proxy = Proxy(receiver.port)
    _over_otlp(bench, proxy.port)
    bench.start()
    sender = bench.send()
    sender.until(0.3)
    proxy.silence()
    sender.until(0.9)
    bench.feel("outlet otlp")  # longer than the timeout of a request
    proxy.heal()
    found = bench.finish(sender, _arrived([receiver]))
    proxy.close()
    receiver.close()
    return found


def receiver_certificate_expired(bench: Bench) -> Outcome:
    """Let the receiver use an expired certificate until it is renewed."""
    authority = Authority(bench.folder)
    past = datetime.timedelta(days=-2), datetime.timedelta(days=-1)
    first = GrpcReceiver(credentials=_credentials(authority.issue("expired", valid=past)))
    port = first.port
    _over_otlp(bench, port)
    otlp = bench.config["outlets"]["otlp"]
    otlp |= {"endpoint": f"https://localhost:{port}", "ca_file": str(authority.file)}
    bench.start()
    sender = bench.send()
    sender.until(0.7)
    bench.feel("outlet otlp")
    first.close()
    second = GrpcReceiver(port, credentials=_credentials(authority.issue("renewed")))
    found = bench.finish(sender, _arrived([first, second]))
    second.close()
    return found


def _credentials(issued: tuple[Path, Path]) -> Any:
    return grpc.ssl_server_credentials([(issued[1].read_bytes(), issued[0].read_bytes())])


def redis_killed(bench: Bench) -> Outcome:
    """Kill the Redis server of the judge queue, and start it again with its file."""
    from tests.support.redis_server import RedisServer

    server = RedisServer(bench.folder / "redis")
    _judge(bench, {"backend": "redis", "url": server.url})
    bench.start()
    sender = bench.send()
    sender.until(0.5)
    server.kill()
    sender.until(0.9, 10)
    bench.feel("judge")
    server.start()
    found = bench.finish(sender, lambda: bench.in_store(_JUDGED))
    server.stop()
    return found


def queue_locked(bench: Bench) -> Outcome:
    """Lock the judge queue's file for 25 seconds, as another program could."""
    file = bench.folder / "queue.db"
    _judge(bench, {"backend": "sqlite", "path": str(file)})
    bench.start()
    sender = bench.send()
    sender.until(0.2)
    with contextlib.closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        bench.feel("judge_queue failed")
        time.sleep(25)
        other.execute("ROLLBACK")
    return bench.finish(sender, lambda: bench.in_store(_JUDGED))


_JUDGED = "metric = 'llm_relevance' AND status = 'ok'"


def _judge(bench: Bench, queue: Mapping[str, Any]) -> None:
    """Configure a queue, and a judge that always answers, for every turn."""
    bench.config |= {
        "judge": {"base_url": Models().url, "model": "m", "queue": queue, "max_concurrency": 8},
        "metrics": [{"llm_relevance": {}, "sample": {"rate": 1.0}}],
    }
    bench.turns = min(bench.turns, 400)


def collector_restarted(bench: Bench) -> Outcome:
    """Restart a Collector between the agents and the sidecar."""
    from tests.support.collector import Collector

    backend = GrpcReceiver()
    sidecar = bench.start()
    collector = Collector(
        "sidecar", bench.folder / "collector", AGENTEVAL_ENDPOINT=sidecar.grpc, BACKEND_ENDPOINT=backend.address
    )
    sender = Sender([int(collector.http.rpartition(":")[2])], bench.turns)
    sender.until(0.5)
    collector.stop()
    collector.start()
    found = bench.finish(sender)
    collector.stop()
    backend.close()
    return found


def overload(bench: Bench) -> Outcome:
    """Send from many threads to a sidecar with small limits and too many metrics."""
    bench.config |= {"queue": {"max_bytes": "2MiB"}, "inline": {"metrics": "default"}}
    bench.config["turn"] = {"decision_delay": "300ms", "total_bytes": "16MiB"}
    bench.turns *= 3
    bench.start()
    return bench.finish(bench.send(threads=12))


FAULTS: Mapping[str, Callable[[Bench], Outcome]] = {
    "SIGTERM during a burst": sigterm_during_a_burst,
    "SIGKILL during a burst": sigkill_during_a_burst,
    "sidecar stopped while it replays its journal": stop_during_a_replay,
    "sidecar killed, then started with 2 processes instead of 1": lambda bench: processes_changed(bench, 1, 2),
    "sidecar killed, then started with 2 processes instead of 3": lambda bench: processes_changed(bench, 3, 2),
    "sidecar killed, then started with 1 process instead of 2": lambda bench: processes_changed(bench, 2, 1),
    "parent of 2 processes killed during a burst": lambda bench: processes_changed(bench, 2, 2),
    "journal's disk is full for a while": journal_disk_full,
    "journal's disk is full before the first turn": lambda bench: journal_disk_full(bench, 0),
    "sidecar restarts on a full journal disk": lambda bench: journal_disk_full(bench, 0, restart=True),
    "disk with JSON lines is full for a while": json_lines_disk_full,
    "store's disk is full for a while": store_disk_full,
    "store's database is read-only for a while": database_read_only,
    "store rejects some other turns": poisoned_rows,
    "disk syncs hang for a while": disk_hangs,
    "OTLP receiver is down for a while": receiver_down,
    "OTLP receiver doesn't respond for a while": receiver_slow,
    "OTLP receiver's certificate has expired and is renewed": receiver_certificate_expired,
    "Redis with the judge queue is killed and restarted": redis_killed,
    "judge queue's file is locked for 25 seconds": queue_locked,
    "system clock jumps forward an hour": lambda bench: clock_jumps(bench, 3600),
    "system clock jumps back an hour": lambda bench: clock_jumps(bench, -3600),
    "Collector in front of the sidecar restarts": collector_restarted,
    "sidecar receives more turns than it can evaluate": overload,
}
NEED_MOUNTS = {
    "journal's disk is full for a while",
    "journal's disk is full before the first turn",
    "sidecar restarts on a full journal disk",
    "disk with JSON lines is full for a while",
    "store's disk is full for a while",
}


# --- faults --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Mount a tmpfs of a few megabytes.

    Raises:
        CannotBeHad: If this process can't mount.
    """
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={SPACE}", "tmpfs", str(folder)]
    if IN_NAMESPACE not in os.environ or subprocess.run(command, capture_output=True, check=False).returncode:
        raise CannotBeHad("mounting needs a separate mount namespace (unshare --map-root-user --mount)")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], capture_output=True, check=False)  # noqa: S607 - as mount above


def fill(disk: Path, left: int) -> Path:
    """Fill a disk except for ``left`` bytes, and return the file to delete."""
    space = os.statvfs(disk)
    ballast = disk / "ballast"
    ballast.write_bytes(bytes(max(0, space.f_bavail * space.f_frsize - left)))
    return ballast


# --- the tables ----------------------------------------------------------------------------------------------------------


class Played(NamedTuple):
    """Cells of a row after its name. ``is_well`` is False if the row broke a promise."""

    cells: Sequence[str]
    is_well: bool


@dataclass(frozen=True)
class Table:
    """A table of the page. ``columns`` is its header, and each row is a function of a folder and a number of turns."""

    columns: str
    rows: Mapping[str, Callable[[Path, int], Played]]

    def text(self, kept: Mapping[str, str]) -> str:
        """Return the table as Markdown. ``kept`` has its lines by row name."""
        others = self.columns.count(" | ")
        head = f"| {self.columns} |\n|---|{'---:|' * others}\n"
        return head + "".join(kept[name] for name in self.rows if name in kept)


def play_fault(make: Callable[[Bench], Outcome], folder: Path, turns: int) -> Played:
    bench = Bench(folder, turns)
    try:
        found = make(bench)
    finally:
        if hasattr(bench, "sidecar") and bench.sidecar.running:
            bench.sidecar.kill()
    numbers = (found.sent, found.accepted, found.refused, found.scored, found.delivered, found.lost)
    is_well = not found.lost and found.accepted > 0 and found.silence < SILENT_AT_MOST
    return Played([*(f"{number:,}" for number in numbers), f"{found.memory} MB", f"{found.silence:.1f} s"], is_well)


def play_hang(what: str, how: str, folder: Path, turns: int) -> Played:
    found = hang_of_kafka(how, folder, turns) if what == "Kafka" else hang(what, how, folder, turns)
    named = "–" if found.named is None else f"{found.named:.0f} s"
    cells = [
        f"{found.accepted:,}", f"{found.scored:,}", named if found.is_named else "never", f"{found.ended:.1f} s", f"{found.lost:,}",
    ]  # fmt: skip
    return Played(cells, found.is_well)


def play_reload(option: str, change: str, folder: Path, _: int) -> Played:
    found = reloaded(option, change, folder)
    outcome = "only after a restart" if found.successful and found.needs_restart else "yes" if found.successful else "no"
    return Played([*found.before, *found.after, outcome], found.is_well)


def play_attack(attack: str, folder: Path, _: int) -> Played:
    found = flooded(attack, folder)
    return Played([str(CONNECTIONS), f"{found.memory} MB", f"{found.got_in} of 2", str(found.lines)], found.is_well)


TABLES: Mapping[str, Table] = {
    "fault matrix": Table(
        "fault | turns sent | accepted | requests retried | scored | delivered | lost | peak memory | longest health gap",
        {name: partial(play_fault, make) for name, make in FAULTS.items()},
    ),
    "hangs": Table(
        "what hangs | accepted | scored during the hang | reported after | shutdown time | lost",
        {f"hang: {what} {how}": partial(play_hang, what, how) for what, hows in WAYS.items() for how in hows},
    ),
    "reloads": Table(
        "changed option | sender before | web UI before | sender after | web UI after | reload accepted",
        {f"reload: {option} {change}": partial(play_reload, option, change) for option in OPTIONS for change in CHANGES},
    ),
    "memory": Table(
        "attack | connections | memory above idle | senders with a token accepted | log lines",
        {f"memory: {attack}": partial(play_attack, attack) for attack in ATTACKS},
    ),
}
ROWS: dict[str, Callable[[Path, int], Played]] = {name: row for table in TABLES.values() for name, row in table.rows.items()}


def play(name: str, turns: int) -> tuple[str, bool]:
    """Run one row. Return its line, and False if it broke a promise."""
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as folder:
        try:
            found = ROWS[name](Path(folder), turns)
        except CannotBeHad as reason:
            return f"| {name} | {NOT_RUN}: {reason} |\n", True
    return f"| {name} | {' | '.join(found.cells)} |\n", found.is_well


def lines_of(text: str) -> dict[str, str]:
    """Return the lines of tables by row name."""
    lines = (line for line in text.splitlines(keepends=True) if line.startswith("| "))
    return {line.split(" | ")[0].removeprefix("| "): line for line in lines}


def written(text: str, new: Mapping[str, str]) -> str:
    """Return the page with new lines. Other rows stay the same."""
    for marker, table in TABLES.items():
        begin, end = (f"<!-- {marker}: {edge} -->\n" for edge in ("begin", "end"))
        before, _, rest = text.partition(begin)
        old, _, after = rest.partition(end)
        kept = lines_of(old)
        kept |= {name: line for name, line in new.items() if name not in kept or NOT_RUN not in line}
        text = before + begin + table.text(kept) + end + after
    return text


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", metavar="ROW", help=f"a row, or several by * and ?; repeatable: {'; '.join(ROWS)}"
    )
    parser.add_argument("--quick", action="store_true", help="send a tenth of the turns")
    parser.add_argument("--write", action="store_true", help="update these rows of benchmarks/fault-matrix.md")
    args = parser.parse_args(arguments)
    patterns = args.only or ["*"]
    wanted = [name for name in ROWS if any(fnmatchcase(name, pattern) for pattern in patterns)]
    if not wanted:
        parser.error(f"--only: unknown row: {', '.join(patterns)}")
    if NEED_MOUNTS & set(wanted) and IN_NAMESPACE not in os.environ and may_mount():
        command = ["unshare", "--map-root-user", "--mount", sys.executable, str(Path(__file__).resolve())]
        return subprocess.run(
            [*command, *(arguments or sys.argv[1:])], env={**os.environ, IN_NAMESPACE: "1"}, check=False
        ).returncode
    status = 0
    for name in wanted:
        began = time.monotonic()
        line, is_well = play(name, 200 if args.quick else 2000)
        print(line, end="", flush=True)
        print(f"{name}: {time.monotonic() - began:.0f} s{'' if is_well else ' - NOT WELL'}", file=sys.stderr, flush=True)
        status = status or int(not is_well)
        if args.write:
            PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), {name: line}), encoding="utf-8")
    return status


def may_mount() -> bool:
    command = ["unshare", "--map-root-user", "--mount", "true"]
    return shutil.which("unshare") is not None and subprocess.run(command, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main())
