"""How much of agents that no dialect knows is still read right: one dialect after the other is taken out (``make unseen``).

Each dialect is left out on the recordings that speak it: its attributes are unknown, and nobody knows its instrumentation scopes.
Then all are left out at once. What is right is what ``tests/support/check_turns.py`` says.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import check_turns  # noqa: E402
from recordings import unpack_all  # noqa: E402

from otel_agenteval.dialects import (  # noqa: E402
    adk,
    agent_framework,
    logfire_agents,
    mcp,
    otel_genai,
    pydantic_ai,
    reader,
    semantic_kernel,
)
from otel_agenteval.turns.recordings import Reading, read_items, to_stderr  # noqa: E402

ADDITIONS: dict[ModuleType, tuple[ModuleType, ...]] = {
    otel_genai: (pydantic_ai, agent_framework, adk, semantic_kernel, mcp, logfire_agents),
}
"""What only adds to the convention, and says nothing without it."""
ALL = reader.DIALECTS


def check(folder: Path) -> dict[str, list[int]]:
    """Facts right and facts in all, by set."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "result.json"
        arguments = sys.argv
        sys.argv = ["check_turns.py", str(folder), "--show", "0", "--json", str(out)]
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                check_turns.main()
        finally:
            sys.argv = arguments
        found: dict[str, list[int]] = json.loads(out.read_text())["sets"]
    return found


@contextlib.contextmanager
def without(*dialects: Any) -> Iterator[None]:
    """Read as if these dialects were not known."""
    scopes = re.compile("|".join(f"(?:{dialect.SCOPES.pattern})" for dialect in dialects), re.VERBOSE) if dialects else None
    reader.speak(tuple(dialect for dialect in ALL if dialect not in dialects), scopes)
    try:
        yield
    finally:
        reader.speak(ALL)


def speakers(folder: Path) -> dict[ModuleType, set[str]]:
    """The sets in which each dialect is spoken."""
    found: dict[ModuleType, set[str]] = {dialect: set() for dialect in ALL}  # type: ignore[misc]
    for path in sorted(folder.glob("*/*.jsonl")):
        for item in read_items([path], Reading(), to_stderr):
            if hasattr(item, "span_id") and hasattr(item, "attributes") and hasattr(item, "scope"):
                for dialect in ALL:
                    if not dialect.MARKS.isdisjoint(item.attributes) or dialect.SCOPES.match(item.scope):
                        found[dialect].add(path.parent.name)  # type: ignore[index]
    return found


def name_of(dialect: Any) -> str:
    """A dialect's name."""
    return str(dialect.__name__).rsplit(".", 1)[-1]


def percent(good: int, total: int) -> str:
    """A share as the table shows it."""
    return f"{100 * good / total:6.1f} %  {good:5d}/{total:<5d}" if total else "     –          "


def main() -> int:
    """Print the table; 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of sets; default: both corpora of tests/data")
    parser.add_argument("--only", help="one dialect")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folders = given.folders or [unpacked(stack, name) for name in ("corpus", "corpus_b")]
        sums = [0, 0]
        low = 100.0
        spoken = [speakers(folder) for folder in folders]
        for dialect in ALL:
            if given.only and name_of(dialect) != given.only:
                continue
            good = total = 0
            with without(dialect, *ADDITIONS.get(dialect, ())):  # type: ignore[call-overload]
                for folder, by_dialect in zip(folders, spoken, strict=True):
                    result = check(folder) if by_dialect[dialect] else {}  # type: ignore[index]
                    good += sum(right for name, (right, _) in result.items() if name in by_dialect[dialect])  # type: ignore[index]
                    total += sum(of for name, (_, of) in result.items() if name in by_dialect[dialect])  # type: ignore[index]
            sys.stdout.write(f"{percent(good, total)} without {name_of(dialect)}\n")
            sums[0] += good
            sums[1] += total
            low = min(low, 100 * good / total) if total else low
        sys.stdout.write(f"{percent(*sums)} one left out, over all\n")
        alone = []
        with without(*ALL):
            for folder in folders:
                result = check(folder)
                good, total = (sum(facts[place] for facts in result.values()) for place in (0, 1))
                alone.append(100 * good / total)
                sys.stdout.write(f"{percent(good, total)} without any dialect, {folder.name}\n")
    return 0


def unpacked(stack: contextlib.ExitStack, name: str) -> Path:
    """A corpus of the tests in a folder of its name."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / name
    unpack_all(ROOT / "tests" / "data" / f"{name}.tar.xz", folder)
    return folder


if __name__ == "__main__":
    sys.exit(main())
