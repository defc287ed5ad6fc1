"""``otel-agenteval record``: run a program and write its spans and log records to a file, without a Collector."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.errors import AgentEvalError
from ..core.terminal import LINES, escaped
from ..core.writable import fault_of_file
from ..instrumentation.recorder import about
from ..turns.recordings import Reading, load_turns
from .exit_codes import UNUSABLE
from .options import add_program, program_of
from .recorded_program import facts_about, run_recorded, why_nothing

EXIT_CODES = {
    0: "the program exited with 0",
    UNUSABLE: "an argument is invalid, the program can't be started, or the file can't be written; all other codes are the program's own",
}
_DEFAULT = "spans.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o",
        "--out",
        default=_DEFAULT,
        metavar="FILE",
        help=f"file to which OTLP/JSON lines are appended; only its owner can read it (default: {_DEFAULT})",
    )
    add_program(parser, "program to run: otel-agenteval record -- python app.py")


def run(args: argparse.Namespace) -> int:
    """Run the program, and print how many spans and turns were recorded."""
    program = program_of(args)
    if not program:
        raise AgentEvalError("PROGRAM: required. Example: otel-agenteval record -- python app.py")
    out = Path(args.out)
    fault = fault_of_file(str(out))
    if fault is not None:
        raise AgentEvalError(f"--out: {out}: {fault}")
    before = out.stat().st_size if out.exists() else 0
    Path(about(str(out))).unlink(missing_ok=True)
    code = run_recorded(program, out)
    facts = facts_about(out)
    Path(about(str(out))).unlink(missing_ok=True)
    print(escaped(_report(out, before, facts), LINES), file=sys.stderr)
    return code


def _report(out: Path, before: int, facts: Sequence[dict[str, Any]]) -> str:
    if not out.exists() or out.stat().st_size == before:
        return f"no span was recorded: {why_nothing(facts)}"
    reading = Reading()
    agents = Counter(turn.agent or "an unnamed agent" for turn in load_turns(out, report=lambda line: None, reading=reading))
    name = shlex.quote(str(out))
    found = f"{out}: {reading.spans:,} spans, {reading.logs:,} log records, {reading.turns:,} turns"
    found += f" ({', '.join(f'{agent} {count:,}' for agent, count in agents.most_common(5))})" if agents else ""
    if before:
        found += ", including earlier recordings in the file"
    return f"{found}\nto score them: otel-agenteval eval {name}\nto print them: otel-agenteval turns {name}"
