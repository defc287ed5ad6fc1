"""Base classes of models. A new model overrides only the methods that differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any


class Model:
    """Base class of judges and embedders."""

    model: str = ""
    """The model's name."""

    @property
    def priced(self) -> bool:
        """Return True if the model's price is known. A dollar limit excludes all other models."""
        return True

    def close(self) -> None:
        """Release connections and files. Safe to call twice. A later call opens them again."""


class JudgeModel(Model, ABC):
    """Base class of judges, which ``llm_`` metrics call."""

    @abstractmethod
    def ask(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        criteria: Mapping[str, str | Sequence[str]] | None = None,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Make one judge call, see :meth:`otel_agenteval.Judge.ask`."""

    @property
    def keeps(self) -> bool:
        """Return True if replies are cached, so that :meth:`known` can return some."""
        return False

    def known(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        criteria: Mapping[str, str | Sequence[str]] | None = None,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any] | None:
        """Return the cached reply for a judge call, or None."""
        return None

    def server_of(self, metric: str, agent: str) -> str:
        """Return the server's address for a metric and agent, or an empty string for the default."""
        return ""


class EmbedderModel(Model, ABC):
    """Base class of embedders, which ``embed_`` metrics call."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector per text, see :meth:`otel_agenteval.Embedder.embed`."""
