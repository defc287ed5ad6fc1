"""Real servers for tests: their programs, free ports, and processes."""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import pytest
from typing_extensions import Self

from scripts import get_servers

T = TypeVar("T")

REQUIRED = os.environ.get("AGENTEVAL_REQUIRE_SERVERS") == "1"
"""True if a missing server fails the test instead of skipping it."""

_ports_held: set[int] = set()


def program(name: str) -> Path:
    """Return the path of a program, and install it if it needn't be built. The names are in scripts/get_servers.py.

    If it is unavailable, the test is skipped with the reason or, with ``AGENTEVAL_REQUIRE_SERVERS=1``, fails.
    """
    try:
        return get_servers.get(name, build=False)
    except get_servers.Unavailable as error:
        reason = f"{name}: {error}"
    if REQUIRED:
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


@contextlib.contextmanager
def for_every_user(name: str) -> Iterator[Path]:
    """Yield a folder with a program that other users can run. They can't enter the cache in the home directory."""
    found = program(name)
    kit = found.parent.parent
    if get_servers.cache() not in kit.parents:
        yield found.parent
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copytree(kit, Path(folder, "kit"), symlinks=True)) / "bin"


def free_port(beside: Sequence[int] = ()) -> int:
    """Return a free TCP port of 127.0.0.1, below the range of outgoing connections.

    While this process runs, no other process of this user gets the port, so that there is time to start a server on it.

    Args:
        beside: distances of further ports, which must be free and are reserved too.
    """
    for _ in range(1000):
        port = random.randrange(20_000, 32_000)
        wanted = [port, *(port + distance for distance in beside)]
        if all(_hold(each) for each in wanted):
            return port
    raise RuntimeError("no free port found in 1,000 tries")


def _hold(port: int) -> bool:
    """Reserve a port for this process, if no other process has it."""
    if port in _ports_held:
        return False
    folder = Path(tempfile.gettempdir(), f"otel-agenteval-ports-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT)  # stays open and locked until this process ends
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
    except OSError:
        os.close(lock)
        return False
    _ports_held.add(port)
    return True


def until(condition: Callable[[], T], what: str, timeout: float = 60, every: float = 0.05) -> T:
    """Poll until ``condition`` is true, and return its value. Connection and HTTP errors are treated as false.

    Polling is needed because servers don't notify clients.

    Raises:
        AssertionError: If the condition isn't true in time. The message contains ``what`` and the last error.
    """
    end = time.monotonic() + timeout
    last: Exception | None = None
    while True:
        try:
            if value := condition():
                return value
        except OSError as error:
            last = error
            if isinstance(error, urllib.error.HTTPError):
                error.close()
        if time.monotonic() > end:
            raise AssertionError(f"not true within {timeout} s: {what}" + (f" ({last})" if last else ""))
        time.sleep(every)


def answers(url: str) -> Callable[[], bool]:
    """Return a condition that is true if an HTTP GET request succeeds."""

    def condition() -> bool:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return bool(answer.status < 400)

    return condition


def listens(port: int) -> Callable[[], bool]:
    """Return a condition that is true if a port of 127.0.0.1 accepts connections."""

    def condition() -> bool:
        with socket.create_connection(("127.0.0.1", port), timeout=60):
            return True

    return condition


class Process:
    """A server that runs until :meth:`stop`, or until the end of a ``with`` block.

    Args:
        command: program and arguments.
        log: file for its output, which is appended.
        ready: condition that is true when the server responds.
        env: variables in addition to this process's, without ``OTEL_…``.
        timeout: seconds to become ready.

    Raises:
        AssertionError: If it exits or isn't ready in time. The message contains the end of its log.
    """

    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        log: Path,
        ready: Callable[[], bool],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout: float = 60,
    ) -> None:
        self.command = [str(part) for part in command]
        self.log = log
        self._ready = ready
        self._env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | dict(env or {})
        self._cwd = cwd
        self._timeout = timeout
        self.start()

    def start(self) -> None:
        """Start the server, and wait until it is ready. Can be called again after :meth:`stop` or :meth:`kill`."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, env=self._env, cwd=self._cwd
            )
        atexit.register(self.kill)
        try:
            until(lambda: self._process.poll() is not None or self._ready(), f"{self.command[0]} is ready", self._timeout)
            assert self._process.poll() is None, f"ended with {self._process.returncode}"
        except AssertionError as error:
            self.kill()
            raise AssertionError(f"{' '.join(self.command)}: {error}\n{self.text()[-4000:]}") from None

    @property
    def pid(self) -> int:
        """Id of the process that was last started."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def text(self) -> str:
        """Return its log."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self, timeout: float = 30) -> int:
        """Send SIGTERM, and return the exit status.

        Raises:
            AssertionError: If the server doesn't exit in time. It is then killed.
        """
        self._process.terminate()
        try:
            return self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{' '.join(self.command)} did not stop within {timeout} s\n{self.text()[-4000:]}") from None
        finally:
            atexit.unregister(self.kill)

    def wait(self, timeout: float = 60) -> int:
        """Wait until the process exits, and return the exit status."""
        return self._process.wait(timeout)

    def kill(self) -> None:
        """Send SIGKILL, if the process is running."""
        self._process.kill()
        self._process.wait()
        atexit.unregister(self.kill)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.stop()
