"""Join the lines of each paragraph and list item in Markdown, because pages in docs/ have no fixed width."""

from __future__ import annotations

import re

_OWN_LINE = re.compile(r"\||#|```|<!--|[-*] |\d+\. ")


def unwrapped(text: str) -> str:
    """Return the text with one line per paragraph and list item. Tables, headings and code blocks don't change."""
    lines: list[str] = []
    in_code = can_grow = False
    for line in text.split("\n"):
        words = line.strip()
        if words.startswith("```"):
            in_code = not in_code
        if can_grow and words and not in_code and _OWN_LINE.match(words) is None:
            lines[-1] += f" {words}"
            continue
        lines.append(line)
        can_grow = bool(words) and not in_code and re.match(r"\||#|```|<!--", words) is None
    return "\n".join(lines)
