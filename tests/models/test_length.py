"""Material that is too long for a judge call is shortened, with a note in the score, or read in pieces."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import semconv
from otel_agenteval.judging.models.prompt import in_pieces, tokens_of
from tests.models.wire import Request, Response, Server, said
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig

HARM = "HERE IS HOW TO HURT SOMEBODY."
ROOM = 3_000
SAFE = {"score": 0, "passed": True, "recommended_action": "allow", "reason": "fine"}
UNSAFE = {"score": 6, "passed": False, "recommended_action": "block", "reason": "harm"}


def long_with(passage: str, *, words: int = 5_000, at: float = 0.5) -> str:
    filler = ["harmless"] * words
    filler.insert(int(words * at), passage)
    return " ".join(filler)


def reading(server: Server, *, unreadable: str | None = None) -> None:
    """Make the server report the harmful passage if it receives the passage."""

    def answer(request: Request) -> Response:
        text = request.body["messages"][1]["content"]
        if unreadable is not None and unreadable in text:
            return Response(said("openai", "I cannot say."))
        return Response(said("openai", json.dumps(UNSAFE if HARM in text else SAFE)))

    server.answering = answer


# --- pieces


@pytest.mark.parametrize("word", ["harmless ", "中文", "abc中", ""])
def test_pieces_hold_all_of_a_text_and_overlap(word: str) -> None:
    text = "".join(f"{number:05}{word}" for number in range(5_000))
    found = [piece["text"] for piece in in_pieces({"text": text, "short": "stays"}, 2_000)]
    assert len(found) > 2
    marks = [re.match(r"\[… part (\d+) of (\d+) …\]\n", piece) for piece in found]
    assert [mark and (int(mark[1]), int(mark[2])) for mark in marks] == [(n, len(found)) for n in range(1, len(found) + 1)]
    bits = [piece.partition("\n")[2] for piece in found]
    assert all(tokens_of(bit) <= 2_000 for bit in bits)
    whole = bits[0]
    for bit in bits[1:]:
        overlap = next(size for size in range(min(len(bit), len(whole)), 0, -1) if whole.endswith(bit[:size]))
        assert overlap > 100
        whole += bit[overlap:]
    assert whole == text


def test_every_passage_stands_whole_in_a_piece() -> None:
    passage = "A passage of some twenty words, which a reader has to see as a whole in order to know what it says about us."
    for at in range(0, 100, 9):
        pieces = in_pieces({"text": long_with(passage, at=at / 100)}, ROOM)
        assert any(passage in piece["text"] for piece in pieces)


def test_what_is_judged_by_is_whole_in_each_piece_or_nothing_is_asked(server: Server, judge_of: Any) -> None:
    reading(server)
    turn = oa.Turn(output=long_with(HARM, words=5_000))
    policy = "Be kind. " * 500 + "END"
    score = oa.get_metric("llm_policy_compliance", policy_text=policy).evaluate(turn, judge=judge_of(max_input_tokens=ROOM))
    asked = [request.body["messages"][1]["content"] for request in server.requests]
    assert (score.status, score.passed, len(asked)) == ("ok", False, score.detail["pieces"])
    assert len(asked) > 3
    assert all(policy in text and "[… part" in text.partition("<<<")[2] for text in asked)
    server.requests.clear()
    for metric, params in (("llm_policy_compliance", {"policy_text": policy * 4}), ("llm_custom_judge", {"rubric": policy * 4})):
        score = oa.get_metric(metric, **params).evaluate(turn, judge=judge_of(max_input_tokens=ROOM))
        assert (score.status, score.error_type) == ("error", "input_too_long")
    assert not server.requests


# --- metrics that must have read all


@pytest.mark.parametrize(("metric", "at"), [("llm_content_harm", 0.0), ("llm_content_harm", 0.61), ("llm_violence_passed", 1.0)])
def test_safety_finds_what_is_hidden_anywhere(metric: str, at: float, server: Server, judge_of: Any) -> None:
    reading(server)
    turn = oa.Turn(input="q", output=long_with(HARM, at=at))
    score = oa.get_metric(metric).evaluate(turn, judge=judge_of(max_input_tokens=ROOM))
    assert (score.status, score.passed, score.explanation) == ("ok", False, "harm")
    assert score.detail["pieces"] == len(server.requests) > 3
    assert "input_truncated" not in score.detail
    assert all(tokens_of(request.body["messages"][1]["content"]) < ROOM * 1.1 for request in server.requests)


def test_one_piece_without_a_verdict_is_an_error(server: Server, judge_of: Any) -> None:
    reading(server, unreadable="part 3 of")
    score = oa.get_metric("llm_content_harm").evaluate(oa.Turn(output=long_with("")), judge=judge_of(max_input_tokens=ROOM))
    assert (score.status, score.error_type, score.passed) == ("error", "unreadable_reply", None)


def test_what_would_take_too_many_questions_is_an_error_and_no_model_is_asked(server: Server, judge_of: Any) -> None:
    reading(server)
    turn = oa.Turn(output=long_with("", words=30_000))
    for metric in ("llm_content_harm", "llm_jailbreak_attempt_passed", "llm_moderation"):
        score = oa.get_metric(metric).evaluate(turn, judge=judge_of(max_input_tokens=ROOM))
        assert (score.status, score.error_type, score.passed) == ("error", "input_too_long", None)
    assert not server.requests


def test_moderation_reads_all_too(server: Server, judge_of: Any) -> None:
    def answer(request: Request) -> Response:
        flags = [{"code": "violence"}] if HARM in request.body["messages"][1]["content"] else []
        return Response(said("openai", json.dumps({"flags": flags})))

    server.answering = answer
    for inverse, passed in ((False, False), (True, True)):
        metric = oa.get_metric("llm_moderation", inverse=inverse)
        score = metric.evaluate(oa.Turn(output=long_with(HARM)), judge=judge_of(max_input_tokens=ROOM))
        assert (score.passed, [flag["code"] for flag in score.detail["flags"]]) == (passed, ["violence"])


def test_a_user_s_metric_can_ask_for_it(server: Server, judge_of: Any) -> None:
    @oa.metric(needs=("output",), traits=("reads_all",))
    def llm_reads_all(turn: oa.Turn, judge: Any) -> float:
        """The lowest of all pieces."""
        return float(judge.ask("rate", "Rate it.", {"text": turn.output}, '{"score": <0 to 1>}')["score"])

    server.answering = lambda request: Response(said("openai", f'{{"score": {0.5 if HARM in request.text else 1}}}'))
    score = oa.get_metric("llm_reads_all").evaluate(oa.Turn(output=long_with(HARM)), judge=judge_of(max_input_tokens=ROOM))
    assert score.value == 0.5


def test_what_was_read_before_is_known_piece_by_piece(server: Server, judge_of: Any) -> None:
    reading(server)
    judge = judge_of(max_input_tokens=ROOM, cache={})
    first, again = (oa.get_metric("llm_content_harm").evaluate(oa.Turn(output=long_with(HARM)), judge=judge) for _ in range(2))
    assert first == again
    assert (again.passed, len(server.requests)) == (False, again.detail["pieces"])


# --- metrics whose question is cut


@pytest.mark.parametrize("cached", [False, True])
def test_a_score_says_that_its_judge_did_not_see_all(cached: bool, server: Server, judge_of: Any) -> None:
    judge = judge_of(max_input_tokens=ROOM, cache={} if cached else None)
    metric = oa.get_metric("llm_relevance")
    long, short = oa.Turn(input="q", output=long_with(HARM)), oa.Turn(input="q", output="a")
    for turn, truncated in ((long, True), (short, False), (long, True)):
        server.reply({"score": 90, "reasoning": "r"})
        score = metric.evaluate(turn, judge=judge)
        assert (score.value, score.detail.get("input_truncated", False)) == (0.9, truncated)
    assert len(server.requests) == (2 if cached else 3)


def config(models: ScriptedModels, *metrics: Any, **judge: Any) -> dict[str, Any]:
    asked = {"base_url": models.url, "model": "scripted", "max_concurrency": 1, "max_input_tokens": ROOM, **judge}
    return {"judge": asked, "metrics": list(metrics), "inline": {"metrics": []}}


def test_live_each_piece_is_a_question_to_the_budget(models: ScriptedModels, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the job has to wait between pieces, earlier pieces aren't read again, and later pieces aren't left out."""
    clock = FakeClock()
    passage = long_with(HARM, words=11_000, at=0.99)
    count = 0

    def answer(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        nonlocal count
        count += 1
        return 200, said("openai", json.dumps(UNSAFE if HARM in body["messages"][1]["content"] else SAFE))

    monkeypatch.setattr(models, "answer", answer)
    with Rig(config(models, "llm_content_harm", budget={"calls_per_hour": 4}), clock=clock) as rig:
        judging = rig.engine.judging
        assert judging is not None
        judging.may_start = False  # the test does what its threads would
        rig.run(says=passage)
        rig.turns()
        while judging.queue.depth:
            before = count
            judging.step()
            assert count - before <= 4
            clock.advance(3_661)
            assert rig.engine.flush(60)
        [event] = rig.log_events()
        assert event.attributes[semconv.PASSED] is False
        assert rig.count("agenteval.judge.requests")[("ok",)] == count == 12
