"""Asking models: a judge that answers questions about a turn, and an embedder that turns texts into vectors."""

from .embedder import Embedder
from .judge import Judge

__all__ = ["Embedder", "Judge"]
