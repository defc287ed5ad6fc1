"""Messages about typical mistakes name the option or file, and the fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agenteval.cli.main import main
from tests.support.recordings import recording
from tests.test_cli import GOOD

Capture = pytest.CaptureFixture[str]
FILES = {
    "cases.jsonl": '{"case_id": "a", "input": "hi"}\n{"case_id": "b", "input": "hi"}\n',
    "cases.csv": "case_id,input\na,hi\nb,hi\n",
    "table.csv": "a,b\n" + "1,2\n" * 12,
    "cases.json": '[{"case_id": "a", "input": "hi"}, 7]\n',
    "scores.jsonl": '{"metric": "code_cost", "turn_id": "a", "status": "ok"}\n' * 2,
    "task_of_messages.py": "def answer(text):\n    return text\n",
    "store.yaml": "outlets: {store: no/such/kept.db}\n",
    "down.yaml": 'judge: {base_url: "http://127.0.0.1:9/v1", model: m, attempts: 1, deadline: 60s}\n',
}


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    Path("good.jsonl").write_bytes(recording(GOOD))
    Path("binary.jsonl").write_bytes(bytes(range(256)) * 20)
    Path("cases.xlsx").write_bytes(b"PK\x03\x04rest")


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
        ("metrics: [{llm_faithfulness: {sample: {rate: 0.1}}}]", ["llm_faithfulness.sample", "one level up"]),
        ("metrics: [{code_latency: {policy: gate}}]", ["code_latency.policy", "one level up"]),
        ("sample: {rate: 0.1}", ["sample", "metrics"]),
        ("metrics: [{code_latency: {threshold: 5s}}]", ["code_latency.threshold", "'5s'", "Write 5 without a unit"]),
        ("outlets: {prometheus: 9464}", ["outlets.prometheus", "{port: 9464}"]),
        ("outlets: {prometheus: true}", ["outlets.prometheus: must be {port: N}, {registry: default}, or null, got true"]),
        ("judge: {queue: {backend: sqlite}}", ["judge.queue: path is missing. Write {backend: sqlite, path: FILE}"]),
        (
            "metrics: [{llm_relevance: {}, sample: {rate: 1, always_if: score.code_bleu < 1}}]",
            ["code_bleu isn't configured. Add it to metrics"],
        ),
        ("inline: {metrics: [default, my_metric]}", ["inline.metrics[1]", "'my_metric'", "--import MODULE"]),
        ("judge: {timeout: '-1'}", ["judge.timeout", "got '-1'", "30s"]),
    ],
)
def test_configuration_mistakes_name_option_and_fix(config: str, parts: list[str], capsys: Capture) -> None:
    Path("agenteval.yaml").write_text(config + "\n")
    said = errors_of(capsys, "check-config", "agenteval.yaml")
    assert "agenteval.yaml:1: " in said
    assert [part for part in parts if part not in said] == []
    assert "Did you mean 'threshold'" not in said
    assert "required, because" not in said


def test_ui_with_a_port_names_the_option_web(capsys: Capture) -> None:
    assert "Use --web 127.0.0.1:8000" in errors_of(capsys, "ui", "scores.db", "--port", "8000")


def test_eval_prints_one_line_for_files_that_are_not_traces(capsys: Capture) -> None:
    parts = {"cases.jsonl": "experiment", "cases.csv": "experiment", "table.csv": "CSV", "binary.jsonl": "binary"}
    for file, part in {**parts, "cases.xlsx": "spreadsheet", "scores.jsonl": "otel-agenteval ui"}.items():
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
    ("command", "parts"),
    [
        ("explain code_latncy", ["code_latency"]),
        ("experiment task_of_messages:answer cases.xlsx", ["dataset: cases.xlsx: ", "CSV"]),
        ("experiment task_of_messages:answer cases.json", ["dataset: cases.json: case 2: ", "must be an object"]),
        ("experiment task_of_messages:answer absent.jsonl", ["dataset: absent.jsonl: "]),
        ("eval --fromat table good.jsonl", ["--format"]),
        ("judge probe --max-rat=1 --jsno", ["--json"]),
        ("ui --web 8080 good.jsonl", ["--web: ", "127.0.0.1:8080"]),
        ("serve --grpc 8080", ["--grpc: ", "127.0.0.1:8080"]),
        ("serve --grpc localhost", ["--grpc: ", "127.0.0.1:14317"]),
        ("serve --http http://127.0.0.1:4318/", ["without http://", "Example: 127.0.0.1:4318"]),
        ("serve --metrics 127.0.0.1:99999", ["Example: 127.0.0.1:19464"]),
        ("serve --web ::1:8080", ["brackets", "Example: [::1]:19465"]),
        ("worker --judge redis://127.0.0.1:1 --metrics 8080", ["--metrics: ", "127.0.0.1:8080"]),
        ("why abcd --config store.yaml", ["no/such/kept.db: "]),
        ("why abcd --store no/such/kept.db", ["no/such"]),
        ("judge probe --config down.yaml", ["http://127.0.0.1:9/v1"]),
        ("judge drift a.json --limit 1 --config down.yaml", ["http://127.0.0.1:9/v1"]),
    ],
)
def test_commands_name_the_option_file_or_url_that_is_wrong(command: str, parts: list[str], capsys: Capture) -> None:
    said = errors_of(capsys, *command.split())
    assert [part for part in parts if part not in said] == []
    assert "import" not in said


def test_check_config_names_the_missing_folder_of_a_store(capsys: Capture) -> None:
    assert main(["check-config", "store.yaml"]) == 0
    said = capsys.readouterr().err
    assert "outlets.store.path" in said
    assert str(Path("no/such").absolute()) in said
