"""Count how many inserted faults are found, on the recordings that weren't used to tune rules."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import otel_agenteval as oa
from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.first_fault import first_fault
from otel_agenteval.metrics.registry import default_pack
from tests.support.faults import faulty_turns
from tests.support.recorded_faults import Recorded, faulty_recordings, recorded
from tests.support.recordings import CORPUS, unpack_all

METRICS = (*default_pack(), "code_ungrounded_numbers")
_WITH_HANDOFFS = ("corpus", "corpus_b", "frameworks")


class Found(NamedTuple):
    """Number of faults that are found with their step, and number of all faults, by kind."""

    found: Counter[str]
    of: Counter[str]


def unpacked(folder: Path, most: int | None = None) -> list[Path]:
    """Unpack the recordings that weren't used to tune rules, or up to ``most`` archives of them."""
    archives = sorted(CORPUS.parent.glob("recordings/*.tar.xz"))
    for archive in random.Random("untuned").sample(archives, len(archives) // 2)[:most]:
        unpack_all(archive, folder / "recordings")
    return sorted((folder / "recordings").rglob("*.jsonl"))


def unpacked_corpora(folder: Path) -> list[Path]:
    """Unpack half of the recordings in the larger archives, whose agents hand off to each other."""
    for name in _WITH_HANDOFFS:
        unpack_all(CORPUS.with_name(f"{name}.tar.xz"), folder / name)
    folders = sorted(path for name in _WITH_HANDOFFS for path in (folder / name).iterdir() if path.is_dir())
    half = random.Random("untuned").sample(folders, len(folders) // 2)
    return sorted(path for one in half for path in one.rglob("*.jsonl"))


def clean(turns: Iterable[Turn]) -> list[tuple[Turn, list[Score]]]:
    """Return turns without a failed score, with their scores."""
    scored = ((turn, list(scores)) for turn, scores in oa.score_turns(turns, METRICS))
    return [(turn, scores) for turn, scores in scored if turn.output and all(score.verdict is not False for score in scores)]


def found_in_turns(turns: Iterable[Turn], most: int) -> Found:
    """Insert up to ``most`` faults of each kind into turns."""
    cases = list(faulty_turns(turns, most))
    found, of = Counter[str](), Counter[str]()
    for case, (turn, scores) in zip(cases, oa.score_turns([case.turn for case in cases], METRICS), strict=True):
        fault = first_fault(turn, scores)
        of[case.kind] += 1
        found[case.kind] += fault is not None and (fault.kind, fault.path) == (case.kind, case.path)
    return Found(found, of)


def found_in_spans(recordings: Iterable[Path], most: int, folder: Path) -> Found:
    """Insert up to ``most`` faults of each kind into the spans of turns without a fault, and read them as a recording."""
    given = [recorded(path) for path in recordings if not path.name.endswith(".logs.jsonl")]
    places: list[tuple[Recorded, Turn]] = []
    for one in given:
        places += [(one, turn) for turn, scores in clean(one.turns) if first_fault(turn, scores) is None]
    found, of = Counter[str](), Counter[str]()
    path = folder / "faulty.jsonl"
    for case in faulty_recordings(places, most):
        path.write_text(case.text)
        turn = next((turn for turn in oa.load_turns(path) if turn.turn_id == case.turn_id), None)
        of[case.kind] += 1
        if turn is not None:
            ((_, scores),) = oa.score_turns([turn], METRICS)
            fault = first_fault(turn, scores)
            found[case.kind] += fault is not None and (fault.kind, fault.path) == (case.kind, case.path)
    return Found(found, of)
