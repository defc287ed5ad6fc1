"""Load the word lists and tables in ``data`` on first use.

A list is a text file with sections. Each section has its name in brackets, one entry per line, and an empty line before it. An
open box (``␣``) stands for a space at the start or end of an entry. The lines before the first section are a comment.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from ..core import jsonio

FOLDER = Path(__file__).with_name("data")


@cache
def sections(name: str) -> dict[str, list[str]]:
    _, *blocks = (FOLDER / name).read_text(encoding="utf-8").replace("␣", " ").rstrip("\n").split("\n\n[")
    return {head: entries.split("\n") for head, _, entries in (block.partition("]\n") for block in blocks)}


@cache
def words(name: str, section: str) -> tuple[str, ...]:
    return tuple(sections(name)[section])


@cache
def word_set(name: str, section: str) -> frozenset[str]:
    return frozenset(sections(name)[section])


@cache
def table(name: str) -> Any:
    return jsonio.loads((FOLDER / name).read_bytes())
