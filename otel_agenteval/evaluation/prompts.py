"""Extract documents from prompts.

Many applications retrieve documents themselves and insert them into the prompt with the user's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..core.templates import filled_in
from ..core.turn import Document, Turn

_LEAD = re.compile(r"(?:[-*\u2022] +|\d{1,3}[.)] +)?(?:\[([^\]\n]{1,200})\]:? *)?")
_LONGEST = 1_000_000


class PromptParts(NamedTuple):
    """The parts of a prompt."""

    documents: list[Document]
    question: str | None
    """The user's question, if the template contains one."""


def prompt_of(turn: Turn, templates: Sequence[str]) -> PromptParts | None:
    """Return the documents in the last user message, according to the first matching template."""
    text = next(
        (message.content for message in reversed(turn.messages) if message.role == "user" and message.content), turn.input
    )
    if not text or len(text) > _LONGEST:
        return None
    for template in templates:
        found = filled_in(template.strip(), text.strip())
        if found is not None:
            documents = list(_documents(found["documents"]))
            return PromptParts(documents, (found.get("question") or "").strip() or None) if documents else None
    return None


def _documents(text: str) -> Iterator[Document]:
    """Yield the paragraphs of a text, or its lines if there is only one paragraph.

    Bullets, numbers and ``[id]`` prefixes are removed.
    """
    text = text.strip()
    for part in re.split(r"\n\s*\n", text) if "\n\n" in text else text.split("\n"):
        lead = _LEAD.match(part.strip())
        content = part.strip()[lead.end() if lead is not None else 0 :].strip()
        if content:
            yield Document(id=lead[1] if lead is not None else None, content=content)


def mapped_id(found: str, mapping: Sequence[tuple[str, str]]) -> str:
    """Return a document's id in the form that references use.

    The first matching pattern decides. ``*`` stands for the same text in both forms.
    """
    for pattern, wanted in mapping:
        start, star, end = pattern.partition("*")
        if not star:
            if found == pattern:
                return wanted
        elif len(found) >= len(start) + len(end) and found.startswith(start) and found.endswith(end):
            return wanted.replace("*", found[len(start) : len(found) - len(end)], 1)
    return found
