"""Files are split only at line feeds, because JSON may contain other separators of ``str.splitlines``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_agenteval.cli.record import facts_about
from otel_agenteval.cli.ui import stored
from otel_agenteval.config.loader import load_config
from otel_agenteval.evaluation.datasets import rows_in
from otel_agenteval.instrumentation.recorder import RecordFile
from otel_agenteval.judging.judge_bench.drift import own_cases
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.page.labels import Labels
from otel_agenteval.report.calibration import read_labels

TEXT = "one\u2028two\u2029three\x85four"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "lines.jsonl"


def written(file: Path, *rows: object) -> str:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return str(file)


def test_a_label_is_kept_with_any_comment(file: Path) -> None:
    labels = Labels(str(file))
    labels.add({"turn_id": "a", "label": "pass", "comment": TEXT}, "ann", 1.0)
    labels.add({"turn_id": "b", "label": "fail"}, "ann", 2.0)
    assert [label.get("comment") for label in labels.all()] == [TEXT, None]
    assert [label.turn for label in read_labels(str(file))] == ["a", "b"]
    file.write_bytes(b'{"turn_id": "a", "label": "pass", "comment": "\xff"}\n{"turn_id": "b", "lab')
    assert [label["turn_id"] for label in Labels(str(file)).all()] == ["a"], "half a label hides no other"


def test_scores_are_shown_with_any_explanation(file: Path, tmp_path: Path) -> None:
    row = {"turn_id": f"{1:032x}-{1:016x}", "metric": "code_refusal", "value": 1.0, "status": "ok", "explanation": TEXT}
    path = stored([written(file, row)], tmp_path / "scores.db", load_config({}, {}), None)
    with StoreReader(path) as reader:
        assert [score["explanation"] for score in reader.scores(row["turn_id"])] == [TEXT]


def test_cases_data_sets_and_facts_may_hold_any_text(file: Path) -> None:
    row = {"metric": "llm_relevance", "turn": {"input": TEXT, "output": "y"}}
    assert [case.read_turn().input for case in own_cases(written(file, row, row))] == [TEXT, TEXT]
    file.write_text(f'{{"input":\r"{TEXT}"}}\r\n', encoding="utf-8", newline="")
    assert [row["input"] for _, row in rows_in(str(file), "cases")] == [TEXT]
    file.unlink()
    RecordFile(str(file)).add_fact({"python": TEXT})
    assert facts_about(file) == [{"python": TEXT}]
