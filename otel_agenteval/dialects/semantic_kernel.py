"""Parser for Semantic Kernel, which writes the GenAI convention's attributes, some with nonstandard values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spans.record import SpanRecord
from .attributes import as_text
from .step import AGENT, INNER, LLM, TOOL, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"semantic_kernel\b|Microsoft\.SemanticKernel\b")
_NAMES = {
    "chat": LLM, "chat.completions": LLM, "text_completions": LLM, "text.completions": LLM, "invoke_agent": AGENT, "execute_tool": TOOL,
    "AutoFunctionInvocationLoop": INNER,
}  # fmt: skip


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role that the first word of a span's name indicates, or None. At its start, a model span has only a name."""
    return _NAMES.get(name.partition(" ")[0])


def read(record: SpanRecord, step: Step) -> None:
    if step.framework is None:
        step.framework = "semantic_kernel"
    if step.role == LLM:
        reason = step.finish_reason or as_text(record.attributes.get("gen_ai.response.finish_reason"))
        if reason is not None and reason.startswith("FinishReason."):  # the name of an enum member
            step.finish_reason = reason.partition(",")[0].removeprefix("FinishReason.").lower()
    elif step.role == TOOL and step.tool_call_id is not None and step.tool_arguments is not None:
        # The recorded arguments include the kernel's own arguments (a prompt's variables).
        step.tool_inputs, step.tool_arguments = {step.tool_call_id: step.tool_arguments}, None
