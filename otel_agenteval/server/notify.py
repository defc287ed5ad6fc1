"""Reports to the service manager through systemd's notification protocol, ``sd_notify(3)``.

A message is a datagram of ``NAME=value`` lines to the socket in ``NOTIFY_SOCKET``. If the variable isn't set, nothing is sent.

With ``--processes``, each process reports to its parent through this protocol, and the parent reports to systemd for all processes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import tempfile
import time
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path

_log = logging.getLogger("otel_agenteval")

_SEND_WITHIN = 2.0
_STATUS_EVERY = 10.0
_EXTEND_BY = 30.0
_EXTEND_EVERY = 10.0
_DATAGRAM = 4096


class Notifier:
    """Sender of messages to the service manager.

    ``address`` is the path of the manager's socket, ``@name`` for an abstract socket, or None to send nothing. After ``watchdog``
    seconds without a report, the service manager assumes that the process is dead.
    """

    def __init__(self, address: str | None = None, watchdog: float | None = None) -> None:
        self._address = address
        self.enabled = address is not None
        self.watchdog = watchdog if address is not None else None

    @classmethod
    def from_environment(cls, env: MutableMapping[str, str] = os.environ) -> Notifier:
        """Create a notifier from environment variables, and remove these variables, so that child processes don't use them."""
        address = env.pop("NOTIFY_SOCKET", None)
        usec, pid = env.pop("WATCHDOG_USEC", ""), env.pop("WATCHDOG_PID", "")
        if not address or address[0] not in "/@":
            return cls()
        for_us = not pid or pid == str(os.getpid())
        return cls(address, int(usec) / 1e6 if for_us and usec.isdigit() and int(usec) > 0 else None)

    def send(self, **state: str | int) -> None:
        if self._address is None:
            return
        # A value with line breaks could add a field.
        message = "\n".join(f"{name}={value}".replace("\n", " ").replace("\r", " ") for name, value in state.items()).encode()
        where = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0)) as sender:
                sender.settimeout(_SEND_WITHIN)
                sender.sendto(message, where)
        except OSError as error:
            _log.debug("reporting to the service manager failed: %s", error.strerror or type(error).__name__)

    def ready(self, status: str) -> None:
        self.send(READY=1, STATUS=status)

    def reloading(self) -> None:
        self.send(RELOADING=1, MONOTONIC_USEC=time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000, STATUS="reloading")

    def stopping(self, within: float) -> None:
        self.send(STOPPING=1, STATUS="stopping", EXTEND_TIMEOUT_USEC=int((within + _EXTEND_BY) * 1e6))

    async def while_starting(self) -> None:
        """Extend the service manager's start timeout until canceled, because a replay can take a long time."""
        while True:
            self.send(STATUS="starting", EXTEND_TIMEOUT_USEC=int(_EXTEND_BY * 1e6))
            await asyncio.sleep(_EXTEND_EVERY)

    async def keep_reporting(self, stalled: Callable[[], str], status: Callable[[], str]) -> None:
        """Report changes of the status until canceled.

        With a watchdog, also report that the process is alive, as long as ``stalled`` returns an empty string.
        """
        if not self.enabled:
            return
        reported = ""
        while True:
            reason = stalled()
            now = reason or status()
            if self.watchdog is not None and not reason:
                self.send(WATCHDOG=1)
            if now != reported:
                reported = now
                self.send(STATUS=now)
            await asyncio.sleep(min(_STATUS_EVERY, self.watchdog / 2) if self.watchdog is not None else _STATUS_EVERY)


@dataclass(slots=True)
class Progress:
    """Check for stalled work. A call returns ``reason`` if ``count()`` returns the same number as at the previous call.

    Otherwise, the call returns ``''``. ``count`` returns None if no work is pending.
    """

    count: Callable[[], int | None]
    reason: str
    last: int | None = None

    def __call__(self) -> str:
        before, self.last = self.last, self.count()
        return self.reason if self.last is not None and self.last == before else ""


class Listener:
    def __init__(self, on_message: Callable[[Mapping[str, str]], None]) -> None:
        self._on_message = on_message
        self._folder = tempfile.TemporaryDirectory(prefix="agenteval-")
        self.address = str(Path(self._folder.name) / "notify")
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | getattr(socket, "SOCK_CLOEXEC", 0))
        self._socket.setblocking(False)
        self._socket.bind(self.address)
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                lines = self._socket.recv(_DATAGRAM).decode("utf-8", "replace").split("\n")
                self._on_message(dict(line.split("=", 1) for line in lines if "=" in line))

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._folder.cleanup()
