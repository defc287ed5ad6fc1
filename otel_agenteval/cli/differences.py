"""``otel-agenteval differences``: find what sets some turns apart from others."""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ..config.root import Config
from ..core.errors import AgentEvalError, ConfigError, refusal
from ..core.processes import jobs_of
from ..core.turn import Turn
from ..evaluation.names import attributes_publicly, named_publicly
from ..evaluation.turn_facts import FactCondition
from ..outlets.store.reader import MOST_OF_COMMAND, NO_CAUSES, StoreReader, VerdictRow, store_path
from ..report.differences import (
    RENDERINGS,
    ShownDifferences,
    as_data,
    differences_of,
    differences_of_group,
    differences_of_runs,
    facts_row,
    verdicts_in,
)
from ..turns.recordings import Reading
from ..turns.spool import Key, TurnWork
from ..turns.spool import results as in_order
from .evaluation import Evaluation
from .exit_codes import OK, UNUSABLE
from .options import add_turn_sources, config_of_sources, turns_wanted, write_report
from .reading import progress, report_reading

EXIT_CODES = {OK: "the report was written", UNUSABLE: "an argument is invalid, an input can't be read, or no turn failed"}
_MOST_METRICS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--group",
        action="append",
        default=[],
        metavar="CONDITION",
        help="compare the turns that have this fact with the rest (NAME=VALUE, NAME>NUMBER or NAME<NUMBER). Repeatable, all must hold",
    )
    parser.add_argument(
        "--baseline",
        action="append",
        default=[],
        metavar="OLD",
        help="recorded traces of an earlier run. Its turns are compared with those of FILE, and its failed turns by each metric that got worse. Repeatable",
    )
    add_turn_sources(parser)


def run(args: argparse.Namespace) -> int:
    """Write the facts that set the failed turns of each metric, or a group of turns, apart."""
    config = config_of_sources(args)
    if args.baseline:
        found = _of_runs(args, config)
    else:
        found = _of_group(args, config) if args.group else _of_metrics(args, config)
    write_report(json.dumps(as_data(found), indent=2) if args.format == "json" else RENDERINGS[args.format](found), args.out)
    return OK


def _of_group(args: argparse.Namespace, config: Config) -> list[ShownDifferences]:
    group = [FactCondition.parse(text, "--group") for text in args.group]
    if args.metric:
        raise ConfigError("--metric: can't be combined with --group, because a group is compared without verdicts")
    if args.files:
        names = {*_attributes(config), *(condition.name for condition in group)}
        rows = [*_read(args.files, args, _Facts(names, config.privacy.redact))]
    else:
        with StoreReader(store_path(args.store, config)) as reader:
            rows = reader.facts(turns_wanted(args))
    return [differences_of_group(rows, group)]


def _of_runs(args: argparse.Namespace, config: Config) -> list[ShownDifferences]:
    if args.group or not args.files:
        raise ConfigError("--baseline: requires FILE, and can't be combined with --group or --store")
    return differences_of_runs(*(_verdicts(files, args, config) for files in (args.baseline, args.files)))


def _of_metrics(args: argparse.Namespace, config: Config) -> list[ShownDifferences]:
    verdicts = _recorded(args, config) if args.files else _stored(args, config)
    if not any(row.bad for rows in verdicts.values() for row in rows):
        raise AgentEvalError(f"no turn failed {' or '.join(args.metric) or 'a metric'}, so there is nothing to compare")
    return [differences_of(metric, rows) for metric, rows in verdicts.items() if any(row.bad for row in rows)]


def _stored(args: argparse.Namespace, config: Config) -> dict[str, list[VerdictRow]]:
    wanted = turns_wanted(args)
    with StoreReader(store_path(args.store, config)) as reader:
        failures = reader.failures(replace(wanted, metrics=()))
        for name in args.metric:
            if name not in failures:
                known = ", ".join(sorted(failures)) or "none"
                raise AgentEvalError(refusal("--metric", repr(name), f"must be a metric in the store: {known}"))
        most = [name for name in failures if failures[name]]
        found = {name: reader.verdicts(name, wanted, MOST_OF_COMMAND) for name in (args.metric or most[:_MOST_METRICS])}
        if not any(found.values()) and not reader.keeps_causes():
            raise AgentEvalError(NO_CAUSES)
        return found


class _Facts(NamedTuple):
    """Reads facts of turns, also in other processes."""

    attributes: Collection[str]
    redacted: Sequence[str]
    """Kinds of names that are redacted."""

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, VerdictRow]]:
        for key, turn in turns:
            yield key, self.row(turn)

    def row(self, turn: Turn) -> VerdictRow:
        found = facts_row(named_publicly(turn, self.redacted), self.attributes)
        return found._replace(facts={**attributes_publicly(found.facts, self.redacted)})


class _Verdicts(NamedTuple):
    """Evaluates turns, also in other processes. The facts of each turn, without a verdict, have the key ``""``."""

    evaluation: Evaluation
    facts: _Facts

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, dict[str, VerdictRow]]]:
        for key, turn, scores in self.evaluation.scores(turns):
            row = self.facts.row(turn)
            yield (0, key), verdicts_in(row, scores) | ({"": row} if key[0] == 0 else {})


def _verdicts(files: Sequence[str], args: argparse.Namespace, config: Config) -> dict[str, list[VerdictRow]]:
    evaluation = Evaluation(config, ",".join(args.metric) or None, (), with_scores=False)
    work = _Verdicts(evaluation, _Facts(_attributes(config), config.privacy.redact))
    found: dict[str, list[VerdictRow]] = {"": []}
    for of_turn in _read(files, args, work, meet=evaluation.looks_at_conversations):
        for metric, row in of_turn.items():
            found.setdefault(metric, []).append(row)
    return found


def _recorded(args: argparse.Namespace, config: Config) -> dict[str, list[VerdictRow]]:
    found = _verdicts(args.files, args, config)
    del found[""]
    failures = {metric: sum(row.bad for row in rows) for metric, rows in found.items()}
    most = sorted(found, key=lambda name: (-failures[name], name))[:_MOST_METRICS]
    return {name: found[name] for name in most}


def _read(files: Sequence[str], args: argparse.Namespace, work: TurnWork, *, meet: bool = False) -> Iterator[Any]:
    reading = Reading(progress())
    yield from in_order(files, work, jobs=jobs_of(args.jobs), meet=meet, seen=reading)
    report_reading(reading)


def _attributes(config: Config) -> Sequence[str]:
    return config.outlets.store.attributes if config.outlets.store is not None else ()
