"""JSON documents inside other text, found in time that is linear in the text."""

from __future__ import annotations

import re

_OPEN = re.compile(r"""\[(?=[ \t\n\r]*["\[{\]0-9tfn-])|\{(?=[ \t\n\r]*["}])""")
"""A bracket with something behind it that a value can begin with: most that stand in prose have not."""
_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
        ([\[{]) | ([\]}]) | (,) | (:)
        | ("[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*)*")
        | (-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)
    )""",
    re.VERBOSE,
)
_OPENED, _CLOSED, _COMMA, _COLON, _STRING, _SCALAR = range(1, 7)  # the groups of _TOKEN
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _AFTER_KEY, _AFTER_VALUE = range(6)  # what the grammar wants next

_NEXT = {
    (_VALUE, _STRING): _AFTER_VALUE,
    (_VALUE, _SCALAR): _AFTER_VALUE,
    (_VALUE_OR_END, _STRING): _AFTER_VALUE,
    (_VALUE_OR_END, _SCALAR): _AFTER_VALUE,
    (_KEY, _STRING): _AFTER_KEY,
    (_KEY_OR_END, _STRING): _AFTER_KEY,
    (_AFTER_KEY, _COLON): _VALUE,
}
_MAY_OPEN = frozenset((_VALUE, _VALUE_OR_END))
_EMPTY_ARRAY = re.compile(r"\[[ \t\n\r]*\]")


class _Scan:
    """Reads containers of a text, and remembers of a failed one which of those inside are whole.

    What a bracket opens does not depend on what stands before it. So when a container breaks off, the ones that are open at
    that place break off too, the ones that were closed before are whole, and none of them has to be read again. Only the
    brackets inside of its strings do, and they read as structure what was text before: no character is read a third time.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.whole: dict[int, int] = {}
        self.broken: set[int] = set()

    def end_of(self, start: int) -> int | None:
        """Where the container that opens at ``start`` ends, or None if it is not JSON."""
        if start in self.broken:
            return None
        return self.whole.get(start) or self._read(start)

    def _read(self, start: int) -> int | None:
        text, match = self.text, _TOKEN.match
        opened: list[int] = []
        closed: list[tuple[int, int]] = []
        wanted, position = _VALUE, start
        while found := match(text, position):
            kind = found.lastindex
            position = found.end()
            if kind == _OPENED:
                if wanted not in _MAY_OPEN:
                    break
                opened.append(position - 1)
                wanted = _KEY_OR_END if text[position - 1] == "{" else _VALUE_OR_END
            elif kind == _CLOSED:
                pair = text[opened[-1]] + text[position - 1]
                if not (pair == "{}" and wanted in (_AFTER_VALUE, _KEY_OR_END)) and not (
                    pair == "[]" and wanted in (_AFTER_VALUE, _VALUE_OR_END)
                ):
                    break
                began = opened.pop()
                if not opened:
                    return position
                while closed and closed[-1][0] > began:  # it stands inside of this one
                    closed.pop()
                closed.append((began, position))
                wanted = _AFTER_VALUE
            elif kind == _COMMA:
                if wanted != _AFTER_VALUE:
                    break
                wanted = _KEY if text[opened[-1]] == "{" else _VALUE
            else:
                follows = _NEXT.get((wanted, kind or 0))
                if follows is None:
                    break
                wanted = follows
        self.whole.update(closed)
        self.broken.update(opened)
        return None


def containers(text: str) -> list[tuple[int, int]]:
    """Start and end of every JSON object and non-empty array in the text, the outermost ones, in their order.

    From each brace or bracket on, from left to right, the longest JSON value counts, and the search continues after it.
    """
    scan = _Scan(text)
    found = []
    opening = _OPEN.search(text)
    while opening is not None:
        start = opening.start()
        end = scan.end_of(start)
        if end is not None and _EMPTY_ARRAY.match(text, start) is None:
            found.append((start, end))
        opening = _OPEN.search(text, end or start + 1)
    return found
