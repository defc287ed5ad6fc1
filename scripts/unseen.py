"""Measure the value of each dialect: the facts that are wrong without it (``make unseen``).

A fact is right if it equals the truth stored with its recording (``tests/support/check_turns.py``). Facts that have no truth, such
as costs and retrieved documents, are lost if they change without the dialect. ``--check`` fails if the package doesn't need a
dialect, or if too many facts are wrong without any dialect.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import itertools
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

import check_turns  # noqa: E402
from recordings import unpack_all  # noqa: E402

import otel_agenteval  # noqa: E402 - of this checkout, or as it is installed
from scripts.forks import in_fork  # noqa: E402

PAYS = 0.01
"""Minimum value of a dialect in percentage points of all facts. Not required if facts without a truth change without it."""
NONE = {"corpus": 97.0, "corpus_b": 90.0}
"""Minimum percentage of a corpus's facts that must be right without any dialect."""
CHECKED = 20
"""Number of recordings of a dialect that ``--check`` reads first."""
PAGE = ROOT / "docs" / "internals" / "inferred-dialects.md"
FIGURES = re.compile(r"(?<=<!-- unseen -->).*?(?=<!-- /unseen -->)", re.DOTALL)
DIALECTS = Path(otel_agenteval.__file__).parent / "dialects"
_NOTHING = re.compile("(?!)")


def names() -> list[str]:
    return sorted(path.stem for path in DIALECTS.glob("*.py") if re.search("^SCOPES = ", path.read_text("utf-8"), re.MULTILINE))


def leave_out(dialects: Iterable[str]) -> None:
    """Disable dialects. Call this before the reader is imported, because its import collects their names."""
    from importlib import import_module

    assert "otel_agenteval.dialects.reader" not in sys.modules
    for name in dialects:
        module: Any = import_module(f"otel_agenteval.dialects.{name}")
        module.MARKS, module.SCOPES = frozenset(), _NOTHING
        module.role_of = lambda attributes, scope, name: None
        module.read = lambda record, step: None


@cache
def recordings(folder: Path) -> list[tuple[str, list[Path], Any]]:
    """Return the name, files and truth of each recording."""
    found = []
    for truths in sorted(folder.glob("*/truth.json")):
        for name, truth in sorted(check_turns.load_truth(truths).items()):
            paths = [truths.parent / file for file in (name, truth["logs"]) if file and (truths.parent / file).exists()]
            if paths and paths[0].name == name:
                found.append((f"{folder.name}/{truths.parent.name}/{name}", paths, truth))
    return found


def read(folders: Sequence[Path], only: Iterable[str] | None = None) -> dict[str, Any]:
    """Return, for each recording, which facts are right, and the facts that have no truth."""
    from otel_agenteval import load_turns

    wanted = None if only is None else set(only)
    found = {}
    for folder in folders:
        for name, paths, truth in recordings(folder):
            if wanted is None or name in wanted:
                turns = sorted(
                    (turn.to_dict() for turn in load_turns([*map(str, paths)])), key=lambda turn: turn.get("start") or ""
                )
                found[name] = {"right": _right(turns, truth, paths), "more": [*map(_more, turns)]}
    return found


def _right(turns: list[dict[str, Any]], truth: Any, paths: list[Path]) -> list[bool]:
    recording, used = check_turns.Recording(paths), {}  # type: ignore[var-annotated]
    facts = [len(turns) == len(truth["turns"])]
    for want, got in zip(truth["turns"], check_turns.align(turns, truth["turns"]), strict=True):
        facts += [bool(right) and bool(got) for _, right in check_turns.compare(got, want, recording, used)]
    return facts


def _more(turn: dict[str, Any]) -> dict[str, Any]:
    """Return a turn's facts that have no truth."""
    usage = turn.get("usage") or {}
    return {
        "agent": turn.get("agent"),
        "tool agents": [call.get("agent") for call in turn.get("tool_calls") or ()],
        "cached tokens": usage.get("cached_tokens"),
        "cost": turn.get("cost_usd"),
        "first token": [call["time_to_first_token_s"] for call in turn.get("llm_calls") or () if "time_to_first_token_s" in call],
        "handoffs": turn.get("handoffs"),
        "documents": turn.get("retrieved_ids") or turn.get("context"),
        "system prompt": turn.get("system"),
        "tool definitions": sorted(str(tool.get("name")) for tool in turn.get("tool_definitions") or ()),
        "user id": turn.get("user_id"),
    }


def _dialects(paths: list[Path]) -> list[str]:
    from otel_agenteval.dialects.reader import DIALECTS
    from otel_agenteval.spans.record import SpanRecord
    from otel_agenteval.turns.recordings import Reading, read_items, to_stderr

    spans = [item for item in read_items(paths, Reading(), to_stderr) if isinstance(item, SpanRecord)]
    return [
        dialect.__name__.rpartition(".")[2]  # type: ignore[attr-defined]
        for dialect in DIALECTS
        if any(not dialect.MARKS.isdisjoint(span.attributes) or dialect.SCOPES.match(span.scope) for span in spans)
    ]


class Row(NamedTuple):
    """Facts that change without a dialect."""

    dialect: str
    facts: int
    lost: int
    gained: int
    more: dict[str, int]
    """Number of turns in which a fact without a truth changes, by fact."""

    def worth(self, everything: int) -> float:
        """Return the dialect's value in percentage points of all facts."""
        return 100 * (self.lost - self.gained) / everything

    def pays(self, everything: int) -> bool:
        """Return True if the dialect is worth keeping."""
        return self.worth(everything) > PAYS or (self.lost >= self.gained and bool(self.more))


