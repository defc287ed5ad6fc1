"""Determine roles from a span's kind attribute or name."""

from __future__ import annotations

import re
from functools import lru_cache

from ..step import AGENT, CHAIN, EMBEDDING, GUARDRAIL, HANDOFF, INNER, LLM, MEMORY, RERANK, RETRIEVAL, SETUP, TOOL
from .keys import word_set, words_of

_WHOLE = {
    "chat_model": LLM, "chatmodel": LLM, "model_generation": LLM, "model_call": LLM, "model_request": LLM, "llm_call": LLM, "llm_request": LLM,
    "text_completion": LLM, "generate_content": LLM, "chat": LLM, "llm": LLM, "generation": LLM, "completion": LLM, "inference": LLM,
    "model": LLM, "generate": LLM, "chat_completion": LLM, "chat_completions": LLM, "model_invoke": LLM, "invoke_model": LLM,
    "execute_tool": TOOL, "tool": TOOL, "tool_call": TOOL, "tool_use": TOOL, "function": TOOL, "function_call": TOOL, "tool_execution": TOOL,
    "mcp_tool_call": TOOL, "tool_invocation": TOOL, "run_tool": TOOL, "call_tool": TOOL, "action": CHAIN, "tools": CHAIN, "tool_calls": CHAIN,
    "agent": AGENT, "invoke_agent": AGENT, "agent_run": AGENT, "run_agent": AGENT, "agent_invocation": AGENT, "agent_executor": AGENT,
    "create_agent": SETUP, "agent_step": INNER, "agent_turn": INNER, "plan": INNER, "step": INNER, "turn": INNER, "cycle": INNER,
    "execute_event_loop_cycle": INNER, "model_step": INNER, "model_chunk": INNER, "execute_task": INNER, "task": CHAIN,
    "invoke_workflow": CHAIN, "workflow": CHAIN, "workflow_run": CHAIN, "workflow_step": CHAIN, "chain": CHAIN, "graph": CHAIN, "pipeline": CHAIN,
    "flow": CHAIN, "crew": CHAIN, "node": CHAIN, "runnable": CHAIN, "prompt": CHAIN, "parser": CHAIN, "util": CHAIN, "session": CHAIN,
    "agent_session": CHAIN, "chat_session": CHAIN, "rag": RETRIEVAL, "retriever": RETRIEVAL, "retrieval": RETRIEVAL, "retrieve": RETRIEVAL, "vector_search": RETRIEVAL, "similarity_search": RETRIEVAL,
    "embedding": EMBEDDING, "embeddings": EMBEDDING, "embedder": EMBEDDING, "embed": EMBEDDING, "indexer": SETUP, "indexing": SETUP,
    "reranker": RERANK, "rerank": RERANK, "guardrail": GUARDRAIL, "guardrails": GUARDRAIL, "evaluator": SETUP, "evaluation": SETUP,
    "score": SETUP, "scorer": SETUP, "handoff": HANDOFF, "agent_handoff": HANDOFF, "memory": MEMORY,
}  # fmt: skip
_IN_ORDER: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("handoff", "handoffs")), HANDOFF),
    (frozenset(("embedding", "embeddings", "embedder", "embed")), EMBEDDING),
    (frozenset(("rerank", "reranker")), RERANK),
    (frozenset(("guardrail", "guardrails", "evaluator", "evaluation", "moderation")), GUARDRAIL),
    (frozenset(("retriever", "retrieval", "retrieve")), RETRIEVAL),
    (frozenset(("tool", "function")), TOOL),
    (frozenset(("llm", "generation", "completion", "completions", "chat", "inference", "lm")), LLM),
    (frozenset(("agent", "agentic")), AGENT),
    (frozenset(("step", "turn", "cycle", "iteration")), INNER),
    (frozenset(("workflow", "chain", "graph", "pipeline", "flow", "crew", "task", "runnable", "node")), CHAIN),
)
_BATCH = frozenset(("tool", "calls"))
OF_MODELS = word_set("""
    chat completion completions generate generation llm inference response responses messages stream invoke converse
""")
"""Words for operations that call a model if the span also has a model's name."""
_NO_KINDS = word_set("internal server client producer consumer unspecified default span event unknown")
FUNCTIONS = frozenset(("span", "default", "component", "unknown"))
"""Kinds of decorated application functions. These kinds don't show the function's role."""
_HELPERS = word_set("builder parser template router splitter converter writer store joiner memory formatter adapter history")
"""Last words of helper components' names. ``ChatPromptBuilder`` is a helper, although "chat" suggests a model."""
_LONGEST = 60


