"""Score traces that are already stored in files, a database or a cluster.

May import :mod:`~otel_agenteval.engine`, lower subpackages and, on first use, pyarrow, daft, ray and clickhouse-connect. Every
engine calls ``score_batch``.

Start at :mod:`.batch`.
"""

from .batch import RESULT_COLUMNS, Scorer, score_batch

__all__ = ["RESULT_COLUMNS", "Scorer", "score_batch"]
