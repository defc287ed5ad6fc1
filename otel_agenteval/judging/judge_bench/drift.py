"""Detection of judge drift. A judge rescores a fixed set of cases (anchors), and the new scores are compared with the old scores.

Scores can drift if a provider replaces the model behind a name, or if a release changes a prompt.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ...core.errors import ConfigError
from ...core.version import __version__
from ...statistics.intervals import Interval, mean_interval
from ...statistics.tests import holm, sign_flip
from .run import BenchCase, CaseOutcome, read_case

_FORM = "agenteval.anchors"
ALPHA = 0.05
ALL = "all"


@dataclass(frozen=True, slots=True)
class Anchors:
    model: str
    made: str
    version: str
    """Version of otel-agenteval, which determines the prompts."""
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Drift:
    """Drift of a judge for one metric family. Scores are compared on a quality scale from 0 (worst) to 1 (best)."""

    family: str
    anchors: int
    before: float
    after: float
    interval: Interval
    """95 % confidence interval of the mean change per case. A positive change means higher scores."""
    p: float
    """p-value with Holm correction for the number of families. The p-value for all families together isn't corrected."""
    flipped: int
    """Number of cases whose level (bad, middling, or good) differs between the old and the new score."""
    least: float

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def drifted(self) -> bool:
        return self.p < ALPHA and abs(self.difference) >= self.least


def own_cases(path: str) -> list[BenchCase]:
    """Read cases from a JSON Lines file. Each line has the keys ``metric`` and ``turn``, and optionally ``id`` and ``params``."""
    found: list[BenchCase] = []
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigError(f"--cases: {path}: can't read the file: {error.strerror or error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            case = read_case({"id": f"{number}", "band": [0, 1], "lang": "", "about": "", "params": {}, **row, "family": "own"})
            case.read_turn(), case.bound
        except (ValueError, TypeError, KeyError, ConfigError) as error:
            why = str(error) if isinstance(error, ConfigError) else "must be a JSON object with metric and turn"
            raise ConfigError(f"--cases: {path}:{number}: {why}") from None
        found.append(case)
    if not found:
        raise ConfigError(f"--cases: {path}: file contains no cases")
    return found


def anchors_of(model: str, outcomes: Sequence[CaseOutcome]) -> Anchors:
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return Anchors(model, now, __version__, {one.case.id: one.value for one in outcomes if one.value is not None})


def write_anchors(path: Path, anchors: Anchors) -> None:
    try:
        path.write_text(f"{json.dumps({'form': _FORM, **asdict(anchors)}, indent=1)}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: can't write the file: {error.strerror}") from None


def read_anchors(path: Path) -> Anchors:
    try:
        stored: Any = json.loads(path.read_text(encoding="utf-8"))
        if stored["form"] != _FORM:
            raise ValueError
        values = {str(name): float(value) for name, value in stored["values"].items()}
        return Anchors(str(stored["model"]), str(stored["made"]), str(stored["version"]), values)
    except OSError as error:
        raise ConfigError(f"{path}: can't read the file: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{path}: not an anchor file from `judge drift`. Choose another file") from None


def drifts(anchors: Anchors, outcomes: Sequence[CaseOutcome], least: float) -> list[Drift]:
    """Return the drift for each family, then for all families together. Omit cases that lack an old or a new score."""
    pairs: dict[str, list[tuple[float, float, bool]]] = {}
    for one in outcomes:
        before = anchors.values.get(one.case.id)
        if before is None or one.value is None:
            continue
        was, now = one.case.goodness(before), one.case.goodness(one.value)
        pair = was, now, one.case.level(was) != one.case.level(now)
        for family in (one.case.family, ALL):
            pairs.setdefault(family, []).append(pair)
    families = sorted(pairs, key=lambda family: (family == ALL, family))
    differences = {family: [now - was for was, now, _ in pairs[family]] for family in families}
    ps = [sign_flip(differences[family]) for family in families]
    ps[:-1] = holm(ps[:-1])
    found = []
    for family, p in zip(families, ps, strict=True):
        n = len(pairs[family])
        before, after = (sum(pair[place] for pair in pairs[family]) / n for place in (0, 1))
        flipped = sum(pair[2] for pair in pairs[family])
        found.append(Drift(family, n, before, after, mean_interval(differences[family]), p, flipped, least))
    return found
