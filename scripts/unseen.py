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
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

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


class Row(NamedTuple):
    """What is still right without a dialect, or without all."""

    label: str
    right: int
    facts: int

    @property
    def share(self) -> float:
        """Percent."""
        return 100 * self.right / self.facts


def left_out(folders: Sequence[Path]) -> Iterator[Row]:
    """A row for each dialect that is spoken in these sets, on those sets alone."""
    spoken = [speakers(folder) for folder in folders]
    for dialect in ALL:
        right = facts = 0
        with without(dialect, *ADDITIONS.get(dialect, ())):  # type: ignore[call-overload]
            for folder, by_dialect in zip(folders, spoken, strict=True):
                sets = by_dialect[dialect]  # type: ignore[index]
                found = check(folder) if sets else {}
                right += sum(counts[0] for name, counts in found.items() if name in sets)
                facts += sum(counts[1] for name, counts in found.items() if name in sets)
        if facts:
            yield Row(name_of(dialect), right, facts)


def without_any(folder: Path) -> Row:
    """All of a corpus without any dialect."""
    with without(*ALL):
        found = check(folder).values()
    return Row(folder.name, sum(counts[0] for counts in found), sum(counts[1] for counts in found))


def total(rows: Iterable[Row]) -> Row:
    """Rows added up."""
    listed = list(rows)
    return Row("all of these", sum(row.right for row in listed), sum(row.facts for row in listed))


def shown(row: Row) -> str:
    """A row of the table."""
    return f"| {row.label} | {row.share:.1f} % | {row.right:,} of {row.facts:,} |"


def main() -> int:
    """Print the tables; 1 when a bound is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of sets; default: both corpora of tests/data")
    parser.add_argument("--write", action="store_true", help="write docs/internals/inferred-dialects.md")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folders = given.folders or [unpacked(stack, name) for name in ("corpus", "corpus_b")]
        lines = ["| without | right | facts |", "|---|---|---|"]
        sys.stdout.write("\n".join(lines) + "\n")
        rows = []
        for row in left_out(folders):
            rows.append(row)
            sys.stdout.write(f"{shown(row)}\n")
        one = total(rows)
        none = [without_any(folder) for folder in folders]
    more = [shown(one), *(shown(row._replace(label=f"every dialect, on `{row.label}`")) for row in none)]
    sys.stdout.write("\n".join(more) + "\n")
    if given.write:
        write([*lines, *map(shown, rows), *more])
    return int(
        one.share < ONE_LEFT_OUT
        or min(row.share for row in rows) < EACH
        or any(row.share < ALL_LEFT_OUT.get(row.label, 0) for row in none)
    )


ONE_LEFT_OUT, EACH, ALL_LEFT_OUT = 96.0, 70.0, {"corpus": 97.0, "corpus_b": 90.0}
"""Percent that have to be right: one dialect left out, over all and for each; and all of them, by corpus."""
PAGE = ROOT / "docs" / "internals" / "inferred-dialects.md"
FIGURES = re.compile(r"(?<=<!-- unseen -->).*?(?=<!-- /unseen -->)", re.DOTALL)


def write(table: Sequence[str]) -> None:
    """Put the tables on their page."""
    PAGE.write_text(FIGURES.sub("\n" + "\n".join(table) + "\n", PAGE.read_text(encoding="utf-8")), encoding="utf-8")


def unpacked(stack: contextlib.ExitStack, name: str) -> Path:
    """A corpus of the tests in a folder of its name."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / name
    unpack_all(ROOT / "tests" / "data" / f"{name}.tar.xz", folder)
    return folder


if __name__ == "__main__":
    sys.exit(main())
