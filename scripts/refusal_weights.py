"""Fit the weights of ``code_refusal``: ``refusal_weights.json`` in the detectors' data.

    python scripts/refusal_weights.py           prints the results on cases that were left out of the fit
    python scripts/refusal_weights.py --write   fits all cases and writes the file

The model is a logistic regression on some hundred features that have the same meaning in every language. Weights learned from one
language therefore apply to others. The cases are the labeled refusals of the half *train* of ``tests/data/detectors``, and
``ordinary.jsonl``, which contains agent answers that aren't refusals.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from otel_agenteval.detectors.refusal.model import read

ROOT = Path(__file__).parent.parent
DETECTORS = ROOT / "tests" / "data" / "detectors"
REFUSALS = DETECTORS / "train" / "refusal.jsonl"
ORDINARY = DETECTORS / "ordinary.jsonl"
FILE = ROOT / "otel_agenteval" / "detectors" / "data" / "refusal_weights.json"
PENALTY = 2.0
STRONG_PENALTY = {"touchy": 4.0, "question mark": 2.0, "acted": 4.0}
"""Higher penalties, so that these features don't decide alone. The cases have more declined sensitive requests than traffic."""
FOLDS = 10

Array = NDArray[np.float64]


class Labelled(NamedTuple):
    """A labeled turn. ``acted`` is true if tools were called, ``flag`` if the answer is a refusal."""

    id: str
    language: str
    asked: str
    output: str
    acted: bool
    flag: bool
    weight: float


class Cases(NamedTuple):
    """Labeled turns as feature vectors."""

    ids: list[str]
    languages: list[str]
    names: list[str]
    numbers: Array
    flags: Array
    weights: Array


def cases() -> Cases:
    """Return all cases that have features. The first feature is ``bias``."""
    kept = []
    for case in _labelled():
        found = read(case.output, case.asked, case.acted)
        if found is not None and found.numbers:
            kept.append((case, found.numbers))
    names = ["bias", *sorted(kept[0][1])]
    return Cases(
        [case.id for case, _ in kept],
        [case.language for case, _ in kept],
        names,
        np.array([[1.0, *(numbers[name] for name in names[1:])] for _, numbers in kept]),
        np.array([float(case.flag) for case, _ in kept]),
        np.array([case.weight for case, _ in kept]),
    )


def _labelled() -> Iterator[Labelled]:
    """Yield labeled refusals and similar answers, then ordinary answers."""
    for case in map(json.loads, REFUSALS.read_bytes().splitlines()):
        turn = case["turn"]
        yield Labelled(
            case["id"], case["lang"], turn.get("input") or "", turn.get("output") or "", bool(turn.get("tool_calls")),
            case["flag"], 1.0,
        )  # fmt: skip
    for case in map(json.loads, ORDINARY.read_bytes().splitlines()):
        yield Labelled(case["id"], case["lang"], case["input"], case["output"], case["acted"], False, 0.4)


def fitted(of: Cases, keep: NDArray[np.bool_]) -> Array:
    """Fit weights to the kept cases, by Newton's method."""
    numbers, flags, weights = of.numbers[keep], of.flags[keep], of.weights[keep]
    penalty = np.array([0.01 if name == "bias" else PENALTY * STRONG_PENALTY.get(name, 1.0) for name in of.names])
    found = np.zeros(len(of.names))
    for _ in range(50):
        share = 1 / (1 + np.exp(-(numbers @ found)))
        slope = numbers.T @ (weights * (share - flags)) + penalty * found
        curve = (numbers.T * (weights * share * (1 - share))) @ numbers + np.diag(penalty)
        step = np.linalg.solve(curve, slope)
        found -= step
        if np.abs(step).max() < 1e-8:
            break
    return found


def left_out(of: Cases) -> Array:
    """Return the score of each case, with weights that were fitted without its fold (cross-validation)."""
    fold = np.random.default_rng(1).integers(0, FOLDS, len(of.ids))
    scores = np.zeros(len(of.ids))
    for number in range(FOLDS):
        out = fold == number
        scores[out] = of.numbers[out] @ fitted(of, ~out)
    return scores


def report(of: Cases) -> list[str]:
    """Return recall and false alarm rates of the cross-validation at several thresholds."""
    scores = left_out(of)
    lines = ["threshold  found en / others  false alarms en / others  of other detectors' turns"]
    groups = np.array(
        [
            "healthy" if not id_.startswith("refusal") else "en" if lang == "en" else "others"
            for id_, lang in zip(of.ids, of.languages, strict=True)
        ]
    )
    flags = of.flags > 0
    for threshold in np.arange(-1.25, 0.76, 0.25):
        fires = scores > threshold
        share = [f"{fires[flags & (groups == group)].mean():.0%}" for group in ("en", "others")]
        share += [f"{fires[~flags & (groups == group)].mean():.1%}" for group in ("en", "others", "healthy")]
        lines.append(f"{threshold:>9.2f}  " + "  ".join(share))
    return lines


def content(of: Cases) -> str:
    """Return the content of ``refusal_weights.json``."""
    weights = fitted(of, np.ones(len(of.ids), dtype=bool))
    return json.dumps({name: round(weight, 3) for name, weight in zip(of.names, weights.tolist(), strict=True)}, indent=1) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--write", action="store_true", help="write refusal_weights.json")
    of = cases()
    if parser.parse_args().write:
        FILE.write_text(content(of), encoding="utf-8")
    else:
        print("\n".join(report(of)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
