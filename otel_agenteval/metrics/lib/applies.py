"""Which turns a metric says something about, where its needs alone do not tell.

A formula has a value for every turn, as the catalogue fixes it; for many turns of real traffic that value is the same whatever the agent
did. Such turns are left out where turns are scored: a predicate of ``metric(applies=…)`` gives the reason, or None where the metric
applies. The first line of its docstring completes "applies to …". They are asked on the agent's thread too: a few attribute reads each.

Reasons: ``missing:<fact>`` where somebody could give the fact (docs/reference/metrics/facts.md says how), ``not_applicable:<why>`` where the turn
is of another kind.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.turn import Message, Turn
from .agents import interactions_of, participants
from .code import code_blocks
from .media import attachments_of, media_of, modalities_of

Params = Mapping[str, Any]

MINIMISED_KEYS = ("user_id", "email", "phone", "address", "ssn", "credit_card", "password", "api_key", "token")
"""Metadata that an answer has no reason to repeat."""
_MESSAGES_TO_ORGANIZE = 10
_MESSAGES_TO_ADAPT = 5
_SCANNED = 1_000_000


def _states(turn: Turn, *names: str) -> bool:
    """Whether the turn's metadata or one of its spans has one of these."""
    return any(turn.metadata.get(name) is not None for name in names) or any(
        span.attributes.get(name) is not None for span in turn.spans for name in names
    )


# --- several agents


def an_interaction(turn: Turn, params: Params) -> str | None:
    """Turns in which an agent called another one or wrote to it"""
    return None if interactions_of(turn) else "missing:interactions"


def three_agents(turn: Turn, params: Params) -> str | None:
    """Turns with messages between three agents or more: of two, the shape is always the same"""
    found = interactions_of(turn)
    if not found:
        return "missing:interactions"
    return None if len(participants(turn, found)) > 2 else "not_applicable:two_agents"


def typed_interactions(turn: Turn, params: Params) -> str | None:
    """Turns that were given their interactions with a ``type``: spans show calls and hand-offs only"""
    given: Any = turn.interactions
    return None if any(entry.get("type") or entry.get("message_type") for entry in given) else "missing:interactions"


def many_interactions(turn: Turn, params: Params) -> str | None:
    """Turns with ``min_interactions`` interactions or more, 10 unless set"""
    found = len(interactions_of(turn))
    if not found:
        return "missing:interactions"
    return None if found >= max(1, params.get("min_interactions", _MESSAGES_TO_ORGANIZE)) else "not_applicable:few_interactions"


def many_typed_interactions(turn: Turn, params: Params) -> str | None:
    """Turns that were given 10 interactions or more with a ``type``: spans show calls and hand-offs only"""
    return typed_interactions(turn, params) or many_interactions(turn, params)


def many_response_times(turn: Turn, params: Params) -> str | None:
    """Turns in which ``min_interactions`` interactions or more, 5 unless set, took a known time"""
    found = interactions_of(turn)
    if not found:
        return "missing:interactions"
    timed = sum(each.response_s is not None for each in found)
    return None if timed >= max(2, params.get("min_interactions", _MESSAGES_TO_ADAPT)) else "not_applicable:few_interactions"


def a_handoff(turn: Turn, params: Params) -> str | None:
    """Turns with a hand-off"""
    return None if turn.handoffs else "missing:handoffs"


def known_conflicts(turn: Turn, params: Params) -> str | None:
    """Turns that were given their conflicts or their interactions: spans show no conflicts."""
    return None if turn.conflicts or turn.interactions else "missing:conflicts"


def a_conflict(turn: Turn, params: Params) -> str | None:
    """Turns that were given a conflict"""
    return None if turn.conflicts else "missing:conflicts"


def roles(turn: Turn, params: Params) -> str | None:
    """Turns with an interaction whose sender has a role"""
    table = params.get("roles") or turn.agents
    if not table:
        return "missing:agents"
    return None if any(each.sender in table for each in interactions_of(turn)) else "missing:interactions"


# --- what nobody but the application knows


def session_signals(turn: Turn, params: Params) -> str | None:
    """Conversations with signals of their turns: scores of ``confidence``, ``loop_detection``, ``tool_correctness`` or ``coherence``"""
    return None if (turn.session or {}).get("traces") else "missing:session"


def consent(turn: Turn, params: Params) -> str | None:
    """Turns whose user's consent is known"""
    return None if params.get("consent") or turn.metadata.get("consent") else "missing:consent"


