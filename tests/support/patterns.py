"""All regular expressions of the package, and how each is used.

Run as a program, this module prints a pickled list. It needs a process in which the package wasn't imported before.
"""

from __future__ import annotations

import ast
import atexit
import fcntl
import importlib
import os
import pickle
import pkgutil
import re
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "otel_agenteval"
_ANCHORED = frozenset(("match", "fullmatch"))
_USES = frozenset(("search", "finditer", "findall", "sub", "subn", "split", *_ANCHORED))


class Used(NamedTuple):
    """A pattern, and its place in the source."""

    pattern: re.Pattern[Any]
    where: str
    """``detectors/urls.py:_URL``, or the function if it has no name."""
    uses: frozenset[str]
    """``match``, ``fullmatch``, or ``search`` for all methods that search the whole text."""

    def __call__(self, text: Any) -> None:
        """Use the pattern on a text as the package does."""
        if "search" in self.uses:
            for _ in self.pattern.finditer(text):
                pass
        for use in self.uses & _ANCHORED:
            getattr(self.pattern, use)(text)


@cache
def patterns() -> list[Used]:
    """Return all patterns, including those that are compiled on first use. Test processes share one search."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)
    shared = Path(tempfile.gettempdir(), f"agenteval-patterns-{run}")
    atexit.register(shared.unlink, missing_ok=True)
    with shared.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        found = file.read()
        if not found:
            command = [sys.executable, "-m", "tests.support.patterns"]
            found = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout
            file.write(found)
    return [Used(re.compile(source, flags), where, uses) for source, flags, where, uses in pickle.loads(found)]


def _main() -> None:
    compiled: dict[tuple[Any, int], str] = {}
    compile_pattern: Callable[..., Any] = re._compile  # type: ignore[attr-defined]

    def record(pattern: Any, flags: Any) -> Any:
        found = compile_pattern(pattern, flags)
        place = _place(sys._getframe(1))
        if place is not None and isinstance(found, re.Pattern):
            compiled.setdefault((found.pattern, found.flags), place)
        return found

    re._compile = record  # type: ignore[attr-defined]
    from otel_agenteval.detectors.texts import _Lazy

    made: list[tuple[_Lazy, str | None]] = []
    make = _Lazy.__init__

    def remember(self: _Lazy, pattern: str | Callable[[], str], flags: int) -> None:
        make(self, pattern, flags)
        made.append((self, _place(sys._getframe(1))))

    _Lazy.__init__ = remember  # type: ignore[method-assign]
    modules = [importlib.import_module(name) for name in _modules()]
    _use()
    from otel_agenteval.core import price_table

    for one, place in made:
        compiled.setdefault((one.pattern, one.flags), place or "")
    for source in _of_prices(price_table._table()):
        compiled.setdefault((source, re.compile(source).flags), "core/price_table.json: search")
    names: dict[tuple[Any, int], tuple[str, str]] = {}
    for module in modules:
        for name, value in vars(module).items():
            if isinstance(value, (re.Pattern, _Lazy)):
                names.setdefault((value.pattern, value.flags), (module.__name__, name))
    uses, inline = _uses(modules)
    found = []
    for (source, flags), place in (compiled | inline).items():
        where = place
        if (source, flags) in names:
            module_name, name = names[source, flags]
            where = f"{module_name.partition('.')[2].replace('.', '/')}.py:{name}"
            by = uses.get(f"{module_name}:{name}" if name.startswith("_") else name, {"any"})
        else:
            by = {place.rpartition(" ")[2]}
        found.append((source, flags, where, frozenset(use if use in _ANCHORED else "search" for use in by)))
    sys.stdout.buffer.write(pickle.dumps(found))


def _modules() -> Iterator[str]:
    import otel_agenteval

    yield from (
        found.name for found in pkgutil.walk_packages(otel_agenteval.__path__, "otel_agenteval.") if "__main__" not in found.name
    )


def _place(frame: FrameType | None) -> str | None:
    """Return the place in the package that compiled a pattern. Return None for other packages."""
    by = ""
    makers = ("__init__.py", "re.py", "functools.py", "patterns.py", "texts.py")  # texts.py compiles a pattern on its first use
    while frame is not None and Path(frame.f_code.co_filename).name in makers:
        by = frame.f_code.co_name
        frame = frame.f_back
    if frame is None or not frame.f_code.co_filename.startswith(str(PACKAGE)):
        return None
    return f"{Path(frame.f_code.co_filename).relative_to(PACKAGE)}:{frame.f_code.co_name} {by}"


def _uses(modules: Iterable[ModuleType]) -> tuple[dict[str, set[str]], dict[tuple[Any, int], str]]:
    """Return the methods called on each name, and the patterns inside calls of ``re``."""
    uses: dict[str, set[str]] = {}
    inline: dict[tuple[Any, int], str] = {}
    for module in modules:
        file = Path(module.__file__ or "")
        for node, function in _nodes(ast.parse(file.read_text(encoding="utf-8")), "<module>"):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Load):
                    own = f"{module.__name__}:{child.id}" if child.id.startswith("_") else child.id
                    uses.setdefault(own, set()).add(node.attr if isinstance(node, ast.Attribute) else "any")
            if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"re.{use}" for use in (*_USES, "compile")}:
                pattern = _text_of(node.args[0], module)
                given = [
                    argument
                    for argument in (*node.args[1:], *(word.value for word in node.keywords))
                    if "re." in ast.unparse(argument)
                ]
                if pattern is not None:
                    one = re.compile(pattern, eval(ast.unparse(given[0])) if given else 0)
                    inline[one.pattern, one.flags] = f"{file.relative_to(PACKAGE)}:{function} {ast.unparse(node.func)[3:]}"
    return uses, inline


def _nodes(tree: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    """Yield every node with the name of its function."""
    for node in ast.iter_child_nodes(tree):
        yield node, function
        yield from _nodes(node, node.name if isinstance(node, ast.FunctionDef) else function)


def _text_of(node: ast.expr, module: ModuleType) -> Any:
    """Return a pattern in the source, with ``x`` for values known only at run time. Return None for other expressions."""
    if isinstance(node, ast.Constant):
        return node.value
    if not isinstance(node, ast.JoinedStr):
        return None
    return "".join(str(part.value) if isinstance(part, ast.Constant) else _known(part, module) for part in node.values)


def _known(part: ast.expr, module: ModuleType) -> str:
    try:
        return str(eval(ast.unparse(part.value), vars(module)))  # type: ignore[attr-defined]
    except (NameError, AttributeError, TypeError):
        return "x"


def _use() -> None:
    """Call the code that compiles patterns on first use."""
    from otel_agenteval.core.turn import Turn
    from otel_agenteval.dialects import capture
    from otel_agenteval.evaluation.redaction import KINDS, redacted_text
    from scripts.detectors import DETECTORS, cases_of, detector

    for name in DETECTORS:
        for case in cases_of(name, "train"):
            detector(name).evaluate(Turn.from_dict(case.turn))
            redacted_text(str(case.turn), KINDS)
    capture.of_scope("unknown")
    capture.of_package("unknown")


def _of_prices(value: Any) -> Iterator[str]:
    """Yield the patterns for names and addresses in the price table."""
    if isinstance(value, dict):
        if isinstance(value.get("api"), str):
            yield value["api"]
        value = list(value.values())
    if isinstance(value, list):
        if len(value) == 2 and value[0] == "re":
            yield value[1]
        for inner in value:
            yield from _of_prices(inner)


if __name__ == "__main__":
    _main()
