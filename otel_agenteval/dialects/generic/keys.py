"""Meaning of the names of attributes and JSON fields, in any spelling.

A name is split into words (``gen_ai.usage.inputTokens``: gen, ai, usage, input, tokens). This module never reads values, so each
name is classified once.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from .kinds import role_of_kind
from .words import MOST_NAMES, words_of

IN, OUT = "in", "out"

IN_WORDS = frozenset((
    "input", "inputs", "prompt", "prompts", "request", "query", "question", "history", "arg", "args", "kwargs", "arguments", "task",
    "questions", "instruction", "given", "params", "parameters",
))  # fmt: skip
OUT_WORDS = frozenset((
    "output", "outputs", "completion", "completions", "response", "responses", "result", "results", "choice", "choices", "answer",
    "answers", "generation", "generations", "generated", "candidate", "candidates", "reply", "return", "returned", "observation",
    "assistant",
))  # fmt: skip
_TEXT_IN = frozenset((
    "input", "inputs", "prompt", "question", "query", "task", "user_input", "user_message", "user_query", "user_prompt", "input_text",
    "input_value", "message", "user_msg", "goal", "request", "text", "content", "value",
))  # fmt: skip
_TEXT_OUT = frozenset((
    "output", "outputs", "completion", "response", "answer", "result", "final_output", "final_result", "reply", "output_text",
    "output_value", "response_text", "final_answer", "generated_text", "text", "content", "value", "message", "return_value",
))  # fmt: skip

_PLAIN_PREFIXES = (
    "http.", "url.", "net.", "network.", "server.", "client.", "db.", "messaging.", "rpc.", "user_agent.", "exception.", "thread.",
    "code.", "process.", "host.", "os.", "k8s.", "container.", "service.", "telemetry.", "deployment.", "cloud.", "faas.", "otel.",
    "peer.", "enduser.", "tls.", "browser.", "device.", "dns.", "feature_flag.", "aws.s3", "aws.sqs", "aws.dynamodb", "aws.request_id",
    "agenteval.", "gen_ai.evaluation.", "graphql.", "celery.", "signalr.", "aspnetcore.", "kestrel.", "jvm.", "destination.", "source.", "sampling.", "cloudevents.",
    "source_path", "file.", "geo.", "log.", "logger.", "webengine.", "vcs.", "cicd.", "test.", "artifact.", "error.", "hw.",
    "asyncio.", "fastapi.", "express.", "koa.", "nestjs.", "next.", "redis.", "sql.", "kafka.", "rabbitmq.", "temporal", "airflow", "jenkins.",
)  # fmt: skip
"""Attributes of other conventions. They show nothing about a model, whatever words they contain."""
_CARRIERS = frozenset(("body", "payload"))
"""Last words of other conventions' attributes that may contain a whole message."""
_STRONG = frozenset((
    "llm", "genai", "prompt", "prompts", "completion", "completions", "token", "tokens", "agent", "agents", "tool", "tools", "model",
    "usage", "generation", "langchain", "llamaindex", "openai", "anthropic", "gemini", "bedrock", "embedding", "embeddings", "retriever",
    "retrieval", "assistant", "chat", "workflow",
))  # fmt: skip
_WEAK = frozenset((
    "input", "inputs", "output", "outputs", "body", "payload", "message", "messages", "request", "response", "content", "result", "results",
    "arg", "args", "kwargs", "arguments", "choices", "history", "events", "query", "question", "answer", "documents", "data", "state",
))  # fmt: skip
"""Words of attributes to read only if the value is an object or a list, or JSON text of one."""


class Meaning(NamedTuple):
    field: str | None
    """The step's field that a scalar value fills: ``input_tokens``, ``model``, ``tool_name``, …"""
    direction: str | None
    """Direction of content under this name, by the last of its words that shows one."""
    text: bool
    """True if a plain text under this name is content."""
    content: bool
    """True if a value under this name can be content, not a measure or a property of it."""
    strength: int
    """Confidence in ``field``. Of two values, the one under the surer name is used."""
    system: int
    """1 if a long text under this name is a system prompt, 2 if any text is."""
    tells: bool
    """False if texts and numbers under this name mean nothing, unless they are a whole input or output."""


