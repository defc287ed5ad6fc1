"""What embedders in this process have in common: they cost nothing, and are read when they are used first."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence

from ...core.clock import Clock
from .accounts import Account, Ledger, Total
from .base import EmbedderModel
from .model_server import tokens_in


class InProcessEmbedder(EmbedderModel):
    """Makes vectors without a server.

    Args:
        model: its name.
        clock: the time.

    Thread-safe.
    """

    def __init__(self, model: str, clock: Clock) -> None:
        self.model = model
        self._clock = clock
        self._lock = threading.Lock()
        self._is_read = False
        self._ledger = Ledger()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector of length 1 per text, in their order; zeros for a text without words."""
        start = self._clock.monotonic()
        with self._lock:
            if not self._is_read:
                self._read()
                self._is_read = True
        vectors = self._vectors(texts)
        self._ledger.add(
            Account("embed", "local", self.model, 0, self._clock.monotonic() - start, tokens_in(texts), 0, cost_usd=0.0,
                    price_source="local", charge_usd=0.0)
        )  # fmt: skip
        return vectors

    def accounts(self) -> list[Account]:
        """The last thousand calls, oldest first; what they cost is 0."""
        return self._ledger.last()

    def total(self) -> Total:
        """The sum over all calls."""
        return self._ledger.total()

    def clear_cache(self) -> None:
        """Nothing is kept."""

    @abstractmethod
    def _read(self) -> None:
        """Read the model."""

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text."""
