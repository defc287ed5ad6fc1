"""Score traces that are already stored in files or ClickHouse, on one machine or a cluster.

This folder may import :mod:`~otel_agenteval.engine` and lower layers. It imports pyarrow, daft, ray and clickhouse-connect on
first use. Every way to run a backfill (one process, several processes, Daft or Ray) calls :class:`Scorer`.

Start at :mod:`.batch`.
"""

from .batch import RESULT_COLUMNS, Scorer, score_batch

__all__ = ["RESULT_COLUMNS", "Scorer", "score_batch"]
