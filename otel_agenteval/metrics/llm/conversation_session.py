"""The judged (``llm_``) metrics evaluate a whole conversation, or an answer within it.

The conversation consists of the messages in ``history`` that ``messages`` doesn't repeat, followed by the turn's ``messages``. If
``messages`` is empty, the conversation is also empty. Messages with tool calls or results, but without text, don't count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

from annotated_types import Ge

from ...core import jsonio
from ...core.turn import Message, Turn
from ..code.conversation_session import says_something
from ..lib import applies
from ..lib.replies import Criteria, boolean, entries, g_eval, number, number_within, numbered, reason_of, reply_details, scored
from ..lib.steps import history_of, last_as_text, line_of, one_line, whole_conversation
from ..lib.values import Words
from ..prompts import SCORE, VERDICT, Prompts
from ..registry import Asks, Result, metric, skip, vacuous

_PROMPTS = Prompts("conversation_session")

Detail = dict[str, Any]
Count = Annotated[int, Ge(1)]
Chars = Annotated[int, Ge(1)]

_SHOWN = 200
"""Maximum number of facts, verdicts, and reasons in ``detail``. The metric's value also depends on the omitted entries."""


def _with_text(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if says_something(message)]


def _lines(messages: Iterable[Message], first: int = 1) -> str:
    return numbered((line_of(message.role, message.content) for message in messages), first)


# --- before the answer


def _answered(messages: Sequence[Message]) -> list[int]:
    """Return the positions of the agent's answers. Text in a message with a tool call is a step, not an answer."""
    return [
        place
        for place, message in enumerate(messages)
        if message.role == "assistant" and not message.tool_calls and (message.content or "").strip()
    ]


def _earlier_messages(turn: Turn) -> list[tuple[str, str]]:
    history = history_of(turn)
    if any(role == "user" for role, _ in history):
        return history
    places = _answered(turn.messages)
    before = turn.messages[: places[-2] + 1] if len(places) > 1 else []
    current = [(message.role, message.content) for message in before if message.content and message.content.strip()]
    known = {text for _, text in current}
    return [(role, text) for role, text in history if text not in known] + current


def _material(turn: Turn, history: str) -> Detail:
    return {"history": history or "(none)", "user_input": turn.input or "(unknown)", "answer": turn.output or "(empty)"}


@metric(
    needs=("output",), uses=("history",), applies=applies.later_turn, version="2", aliases=("hpd:ConversationCoherenceEvaluator",)
)
def llm_conversation_coherence(turn: Turn, judge: Asks) -> Result:
    """Consistency of the answer with the conversation's facts, context, and persona, from 0 to 1.

    One judge call returns the value. The judge reads the turn's ``history``. If the history doesn't contain a user message, the
    judge also reads the turn's ``messages`` up to and including the next-to-last answer. If there are no earlier messages, the
    score is skipped as ``missing:history``.

    Detail: ``reason``.
    """
    if not (earlier := _earlier_messages(turn)):
        return skip("missing:history")
    return scored(judge.ask("score", _PROMPTS["coherent"], _material(turn, last_as_text(earlier)), SCORE))


@metric(needs=("output",), uses=("history",), applies=applies.later_turn, version="2", aliases=("hpd:GoalProgressionEvaluator",))
def llm_goal_progression(turn: Turn, judge: Asks, *, max_messages: Count = 10, max_chars: Chars = 200) -> Result:
    """Rate how much progress the answer makes toward the user's goal, from 0 to 1.

    One judge call returns the value. The judge reads the turn's ``history``. If the history doesn't contain a user message, the
    judge also reads the turn's ``messages`` up to and including the next-to-last answer.

    Parameters:
        max_messages: Maximum number of earlier messages that the judge reads. The latest messages take precedence.
        max_chars: Maximum number of characters that the judge reads from each earlier message.

    Detail: ``goal``, ``progression_reason``, and ``blockers``.
    """
    material = _material(turn, last_as_text(_earlier_messages(turn), max_messages, max_chars))
    form = (
        '{"goal": "<what the user wants in the end>", "progression_reason": "<how far the answer moves toward it, and why>", '
        '"blockers": ["<what still stands in the way>"], "score": <0 to 1>}'
    )
    reply = judge.ask("score", _PROMPTS["progress"], material, form)
    detail = reply_details(reply, goal="goal", progression_reason="progression_reason", blockers="blockers")
    return Result(number_within(reply, 0, 1), detail=detail, explanation=reason_of(reply, "progression_reason"))


