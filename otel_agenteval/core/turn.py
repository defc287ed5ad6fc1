"""A turn: one user request and everything that the agent did to answer it.

All entry points create a :class:`Turn`. A turn from spans computes its larger fields on first use. A turn from
:meth:`Turn.from_dict` has all fields immediately. Metrics must not change turns.

A field is *unknown* if it is ``None``, or an empty list, dict, or string. Three empty values are known: ``output == ""`` (the agent
returned no text), ``tool_calls == []`` (the agent called no tools), and ``retrieved_ids == []`` (the search found nothing).
docs/reference/turn-fields.md describes when each field is set.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

from . import jsonio, literals
from .errors import ConfigError
from .fact_forms import DOCUMENT_NAMES, HANDOFF_NAMES, READERS
from .forms import (
    Reader,
    a_count,
    a_flag,
    a_mapping,
    a_name,
    a_number,
    a_text,
    an_object,
    anything,
    keyed,
    list_of,
    unknown,
    wrong,
)
from .wellformed import bounded_name, plain, well_formed

CloseReason = Literal[
    "root_ended", "delay", "idle", "max_duration", "span_limit", "byte_limit", "evicted", "shutdown", "exit", "recorded_file"
]

Reading = Literal["exact", "inferred"]


def _bound_names(record: Any, *names: str) -> None:
    for name in names:
        value = getattr(record, name)
        if value.__class__ is str:
            setattr(record, name, bounded_name(value))


_CANCELLATION = re.compile(
    r"(?:task|operation|job|request|run|stream)?cancel(?:l?ed|l?ation)(?:error|exception)?"
    r"|(?:response|request|stream)?abort(?:ed)?(?:error|exception)?|endofstream|generatorexit|keyboardinterrupt|interrupted(?:error|exception)?"
    r"|client_?(?:closed|disconnect(?:ed)?)(?:_request|error|exception)?|user_?abort(?:ed)?(?:error|exception)?|apiuseraborterror|499"
)
"""Pattern for error types (without module names) that mean a canceled turn."""
_CANCELLATION_MESSAGE = re.compile(
    r"\s*(?:the |this )?(?:context cancel{1,2}ed|(?:client|user) (?:has )?(?:disconnected|aborted|cancel{1,2}ed)|(?:request|operation|run|turn|task|stream)"
    r" (?:was )?(?:aborted|cancel{1,2}ed)(?: by (?:the )?(?:user|client|caller))?)[.!]?\s*",
    re.IGNORECASE,
)


@dataclass(slots=True)
class ErrorInfo:
    """Details of a failure. Even an object without a type and a message means that something failed."""

    type: str | None = None
    """Low-cardinality name, such as an exception class, an HTTP status, ``timeout``, or ``cancelled``."""
    message: str | None = None

    def __post_init__(self) -> None:
        _bound_names(self, "type")

    @property
    def is_cancellation(self) -> bool:
        """True if the type or message means that the turn was canceled, for example by the user or by a closed connection."""
        name = re.split(r"[.:*]", (self.type or "").strip().lower())[-1]
        return _CANCELLATION.fullmatch(name) is not None or _CANCELLATION_MESSAGE.fullmatch(self.message or "") is not None


@dataclass(slots=True)
class Message:
    """Message of the conversation, as a model received or wrote it."""

    role: str
    """Usually ``system``, ``user``, ``assistant``, or ``tool``."""
    content: str | None = None
    """The joined text parts, or None if the message has no text parts."""
    reasoning: str | None = None
    tool_calls: Sequence[ToolRequest] = ()
    tool_results: Sequence[ToolResponse] = ()
    name: str | None = None
    finish_reason: str | None = None
    attachments: Sequence[dict[str, Any]] = ()
    """``{modality, mime_type, uri | data | file_id}`` of each media or file part."""
    extra: Mapping[str, Any] | None = None
    """Other keys and values of the message."""


@dataclass(slots=True)
class ToolRequest:
    """A tool call that a model requested."""

    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    """Arguments as an object, or as the text that the instrumentation recorded."""

    def __post_init__(self) -> None:
        _bound_names(self, "call_id", "name")


@dataclass(slots=True)
class ToolResponse:
    """A tool's result, as returned to the model."""

    call_id: str | None = None
    name: str | None = None
    result: Any = None

    def __post_init__(self) -> None:
        _bound_names(self, "call_id", "name")


