"""The ``llm_`` metrics judge the quality of code in the output."""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from typing import Any

from ...core import jsonio
from ...core.extras import installed
from ...core.turn import Turn
from ..lib import applies
from ..lib.code import OUTPUT_CHARS, Block, code_blocks
from ..lib.replies import scored
from ..lib.values import reference
from ..prompts import TEN, Prompts
from ..registry import Asks, Result, metric, skip

_PROMPTS = Prompts("code_evaluation")


@metric(needs=("output",), threshold=0.5, applies=applies.code, version="3", aliases=("trusys:code-readability",))
def llm_code_readability(turn: Turn, judge: Asks) -> Result:
    """Readability of the code in the output: naming, structure, comments, and consistency.

    A single judge call returns a rating from 0 to 10. The value is this rating divided by 10. The judge also reads measurements
    of the code. If the output doesn't contain code, the score is skipped as ``no_code``.

    Detail: ``reason`` and ``measured``, which contains these keys:

    - ``lines`` (lines with text), ``longest_line`` (characters), and ``long_lines`` (share of lines with more than 100 characters)
    - ``deepest_nesting`` (highest number of indentation levels) and ``comments`` (share of lines that are comments)
    - ``one_letter_names`` (share of one-character names) and ``name_length`` (mean number of characters)
    - for Python, if the extra ``[code]`` is installed: ``complexity`` (mean cyclomatic complexity of functions and classes),
      ``most_complex_function`` (highest complexity), and ``maintainability_index`` (0..100, of the worst block)
    """
    if len(output := turn.output or "") > OUTPUT_CHARS:
        return skip("too_long")
    if not (blocks := code_blocks(output)):
        return skip("no_code")
    counts = measured(blocks)
    lines = "\n".join(f"{name}: {value}" for name, value in counts.items())
    result = scored(judge.ask("readability", _PROMPTS["readable"], {"output": output, "measured": lines}, TEN), top=10)
    result.detail = {**(result.detail or {}), "measured": counts}
    return result


@metric(references=("spec",), threshold=0.5, applies=applies.code, version="2", aliases=("trusys:code-correctness",))
def llm_code_correctness(turn: Turn, judge: Asks, *, spec: str | None = None) -> Result:
    """Correctness of the code in the output, judged against its specification. The code isn't run.

    A single judge call returns a rating from 0 to 10. The value is this rating divided by 10. The score is skipped in these cases:

    - ``missing:output``: the output is unknown.
    - ``too_long``: the output has more than 1,048,576 characters.
    - ``no_code``: the output doesn't contain code.
    - ``missing:input``: both the specification and the input are missing.

    Parameters:
        spec: Specification of the code. The default is the turn's reference ``spec`` or, if that is missing, the turn's input.

    Detail: ``issues`` and ``reason``.
    """
    if not (wanted := jsonio.text_of(reference(turn, spec, "spec")) or turn.input or ""):
        return skip("missing:input")
    if (output := turn.output) is None:
        return skip("missing:output")
    if len(output) > OUTPUT_CHARS:
        return skip("too_long")
    if not code_blocks(output):
        return skip("no_code")
    reply = judge.ask(
        "correctness",
        _PROMPTS["correct"],
        {"output": output} if spec else {"spec": wanted, "output": output},
        '{"issues": ["<what is wrong, and for which input>", ...], "reason": "<why, in one or two sentences>", "score": <0 to 10>}',
        criteria={"spec": spec} if spec else None,
    )
    return scored(reply, top=10, issues="issues")


# --- properties that make code in any language hard to read

_LONG_LINE = 100
_COMMENT = re.compile(r"\s*(#|//|/\*|\*|--|;;|%|<!--|\"\"\"|''')")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAB = 4
_PYTHON = frozenset(("python", "py", "python3", None))
_PARSED = 100_000


def measured(blocks: Sequence[Block]) -> dict[str, Any]:
    lines = [line.expandtabs(_TAB).rstrip() for block in blocks for line in block.text.splitlines() if line.strip()]
    if not lines:
        return {"lines": 0, **_complexity(blocks)}
    indents = [len(line) - len(line.lstrip()) for line in lines]
    step = min((indent for indent in indents if indent > 1), default=_TAB)
    code = [line for line in lines if not _COMMENT.match(line)]
    names = {name for line in code for name in _NAME.findall(line)}
    return {
        "lines": len(lines),
        "longest_line": max(map(len, lines)),
        "long_lines": round(sum(len(line) > _LONG_LINE for line in lines) / len(lines), 3),
        "deepest_nesting": max(indents) // step,
        "comments": round(1 - len(code) / len(lines), 3),
        "one_letter_names": round(sum(len(name) == 1 for name in names) / len(names), 3) if names else 0.0,
        "name_length": round(statistics.fmean(map(len, names)), 1) if names else 0.0,
        **_complexity(blocks),
    }


def _complexity(blocks: Sequence[Block]) -> dict[str, Any]:
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
