"""``otel-agenteval record``: run a program and write its spans and log records to a file, without a Collector."""

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
from ..core.display import LINES, escaped
from ..core.errors import AgentEvalError
from ..core.files import fault_of_file
from ..instrumentation import inject
from ..instrumentation.recorder import about
from ..outlets.turn_text import number_of
from ..turns.recordings import Reading, load_turns
from . import UNUSABLE
from .options import add_program, program_of

EXIT_CODES = {
    0: "the program exited with 0; if it exits with another code, `record` exits with the same code",
    UNUSABLE: "an argument is invalid, the program can't be started, or the file can't be written",
}
_DEFAULT = "spans.jsonl"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-o", "--out", default=_DEFAULT, metavar="FILE",
        help=f"file to append the spans to, as OTLP/JSON lines; a new file is readable only by you (default: {_DEFAULT})",
    )  # fmt: skip
    add_program(parser, "program to run: `otel-agenteval record -- python app.py`")


def run(args: argparse.Namespace) -> int:
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
    if not out.exists() or out.stat().st_size == before:
        text = f"no span was recorded: {why_nothing(facts)}"
    else:
        reading = Reading()
        agents = Counter(turn.agent or "an unnamed agent" for turn in load_turns(out, report=lambda line: None, reading=reading))
        text = f"{out}: {number_of(reading.spans, 'span')}, {number_of(reading.logs, 'log record')}, {number_of(reading.turns, 'turn')}"
        text += f" ({', '.join(f'{agent} {count:,}' for agent, count in agents.most_common(5))})" if agents else ""
        text += ", including earlier recordings in the file" if before else ""
        name = shlex.quote(str(out))
        text += f"\nto score them: otel-agenteval eval {name}\nto print them: otel-agenteval turns {name}"
    print(escaped(text, LINES), file=sys.stderr)
    return code


def run_recorded(program: Sequence[str], out: Path) -> int:
    """Run ``program``, append its spans and log records to ``out``, and return the exit code that a shell would return."""
    injected = str(Path(inject.__file__).parent)
    path = os.pathsep.join((injected, *filter(None, [os.environ.get("PYTHONPATH")])))
    environment = {**os.environ, "PYTHONPATH": path, RECORD_ENV: os.path.realpath(out)}
    try:
        process = subprocess.Popen(program, env=environment)  # noqa: S603 - the command that the user gave
    except OSError as error:
        hint = f". Run `python {program[0]}`" if program[0].endswith(".py") and Path(program[0]).is_file() else ""
        raise AgentEvalError(f"{program[0]}: can't be started: {error.strerror or error}{hint}") from None
    passed_on = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal also sends the signal to the program, which can handle it
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        for one, handler in passed_on:
            signal.signal(one, handler)
    return code if code >= 0 else 128 - code


def facts_about(out: Path) -> list[dict[str, Any]]:
    """Return the properties that each process of the recorded program reported, such as its Python interpreter."""
    try:
        lines = Path(about(str(out))).read_bytes().splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def why_nothing(facts: Sequence[dict[str, Any]]) -> str:
    pythons = {fact["python"] for fact in facts if "python" in fact}
    if not pythons:
        return (
            "the program didn't load otel-agenteval. Install it in the program's environment. For programs in other languages, send OTLP "
            "to `otel-agenteval serve`"
        )
    if not any(fact.get("made") == "TracerProvider" or "racer" in fact.get("made", "") for fact in facts):
        return (
            "the program created no TracerProvider of the OpenTelemetry SDK. Create one, or let opentelemetry-instrument create it: "
            "otel-agenteval record -- opentelemetry-instrument python app.py"
        )
    return "the program created a TracerProvider, but no sampled span ended. Install and enable an instrumentation for your framework"
