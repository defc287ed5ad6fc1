"""A real redis-server on a free port of 127.0.0.1, in a folder of its own."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest


def redis_program() -> str:
    """The server's program; the test is skipped without it, or fails where servers are required."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None:
        (pytest.fail if os.environ.get("AGENTEVAL_REQUIRE_SERVERS") == "1" else pytest.skip)("there is no redis-server here")
    return found


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class RedisServer:
    """A server that keeps every write (append-only file), so that it can be killed and started again.

    Args:
        folder: where it keeps its files.
        options: more of its command line, as in ``("--cluster-enabled", "yes")``.
        port: None takes a free one.
    """

    def __init__(self, folder: Path, options: Sequence[str] = (), port: int | None = None, plain: bool = True) -> None:
        self.folder = folder
        self.port = port or free_port()
        self._options = [*(("--port", str(self.port)) if plain else ()), *options]
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    def client(self, **options: Any) -> Any:
        """A client of its own."""
        import redis

        return redis.Redis(port=self.port, **options)

    def start(self) -> None:
        """Start it, and wait until something listens."""
        keep = ["--appendonly", "yes", "--appendfsync", "always", "--save", ""]
        sentinel = "--sentinel" in self._options
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    redis_program(),
                    *(() if sentinel else ("--bind", "127.0.0.1", "--dir", str(self.folder), *keep)),
                    *self._options,
                ]
                if not sentinel
                else [redis_program(), *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )
        until = time.monotonic() + 20
        while time.monotonic() < until:
            assert self._process.poll() is None, (self.folder / "log").read_text()
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            time.sleep(0.02)
        raise AssertionError((self.folder / "log").read_text())

    def kill(self) -> None:
        """End it at once, as a machine that fails does."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """End it in order."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(20)
            self._process = None
