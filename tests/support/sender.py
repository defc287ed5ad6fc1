"""A client that sends whole turns to a sidecar, and resends refused requests as a Collector does."""

from __future__ import annotations

import http.client
import json
import threading
import time
from collections.abc import Sequence

from tests.support.service import AGENT, request

TOGETHER = 20
"""Turns in a request."""
SAID = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "What is the weather in Oslo? " * 30}]}])
ANSWERED = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "It is cold. " * 60}]}])


def turn_id(number: int) -> str:
    """Return the id of a turn."""
    return f"{number:032x}-{1:016x}"


def body(numbers: Sequence[int]) -> bytes:
    """Return a request with whole turns."""
    chat = {
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1",
        "gen_ai.input.messages": SAID, "gen_ai.output.messages": ANSWERED,
    }  # fmt: skip
    spans = [
        span
        for number in numbers
        for span in (
            {"trace": number, "id": 1, "name": "invoke_agent bot", "attributes": AGENT},
            {"trace": number, "id": 2, "parent": 1, "attributes": chat},
        )
    ]
    return request(*spans)


class Sender:
    """Sends turns over HTTP from a few threads, and resends each request until it is accepted.

    Args:
        ports: ports of receivers (sidecar, proxy or Collector), used alternately. You can replace them at any time.
        turns: number of turns.
        threads: number of simultaneous requests.
        hold: share of the turns to send before :meth:`release`, so that some turns are sent after a fault.
    """

    def __init__(self, ports: Sequence[int], turns: int, threads: int = 3, hold: float = 1.0) -> None:
        self.ports = ports
        self._hold = hold
        self._requests = iter([range(first, min(first + TOGETHER, turns + 1)) for first in range(1, turns + 1, TOGETHER)])
        self._lock = threading.Condition()
        self.turns = turns
        self._begun = 0
        self.accepted: set[int] = set()
        self.refused = 0
        self.stopped = False
        self._threads = [threading.Thread(target=self._run, daemon=True) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        connections: dict[int, http.client.HTTPConnection] = {}
        try:
            self._send(connections)
        finally:
            for connection in connections.values():
                connection.close()

    def _send(self, connections: dict[int, http.client.HTTPConnection]) -> None:
        while not self.stopped:
            with self._lock:
                self._lock.wait_for(lambda: self._begun < self.turns * self._hold or self.stopped)
                numbers = next(self._requests, None)
                self._begun += len(numbers or ())
            if numbers is None:
                return
            data = body(numbers)
            while not self.stopped:
                port = self.ports[numbers[0] // TOGETHER % len(self.ports)]
                connection = connections.setdefault(port, http.client.HTTPConnection("127.0.0.1", port, timeout=10))
                try:
                    connection.request("POST", "/v1/traces", data, {"Content-Type": "application/x-protobuf"})
                    answer = connection.getresponse()
                    answer.read()
                    taken = answer.status == 200
                except (OSError, http.client.HTTPException):
                    taken = False
                    connection.close()
                    del connections[port]
                with self._lock:
                    if taken:
                        self.accepted.update(numbers)
                    else:
                        self.refused += 1
                    self._lock.notify_all()
                if taken:
                    break
                time.sleep(0.1)

    def release(self) -> None:
        """Send the remaining turns."""
        with self._lock:
            self._hold = 1.0
            self._lock.notify_all()

    def until(self, share: float, timeout: float = 60.0) -> None:
        """Wait until that share of the turns is accepted, or the time is up."""
        with self._lock:
            self._lock.wait_for(lambda: len(self.accepted) >= self.turns * share, timeout)

    def until_refused(self, times: int = 3, timeout: float = 30.0) -> None:
        """Wait until ``times`` more requests were refused, or the time is up."""
        with self._lock:
            wanted = self.refused + times
            self._lock.wait_for(lambda: self.refused >= wanted or len(self.accepted) >= self.turns, timeout)

    def end(self, timeout: float = 60.0) -> None:
        """Wait until all turns are accepted or the time is up. After that, send nothing."""
        self.release()
        self.until(1.0, timeout)
        with self._lock:
            self.stopped = True
            self._lock.notify_all()
        for thread in self._threads:
            thread.join(12)
