"""Escapes text for a terminal, which executes some characters and hides others."""

from __future__ import annotations

import json
import re

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0, DEL and C1: they start commands, such as ESC [ and U+009B
    "\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # line ends and text direction
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb"  # invisible
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


LINES = "\n\t"
"""Characters to keep in multi-line text."""


def escaped(text: str, keep: str = "") -> str:
    r"""Return the text on one line with control and invisible characters as JSON escapes, except for those in ``keep``."""
    return _OBEYED.sub(lambda found: found[0] if found[0] in keep else json.dumps(found[0])[1:-1], text)