@dataclass(slots=True)
class LlmCall:
    """One request to a model, including the SDK's internal retries."""

    span_id: str | None = None
    model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    """Tokens of the prompt, including cached tokens."""
    output_tokens: int | None = None
    """Tokens of the reply, including reasoning tokens."""
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_usd: float | None = None
    finish_reason: str | None = None
    response_id: str | None = None
    duration_s: float | None = None
    time_to_first_token_s: float | None = None
    error: ErrorInfo | None = None
    cache_write_tokens: int | None = None
    service_tier: str | None = None
    """Service tier that handled the request, such as ``flex`` or ``priority``."""


ToolState = Literal["executed", "failed", "requested", "declined"]
_RAN = ("executed", "failed")


@dataclass(slots=True)
class ToolCall:
    """One tool call, from a span or from messages."""

    name: str
    arguments: dict[str, Any] | None = None
    """Arguments by name, or None if the arguments are unknown or not an object."""
    result: Any = None
    error: ErrorInfo | None = None
    duration_s: float | None = None
    span_id: str | None = None
    call_id: str | None = None
    permission_denied: bool = False
    agent: str | None = None
    cost_usd: float | None = None
    malformed: bool = False
    """True if arguments were recorded as text that can't be parsed as an object."""
    state: ToolState = "executed"
    """``requested`` if the call waits for approval or runs after the turn. ``declined`` if a person or a rule refused the call. By
    default, a call with ``permission_denied`` is ``declined``, and a call with ``error`` is ``failed``.
    """

    def __post_init__(self) -> None:
        if self.state == "executed":
            self.state = "declined" if self.permission_denied else "failed" if self.error is not None else "executed"

    @property
    def ran(self) -> bool:
        """True if the tool ran, with or without success."""
        return self.state in _RAN


@dataclass(slots=True)
class Document:
    """A retrieved document. OpenTelemetry's own retrieval spans contain only IDs and scores."""

    id: str | None = None
    content: str | None = None
    score: float | None = None


@dataclass(slots=True)
class Retrieval:
    """One search, or one reranking without a search, and its documents."""

    query: str | None = None
    documents: list[Document] = field(default_factory=list)


@dataclass(slots=True)
class AgentRun:
    """Run of one agent in the turn. If the turn has a root agent, it is usually the first entry of ``agent_runs``."""

    name: str | None = None
    span_id: str | None = None
    parent: str | None = None
    """Name of the agent that called this agent."""
    duration_s: float | None = None
    error: ErrorInfo | None = None


@dataclass(slots=True)
class Handoff:
    """One transfer of control from one agent to another."""

    from_: str | None = None
    to: str | None = None
    success: bool | None = None
    duration_s: float | None = None


@dataclass(slots=True)
class Usage:
    """Token counts of the turn: usually sums over model calls or, if these calls lack counts, totals of the root or agent spans."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None


@dataclass(slots=True)
class SpanInfo:
    """One span of the turn, for metrics about the structure of traces."""

    id: str
    parent: str | None = None
    name: str | None = None
    duration_s: float | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    start_s: float | None = None
    """Start time in seconds after the turn's start. Negative for spans that started before the root span."""
    inferred: bool | None = None
    """True if the span didn't match a known convention and was interpreted by its structure."""
    failed: bool | None = None
    """True if the span has an error, such as the status ``ERROR``."""


_ABOUT_THE_TURN = (
    "turn_id", "tenant", "trace_id", "conversation_id", "service", "agent", "start", "duration_s", "close_reason", "complete", "revision", "supersedes",
    "llm_calls", "usage", "cost_usd", "cost_estimated",
)  # fmt: skip

_FACTS_WHEN_EMPTY = ("output", "tool_calls", "retrieved_ids")


class TurnBuilder(Protocol):
    """Object that computes a turn's fields on first use."""

    @property
    def FIELDS(self) -> Collection[str]:  # noqa: N802 - of most builders it is a constant
        """Names of the computed fields. For each name, the builder has a method without arguments."""


