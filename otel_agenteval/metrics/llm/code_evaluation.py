"""Judges of code in the output, as ``code_code_language`` defines code."""

from __future__ import annotations

from ...core import jsonio
from ...core.turn import Turn
from ..lib import applies
from ..lib.code import OUTPUT_CHARS, code_blocks
from ..lib.readability import measured
from ..lib.replies import scored
from ..lib.values import reference
from ..prompts import TEN, Prompts
from ..registry import Asks, Result, metric, skip

_PROMPTS = Prompts("code_evaluation")


@metric(needs=("output",), threshold=0.5, applies=applies.code, version="3", aliases=("trusys:code-readability",))
def llm_code_readability(turn: Turn, judge: Asks) -> Result:
    """Readability of the code in the output: naming, structure, comments, consistency.

    A single judge call returns a score from 0 to 10, which is divided by 10. The judge also reads measurements of the code.
    See ``code_code_language`` for the definition of code. Skipped as ``no_code`` without code, and as ``too_long`` if the
    output is over 1 MiB.

    Detail: ``reason`` and ``measured``:

    - ``lines`` (with text), ``longest_line`` (characters), ``long_lines`` (share over 100 characters)
    - ``deepest_nesting`` (by indentation), ``comments`` (share of lines)
    - ``one_letter_names`` (share of names), ``name_length`` (mean)
    - for Python, with the extra ``[code]``: ``complexity`` (mean branches per function), ``most_complex_function``, and
      ``maintainability_index`` (0..100, of the worst block)

    Source: Trusys code-readability.
    """
    output = turn.output or ""
    if len(output) > OUTPUT_CHARS:
        return skip("too_long")
    blocks = code_blocks(output)
    if not blocks:
        return skip("no_code")
    counts = measured(blocks)
    lines = "\n".join(f"{name}: {value}" for name, value in counts.items())
    result = scored(judge.ask("readability", _PROMPTS["readable"], {"output": output, "measured": lines}, TEN), top=10)
    result.detail = {**(result.detail or {}), "measured": counts}
    return result


@metric(references=("spec",), threshold=0.5, applies=applies.code, version="2", aliases=("trusys:code-correctness",))
def llm_code_correctness(turn: Turn, judge: Asks, *, spec: str | None = None) -> Result:
    """Correctness of the code in the output against its specification, without running it.

    A single judge call returns a score from 0 to 10, which is divided by 10. See ``code_code_language`` for the definition
    of code. Skipped:

    - ``no_code`` without code.
    - ``too_long`` if the output is over 1 MiB.
    - ``missing:input`` without a specification.
    - ``missing:output`` if the output is unknown.

    Parameters:
        spec: Specification of the code. The default is the turn's reference ``spec`` or its input.

    Detail: ``issues`` and ``reason``.

    Source: Trusys code-correctness.
    """
    wanted = jsonio.text_of(reference(turn, spec, "spec")) or turn.input or ""
    if not wanted:
        return skip("missing:input")
    output = turn.output
    if output is None:
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
