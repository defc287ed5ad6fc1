"""Configuration: one declaration per option gives its type, default, range, documentation and environment variable.

    load_config()                                     defaults < file < environment < code
    load_config("agenteval.yaml")
    load_config({"outlets": {"span_events": "notable"}})

The file is YAML (numbers and booleans as in YAML 1.2: ``off`` and ``10:30`` are text) named by ``OTEL_AGENTEVAL_CONFIG_FILE``
or by the caller; ``${env:NAME}`` and ``${env:NAME:-default}`` stand for environment variables. An option's environment
variable is ``OTEL_AGENTEVAL_`` and its path joined by ``__``: ``OTEL_AGENTEVAL_TURN__IDLE_TIMEOUT=10s``; an empty one counts
as unset, lists and mappings are written as YAML or JSON.

Everything wrong becomes one :class:`ConfigError` with one line per fault: where it stands, the value, and what is allowed.
"""

from __future__ import annotations

import math
import os
import re
import urllib.parse
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr, ValidationError, model_validator

from ..core.errors import ConfigError, nearest
from .keypath import KeyPath, dotted
from .masking import masked

ENV_PREFIX = "OTEL_AGENTEVAL_"
RESERVED_ENV = (f"{ENV_PREFIX}ENABLED", f"{ENV_PREFIX}CONFIG_FILE")
"""Variables that are no options: the switch, and the file's name."""

# --- values --------------------------------------------------------------------------------------------------------

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_LONGEST = 365 * 86400.0  # beyond any use, and within what a lock can wait
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|d|h|m|s)")
_BYTES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}
_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+)):([0-9]{1,5})")
_SIZE = re.compile(rf"([0-9]{{1,13}}(?:\.[0-9]+)?)\s*({'|'.join(_BYTES)})?")


def seconds(value: Any) -> float:
    """A duration in seconds from ``"5m"``, ``"1h30m"`` or ``"5ms"``; a bare number is milliseconds.

    Raises:
        ValueError: anything else.
    """
    number = _number(value)
    found = number / 1000 if number is not None else _with_units(value)
    if found is not None and found <= _LONGEST:
        return found
    raise ValueError("a duration up to 365d (5m, 1h30m, 2s, 5ms, or a number of milliseconds) is")


def size(value: Any) -> int:
    """A size in bytes from ``"4MiB"`` or ``"64kB"``; a bare number is bytes.

    Raises:
        ValueError: anything else.
    """
    found = _SIZE.fullmatch(_plain_text(value))
    if found is None or float(found[1]) * _BYTES[found[2] or "B"] < 1:
        raise ValueError("a size from 1 byte (4MiB, 64kB, or a number of bytes) is")
    return int(float(found[1]) * _BYTES[found[2] or "B"])


def _with_units(value: Any) -> float | None:
    text = value.strip() if isinstance(value, str) else ""
    parts = _DURATION.findall(text)
    if not text or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def _number(value: Any) -> float | None:
    """A finite number from 0, also written as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _delay(value: Any) -> Any:
    try:
        return "auto" if value == "auto" else seconds(value)
    except ValueError as error:
        raise ValueError(f"auto or {error}") from None


def _positive(value: Any) -> float:
    found = seconds(value)
    if found <= 0:
        raise ValueError("a duration above 0 is")
    return found


def _switch(value: Any) -> bool:
    """Only ``true`` is true, in any case; ``1`` and ``yes`` are refused rather than guessed at."""
    text = value.strip().lower() if isinstance(value, str) else value
    if text is True or text == "true":
        return True
    if text is False or text == "false":
        return False
    raise ValueError("true or false is")


def _count(value: Any) -> int:
    return _whole(value, 1, 10**12, "a whole number from 1 is")


def _port(value: Any) -> int:
    return _whole(value, 0, 65535, "a port from 0 (any that is free) to 65535 is")


def _whole(value: Any, least: int, most: int, allowed: str) -> int:
    text = _plain_text(value)
    if not re.fullmatch(r"[0-9]{1,13}", text) or not least <= int(text) <= most:
        raise ValueError(allowed)
    return int(text)


def _plain_text(value: Any) -> str:
    """A whole number or text, as text: the environment has nothing else."""
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


_QUEUE_SCHEMES = re.compile(r"(?:(?:redis|valkey)s?(?:\+(?:sentinel|cluster))?|unix)://.+", re.DOTALL)


def _queue_url(value: Any) -> str:
    if isinstance(value, str) and _QUEUE_SCHEMES.fullmatch(value):
        return value
    raise ValueError("a URL as in redis://host:6379/0 (or rediss, unix, redis+sentinel, redis+cluster) is")


def _file(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ValueError("the path of a file is")
    return str(os.fspath(value))


def _names(value: Any) -> Any:
    if value == "default" or (isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)):
        return value
    raise ValueError("default, or a list of metric names, is")


def _address(value: Any) -> str:
    host, port = split_address(value)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_address(value: Any) -> tuple[str, int]:
    """Host and port of ``127.0.0.1:4318``, ``[::1]:4318`` or ``localhost:0`` (any free port).

    Raises:
        ValueError: anything else.
    """
    found = _ADDRESS.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or int(found[3]) > 65535:
        raise ValueError("HOST:PORT is, as in 127.0.0.1:4318 or [::1]:4318 (port 0 is any free one; null is none)")
    return found[1] or found[2], int(found[3])


def http_url(value: Any) -> str:
    """The address of a server, without the slash at its end. Keys belong into headers: it has no credentials and no query.

    Raises:
        ValueError: anything else; the message holds nothing of it.
    """
    text = value.strip() if isinstance(value, str) else ""
    try:
        parts = urllib.parse.urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or "@" in text or not text.isprintable() or " " in text:
        raise ValueError("an address that begins with http:// or https://, without credentials, query or fragment, is")
    return text.rstrip("/")


def _text(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError("a text is")


def _hosts(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(isinstance(item, str) and item.strip() for item in items):
        return tuple(item.strip().lower() for item in items)
    raise ValueError("a text or a list of texts is")


def _prices(value: Any) -> Any:
    """Prices by model: ``{qwen3: {input: 0.2, output: 0.6}}``."""
    if not isinstance(value, Mapping) or not all(isinstance(name, str) and _is_price(price) for name, price in value.items()):
        raise ValueError(
            "a mapping of models to {input, output, cached_input}, USD per million tokens (the last may be left out), is"
        )
    return {name: {key: float(amount) for key, amount in price.items()} for name, price in value.items()}


def _is_price(value: Any) -> bool:
    return (
        isinstance(value, Mapping)
        and {"input", "output"} <= value.keys() <= {"input", "output", "cached_input"}
        and all(isinstance(amount, (int, float)) and _number(amount) is not None for amount in value.values())
    )


def _panelists(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and len(value) != 1 and all(isinstance(item, str) and item.strip() for item in value):
        return tuple(item.strip() for item in value)
    raise ValueError("a list of two models or more, or an empty one, is")


def _rate(value: Any) -> float:
    number = _number(value)
    if number is None or number > 1:
        raise ValueError("a share from 0 to 1 is")
    return number


def _usd(value: Any) -> float | None:
    number = _number(value)
    if value is not None and number is None:
        raise ValueError("an amount of US dollars from 0, or null, is")
    return number


Duration = Annotated[float, BeforeValidator(_positive)]
Size = Annotated[int, BeforeValidator(size)]
Count = Annotated[int, BeforeValidator(_count)]
Switch = Annotated[bool, BeforeValidator(_switch)]
Url = Annotated[str, BeforeValidator(http_url)]
Text = Annotated[str, BeforeValidator(_text)]
Address = Annotated[str, BeforeValidator(_address)]

# --- the options ---------------------------------------------------------------------------------------------------


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TurnOptions(_Section):
    """When a turn closes, and how much may be held until then."""

    idle_timeout: Duration = 300.0
    """Seconds without a new span after which a turn closes whose root was never seen to end."""
    max_duration: Duration = 3600.0
    """Seconds after its first span at which a turn closes whatever happens."""
    decision_delay: Annotated[Literal["auto"] | float, BeforeValidator(_delay)] = "auto"
    """Seconds to wait after the root's end for spans that are still open or under way; ``auto`` fits the door."""
    stitch_timeout: Annotated[float, BeforeValidator(seconds)] = 30.0
    """Seconds that a model call which is a trace of its own, and asked for a tool, waits for the call that brings the result; 0 joins none."""
    max_open: Count = 50_000
    """Turns held open; past it the oldest is closed and evaluated."""
    max_spans: Count = 2_000
    """Spans of one turn; at the limit it is closed and evaluated."""
    max_bytes: Size = 4 * 2**20
    """Bytes of one turn; at the limit it is closed and evaluated."""
    total_bytes: Size = 256 * 2**20
    """Bytes of all open turns; past it the oldest are closed and evaluated."""


