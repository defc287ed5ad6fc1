"""Collect the course of a turn for a judge, from the request to the answer.

The material also contains reasoning, steps, retrieved documents and the error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core import jsonio
from ...core.turn import Turn
from .replies import numbered
from .steps import RESULT_CHARS, ends_of, failure_of, shortened, steps_of

_TEXTS, _CHARS = 40, 500
"""Characters of each retrieved text."""


def cut(text: str, limit: int) -> str:
    """Return the first ``limit`` characters, with a mark if the text is longer."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def listed(items: Iterable[str] | str) -> str:
    """Return a text unchanged, or several texts as a numbered list."""
    return items if isinstance(items, str) else numbered(list(items))


def trace_of(turn: Turn, *, findings: bool = True) -> dict[str, Any]:
    """Return the known material of a whole turn.

    Request, reasoning and answer aren't shortened.

    Args:
        turn: The turn.
        findings: True to include the texts of retrieved documents that no step's result contains.
    """
    known: dict[str, Any] = {
        "user_input": turn.input,
        "reasoning": turn.reasoning,
        "steps": steps_of(turn),
        "retrieved": findings_of(turn) if findings else None,
        "final_answer": turn.output if turn.output is None or turn.output.strip() else "(empty)",
        "error": failure_of(turn.error) if turn.error is not None else None,
    }
    return {name: value for name, value in known.items() if value}


def findings_of(turn: Turn) -> str:
    """Return the texts of retrieved documents, except those in a tool result."""
    given = [jsonio.text_of(call.result) for call in turn.tool_calls or () if call.result is not None]
    results = "\n".join(text for text in given if len(text) <= RESULT_CHARS)
    texts = [
        text for text in turn.context if text.strip() and text not in results and jsonio.text_of([text])[2:-2] not in results
    ]
    first, last, left_out = ends_of(texts, _TEXTS)
    mark = [f"[… {left_out} texts left out …]"] if left_out else []
    return "\n---\n".join([*(shortened(text, _CHARS) for text in first), *mark, *(shortened(text, _CHARS) for text in last)])
