"""``otel-agenteval detectors``: count the alarms of the default metrics on your traffic, and write settings that avoid false alarms."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..config.editing import Addition, add_to_file
from ..config.loader import RESERVED_ENV, load_config
from ..config.root import Config
from ..core.display import LINES, escaped
from ..core.errors import AgentEvalError, ConfigError, refusal
from ..core.files import fault_of_file
from ..core.processes import jobs_of
from ..core.turn import Turn
from ..evaluation.selection import select_metrics
from ..metrics.registry import group_of, resolve
from ..outlets.store.postgres import without_password
from ..outlets.store.reader import StoreReader, Wanted, store_path
from ..outlets.turn_text import colors_wanted, number_of
from ..page.labels import Labels
from ..report.detectors import PATTERN_OF, DetectorReport, Suggestion, TurnAlarms, alarms_in
from ..turns.recordings import Reading
from ..turns.spool import Key
from ..turns.spool import results as in_order
from . import OK, UNUSABLE
from .options import SINCE, add_files, add_jobs, add_store, moment, progress, report_reading
from .scoring import Evaluation

EXIT_CODES = {
    OK: "the report was printed and, with --accept, accepted settings were written",
    UNUSABLE: "an argument is invalid, an input can't be read or doesn't contain turns, or the configuration can't be written",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser, needed=False)
    add_store(parser)
    parser.add_argument("--since", metavar="TIME", help=f"with a store: {SINCE}")
    parser.add_argument(
        "--labels", metavar="FILE",
        help="file with labels that you set in the web UI (default: serve.page.labels in the configuration)",
    )  # fmt: skip
    parser.add_argument(
        "--accept", metavar="N,…|all",
        help="write the suggested settings with these numbers to the file in --config, and evaluate the turns again",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_jobs(parser)


def run(args: argparse.Namespace) -> int:
    if args.files and (args.store or args.since):
        raise ConfigError(f"FILE, {'--store' if args.store else '--since'}: only one of them is allowed")
    file, wanted = _accepted(args)
    if file is None or file.exists():
        config = load_config(args.config)
    else:  # --accept creates the file
        config = load_config(env={name: value for name, value in os.environ.items() if name != RESERVED_ENV[1]})
    if not args.files and args.store is None and config.outlets.store is None:
        raise ConfigError("FILE, --store: one of them is required: a file with recorded traces, or a score store")
    labels = _labels(args.labels, config.serve.page.labels)
    report, code = _report(args, config, labels)
    if code != OK or not report.turns:
        return code or UNUSABLE
    suggestions = report.suggestions()
    chosen = suggestions if args.accept == "all" else _chosen(suggestions, wanted)
    text = "" if args.json else report.render(color=colors_wanted(sys.stdout))
    data = report.as_data()
    if file is None:
        if suggestions and not args.json:
            text += "\n\nTo write them to your configuration, add --config FILE --accept all, or the numbers: --accept 1,2"
    elif not chosen:
        text += f"\n\nno settings are suggested, so {file} isn't written"
    else:
        add_to_file(file, _additions(chosen, config), lambda path: _check_in_effect(chosen, load_config(path)))
        after, _ = _report(args, load_config(file), labels)
        text += (
            f"\n\n{number_of(len(chosen), 'setting')} written to {file}; alarms before → after:\n{report.render_change(after)}"
        )
        data |= {"config": str(file), "accepted": [suggestions.index(one) + 1 for one in chosen], "after": after.as_data()}
    print(escaped(json.dumps(data, ensure_ascii=False) if args.json else text, LINES))
    return OK


# --- turns


def _report(args: argparse.Namespace, config: Config, labels: Mapping[tuple[str, str], bool]) -> tuple[DetectorReport, int]:
    """Count alarms, but no measurements such as latency. Return the report, and the exit code of :func:`report_reading`."""
    known = frozenset((*group_of("default"), *PATTERN_OF))
    detectors = [one for one in select_metrics(config) if one.metric.name in known and one.metric.unit == "1"]
    if not detectors:
        raise ConfigError("inline.metrics: must contain a detector. Use `default`, or list the detectors to count")
    names = [*dict.fromkeys(one.name for one in detectors)]
    evaluation = Evaluation(config, ",".join(names))
    work = partial(_alarms, evaluation, config.privacy.redact)
    verdicts = {one.name for one in detectors if one._facts.gives_verdict}
    report = DetectorReport(names, labels, [name for name in names if name not in verdicts])
    if not args.files:
        for _, found in work(_stored(args, config)):
            report.add(found)
        return report, OK
    reading = Reading(progress())
    meet = evaluation.looks_at_conversations
    for found in in_order(args.files, work, jobs=jobs_of(args.jobs), meet=meet, seen=reading):
        report.add(found)
    return report, report_reading(reading)


def _alarms(evaluation: Evaluation, kinds: Sequence[str], turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, TurnAlarms]]:
    """Yield the alarms of each turn. This function can run in other processes."""
    for key, turn, scores in evaluation.scores(turns):
        yield (0, key), alarms_in(turn, scores, kinds)


def _stored(args: argparse.Namespace, config: Config) -> Iterator[tuple[Key, Turn]]:
    path, number = store_path(args.store, config), 0
    with StoreReader(path) as reader:
        for turn_id, content in reader.contents(Wanted(since=moment(args.since, "--since"))):
            if content is not None:
                number += 1
                yield (number,), Turn.from_dict({**content, "turn_id": turn_id})
    if not number:
        what = f"no turns with content{f' since {args.since}' if args.since else ''}"
        fix = "Set outlets.store.content, or use recorded traces instead"
        raise AgentEvalError(f"--store: {without_password(path)} has {what}. {fix}")


def _labels(given: str | None, configured: str | None) -> dict[tuple[str, str], bool]:
    """Map (turn, metric) to True if a label confirms the alarm, otherwise to False. The file ``configured`` can be missing."""
    if given is not None and not Path(given).exists():
        raise ConfigError(f"--labels: {given}: file not found")
    found: dict[tuple[str, str], bool] = {}
    path = given or configured
    for label in Labels(path).all() if path else ():
        if label.get("metric") and label["label"] in ("pass", "fail"):
            key = (str(label["turn_id"]), str(label["metric"]))
            found[key] = found.get(key, False) or label["label"] == "fail"
    return found


# --- accepted settings


def _accepted(args: argparse.Namespace) -> tuple[Path | None, list[int]]:
    """Return the file that ``--accept`` changes (or None), and the numbers of accepted suggestions (empty for ``all``). If the value is
    invalid, the file can't be written, or the turns can't be read twice, raise ConfigError.
    """
    if args.accept is None:
        return None, []
    try:
        numbers = [] if args.accept == "all" else [*dict.fromkeys(map(int, args.accept.split(",")))]
    except ValueError:
        raise ConfigError(
            refusal("--accept", repr(args.accept), "must be numbers of suggestions, separated by commas, or all")
        ) from None
    file = args.config or os.environ.get(RESERVED_ENV[1])
    if not file:
        raise ConfigError("--accept: requires --config FILE, the configuration to write")
    fault = fault_of_file(file)
    if fault is not None:
        raise ConfigError(f"--config: {fault}")
    if "-" in args.files:
        raise ConfigError("--accept: the turns are read twice, so standard input (-) can't be used. Save them to a file")
    return Path(file), numbers


def _chosen(suggestions: Sequence[Suggestion], wanted: Sequence[int]) -> list[Suggestion]:
    bad = next((number for number in wanted if not 0 < number <= len(suggestions)), None)
    if bad is not None:
        allowed = f"must be from 1 to {len(suggestions)}, or all" if suggestions else "no settings are suggested"
        raise ConfigError(refusal("--accept", str(bad), allowed))
    return [suggestions[number - 1] for number in wanted]


def _additions(chosen: Sequence[Suggestion], config: Config) -> list[Addition]:
    values: dict[tuple[str, str], list[str]] = {}
    for one in chosen:
        values.setdefault((one.metric, one.parameter), []).append(one.value)
    entries = [(resolve(entry.metric)[0].name, path) for path, entry in config.metric_entries()]
    return [
        Addition(metric, parameter, given, [path for name, path in entries if name == metric])
        for (metric, parameter), given in values.items()
    ]


def _check_in_effect(chosen: Sequence[Suggestion], config: Config) -> None:
    """Raise ConfigError if a setting has no effect, for example because an environment variable replaces the metrics in the file."""
    params: list[tuple[str, Mapping[str, Any]]] = [(one.name, one.params) for one in select_metrics(config)]
    for one in chosen:
        if any(name == one.metric and one.value not in given.get(one.parameter, ()) for name, given in params):
            raise ConfigError(f"--accept: {one} isn't in effect. Unset variables that replace it, such as OTEL_AGENTEVAL_METRICS")
