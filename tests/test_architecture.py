"""docs/architecture.md names files and functions that exist, and a span passes the rooms in the order that it says."""

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
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", PAGE)))
NAMES = sorted(set(re.findall(r"`([A-Z]\w+(?:\.\w+)?)`", PAGE)))
ORDER = ("instrumentation", "engine", "turns", "evaluation", "outlets")
"""The rooms of a span without judges, in the order in which it comes to them first."""


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


def test_a_span_comes_to_the_rooms_in_the_order_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    rooms: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(str(PACKAGE)):
            rooms.append(Path(file).relative_to(PACKAGE).parts[0])

    with Rig({"inline": {"metrics": ["code_empty_answer"]}}) as rig:
        threading.setprofile(note)
        sys.setprofile(note)
        try:
            rig.run(says="Hi there.")
            assert rig.engine.flush(30)
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]
    seen = [room for room in dict.fromkeys(rooms) if room in ORDER]
    assert seen == list(ORDER)
