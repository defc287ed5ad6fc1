"""The exit codes of the commands.

Every command has a table ``EXIT_CODES`` of its own: what 0 and 2 mean for it, and 1 where it can end with it. ``--help`` prints the
table, and ``docs/reference/cli.md`` is made from it.
"""

from __future__ import annotations

from collections.abc import Mapping

OK = 0
FAILED = 1
"""The command did its work, and the result is bad: a gate failed, something was not delivered, a turn is unknown."""
UNUSABLE = 2
"""The command could not do its work: it was called wrongly, or could not read what it needs."""
INTERRUPTED = 130
"""Ctrl-C ended a command that does not stop by itself on that signal."""


def as_text(codes: Mapping[int, str]) -> str:
    """The table at the end of a command's ``--help``."""
    return "\n".join(["exit codes:", *(f"  {code:<3}  {meaning}" for code, meaning in sorted(codes.items()))])
