"""Section ``outlets``: the destinations of scores. Larger outlets have separate modules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from .otlp import OtlpOptions
from .section import Section
from .store import StoreOptions
from .types import Console, FilePath, LogEvents, Port, Switch
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