_NOTHING = Meaning(None, None, False, False, 0, 0, False)
_PROPERTIES = frozenset((
    "mime", "type", "types", "format", "id", "ids", "count", "counts", "tokens", "token", "length", "size", "time", "ms", "name", "schema", "cost", "reason",
    "reasons", "model", "status", "code", "usage", "index", "kind", "description", "definitions", "tools", "duration", "temperature", "version",
    "seed", "penalty", "stream", "tier", "level", "fingerprint", "state", "url", "path", "metadata", "usd", "total", "latency", "s",
    "attempt", "effort", "endpoint", "namespace", "origin", "originator", "seq", "slug", "source", "success", "timestamp", "truncated",
))  # fmt: skip


@lru_cache(MOST_NAMES)
def meaning_of(path: str) -> Meaning:
    words = words_of(path)
    if not words:
        return _NOTHING
    last_name = path.rsplit(".", 1)[-1]
    own = "_".join(words_of(last_name)) or words[-1]
    below = words[words.index("metadata") + 1 :] if "metadata" in words[:-1] else words  # metadata of an output is no output
    direction = next((IN if word in IN_WORDS else OUT for word in reversed(below) if word in IN_WORDS or word in OUT_WORDS), None)
    field, strength = _field(words)
    text = own in _TEXT_IN or own in _TEXT_OUT
    content = _PROPERTIES.isdisjoint(words_of(last_name)) and words[-2:-1] != ("invocation",)
    last = words_of(last_name)
    system = 1 if last[-1:] and last[-1] in _SYSTEM else 2 if last[-2:-1] == ("system",) and last[-1] in _SYSTEM_TEXTS else 0
    tells = field is not None or text or system > 0 or path.endswith("id")
    return Meaning(field, direction, text, content, strength, system, tells)


def direction_of_content(path: str) -> str | None:
    """Return the direction of the content under a name, or None if a value there isn't content."""
    meaning = meaning_of(path)
    return meaning.direction if meaning.content and is_useful(path) else None


def may_hold_conversation(key: str) -> bool:
    """Return True for an attribute that may be a conversation's id, or metadata with one."""
    meaning = meaning_of(key)
    return (is_useful(key) and meaning.field == "conversation_id" and meaning.strength > 1) or words_of(key)[-1:] == _METADATA


_METADATA = ("metadata",)


_SYSTEM = frozenset(("system", "instructions", "instruction", "preamble"))
_SYSTEM_TEXTS = frozenset(("prompt", "message", "instruction"))


def _field(words: tuple[str, ...]) -> tuple[str | None, int]:
    for rule in (_tokens, _kind, _by_ending):
        found = rule(words)
        if found[0] is not None:
            return found
    return None, 0


# --- tokens

_TOKEN_WORDS = frozenset(("token", "tokens", "usage"))
_NO_COUNT = frozenset((
    "max", "min", "limit", "budget", "price", "cost", "rate", "per", "audio", "image", "video", "accepted", "rejected", "prediction", "tool",
    "requests", "calls", "throughput", "characters", "chars", "images", "videos", "files", "words", "bytes", "ratio", "remaining", "ms", "time", "tier", "text", "first", "source", "documents", "type", "modality",
))  # fmt: skip
_TOKEN_DETAILS = frozenset((("tokens", "details"), ("token", "details"), ("prompt", "details"), ("completion", "details"), ("input", "details"),
                            ("output", "details")))  # fmt: skip
_INPUT_WORDS = frozenset(("input", "inputs", "prompt", "request"))
_OUTPUT_WORDS = frozenset(("output", "outputs", "completion", "candidates", "response", "generated", "generation"))


def _tokens(words: tuple[str, ...]) -> tuple[str | None, int]:
    """Classify token counts, such as ``usage.input_tokens`` or ``promptTokenCount``."""
    if words[-1] == "count" and "eval" in words:
        return ("input_tokens" if "prompt" in words else "output_tokens"), 1
    parts = set(words)
    if parts.isdisjoint(_TOKEN_WORDS):
        return None, 0
    if parts & {"non", "uncached"}:
        return None, 0  # a part of the input, whose total has its own name
    if "cache" in parts or "cached" in parts:
        return (None, 0) if parts & {"write", "creation", "audio"} else ("cached_tokens", 2)
    if parts & {"reasoning", "thoughts", "thinking"}:
        return "reasoning_tokens", 2
    if not parts.isdisjoint(_NO_COUNT) or _TOKEN_DETAILS & {words[at : at + 2] for at in range(len(words) - 1)}:
        return None, 0
    sure = 3 if "aggregated" not in parts else 1
    for word in reversed(words):
        if word == "total":
            break
        if word in _INPUT_WORDS:
            return "input_tokens", sure
        if word in _OUTPUT_WORDS:
            return "output_tokens", sure
    return ("total_tokens", 1) if "total" in parts else (None, 0)


