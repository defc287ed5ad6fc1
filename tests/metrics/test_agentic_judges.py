from __future__ import annotations

import re
from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

CALLS = [{"name": "search", "arguments": {"q": "flight"}}, {"name": "filter", "arguments": {"max": 1000}}]
TURN: dict[str, Any] = {
    "input": "find me a flight",
    "output": "here is one",
    "tool_calls": CALLS,
    "reasoning": "search, then filter",
}
YES, NO = {"verdict": "yes", "reason": None}, {"verdict": "no", "reason": "the limit is made up"}
TASK, PLAN = {"task": "a flight"}, {"plan": ["search", "filter"]}
TOOLS = {"user_input": "a flight", "tools_called": [{"name": "made up"}], "available_tools": [{"name": "made up"}]}
SCORED = {"score": 0.75, "reason": "fair"}
FULL: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "llm_task_completion": ({}, [{"task": "t", "outcome": "o"}, {"verdict": 0.75, "reason": "fair"}]),
    "llm_tool_correctness": ({}, [TOOLS, SCORED]),
    "llm_step_efficiency": ({}, [TASK, SCORED]),
    "llm_confidence": ({}, [{"confidence": 0.75, "reason": "fair"}]),
    "llm_plan_adherence": ({}, [TASK, PLAN, SCORED]),
    "llm_plan_quality": ({}, [TASK, PLAN, SCORED]),
    "llm_goal_accuracy": ({}, [SCORED]),
    "llm_topic_adherence": ({"allowed_topics": ["travel"]}, [SCORED]),
}
"""Metrics with one score from 0 to 1, with parameters and replies. The last reply has the score 0.75."""


ANSWERED = ("llm_task_completion", "llm_task_success", "llm_goal_accuracy", "llm_topic_adherence")
PLANS = ("llm_plan_adherence", "llm_plan_quality")


def turn(**changes: Any) -> oa.Turn:
    return oa.Turn.from_dict({**TURN, **changes})


# --- one score from 0 to 1


@pytest.mark.parametrize("name", FULL)
def test_the_value_is_the_last_reply_s_score_with_its_reason(models: ScriptedModels, name: str) -> None:
    params, replies = FULL[name]
    score = models.score(name, turn(), *replies, **params)
    assert (score.status, score.value, score.explanation) == ("ok", 0.75, "fair"), score
    assert "find me a flight" in "".join(models.asked)
    trends = name in ("llm_goal_accuracy", "llm_topic_adherence")
    assert score.passed is (None if trends else True)


@pytest.mark.parametrize("name", FULL)
def test_a_score_may_be_a_number_as_text(models: ScriptedModels, name: str) -> None:
    params, replies = FULL[name]
    key = next(key for key in ("score", "verdict", "confidence") if key in replies[-1])
    score = models.score(name, turn(), *replies[:-1], {key: " 0.5 "}, **params)
    assert (score.value, score.explanation) == (0.5, None)


@pytest.mark.parametrize(
    ("name", "changes", "reason"),
    [
        *((name, {"input": None}, "missing:input") for name in ("llm_task_completion", "llm_task_success", "llm_confidence")),
        *((name, {"input": ""}, "missing:input") for name in ("llm_tool_correctness", "llm_step_efficiency", *PLANS)),
        ("llm_argument_correctness", {"tool_calls": None}, "missing:tool_calls"),
        *((name, {"output": None}, "missing:output") for name in ANSWERED),
        ("llm_goal_accuracy", {"input": "", "ground_truth": ""}, "missing:ground_truth"),
    ],
)
def test_what_is_missing_is_not_judged(models: ScriptedModels, name: str, changes: dict[str, Any], reason: str) -> None:
    score = models.score(name, turn(**changes), **FULL.get(name, ({}, []))[0])
    assert (score.status, score.detail) == ("skipped", {"reason": reason})


@pytest.mark.parametrize("name", ["llm_tool_correctness", "llm_step_efficiency", "llm_confidence", "llm_plan_adherence"])
def test_a_bare_request_is_enough_for_those_that_judge_the_way(models: ScriptedModels, name: str) -> None:
    assert models.score(name, oa.Turn(input="q"), *FULL[name][1]).status == "ok"


@pytest.mark.parametrize("name", ANSWERED)
def test_an_empty_answer_is_judged(models: ScriptedModels, name: str) -> None:
    params, replies = FULL.get(name, ({}, [{"success": True}]))
    assert models.score(name, turn(output=""), *replies, **params).status == "ok"


# --- task


