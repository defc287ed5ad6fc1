"""``otel-agenteval turns``: the turns of recorded traces, or of a store."""

from __future__ import annotations

import argparse
import datetime
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..config.conversation import ConversationOptions
from ..config.loader import load_config
from ..core.errors import ConfigError
from ..core.processes import jobs_of
from ..core.terminal import escaped
from ..core.turn import Turn
from ..outlets.accounting import outcome
from ..outlets.sqlite.store import StoreReader, Wanted, score_of_row, store_path
from ..outlets.turn_text import BOLD, DIM, RED, Paint, colours_wanted, columns, one_line, short_name
from ..turns.recorded_conversations import RecordedConversations
from ..turns.recordings import Reading
from ..turns.spool import Key, results
from .exit_codes import OK, UNUSABLE
from .options import add_files, add_jobs, add_store, moment
from .reading import progress, report_reading

EXIT_CODES = {
    OK: "the turns were printed; there may be none in the spans that were read, or none that is wanted in the store",
    UNUSABLE: "wrong use, a file or the store cannot be read, or the files hold no spans",
}
_LATEST = 20
_SHORT_ID = 8


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_files(parser, needed=False)
    add_jobs(parser)
    parser.add_argument(
        "--conversations",
        action="store_true",
        help="give each turn what was said before it in its conversation (history), and print each conversation as a whole after them",
    )
    stored = parser.add_argument_group("turns of a store, the latest first, in place of files")
    add_store(stored)
    for name in ("agent", "metric"):
        stored.add_argument(f"--{name}", action="append", default=[], metavar="NAME", help=f"only with this {name}; repeatable")
    stored.add_argument("--failed", action="store_true", help="only with a failed score, or an error of a metric")
    stored.add_argument("--since", metavar="TIME", help="only kept since: 24h, 7d, 2026-11-20")
    stored.add_argument("--limit", type=int, default=_LATEST, metavar="N", help="how many, at most (default %(default)s)")
    stored.add_argument("--json", action="store_true", help="one JSON object a line, with all that is stored and the scores")


def run(args: argparse.Namespace) -> int:
    """Print them.

    Raises:
        ConfigError: neither files nor a store are named, or both are.
    """
    if args.files and args.store is not None:
        raise ConfigError("name either files or --store, not both")
    if args.files:
        reading = Reading(progress())
        for line in results(
            args.files, _Lines(args.conversations), jobs=jobs_of(args.jobs), meet=args.conversations, seen=reading
        ):
            print(line)
        return report_reading(reading)
    config = load_config(args.config)
    if args.store is None and config.outlets.store is None:
        raise ConfigError("name files of recorded traces, or a store: --store FILE")
    wanted = Wanted(since=moment(args.since, "--since"), agents=args.agent, metrics=args.metric, failed=args.failed)
    with StoreReader(store_path(args.store, config)) as reader:
        for turn in reader.turns(wanted, max(0, args.limit)):
            scores = reader.scores(turn["turn_id"])
            if args.json:
                print(escaped(json.dumps({**turn, "scores": scores}, ensure_ascii=False, default=str)))
            else:
                print(_stored(turn, scores))
    return OK


def _stored(turn: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    """A stored turn in a line or two: its short id, when, who, and what failed; then what was asked, if that is kept."""
    paint, width = Paint(colours_wanted(sys.stdout)), columns(sys.stdout)
    scores = [score_of_row(row) for row in rows]
    wrong = [escaped(short_name(score.metric)) for score in scores if outcome(score) in ("fail", "error")]
    when = datetime.datetime.fromtimestamp(turn["start"] or turn["stored_at"], datetime.timezone.utc)
    facts = [escaped(turn["agent"] or "agent without a name")]
    facts += [f"{turn['duration_s']:.2f} s"] if turn["duration_s"] is not None else []
    facts += [f"${turn['cost_usd']:.4f}"] if turn["cost_usd"] is not None else []
    name = escaped(str(turn["turn_id"]))
    short = name[: name.find(":") + 1 + _SHORT_ID]  # a tenant's name stands before
    head = f"{paint(short, BOLD)}  {when:%Y-%m-%d %H:%M:%S}  {', '.join(facts)}"
    said = f"✗ {', '.join(wrong)}" if wrong else f"{len(scores)} scores"
    lines = [f"{head}  {paint(said, RED) if wrong else paint(said, DIM)}"]
    asked = (turn["content"] or {}).get("input")
    if asked:
        lines.append(f"{' ' * len(short)}  {one_line(str(asked), width - len(short) - 2)}")
    return "\n".join(lines)


class _Lines(NamedTuple):
    """Prints turns, and conversations after them."""

    conversations: bool

    def __call__(self, turns: Iterable[tuple[Key, Turn]]) -> Iterator[tuple[Key, str]]:
        """JSON texts."""
        conversations = RecordedConversations(ConversationOptions(), whole=self.conversations, history=self.conversations)
        for key, turn in turns:
            conversations.take(turn)
            yield (0, key), _text(turn)
        for ended in conversations.ended():
            yield (1, str(ended.turn.start), ended.turn.turn_id), _text(ended.turn)


def _text(turn: Turn) -> str:
    return escaped(json.dumps(turn.to_dict(), ensure_ascii=False, default=str))
