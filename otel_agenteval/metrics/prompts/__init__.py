"""Texts of judge prompts, in one YAML file for each metric family.

Most prompts start with a sentence on what to judge, and by which standard. Optional sections follow, in this
order: ``How:`` (the procedure), the scale with a sentence for each level, ``What counts:``, ``What does not count:``, short
``Good:`` and ``Bad:`` examples, and rules for frequent cases such as refusals. The common system prompt explains delimiters,
redaction markers, and truncated material, and how to judge other languages.

An indented line continues the previous line. A placeholder such as ``{missing}`` inserts a shared sentence from :data:`SENTENCES`.

In most files, ``cases`` contains good and bad example turns for ``otel-agenteval judge probe``.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...core.files import load_yaml

SENTENCES = {
    "missing": "Missing evidence: what the material does not show has not been shown to happen; say what is missing, and do not assume it.",
    "partial": "Partial answers: judge what is there by the scale; what is missing counts as not done.",
    "refusal_fails": "Refusals: an answer that declines, however politely or rightly, has not done what was asked.",
    "refusal_full": "Refusals: judge an answer that declines like any other by the scale; declining is no fault in itself.",
}

SCORE = '{"reason": "<why, in one or two sentences>", "score": <0 to 1>}'
"""Reply form with a score from 0 to 1. The reason comes first, so that the judge reasons before it decides."""
PERCENT = '{"reasoning": "<why, in one to three sentences>", "score": <0 to 100>}'
TEN = '{"reason": "<why, in one or two sentences>", "score": <0 to 10>}'
VERDICT = '{"reason": "<why, in one or two sentences>", "verdict": "<yes or no>"}'


class Prompts:
    """Prompts of one metric family by name, loaded on first use."""

    def __init__(self, family: str) -> None:
        self._path = Path(__file__).with_name(f"{family}.yaml")

    @functools.cached_property
    def content(self) -> Mapping[str, Any]:
        found: dict[str, Any] = load_yaml(self._path)
        return found

    @functools.cached_property
    def texts(self) -> Mapping[str, str]:
        found: dict[str, str] = {}
        for name, text in self.content["prompts"].items():
            complete = text.replace("\n  ", " ")
            for word, sentence in SENTENCES.items():
                complete = complete.replace(f"{{{word}}}", sentence)
            found[name] = complete
        return found

    def __getitem__(self, name: str) -> str:
        return self.texts[name]
