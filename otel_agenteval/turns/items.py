"""Detect independent items that a program processes below one span, such as a batch job's inputs.

Each item is a turn: an input that a batch job sends to a model, or a message that a chat loop answers. An agent's model calls
aren't independent items, because the agent's later prompts contain tool results or earlier texts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

from ..core import jsonio
from ..core.turn import Message
from ..dialects.content import decode
from ..dialects.payloads import parsed
from ..dialects.reader import read
from ..dialects.step import Step
from ..spans.record import SpanRecord

_MOST_TEXTS = 128
_QUOTED = 8
"""Minimum length of a text that can match as part of a longer text. A shorter text matches only an equal text."""
_TYPING_NS = 1_000_000_000
"""Minimum nanoseconds between an answer and the next message if a person typed it. A shorter pause indicates a program."""


def are_items(root: SpanRecord, calls: Sequence[SpanRecord]) -> bool:
    """Return True if each model call below ``root`` processes an independent item. ``calls`` must be sorted by start time."""
    steps = [read(call) for call in calls]
    if len({(jsonio.text_of(step.system), step.request_model or step.model) for step in steps}) > 1:
        return False  # steps of one job, not items
    if _holds_one_text(read(root), len(calls)):
        return False
    known = _Spoken(steps[0])
    for before, step in pairwise(steps):
        messages = decode(step.input_messages, "user").messages
        asked = messages[-1].content if messages and messages[-1].role == "user" else None
        if not asked or messages[-1].tool_results or not known.answered:
            return False  # unknown, or a loop of calls
        if known.is_history(messages):
            pause = step.record.start_ns - before.record.end_ns
            if root.server or pause < _TYPING_NS:
                return False
        elif known.is_in(messages):
            return False
        known.add(step)
    return True


def _holds_one_text(root: Step, items: int) -> bool:
    """Return True if an input or output of the span isn't a list with one entry per model call, or if an entry is an object."""
    values = (root.input_messages, root.input_value, root.output_messages, root.output_value, root.final_result)
    lists = (parsed(raw) for raw in values if raw is not None)
    return any(not isinstance(one, (list, tuple)) or len(one) != items or any(isinstance(x, dict) for x in one) for one in lists)


class _Spoken:
    def __init__(self, step: Step) -> None:
        self._texts: deque[str] = deque(maxlen=_MOST_TEXTS)
        self._latest: tuple[str | None, str | None] = (None, None)
        self.add(step)

    def add(self, step: Step) -> None:
        given, made = decode(step.input_messages, "user").messages, decode(step.output_messages, "assistant").messages
        asked = next((one.content for one in reversed(given) if one.role == "user" and one.content), None)
        said = None if not made or made[-1].tool_calls else made[-1].content
        self._latest = asked, said
        self._texts.extend(filter(None, self._latest))

    @property
    def answered(self) -> bool:
        return all(self._latest)

    def is_history(self, messages: Sequence[Message]) -> bool:
        spoken = [one.content for one in messages if one.role in ("user", "assistant")]
        return tuple(spoken[-3:-1]) == self._latest and spoken[-1] not in self._texts

    def is_in(self, messages: Sequence[Message]) -> bool:
        """Return True if a message contains an older text, or an older text contains a user message. Short texts must be equal."""
        contents = [(one.role, one.content) for one in messages if one.content]
        return any(
            text == content or (len(text) >= _QUOTED and text in content)
            or (role == "user" and len(content) >= _QUOTED and content in text)
            for role, content in contents for text in self._texts
        )  # fmt: skip
