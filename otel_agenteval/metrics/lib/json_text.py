"""Find JSON documents inside other text, in time linear in its length."""

from __future__ import annotations

import re

_OPEN = re.compile(r"""\[(?=[ \t\n\r]*["\[{\]0-9tfn-])|\{(?=[ \t\n\r]*["}])""")
"""A bracket followed by the possible start of a value. Most brackets in prose don't match."""
_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
        ([\[{]) | ([\]}]) | (,) | (:)
        | ("[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4})[^"\\\x00-\x1f]*)*")
        | (-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null)
    )""",
    re.VERBOSE,
)
_OPENED, _CLOSED, _COMMA, _COLON, _STRING, _SCALAR = range(1, 7)  # the groups of _TOKEN
_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _AFTER_KEY, _AFTER_VALUE = range(6)  # tokens that the grammar allows next

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
    """A scanner that finds complete JSON containers and remembers them after a failure.

    If a container is invalid, the containers open at that position are invalid too, and those closed before it are complete. None
    of them is read again. Only brackets inside strings are read a second time, as structure. So no character is read more than
    twice.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.whole: dict[int, int] = {}
        self.broken: set[int] = set()

    def end_of(self, start: int) -> int | None:
        """Return the end of the container that opens at ``start``, or None if it isn't JSON."""
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
                while closed and closed[-1][0] > began:  # nested in this container
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
    """Return the start and end of each outermost JSON object or non-empty array, in order.

    From left to right, the longest JSON value at each bracket counts, and the search continues after it.
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