@metric(needs=("output",), uses=("history",), applies=applies.later_turn, version="2", aliases=("hpd:MemoryAccuracyEvaluator",))
def llm_memory_accuracy(turn: Turn, judge: Asks, *, max_messages: Count = 15, max_chars: Chars = 300) -> Result:
    """Rate how accurately the answer uses facts from earlier turns, from 0 to 1.

    One judge call returns the value. The judge reads the turn's ``history``. If the history doesn't contain a user message, the
    judge also reads the turn's ``messages`` up to and including the next-to-last answer. If there are no earlier messages, the
    score is skipped as ``missing:history``.

    Parameters:
        max_messages: Maximum number of earlier messages that the judge reads. The latest messages take precedence.
        max_chars: Maximum number of characters that the judge reads from each earlier message.

    Detail: ``facts_referenced`` and ``memory_errors``.
    """
    if not (earlier := _earlier_messages(turn)):
        return skip("missing:history")
    reply = judge.ask(
        "score",
        _PROMPTS["remembered"],
        _material(turn, last_as_text(earlier, max_messages, max_chars)),
        '{"reason": "<what the answer takes from earlier turns, and why it is right or wrong>", "facts_referenced": ["<fact, and its turn>"], '
        '"memory_errors": ["<error, and the turn that shows it>"], "score": <0 to 1>}',
    )
    detail = reply_details(reply, facts_referenced="facts_referenced", memory_errors="memory_errors")
    return Result(number_within(reply, 0, 1), detail=detail, explanation=reason_of(reply))


@metric(
    needs=("output",), uses=("history",), applies=applies.later_turn, version="2", aliases=("hpd:RepetitionDetectionEvaluator",)
)
def llm_repetition(turn: Turn, judge: Asks, *, last_n: Count = 5) -> Result:
    """Novelty of the answer: 1 if it is entirely new, 0 if it repeats an earlier answer.

    One judge call compares the answer with the earlier answers in the turn's ``history`` or, if ``history`` is empty, in
    ``messages``. Blank answers don't count. If there are no earlier answers, the value is 1 (vacuous), and the judge isn't called.

    Parameters:
        last_n: Maximum number of earlier answers that the judge reads. The latest answers take precedence.

    Detail: ``reason``.
    """
    if turn.history:
        answers = [jsonio.text_of(earlier.get("output")) for earlier in turn.history]
    else:
        answers = [turn.messages[place].content or "" for place in _answered(turn.messages)[:-1]]
    if not (answers := [text for text in answers if text.strip()]):
        return vacuous(1.0)
    earlier = numbered(map(one_line, answers[-last_n:]))
    material = {"earlier_answers": earlier, "user_input": turn.input or "(unknown)", "answer": turn.output or "(empty)"}
    return scored(judge.ask("score", _PROMPTS["new"], material, SCORE))


# --- whole conversation


