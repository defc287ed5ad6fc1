"""``otel-agenteval differences``: find properties that distinguish failed turns, or a group of turns, from other turns."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from ..config.root import Config
from ..core.errors import AgentEvalError, ConfigError, refusal
from ..core.turn import Turn
from ..evaluation.names import attributes_publicly, named_publicly
from ..evaluation.turn_facts import FactCondition
from ..outlets.store.reader import MOST_OF_COMMAND, NO_CAUSES, StoreReader, VerdictRow, store_path
from ..report.differences import (
    ShownDifferences,
    as_report,
    differences_of,
    differences_of_group,
    differences_of_runs,
    facts_row,
    verdicts_in,
)
from ..report.render import render
from ..turns.spool import Key, TurnWork
from . import OK, UNUSABLE
from .options import add_turn_sources, config_of_sources, turns_wanted, write_report
from .scoring import Evaluation, results_of

EXIT_CODES = {
    OK: "the report was written",
    UNUSABLE: "an argument is invalid, an input can't be read, or, without --baseline and --group, no turn failed",
}
_MOST_METRICS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--group", action="append", default=[], metavar="CONDITION",
        help="compare turns that meet this condition (`NAME=VALUE`, `NAME>NUMBER`, or `NAME<NUMBER`) with all other turns; to require several conditions, repeat the option",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", action="append", default=[], metavar="OLD",
        help="recorded traces of an earlier run, to find the metrics that got worse in FILE; repeatable",
    )  # fmt: skip
    add_turn_sources(parser)


def run(args: argparse.Namespace) -> int:
    config = config_of_sources(args)
    if args.baseline:
        if args.group or not args.files:
            raise ConfigError("--baseline: requires FILE, and can't be combined with --group or --store")
        found = differences_of_runs(*(_recorded(files, args, config) for files in (args.baseline, args.files)))
    elif args.group:
        found = [_of_group(args, config)]
    else:
        verdicts = _most_failed(args, config) if args.files else _stored(args, config)
        found = [differences_of(metric, rows) for metric, rows in verdicts.items() if any(row.bad for row in rows)]
        if not found:
            raise AgentEvalError(f"no turn failed {' or '.join(args.metric) or 'a metric'}, so there are no turns to compare")
    write_report(render(as_report(found), args.format), args.out)
    return OK


def _of_group(args: argparse.Namespace, config: Config) -> ShownDifferences:
    group = [FactCondition.parse(text, "--group") for text in args.group]
    if args.metric:
        raise ConfigError("--metric: can't be combined with --group, because groups are compared without verdicts")
    if args.files:
        work = _facts_reader(config, None, [condition.name for condition in group])
        rows = [found[""] for found in results_of(args.files, args.jobs, work, meet=False)]
    else:
        with StoreReader(store_path(args.store, config)) as reader:
            rows = reader.facts(turns_wanted(args))
    return differences_of_group(rows, group)


def _stored(args: argparse.Namespace, config: Config) -> Mapping[str, Sequence[VerdictRow]]:
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


def _most_failed(args: argparse.Namespace, config: Config) -> Mapping[str, Sequence[VerdictRow]]:
    found = _recorded(args.files, args, config)
    del found[""]
    failures = {metric: sum(row.bad for row in rows) for metric, rows in found.items()}
    most = sorted(found, key=lambda name: (-failures[name], name))[:_MOST_METRICS]
    return {name: found[name] for name in most}


def _recorded(files: Sequence[str], args: argparse.Namespace, config: Config) -> dict[str, list[VerdictRow]]:
    """Map each metric to one row per verdict, and the key ``""`` to one row per recorded turn."""
    evaluation = Evaluation(config, ",".join(args.metric) or None)
    work = _facts_reader(config, evaluation)
    found: dict[str, list[VerdictRow]] = {"": []}
    for of_turn in results_of(files, args.jobs, work, meet=evaluation.looks_at_conversations):
        for metric, row in of_turn.items():
            found.setdefault(metric, []).append(row)
    return found


def _facts_reader(config: Config, evaluation: Evaluation | None, names: Iterable[str] = ()) -> TurnWork:
    """Return a function that reads turns' redacted facts, with the attributes in ``names`` and ``outlets.store.attributes``."""
    attributes = config.outlets.store.attributes if config.outlets.store is not None else ()
    return partial(_facts, evaluation, tuple(dict.fromkeys((*attributes, *names))), config.privacy.redact)


def _facts(
    evaluation: Evaluation | None, attributes: Sequence[str], redacted: Sequence[str], turns: Iterable[tuple[Key, Turn]]
) -> Iterator[tuple[Key, dict[str, VerdictRow]]]:
    """Yield each turn's row (key ``""``) and, with ``evaluation``, a row per verdict (key: metric). Can run in other processes."""
    scored = evaluation.scores(turns) if evaluation is not None else (((0, key), turn, ()) for key, turn in turns)
    for key, turn, scores in scored:
        row = facts_row(named_publicly(turn, redacted), attributes)
        row = row._replace(facts={**attributes_publicly(row.facts, redacted)})
        yield (0, key), verdicts_in(row, scores) | ({"": row} if key[0] == 0 else {})
