"""``otel-agenteval failure-modes``: group failed turns by their first fault."""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from ..config.root import Config
from ..core import jsonio
from ..core.display import escaped
from ..core.errors import AgentEvalError, ConfigError, JudgeError, StoreError, refusal
from ..core.turn import Turn
from ..evaluation.first_fault import failure_of
from ..evaluation.redaction import Redactor, redacted_or_empty, redacted_text
from ..evaluation.selection import select_metrics
from ..judging.models import Embedder, InProcessEmbedder, LocalEmbedder, embedder_from, judge_from
from ..judging.session import CommandBudget
from ..outlets.store.reader import GROUPED_BY, MOST_TEXTS, NO_CAUSES, StoredTopic, StoreReader, Wanted, store_path
from ..outlets.store.writer import write_topics
from ..outlets.turn_text import number_of, one_line
from ..report.failure_modes import (
    FailedTurn,
    FailureMode,
    FailureText,
    Topic,
    TopicFinder,
    as_report,
    counted,
    failure_text,
    modes_of,
)
from ..report.mode_cases import ModeCase, case_of, distinct, references_in, stored_cases
from ..report.render import render
from ..turns.spool import Key
from . import OK, UNUSABLE
from .options import add_turn_sources, config_of_sources, turns_wanted, write_report
from .scoring import Evaluation, close_models, results_of, warn_of_new_budget

_PAGE = 100
"""Number of turns to read from the store at a time."""
_MOST_SPLIT = 20
"""Maximum number of failure modes to split into topics, most frequent first."""

