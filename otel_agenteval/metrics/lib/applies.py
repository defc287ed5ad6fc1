"""Predicates that return a skip reason if a metric doesn't apply to a turn.

A metric doesn't apply to turns in which its value wouldn't depend on the agent's behavior. ``metric(applies=…)`` sets a metric's
predicate. The predicate is called only for turns that have all fields in the metric's ``needs``.

The first line of a predicate's docstring completes the sentence "applies to …" in the documentation. Predicates can run on the
agent's thread, so they must be fast.

A reason such as ``missing:image`` names data that you can provide (see docs/reference/metrics/facts.md). Other reasons, such as
``not_applicable:no_tools``, name a property of the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.turn import Turn
from .agents import interactions_of, participants, read_once
from .code import code_blocks
from .media import attachments_of, media_of, modalities_of
from .values import fact

Params = Mapping[str, Any]

MINIMIZED_KEYS = ("user_id", "email", "phone", "address", "ssn", "credit_card", "password", "api_key", "token")
"""Metadata keys with sensitive values, which an answer shouldn't repeat."""
_MESSAGES_TO_ORGANIZE = 10
_MESSAGES_TO_ADAPT = 5
_SCANNED = 1_000_000


def _states(turn: Turn, *names: str) -> bool:
    return any(turn.metadata.get(name) is not None for name in names) or any(
        span.attributes.get(name) is not None for span in turn.spans for name in names
    )


# --- several agents


def an_interaction(turn: Turn, params: Params) -> str | None:
    """Turns in which an agent called, messaged, or handed off to another agent."""
    return None if interactions_of(turn) else "missing:interactions"


def three_agents(turn: Turn, params: Params) -> str | None:
    """Turns with at least three agents and an interaction between agents."""
    if not (found := interactions_of(turn)):
        return "missing:interactions"
    table = params.get("roles")
    agents = participants(turn if table is None else read_once(turn, table), found)
    return None if len(agents) > 2 else "not_applicable:two_agents"


def typed_interactions(turn: Turn, params: Params) -> str | None:
    """Turns for which you provide an interaction with a ``type`` or ``message_type``."""
    given: Any = turn.interactions
    return None if any(entry.get("type") or entry.get("message_type") for entry in given) else "missing:interactions"


def many_interactions(turn: Turn, params: Params) -> str | None:
    """Turns with at least ``min_interactions`` (default: 10) interactions."""
    if not (found := len(interactions_of(turn))):
        return "missing:interactions"
    return None if found >= max(1, params.get("min_interactions", _MESSAGES_TO_ORGANIZE)) else "not_applicable:few_interactions"


def many_typed_interactions(turn: Turn, params: Params) -> str | None:
    """Turns for which you provide at least 10 interactions, including one or more with a ``type`` or ``message_type``."""
    return typed_interactions(turn, params) or many_interactions(turn, params)


def many_response_times(turn: Turn, params: Params) -> str | None:
    """Turns with at least ``min_interactions`` (default: 5) interactions whose response time is known."""
    if not (found := interactions_of(turn)):
        return "missing:interactions"
    timed = sum(each.response_s is not None for each in found)
    return None if timed >= max(2, params.get("min_interactions", _MESSAGES_TO_ADAPT)) else "not_applicable:few_interactions"


def a_handoff(turn: Turn, params: Params) -> str | None:
    """Turns with a hand-off."""
    return None if turn.handoffs else "missing:handoffs"


def known_conflicts(turn: Turn, params: Params) -> str | None:
    """Turns for which you provide conflicts or interactions."""
    return None if turn.conflicts or turn.interactions else "missing:conflicts"


def a_conflict(turn: Turn, params: Params) -> str | None:
    """Turns for which you provide a conflict."""
    return None if turn.conflicts else "missing:conflicts"


def roles(turn: Turn, params: Params) -> str | None:
    """Turns with an interaction whose sender is in the role table."""
    if not (table := params.get("roles") or turn.agents):
        return "missing:agents"
    return None if any(each.sender in table for each in interactions_of(turn)) else "missing:interactions"


# --- facts that only the application has


def session_signals(turn: Turn, params: Params) -> str | None:
    """Conversations whose ``session`` contains traces."""
    return None if (fact(turn, "session") or {}).get("traces") else "missing:session"


def consent(turn: Turn, params: Params) -> str | None:
    """Turns for which the user's consent is known."""
    return None if params.get("consent") or turn.metadata.get("consent") else "missing:consent"


