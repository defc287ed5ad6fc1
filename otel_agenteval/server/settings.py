"""The configuration as a sidecar runs it, and what it must not do without."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..config.loader import load_config
from ..config.root import Config
from ..config.serve import ServeOptions
from ..core.errors import ConfigError
from .guard import is_loopback


def as_sidecar(config: Config) -> Config:
    """The configuration as a sidecar runs it: its own ``/metrics``; judge jobs in a file, and with a journal also the scores that wait
    for a receiver, unless the configuration names another place.
    """
    more: dict[str, Any] = {"outlets": {"prometheus": None}}
    if "log_events" not in config.outlets.options_given:  # there is no application here that would have set up its logging
        more["outlets"]["log_events"] = "off"
    more["statistics"] = _statistics(config)
    judged = any(service.model is not None for service in (config.judge, config.embedder))
    if judged and "backend" not in config.judge.queue.options_given:
        more["judge"] = {"queue": {"backend": "sqlite", "path": str(state_folder() / "queue.db")}}
    otlp = config.outlets.otlp
    if otlp is not None and config.serve.journal is not None and "spool" not in otlp.options_given:
        # else the journal would have to keep the requests of every score that a receiver does not take
        more["outlets"]["otlp"] = {"spool": {"directory": str(Path(config.serve.journal) / "spool")}}
    return load_config(config, overrides=more)


def _statistics(config: Config) -> dict[str, Any]:
    """Changes are looked for, and what is known outlives the process, unless the configuration says otherwise."""
    wanted, found = config.statistics, dict[str, Any]()
    if wanted.changes.detect == "auto":
        found["changes"] = {"detect": True}
    if wanted.state == "auto":
        try:
            found["state"] = str(state_folder() / "statistics.json")
        except ConfigError:  # nothing of the user's work depends on it
            found["state"] = None
    return found


def state_folder() -> Path:
    """The folder for what must outlive the process, made if it does not exist: ``$XDG_STATE_HOME/otel-agenteval``.

    Raises:
        ConfigError: it cannot be made.
    """
    base = os.environ.get("XDG_STATE_HOME", "").strip()
    folder = (Path(base) if base else Path.home() / ".local" / "state") / "otel-agenteval"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise ConfigError(f"{folder}: cannot be made: {error.strerror} (judge.queue.path names another place)") from None
    return folder


def check_exposure(options: ServeOptions) -> None:
    """Refuse to listen to other machines without any authentication.

    Raises:
        ConfigError: an address is not on loopback, and there is no token, no tenant, no authority of clients, and no ``insecure``.
    """
    if options.insecure or options.token is not None or options.tenants or options.tls.client_ca_file is not None:
        return
    for name in ("grpc", "http", "metrics", "web"):
        address = getattr(options, name)
        if address is not None and not is_loopback(address):
            raise ConfigError(
                f"serve.{name}: {address} can be reached from other machines, and anyone there could send to it; "
                "set serve.token, serve.tenants or serve.tls.client_ca_file, or confirm that this is intended with --insecure (serve.insecure: true)"
            )