@metric(uses=("history",), threshold=0.5, version="2", aliases=("trusys:conversational-g-eval",))
def llm_conversational_g_eval(turn: Turn, judge: Asks, *, criteria: Criteria, steps: list[str] | None = None) -> Result:
    """Quality of the whole conversation, based on your own criteria (G-Eval).

    For each criterion, the first judge call derives evaluation steps, unless you set ``steps``. The second call follows the steps
    and returns a score from 0 to 10. The value is the mean of these scores, divided by 10. If a reply contains no steps, no reason,
    or a score outside this range, the metric's score is an error. If the conversation is empty, the score is skipped as
    ``missing:conversation``.

    Parameters:
        criteria: One criterion for a good conversation, or a list of criteria that are evaluated separately.
        steps: Evaluation steps for all criteria. By default, the judge derives them.

    Detail: ``steps``, ``score`` (0..10), and ``reason``. With several criteria: ``reason`` and ``criteria``, a list of objects with
    the keys ``criterion``, ``steps``, ``score``, and ``reason``.
    """
    if not (messages := _with_text(whole_conversation(turn))):
        return skip("missing:conversation")
    return g_eval(judge, criteria, steps, "a conversation between a user and an assistant", {"conversation": _lines(messages)})


@metric(uses=("history",), threshold=0.5, applies=applies.several_exchanges, version="2", aliases=("trusys:knowledge-retention",))
def llm_knowledge_retention(turn: Turn, judge: Asks) -> Result:
    """Share of the assistant's messages that retain the facts stated by the user.

    The metric makes two judge calls for each assistant message. The first call adds the user's new facts to the known facts. The
    second call checks that the message doesn't forget a known fact or ask for it again. If there are no assistant messages, the
    value is 1 (vacuous). If the conversation is empty, the score is skipped as ``missing:conversation``.

    Detail: ``data`` (the facts), ``verdicts`` (``yes`` for each message that forgets a fact), and ``reasons`` (for each ``yes``),
    each with at most 200 entries.
    """
    if not (messages := _with_text(whole_conversation(turn))):
        return skip("missing:conversation")
    places = [place for place, message in enumerate(messages) if message.role == "assistant"]
    if not places:
        return vacuous(1.0)
    facts: dict[str, Any] = {}
    forgot: list[bool] = []
    reasons: list[str | None] = []
    start = 0
    for place in places:
        new = _lines(messages[start:place], start + 1)
        task = f"{_PROMPTS['facts']}\nThese are the facts before message no. {place + 1} of the conversation."
        material = {"known_facts": _known(facts), "new_messages": new or "(none)"}
        extracted = judge.ask("knowledge", task, material, '{"data": {"<fact>": "<value>"}}')
        facts.update(data if isinstance(data := extracted.get("data"), dict) else {})
        after = _lines(messages[place + 1 :], place + 2) if place == places[-1] else ""
        material = {
            "known_facts": _known(facts),
            "said_before": new or "(nothing)",
            "message": messages[place].content or "(empty)",
        }
        if after:
            material["said_later"] = after
        task = f"{_PROMPTS['forgotten']}\nThe message is no. {place + 1} of the conversation."
        reply = judge.ask("verdict", task, material, VERDICT)
        forgot.append(boolean(reply, "verdict"))
        if forgot[-1]:
            reasons.append(reason_of(reply))
        start = place
    detail: Detail = {"data": dict(list(facts.items())[:_SHOWN]), "verdicts": _yes_or_no(forgot), "reasons": reasons[:_SHOWN]}
    return Result(forgot.count(False) / len(forgot), detail=detail, explanation=_first_reason(reasons))


def _known(facts: Mapping[str, Any]) -> str:
    return "\n".join(one_line(f"- {fact}: {jsonio.text_of(value)}") for fact, value in facts.items()) or "(none)"


def _yes_or_no(truths: Sequence[bool]) -> list[str]:
    return ["yes" if truth else "no" for truth in truths[:_SHOWN]]


def _first_reason(reasons: Iterable[str | None]) -> str | None:
    return next((reason for reason in reasons if reason), None)


