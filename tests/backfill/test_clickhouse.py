"""Backfill from ClickHouse: chdb runs our SQL behind a minimal HTTP interface."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from otel_agenteval.cli.main import main
from tests.backfill.test_backfill import clickhouse_like, results

chdb = pytest.importorskip("chdb.session")

TABLE = """
CREATE TABLE otel_traces (
    Timestamp DateTime64(9), TraceId String, SpanId String, ParentSpanId String, TraceState String, SpanName LowCardinality(String),
    SpanKind LowCardinality(String), ServiceName LowCardinality(String), ResourceAttributes Map(LowCardinality(String), String),
    ScopeName String, ScopeVersion String, SpanAttributes Map(LowCardinality(String), String), Duration UInt64,
    StatusCode LowCardinality(String), StatusMessage String,
    Events Nested (Timestamp DateTime64(9), Name LowCardinality(String), Attributes Map(LowCardinality(String), String))
) ENGINE = MergeTree ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))
"""
"""The table that the Collector's exporter creates, without columns that aren't read."""


class ClickHouse:
    """chdb behind HTTP."""

    def __init__(self, folder: Path) -> None:
        self.queries: list[str] = []
        self._engine = chdb.Session(str(folder / "engine"))
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def ask(self, query: str, form: str = "TabSeparated") -> bytes:
        with self._lock:
            self.queries.append(query)
            found: bytes = self._engine.query(query, form).bytes()
            return found

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._engine.close()


def _handler(server: ClickHouse) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
            query = " ".join([*parse_qs(urlsplit(self.path).query).get("query", []), body]).strip()
            query, _, form = query.partition("FORMAT ") if re.search(r"\bFORMAT \w+\s*$", query) else (query, "", "")
            try:
                status, answer = 200, server.ask(query, form.strip() or "TabSeparated")
            except Exception as error:
                status, answer = 400, str(error).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(answer)))
            self.send_header("X-ClickHouse-Summary", json.dumps({"read_rows": "0"}))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_POST

        def log_message(self, *_: Any) -> None:
            """Print nothing."""

    return Handler


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory: Any) -> Iterator[ClickHouse]:
    folder = tmp_path_factory.mktemp("clickhouse")
    server = ClickHouse(folder)
    server.ask(TABLE)
    file = folder / "rows.parquet"
    pq.write_table(rows(20), file)
    names = [f"`{name}`" for name in rows(1).schema.names]
    server.ask(f"INSERT INTO otel_traces ({', '.join(names)}) SELECT {', '.join(names)} FROM file('{file}', Parquet)")
    yield server
    server.close()


def rows(copies: int) -> pa.Table:
    """Return enough turns for several parts: copies of two turns with other trace ids."""
    tables = []
    for i in range(copies):
        table = clickhouse_like()
        ids = [f"{int(one, 16) + 1000 * i:032x}" for one in table.column("TraceId").to_pylist()]
        tables.append(table.set_column(table.schema.names.index("TraceId"), "TraceId", pa.array(ids)))
    whole = pa.concat_tables(tables)
    return whole.set_column(whole.schema.names.index("ServiceName"), "ServiceName", whole.column("ServiceName").cast(pa.string()))


def test_clickhouse_gives_the_results_that_the_same_rows_in_parquet_give(
    clickhouse: ClickHouse, tmp_path: Path, capsys: Any
) -> None:
    url = f"clickhouse://127.0.0.1:{clickhouse.port}/default?table=otel_traces"
    assert main(["backfill", url, "--out", str(tmp_path / "out"), "--buckets", "3"]) == 0
    assert "80 spans, 40 turns" in capsys.readouterr().out
    pq.write_table(rows(20), tmp_path / "rows.parquet")
    assert main(["backfill", str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "same")]) == 0
    assert results(tmp_path / "out") == results(tmp_path / "same")


def test_two_model_calls_of_a_server_span_are_one_turn(clickhouse: ClickHouse, tmp_path: Path, capsys: Any) -> None:
    _, call = clickhouse_like().slice(0, 2).to_pylist()
    server: dict[str, Any] = {
        "SpanName": "POST /chat",
        "SpanKind": "Server",
        "SpanId": f"{1:016x}",
        "ParentSpanId": "",
        "SpanAttributes": [],
    }
    calls: list[dict[str, Any]] = [
        {"SpanId": f"{k:016x}", "ParentSpanId": f"{1:016x}", "SpanAttributes": asked(k)} for k in (2, 3)
    ]
    file = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_pylist([{**call, **own} for own in (server, *calls)], clickhouse_like().schema), file)
    clickhouse.ask(TABLE.replace("otel_traces", "requests"))
    names = ", ".join(f"`{name}`" for name in call)
    clickhouse.ask(f"INSERT INTO requests ({names}) SELECT {names} FROM file('{file}', Parquet)")
    for source in (str(file), f"clickhouse://127.0.0.1:{clickhouse.port}/default?table=requests"):
        assert main(["backfill", source, "--out", str(tmp_path / "out")]) == 0
        assert "3 spans, 1 turn" in capsys.readouterr().out


def asked(k: int) -> list[tuple[str, str]]:
    said = [("user", "Where is Lima?"), ("assistant", "In Peru."), ("user", "And Quito?"), ("assistant", "In Ecuador.")][
        : 2 * k - 2
    ]
    messages = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said]
    return [
        ("gen_ai.operation.name", "chat"),
        ("gen_ai.input.messages", json.dumps(messages[:-1])),
        ("gen_ai.output.messages", json.dumps(messages[-1:])),
    ]


def test_shards_and_times_are_asked_for_in_the_query(clickhouse: ClickHouse, tmp_path: Path) -> None:
    url = f"clickhouse://127.0.0.1:{clickhouse.port}/default?since=2023-11-14T00:00:00Z&until=2023-11-15T00:00:00Z&where=ServiceName='shop'"
    for k in range(2):
        assert main(["backfill", url, "--out", str(tmp_path / "out"), "--shard", f"{k}/2"]) == 0
    found = {row[0] for row in results(tmp_path / "out").values()}
    assert len(found) == 40
    assert any("cityHash64(TraceId) % 2 = 1" in query and "Timestamp <" in query for query in clickhouse.queries)
    assert main(["backfill", url.replace("2023-11-15", "2023-11-14"), "--out", str(tmp_path / "none")]) == 2


def test_a_server_that_is_not_there_is_told_without_its_password(tmp_path: Path, capsys: Any) -> None:
    assert main(["backfill", "clickhouse://judge:s3cret@127.0.0.1:1/default", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "clickhouse://127.0.0.1:1: connection failed" in said
    assert "s3cret" not in said
