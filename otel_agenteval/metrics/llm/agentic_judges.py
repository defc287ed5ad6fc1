"""These judged metrics evaluate the agent's task completion, tool use, plans, and steps. Each metric makes one to three judge
calls.

For most metrics, the judge reads the user's request and the agent's reasoning, steps, answer, and error. The step of a tool
call contains the arguments, and the result or error. Long arguments and results are shortened. If a turn has more than
100 steps, or if the steps exceed about 16,000 characters, the middle steps are omitted. If a turn has no spans, its steps are the
retrieval queries, tool calls, hand-offs, and the agent's comments on its tool calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Predicate

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import ToolCall, Turn
from ..lib import applies
from ..lib.replies import (
    as_boolean,
    entries,
    invalid,
    judged_true,
    number_within,
    numbered,
    reason_of,
    reply_details,
    scored,
    texts,
    verdict_of,
)
from ..lib.steps import calls_as_text, ends_of, failure_of, shortened, tools_as_text, trace_of
from ..lib.values import reference
from ..prompts import SCORE, Prompts
from ..registry import EPSILON, Asks, Result, metric, skip, vacuous

_PROMPTS = Prompts("agentic_judges")

Detail = dict[str, Any]

_CRITERIA = (
    "The answer addresses what was asked.",
    "The answer is complete and can be acted on.",
    "No step that the task needs was left out.",
)
_THRESHOLDS = {"two_stage": 0.5, "holistic": 0.7}


def _judged(reply: Mapping[str, Any], detail: Detail, key: str = "score") -> Result:
    detail["reason"] = reason_of(reply)
    return Result(number_within(reply, 0, 1, key), detail=detail, explanation=detail["reason"])


# --- task


@metric(
    needs=("input", "output"),
    uses=("context",),
    references=("evaluation_criteria", "passing_score"),
    version="2",
    aliases={
        "agenteval:llm_task_completion": {"method": "holistic"},
        "pandaprobe:task_completion": {"method": "two_stage", "threshold": 0.5},
        "trusys:task-completion": {"method": "two_stage"},
        "agenteval:TaskCompletionMetric": {"method": "holistic"},
    },
)
def llm_task_completion(
    turn: Turn,
    judge: Asks,
    *,
    method: Literal["two_stage", "holistic"] = "two_stage",
    criteria: str | list[str] | None = None,
    threshold: float | None = None,
) -> Result:
    """Rate how fully the turn completed the user's task, from 0 to 1.

    The method ``two_stage`` makes two judge calls. The first call extracts the task and its factual outcome. The second call
    returns a score from 0 to 1:

    | score | meaning |
    |---|---|
    | 1 | fully completed |
    | 0.75 to 0.99 | completed, except for minor aspects |
    | 0.5 to 0.74 | partly completed |
    | 0.25 to 0.49 | mostly not completed |
    | below 0.25 | not addressed |

    The method ``holistic`` makes one judge call. The judge rates from 0 to 100 how well the turn meets ``criteria``. The value is
    this rating divided by 100.

    Empty answers are also judged. If the judge returns a number outside the scale, the score is an error.

    Parameters:
        method: How the judge evaluates the turn: with two calls (``two_stage``) or one call (``holistic``), as described above.
        criteria: One criterion, or a list of criteria. The default is the turn's reference ``evaluation_criteria``. If that is also
            missing, ``holistic`` requires that the answer is relevant, complete, and actionable, and that no steps are missing.
        threshold: Lowest passing value. The default is the turn's reference ``passing_score`` (0 to 100). If that is also missing,
            the default is 0.5 for ``two_stage`` and 0.7 for ``holistic``.

    Detail: ``task``, ``outcome``, and ``reason`` for ``two_stage``, or ``criteria_results`` and ``reasoning`` for ``holistic``.
    """
    criteria = reference(turn, criteria, "evaluation_criteria")
    if method == "holistic":
        reply = judge.ask(
            "score",
            _PROMPTS["completed"],
            trace_of(turn),
            '{"criteriaResults": [{"criterion": "<criterion>", "reason": "<why>", "met": <true or false>}], '
            '"reasoning": "<why this score>", "score": <0 to 100>}',
            criteria={"criteria": criteria or _CRITERIA},
        )
        found = scored(reply, top=100, why="reasoning", criteria_results="criteriaResults")
    else:
        form = '{"task": "<what the user wanted>", "outcome": "<what was done and answered>"}'
        extracted = judge.ask("extract", _PROMPTS["outcome"], trace_of(turn), form)
        detail = reply_details(extracted, task="task", outcome="outcome")
        task = _PROMPTS["accomplished"]
        if criteria:
            task += "\nThe criteria say what an accomplished task is; where they differ from the scale, they win."
        material = {**detail, "user_input": turn.input, "final_answer": turn.output}
        form = '{"reason": "<why, in one or two sentences>", "verdict": <0 to 1>}'
        reply = judge.ask("verdict", task, material, form, criteria={"criteria": criteria} if criteria else None)
        found = _judged(reply, detail, "verdict")
    if threshold is None:
        threshold = float(turn.references.get("passing_score", 100 * _THRESHOLDS[method])) / 100
        found.passed = found.value is not None and found.value >= threshold - EPSILON
    return found


@metric(needs=("input", "output"), uses=("context",), boolean=True, version="2", aliases=("hpd:TaskSuccessEvaluator",))
def llm_task_success(turn: Turn, judge: Asks) -> Result:
    """Check that the task was fully completed.

    A single judge call returns true or false. Refusals and partial completions fail. Empty answers are also judged.

    Detail: ``success`` and ``reason``.
    """
    form = '{"reason": "<why, in one or two sentences>", "success": <true or false>}'
    return judged_true(judge.ask("success", _PROMPTS["succeeded"], trace_of(turn), form), "success")


@metric(needs=("output",), uses=("ground_truth",), version="2", aliases=("hpd:GoalAccuracyEvaluator",))
def llm_goal_accuracy(turn: Turn, judge: Asks, *, goal: str | None = None) -> Result:
    """Rate how well the answer achieves a goal, from 0 to 1.

    A single judge call returns the value. If the goal, the ground truth, and the input are all missing, the score is skipped as
    ``missing:ground_truth``.

    Parameters:
        goal: Goal that the answer should achieve. The default is the turn's ground truth or, if that is missing, the turn's input.

    Detail: ``reason``.
    """
    truth = jsonio.text_of(turn.ground_truth) if turn.ground_truth not in ([], {}) else None
    wanted = next((text for text in (goal, truth, turn.input) if text and text.strip()), None)
    if wanted is None:
        return skip("missing:ground_truth")
    by = {"goal": wanted} if goal and goal.strip() else None
    asked = {"user_input": turn.input or "(unknown)"} if wanted is not turn.input else {}
    material = {**({} if by else {"goal": wanted}), **asked, "answer": turn.output or "(empty)"}
    return scored(judge.ask("score", _PROMPTS["goal"], material, SCORE, criteria=by))


@metric(needs=("output",), version="2", aliases=("hpd:TopicAdherenceEvaluator",))
def llm_topic_adherence(
    turn: Turn, judge: Asks, *, allowed_topics: Annotated[list[str], Predicate(lambda items: any(item.strip() for item in items))]
) -> Result:
    """Rate how well the answer stays within the allowed topics, from 0 to 1.

    A single judge call returns the value.

    Parameters:
        allowed_topics: One or more topics, each as a name or a short description.

    Detail: ``reason``.
    """
    material = {"user_input": turn.input or "(unknown)", "answer": turn.output or "(empty)"}
    by = {"allowed_topics": [topic.strip() for topic in allowed_topics if topic.strip()]}
    return scored(judge.ask("score", _PROMPTS["topics"], material, SCORE, criteria=by))


# --- tools


@metric(needs=("input",), threshold=0.5, applies=applies.tools, version="2", aliases=("pandaprobe:tool_correctness",))
def llm_tool_correctness(turn: Turn, judge: Asks) -> Result:
    """Quality of the agent's tool choice, from 0 to 1. Superfluous, missing, or inferior tools lower the value.

    The first judge call extracts the user's request, the called tools, and the available tools. Known tool calls and
    tool definitions replace the extracted lists. The second call scores the choice of tools. If tools were available, turns
    without tool calls are also judged, because the agent might have needed a tool.

    Detail: ``user_input``, ``tools_called``, ``available_tools``, and ``reason``.
    """
    available = tools_as_text(turn.tool_definitions, most=_CALLS)
    calls = calls_as_text(turn.tool_calls or (), most=_CALLS, result_chars=0) or "(no tool was called)"
    course = {key: value for key, value in trace_of(turn, findings=False).items() if key != "final_answer"}
    if turn.tool_calls == []:
        course.setdefault("steps", "(no tool was called)")
    given = {"available_tools": available} if available else {}
    extracted = judge.ask(
        "extract",
        _PROMPTS["tools_seen"],
        {**course, **given},
        '{"user_input": "<what the user wanted>", "tools_called": [{"name": "<tool>", "parameters": {}}], '
        '"available_tools": [{"name": "<tool>", "description": "<what it does>"}]}',
    )
    keys = {key: key for key in ("user_input", "tools_called", "available_tools")}
    detail = {**reply_details(extracted, **keys), **_known_tools(turn)}
    called = detail["tools_called"] if turn.tool_calls is None else calls
    material = {"request": turn.input, "user_wanted": detail["user_input"], "tools_called": called}
    material["available_tools"] = available or detail["available_tools"]
    return _judged(judge.ask("score", _PROMPTS["tools_chosen"], material, SCORE), detail)


def _known_tools(turn: Turn) -> Detail:
    known: Detail = {}
    if turn.tool_calls is not None:
        first, last, left_out = ends_of(turn.tool_calls, _CALLS)
        shown_calls: list[Detail] = [_plain_call(call) for call in first]
        if left_out:
            shown_calls.append({"left_out": f"{left_out} calls"})
        known["tools_called"] = shown_calls + [_plain_call(call) for call in last]
    if turn.tool_definitions:
        known["available_tools"] = [
            {"name": tool.get("name"), "description": tool.get("description")} for tool in turn.tool_definitions[:_CALLS]
        ]
    return known


def _plain_call(call: ToolCall) -> Detail:
    found: Detail = {"name": call.name, "parameters": "(unknown)" if call.arguments is None else call.arguments}
    if call.error is not None:
        found["error"] = failure_of(call.error)
    return found


_CALLS = 200
"""Maximum number of tool definitions in a judge call, and of tool calls in a judge call about tool choice."""
_ARGUMENT_CHARS = 2_000
"""Maximum number of characters of each tool call's arguments in a judge call about arguments."""


