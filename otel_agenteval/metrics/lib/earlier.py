"""Earlier messages of a turn's conversation, as a judge reads them.

Each message is one line, so that no message can imitate another.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...core import jsonio
from ...core.turn import Message, Turn
from .steps import cut, one_line


def line_of(role: str, text: str | None) -> str:
    return one_line(f"{role}: {text or '(empty)'}")


def numbered(lines: Iterable[str], first: int = 1) -> str:
    return "\n".join(f"{place}. {line}" for place, line in enumerate(lines, first))


def history_of(turn: Turn) -> list[tuple[str, str]]:
    """Return role and text of the messages in the turn's ``history``, oldest first."""
    texts = (
        (role, jsonio.text_of(earlier.get(key)))
        for earlier in turn.history
        for role, key in (("user", "input"), ("assistant", "output"))
    )
    return [(role, text) for role, text in texts if text.strip()]


def unsent(turn: Turn, before: Iterable[Message]) -> list[tuple[str, str]]:
    """Return the history's messages that the messages before the turn lack, because a server keeps the conversation."""
    known = {message.content for message in before}
    return [(role, text) for role, text in history_of(turn) if text not in known]


def start_of(messages: Sequence[Message], asked: str | None = None) -> int:
    """Return the position of the turn's first message: the request, or else the last message of the user."""
    places = [place for place, message in enumerate(messages) if message.role == "user" and message.content]
    return next((place for place in reversed(places) if messages[place].content == asked), places[-1] if places else 0)


def whole_conversation(turn: Turn) -> list[Message]:
    """Return the conversation up to the turn: the history's messages that ``messages`` lacks, and ``messages``."""
    messages = turn.messages
    earlier = unsent(turn, messages[: start_of(messages)]) if messages else ()
    return [*(Message(role, text) for role, text in earlier), *messages]


def last_as_text(earlier: Sequence[tuple[str, str]], max_messages: int | None = None, max_chars: int | None = None) -> str:
    """Return the last messages in numbered lines, each truncated. A mark states how many are left out."""
    left_out = 0 if max_messages is None else max(0, len(earlier) - max_messages)
    lines = (line_of(role, text if max_chars is None else cut(text, max_chars)) for role, text in earlier[left_out:])
    mark = f"[… {left_out} messages left out …]\n" if left_out else ""
    return mark + numbered(lines, left_out + 1)
