"""Tables in the documentation that a script measures: they stand between two comments, and are printed or put there."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path


def run(description: str, page: Path, name: str, table: Callable[[], Iterable[str]]) -> int:
    """Print the lines of a table, or with ``--write`` put them into a page, between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--write", action="store_true", help=f"put the table into {page.name}")
    options = parser.parse_args()
    text = "\n".join(table())
    if not options.write:
        print(text)
        return 0
    begin, end = f"<!-- begin {name} -->\n\n", f"\n\n<!-- end {name} -->"
    before, _, rest = page.read_text(encoding="utf-8").partition(begin)
    page.write_text(f"{before}{begin}{text}{end}{rest.partition(end)[2]}", encoding="utf-8")
    return 0