@metric(
    needs=("input", "tool_calls"),
    threshold=0.5,
    applies=applies.a_tool_call,
    version="2",
    aliases=("pandaprobe:argument_correctness", "trusys:argument-correctness"),
)
def llm_argument_correctness(turn: Turn, judge: Asks) -> Result:
    """Share of the turn's tool calls whose arguments fit the user's request.

    The first judge call extracts the user's request, and the agent's reason for each tool call. The second call returns yes or no
    for each tool call, in order. The value is the share of yes verdicts. The third call explains this value.

    If the judge returns no verdicts, the value is 1 (vacuous). If the judge returns fewer verdicts than there are tool calls, the
    score is an error. Additional verdicts are ignored.

    Detail: ``user_input``, ``verdicts`` (as the judge returned them), and ``reason``.
    """
    if not (calls := turn.tool_calls):
        return vacuous(1.0)
    lines = calls_as_text(calls, most=None, argument_chars=_ARGUMENT_CHARS)
    named = {call.name for call in calls}
    tools = tools_as_text([tool for tool in turn.tool_definitions if str(tool.get("name")) in named], most=_CALLS)
    material: Detail = {"request": turn.input, "tool_calls": lines, "reasoning": turn.reasoning or "(unknown)"}
    form = '{"user_input": "<what the user wanted>", "tool_calls": [{"name": "<tool>", "parameters": {}, "reasoning": "<why, or empty>"}]}'
    extracted = judge.ask("extract", _PROMPTS["calls_seen"], material, form)
    detail: Detail = {"user_input": extracted.get("user_input")}
    known_calls = extracted.get("tool_calls")
    reasons = [reason_of(entry, "reasoning") for entry in known_calls] if isinstance(known_calls, list) else []
    found_before = [f"The user wanted: {extracted.get('user_input') or '(unknown)'}"]
    found_before += [f"Why call {number}: {reason}" for number, reason in enumerate(reasons, 1) if reason]
    material = {**material, "tools": tools or "(unknown)", "found_before": "\n".join(found_before)}
    task = f"{_PROMPTS['arguments_right']}\nThere are {len(calls)} calls: give one entry for each."
    form = '{"verdicts": [{"call": "<number and name>", "reason": "<what is wrong; null for yes>", "verdict": "<yes or no>"}]}'
    if not (given := entries(judge.ask("verdicts", task, material, form))):
        return vacuous(1.0, **detail, verdicts=[])
    if len(given) < len(calls):
        raise MetricError("invalid_reply", f"verdicts: must be one per tool call ({len(calls)}), got {len(given)}")
    given = given[: len(calls)]
    right = [as_boolean(verdict_of(entry)) for entry in given]
    if None in right:
        raise invalid("verdict", "yes or no")
    value = right.count(True) / len(right)
    wrong = [reason_of(entry) or "no reason given" for entry, good in zip(given, right, strict=True) if not good]
    said = ", ".join("yes" if good else "no" for good in right)
    found = {"user_wanted": detail["user_input"] or turn.input, "verdicts": said, "objections": numbered(wrong) or "(none)"}
    task = f"{_PROMPTS['arguments_why']}\nThe score is {value:.2f} of 1."
    reason = judge.ask("reason", task, found, '{"reason": "<why this score>"}')
    detail.update(verdicts=given, reason=reason_of(reason))
    return Result(value, detail=detail, explanation=detail["reason"])


