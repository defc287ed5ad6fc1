"""Command line: one module per command, and the exit codes.

Modules in this folder may import every other folder of the package. Each command's table ``EXIT_CODES`` contains the meaning of its
exit codes, which ``--help`` and ``docs/reference/cli.md`` show. Start at :mod:`.main`.
"""

from __future__ import annotations

from collections.abc import Mapping

OK = 0
FAILED = 1
"""Exit code of a command that finished with a bad result, such as a failed gate, undelivered data, or an unknown turn."""
UNUSABLE = 2
"""Exit code of a command that couldn't run, for example because an argument is invalid or an input is unreadable."""
INTERRUPTED = 130


def as_text(codes: Mapping[int, str]) -> str:
    return "\n".join(["exit codes:", *(f"  {code:<3}  {meaning}" for code, meaning in sorted(codes.items()))])
