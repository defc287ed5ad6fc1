"""Score stored spans, and write the results to an output folder.

A bucket is a group of traces, or of conversations if a metric reads several turns. A run adds only missing results. Output folder::

    OUT/manifest.json                  number of buckets, the same for all runs in this folder
    OUT/parts/bucket-00003-RUN.parquet results; each run adds a file to buckets with missing results
    OUT/done/bucket-00003.json         metrics and versions that were evaluated in the bucket, and the source's fingerprint
    OUT/spans/…                        spans by bucket during the backfill; removed at the end

A bucket is marked as done only after its results file is complete. If a run is killed, the next run therefore continues with the
unfinished bucket. If a bucket has judge errors, the next run scores this bucket again, and replaces the errors.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..core.errors import AgentEvalError
from ..core.extras import require
from ..core.files import make_private
from ..core.processes import Processes
from .batch import Scorer, ScoringTotals, scorer_of
from .sources import Parquet, Source, bucket_of, hex_of

_BUCKET_BYTES = 256 * 2**20
_WORTH_A_PROCESS = 8 * 2**20
_MOST_BUCKETS = 512
_FORMAT = "otel-agenteval.backfill.v1"
_KNOWN = ("result_id", "status", "kind", "value", "passed", "label", "detail")


class Output:
    """Output folder of a backfill, created if missing. An existing folder keeps its number of buckets, even if ``buckets``
    differs. Raises AgentEvalError if the folder has files without a valid manifest, or can't be used.
    """

    def __init__(self, folder: str | Path, buckets: int) -> None:
        self.folder = Path(folder)
        manifest = self.folder / "manifest.json"
        try:
            if manifest.exists():
                with contextlib.suppress(ValueError, TypeError, KeyError):
                    found = json.loads(manifest.read_bytes())
                    if found["format"] == _FORMAT:
                        self.buckets = int(found["buckets"])
                        return
                raise AgentEvalError(
                    f"{manifest}: not a manifest of format {_FORMAT}, so the run can't continue. Choose an empty folder"
                )
            if self.folder.exists() and any(self.folder.iterdir()):
                raise AgentEvalError(
                    f"{folder}: contains files, but no manifest.json. Choose an empty folder, or the output of an earlier backfill"
                )
            self.buckets = buckets
            make_private(self.folder)  # results can quote users and agents
            (self.folder / "parts").mkdir(mode=0o700)
            (self.folder / "done").mkdir(mode=0o700)
            _write(manifest, json.dumps({"format": _FORMAT, "buckets": buckets}))
        except OSError as error:
            raise AgentEvalError(f"{folder}: can't use the folder: {error.strerror or error}") from None

    def missing(self, keys: Sequence[str], fingerprint: str) -> list[int]:
        notes = enumerate(map(self._done_note, range(self.buckets)))
        return [n for n, done in notes if done.get("source") != fingerprint or not set(keys) <= set(done.get("metrics", ()))]

    def known(self, bucket: int | None) -> dict[str, dict[str, Any] | None]:
        """Map result IDs to successful results in a bucket, or in all buckets if ``bucket`` is None. The value is None for computed
        metrics. For other metrics, the value contains the columns that composite metrics read.
        """
        parquet = require("pyarrow.parquet", feature="backfill", extra="backfill")
        found: dict[str, dict[str, Any] | None] = {}
        self._with_errors: set[Path] = set()
        for file in sorted((self.folder / "parts").glob("*.parquet" if bucket is None else f"{_name(bucket)}-*.parquet")):
            for row in parquet.read_table(file, columns=list(_KNOWN)).to_pylist():
                if row["status"] == "ok":
                    found[row["result_id"]] = None if row["kind"] == "code" else row
                else:
                    self._with_errors.add(file)
        return found

    def finish(self, bucket: int, results: Any, keys: Sequence[str], fingerprint: str) -> None:
        """Save a bucket's results, which replace earlier errors. Mark the metrics in ``keys`` as done for this ``fingerprint``."""
        parquet = require("pyarrow.parquet", feature="backfill", extra="backfill")
        if results.num_rows:
            ids = sorted(results.column("result_id").to_pylist())
            digest = hashlib.sha256(" ".join([fingerprint, *ids]).encode())  # a repeated run replaces its own file
            tables = {self.folder / "parts" / f"{_name(bucket)}-{digest.hexdigest()[:12]}.parquet": results}
            for file in self._with_errors - tables.keys():
                tables[file] = parquet.read_table(file, filters=[("result_id", "not in", ids)])
            for file, table in tables.items():
                part = file.with_suffix(f".{os.getpid()}.tmp")
                parquet.write_table(table, part, compression="zstd")
                part.replace(file)
        former = self._done_note(bucket)
        covered = set(former.get("metrics", ())) if former.get("source") == fingerprint else set()
        note = {"source": fingerprint, "metrics": sorted(covered | set(keys))}
        _write(self.folder / "done" / f"{_name(bucket)}.json", json.dumps(note, indent=1))

    def _done_note(self, bucket: int) -> dict[str, Any]:
        file = self.folder / "done" / f"{_name(bucket)}.json"
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found


