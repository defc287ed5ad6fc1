"""Sidecar defaults, and the check that its listeners require authentication."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..config.serve import ServeOptions
from ..core.errors import ConfigError
from ..core.files import make_private
from .auth import is_loopback


def as_sidecar(config: Config) -> Config:
    """Return the configuration with the sidecar's defaults.

    The sidecar serves its own ``/metrics``, and writes no log events through the application's logging. Judge jobs are queued in
    a file. With a journal, undelivered scores are kept in a spool. Explicit options override these, except for ``outlets.prometheus``.
    """
    more: dict[str, Any] = {"outlets": {"prometheus": None}}
    if "log_events" not in config.outlets.options_given:  # a sidecar has no application that configures OpenTelemetry logging
        more["outlets"]["log_events"] = "off"
    more["statistics"] = statistics = dict[str, Any]()
    if config.statistics.changes.detect == "auto":
        statistics["changes"] = {"detect": True}
    if config.statistics.state == "auto":
        try:
            statistics["state"] = str(state_folder() / "statistics.json")
        except ConfigError:  # statistics work without a state file
            statistics["state"] = None
    judged = any(service.model is not None for service in (config.judge, config.embedder))
    if judged and "backend" not in config.judge.queue.options_given:
        more["judge"] = {"queue": {"backend": "sqlite", "path": str(state_folder() / "queue.db")}}
    otlp = config.outlets.otlp
    if otlp is not None and config.serve.journal is not None and "spool" not in otlp.options_given:
        # without a spool, the journal would keep the requests of every undelivered score
        more["outlets"]["otlp"] = {"spool": {"directory": str(Path(config.serve.journal) / "spool")}}
    return load_config(config, overrides=more)


def state_folder() -> Path:
    """Return ``$XDG_STATE_HOME/otel-agenteval``. Raises ConfigError if it can't be created."""
    base = os.environ.get("XDG_STATE_HOME", "").strip()
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "otel-agenteval"
    try:
        make_private(folder)
    except OSError as error:
        raise ConfigError(f"{folder}: can't be created: {error.strerror}. Set judge.queue.path to another place") from None
    return folder


def check_exposure(options: ServeOptions) -> None:
    """Raise ConfigError for an address off loopback without authentication."""
    if options.insecure or options.token is not None or options.tenants or options.tls.client_ca_file is not None:
        return
    for name in ("grpc", "http", "metrics", "web"):
        address = getattr(options, name)
        if address is not None and not is_loopback(address):
            raise ConfigError(
                f"serve.{name}: {address} is reachable from other machines without authentication; "
                "set serve.token, serve.tenants or serve.tls.client_ca_file, or allow this with --insecure (serve.insecure: true)"
            )