# --- the ends of names

_ENDINGS: dict[tuple[str, ...], tuple[str, int]] = {
    ("model",): ("model", 2), ("model", "name"): ("model", 2), ("model", "id"): ("model", 2), ("model", "version"): ("model", 1),
    ("response", "model"): ("model", 4), ("response", "model", "name"): ("model", 4), ("response", "model", "id"): ("model", 4),
    ("finish", "reason"): ("finish_reason", 2), ("finish", "reasons"): ("finish_reason", 2), ("stop", "reason"): ("finish_reason", 2),
    ("done", "reason"): ("finish_reason", 1), ("completion", "reason"): ("finish_reason", 1),
    ("provider",): ("provider", 1), ("provider", "name"): ("provider", 2), ("llm", "system"): ("provider", 1),
    ("ai", "system"): ("provider", 1), ("model", "provider"): ("provider", 2), ("llm", "vendor"): ("provider", 1),
    ("response", "id"): ("response_id", 2), ("completion", "id"): ("response_id", 1),
    ("agent", "name"): ("agent", 3), ("agent",): ("agent", 2), ("agent", "role"): ("agent", 1), ("assistant", "name"): ("agent", 1),
    ("agent", "title"): ("agent", 1), ("current", "agent"): ("agent", 1),
    ("tool", "name"): ("tool_name", 3), ("function", "name"): ("tool_name", 2), ("tool",): ("tool_name", 1),
    ("tool", "function", "name"): ("tool_name", 3), ("tool", "call", "name"): ("tool_name", 3),
    ("tool", "call", "id"): ("tool_call_id", 3), ("call", "id"): ("tool_call_id", 2), ("tool", "use", "id"): ("tool_call_id", 3),
    ("function", "call", "id"): ("tool_call_id", 3), ("tool", "id"): ("tool_call_id", 1),
    ("tool", "description"): ("tool_description", 1),
    ("conversation", "id"): ("conversation_id", 4), ("session", "id"): ("conversation_id", 3), ("thread", "id"): ("conversation_id", 2),
    ("convo", "id"): ("conversation_id", 3),
    ("session",): ("conversation_id", 1), ("group", "id"): ("conversation_id", 1), ("chat", "id"): ("conversation_id", 1), ("conversation",): ("conversation_id", 1),
    ("state",): ("outcome", 1), ("status",): ("outcome", 1), ("span", "status"): ("outcome", 1), ("observation", "level"): ("outcome", 1), ("error",): ("failure", 1),
    ("error", "message"): ("failure", 1), ("is", "error"): ("failure", 1), ("status", "message"): ("error_message", 1),
    ("total", "cost"): ("cost_usd", 3), ("cost", "total"): ("cost_usd", 3), ("cost", "details", "total"): ("cost_usd", 3),
    ("cost", "usd"): ("cost_usd", 2), ("usage", "cost"): ("cost_usd", 2), ("cost",): ("cost_usd", 1),
    ("completion", "start", "time"): ("first_token_at", 1), ("first", "token", "at"): ("first_token_at", 1),
    ("user", "id"): ("user_id", 2), ("enduser", "id"): ("user_id", 1),
    ("entity", "name"): ("name", 2), ("component", "name"): ("name", 1), ("node", "name"): ("name", 1), ("observation", "name"): ("name", 1),
    ("span", "name"): ("name", 1), ("step", "name"): ("name", 1), ("run", "name"): ("name", 1), ("name",): ("name", 1),
}  # fmt: skip
_NO_MODEL = frozenset(
    ("tool", "tools", "data", "user", "device", "host", "phone", "product", "vehicle", "car", "printer", "cost", "view", "domain")
)
_TOOL_LISTS = frozenset(("tools", "functions", "definitions", "available"))
_NAMED = frozenset(("span", "tool", "function", "agent", "agents", "entity", "step", "operation", "task", "messages"))
"""Words before ``name`` that identify the span's subject. After other words, it is a user's, an organization's or an SDK's name."""
_PEOPLE = frozenset((
    "user", "users", "organization", "org", "customer", "client", "account", "tenant", "team", "company", "owner", "author", "person", "contact",
    "employee", "display", "first", "last", "full",
))  # fmt: skip
_SOFTWARE = frozenset((
    "sdk", "library", "service", "host", "instrumentation", "server", "package", "app", "application", "environment", "class", "module", "device",
    "domain", "region", "cluster", "model", "provider",
))  # fmt: skip
_RECORDS = frozenset((
    "project", "workspace", "product", "policy", "event", "session", "thread", "trace", "metadata", "context", "schema", "file", "dataset", "database",
    "queue", "topic", "store", "collection", "index", "table",
))  # fmt: skip
_OTHER_SUBJECTS = _PEOPLE | _SOFTWARE | _RECORDS
_OTHER_CALLS = frozenset(("previous", "request", "parent", "last"))
_COST_PARTS = frozenset(
    ("input", "output", "prompt", "completion", "cache", "cached", "reasoning", "per", "tool", "limit", "max")
)
_NO_SESSION = frozenset(("mcp", "http", "transport", "jsonrpc"))


