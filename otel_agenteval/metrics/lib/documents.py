"""Find, parse, and compare JSON and XML documents in an output, in linear time."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple
from xml.parsers import expat

from ...core import jsonio
from .values import canonical, excerpt, json_equal

SIZE_LIMIT = 1 << 20
"""Maximum size of a parsed output in bytes. Longer outputs are skipped with ``too_long``."""


def too_long(text: str) -> bool:
    if text.isascii() or len(text) > SIZE_LIMIT:
        return len(text) > SIZE_LIMIT
    return len(text.encode("utf-8", "surrogatepass")) > SIZE_LIMIT


def object_of(text: str) -> dict[str, Any] | None:
    try:
        value = jsonio.loads_exact(text)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else canonical(value)


# --- paths

ABSENT = object()
"""Value that :func:`lookup` returns if the path doesn't exist."""

_INDEX = re.compile(r"\[(-?[0-9]{1,9})\]")
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN_KEY = 50
_SHOWN_STEPS = 20

_Place = tuple[Any, "str | int"] | None
"""Position in a document as a linked list: the parent's position and the key or index."""


def lookup(document: Any, path: str) -> Any:
    """Return the value at a dotted path, or :data:`ABSENT`.

    ``path`` can be ``a.b``, ``a.0``, ``a[0]``, ``a[-1]``, or ``$.a``. A key that equals the full path takes precedence.
    """
    if isinstance(document, dict) and path in document:
        return document[path]
    found = document
    for step in _INDEX.sub(r".\1", path).removeprefix("$").removeprefix(".").split("."):
        if isinstance(found, dict):
            found = found.get(step, ABSENT)
        elif isinstance(found, list) and _NUMBER.fullmatch(step) and -len(found) <= int(step) < len(found):
            found = found[int(step)]
        else:
            return ABSENT
    return found


def first_difference(expected: Any, actual: Any, *, ignore_list_order: bool) -> str | None:
    """Return the JSONPath of the first difference between two documents, or None if the documents are equal.

    Keys are compared in the order of the expected document. With ``ignore_list_order``, a difference inside a list is reported with
    the list's path. Without this option, the comparison isn't recursive, so documents can have any depth.
    """
    pending: list[tuple[Any, Any, _Place]] = [(expected, actual, None)]
    while pending:
        one, other, place = pending.pop()
        if isinstance(one, dict) and isinstance(other, dict):
            keys = itertools.chain(one, (key for key in other if key not in one))
            inner = [(one.get(key, ABSENT), other.get(key, ABSENT), (place, key)) for key in keys]
            pending.extend(reversed(inner))
        elif isinstance(one, list) and isinstance(other, list) and not ignore_list_order:
            pairs = itertools.zip_longest(one, other, fillvalue=ABSENT)
            pending.extend(reversed([(left, right, (place, i)) for i, (left, right) in enumerate(pairs)]))
        elif isinstance(one, list) and isinstance(other, list):
            if _unordered(one) != _unordered(other):
                return _path(place)
        elif one is ABSENT or other is ABSENT or not json_equal(one, other):
            return _path(place)
    return None


def _unordered(value: Any) -> Hashable:
    """Convert a document to a hashable value that is the same for any order of list items."""
    if isinstance(value, dict):
        return "object", frozenset([(key, _unordered(inner)) for key, inner in value.items()])
    if isinstance(value, list):
        return "array", frozenset(Counter([_unordered(inner) for inner in value]).items())
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return "number" if number else type(value).__name__, value


def _path(place: _Place) -> str:
    steps = []
    while place is not None:
        place, key = place
        if isinstance(key, int):
            steps.append(f"[{key}]")
        elif _PLAIN_KEY.fullmatch(key):
            steps.append(f".{excerpt(key, _SHOWN_KEY)}")
        else:
            steps.append(f"[{excerpt(key, _SHOWN_KEY)!r}]")
    return "$" + "".join(steps[: -_SHOWN_STEPS - 1 : -1])


# --- JSON inside other text

