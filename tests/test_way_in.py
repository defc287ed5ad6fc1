"""Whoever receives spans knows an engine by its own methods, and nothing behind these."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "otel_agenteval"
RECEIVERS = ("server", "kafka", "backfill", "instrumentation", "cli")
BEHIND = {"assembler", "composer", "evaluator", "judging", "lock", "pipeline", "worker"}
"""What an engine has inside."""
ON_THE_AGENTS_THREAD = {"span_processor.py"}
"""Takes the assembler's own fast path: a call more for every span would cost the agent."""


def reaches_behind(source: str) -> Iterator[str]:
    """What code reads of an engine that is not the engine's own: ``engine.worker``, ``self._engine.lock``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in BEHIND:
            holder = node.value
            name = getattr(holder, "id", getattr(holder, "attr", ""))
            if name.lstrip("_") == "engine":
                yield node.attr


@pytest.mark.parametrize("room", RECEIVERS)
def test_no_receiver_reaches_behind_the_engine(room: str) -> None:
    found = {
        (file.name, what)
        for file in (PACKAGE / room).rglob("*.py")
        if file.name not in ON_THE_AGENTS_THREAD
        for what in reaches_behind(file.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_a_reach_behind_the_engine_is_seen() -> None:
    code = "with self.engine.lock:\n    handle.processor.engine.pipeline.kept = engine.worker.bytes\nengine.flush(1)"
    assert set(reaches_behind(code)) == {"lock", "pipeline", "worker"}
