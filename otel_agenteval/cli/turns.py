"""``otel-agenteval turns``: the turns of recorded traces."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..config.conversation import ConversationOptions
from ..core.processes import jobs_of
from ..core.turn import Turn
from ..turns.recorded_conversations import RecordedConversations
from ..turns.recordings import Reading
from ..turns.spool import Key, results
from .exit_codes import OK, UNUSABLE
from .options import add_files, add_jobs
from .reading import progress, report_reading

EXIT_CODES = {
    OK: "the turns were printed; there may be none in the spans that were read",
    UNUSABLE: "wrong use, a file cannot be read, or the files hold no spans",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_files(parser)
    add_jobs(parser)
    parser.add_argument(
        "--conversations",
        action="store_true",
        help="give each turn what was said before it in its conversation (history), and print each conversation as a whole after them",
    )


def run(args: argparse.Namespace) -> int:
    """Print them."""
    reading = Reading(progress())
    for line in results(args.files, _Lines(args.conversations), jobs=jobs_of(args.jobs), meet=args.conversations, seen=reading):
        print(line)
    return report_reading(reading)


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
    return json.dumps(turn.to_dict(), ensure_ascii=False, default=str)
