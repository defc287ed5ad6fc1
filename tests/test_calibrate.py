"""``otel-agenteval calibrate``: human labels compared with the scores of a run or a store."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import LlmCall, Turn
from otel_agenteval.report.calibration import read_labels, to_label
from otel_agenteval.report.run import About, Run, line_of
from tests.support.stored_turns import filled, score_row, turn_row

Capture = pytest.CaptureFixture[str]


def judged(folder: Path, n: int = 200) -> tuple[Path, Path]:
    """Return a judge's scores, and labels for half of the turns. The judge misses 1 of 5 bad turns, and raises 1 false alarm in 10."""
    scores, labels = folder / "scores.jsonl", folder / "labels.jsonl"
    rows, said = [], []
    for number in range(n):
        bad = number % 4 == 0
        says_bad = number % 20 != 0 if bad else number % 10 == 1
        score = Score("llm_relevance", 0.3 if says_bad else 0.8, passed=not says_bad, threshold=0.5, kind="llm")
        turn = Turn(turn_id=f"t{number}")
        rows.append(json.dumps(line_of(turn, About.of(turn), score, "")))
        if number < n // 2:
            said.append({"turn_id": f"t{number}", "label": "fail" if bad else "pass"})
    scores.write_text("\n".join(rows), encoding="utf-8")
    labels.write_text("\n".join(map(json.dumps, said)), encoding="utf-8")
    return scores, labels


