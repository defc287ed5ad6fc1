"""Run scripts in separate processes, for global providers, environments, forks and exits."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

PRELUDE = """
import json, os, sys, threading, time
from opentelemetry import trace, _logs
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk._logs import LoggerProvider
import otel_agenteval as oa

def chat(tracer, user="hi", says="Hi.", **more):
    tracer.start_span("chat m-1", attributes={
        "gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1",
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": user}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": says}]}]),
    }, **more).end()

def agent(tracer, name="bot"):
    return tracer.start_as_current_span(f"invoke_agent {name}", attributes={
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name})

def turn(tracer, name="bot", says="Hi."):
    with agent(tracer, name):
        chat(tracer, says=says)
"""
"""Start of each script: imports, and agents to run."""


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment without ``OTEL_…`` variables, in which this checkout's package is imported."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return {**clean, "PYTHONPATH": str(ROOT), **(more or {})}


def run(
    script: str, *args: str, env: Mapping[str, str] | None = None, command: Sequence[str] = (sys.executable,), timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a Python script without the prelude. The exit status isn't checked.

    Raises:
        subprocess.TimeoutExpired: If the script doesn't end in time.
    """
    return subprocess.run(
        [*command, "-c", textwrap.dedent(script), *args],
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def output_of(script: str, *args: str, env: Mapping[str, str] | None = None, command: Sequence[str] = (sys.executable,)) -> str:
    """Return the output of a script with the prelude. The script must succeed and print nothing to standard error."""
    patient = {} if "exit_timeout" in script else {"OTEL_AGENTEVAL_EXIT_TIMEOUT": "40s"}  # long, because the machine can be busy
    done = run(PRELUDE + textwrap.dedent(script), *args, env={**patient, **(env or {})}, command=command)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout
