"""Messages that several commands print."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from ..metrics.bound_metric import BoundMetric


def warn_of_missing_parameters(metrics: Sequence[BoundMetric]) -> None:
    """Print the metrics that lack a required parameter."""
    for metric in metrics:
        if metric.missing is not None:
            print(
                f"{metric.name}: the required parameter {metric.missing!r} is missing, so each score is an error", file=sys.stderr
            )
