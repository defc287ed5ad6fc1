"""Count the package's stack frames on the most frequent code paths, and compare each number with a limit.

    python scripts/walks.py    prints the frames of each path; exit status 1 above a limit of [tool.house.walks] in pyproject.toml

A path is the stack at its last function, in a real sidecar with a scripted judge. The thread's loop isn't included.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpcore._backends.sync as sockets

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from otel_agenteval.metrics.bound_metric import BoundMetric  # noqa: E402
from otel_agenteval.turns.assembler import Assembler  # noqa: E402
from tests.support.judges import ScriptedModels  # noqa: E402
from tests.support.rig import chat_attributes  # noqa: E402
from tests.support.service import Sidecar  # noqa: E402

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LOOPS = ("_loop", "_run", "run_forever")
walks: dict[str, list[str]] = {}


def record(walk: str, after: Sequence[str]) -> None:
    """Record the names of the package's functions on the stack above the thread's loop, when a path is first reached."""
    names: list[str] = []
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_name not in LOOPS:
        if Path(frame.f_code.co_filename).is_relative_to(ROOT / "otel_agenteval"):
            names.append(frame.f_code.co_qualname if sys.version_info >= (3, 11) else frame.f_code.co_name)
        frame = frame.f_back
    walks.setdefault(walk, [*names[::-1], *after])


def recorded(walk: str, function: Callable[..., Any], *after: str) -> Callable[..., Any]:
    """Return a function that also records its path. ``after`` are frames that are added at the end."""

    def call(*args: Any, **options: Any) -> Any:
        record(walk, after)
        return function(*args, **options)

    return call


def main() -> int:
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["house"]["walks"]
    models = ScriptedModels()
    models.play({"score": 90, "reason": "good"}, {"score": 90, "reason": "good"})
    sockets.SyncStream.write = recorded("judge thread to socket", sockets.SyncStream.write)  # type: ignore[method-assign]
    Assembler.add_received = recorded("request to assembler", Assembler.add_received)  # type: ignore[method-assign]
    BoundMetric.evaluate = recorded("worker to metric", BoundMetric.evaluate, "BoundMetric.evaluate", "code_empty_answer")  # type: ignore[method-assign]
    config = {
        "metrics": ["code_empty_answer", {"llm_relevance": {}, "sample": {"rate": 1}}],
        "judge": {"base_url": models.url, "model": "scripted"},
    }
    with Sidecar(config) as sidecar:
        exporter = sidecar.exporter("http")
        sidecar.provider(exporter).get_tracer("walks").start_span("chat", attributes=chat_attributes("Where?", "Here.")).end()
        sidecar.engine.intake.close_all("shutdown")
        assert sidecar.engine.drain(60, judges=True)
        exporter.shutdown()
    status = 0
    for walk, most in limits.items():
        found = walks.get(walk, [])
        status |= len(found) > most
        print(f"{walk:<24} {len(found):>3}  limit {most:>3}{'  EXCEEDED' if len(found) > most else ''}")
        print(f"    {' > '.join(found)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