_OPEN = re.compile(r"""\[(?=[ \t\n\r]*["\[{\]0-9tfn-])|\{(?=[ \t\n\r]*["}])""")
"""Pattern for a bracket that can start a JSON object or array. Most brackets in prose don't match."""
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
    **{(wanted, kind): _AFTER_VALUE for wanted in (_VALUE, _VALUE_OR_END) for kind in (_STRING, _SCALAR)},
    (_KEY, _STRING): _AFTER_KEY,
    (_KEY_OR_END, _STRING): _AFTER_KEY,
    (_AFTER_KEY, _COLON): _VALUE,
}
_MAY_OPEN = frozenset((_VALUE, _VALUE_OR_END))
_AFTER_OPENING = {"{": _KEY_OR_END, "[": _VALUE_OR_END}
_AFTER_COMMA = {"{": _KEY, "[": _VALUE}
_MAY_CLOSE = frozenset((("{}", _AFTER_VALUE), ("{}", _KEY_OR_END), ("[]", _AFTER_VALUE), ("[]", _VALUE_OR_END)))
_EMPTY_ARRAY = re.compile(r"\[[ \t\n\r]*\]")


def containers(text: str) -> list[tuple[int, int]]:
    """Return the (start, end) positions of each outermost JSON object or non-empty array."""
    inner: dict[int, int] = {}
    broken: set[int] = set()
    found = []
    opening = _OPEN.search(text)
    while opening is not None:
        start = opening.start()
        end = None if start in broken else inner.get(start) or _end_of_container(text, start, inner, broken)
        if end is not None and _EMPTY_ARRAY.match(text, start) is None:
            found.append((start, end))
        opening = _OPEN.search(text, end or start + 1)
    return found


def _end_of_container(text: str, start: int, inner: dict[int, int], broken: set[int]) -> int | None:
    """Return the position after the container at ``start``, or None if it is incomplete or invalid.

    In this case, the complete containers inside it are added to ``inner``. The open containers, including this container, are added
    to ``broken``. :func:`containers` doesn't read these containers again.
    """
    match = _TOKEN.match
    opened: list[int] = []
    closed: list[tuple[int, int]] = []
    wanted, position = _VALUE, start
    while found := match(text, position):
        kind = found.lastindex or 0
        position = found.end()
        sign = text[position - 1]
        if kind == _OPENED and wanted in _MAY_OPEN:
            opened.append(position - 1)
            wanted = _AFTER_OPENING[sign]
        elif kind == _CLOSED and (text[opened[-1]] + sign, wanted) in _MAY_CLOSE:
            began = opened.pop()
            if not opened:
                return position
            while closed and closed[-1][0] > began:  # nested in this container
                closed.pop()
            closed.append((began, position))
            wanted = _AFTER_VALUE
        elif kind == _COMMA and wanted == _AFTER_VALUE:
            wanted = _AFTER_COMMA[text[opened[-1]]]
        elif (wanted, kind) in _NEXT:
            wanted = _NEXT[wanted, kind]
        else:
            break
    inner.update(closed)
    broken.update(opened)
    return None


# --- XML, parsed with expat without loading or expanding anything

_MARKUP = re.compile(rb"<[:A-Z_a-z\x80-\xFF!?]")
_WRAPPER = b"<_>"
_FIRST_CHUNK = 256
_LARGEST_CHUNK = 65_536


class _RefusedMarkup(Exception):
    """Raised for rejected markup. The optional argument is the byte position at which to resume parsing."""


class XmlDocument(NamedTuple):
    fault: dict[str, Any] | None
    """``error``, and ``line`` and ``column`` if known. None if the text was parsed."""
    missing: list[str]


