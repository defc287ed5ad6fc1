"""CONTRIBUTING.md and the architecture page name only existing files and functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "otel_agenteval"
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "concepts" / "architecture.md").read_text(encoding="utf-8")


def test_files_that_the_pages_name_exist() -> None:
    named = set(re.findall(r"`((?:otel_agenteval|tests|docs|scripts|examples|benchmarks|requirements)/[^`\s<]+)`", GUIDE))
    assert [path for path in named if not (ROOT / path).exists()] == []
    named = set(re.findall(r"`((?:[a-z_]+/)+[a-z_]*(?:\.py)?)`", ARCHITECTURE))
    assert [path for path in named if not (PACKAGE / path).exists() and not (ROOT / path).exists()] == []


def test_names_that_contributors_look_for_are_defined() -> None:
    named = re.findall(r"`(\w+)` in\s+`(otel_agenteval/[\w/]+\.py)`", GUIDE)
    assert len(named) >= 10
    for name, path in named:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        defined = {getattr(node, "name", getattr(node, "id", None)) for node in ast.walk(tree)}
        assert name in defined, f"{name} in {path}"
