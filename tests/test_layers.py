"""Allowed imports. A folder (*room*) may import from rooms of lower layers (*floors*), and only listed packages.

The table contains the whole rule. Each room has its allowed third-party packages, for imports at the top and inside functions.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "otel_agenteval"
FLOORS: tuple[dict[str, str], ...] = (
    {"__init__": "", "__main__": ""},
    {"cli": "httpx opentelemetry prometheus_client"},
    {"kafka": "confluent_kafka"},
    {
        "server": "google h11 h2 isal opentelemetry prometheus_client zstandard",
        "instrumentation": "opentelemetry pytest typing_extensions",
        "backfill": "clickhouse_connect daft numpy pyarrow ray",
    },
    {"engine": "", "page": ""},
    {
        "judging": "PIL botocore httpcore numpy onnxruntime opentelemetry redis safetensors tokenizers typing_extensions",
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
"""Rooms with their allowed third-party packages, from the highest floor to the lowest."""
FLOOR = {room: -depth for depth, rooms in enumerate(FLOORS) for room in rooms}
ALLOWED = {room: set(packages.split()) for rooms in FLOORS for room, packages in rooms.items()}
MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(file: Path) -> str:
    """Return the name with a floor: a room, or a module next to the rooms."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(file: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield (line, module, True for our own) of every import, including those in functions, for type checkers, and of extras."""
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
    names = [inside[0]] if inside else [alias.name for alias in node.names]
    for name in names:
        yield name if (PACKAGE / name).is_dir() or (PACKAGE / f"{name}.py").exists() else "__init__", True


def faults_of(file: Path) -> Iterator[str]:
    """Yield the forbidden imports of a module."""
    room = room_of(file)
    for line, what, ours in imports_of(file):
        place = f"{file.relative_to(PACKAGE.parent)}:{line}: {what}"
        if ours and what != room and FLOOR[what] >= FLOOR[room]:
            yield f"{place} is not below {room}"
        if not ours and what not in sys.stdlib_module_names and what not in ALLOWED[room]:
            yield f"{place}: {room} may import {', '.join(sorted(ALLOWED[room])) or 'nothing'} of others"


def test_a_room_imports_only_what_lies_below_it() -> None:
    assert [fault for file in MODULES for fault in faults_of(file)] == []
