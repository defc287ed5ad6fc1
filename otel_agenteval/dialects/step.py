"""One span, understood."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any

from ..core import jsonio
from ..core.bounded import MOST, bounded_name, is_count
from ..core.turn import Document, ErrorInfo
from ..spans.record import SpanRecord

AGENT, WORKFLOW, LLM, TOOL, RETRIEVAL, EMBEDDING = "agent", "workflow", "llm", "tool", "retrieval", "embedding"
RERANK, GUARDRAIL, MEMORY, CHAIN, HANDOFF, SETUP = "rerank", "guardrail", "memory", "chain", "handoff", "setup"
INNER = "inner"
"""A step of an agent's own loop (a cycle, a plan, a task): it never stands for a whole turn."""
UNKNOWN = "unknown"
"""A GenAI instrumentation's span that has not said yet what it is."""

ROOT_ROLES = frozenset((AGENT, WORKFLOW, CHAIN))
"""What can hold a whole turn, topmost first."""


CONVERSATION_NAMES = (
    "session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "chat_id", "chatId",
)  # fmt: skip
"""What applications call a conversation's id in metadata or inputs of their own."""
NO_FAILURES = frozenset(("GeneratorExit", "ParentCommand", "GraphInterrupt", "NodeInterrupt", "GraphBubbleUp", "ToolInterrupt"))
"""Exceptions that only steer: a stream whose consumer stopped reading, LangGraph's way to another agent, its waiting for a person."""


class Step:
    """A span's GenAI facts. What no dialect gives is None; content stays raw until the turn needs it."""

    role: str | None = None
    agent: str | None = None
    agent_is_class: bool = False
    """Whether the agent's name is only that of a framework's class: where a tool runs it, the tool's name says more."""
    framework: str | None = None
    model: str | None = None
    request_model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    time_to_first_token_s: float | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    deferred: bool = False
    """Whether the model is called only when its stream is read, which may be after the span has ended."""
    duration_s: float | None = None
    """How long the work took, where the span itself lasts shorter."""
    apart: bool = False
    """A model's answer, written apart from the span that sent the request and ended before it."""
    verbatim: bool = False
    """A model call as it went over the wire: its messages are whole where those of a span around it may not be."""
    loop: bool = False
    """A model span that may stand around a whole loop: where its calls have spans of their own, it is none itself.

    On an agent's span: it alone says what the calls of its run used."""
    texts_only: bool = False
    """A model call whose messages were written without their requests for tools: another layer's are better."""
    secondhand: bool = False
    """A model call that only a message tells of: it counts where the calls have no spans of their own."""
    overwritten: bool = False
    """One span for all model calls of an agent's run, each written over the one before: only the last can be read."""
    recovered: bool = False
    """An agent's run that reports its own regular end: what failed on the way was overcome."""
    totals: tuple[int, int] | None = None
    """A model call's tokens, where they may include those of the calls before it in the same loop."""
    function: bool = False
    """A function of the application under a decorator that does not say what it is: by its name it can be a tool."""
    guesses_tokens: bool = False
    """Tokens that were counted in texts: a span below that has the provider's own count knows better."""
    calls_model: bool = False
    """An agent's run that called a model and was cancelled before any span of the request was written."""

    input_messages: Any = None
    """Raw messages before a model (or, on an agent, the user's): text, JSON text or values."""
    output_messages: Any = None
    logprobs: Any = None
    """What holds the logarithms of the probabilities of an answer's tokens, raw."""
    system: Any = None
    tool_definitions: Any = None
    input_value: Any = None
    """What went into a span of any role, in a dialect that does not say whether these are messages."""
    output_value: Any = None
    final_result: Any = None
    """An agent's result, where it is written apart from messages."""

    tool_name: str | None = None
    tool_unnamed: bool = False
    """Whether the name is only that of a class that all tools share."""
    tool_call_id: str | None = None
    tool_arguments: Any = None
    tool_result: Any = None
    tool_failed: bool = False
    permission_denied: bool = False
    gives_form: bool = False
    """Whether the tool is the framework's own, by which a model gives its answer a form."""
    tool_inputs: dict[str, Any] | None = None
    """Arguments by call id, where they are written apart from the calls."""

    thread: str | None = None
    """The id that the traces of a turn have in common, where each of its messages is a trace; also those of the turns after it."""
    begins: bool = False
    """Whether it is the message with which a turn of its thread begins."""
    handoff_to: str | None = None
    query: Any = None
    documents: list[Document] | None = None
    workflow: str | None = None

    limited: tuple[str, ...] = ()
    """The kind of each value that was left out or cut because it was out of bounds: ``count``, ``amount`` or ``name``."""
    inferred: bool = False
    """Whether something of it was read by its shape, for no dialect knows its spelling."""

    def __init__(self, record: SpanRecord) -> None:
        self.record = record
        self.error: ErrorInfo | None = None