def score_bucket(output: Output, bucket: int, tables: Iterable[Any], scorer: Scorer, fingerprint: str) -> ScoringTotals:
    """Compute a bucket's missing results and, except in a dry run, save the results. ``tables`` must contain the whole bucket."""
    results, account = scorer.score(list(tables), output.known(None if scorer.by_conversation else bucket))
    if not scorer.dry:
        output.finish(bucket, results, () if account.judge_errors else scorer.keys, fingerprint)
    return account


def run(
    source: Source,
    output: Output,
    scorer: Scorer,
    *,
    shards: int = 1,
    jobs: int = 1,
    progress: Callable[[str, int, int | None], None] = lambda what, done, total: None,
) -> ScoringTotals:
    """Write the source's spans to buckets, then score unfinished buckets. If the source is one of n shards, set ``shards`` to n.
    ``jobs`` is the number of processes, but small sources, dry runs, and runs that call a judge or embedder use only one process.
    """
    fingerprint = source.fingerprint()
    wanted = output.missing(scorer.keys, fingerprint)
    total = ScoringTotals()
    layout = _Layout(output, fingerprint)
    layout.fill(source, shards, progress)
    if scorer.by_conversation:
        layout.regroup(scorer)
    spans = sum(layout.counts)
    seen = sum(layout.counts[bucket] for bucket in range(output.buckets) if bucket not in wanted)
    alone = scorer.dry or scorer.asks or source.size()[1] < _WORTH_A_PROCESS
    score = functools.partial(_score, layout, scorer if alone or jobs == 1 else scorer.copies)
    with Processes(1 if alone else jobs) as processes:
        for bucket, account in zip(wanted, processes.map(score, wanted), strict=True):
            total.add(account)
            seen += layout.counts[bucket]
            progress("scored", seen, spans)
    shutil.rmtree(output.folder / "spans", ignore_errors=True)
    return total


def _score(layout: _Layout, scorer: Scorer | tuple[str, tuple[str, ...] | None], bucket: int) -> ScoringTotals:
    """Score a bucket. A worker process receives only the scorer's arguments, so the process creates a scorer on first use."""
    here = scorer if isinstance(scorer, Scorer) else scorer_of(*scorer)
    return score_bucket(layout.output, bucket, layout.tables(bucket), here, layout.fingerprint)


def run_on_daft(source: Parquet, output: Output, scorer: Scorer, *, ray: str | None = None) -> ScoringTotals:
    """Run a backfill with Daft on all cores or on a Ray cluster. Daft reads Parquet files and groups spans by bucket.

    Daft's workers score each unfinished bucket and save its results. On a cluster, all nodes must reach the output folder under the
    same path. ``ray`` is the address of a Ray cluster, or ``auto`` for a cluster on this machine. If ``ray`` is None, Daft runs
    without Ray. Raises MissingExtra if Daft isn't installed, or if ``ray`` is set and Ray isn't installed.
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
    wanted = output.missing(scorer.keys, fingerprint)
    total = ScoringTotals()
    names, count, copies, folder = list(source.columns), output.buckets, scorer.copies, str(output.folder.absolute())

    def bucket_number(trace_ids: Any) -> Any:
        return bucket_of(trace_ids.to_arrow(), count).astype("int64")

    def score(bucket: Any, *columns: Any) -> Any:
        """Score a bucket on a Daft worker, and save its results. Return the totals as JSON."""
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


class _Layout:
    def __init__(self, output: Output, fingerprint: str) -> None:
        self.output = output
        self.fingerprint = fingerprint
        self._folder = output.folder / "spans" / fingerprint
        self._count = output.buckets
        self.counts: list[int] = [0] * output.buckets

    def fill(self, source: Source, shards: int, progress: Callable[[str, int, int | None], None]) -> None:
        """Write the source's spans to bucket files, unless an interrupted run has already written all files."""
        note = self._folder / "complete.json"
        if note.exists():
            self.counts = json.loads(note.read_text())
            return
        shutil.rmtree(self._folder.parent, ignore_errors=True)
        self._folder.mkdir(parents=True, mode=0o700)  # contains texts of users and agents
        rows, (expected, _) = 0, source.size()
        with _BucketWriter(self._folder, self._count) as writer:
            for table in source.batches():
                writer.write(table, bucket_of(table.column("trace_id"), self._count, shards))
                rows += table.num_rows
                progress("read", rows, expected)
        self.counts = writer.counts
        _write(note, json.dumps(self.counts))

    def regroup(self, scorer: Scorer) -> None:
        """Rewrite the bucket files so that all traces of a conversation are in one bucket."""
        note = self._folder / "conversations" / "complete.json"
        if not note.exists():
            shutil.rmtree(note.parent, ignore_errors=True)
            note.parent.mkdir(mode=0o700)
            pa = require("pyarrow", feature="backfill", extra="backfill")
            with _BucketWriter(note.parent, self._count) as writer:
                for bucket in range(self._count):
                    conversations = scorer.conversations_in(self.tables(bucket))
                    for table in self.tables(bucket):
                        traces = map(hex_of, table.column("trace_id").to_pylist())
                        homes = pa.array([conversations.get(trace, trace) for trace in traces], pa.string())
                        writer.write(table, bucket_of(homes, self._count))
            _write(note, json.dumps(writer.counts))
        self.counts = json.loads(note.read_text())
        self._folder = note.parent

    def tables(self, bucket: int) -> Iterator[Any]:
        ipc = require("pyarrow.ipc", feature="backfill", extra="backfill")
        for file in sorted(self._folder.glob(f"{_name(bucket)}-*.arrow")):
            with ipc.open_stream(str(file)) as stream:
                yield stream.read_all()


