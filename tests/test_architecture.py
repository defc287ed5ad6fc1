"""docs/concepts/architecture.md names files and functions that exist, and a span passes the rooms in the order that it says."""

from __future__ import annotations

import ast
import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tests.support.rig import Rig

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "otel_agenteval"
PAGE = (ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", PAGE)))
NAMES = sorted(set(re.findall(r"`([A-Z]\w+(?:\.\w+)?)`", PAGE)))
AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
STEPS = (
    ("instrumentation/span_processor.py", "_on_ending"),
    ("turns/assembler.py", "ending"),
    ("engine/intake.py", "root_closed"),
    ("engine/pipeline.py", "run"),
    ("turns/composer.py", "compose"),
    ("turns/composer.py", "read"),
    ("evaluation/evaluator.py", "evaluate"),
    ("evaluation/evaluator.py", "run"),
    ("outlets/fan_out.py", "emit"),
)
"""The way of a turn of one span, without judges: each step is taken once, in this order."""


def defined() -> set[str]:
    """Every class, and every method and attribute of one by its qualified name."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                found.add(node.name)
                found |= {
                    f"{node.name}.{item.name}" for item in node.body if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef))
                }
    return found


@pytest.mark.parametrize("file", FILES)
def test_a_file_that_the_page_names_exists(file: str) -> None:
    assert (PACKAGE / file).exists() or (ROOT / file).exists()


def test_every_class_and_method_that_the_page_names_exists() -> None:
    assert len(NAMES) > 15
    assert set(NAMES) - defined() == set()


def test_every_function_in_the_figure_is_in_its_file() -> None:
    rows = re.findall(r"^ \d \w+ +([a-z_/]+\.py): ([\w, .]+?)(?: +→.*)?$", PAGE, flags=re.MULTILINE)
    assert len(rows) == 5
    for file, functions in rows:
        text = (PACKAGE / file).read_text(encoding="utf-8")
        for function in functions.split(", "):
            assert f"def {function.rsplit('.', 1)[-1]}(" in text, (file, function)


def test_a_span_takes_every_step_once_and_in_the_order_of_the_page() -> None:
    taken: list[tuple[str, str]] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            step = Path(file).relative_to(PACKAGE).as_posix(), frame.f_code.co_name
            if step in STEPS:
                taken.append(step)

    # With span events, an exporter that reads the root's events would take the steps from "compose" on its own thread.
    with Rig({"inline": {"metrics": ["code_empty_answer"]}, "outlets": {"span_events": "off"}}) as rig:
        threading.setprofile(note)  # of the worker, which starts with the first span
        sys.setprofile(note)
        try:
            with rig.tracer.start_as_current_span("invoke_agent bot", attributes=AGENT):
                pass
            assert rig.engine.flush(30)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    assert tuple(taken) == STEPS


def test_metrics_run_in_one_place() -> None:
    inside = {
        "evaluation/evaluator.py",
        "judging/judge_bench/run.py",
        "judging/models/panel.py",
        "judging/models/probe.py",
    }  # a panel and a probe are asked within one evaluation; a bench has no pipeline around it
    found = {
        file.relative_to(PACKAGE).as_posix()
        for file in PACKAGE.rglob("*.py")
        if re.search(r"\bmetric\.evaluate\(", file.read_text(encoding="utf-8"))
    }
    assert found == inside
