"""Outlets as a configuration asks for them.

Each outlet is made by ``outlet_from(wanted, setup)`` in its own module, where ``wanted`` is its option; it may be none,
where another outlet does the same. A module is imported only where its option is on: who sends nothing pays for no connections and no encoders.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from .base import Outlet, Setup

MODULES: Mapping[str, str] = {
    "log_events": ".log_events",
    "prometheus": ".prometheus",
    "otlp_metrics": ".otlp_metrics",
    "jsonl": ".jsonl",
    "otlp_file": ".otlp_file",
    "console": ".console",
    "store": ".sqlite.outlet",
    "webhook": ".webhook.outlet",
    "otlp": ".otlp.outlet",
}
"""Option of the section ``outlets`` → the module that makes its outlet. Scores leave in this order."""


def outlets_from(setup: Setup) -> list[Outlet]:
    """The outlets that are on.

    Raises:
        ConfigError: a file that one of them needs at once cannot be read.
    """
    options = setup.config.outlets
    wanted = {option: getattr(options, option) for option in MODULES}
    made = [
        import_module(MODULES[option], __package__).outlet_from(value, setup)
        for option, value in wanted.items()
        if value not in (None, False, "off")
    ]
    return [outlet for outlet in made if outlet is not None]