class _BucketWriter(contextlib.ExitStack):
    def __init__(self, folder: Path, buckets: int) -> None:
        super().__init__()
        self.counts = [0] * buckets
        self._folder = folder
        self._writers: dict[tuple[int, str], Any] = {}

    def write(self, table: Any, buckets: Any) -> None:
        ipc = require("pyarrow.ipc", feature="backfill", extra="backfill")
        pa = require("pyarrow", feature="backfill", extra="backfill")
        kind = hashlib.sha256(str(table.schema).encode()).hexdigest()[:8]
        for bucket in sorted(set(buckets.tolist())):
            part = table.filter(pa.array(buckets == bucket)) if len(self.counts) > 1 else table
            writer = self._writers.get((bucket, kind))
            if writer is None:
                path = str(self._folder / f"{_name(bucket)}-{kind}.arrow")
                writer = self._writers[bucket, kind] = self.enter_context(ipc.new_stream(path, table.schema))
            writer.write_table(part)
            self.counts[bucket] += part.num_rows


def buckets_for(source: Source, jobs: int = 1) -> int:
    """Return how many buckets to create, so that ``jobs`` buckets fit into memory at the same time (at most 512 buckets)."""
    return max(1, min(_MOST_BUCKETS, math.ceil(source.size()[1] * jobs / _BUCKET_BYTES)))


class Bar:
    """Progress bar on standard error, with the remaining time. The bar is shown only on a terminal, unless ``always`` is True."""

    def __init__(self, always: bool) -> None:
        self._shown = always or sys.stderr.isatty()
        self._what = ""
        self._since = 0.0
        self._from = 0
        self._shown_at = 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if what != self._what:
            self._what, self._since, self._from, self._shown_at = what, now, 0 if what == "read" else done, 0.0
        if not self._shown or (now - self._shown_at < 0.2 and done != total):
            return
        self._shown_at = now
        sys.stderr.write(f"\r\033[K{line_of(what, done, total, done - self._from, now - self._since)}")
        sys.stderr.flush()

    def end(self) -> None:
        if self._shown and self._what:
            sys.stderr.write("\n")


def line_of(what: str, done: int, total: int | None, lately: int, seconds: float) -> str:
    rate = lately / seconds if seconds > 0 else 0.0
    pace = f", {rate:,.0f}/s" if rate >= 1 else ""
    if not total:
        return f"{what} {done:,} spans{pace}"
    filled = min(20, 20 * done // total)
    left = ""
    if rate > 0 and done < total:
        wait = (total - done) / rate
        time_left = f"{wait:.0f} s" if wait < 90 else f"{wait / 60:.0f} min" if wait < 5_400 else f"{wait / 3600:.1f} h"
        left = f", {time_left} left"
    return f"{what} [{'#' * filled}{'-' * (20 - filled)}] {done:,} of {total:,} spans{pace}{left}"


def _name(bucket: int) -> str:
    return f"bucket-{bucket:05d}"


def _write(file: Path, text: str) -> None:
    part = file.with_suffix(f".{os.getpid()}.tmp")
    part.write_text(text, encoding="utf-8")
    part.replace(file)
