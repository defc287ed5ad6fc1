"""``otel-agenteval turns``: the turns of recorded traces."""

from __future__ import annotations

import argparse
import json

from ..turns.recordings import Reading, load_turns
from .options import add_files
from .reading import end_of, progress


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what the command takes."""
    add_files(parser)


def run(args: argparse.Namespace) -> int:
    """Print them."""
    reading = Reading(progress())
    for turn in load_turns(args.files, reading=reading):
        print(json.dumps(turn.to_dict(), ensure_ascii=False, default=str))
    return end_of(reading)