def privacy_spent(turn: Turn, params: Params) -> str | None:
    """Turns that say what they spend of a privacy budget"""
    spent = turn.privacy or {}
    known = spent.get("epsilon") is not None or spent.get("spent_before") is not None
    known = known or any("privacy.epsilon" in span.attributes for span in turn.spans)
    return None if known else "missing:privacy"


def sensitive_metadata(turn: Turn, params: Params) -> str | None:
    """Turns whose metadata has a value for one of ``keys``"""
    metadata = turn.metadata
    known = metadata and any(metadata.get(key) not in (None, "") for key in params.get("keys", MINIMISED_KEYS))
    return None if known else "missing:metadata"


def energy(turn: Turn, params: Params) -> str | None:
    """Turns whose energy was measured, and all with a limit of your own: estimates of one turn stay far below the default one"""
    if params.keys() & {"threshold_kwh", "threshold", "estimate"}:
        return None
    return None if _states(turn, "energy_kwh", "energy.kwh") else "missing:energy"


def carbon(turn: Turn, params: Params) -> str | None:
    """Turns whose carbon or energy was measured, and all with a limit of your own: estimates of one turn stay far below the default one"""
    if params.keys() & {"threshold_kg", "threshold", "estimate"}:
        return None
    return None if _states(turn, "carbon_kg", "carbon.kg", "energy_kwh", "energy.kwh") else "missing:energy"


# --- the kind of a turn


def _has_media(turn: Turn) -> bool:
    return any(modalities_of(attachment) for attachment in attachments_of(turn))


def media(turn: Turn, params: Params) -> str | None:
    """Turns with an image, a sound or a video"""
    return None if _has_media(turn) else "missing:image"


def image(turn: Turn, params: Params) -> str | None:
    """Turns with an image"""
    return None if media_of(turn, "image") else "missing:image"


def video(turn: Turn, params: Params) -> str | None:
    """Turns with a video"""
    return None if media_of(turn, "video") else "missing:video"


def recording(turn: Turn, params: Params) -> str | None:
    """Turns with a recording"""
    return None if media_of(turn, "audio") else "missing:audio"


def audio(turn: Turn, params: Params) -> str | None:
    """Turns with a sound, or a transcript of one"""
    return None if turn.references.get("transcript") or media_of(turn, "audio") else "missing:audio"


def code(turn: Turn, params: Params) -> str | None:
    """Answers with code"""
    output = turn.output
    if not output:
        return "missing:output" if output is None else "no_code"
    return None if len(output) > _SCANNED or code_blocks(output) else "no_code"


def a_tool_call(turn: Turn, params: Params) -> str | None:
    """Turns in which a tool was called"""
    return "not_applicable:no_tool_calls" if turn.tool_calls == [] else None


def tools(turn: Turn, params: Params) -> str | None:
    """Turns in which a tool was called, or could have been"""
    return "not_applicable:no_tools" if turn.tool_calls == [] and not turn.tool_definitions else None


def several_steps(turn: Turn, params: Params) -> str | None:
    """Turns with more than one step: one call of a model leaves nothing to be more direct"""
    if turn.tool_calls or turn.retrievals or len(turn.agent_runs) > 1 or turn.handoffs:
        return None
    return "not_applicable:one_step" if turn.tool_calls == [] and turn.llm_call_count == 1 else None


def room_for_a_plan(turn: Turn, params: Params) -> str | None:
    """Turns with more than one step, or with reasoning: where there could be a plan"""
    return None if turn.reasoning else several_steps(turn, params)


def _answers(message: Message) -> bool:
    return message.role == "assistant" and not message.tool_calls and bool((message.content or "").strip())


def said_before(turn: Turn, params: Params) -> str | None:
    """Turns of a conversation from the second on"""
    return None if turn.history or sum(map(_answers, turn.messages)) > 1 else "missing:history"


def several_exchanges(turn: Turn, params: Params) -> str | None:
    """Conversations in which the user spoke twice or more: nothing can be forgotten in the first answer"""
    if not turn.messages:
        return "missing:conversation"
    asked = sum(message.role == "user" and bool(message.content) for message in turn.messages)
    return None if asked > 1 else "not_applicable:one_exchange"


def question_and_answer(turn: Turn, params: Params) -> str | None:
    """Turns with a question and an answer"""
    if not (turn.input or "").strip():
        return "missing:input"
    return None if (turn.output or "").strip() else "missing:output" if turn.output is None else "empty_output"


def an_answer(turn: Turn, params: Params) -> str | None:
    """Turns with an answer that is not blank"""
    return "empty_output" if turn.output is not None and not turn.output.strip() else None
