"""Stored traces get the same scores as with ``eval``, in any storage and with any way to group spans into traces."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import io
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import textwrap
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from otel_agenteval.backfill import RESULT_COLUMNS, score_batch
from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import NotASpan
from otel_agenteval.spans.columnar import spans_of, table_of
from otel_agenteval.spans.record import SpanRecord
from otel_agenteval.turns.recordings import Reading, read_items
from tests.support.judges import ScriptedModels
from tests.support.process import environment
from tests.support.recordings import CORPUS

GOOD = {"score": 90, "reason": "It answers."}
METRIC = "llm_relevance"


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: Any) -> Path:
    """Write a folder with OTLP/JSON lines of recordings of several frameworks, traces and logs."""
    folder = tmp_path_factory.mktemp("recorded")
    with tarfile.open(CORPUS) as corpus:
        for member in corpus:
            file = corpus.extractfile(member) if re.search(r"/s(2|9)(\.logs)?\.jsonl$", member.name) else None
            if file is not None:
                (folder / member.name.replace("/", "-")).write_bytes(file.read())
    assert len(list(folder.iterdir())) > 20
    return folder


@pytest.fixture(scope="module")
def parquet(recorded: Path, tmp_path_factory: Any) -> Path:
    """Write the spans to three Parquet files, with every trace spread over them."""
    folder = tmp_path_factory.mktemp("parquet")
    items = list(read_items(sorted(recorded.iterdir()), Reading(), print))
    for i in range(3):
        pq.write_table(table_of(items[i::3]), folder / f"part-{i}.parquet", row_group_size=100)
    return folder


@pytest.fixture(scope="module")
def wanted(recorded: Path) -> dict[str, tuple[Any, ...]]:
    """Return the scores of ``eval`` by result id."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main(["eval", *map(str, sorted(recorded.iterdir()))]) == 0
    rows = [row for row in map(json.loads, out.getvalue().splitlines()) if row["status"] != "skipped"]
    assert len(rows) > 300
    return {row["result_id"]: (row["turn_id"], row["metric"], row["status"], row["value"], row.get("passed")) for row in rows}


