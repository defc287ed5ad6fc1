"""What a judge reads about the course of a turn: request, reasoning, steps, findings, answer and error."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ...core import jsonio
from ...core.turn import Turn
from .replies import numbered
from .steps import RESULT_CHARS, ends_of, failure_of, shortened, steps_of

_TEXTS, _CHARS = 40, 500
"""Findings that are listed with the steps, and characters of each."""


def cut(text: str, limit: int) -> str:
    """The first ``limit`` characters, and a mark where there were more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def listed(items: Iterable[str] | str) -> str:
    """A text as it is, texts by number."""
    return items if isinstance(items, str) else numbered(list(items))


def trace_of(turn: Turn, *, findings: bool = True) -> dict[str, Any]:
    """The material of a whole turn, as far as it is known. Request, reasoning and answer are whole.

    Args:
        turn: whose.
        findings: whether the texts of retrieved documents belong to it, but those that stand in a step's result.
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
    """The texts of retrieved documents, but those that stand in a call's result."""
    given = [jsonio.text_of(call.result) for call in turn.tool_calls or () if call.result is not None]
    results = "\n".join(text for text in given if len(text) <= RESULT_CHARS)
    texts = [
        text for text in turn.context if text.strip() and text not in results and jsonio.text_of([text])[2:-2] not in results
    ]
    first, last, left_out = ends_of(texts, _TEXTS)
    mark = [f"[… {left_out} texts left out …]"] if left_out else []
    return "\n---\n".join([*(shortened(text, _CHARS) for text in first), *mark, *(shortened(text, _CHARS) for text in last)])
