"""What the package promises by name is there, sorted and documented; what is documented nowhere is not public."""

from __future__ import annotations

import ast
import builtins
import importlib.metadata
import importlib.util
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import errors

ROOT = Path(__file__).parent.parent
PACKAGE = Path(oa.__file__).parent
GROUPS = (
    "console_scripts", "opentelemetry_genai_completion_hook", "opentelemetry_post_instrument", "opentelemetry_traces_exporter", "pytest11",
)  # fmt: skip
ENTRY_POINTS = [
    e for group in GROUPS for e in importlib.metadata.entry_points(group=group) if e.value.startswith("otel_agenteval")
]


def public_members(thing: Any) -> list[tuple[str, Any]]:
    """Methods and properties that a class itself defines for its users."""
    own = [(name, member) for name, member in vars(thing).items() if not name.startswith("_")]
    return [
        (name, getattr(member, "__func__", member))
        for name, member in own
        if callable(member) or isinstance(member, (property, classmethod))
    ]


def test_all_is_sorted_and_has_no_name_twice() -> None:
    assert oa.__all__ == sorted(set(oa.__all__))


@pytest.mark.parametrize("name", oa.__all__)
def test_a_public_name_is_importable_and_documented(name: str) -> None:
    thing = getattr(oa, name)
    documentation = inspect.getdoc(thing) or ""
    assert len(documentation) > 20, f"{name} has no docstring"
    assert not documentation.startswith(f"{name}("), f"{name} has only the docstring that a dataclass makes"


@pytest.mark.parametrize("name", [name for name in oa.__all__ if inspect.isclass(getattr(oa, name))])
def test_public_methods_of_a_public_class_are_documented(name: str) -> None:
    undocumented = [member for member, function in public_members(getattr(oa, name)) if not inspect.getdoc(function)]
    assert undocumented == []


def test_everything_public_in_the_package_is_in_all() -> None:
    submodules = {path.stem for path in PACKAGE.iterdir()}
    names = (
        {name for name in vars(oa) if not name.startswith(("_", "@"))}  # pytest puts @names into modules of its plugins
        - submodules
        - {"annotations", "importlib", "TYPE_CHECKING", "Any"}
    )
    assert names <= set(oa.__all__)


def test_dir_names_the_public_names_and_nothing_else() -> None:
    names = dir(oa)
    assert [name for name in names if not name.startswith("__")] == oa.__all__
    assert {"__version__", "__all__", "__doc__"} <= set(names)


def test_the_modules_of_public_names_are_spelled_out_once_for_programs_and_once_for_type_checkers() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in checked.body if isinstance(node, ast.ImportFrom)]
    assert {alias.name: node.module for node in imports for alias in node.names} == oa._HOME
    assert sorted(oa._HOME) == oa.__all__


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        oa.no_such_name  # noqa: B018


@pytest.mark.parametrize("entry", ENTRY_POINTS, ids=lambda entry: f"{entry.group}:{entry.name}")
def test_an_entry_point_leads_to_something_that_can_be_called(entry: importlib.metadata.EntryPoint) -> None:
    found = entry.load()
    assert callable(found) or hasattr(found, "pytest_addoption")  # a pytest plugin is a module


def test_all_entry_points_are_installed() -> None:
    assert [entry.group for entry in ENTRY_POINTS] == list(GROUPS)


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


@pytest.mark.parametrize("name", [name for name in oa.__all__ if name[0].islower()])
def test_no_public_function_has_the_name_of_its_module(name: str) -> None:
    home = getattr(oa, name).__module__
    assert home.rsplit(".", 1)[-1] != name
    assert importlib.util.find_spec(f"otel_agenteval.{name}") is None


INSIDE_A_ROOM = {
    "Broken": "media",
    "BrokenAnswer": "judging",
    "GraphTooLarge": "metrics",
    "LeaseLost": "judging",
    "NewerPayload": "judging",
    "NotStorable": "outlets",
    "OtherVersion": "kafka",
    "OverBudget": "judging",
    "Problem": "page",
    "Refusal": "server",
    "ReplyTooLarge": "judging",
    "TooComplex": "metrics",
    "TooManySteps": "metrics",
}
"""Exceptions that a room raises and catches itself; the answers of the page are caught by the server that sends them."""


def exceptions_of(file: Path) -> set[str]:
    """Names of the exception classes that a module defines, without private ones."""
    known = {name for name, thing in vars(builtins).items() if inspect.isclass(thing) and issubclass(thing, BaseException)}
    known |= {name for name, thing in vars(errors).items() if inspect.isclass(thing)}
    classes = [node for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(node, ast.ClassDef)]
    raised = {node.name for node in classes if any(ast.unparse(base).rsplit(".", 1)[-1] in known for base in node.bases)}
    return {name for name in raised if not name.startswith("_")}


def test_every_exception_that_leaves_its_room_is_in_errors() -> None:
    package = PACKAGE
    found = {(name, file.relative_to(package).parts[0]) for file in package.rglob("*.py") for name in exceptions_of(file)}
    assert {(name, room) for name, room in found if room != "core"} <= set(INSIDE_A_ROOM.items())
    ours_alone = {"OutOfTime"}  # from the watchdog to the pipeline
    assert {name for name, room in found if room == "core"} - ours_alone == exceptions_of(package / "core" / "errors.py")


def test_the_tree_of_errors_shows_each_below_its_base() -> None:
    shown = [
        (len(line) - len(line.lstrip(" │├└─")), match[1])
        for line in (errors.__doc__ or "").splitlines()
        if (match := re.match(r"[ │├└─]{4,}(\w+)", line))
    ]
    below: dict[str, str] = {}
    above: list[tuple[int, str]] = []
    for indent, name in shown:
        while above and above[-1][0] >= indent:
            above.pop()
        below[name] = above[-1][1] if above else ""
        above.append((indent, name))
    classes = [thing for thing in vars(errors).values() if inspect.isclass(thing) and thing.__module__ == errors.__name__]
    assert {cls.__name__: cls.__base__.__name__ if cls.__base__ is not Exception else "" for cls in classes} == {
        name: base for name, base in below.items() if name not in ("ValueError", "ConnectionError")
    }
