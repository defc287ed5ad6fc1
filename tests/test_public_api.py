"""Public names exist, are sorted and documented. Undocumented names aren't public."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa

ROOT = Path(__file__).parent.parent
PACKAGE = Path(oa.__file__).parent
GROUPS = (
    "console_scripts", "opentelemetry_genai_completion_hook", "opentelemetry_post_instrument", "opentelemetry_traces_exporter", "pytest11",
)  # fmt: skip
ENTRY_POINTS = [
    e for group in GROUPS for e in importlib.metadata.entry_points(group=group) if e.value.startswith("otel_agenteval")
]


def public_members(thing: Any) -> list[tuple[str, Any]]:
    """Return methods and properties that a class itself defines for its users."""
    own = [(name, member) for name, member in vars(thing).items() if not name.startswith("_")]
    return [
        (name, getattr(member, "__func__", member))
        for name, member in own
        if callable(member) or isinstance(member, (property, classmethod))
    ]


def test_public_names_and_their_methods_are_listed_and_documented() -> None:
    assert [name for name in dir(oa) if not name.startswith("__")] == oa.__all__ == sorted(set(oa.__all__))
    for name in oa.__all__:
        thing = getattr(oa, name)
        documentation = inspect.getdoc(thing) or ""
        assert len(documentation) > 20, f"{name} has no docstring"
        assert not documentation.startswith(f"{name}("), f"{name} has only the docstring that a dataclass makes"
        if inspect.isclass(thing):
            assert [member for member, function in public_members(thing) if not inspect.getdoc(function)] == [], name


def test_everything_public_in_the_package_is_in_all() -> None:
    submodules = {path.stem for path in PACKAGE.iterdir()}
    names = (
        {name for name in vars(oa) if not name.startswith(("_", "@"))}  # pytest puts @names into modules of its plugins
        - submodules
        - {"annotations", "importlib", "TYPE_CHECKING", "Any"}
    )
    assert names <= set(oa.__all__)


@pytest.mark.parametrize("entry", ENTRY_POINTS, ids=lambda entry: f"{entry.group}:{entry.name}")
def test_an_entry_point_leads_to_something_that_can_be_called(entry: importlib.metadata.EntryPoint) -> None:
    found = entry.load()
    assert callable(found) or hasattr(found, "pytest_addoption")  # a pytest plugin is a module


def test_all_entry_points_are_installed() -> None:
    assert [entry.group for entry in ENTRY_POINTS] == list(GROUPS)
