"""What more than one command says."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..metrics.bound_metric import BoundMetric


def say_what_lacks_a_parameter(metrics: Sequence[BoundMetric]) -> None:
    """Name the metrics that cannot be evaluated, for they lack a parameter."""
    for metric in metrics:
        if metric.missing is not None:
            print(f"{metric.name}: an error on every turn, for its parameter {metric.missing!r} is required", file=sys.stderr)
