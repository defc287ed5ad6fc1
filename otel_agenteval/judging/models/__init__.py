"""Model clients: a judge for judge calls, and an embedder for vectors.

May import the same packages as :mod:`~otel_agenteval.judging`. Start at :mod:`.judge`.
"""

from .base import Account, Total, admitting_repairs, listening, recording
from .cache import VerdictCache, bypassing_cache, is_cache_bypassed
from .embedder import Embedder, InProcessEmbedder, LocalEmbedder
from .factory import embedder_from, judge_from
from .judge import Judge
from .panel import Choice, JudgeGroup, SecondOpinion

__all__ = [
    "Account", "Choice", "Embedder", "InProcessEmbedder", "Judge", "JudgeGroup", "LocalEmbedder", "SecondOpinion", "Total",
    "VerdictCache", "admitting_repairs", "bypassing_cache", "embedder_from", "is_cache_bypassed", "judge_from", "listening",
    "recording",
]  # fmt: skip
