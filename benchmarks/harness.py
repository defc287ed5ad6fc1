"""Shared code of the benchmarks: table rows with limits, tables between the marks of a page, and child processes.

A script measures in child processes (``Child``), so that setups don't share caches, garbage or threads. With ``--against TREE``, the same
children also run with the package of another checkout, in alternation, so that both results come from one run.
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
"""``--check`` accepts values up to this multiple of a limit."""
AFTER, BEFORE = "after", "before"


# --- rows and tables


@dataclass
class Row:
    """One row of a table. A column that is empty in every row is left out."""

    what: str
    value: str
    ratio: str = ""
    bound: str = ""
    over: float | None = None
    """Measured value divided by the limit, or None without a limit."""
    before: str = ""
    """Value of the other checkout (``--against``)."""
    change: str = ""
    """Measured value divided by ``before``."""

    @property
    def verdict(self) -> str:
        """``holds`` or ``MISSED``, or "" without a limit."""
        return "" if self.over is None else "holds" if self.over <= 1 else "MISSED"

    def compared(self, now: float, before: float | None, shape: str = "{:.0f} µs") -> Row:
        """Add the value of the other checkout to this row, if there is one."""
        if before is not None:
            self.before, self.change = shape.format(before), f"{now / before:.2f} ×" if before else "–"
        return self


HEADS = ("Setup", "Measured", "Relative", "Limit", "Result", "Before", "Relative to before")


def table(rows: Sequence[Row], heads: Sequence[str] = HEADS) -> str:
    """Return the rows as a Markdown table."""
    lines = [tuple(heads), *((row.what, row.value, row.ratio, row.bound, row.verdict, row.before, row.change) for row in rows)]
    kept = [column for column in range(len(heads)) if column == 0 or any(line[column] for line in lines[1:])]
    return plain_table([[line[column] for column in kept] for line in lines])


def plain_table(lines: Sequence[Sequence[str]]) -> str:
    """Return cells as a Markdown table. The first line is the header."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    text = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines]
    text.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join(text)


def write(text: str, name: str = "results", page: Path = README) -> None:
    """Write a table between its marks of a page.

    Raises:
        ValueError: If the page doesn't contain the marks.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"{page}: marks {begin} and {end} not found")
    page.write_text(f"{before}{begin}\n\n{text}\n\n{end}{after}", encoding="utf-8")


# --- the command line of a script


def parser(description: str | None, *, against: bool = True) -> argparse.ArgumentParser:
    """Return a parser with the options of every script."""
    options = argparse.ArgumentParser(description=(description or "").split("\n", 1)[0])
    options.add_argument("--write", action="store_true", help="write the table to its page")
    options.add_argument("--check", action="store_true", help="exit with status 1 if a limit is exceeded by more than a quarter")
    if against:
        options.add_argument(
            "--against", type=Path, metavar="TREE", help="also measure the package of this checkout, in alternation"
        )
    options.add_argument("--child", help=argparse.SUPPRESS)
    return options


def report(rows: Sequence[Row], args: argparse.Namespace, name: str) -> int:
    """Print the table. With ``--write``, also write it to the page. Return the exit status."""
    text = table(rows)
    print(text, flush=True)
    if args.write:
        write(text, name)
    return int(args.check and any(row.over is not None and row.over > NOISE for row in rows))


# --- children


Outcome = dict[str, Any]


@dataclass
class Runs:
    """Results of child processes, by checkout and setup, with one outcome per round."""

    outcomes: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)
    beside: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)
    """Results of the children that ran at the same time."""

    def add(self, outcomes: tuple[Outcome, Outcome | None], setup: str, tree: str = AFTER) -> None:
        """Add a round of a setup, and the outcome of the child that ran at the same time."""
        outcome, other = outcomes
        self.outcomes.setdefault((tree, setup), []).append(outcome)
        if other is not None:
            self.beside.setdefault((tree, setup), []).append(other)

    def best(self, setup: str, key: str, tree: str = AFTER) -> float:
        """Return the minimum of all rounds, because other work on the machine can only add time."""
        return min(float(outcome[key]) for outcome in self.outcomes[tree, setup])

    def before(self, setup: str, key: str) -> float | None:
        """Return the minimum of the other checkout, or None without one."""
        return self.best(setup, key, BEFORE) if (BEFORE, setup) in self.outcomes else None

    def mean(self, setup: str, key: str, tree: str = AFTER) -> float:
        """Return the mean of all rounds, for random costs such as garbage collections on a certain thread."""
        outcomes = self.outcomes[tree, setup]
        return sum(float(outcome[key]) for outcome in outcomes) / len(outcomes)

    def has_before(self, setup: str) -> bool:
        return (BEFORE, setup) in self.outcomes


def environment(tree: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return this process's environment variables for a checkout, with compiled modules and without SDK settings."""
    unwanted = ("OTEL_", "AGENTEVAL_", "PYTHONDONTWRITEBYTECODE")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**clean, "PYTHONPATH": str(tree), "PYTHONHASHSEED": "0", **(more or {})}


def child(script: str, tree: Path, what: Mapping[str, Any], python: str = sys.executable) -> Outcome:
    """Run a child process of a script. It receives ``what`` as JSON, and prints its outcome as JSON in the last line.

    Raises:
        RuntimeError: If the child fails.
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
    """Run a child process of a script and, if ``other`` is set, a second child at the same time."""
    if other is None:
        return child(script, tree, what, python), None
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(child, script, ROOT, other, python)
        return child(script, tree, what, python), beside.result()


def answer_as_child(args: argparse.Namespace, children: Mapping[str, Callable[[], Mapping[str, Any]]]) -> None:
    """In a child process, print the outcome and exit without waiting for threads. In the parent process, do nothing."""
    if args.child:
        print(json.dumps(children[json.loads(args.child)["what"]]()), flush=True)
        os._exit(0)


def server_program(name: str) -> Path:
    """Return a server's program. If it is missing, ``scripts/get_servers.py`` installs it."""
    sys.path.insert(0, str(ROOT))
    from scripts import get_servers

    return get_servers.get(name)


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@contextmanager
def running(*command: str) -> Iterator[int]:
    """Run a server in a separate Python process, and yield the port that it prints."""
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
    """Run children of each setup, alternating between checkouts. ``shared`` setups don't import the package, and run only for this checkout.

    A child of the setup ``beside`` runs at the same time as each other child, on another core. A machine's speed changes from
    minute to minute by more than the measured differences, but is nearly the same for two simultaneous children.
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
    """CPU seconds of garbage collections, by the thread that ran them."""

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
        self.seconds.clear()
        self.collections = [0, 0, 0]


def resident_mb() -> float:
    """Return the resident memory of this process."""
    import psutil

    return float(psutil.Process().memory_info().rss / 1e6)


def per_call(work: Callable[[], object], repeat: int, rounds: int = 7) -> float:
    """Return the CPU µs of one call on this thread, as the best of some blocks."""
    best = float("inf")
    for _ in range(rounds):
        start = time.thread_time()
        for _ in range(repeat):
            work()
        best = min(best, time.thread_time() - start)
    return best / repeat * 1e6
