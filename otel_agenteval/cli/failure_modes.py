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
from ..evaluation.names import named_publicly
from ..outlets.store.reader import StoreReader, score_of_row, store_path, turn_in
from ..report.failure_modes import RENDERINGS, FailedTurn, FailureMode, as_data, mode_of, modes_of
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
        wanted = turns_wanted(args)
        totals, middle = reader.halves(wanted)
        failed = []
        for row in reader.failed_turns(wanted):
            scores = [score_of_row(one) for one in reader.scores(row["turn_id"])]
            turn = turn_in(row["content"]) or Turn(turn_id=row["turn_id"])
            mode = mode_of(turn, [score for score in scores if not args.metric or score.metric in args.metric])
            if mode is not None:
                failed.append(FailedTurn(row["turn_id"], row["stored_at"], mode))
    return modes_of(failed, totals, middle)


class _Modes(NamedTuple):
    """Evaluates turns, also in other processes."""

    evaluation: Evaluation
    redacted: Sequence[str]
    """Kinds of names that are redacted."""

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, tuple[float, FailedTurn | None]]]:
        for key, turn, scores in self.evaluation.scores(turns):
            at, mode = (
                turn.start.timestamp() if turn.start is not None else 0.0,
                mode_of(named_publicly(turn, self.redacted), scores),
            )
            yield (0, key), (at, None if mode is None else FailedTurn(turn.turn_id, at, mode))


def _recorded(args: argparse.Namespace, config: Config) -> list[FailureMode]:
    work = _Modes(Evaluation(config, ",".join(args.metric) or None, (), with_scores=False), config.privacy.redact)
    reading = Reading(progress())
    found = list(in_order(args.files, work, jobs=jobs_of(args.jobs), meet=work.evaluation.looks_at_conversations, seen=reading))
    report_reading(reading)
    times = [at for at, _ in found if at]
    middle = (min(times) + max(times)) / 2 if times else 0.0
    before = sum(at < middle for at, _ in found)
    return modes_of((turn for _, turn in found if turn is not None), (before, len(found) - before), middle)
