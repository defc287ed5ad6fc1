"""``otel-agenteval turns``: the turns of recorded traces."""

from __future__ import annotations

import argparse
import json

from ..config.conversation import ConversationOptions
from ..core.turn import Turn
from ..turns.recorded_conversations import RecordedConversations
from ..turns.recordings import Reading, load_turns
from .exit_codes import OK, UNUSABLE
from .options import add_files
from .reading import progress, report_reading

EXIT_CODES = {
    OK: "the turns were printed; there may be none in the spans that were read",
    UNUSABLE: "wrong use, a file cannot be read, or the files hold no spans",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    add_files(parser)
    parser.add_argument(
        "--conversations",
        action="store_true",
        help="give each turn what was said before it in its conversation (history), and print each conversation as a whole after them",
    )


def run(args: argparse.Namespace) -> int:
    """Print them."""
    reading = Reading(progress())
    conversations = RecordedConversations(ConversationOptions(), whole=args.conversations, history=args.conversations)
    for turn in load_turns(args.files, reading=reading):
        conversations.take(turn)
        _print(turn)
    for ended in conversations.ended():
        _print(ended.turn)
    return report_reading(reading)


def _print(turn: Turn) -> None:
    print(json.dumps(turn.to_dict(), ensure_ascii=False, default=str))
