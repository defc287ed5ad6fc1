"""What the rest of judging asks of a model, beside its answers. A new model implements only what differs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any


class Model:
    """Anything that may be asked."""

    model: str = ""
    """Its name."""

    @property
    def priced(self) -> bool:
        """Whether what it costs is known: where dollars are bounded, no other model is asked."""
        return True

    def close(self) -> None:
        """Release what it holds. Safe to call twice; a later question takes it again."""


class JudgeModel(Model, ABC):
    """Judges: what ``llm_`` metrics ask."""

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
        """One question, see :meth:`otel_agenteval.Judge.ask`."""

    @property
    def keeps(self) -> bool:
        """Whether replies are kept, so that :meth:`known` may give some."""
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
        """The reply that is kept for a question; None if there is none."""
        return None

    def server_of(self, metric: str, agent: str) -> str:
        """The address that a metric's question about an agent's turn goes to, where it is not always the same; else nothing."""
        return ""


class EmbedderModel(Model, ABC):
    """Embeds: what ``embed_`` metrics ask."""

    @abstractmethod
    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """One vector per text, see :meth:`otel_agenteval.Embedder.embed`."""