def role_of_kind(value: str) -> str | None:
    """Return the role that a kind such as ``TOOL`` or ``ai.toolCall`` indicates, or None."""
    if not value or len(value) > _LONGEST or "\n" in value:
        return None
    words = words_of(value)
    if not words or len(words) > 5:
        return None
    whole = "_".join(words)
    if whole in _NO_KINDS or words[-1] in _HELPERS:
        return None
    found = _WHOLE.get(whole)
    return found if found is not None else _role_in(frozenset(words))


def _role_in(words: frozenset[str]) -> str | None:
    return CHAIN if words >= _BATCH else next((role for wanted, role in _IN_ORDER if words & wanted), None)


_OPERATIONS = ("chat", "text_completion", "generate_content", "execute_tool", "invoke_agent", "create_agent", "embeddings", "retrieval",
               "invoke_workflow", "handoff")  # fmt: skip
_KIND_FIRST = re.compile(
    r"(?P<kind>llm|chat|tool|function|agent|generation|completion|embeddings?|retriever|retrieval|execute_tool|invoke_agent|handoff|tool[ _]call|agent[ _]run"
    r"|call[ _]llm|model)\s*(?:[:/ .\-]\s*|\(\s*['\"]?)(?P<name>[^'\")]+)",
    re.IGNORECASE,
)
_OF_HTTP = re.compile(r"(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|HTTP)\b")
_KIND_LAST = re.compile(
    r"(?P<name>.+?)[ .:/](?P<kind>llm|chat|tool|agent|generation|completion|workflow|retriever|embeddings?)", re.IGNORECASE
)
_AGENT = re.compile(r"agent:? ?(['\"`])([^'\"`\n]{1,100}?)(?:\[\d{1,9}\])?\1", re.IGNORECASE)
"""Pattern for a quoted agent name, without the number after the name: ``triage`` in ``Agent: 'triage[2]'``."""
_GRAPHS = frozenset(("graph", "crew", "swarm", "team"))
_NUMBERED = frozenset(("question", "message", "request", "exchange", "round"))


@lru_cache(1024)
def is_graph(name: str) -> bool:
    """Return True if a name, such as ``graph.invoke``, indicates a graph or team of agents."""
    return not _GRAPHS.isdisjoint(words_of(name)) and _OF_HTTP.match(name) is None


def agent_in(name: str) -> str | None:
    """Return the quoted agent name in a span's name such as ``Agent: 'triage' generate``, or None."""
    found = _AGENT.match(name) if name[:5].lower() == "agent" else None
    return found[2] if found is not None else None


@lru_cache(1024)
def is_agent(name: str) -> bool:
    """Return True if a span's name seems to be an agent's name, such as ``billing_agent``."""
    words = words_of(name)
    return len(words) > 1 and words[-1] == "agent" and "_".join(words) not in _WHOLE


@lru_cache(1024)
def is_turn(name: str) -> bool:
    """Return True if a span's name, such as ``turn`` or ``question 2``, indicates one turn."""
    words = words_of(name)
    return words[-1:] == ("turn",) or (name[-1:].isdecimal() and not _NUMBERED.isdisjoint(words[-1:]))


@lru_cache(1024)
def role_of_name(name: str) -> tuple[str | None, str | None]:
    """Return a role and the rest of a span's name: ``execute_tool get_weather`` → ``(TOOL, "get_weather")``."""
    if not name or len(name) > 200 or _OF_HTTP.match(name):
        return None, None
    if (agent := agent_in(name)) is not None:
        return AGENT, agent
    head, _, tail = name.partition(" ")
    if head in _OPERATIONS:
        return _WHOLE.get(head), tail.strip() or None
    for pattern in (_KIND_FIRST, _KIND_LAST):
        if (found := pattern.fullmatch(name.strip())) is not None:
            return role_of_kind(found["kind"]), found["name"].strip().strip("[]") or None
    words = words_of(name)
    if not words:
        return None, None
    whole = _WHOLE.get("_".join(words))
    return (whole if whole is not None else _role_in(frozenset(words))), None


_EVENT = re.compile(r"(?P<stem>.+)[.:](?P<word>[A-Za-z]+?)(?P<event>Start|Success|Error|Finish)?-\w+")
ENDS = frozenset(("success", "error", "finish"))


@lru_cache(1024)
def event_in(name: str) -> tuple[str, str] | None:
    """Split the name of an event's span: ``agent.toolStart-1`` → ``("agent.tool", "start")``. Return None for other names."""
    found = _EVENT.fullmatch(name) if "-" in name else None
    if found is None:
        return None
    stem, word, event = found["stem"], found["word"], found["event"]
    return (stem, word) if event is None else (f"{stem}.{word}", event.lower())


def role_of_stem(stem: str) -> tuple[str | None, str | None]:
    """Return the role and the rest of a stem from :func:`event_in`. The last word takes precedence: ``tool`` in ``agent.tool``."""
    role, rest = role_of_name(stem)
    return _WHOLE.get(stem.rpartition(".")[2]) or role, rest
