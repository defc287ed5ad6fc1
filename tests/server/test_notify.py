"""Notifications to systemd, on a real socket and by real processes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import grpc
import pytest
import yaml

from otel_agenteval.server.notify import Listener, Notifier, Progress
from tests.support.servers import free_port
from tests.support.service import turn_of
from tests.support.sidecar import Sidecar

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
Message = Mapping[str, str]


class Manager:
    """A socket in place of systemd, and its messages.

    Args:
        name: a path, or ``@name`` for an abstract socket.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard: list[Message] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(f"\0{name[1:]}" if name.startswith("@") else name)
        self._socket.settimeout(120)

    def until(self, wanted: Callable[[Message], bool]) -> list[Message]:
        """Return the messages up to and including the first expected message."""
        found: list[Message] = []
        while not found or not wanted(found[-1]):
            text = self._socket.recv(4096).decode()
            found.append(dict(line.split("=", 1) for line in text.splitlines()))
        self.heard += found
        return found

    def close(self) -> None:
        self._socket.close()


def has(name: str, value: str | None = None) -> Callable[[Message], bool]:
    return lambda message: name in message if value is None else message.get(name) == value


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    found = Manager(str(tmp_path / "notify"))
    yield found
    found.close()


def test_a_message_is_a_datagram_of_lines() -> None:
    manager = Manager(f"@agenteval-{os.getpid()}")
    Notifier(manager.name).send(READY=1, STATUS="two\nlines")
    [message] = manager.until(has("READY"))
    manager.close()
    assert message == {"READY": "1", "STATUS": "two lines"}


def test_the_environment_says_where_and_is_not_passed_on(tmp_path: Path) -> None:
    env = {"NOTIFY_SOCKET": str(tmp_path / "x"), "WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid()), "HOME": "/"}
    notifier = Notifier.from_environment(env)
    assert (notifier.enabled, notifier.watchdog, env) == (True, 30.0, {"HOME": "/"})
    notifier.send(READY=1)  # nobody listens there: that is no fault of ours


def test_a_watchdog_that_is_not_for_us_is_not_fed() -> None:
    here = {"NOTIFY_SOCKET": "/x", "WATCHDOG_USEC": "30000000"}
    for odd in ({"NOTIFY_SOCKET": "relative"}, {"NOTIFY_SOCKET": ""}, {"WATCHDOG_PID": "1"}, {"WATCHDOG_USEC": "soon"}):
        assert Notifier.from_environment({**here, **odd}).watchdog is None, odd


def test_progress_is_missing_when_work_waits_and_nothing_was_done_since() -> None:
    counts = iter([None, 1, 2, 2, 2, 3, None, None])
    progress = Progress(lambda: next(counts), "stuck")
    assert [progress() for _ in range(8)] == ["", "", "", "stuck", "stuck", "", "", ""]


def test_a_process_of_ours_is_heard() -> None:
    async def talk() -> list[Message]:
        heard: list[Message] = []
        done = asyncio.Event()

        def hear(message: Message) -> None:
            heard.append(message)
            if "STOPPING" in message:
                done.set()

        listener = Listener(hear)
        Notifier(listener.address).ready("up\u2028STOPPING=1")
        Notifier(listener.address).stopping(1)
        await asyncio.wait_for(done.wait(), 60)
        listener.close()
        return heard

    ready, stopping = asyncio.run(talk())
    assert ("READY" in ready, "STOPPING" in ready, "STOPPING" in stopping) == (True, False, True)


def environment(manager: Manager, watchdog: float | None = None) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.name, **({} if watchdog is None else {"WATCHDOG_USEC": str(int(watchdog * 1e6))})}


def test_serve_tells_of_its_whole_life(manager: Manager, tmp_path: Path) -> None:
    before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
    sidecar = Sidecar(tmp_path, env=environment(manager))
    *starting, ready = manager.until(has("READY"))
    assert all("EXTEND_TIMEOUT_USEC" in message for message in starting)
    assert ready["STATUS"].startswith("listening: ")
    os.kill(sidecar.pid, signal.SIGHUP)
    reloading = manager.until(has("RELOADING"))[-1]
    assert int(reloading["MONOTONIC_USEC"]) > before
    assert manager.until(has("READY"))[-1]["STATUS"] == "reloaded"
    (file,) = tmp_path.glob("sidecar-*.yaml")
    file.write_text(yaml.safe_dump({"inline": {"metrics": ["code_nonsense"]}}))
    os.kill(sidecar.pid, signal.SIGHUP)
    assert manager.until(has("READY"))[-1]["STATUS"].startswith("not reloaded")
    assert sidecar.stop() == 0
    assert manager.until(has("STOPPING"))[-1]["STOPPING"] == "1"
    assert not [message for message in manager.heard if "WATCHDOG" in message]


HANGS = """
import time
from pathlib import Path
import otel_agenteval as oa

@oa.metric(needs=())
def code_hangs(turn: oa.Turn) -> float:
    \"\"\"Comes back when a file is gone.\"\"\"
    while Path("hang").exists():
        time.sleep(0.05)
    return 1.0
"""


@pytest.mark.slow
def test_the_watchdog_hears_nothing_while_the_worker_hangs(manager: Manager, tmp_path: Path) -> None:
    config = {"inline": {"metrics": ["code_hangs"]}, "turn": {"decision_delay": "50ms"}}
    with Sidecar(tmp_path, config, script=HANGS, env=environment(manager, watchdog=2.0)) as sidecar:
        manager.until(has("WATCHDOG"))
        (tmp_path / "hang").touch()
        with grpc.insecure_channel(sidecar.grpc) as channel:
            channel.unary_unary(TRACES)(turn_of(1), timeout=60)
        manager.until(has("STATUS", "the worker makes no progress"))
        (tmp_path / "hang").unlink()
        [recovered] = manager.until(lambda _: True)
        assert recovered == {"WATCHDOG": "1"}  # and none before


@pytest.mark.slow
def test_the_parent_of_several_processes_tells_for_all_and_ends_one_that_hangs(manager: Manager, tmp_path: Path) -> None:
    base = free_port()
    options = ["--http", "off", "--web", "off", "--grpc", f"127.0.0.1:{base}"]
    sidecar = Sidecar(tmp_path, options=options, env=environment(manager, watchdog=3.0), ready=lambda: True, processes=2)
    try:
        assert manager.until(has("READY"))[-1]["STATUS"] == "2 processes"
        manager.until(has("WATCHDOG"))
        os.kill(sidecar.pid, signal.SIGHUP)
        manager.until(has("RELOADING"))
        assert manager.until(has("READY"))[-1]["STATUS"] == "reloaded"
        child = int((Path("/proc") / str(sidecar.pid) / "task" / str(sidecar.pid) / "children").read_text().split()[0])
        os.kill(child, signal.SIGSTOP)
        manager.until(lambda _: "makes no progress" in sidecar.text())
        manager.until(has("WATCHDOG"))  # the others go on, and it is started again
        manager.until(lambda _: "restarting it" in sidecar.text())
    finally:
        sidecar.stop()
    manager.until(has("STOPPING"))