_EXCLUDED: dict[str, frozenset[str]] = {
    **dict.fromkeys(("tool_name", "tool_call_id", "name"), _TOOL_LISTS),
    "agent": _TOOL_LISTS | {"user"},  # a browser
    "response_id": _OTHER_CALLS,
    "conversation_id": _NO_SESSION,
    "cost_usd": _COST_PARTS,
}
"""Words before the ending of a name that show that it isn't the field of the span's own operation."""


def _by_ending(words: tuple[str, ...]) -> tuple[str | None, int]:
    for length in (3, 2, 1):
        found = _ENDINGS.get(words[-length:]) if len(words) >= length else None
        if found is None:
            continue
        field, strength = found
        before = set(words[:-length])
        if field == "name" and (len(words) > length + 3 or (length == 1 and not _is_own_name(words))):
            continue
        if field == "agent" and "trace" in before:  # the trace's first agent, not the span's
            strength -= 1
        if field == "model":
            return (None, 0) if before & _NO_MODEL else (field, strength + (2 if "response" in before and length < 3 else 0))
        return (None, 0) if field in _EXCLUDED and before & _EXCLUDED[field] else (field, strength)
    return None, 0


def _is_own_name(words: tuple[str, ...]) -> bool:
    """Return True if a name without a word for its subject can be the span's: ``fw.name``, but not ``user.name``."""
    about = words[-2:-1]
    return not about or about[0] in _NAMED or (len(words) == 2 and about[0] not in _OTHER_SUBJECTS)


_KIND_LASTS = frozenset(("kind", "type", "subtype", "op"))
_OF_SPANS = frozenset((
    "span", "operation", "run", "observation", "node", "entity", "component", "step", "event", "llm", "ai", "agent", "trace", "action",
    "category",
))  # fmt: skip
_SPANS_THEMSELVES = frozenset(("span", "observation", "run", "operation"))
_NOT_OF_SPANS = frozenset((
    "content", "message", "messages", "mime", "response", "request", "tool", "output", "token", "error", "exception", "format", "media", "author",
    "user", "sender", "parameters", "schema", "document", "service", "invocation",
))  # fmt: skip


def _kind(words: tuple[str, ...]) -> tuple[str | None, int]:
    """Classify names whose value may be a span's kind."""
    last = words[-1]
    before = set(words[:-1])
    if last == "name" and words[-2:-1] == ("operation",):
        return "kind", 4
    if last in _KIND_LASTS or last == "operation":
        if before & _NOT_OF_SPANS:
            return None, 0
        if before & _SPANS_THEMSELVES:
            return "kind", 4
        return "kind", 3 if words[-2:-1] and words[-2] in _OF_SPANS else 2 if last in ("kind", "subtype") else 1
    return None, 0


_OF_RECORDS = frozenset((
    "level", "target", "severity", "severity_text", "severity_number", "timestamp", "time", "ts", "logger", "module_path", "file", "line", "busy_ns", "idle_ns",
))  # fmt: skip


@lru_cache(MOST_NAMES)
def is_content_of_event(key: str) -> bool:
    """Return False for a property of an event or a log record itself, such as its level or its place in the code."""
    return key.lower() not in _OF_RECORDS and not key.startswith(_PLAIN_PREFIXES)


# --- which spans to read

PLAIN_KEYS: set[str] = set()
"""Attribute names seen so far that show nothing about a model. Its size has a limit."""


def is_plain(attributes: Mapping[str, Any]) -> bool:
    """Return True if no attribute of the span hints at a model, an agent or a tool. For most spans, one set operation decides."""
    return PLAIN_KEYS.issuperset(attributes) or not _has_hint(attributes)


