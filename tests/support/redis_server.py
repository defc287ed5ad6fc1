"""A real redis-server on a free port of 127.0.0.1, in a folder of its own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.servers import Process, free_port, listens, program

_KEEPS_EVERY_WRITE = ("--appendonly", "yes", "--appendfsync", "always", "--save", "")


class RedisServer:
    """A server that persists every write (append-only file), so that it can be killed and started again.

    Args:
        folder: folder for its files.
        options: further arguments, such as ``("--cluster-enabled", "yes")``. For a Sentinel (``--sentinel``), the first is its file.
        port: its port, or None for a free port.
        plain: True if the port doesn't use TLS. Otherwise, ``options`` configure TLS.
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
        return f"redis://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        return self._process.pid

    def client(self, **options: Any) -> Any:
        """Return a new client."""
        import redis

        return redis.Redis(port=self.port, **options)

    def start(self) -> None:
        """Start the server again, and wait until it listens."""
        self._process.start()

    def kill(self) -> None:
        """Kill the server, as in a machine failure."""
        self._process.kill()

    def stop(self) -> None:
        """Stop the server, if it is running."""
        if self._process.running:
            self._process.stop()
