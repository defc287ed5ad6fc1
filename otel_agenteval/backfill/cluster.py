"""Run a backfill with Daft, on all cores of this machine or on a Ray cluster.

Daft reads the Parquet files and groups the spans by bucket. Each bucket is then scored and saved as in a single
process. On a cluster, every node requires the output folder under the same path.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from typing import Any

from ..core.extras import require
from .batch import Scorer, scorer_of
from .run import Output, score_bucket
from .sources import Parquet, bucket_of
from .turn_scoring import ScoringTotals


def run(source: Parquet, output: Output, scorer: Scorer, *, ray: str | None = None) -> ScoringTotals:
    """Score every bucket that isn't done. ``ray`` is the address of a Ray cluster (``auto`` for a cluster on this machine). None
    runs on this machine without Ray. Raises MissingExtra if Daft isn't installed.
    """
    for name in ("DAFT_ANALYTICS_ENABLED", "DAFT_PROGRESS_BAR"):
        os.environ.setdefault(name, "0")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    os.environ.setdefault("SCARF_NO_ANALYTICS", "true")
    daft = require("daft", feature="backfill on Daft", extra="backfill")
    if ray is not None:
        require("ray", feature="backfill on Ray", extra="backfill")
        daft.set_runner_ray(address=ray, noop_if_initialized=True)
    fingerprint = source.fingerprint()
    wanted = [bucket for bucket in range(output.buckets) if not output.is_done(bucket, scorer.keys, fingerprint)]
    total = ScoringTotals()
    if not wanted:
        return total
    names, count, copies, folder = list(source.columns), output.buckets, scorer.copies, str(output.folder.absolute())

    def bucket_number(trace_ids: Any) -> Any:
        return bucket_of(trace_ids.to_arrow(), count).astype("int64")

    def score(bucket: Any, *columns: Any) -> Any:
        """Score and save a bucket on any node, and return counts and costs as JSON."""
        pa = require("pyarrow", feature="backfill", extra="backfill")
        table = pa.table(dict(zip(names, [column.to_arrow() for column in columns], strict=True)))
        totals = score_bucket(Output(folder, 0), bucket.to_pylist()[0], [table], scorer_of(*copies), fingerprint)
        return [json.dumps(asdict(totals))]

    number_of = daft.func.batch(return_dtype=daft.DataType.int64())(bucket_number)
    scored = daft.func.batch(return_dtype=daft.DataType.string())(score)
    spans = daft.read_parquet([str(file) for file in source.files])
    spans = spans.select(*(daft.col(theirs).alias(ours) for ours, theirs in source.columns.items()))
    spans = spans.with_column("bucket", number_of(daft.col("trace_id")))
    spans = spans.where(daft.col("bucket").is_in(wanted))
    done = spans.groupby("bucket").map_groups(scored(daft.col("bucket"), *(daft.col(name) for name in names)).alias("account"))
    for text in done.to_pydict()["account"]:
        total.add(ScoringTotals(**json.loads(text)))
    return total
