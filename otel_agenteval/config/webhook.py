"""Section ``outlets.webhook``: messages to people about scores that somebody has to look at."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from .otlp import headers_of
from .section import NO_ENTRIES, Section
from .types import Before, Count, Duration, DurationOrZero, Kind, Text, Url


def _floors(value: Any) -> Any:
    if isinstance(value, Mapping) and all(
        isinstance(name, str) and isinstance(bound, (int, float)) and not isinstance(bound, bool) and math.isfinite(bound)
        for name, bound in value.items()
    ):
        return {name: float(bound) for name, bound in value.items()}
    raise ValueError("it must be a mapping of metrics to numbers")


_REASONS = ("gates", "failed", "errors", "changes")


def _reasons(value: Any) -> Any:
    if isinstance(value, (list, tuple)) and value and all(item in _REASONS for item in value):
        return tuple(dict.fromkeys(value))
    raise ValueError(f"it must be a list of {', '.join(_REASONS)}")


class WebhookOptions(Section):
    """Messages to a URL: ``{url: "${env:SLACK_WEBHOOK_URL}", format: slack}``."""

    url: Url
    """Where messages are posted; a secret for most services, as ``${env:NAME}``. PagerDuty's is ``https://events.pagerduty.com/v2/enqueue``."""
    format: Literal["generic", "slack", "teams", "pagerduty"] = "generic"
    """``generic`` is one JSON object with all notices; the others are what these services show."""
    about: Annotated[tuple[str, ...], Before(_reasons), Kind("list of gates, failed, errors, changes")] = ("gates", "changes")
    """What is reported: failed ``gates`` (metrics with ``policy: gate``), every ``failed`` score, ``errors`` of metrics, and ``changes`` of scores, where those are looked for."""
    floors: Annotated[dict[str, float], Before(_floors), Kind("mapping of metrics to numbers")] = NO_ENTRIES
    """The worst mean that a metric may have over ``window``, for each agent: below it, or above it where less is better, it is reported, and once more when it is well again."""
    window: Duration = 3600.0
    """Seconds over which the means of ``floors`` are taken."""
    least: Count = 20
    """Turns in a window before its mean is compared with a floor."""
    every: DurationOrZero = 60.0
    """Seconds between two messages, at least: what comes meanwhile goes into one."""
    signing_secret: Text | None = None
    """Signs each message: the header ``X-Agenteval-Signature: t=SECONDS,v1=HMAC-SHA256`` of ``SECONDS.BODY``, in hex."""
    routing_key: Text | None = None
    """PagerDuty's integration key."""
    headers: Annotated[dict[str, str], Before(headers_of), Kind("mapping of headers")] = NO_ENTRIES
    """Sent with each message; secrets as ``${env:NAME}``."""
    link: Text | None = None
    """Address of a turn's trace, with ``{trace_id}``, ``{span_id}`` and ``{turn_id}`` for its ids: ``https://tempo.example/trace/{trace_id}``."""
    timeout: Duration = 10.0
    """Seconds that one message may take."""
    retry_for: Duration = 3600.0
    """Seconds after which a message is given up that the receiver keeps refusing for now."""

    def _check(self) -> None:
        if self.format == "pagerduty" and not self.routing_key:
            raise ValueError("routing_key must be set for pagerduty")
        if self.link is not None:
            try:
                self.link.format(trace_id="", span_id="", turn_id="")
            except (KeyError, IndexError, ValueError):
                raise ValueError("link may have {trace_id}, {span_id} and {turn_id}, and no other braces") from None
