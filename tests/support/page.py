"""The web UI in this process, on a free port, for a store that a test wrote."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any

import httpx
from typing_extensions import Self

from otel_agenteval.page.api import Api, Options, Reader
from otel_agenteval.server.auth import Guard, is_token
from otel_agenteval.server.http_server import Head, HttpServer
from otel_agenteval.server.responses import Refusal
from otel_agenteval.server.web import Web, credentials_in
from tests.support.clock import FakeClock
from tests.support.stored_turns import NOW

SHOWN = Options(content=True)


class ServedPage:
    """The web UI of a store. Requests need a token of :attr:`readers`. Without readers, anyone may read and label.

    Args:
        path: path of the store.
        options: options of the web UI.
        readers: allowed readers by token.
    """

    def __init__(self, path: str | Path, options: Options = SHOWN, readers: dict[str, Reader] | None = None) -> None:
        self.clock = FakeClock(time_ns=int(NOW * 1e9))
        self.api = Api(str(path), options, clock=self.clock)
        self.faults: list[str] = []
        self._readers = readers or {}
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="page", daemon=True)
        self._thread.start()
        guard = Guard("127.0.0.1:0", (), (), serves_page=True)
        self.web = Web(guard, self._authorize, self.api, lambda where, error: self.faults.append(f"{where}: {error!r}"))
        self.server = HttpServer(self.web, client_connections=512)
        self._on_loop(lambda: self.server.start("page", "127.0.0.1:0"))
        self.url = f"http://{self.server.address}"
        self.client = httpx.Client(base_url=self.url, timeout=60)

    def _authorize(self, head: Head) -> Reader:
        if not self._readers:
            return Reader()
        _, token = credentials_in(head.headers.get("authorization")) or ("", None)
        for known, reader in self._readers.items():
            if is_token(token, (known,)):
                return reader
        raise Refusal("unauthenticated", "a token is required")

    def _on_loop(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self._on_loop(lambda: self.server.stop(1.0))
        self.web.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def get(self, path: str, **params: Any) -> Any:
        """Return the response to a GET request. Fail if its status isn't 200."""
        response = self.client.get(f"/api/v1/{path}", params={key: value for key, value in params.items() if value is not None})
        assert response.status_code == 200, response.text
        return response.json()

    def all_turns(self, **params: Any) -> Iterable[dict[str, Any]]:
        cursor = None
        while True:
            part = self.get("turns", limit=100, cursor=cursor, **params)
            yield from part["turns"]
            cursor = part["next"]
            if cursor is None:
                return
