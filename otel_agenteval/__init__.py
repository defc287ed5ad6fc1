"""Scores for live agent traffic, from the OpenTelemetry that is already there.

Nothing is imported before it is used: the package is also an entry point of other programs' start-up.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import AgentEvalError, ConfigError, JudgeError, MissingExtra
    from .model import Turn
    from .registry import Result, get_metric, metric, skip, vacuous
    from .replay import load_turns
    from .score import Score

__version__ = "0.1.0"

_HOME = {
    "AgentEvalError": "errors",
    "ConfigError": "errors",
    "JudgeError": "errors",
    "MissingExtra": "errors",
    "Result": "registry",
    "Score": "score",
    "Turn": "model",
    "load_turns": "replay",
    "get_metric": "registry",
    "metric": "registry",
    "skip": "registry",
    "vacuous": "registry",
}

__all__ = [
    "AgentEvalError",
    "ConfigError",
    "JudgeError",
    "MissingExtra",
    "Result",
    "Score",
    "Turn",
    "get_metric",
    "load_turns",
    "metric",
    "skip",
    "vacuous",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f".{home}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