def read_xml(text: str, required: Sequence[str] = ()) -> XmlDocument:
    """Parse an XML document, and list missing ``required`` elements. If parsing fails, all elements are missing."""
    deepest = max((max(path.count(".") + 1, 2) for path in required), default=0)
    opened: list[str] = []
    paths: set[tuple[str, ...]] = set()

    def start_element(name: str, attributes: dict[str, str]) -> None:
        opened.append(name)
        if len(opened) <= deepest:
            paths.add(tuple(opened))

    def start_document_type(name: str, system_id: str | None, public_id: str | None, has_internal_subset: bool) -> None:
        if has_internal_subset:
            raise _RefusedMarkup

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = start_document_type
    if required:
        parser.StartElementHandler = start_element
        parser.EndElementHandler = lambda name: opened.pop()
    try:
        parser.Parse(text.strip(" \t\r\n"), True)
    except expat.ExpatError as error:
        return XmlDocument({"error": expat.ErrorString(error.code), "line": error.lineno, "column": error.offset}, list(required))
    except _RefusedMarkup:
        return XmlDocument({"error": "declarations are not supported"}, list(required))
    except UnicodeEncodeError:
        return XmlDocument({"error": "not well-formed (invalid token)"}, list(required))
    at_the_top = {path[-1] for path in paths if len(path) <= 2}  # a single name is the root or one of its children
    return XmlDocument(
        None, [name for name in required if name not in at_the_top and ("." not in name or tuple(name.split(".")) not in paths)]
    )


def xml_elements(text: str) -> list[str]:
    """Return the text of each outermost well-formed element, in order.

    At a syntax error, elements that are still open are discarded, and closed elements are kept. Parsing resumes after the error.
    """
    data = encoded = text.encode("utf-8", "surrogatepass")
    # Markup without an end becomes invalid, at the same length. Otherwise, the parser searches for each end in all of the text.
    data = re.sub(b"<!--", lambda found: found[0] if data.startswith(b"-->", data.find(b"--", found.end())) else b"< --", data)
    for opening, closing in ((b"<?", b"?>"), (b"<![CDATA[", b"]]>")):
        after_last = data.rfind(closing) + 1
        data = data[:after_last] + data[after_last:].replace(opening, b"< " + opening[2:])
    found: list[tuple[int, int]] = []
    markup = _MARKUP.search(data)
    while markup:
        markup = _MARKUP.search(data, max(markup.end(), _parse_content(data, markup.start(), found)))
    return [encoded[start:end].decode("utf-8", "surrogatepass") for start, end in found]


def _parse_content(data: bytes, start: int, found: list[tuple[int, int]]) -> int:
    """Add the positions of outermost elements after ``start`` to ``found``. Return the first error's position."""
    opened: list[int] = []
    only_start = False
    parser = expat.ParserCreate()
    parser.Parse(_WRAPPER)
    origin = start - len(_WRAPPER)

    def start_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal only_start
        opened.append(origin + parser.CurrentByteIndex)
        only_start = True

    def end_element(name: str) -> None:
        nonlocal only_start
        end = origin + parser.CurrentByteIndex
        if not opened:
            raise _RefusedMarkup(end + 1)
        # The parser reports an empty-element tag at its end, and an end tag at its start.
        if not (only_start and data[end - 2 : end] == b"/>"):
            end = data.index(b">", end) + 1
        only_start = False
        begin = opened.pop()
        while found and found[-1][0] > begin:  # nested in this element
            found.pop()
        found.append((begin, end))

    def character_data(characters: str) -> None:
        nonlocal only_start
        only_start = False

    def start_cdata_section() -> None:
        if not opened:
            raise _RefusedMarkup(origin + parser.CurrentByteIndex + 1)

    parser.StartElementHandler = start_element
    parser.EndElementHandler = end_element
    parser.CharacterDataHandler = character_data
    parser.StartCdataSectionHandler = start_cdata_section
    size = _FIRST_CHUNK
    try:
        while True:
            parser.Parse(data[start : start + size], start >= len(data))
            start += size
            size = min(2 * size, _LARGEST_CHUNK)
    except expat.ExpatError:
        return origin + parser.ErrorByteIndex  # without an earlier error, the missing end of the artificial element
    except _RefusedMarkup as refused:
        return int(refused.args[0])
    finally:  # the handlers refer to the parser, which delays freeing its memory
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.StartCdataSectionHandler = None
