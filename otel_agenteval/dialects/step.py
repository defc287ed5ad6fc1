"""The GenAI facts of one span: its role, and a step with all other facts."""

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
"""A step of an agent's own loop (a cycle, a plan, a task). It never stands for a whole turn."""
UNKNOWN = "unknown"
"""A GenAI instrumentation's span that doesn't show its role yet."""

ROOTS = (AGENT, WORKFLOW, CHAIN)
"""Roles of spans that can contain a whole turn. The content of earlier roles is read first."""
ROOT_ROLES = frozenset(ROOTS)
CONVERSATION_NAMES = (
    "session_id", "sessionId", "thread_id", "threadId", "conversation_id", "conversationId", "chat_id", "chatId",
)  # fmt: skip
"""Names that applications use for a conversation id in their own metadata or inputs."""
NO_FAILURES = frozenset(("GeneratorExit", "ParentCommand", "GraphInterrupt", "NodeInterrupt", "GraphBubbleUp", "ToolInterrupt",
                         "ApprovalRequired", "CallDeferred"))  # fmt: skip
"""Exceptions that aren't failures: a reader stops, LangGraph switches to another agent, or a run waits for a person."""


class Step:
    """The GenAI facts of one span. Fields that no dialect fills keep their defaults. Content stays raw until the turn needs it."""

    role: str | None = None
    agent: str | None = None
    agent_is_class: bool = False
    """True if the agent's name is only a framework's class. If a tool runs the agent, use the tool's name."""
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
    """True if the model is called when its stream is read, maybe after the span has ended."""
    duration_s: float | None = None
    """Duration of the work in seconds, if it is longer than the span."""
    answer_only: bool = False
    """True for a span that contains only a model's answer. The request's span ended earlier."""
    verbatim: bool = False
    """True for a model call as sent over the network. Its messages are complete, but an outer span's may not be."""
    loop: bool = False
    """True for a span with a whole loop's tokens. A model span counts as a call only if no call has a span below it."""
    texts_only: bool = False
    """True for a model call whose messages lack tool requests. Another layer's messages are better."""
    secondhand: bool = False
    """True for a model call that only a message reports. It counts only if no call has its own span."""
    overwritten: bool = False
    """True for a span that covers all model calls of a run, each of which overwrote the previous one."""
    counted: list[tuple[int | None, int | None]] | None = None
    """Input and output tokens of each model call that an event of the span describes."""
    recovered: bool = False
    """True if an agent's run reports a normal end, so failures inside it were handled."""
    totals: tuple[int, int] | None = None
    """Input and output tokens of a model call, possibly including earlier calls of the same loop."""
    function: bool = False
    """True for an application's function whose decorator doesn't state its role. Its name may show that it is a tool."""
    guesses_tokens: bool = False
    """True if tokens were estimated from texts. A span below with the provider's own count is better."""
    calls_model: bool = False
    """True for a run whose model calls have no spans in this trace."""

    input_messages: Any = None
    """Raw input messages of a model call, or an agent's user messages: text, JSON text or values."""
    output_messages: Any = None
    logprobs: Any = None
    """Raw value that contains the log probabilities of the answer's tokens."""
    system: Any = None
    tool_definitions: Any = None
    input_value: Any = None
    """Input of a span of any role, if the dialect doesn't identify it as messages."""
    output_value: Any = None
    final_result: Any = None
    """An agent's result, if the dialect writes it apart from messages."""

    tool_name: str | None = None
    tool_unnamed: bool = False
    """True if ``tool_name`` isn't the name that models request, for example because it is a class that all tools share."""
    tool_call_id: str | None = None
    tool_arguments: Any = None
    tool_result: Any = None
    tool_failed: bool = False
    permission_denied: bool = False
    gives_form: bool = False
    """True for a framework's tool that only structures the final answer."""
    tool_inputs: dict[str, Any] | None = None
    """Arguments by call id, if they are written apart from the calls."""

    thread: str | None = None
    """Id that the traces of a turn share if each message is a trace. Later turns share it too."""
    begins: bool = False
    """True for the message that begins a turn of its thread."""
    handoff_to: str | None = None
    query: Any = None
    documents: list[Document] | None = None
    workflow: str | None = None

    limited: tuple[str, ...] = ()
    """Kinds of the values that exceeded a limit and were cut or dropped: ``count``, ``amount``, ``name``."""
    inferred: bool = False
    """True if the role or some content was inferred, because no dialect found it."""

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
    """Cut long names, and remove negative or too large numbers. ``refused`` is the number of counts that ``as_int`` rejected."""
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
    """Return True if no name or number can exceed a limit. Most spans pass this quick check."""
    numbers = [*filter(None, _numbers_of(step))]
    if numbers and not (min(numbers) > 0 and sum(numbers) <= MOST):
        return False
    try:
        return len("".join(filter(None, _names_of(step)))) <= SHORT
    except TypeError:  # a name that isn't a text
        return False