class Turn:
    """One user request and its answer, with the fields of the JSON format ``turn.v1``.

    The module's docstring explains which empty values are unknown.

    Args:
        known: field values, as keyword arguments. Objects, such as tool calls, can also be dictionaries, as in :meth:`from_dict`.

    Raises:
        ConfigError: If a name isn't a field, or a dictionary has an unknown key or an invalid value.
    """

    turn_id: str
    tenant: str | None
    """Tenant that sent the spans, if the sidecar has tenants."""
    trace_id: str | None
    conversation_id: str | None
    user_id: str | None
    service: str | None
    """``service.name`` of the root span's resource."""
    service_version: str | None
    """``service.version`` of the root span's resource."""
    agent: str | None
    """Name of the agent on the root span or, if unset, of the first agent below it."""
    framework: str | None
    """Instrumentation that recorded the spans."""
    reading: Reading | None
    """``exact`` if the instrumentation's parsers read all spans, ``inferred`` if any span was interpreted by its structure."""
    start: datetime.datetime | None
    """Start time, in UTC."""
    duration_s: float | None
    """Wall-clock seconds from the root span's start to its end, or to a later end of, for example, a model span."""
    close_reason: CloseReason | None
    complete: bool
    """False if part of the turn is known to be missing."""
    truncated: bool
    """True if an attribute was truncated or dropped."""
    revision: int
    supersedes: str | None
    error: ErrorInfo | None
    input: str | None
    output: str | None
    """The answer that the user received. ``""`` if the agent returned no text."""
    system: str | None
    instructions_lost_at: int | None
    """Index (in ``llm_calls``) of the first call that lacks the earlier calls' system instructions or user message."""
    messages: list[Message]
    reasoning: str | None
    stop_kind: str | None
    """``completed``, ``unknown``, ``requested_credentials``, ``asked_clarification``, or ``awaiting_confirmation``."""
    llm_calls: list[LlmCall]
    tool_calls: list[ToolCall] | None
    """Tool calls, usually in the order of their start times."""
    tool_definitions: list[dict[str, Any]]
    """Available tools, as ``{type, name, description, parameters}``. ``parameters`` is a JSON Schema."""
    retrievals: list[Retrieval]
    context: list[str]
    """Texts of retrieved documents, in rank order."""
    retrieved_ids: list[str] | None
    agent_runs: list[AgentRun]
    handoffs: list[Handoff]
    usage: Usage | None
    cost_usd: float | None
    cost_estimated: bool
    """True if ``cost_usd`` was computed from tokens and a price table, not read from spans."""
    attachments: list[dict[str, Any]]
    spans: list[SpanInfo]
    ground_truth: Any
    relevant_ids: list[str] | None
    history: list[dict[str, Any]]
    session: dict[str, Any] | None
    workflow: dict[str, Any] | None
    agents: dict[str, dict[str, Any]]
    interactions: list[dict[str, Any]]
    conflicts: list[dict[str, Any]]
    metadata: dict[str, Any]
    privacy: dict[str, Any] | None
    logprobs: list[float] | None
    references: dict[str, Any]
    """Reference data for metrics, by name: ``expected_tools``, ``schema``, …"""

    def __init__(self, **known: Any) -> None:
        if not known.keys() <= _DEFAULTS.keys():
            raise unknown("turn", next(name for name in known if name not in _DEFAULTS), _DEFAULTS)
        self.__dict__.update(known)
        for name in _OF_OBJECTS & known.keys():
            value = known[name]
            if isinstance(value, Mapping) or (
                isinstance(value, (list, tuple)) and any(isinstance(one, Mapping) for one in value)
            ):
                self.__dict__[name] = _READERS[name](value, f"turn.{name}")

    @classmethod
    def _of(cls, known: dict[str, Any]) -> Turn:
        """Create a turn with the ``known`` fields, without checks."""
        turn = cls.__new__(cls)
        turn.__dict__ = known
        return turn

    @classmethod
    def lazily(cls, known: dict[str, Any], builder: TurnBuilder) -> Turn:
        """Create a turn that computes some fields on first use.

        ``builder`` has a method for each field in ``builder.FIELDS``. The turn calls each method once and keeps its result.
        """
        known["_builder"] = builder
        return cls._of(known)

    @classmethod
    def written(cls, data: Mapping[str, Any]) -> Turn:
        """Create a turn from the output of :meth:`to_dict`, without most checks of :meth:`from_dict`.

        Structured fields are parsed and checked on first use. If ``llm_calls`` is a number, all fields are parsed immediately.
        """
        known = dict(data)
        if not isinstance(known.get("llm_calls"), (list, type(None))):
            return cls.from_dict(data)
        return cls.lazily(known, _LazyFields({name: known.pop(name) for name in _READ_LATER & known.keys()}))

    def without_content(self) -> Turn:
        """Return a copy with only the fields that outlets need. Without content, the copy is small enough to queue."""
        known, builder = self.__dict__, self.__dict__.get("_builder")
        later = () if builder is None else builder.FIELDS
        return Turn._of({name: getattr(self, name) for name in _ABOUT_THE_TURN if name in known or name in later})

    def but(self, changed: Mapping[str, Any]) -> Turn:
        """Return a copy with the ``changed`` fields replaced, and without the intermediate results that metrics share."""
        return Turn._of({**{name: value for name, value in self.__dict__.items() if name != "_shared"}, **changed})

    if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as a field

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for fields without a value: compute the value, or return the "unknown" value.
            builder = self.__dict__.get("_builder")
            if builder is not None and name in builder.FIELDS:
                value = self.__dict__[name] = getattr(builder, name)()
                return value
            try:
                return _DEFAULTS[name]()  # not stored, so that the field stays unknown
            except KeyError:
                raise AttributeError(f"Turn has no field {name!r}") from None

    @property
    def shared(self) -> dict[str, Any]:
        """Intermediate results that metrics share. :meth:`forget_shared` discards them."""
        known: dict[str, Any] | None = self.__dict__.get("_shared")
        if known is None:
            known = self.__dict__["_shared"] = {}
        return known

    def forget_shared(self) -> None:
        """Discard the intermediate results that metrics share, to free memory before the turn is stored."""
        self.__dict__.pop("_shared", None)

    @property
    def llm_call_count(self) -> int | None:
        """Number of model calls, or None if unknown. The number can be known even if ``llm_calls`` is unknown."""
        given = self.__dict__.get("_llm_call_count")
        return given if given is not None else len(self.llm_calls) or None

    def to_dict(self) -> dict[str, Any]:
        """Return the ``turn.v1`` form: a JSON object with only the known fields."""
        out: dict[str, Any] = {}
        known, builder = self.__dict__, self.__dict__.get("_builder")
        later = () if builder is None else builder.FIELDS
        for name in _DEFAULTS:
            if name == "llm_calls" and "_llm_call_count" in known:
                out[name] = known["_llm_call_count"]
            if name not in known and name not in later:
                continue
            value = getattr(self, name)
            if value is None or (not value and value in (None, "", [], {}) and name not in _FACTS_WHEN_EMPTY):
                continue
            if name in _ONLY_WHEN_TRUE and not value:
                continue
            out[name] = _plain(value)
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Turn:
        """Create a turn from a ``turn.v1`` object.

        The method also accepts ``llm_calls`` as a number (if only the count is known), ``error`` as text or bool, and a tool call's
        ``arguments`` as JSON text.

        Raises:
            ConfigError: If a key is unknown or a value has the wrong type. The message contains the value's path.
        """
        if not isinstance(data, Mapping):
            raise ConfigError(f"turn: must be an object, got {type(data).__name__}")
        known: dict[str, Any] = {}
        for key, value in data.items():
            if key not in _DEFAULTS:
                raise unknown("turn", str(key), _DEFAULTS)
            if value is None:
                continue
            if key == "llm_calls" and isinstance(value, (int, float)) and not isinstance(value, bool):
                known["_llm_call_count"] = int(a_number(value, "turn.llm_calls"))
                continue
            known[key] = _READERS[key](value, f"turn.{key}")
        return cls._of(known)

    def _repr_html_(self) -> str:
        from .display import facts_html

        facts = [self.agent or "unnamed agent", self.service or "", f"{len(self.llm_calls)} model calls"]
        facts += [f"{self.duration_s:.2f} s"] if self.duration_s is not None else []
        facts += (
            [f"{self.usage.input_tokens or 0:,} + {self.usage.output_tokens or 0:,} tokens"] if self.usage is not None else []
        )
        facts += [usd_text(self.cost_usd, self.cost_estimated)] if self.cost_usd is not None else []
        facts += ["incomplete"] if not self.complete else []
        calls = [f"{call.name}{' ✗' if call.error is not None else ''}" for call in self.tool_calls or ()]
        error = (self.error.message or self.error.type or "unknown") if self.error is not None else None
        rows = [("input", self.input), ("tools", ", ".join(calls) or None), ("output", self.output), ("error", error)]
        return facts_html(
            f"turn {self.turn_id}", " · ".join(filter(None, facts)), [(name, text) for name, text in rows if text is not None]
        )

    def __repr__(self) -> str:
        return f"Turn({self.turn_id or '?'}, agent={self.agent!r}, close_reason={self.close_reason!r})"


