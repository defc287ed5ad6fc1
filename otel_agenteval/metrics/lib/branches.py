"""Patterns of many branches, written so that a search is fast."""

from __future__ import annotations


def branches(pattern: str) -> list[str]:
    """The branches of a pattern, as they are written."""
    found, depth = [""], 0
    for sign in pattern:
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found


def flattened(pattern: str) -> str:
    """The same pattern without groups at the beginning of its branches, so that a search passes over characters that none of them begins with."""
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
