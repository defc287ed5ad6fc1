"""The command line: one module per command, and the exit codes.

May import all other subpackages. Each command has a table ``EXIT_CODES`` with the meaning of its codes. ``--help`` and
``docs/reference/cli.md`` show the table.
Start at :mod:`.main`.
"""

from __future__ import annotations

from collections.abc import Mapping

OK = 0
FAILED = 1
"""The command did its work, and the result is bad: a gate failed, data wasn't delivered, or a turn is unknown."""
UNUSABLE = 2
"""The command couldn't do its work: an argument is invalid, an input can't be read, or an output can't be written."""
INTERRUPTED = 130


def as_text(codes: Mapping[int, str]) -> str:
    return "\n".join(["exit codes:", *(f"  {code:<3}  {meaning}" for code, meaning in sorted(codes.items()))])