class _LazyFields:
    """Builder that parses the structured fields of a ``turn.v1`` object on first use."""

    __slots__ = ("FIELDS",)

    def __init__(self, data: dict[str, Any]) -> None:
        self.FIELDS = data

    def __getattr__(self, name: str) -> Callable[[], Any]:
        return lambda: _READERS[name](self.FIELDS[name], f"turn.{name}")


_DEFAULTS: dict[str, Callable[[], Any]] = {
    **dict.fromkeys(Turn.__annotations__, lambda: None),
    "turn_id": str, "complete": lambda: True, "truncated": bool, "revision": lambda: 1, "cost_estimated": bool,
    **dict.fromkeys((
        "messages", "llm_calls", "tool_definitions", "retrievals", "context", "agent_runs", "handoffs", "attachments", "spans", "history",
        "interactions", "conflicts",
    ), list),
    **dict.fromkeys(("agents", "metadata", "references"), dict),
}  # fmt: skip
"""Mapping from field name to a function that creates the default value of an unknown field."""
_OF_OBJECTS = frozenset((
    "messages", "llm_calls", "tool_calls", "retrievals", "agent_runs", "handoffs", "spans", "usage", "error",
))  # fmt: skip
"""Fields that contain instances of a class, for which :class:`Turn` also accepts dictionaries."""
_ONLY_WHEN_TRUE = ("truncated", "cost_estimated")


