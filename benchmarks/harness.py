"""What the benchmarks share: rows with bounds, tables between the marks of a page, and children that run one checkout or two in turn.

A script measures itself in children (``Child``), so that setups do not share caches, garbage or threads; ``--against TREE`` runs the same
children with the package of another checkout too, alternating, so that before and after come from one run.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
README = Path(__file__).with_name("README.md")
NOISE = 1.25
"""How far over its bound a row may be before ``--check`` calls it missed."""
AFTER, BEFORE = "after", "before"


# --- rows and tables


@dataclass
class Row:
    """One line of a table. A column that is empty in every row is left out."""

    what: str
    value: str
    ratio: str = ""
    bound: str = ""
    over: float | None = None
    """Measured by bound: 1.0 is exactly at the bound. None: there is no bound."""
    before: str = ""
    """The same of the checkout that ``--against`` names."""
    change: str = ""
    """Measured by ``before``."""

    @property
    def verdict(self) -> str:
        """Whether the bound holds."""
        return "" if self.over is None else "holds" if self.over <= 1 else "MISSED"

    def compared(self, now: float, before: float | None, shape: str = "{:.0f} µs") -> Row:
        """This row beside the same figure of the other checkout, if there is one."""
        if before is not None:
            self.before, self.change = shape.format(before), f"{now / before:.2f} ×" if before else "–"
        return self


HEADS = ("", "measured", "relative", "bound", "", "before", "of before")


def table(rows: Sequence[Row], heads: Sequence[str] = HEADS) -> str:
    """The rows as a Markdown table."""
    lines = [tuple(heads), *((row.what, row.value, row.ratio, row.bound, row.verdict, row.before, row.change) for row in rows)]
    kept = [column for column in range(len(heads)) if column == 0 or any(line[column] for line in lines[1:])]
    return plain_table([[line[column] for column in kept] for line in lines])


def plain_table(lines: Sequence[Sequence[str]]) -> str:
    """Lines of cells, the first with the heads, as a Markdown table."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def write(text: str, name: str = "results", page: Path = README) -> None:
    """Put a table between its marks of a page.

    Raises:
        ValueError: the page has no such marks.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page} has no marks {begin} and {end}")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


# --- the command line of a script


def parser(description: str | None, *, against: bool = True) -> argparse.ArgumentParser:
    """The options that every script takes."""
    options = argparse.ArgumentParser(description=(description or "").split("\n", 1)[0])
    options.add_argument("--write", action="store_true", help="put the table into its page")
    options.add_argument("--check", action="store_true", help="exit with status 1 when a bound is missed by more than a quarter")
    if against:
        options.add_argument(
            "--against", type=Path, metavar="TREE", help="measure the package of this checkout too, in turn with this one"
        )
    options.add_argument("--child", help=argparse.SUPPRESS)
    return options


def report(rows: Sequence[Row], args: argparse.Namespace, name: str) -> int:
    """Print the table, write it if that was asked for, and the exit status."""
    text = table(rows)
    print(text, flush=True)
    if args.write:
        write(text, name)
    return int(args.check and any(row.over is not None and row.over > NOISE for row in rows))


# --- children


Outcome = dict[str, Any]


@dataclass
class Runs:
    """What the children of a script said: by checkout and setup, one outcome for each round."""

    outcomes: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)
    beside: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)
    """What ran at the same time as each of them."""

    def add(self, outcomes: tuple[Outcome, Outcome | None], setup: str, tree: str = AFTER) -> None:
        """One round of a setup, and what ran beside it."""
        outcome, other = outcomes
        self.outcomes.setdefault((tree, setup), []).append(outcome)
        if other is not None:
            self.beside.setdefault((tree, setup), []).append(other)

    def best(self, setup: str, key: str, tree: str = AFTER) -> float:
        """The least of all rounds: what other work on the machine adds is never negative."""
        return min(float(outcome[key]) for outcome in self.outcomes[tree, setup])

    def before(self, setup: str, key: str) -> float | None:
        """The same of the other checkout; None without one."""
        return self.best(setup, key, BEFORE) if (BEFORE, setup) in self.outcomes else None

    def mean(self, setup: str, key: str, tree: str = AFTER) -> float:
        """Of all rounds: for what comes by chance, such as the thread on which garbage is collected."""
        outcomes = self.outcomes[tree, setup]
        return sum(float(outcome[key]) for outcome in outcomes) / len(outcomes)

    def has_before(self, setup: str) -> bool:
        """Whether the other checkout was measured."""
        return (BEFORE, setup) in self.outcomes


def environment(tree: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment with the package of a checkout, without the SDK's variables, and with compiled modules."""
    unwanted = ("OTEL_", "AGENTEVAL_", "PYTHONDONTWRITEBYTECODE")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**clean, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", **(more or {})}


