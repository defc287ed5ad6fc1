"""Judges of what an agent did: the task, the tools, the plan, the steps. The model is asked once per stage; each call costs.

A judge reads the turn's course: request, reasoning, remarks, steps, answer and error. Of more than 100 steps the middle ones
are left out, and results, attributes and arguments are cut, so that a question keeps a bounded length.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Predicate

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import Turn
from ..lib import applies
from ..lib.replies import as_boolean, boolean, clamped, entries, invalid, numbered, reason_of, shown, texts, verdict_of
from ..lib.trace import calls_of, listed, trace_of
from ..registry import EPSILON, Asks, Result, metric, skip, vacuous

Detail = dict[str, Any]

_SCORE = '{"score": <0 to 1>, "reason": "<why, in one or two sentences>"}'
_CRITERIA = (
    "The answer addresses what was asked.",
    "The answer is complete and can be acted on.",
    "No step that the task needs was left out.",
)
_THRESHOLDS = {"two_stage": 0.5, "holistic": 0.7}


def _some_text(items: list[str]) -> bool:
    return any(item.strip() for item in items)


def _judged(reply: Mapping[str, Any], detail: Detail, key: str = "score") -> Result:
    """The score of a reply, 0..1, with its reason."""
    detail["reason"] = reason_of(reply)
    return Result(clamped(reply, 0, 1, key, detail), detail=detail, explanation=detail["reason"])


# --- task


@metric(
    needs=("input", "output"),
    uses=("context",),
    aliases={
        "agenteval:llm_task_completion": {"method": "holistic"},
        "pandaprobe:task_completion": {"method": "two_stage"},
        "trusys:task-completion": {"method": "two_stage"},
        "agenteval:TaskCompletionMetric": {},
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
    """How far the turn did what the user asked for.

    ``two_stage`` asks twice: for the task and what factually came of it, then for a verdict of 0..1, which is the value: 1 is
    done in full, 0.75 to 0.99 lacks minor aspects, 0.5 to 0.74 is done in part, 0.25 to 0.49 has significant gaps, below 0.25
    was not addressed. ``holistic`` asks once, for a score of 0..100 by criteria; the value is that divided by 100. An empty
    answer is judged too. A number outside its scale is moved to the bound.

    Parameters:
        method: ``two_stage`` or ``holistic``.
        criteria: a text or a list of texts to judge by; default for ``holistic``: the request is addressed, the answer is
            complete and can be acted on, no step is missing.
        threshold: passes from here; default 0.5 for ``two_stage`` and 0.7 for ``holistic``.

    Detail: ``task``, ``outcome`` and ``reason``, or ``criteria_results`` and ``reasoning``; ``clamped`` when the number was
    outside its scale.

    Source: PandaProbe task_completion, deepeval task completion (Trusys), AgentEval TaskCompletionMetric (holistic).
    """
    found = _holistic_completion(turn, judge, criteria) if method == "holistic" else _two_stage_completion(turn, judge, criteria)
    if threshold is None:
        found.passed = found.value is not None and found.value >= _THRESHOLDS[method] - EPSILON
    return found


def _two_stage_completion(turn: Turn, judge: Asks, criteria: str | list[str] | None) -> Result:
    extracted = judge.ask(
        "extract",
        "Say what the user wanted from the agent, and what came of it. The outcome is a plain report of what the agent did and "
        "answered, as the material shows it: no praise, no blame, no claim of success that the material does not show.",
        trace_of(turn),
        '{"task": "<what the user wanted>", "outcome": "<what was done and answered>"}',
    )
    detail = shown(extracted, task="task", outcome="outcome")
    material: Detail = {**detail, "user_input": turn.input, "final_answer": turn.output}
    if criteria:
        material["criteria"] = listed(criteria)
    reply = judge.ask(
        "verdict",
        "Judge how far the outcome accomplishes the task"
        + (", by the criteria. " if criteria else ". ")
        + "1: in full. 0.75 to 0.99: minor aspects are missing. 0.5 to 0.74: in part. 0.25 to 0.49: significant gaps. "
        "0 to 0.24: not addressed.",
        material,
        '{"verdict": <0 to 1>, "reason": "<why, in one or two sentences>"}',
    )
    return _judged(reply, detail, "verdict")


def _holistic_completion(turn: Turn, judge: Asks, criteria: str | list[str] | None) -> Result:
    reply = judge.ask(
        "score",
        "Judge how far the agent completed what the user asked for. Check each of the criteria, then give one score for the "
        "whole: 100 is completed in every respect, 0 is not at all.",
        {**trace_of(turn), "criteria": listed(criteria or _CRITERIA)},
        '{"score": <0 to 100>, "criteriaResults": [{"criterion": "<criterion>", "met": <true or false>, "reason": "<why>"}], '
        '"reasoning": "<why this score>"}',
    )
    detail = shown(reply, criteria_results="criteriaResults") | {"reasoning": reason_of(reply, "reasoning")}
    return Result(clamped(reply, 0, 100, detail=detail) / 100, detail=detail, explanation=detail["reasoning"])


@metric(needs=("input", "output"), uses=("context",), boolean=True, aliases=("hpd:TaskSuccessEvaluator",))
def llm_task_success(turn: Turn, judge: Asks) -> Result:
    """Whether the task was fully completed: yes or no.

    One question. A refusal, and a task that was done only in part, is no. An empty answer is judged too; a reply without a
    boolean is an error.

    Detail: ``success``, ``reason``.

    Source: HPD TaskSuccessEvaluator.
    """
    reply = judge.ask(
        "success",
        "Decide whether the agent fully completed the user's task. Only a task that appears wholly done is true; a refusal, a "
        "wrong result, and work that is incomplete or partial are false.",
        trace_of(turn),
        '{"success": <true or false>, "reason": "<why, in one or two sentences>"}',
    )
    success, reason = boolean(reply, "success"), reason_of(reply)
    return Result(success, detail={"success": success, "reason": reason}, explanation=reason)


@metric(needs=("output",), uses=("ground_truth",), aliases=("hpd:GoalAccuracyEvaluator",))
def llm_goal_accuracy(turn: Turn, judge: Asks, *, goal: str | None = None) -> Result:
    """How accurately the answer achieves a goal, 0..1.

    One question; the value is the judge's score, kept within 0..1. Trends only, unless a threshold is set. Skipped with
    ``missing:ground_truth`` when there is no goal, no ground truth and no input.

    Parameters:
        goal: what the answer should achieve; default the turn's ground truth, else its input.

    Detail: ``reason``; ``clamped`` when the score was outside 0..1.

    Source: HPD GoalAccuracyEvaluator.
    """
    truth = jsonio.text_of(turn.ground_truth) if turn.ground_truth not in ([], {}) else None
    wanted = next((text for text in (goal, truth, turn.input) if text and text.strip()), None)
    if wanted is None:
        return skip("missing:ground_truth")
    reply = judge.ask(
        "score",
        "Judge how accurately the answer achieves the goal. 1: exactly and in full. 0.5: in part. 0: not at all.",
        {"goal": wanted, "user_input": turn.input or "(unknown)", "answer": turn.output or "(empty)"},
        _SCORE,
    )
    return _judged(reply, {})


@metric(needs=("output",), aliases=("hpd:TopicAdherenceEvaluator",))
def llm_topic_adherence(turn: Turn, judge: Asks, *, allowed_topics: Annotated[list[str], Predicate(_some_text)]) -> Result:
    """How far the answer stays within the topics that it may speak about, 0..1.

    One question; the value is the judge's score, kept within 0..1. Trends only, unless a threshold is set.

    Parameters:
        allowed_topics: names or short descriptions of the topics; required, at least one.

    Detail: ``reason``; ``clamped`` when the score was outside 0..1.

    Source: HPD TopicAdherenceEvaluator.
    """
    reply = judge.ask(
        "score",
        "Judge how far the answer stays within the allowed topics. 1: all of it does. 0.5: about half of it does. 0: none of it "
        "does. Declining to speak about another topic is staying within them.",
        {
            "allowed_topics": numbered([topic for topic in allowed_topics if topic.strip()]),
            "user_input": turn.input or "(unknown)",
            "answer": turn.output or "(empty)",
        },
        _SCORE,
    )
    return _judged(reply, {})


# --- tools


@metric(applies=applies.tools, needs=("input",), uses=("context",), threshold=0.5, aliases=("pandaprobe:tool_correctness",))
def llm_tool_correctness(turn: Turn, judge: Asks) -> Result:
    """Whether the agent chose the right tools: none too many, none too few, none in place of a better one. 0..1.

    Two questions: what the user wanted, which tools were called and which there were; then a score of the choice, which is the
    value, kept within 0..1. Calls and definitions that the turn itself knows win over the judge's lists. A turn without tool
    calls is judged too: a tool may have been needed.

    Detail: ``user_input``, ``tools_called``, ``available_tools``, ``reason``; ``clamped`` when the score was outside 0..1.

    Source: PandaProbe tool_correctness.
    """
    known = _known_tools(turn)
    extracted = judge.ask(
        "extract",
        "List what the user wanted, the tools that the agent called with their parameters, and the tools that it could have "
        "called, as the material shows them. A list of which the material shows nothing stays empty.",
        {**trace_of(turn), **known},
        '{"user_input": "<what the user wanted>", "tools_called": [{"name": "<tool>", "parameters": {}}], '
        '"available_tools": [{"name": "<tool>", "description": "<what it does>"}]}',
    )
    detail = shown(extracted, user_input="user_input", tools_called="tools_called", available_tools="available_tools") | known
    reply = judge.ask(
        "score",
        "Judge the choice of tools for what the user wanted: were the right tools called, were tools called that were not "
        "needed, were needed tools not called, was a tool called where another one fits better? Judge the choice, not the "
        "parameters or the results. 1: the choice is right. 0.5: it is right in part. 0: it is wrong throughout.",
        {**detail, "request": turn.input},
        _SCORE,
    )
    return _judged(reply, detail)


def _known_tools(turn: Turn) -> Detail:
    """What the turn itself knows of tools: calls (also that there were none) and definitions."""
    known: Detail = {}
    if turn.tool_calls is not None:
        known["tools_called"] = calls_of(turn, _CALLS, result_chars=0)
    if turn.tool_definitions:
        known["available_tools"] = [
            {"name": tool.get("name"), "description": tool.get("description")} for tool in turn.tool_definitions[:_CALLS]
        ]
    return known


_CALLS = 200
"""Tools and calls that are listed where their choice is judged."""


@metric(
    applies=applies.a_tool_call,
    needs=("input", "tool_calls"),
    threshold=0.5,
    aliases=("pandaprobe:argument_correctness", "trusys:argument-correctness"),
)
def llm_argument_correctness(turn: Turn, judge: Asks) -> Result:
    """Share of the turn's tool calls whose arguments are right for what the user asked.

    Three questions: what was asked and called; a verdict of yes or no for each call, in order; a reason for the score. The
    value is ``yes / calls``. Without tool calls it is 1 and vacuous, and no model is asked; with an empty list of verdicts it is
    1 and vacuous after the second question. Fewer verdicts than calls is an error, those beyond the calls are ignored.

    Detail: ``user_input``, ``verdicts`` (as the judge gave them), ``reason``.

    Source: PandaProbe argument_correctness, deepeval argument correctness (Trusys).
    """
    calls = turn.tool_calls
    if not calls:
        return vacuous(1.0)
    material = {"request": turn.input, "tool_calls": calls_of(turn)}
    extracted = judge.ask(
        "extract",
        "Say what the user wanted, and list the tool calls in the order of the material, each with its parameters and with the "
        "agent's reasoning for it where the material shows one.",
        {**material, "reasoning": turn.reasoning or "(unknown)"},
        '{"user_input": "<what the user wanted>", "tool_calls": [{"name": "<tool>", "parameters": {}, "reasoning": "<why, or empty>"}]}',
    )
    detail: Detail = {"user_input": extracted.get("user_input")}
    reply = judge.ask(
        "verdicts",
        f"Decide for each of the {len(calls)} tool calls, in their order, whether its arguments are right for what the user "
        "wanted and for what was known at that point: yes, or no when one is wrong, missing, or made up.",
        {**material, "extracted": extracted},
        '{"verdicts": [{"verdict": "<yes or no>", "reason": "<why not; null for yes>"}]} with one entry for each tool call',
    )
    given = entries(reply)
    if not given:
        return vacuous(1.0, **detail, verdicts=[])
    if len(given) < len(calls):
        raise MetricError("invalid_reply", f"the judge gave {len(given)} verdicts for {len(calls)} tool calls")
    given = given[: len(calls)]
    right = [as_boolean(verdict_of(entry)) for entry in given]
    if None in right:
        raise invalid("verdict", "yes or no")
    value = right.count(True) / len(right)
    wrong = [reason_of(entry) or "no reason given" for entry, good in zip(given, right, strict=True) if not good]
    reason = judge.ask(
        "reason",
        f"The arguments of an agent's tool calls got the score {value:.2f} of 1. Sum up why, in one or two sentences, from the "
        "objections to single calls; without objections all arguments were right.",
        {"user_input": detail["user_input"] or turn.input, "verdicts": given, "objections": numbered(wrong) or "(none)"},
        '{"reason": "<why this score>"}',
    )
    detail.update(verdicts=given, reason=reason_of(reason))
    return Result(value, detail=detail, explanation=detail["reason"])


# --- the way


def _task_of(turn: Turn, judge: Asks) -> Any:
    extracted = judge.ask(
        "task",
        "Say in one or two sentences what the user wanted from the agent, with the constraints that the user set. Do not say "
        "how the agent went about it.",
        {key: value for key, value in trace_of(turn).items() if key in ("user_input", "final_answer")},
        '{"task": "<what the user wanted>"}',
    )
    return extracted.get("task")


def _plan_of(turn: Turn, judge: Asks, task: Any) -> list[str]:
    extracted = judge.ask(
        "plan",
        "List the steps of the plan that the agent made for the task, in their order. A plan may be spelled out or implied in "
        "reasoning or remarks; every step must be evidenced by the material. What the agent only did, without having "
        "planned it, is no step of a plan. Without a plan the list is empty.",
        {"task": task, **trace_of(turn)},
        '{"plan": ["<step>"]}',
    )
    return texts(extracted, "plan")


@metric(
    applies=applies.several_steps, needs=("input",), uses=("context",), threshold=0.5, aliases=("pandaprobe:step_efficiency",)
)
def llm_step_efficiency(turn: Turn, judge: Asks) -> Result:
    """How directly the agent got there: without redundant calls, needless steps, speculation or long-winded reasoning. 0..1.

    Two questions: what the task was, then a score of the way, which is the value, kept within 0..1. Without spans the judge
    sees the rest of the turn.

    Detail: ``task``, ``reason``; ``clamped`` when the score was outside 0..1.

    Source: PandaProbe step_efficiency.
    """
    detail: Detail = {"task": _task_of(turn, judge)}
    reply = judge.ask(
        "score",
        "Judge how efficiently the agent went about the task. Take off for calls that repeat what was known, steps that the "
        "task did not need, work on a guess that nobody asked for, and reasoning that is longer than it has to be. Judge the "
        "way, not the answer. 1: no step could be left out. 0.5: about half of the effort was needed. 0: nearly all was wasted.",
        {**detail, **trace_of(turn)},
        _SCORE,
    )
    return _judged(reply, detail)


@metric(needs=("input",), uses=("context",), threshold=0.5, aliases=("pandaprobe:confidence",))
def llm_confidence(turn: Turn, judge: Asks) -> Result:
    """How confident the agent's course and answer are, 0..1: a signal for the metrics of a session.

    One question; the value is the judge's number, kept within 0..1. 1 is decisive throughout, 0.75 mostly, 0.5 mixed, 0.25
    hesitant, 0 lost. Without spans the judge sees the rest of the turn.

    Detail: ``confidence`` (as it counts), ``reason``; ``clamped`` when the number was outside 0..1.

    Source: PandaProbe confidence.
    """
    reply = judge.ask(
        "confidence",
        "Judge how confident the agent was, and rightly so: were its steps decisive and fit for the request, do they agree with "
        "one another and with the answer? Signs of low confidence are hedging, retries, reversals, guesses, and questions that "
        "were not needed. 1: decisive, fitting and consistent throughout. 0.75: mostly. 0.5: mixed. 0.25: hesitant or "
        "contradictory. 0: lost.",
        trace_of(turn),
        '{"confidence": <0 to 1>, "reason": "<why, or null>"}',
    )
    detail: Detail = {}
    found = _judged(reply, detail, "confidence")
    detail["confidence"] = found.value
    return found


@metric(
    applies=applies.room_for_a_plan, needs=("input",), uses=("context",), threshold=0.5, aliases=("pandaprobe:plan_adherence",)
)
def llm_plan_adherence(turn: Turn, judge: Asks) -> Result:
    """How strictly the agent followed the plan that it had made, 0..1.

    Three questions: the task; the steps of the plan, spelled out or implied; a score of how the execution followed them (all
    steps, their order, additions, omissions), which is the value, kept within 0..1. Without a plan it is 1 and vacuous after
    the second question. Without spans or reasoning the judge sees the rest of the turn.

    Detail: ``task``, ``plan``, ``reason``; ``clamped`` when the score was outside 0..1.

    Source: PandaProbe plan_adherence.
    """
    return _planned(
        turn,
        judge,
        "Judge how strictly the execution followed the plan: was every step done, in the plan's order, with nothing added that "
        "the plan does not have and nothing skipped? 1: exactly. 0.5: about half of it. 0: not at all.",
    )


@metric(applies=applies.room_for_a_plan, needs=("input",), uses=("context",), threshold=0.5, aliases=("pandaprobe:plan_quality",))
def llm_plan_quality(turn: Turn, judge: Asks) -> Result:
    """How good the plan was that the agent had made, 0..1.

    Three questions: the task; the steps of the plan, spelled out or implied; a score of the plan (complete, coherent, no
    better way, detailed enough, fit for the task), which is the value, kept within 0..1. Without a plan it is 1 and vacuous
    after the second question. Without spans or reasoning the judge sees the rest of the turn.

    Detail: ``task``, ``plan``, ``reason``; ``clamped`` when the score was outside 0..1.

    Source: PandaProbe plan_quality.
    """
    return _planned(
        turn,
        judge,
        "Judge the quality of the plan, not its execution: does it cover the whole task, does each step follow from those before "
        "it, is there no better way, is it detailed enough to act on, and does it serve this task and no other? 1: in every "
        "respect. 0.5: usable with clear weaknesses. 0: useless for the task.",
    )


def _planned(turn: Turn, judge: Asks, question: str) -> Result:
    task = _task_of(turn, judge)
    plan = _plan_of(turn, judge, task)
    detail: Detail = {"task": task, "plan": plan}
    if not plan:
        return vacuous(1.0, **detail)
    reply = judge.ask("score", question, {"task": task, "plan": numbered(plan), **trace_of(turn)}, _SCORE)
    return _judged(reply, detail)