def usd_text(usd: float, estimated: bool | None = False) -> str:
    """Format a cost: ``$0.0123``, ``$0.001234`` below one cent, or ``≈$0.0123`` for an estimate."""
    return f"{'≈' if estimated else ''}${usd:.{4 if usd >= 0.01 else 6}f}"


def iso(moment: datetime.datetime) -> str:
    """Format a time as UTC with six decimals: ``2026-11-21T02:57:01.000000Z``."""
    return moment.astimezone(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, datetime.datetime):
        return iso(value)
    if isinstance(value, ErrorInfo):
        if value.type is None:
            return True if value.message is None else value.message
        return {"type": value.type} if value.message is None else {"type": value.type, "message": value.message}
    if isinstance(value, Message):
        out = _plain_fields(value)
        out.update(out.pop("extra", {}))
        if value.tool_calls or value.tool_results or value.reasoning or value.attachments:
            out.setdefault("content", "")  # the message has other parts, so its text is known to be empty, not uncaptured
        return out
    return _plain_fields(value) if hasattr(value, "__dataclass_fields__") else value


def _plain_fields(value: Any) -> dict[str, Any]:
    out = {}
    for item in fields(value):
        inner = getattr(value, item.name)
        if (
            inner is None
            or (inner is False and item.default is False)  # if the default is None, False is a known value
            or (item.name == "state" and inner in _RAN)
            or (not inner and isinstance(inner, (list, tuple, Mapping)) and item.name != "arguments")
        ):
            continue
        out[item.name.rstrip("_")] = _plain(inner)
    return out


def _state(value: Any, path: str) -> Any:
    if value not in get_args(ToolState):
        raise wrong(path, value, f"one of {', '.join(get_args(ToolState))}")
    return value


_ERROR = keyed({"type": a_text, "message": a_text})


def _error(value: Any, path: str) -> ErrorInfo | None:
    if value is False or value == "":
        return None
    if value is True:
        return ErrorInfo()
    return ErrorInfo(message=value) if isinstance(value, str) else ErrorInfo(**_ERROR(value, path))


def _moment(value: Any, path: str) -> datetime.datetime:
    try:
        moment = datetime.datetime.fromisoformat(a_text(value, path).replace("Z", "+00:00"))
    except ValueError:
        raise wrong(path, value, "an ISO 8601 time") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=datetime.timezone.utc)


def _arguments(value: Any, path: str) -> dict[str, Any] | None:
    value = literals.python_value(value) if isinstance(value, str) else value
    return dict(plain(value)) if isinstance(value, Mapping) else None


def is_no_object(arguments: Any) -> bool:
    return isinstance(arguments, str) and bool(arguments.strip()) and _arguments(arguments, "") is None


def _record(cls: type[Any], other_names: Mapping[str, Sequence[str]] | None = None, /, **readers: Reader) -> Reader:
    """Return a reader that creates a ``cls`` instance from a JSON object. The object's key ``from`` sets the field ``from_``."""
    field_of = {name.rstrip("_"): name for name in readers}
    needed = [item.name for item in fields(cls) if item.default is MISSING and item.default_factory is MISSING]
    read = keyed({key: readers[name] for key, name in field_of.items()}, other_names, required=needed)
    return lambda value, path: cls(**{field_of[key]: given for key, given in read(value, path).items()})