@metric(uses=("history",), threshold=0.5, version="2", aliases=("trusys:role-adherence",))
def llm_role_adherence(turn: Turn, judge: Asks, *, role: Words) -> Result:
    """Share of the assistant's messages that stay in the assigned role.

    One judge call lists the positions (from 0) of assistant messages that break the role. The value is ``(assistant messages -
    violations) / assistant messages``. Repeated positions, and positions of other messages, are ignored. If there are no assistant
    messages, the value is 1 (vacuous), and the judge isn't called. If the conversation is empty, the score is skipped as
    ``missing:conversation``.

    Parameters:
        role: Description of the role, in your words.

    Detail: ``verdicts`` (``index`` and ``reason`` of each violation, at most 200) and ``violations`` (number of violations).
    """
    messages = [(place, message) for place, message in enumerate(whole_conversation(turn)) if says_something(message)]
    if not messages:
        return skip("missing:conversation")
    if not (own := {place for place, message in messages if message.role == "assistant"}):
        return vacuous(1.0)
    reply = judge.ask(
        "verdicts",
        _PROMPTS["out_of_role"],
        {"conversation": "\n".join(f"[{place}] {line_of(message.role, message.content)}" for place, message in messages)},
        '{"verdicts": [{"statement": "<the words that fall out of the role>", "reason": "<which part of the role they break>", '
        '"index": <number of the message>}]}',
        criteria={"role": role},
    )
    violations: dict[int, str | None] = {}
    for entry in entries(reply):
        place = number(entry if isinstance(entry, Mapping) else {"index": entry}, "index")
        if place in own:  # false for a fractional position
            violations.setdefault(int(place), reason_of(entry))
    found = [{"index": place, "reason": reason} for place, reason in violations.items()]
    detail = {"verdicts": found[:_SHOWN], "violations": len(found)}
    return Result((len(own) - len(found)) / len(own), detail=detail, explanation=_first_reason(violations.values()))


@metric(uses=("history",), threshold=0.5, version="2", aliases=("trusys:conversation-relevancy",))
def llm_conversation_relevancy(turn: Turn, judge: Asks, *, window_size: Count = 10) -> Result:
    """Share of the assistant's answers that are relevant to the preceding conversation.

    An interaction consists of one or more user messages and the assistant's answer. For each interaction, one judge call checks
    that the answer is relevant to this interaction and the preceding ones, up to ``window_size`` in total. Unanswered user messages
    at the end don't count. If there are no interactions, the score is skipped as ``missing:conversation``.

    Parameters:
        window_size: Maximum number of interactions that one judge call reads. The default in promptfoo is 5.

    Detail: ``verdicts`` (``yes`` or ``no`` for each interaction) and ``reasons`` (for each ``no``), each with at most 200 entries.
    """
    interactions, unanswered = _interactions(_with_text(whole_conversation(turn)))
    if not interactions:
        return skip("missing:conversation")
    relevant: list[bool] = []
    reasons: list[str | None] = []
    before = 0
    for end, interaction in enumerate(interactions, 1):
        window = [message for part in interactions[max(0, end - window_size) : end] for message in part]
        before += len(interaction)
        after = _lines(unanswered, before + 1) if end == len(interactions) else ""
        behind = next(at for at, message in enumerate(reversed(interaction)) if message.role == "assistant")
        material = {"window": _lines(window, before - len(window) + 1), **({"said_later": after} if after else {})}
        task = f"{_PROMPTS['relevant']}\nThe message is no. {before - behind} of the conversation."
        reply = judge.ask("window", task, material, VERDICT)
        relevant.append(boolean(reply, "verdict"))
        if not relevant[-1]:
            reasons.append(reason_of(reply))
    detail: Detail = {"verdicts": _yes_or_no(relevant), "reasons": reasons[:_SHOWN]}
    return Result(relevant.count(True) / len(relevant), detail=detail, explanation=_first_reason(reasons))


def _interactions(messages: Sequence[Message]) -> tuple[list[list[Message]], list[Message]]:
    """Split messages into interactions (user messages and the next answer) and unanswered user messages."""
    found: list[list[Message]] = []
    current: list[Message] = []
    asked = answered = False
    for message in messages:
        if message.role == "user" and answered:
            found.append(current)
            current, answered = [], False
        current.append(message)
        asked = asked or message.role == "user"
        answered = answered or (message.role == "assistant" and asked)
    return ([*found, current], []) if answered else (found, current)
