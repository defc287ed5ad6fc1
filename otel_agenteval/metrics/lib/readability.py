"""What can be counted in code of any language that makes it hard to read."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

LONG_LINE = 100
"""Characters from which on a line is long."""
_COMMENT = re.compile(r"\s*(#|//|/\*|\*|--|;;|%|<!--|\"\"\"|''')")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAB = 4


def measured(blocks: Sequence[str]) -> dict[str, Any]:
    """Counts over all blocks: lines with text, the longest one, the share of long ones, the depth of nesting, the share of comments, the length of names.

    Depth is by indentation, in the smallest step that the code uses.
    """
    lines = [line.expandtabs(_TAB).rstrip() for block in blocks for line in block.splitlines() if line.strip()]
    if not lines:
        return {"lines": 0}
    indents = [len(line) - len(line.lstrip()) for line in lines]
    step = min((indent for indent in indents if indent > 1), default=_TAB)
    code = [line for line in lines if not _COMMENT.match(line)]
    names = {name for line in code for name in _NAME.findall(line)}
    return {
        "lines": len(lines),
        "longest_line": max(map(len, lines)),
        "long_lines": round(sum(len(line) > LONG_LINE for line in lines) / len(lines), 3),
        "deepest_nesting": max(indents) // step,
        "comments": round(1 - len(code) / len(lines), 3),
        "one_letter_names": round(sum(len(name) == 1 for name in names) / len(names), 3) if names else 0.0,
        "name_length": round(statistics.fmean(map(len, names)), 1) if names else 0.0,
    }
