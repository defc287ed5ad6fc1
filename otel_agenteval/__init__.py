"""Evaluate AI agent turns from their OpenTelemetry spans.

Public names are imported on first use, because other programs load this package at startup through its entry points.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core.version import __version__ as __version__

if TYPE_CHECKING:
    from .config.loader import load_config
    from .config.root import Config
    from .core.errors import AgentEvalError, ConfigError, JudgeError, MetricError, MissingExtra
    from .core.score import Score
    from .core.turn import Turn
    from .instrumentation.attach import Handle, instrument, turn_id
    from .instrumentation.expectations import expect
    from .instrumentation.experiment import evaluate, evaluate_async
    from .instrumentation.log_processor import AgentEvalLogProcessor
    from .instrumentation.scoring import score_turns
    from .instrumentation.span_exporter import AgentEvalSpanExporter
    from .instrumentation.span_processor import AgentEvalSpanProcessor, record_all
    from .judging.models import Embedder, Judge, LocalEmbedder
    from .metrics.bound_metric import BoundMetric, get_metric
    from .metrics.code.workflow import ToolPattern
    from .metrics.registry import Result, metric, skip, vacuous
    from .outlets.prometheus import metrics_app
    from .report.experiment import Experiment
    from .report.frames import ScoredTurns, turns_frame
    from .turns.recordings import load_turns


_HOME = {  # the module of each public name
    "AgentEvalError": "core.errors", "AgentEvalLogProcessor": "instrumentation.log_processor",
    "AgentEvalSpanExporter": "instrumentation.span_exporter", "AgentEvalSpanProcessor": "instrumentation.span_processor",
    "BoundMetric": "metrics.bound_metric", "Config": "config.root", "ConfigError": "core.errors", "Embedder": "judging.models",
    "Experiment": "report.experiment", "Handle": "instrumentation.attach", "Judge": "judging.models",
    "JudgeError": "core.errors", "LocalEmbedder": "judging.models", "MetricError": "core.errors",
    "MissingExtra": "core.errors", "Result": "metrics.registry", "Score": "core.score", "ScoredTurns": "report.frames",
    "ToolPattern": "metrics.code.workflow", "Turn": "core.turn", "evaluate": "instrumentation.experiment",
    "evaluate_async": "instrumentation.experiment", "expect": "instrumentation.expectations",
    "get_metric": "metrics.bound_metric", "instrument": "instrumentation.attach", "load_config": "config.loader",
    "load_turns": "turns.recordings", "metric": "metrics.registry", "metrics_app": "outlets.prometheus",
    "record_all": "instrumentation.span_processor", "score_turns": "instrumentation.scoring", "skip": "metrics.registry",
    "turn_id": "instrumentation.attach", "turns_frame": "report.frames", "vacuous": "metrics.registry",
}  # fmt: skip

__all__ = [
    "AgentEvalError", "AgentEvalLogProcessor", "AgentEvalSpanExporter", "AgentEvalSpanProcessor", "BoundMetric", "Config",
    "ConfigError", "Embedder", "Experiment", "Handle", "Judge", "JudgeError", "LocalEmbedder", "MetricError", "MissingExtra",
    "Result", "Score", "ScoredTurns", "ToolPattern", "Turn", "evaluate", "evaluate_async", "expect", "get_metric",
    "instrument", "load_config", "load_turns", "metric", "metrics_app", "record_all", "score_turns", "skip", "turn_id",
    "turns_frame", "vacuous",
]  # fmt: skip


if not TYPE_CHECKING:  # otherwise, a type checker would accept any name as public

    def __getattr__(name: str) -> Any:
        home = _HOME.get(name)
        if home is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(importlib.import_module(f".{home}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
