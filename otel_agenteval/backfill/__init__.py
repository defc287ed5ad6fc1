"""Scores for traces that were stored before: ``score_batch``, and what drives it over files, a database or a cluster.

May import :mod:`~otel_agenteval.engine` and below; of third parties, pyarrow, daft, ray and clickhouse-connect, on first use.
Start at :mod:`.batch`: the one function that every engine calls.
"""

from .batch import RESULT_COLUMNS, Scorer, score_batch

__all__ = ["RESULT_COLUMNS", "Scorer", "score_batch"]
