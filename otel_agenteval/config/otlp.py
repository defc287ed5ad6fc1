"""Section ``outlets.otlp``: scores sent to an OTLP endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from .section import NO_ENTRIES, Section
from .types import Before, Duration, DurationOrZero, FilePath, Kind, LogEvents, Size, Url


def headers_of(value: Any) -> Any:
    """Check headers, and return them with lower-case names."""
    if isinstance(value, Mapping) and all(
        isinstance(name, str) and _HEADER.fullmatch(name) and isinstance(text, str) and text.isprintable()
        for name, text in value.items()
    ):
        return {name.lower(): text for name, text in value.items()}
    raise ValueError("must be a mapping of header names to texts. Example: {x-api-key: SECRET}")


_HEADER = re.compile(r"[A-Za-z0-9_.-]+")
Headers = Annotated[dict[str, str], Before(headers_of), Kind("mapping of headers", secret=True)]


class SpoolOptions(Section):
    """Files that keep undelivered scores across restarts."""

    directory: FilePath
    """Folder of the files, created if missing. Processes can share it, because each uses its own file."""
    max_bytes: Size = 256 * 2**20
    """Maximum bytes of one file. Scores beyond it are dropped and counted."""


class OtlpOptions(Section):
    """Scores exported directly to an OTLP endpoint: ``{endpoint: http://127.0.0.1:4317}``."""

    endpoint: Url
    """Address of the receiver: ``http://HOST:PORT`` without TLS, ``https://…`` with TLS. For OTLP/HTTP, paths such as ``/v1/logs`` are appended."""
    protocol: Literal["grpc", "http"] = "grpc"
    """OTLP/gRPC, or OTLP/HTTP with protobuf."""
    headers: Headers = NO_ENTRIES
    """Headers of each request, with secrets as ``${env:NAME}``."""
    compression: Literal["none", "gzip"] = "none"
    """Compression of requests. Use ``gzip`` for a receiver on another machine."""
    timeout: Duration = 10.0
    """Maximum seconds of one request."""
    ca_file: FilePath | None = None
    """PEM file of the authorities that sign the receiver's certificate. Null uses those of the system."""
    cert_file: FilePath | None = None
    """PEM file of the client certificate, for receivers that require one."""
    key_file: FilePath | None = None
    """PEM file of the client certificate's key."""
    log_events: LogEvents = "auto"
    """Which scores are exported as ``gen_ai.evaluation.result`` log records, with the values of ``outlets.log_events``. In a sidecar, which writes no span events, ``auto`` means all."""
    evaluate_spans: Literal["off", "linked", "child"] = "off"
    """Export a span ``evaluate AGENT`` with the scores as events, for backends that only show spans. ``linked`` makes a separate trace with a link to the turn, ``child`` adds the span to the turn's trace."""
    metrics_interval: DurationOrZero = 60.0
    """Seconds between two exports of the metrics. 0 exports none."""
    retry_for: Duration = 3600.0
    """Seconds of retries before a score is dropped."""
    queue_bytes: Size = 16 * 2**20
    """Maximum bytes of undelivered scores in memory. Scores beyond it are dropped and counted."""
    spool: SpoolOptions | None = None
    """Files that keep undelivered scores, instead of memory."""

    def _check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("set both cert_file and key_file, or neither")
