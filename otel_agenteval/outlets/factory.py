"""Factory for the configured outlets.

The function ``outlet_from(wanted, setup)`` in an outlet's module creates it from its option ``wanted``. It returns None if
another outlet does the same work. Modules of disabled outlets aren't imported, so their dependencies cost nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from .base import Outlet, Setup

MODULES: Mapping[str, str] = {
    "log_events": ".log_events",
    "prometheus": ".default_registry",
    "otlp_metrics": ".otlp_metrics",
    "jsonl": ".jsonl",
    "otlp_file": ".otlp_file",
    "console": ".console",
    "store": ".store.outlet",
    "webhook": ".webhook.outlet",
    "otlp": ".otlp.outlet",
}
"""Module of each option of the section ``outlets``. Scores are emitted in this order."""


def outlets_from(setup: Setup) -> list[Outlet]:
    """Return the enabled outlets. Raises ConfigError if one can't read a file."""
    options = setup.config.outlets
    wanted = {option: getattr(options, option) for option in MODULES}
    made = [
        import_module(MODULES[option], __package__).outlet_from(value, setup)
        for option, value in wanted.items()
        if value not in (None, False, "off")
    ]
    return [outlet for outlet in made if outlet is not None]
