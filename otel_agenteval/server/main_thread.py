"""Runner for the sidecar's event loop, which leaves the main thread to scoring.

See :mod:`otel_agenteval.engine.watchdog` for the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from ..core.threads import OwnThread
from ..engine.engine import Engine

Found = TypeVar("Found")


def run_beside(engine: Engine, program: Coroutine[Any, Any, Found]) -> Found:
    """Score turns on the calling main thread while ``program`` runs on another one."""
    outcome: Future[Found] = Future()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(program))
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            engine.end_work()

    engine.work_here(OwnThread(run, "agenteval-loop").start)
    return outcome.result()
