"""A server that responds one byte at a time. No single wait is long, but the whole response takes too long."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_BETWEEN = 0.04
"""Seconds between two bytes."""
_WHOLE = 2.0
"""Seconds after which the rest is sent immediately, so that a client that waits gets a valid response."""


class Dripping:
    """Gives every connection the same response: ``whole`` immediately, then ``slow`` byte by byte."""

    def __init__(self, slow: bytes, whole: bytes) -> None:
        self._slow, self._whole = slow, whole
        self.is_done = False
        """True if a client waited until the end of a response."""
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.recv(65_536)
                connection.sendall(self._whole)
                for number in range(len(self._slow)):
                    if self._stop.wait(_BETWEEN):
                        return
                    if number * _BETWEEN > _WHOLE:
                        self.is_done = True
                        connection.sendall(self._slow[number:])
                        return
                    connection.sendall(self._slow[number : number + 1])
        except OSError:  # the client disconnected
            return

    def close(self) -> None:
        """Stop, even during a response."""
        self._stop.set()
        self._listener.close()


def answer(body: bytes, kind: str = "application/json") -> bytes:
    """Return a complete HTTP response."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % (kind.encode(), len(body), body)


PLACES = ("head", "headers", "body")
"""Parts of a response that can be slow."""


@contextmanager
def dripping(place: str, body: bytes, kind: str = "application/json") -> Iterator[Dripping]:
    """Run a server whose responses are slow from the first byte, in the headers, or in the body. Fail if a client waits for the end."""
    whole = answer(body, kind)
    start = {"head": 0, "headers": whole.index(b"\r\n") + 2, "body": whole.index(b"\r\n\r\n") + 4}[place]
    host = Dripping(whole[start:], whole[:start])
    try:
        yield host
        assert not host.is_done, "somebody waited for the end"
    finally:
        host.close()
