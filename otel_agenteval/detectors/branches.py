"""Rewrite patterns with many alternatives so that a search is fast."""

from __future__ import annotations


def branches(pattern: str) -> list[str]:
    """Split a pattern into its top-level alternatives."""
    found, depth = [""], 0
    for sign in pattern:
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found


def flattened(pattern: str) -> str:
    """Return an equivalent pattern whose alternatives don't start with a group.

    The regular expression engine can then skip characters that no alternative starts with.
    """
    found = []
    for branch in branches(pattern):
        end = _end_of_group(branch) if branch.startswith("(?:") else 0
        if end and branch[end : end + 1] not in ("?", "*", "+", "{"):
            found += [lead + branch[end:] for lead in branches(branch[3 : end - 1])]
        else:
            found.append(branch)
    return "|".join(found)


def _end_of_group(pattern: str) -> int:
    depth = 0
    for end, sign in enumerate(pattern, start=1):
        depth += (sign == "(") - (sign == ")")
        if not depth:
            return end
    return 0