# --- steps and plan


_ANSWER_CHARS = 400
"""Maximum number of characters of the answer in the judge call that extracts the task."""


def _task_of(turn: Turn, judge: Asks) -> Any:
    material = {"user_input": turn.input, "final_answer": shortened(turn.output or "(unknown)", _ANSWER_CHARS)}
    return judge.ask("task", _PROMPTS["task"], material, '{"task": "<what the user wanted>"}').get("task")


@metric(
    needs=("input",),
    uses=("context",),
    threshold=0.5,
    applies=applies.several_steps,
    version="2",
    aliases=("pandaprobe:step_efficiency",),
)
def llm_step_efficiency(turn: Turn, judge: Asks) -> Result:
    """Efficiency of the agent's steps, from 0 to 1. Redundant calls and long-winded reasoning lower the value.

    The first judge call extracts the task. The second call scores the steps. Needless steps and speculation also lower the value.

    Detail: ``task`` and ``reason``.
    """
    detail: Detail = {"task": _task_of(turn, judge)}
    return _judged(judge.ask("score", _PROMPTS["efficient"], {**detail, **trace_of(turn)}, SCORE), detail)


@metric(needs=("input",), uses=("context",), threshold=0.5, version="2", aliases=("pandaprobe:confidence",))
def llm_confidence(turn: Turn, judge: Asks) -> Result:
    """Rate how confident the agent appears in its steps and answer, from 0 to 1.

    A single judge call rates how decisive and consistent the agent is, from 0 (not at all) to 1 (fully).

    Detail: ``confidence`` (the value) and ``reason``.
    """
    reply = judge.ask("confidence", _PROMPTS["confident"], trace_of(turn), '{"reason": "<why, or null>", "confidence": <0 to 1>}')
    detail: Detail = {}
    found = _judged(reply, detail, "confidence")
    detail["confidence"] = found.value
    return found