def _has_hint(attributes: Mapping[str, Any]) -> bool:
    for key in attributes:
        if key in PLAIN_KEYS or key.__class__ is not str:
            continue
        interest = interest_of(key)
        if interest == 0:
            meaning = meaning_of(key)
            if meaning.field == "kind":
                if attributes[key].__class__ is str and role_of_kind(attributes[key]) is not None:
                    return True
            elif len(PLAIN_KEYS) < MOST_NAMES:
                PLAIN_KEYS.add(key)
        elif interest == 2 or holds_json(attributes[key]):
            return True
    return False


@lru_cache(MOST_NAMES)
def interest_of(key: str) -> int:
    """Return 0 to skip an attribute, 1 to read only objects under it, 2 to read any value."""
    words = words_of(key)
    if not words or words[-1] == "types":
        return 0
    if key.startswith(_PLAIN_PREFIXES):
        return 1 if words[-1] in _CARRIERS else 0
    parts = set(words)
    if parts & _STRONG or words[:2] == ("gen", "ai"):
        return 2
    return 1 if parts & _WEAK and (words[-1] not in _PROPERTIES or words[-1] == "state" or _is_argument(key)) else 0


def _is_argument(key: str) -> bool:
    """Return True for a function's argument or a field of its result: ``kwargs.order_id``."""
    holder = words_of(key.rpartition(".")[0])
    return holder[-1:] != () and holder[-1] in SPREAD


@lru_cache(MOST_NAMES)
def argument_in(key: str) -> str | None:
    """Return the argument that an attribute of a tool's span can be, or None: ``city``, ``tool.order_id``."""
    prefix, _, name = key.replace(":", ".").rpartition(".")
    words, meaning = words_of(name), meaning_of(key)
    if prefix and words_of(prefix)[-1:] != ("tool",):
        return None
    if (
        not words
        or name.lower() in _PROPERTIES
        or name.lower() in _OF_RECORDS
        or not _MEASURES.isdisjoint(words)
        or meaning.field is not None
        or meaning.direction is not None
    ):
        return None
    return name


@lru_cache(MOST_NAMES)
def is_outcome_of_tool(key: str) -> bool:
    words = words_of(key)
    return words[-1:] in _OUTCOME and "tool" in words


_OUTCOME = (("outcome",), ("status",), ("state",))
FAILED = frozenset(("error", "failed", "failure", "errored", "exception"))
_TIMES = frozenset(("duration", "latency", "elapsed", "ms", "ns", "timeout", "time", "timestamp", "created", "started", "ended"))
_OUTCOMES = frozenset((
    "success", "successful", "ok", "error", "exception", "retries", "retry", "attempt", "attempts", "count", "cached", "cache",
))  # fmt: skip
_ORIGINS = frozenset((
    "trace", "span", "event", "logger", "level", "service", "environment", "env", "function", "class", "module", "method", "framework", "sdk", "scope", "turn",
))  # fmt: skip
_PROPERTIES_OF_TOOLS = frozenset(
    ("tool", "execution", "version", "description", "definition", "tags", "metadata", "type", "kind", "schema")
)
_MEASURES = _TIMES | _OUTCOMES | _ORIGINS | _PROPERTIES_OF_TOOLS
"""Words of attributes that describe a call, not its arguments."""

SPREAD_ARGUMENTS = frozenset(("arguments", "args", "kwargs", "params", "parameters", "input", "inputs"))
SPREAD_RESULTS = frozenset(("result", "return", "returned"))
SPREAD = SPREAD_ARGUMENTS | SPREAD_RESULTS
"""Last words of names below which each argument or result field is an attribute."""


def holds_json(value: Any) -> bool:
    """Return True if a value is an object or a list, or text of one."""
    if value.__class__ is str:
        return value[:1] in ("{", "[") and len(value) > 8
    return isinstance(value, (dict, list, tuple))


@lru_cache(MOST_NAMES)
def is_useful(key: str) -> bool:
    """Return True if an attribute is read in a span that has other evidence."""
    if interest_of(key) > 0:
        return True
    if key.startswith(_PLAIN_PREFIXES) or not words_of(key):
        return False
    return meaning_of(key).field is not None or words_of(key)[-1] in _WORTH_READING


_WORTH_READING = frozenset((
    "metadata", "attributes", "tags", "properties", "context", "contexts", "details", "error", "parameters", "params", "metrics", "timestamps",
))  # fmt: skip