def privacy_spent(turn: Turn, params: Params) -> str | None:
    """Turns whose privacy cost (epsilon) is known."""
    spent = fact(turn, "privacy") or {}
    known = spent.get("epsilon") is not None or spent.get("spent_before") is not None
    known = known or any("privacy.epsilon" in span.attributes for span in turn.spans)
    return None if known else "missing:privacy"


def sensitive_metadata(turn: Turn, params: Params) -> str | None:
    """Turns whose metadata has a value for at least one of ``keys``."""
    metadata = turn.metadata
    known = metadata and any(metadata.get(key) not in (None, "") for key in params.get("keys", MINIMIZED_KEYS))
    return None if known else "missing:metadata"


def energy(turn: Turn, params: Params) -> str | None:
    """Turns with measured energy, and all turns if you set a limit or ``estimate``.

    By default, turns with only an estimate are excluded, because an estimate for one turn is far below the default limit.
    """
    if params.keys() & {"threshold_kwh", "threshold", "estimate"}:
        return None
    return None if _states(turn, "energy_kwh", "energy.kwh") else "missing:energy"


def carbon(turn: Turn, params: Params) -> str | None:
    """Turns with measured carbon or energy, and all turns if you set a limit or ``estimate``."""
    if params.keys() & {"threshold_kg", "threshold", "estimate"}:
        return None
    return None if _states(turn, "carbon_kg", "carbon.kg", "energy_kwh", "energy.kwh") else "missing:energy"


# --- the kind of a turn


def media(turn: Turn, params: Params) -> str | None:
    """Turns with an image, an audio recording, or a video."""
    return None if any(map(modalities_of, attachments_of(turn))) else "missing:image"


def image(turn: Turn, params: Params) -> str | None:
    """Turns with an image."""
    return None if media_of(turn, "image") else "missing:image"


def video(turn: Turn, params: Params) -> str | None:
    """Turns with a video."""
    return None if media_of(turn, "video") else "missing:video"


def recording(turn: Turn, params: Params) -> str | None:
    """Turns with an audio recording."""
    return None if media_of(turn, "audio") else "missing:audio"


def audio(turn: Turn, params: Params) -> str | None:
    """Turns with an audio recording or its transcript."""
    return None if turn.references.get("transcript") or media_of(turn, "audio") else "missing:audio"


def code(turn: Turn, params: Params) -> str | None:
    """Turns whose answer contains code."""
    if not (output := turn.output):
        return "missing:output" if output is None else "no_code"
    return None if len(output) > _SCANNED or code_blocks(output) else "no_code"


def a_tool_call(turn: Turn, params: Params) -> str | None:
    """Turns with a tool call."""
    return "not_applicable:no_tool_calls" if turn.tool_calls == [] else None


def tools(turn: Turn, params: Params) -> str | None:
    """Turns with a tool call or available tools, and turns whose tool calls are unknown."""
    return "not_applicable:no_tools" if turn.tool_calls == [] and not turn.tool_definitions else None


def several_steps(turn: Turn, params: Params) -> str | None:
    """All turns, except single model calls."""
    if turn.tool_calls or turn.retrievals or len(turn.agent_runs) > 1 or turn.handoffs:
        return None
    return "not_applicable:one_step" if turn.tool_calls == [] and turn.llm_call_count == 1 else None


def room_for_a_plan(turn: Turn, params: Params) -> str | None:
    """All turns, except single model calls without reasoning."""
    return None if turn.reasoning else several_steps(turn, params)


def later_turn(turn: Turn, params: Params) -> str | None:
    """Turns with known earlier turns or answers."""
    answers = sum(
        message.role == "assistant" and not message.tool_calls and bool((message.content or "").strip())
        for message in turn.messages
    )
    return None if turn.history or answers > 1 else "missing:history"


def several_exchanges(turn: Turn, params: Params) -> str | None:
    """Conversations with at least two user messages."""
    if not turn.messages:
        return "missing:conversation"
    asked = sum(message.role == "user" and bool(message.content) for message in turn.messages)
    return None if asked > 1 or (asked and turn.history) else "not_applicable:one_exchange"


def question_and_answer(turn: Turn, params: Params) -> str | None:
    """Turns with a question and an answer."""
    if not (turn.input or "").strip():
        return "missing:input"
    return None if (turn.output or "").strip() else "missing:output" if turn.output is None else "empty_output"


def an_answer(turn: Turn, params: Params) -> str | None:
    """Turns with an answer that isn't blank."""
    return "empty_output" if turn.output is not None and not turn.output.strip() else None