def child(script: str, tree: Path, what: Mapping[str, Any], python: str = sys.executable) -> Outcome:
    """Run a script's child: it gets ``what`` as JSON, and its last line on standard output is the outcome as JSON.

    Raises:
        RuntimeError: it failed.
    """
    done = subprocess.run(
        [python, script, "--child", json.dumps(what)], env=environment(tree), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{Path(script).name} {what} with {tree}:\n{done.stderr[-4_000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def child_beside(
    script: str, tree: Path, what: Mapping[str, Any], other: Mapping[str, Any] | None, python: str = sys.executable
) -> tuple[Outcome, Outcome | None]:
    """Run a script's child, and at the same time another one of this checkout, if there is to be one."""
    if other is None:
        return child(script, tree, what, python), None
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(child, script, ROOT, other, python)
        return child(script, tree, what, python), beside.result()


def answer_as_child(args: argparse.Namespace, children: Mapping[str, Callable[[], Mapping[str, Any]]]) -> None:
    """In a child, print the outcome of what it was started for, and end: threads of outlets need not. In the parent, do nothing."""
    if args.child:
        print(json.dumps(children[json.loads(args.child)["what"]]()), flush=True)
        os._exit(0)


def server_program(name: str) -> Path:
    """Return a server's program, which ``scripts/get_servers.py`` gets if it is missing."""
    sys.path.insert(0, str(ROOT))
    from scripts import get_servers

    return get_servers.get(name)


def free_port() -> int:
    """Return a port of this machine that nothing uses."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(*command: str) -> Iterator[int]:
    """A server in a Python process of its own, which prints its port first: that port, until the block is left."""
    process = subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        process.wait()


def alternate(
    script: str, setups: Mapping[str, Mapping[str, Any]], against: Path | None, rounds: int, *, shared: Sequence[str] = (), beside: str = "",
) -> Runs:  # fmt: skip
    """Children of each setup, each checkout in turn, the order reversed every other round. ``shared`` setups do not import the package.

    A child of the setup ``beside``, which does not import the package, runs at the same time as each other one, on another core: what a machine gives
    differs from minute to minute by more than what is measured, and hardly at one moment.
    """
    trees = {AFTER: ROOT} if against is None else {BEFORE: against.resolve(), AFTER: ROOT}
    order = [(tree, setup) for setup in setups for tree in trees if setup != beside and (tree == AFTER or setup not in shared)]
    found = Runs()
    for number in range(rounds):
        for tree, setup in order if number % 2 == 0 else reversed(order):
            found.add(child_beside(script, trees[tree], setups[setup], setups.get(beside)), setup, tree)
            print(".", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return found


# --- what a child measures


class GarbageCollector:
    """CPU seconds of garbage collections, by the thread that had to do them."""

    def __init__(self) -> None:
        self._started = 0.0
        self.seconds: dict[int, float] = {}
        self.collections = [0, 0, 0]
        gc.callbacks.append(self._called)

    def _called(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self._started = time.thread_time()
            return
        thread = threading.get_ident()
        self.seconds[thread] = self.seconds.get(thread, 0.0) + time.thread_time() - self._started
        self.collections[info["generation"]] += 1

    def reset(self) -> None:
        """Begin anew."""
        self.seconds.clear()
        self.collections = [0, 0, 0]


def resident_mb() -> float:
    """Memory of this process that is in RAM."""
    import psutil

    return float(psutil.Process().memory_info().rss / 1e6)


def per_call(work: Callable[[], object], repeat: int, rounds: int = 7) -> float:
    """CPU µs of one call on this thread: the best of some blocks."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(repeat):
            work()
        best = min(best, time.thread_time() - start)
    return best / repeat * 1e6
