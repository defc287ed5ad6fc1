"""Score traces that are already stored in files or ClickHouse, on one machine or a cluster.

Modules in this folder may import :mod:`~otel_agenteval.engine` and lower layers and, only when needed, pyarrow, daft, ray, and
clickhouse-connect. Every way to run a backfill (one process, several processes, Daft, or Ray) calls :class:`Scorer`.

Start reading at :mod:`.batch`.
"""

from .batch import RESULT_COLUMNS, Scorer, score_batch

__all__ = ["RESULT_COLUMNS", "Scorer", "score_batch"]
