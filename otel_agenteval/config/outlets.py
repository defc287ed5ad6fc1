"""Section ``outlets``: the destinations of scores. Larger outlets have separate modules."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from .otlp import OtlpOptions
from .section import Section
from .types import Before, Console, Duration, FilePath, Kind, LogEvents, Port, Size, Switch, name_list
from .webhook import WebhookOptions


class PrometheusOptions(Section):
    """The endpoint that Prometheus scrapes: either a registry or a port."""

    registry: Literal["default"] | None = None
    """``default`` adds the metrics to the registry of ``prometheus_client``, for your own ``/metrics``. No port is opened."""
    port: Port | None = None
    """Port for a separate ``/metrics`` endpoint."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if not isinstance(value, Mapping):
            raise ValueError(f"{_PROMETHEUS}. Write {{port: {value}}}" if isinstance(value, int) else _PROMETHEUS)  # noqa: TRY004 - pydantic reads it
        return value

    def _check(self) -> None:
        if (self.registry is None) == (self.port is None):
            raise ValueError(_PROMETHEUS)

    def to_dict(self) -> dict[str, Any]:
        """Return the option that is set."""
        return {"registry": self.registry} if self.port is None else {"port": self.port}


_PROMETHEUS = "must be {port: N}, {registry: default} or null"


class StoreOptions(Section):
    """The score store, an SQLite file or PostgreSQL: ``{path: scores.db}``, or only the path."""

    path: FilePath
    """SQLite file in an existing folder, which processes of one machine can share. Or, for any number of machines, a PostgreSQL database: ``postgresql://user:${env:PASSWORD}@host/database`` (extra ``[postgres]``)."""
    max_age: Duration = 30 * 86400.0
    """Seconds after which a turn and its scores are deleted."""
    max_bytes: Size = 2**30
    """Maximum size of the file. Beyond it, the oldest turns are deleted. PostgreSQL ignores this option."""
    queue_bytes: Size = 64 * 2**20
    """Maximum memory of turns that wait while the store can't be written. Beyond it, the oldest are dropped and counted. With a journal, senders wait instead."""
    content: Switch = False
    """Store the messages of each turn, redacted by ``privacy.redact``."""
    causes: Switch = True
    """Store facts of each turn and the step that broke it, for ``differences`` and ``failure-modes``."""

    attributes: Annotated[tuple[str, ...], Before(name_list("attributes")), Kind("list of attributes")] = ()
    """Span or resource attributes to store with each turn, for ``compare --by``: ``gen_ai.prompt.version``."""

    @classmethod
    def _read(cls, value: Any) -> Any:
        if isinstance(value, (str, os.PathLike)):
            return {"path": value}
        return value


def _kinds(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise ValueError("must be a list of email, phone, card, ssn and secret")


class PrivacyOptions(Section):
    """Redaction of a turn's content before it leaves the process, for a judge, an embedder, an outlet or a queue."""

    redact: Annotated[
        tuple[Literal["email", "phone", "card", "ssn", "secret"], ...],
        Before(_kinds),
        Kind("list of `email`, `phone`, `card`, `ssn` and `secret`"),
    ] = ("email", "phone", "card", "secret")
    """Kinds of personal data and secrets to redact. In content, ``[EMAIL_1]`` replaces a value. In names and ids, ``[PHONE-9f3a0c1b2d4e]`` does. ``code_`` metrics read the original."""
    export_content: Switch = False
    """Add the turn's input and output (``agenteval.turn.input``, ``agenteval.turn.output``) to the log events of scores, redacted and truncated to 4,096 characters each."""


class OutletOptions(Section):
    """The destinations of scores."""

    span_events: Literal["all", "notable", "off"] = "all"
    """Scores as events on the turn's root span: ``all`` inline scores, ``notable`` ones (failures, errors, gates), or none."""
    log_events: LogEvents = "auto"
    """Scores as ``gen_ai.evaluation.result`` log records. ``auto`` exports each score that isn't on the exported span, or every score with ``privacy.export_content``. ``notable`` exports failures, errors and gates."""
    otlp_metrics: Switch = False
    """Export the metrics through OpenTelemetry's Meter API, for applications that push metrics."""
    prometheus: PrometheusOptions | None = PrometheusOptions.of(registry="default")
    """Metrics with exemplars for Prometheus. Null switches them off."""
    jsonl: FilePath | None = None
    """File for scores as JSON lines. The file is appended to."""
    otlp_file: FilePath | None = None
    """File for the redacted spans of each turn as OTLP/JSON lines, which ``eval`` and ``turns`` read. The file is appended to."""
    console: Console = "off"
    """Turns to print on standard error, with redacted messages and scores: ``all`` (``true``), ``failed`` or ``off`` (``false``). Meant for development."""
    store: StoreOptions | None = None
    """Score store for ``why``, ``export``, ``compare`` and the web page: an SQLite file or PostgreSQL. Null keeps none."""
    webhook: WebhookOptions | None = None
    """Messages to Slack, Teams, PagerDuty or any URL about failed gates and metrics below their floor. Null sends none."""
    otlp: OtlpOptions | None = None
    """Scores exported directly to an OTLP endpoint. Null exports none."""
