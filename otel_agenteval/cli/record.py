"""``otel-agenteval record``: run a program and keep what its OpenTelemetry SDK makes, without a Collector."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config.loader import RECORD_ENV
from ..core.errors import AgentEvalError
from ..core.writable import fault_of_file
from ..instrumentation import inject
from ..instrumentation.recorder import about
from ..turns.recordings import Reading, load_turns
from .exit_codes import UNUSABLE

EXIT_CODES = {
    0: "the program ended well",
    UNUSABLE: "wrong use, the program cannot be started, or the file cannot be written; or the program's own exit code, as any other",
}
_DEFAULT = "spans.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command to its parser."""
    parser.add_argument(
        "-o",
        "--out",
        default=_DEFAULT,
        metavar="FILE",
        help=f"OTLP/JSON lines are appended to it; it is its owner's alone (default: {_DEFAULT})",
    )
    parser.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="-- PROGRAM",
        help="what to run, as in: otel-agenteval record -- python app.py",
    )


def run(args: argparse.Namespace) -> int:
    """Run it, and say what was recorded."""
    program = args.program[1:] if args.program[:1] == ["--"] else args.program
    if not program:
        raise AgentEvalError("what is to be run? For example: otel-agenteval record -- python app.py")
    out = Path(args.out)
    fault = fault_of_file(str(out))
    if fault is not None:
        raise AgentEvalError(f"--out {out}: {fault}")
    before = out.stat().st_size if out.exists() else 0
    Path(about(str(out))).unlink(missing_ok=True)
    code = run_recorded(program, out)
    facts = facts_about(out)
    Path(about(str(out))).unlink(missing_ok=True)
    print(_report(out, before, facts), file=sys.stderr)
    return code


def run_recorded(program: Sequence[str], out: Path) -> int:
    """Run a program whose spans and log records are appended to a file; its exit code, as a shell has it.

    Raises:
        AgentEvalError: it cannot be started.
    """
    injected = str(Path(inject.__file__).parent)
    path = os.pathsep.join((injected, *filter(None, [os.environ.get("PYTHONPATH")])))
    environment = {**os.environ, "PYTHONPATH": path, RECORD_ENV: str(out.resolve())}
    try:
        process = subprocess.Popen(program, env=environment)  # noqa: S603 - the command that the user gave
    except OSError as error:
        raise AgentEvalError(f"{program[0]}: cannot be started: {error.strerror or error}") from None
    passed_on = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to the program too, which decides
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        for one, handler in passed_on:
            signal.signal(one, handler)
    return code if code >= 0 else 128 - code


def facts_about(out: Path) -> list[dict[str, Any]]:
    """What the processes of a recorded program said of themselves."""
    try:
        lines = Path(about(str(out))).read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def _report(out: Path, before: int, facts: Sequence[dict[str, Any]]) -> str:
    if not out.exists() or out.stat().st_size == before:
        return f"no span was recorded: {why_nothing(facts)}"
    reading = Reading()
    agents = Counter(
        turn.agent or "an agent without a name" for turn in load_turns(out, report=lambda line: None, reading=reading)
    )
    name = shlex.quote(str(out))
    found = f"{out}: {reading.spans:,} spans, {reading.logs:,} log records, {reading.turns:,} turns"
    found += f" ({', '.join(f'{agent} {count:,}' for agent, count in agents.most_common(5))})" if agents else ""
    if before:
        found += ", with what was in it before"
    return f"{found}\nscore them: otel-agenteval eval {name}\nsee them:   otel-agenteval turns {name}"


def why_nothing(facts: Sequence[dict[str, Any]]) -> str:
    """Why a program made no spans, by what its processes said."""
    pythons = {fact["python"] for fact in facts if "python" in fact}
    if not pythons:
        return (
            "no Python that has otel-agenteval ran. Install it in the program's environment; programs in other languages send OTLP to "
            "`otel-agenteval serve`"
        )
    if not any(fact.get("made") == "TracerProvider" or "racer" in fact.get("made", "") for fact in facts):
        return (
            "the program made no TracerProvider of the OpenTelemetry SDK. Set one up (README), or let "
            "`opentelemetry-instrument` do it: otel-agenteval record -- opentelemetry-instrument python app.py"
        )
    return "a TracerProvider was made, and no span of it ended. Is an instrumentation installed and switched on?"
