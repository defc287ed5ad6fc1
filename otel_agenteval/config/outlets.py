"""Sections ``outlets`` and ``privacy``: export of scores, and redaction of content."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from .section import NO_ENTRIES, Section
from .types import (
    Before,
    Console,
    Count,
    Duration,
    DurationOrZero,
    FilePath,
    Headers,
    Kind,
    LogEvents,
    Port,
    Secret,
    Size,
    Switch,
    Text,
    WholeUrl,
    duration_text,
    http_url,
    names,
    seconds,
    texts,
    valid,
)


class SpoolOptions(Section):
    """Files that preserve undelivered scores across restarts."""

    directory: FilePath
    """Folder for the files, created if missing. Processes can share the folder, because each process uses its own file."""
    max_bytes: Size = 256 * 2**20
    """Maximum size of one file. Above the limit, the same rules apply as for ``outlets.otlp.queue_bytes``."""


def _endpoint(value: Any) -> str:
    url = http_url(value)
    if path := re.search(r"/v1/(logs|metrics|traces)$", url):
        raise ValueError(f"must be an address without {path[0]}, which OTLP/HTTP appends. Example: http://127.0.0.1:4318")
    return url


class OtlpOptions(Section):
    """Direct export of scores to an OTLP endpoint: ``{endpoint: http://127.0.0.1:4317}``."""

    endpoint: Annotated[str, Before(_endpoint), Kind("HTTP or HTTPS URL", secret=True)]
    """Address of the receiver: ``http://HOST:PORT`` without TLS, ``https://…`` with TLS. For OTLP/HTTP, paths such as ``/v1/logs`` are appended."""
    protocol: Annotated[Literal["grpc", "http"], Before(lambda value: "http" if value == "http/protobuf" else value)] = "grpc"
    """``grpc`` means OTLP/gRPC. ``http`` or ``http/protobuf`` means OTLP/HTTP with protobuf."""
    headers: Headers = NO_ENTRIES
    """Headers for each request. Write secrets as ``${env:NAME}``."""
    compression: Literal["none", "gzip"] = "none"
    """Compression of requests. Use ``gzip`` for a receiver on another machine."""
    timeout: Duration = 10.0
    """Maximum seconds for one request."""
    ca_file: FilePath | None = None
    """PEM file with the authorities that sign the receiver's certificate. If null, the system's authorities apply."""
    cert_file: FilePath | None = None
    """PEM file with the client certificate, for receivers that require a client certificate."""
    key_file: FilePath | None = None
    """PEM file with the client certificate's key."""
    log_events: LogEvents = "auto"
    """Scores to export as ``gen_ai.evaluation.result`` log records, with the same values as in ``outlets.log_events``. In a sidecar, ``auto`` means ``all``, because a sidecar writes no span events."""
    evaluate_spans: Literal["off", "linked", "child"] = "off"
    """Export a span ``evaluate AGENT`` with the scores as events, for backends that show only spans. ``linked`` creates a separate
    trace with a link to the turn. ``child`` adds the span to the turn's trace."""
    metrics_interval: DurationOrZero = 60.0
    """Seconds between two exports of the metrics. 0 turns the export off."""
    retry_for: Duration = 3600.0
    """Maximum seconds to retry before a score is dropped."""
    queue_bytes: Size = 16 * 2**20
    """Maximum bytes of undelivered scores in memory. Above the limit, new scores are dropped and counted. A sidecar with a
    journal, or a Kafka worker, delays turns instead."""
    spool: SpoolOptions | None = None
    """Files for undelivered scores. If null, undelivered scores wait only in memory."""

    def _check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("set both cert_file and key_file, or neither")


def _floors(value: Any) -> Any:
    with suppress(AttributeError, TypeError, ValueError, OverflowError):
        found = {name: float("nan" if isinstance(floor, bool) else floor) for name, floor in value.items()}
        if all(isinstance(name, str) and math.isfinite(floor) for name, floor in found.items()):
            return found
    raise ValueError("must be a mapping of metrics to numbers. Example: {llm_faithfulness: 0.8}")


_SUBJECTS = ("gates", "critical", "failed", "errors", "changes")
_subjects = texts(f"must be a list of {', '.join(_SUBJECTS)}", _SUBJECTS.__contains__, alone=False, least=1)
_distinct = Before(lambda value: tuple(dict.fromkeys(_subjects(value))))
Subjects = Annotated[tuple[str, ...], _distinct, Kind(f"list of {', '.join(_SUBJECTS)}")]


class WebhookOptions(Section):
    """A webhook that receives messages: ``{url: "${env:SLACK_WEBHOOK_URL}", format: slack}``."""

    url: WholeUrl
    """URL that receives the messages. Most services treat it as a secret, so write ``${env:NAME}``. For PagerDuty, use ``https://events.pagerduty.com/v2/enqueue``."""
    format: Literal["generic", "slack", "teams", "pagerduty"] = "generic"
    """Format of the messages. ``generic`` is one JSON object with all notices."""
    about: Subjects = ("gates", "critical", "changes")
    """Subjects of the messages: failed ``gates`` (metrics with ``policy: gate``), ``critical`` findings, every ``failed`` score, ``errors`` of metrics, and detected ``changes`` of scores."""
    floors: Annotated[dict[str, float], Before(_floors), Kind("mapping of metrics to numbers")] = NO_ENTRIES
    """Worst acceptable mean of a metric over ``window``, for each agent and service. The webhook receives a message when the mean
    gets worse than this value, and another message when the mean recovers."""
    window: Duration = 3600.0
    """Period over which the means for ``floors`` are calculated."""
    least: Count = 20
    """Minimum number of turns in ``window``. With fewer turns, the mean isn't compared with a floor."""
    every: DurationOrZero = 60.0
    """Minimum seconds between two deliveries, except at a flush. Notices in between are sent together."""
    signing_secret: Secret | None = None
    """Secret for signing each message. The header ``X-Agenteval-Signature: t=SECONDS,v1=HEX`` contains the HMAC-SHA256 of ``SECONDS.BODY``."""
    routing_key: Secret | None = None
    """PagerDuty integration key."""
    headers: Headers = NO_ENTRIES
    """Headers for each message. Write secrets as ``${env:NAME}``."""
    link: Text | None = None
    """Link to a turn's trace, such as ``https://tempo.example/trace/{trace_id}``. Allowed placeholders are ``{trace_id}``, ``{span_id}``, and ``{turn_id}``."""
    timeout: Duration = 10.0
    """Maximum seconds to send one message."""
    retry_for: Duration = 3600.0
    """Maximum seconds to retry before a message is dropped."""

    def _check(self) -> None:
        if self.format == "pagerduty" and not self.routing_key:
            raise ValueError("format: pagerduty requires routing_key")
        if self.link is not None:
            try:
                self.link.format(trace_id="", span_id="", turn_id="")
            except (AttributeError, LookupError, TypeError, ValueError):
                raise ValueError("link: only {trace_id}, {span_id}, and {turn_id} are allowed in braces") from None


class PrometheusOptions(Section):
    """Endpoint that Prometheus scrapes: either a registry or a port."""

    registry: Literal["default"] | None = None
    """``default`` adds the metrics to the registry of ``prometheus_client``, for your own ``/metrics``, without opening a port."""
    port: Port | None = None
    """Port for a separate ``/metrics`` endpoint, instead of ``registry``."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"{_PROMETHEUS}. Write {{port: {value}}}" if type(value) is int else _PROMETHEUS)  # noqa: TRY004 - pydantic reads it
        return value

    def _check(self) -> None:
        if (self.registry is None) == (self.port is None):
            raise ValueError(_PROMETHEUS)

    def to_dict(self) -> dict[str, Any]:
        return {"registry": self.registry} if self.port is None else {"port": self.port}


_PROMETHEUS = "must be {port: N}, {registry: default}, or null"


_age = valid("must be a duration of at least 1m. Example: 30d", lambda value: age if (age := seconds(value)) >= 60 else None)


class StoreOptions(Section):
    """Score store, which is an SQLite file or PostgreSQL: ``{path: scores.db}``, or only the path."""

    path: FilePath
    """SQLite file in an existing folder. Processes on one machine can share the file. For several machines, a PostgreSQL
    database: ``postgresql://user:${env:PASSWORD}@host/database`` (extra ``[postgres]``)."""
    max_age: Annotated[float, Before(_age), Kind("duration from 1m", duration_text)] = 30 * 86400.0
    """Seconds after which a turn and its scores are deleted."""
    max_bytes: Size = 2**30
    """Maximum size of the file. At the limit, the oldest turns are deleted. PostgreSQL ignores this option."""
    queue_bytes: Size = 64 * 2**20
    """Maximum memory for turns that wait while the store is unavailable. Above the limit, the oldest turns are dropped and counted.
    A sidecar with a journal makes senders retry instead, and a Kafka worker pauses reading."""
    content: Switch = False
    """Store the messages of each turn, and the prompts and replies of its judge calls, redacted by ``privacy.redact``."""
    causes: Switch = True
    """Store each turn's properties and the step that caused its failure, for ``differences`` and ``failure-modes``."""
    attributes: Annotated[tuple[str, ...], Before(names("attributes")), Kind("list of attributes")] = ()
    """Span or resource attributes to store with each turn, for ``compare --by``. Example: ``gen_ai.prompt.version``."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, (str, os.PathLike)) else value

    def _check(self) -> None:
        if re.match(r"(?!postgres(ql)?://)[^/\\]{2,}://", self.path):
            raise ValueError("path: must be the path of a file, or start with postgresql://")


class PrivacyOptions(Section):
    """Redaction of a turn's content before it is sent to a judge, an embedder, an outlet, or a queue."""

    redact: Annotated[
        tuple[Literal["email", "phone", "card", "ssn", "secret"], ...],
        Before(texts("must be a list of email, phone, card, ssn, and secret", lambda _: True, alone=False)),
        Kind("list of `email`, `phone`, `card`, `ssn`, and `secret`"),
    ] = ("email", "phone", "card", "secret")
    """Kinds of personal data and secrets to replace with placeholders, such as ``[EMAIL_1]`` in content and
    ``[PHONE-9f3a0c1b2d4e]`` in names and IDs. ``code_`` metrics read the original values."""
    export_content: Switch = False
    """Add the turn's input and output (``agenteval.turn.input``, ``agenteval.turn.output``) to the log events of scores. These texts are redacted and truncated to 4,096 characters."""


class OutletOptions(Section):
    span_events: Literal["all", "notable", "off"] = "all"
    """Scores to add as events to the turn's root span, if they are available before the span is exported: ``all``, ``notable``
    (failures, errors, gates), or ``off`` (none)."""
    log_events: LogEvents = "auto"
    """Scores to export as ``gen_ai.evaluation.result`` log records. ``auto`` exports scores that aren't on the exported span or,
    if ``privacy.export_content`` is true, all scores. If ``outlets.otlp`` already exports these log records, ``auto`` exports
    none. ``notable`` exports failures, errors, and gates. In a sidecar, the default is ``off``."""
    otlp_metrics: Switch = False
    """Export the metrics through OpenTelemetry's Meter API, for applications that push metrics."""
    prometheus: PrometheusOptions | None = PrometheusOptions.of(registry="default")
    """Metrics with exemplars for Prometheus. Null disables these metrics."""
    jsonl: FilePath | None = None
    """File to which scores are appended, as JSON lines."""
    otlp_file: FilePath | None = None
    """File to which each turn's redacted spans are appended, as OTLP/JSON lines. ``eval`` and ``turns`` can read this file."""
    console: Console = "off"
    """Turns to print to standard error during development, with redacted messages and scores. ``failed`` prints turns with a failed score or an error."""
    store: StoreOptions | None = None
    """Score store for the web UI, and commands such as ``why``: an SQLite file or PostgreSQL. Null disables the store."""
    webhook: WebhookOptions | None = None
    """Messages to Slack, Teams, PagerDuty, or any URL, for example about failed gates. Null disables messages."""
    otlp: OtlpOptions | None = None
    """Direct export of scores to an OTLP endpoint. Null disables this export."""
