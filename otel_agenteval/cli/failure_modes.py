"""``otel-agenteval failure-modes``: group failed turns by their first fault."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..config.root import Config
from ..core.errors import AgentEvalError
from ..core.processes import jobs_of
from ..core.turn import Turn
from ..evaluation.first_fault import failure_of
from ..outlets.store.reader import StoreReader, store_path
from ..report.failure_modes import RENDERINGS, FailedTurn, FailureMode, as_data, counted, modes_of
from ..turns.recordings import Reading
from ..turns.spool import Key
from ..turns.spool import results as in_order
from .evaluation import Evaluation
from .exit_codes import OK, UNUSABLE
from .options import add_turn_sources, config_of_sources, turns_wanted, write_report
from .reading import progress, report_reading

EXIT_CODES = {
    OK: "the report was written",
    UNUSABLE: "an argument is invalid, an input can't be read, or no turn failed",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_turn_sources(parser)


def run(args: argparse.Namespace) -> int:
    """Write the failure modes.

    Raises:
        AgentEvalError: an argument is invalid, an input can't be read, or no turn failed.
    """
    config = config_of_sources(args)
    modes = _recorded(args, config) if args.files else _stored(args, config)
    if not modes:
        raise AgentEvalError(f"no turn failed {' or '.join(args.metric) or 'a metric'}")
    write_report(json.dumps(as_data(modes), indent=2) if args.format == "json" else RENDERINGS[args.format](modes), args.out)
    return OK


def _stored(args: argparse.Namespace, config: Config) -> list[FailureMode]:
    with StoreReader(store_path(args.store, config)) as reader:
        return modes_of(reader.modes(turns_wanted(args)))


class _Modes(NamedTuple):
    """Evaluates turns, also in other processes."""

    evaluation: Evaluation
    redacted: Sequence[str]
    """Kinds of names that are redacted."""

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, tuple[float, FailedTurn | None]]]:
        for key, turn, scores in self.evaluation.scores(turns):
            at = turn.start.timestamp() if turn.start is not None else 0.0
            fault = failure_of(turn, scores, self.redacted)
            yield (0, key), (at, None if fault is None else FailedTurn(turn.turn_id, at, fault))


def _recorded(args: argparse.Namespace, config: Config) -> list[FailureMode]:
    work = _Modes(Evaluation(config, ",".join(args.metric) or None, (), with_scores=False), config.privacy.redact)
    reading = Reading(progress())
    found = list(in_order(args.files, work, jobs=jobs_of(args.jobs), meet=work.evaluation.looks_at_conversations, seen=reading))
    report_reading(reading)
    times = [at for at, _ in found if at]
    middle = (min(times) + max(times)) / 2 if times else 0.0
    before = sum(at < middle for at, _ in found)
    return modes_of(counted((turn for _, turn in found if turn is not None), (before, len(found) - before), middle))