_NAMES = (
    "agent", "framework", "model", "request_model", "provider", "finish_reason", "response_id", "conversation_id", "user_id", "tool_name",
    "tool_call_id", "thread", "handoff_to", "workflow",
)  # fmt: skip
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "reasoning_tokens")
_NUMBERS = (*_COUNTS, "cost_usd", "duration_s", "time_to_first_token_s")
_LARGEST = sys.float_info.max
_names_of, _numbers_of = attrgetter(*_NAMES), attrgetter(*_NUMBERS)


class _Refusals(threading.local):
    counts = 0
    """How many counts :func:`as_int` refused on this thread because they were out of bounds."""


refusals = _Refusals()


def limit(step: Step, refused: int) -> None:
    """Cut the names of a step, and take out the sums that its dialects made, where they are out of bounds.

    Args:
        step: a span that was read.
        refused: how many counts were refused while it was read.
    """
    found = ["count"] * refused
    for place, value in enumerate(_names_of(step)):
        if value.__class__ is str and (name := bounded_name(value)) is not value:
            setattr(step, _NAMES[place], name)
            found.append("name")
    for place, value in enumerate(_numbers_of(step)):
        if value is not None and not 0 <= value <= (MOST if value.__class__ is int else _LARGEST):
            setattr(step, _NUMBERS[place], None)
            found.append("count" if _NUMBERS[place] in _COUNTS else "amount")
    if found:
        step.limited = tuple(found)


def as_int(value: Any) -> int | None:
    """A token count: a whole number from 0 to 2⁶³ - 1, also written as text; anything else is unknown."""
    number: float
    if value.__class__ is int:
        number = value
    elif isinstance(value, bool) or value is None:
        return None
    else:
        try:  # a float has no more than sixteen digits
            number = int(value) if isinstance(value, str) and len(value) < _DIGITS and value.isdecimal() else float(value)
        except (TypeError, ValueError, OverflowError):
            return None
    if is_count(number):
        return int(number)
    refusals.counts += 1
    return None


_DIGITS = 40
"""A text with more digits is no count."""


def as_float(value: Any) -> float | None:
    """A finite number from 0, also written as text; anything else is unknown."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number < float("inf") else None


def as_text(value: Any) -> str | None:
    """Text that says something; anything else is unknown."""
    return value if value.__class__ is str and value else None


def first_int(values: Mapping[str, Any], names: Iterable[str]) -> int | None:
    """The first of these names that has a token count."""
    return next((count for name in names if (count := as_int(values.get(name))) is not None), None)


def first_text(value: Any) -> str | None:
    """The first text of a list (also written as JSON), or the text itself; empty texts say nothing."""
    if value.__class__ is str:
        if value[:1] != "[":
            return value or None
        value, _ = jsonio.loads_or_text(value)
    if isinstance(value, (list, tuple)):
        for item in value:
            if isinstance(item, str) and item:
                return item
    return None


PROVIDERS = frozenset((
    "openai", "azure", "anthropic", "google", "gemini", "vertex_ai", "vertexai", "bedrock", "mistral", "mistralai", "cohere", "groq", "ollama",
    "deepseek", "xai", "openrouter", "together_ai", "fireworks_ai", "litellm", "litellm_proxy", "unknown",
))  # fmt: skip
"""What is written before a model's name and a slash, and is no part of the name."""


def without_provider(model: str | None) -> tuple[str | None, str | None]:
    """The provider and the model of ``openai/gpt-4.1``; a name with another word before its slash (a hub's) is left whole."""
    if model is not None and "/" in model:
        provider, name = model.split("/", 1)
        if provider in PROVIDERS and name:
            return (None if provider == "unknown" else provider), name
    return None, model
