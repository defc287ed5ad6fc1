"""``otel-agenteval eval`` on real recordings: formats, files, baselines and exit statuses."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.report import FORMATS
from tests.support.recordings import unpack

RECORDINGS = [f"pydantic_ai-native_v6/s{i}.jsonl" for i in (1, 2, 10, 11, 12, 13, 14, 15, 16, 17)]
GATE = "metrics: [{code_max_tokens: {max_tokens: 100000}, policy: gate}]\n"
FAILING = "metrics: [{code_max_tokens: {max_tokens: 1}, policy: gate}]\n"

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def traces(tmp_path: Path) -> list[str]:
    return [str(unpack(name, tmp_path)) for name in RECORDINGS]


@pytest.fixture
def config(tmp_path: Path) -> Callable[[str], str]:
    def write(text: str) -> str:
        file = tmp_path / "agenteval.yaml"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def halve_latency(scores: Path) -> None:
    lines = lines_of(scores.read_text(encoding="utf-8"))
    for line in lines:
        if line["metric"] == "code_latency":
            line["value"] *= 0.5
    scores.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


# --- formats and files


def test_every_format_is_written_in_one_run(traces: list[str], tmp_path: Path, capsys: Capture) -> None:
    arguments = ["eval", *traces]
    for form in FORMATS:
        arguments += ["--format", form, "--out", str(tmp_path / form)]
    assert main(arguments) == 0
    assert capsys.readouterr().out == ""
    texts = {form: (tmp_path / form).read_text(encoding="utf-8") for form in FORMATS}
    scores = lines_of(texts["jsonl"])
    turns = {score["turn_id"] for score in scores}
    assert int(ElementTree.fromstring(texts["junit"]).get("tests", "")) == len(scores)
    assert texts["markdown"].startswith(f"### ℹ️ {len(turns)} turns, ")
    assert texts["table"].count("── ") == len(turns)
    assert texts["html"].startswith("<!DOCTYPE html>")


def test_a_case_that_the_configuration_lets_in_stands_in_the_lines(
    tmp_path: Path, config: Callable[[str], str], capsys: Capture
) -> None:
    file = unpack(RECORDINGS[1], tmp_path)
    text = file.read_text(encoding="utf-8").replace('"gen_ai.agent.call.id"', '"agenteval.case.id"')
    file.write_text(text, encoding="utf-8")
    main(["eval", str(file), "--config", config("references: {accept_from: {agenteval.case.id: case_id}}\n")])
    cases = {score.get("case_id") for score in lines_of(capsys.readouterr().out)}
    assert len(cases) == 1
    assert None not in cases


def test_documents_on_standard_output_are_utf8_as_they_say(traces: list[str]) -> None:
    command = [sys.executable, "-m", "otel_agenteval", "eval", traces[0], "--format", "html"]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True, env={"PYTHONIOENCODING": "ascii"})
    assert "utf-8" in done.stdout.decode().lower()


def test_suffixes_of_files_determine_the_formats(traces: list[str], tmp_path: Path) -> None:
    files = {"a.HTML": "<!DOCTYPE html>", "b.md": "### ", "c.xml": "<?xml", "d.jsonl": '{"turn_id"'}
    assert main(["eval", *traces, *(part for name in files for part in ("--out", str(tmp_path / name)))]) == 0
    for name, start in files.items():
        assert (tmp_path / name).read_text(encoding="utf-8").startswith(start)
    assert main(["eval", *traces, "--out", str(tmp_path / "scores.json")]) == 0
    assert (tmp_path / "scores.json").read_text(encoding="utf-8").startswith('{"turn_id"')


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--out", "a", "--out", "b"], "2 files for 1 formats"),
        (["--format", "html", "--format", "junit"], "only one format can go to standard output"),
        (["--format", "html", "--out", "x", "--format", "junit", "--out", "./x"], "--out"),
        (["--out", "traces.jsonl"], "is an input of this command"),
        (["--out", "nowhere/x"], "cannot be written: No such file or directory"),
        (["--fail-on-regression", "all"], "requires --baseline FILE and --gate"),
        (["--baseline", "nowhere.jsonl"], "nowhere.jsonl: file not found"),
    ],
)
def test_wrong_use_is_refused_before_anything_is_overwritten(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    data = unpack(RECORDINGS[0], tmp_path).rename("traces.jsonl").read_bytes()
    assert main(["eval", "traces.jsonl", *arguments]) == 2
    assert said in capsys.readouterr().err
    assert Path("traces.jsonl").read_bytes() == data


def test_gated_run_does_not_replace_its_baseline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    unpack(RECORDINGS[0], tmp_path).rename("traces.jsonl")
    assert main(["eval", "traces.jsonl", "--out", "scores.jsonl"]) == 0
    before = Path("scores.jsonl").read_bytes()
    assert main(["eval", "traces.jsonl", "--gate", "--baseline", "scores.jsonl", "--out", "./scores.jsonl"]) == 2
    assert "scores.jsonl is an input of this command" in capsys.readouterr().err
    assert Path("scores.jsonl").read_bytes() == before


# --- gates


@pytest.mark.parametrize(("text", "status"), [(GATE, 0), (FAILING, 1)])
def test_gates_decide_with_every_format(
    text: str, status: int, traces: list[str], config: Callable[[str], str], tmp_path: Path, capsys: Capture
) -> None:
    formats = [arg for form in FORMATS for arg in ("--format", form, "--out", str(tmp_path / form))]
    assert main(["eval", *traces, "--config", config(text), "--gate", *formats]) == status
    assert bool(re.fullmatch(r"\d+ gate scores failed: code_max_tokens\n", capsys.readouterr().err)) == bool(status)


@pytest.mark.parametrize("form", ["jsonl", "html"])
@pytest.mark.parametrize("recorded", ["garbage\n", None], ids=["nothing to read", "no such file"])
def test_a_run_that_reads_nothing_costs_no_former_report(form: str, recorded: str | None, tmp_path: Path) -> None:
    file, former = tmp_path / "traces.jsonl", tmp_path / "out"
    former.write_text("a former run")
    if recorded is not None:
        file.write_text(recorded)
    assert main(["eval", str(file), "--format", form, "--out", str(former)]) == 2
    assert former.read_text() == "a former run"


@pytest.mark.parametrize("form", ["jsonl", "html"])
def test_a_report_takes_the_place_of_a_longer_one(form: str, traces: list[str], tmp_path: Path) -> None:
    fresh, former = tmp_path / "fresh", tmp_path / "former"
    former.write_text("x" * 1_000_000)
    for out in (fresh, former):
        assert main(["eval", traces[0], "--metrics", "code_turn_error", "--format", form, "--out", str(out)]) == 0
    assert former.read_bytes() == fresh.read_bytes() != b""


def test_scores_go_into_what_is_no_file(traces: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", traces[0], "--metrics", "code_turn_error", "--out", "/dev/stdout"]) == 0
    out, err = capfd.readouterr()
    assert (err, len(lines_of(out))) == ("", 1)


# --- baselines


def test_the_same_traces_never_regress(traces: list[str], config: Callable[[str], str], tmp_path: Path, capsys: Capture) -> None:
    baseline, settings = str(tmp_path / "baseline.jsonl"), config(GATE)
    assert main(["eval", *traces, "--config", settings, "--out", baseline]) == 0
    command = ["eval", *traces, "--config", settings, "--baseline", baseline, "--gate", "--fail-on-regression", "all"]
    formats = [arg for form in FORMATS for arg in ("--format", form, "--out", str(tmp_path / form))]
    assert main([*command, *formats]) == 0
    assert capsys.readouterr().err == ""
    for form in set(FORMATS) - {"jsonl"}:
        assert re.search(r"\d+ pairs by turn id", (tmp_path / form).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("watch", "status"), [([], 0), (["code_latency"], 1), (["all"], 1), (["code_cost, agentunit:tool_success"], 0)]
)
def test_a_regression_fails_where_its_metric_is_named(
    watch: list[str], status: int, traces: list[str], config: Callable[[str], str], tmp_path: Path, capsys: Capture
) -> None:
    baseline, settings = tmp_path / "baseline.jsonl", config(GATE)
    main(["eval", *traces, "--config", settings, "--out", str(baseline)])
    halve_latency(baseline)
    named = ["--fail-on-regression", *watch] if watch else []
    command = ["eval", *traces, "--config", settings, "--baseline", str(baseline), "--gate", "--format", "table"]
    assert main([*command, *named]) == status
    printed = capsys.readouterr()
    assert "✗ code_latency  mean" in printed.out
    assert printed.err.startswith("regression of code_latency: mean " if status else "")


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("code_contains", "--fail-on-regression: metric code_contains"),
        ("code_refusal", "code_refusal is neutral"),
        ("code_csot", "Did you mean code_cost"),
        (",", "one or more names"),
    ],
)
def test_a_name_that_could_never_fail_is_refused(
    names: str, said: str, traces: list[str], tmp_path: Path, capsys: Capture
) -> None:
    command = ["eval", traces[0], "--gate", "--baseline", str(tmp_path / "b"), "--fail-on-regression", names]
    assert main(command) == 2
    assert said in capsys.readouterr().err


def test_a_run_may_take_the_place_of_its_baseline(traces: list[str], tmp_path: Path, capsys: Capture) -> None:
    file = str(tmp_path / "scores.jsonl")
    assert main(["eval", *traces, "--out", file]) == 0
    before = Path(file).read_bytes()
    assert main(["eval", *traces, "--baseline", file, "--out", file]) == 0
    assert Path(file).read_bytes() == before


def test_a_baseline_from_standard_input(
    traces: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    main(["eval", *traces])
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(capsys.readouterr().out.encode())))
    assert main(["eval", *traces, "--baseline", "-", "--format", "markdown"]) == 0
    assert "**Against `-`**" in capsys.readouterr().out


def test_scale_of_100_applies_to_thresholds_and_tables(traces: list[str], config: Callable[[str], str], capsys: Capture) -> None:
    entry = "inline: {metrics: []}\nmetrics: [{code_tool_success: {threshold: %s}}]\n"
    lines = {}
    for scale, threshold in ((1, "0.7"), (100, "70")):
        path = config(entry % threshold + f"scale: {scale}\n")
        assert main(["eval", *traces, "--config", path]) == 0
        lines[scale] = capsys.readouterr().out
        assert main(["eval", *traces, "--config", path, "--format", "table"]) == 0
        lines[-scale] = capsys.readouterr().out
    assert lines[1] == lines[100]
    assert '"threshold": 0.7' in lines[100]
    assert "tool_success 1" in lines[-1]
    assert "tool_success 100/100" in lines[-100]
    assert main(["eval", *traces, "--config", config(entry % "1" + "scale: 100\n")]) == 2
    assert "code_tool_success.threshold: must be a number above 1" in capsys.readouterr().err
    assert main(["eval", *traces, "--config", config("scale: 10\n")]) == 2
    assert "scale: must be 1 or 100, got 10" in capsys.readouterr().err
