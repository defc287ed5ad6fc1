"""Real servers for tests: their programs, free ports, and their processes."""

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
"""Whether a server that cannot be had fails a test, instead of skipping it."""

_ports_held: set[int] = set()


def program(name: str) -> Path:
    """An executable: from PATH, from the cache, or got now if it needn't be built (scripts/get_servers.py has the names).

    Without it the test is skipped, with the reason; under ``AGENTEVAL_REQUIRE_SERVERS=1`` it fails.
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
    """The folder of a program, as :func:`program` finds it, where other users of this machine can run it: the cache is in a home, which they cannot enter."""
    found = program(name)
    kit = found.parent.parent
    if get_servers.cache() not in kit.parents:
        yield found.parent
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(shutil.copytree(kit, Path(folder, "kit"), symlinks=True)) / "bin"


def free_port(beside: Sequence[int] = ()) -> int:
    """A TCP port of 127.0.0.1 that nothing listens on, below those that outgoing connections take.

    No process of this user is given it again as long as this one lives, so that there is time to start what listens there.

    Args:
        beside: distances of further ports, which are free and held as well.
    """
    for _ in range(1000):
        port = random.randrange(20_000, 32_000)
        wanted = [port, *(port + distance for distance in beside)]
        if all(_hold(each) for each in wanted):
            return port
    raise RuntimeError("no free port in a thousand tries")


def _hold(port: int) -> bool:
    """Take a port for this process, if nobody has it."""
    if port in _ports_held:
        return False
    folder = Path(tempfile.gettempdir(), f"otel-agenteval-ports-{os.getuid()}")
    folder.mkdir(mode=0o700, exist_ok=True)
    lock = os.open(folder / str(port), os.O_RDWR | os.O_CREAT)  # open, and so locked, until this process ends
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
    """The first true value of ``condition``. Other programs tell nobody when they are done, so they are asked again and again.

    A refused connection and an HTTP error count as no.

    Raises:
        AssertionError: it was not true in time; the text has ``what`` and the last error.
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
            raise AssertionError(f"not within {timeout} s: {what}" + (f" ({last})" if last else ""))
        time.sleep(every)


def answers(url: str) -> Callable[[], bool]:
    """A condition: an HTTP GET is answered with success."""

    def condition() -> bool:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return bool(answer.status < 400)

    return condition


def listens(port: int) -> Callable[[], bool]:
    """A condition: something accepts connections on a port of 127.0.0.1."""

    def condition() -> bool:
        with socket.create_connection(("127.0.0.1", port), timeout=60):
            return True

    return condition


class Process:
    """A server that runs from construction to :meth:`stop`, or to the end of a ``with`` block.

    Args:
        command: program and arguments.
        log: where its output goes, appended.
        ready: true as soon as it answers.
        env: variables over this process's, without ``OTEL_…``.
        timeout: seconds to become ready.

    Raises:
        AssertionError: it ended or did not become ready in time; the text has the end of its log.
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
        """Start it, again after :meth:`stop` or :meth:`kill`, and wait until it answers."""
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
        """Of the process as last started."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def text(self) -> str:
        """Its log so far."""
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self, timeout: float = 30) -> int:
        """SIGTERM, and its exit status when it has ended.

        Raises:
            AssertionError: it did not end in time; it is killed then.
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
        """Its exit status, once it has ended by itself."""
        return self._process.wait(timeout)

    def kill(self) -> None:
        """SIGKILL, as ``kill -9``; nothing happens when it has ended."""
        self._process.kill()
        self._process.wait()
        atexit.unregister(self.kill)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.running:
            self.stop()
