"""Asking models: a judge that answers questions about a turn, and an embedder that turns texts into vectors."""

from .accounts import Account, Total, recording
from .configured import embedder_from, judge_from
from .embedder import Embedder
from .judge import Judge

__all__ = ["Account", "Embedder", "Judge", "Total", "embedder_from", "judge_from", "recording"]
