"""Who may import whom. A room imports from its own floor's room or from lower floors; what has no floor is refused.

The table is the whole rule: from the top down, each room with the packages of others that it may import, at its head or on first use. A
floor that is put between two others changes no rule of these.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "otel_agenteval"
FLOORS: tuple[dict[str, str], ...] = (
    {"__init__": "", "__main__": ""},
    {"cli": "httpx opentelemetry prometheus_client shtab"},
    {"kafka": "confluent_kafka"},
    {
        "server": "google grpc h11 isal opentelemetry prometheus_client zstandard",
        "instrumentation": "opentelemetry pytest typing_extensions",
        "backfill": "clickhouse_connect daft numpy pyarrow ray",
    },
    {"engine": "", "page": ""},
    {
        "judging": "PIL botocore httpx numpy onnxruntime opentelemetry redis safetensors tokenizers typing_extensions",
        "report": "numpy pandas",
    },
    {"outlets": "google grpc httpx opentelemetry prometheus_client psycopg pyarrow typing_extensions", "turns": "zstandard"},
    {"evaluation": "pyarrow", "dialects": ""},
    {
        "metrics": "annotated_types ecologits jiwer jsonschema_rs numpy pydantic pydantic_core pydantic_monty radon rapidfuzz re2 sqlglot ",
        "spans": "google opentelemetry pyarrow",
    },
    {"statistics": "numpy", "config": "pydantic pydantic_core typing_extensions yaml"},
    {"media": "PIL av faster_whisper fsspec httpx numpy rapidocr webrtcvad", "detectors": "numpy phonenumbers"},
    {"core": "cryptography genai_prices httpcore httpx opentelemetry orjson packaging pydantic_core yaml"},
)
"""From the top down: room → the packages of others that it may import."""
FLOOR = {room: -depth for depth, rooms in enumerate(FLOORS) for room in rooms}
ALLOWED = {room: set(packages.split()) for rooms in FLOORS for room, packages in rooms.items()}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(file: Path) -> str:
    """The name that has a floor: a room's, or that of a module beside the rooms."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(file: Path) -> Iterator[tuple[int, str, bool]]:
    """(line, what, whether it is ours) of every import, also those inside functions, for type checkers and of extras."""
    parts = file.relative_to(PACKAGE).parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                first, _, rest = alias.name.partition(".")
                yield node.lineno, rest.split(".")[0] if first == PACKAGE.name else first, first == PACKAGE.name
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, what, ours) for what, ours in _from(node, parts))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) == "require" and node.args:
            name = node.args[0]
            if isinstance(name, ast.Constant):
                yield node.lineno, str(name.value).split(".")[0], False


def _from(node: ast.ImportFrom, parts: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
    module = node.module.split(".") if node.module else []
    if node.level == 0 and module[0] != PACKAGE.name:
        yield module[0], False
        return
    inside = module[1:] if node.level == 0 else [*parts[: len(parts) - node.level], *module]
    names = [inside[0]] if inside else [alias.name for alias in node.names if alias.name != "__version__"]
    for name in names:
        yield name if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists() else "__init__", True


def faults_of(file: Path) -> Iterator[str]:
    """What a module imports and may not."""
    room = room_of(file)
    for line, what, ours in imports_of(file):
        place = f"{file.relative_to(PACKAGE.parent)}:{line}: {what}"
        if ours and what != room and FLOOR[what] >= FLOOR[room]:
            yield f"{place} is not below {room}"
        if not ours and what not in sys.stdlib_module_names and what not in ALLOWED[room]:
            yield f"{place}: {room} may import {', '.join(sorted(ALLOWED[room])) or 'nothing'} of others"


def test_every_room_has_a_floor() -> None:
    assert {room_of(file) for file in MODULES} == FLOOR.keys()


@pytest.mark.parametrize("room", sorted(FLOOR))
def test_a_room_imports_only_what_lies_below_it(room: str) -> None:
    assert [fault for file in MODULES if room_of(file) == room for fault in faults_of(file)] == []


@pytest.mark.parametrize("room", sorted(FLOOR))
def test_the_table_allows_a_room_nothing_that_it_does_not_import(room: str) -> None:
    imported = {what for file in MODULES if room_of(file) == room for _, what, ours in imports_of(file) if not ours}
    assert ALLOWED[room] - imported == set()


def test_each_room_says_what_lives_there_what_it_may_import_and_where_to_start() -> None:
    for package in (file for file in MODULES if file.name == "__init__.py" and file.parent != PACKAGE):
        said = ast.get_docstring(ast.parse(package.read_text(encoding="utf-8"))) or ""
        if package.parent.parent == PACKAGE:
            assert "ay import" in said, package
            assert "Start at" in said, package
        assert len(said.splitlines()[0]) > 20, package


def test_detectors_import_neither_turns_nor_scores() -> None:
    texts = [(file, file.read_text(encoding="utf-8")) for file in MODULES if room_of(file) == "detectors"]
    assert [str(file) for file, text in texts if "core.turn" in text or "core.score" in text] == []


RECEIVERS = ("server", "kafka", "backfill", "instrumentation", "cli")
BEHIND = {"assembler", "composer", "evaluator", "judging", "lock", "pipeline", "worker"}
"""Parts of an engine that only the engine uses."""
ON_THE_AGENTS_THREAD = {"span_processor.py"}
"""Uses the assembler's fast path: one more call for every span would slow down the agent."""


def parts_used(source: str) -> Iterator[str]:
    """Yield the inner parts of an engine that code uses, such as ``engine.worker``."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute) and node.attr in BEHIND:
            holder = node.value
            name = getattr(holder, "id", getattr(holder, "attr", ""))
            if name.lstrip("_") == "engine":
                yield node.attr


@pytest.mark.parametrize("room", RECEIVERS)
def test_receivers_use_no_inner_part_of_the_engine(room: str) -> None:
    found = {
        (file.name, part)
        for file in (PACKAGE / room).rglob("*.py")
        if file.name not in ON_THE_AGENTS_THREAD
        for part in parts_used(file.read_text(encoding="utf-8"))
    }
    assert found == set()


def test_inner_parts_of_an_engine_are_found() -> None:
    code = "with self.engine.lock:\n    handle.processor.engine.pipeline.kept = engine.worker.bytes\nengine.flush(1)"
    assert set(parts_used(code)) == {"lock", "pipeline", "worker"}
