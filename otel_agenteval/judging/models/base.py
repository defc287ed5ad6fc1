"""Base classes of models. A new model overrides only the methods that differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ...metrics.question import Answers, Question
from .accounts import Account, AccountLedger, Total


class Model:
    """Base class of judges and embedders."""

    model: str = ""
    ledger: AccountLedger

    @property
    def priced(self) -> bool:
        """Return True if the model's price is known. A dollar limit excludes all other models."""
        return True

    def accounts(self) -> list[Account]:
        """Return the last thousand requests, oldest first, with tokens, cost, attempts and errors. See also :func:`recording`."""
        return self.ledger.last()

    def total(self) -> Total:
        """Return the sum of all requests."""
        return self.ledger.total()

    def close(self) -> None:
        """Release connections and files. Safe to call twice. A later call opens them again."""


class JudgeModel(Model, Answers):
    """Base class of judges, which ``llm_`` metrics call."""

    @property
    def has_cache(self) -> bool:
        return False

    def cached(self, question: Question) -> dict[str, Any] | None:
        """Return the cached reply to a question, or None."""
        return None

    def server_of(self, metric: str, agent: str) -> str:
        """Return the server's address for a metric and agent, or an empty string for the default."""
        return ""


class EmbedderModel(Model, ABC):
    """Base class of embedders, which ``embed_`` metrics call."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, see :meth:`otel_agenteval.Embedder.embed`."""