def test_task_completion_in_two_stages_tells_the_second_what_the_first_found(models: ScriptedModels) -> None:
    score = models.score("llm_task_completion", turn(), {"task": "a cheap flight", "outcome": None}, {"verdict": 0.5})
    assert (score.value, score.passed, score.detail["task"], score.detail["outcome"]) == (0.5, True, "a cheap flight", None)
    assert "a cheap flight" in models.asked[1]
    assert models.score("llm_task_completion", turn(), {}, {"verdict": 0.49}).passed is False


@pytest.mark.parametrize(
    ("criteria", "said"),
    [(None, "complete"), ("short and polite", "short and polite"), (["short", "polite"], "2. polite")],
    ids=["the default", "a text", "a list"],
)
def test_task_completion_names_the_criteria(models: ScriptedModels, criteria: Any, said: str) -> None:
    reply = {"score": 70, "criteriaResults": [{"met": True}], "reasoning": "r"}
    score = models.score("llm_task_completion", turn(), reply, method="holistic", criteria=criteria)
    assert (score.passed, score.detail) == (True, {"criteria_results": [{"met": True}], "reasoning": "r"})
    assert said in models.asked[0]
    models.score("llm_task_completion", turn(), {}, {"verdict": 1}, criteria=criteria)
    assert criteria is None or said in models.asked[1]


@pytest.mark.parametrize(("word", "value"), [(True, 1.0), ("Yes", 1.0), (1, 1.0), ("FAIL", 0.0), ("no", 0.0), ("0", 0.0)])
def test_task_success_reads_words_for_yes_and_no(models: ScriptedModels, word: Any, value: float) -> None:
    score = models.score("llm_task_success", turn(), {"success": word, "reason": "r"})
    assert (score.value, score.passed, score.explanation) == (value, bool(value), "r")
    assert score.detail == {"success": bool(value), "reason": "r"}
    assert models.score("llm_task_success", turn(), {"success": word}, inverse=True).passed is not bool(value)


@pytest.mark.parametrize("reply", [{}, {"success": None}, {"success": "mostly"}, {"success": []}], ids=repr)
def test_task_success_without_a_boolean_is_an_error(models: ScriptedModels, reply: Any) -> None:
    assert models.score("llm_task_success", turn(), reply).error_type == "invalid_reply"


@pytest.mark.parametrize(
    ("changes", "params", "goal"),
    [
        pytest.param({"ground_truth": "truth"}, {"goal": "my goal"}, "my goal", id="the parameter wins"),
        pytest.param({"ground_truth": {"price": 7}}, {}, '{"price":7}', id="a ground truth that is no text"),
        pytest.param({"ground_truth": []}, {"goal": " "}, "find me a flight", id="then the input"),
    ],
)
def test_goal_accuracy_takes_the_first_goal_that_there_is(
    models: ScriptedModels, changes: dict[str, Any], params: dict[str, Any], goal: str
) -> None:
    assert models.score("llm_goal_accuracy", turn(**changes), SCORED, **params).value == 0.75
    mark = "[[[" if params.get("goal") == goal else "<<<"  # what the user configured is trusted, what came with the turn is not
    found = re.search(rf"^{re.escape(mark)}GOAL \w{{16}}\n(.*)\n\w{{16}}(?:\]{{3}}|>{{3}})$", models.asked[0], re.MULTILINE)
    assert found is not None
    assert found[1] == goal


@pytest.mark.parametrize("topics", [[], [" "]])
def test_topic_adherence_needs_a_topic(topics: list[str]) -> None:
    with pytest.raises(oa.ConfigError):
        oa.get_metric("llm_topic_adherence", allowed_topics=topics)
    assert oa.get_metric("llm_topic_adherence").evaluate(turn()).error_type == "missing_parameter"


# --- tools


def test_tool_correctness_trusts_the_turn_more_than_the_judge(models: ScriptedModels) -> None:
    definitions = [{"type": "function", "name": "search", "description": "finds"}]
    score = models.score("llm_tool_correctness", turn(tool_definitions=definitions), TOOLS, SCORED)
    assert score.detail["tools_called"] == [{"name": call["name"], "parameters": call["arguments"]} for call in CALLS]
    assert score.detail["available_tools"] == [{"name": "search", "description": "finds"}]
    assert score.detail["user_input"] == "a flight"
    assert "made up" not in models.asked[1]


def test_tool_correctness_takes_the_judge_s_lists_where_the_turn_knows_nothing(models: ScriptedModels) -> None:
    score = models.score("llm_tool_correctness", turn(tool_calls=None), TOOLS, SCORED)
    assert (score.detail["tools_called"], score.detail["available_tools"]) == ([{"name": "made up"}], [{"name": "made up"}])
    assert "made up" in models.asked[1]


