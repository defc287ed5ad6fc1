"""``otel-agenteval judge drift``: the same cases judged again, against a real server whose model is replaced."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli import judge_drift
from otel_agenteval.cli.main import main
from otel_agenteval.outlets.store.reader import StoreReader
from tests.support.judges import ScriptedModels, _numbers, _text_of

METRICS = "llm_relevance,llm_coherence,llm_faithfulness"


class Moody(ScriptedModels):
    """Gives each question the same score, moved by a mood."""

    def __init__(self) -> None:
        super().__init__()
        self.mood = 0.0
        self.broken = False

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if self.broken:
            return 400, {"error": {"message": "no"}}
        text = re.sub(r"[0-9a-f]{16}", "", _text_of(body["messages"][-1]["content"]))
        score = min(100.0, max(0.0, 40 + 40 * _numbers(text, 1)[0] + self.mood))
        message = {"role": "assistant", "content": json.dumps({"score": score, "reason": "r", "claims": [], "statements": []})}
        return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": message}]}


@pytest.fixture
def moody() -> Iterator[Moody]:
    server = Moody()
    yield server
    server.close()


@pytest.fixture
def files(tmp_path: Path, moody: Moody) -> tuple[str, str]:
    """Anchors and configuration."""
    config = tmp_path / "agenteval.yaml"
    config.write_text(
        f"judge: {{base_url: '{moody.url}', model: m-1}}\noutlets: {{prometheus: null, store: {tmp_path / 'scores.db'}}}\n"
    )
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"id": f"c{n}", "metric": "llm_relevance", "turn": {"input": f"question {n}", "output": f"answer {n}"}} for n in range(40)
    ]
    cases.write_text("\n".join(map(json.dumps, rows)))
    return str(tmp_path / "anchors.json"), str(config)


def drift(files: tuple[str, str], *more: str) -> int:
    anchors, config = files
    return main(["judge", "drift", anchors, "--config", config, "--cases", str(Path(anchors).with_name("cases.jsonl")), *more])


def test_a_judge_that_is_what_it_was_has_not_drifted_and_one_that_is_replaced_has(
    files: tuple[str, str], moody: Moody, capsys: pytest.CaptureFixture[str]
) -> None:
    assert drift(files) == 0
    assert "scores of 40 cases by m-1 written" in capsys.readouterr().err
    frozen = Path(files[0]).read_bytes()
    assert drift(files, "--json") == 0
    said = json.loads(capsys.readouterr().out)
    assert [row["difference"] for row in said["families"]] == [0.0, 0.0]
    moody.mood = -10.0
    assert drift(files) == 1
    text = capsys.readouterr().out
    assert re.search(r"all +40 +0\.\d+ +0\.\d+ +-0\.100 \(-0\.\d+ … -0\.\d+\) +0\.000 +\d+ +DRIFTED", text)
    assert Path(files[0]).read_bytes() == frozen  # anchors stay what they are
    with StoreReader(Path(files[0]).with_name("scores.db")) as reader:
        [change] = reader.changes()
    assert (change["metric"], change["agent"], change["detector"]) == ("judge", "m-1", "anchors")


def test_a_change_that_is_too_small_to_matter_is_none(files: tuple[str, str], moody: Moody) -> None:
    assert drift(files) == 0
    moody.mood = -2.0
    assert drift(files) == 0
    assert drift(files, "--least", "0.01") == 1


def test_a_judge_that_gives_no_score_cannot_be_compared(
    files: tuple[str, str], moody: Moody, capsys: pytest.CaptureFixture[str]
) -> None:
    moody.broken = True
    assert drift(files) == 2
    assert "no case got a score" in capsys.readouterr().err
    assert not Path(files[0]).exists()
    moody.broken = False
    assert drift(files) == 0
    moody.broken = True
    assert drift(files) == 2


def test_the_benchs_cases_are_the_default(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    anchors, config = files
    assert main(["judge", "drift", anchors, "--config", config, "--metrics", METRICS, "--limit", "8"]) == 0
    assert "cases by m-1 written" in capsys.readouterr().err


def test_again_and_again(
    files: tuple[str, str], moody: Moody, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 3:
            raise KeyboardInterrupt
        moody.mood -= 10.0

    monkeypatch.setattr(judge_drift.time, "sleep", sleep)
    assert drift(files, "--every", "24h") == 130
    assert waited == [86_400.0] * 3
    assert capsys.readouterr().out.count("DRIFTED") == 4  # of all and of the own family, twice


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--every", "soon"], "--every: must be"),
        (["--limit", "0"], "--limit: must be"),
        (["--cases", "none.jsonl"], "--cases: none.jsonl: "),
    ],
)
def test_wrong_use_is_refused(files: tuple[str, str], capsys: pytest.CaptureFixture[str], args: list[str], message: str) -> None:
    assert drift(files, *args) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "{",
        '{"metric": "llm_relevance"}',
        '{"metric": "llm_nothing", "turn": {}}',
        '{"metric": "llm_relevance", "turn": {"x": 1}}',
    ],
)
def test_a_case_that_cannot_be_used_is_named_before_anything_is_asked(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], line: str
) -> None:
    Path(files[0]).with_name("cases.jsonl").write_text(f"\n{line}\n")
    assert drift(files) == 2
    assert "cases.jsonl:2: " in capsys.readouterr().err


def test_a_file_that_is_no_anchors_is_left_as_it_is(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    Path(files[0]).write_text("[]")
    assert drift(files) == 2
    assert "anchor file" in capsys.readouterr().err
    assert Path(files[0]).read_text() == "[]"


def test_without_a_judge_there_is_nothing_to_ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["judge", "drift", str(tmp_path / "a.json")]) == 2
    assert "no judge is configured" in capsys.readouterr().err
