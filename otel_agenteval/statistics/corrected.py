"""Live pass rates of judged metrics, corrected for judge errors that human labels revealed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ..core import jsonio
from ..core.clock import Clock
from ..core.errors import ConfigError
from ..core.semconv import ESTIMATE_PASSES, ESTIMATE_PASSES_HIGH, ESTIMATE_PASSES_LOW
from ..core.telemetry import Telemetry
from .calibration import Confusion, rogan_gladen
from .estimates import SINCE_START, Estimates
from .intervals import Z95
from .weighted import Estimate

Method = Literal["raw", "rogan_gladen", "ppi"]


class PassRate(NamedTuple):
    metric: str
    agent: str
    window: str
    method: Method
    estimate: Estimate


def read_calibration(path: str, where: str) -> dict[str, Confusion]:
    """Read each metric's judge errors from ``otel-agenteval calibrate --format json``."""
    try:
        found = jsonio.loads(Path(path).read_bytes())
        return {str(one["metric"]): Confusion(**{name: int(n) for name, n in one["confusion"].items()}) for one in found}
    except OSError as error:
        raise ConfigError(f"{where}: {path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{where}: {path}: must be the output of `otel-agenteval calibrate --format json`") from None


class Corrected:
    def __init__(self, confusions: Mapping[str, Confusion], window: float, clock: Clock) -> None:
        self.confusions = confusions
        self.verdicts = Estimates(window, clock)
        """Estimates of verdicts: 1 for a pass, 0 for a failure."""

    def read(self) -> Iterator[PassRate]:
        for window, estimates in (("1h", self.verdicts.read()), (SINCE_START, self.verdicts.read_since_start())):
            for (metric, agent), raw in estimates.items():
                for method, found in corrected(raw, self.confusions[metric]).items():
                    yield PassRate(metric, agent, window, method, found)

    def watch(self, telemetry: Telemetry) -> None:
        for name, field in ((ESTIMATE_PASSES, "mean"), (ESTIMATE_PASSES_LOW, "low"), (ESTIMATE_PASSES_HIGH, "high")):
            telemetry.watch(name, partial(self._gauges, field))

    def _gauges(self, field: str) -> Iterator[tuple[Mapping[str, str], float]]:
        for one in self.read():
            labels = {"metric": one.metric, "agent": one.agent, "window": one.window, "method": one.method}
            yield labels, getattr(one.estimate, field)

    def state(self) -> Any:
        return self.verdicts.state()

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Restore the state of an earlier process, for metrics that are still calibrated."""
        self.verdicts.restore([one for one in state if one[0] in self.confusions], passed)


def corrected(raw: Estimate, confusion: Confusion) -> dict[Method, Estimate]:
    """Return a pass rate uncorrected, and corrected by two methods, if the labels allow it.

    ``rogan_gladen`` uses the judge's error rates (Rogan and Gladen). ``ppi`` uses the difference between people and judge
    (prediction-powered inference). Both need labels of randomly chosen turns.
    """
    found: dict[Method, Estimate] = {"raw": raw}
    bad = rogan_gladen((1 - raw.mean) * raw.n_eff, raw.n_eff, confusion)
    if bad is not None:
        found["rogan_gladen"] = Estimate(1 - bad.mean, 1 - bad.high, 1 - bad.low, raw.n_eff)
    n = confusion.n
    if n > 1:
        apart = (confusion.alarms - confusion.missed) / n  # people's pass rate less the judge's
        spread = ((confusion.alarms + confusion.missed) / n - apart * apart) * n / (n - 1)
        error = math.hypot((raw.high - raw.low) / (2 * Z95), math.sqrt(max(spread, 0.25 / n) / n))
        mean = min(1.0, max(0.0, raw.mean + apart))
        found["ppi"] = Estimate(mean, max(0.0, mean - Z95 * error), min(1.0, mean + Z95 * error), raw.n_eff)
    return found
