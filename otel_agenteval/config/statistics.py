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
    """Detect changes. ``auto`` detects them only in the sidecar, which receives the turns of all processes."""
    false_alarm_every: Count = 100_000
    """Average number of scores between two false alarms of one series."""
    least: Share = 0.01
    """Smallest change of a mean to report, for scores from 0 to 1."""
    reference: Count = 200
    """Number of scores in a series' baseline. No change is reported before the baseline is complete."""


class StatisticsOptions(Section):
    """Fleet estimates and detected changes."""

    changes: ChangeOptions = ChangeOptions()
    """Detection of changes in scores."""
    calibration: FilePath | None = None
    """Output of ``otel-agenteval calibrate --format json``. Pass rates of the calibrated metrics are also shown with a
    correction for judge errors."""
    state: Annotated[str | None, Before(_state), Kind("`auto` or path")] = "auto"
    """File that keeps estimates and baselines across restarts. ``auto`` is a file under ``$XDG_STATE_HOME`` in the sidecar,
    and no file elsewhere. Null means no file."""
