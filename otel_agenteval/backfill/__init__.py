"""Scoring of traces that are already stored in files, a database or a cluster.

This folder may import :mod:`~otel_agenteval.engine` and lower layers. It imports pyarrow, daft, ray and clickhouse-connect on
first use. All engines call ``score_batch``.

Start at :mod:`.batch`.
"""

from .batch import RESULT_COLUMNS, Scorer, score_batch

__all__ = ["RESULT_COLUMNS", "Scorer", "score_batch"]
