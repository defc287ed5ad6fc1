"""Score traces that are already stored in files or ClickHouse, either on one machine or on a cluster.

Modules in this folder may import :mod:`~otel_agenteval.engine` and lower layers. They import pyarrow, daft, ray, and
clickhouse-connect on first use. All backfills (in one process, in several processes, on Daft, or on Ray) call :class:`Scorer`.

Start reading at :mod:`.batch`.
"""

from .batch import RESULT_COLUMNS, Scorer, score_batch

__all__ = ["RESULT_COLUMNS", "Scorer", "score_batch"]
