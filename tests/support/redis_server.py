"""A real redis-server on a free port of 127.0.0.1, in a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.servers import Process, free_port, listens, program

_KEEPS_EVERY_WRITE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")


class RedisServer:
    """A server that keeps every write (append-only file), so that it can be killed and started again.

    Args:
        folder: where it keeps its files.
        options: more of its command line, as in ``("--cluster-enabled", "yes")``. A Sentinel's (``--sentinel``) begin with its file, which says all.
        port: where it listens; None takes a free one.
        plain: whether it speaks without TLS there; otherwise ``options`` say how it does.
    """

    def __init__(self, folder: Path, options: Sequence[str] = (), port: int | None = None, plain: bool = True) -> None:
        self.folder = folder
        self.port = port or free_port()
        folder.mkdir(parents=True, exist_ok=True)
        command = [program("redis-server"), *(("--port", str(self.port)) if plain else ()), *options]
        if "--sentinel" not in options:
            command[1:1] = ["--bind", "127.0.0.1", "--dir", str(folder), *_KEEPS_EVERY_WRITE]
        self._process = Process(command, log=folder / "log", ready=listens(self.port), cwd=folder, timeout=60)

    @property
    def url(self) -> str:
        """Its address."""
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

    def client(self, **options: Any) -> Any:
        """A client of its own."""
        import redis

        return redis.Redis(port=self.port, **options)

    def start(self) -> None:
        """Start it again, and wait until something listens."""
        self._process.start()

    def kill(self) -> None:
        """End it at once, as a machine that fails does."""
        self._process.kill()

    def stop(self) -> None:
        """End it in order; nothing happens when it has ended."""
        if self._process.running:
            self._process.stop()
