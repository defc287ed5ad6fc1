"""``otel-agenteval turns``: print the turns of recorded traces or of a score store."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ..config.loader import load_config
from ..config.turn import ConversationOptions
from ..core.display import escaped
from ..core.errors import ConfigError
from ..core.processes import jobs_of
from ..core.turn import Turn, usd_text
from ..outlets.accounting import outcome
from ..outlets.store.reader import StoreReader, Wanted, score_of_row, store_path
from ..outlets.turn_text import BOLD, DIM, RED, Paint, colors_wanted, columns, number_of, one_line, short_id, short_name
from ..turns.conversations import RecordedConversations
from ..turns.recordings import Reading
from ..turns.spool import Key, results
from . import OK, UNUSABLE
from .options import SINCE, add_files, add_jobs, add_store, metrics_wanted, moment, progress, report_reading

EXIT_CODES = {
    OK: "the matching turns were printed",
    UNUSABLE: "an argument is invalid, a file or the store can't be read, or the files don't contain spans",
}
_LATEST = 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_files(parser, needed=False)
    add_jobs(parser)
    parser.add_argument(
        "--conversations", action="store_true",
        help="with FILE: add history (up to 20 earlier turns of the conversation) to each turn, and print each whole conversation after the turns",
    )  # fmt: skip
    stored = parser.add_argument_group("turns of a store, latest first, instead of files")
    add_store(stored)
    for name, of in (("agent", "turns of this agent"), ("metric", "turns with a score of this metric")):
        stored.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=f"with a store: only {of}; repeatable")
    stored.add_argument("--failed", action="store_true", help="with a store: only turns with a failed score or an error")
    stored.add_argument("--since", metavar="TIME", help=f"with a store: {SINCE}")
    stored.add_argument("--limit", type=int, default=_LATEST, metavar="N", help="with a store: maximum number of turns (default: %(default)s)")  # fmt: skip
    stored.add_argument("--json", action="store_true", help="with a store: print one JSON object per turn, with its scores")


def run(args: argparse.Namespace) -> int:
    if args.files and (args.store or args.since or args.agent or args.metric or args.failed):
        raise ConfigError("FILE: can't be combined with --store, --since, --agent, --metric, or --failed")
    if args.files:
        reading = Reading(progress())
        work = partial(_lines, args.conversations)
        for line in results(args.files, work, jobs=jobs_of(args.jobs), meet=args.conversations, seen=reading):
            print(line)
        return report_reading(reading)
    config = load_config(args.config)
    if args.store is None and config.outlets.store is None:
        raise ConfigError("FILE, --store: one of them is required. Example: otel-agenteval turns spans.jsonl")
    since = moment(args.since, "--since")
    with StoreReader(store_path(args.store, config)) as reader:
        wanted = Wanted(since=since, agents=args.agent, metrics=metrics_wanted(args, reader), failed=args.failed)
        turns = reader.turns(wanted, max(0, args.limit))
        for turn in turns:
            scores = reader.scores(turn["turn_id"])
            if args.json:
                print(escaped(json.dumps({**turn, "scores": scores}, ensure_ascii=False, default=str)))
            else:
                print(_stored_turn(turn, scores))
    if not turns:
        print("0 turns", file=sys.stderr)
    return OK


def _stored_turn(turn: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a stored turn as a line, with its short ID, time, and agent. A stored input follows as a second line."""
    paint, width = Paint(colors_wanted(sys.stdout)), columns(sys.stdout)
    scores = [score_of_row(row) for row in rows]
    wrong = [escaped(short_name(score.metric)) for score in scores if outcome(score) in ("fail", "error")]
    when = datetime.datetime.fromtimestamp(turn["start"] or turn["stored_at"], datetime.timezone.utc)
    facts = [escaped(turn["agent"] or "unnamed agent")]
    facts += [f"{turn['duration_s']:.2f} s"] if turn["duration_s"] is not None else []
    facts += [usd_text(turn["cost_usd"], turn["cost_estimated"])] if turn["cost_usd"] is not None else []
    short = escaped(short_id(str(turn["turn_id"]), bool(turn["is_conversation"])))
    head = f"{paint(short, BOLD)}  {when:%Y-%m-%d %H:%M:%S}  {', '.join(facts)}"
    said = paint(f"✗ {', '.join(wrong)}", RED) if wrong else paint(number_of(len(scores), "score"), DIM)
    lines = [f"{head}  {said}"]
    asked = (turn["content"] or {}).get("input")
    if asked:
        lines.append(f"{' ' * len(short)}  {one_line(str(asked), width - len(short) - 2)}")
    return "\n".join(lines)


def _lines(with_conversations: bool, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, str]]:
    conversations = RecordedConversations(ConversationOptions(), whole=with_conversations, history=with_conversations)
    for key, turn in turns:
        conversations.take(turn)
        yield (0, key), escaped(json.dumps(turn.to_dict(), ensure_ascii=False, default=str))
    for ended in conversations.ended():
        whole = ended.turn
        yield (1, str(whole.start), whole.turn_id), escaped(json.dumps(whole.to_dict(), ensure_ascii=False, default=str))
