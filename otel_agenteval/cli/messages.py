"""Messages of more than one command."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..metrics.bound_metric import BoundMetric


def warn_of_missing_parameters(metrics: Sequence[BoundMetric]) -> None:
    """Name the metrics that cannot be evaluated because a parameter is missing."""
    for metric in metrics:
        if metric.missing is not None:
            print(f"{metric.name} is an error on every turn: its parameter {metric.missing!r} is required", file=sys.stderr)
