"""No function, constructor or central class grows beyond what a reader takes in at once.

What is still too large stands in ``TOO_LARGE``. That list only shrinks: an entry that is no longer too large, or no longer there, fails the
test until it is struck out.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).parent.parent / "otel_agenteval"
LINES_OF_A_FUNCTION = 59
"""Docstring not counted. A nested function counts for itself and for the one around it."""
ARGUMENTS_OF_A_CONSTRUCTOR = 8
"""Besides ``self``, of an ``__init__`` that somebody wrote: dataclasses, named tuples and pydantic models are records."""
SCREEN = 100
LINES_OF_A_CLASS = {"Engine": 2 * SCREEN, "Pipeline": 2 * SCREEN}
"""The two classes that hold the package together, docstrings not counted: each fits on two screens."""

RECORDS = {
    "Score.__init__": "a record, whose constructor is written out because it is made for every metric of every turn",
    "SpanRecord.__init__": "a record, whose constructor is written out because it is made for every span",
}
"""Constructors with more arguments, for good, and why."""
TOO_LARGE: set[str] = set()
"""What is still too large, by its qualified name."""


class Large(NamedTuple):
    """Something beyond its measure."""

    name: str
    says: str


def lines_of(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From its first line to its last, without the docstrings inside."""
    documented = (each for each in ast.walk(node) if isinstance(each, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef))
    docstrings = [each.body[0] for each in documented if ast.get_docstring(each, clean=False) is not None]
    return _length(node) - sum(_length(docstring) for docstring in docstrings)


def _length(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def too_large(source: str, place: str) -> Iterator[Large]:
    """Everything in a module that is beyond its measure."""
    yield from _too_large(ast.parse(source), "", place)


def _too_large(scope: ast.AST, prefix: str, place: str) -> Iterator[Large]:
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _too_large(node, prefix, place)
            continue
        name = f"{prefix}{node.name}"
        most = LINES_OF_A_CLASS.get(name) if isinstance(node, ast.ClassDef) else LINES_OF_A_FUNCTION
        if most is not None and lines_of(node) > most:
            yield Large(name, f"{place}:{node.lineno}: {name} has {lines_of(node)} lines; {most} are the most")
        if isinstance(node, ast.FunctionDef) and node.name == "__init__":
            arguments = len([*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]) - 1
            if arguments > ARGUMENTS_OF_A_CONSTRUCTOR:
                most = ARGUMENTS_OF_A_CONSTRUCTOR
                yield Large(name, f"{place}:{node.lineno}: {name} takes {arguments} arguments; {most} are the most")
        yield from _too_large(node, f"{name}.", place)


@functools.cache
def everything_too_large() -> list[Large]:
    return [
        large
        for file in sorted(PACKAGE.rglob("*.py"))
        for large in too_large(file.read_text(encoding="utf-8"), str(file.relative_to(PACKAGE.parent)))
    ]


def test_nothing_is_larger_than_a_reader_takes_in_at_once() -> None:
    assert [large.says for large in everything_too_large() if large.name not in TOO_LARGE | RECORDS.keys()] == []


def test_what_is_no_longer_too_large_is_struck_from_the_list() -> None:
    assert sorted((TOO_LARGE | RECORDS.keys()) - {large.name for large in everything_too_large()}) == []


@pytest.mark.parametrize(
    ("source", "says"),
    [
        pytest.param("def f():\n" + "    x = 1\n" * 58, [], id="59 lines are allowed"),
        pytest.param("def f():\n" + "    x = 1\n" * 59, ["m.py:1: f has 60 lines; 59 are the most"], id="60 lines are not"),
        pytest.param('def f():\n    """A\n\n    B\n    """\n' + "    x = 1\n" * 58, [], id="a docstring is not counted"),
        pytest.param(
            "class C:\n    if True:\n        async def f(self):\n" + "            x = 1\n" * 59,
            ["m.py:3: C.f has 60 lines; 59 are the most"],
            id="a method is a function, wherever it is defined",
        ),
        pytest.param("class C:\n    def __init__(self, a, b, c, d, *, e, f, g, h): ...\n", [], id="8 arguments are allowed"),
        pytest.param(
            "class C:\n    def __init__(self, a, b, c, d, *, e, f, g, h, i): ...\n",
            ["m.py:2: C.__init__ takes 9 arguments; 8 are the most"],
            id="9 arguments are not",
        ),
        pytest.param(
            "class C:\n    def run(self, a, b, c, d, e, f, g, h, i): ...\n", [], id="other methods are not constructors"
        ),
        pytest.param(
            "class Engine:\n" + "    x = 1\n" * 200,
            ["m.py:1: Engine has 201 lines; 200 are the most"],
            id="a class on two screens",
        ),
        pytest.param("class Other:\n" + "    x = 1\n" * 200, [], id="other classes have no measure"),
    ],
)
def test_the_measures(source: str, says: list[str]) -> None:
    assert [large.says for large in too_large(source, "m.py")] == says
