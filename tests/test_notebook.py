"""DataFrames and HTML of turns and scores in notebooks."""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas
import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import ConfigError
from tests.support.judges import ScriptedModels
from tests.support.recordings import unpack

HOSTILE = "<script>alert(1)</script> & <img src=x onerror=alert(2)> \" ' </td>"


@pytest.fixture
def turns(tmp_path: Path) -> list[oa.Turn]:
    return [*oa.load_turns([unpack(f"pydantic_ai-native_v6/{name}.jsonl", tmp_path) for name in ("s2", "s13")])]


def test_a_frame_of_turns_has_a_row_for_each(turns: list[oa.Turn]) -> None:
    frame = oa.turns_frame(turns)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame["turn_id"]) == [turn.turn_id for turn in turns]
    assert [None if pandas.isna(output) else output for output in frame["output"]] == [turn.output for turn in turns]
    assert frame["input_tokens"].sum() == sum(turn.usage.input_tokens or 0 for turn in turns if turn.usage)
    assert frame["tool_calls"].map(len).sum() == sum(len(turn.tool_calls or ()) for turn in turns)
    assert str(frame["start"].dtype).startswith("datetime64")
    assert list(oa.turns_frame([]).columns) == list(frame.columns)
    assert "metric" in oa.score_turns([]).frame().columns


def test_turns_are_scored_as_eval_does(turns: list[oa.Turn]) -> None:
    scored = oa.score_turns(turns)
    assert len(scored) == len(turns)
    assert scored.turns == turns
    frame = scored.frame()
    assert "code_repeated_tool_calls" in set(frame.loc[frame["passed"].eq(False), "metric"])
    assert frame.loc[frame["status"] == "skipped", "reason"].notna().all()
    assert frame.loc[frame["status"] == "ok", "result_id"].notna().all()
    assert repr(scored).startswith(f"ScoredTurns({len(turns)} turns, {len(frame):,} scores, ")
    assert len(scored[:1]) == 1
    table = scored.table()
    assert set(table.columns) == set(frame["metric"])
    assert list(table.index) == [turn.turn_id for turn in turns]


def test_metrics_are_those_of_the_configuration_or_those_that_are_named(turns: list[oa.Turn]) -> None:
    given = {"inline": {"metrics": ["code_latency"]}, "metrics": [{"code_max_duration": {"max_seconds": 1e9}}]}
    assert set(oa.score_turns(turns, config=given).frame()["metric"]) == {"code_latency", "code_max_duration"}
    assert set(oa.score_turns(turns[0], ["code_max_duration"], config=given).frame()["passed"]) == {True}


def test_given_judge_reads_the_turns_before_of_the_same_conversation(models: ScriptedModels) -> None:
    models.play(*[{"score": 0, "reason": "fine"}] * 2)
    known = {"conversation_id": "c", "output": "no"}
    said = [
        oa.Turn.from_dict({**known, "turn_id": f"t{i}", "start": f"2026-11-21T02:5{i}:00Z", "input": f"part {i}"}) for i in (0, 1)
    ]
    (score,) = oa.score_turns(said, ["llm_jailbreak_attempt"], judge=models.judge)[1][1]
    assert (score.metric, score.status) == ("llm_jailbreak_attempt", "ok")
    assert ["1. user: part 0" in text for text in models.asked] == [False, True]
    (without,) = oa.score_turns(said[0], ["llm_relevance"])[0][1]
    assert without.detail["reason"] == "no_judge"


class Tags(HTMLParser):
    """Elements and text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.elements.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_what_was_said_is_shown_as_text() -> None:
    turn = oa.Turn.from_dict({
        "turn_id": HOSTILE, "agent": HOSTILE, "input": HOSTILE, "output": HOSTILE + "x" * 2_000, "error": {"message": HOSTILE},
        "tool_calls": [{"name": HOSTILE, "error": {"type": "E"}}], "duration_s": 1.5,
    })  # fmt: skip
    score = oa.Score("code_x", 0.25, False, explanation=HOSTILE, threshold=0.5)
    for shown in (turn._repr_html_(), score._repr_html_(), oa.ScoredTurns([(turn, [score])] * 30)._repr_html_()):
        page = Tags(shown)
        assert page.elements <= {"table", "caption", "b", "tr", "th", "td", "p"}
        assert HOSTILE in page.text
    assert "✗ code_x" in Tags(score._repr_html_()).text
    assert "0.25 (≥ 0.5): " in Tags(score._repr_html_()).text
    assert len(turn._repr_html_()) < 8_000


def test_pandas_is_not_needed_to_score_and_its_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    scored = oa.score_turns(oa.Turn(turn_id="t", output="x"))
    assert len(scored) == 1
    with pytest.raises(oa.MissingExtra, match=r"otel-agenteval\[notebook\]"):
        scored.frame()


def is_short(turn: oa.Turn) -> bool:
    """The answer has at most 20 characters."""
    return len(turn.output or "") <= 20


def test_metrics_are_taken_in_every_form() -> None:
    metrics = ["code_word_count", {"code_contains": {"value": "hello"}}, oa.get_metric("code_contains", value="bye"), is_short]
    ((_, (_, *scores)),) = oa.score_turns(oa.Turn(input="?", output="hello"), metrics)
    names = ["code_contains", "code_contains", "code_is_short"]
    assert [(score.metric.partition(".")[0], score.verdict) for score in scores] == list(
        zip(names, [True, False, True], strict=True)
    )


@pytest.mark.parametrize("metric", ["code_nothing", 3, lambda turn: 1, {"code_contains": {"valu": 1}}, {"a": 1, "b": 2}])
def test_metric_in_no_known_form_is_refused(metric: Any) -> None:
    with pytest.raises(ConfigError):
        oa.score_turns([], [metric])


def test_frame_has_no_verdict_for_a_neutral_metric() -> None:
    assert list(oa.score_turns(oa.Turn(input="?", output="hello"), ["code_refusal"]).frame()["passed"]) == [None]


def test_configured_embedder_is_used() -> None:
    turn = oa.Turn(input="?", output="a kitten", ground_truth="a cat")
    ((_, (score,)),) = oa.score_turns(turn, ["embed_answer_similarity"], config={"embedder": {"model": "local/wordllama"}})
    assert score.status == "ok"