class InlineOptions(_Section):
    """What is evaluated the moment a turn ends."""

    metrics: Annotated[Literal["default"] | tuple[str, ...], BeforeValidator(_names)] = "default"
    """``default`` (every reference-free metric that means something on any answer) or a list of metric names."""
    budget: Annotated[float, BeforeValidator(seconds)] = 0.005
    """Seconds of the agent's thread that one turn may take, where an SDK needs its scores at once; the metrics left over run on the worker."""


def _patterns(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and items and all(isinstance(item, str) and item for item in items):
        return tuple(items)
    raise ValueError("a text or a list of texts is, with * for any characters")


def _some_patterns(value: Any) -> Any:
    return () if value in ([], ()) else _patterns(value)


Patterns = Annotated[tuple[str, ...], BeforeValidator(_patterns)]
Steps = Annotated[tuple[Literal["tool", "llm", "retrieval", "sub_agent", "handoff"], ...], BeforeValidator(_patterns)]


class Selector(_Section):
    """Which turns are meant. All conditions must hold; each takes one value or several, with ``*`` for any characters."""

    agent: Patterns = ()
    """Name of the agent that answered."""
    service: Patterns = ()
    """``service.name`` of the root's resource."""
    model: Patterns = ()
    """Model of any call of the turn."""
    conversation: Patterns = ()
    """Conversation id."""
    step: Steps = ()
    """What the turn holds: ``tool``, ``llm``, ``retrieval``, ``sub_agent``, ``handoff``."""
    attribute: dict[str, Patterns] = Field(default_factory=dict)
    """Attributes of the turn's root span."""


class SampleRate(_Section):
    """A rate of its own for some turns: ``{when: {agent: travel}, rate: 0.5}``."""

    when: Selector | None = None
    """Turns that it is for; all, if left out."""
    rate: Annotated[float, BeforeValidator(_rate)]
    """Share of them, 0 to 1."""


class CascadeOptions(_Section):
    """A cheaper judged metric is asked first: ``{after: embed_answer_relevance, judge_if: "score.embed_answer_relevance < 0.5"}``."""

    after: Text
    """Name of that metric, which is configured too."""
    judge_if: Text
    """Condition on its score: the turn is judged then; else the rate decides."""


def _strata(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(item in ("agent", "service", "model", "conversation") for item in items):
        return tuple(items)
    raise ValueError("a list of agent, service, model and conversation is")


def _quota(value: Any) -> int | None:
    return None if value is None else _whole(value, 1, 10**6, "a whole number from 1, or null, is")


class SampleOptions(_Section):
    """Which turns a judged metric is evaluated on: ``{rate: 0.05, always_if: "error or duration_s > 30"}``."""

    rate: Annotated[float, BeforeValidator(_rate)]
    """Share of the turns, 0 to 1."""
    always_if: Text | None = None
    """Condition of turns that are judged whatever the rate."""
    rates: tuple[SampleRate, ...] = ()
    """Other rates for some turns; the first whose ``when`` fits wins."""
    min_per_hour: Annotated[int | None, BeforeValidator(_quota)] = None
    """Turns of each stratum that are judged in any hour at least, as far as there are so many."""
    strata: Annotated[tuple[str, ...], BeforeValidator(_strata)] = ("agent",)
    """What makes a stratum: ``agent``, ``service``, ``model``, ``conversation``, or several of them."""
    cascade: CascadeOptions | None = None
    """A cheaper judged metric that is asked first."""

    @model_validator(mode="before")
    @classmethod
    def _with_a_rate(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "rate" not in value:
            raise ValueError("a mapping with a rate (1 is every turn) is")
        return value


class MetricEntry(_Section):
    """A metric with parameters: ``{code_max_duration: {max_seconds: 2}, policy: gate}``, or only its name."""

    name: str
    """Canonical name, or a name from another catalogue (``trusys:icontains``)."""
    params: dict[str, Any] = Field(default_factory=dict)
    """The metric's parameters; its documentation names them."""
    policy: Literal["gate", "trend"] = "trend"
    """``gate`` (must always pass) or ``trend`` (watch it)."""
    when: Selector | None = None
    """Turns that it is evaluated on; all, if left out."""
    sample: SampleOptions | None = None
    """For ``llm_`` and ``embed_`` metrics: which of those turns are judged; all, if left out."""

    @model_validator(mode="before")
    @classmethod
    def _from_entry(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"name": value}
        if not isinstance(value, Mapping):
            raise ValueError("a metric's name, or {name: {parameters}, policy: gate | trend, when: {…}, sample: {…}}, is")  # noqa: TRY004 - pydantic reads it
        names = [key for key in value if key not in _BESIDE_A_METRIC]
        if len(names) != 1:
            raise ValueError(
                f"exactly one metric beside policy, when and sample is (here: {', '.join(map(str, names)) or 'none'})"
            )
        params = value[names[0]]
        if params is not None and not isinstance(params, Mapping):
            raise ValueError(f"a mapping of parameters of {names[0]} is")
        rest = {key: value[key] for key in _BESIDE_A_METRIC if key in value}
        return {"name": str(names[0]), "params": dict(params or {}), **rest}


class GroupOptions(_Section):
    """Metrics that share what is said once: ``{policy: gate, when: {agent: travel}, metrics: [code_pii_leakage, code_secret_leak]}``."""

    metrics: tuple[MetricEntry, ...]
    """As under ``metrics``; what an entry says itself is stronger."""
    policy: Literal["gate", "trend"] = "trend"
    """Of those that say none."""
    when: Selector | None = None
    """Turns that they are evaluated on, where they say none; all, if left out."""
    sample: SampleOptions | None = None
    """Which of those turns the ``llm_`` and ``embed_`` metrics among them are judged on, where they say nothing."""

    @model_validator(mode="before")
    @classmethod
    def _with_metrics(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and not value.get("metrics"):
            raise ValueError("a mapping with metrics (a list of at least one) is")
        return value

    def entries(self) -> tuple[MetricEntry, ...]:
        """Its metrics with what they share."""
        return tuple([self._filled(entry) for entry in self.metrics])

    def _filled(self, entry: MetricEntry) -> MetricEntry:
        judged = entry.name.startswith(("llm_", "embed_"))
        shared = {"policy": self.policy, "when": self.when, **({"sample": self.sample} if judged else {})}
        return entry.model_copy(update={key: value for key, value in shared.items() if key not in entry.model_fields_set})


def _kinds(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("a list of email, phone, card, ssn and secret is")


def _accepted(value: Any) -> Any:
    """A list of attributes, each one a reference of its last part's name, or ``{attribute: reference}``."""
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item for item in value):
        return {item: re.split(r"[.:]", item)[-1] for item in value}
    if isinstance(value, Mapping) and all(isinstance(item, str) and item for pair in value.items() for item in pair):
        return dict(value)
    raise ValueError("a list of span attributes (baggage:key for baggage), or a mapping of them to reference names, is")


_BESIDE_A_METRIC = ("policy", "when", "sample")


class GivenReferences(_Section):
    """References for the turns that a selector means: ``{when: {agent: travel}, expected_tools: [search, book]}``."""

    when: Selector | None = None
    """Turns that they are for; all, if left out."""
    references: dict[str, Any]
    """By name, as metrics know them."""

    @model_validator(mode="before")
    @classmethod
    def _from_entry(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError("a mapping of references, with or without when, is")  # noqa: TRY004 - pydantic reads it
        if "references" in value:
            return dict(value)
        return {
            "references": {key: item for key, item in value.items() if key != "when"},
            **{k: value[k] for k in ("when",) if k in value},
        }


class ReferenceOptions(_Section):
    """What turns are compared with, beside what ``expect()`` says in code, which is nearest and wins."""

    accept_from: Annotated[dict[str, str], BeforeValidator(_accepted)] = Field(default_factory=dict)
    """Attributes of the root span (``baggage:key`` for baggage) that may say a reference: a list, or ``{attribute: reference}``. No other may."""
    given: tuple[GivenReferences, ...] = ()
    """References for agents, services or routes; the first that fits wins."""
    retrievers: Annotated[tuple[str, ...], BeforeValidator(_some_patterns)] = ()
    """Tools that look things up (``*`` for any characters): their results are the turn's context where no retrieval span says one."""
    dataset: Annotated[str, BeforeValidator(_file)] | None = None
    """JSON lines, CSV or Parquet file of cases: ``case_id`` or ``input``, and references in the other columns."""


class ConversationOptions(_Section):
    """Turns with one conversation id, evaluated as a whole when the conversation ends. Nothing is held while ``metrics`` is empty."""

    metrics: tuple[MetricEntry, ...] = ()
    """Metrics over the conversation: its messages are all that was said, its history the turns before the last."""
    idle_timeout: Duration = 1800.0
    """Seconds without a new turn after which a conversation has ended; a later turn resumes it."""
    max_open: Count = 10_000
    """Conversations held; past it the one that was silent longest ends."""
    max_turns: Count = 200
    """Turns of one conversation that are held; past it the oldest go."""
    max_bytes: Size = 64 * 2**20
    """Bytes of all conversations."""


class PrometheusOptions(_Section):
    """Exactly one of the two."""

    registry: Literal["default"] | None = None
    """``default`` joins the application's own ``/metrics``: no port is opened."""
    port: Annotated[int, BeforeValidator(_port)] | None = None
    """Serve ``/metrics`` on a port of our own."""

    @model_validator(mode="after")
    def _exactly_one(self) -> PrometheusOptions:
        if (self.registry is None) == (self.port is None):
            raise ValueError("{registry: default}, {port: N} or null is")
        return self


class PrivacyOptions(_Section):
    """What is taken out of a turn before its content leaves the process, to a judge, an embedder or the file of a queue."""

    redact: Annotated[tuple[Literal["email", "phone", "card", "ssn", "secret"], ...], BeforeValidator(_kinds)] = (
        "email",
        "phone",
        "card",
        "secret",
    )
    """Kinds of personal data and secrets that are replaced by their kind and a number (``[EMAIL_1]``); scores that are computed here see everything."""
    export_content: Switch = False
    """Whether log events of scores also say what the user said and got (``agenteval.turn.input``, ``agenteval.turn.output``): redacted, and 4,096 characters of each."""


def _headers(value: Any) -> Any:
    if isinstance(value, Mapping) and all(
        isinstance(name, str) and _HEADER.fullmatch(name) and isinstance(text, str) and text.isprintable()
        for name, text in value.items()
    ):
        return {name.lower(): text for name, text in value.items()}
    raise ValueError("a mapping of header names to texts is")


_HEADER = re.compile(r"[A-Za-z0-9_.-]+")


class SpoolOptions(_Section):
    """Files in which scores wait for their receiver, so that they outlive the process."""

    directory: Annotated[str, BeforeValidator(_file)]
    """Folder, made when it is missing. Processes may share it; each takes a file of its own."""
    max_bytes: Size = 256 * 2**20
    """Bytes that may wait in one file; what does not fit is dropped and counted."""

    @model_validator(mode="before")
    @classmethod
    def _with_a_directory(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and "directory" not in value:
            raise ValueError("a mapping with a directory is")
        return value


class OtlpOptions(_Section):
    """Scores sent to any OTLP endpoint by connections of our own: ``{endpoint: http://127.0.0.1:4317}``."""

    endpoint: Url
    """Address of the receiver: ``http://HOST:PORT`` in plain text, ``https://…`` with TLS. Over HTTP, ``/v1/logs`` and so on are added."""
    protocol: Literal["grpc", "http"] = "grpc"
    """OTLP/gRPC, or OTLP/HTTP with protobuf."""
    headers: Annotated[dict[str, str], BeforeValidator(_headers)] = Field(default_factory=dict)
    """Sent with each request; secrets as ``${env:NAME}``."""
    compression: Literal["none", "gzip"] = "none"
    """``gzip`` pays where the receiver is on another machine."""
    timeout: Duration = 10.0
    """Seconds that one request may take."""
    ca_file: Annotated[str, BeforeValidator(_file)] | None = None
    """PEM file of certificates that the receiver's must be signed by; null is those of the system."""
    cert_file: Annotated[str, BeforeValidator(_file)] | None = None
    """PEM file of our own certificate, for receivers that ask for one."""
    key_file: Annotated[str, BeforeValidator(_file)] | None = None
    """PEM file of its key."""
    log_events: Switch = True
    """One ``gen_ai.evaluation.result`` log record per score, under the Resource of the evaluated root."""
    evaluate_spans: Literal["off", "linked", "child"] = "off"
    """A span ``evaluate AGENT`` with the scores as its events, for backends that show nothing but spans: ``linked`` is a trace of its own with a link to the turn, ``child`` stands in the turn's trace."""
    metrics_interval: Annotated[float, BeforeValidator(seconds)] = 60.0
    """Seconds between two exports of the metrics; 0 sends none."""
    retry_for: Duration = 3600.0
    """Seconds after which scores are given up that a receiver kept refusing for the time being."""
    queue_bytes: Size = 16 * 2**20
    """Bytes that may wait in memory; what does not fit is dropped and counted."""
    spool: SpoolOptions | None = None
    """Files in which scores wait instead of in memory."""

    @model_validator(mode="before")
    @classmethod
    def _with_an_endpoint(cls, value: Any) -> Any:
        if isinstance(value, Mapping) and value.get("endpoint") is None:
            raise ValueError("a mapping with an endpoint is")
        return value

    @model_validator(mode="after")
    def _pair_of_files(self) -> OtlpOptions:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file together, or neither of them, is")
        return self


class StoreOptions(_Section):
    """Turns and scores kept in an SQLite file: ``{path: scores.db}``, or only the path."""

    path: Annotated[str, BeforeValidator(_file)]
    """The file; its folder must exist. Processes of one machine may share it."""
    max_age: Duration = 30 * 86400.0
    """Seconds after which a turn goes, with its scores."""
    max_bytes: Size = 2**30
    """Size of the file from which the oldest turns go."""
    content: Switch = False
    """Whether what was said is kept with each turn, redacted as ``privacy.redact`` says."""

    @model_validator(mode="before")
    @classmethod
    def _with_a_path(cls, value: Any) -> Any:
        if isinstance(value, (str, os.PathLike)):
            return {"path": value}
        if isinstance(value, Mapping) and value.get("path") is None:
            raise ValueError("the path of a file, or a mapping with a path, is")
        return value


class OutletOptions(_Section):
    """Where scores leave."""

    span_events: Literal["all", "notable", "off"] = "all"
    """Events on the turn's root span: all inline scores, ``notable`` ones (failed, errors, gates), or none."""
    log_events: Switch = True
    """One ``gen_ai.evaluation.result`` log record per score."""
    otlp_metrics: Switch = False
    """The metrics through the Meter API, for applications that push."""
    prometheus: PrometheusOptions | None = PrometheusOptions(registry="default")
    """The metrics with exemplars for a scrape; null switches it off."""
    jsonl: Annotated[str, BeforeValidator(_file)] | None = None
    """File to which scores are appended as JSON lines."""
    store: StoreOptions | None = None
    """Turns and scores kept in an SQLite file, which ``why``, ``export`` and pages read; null keeps none."""
    otlp: OtlpOptions | None = None
    """Scores sent to an OTLP endpoint by connections of our own, as a sidecar does; null sends none."""


class QueueOptions(_Section):
    """The queue between the agent's threads and our worker."""

    max_bytes: Size = 64 * 2**20
    """Bytes that may wait; what does not fit is dropped and counted."""


class ServiceOptions(_Section):
    """A server that is asked. It is when it has an address and a model."""

    base_url: Url | None = None
    """Address of the server, up to and including the version: ``http://127.0.0.1:11434/v1``. Null: there is none."""
    model: Text | None = None
    """The model's name there."""
    api_key: Text | None = None
    """Key of the server, as ``${env:NAME}``."""
    timeout: Duration = 30.0
    """Seconds that one attempt may take."""
    deadline: Duration = 120.0
    """Seconds that one question may take, with retries and waiting for its turn."""
    max_concurrency: Count = 8
    """Questions at once; more wait."""
    requests_per_minute: Count | None = None
    """Rate of requests; null is without limit."""
    tokens_per_minute: Count | None = None
    """Rate of input and output tokens; null is without limit."""
    prices: Annotated[dict[str, dict[str, float]], BeforeValidator(_prices)] = Field(default_factory=dict)
    """USD per million tokens by model, ``{qwen3: {input: 0.2, output: 0.6, cached_input: 0.1}}``, where the extra ``[cost]`` knows none."""


class SpendingOptions(_Section):
    """The most that may be taken within any minute, hour or day; null is without limit."""

    usd_per_minute: Annotated[float | None, BeforeValidator(_usd)] = None
    """US dollars."""
    usd_per_hour: Annotated[float | None, BeforeValidator(_usd)] = None
    """US dollars. A model whose price is not known is not asked where dollars are bounded."""
    usd_per_day: Annotated[float | None, BeforeValidator(_usd)] = None
    """US dollars."""
    tokens_per_minute: Count | None = None
    """Input and output tokens."""
    tokens_per_hour: Count | None = None
    """Input and output tokens."""
    tokens_per_day: Count | None = None
    """Input and output tokens."""
    calls_per_minute: Count | None = None
    """Questions."""
    calls_per_hour: Count | None = None
    """Questions."""
    calls_per_day: Count | None = None
    """Questions."""


class BudgetOptions(SpendingOptions):
    """What judges and embedders may take together. Past it their jobs wait. It is kept with the queue."""

    soft: Annotated[float, BeforeValidator(_rate)] = 0.8
    """Share of each bound from which only gates, turns of ``always_if`` and jobs that were begun go on."""
    metrics: dict[str, SpendingOptions] = Field(default_factory=dict)
    """Bounds of single metrics, by name, beside those of all: ``{llm_faithfulness: {usd_per_day: 1}}``."""


class JobQueueOptions(_Section):
    """Where judged metrics wait for their turn."""

    backend: Literal["memory", "sqlite", "redis"] = "memory"
    """``memory``, which is lost with the process (and counted); ``sqlite``, a file that outlives it; or ``redis``, a server that any
    number of processes share. The last two hold turns."""
    path: Annotated[str, BeforeValidator(_file)] | None = None
    """File of the backend ``sqlite``; its folder must exist. Processes of one machine may share it."""
    url: Annotated[str, BeforeValidator(_queue_url)] | None = None
    """Server of the backend ``redis``: ``redis://``, ``rediss://`` (TLS), ``unix://``, ``redis+sentinel://…/master``, ``redis+cluster://``; ``valkey`` may stand for ``redis``."""
    name: Text = "agenteval"
    """What every key of the backend ``redis`` begins with, in braces; processes with the same one share their jobs."""
    shards: Count = 1
    """Parts of the backend ``redis``, spread over the nodes of a cluster; the same for all processes."""
    work: Switch = True
    """Whether this process works on the jobs too; false leaves them to others: to ``otel-agenteval worker --judge``."""
    max_bytes: Size = 64 * 2**20
    """Bytes that may wait; what does not fit is dropped and counted, the least important first."""
    lease: Duration = 600.0
    """Seconds after which another process does what one has begun that died. While a metric asks, this is extended."""
    max_age: Duration = 86_400.0
    """Seconds after which a job that is still waiting is dropped and counted: nobody wants to know any more."""

    @model_validator(mode="after")
    def _what_the_backend_needs(self) -> JobQueueOptions:
        if (self.backend == "sqlite") != (self.path is not None) or (self.backend == "redis") != (self.url is not None):
            raise ValueError("{backend: sqlite, path: FILE}, {backend: redis, url: redis://…}, or none of them, is")
        if not self.work and self.backend == "memory":
            raise ValueError("work: false needs a backend that others can work on, sqlite or redis: that is")
        return self


class CacheOptions(_Section):
    """Verdicts that are known already: the same question to the same model, by the same version of a metric, is asked once."""

    path: Annotated[str, BeforeValidator(_file)] | None = None
    """SQLite file of the replies; its folder must exist. Processes of one machine may share it. Null keeps none."""
    ttl: Duration = 7 * 86400.0
    """Seconds that a reply is kept."""
    max_bytes: Size = 256 * 2**20
    """Bytes of all replies; past it the oldest go."""
    audit: Annotated[float, BeforeValidator(_rate)] = 0.01
    """Share of judged turns whose questions are asked although they are known: what is said then takes the place of what was kept."""


class ServerOptions(_Section):
    """A further server of judges. A model ``NAME/MODEL`` is asked there, where ``NAME`` is the server's in ``judge.servers``."""

    base_url: Url
    """Address of the server, up to and including the version."""
    api_key: Text | None = None
    """Key of the server, as ``${env:NAME}``."""
    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """Wire format; null is that of the server's name (``anthropic``), and ``openai`` for any other name."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """As ``judge.endpoint``."""
    requests_per_minute: Count | None = None
    """Rate of requests; null is without limit."""
    tokens_per_minute: Count | None = None
    """Rate of input and output tokens; null is without limit."""


class JudgeChoice(_Section):
    """Another model for some metrics, or for the turns of some agents: ``{metric: llm_faithfulness, model: anthropic/claude-x}``."""

    metric: Patterns = ()
    """Names of metrics, with ``*`` for any characters; all, if left out."""
    agent: Patterns = ()
    """Names of agents that answered; all, if left out."""
    model: Text
    """The model's name at the judge's server, or ``SERVER/MODEL`` for one of ``judge.servers``."""


class SecondOptions(_Section):
    """A second judge, asked where the first one's score is near its threshold. Where the two disagree, the second one's stands."""

    model: Text | None = None
    """Its name, as in ``judge.choose``; null is none."""
    margin: Annotated[float, BeforeValidator(_rate)] = 0.1
    """How near to its threshold a score is in doubt, 0 to 1."""
    tolerance: Annotated[float, BeforeValidator(_rate)] = 0.2
    """How far two scores that both pass, or both fail, may be apart and still agree, 0 to 1."""


class PanelOptions(_Section):
    """Several judges, all of them asked, in place of one."""

    models: Annotated[tuple[str, ...], BeforeValidator(_panelists)] = ()
    """Their names, as in ``judge.choose``; three or more, odd numbers are best. Empty: there is none."""
    combine: Literal["median", "majority"] = "median"
    """Whose score stands: the median judge's, or the median one's among the majority that passes or fails the turn."""


class JudgeOptions(ServiceOptions):
    """The model that ``llm_`` metrics ask; without one they are skipped."""

    provider: Literal["openai", "responses", "anthropic", "gemini", "bedrock"] | None = None
    """Wire format; null goes by the model's beginning (``anthropic/…``), and is ``openai`` without one."""
    endpoint: Literal["chat", "moderations"] = "chat"
    """``moderations`` puts what ``llm_moderation`` asks to ``/moderations`` instead, with this model; only OpenAI and servers like it have that."""
    max_input_tokens: Count = 100_000
    """About how many tokens a question may have; past it the longest texts of a turn are cut in the middle, and the score says so; safety reads all, in pieces."""
    incomplete: Literal["skip", "judge"] = "skip"
    """Whether turns are judged that were closed before everything below their root had ended (``complete: false``): half a turn costs as much, and misleads."""
    attempts: Count = 5
    """How often a metric is tried on a turn while judge or embedder fail; after that it is an error."""
    seed: Text | None = None
    """What the choice of sampled turns depends on beside their trace ids; processes with the same one choose the same turns."""
    budget: BudgetOptions = BudgetOptions()
    """What judges and embedders may take."""
    queue: JobQueueOptions = JobQueueOptions()
    """Where judged metrics wait."""
    servers: dict[str, ServerOptions] = Field(default_factory=dict)
    """Further servers by name: ``{anthropic: {base_url: https://api.anthropic.com/v1, api_key: "${env:ANTHROPIC_API_KEY}"}}``."""
    choose: tuple[JudgeChoice, ...] = ()
    """Other models for some metrics or agents; the first that fits wins."""
    second: SecondOptions = SecondOptions()
    """A second judge, asked where the first is in doubt."""
    panel: PanelOptions = PanelOptions()
    """Several judges in place of one."""
    cache: CacheOptions = CacheOptions()
    """Verdicts that are known already."""
    encryption_key: Text | None = None
    """Fernet key, as ``${env:NAME}``, that encrypts what queue and cache keep in files; several, separated by commas: the first encrypts, all decrypt. Needs the extra ``[encryption]``."""


class EmbedderOptions(ServiceOptions):
    """The server that ``embed_`` metrics ask for vectors, OpenAI-compatible, or a model in this process; without either they are skipped."""

    model: Text | None = None
    """The model's name there; ``local/wordllama`` without ``base_url`` is one in this process (extra ``[embed]``)."""


class TlsOptions(_Section):
    """Certificate of the server, in files of PEM form. They are read again on SIGHUP."""

    cert_file: Annotated[str, BeforeValidator(_file)] | None = None
    """Certificate, with those that lead to its authority; null is without encryption."""
    key_file: Annotated[str, BeforeValidator(_file)] | None = None
    """Its private key."""
    client_ca_file: Annotated[str, BeforeValidator(_file)] | None = None
    """Authority of the clients' certificates: with it, only clients that have one are served."""

    @model_validator(mode="after")
    def _certificate_with_its_key(self) -> TlsOptions:
        if (self.cert_file is None) != (self.key_file is None) or (self.client_ca_file is not None and self.cert_file is None):
            raise ValueError("cert_file with key_file (and client_ca_file, if wanted), or none of them, is")
        return self


def _tenant_name(value: Any) -> str:
    if isinstance(value, str) and _TENANT.fullmatch(value):
        return value
    raise ValueError(
        "a name of letters, digits, '.', '_' and '-', which begins with a letter or digit and has at most 64 characters, is"
    )


def _labels(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping) and all(
        isinstance(key, str) and key.strip() and isinstance(label, (str, int, float, bool)) for key, label in value.items()
    ):
        clash = next((key for key in value if key.startswith(("agenteval.", "gen_ai."))), None)
        if clash is None:
            return {key.strip(): str(label).lower() if label.__class__ is bool else str(label) for key, label in value.items()}
    raise ValueError("a mapping of names to texts, none of which begins with agenteval. or gen_ai., is")


class QuotaOptions(_Section):
    """How much one tenant may send. Past it its senders are asked to come again, and nobody else's."""

    bytes_per_second: Size | None = None
    """Bytes of requests, unpacked, in the long run; a second's worth at once. Null is without limit."""
    spans_per_second: Count | None = None
    """Spans in the long run; a second's worth at once. Null is without limit."""
    open_turns: Count | None = None
    """Turns held open; new ones are not taken while there are so many. Null is without limit."""


class TenantOptions(_Section):
    """Somebody who sends with a token of its own: ``{name: shop, token: "${env:SHOP_TOKEN}", quotas: {spans_per_second: 2000}}``."""

    name: Annotated[str, BeforeValidator(_tenant_name)]
    """Goes with its turns and scores as ``agenteval.tenant``, and is part of their ids."""
    token: Text
    """What its senders give as ``Authorization: Bearer …``, as ``${env:NAME}``; no two tenants have the same."""
    quotas: QuotaOptions = QuotaOptions()
    """How much it may send."""
    labels: Annotated[dict[str, str], BeforeValidator(_labels)] = Field(default_factory=dict)
    """Attributes that its scores carry too: ``{team: checkout, plan: gold}``."""


def _once(tenants: tuple[TenantOptions, ...]) -> tuple[TenantOptions, ...]:
    for index, tenant in enumerate(tenants):
        for earlier, other in enumerate(tenants[:index]):
            if tenant.name == other.name:
                raise ValueError(f"a name only once is: {tenant.name!r} is tenants[{earlier}] and tenants[{index}]")
            if tenant.token == other.token:
                raise ValueError(
                    f"a token of its own is: {other.name!r} (tenants[{earlier}]) and {tenant.name!r} (tenants[{index}]) have the same one"
                )
    return tenants


class ServeOptions(_Section):
    """The sidecar, ``otel-agenteval serve``: where it listens, and what it takes from whom."""

    grpc: Address | None = "127.0.0.1:14317"
    """Address of OTLP/gRPC."""
    http: Address | None = "127.0.0.1:14318"
    """Address of OTLP/HTTP, and of ``/healthz`` and ``/readyz``."""
    metrics: Address | None = "127.0.0.1:19464"
    """Address of ``/metrics``, and of ``/healthz`` and ``/readyz``, which are answered there whatever the others do."""
    web: Address | None = "127.0.0.1:19465"
    """Address of the API that says what became of a turn."""
    insecure: Switch = False
    """Whether other machines may connect although neither a token nor certificates of clients are asked for."""
    token: Text | None = None
    """What senders and users of the API must give as ``Authorization: Bearer …``, as ``${env:NAME}``. Beside ``tenants`` it opens the API only."""
    tenants: Annotated[tuple[TenantOptions, ...], AfterValidator(_once)] = ()
    """Who may send, each with a token and limits of its own; with them nobody else may, and turn ids begin with the tenant's name."""
    tls: TlsOptions = TlsOptions()
    """Certificate of gRPC, HTTP and the API."""
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(_hosts)] = ()
    """Names under which HTTP clients may reach us, beside those of this machine; past loopback any may, while there are none here."""
    allowed_origins: Annotated[tuple[str, ...], BeforeValidator(_hosts)] = ()
    """Pages whose scripts may talk to us (``https://ui.example``)."""
    max_body: Size = 64 * 2**20
    """Bytes of one request, also after it was unpacked."""
    max_inflight: Size | None = None
    """Bytes that requests under way may take together, packed, unpacked and while they are read; more are asked to come again. Null is four times ``max_body``, and at least 256 MiB."""
    max_requests: Count = 32
    """Requests at once; more are asked to come again."""
    max_connections: Count = 512
    """Connections at once, of gRPC and of each HTTP port."""
    client_connections: Count = 128
    """HTTP connections of one address at once."""
    client_rate: Size | None = None
    """Bytes per second that one address may send, in the long run; null is without limit."""
    body_timeout: Duration = 10.0
    """Seconds in which a request must have come in."""
    drain_timeout: Duration = 20.0
    """Seconds from SIGTERM to the end: open turns are evaluated, and scores handed over."""
    sample_rate: Annotated[float, BeforeValidator(_rate)] = 1.0
    """Share of the traces that is evaluated, by trace id; the others are counted and never read."""
    journal: Annotated[str, BeforeValidator(_file)] | None = None
    """Folder in which requests are kept until their turns are handed over: what was acknowledged then survives a crash."""
    journal_bytes: Size = 2**30
    """Bytes of the journal; past it senders are asked to come again."""

    @model_validator(mode="after")
    def _token_is_no_tenant_s(self) -> ServeOptions:
        same = next((tenant.name for tenant in self.tenants if tenant.token == self.token), None)
        if same is not None:
            raise ValueError(
                f"a serve.token of its own is: tenant {same!r} has the same one, and beside tenants it opens the API only"
            )
        return self


class Config(_Section):
    """Everything that can be set. Durations are seconds and sizes bytes once read."""

    turn: TurnOptions = TurnOptions()
    """When a turn closes, and how much may be held until then."""
    exit_timeout: Annotated[float, BeforeValidator(seconds)] = 5.0
    """Seconds that the process may wait for scores at its exit."""
    inline: InlineOptions = InlineOptions()
    """What is evaluated the moment a turn ends."""
    metrics: tuple[MetricEntry, ...] = ()
    """Metrics that need parameters or a policy; one of the inline pack's names takes its place there."""
    groups: dict[str, GroupOptions] = Field(default_factory=dict)
    """Metrics by groups that share policy, selector and sampling; evaluated beside ``metrics``, and chosen by ``eval --metrics @NAME``."""
    references: ReferenceOptions = ReferenceOptions()
    """What turns are compared with."""
    conversation: ConversationOptions = ConversationOptions()
    """Metrics over whole conversations."""
    judge: JudgeOptions = JudgeOptions()
    """The model that ``llm_`` metrics ask."""
    embedder: EmbedderOptions = EmbedderOptions()
    """The server that ``embed_`` metrics ask for vectors."""
    privacy: PrivacyOptions = PrivacyOptions()
    """What is taken out before content leaves."""
    outlets: OutletOptions = OutletOptions()
    """Where scores leave."""
    queue: QueueOptions = QueueOptions()
    """The queue between the agent's threads and our worker."""
    serve: ServeOptions = ServeOptions()
    """The sidecar: where it listens, and what it takes from whom."""

    _sources: dict[KeyPath, str] = PrivateAttr(default_factory=dict)

    def __eq__(self, other: object) -> bool:
        """Whether the options are equal, wherever they came from."""
        return isinstance(other, Config) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]  # parameters are mappings

    def metric_entries(self, group: str | None = None) -> list[tuple[KeyPath, MetricEntry]]:
        """Where each configured metric stands, and what it is: of ``metrics`` and all groups in order, or of one group.

        Names and parameters of the metrics are checked when they are selected.
        """
        groups = self.groups if group is None else {group: self.groups[group]}
        own = self.metrics if group is None else ()
        found: list[tuple[KeyPath, MetricEntry]] = [(("metrics", i), entry) for i, entry in enumerate(own)]
        for name, one in groups.items():
            found += [(("groups", name, "metrics", i), entry) for i, entry in enumerate(one.entries())]
        return found

    def where(self, path: KeyPath) -> str:
        """What an error about a value begins with: its file and line or variable, and its path."""
        return _where(path, self._sources)

    def to_dict(self) -> dict[str, Any]:
        """The configuration in the form that is read, defaults included and secrets as they are."""
        return cast("dict[str, Any]", _written(self))


# --- reading -------------------------------------------------------------------------------------------------------


def load_config(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Config:
    """The effective configuration: defaults < file < environment < code.

    Args:
        config: a file's path (default: ``OTEL_AGENTEVAL_CONFIG_FILE``), a mapping of the file's form, which wins over
            file and environment, or a Config, which is complete: neither is then read.
        env: the environment; default ``os.environ``.
        overrides: a mapping of the file's form that wins over everything.

    Raises:
        ConfigError: unknown keys or variables, values that are not allowed, a file that cannot be read.
    """
    env = os.environ if env is None else env
    data: dict[str, Any] = {}
    sources: dict[KeyPath, str] = {}
    if isinstance(config, Config):
        if not overrides:
            return config
        data, sources = config.to_dict(), dict(config._sources)
    else:
        file = config if isinstance(config, (str, os.PathLike)) else env.get(RESERVED_ENV[1])
        if file:
            data, sources = _read_file(Path(file), env)
        elif config == "":
            raise ConfigError("config: '' is not allowed; the path of a YAML file is")
        for path, value, variable in _from_env(env):
            data = _merge(data, _nested(path, value), (), sources, variable)
        if isinstance(config, Mapping):
            data = _merge(data, config, (), sources, None)
        elif config is not None and not isinstance(config, (str, os.PathLike)):
            raise ConfigError(f"config: {type(config).__name__} is not allowed; a Config, a mapping or a path is")
    if overrides:
        data = _merge(data, overrides, (), sources, None)
    try:
        built = Config.model_validate(data)
    except ValidationError as error:
        raise ConfigError("\n".join(_explain(dict(fault), sources) for fault in error.errors())) from None
    built._sources = sources
    return built


def _read_file(file: Path, env: Mapping[str, str]) -> tuple[dict[str, Any], dict[KeyPath, str]]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
    from . import yaml  # only who has a file or asks for one pays for it

    data, lines = yaml.load(text, str(file), env)
    if data is None:
        return {}, {}
    if not isinstance(data, dict):
        raise ConfigError(f"{file}:1: {_shown(data)} is not allowed; a mapping of {', '.join(Config.model_fields)} is")
    return data, lines


_WHOLE_IN_LAYER = {("outlets", "prometheus")}
"""Mappings that a later layer replaces: their keys exclude each other."""


def _merge(
    below: Any, above: Mapping[Any, Any], path: KeyPath, sources: dict[KeyPath, str], origin: str | None
) -> dict[Any, Any]:
    """``above`` over ``below``, mapping by mapping; lists are replaced. Keeps ``sources`` in step."""
    merged = dict(below) if isinstance(below, Mapping) else {}
    for key, value in above.items():
        here = (*path, key)
        inner = merged.get(key)
        if isinstance(value, Mapping) and here not in _WHOLE_IN_LAYER and (isinstance(inner, Mapping) or inner is None):
            merged[key] = _merge(inner, value, here, sources, origin)
            continue
        for known in [known for known in sources if known[: len(here)] == here]:
            del sources[known]
        sources[here] = origin or ""  # code has no place to name
        merged[key] = value
    return merged


def _nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    for key in reversed(path):
        value = {key: value}
    return cast("dict[str, Any]", value)


# --- the environment -----------------------------------------------------------------------------------------------


def _from_env(env: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """(path, value, variable) of each option in the environment, outer ones before those inside them."""
    known = {_variable(path): path for path in option_paths()}
    given = sorted(
        (name for name, text in env.items() if name.startswith(ENV_PREFIX) and text.strip()), key=lambda n: (n.count("__"), n)
    )
    for name in given:
        if name in RESERVED_ENV or name.startswith(f"{ENV_PREFIX}TEST_"):  # what this package's own tests are told
            continue
        path = known.get(name)
        if path is None:
            raise ConfigError(f"{name}: unknown variable; did you mean {' or '.join(nearest(name, [*known, *RESERVED_ENV], 1))}?")
        yield path, _from_text(env[name].strip(), name, env), name


def _from_text(text: str, variable: str, env: Mapping[str, str]) -> Any:
    if text == "null":
        return None
    if text[0] not in "[{":
        return text
    from . import yaml

    return yaml.load(text, variable, env, lines=False)[0]


def _variable(path: tuple[str, ...]) -> str:
    return ENV_PREFIX + "__".join(path).upper()


def option_paths(section: type[BaseModel] = Config) -> list[tuple[str, ...]]:
    """The path of every option and section, in the order of their declaration."""
    found: list[tuple[str, ...]] = []
    for name, field in section.model_fields.items():
        found.append((name,))
        inner = _section_of(field.annotation)
        if inner is not None:
            found.extend((name, *path) for path in option_paths(inner))
    return found


def _section_of(annotation: Any) -> type[_Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, _Section):
        return annotation
    if get_origin(annotation) in (tuple, dict):
        return None
    return next((found for found in map(_section_of, get_args(annotation)) if found is not None), None)


# --- faults --------------------------------------------------------------------------------------------------------


def _explain(fault: dict[str, Any], sources: Mapping[KeyPath, str]) -> str:
    """One line on one fault: where it stands, the value, what is allowed."""
    path: KeyPath = tuple(fault["loc"])
    section = _at(path[:-1]) if path else None
    if fault["type"] in ("extra_forbidden", "invalid_key") and section is not None:
        path = (*path[:-1], str(path[-1]))
        names = list(section.model_fields)
        return f"{_where(path, sources)}: unknown key; did you mean {nearest(str(path[-1]), names, 1)[0]!r}? (allowed: {', '.join(names)})"
    value, found = fault["input"], _at(path)
    if fault["type"] in ("model_type", "dict_type") and found is not None:
        allowed = f"a mapping of {', '.join(found.model_fields)} is"
    elif fault["type"] == "dict_type":
        allowed = "a mapping by names is"
    elif fault["type"] == "literal_error":
        allowed = f"{fault['ctx']['expected'].replace(chr(39), '')} is"
    elif fault["type"] in ("tuple_type", "list_type"):
        allowed = "a list is"
    else:
        allowed = str(fault.get("ctx", {}).get("error", fault["msg"]))
    return f"{_where(path, sources)}: {_shown(value, path[-1] if path else '')} is not allowed; {allowed}"


_ENTRIES: dict[tuple[type[_Section], str | int], type[_Section]] = {
    (Config, "metrics"): MetricEntry, (Config, "groups"): GroupOptions, (GroupOptions, "metrics"): MetricEntry,
    (BudgetOptions, "metrics"): SpendingOptions, (ConversationOptions, "metrics"): MetricEntry, (ReferenceOptions, "given"): GivenReferences, (SampleOptions, "rates"): SampleRate,
    (JudgeOptions, "servers"): ServerOptions, (JudgeOptions, "choose"): JudgeChoice,
    (ServeOptions, "tenants"): TenantOptions,
}  # fmt: skip
"""Lists, and mappings by names that the user chooses, of sections."""


def _at(path: KeyPath) -> type[_Section] | None:
    """The section at a path; None where there is something else."""
    section: type[_Section] | None = Config
    parts = iter(path)
    for part in parts:
        if section is None:
            return None
        entry = _ENTRIES.get((section, part))
        if entry is not None:
            section = entry if next(parts, None) is not None else None  # the index or name
        else:
            field = section.model_fields.get(str(part))
            section = _section_of(field.annotation) if field is not None else None
    return section


def _where(path: KeyPath, sources: Mapping[KeyPath, str]) -> str:
    place = next((sources[path[:end]] for end in range(len(path), -1, -1) if path[:end] in sources), None)
    return ": ".join(part for part in (place, dotted(path)) if part)


def _shown(value: Any, key: Any = "") -> str:
    text = repr(masked(value, key))
    return text if len(text) <= 80 else f"{text[:79]}…"


# --- writing -------------------------------------------------------------------------------------------------------


def effective_yaml(config: Config) -> str:
    """The configuration as YAML with all defaults; secrets are shown as ``****``, wherever they stand."""
    from . import yaml  # only who has a file or asks for one pays for it

    return yaml.dump(masked(config.to_dict()))


def _written(section: _Section) -> Any:
    if isinstance(section, MetricEntry):
        beside = {key: _written(getattr(section, key)) for key in ("when", "sample") if getattr(section, key) is not None}
        given = {} if section.policy == "trend" and "policy" not in section.model_fields_set else {"policy": section.policy}
        return {section.name: section.params, **given, **beside}
    if isinstance(section, GroupOptions):
        shared = {name: value for name in ("when", "sample") if (value := getattr(section, name)) is not None}
        shared = {name: _written(value) for name, value in shared.items()}
        return {"policy": section.policy, **shared, "metrics": [_written(entry) for entry in section.metrics]}
    if isinstance(section, GivenReferences):
        when = {} if section.when is None else {"when": _written(section.when)}
        return {**section.references, **when}
    if isinstance(section, Selector):
        return {
            name: list(value) if isinstance(value, tuple) else dict(value)
            for name in type(section).model_fields
            if (value := getattr(section, name))
        }
    if isinstance(section, (SampleOptions, SampleRate, CascadeOptions)):
        found = {name: getattr(section, name) for name in type(section).model_fields if name in section.model_fields_set}
        found = {name: _written(value) if isinstance(value, _Section) else value for name, value in found.items()}
        return {
            name: [_written(item) if isinstance(item, _Section) else item for item in value]
            if isinstance(value, tuple)
            else value
            for name, value in found.items()
        }
    if isinstance(section, PrometheusOptions):
        return {"registry": section.registry} if section.port is None else {"port": section.port}
    out: dict[str, Any] = {}
    for name, field in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, _Section):
            value = _written(value)
        elif isinstance(value, tuple):
            value = [_written(item) if isinstance(item, _Section) else item for item in value]
        elif isinstance(value, dict):
            value = {key: _written(item) if isinstance(item, _Section) else item for key, item in value.items()}
        elif isinstance(value, float) and not {_usd, _rate}.intersection(_validators(field.metadata)):
            value = duration_text(value)
        elif size in _validators(field.metadata):
            value = size_text(value)
        out[name] = value
    return out


def _validators(metadata: list[Any]) -> list[Any]:
    return [item.func for item in metadata if isinstance(item, BeforeValidator)]


def duration_text(duration: float) -> str:
    """Seconds as they are written in a configuration: ``5m``, ``1.5s``, ``5ms``."""
    for unit in ("h", "m", "s"):
        if duration >= _SECONDS[unit] and (duration / _SECONDS[unit]).is_integer():
            return f"{duration / _SECONDS[unit]:.0f}{unit}"
    return f"{format(duration * 1000, '.15g')}ms"


def size_text(count: int) -> str:
    """Bytes as they are written in a configuration: ``4MiB``, ``64kB``, ``1000001B``."""
    return next(f"{count // factor}{unit}" for unit, factor in _BYTES.items() if count % factor == 0)
