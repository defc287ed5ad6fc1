"""Base class of embedders that run in this process. They cost nothing and load their model on first use."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence

from ...core.clock import Clock
from .accounts import Account, AccountLedger, Total
from .base import EmbedderModel
from .model_server import tokens_in


class InProcessEmbedder(EmbedderModel):
    def __init__(self, model: str, clock: Clock) -> None:
        self.model = model
        self._clock = clock
        self._lock = threading.Lock()
        self._is_read = False
        self._ledger = AccountLedger()

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector of length 1 per text, in order. A text without words gets zeros."""
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
        return self._ledger.last()

    def total(self) -> Total:
        return self._ledger.total()

    def clear_cache(self) -> None:
        """Do nothing, because in-process embedders don't cache vectors."""

    @abstractmethod
    def _read(self) -> None:
        """Load the model."""

    @abstractmethod
    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text."""