def results(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Return the scores of a backfill by result id, and check that each occurs once."""
    rows = [row for file in sorted(folder.rglob("parts/*.parquet")) for row in pq.read_table(file).to_pylist()]
    found = {row["result_id"]: tuple(row[name] for name in ("turn_id", "metric", "status", "value", "passed")) for row in rows}
    assert len(found) == len(rows)
    return found


def backfill(*args: Any) -> int:
    return main(["backfill", *map(str, args)])


@pytest.mark.parametrize(("kind", "buckets"), [("json", 5), ("parquet", 1)])
def test_a_backfill_gives_the_scores_that_eval_gives(
    kind: str, buckets: int, wanted: dict[str, Any], recorded: Path, parquet: Path, tmp_path: Path, capsys: Any
) -> None:
    assert backfill(recorded if kind == "json" else parquet, "--out", tmp_path / "out", "--buckets", buckets, "--progress") == 0
    assert results(tmp_path / "out") == wanted
    said = capsys.readouterr()
    assert f"{len(wanted):,} scores" in said.out
    assert re.search(r"scored \[#{20}\] ([\d,]+) of \1 spans", said.err)
    assert not (tmp_path / "out" / "spans").exists()
    found = pa.concat_tables([pq.read_table(file) for file in sorted((tmp_path / "out" / "parts").iterdir())])
    assert found.schema.names == list(RESULT_COLUMNS)
    if kind == "parquet":
        spans = pa.concat_tables([pq.read_table(file) for file in sorted(parquet.iterdir())])
        spans = spans.filter(pa.compute.is_null(spans.column("log_body")))
        joined = found.join(spans.select(["trace_id", "span_id", "name"]), ["trace_id", "span_id"], join_type="inner")
        assert joined.num_rows == found.num_rows


def test_what_is_there_is_not_made_again_and_a_new_metric_is_added(parquet: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "out"
    assert backfill(parquet, "--out", out, "--metrics", "code_latency", "--buckets", "4") == 0
    first = {file: file.stat().st_mtime_ns for file in (out / "parts").iterdir()}
    assert backfill(parquet, "--out", out, "--metrics", "code_latency") == 0
    assert "nothing to do" in capsys.readouterr().out
    assert {file: file.stat().st_mtime_ns for file in (out / "parts").iterdir()} == first
    assert backfill(parquet, "--out", out, "--metrics", "code_latency,code_token_usage") == 0
    said = capsys.readouterr().out
    known = int(re.search(r"([\d,]+) already existed", said)[1].replace(",", ""))  # type: ignore[index]
    found = results(out)
    assert known == sum(row[1] == "code_latency" for row in found.values()) > 20
    assert {row[1] for row in found.values()} == {"code_latency", "code_token_usage"}
    assert first.items() <= {file: file.stat().st_mtime_ns for file in (out / "parts").iterdir()}.items()


def test_spans_that_came_since_are_scored_too(parquet: Path, wanted: dict[str, Any], tmp_path: Path) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    whole = pa.concat_tables([pq.read_table(file) for file in sorted(parquet.iterdir())])
    ids = sorted(set(whole.column("trace_id").to_pylist()))
    for i, some in enumerate((ids[::2], ids[1::2])):
        pq.write_table(whole.filter(pa.compute.is_in(whole.column("trace_id"), pa.array(some))), folder / f"{i}.parquet")
        assert backfill(folder, "--out", out, "--buckets", "3") == 0
    assert results(out) == wanted


def test_a_backfill_that_is_killed_goes_on_where_it_was(parquet: Path, wanted: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = """
        import os, signal, sys
        from otel_agenteval.backfill import run
        from otel_agenteval.cli.main import main
        whole = run.score_bucket
        def score_bucket(output, bucket, *rest):
            if bucket == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            return whole(output, bucket, *rest)
        run.score_bucket = score_bucket
        main(["backfill", *sys.argv[1:]])
    """
    command = [sys.executable, "-c", textwrap.dedent(script), str(parquet), "--out", str(out), "--buckets", "6"]
    done = subprocess.run(command, env=environment(), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    former = {file.name: file.stat().st_mtime_ns for file in (out / "parts").iterdir()}
    assert len(former) == 3
    os.utime(next((out / "spans").rglob("bucket-00000-*.arrow")), ns=(0, 0))
    assert backfill(parquet, "--out", out) == 0
    assert former.items() <= {file.name: file.stat().st_mtime_ns for file in (out / "parts").iterdir()}.items()
    assert results(out) == wanted


def test_several_processes_give_the_same(parquet: Path, wanted: dict[str, Any], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("otel_agenteval.backfill.run._WORTH_A_PROCESS", 0)
    monkeypatch.setattr("otel_agenteval.backfill.run.score_bucket", None)  # nothing is scored here
    assert backfill(parquet, "--out", tmp_path / "two", "--buckets", "2", "--jobs", "2") == 0
    assert results(tmp_path / "two") == wanted
    assert not (tmp_path / "two" / "spans").exists()


def test_shards_are_the_parts_of_a_whole(parquet: Path, wanted: dict[str, Any], tmp_path: Path) -> None:
    for k in range(3):
        assert backfill(parquet, "--out", tmp_path / "out", "--shard", f"{k}/3", "--buckets", "2") == 0
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert results(tmp_path / "out") == wanted


def judged(models: ScriptedModels, folder: Path, metrics: Any = (METRIC,), **judge: Any) -> Path:
    """Write a configuration with metrics that call the scripted judge."""
    given = {"base_url": models.url, "model": "scripted", "max_concurrency": 1, **judge}
    config = folder / "agenteval.yaml"
    config.write_text(json.dumps({"judge": given, "metrics": metrics, "inline": {"metrics": []}}))
    return config


def test_a_dry_run_says_what_it_would_take_and_asks_nobody(
    models: ScriptedModels, parquet: Path, tmp_path: Path, capsys: Any
) -> None:
    models.play()
    config = judged(models, tmp_path, prices={"scripted": {"input": 1.0, "output": 2.0}})
    (tmp_path / "out").mkdir()
    assert backfill(parquet, "--out", tmp_path / "out", "--config", config, "--dry-run") == 0
    said = capsys.readouterr().out
    assert models.requests == []
    assert list((tmp_path / "out").iterdir()) == []
    questions = int(re.search(r"at least ([\d,]+) calls", said)[1].replace(",", ""))  # type: ignore[index]
    cost = float(re.search(r"tokens, ([\d.e-]+) USD", said)[1])  # type: ignore[index]
    models.play(*[GOOD] * questions)
    assert backfill(parquet, "--out", tmp_path / "out", "--config", config) == 0
    assert len(models.requests) == questions > 10
    assert models.unused == []
    tokens = sum(len(json.dumps(body["messages"])) for body in models.requests) / 4
    assert tokens * 1e-6 * 0.5 < cost < tokens * 1e-6 * 2 + questions * 300 * 2e-6
    assert [row[3] for row in results(tmp_path / "out").values() if row[1] == METRIC] == [0.9] * questions


@pytest.mark.parametrize("metrics", [[METRIC], [METRIC, "code_latency"], [{"code_composite_mean": {"metrics": [METRIC]}}]])
def test_a_judge_s_errors_are_tried_again_and_answers_are_not(
    metrics: list[Any], models: ScriptedModels, tmp_path: Path, capsys: Any
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    pq.write_table(clickhouse_like(), folder / "spans.parquet")
    config = judged(models, tmp_path, metrics)
    models.play(GOOD, 401)
    assert backfill(folder, "--out", out, "--config", config) == 0
    models.play(400)
    assert backfill(folder, "--out", out, "--config", config) == 0
    assert (models.unused, models.surplus) == ([], 0)
    assert len(results(out)) <= 2 * len(metrics)
    assert "nothing to do" not in capsys.readouterr().out
    models.play(GOOD)
    assert backfill(folder, "--out", out, "--config", config) == 0
    assert (models.unused, models.surplus) == ([], 0)
    assert [row[2] for row in results(out).values()] == ["ok"] * 2 * len(metrics)
    models.play()
    assert backfill(folder, "--out", out, "--config", config) == 0
    assert "nothing to do" in capsys.readouterr().out
    pq.write_table(clickhouse_like(), folder / "again.parquet")
    assert backfill(folder, "--out", out, "--config", config) == 0
    assert models.surplus == 0


# --- columns


def clickhouse_like() -> pa.Table:
    """Return two turns as the Collector's ClickHouse exporter stores them, with strings as attribute values."""
    texts = pa.map_(pa.string(), pa.string())
    nothing = {
        "TraceState": "",
        "ScopeVersion": "",
        "StatusMessage": "",
        "Events.Timestamp": [],
        "Events.Name": [],
        "Events.Attributes": [],
    }
    common = {
        "SpanKind": "Internal",
        "ServiceName": "shop",
        "ScopeName": "acme",
        "ResourceAttributes": [("service.name", "shop")],
    }
    root = {
        "SpanId": f"{1:016x}", "ParentSpanId": "", "SpanName": "invoke_agent bot", "Duration": 3_000_000_000, "StatusCode": "Error",
        "SpanAttributes": [("gen_ai.operation.name", "invoke_agent"), ("gen_ai.agent.name", "bot")], "StatusMessage": "late",
        "Events.Timestamp": [5], "Events.Name": ["exception"], "Events.Attributes": [[("exception.type", "Late")]],
    }  # fmt: skip
    chat = {
        "SpanId": f"{2:016x}", "ParentSpanId": f"{1:016x}", "SpanName": "chat m-1", "Duration": 1_000_000_000, "StatusCode": "Unset",
        "SpanAttributes": [
            ("gen_ai.operation.name", "chat"), ("gen_ai.usage.input_tokens", "12"), ("gen_ai.usage.output_tokens", "7"),
            ("gen_ai.request.model", "m-1"), ("gen_ai.response.finish_reasons", '["stop"]'),
            ("gen_ai.input.messages", '[{"role": "user", "parts": [{"type": "text", "content": "17"}]}]'),
            ("gen_ai.output.messages", '[{"role": "assistant", "parts": [{"type": "text", "content": "18"}]}]'),
        ],
    }  # fmt: skip
    rows = [
        {**nothing, **common, **span, "TraceId": f"{i:032x}", "Timestamp": 1_700_000_000_000_000_000 + later + i}
        for i in (1, 2)
        for later, span in ((0, root), (500_000_000, chat))
    ]
    fields = {
        "Timestamp": pa.timestamp("ns", "UTC"), "Duration": pa.uint64(), "SpanAttributes": texts, "ResourceAttributes": texts,
        "Events.Timestamp": pa.list_(pa.timestamp("ns")), "Events.Name": pa.list_(pa.string()), "Events.Attributes": pa.list_(texts),
        "ServiceName": pa.dictionary(pa.int8(), pa.string()),
    }  # fmt: skip
    schema = pa.schema([(name, fields.get(name, pa.string())) for name in rows[0]])
    return pa.Table.from_pylist(rows, schema)


def test_a_table_as_clickhouse_stores_it_gives_turns_with_numbers_times_and_events() -> None:
    spans = [span for span in spans_of(clickhouse_like()) if isinstance(span, SpanRecord)]
    root, chat = spans[:2]
    assert (root.start_ns, root.end_ns - root.start_ns) == (1_700_000_000_000_000_001, 3_000_000_000)
    assert (root.status, root.status_message, root.resource) == (2, "late", {"service.name": "shop"})
    assert [(event.name, event.attributes, event.time_ns) for event in root.events] == [
        ("exception", {"exception.type": "Late"}, 5)
    ]
    assert chat.attributes["gen_ai.usage.input_tokens"] == 12
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["stop"]
    found = score_batch(clickhouse_like(), {}, metrics=["code_token_usage", "code_latency"]).to_pylist()
    assert [(row["metric"], row["value"], row["service"], row["agent"]) for row in found] == [
        ("code_token_usage", 19.0, "shop", "bot"),
        ("code_latency", 3.0, "shop", "bot"),
    ] * 2


def test_our_own_columns_lose_nothing(recorded: Path) -> None:
    items = list(read_items(sorted(recorded.iterdir()), Reading(), print))
    again = list(spans_of(table_of(items)))
    assert len(again) == len(items)
    for one, other in zip(items, again, strict=True):
        if isinstance(one, SpanRecord) and isinstance(other, SpanRecord):
            for name in SpanRecord.__slots__:
                assert getattr(one, name) == getattr(other, name), name
        else:
            assert vars_of(one) == vars_of(other)


def vars_of(log: Any) -> Any:
    return log.trace_id, log.span_id, log.part


@pytest.mark.parametrize(
    "odd",
    [
        {"end_time": datetime.datetime(9999, 1, 1, tzinfo=datetime.timezone.utc)}, {"Duration": float("nan")}, {"Flags": "x"}, {"SpanAttributes": 5}, {"Events": '{"Name": 5}'},
        {"SpanAttributes": {"a": decimal.Decimal("1.5"), "b": {"c": datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)}}}, {"Events": "5"}, {"StatusCode": [1]},
    ],
)  # fmt: skip
def test_column_of_another_type_costs_no_row(odd: dict[str, Any]) -> None:
    table = pa.Table.from_pylist([{"TraceId": f"{1:032x}", "SpanId": f"{1:016x}", "SpanName": "x", **odd}])
    (span,) = spans_of(table)
    assert isinstance(span, SpanRecord)
    assert (span.end_ns, orjson.loads(orjson.dumps(span.attributes))) == (0, span.attributes)


