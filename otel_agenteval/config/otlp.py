"""Section ``outlets.otlp``: scores sent to an OTLP endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from .section import NO_ENTRIES, Section
from .types import Before, Duration, DurationOrZero, FilePath, Kind, LogEvents, Size, Url


def headers_of(value: Any) -> Any:
    """Headers as they are configured: names in lower case."""
    if isinstance(value, Mapping) and all(
        isinstance(name, str) and _HEADER.fullmatch(name) and isinstance(text, str) and text.isprintable()
        for name, text in value.items()
    ):
        return {name.lower(): text for name, text in value.items()}
    raise ValueError("it must be a mapping of header names to texts")


_HEADER = re.compile(r"[A-Za-z0-9_.-]+")


class SpoolOptions(Section):
    """Files in which scores wait for their receiver, so that they outlive the process."""

    directory: FilePath
    """Folder, created if it is missing. Processes may share it; each uses a file of its own."""
    max_bytes: Size = 256 * 2**20
    """Bytes that may wait in one file; what does not fit is dropped and counted."""


class OtlpOptions(Section):
    """Scores sent to any OTLP endpoint over connections of our own: ``{endpoint: http://127.0.0.1:4317}``."""

    endpoint: Url
    """Address of the receiver: ``http://HOST:PORT`` in plain text, ``https://…`` with TLS. Over HTTP, ``/v1/logs`` and so on are added."""
    protocol: Literal["grpc", "http"] = "grpc"
    """OTLP/gRPC, or OTLP/HTTP with protobuf."""
    headers: Annotated[dict[str, str], Before(headers_of), Kind("mapping of headers")] = NO_ENTRIES
    """Sent with each request; secrets as ``${env:NAME}``."""
    compression: Literal["none", "gzip"] = "none"
    """``gzip`` pays where the receiver is on another machine."""
    timeout: Duration = 10.0
    """Seconds that one request may take."""
    ca_file: FilePath | None = None
    """PEM file of the authorities that may sign the receiver's certificate; null means those of the system."""
    cert_file: FilePath | None = None
    """PEM file of our own certificate, for receivers that ask for one."""
    key_file: FilePath | None = None
    """PEM file of its key."""
    log_events: LogEvents = "auto"
    """``gen_ai.evaluation.result`` log records under the Resource of the evaluated root, as ``outlets.log_events``, whose ``auto`` leaves them to this one. A sidecar writes no span events: there ``auto`` is all."""
    evaluate_spans: Literal["off", "linked", "child"] = "off"
    """A span ``evaluate AGENT`` with the scores as its events, for backends that show nothing but spans: ``linked`` is a trace of its own with a link to the turn, ``child`` is part of the turn's trace."""
    metrics_interval: DurationOrZero = 60.0
    """Seconds between two exports of the metrics; 0 sends none."""
    retry_for: Duration = 3600.0
    """Seconds after which scores are dropped that the receiver keeps refusing for now."""
    queue_bytes: Size = 16 * 2**20
    """Bytes that may wait in memory; what does not fit is dropped and counted."""
    spool: SpoolOptions | None = None
    """Files in which scores wait instead of in memory."""

    def _check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None):
            raise ValueError("cert_file and key_file must be set together, or neither of them")
