"""Section ``statistics``: fleet estimates and detected changes."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .section import Section
from .types import Before, Count, FilePath, Kind, Share, file_path, valid

_DETECT = {"auto": "auto", "true": True, "false": False}
_detect = valid(
    "must be auto, true or false",
    lambda value: value if isinstance(value, bool) else _DETECT.get(value) if isinstance(value, str) else None,
)


def _state(value: Any) -> Any:
    return value if value in ("auto", None) else file_path(value)


class ChangeOptions(Section):
    """Detection of changes in scores, by metric and agent."""

    detect: Annotated[Literal["auto"] | bool, Before(_detect), Kind("`auto`, `true` or `false`")] = "auto"
    """Detect changes of scores. ``auto`` detects them only in the sidecar, which receives the turns of all processes."""
    false_alarm_every: Count = 100_000
    """Average number of scores between two false alarms about the same metric and agent."""
    least: Share = 0.01
    """Smallest change of a mean to report, on the scale from 0 to 1."""
    reference: Count = 200
    """Number of scores in the baseline of a metric and agent. Until it is complete, no change is reported."""


class StatisticsOptions(Section):
    """Fleet estimates and detected changes."""

    changes: ChangeOptions = ChangeOptions()
    """Detection of changes in scores."""
    calibration: FilePath | None = None
    """File with the output of ``otel-agenteval calibrate --format json``. For calibrated metrics, pass rates corrected for judge
    errors are shown too."""
    state: Annotated[str | None, Before(_state), Kind("`auto` or path")] = "auto"
    """File that keeps estimates and baselines across restarts. ``auto`` means a file under ``$XDG_STATE_HOME`` in the
    sidecar, and no file in other programs. Null means no file."""
