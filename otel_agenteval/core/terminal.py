"""Text of agents on a terminal, which obeys some characters and hides others."""

from __future__ import annotations

import json
import re

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: they begin commands, as in ESC [ and U+009B
    "\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # ends of lines, and the direction of writing
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"  # nothing is seen
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


LINES = "\n\t"
"""What to keep of a text of several lines."""


def escaped(text: str, keep: str = "") -> str:
    r"""Return text with what a terminal obeys or hides as JSON writes it, such as ``\u009b``. JSON stays the same JSON.

    Args:
        text: of one line, unless ``keep`` has a line feed.
        keep: characters to leave as they are.
    """
    return _OBEYED.sub(lambda found: found[0] if found[0] in keep else json.dumps(found[0])[1:-1], text)