@pytest.mark.parametrize(("given", "value"), [(["YES", {"verdict": "1"}], 1.0), ([NO, True, "beyond the calls", 7], 0.5)])
def test_argument_correctness_is_the_share_of_yes(models: ScriptedModels, given: list[Any], value: float) -> None:
    score = models.score("llm_argument_correctness", turn(), TOOLS, {"verdicts": given}, {"reason": "because"})
    assert (score.value, score.detail["reason"], score.explanation) == (value, "because", "because")
    assert (score.detail["user_input"], score.detail["verdicts"]) == ("a flight", given[:2])
    models.score("llm_argument_correctness", turn(), {}, {"verdicts": [YES, NO]}, {})
    assert ("the limit is made up" in models.asked[2], "0.50" in models.asked[2]) == (True, True)


@pytest.mark.parametrize(
    "reply", [{}, {"verdicts": None}, {"verdicts": [YES]}, {"verdicts": [YES, "maybe"]}, {"verdicts": [YES, {}]}]
)
def test_argument_correctness_guesses_no_verdict(models: ScriptedModels, reply: Any) -> None:
    assert models.score("llm_argument_correctness", turn(), TOOLS, reply).error_type == "invalid_reply"


# --- plan


@pytest.mark.parametrize("name", PLANS)
def test_plans_are_passed_on_and_shown(models: ScriptedModels, name: str) -> None:
    score = models.score(name, turn(), TASK, {"plan": ["go there", " ", None, "come back"]}, SCORED)
    assert (score.detail["task"], score.detail["plan"]) == ("a flight", ["go there", "come back"])
    assert "2. come back" in models.asked[2]
    assert "search, then filter" in models.asked[1]


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("plan", [[], ["", " "]])
def test_no_plan_is_vacuous_after_two_questions(models: ScriptedModels, name: str, plan: list[str]) -> None:
    score = models.score(name, turn(), TASK, {"plan": plan})
    assert (score.value, score.passed, score.detail) == (1.0, True, {"vacuous": True, "task": "a flight", "plan": []})


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("reply", [{}, {"plan": None}, {"plan": "search"}])
def test_a_missing_plan_is_an_error(models: ScriptedModels, name: str, reply: Any) -> None:
    assert models.score(name, turn(), TASK, reply).error_type == "invalid_reply"


# --- what the judge reads


def test_the_judge_reads_the_course_of_the_turn(models: ScriptedModels) -> None:
    prompt = {"gen_ai.request.model": "m-1", "gen_ai.input.messages": "all of the prompt"}
    course = {
        "spans": [
            {"id": "1", "name": "chat", "attributes": prompt},
            {"id": "2", "parent": "1", "name": "execute_tool", "attributes": {"x": "y"}},
        ],
        "tool_calls": [
            {"name": "search", "span_id": "2", "arguments": {"q": "x"}, "result": "r" * 9_000, "error": {"type": "Timeout"}},
            {"name": "unseen", "arguments": {"text": "a" * 9_000}, "permission_denied": True},
        ],
        "messages": [
            {"role": "assistant", "content": "of an earlier turn", "tool_calls": [{"name": "search"}]},
            {"role": "user", "content": "find me a flight"},
            {"role": "assistant", "content": "first I search", "tool_calls": [{"name": "search"}]},
        ],
        "context": ["what was retrieved"],
        "error": {"type": "Broken", "message": "off"},
    }
    models.score("llm_confidence", turn(**course), {"confidence": 1})
    asked = models.asked[0]
    shown = (
        "model m-1",
        'search(q="x") → error: Timeout',
        "unseen",
        "permission denied",
        "first I search",
        "retrieved",
        "Broken: off",
    )
    assert [part for part in shown if part not in asked] == []
    assert [part for part in ("all of the prompt", "of an earlier turn") if part in asked] == []
    assert len(asked) < 6_000


def test_ten_thousand_calls_make_a_question_of_bounded_length(models: ScriptedModels) -> None:
    many = turn(tool_calls=[{"name": f"tool-{place}", "arguments": {"q": "x" * 50}} for place in range(10_000)])
    models.score("llm_tool_correctness", many, TOOLS, SCORED)
    assert all(len(asked) < 50_000 for asked in models.asked)
    assert "tool-0" in models.asked[0]
    assert "tool-9999" in models.asked[0]
    assert "9800 calls" in models.asked[1]
