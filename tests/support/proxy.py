"""A TCP proxy that a test can cut: what a network does between two machines."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Listens on a free port of 127.0.0.1 and passes everything on to another.

    While it is cut, connections break and new ones are closed at once; while it is silent they stay, and nothing comes through.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.connections = 0
        """Connections that were asked for."""
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._through = threading.Event()
        self._through.set()
        self._refuses = False
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Break every connection, and take no new one."""
        self._refuses = True
        with self._lock:
            for one in self._open:
                _shut(one)

    def silence(self) -> None:
        """Let nothing through, without telling anybody."""
        self._through.clear()

    def heal(self) -> None:
        """Pass everything on again."""
        self._refuses = False
        self._through.set()

    def close(self) -> None:
        """Stop listening."""
        self.cut()
        self._through.set()
        _shut(self._server)
        self._server.close()
        self._thread.join(5)

    def _listen(self) -> None:
        while True:
            try:
                here, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            if self._refuses:
                here.close()
                continue
            try:
                there = socket.create_connection(("127.0.0.1", self._target), timeout=5)
                there.settimeout(None)
            except OSError:
                here.close()
                continue
            with self._lock:
                self._open |= {here, there}
            for one, other in ((here, there), (there, here)):
                threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                self._through.wait()
                other.sendall(data)
        except OSError:
            pass
        _shut(one)
        _shut(other)
        with self._lock:
            self._open -= {one}
        one.close()


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
