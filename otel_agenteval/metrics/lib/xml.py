"""Parse XML with expat in linear time, without loading or expanding anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.parsers import expat

_MARKUP = re.compile(rb"<[:A-Z_a-z\x80-\xFF!?]")
_OPENED = b"<_>"
_FIRST_CHUNK = 256
_LARGEST_CHUNK = 65_536


class _RefusedMarkup(Exception):
    """Markup that the parser accepts and we don't. The argument is the position at which parsing resumes."""


class XmlDocument(NamedTuple):
    fault: dict[str, Any] | None
    """Why the text isn't a document: ``error``, and if known, ``line`` and ``column``. None if it is one."""
    missing: list[str]


def read(text: str, required: Sequence[str] = ()) -> XmlDocument:
    """Check that a text is one well-formed document, and find its missing required elements."""
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


def elements(text: str) -> list[str]:
    """Return the text of each outermost well-formed element, in order.

    An element is open until its end tag. Text that isn't XML invalidates all open elements, because each of them would contain
    it. Elements that are already closed stay valid. Parsing then resumes at the next markup.
    """
    encoded = text.encode("utf-8", "surrogatepass")
    data = _without_endless_markup(encoded)
    found: list[tuple[int, int]] = []
    markup = _MARKUP.search(data)
    while markup:
        markup = _MARKUP.search(data, max(markup.end(), _parse_content(data, markup.start(), found)))
    return [encoded[start:end].decode("utf-8", "surrogatepass") for start, end in found]


def _without_endless_markup(data: bytes) -> bytes:
    """Make markup without an end invalid, at the same length. The parser would search each for its end, up to the end of the text."""
    data = re.sub(b"<!--", lambda found: found[0] if data.startswith(b"-->", data.find(b"--", found.end())) else b"< --", data)
    for opening, closing in ((b"<?", b"?>"), (b"<![CDATA[", b"]]>")):
        after_last = data.rfind(closing) + 1
        data = data[:after_last] + data[after_last:].replace(opening, b"< " + opening[2:])
    return data


def _parse_content(data: bytes, start: int, found: list[tuple[int, int]]) -> int:
    """Parse the content of an artificial element up to the first error, and return the error's position.

    Add the start and end of each outermost element to ``found``.
    """
    opened: list[int] = []
    only_start = False
    parser = expat.ParserCreate()
    parser.Parse(_OPENED)
    origin = start - len(_OPENED)

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
        return origin + parser.ErrorByteIndex  # at the latest, the artificial element lacks its end
    except _RefusedMarkup as refused:
        return int(refused.args[0])
    finally:  # without the handlers, which refer to the parser, its memory is freed at once
        parser.StartElementHandler = parser.EndElementHandler = None
        parser.CharacterDataHandler = parser.StartCdataSectionHandler = None
