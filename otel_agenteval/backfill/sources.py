"""Sources of stored spans: Parquet files, OTLP/JSON files, and ClickHouse."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np

from ..core.errors import AgentEvalError, ConfigError
from ..core.extras import require
from ..spans.columnar import known_columns, table_of
from ..turns.recordings import Reading, read_items, to_stderr

_ROWS = 20_000
_JSON_ENDINGS = (".json", ".jsonl", ".json.gz", ".jsonl.gz", ".json.zst", ".jsonl.zst", ".json.zstd", ".jsonl.zstd")
_PACKED = 4
_SPAN_BYTES = 3_000


class Source(Protocol):
    """Stored spans, read in batches with otel-agenteval's column names. A trace's spans can be in several batches."""

    def fingerprint(self) -> str:
        """Return a string that usually changes when the source's spans change."""

    def size(self) -> tuple[int | None, int]:
        """Return (number of spans, approximate bytes in memory). The number is None if it is unknown until all spans are read."""

    def batches(self) -> Iterator[Any]:
        """Yield all spans as ``pyarrow.Table`` objects of limited size."""


def source_of(text: str, *, shard: tuple[int, int] = (0, 1)) -> Source:
    """Return the source for a Parquet or OTLP/JSON file, a folder of such files, or a :class:`ClickHouse` URL. ``shard=(k, n)``
    limits the source to shard k of n, with k from 0 to n - 1. Raises AgentEvalError for a missing source or an unknown format.
    """
    require("pyarrow", feature="backfill", extra="backfill")
    if text.startswith(("clickhouse://", "clickhouses://")):
        return ClickHouse(text, shard)
    path = Path(text)
    if not path.exists():
        raise AgentEvalError(f"{text}: file or folder not found")
    files = [path] if path.is_file() else sorted(found for found in path.rglob("*") if found.is_file())
    parquet = [file for file in files if file.name.endswith((".parquet", ".pq"))]
    lines = [file for file in files if file.name.endswith(_JSON_ENDINGS)]
    if parquet and lines:
        raise AgentEvalError(f"{text}: contains both Parquet and OTLP/JSON files. Use a folder with only one of these formats")
    if parquet:
        return Parquet(parquet, shard)
    if lines:
        return JsonLines(lines, shard)
    raise AgentEvalError(
        f"{text}: must be a file or folder with Parquet (.parquet, .pq) or OTLP/JSON lines (.jsonl, .json, also .gz or .zst)"
    )


