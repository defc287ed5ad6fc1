"""``otel-agenteval turns``: the turns of recorded traces."""

from __future__ import annotations

import argparse
import json

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


def run(args: argparse.Namespace) -> int:
    """Print them."""
    reading = Reading(progress())
    for turn in load_turns(args.files, reading=reading):
        print(json.dumps(turn.to_dict(), ensure_ascii=False, default=str))
    return report_reading(reading)
