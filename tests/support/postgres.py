"""A real PostgreSQL on a free port of 127.0.0.1, with a separate database for each caller."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from otel_agenteval.outlets.store.postgres import Connection
from tests.support.servers import Process, for_every_user, free_port, listens, until

Anywhere = Callable[[], str]
"""Function that returns the path or address of a new store."""
_NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--")
"""Run as another user, because PostgreSQL refuses to run as root."""


class PostgresServer:
    """A running server.

    Args:
        port: its port.
        process: its process, which can be killed and started again.
    """

    def __init__(self, port: int, process: Process) -> None:
        self.port = port
        self.process = process
        self._names = itertools.count()

    def start(self) -> None:
        """Start the server again, and wait until it has recovered."""
        until(self._started, "PostgreSQL starts", 30)
        self.wait()

    def _started(self) -> bool:
        """Return False while processes of a killed server are still running."""
        before = len(self.process.text())
        try:
            self.process.start()
        except AssertionError:
            if "shared memory block" not in self.process.text()[before:]:
                raise
            return False
        return True

    def wait(self) -> None:
        """Wait until the server has recovered. It listens earlier."""
        until(self._answers, "PostgreSQL answers", 30)

    def _answers(self) -> bool:
        Connection(self._address("postgres"), read_only=True).close()
        return True

    def database(self) -> str:
        """Create an empty database, and return its address."""
        import psycopg

        name = f"test_{next(self._names)}"
        with psycopg.connect(self._address("postgres"), autocommit=True) as db:
            db.execute(f"CREATE DATABASE {name}")
        return self._address(name)

    def _address(self, database: str) -> str:
        return f"postgresql://agenteval:secret@127.0.0.1:{self.port}/{database}"


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server whose data is deleted at the end."""
    as_somebody = _NOBODY if os.getuid() == 0 else ()
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    try:
        with for_every_user("postgres") as programs:
            password = folder / "password"
            password.write_text("secret")
            if as_somebody:
                for path in (folder, password):
                    os.chown(path, 65534, 65534)
            data, port = folder / "data", free_port()
            made = [
                *as_somebody,
                str(programs / "initdb"),
                "-D",
                str(data),
                "-U",
                "agenteval",
                "--auth=scram-sha-256",
                f"--pwfile={password}",
                "--no-locale",
                "--encoding=UTF8",
                "--no-sync",
            ]
            subprocess.run(made, check=True, capture_output=True, cwd=folder)
            options = {"listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": "", "fsync": "off", "jit": "off"}
            command = [*as_somebody, programs / "postgres", "-D", data, *(f"--{name}={value}" for name, value in options.items())]
            process = Process(command, log=folder / "log", ready=listens(port), cwd=folder)
            try:
                server = PostgresServer(port, process)
                server.wait()
                yield server
            finally:
                process.kill()  # a smart shutdown would wait for connections
    finally:
        shutil.rmtree(folder, ignore_errors=True)
