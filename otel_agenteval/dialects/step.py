"""Define span roles, and the class :class:`Step`, which contains a span's GenAI data."""

from __future__ import annotations

import sys
from operator import attrgetter
from typing import Any

from ..core.turn import Document, ErrorInfo
from ..core.wellformed import MOST, SHORT, bounded_name
from ..spans.record import SpanRecord

AGENT, WORKFLOW, LLM, TOOL, RETRIEVAL, EMBEDDING = "agent", "workflow", "llm", "tool", "retrieval", "embedding"
RERANK, GUARDRAIL, MEMORY, CHAIN, HANDOFF, SETUP = "rerank", "guardrail", "memory", "chain", "handoff", "setup"
INNER = "inner"
"""Role of a framework's internal step, such as a cycle, plan, or task in an agent's loop."""
UNKNOWN = "unknown"
"""Role of a span from a GenAI instrumentation if the span doesn't show its actual role yet."""

ROOTS = (AGENT, WORKFLOW, CHAIN)
"""Roles of spans that can contain a whole turn. If several spans have content, the earliest role in this list takes precedence."""
ROOT_ROLES = frozenset(ROOTS)
CONVERSATION_NAMES = (
    "session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "chat_id", "chatId",
)  # fmt: skip
"""Usual names of conversation IDs in an application's metadata or inputs."""
NO_FAILURES = frozenset(("GeneratorExit", "ParentCommand", "GraphInterrupt", "NodeInterrupt", "GraphBubbleUp", "ToolInterrupt",
                         "ApprovalRequired", "CallDeferred"))  # fmt: skip
"""Exceptions that don't indicate an error, for example because a run waits for a person's approval."""


class Step:
    """GenAI data of one span. Most content is parsed on first use."""

    role: str | None = None
    agent: str | None = None
    agent_is_class: bool = False
    """True if ``agent`` is only the name of a framework's class. If a tool runs the agent, use the tool's name instead."""
    framework: str | None = None
    model: str | None = None
    request_model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    service_tier: str | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    time_to_first_token_s: float | None = None
    conversation_id: str | None = None
    user_id: str | None = None
    conversation_keys: tuple[str, ...] = ()
    deferred: bool = False
    """True if the model is called only when the application reads the stream, possibly after the span has ended."""
    duration_s: float | None = None
    """Duration of the span's work in seconds, if the work takes longer than the span."""
    answer_only: bool = False
    """True for a span that contains only a model's answer, because the request's span ended earlier."""
    verbatim: bool = False
    """True for a model call as sent over the network. Its messages are complete, unlike the messages of spans around it."""
    loop: bool = False
    """True for a span with an agent loop's total tokens. A model span is then a call only if no span below it is a call."""
    texts_only: bool = False
    """True for a model call whose messages lack tool requests. Messages in other spans take precedence."""
    secondhand: bool = False
    """True for a model call that has no span and is known only from a message. Such calls are ignored if any call has a span."""
    overwritten: bool = False
    """True for a span that covers all model calls in a run. Each call overwrote the preceding call's attributes."""
    counted: list[tuple[int | None, int | None]] | None = None
    """``(input tokens, output tokens)`` of each model call that has an event in this span."""
    recovered: bool = False
    """True if a run or call ended normally, which means that errors in the spans below were handled."""
    totals: tuple[int, int] | None = None
    """``(input tokens, output tokens)`` of a model call, which can include tokens of earlier calls in the same loop."""
    function: bool = False
    """True for an application's function whose decorator doesn't show a role. The function's name can identify a tool."""
    guesses_tokens: bool = False
    """True if tokens were estimated from texts. Token counts in spans below this span take precedence."""
    calls_model: bool = False
    """True for a run whose model calls don't have spans in this trace."""

    input_messages: Any = None
    """A model call's raw input messages, or an agent's user messages: text, JSON text, or structured values."""
    output_messages: Any = None
    logprobs: Any = None
    """Raw value that contains the log probabilities of the answer's tokens."""
    system: Any = None
    tool_definitions: Any = None
    input_value: Any = None
    """Input in which the dialect can't identify messages. A span with any role can have this input."""
    output_value: Any = None
    final_result: Any = None
    """Agent's final result, if the messages don't contain this result."""

    tool_name: str | None = None
    tool_unnamed: bool = False
    """True if ``tool_name`` isn't the name that models request. For example, several tools can share a class name."""
    tool_call_id: str | None = None
    tool_arguments: Any = None
    tool_result: Any = None
    tool_failed: bool = False
    permission_denied: bool = False
    gives_form: bool = False
    """True for a framework's tool that only structures the final answer."""
    tool_inputs: dict[str, Any] | None = None
    """Tool arguments by call ID, if the calls themselves don't contain arguments."""

    thread: str | None = None
    """ID that connects a turn's traces if each message is a separate trace. Later turns of the thread have the same ID."""
    begins: bool = False
    """True for a message's span that begins a turn in the thread."""
    handoff_to: str | None = None
    query: Any = None
    documents: list[Document] | None = None
    workflow: str | None = None

    limited: tuple[str, ...] = ()
    """Kinds of values that were truncated or dropped because of a limit: ``count``, ``amount``, ``name``."""
    inferred: bool = False
    """True if the role or some content was inferred."""

    def __init__(self, record: SpanRecord) -> None:
        self.record = record
        self.error: ErrorInfo | None = None


_NAMES = (
    "agent", "framework", "model", "request_model", "provider", "finish_reason", "response_id", "service_tier", "conversation_id", "user_id", "tool_name",
    "tool_call_id", "thread", "handoff_to", "workflow",
)  # fmt: skip
_COUNTS = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens")
_NUMBERS = (*_COUNTS, "cost_usd", "duration_s", "time_to_first_token_s")
_LARGEST = sys.float_info.max
_names_of, _numbers_of = attrgetter(*_NAMES), attrgetter(*_NUMBERS)


def limit(step: Step, refused: int) -> None:
    """Truncate long names, and remove out-of-range numbers. ``refused`` is the number of counts already rejected for this step."""
    if not refused and _is_within_limits(step):
        return
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


def _is_within_limits(step: Step) -> bool:
    """Return True if names and numbers are clearly within limits. This quick check succeeds for most spans."""
    numbers = [*filter(None, _numbers_of(step))]
    if numbers and not (min(numbers) > 0 and sum(numbers) <= MOST):
        return False
    try:
        return len("".join(filter(None, _names_of(step)))) <= SHORT
    except TypeError:  # a name that isn't a text
        return False
