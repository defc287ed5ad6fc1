"""Measure the structure of the package, and compare each figure with a limit.

    python scripts/house.py          prints the lines and budget of each top folder (*room*), and the figures;
                                     exit status 1 if a figure exceeds its limit in [tool.house] of pyproject.toml
    python scripts/house.py --show   also prints the places behind each figure

If a change exceeds a room's budget, raise the budget in the same commit, and give the reason in its message. The sum of the
budgets must not rise, so delete lines first. Limits of figures may only be lowered.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import networkx
import vulture

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "otel_agenteval"
MOST_COGNITIVE = 25
MOST_LITERALS = 20


def lines_of(*folders: Path) -> int:
    """Return the number of lines in the Python files of some folders."""
    return sum(len(path.read_bytes().splitlines()) for folder in folders for path in folder.rglob("*.py"))


def rooms() -> list[Path]:
    return sorted(path for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def print_budgets(budgets: dict[str, int]) -> None:
    """Print the lines and budget of each room, then the rooms over budget."""
    lines = {path.name: lines_of(path) for path in rooms()}
    for room, count in sorted(lines.items(), key=lambda row: -row[1]):
        print(f"{room:<34} {count:>7,}  budget {budgets.get(room, 0):>6,}")
    print(f"{'all rooms':<34} {sum(lines.values()):>7,}  budget {sum(budgets.values()):>6,}")
    over = [f"{room} by {count - budgets.get(room, 0):,}" for room, count in lines.items() if count > budgets.get(room, 0)]
    if over:
        print(
            f"OVER BUDGET: {', '.join(over)}. Delete lines, or raise [tool.house.budgets] and give the reason in the commit message."
        )


def module_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path, tree: ast.AST, modules: set[str]) -> Iterator[str]:
    """Yield the package's modules that a module imports, also inside functions."""
    name = module_of(path)
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*base, *([node.module] if node.module else [])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield from (found for found in ((inner,) if inner in modules else (source,)) if found in modules)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Return groups of modules that import each other."""
    groups = networkx.strongly_connected_components(networkx.DiGraph(graph))
    return [sorted(group) for group in groups if len(group) > 1]


def cognitive() -> list[str]:
    """Return the functions that exceed the limit of cognitive complexity."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "complexity.json"
        program = Path(sys.executable).with_name("complexipy")
        command = [program, PACKAGE, "--quiet", "--ignore-complexity", "--output-format", "json", "--output", out]
        subprocess.run(command, check=True, capture_output=True, cwd=ROOT)
        rows = json.loads(out.read_text())
    worst = sorted(rows, key=lambda row: -row["complexity"])
    return [f"{row['path']}: {row['function_name']} {row['complexity']}" for row in worst if row["complexity"] > MOST_COGNITIVE]


def unused_names(trees: Iterable[ast.Module], called_elsewhere: list[str]) -> list[str]:
    """Return names of the package that aren't used in the package, tests, scripts, benchmarks or examples.

    Args:
        trees: the syntax trees of the package.
        called_elsewhere: names that other libraries use.
    """
    search = vulture.Vulture(ignore_names=called_elsewhere, ignore_decorators=["@*metric"])
    search.scavenge([str(ROOT / folder) for folder in ("otel_agenteval", "tests", "scripts", "benchmarks", "examples", "deploy")])
    texts = {
        node.value for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    unused = (one for one in search.get_unused_code(min_confidence=60) if one.filename.is_relative_to(PACKAGE))
    found = [one for one in unused if one.name not in texts]  # names in strings are used with getattr
    return [f"{one.filename.relative_to(ROOT)}:{one.first_lineno}: {one.name}" for one in found]


def literal_lists(path: Path, tree: ast.Module) -> Iterator[str]:
    """Yield the module's long lists of strings, which belong in data files."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict) and any(isinstance(value, ast.Lambda) for value in node.values):
            continue  # a table of functions, not data
        values = node.keys if isinstance(node, ast.Dict) else getattr(node, "elts", [])
        texts = [one for one in values if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        words = len(texts[0].value.split()) if len(texts) == 1 else len(texts)
        if words > MOST_LITERALS:
            yield f"{path.relative_to(ROOT)}:{node.lineno}: {words}"


def figures(called_elsewhere: list[str]) -> dict[str, tuple[int, list[str]]]:
    """Return the value of each figure, with the places behind it."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PACKAGE.rglob("*.py"))}
    modules = {module_of(path) for path in trees}
    graph = {module_of(path): set(imports_of(path, tree, modules)) - {module_of(path)} for path, tree in trees.items()}
    found = [", ".join(group) for group in circles(graph)]
    classes = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    doubled = [f"{name} ×{count}" for name, count in classes.most_common() if count > 1]
    lists = [place for path, tree in trees.items() for place in literal_lists(path, tree)]
    complex_ones = cognitive()
    unused = unused_names(trees.values(), called_elsewhere)
    dialects = [path.name for path in (PACKAGE / "dialects").glob("*.py")]
    return {
        "package-lines": (lines_of(PACKAGE), []),
        "metrics-lines": (lines_of(PACKAGE / "metrics"), []),
        "test-and-script-lines": (lines_of(ROOT / "tests", ROOT / "scripts"), []),
        "dialect-modules": (len(dialects), []),
        "rooms": (len(rooms()), []),
        "import-circles": (len(found), found),
        f"functions-above-complexity-{MOST_COGNITIVE}": (len(complex_ones), complex_ones),
        "class-names-used-twice": (len(doubled), doubled),
        "unused-names": (len(unused), unused),
        f"lists-of-more-than-{MOST_LITERALS}-texts": (len(lists), lists),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--show", action="store_true", help="print the places behind each figure")
    arguments = parser.parse_args()
    limits = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["house"]
    limits.pop("walks")
    print_budgets(limits.pop("budgets"))
    status = 0
    for name, (value, places) in figures(limits.pop("called-elsewhere")).items():
        over = value > limits.get(name, value)
        status |= over
        limit = f"  limit {limits[name]:>3,}{'  EXCEEDED' if over else ''}" if name in limits else ""
        print(f"{name:<34} {value:>7,}{limit}")
        if arguments.show or over:
            print(*(f"    {place}" for place in places), sep="\n")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
