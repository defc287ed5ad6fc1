"""Section ``outlets.webhook``: messages about failed gates and other notable scores."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from .otlp import Headers
from .section import NO_ENTRIES, Section
from .types import Before, Count, Duration, DurationOrZero, Kind, Secret, Text, Url


def _floors(value: Any) -> Any:
    if isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(bound, (int, float)) and not isinstance(bound, bool) and math.isfinite(bound)
        for name, bound in value.items()
    ):
        return {name: float(bound) for name, bound in value.items()}
    raise ValueError("must be a mapping of metrics to numbers. Example: {llm_faithfulness: 0.8}")


_REASONS = ("gates", "critical", "failed", "errors", "changes")


def _reasons(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and value and all(item in _REASONS for item in value):
        return tuple(dict.fromkeys(value))
    raise ValueError(f"must be a list of {', '.join(_REASONS)}")


class WebhookOptions(Section):
    """Messages to a URL: ``{url: "${env:SLACK_WEBHOOK_URL}", format: slack}``."""

    url: Url
    """URL that receives the messages. Most services treat it as a secret, so write ``${env:NAME}``. For PagerDuty, use ``https://events.pagerduty.com/v2/enqueue``."""
    format: Literal["generic", "slack", "teams", "pagerduty"] = "generic"
    """Format of the messages. ``generic`` is one JSON object with all notices."""
    about: Annotated[tuple[str, ...], Before(_reasons), Kind("list of gates, critical, failed, errors, changes")] = (
        "gates",
        "critical",
        "changes",
    )
    """Subjects of the messages: failed ``gates`` (metrics with ``policy: gate``), ``critical`` findings, every ``failed`` score, ``errors`` of metrics, and detected ``changes`` of scores."""
    floors: Annotated[dict[str, float], Before(_floors), Kind("mapping of metrics to numbers")] = NO_ENTRIES
    """Worst acceptable mean of a metric over ``window``, for each agent. A worse mean is reported, and so is its recovery."""
    window: Duration = 3600.0
    """Seconds over which means are compared with ``floors``."""
    least: Count = 20
    """Minimum turns in a window to compare its mean with a floor."""
    every: DurationOrZero = 60.0
    """Minimum seconds between two messages. Notices in between are combined into one message."""
    signing_secret: Secret | None = None
    """Secret that signs each message. The header ``X-Agenteval-Signature: t=SECONDS,v1=HEX`` has the HMAC-SHA256 of ``SECONDS.BODY``."""
    routing_key: Secret | None = None
    """Integration key of PagerDuty."""
    headers: Headers = NO_ENTRIES
    """Headers of each message, with secrets as ``${env:NAME}``."""
    link: Text | None = None
    """Link to a turn's trace, with ``{trace_id}``, ``{span_id}`` and ``{turn_id}``: ``https://tempo.example/trace/{trace_id}``."""
    timeout: Duration = 10.0
    """Maximum seconds to send one message."""
    retry_for: Duration = 3600.0
    """Seconds of retries before a message is dropped."""

    def _check(self) -> None:
        if self.format == "pagerduty" and not self.routing_key:
            raise ValueError("format: pagerduty requires routing_key")
        if self.link is not None:
            try:
                self.link.format(trace_id="", span_id="", turn_id="")
            except (KeyError, IndexError, ValueError):
                raise ValueError("link: only {trace_id}, {span_id} and {turn_id} are allowed in braces") from None
