"""Find tool calls that an agent repeats without learning anything new."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from ...core import jsonio
from ...core.turn import ToolCall
from ...detectors.numbers.words import values_of_words
from .values import canonical

_WAITS = re.compile(r"(?:^|[^a-z])(?:sleep|wait|delay|pause)(?:[^a-z]|$)", re.IGNORECASE)
"""Name of a tool that lets time pass."""
_SLEEPS = re.compile(r"\bsleep[ (]{1,2}[0-9]")
"""Command that lets time pass, in a call's arguments."""
_GESTURES = re.compile(
    r"press|keystroke|key_?(?:down|up)|scroll|swipe|screenshot|snapshot|(?:^|_)(?:key|tab|tap|click|type|next|back)(?:$|_)",
    re.IGNORECASE,
)
"""Names of tools that operate a screen. Their equal calls have different effects."""
_PASSES = re.compile(
    r"\b(?:pending|running|queued|waiting|processing|in[ _-]?progress|provisioning|starting|building|creating|scheduled)\b",
    re.IGNORECASE,
)
"""States that a later call can leave."""
_STATE_UP_TO = 300
"""Characters of a result that can be a mere state."""
_DIGITS = re.compile("[0-9]+")


class Circle(NamedTuple):
    """Equal calls of one tool."""

    name: str
    calls: int
    last: int
    """Position of the last one among the turn's calls."""
    size: int
    """Characters of its arguments."""


def circles_in(calls: Sequence[ToolCall], names: Collection[str], most: int, asked: str, *, finished: bool) -> list[Circle]:
    """Return the calls of the named tools that were repeated more than ``most`` times in vain, the most repeated first.

    As many calls as ``asked``, the user's words, names are intended. If the turn isn't ``finished``, waiting for a state was in
    vain, too.
    """
    keys = [None if call.arguments is None else (call.name, canonical(call.arguments)) for call in calls]
    if all(count <= most for key, count in Counter(keys).items() if key is not None):
        return []  # nearly always, and before the results are compared
    outcomes = [_outcome(call) for call in calls]
    latest = dict(zip(keys, outcomes, strict=True))
    seen: set[tuple[Any, str]] = set()
    counts: dict[Any, int] = {}
    found: dict[Any, Circle] = {}
    for place, (key, outcome, call) in enumerate(zip(keys, outcomes, calls, strict=True)):
        if _WAITS.search(call.name) or _SLEEPS.search(jsonio.text_of(call.arguments)[:_STATE_UP_TO]):
            counts.clear()
        elif key is None or (key, outcome) not in seen:
            seen.add((key, outcome))
            counts = {key: 1}
        else:
            counts[key] = counts.get(key, 1) + 1
            if counts[key] > most and call.name in names and not _is_polling(call, outcome, latest[key], finished):
                found[key] = Circle(call.name, counts[key], place, len(jsonio.text_of(call.arguments)))
    wanted = _numbers_in(asked[:10_000]) if found else ()
    circles = [circle for circle in found.values() if circle.calls not in wanted and not _GESTURES.search(circle.name)]
    return sorted(circles, key=lambda circle: -circle.calls)


def _outcome(call: ToolCall) -> str:
    if call.error is not None:
        return f"error {call.error.type} {call.error.message}"
    return "" if call.result is None else canonical(call.result)


def _is_polling(call: ToolCall, outcome: str, latest: str, finished: bool) -> bool:
    """Return True if a call waits for a state to pass, or another outcome came later."""
    return outcome != latest or (
        finished and call.error is None and len(outcome) <= _STATE_UP_TO and _PASSES.search(outcome) is not None
    )


def _numbers_in(text: str) -> set[float]:
    digits = {float(number) for number in _DIGITS.findall(text) if len(number) < 4}
    return digits | {value for _, _, value in values_of_words(text)}