def bucket_of(trace_ids: Any, count: int, shards: int = 1) -> np.ndarray:
    """Return an array with each trace ID's bucket number, which is ``crc32(hex text) // shards % count``."""
    pc = require("pyarrow.compute", feature="backfill", extra="backfill")
    pa = require("pyarrow", feature="backfill", extra="backfill")
    if pa.types.is_dictionary(trace_ids.type):
        trace_ids = trace_ids.cast(trace_ids.type.value_type)
    unique = pc.unique(trace_ids)
    hashes = np.array([zlib.crc32(hex_of(one).encode()) for one in unique.to_pylist()], dtype=np.uint32)
    at = pc.index_in(trace_ids, unique).to_numpy(zero_copy_only=False)
    found: np.ndarray = (hashes[at.astype(np.int64)] // shards) % count if len(hashes) else np.zeros(0, dtype=np.int64)
    return found


def hex_of(trace_id: Any) -> str:
    return trace_id.hex() if isinstance(trace_id, bytes) else str(trace_id or "").lower()


def _of_shard(table: Any, shard: tuple[int, int]) -> Any:
    pa = require("pyarrow", feature="backfill", extra="backfill")
    k, n = shard
    return table if n == 1 else table.filter(pa.array(bucket_of(table.column("trace_id"), n) == k))


class _Files:
    def __init__(self, files: Sequence[Path], shard: tuple[int, int]) -> None:
        self.files = list(files)
        self._shard = shard

    def fingerprint(self) -> str:
        facts = sorted((str(file), file.stat().st_size, file.stat().st_mtime_ns) for file in self.files)
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


class Parquet(_Files):
    """Parquet files with one span per row. Raises MissingExtra if ``pyarrow`` is missing, and AgentEvalError for unreadable files."""

    def __init__(self, files: Sequence[Path], shard: tuple[int, int]) -> None:
        super().__init__(files, shard)
        self._parquet = require("pyarrow.parquet", feature="backfill", extra="backfill")
        self._columns: list[tuple[Path, dict[str, str]]] = []
        self._rows = 0
        for file in self.files:
            try:
                opened = self._parquet.ParquetFile(file)
                self._columns.append((file, known_columns(opened.schema_arrow.names)))
                self._rows += opened.metadata.num_rows
            except (OSError, ValueError) as problem:
                raise AgentEvalError(f"{file}: can't read the file: {problem}") from None

    @property
    def columns(self) -> dict[str, str]:
        return self._columns[0][1]

    def size(self) -> tuple[int | None, int]:
        n = self._shard[1]
        return (self._rows if n == 1 else None), sum(file.stat().st_size for file in self.files) * _PACKED // n

    def batches(self) -> Iterator[Any]:
        pa = require("pyarrow", feature="backfill", extra="backfill")
        for file, columns in self._columns:
            for batch in self._parquet.ParquetFile(file).iter_batches(_ROWS, columns=list(columns.values())):
                table = pa.Table.from_batches([batch])
                ours = {theirs: name for name, theirs in columns.items()}
                yield _of_shard(table.rename_columns([ours[name] for name in table.schema.names]), self._shard)


class JsonLines(_Files):
    """OTLP/JSON lines (traces and logs), such as from the Collector's file exporter. Unreadable lines are reported and skipped."""

    def size(self) -> tuple[int | None, int]:
        packed = [file.stat().st_size * (1 if file.suffix in (".json", ".jsonl") else _PACKED) for file in self.files]
        return None, sum(packed) // self._shard[1]

    def batches(self) -> Iterator[Any]:
        held: list[Any] = []
        for item in read_items(self.files, Reading(), to_stderr):
            held.append(item)
            if len(held) == _ROWS:
                yield _of_shard(table_of(held), self._shard)
                held = []
        if held:
            yield _of_shard(table_of(held), self._shard)


_CLICKHOUSE_COLUMNS = (
    "TraceId AS trace_id, SpanId AS span_id, ParentSpanId AS parent_span_id, SpanName AS name, SpanKind AS kind, "
    "toUnixTimestamp64Nano(Timestamp) AS start_time_unix_nano, toInt64(Duration) AS duration, toString(StatusCode) AS status_code, "
    "StatusMessage AS status_message, ScopeName AS scope_name, ServiceName AS service_name, "
    "SpanAttributes AS attributes, ResourceAttributes AS resource_attributes, "
    "`Events.Name` AS events_name, arrayMap(at -> toUnixTimestamp64Nano(at), `Events.Timestamp`) AS events_time, "
    "`Events.Attributes` AS events_attributes"
)


class ClickHouse:
    """Spans in a table that the Collector's ClickHouse exporter fills, read over HTTP. The scheme ``clickhouses`` uses TLS. The
    option ``where`` adds an SQL condition. Example:
    ``clickhouse://user:password@host:8123/database?table=otel_traces&since=2026-11-01&until=2026-11-08``. Raises ConfigError for an
    invalid URL, and MissingExtra if ``clickhouse-connect`` isn't installed.
    """

    def __init__(self, url: str, shard: tuple[int, int]) -> None:
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError:  # the port isn't a number, or brackets don't match
            host = port = None
        if not host:
            raise ConfigError("clickhouse://: invalid host or port. Example: clickhouse://HOST:8123/DATABASE")
        options = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        table = options.pop("table", "otel_traces")
        conditions = []
        for name, sign in (("since", ">="), ("until", "<")):
            if name in options:
                text = options.pop(name).replace("\\", "\\\\").replace("'", "\\'")
                conditions.append(f"Timestamp {sign} parseDateTime64BestEffort('{text}', 9)")
        if "where" in options:
            conditions.append(f"({options.pop('where')})")
        if shard[1] > 1:
            conditions.append(f"cityHash64(TraceId) % {shard[1]} = {shard[0]}")
        if options:
            raise ConfigError(f"{', '.join(options)}: unknown option of a ClickHouse URL. Allowed: table, since, until, where")
        secure = parts.scheme == "clickhouses"
        self._address: dict[str, Any] = {
            "host": host, "port": port or (8443 if secure else 8123), "secure": secure,
            "username": unquote(parts.username or "default"), "password": unquote(parts.password or ""),
            "database": parts.path.strip("/") or "default",
        }  # fmt: skip
        self._from = f"{'.'.join('`' + part.replace('`', '') + '`' for part in table.split('.'))}"
        self._from += f" WHERE {' AND '.join(conditions)}" if conditions else ""
        self._module = require("clickhouse_connect", feature="backfill from ClickHouse", extra="backfill")
        self._count: int | None = None

    def _client(self) -> Any:
        try:
            return self._module.get_client(**self._address)
        except Exception as problem:
            where = f"{self._address['host']}:{self._address['port']}"
            raise AgentEvalError(f"clickhouse://{where}: connection failed: {str(problem)[:200]}") from None

    def fingerprint(self) -> str:
        client = self._client()
        try:
            found = client.command(f"SELECT concat(toString(count()), ' ', toString(max(Timestamp))) FROM {self._from}")  # noqa: S608 - the user's own query
        finally:
            client.close()
        self._count = int(str(found).split(" ", maxsplit=1)[0])
        facts = [self._address["host"], self._address["port"], self._address["database"], self._from, str(found)]
        return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]

    def size(self) -> tuple[int | None, int]:
        if self._count is None:
            self.fingerprint()
        return self._count, (self._count or 0) * _SPAN_BYTES

    def batches(self) -> Iterator[Any]:
        pa = require("pyarrow", feature="backfill", extra="backfill")
        client = self._client()
        try:
            query = f"SELECT {_CLICKHOUSE_COLUMNS} FROM {self._from}"  # noqa: S608 - as above
            with client.query_arrow_stream(query, settings={"max_block_size": _ROWS}, use_strings=True) as stream:
                for batch in stream:
                    yield pa.Table.from_batches([batch]) if isinstance(batch, pa.RecordBatch) else batch
        finally:
            client.close()
