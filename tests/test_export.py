"""``otel-agenteval export`` and ``why`` on a store of an agent's turns."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shutil
import sqlite3
from pathlib import Path

import pyarrow.parquet
import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.cli.options import moment
from otel_agenteval.outlets.store.reader import EXPORTED, StoreReader
from tests.support.rig import Rig

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "scores.db"
    inline = {"metrics": ["code_turn_error", "code_latency"]}
    with Rig({"outlets": {"store": str(path)}, "inline": inline, "metrics": ["code_tool_call_count"]}) as rig:
        for name in ("travel", "billing", "travel"):
            rig.run(name)
        rig.scored()
    return path


@pytest.fixture
def store(filled: Path, tmp_path: Path) -> str:
    """Return a copy of a store for this test."""
    return str(shutil.copy(filled, tmp_path / "scores.db"))


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_json_lines_are_one_object_per_score(store: str, capsys: Capture) -> None:
    assert main(["export", "--store", store]) == 0
    printed = capsys.readouterr()
    rows = lines(printed.out)
    assert printed.err == f"{len(rows)} scores exported\n"
    assert len(rows) == len({row["result_id"] for row in rows}) > 5
    assert {row["agent"] for row in rows} == {"travel", "billing"}
    assert all(set(row) <= set(EXPORTED) for row in rows)
    assert str(rows[0]["start"]).endswith("Z")


@pytest.mark.parametrize(
    ("options", "left"),
    [
        (["--agent", "billing"], {("billing", "code_turn_error"), ("billing", "code_latency")}),
        (["--metric", "code_latency"], {("billing", "code_latency"), ("travel", "code_latency")}),
        (["--metric", "code_latency", "--agent", "travel", "--service", "shop"], {("travel", "code_latency")}),
        (["--until", "1h"], set()),
        (["--service", "nobody"], set()),
    ],
)
def test_filters(store: str, options: list[str], left: set[tuple[str, str]], capsys: Capture) -> None:
    assert main(["export", "--store", store, *options]) == 0
    found = {(row["agent"], row["metric"]) for row in lines(capsys.readouterr().out)}
    assert left <= found
    assert found <= left or "--metric" not in options


def test_export_to_a_dash_prints(store: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", "--store", store, "--out", "-"]) == 0
    assert lines(capsys.readouterr().out)
    assert not list(tmp_path.glob("-"))


def test_a_metric_that_nobody_knows_costs_no_former_export(store: str, tmp_path: Path, capsys: Capture) -> None:
    former = tmp_path / "scores.csv"
    former.write_text("a former export")
    assert main(["export", "--store", store, "--metric", "code_latancy", "--out", str(former)]) == 2
    assert "--metric: unknown metric 'code_latancy'. Did you mean code_latency" in capsys.readouterr().err
    assert former.read_text() == "a former export"


def test_a_metric_that_only_the_store_knows_is_exported(tmp_path: Path, store: str, capsys: Capture) -> None:
    with contextlib.closing(sqlite3.connect(store)) as db, db:  # as an application's own metric would stand there
        db.execute("UPDATE scores SET metric = 'code_of_an_application' WHERE metric = 'code_latency'")
    assert main(["export", "--store", store, "--metric", "code_of_an_application"]) == 0
    assert {row["metric"] for row in lines(capsys.readouterr().out)} == {"code_of_an_application"}


def test_csv_and_parquet_say_the_same(store: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["export", "--store", store]) == 0
    expected = lines(capsys.readouterr().out)
    for name in ("scores.csv", "scores.parquet", "scores.jsonl", "no_extension", "upper.CSV"):
        assert main(["export", "--store", store, "--out", str(tmp_path / name)]) == 0
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert sorted(file.name for file in tmp_path.iterdir() if "partial" in file.name) == []
    rows = list(csv.DictReader(io.StringIO((tmp_path / "scores.csv").read_text())))
    assert [row["result_id"] for row in rows] == [row["result_id"] for row in expected]
    assert tuple(rows[0]) == EXPORTED
    table = pyarrow.parquet.read_table(tmp_path / "scores.parquet")
    assert tuple(table.column_names) == EXPORTED
    types = {name: str(table.schema.field(name).type) for name in ("value", "passed", "start", "revision")}
    assert types == {"value": "double", "passed": "bool", "start": "timestamp[us, tz=UTC]", "revision": "int64"}
    for row, other in zip(table.to_pylist(), expected, strict=True):
        assert {name: row[name] for name in ("metric", "value", "passed", "turn_id")}.items() <= {"passed": None, **other}.items()
        assert row["start"].isoformat(timespec="microseconds").replace("+00:00", "Z") == other["start"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["export", "--store", "nowhere.db"], "nowhere.db: file not found"),
        (["export"], "--store: no store is configured"),
        (["export", "--store", "STORE", "--format", "parquet"], "--out FILE"),
        (
            ["export", "--store", "STORE", "--out", "x.xlsx"],
            "--out: must end with .jsonl, .ndjson, .csv or .parquet, got 'x.xlsx'",
        ),
        (["export", "--store", "STORE", "--out", "x.jsonl.gz"], "--out: must end with .jsonl"),
        (["export", "--store", "STORE", "--since", "yesterday"], "--since: must be"),
        (["export", "--store", "STORE", "--out", "/no/such/folder/x.csv"], "/no/such/folder/x.csv: "),
        (["why", "x", "--url", "127.0.0.1:1"], "--url: must be"),
        (["turns"], "FILE, --store: one of them is required"),
        (["turns", "x.jsonl", "--store", "STORE"], "FILE: can't be combined with --store"),
        (["turns", "x.jsonl", "--agent", "travel"], "FILE: can't be combined with --store"),
        (["turns", "--store", "nowhere.db"], "nowhere.db: file not found"),
        (["turns", "--store", "STORE", "--since", "soon"], "--since: must be"),
    ],
)
def test_what_cannot_be_done_is_said(store: str, arguments: list[str], said: str, capsys: Capture) -> None:
    assert main([store if part == "STORE" else part for part in arguments]) == 2
    assert said in capsys.readouterr().err


def test_times() -> None:
    assert moment("2026-01-01", "--since") == moment("2026-01-01T01:00:00+01:00", "--since") == 1_767_225_600
    assert moment("2026-01-01T00:00:00Z", "--since") == 1_767_225_600
    assert moment(None, "--since") is None


def test_an_id_can_be_shortened(store: str, capsys: Capture) -> None:
    with StoreReader(store) as reader:
        ids = [turn["turn_id"] for turn in reader.turns()]
    for turn_id in ids:
        short = next(turn_id[:n] for n in range(4, 60) if sum(one.startswith(turn_id[:n]) for one in ids) == 1)
        assert main(["why", short, "--store", store, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["turn_id"] == turn_id
    assert main(["why", ids[0][:3], "--store", store]) == 1  # too short to mean one
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE turns SET turn_id = 'abcd' || rowid")
    capsys.readouterr()
    assert main(["why", "abcd", "--store", store]) == 2
    assert "abcd1, abcd2" in capsys.readouterr().err


def test_turns_of_a_store_are_listed_the_latest_first(store: str, capsys: Capture) -> None:
    with StoreReader(store) as reader:
        turns = reader.turns()
    assert main(["turns", "--store", store]) == 0
    said = capsys.readouterr().out.splitlines()
    heads = [line for line in said if not line.startswith(" ")]
    assert [line.split()[0] for line in heads] == [turn["turn_id"][:8] for turn in turns]
    assert all(str(turn["agent"]) in line for turn, line in zip(turns, heads, strict=True))
    assert main(["turns", "--store", store, "--agent", "nobody"]) == 0
    assert capsys.readouterr() == ("", "0 turns\n")


def test_turns_of_a_store_as_json_with_their_scores(store: str, capsys: Capture) -> None:
    assert main(["turns", "--store", store, "--json", "--limit", "1", "--agent", "billing"]) == 0
    (row,) = lines(capsys.readouterr().out)
    assert row["agent"] == "billing"
    assert {score["metric"] for score in row["scores"]} >= {"code_latency"}
    assert main(["why", str(row["turn_id"]), "--store", store, "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["metrics"]["code_latency"] == "scored"
    score = said["scores"]["code_latency"]
    assert (score["unit"], score["value"] > 0, score["status"]) == ("s", True, "ok")


def test_failed_turns_alone(store: str, capsys: Capture) -> None:
    with StoreReader(store) as reader:
        expected = [
            turn["turn_id"][:8] for turn in reader.turns()
            if any(score["status"] == "error" or (score["passed"] is False and score["direction"] != "neutral") for score in reader.scores(turn["turn_id"]))
        ]  # fmt: skip
    assert main(["turns", "--store", store, "--failed"]) == 0
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")] == expected
    assert main(["turns", "--store", store, "--failed", "--metric", "code_latency"]) == 0
    assert capsys.readouterr().out == ""


def test_turns_reject_an_unknown_metric(store: str, capsys: Capture) -> None:
    assert main(["turns", "--store", store, "--metric", "code_latancy"]) == 2
    assert "--metric: unknown metric 'code_latancy'. Did you mean code_latency" in capsys.readouterr().err
    assert main(["turns", "--store", store, "--metric", "code_repeated_tool_calls"]) == 0  # known, but without scores
    assert main(["turns", "--store", store, "--metric", "code_latency"]) == 0
    assert capsys.readouterr().out


def test_turns_find_a_metric_of_the_store_only(store: str, capsys: Capture) -> None:
    with contextlib.closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE scores SET metric = 'code_of_an_application' WHERE metric = 'code_latency'")
    assert main(["turns", "--store", store, "--metric", "code_of_an_application"]) == 0
    assert capsys.readouterr().out


def test_why_says_what_became_of_each_metric(store: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert main(["export", "--store", store, "--metric", "code_latency", "--agent", "billing"]) == 0
    (row,) = lines(capsys.readouterr().out)
    monkeypatch.setenv("OTEL_AGENTEVAL_OUTLETS__STORE", store)  # as configured
    assert main(["why", str(row["turn_id"])]) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"turn {row['turn_id']}, 20")
    assert re.search(r"^  · code_latency +[0-9.e-]+ s$", said, re.MULTILINE), said
    assert re.search(r"^  ✓ code_turn_error +pass$", said, re.MULTILINE), said
    assert main(["why", "no-such-turn"]) == 1
    said = capsys.readouterr().out
    assert "no-such-turn" in said
    assert str(store) in said


CELLS = {
    '=HYPERLINK("http://evil.test","x")': '\'=HYPERLINK("http://evil.test","x")', "+SUM(A1)": "'+SUM(A1)", "-2+3": "'-2+3", "@cmd": "'@cmd",
    "\tx": "'\tx", "\rx": "'\nx", " =1+1": "' =1+1", "\uff1d1+1": "'\uff1d1+1",
    "-5": "-5", "+1.5e-7": "+1.5e-7", "travel": "travel", "a=b": "a=b", "": "",
}  # fmt: skip


def test_a_cell_of_a_table_is_no_formula(store: str, tmp_path: Path) -> None:
    for agent, cell in CELLS.items():
        with contextlib.closing(sqlite3.connect(store)) as db, db:
            db.execute("UPDATE turns SET agent = ?", (agent,))
            db.execute("UPDATE scores SET value = -0.5, threshold = -1, label = ?, explanation = ?", (agent, agent))
        assert main(["export", "--store", store, "--out", str(tmp_path / "scores.csv")]) == 0
        with (tmp_path / "scores.csv").open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        assert {(row["agent"], row["label"], row["explanation"]) for row in rows} == {(cell, cell, cell)}
        assert {(row["value"], row["threshold"]) for row in rows} == {("-0.5", "-1.0")}
