"""Scores for live agent traffic, from the OpenTelemetry that is already there.

Nothing is imported before it is used: the package is also an entry point of other programs' start-up.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .config import Config
    from .errors import AgentEvalError, ConfigError, JudgeError, MissingExtra
    from .expect import expect
    from .exporter import AgentEvalSpanExporter
    from .instrument import Handle, instrument
    from .judge import Embedder, Judge
    from .logs import AgentEvalLogProcessor
    from .model import Turn
    from .processor import AgentEvalSpanProcessor
    from .registry import Result, get_metric, metric, skip, vacuous
    from .replay import load_turns
    from .sampler import record_all
    from .score import Score

__version__ = "0.1.0"

_HOME = {
    "AgentEvalError": "errors",
    "AgentEvalLogProcessor": "logs",
    "AgentEvalSpanExporter": "exporter",
    "AgentEvalSpanProcessor": "processor",
    "Config": "config",
    "ConfigError": "errors",
    "Embedder": "judge",
    "Handle": "instrument",
    "Judge": "judge",
    "JudgeError": "errors",
    "MissingExtra": "errors",
    "Result": "registry",
    "Score": "score",
    "Turn": "model",
    "expect": "expect",
    "get_metric": "registry",
    "instrument": "instrument",
    "load_turns": "replay",
    "metric": "registry",
    "record_all": "sampler",
    "skip": "registry",
    "vacuous": "registry",
}

__all__ = [
    "AgentEvalError",
    "AgentEvalLogProcessor",
    "AgentEvalSpanExporter",
    "AgentEvalSpanProcessor",
    "Config",
    "ConfigError",
    "Embedder",
    "Handle",
    "Judge",
    "JudgeError",
    "MissingExtra",
    "Result",
    "Score",
    "Turn",
    "expect",
    "get_metric",
    "instrument",
    "load_turns",
    "metric",
    "record_all",
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


class _Package(ModuleType):
    """Two functions have the names of their modules: importing such a module must not put it in the function's place."""

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOME.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
