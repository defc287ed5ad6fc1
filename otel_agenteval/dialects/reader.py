"""Choose the dialects for each span, and combine their results into one step.

A span's scope and attribute names (its :class:`Shape`) determine which dialects apply. Several dialects can apply to one span, for
example if a framework adds attributes to an SDK's span. Most dialects fill only empty fields. If a span's format is unknown,
:mod:`.generic` infers its role and fields.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from ..core.semconv import SCOPE
from ..core.turn import ErrorInfo
from ..core.wellformed import SHORT, bounded_name
from ..spans.record import ERROR, SpanRecord
from ..spans.wire import Vocabulary
from . import (
    adk,
    ag2,
    agent_framework,
    agentops,
    autogen,
    beeai,
    braintrust,
    claude_code,
    crewai,
    dspy,
    google_genai,
    haystack,
    koog,
    langchain_js,
    langsmith,
    langtrace,
    litellm,
    llama_index,
    logfire,
    mastra,
    mcp,
    openinference,
    openlit,
    openllmetry,
    otel_genai,
    semantic_kernel,
    spring_ai,
    traceloop_js,
    vercel,
    voltagent,
)
from .attributes import as_int, as_text, refusals, text_under
from .content import decode
from .generic import interest, keys, reading, traces
from .generic.events import LoggedCall, is_call
from .generic.facts import Facts
from .generic.keys import EXACT, words_of
from .generic.kinds import agent_in, role_of_kind
from .generic.walk import facts_of
from .otel_genai import OPERATIONS
from .step import AGENT, CHAIN, LLM, NO_FAILURES, TOOL, UNKNOWN, Step, limit


class Dialect(Protocol):
    """Module that parses one instrumentation's spans."""

    MARKS: frozenset[str]
    """This instrumentation's attribute names. The dialect applies to each span that has at least one of these attributes."""
    SCOPES: Any
    """Regular expression for the start of a scope's name. The dialect applies to each span whose scope matches."""

    def role_of(self, attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
        """Return the span's role, or None if its current attributes don't show the role."""

    def read(self, record: SpanRecord, step: Step) -> None:
        """Fill the step's fields. Most dialects keep values from earlier dialects."""


DIALECTS: tuple[Dialect, ...] = (
    crewai, llama_index, dspy, haystack, spring_ai, mastra, langchain_js, voltagent, vercel, traceloop_js,
    google_genai, beeai, openinference, braintrust, logfire, mcp, claude_code, langsmith, agentops,
    langtrace, openlit, ag2, litellm, autogen, openllmetry, otel_genai, agent_framework, adk, koog, semantic_kernel,
)  # fmt: skip
"""All dialects in the order in which they read a span. Usually, the first dialect with a value for a field sets this field."""

ROLE_KEYS = frozenset[str]().union(*(dialect.MARKS for dialect in DIALECTS))
"""``MARKS`` of all dialects in one set, so that a single ``isdisjoint`` call excludes most application spans."""

_OTHER_KEYS = ROLE_KEYS - otel_genai.MARKS
_SHARED_MARKS = otel_genai.MARKS | {
    "llm.request.type", "llm.usage.total_tokens", "gen_ai.prompt.0.role", "gen_ai.prompt.0.content", "gen_ai.completion.0.role",
    "gen_ai.completion.0.content",
    "traceloop.association.properties.session_id", "traceloop.association.properties.thread_id",
    "traceloop.association.properties.conversation_id", "traceloop.association.properties.user_id",
}  # fmt: skip
"""Attributes that don't identify an instrumentation, because several instrumentations write them."""
_OWN_MARKS = ROLE_KEYS - _SHARED_MARKS
_MAX_CACHED = 4_096
_dialects_by_marks: dict[tuple[str, Hashable], tuple[Dialect, ...]] = {}


@lru_cache(_MAX_CACHED)
def is_genai_scope(scope: str) -> bool:
    """Return True if a scope belongs to a GenAI instrumentation. Some of its spans don't show their role until they end."""
    return any(dialect.SCOPES.match(scope) for dialect in DIALECTS)


GENAI = Vocabulary(ROLE_KEYS, is_genai_scope, ("gen_ai.", "claude_code."), (b'"role"', b'\\"role\\"', b"\x0a\x04role"), is_call)
"""Names and patterns that :mod:`~otel_agenteval.spans.split` uses to find GenAI data in an OTLP request."""


def _dialects_of(names: Collection[str], scope: str) -> tuple[Dialect, ...]:
    # Most spans have only marks of the convention. It doesn't matter which marks.
    only_otel = _OTHER_KEYS.isdisjoint(names)
    key = (scope, otel_genai.MARKS.isdisjoint(names) if only_otel else ROLE_KEYS.intersection(names))
    if (dialects := _dialects_by_marks.get(key)) is None:
        if len(_dialects_by_marks) >= _MAX_CACHED:
            _dialects_by_marks.clear()
        dialects = _dialects_by_marks[key] = tuple(
            dialect
            for dialect in DIALECTS  # any instrumentation can add the convention's attributes
            if dialect is otel_genai
            or not dialect.MARKS.isdisjoint(names)
            or dialect.SCOPES.match(scope)
            or (dialect is spring_ai and spring_ai.HOSTS.match(scope) and not otel_genai.MARKS.isdisjoint(names))
        )
    return dialects


class Shape:
    """Cached properties that all spans with the same scope and attribute names share."""

    def __init__(self, scope: str, names: tuple[str, ...]) -> None:
        self._names = names
        self.dialects = _dialects_of(names, scope)
        self.is_known = is_genai_scope(scope) or (bool(self.dialects) and not _OWN_MARKS.isdisjoint(names))
        """True if the scope is known or an attribute identifies an instrumentation."""
        self.has_identities = not _IDENTITY_KEYS.isdisjoint(names)

    @cached_property
    def is_whole(self) -> bool:
        """True if :data:`otel_genai.WHOLE` and its prefixes cover all GenAI attributes, so that nothing needs to be inferred."""
        known, prefixes = otel_genai.WHOLE, otel_genai.WHOLE_PREFIXES
        return all(name in known or name.startswith(prefixes) or not interest.is_useful(name) for name in self._names)

    @cached_property
    def content(self) -> tuple[tuple[str, str], ...]:
        """Attributes that can contain content, as pairs of name and direction (``IN`` or ``OUT``)."""
        meanings = ((name, keys.meaning_of(name)) for name in self._names if interest.is_useful(name))
        return tuple((name, meaning.direction) for name, meaning in meanings if meaning.content and meaning.direction is not None)

    @cached_property
    def conversations(self) -> tuple[str, ...]:
        """Names of attributes that can contain a conversation ID."""
        return tuple(filter(interest.may_hold_conversation, self._names))

    @cached_property
    def caches(self) -> CacheNames:
        return cache_names(self._names)

    @cached_property
    def outcomes(self) -> tuple[str, ...]:
        """Names of attributes with a tool's outcome, such as ``gen_ai.tool.call.outcome``."""
        return tuple(name for name in self._names if keys.last_word(name) in interest.OUTCOMES and "tool" in words_of(name))

    @cached_property
    def arguments(self) -> tuple[tuple[str, str], ...]:
        """Attributes that might be tool arguments, as pairs of attribute name and argument name."""
        return tuple((name, argument) for name in self._names if (argument := interest.argument_in(name)))

    @cached_property
    def groups(self) -> tuple[interest.AttributeGroup, ...]:
        return interest.groups_of(filter(interest.is_useful, self._names))


_MAX_SHAPES_SIZE = 8_000_000
"""Maximum total size of cached shapes. A name's size is its length plus :data:`_SIZE_OF_NAME`."""
_SIZE_OF_NAME = 64
_shapes: dict[tuple[str, ...], Shape] = {}
_shapes_size = 0


def shape_of(attributes: Mapping[str, Any], scope: str) -> Shape:
    global _shapes_size
    scope_and_names = (scope, *attributes)
    if (shape := _shapes.get(scope_and_names)) is not None:
        return shape
    shape = Shape(scope, scope_and_names[1:])
    size = sum(map(len, scope_and_names)) + _SIZE_OF_NAME * len(scope_and_names)
    if size <= _MAX_SHAPES_SIZE // 8:  # larger shapes aren't cached
        if _shapes_size + size > _MAX_SHAPES_SIZE:
            _shapes.clear()
            _shapes_size = 0
        _shapes[scope_and_names] = shape
        _shapes_size += size
    return shape


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return a span's role. If a GenAI span doesn't show its role yet, return ``unknown``. For other spans, return None."""
    # Fast path on the agent's thread: the convention's attributes show the role of most spans.
    if _OTHER_KEYS.isdisjoint(attributes) and _is_otel_only(scope):
        operation = attributes.get("gen_ai.operation.name")
        role = OPERATIONS.get(operation) if operation.__class__ is str else None
        if role is not None and role != CHAIN:
            return role
    return _role(shape_of(attributes, scope).dialects, attributes, scope, name)


@lru_cache(_MAX_CACHED)
def _is_otel_only(scope: str) -> bool:
    return not any(dialect.SCOPES.match(scope) for dialect in DIALECTS if dialect is not otel_genai)


def role_in(record: SpanRecord) -> str | None:
    return understood(record).role


class Understood:
    """Shape, role, and inferred data of an ended span."""

    __slots__ = ("facts", "inferred", "named", "role", "shape", "stated_role")

    def __init__(self, shape: Shape, role: str | None) -> None:
        self.shape = shape
        self.role = role
        self.stated_role = role
        """Role that the dialects returned for this span."""
        self.facts: Facts | None = None
        self.named = shape.is_known
        """True if the span's format is known (:attr:`Shape.is_known`) and its role isn't from log records."""
        self.inferred = False
        """True if the role was inferred and differs from :attr:`stated_role`."""

    def reset_role(self) -> None:
        self.role = self.stated_role
        self.inferred = False


def understood(record: SpanRecord) -> Understood:
    """Return an ended span's shape and role, which are cached in the record."""
    span: Understood | None = record.dialects
    if span is None:
        if isinstance(record, LoggedCall):
            return state_role(record, record.role)
        attributes, scope = record.attributes, record.scope
        shape = shape_of(attributes, scope)
        span = record.dialects = Understood(shape, _role(shape.dialects, attributes, scope, record.name))
        if not span.named:
            if scope != SCOPE and not _is_complete(record, span):
                infer(record)
        elif (
            span.role == UNKNOWN
            and not interest.is_plain(attributes)
            # no dialect returns a role, not even "unknown" (for example for Logfire's span of a streamed request)
            and all(dialect.role_of(attributes, scope, record.name) is None for dialect in shape.dialects)
        ):
            infer(record)  # the scope is known, but this span's format isn't
    return span


def state_role(record: SpanRecord, role: str) -> Understood:
    """Set a span's role to ``role``, because its log records show this role, and infer the span's other data."""
    span = record.dialects = Understood(shape_of(record.attributes, record.scope), None)
    span.named, span.inferred, span.role, span.facts = False, True, role, facts_of(record)
    span.facts.kind, span.facts.kind_strength = role, EXACT
    return span


def _is_complete(record: SpanRecord, span: Understood) -> bool:
    """Return True if nothing needs to be inferred, because the span has only the convention's data or isn't about GenAI."""
    if span.role is None:
        if record.logs or (record.events and not all(event.name == "exception" for event in record.events)):
            return False
        return interest.is_plain(record.attributes) and agent_in(record.name) is None
    if not span.shape.is_whole:
        return False
    known_names = otel_genai.EVENTS
    return all(part.name in known_names for parts in (record.events, record.logs) if parts for part in parts)


def infer(record: SpanRecord) -> None:
    """Infer the data of a span whose format is unknown. Also infer the role, unless a dialect returned a specific role."""
    span = record.dialects
    facts = facts_of(record)
    stated_role: str | None = span.stated_role
    # Operations outside the convention, and content under shared names, have the role CHAIN.
    is_vague_chain = stated_role == CHAIN and ("gen_ai.operation.name" in record.attributes or not span.named)
    role = stated_role
    if is_vague_chain or stated_role in (None, UNKNOWN):
        role = reading.role_of(facts) or stated_role
        if reading.is_other_work(record, facts, role):
            role, facts.evidence = stated_role, 0
    if role is not None or facts.fields:
        span.facts = facts
        span.inferred = role != stated_role
        span.role = role


def _role(dialects: tuple[Dialect, ...], attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the first role other than ``chain`` that a dialect finds, or ``chain`` if dialects find only this role. If dialects
    don't find a role, return ``unknown`` for a span with a GenAI scope, and None for other spans.
    """
    if name.__class__ is not str:  # the SDK accepts names of any type
        name = str(name)
    role = None
    for dialect in dialects:
        dialect_role = dialect.role_of(attributes, scope, name)
        if dialect_role is not None and dialect_role != CHAIN:
            return dialect_role
        role = role or dialect_role
    return UNKNOWN if role is None and is_genai_scope(scope) else role


_PLACEHOLDER_NAMES = frozenset(("unknown", "Unknown", "OpenAI Agent"))
"""Placeholders that instrumentations write if the agent's name is unknown."""
_CONVERSATION_KEYS = (
    "session.id", "langfuse.session.id", "langwatch.thread.id", "galileo.session.id", "lmnr.association.properties.session_id",
)  # fmt: skip
"""Session ID attributes that observability products can add to any instrumentation's spans."""
_IDENTITY_KEYS = frozenset((*_CONVERSATION_KEYS, "user.id", "enduser.id"))


def read(record: SpanRecord) -> Step:
    """Create a step with all GenAI data of a span. If a span isn't about GenAI, its step doesn't have a role."""
    if len(record.name) > SHORT or len(record.scope) > SHORT:
        record.name, record.scope = bounded_name(record.name), bounded_name(record.scope)
    step, refused_before = Step(record), refusals.counts
    attributes = record.attributes
    span: Understood = record.dialects or understood(record)
    role, shape = span.role, span.shape
    step.role = role
    if role is not None and record.__class__ is not LoggedCall:
        for dialect in shape.dialects:
            dialect.read(record, step)
    if span.facts is not None:
        step.inferred = reading.read(record, step, span.facts) or span.inferred
    elif role is not None and reading.lacks_content(record, step):
        step.inferred = reading.complete(record, step)
    _correct_names(step)
    if role == TOOL:
        _complete_tool(record, step, shape)
    elif role is not None and (
        shape.caches.read or shape.caches.written or step.cached_tokens or step.cache_write_tokens or step.reasoning_tokens
    ):
        correct_counts(attributes, shape.caches, step)
    if shape.conversations:
        step.conversation_keys = shape.conversations
    if shape.has_identities:
        _read_identities(attributes, step)
    has_failed = record.status == ERROR or step.tool_failed or as_text(attributes.get("error.type"))
    if step.error is None and (has_failed or (role in (LLM, TOOL) and raised(record, step))):
        step.error = error_of(record, step)
    if role is not None or span.facts is not None or shape.has_identities:
        limit(step, refusals.counts - refused_before)
    return step


def _correct_names(step: Step) -> None:
    if step.agent in _PLACEHOLDER_NAMES:
        step.agent = None
    if step.role == AGENT and (step.agent is None or step.agent in _KINDS):
        step.agent = _name_beside_kind(step.record) or step.agent
    if step.model is not None and step.provider is not None and "/" in step.model:  # LiteLLM writes ``provider/model``
        step.model = step.model.removeprefix(f"{step.provider}/")


def _name_beside_kind(record: SpanRecord) -> str | None:
    """If the span's name is only a kind such as ``tool``, return the name from another attribute. Otherwise, return None."""
    if record.name.lower() not in _KINDS:
        return None
    names = (as_text(record.attributes.get(key)) for key in _NAMES_BESIDE_KINDS)
    return next((name for name in names if name is not None and role_of_kind(name) is None), None)


_KINDS = frozenset(("tool", "agent", "function", "tool_call", "execute_tool", "invoke_agent"))
_NAMES_BESIDE_KINDS = ("operation.name", "resource.name", "entity.name", "component.name", "name")


def _complete_tool(record: SpanRecord, step: Step, shape: Shape) -> None:
    attributes = record.attributes
    for key in shape.outcomes:
        step.tool_failed |= str(attributes[key]).lower() in interest.FAILED
    if step.tool_name is None or step.tool_name == record.name:
        step.tool_name = _name_beside_kind(record) or record.name.removeprefix("execute_tool ") or None
    if step.tool_arguments is None and step.tool_result is not None:
        step.tool_arguments = {name: attributes[key] for key, name in shape.arguments} or None


def _read_identities(attributes: Mapping[str, Any], step: Step) -> None:
    if step.conversation_id is None:
        conversation = text_under(attributes, _CONVERSATION_KEYS)
        if conversation is not None and not conversation.startswith("[Scrubbed due to "):
            step.conversation_id = conversation
    if step.user_id is None:
        step.user_id = as_text(attributes.get("user.id")) or as_text(attributes.get("enduser.id"))


def error_of(record: SpanRecord, step: Step) -> ErrorInfo | None:
    """Return a failed span's error, or None if it's only from a handled error in a span below, or is in ``NO_FAILURES``."""
    kind = as_text(record.attributes.get("error.type"))
    facts = record.dialects and record.dialects.facts
    message = record.status_message or (facts.fields.get("error_message") if facts is not None else None)
    for event in (*reversed(record.events), *reversed(record.logs)):
        if event.name == "exception":
            kind = kind or as_text(event.attributes.get("exception.type"))
            message = as_text(event.attributes.get("exception.message")) or message
            break
    else:
        if step.recovered:  # copied from a span below
            return None
    if kind is None and message is not None:
        first_word = message.split(":", 1)[0].split("(", 1)[0]  # "ValueError: bad" or "ValueError('bad')"
        if first_word.isidentifier() and first_word[:1].isupper():
            kind = first_word
    return None if kind is not None and kind.rpartition(".")[2] in NO_FAILURES else ErrorInfo(kind or "error", message)


_RETURNED = attrgetter("output_value", "output_tokens", "finish_reason", "tool_result")


def raised(record: SpanRecord, step: Step) -> bool:
    """Return True if a span has an exception event, but no output, output tokens, or finish reason."""
    if any(value not in (None, 0) for value in _RETURNED(step)) or all(event.name != "exception" for event in record.events):
        return False
    return not any(one.content or one.tool_calls for one in decode(step.output_messages, "assistant").messages)


TURN, CONTENT, CALLER = "turn", "content", "caller"
"""Kinds of data that can be missing in a trace: a turn, the turn's input and output, or a tool's caller."""


class UnreadTrace(NamedTuple):
    """Trace that has no turn, but seems to contain an agent's work."""

    scope: str
    answers: frozenset[str]
    """Texts that might be the agent's answer. If a turn has one of these texts, the trace is a copy of this turn."""
    missing: str = TURN


def unread_trace(records: Iterable[SpanRecord]) -> UnreadTrace | None:
    """Describe a trace without a turn, or return None if the trace seems unrelated to agents. A related trace has
    a tool span without a parent, a tool span and (in other spans) a question and an answer, or a span that resembles a model call.
    """
    records = [record for record in records if understood(record)]
    agent_work = next(filter(traces.resembles_call, records), None) or _tool_of_run(records)
    if agent_work is None:
        tool = next(filter(is_lost_tool, records), None)
        return None if tool is None else UnreadTrace(tool.scope, frozenset(), CALLER)
    facts = [record.dialects.facts for record in records if record.dialects.facts is not None]
    return UnreadTrace(agent_work.scope, frozenset().union(*map(traces.answers_in, facts)))


def is_lost_tool(record: SpanRecord) -> bool:
    """Return True if a tool span has no parent, probably because its context was lost. Ignore inferred roles and server spans."""
    return role_in(record) == TOOL and not (record.parent_id or record.server or record.dialects.inferred)


def _tool_of_run(records: Collection[SpanRecord]) -> SpanRecord | None:
    """If other spans contain a question and an answer, return a trace's first tool span. Otherwise, return None."""
    first_tool = None
    others = []
    for record in records:
        if not traces.is_agents_tool(record):
            others.append(record)
        elif first_tool is None:
            first_tool = record
    has_dialog = first_tool is not None and {keys.IN, keys.OUT} <= set().union(*map(_content_directions, others))
    return first_tool if has_dialog else None


def _content_directions(record: SpanRecord) -> set[str | None]:
    if record.dialects.role is None:
        return traces.directions_in(record.dialects.facts or facts_of(record))
    step = read(record)
    values = {
        keys.IN: (step.input_messages, step.input_value),
        keys.OUT: (step.output_messages, step.output_value, step.final_result),
    }
    return {direction for direction, contents in values.items() if any(map(traces.has_words, contents))}


def review_roles(records: Collection[SpanRecord]) -> None:
    """Determine the roles of all spans in a trace, and then correct inferred roles that don't fit."""
    spans = [record.dialects or understood(record) for record in records]
    if any(span.facts is not None for span in spans):
        traces.review_roles(list(records), infer)


# --- cached tokens and reasoning tokens of model calls

_NO_TOTAL = frozenset(("cost", "aggregated"))


class CacheNames(NamedTuple):
    """Names of attributes that contain token counts: cache reads, cache writes, and the total."""

    read: tuple[str, ...]
    written: tuple[str, ...]
    total: tuple[str, ...]


def cache_names(names: Iterable[str]) -> CacheNames:
    read: list[str] = []
    written: list[str] = []
    total: list[str] = []
    for name in names:
        words = set(words_of(name))
        if words.isdisjoint(("token", "tokens", "usage")) or words & {"non", "no", "uncached", "audio"}:
            continue
        if not words.isdisjoint(("cache", "cached")):
            (read if words.isdisjoint(("write", "creation")) else written).append(name)
        elif "total" in words and words.isdisjoint(_NO_TOTAL):
            total.append(name)
    return CacheNames(tuple(read), tuple(written), tuple(total))


def correct_counts(attributes: Mapping[str, Any], names: CacheNames, step: Step) -> None:
    """Fill cached tokens. Add them to the input tokens if they exceed the input tokens, or if the total is the sum of all counts:
    input 10, cached 90, output 5, and total 105 become input 100. Reasoning tokens are added to the output tokens in a similar way.
    """
    if step.cached_tokens is None:
        step.cached_tokens = _largest(attributes, names.read)
    if step.cache_write_tokens is None:
        step.cache_write_tokens = _largest(attributes, names.written)
    inputs, outputs, reasoning = step.input_tokens, step.output_tokens or 0, step.reasoning_tokens or 0
    cached = (step.cached_tokens or 0) + (step.cache_write_tokens or 0)
    total = _largest(attributes, names.total) or 0
    if inputs is not None and cached and (cached > inputs or total - inputs - cached in (outputs, outputs + reasoning)):
        inputs = step.input_tokens = inputs + cached
    if reasoning and (total == (inputs or 0) + outputs + reasoning or reasoning > outputs > 0):
        step.output_tokens = outputs + reasoning


def _largest(attributes: Mapping[str, Any], names: Iterable[str]) -> int | None:
    return max((count for name in names if (count := as_int(attributes[name])) is not None), default=None)