def test_rows_without_ids_are_counted_and_the_rest_is_scored(tmp_path: Path, capsys: Any) -> None:
    table = clickhouse_like()
    ids = ["nonsense", *table.column("TraceId").to_pylist()[1:]]
    table = table.set_column(table.schema.names.index("TraceId"), "TraceId", pa.array(ids))
    assert [isinstance(item, NotASpan) for item in spans_of(table)] == [True, False, False, False]
    pq.write_table(table, tmp_path / "spans.parquet")
    assert backfill(tmp_path / "spans.parquet", "--out", tmp_path / "out") == 0
    assert "1 row had no span" in capsys.readouterr().out


def test_a_missing_package_names_the_extra(tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in ("spans.jsonl", "spans.parquet"):
        (tmp_path / name).touch()
        assert main(["backfill", str(tmp_path / name), "--out", str(tmp_path / "out")]) == 2
        assert "backfill requires the extra [backfill]" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["{missing}"], "file or folder not found"),
        (["{empty}"], "must be a file or folder with Parquet"),
        (["{wrong}"], "column trace_id"),
        (["{right}", "--shard", "3/3"], "--shard: must be"),
        (["{right}", "--buckets", "0"], "--buckets"),
        (["{right}", "--ray", "auto"], "--ray: requires --engine daft"),
        (["{right}", "--engine", "daft", "--shard", "0/2"], "distributes the files itself. Remove --shard"),
        (["clickhouse://host/db", "--engine", "daft"], "daft reads only Parquet files"),
        (["{right}", "--metrics", "code_latencie"], "code_latency"),
        (["clickhouse://host/db?tabel=x"], "tabel"),
        (["clickhouse://host:http/db"], "invalid host or port"),
        (["clickhouse://[host/db"], "invalid host or port"),
    ],
)
def test_wrong_use_is_told(args: list[str], says: str, tmp_path: Path, capsys: Any) -> None:
    places = {name: tmp_path / name for name in ("missing", "empty", "wrong.parquet", "right.parquet")}
    places["empty"].mkdir()
    pq.write_table(pa.table({"a": [1]}), places["wrong.parquet"])
    pq.write_table(clickhouse_like(), places["right.parquet"])
    named = {path.stem: str(path) for path in places.values()}
    assert backfill(*(arg.format(**named) for arg in args), "--out", tmp_path / "out") == 2
    assert says in capsys.readouterr().err


