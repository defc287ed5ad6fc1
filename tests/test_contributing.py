"""CONTRIBUTING.md says of ten kinds of change which files they touch: the files are there, with what it names in them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
KINDS = (
    "A dialect",
    "A metric",
    "An outlet",
    "A sampling rule",
    "A judge provider",
    "A command-line flag",
    "A configuration key",
    "A column of the store",
    "A Prometheus metric",
    "A rule for where turns begin and end",
)
NAMED = re.compile(r"`(\w+)` in\s+`(otel_agenteval/[\w/]+\.py)`")
PATH = re.compile(r"`((?:otel_agenteval|tests|docs|scripts|examples|benchmarks|requirements|collector_config)/[^`\s]+|\w+\.md)`")


def changes() -> dict[str, str]:
    """Kind of change → what is said of it."""
    section = TEXT.partition("\n## Where a change goes\n")[2].partition("\n## ")[0]
    found = re.findall(r"^- \*\*(.+?)\*\*(.*?)(?=^- |\Z)", section, re.MULTILINE | re.DOTALL)
    return {kind: says.strip() for kind, says in found}


def defined_in(file: Path) -> Iterator[str]:
    """What a module defines at its head."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            yield node.name
        for target in [*getattr(node, "targets", ()), getattr(node, "target", None)]:
            if isinstance(target, ast.Name):
                yield target.id


def test_each_kind_of_change_has_its_answer() -> None:
    assert tuple(changes()) == KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_has_three_lines_and_few_files(kind: str) -> None:
    says = changes()[kind]
    assert len(says.splitlines()) <= 3
    files = {
        path for path in PATH.findall(says) if path.startswith("otel_agenteval/") and path.endswith(".py") and "<" not in path
    }
    assert 1 <= len(files) <= (3 if kind == "An outlet" else 2)


@pytest.mark.parametrize("path", sorted(set(PATH.findall(TEXT))))
def test_the_files_that_are_named_are_there(path: str) -> None:
    place = ROOT / path
    assert place.parent.is_dir() if "<" in path else place.exists()


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED.findall(TEXT))))
def test_what_is_named_in_a_file_is_defined_there(name: str, path: str) -> None:
    assert name in set(defined_in(ROOT / path))


def test_names_in_files_are_found() -> None:
    assert len(NAMED.findall(TEXT)) >= len(KINDS)
