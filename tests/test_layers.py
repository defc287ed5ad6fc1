"""Who may import whom. A module imports from its own layer or from a lower one; what has no layer is refused.

0 words everybody uses · 1 settings and self-metrics · 2 what is evaluated · 3 the registry · 4 metrics and the turns that they are for · 5 spans to turns ·
6 judges and their queues, the store · 7 outlets, and what comes of judged metrics · 8 the chain · 9 doors
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "otel_agenteval"
LAYERS: dict[str, int] = {
    name: layer
    for layer, names in enumerate((
        "names errors clock files redaction masking jsonio logformat keypath yamlio writable sqlitefile shedding label_values tenancy threads wellformed",
        "config telemetry",
        "model score",
        "registry evaluation",
        "pricetable",
        "metrics conditions history sampling selection references privacy estimates",
        "spans dialects turns",
        "judge queues budget store encryption",
        "emit asking judging",
        "pipeline worker engine",
        "processor logs exporter expect instrument replay backfill why export table report judge_command cli demo auto sampler completion_hook pytest_plugin serve stream __init__ __main__",
    ))
    for name in names.split()
}  # fmt: skip
DISCOVERY = ("registry", "metrics")  # the registry walks the catalogue once, by name
METRICS_MAY_IMPORT = {"model", "score", "registry", "pricetable", "errors", "jsonio", "metrics"}
MODULES = sorted(PACKAGE.rglob("*.py"))


def unit_of(file: Path) -> str:
    """The name that a layer is given to: a module's, or a subpackage's."""
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(file: Path) -> Iterator[tuple[int, str, bool]]:
    """(line, what, whether it is ours) of every import, also those inside functions and for type checkers."""
    depth = len(file.relative_to(PACKAGE).parts)
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                ours = alias.name.split(".")[0] == PACKAGE.name
                yield node.lineno, alias.name.removeprefix(f"{PACKAGE.name}.") if ours else alias.name, ours
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.lineno, what, ours) for what, ours in _from(node, file, depth))


def _from(node: ast.ImportFrom, file: Path, depth: int) -> Iterator[tuple[str, bool]]:
    module = node.module or ""
    if node.level == 0 and module.split(".")[0] != PACKAGE.name:
        yield module, False
    elif 0 < node.level < depth:  # within the own subpackage
        yield unit_of(file), True
    elif module in ("", PACKAGE.name):
        for name in (alias.name for alias in node.names if alias.name != "__version__"):
            is_module = (PACKAGE / f"{name}.py").exists() or (PACKAGE / name).is_dir()
            yield name if is_module else "__init__", True
    else:
        yield module.removeprefix(f"{PACKAGE.name}.").split(".")[0], True


def faults_of(file: Path) -> Iterator[str]:
    """What a module imports and may not."""
    unit = unit_of(file)
    layer = LAYERS[unit]
    for line, what, ours in imports_of(file):
        place = f"{file.relative_to(PACKAGE.parent)}:{line}: {what}"
        if ours and (unit, what) != DISCOVERY:
            if LAYERS[what] > layer:
                yield f"{place} is of layer {LAYERS[what]}, this module of layer {layer}"
            if unit == "metrics" and what not in METRICS_MAY_IMPORT:
                yield f"{place}: a metric sees turns and nothing else"
        elif not ours and (layer <= 4 or unit == "turns") and what.split(".")[0] == "opentelemetry":
            yield f"{place}: only spans, outlets and doors know OpenTelemetry"


def test_every_module_has_a_layer() -> None:
    assert {unit_of(file) for file in MODULES} == LAYERS.keys()


def test_a_module_imports_only_what_lies_below_it() -> None:
    assert [fault for file in MODULES for fault in faults_of(file)] == []