def test_it_says_how_far_the_judge_can_be_trusted(tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path)
    assert main(["calibrate", str(labels), "--scores", str(scores), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["confusion"] == {"found": 20, "missed": 5, "alarms": 10, "passed": 65}
    assert (found["recall"], found["agreement"]) == (0.8, 0.85)
    assert found["judged"] == 200
    for name in ("corrected", "predicted"):
        assert found[name]["low"] < 0.25 < found[name]["high"]
        assert abs(found[name]["mean"] - 0.25) < 0.03
    assert 0.3 < found["suggested_threshold"] <= 0.8
    assert found["warnings"] == ["llm_relevance: 25 bad and 75 good labels; with fewer than 30 of each, intervals are wide"]


def test_labels_of_chosen_turns_count_only_for_the_threshold(tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path)
    command = ["calibrate", str(labels), "--scores", str(scores), "--format", "json"]
    assert main(command) == 0
    (drawn,) = json.loads(capsys.readouterr().out)
    wrong = [{"turn_id": f"t{number}", "label": "pass", "chosen": ("doubtful", "hand")[number % 2]} for number in range(100, 200)]
    more = [*labels.read_text(encoding="utf-8").splitlines(), *map(json.dumps, wrong)]
    labels.write_text("\n".join(more).replace('"t0",', '"t0", "chosen": "random",'), encoding="utf-8")
    assert main(command) == 0
    (found,) = json.loads(capsys.readouterr().out)
    for name in ("confusion", "labelled", "recall", "corrected", "predicted"):
        assert found[name] == drawn[name]
    assert (drawn["chosen"], found["chosen"]) == (0, 100)
    assert found["warnings"][0].startswith("llm_relevance: 100 labels of turns not drawn at random")
    labels.write_text("\n".join(map(json.dumps, wrong)), encoding="utf-8")
    assert main(command) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [found[name] for name in ("labelled", "recall", "corrected", "predicted")] == [0, None, None, None]


def test_as_a_text_and_as_a_page(tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path)
    page = tmp_path / "page.html"
    command = ["calibrate", str(labels), "--scores", str(scores)]
    assert main(command) == 0
    assert re.search(r"bad turns found \(recall\) +80 % \(6[0-9.]+ % … 9[0-9.]+ %\) of 25", capsys.readouterr().out)
    assert main([*command, "--format", "html", "--out", str(page)]) == 0
    text = html.unescape(page.read_text(encoding="utf-8"))
    assert "<caption>llm_relevance</caption>" in text
    assert "default-src 'none'" in text


def test_it_suggests_the_turns_whose_labels_would_say_most(tmp_path: Path) -> None:
    run = Run()
    for number in range(100):
        run.add(About(f"t{number}"), Score("llm_relevance", number / 100, passed=number >= 50, threshold=0.5, kind="llm"))
    labels = tmp_path / "labels.csv"
    labels.write_text("turn_id,label\nt50,pass\nt49,fail\n", encoding="utf-8")
    found = to_label(run, read_labels(str(labels)), 20)
    assert len({row["turn_id"] for row in found}) == 20
    near = [row for row in found if 0.4 <= row["score"] <= 0.6]
    assert len(near) >= 16, "most lie where the judge is unsure"
    assert len(near) < 20, "some of any kind"
    assert not {"t49", "t50"} & {row["turn_id"] for row in found}, "these have one"


def test_suggestions_are_written_as_labels_to_fill_in(tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path)
    out = tmp_path / "to-label.jsonl"
    assert main(["calibrate", str(labels), "--scores", str(scores), "--suggest", "5", "--suggestions", str(out)]) == 0
    assert "5 turns to label" in capsys.readouterr().err
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 5
    assert [row["chosen"] for row in rows] == ["random", *["doubtful"] * 4]
    out.write_text("\n".join(json.dumps(row | {"label": "pass"}) for row in rows), encoding="utf-8")
    assert len(read_labels(str(out))) == 5
    elsewhere = str(tmp_path / "missing" / "x.jsonl")
    assert main(["calibrate", str(labels), "--scores", str(scores), "--suggest", "5", "--suggestions", elsewhere]) == 2
    assert "--suggestions: " in capsys.readouterr().err


def labeled(labels: str | Path, scores: Path, capsys: Capture) -> tuple[list[int], str]:
    """Return the number of labels of each metric, and what the command printed on standard error."""
    assert main(["calibrate", str(labels), "--scores", str(scores), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    return [found["labelled"] for found in json.loads(out)], err


def test_rows_without_a_label_are_skipped_and_counted(tmp_path: Path, capsys: Capture) -> None:
    scores, _ = judged(tmp_path)
    labels = tmp_path / "labels.csv"
    labels.write_text("turn_id,label\nt1,pass\nt2,\nt3,fail\nt4,\n", encoding="utf-8")
    counts, said = labeled(labels, scores, capsys)
    assert counts == [2]
    assert "skipped 2 rows without a label" in said


def test_rows_without_ids_are_matched_by_input(tmp_path: Path, capsys: Capture) -> None:
    data, scores = tmp_path / "qa.csv", tmp_path / "scores.jsonl"
    data.write_text("question,answer,label\n2+2?,4,pass\nHi,,fail\nHo,Ho,pass\n", encoding="utf-8")
    run = ["experiment", "recorded", str(data), "--metrics", "code_empty_answer", "--format", "jsonl", "--out", str(scores)]
    assert main(run) == 0
    assert main(["calibrate", str(data), "--scores", str(scores), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["confusion"] == {"found": 1, "missed": 0, "alarms": 0, "passed": 2}


@pytest.mark.parametrize("labels", ["Hi,fail\nHo,pass\n", "2+2?,pass\nHo,pass\nHo,\n", "2+2?,pass\nHi,fail\nHi,fail\n"])
def test_labels_of_repeated_inputs_are_not_matched(labels: str, tmp_path: Path, capsys: Capture) -> None:
    """Report: in a subset, labels of repeated inputs were matched by their position. Kappa was 0.1 instead of 0.66."""
    data, scores, file = tmp_path / "qa.csv", tmp_path / "scores.jsonl", tmp_path / "labels.csv"
    data.write_text("question,answer\n2+2?,4\nHi,Hi\nHi,\nHo,Ho\n", encoding="utf-8")
    run = ["experiment", "recorded", str(data), "--metrics", "code_empty_answer", "--format", "jsonl", "--out", str(scores)]
    assert main(run) == 0
    file.write_text(f"input,label\n{labels}", encoding="utf-8")
    counts, said = labeled(file, scores, capsys)
    assert counts == [1]
    assert f"{2 if labels.count('Hi') > 1 else 1} label" in said
    case = json.loads(scores.read_text(encoding="utf-8").splitlines()[2])["case_id"]
    file.write_text(f"case_id,label\n{case},fail\n", encoding="utf-8")
    assert labeled(file, scores, capsys) == ([1], "")


def test_contradicting_labels_are_counted(tmp_path: Path, capsys: Capture) -> None:
    scores, _ = judged(tmp_path)
    labels = tmp_path / "labels.csv"
    labels.write_text("turn_id,label\nt1,pass\nt1,fail\nt2,pass\nt2,pass\nt3,fail\nt3,pass\n", encoding="utf-8")
    counts, said = labeled(labels, scores, capsys)
    assert counts == [3]
    assert "2 turns with contradicting labels" in said


def test_file_names_before_turn_ids_are_accepted(tmp_path: Path, capsys: Capture) -> None:
    """Report: labels from a web UI with two files matched no turn."""
    scores, labels = judged(tmp_path)
    labels.write_text(labels.read_text(encoding="utf-8").replace('"t1', '"scores.jsonl:t1'), encoding="utf-8")
    assert labeled(labels, scores, capsys)[0] == [100]


def test_scores_in_a_table_are_refused_once(tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path)
    scores.write_text("turn_id,metric\nt1,a\nt2,a\n", encoding="utf-8")
    assert main(["calibrate", str(labels), "--scores", str(scores)]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"turn_id": "t1", "label": "maybe"}', "labels.jsonl:1: unknown label, got 'maybe'"),
        ('{"label": "pass"}', "labels.jsonl:1: must have a label, and one of turn_id"),
        ("not json", "must be one JSON object"),
        ("", "labels: "),
        ('{"turn_id": "elsewhere", "label": "pass"}', "no labeled turn has a verdict"),
    ],
)
def test_wrong_labels_are_said(text: str, says: str, tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path)
    labels.write_text(text, encoding="utf-8")
    assert main(["calibrate", str(labels), "--scores", str(scores)]) == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["LABELS", "--metric", "llm_relevanc"], "llm_relevanc: no score of this metric. Did you mean 'llm_relevance'?"),
        (["LABELS", "--store", "x"], "--scores, --store: "),
        (["LABELS", "--suggest", "0"], "--suggest"),
        (["LABELS", "--feedback"], "LABELS, --feedback: "),
        ([], "LABELS, --feedback: "),
        (["--feedback"], "code_user_feedback"),
    ],
)
def test_options_that_exclude_each_other(arguments: list[str], says: str, tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path, 40)
    given = [str(labels) if part == "LABELS" else part for part in arguments]
    assert main(["calibrate", *given, "--scores", str(scores)]) == 2
    assert says in capsys.readouterr().err


def test_users_are_labels_too(tmp_path: Path, capsys: Capture) -> None:
    scores, labels = judged(tmp_path)
    said = [json.loads(line) for line in labels.read_text().splitlines()]
    with scores.open("a", encoding="utf-8") as file:
        for label in said:
            turn, good = Turn(turn_id=label["turn_id"]), label["label"] == "pass"
            score = Score("code_user_feedback", float(good), passed=good, threshold=0.5)
            file.write("\n" + json.dumps(line_of(turn, About.of(turn), score, "")))
    assert main(["calibrate", "--feedback", "--scores", str(scores), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["confusion"] == {"found": 20, "missed": 5, "alarms": 10, "passed": 65}


def test_scores_come_from_the_store_of_the_given_configuration(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, other, labels = tmp_path / "a.yaml", tmp_path / "b.yaml", tmp_path / "labels.jsonl"
    turns = [turn_row(number) for number in range(4)]
    filled(tmp_path / "s.db", [(turn, [score_row(turn, "llm_relevance", number % 2)]) for number, turn in enumerate(turns)])
    config.write_text(f"outlets: {{store: {tmp_path / 's.db'}}}")
    other.write_text(f"outlets: {{store: {tmp_path / 'missing.db'}}}")
    monkeypatch.setenv("OTEL_AGENTEVAL_CONFIG_FILE", str(other))
    labels.write_text("\n".join(json.dumps({"turn_id": turn["turn_id"], "label": "pass"}) for turn in turns))
    assert main(["calibrate", str(labels), "--config", str(config), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["confusion"] == {"found": 0, "missed": 0, "alarms": 2, "passed": 2}


def test_labels_match_the_case_ids_of_a_store(tmp_path: Path, capsys: Capture) -> None:
    turns = [turn_row(number, case_key=key) for number, key in enumerate(("refund-17", "#b5a1", None))]
    filled(tmp_path / "s.db", [(turn, [score_row(turn, "llm_relevance", 0.0)]) for turn in turns])
    labels = tmp_path / "labels.jsonl"
    labels.write_text("\n".join(json.dumps({"case_id": case, "label": "fail"}) for case in ("refund-17", "#b5a1")))
    assert main(["calibrate", str(labels), "--store", str(tmp_path / "s.db"), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["confusion"] == {"found": 1, "missed": 0, "alarms": 0, "passed": 0}


def test_feedback_in_recorded_traces_is_a_label(tmp_path: Path, capsys: Capture) -> None:
    traces, scores = tmp_path / "traces.jsonl", tmp_path / "scores.jsonl"
    spans, rows = [], []
    for number in range(1, 5):
        ids = {"traceId": f"{number:032x}", "spanId": f"{number:016x}", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
        attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}}]
        said = [{"name": "thumbs_up" if number % 2 else "thumbs_down", "timeUnixNano": "2", "attributes": []}]
        spans.append({**ids, "name": "invoke_agent bot", "attributes": attributes, "events": said})
        turn = Turn(turn_id=f"{number:032x}-{number:016x}")
        score = Score("llm_relevance", 0.9, passed=True, threshold=0.5, kind="llm")
        rows.append(json.dumps(line_of(turn, About.of(turn), score, "")))
    found = json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "acme"}, "spans": spans}]}]})
    traces.write_text(f'{{"resourceLogs": []}}{" " * 70_000}\n{found}')  # the spans begin after the part that is searched
    scores.write_text("\n".join(rows))
    assert main(["calibrate", str(traces), "--scores", str(scores), "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["confusion"] == {"found": 0, "missed": 2, "alarms": 0, "passed": 2}


@pytest.mark.parametrize("other", ["other-1", "judge-1-mini", "judge-1.5", "judge-11"])
def test_a_judge_that_prefers_its_own_model_is_found_out(tmp_path: Path, capsys: Capture, other: str) -> None:
    """A third of the bad answers is by the judge's own model. The judge passes all of these, but people label them bad."""
    scores, labels = tmp_path / "scores.jsonl", tmp_path / "labels.jsonl"
    rows, said = [], []
    for number in range(120):
        own, bad = number % 2 == 0, number % 3 == 0
        passed = not bad or own
        turn = Turn(turn_id=f"t{number}", llm_calls=[LlmCall(model="judge-1-2026-05-01" if own else other)])
        score = Score("llm_relevance", float(passed), passed=passed, threshold=0.5, kind="llm")
        rows.append(json.dumps(line_of(turn, About.of(turn), score, "")))
        said.append(json.dumps({"turn_id": f"t{number}", "label": "fail" if bad else "pass"}))
    scores.write_text("\n".join(rows))
    labels.write_text("\n".join(said))
    args = ["calibrate", str(labels), "--scores", str(scores)]
    assert main([*args, "--judge-model", "vendor/judge-1", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    preference = found["self_preference"]
    assert (preference["own"], preference["others"]) == (60, 60)
    assert preference["size"] == pytest.approx(1 / 3)
    assert preference["interval"][0] > 0.1
    assert "prefers answers of its own model" in " ".join(found["warnings"])
    assert main([*args, "--judge-model", "judge-9", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["self_preference"] is None
    assert main([*args, "--judge-model", "judge-1"]) == 0
    assert "preference for its own model's answers" in capsys.readouterr().out


def test_suggested_turns_are_spread_over_metrics(tmp_path: Path) -> None:
    run = Run()
    for number in range(100):
        run.add(About(f"a{number}"), Score("llm_a", 0.5, passed=True, threshold=0.5, kind="llm"))
        run.add(About(f"b{number}"), Score("llm_b", 0.9 - number / 1000, passed=True, threshold=0.5, kind="llm"))
    labels = tmp_path / "labels.csv"
    labels.write_text("turn_id,label\nx,pass\n", encoding="utf-8")
    found = [row["metric"] for row in to_label(run, read_labels(str(labels)), 20)]
    assert min(found.count("llm_a"), found.count("llm_b")) >= 8
