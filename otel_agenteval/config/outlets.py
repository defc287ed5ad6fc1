"""Section ``outlets``: where scores leave. The larger outlets have modules of their own."""

from __future__ import annotations

from typing import Any, Literal

from .otlp import OtlpOptions
from .section import Section
from .store import StoreOptions
from .types import Console, FilePath, LogEvents, Port, Switch
from .webhook import WebhookOptions


class PrometheusOptions(Section):
    """Where Prometheus finds the metrics: exactly one of the two."""

    registry: Literal["default"] | None = None
    """``default`` joins the application's own ``/metrics``: no port is opened."""
    port: Port | None = None
    """Serve ``/metrics`` on a port of our own."""

    def _check(self) -> None:
        if (self.registry is None) == (self.port is None):
            raise ValueError("it must be {registry: default}, {port: N} or null")

    def to_dict(self) -> dict[str, Any]:
        """The one of the two that is set."""
        return {"registry": self.registry} if self.port is None else {"port": self.port}


class OutletOptions(Section):
    """Where scores leave."""

    span_events: Literal["all", "notable", "off"] = "all"
    """Events on the turn's root span: all inline scores, ``notable`` ones (failed, errors, gates), or none."""
    log_events: LogEvents = "auto"
    """``gen_ai.evaluation.result`` log records: ``auto`` is one for each score that the exported span does not carry, and for every score with ``privacy.export_content``; ``notable`` are failed ones, errors and gates."""
    otlp_metrics: Switch = False
    """The metrics through the Meter API, for applications that push them."""
    prometheus: PrometheusOptions | None = PrometheusOptions.of(registry="default")
    """The metrics with exemplars, for scraping; null switches this off."""
    jsonl: FilePath | None = None
    """File to which scores are appended as JSON lines."""
    otlp_file: FilePath | None = None
    """File to which the spans of each turn are appended as OTLP/JSON lines, redacted, for ``eval``, ``turns`` and every other reader of that form."""
    console: Console = "off"
    """Turns with what was said, redacted, and their scores on standard error, for development: ``all`` (``true``), ``failed`` ones, or ``off`` (``false``)."""
    store: StoreOptions | None = None
    """Turns and scores kept in an SQLite file, which ``why``, ``export`` and pages read; null keeps none."""
    webhook: WebhookOptions | None = None
    """Messages to Slack, Teams, PagerDuty or any URL about failed gates and metrics below their floor; null sends none."""
    otlp: OtlpOptions | None = None
    """Scores sent to an OTLP endpoint over connections of our own, as a sidecar does; null sends none."""