def compared(dialect: str, before: dict[str, Any], after: dict[str, Any]) -> Row:
    """Compare the results with and without a dialect, on its recordings."""
    pairs = [(before[name], after[name]) for name in after]
    facts = [pair for old, new in pairs for pair in zip(old["right"], new["right"], strict=True)]
    more: dict[str, int] = {}
    for old, new in pairs:
        for place, turn in enumerate(old["more"]):
            other = new["more"][place] if len(old["more"]) == len(new["more"]) else {}
            for name, value in turn.items():
                if value and any([*value] if isinstance(value, list) else [value]) and value != other.get(name):
                    more[name] = more.get(name, 0) + 1
    return Row(dialect, len(facts), sum(a > b for a, b in facts), sum(a < b for a, b in facts), more)


def apart(folders: Sequence[Path], without: Sequence[str], only: Iterable[str] | None = None) -> dict[str, Any]:
    """Return the result of :func:`read` without some dialects. Runs in a fork that imports the package again."""

    def work() -> dict[str, Any]:
        leave_out(without)
        return read(folders, only)

    found: dict[str, Any] = in_fork(work, "otel_agenteval")
    return found


def measured(folders: Sequence[Path], dialects: Sequence[str], *, check: bool = False) -> tuple[list[Row], int]:
    """Return a row for each dialect in these recordings, and the number of all facts.

    With ``check``, only some recordings of a dialect are read, if it is worth keeping because of them.
    """
    before = json.loads(json.dumps(read(folders)))
    everything = sum(len(one["right"]) for one in before.values())
    with_dialect: dict[str, list[str]] = {dialect: [] for dialect in names()}
    for name, paths, _ in itertools.chain(*map(recordings, folders)):
        for dialect in _dialects(paths):
            with_dialect[dialect].append(name)

    def row(dialect: str) -> Row:
        only = with_dialect[dialect]
        some = only[:: 1 + len(only) // CHECKED] if check else only
        found = compared(dialect, before, apart(folders, [dialect], some) if some else {})
        if found.pays(everything) or some == only:
            return found
        return compared(dialect, before, apart(folders, [dialect], only))

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        rows = list(pool.map(row, dialects))
    return sorted(rows, key=lambda one: one.gained - one.lost), everything


def without_any(folder: Path) -> float:
    """Return the percentage of facts that are right without any dialect."""
    found = [right for one in apart([folder], names()).values() for right in one["right"]]
    return 100.0 * sum(map(bool, found)) / len(found)


def shown(row: Row, everything: int, *, kinds: bool) -> str:
    """Return the row of a dialect. With ``kinds``, list its other changes by kind of data instead of their sum."""
    more = ", ".join(f"{name} {count}" for name, count in sorted(row.more.items())) if kinds else f"{sum(row.more.values()):,}"
    return f"| {row.dialect} | {row.facts:,} | {row.lost:,} | {row.gained:,} | {row.worth(everything):.3f} | {more} |"


def main() -> int:
    """Print the table. Return 1 if ``--check`` finds a problem."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*", type=Path, help="folders of sets (default: all recordings of tests/data)")
    parser.add_argument("--without", nargs="*", default=(), metavar="DIALECT", help="only these dialects")
    parser.add_argument("--check", action="store_true", help="fail if a dialect isn't needed")
    parser.add_argument("--write", action="store_true", help="write docs/internals/inferred-dialects.md")
    given = parser.parse_args()
    logging.disable()
    with contextlib.ExitStack() as stack:
        folders = given.folders or unpacked(stack)
        rows, everything = measured(folders, given.without or names(), check=given.check)
        left = {folder.name: without_any(folder) for folder in folders if folder.name in NONE and not given.without}
    lines = [
        "| Omitted dialect | Facts | Lost | Gained | Points | Other changes |",
        "|---|---|---|---|---|---|",
    ]
    right = " and ".join(f"{share:.1f} % of the facts in `tests/data/{name}.tar.xz`" for name, share in left.items())
    after = ["", f"Without any dialect, {right} are correct."] if left else []
    sys.stdout.write("\n".join([*lines, *(shown(row, everything, kinds=True) for row in rows), *after]) + "\n")
    if given.write:
        lines += [*(shown(row, everything, kinds=False) for row in rows), *after]
        text = PAGE.read_text(encoding="utf-8")
        PAGE.write_text(FIGURES.sub("\n" + "\n".join(lines).rstrip() + "\n", text), encoding="utf-8")
    idle = [row.dialect for row in rows if not row.pays(everything)]
    for name in idle if given.check else ():
        sys.stderr.write(f"otel_agenteval/dialects/{name}.py: dialect loses no facts when left out; delete it\n")
    low = [name for name, share in left.items() if share < NONE[name]]
    for name in low:
        sys.stderr.write(
            f"{name}: {left[name]:.1f} % of the facts are right without any dialect; at least {NONE[name]} % must be\n"
        )
    return int(bool(low) or (given.check and bool(idle)))


def unpacked(stack: contextlib.ExitStack) -> list[Path]:
    """Return a folder for each archive of recordings in tests/data, and one for all archives of a single set."""
    data, top = ROOT / "tests" / "data", Path(stack.enter_context(tempfile.TemporaryDirectory()))
    folders = []
    for name, archives in (
        *((name, [data / f"{name}.tar.xz"]) for name in ("corpus", "corpus_b", "frameworks")),
        ("recordings", sorted((data / "recordings").glob("*.tar.xz"))),
    ):
        folders.append(top / name)
        for archive in archives:
            unpack_all(archive, top / name)
    return folders


if __name__ == "__main__":
    sys.exit(main())
