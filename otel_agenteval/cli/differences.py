"""``otel-agenteval differences``: find what sets failed turns apart from those that passed."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from ..config.root import Config
from ..core.errors import AgentEvalError, refusal
from ..core.processes import jobs_of
from ..core.turn import Turn
from ..evaluation.names import named_publicly
from ..outlets.store.reader import StoreReader, VerdictRow, store_path
from ..report.differences import RENDERINGS, as_data, differences_of, verdicts_in
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
_MOST_METRICS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_turn_sources(parser)


def run(args: argparse.Namespace) -> int:
    """Write the facts that set the failed turns of each metric apart.

    Raises:
        AgentEvalError: an argument is invalid, an input can't be read, or no turn failed.
    """
    config = config_of_sources(args)
    if args.files:
        verdicts = _recorded(args, config)
    else:
        verdicts = _stored(args, config)
    if not any(row.bad for rows in verdicts.values() for row in rows):
        raise AgentEvalError(f"no turn failed {' or '.join(args.metric) or 'a metric'}, so there is nothing to compare")
    found = [differences_of(metric, rows) for metric, rows in verdicts.items() if any(row.bad for row in rows)]
    write_report(json.dumps(as_data(found), indent=2) if args.format == "json" else RENDERINGS[args.format](found), args.out)
    return OK


def _stored(args: argparse.Namespace, config: Config) -> dict[str, list[VerdictRow]]:
    wanted = turns_wanted(args)
    with StoreReader(store_path(args.store, config)) as reader:
        failures = reader.failures(replace(wanted, metrics=()))
        for name in args.metric:
            if name not in failures:
                known = ", ".join(sorted(failures)) or "none"
                raise AgentEvalError(refusal("--metric", repr(name), f"must be a metric in the store: {known}"))
        most = [name for name in failures if failures[name]]
        return {name: reader.verdicts(name, wanted) for name in (args.metric or most[:_MOST_METRICS])}


class _Verdicts(NamedTuple):
    """Evaluates turns, also in other processes."""

    evaluation: Evaluation
    redacted: Sequence[str]
    """Kinds of names that are redacted."""

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, dict[str, VerdictRow]]]:
        for key, turn, scores in self.evaluation.scores(turns):
            yield (0, key), verdicts_in(named_publicly(turn, self.redacted), scores)


def _recorded(args: argparse.Namespace, config: Config) -> dict[str, list[VerdictRow]]:
    work = _Verdicts(Evaluation(config, ",".join(args.metric) or None, (), with_scores=False), config.privacy.redact)
    reading = Reading(progress())
    found: dict[str, list[VerdictRow]] = {}
    for of_turn in in_order(args.files, work, jobs=jobs_of(args.jobs), meet=work.evaluation.looks_at_conversations, seen=reading):
        for metric, row in of_turn.items():
            found.setdefault(metric, []).append(row)
    report_reading(reading)
    failures = {metric: sum(row.bad for row in rows) for metric, rows in found.items()}
    most = sorted(found, key=lambda name: (-failures[name], name))[:_MOST_METRICS]
    return {name: found[name] for name in most}