@metric(needs=("input",), threshold=0.5, applies=applies.room_for_a_plan, version="2", aliases=("pandaprobe:plan_adherence",))
def llm_plan_adherence(turn: Turn, judge: Asks) -> Result:
    """Rate how closely the agent follows its own plan, from 0 to 1.

    The first judge call extracts the task. The second call extracts the plan's explicit and implicit steps. If there is a plan, a
    third call scores the plan's execution: completeness, order, additions, and omissions. Otherwise, the value is 1 (vacuous).

    Detail: ``task``, ``plan``, and ``reason``.
    """
    return _judge_plan(turn, judge, _PROMPTS["adhered"])


@metric(needs=("input",), threshold=0.5, applies=applies.room_for_a_plan, version="2", aliases=("pandaprobe:plan_quality",))
def llm_plan_quality(turn: Turn, judge: Asks) -> Result:
    """Quality of the agent's plan, from 0 to 1.

    The first judge call extracts the task. The second call extracts the plan's explicit and implicit steps. If there is a plan, a
    third call scores its completeness, coherence, detail, and fit to the task. Otherwise, the value is 1 (vacuous).

    Detail: ``task``, ``plan``, and ``reason``.
    """
    return _judge_plan(turn, judge, _PROMPTS["planned_well"])


def _judge_plan(turn: Turn, judge: Asks, question: str) -> Result:
    task = _task_of(turn, judge)
    extracted = judge.ask("plan", _PROMPTS["plan"], {"task": task, **trace_of(turn, findings=False)}, '{"plan": ["<step>"]}')
    plan = texts(extracted, "plan")
    detail: Detail = {"task": task, "plan": plan}
    if not plan:
        return vacuous(1.0, **detail)
    reply = judge.ask("score", question, {"task": task, "plan": numbered(plan), **trace_of(turn, findings=False)}, SCORE)
    return _judged(reply, detail)