EXIT_CODES = {OK: "the report was written", UNUSABLE: "an argument is invalid, an input can't be read, or no turn failed"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_turn_sources(parser)
    parser.add_argument(
        "--by", metavar="KEY",
        help="compare the latest two groups, such as versions, instead of the two halves of the period; KEY is `service.version`, `agent`, `service`, `model`, `tenant`, or an attribute that outlets.store.attributes lists",
    )  # fmt: skip
    parser.add_argument("--mode", metavar="ID", help="show only the failure mode with this ID")
    parser.add_argument(
        "--cases", metavar="FILE",
        help="with --mode: write the failure mode's latest turns to a dataset for `experiment`, with one case for each distinct input",
    )  # fmt: skip
    parser.add_argument("--limit", type=int, default=50, metavar="N", help="with --cases: maximum number of cases (default: 50)")
    parser.add_argument(
        "--labels", metavar="FILE",
        help="with --cases: add reference data, such as ground_truth, from this file of turn labels",
    )  # fmt: skip
    parser.add_argument(
        "--describe", action="store_true", help="let the judge, within its budget, name topics that have no description"
    )


def run(args: argparse.Namespace) -> int:
    if args.cases is not None and args.mode is None:
        raise ConfigError("--cases: requires --mode ID")
    if args.cases is None and args.labels is not None:
        raise ConfigError("--labels: requires --cases FILE")
    if args.by is not None and args.files:
        raise ConfigError("--by: requires a score store")
    if GROUPED_BY.get(args.by, "").startswith("scores."):
        raise ConfigError(refusal("--by", repr(args.by), "must be a field of turns, not of scores. Example: service.version"))
    if args.limit < 1:
        raise ConfigError(refusal("--limit", str(args.limit), "must be a positive whole number"))
    config = config_of_sources(args)
    labels = references_in(args.labels) if args.labels is not None else {}
    modes, cases, failed = _recorded(args, config, labels) if args.files else _stored(args, config, labels)
    if not modes:
        known = f" among those with {args.by}" if args.by is not None else ""
        raise AgentEvalError(f"no turn failed {' or '.join(args.metric) or 'a metric'}{known}")
    if args.mode is not None:
        known = ", ".join(mode.fault.mode for mode in modes)
        modes = [mode for mode in modes if mode.fault.mode == args.mode]
        if not modes:
            raise ConfigError(refusal("--mode", repr(args.mode), f"must be the id of a failure mode: {known}"))
    write_report(render(as_report(_with_topics(modes, failed, args, config)), args.format), args.out)
    if args.cases is not None:
        _write_cases(args.cases, cases, is_stored=not args.files)
    return OK


def _write_cases(path: str, cases: Sequence[dict[str, Any]], *, is_stored: bool) -> None:
    """Write the dataset, and print the command that runs it. Without cases, or if the file isn't writable, raise ConfigError."""
    if not cases:
        how = "Set outlets.store.content to true" if is_stored else "Let the agent's instrumentation capture content"
        raise ConfigError(f"--cases: no turn of the failure mode has an input and a metric to evaluate again. {how}")
    write_report("\n".join(map(jsonio.dumps, cases)), path, "--cases")
    print(f"{number_of(len(cases), 'case')} written. Next: otel-agenteval experiment app:answer {path} --gate", file=sys.stderr)


Found = tuple[list[FailureMode], list[dict[str, Any]], list[FailedTurn]]
"""Failure modes, dataset cases of the selected failure mode, and failed recorded turns."""
Parameters = Mapping[str, Mapping[str, Any]]
"""Mapping from metric to its configured parameters."""


def _parameters(config: Config) -> Parameters:
    return {bound.name: bound.params for bound in select_metrics(config) if not bound.inner}


def _stored(args: argparse.Namespace, config: Config, labels: Mapping[str, Mapping[str, Any]]) -> Found:
    with StoreReader(store_path(args.store, config)) as reader:
        wanted = turns_wanted(args)
        modes = modes_of(reader.modes(wanted, args.by))
        if not modes and not reader.keeps_causes():
            raise AgentEvalError(NO_CAUSES)
        if args.cases is None:
            return modes, [], []
        turns = _turns_of(reader, replace(wanted, mode=args.mode))
        known = _parameters(config)
        return modes, stored_cases(reader, turns, args.limit, lambda name: known.get(name, {}), labels), []


def _turns_of(reader: StoreReader, wanted: Wanted) -> Iterator[dict[str, Any]]:
    before = None
    while turns := reader.turns(wanted, _PAGE, before):
        yield from turns
        before = turns[-1]["stored_at"]


class _RecordedTurn(NamedTuple):
    at: float
    failed: FailedTurn | None
    conversation: str | None
    asked: str | None
    """Redacted input of the turn."""
    case: ModeCase | None


def _recorded(args: argparse.Namespace, config: Config, labels: Mapping[str, Mapping[str, Any]]) -> Found:
    evaluation = Evaluation(config, ",".join(args.metric) or None)
    mode, parameters = (None, {}) if args.cases is None else (args.mode, _parameters(config))
    work = partial(_read_turns, evaluation, config.privacy.redact, mode, parameters, labels)
    found = [*results_of(args.files, args.jobs, work, meet=evaluation.looks_at_conversations)]
    times = [one.at for one in found if one.at]
    middle = (min(times) + max(times)) / 2 if times else 0.0
    before = sum(one.at < middle for one in found)
    failed = [one.failed for one in found if one.failed is not None]
    modes = modes_of(counted(failed, (before, len(found) - before), middle))
    return modes, list(distinct(_cases_in(found), args.limit)), failed


def _read_turns(
    evaluation: Evaluation, redacted: Sequence[str], mode: str | None, parameters: Parameters,
    labels: Mapping[str, Mapping[str, Any]], turns: Iterable[tuple[Key, Turn]],
) -> Iterator[tuple[Key, _RecordedTurn]]:  # fmt: skip
    """Yield evaluated turns. Turns with the failure ``mode`` also get a dataset case. Can run in other processes."""
    for key, turn, scores in evaluation.scores(turns):
        at = turn.start.timestamp() if turn.start is not None else 0.0
        fault = failure_of(turn, scores, redacted)
        case = asked = failed = None
        if mode is not None and not key[0]:  # a turn, not a conversation
            clean = redacted_or_empty(turn, Redactor(redacted))
            asked = clean.input
            if fault is not None and fault.mode == mode:
                case = case_of(clean.to_dict(), scores, fault.kind, lambda name: parameters.get(name, {}), labels)
        if fault is not None:
            reasons = [one.explanation for one in scores if one.kind == "llm" and one.verdict is False and one.explanation]
            text = failure_text(turn, fault, max(reasons, default=None), redacted)
            failed = FailedTurn(turn.turn_id, at, fault, text)
        yield (0, key), _RecordedTurn(at, failed, turn.conversation_id, asked, case)


def _cases_in(found: Sequence[_RecordedTurn]) -> Iterator[dict[str, Any]]:
    conversations: dict[str, list[_RecordedTurn]] = {}
    for one in sorted(found, key=lambda one: one.at):
        if one.conversation and one.asked:
            conversations.setdefault(one.conversation, []).append(one)
    for one in sorted(found, key=lambda one: -one.at):
        if one.case is not None:
            earlier = conversations.get(one.conversation or "", ())
            yield one.case.as_row([other.asked for other in earlier if other.asked and other.at < one.at])


# --- topics

_TASK = (
    "Each text is about a failed turn of an AI agent. All texts are about the same problem. Name the problem in at most six words, "
    "and describe it in one sentence of at most 25 words. Don't repeat names, numbers or addresses of persons."
)
_REPLY = '{"description": "<one sentence>", "name": "<at most six words>"}'


def _with_topics(
    modes: list[FailureMode], failed: Sequence[FailedTurn], args: argparse.Namespace, config: Config
) -> list[FailureMode]:
    """Add topics to the failure modes. Without an embedder, return the failure modes without topics."""
    try:
        embedder = embedder_from(config) or LocalEmbedder()
    except ConfigError:
        if config.embedder.model is None and config.embedder.base_url is None:  # the local embedder isn't installed
            return modes
        raise
    ids = [mode.fault.mode for mode in modes[:_MOST_SPLIT]]
    if args.files:
        texts: dict[str, list[FailureText]] = {mode: [] for mode in ids}
        for turn in failed:
            if len(texts.get(turn.fault.mode, ())) < MOST_TEXTS and turn.fault.mode in texts:
                texts[turn.fault.mode].append(FailureText(turn.turn_id, turn.text))
        return _split(modes, texts, config, embedder, describe=args.describe)
    store, wanted, redact = store_path(args.store, config), turns_wanted(args), config.privacy.redact
    with StoreReader(store) as reader:
        stored = {mode: reader.failure_texts(replace(wanted, mode=mode)) for mode in ids}
        texts = {
            mode: [FailureText(one.turn_id, failure_text(one.content, one.fault, one.explanation, redact)) for one in found]
            for mode, found in stored.items()
        }
        known = reader.topics(embedder.model)
    return _split(modes, texts, config, embedder, known=known, store=store, describe=args.describe)


def _split(
    modes: Sequence[FailureMode], texts: Mapping[str, Sequence[FailureText]], config: Config,
    embedder: Embedder | InProcessEmbedder, *, known: Sequence[StoredTopic] = (), store: str | None = None,
    describe: bool = False,
) -> list[FailureMode]:  # fmt: skip
    """Split the failure modes into topics. ``known`` topics keep their names. If the embedder fails, don't add topics."""
    judge = judge_from(config) if describe else None
    if describe and judge is None:
        print("--describe: no judge is configured, so topics are named after frequent words", file=sys.stderr)
    budget, now = CommandBudget(config), time.time()
    try:
        finder = TopicFinder(budget.embedder(embedder).embed, embedder.model, known, now)
        found = []
        for mode in modes:
            name = mode.fault.mode
            others = [one.text for other, some in texts.items() if other != name for one in some[:50]]
            found.append((mode, finder.topics_of(name, texts.get(name, ()), others)))
        if judge is not None:
            warn_of_new_budget(budget)
            found = _described(found, budget.judge(judge), config.privacy.redact)
    except JudgeError as error:
        print(escaped(f"failure modes have no topics: {error}"), file=sys.stderr)
        return [*modes]
    finally:
        close_models(judge, embedder, budget)
    if store is not None:
        try:
            write_topics(store, [topic.about for _, topics in found for topic in topics], embedder.model, now)
        except (sqlite3.Error, OSError, StoreError) as error:
            print(escaped(f"topics can't be saved in the store: {error}"), file=sys.stderr)
    return [replace(mode, topics=topics) for mode, topics in found]


def _described(
    found: Sequence[tuple[FailureMode, list[Topic]]], judge: Any, redact: Collection[str]
) -> list[tuple[FailureMode, list[Topic]]]:
    """Let the judge name and describe new topics. After a judge error, the remaining topics keep names made of frequent words."""
    described: dict[tuple[str, str], StoredTopic] = {}
    try:
        for about, nearest in ((topic.about, topic.nearest) for _, topics in found for topic in topics):
            if not about.description:
                reply = judge.ask("topic", _TASK, {"texts": [one.text for one in nearest]}, _REPLY)
                name, description = (
                    one_line(redacted_text(str(reply.get(key) or ""), redact), longest)
                    for key, longest in (("name", 60), ("description", 200))
                )
                described[about.mode, about.id] = about._replace(name=name or about.name, description=description)
    except JudgeError as error:
        print(escaped(f"--describe: {error}"), file=sys.stderr)
    return [
        (mode, [replace(topic, about=described.get((topic.about.mode, topic.about.id), topic.about)) for topic in topics])
        for mode, topics in found
    ]
