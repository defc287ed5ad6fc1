"""A TCP proxy that simulates network faults between two machines."""

from __future__ import annotations

import contextlib
import socket
import threading
import time


class Proxy:
    """Listens on a free port of 127.0.0.1, and forwards everything to another port.

    When it is cut, connections break and new ones are closed immediately. When it is silent, connections stay open, but nothing is forwarded.
    When it is mute, requests are forwarded, but responses are lost. When it is slow, each piece of a response is delayed.
    """

    def __init__(self, port: int) -> None:
        self._target = port
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._server.getsockname()[1])
        self.connections = 0
        """Number of connections from clients."""
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._through = threading.Event()
        self._through.set()
        self._refuses = False
        self._is_mute = False
        self._delay = 0.0
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Break all connections, and close new ones immediately."""
        self._refuses = True
        self._break()

    def silence(self) -> None:
        """Forward nothing, but keep connections open."""
        self._through.clear()

    def mute(self) -> None:
        """Drop all responses from now on."""
        self._is_mute = True

    def slow(self, seconds: float) -> None:
        """Delay each piece of a response."""
        self._delay = seconds

    def heal(self) -> None:
        """Forward everything again. Connections with lost responses break."""
        if self._is_mute:
            self._is_mute = False
            self._break()
        self._refuses, self._delay = False, 0.0
        self._through.set()

    def close(self) -> None:
        self.cut()
        self._is_mute = False
        self._through.set()
        _shut(self._server)
        self._server.close()
        self._thread.join(5)

    def _break(self) -> None:
        with self._lock:
            for one in self._open:
                _shut(one)

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
            for one, other, responds in ((here, there, False), (there, here, True)):
                threading.Thread(target=self._pass, args=(one, other, responds), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, responds: bool) -> None:
        try:
            while data := one.recv(65536):
                self._through.wait()
                if responds and self._is_mute:
                    continue
                if responds:
                    time.sleep(self._delay)
                other.sendall(data)
        except OSError:
            pass
        while responds and self._is_mute:  # also drop the end of the stream
            time.sleep(0.05)
        _shut(one)
        _shut(other)
        with self._lock:
            self._open -= {one}
        one.close()


def _shut(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
