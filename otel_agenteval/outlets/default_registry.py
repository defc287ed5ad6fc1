"""Prometheus outlet for the default registry, with a delayed import of ``prometheus_client``.

This import is slow. Unless the application has already imported ``prometheus_client``, the warm-up imports it. Without a warm-up,
the start of a sidecar or the first score imports it.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..core.extras import late_imports
from ..core.telemetry import Telemetry
from ..evaluation.scored_turn import ScoredTurn
from . import workers as _workers  # noqa: F401 - notes the forks from now on
from .base import Outlet, Setup

if TYPE_CHECKING:
    from ..config.outlets import PrometheusOptions

_IMPORTED_FIRST = ("ssl", "http.server", "urllib.request", "wsgiref.simple_server")
"""Modules that ``prometheus_client`` imports and that are slow to import. The warm-up imports each module in a separate step."""
_waiting: WeakSet[DefaultRegistryOutlet] = WeakSet()


def outlet_from(wanted: PrometheusOptions, setup: Setup) -> Outlet:
    if wanted.port is None and "prometheus_client" not in sys.modules:
        return DefaultRegistryOutlet(setup.telemetry)
    return _prometheus().outlet_from(wanted, setup)  # type: ignore[no-any-return]


def join_now() -> None:
    """Import ``prometheus_client``, and register the outlets that wait for this import."""
    for outlet in list(_waiting):
        outlet.join()


class DefaultRegistryOutlet(Outlet):
    """Placeholder that later creates a :class:`.PrometheusOutlet` for the default registry. Until then, metrics aren't exported."""

    name = "prometheus"

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._lock = threading.Lock()
        self._joined: Outlet | None = None
        self._closed = False
        _waiting.add(self)

    def join(self) -> Outlet | None:
        """Return the Prometheus outlet, which the first call creates. If :meth:`close` was called first, return None."""
        if self._joined is None and not self._closed:
            with self._lock, late_imports():
                if self._joined is None and not self._closed:
                    self._joined = _prometheus().PrometheusOutlet(self._telemetry)
                    _waiting.discard(self)
        return self._joined

    def start(self) -> None:
        self.join()

    def warm_up(self) -> Iterator[None]:
        for module in _IMPORTED_FIRST:
            import_module(module)
            yield
        self.join()
        yield

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        joined = self.join()
        if joined is not None:
            joined.emit(batch)

    def flush(self, timeout: float) -> bool:
        return self._joined is None or self._joined.flush(timeout)

    def close(self) -> None:
        self._closed = True
        _waiting.discard(self)
        if self._joined is not None:
            self._joined.close()

    def after_fork_in_child(self) -> None:
        self._lock = threading.Lock()
        if self._joined is not None:
            self._joined.after_fork_in_child()


def _prometheus() -> Any:
    with late_imports():
        return import_module(".prometheus", __package__)
