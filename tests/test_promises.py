"""Each promise of the five catalogs has a test that exists (``tests/data/promises.yaml``)."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

import pytest

from scripts import promises

TESTS = Path(__file__).parent
ROWS = [pytest.param(row, id=f"{system}-{row['feature'][:40]}") for system, rows in promises.PROMISES.items() for row in rows]


@functools.cache
def names_in(file: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    }


@pytest.mark.parametrize("row", ROWS)
def test_promise_has_its_test(row: dict[str, Any]) -> None:
    assert row.keys() <= {"feature", "how", "test", "differs"}
    assert row["how"].strip().lower() not in ("", "missing")
    assert "|" not in "".join(row.values())
    file, _, name = row["test"].partition("::")
    assert name in names_in(TESTS / file)


def test_page_has_each_promise() -> None:
    page = (TESTS.parent / "docs" / "reference" / "metrics" / "coverage.md").read_text(encoding="utf-8")
    assert promises.section() in page