def test_a_folder_of_somebody_else_is_left_alone(parquet: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "precious").write_text("x")
    assert backfill(parquet, "--out", tmp_path) == 2
    assert "no manifest.json" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["precious"]


def test_an_output_that_cannot_be_a_folder_is_told(parquet: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "file").write_text("x")
    for out in (tmp_path / "file", tmp_path / "file" / "in"):
        assert backfill(parquet, "--out", out) == 2
        assert f"{out}: can't use the folder" in capsys.readouterr().err


@pytest.mark.parametrize("manifest", ['{"name": "a web app"}', '{"form'])
def test_a_manifest_of_another_kind_is_told(manifest: str, parquet: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "manifest.json").write_text(manifest)
    assert backfill(parquet, "--out", tmp_path / "out") == 2
    assert "manifest.json" in capsys.readouterr().err
    assert (tmp_path / "out" / "manifest.json").read_text() == manifest


# --- Daft


def test_daft_gives_the_scores_that_eval_gives(parquet: Path, wanted: dict[str, Any], tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("daft")
    assert backfill(parquet, "--out", tmp_path / "out", "--engine", "daft", "--buckets", "5") == 0
    assert results(tmp_path / "out") == wanted
    assert f"{len(wanted):,} scores" in capsys.readouterr().out
    assert backfill(parquet, "--out", tmp_path / "out", "--engine", "daft") == 0
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.slow
def test_daft_on_a_ray_cluster_of_two_nodes_gives_them_too(parquet: Path, wanted: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("daft")
    pytest.importorskip("ray")
    script = """
        import sys
        import ray
        from ray.cluster_utils import Cluster
        from otel_agenteval.cli.main import main
        cluster = Cluster()
        for _ in range(2):
            cluster.add_node(num_cpus=1, object_store_memory=100 * 2**20)
        status = main(["backfill", *sys.argv[1:], "--engine", "daft", "--ray", cluster.address])
        ray.shutdown()
        cluster.shutdown()
        sys.exit(status)
    """
    env = environment({"RAY_USAGE_STATS_ENABLED": "0", "RAY_DEDUP_LOGS": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"})
    command = [sys.executable, "-c", textwrap.dedent(script), str(parquet), "--out", str(tmp_path / "out"), "--buckets", "4"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    assert results(tmp_path / "out") == wanted
