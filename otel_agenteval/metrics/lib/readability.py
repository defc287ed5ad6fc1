"""Measure properties that make code in any language hard to read."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

from ...core.extras import installed
from .code import Block

LONG_LINE = 100
_COMMENT = re.compile(r"\s*(#|//|/\*|\*|--|;;|%|<!--|\"\"\"|''')")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAB = 4
_PYTHON = frozenset(("python", "py", "python3", None))
_PARSED = 100_000


def measured(blocks: Sequence[Block]) -> dict[str, Any]:
    """Measure all blocks together and return the results by name.

    The results cover line length, nesting, comments and names. Nesting depth is the indentation, measured in the smallest step
    that the code uses. For Python, they also contain McCabe's complexity and the maintainability index if radon is installed
    (extra ``[code]``).
    """
    return _counted([block.text for block in blocks]) | _of_python(blocks)


def _of_python(blocks: Sequence[Block]) -> dict[str, Any]:
    if not installed("radon"):
        return {}
    from radon.complexity import cc_visit
    from radon.metrics import mi_visit

    functions: list[int] = []
    indexes: list[float] = []
    for block in blocks:
        if block.label not in _PYTHON or len(block.text) > _PARSED:
            continue
        try:
            found = [one.complexity for one in cc_visit(block.text)]
            if block.label is not None or found:  # without a label, only functions show that the block is Python
                functions += found
                indexes.append(mi_visit(block.text, multi=True))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # not Python, or not valid in this version
            continue
    most = {"most_complex_function": max(functions), "complexity": round(statistics.fmean(functions), 1)} if functions else {}
    return most | ({"maintainability_index": round(min(indexes), 1)} if indexes else {})


def _counted(blocks: Sequence[str]) -> dict[str, Any]:
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
