"""HTTP server on a separate thread for probes and scrapes.

They get a response even if spans keep the main loop busy.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from .http_server import HttpServer

Found = TypeVar("Found")


class BackgroundServer:
    """HTTP server with its own thread and event loop, whose exceptions go to ``fault``."""

    def __init__(self, server: HttpServer, fault: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object]) -> None:
        self._server = server
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(fault)
        self._thread = threading.Thread(target=self._loop.run_forever, name="agenteval-background", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        return self._server.address

    @property
    def connections(self) -> int:
        return self._server.connections

    @property
    def refused(self) -> int:
        return self._server.refused

    async def start(self, option: str, address: str) -> None:
        """Listen without TLS. Raises ConfigError if the address can't be used."""
        try:
            await self._there(self._server.start(option, address))
        except BaseException:
            await self._end()
            raise

    async def stop(self, grace: float) -> None:
        """Stop the server within ``grace`` seconds, and end its thread."""
        if self._thread.is_alive():
            await self._there(self._server.stop(grace))
            await self._end()

    async def _there(self, work: Coroutine[Any, Any, Found]) -> Found:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    async def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._loop.close()
