"""Other packages beside ours, each in an environment of its own in the cache folder, made on demand by ``paced.py --peers``.

- ``langfuse``: Langfuse's SDK as its span processor, sending to a receiver of this machine. It evaluates nothing: that is done on its server.
- ``pydantic-evals``: its online evaluators on the function that makes the turn: three deterministic ones.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import scenario
from sink import sink as otlp_sink

PINNED = {"langfuse": "langfuse==5.0.4", "pydantic-evals": "pydantic-evals==2.62.0"}
sink = functools.partial(otlp_sink, "http")


def python_of(peer: str) -> str:
    """The interpreter of a peer's environment, which has the SDK of this one; made if it is missing."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "otel-agenteval"
    folder = cache / f"peer-{PINNED[peer].replace('==', '-')}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        print(f"installing {PINNED[peer]} into {folder}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        same = [f"{name}=={version(name)}" for name in ("opentelemetry-sdk", "psutil")]
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", PINNED[peer], *same], check=True)
        (folder / "complete").touch()
    return str(python)


def attach(peer: str, provider: Any, address: str) -> Callable[[Any], object]:
    """Set a peer up on a tracer provider; what makes one turn."""
    return _langfuse(provider, address) if peer == "langfuse" else _pydantic_evals()


def _langfuse(provider: Any, address: str) -> Callable[[Any], object]:
    from langfuse import Langfuse

    Langfuse(public_key="pk", secret_key="sk", base_url=address, tracer_provider=provider)
    return scenario.turn


def _pydantic_evals() -> Callable[[Any], object]:
    from pydantic_evals import evaluators, online

    judged = (evaluators.Contains("Paris"), evaluators.IsInstance("str"), evaluators.MaxDuration(60.0))

    @online.evaluate(*judged)
    def answer(tracer: Any) -> str:
        scenario.turn(tracer)
        return scenario.ANSWER

    return answer
