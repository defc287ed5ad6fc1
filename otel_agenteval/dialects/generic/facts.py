"""Store the data inferred from a span: step fields, content, and evidence of a model or an agent.

:mod:`.walk` finds values in a span and stores them in :class:`Facts`. :mod:`.reading` then infers the role and fills the step.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ...spans.record import ERROR, SpanRecord
from ..attributes import as_float, as_text
from ..content import decode
from ..step import AGENT, CHAIN, EMBEDDING, LLM, RETRIEVAL, TOOL
from . import kinds
from .interest import FAILED
from .keys import DERIVED, EXACT, GUESS, LIKELY, STEP, SURE, word_set, words_of
from .shapes import plain

MODEL, USAGE, KIND, TELLING, MESSAGES = 1, 2, 4, 8, 16
"""Bits for evidence of a model. ``TELLING`` means messages that occur only in LLM conversations."""
TOP, IN_LISTED_OBJECT = 0, 2
"""Nesting depths of an attribute's own value and of a value in ``[{…}]``."""
COUNTS = frozenset(("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "reasoning_tokens", "total_tokens"))


class Content(NamedTuple):
    value: Any
    path: str
    direction: str | None  # None if unknown, for example for a whole conversation


class Facts:
    """Data inferred from one span. ``fields`` maps each step field to its most certain value. Three lists contain content. For
    example, the attribute ``fw.output: '{"reply": "Sunny", "chat": [{"role": …}]}'`` adds the ``chat`` list to ``messages``,
    "Sunny" to ``texts``, and the JSON text to ``whole_values``.
    """

    def __init__(self, record: SpanRecord) -> None:
        self.name = record.name
        self.name_role, self.name_without_role = kinds.role_of_name(record.name)  # "execute_tool search" → TOOL, "search"
        self.failed = record.status == ERROR
        self.fields: dict[str, Any] = {}  # fields of the step: model, input_tokens, …
        self._strengths: dict[str, float] = {}  # the confidence in each of the fields
        # content
        self.messages: list[Content] = []  # lists of messages, at any depth
        self.event_messages: list[Content] = []  # the lists in ``messages`` that are from events and log records
        self.texts: list[Content] = []  # plain texts under names of content, at any depth
        self.whole_values: list[Content] = []  # unparsed attributes with names of inputs or outputs, for steps without messages
        self.spread_arguments: dict[str, Any] | None = None  # a function's arguments, if each is an attribute: inputs.city
        self.spread_result: dict[str, Any] | None = None  # a function's result, if each field is an attribute: result.temperature
        self.documents: list[Any] | None = None
        self.definitions: list[Any] | None = None
        self.system: Any = None
        # the role
        self.kind: str | None = None  # the role from a kind attribute
        self.kind_strength = 0
        self.calls_model = False  # True if a certain kind is a model (llm, chat_model), which needs no content
        self.function = False  # True for a function whose decorator doesn't show its role
        self.agents: set[str] = set()  # names of agents, and of the authors of answers
        self.evidence = 0  # bits, from MODEL to MESSAGES
        self.shows_model_at_top = False  # True if a top-level attribute names a model or counts tokens
        if self.name_role == AGENT and kinds.agent_in(record.name):
            self.kind, self.kind_strength = AGENT, LIKELY

    def strength_of(self, field: str) -> float:
        return self._strengths.get(field, 0.0)

    def is_of_tool(self) -> bool:
        return TOOL in (self.name_role, self.kind) or "tool_name" in self.fields

    def has_dialog(self) -> bool:
        """Return True if one list has user and assistant messages, and any message in the span occurs only in LLM conversations."""
        return bool(self.evidence & TELLING) and any(
            {"user", "assistant"} <= {message.role for message in decode(plain(content.value), "user").messages}
            for content in self.messages
        )

    # --- fields

    def set(self, field: str, value: Any, strength: float) -> None:
        """Set a field if ``strength`` (the confidence in ``value``) is above the confidence in the current value."""
        if value is not None and strength > self._strengths.get(field, -math.inf):
            self._strengths[field] = strength
            self.fields[field] = value

    def _add_kind(self, field: str, value: Any, strength: float, depth: int) -> None:
        """Set the role that a span kind indicates if it's more certain than the current role. Any other role replaces ``CHAIN``."""
        if depth != TOP or value.__class__ is not str:
            return
        role = kinds.role_of_kind(value)
        if role is None and strength >= EXACT and value.lower() in kinds.FUNCTIONS:
            role, self.function = CHAIN, True
        if role is None:
            return
        level = max(int(strength), LIKELY if role in (LLM, RETRIEVAL, EMBEDDING) else GUESS)
        replaces_kind = role != CHAIN and (self.kind == CHAIN or level > self.kind_strength)
        if self.kind is None or replaces_kind:
            self.kind, self.kind_strength = role, level
            words = frozenset(words_of(value))
            self.calls_model = role == LLM and strength >= SURE and ("llm" in words or words >= {"chat", "model"})
            self.evidence |= KIND if level >= LIKELY else 0

    def _add_count(self, field: str, value: Any, strength: float, depth: int) -> None:
        if (count := count_in(value)) is not None:
            self.set(field, count, strength)
            self.shows_model_at_top |= depth == TOP
            if "input_tokens" in self.fields and "output_tokens" in self.fields:
                self.evidence |= USAGE

    def _add_model(self, field: str, value: Any, strength: float, depth: int) -> None:
        if value.__class__ is not str or not 0 < len(value) <= _LONGEST_MODEL or "\n" in value or value.count(" ") > 2:
            return
        if value.lower() in ("unknown", "none", "default", "model"):
            return
        if _MODEL_NAME.fullmatch(value) is not None:
            self.evidence |= MODEL
            self.shows_model_at_top |= depth == TOP
            strength += STEP
        self.set("provider", provider_in(value), DERIVED)
        self.set(field, without_provider(value), strength)

    def _add_failure(self, field: str, value: Any, strength: float, depth: int) -> None:
        if field == "error_message":
            self.set(field, as_text(value), GUESS)
        elif depth == TOP:
            text = str(value).strip().lower()
            if text in FAILED if field == "outcome" else text not in _NO_FAILURES:
                self.set("failed", value, GUESS)
        elif depth == IN_LISTED_OBJECT and field == "failure" and value.__class__ is str:  # result: [{"error": "No such city"}]
            self.set("error_message", value, GUESS)

    def _add_value(self, field: str, value: Any, strength: float, depth: int) -> None:
        self.set(field, as_float(value) if field == "cost_usd" else value, strength)

    def _add_name(self, field: str, value: Any, strength: float, depth: int) -> None:
        if field == "finish_reason" and str(value).lower() in FAILED:
            self.set("failed", value, GUESS)
        if value.__class__ is str and 0 < len(value) <= _MAX_NAME and "\n" not in value and value[:1] not in "{[<":
            self.set(field, value, strength)
        elif field == "conversation_id" and value.__class__ is int:
            self.set(field, str(value), strength)

    def complete_tokens(self) -> None:
        """Compute missing output tokens. With reasoning or cached tokens, add what only the total includes to output or input."""
        fields = self.fields
        if "output_tokens" not in fields and fields.get("total_tokens", 0) > fields.get("input_tokens", math.inf):
            self.set("output_tokens", fields["total_tokens"] - fields["input_tokens"], DERIVED)
            self.evidence |= USAGE
        elif {"input_tokens", "output_tokens", "total_tokens"} <= fields.keys():
            uncounted = fields["total_tokens"] - fields["input_tokens"] - fields["output_tokens"]
            reasoning = fields.get("reasoning_tokens") or 0
            if 0 < reasoning <= uncounted:
                fields["output_tokens"] += reasoning
                uncounted -= reasoning
            if uncounted > 0 and (reasoning or fields.get("cached_tokens") or fields.get("cache_write_tokens")):
                fields["input_tokens"] += uncounted


_MAX_NAME, _LONGEST_MODEL = 300, 200
_NO_FAILURES = frozenset(("", "false", "none", "null", "0", "{}", "[]"))
_NAMES = (
    "agent", "handoff_to", "tool_name", "name", "provider", "conversation_id", "user_id", "tool_call_id", "response_id", "finish_reason",
)  # fmt: skip
SETTERS: Mapping[str, Callable[[Facts, str, Any, float, int], None]] = {
    "kind": Facts._add_kind,
    "model": Facts._add_model,
    **dict.fromkeys(("outcome", "failure", "error_message"), Facts._add_failure),
    **dict.fromkeys(("cost_usd", "first_token_at"), Facts._add_value),
    **dict.fromkeys(COUNTS, Facts._add_count),
    **dict.fromkeys(_NAMES, Facts._add_name),
}
"""Maps step fields to the methods that set them. Some methods also store evidence of a model."""


def count_in(value: Any) -> int | None:
    """Convert a token count such as ``12``, ``12.0``, or ``"12"`` to an integer. Return None for huge counts and other values."""
    if value.__class__ is int:
        return int(value) if 0 <= value < 2**40 else None
    if value.__class__ is float:
        return int(value) if value >= 0 and value == value // 1 else None
    return int(value) if value.__class__ is str and value.isdecimal() and len(value) < 12 else None


# --- names of models

_MODEL_NAME = re.compile(
    r"(?:[\w.-]{1,60}[/:]){0,6}(?:gpt|o[1345](?=-|$)|chatgpt|claude|gemini|gemma|llama|mistral|mixtral|ministral|codestral|magistral|qwen|deepseek|grok|(?:command|phi|nova|titan|yi|palm|granite|falcon|sonar)(?![a-z_])|"
    r"jamba|kimi|glm|text-embedding|davinci|minimax|nemotron|gpt-oss|openchat|vicuna|anthropic\.|amazon\.|meta\.)[\w.:@/-]*",
    re.IGNORECASE,
)
"""Pattern for known model names with or without a provider: ``gpt-4o``, ``aws/anthropic.claude-3``, but not ``my-gpt``."""
_PROVIDERS = word_set("""
    openai azure azure_openai anthropic google gemini vertex_ai vertexai googleai google_genai mistral mistralai bedrock groq ollama
    cohere litellm deepseek xai together_ai fireworks_ai perplexity openrouter compat-oai google-genai openai-compatible aws models
""")


def model_in(name: str | None) -> str | None:
    return without_provider(name) if name is not None and _MODEL_NAME.fullmatch(name) else None


def provider_in(model: str | None) -> str | None:
    """Return a known provider at the start of a model's path (``openai`` in ``openai/gpt-4o``), or None."""
    head, slash, _ = (model or "").partition("/")
    return head if slash and head != "models" and head.lower() in _PROVIDERS else None


def without_provider(model: str) -> str:
    """Remove known providers from a model's name: ``openai/gpt-4o`` becomes ``gpt-4o``. Return other names unchanged."""
    head, slash, tail = model.partition("/")
    while slash and head.lower() in _PROVIDERS and tail:
        model = tail
        head, slash, tail = model.partition("/")
    head, colon, tail = model.partition(":")
    return tail if colon and head.lower() in _PROVIDERS and tail else model
