"""Running a program while its spans are recorded, and facts about its processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..config.loader import RECORD_ENV
from ..core.errors import AgentEvalError
from ..instrumentation import inject
from ..instrumentation.recorder import about


def run_recorded(program: Sequence[str], out: Path) -> int:
    """Run a program, append its spans and log records to a file, and return its exit code as a shell does."""
    injected = str(Path(inject.__file__).parent)
    path = os.pathsep.join((injected, *filter(None, [os.environ.get("PYTHONPATH")])))
    environment = {**os.environ, "PYTHONPATH": path, RECORD_ENV: os.path.realpath(out)}
    try:
        process = subprocess.Popen(program, env=environment)  # noqa: S603 - the command that the user gave
    except OSError as error:
        raise AgentEvalError(f"{program[0]}: can't be started: {error.strerror or error}") from None
    passed_on = [(one, signal.getsignal(one)) for one in (signal.SIGINT, signal.SIGTERM)]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal also sends it to the program, which decides
    signal.signal(signal.SIGTERM, lambda number, _: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        for one, handler in passed_on:
            signal.signal(one, handler)
    return code if code >= 0 else 128 - code


def facts_about(out: Path) -> list[dict[str, Any]]:
    """Return the facts that the processes of a recorded program wrote about themselves."""
    try:
        lines = Path(about(str(out))).read_bytes().splitlines()
    except OSError:
        return []
    return [json.loads(line) for line in lines]


def why_nothing(facts: Sequence[dict[str, Any]]) -> str:
    """Return the reason why a program made no spans."""
    pythons = {fact["python"] for fact in facts if "python" in fact}
    if not pythons:
        return (
            "no Python with otel-agenteval ran. Install otel-agenteval in the program's environment. For programs in other languages, send OTLP "
            "to `otel-agenteval serve`"
        )
    if not any(fact.get("made") == "TracerProvider" or "racer" in fact.get("made", "") for fact in facts):
        return (
            "the program made no TracerProvider of the OpenTelemetry SDK. Create one, or let opentelemetry-instrument create it: "
            "otel-agenteval record -- opentelemetry-instrument python app.py"
        )
    return "the program made a TracerProvider, but no span ended. Install and enable an instrumentation of your framework"
