"""Whether a judge still judges as it did: the same cases, a frozen anchor set, are judged again and compared one by one.

A provider may replace the model behind a name, and a prompt of ours may change with a release. Then scores move although the agent did not.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ... import __version__
from ...core.errors import ConfigError
from ...statistics.intervals import Interval, mean_interval
from ...statistics.tests import holm, sign_flip
from .cases import BenchCase, read_case
from .run import Outcome

_FORM = "agenteval.anchors"
ALPHA = 0.05
ALL = "all"
"""The row of all families together."""


@dataclass(frozen=True, slots=True)
class Anchors:
    """What a judge said of each case when it was asked first."""

    model: str
    made: str
    """ISO 8601."""
    version: str
    """Of this package, whose prompts were asked."""
    values: Mapping[str, float]
    """By id of the case, in the metric's own unit."""


@dataclass(frozen=True, slots=True)
class Drift:
    """How far a judge has moved in one family of metrics. Scores are goodness: 0 is the worst, 1 the best, whatever the metric."""

    family: str
    anchors: int
    before: float
    after: float
    interval: Interval
    """95 %, of after minus before, case by case."""
    p: float
    """Corrected for the number of families (Holm); that of all together is not."""
    flipped: int
    """Cases that are at another level now: bad, middling, good."""
    least: float
    """The smallest difference that counts."""

    @property
    def difference(self) -> float:
        """After minus before."""
        return self.after - self.before

    @property
    def drifted(self) -> bool:
        """Whether it moved, by more than chance explains and more than is allowed."""
        return self.p < ALPHA and abs(self.difference) >= self.least


def own_cases(path: str) -> list[BenchCase]:
    """Cases of a file: JSON lines with ``metric``, ``turn`` (form turn.v1), and ``id`` and ``params`` where wanted.

    Raises:
        ConfigError: the file cannot be read, or a line is no case; it says which.
    """
    found: list[BenchCase] = []
    try:
        lines = Path(path).read_bytes().split(b"\n")
    except OSError as error:
        raise ConfigError(f"--cases: {path}: cannot be read: {error.strerror or error}") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            case = read_case({"id": f"{number}", "band": [0, 1], "lang": "", "about": "", "params": {}, **row, "family": "own"})
            case.read_turn(), case.bound
        except (ValueError, TypeError, KeyError, ConfigError) as error:
            why = str(error) if isinstance(error, ConfigError) else "a metric and a turn are required, in one JSON object"
            raise ConfigError(f"--cases: {path}:{number}: {why}") from None
        found.append(case)
    if not found:
        raise ConfigError(f"--cases: {path}: there is none")
    return found


def anchors_of(model: str, outcomes: Sequence[Outcome]) -> Anchors:
    """What a judge said just now."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
    return Anchors(model, now, __version__, {one.case.id: one.value for one in outcomes if one.value is not None})


def write_anchors(path: Path, anchors: Anchors) -> None:
    """Freeze them.

    Raises:
        ConfigError: the file cannot be written.
    """
    said = {
        "form": _FORM, "model": anchors.model, "made": anchors.made, "version": anchors.version, "values": dict(anchors.values),
    }  # fmt: skip
    try:
        path.write_text(f"{json.dumps(said, indent=1)}\n", encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {error.strerror}") from None


def read_anchors(path: Path) -> Anchors:
    """What was frozen.

    Raises:
        ConfigError: the file cannot be read, or is something else.
    """
    try:
        said: Any = json.loads(path.read_text(encoding="utf-8"))
        if said["form"] != _FORM:
            raise ValueError
        values = {str(name): float(value) for name, value in said["values"].items()}
        return Anchors(str(said["model"]), str(said["made"]), str(said["version"]), values)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(
            f"{path}: it is no file of anchors; name one that `judge drift` wrote, or one that is not there yet"
        ) from None


def drifts(anchors: Anchors, outcomes: Sequence[Outcome], least: float) -> list[Drift]:
    """How far the judge has moved: by family, and last of all together. Cases that have no score now, or had none, are left out."""
    pairs: dict[str, list[tuple[float, float, bool]]] = {}
    for one in outcomes:
        before = anchors.values.get(one.case.id)
        if before is None or one.value is None:
            continue
        was, now = one.case.goodness(before), one.case.goodness(one.value)
        pair = was, now, one.case.level(was) != one.case.level(now)
        for family in (one.case.family, ALL):
            pairs.setdefault(family, []).append(pair)
    families = sorted(pairs.keys() - {ALL})
    ps = holm([sign_flip([now - was for was, now, _ in pairs[family]]) for family in families])
    found = [_drift(family, pairs[family], p, least) for family, p in zip(families, ps, strict=True)]
    if pairs:
        found.append(_drift(ALL, pairs[ALL], sign_flip([now - was for was, now, _ in pairs[ALL]]), least))
    return found


def _drift(family: str, pairs: Sequence[tuple[float, float, bool]], p: float, least: float) -> Drift:
    n = len(pairs)
    before, after = (sum(pair[place] for pair in pairs) / n for place in (0, 1))
    interval = mean_interval([now - was for was, now, _ in pairs])
    return Drift(family, n, before, after, interval, p, sum(pair[2] for pair in pairs), least)
