"""Messages about typical mistakes: each names the option or file, and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agenteval.cli.main import main
from tests.support.recordings import recording
from tests.test_cli import GOOD

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.jsonl").write_bytes(recording(GOOD))
    Path("cases.jsonl").write_text('{"case_id": "a", "input": "hi"}\n{"case_id": "b", "input": "hi"}\n')
    Path("cases.csv").write_text("case_id,input\na,hi\nb,hi\n")
    Path("table.csv").write_text("a,b\n" + "1,2\n" * 12)
    Path("binary.jsonl").write_bytes(bytes(range(256)) * 20)
    Path("cases.xlsx").write_bytes(b"PK\x03\x04rest")
    Path("cases.json").write_text('[{"case_id": "a", "input": "hi"}]\n')
    Path("scores.jsonl").write_text('{"metric": "code_cost", "turn_id": "a", "status": "ok"}\n' * 2)
    Path("task_of_messages.py").write_text("def answer(text):\n    return text\n")


def errors_of(capsys: Capture, *arguments: str) -> str:
    """Return standard error of a command that must fail."""
    try:
        code = main(list(arguments))
    except SystemExit as error:
        code = int(str(error.code))
    assert code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ("metrics: [{llm_faithfulness: {sample: {rate: 0.1}}}]", ["llm_faithfulness.sample", "beside the name"]),
        ("metrics: [{code_latency: {policy: gate}}]", ["code_latency.policy", "beside the name"]),
        ("metrics: [{code_latency: {when: {agent: a}}}]", ["code_latency.when", "beside the name"]),
        ("sample: {rate: 0.1}", ["sample", "metrics"]),
        ("metrics: [{code_latency: {threshold: 5s}}]", ["code_latency.threshold", "'5s'", "Write 5 without a unit"]),
        ("metrics: [{code_max_duration: {max_seconds: 2.5s}}]", ["code_max_duration.max_seconds", "Write 2.5 without"]),
        ("outlets: {prometheus: 9464}", ["outlets.prometheus", "{port: 9464}"]),
        ("metrics: [my_metric]", ["metrics[0]", "'my_metric'", "import its module"]),
        ("inline: {metrics: [default, my_metric]}", ["inline.metrics[1]", "'my_metric'", "import its module"]),
        ("judge: {timeout: '-1'}", ["judge.timeout", "got '-1'", "30s"]),
    ],
)
def test_configuration_mistakes_name_option_and_fix(config: str, parts: list[str], capsys: Capture) -> None:
    Path("agenteval.yaml").write_text(config + "\n")
    said = errors_of(capsys, "check-config", "agenteval.yaml")
    assert "agenteval.yaml:1: " in said
    assert [part for part in parts if part not in said] == []
    assert "Did you mean 'threshold'" not in said


def test_misspelled_metrics_get_no_hint_about_own_metrics(capsys: Capture) -> None:
    said = errors_of(capsys, "explain", "code_latncy")
    assert "code_latency" in said
    assert "import" not in said


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("cases.jsonl", "otel-agenteval experiment"),
        ("cases.csv", "otel-agenteval experiment"),
        ("table.csv", "CSV"),
        ("binary.jsonl", "binary"),
        ("cases.xlsx", "spreadsheet"),
        ("scores.jsonl", "otel-agenteval ui"),
    ],
)
def test_eval_prints_one_line_for_files_that_are_not_traces(file: str, part: str, capsys: Capture) -> None:
    (line,) = errors_of(capsys, "eval", file).splitlines()
    assert line.startswith(f"{file}: ")
    assert part in line


def test_eval_reports_bad_lines_of_a_recording_one_by_one(capsys: Capture) -> None:
    Path("good.jsonl").write_bytes(b"no JSON\n" + recording(GOOD) + b"nor this\n")
    assert main(["eval", "good.jsonl"]) == 0
    said = capsys.readouterr().err
    assert "good.jsonl:1: " in said
    assert "2 of " in said


@pytest.mark.parametrize(
    ("file", "parts"),
    [
        ("cases.xlsx", ["spreadsheet", "CSV"]),
        ("cases.json", ["JSON array", "one object per line"]),
        ("absent.jsonl", ["file not found"]),
    ],
)
def test_experiment_names_the_format_of_a_data_set(file: str, parts: list[str], capsys: Capture) -> None:
    said = errors_of(capsys, "experiment", "task_of_messages:answer", file)
    assert f"dataset: {file}: " in said
    assert [part for part in parts if part not in said] == []


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["eval", "--fromat", "table", "good.jsonl"], "--format"),
        (["serve", "--grcp", "off"], "--grpc"),
        (["judge", "probe", "--max-rat=1", "--jsno"], "--json"),
    ],
)
def test_unknown_options_suggest_the_nearest(arguments: list[str], option: str, capsys: Capture) -> None:
    assert f"Did you mean {option}?" in errors_of(capsys, *arguments)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["ui", "--web", "8080", "good.jsonl"], "--web"),
        (["serve", "--grpc", "8080"], "--grpc"),
        (["worker", "--judge", "redis://127.0.0.1:1", "--metrics", "8080"], "--metrics"),
    ],
)
def test_ports_without_a_host_name_option_and_example(arguments: list[str], option: str, capsys: Capture) -> None:
    said = errors_of(capsys, *arguments)
    assert f"{option}: must be HOST:PORT" in said
    assert "127.0.0.1:8080" in said


def test_why_names_the_store_that_was_searched(capsys: Capture) -> None:
    Path("agenteval.yaml").write_text("outlets: {store: kept.db}\n")
    assert "kept.db: " in errors_of(capsys, "why", "abcd", "--config", "agenteval.yaml")
    assert "no/such" in errors_of(capsys, "why", "abcd", "--store", "no/such/kept.db")


def test_check_config_names_the_missing_folder_of_a_store(capsys: Capture) -> None:
    Path("agenteval.yaml").write_text("outlets: {store: no/such/kept.db}\n")
    assert main(["check-config", "agenteval.yaml"]) == 0
    said = capsys.readouterr().err
    assert "outlets.store.path" in said
    assert str(Path("no/such").absolute()) in said


@pytest.mark.parametrize(
    "command", [["judge", "probe"], ["judge", "bench", "--limit", "1", "--yes"], ["judge", "drift", "a.json", "--limit", "1"]]
)
def test_commands_name_the_url_of_a_judge_that_is_down(command: list[str], capsys: Capture) -> None:
    Path("agenteval.yaml").write_text('judge: {base_url: "http://127.0.0.1:9/v1", model: m, attempts: 1, deadline: 1s}\n')
    assert "http://127.0.0.1:9/v1" in errors_of(capsys, *command, "--config", "agenteval.yaml")
