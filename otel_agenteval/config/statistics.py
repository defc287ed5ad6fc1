"""Section ``statistics``: what is said of many turns."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .section import Section
from .types import Before, Count, FilePath, Kind, Share, file_path


def _detect(value: Any) -> Any:
    if value == "auto" or isinstance(value, bool):
        return value
    if isinstance(value, str) and value in ("true", "false"):
        return value == "true"
    raise ValueError("it must be auto, true or false")


def _state(value: Any) -> Any:
    return value if value in ("auto", None) else file_path(value)


class ChangeOptions(Section):
    """How changes of scores are looked for, by metric and agent."""

    detect: Annotated[Literal["auto"] | bool, Before(_detect), Kind("`auto`, `true` or `false`")] = "auto"
    """Whether they are: ``auto`` in the sidecar only, which sees the turns of all processes."""
    false_alarm_every: Count = 100_000
    """Scores of one series in which one change may be reported without cause."""
    least: Share = 0.01
    """The smallest change of a mean of scores from 0 to 1 that counts."""
    reference: Count = 200
    """Scores from which a series learns what is usual, before anything is reported."""


class StatisticsOptions(Section):
    """What is said of many turns: fleet estimates, and changes."""

    changes: ChangeOptions = ChangeOptions()
    """When scores have changed."""
    calibration: FilePath | None = None
    """What ``otel-agenteval calibrate --format json`` wrote: the pass rates of its metrics are also shown corrected by the mistakes that the labels have shown."""
    state: Annotated[str | None, Before(_state), Kind("`auto` or path")] = "auto"
    """File that keeps estimates and what is usual over restarts; ``auto`` is one under ``$XDG_STATE_HOME`` in the sidecar, and none elsewhere. null keeps nothing."""