def _message(value: Any, path: str) -> Message:
    given = a_mapping(value, path)
    known = {key: reader(given[key], f"{path}.{key}") for key, reader in _MESSAGE_READERS.items() if given.get(key) is not None}
    content = given.get("content")
    if content is not None:
        known["content"] = well_formed(jsonio.text_of(content))
    extra = plain({key: item for key, item in given.items() if key not in _MESSAGE_READERS and key != "content"})
    return Message(**{"role": "user", **known, "extra": extra or None})


_tool_request = _record(ToolRequest, call_id=a_text, name=a_text, arguments=anything)
_tool_response = _record(ToolResponse, call_id=a_text, name=a_text, result=anything)
_MESSAGE_READERS: dict[str, Callable[[Any, str], Any]] = {
    "role": a_text, "reasoning": a_text, "name": a_text, "finish_reason": a_text,
    "tool_calls": list_of(_tool_request), "tool_results": list_of(_tool_response), "attachments": list_of(an_object),
}  # fmt: skip
_tool_call_keys = keyed(
    {
        "name": a_name, "arguments": _arguments, "result": anything, "error": _error, "duration_s": a_number, "span_id": a_text,
        "call_id": a_name, "permission_denied": a_flag, "agent": a_name, "cost_usd": a_number, "malformed": a_flag, "state": _state,
    },
    required=("name",),
)  # fmt: skip


def _tool_call(value: Any, path: str) -> ToolCall:
    given = _tool_call_keys(value, path)
    return ToolCall(**{"malformed": is_no_object(value.get("arguments")), **given})


_READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(("turn_id", "tenant", "trace_id", "reading"), a_text),
    **dict.fromkeys(("conversation_id", "user_id", "service", "service_version", "agent", "framework"), a_name),
    **dict.fromkeys(("close_reason", "input", "output", "system", "reasoning", "stop_kind", "supersedes"), a_text),
    "start": _moment, "duration_s": a_number, "complete": a_flag, "truncated": a_flag, "revision": a_count, "error": _error,
    "instructions_lost_at": a_count,
    "messages": list_of(_message), "tool_calls": list_of(_tool_call), "tool_definitions": list_of(an_object),
    "llm_calls": list_of(_record(
        LlmCall, span_id=a_text, model=a_name, provider=a_name, input_tokens=a_count, output_tokens=a_count, cached_tokens=a_count,
        reasoning_tokens=a_count, cost_usd=a_number, finish_reason=a_name, response_id=a_name, duration_s=a_number,
        time_to_first_token_s=a_number, error=_error, cache_write_tokens=a_count, service_tier=a_name,
    )),
    "retrievals": list_of(_record(
        Retrieval, query=a_text, documents=list_of(_record(Document, DOCUMENT_NAMES, id=a_text, content=a_text, score=a_number)),
    )),
    "agent_runs": list_of(_record(AgentRun, name=a_name, span_id=a_text, parent=a_name, duration_s=a_number, error=_error)),
    "handoffs": list_of(_record(Handoff, HANDOFF_NAMES, from_=a_name, to=a_name, success=a_flag, duration_s=a_number)),
    "usage": _record(
        Usage, input_tokens=a_count, output_tokens=a_count, total_tokens=a_count, cached_tokens=a_count, reasoning_tokens=a_count,
        cache_write_tokens=a_count,
    ),
    "cost_usd": a_number, "cost_estimated": a_flag,
    "spans": list_of(_record(SpanInfo, id=a_text, parent=a_text, name=a_text, duration_s=a_number, attributes=an_object, start_s=a_number, inferred=a_flag, failed=a_flag)),
    "ground_truth": anything, "session": an_object, "workflow": an_object, "agents": an_object,
    "interactions": list_of(an_object), "conflicts": list_of(an_object), "metadata": an_object, "privacy": an_object,
    "references": an_object,
    **{name: READERS[name] for name in ("context", "retrieved_ids", "relevant_ids", "history", "attachments", "logprobs")},
}  # fmt: skip
_PLAIN = (a_text, a_name, a_number, a_count, a_flag, an_object, anything)
_READ_LATER = frozenset(name for name, reader in _READERS.items() if reader not in _PLAIN)
