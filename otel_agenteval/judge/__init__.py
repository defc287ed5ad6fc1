"""Asking models: a judge that answers questions about a turn, and an embedder that turns texts into vectors."""

from .accounts import Account, Total, admitting_repairs, recording
from .bench import Bench, Choice, Second
from .cache import VerdictCache, asking_anew, is_asking_anew
from .configured import embedder_from, judge_from, seal_from
from .embedder import Embedder
from .judge import Judge
from .local import LocalEmbedder

__all__ = [
    "Account",
    "Bench",
    "Choice",
    "Embedder",
    "Judge",
    "LocalEmbedder",
    "Second",
    "Total",
    "VerdictCache",
    "admitting_repairs",
    "asking_anew",
    "embedder_from",
    "is_asking_anew",
    "judge_from",
    "recording",
    "seal_from",
]  # fmt: skip
