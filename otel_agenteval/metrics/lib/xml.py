"""Parse XML in time linear in the text, without loading or expanding anything."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from xml.parsers import expat

_WHITE_SPACE = " \t\r\n"
_NAME = (
    r"[:A-Z_a-z\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u02FF\u0370-\u037D\u037F-\u1FFF\u200C\u200D\u2070-\u218F\u2C00-\u2FEF"
    r"\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD]"
    r"[-.0-9:A-Z_a-z\u00B7\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u037D\u037F-\u1FFF\u200C\u200D\u203F\u2040\u2070-\u218F"
    r"\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD]*"
)
_VALUE = r"""(?:"[^<"]*"|'[^<']*')"""
_EQUALS = r"[ \t\r\n]*=[ \t\r\n]*"
_ATTRIBUTE_NAME = re.compile(rf"(?<![ \t\r\n])[ \t\r\n]+({_NAME}){_EQUALS}{_VALUE}")
_START_TAG = re.compile(rf"<({_NAME})((?:[ \t\r\n]+{_NAME}{_EQUALS}{_VALUE})*)[ \t\r\n]*(/?)>")
_END_TAG = re.compile(rf"</({_NAME})[ \t\r\n]*>")
_INSTRUCTION = re.compile(rf"<\?(?!xml[ \t\r\n?])({_NAME})(?=[ \t\r\n]|\?>)", re.IGNORECASE)
_REFERENCE = r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,9}|#x[0-9A-Fa-f]{1,9});)"
_FOREIGN = r"[^\t\n\r\x20-\uD7FF\uE000-\uFFFD\U00010000-\U0010FFFF]"
_NO_CHARACTER_DATA = re.compile(rf"{_REFERENCE}|{_FOREIGN}|\]\]>")
_NO_ATTRIBUTE = re.compile(rf"{_REFERENCE}|{_FOREIGN}")
_NO_CHARACTER = re.compile(_FOREIGN)
_NUMBERED = re.compile(r"&#(?:([0-9]+)|x([0-9A-Fa-f]+));")


class _HasDeclarations(Exception):
    """A document that contains its own declarations."""


class XmlDocument(NamedTuple):
    fault: dict[str, Any] | None
    """Why the text isn't a document: ``error``, and if known, ``line`` and ``column``. None if it is one."""
    missing: list[str]


def read(text: str, required: Sequence[str] = ()) -> XmlDocument:
    """Check that a text is one well-formed document, and find its missing required elements."""
    deepest = max((max(path.count(".") + 1, 2) for path in required), default=0)
    opened: list[str] = []
    paths: set[tuple[str, ...]] = set()

    def start(name: str, attributes: dict[str, str]) -> None:
        opened.append(name)
        if len(opened) <= deepest:
            paths.add(tuple(opened))

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler = _refuse_declarations
    if required:
        parser.StartElementHandler = start
        parser.EndElementHandler = lambda name: opened.pop()
    try:
        parser.Parse(text.strip(_WHITE_SPACE), True)
    except expat.ExpatError as error:
        return XmlDocument({"error": expat.ErrorString(error.code), "line": error.lineno, "column": error.offset}, list(required))
    except _HasDeclarations:
        return XmlDocument({"error": "declarations are not supported"}, list(required))
    except UnicodeEncodeError:
        return XmlDocument({"error": "not well-formed (invalid token)"}, list(required))
    at_the_top = {path[-1] for path in paths if len(path) <= 2}  # a single name is the root or one of its children
    return XmlDocument(
        None, [name for name in required if name not in at_the_top and ("." not in name or tuple(name.split(".")) not in paths)]
    )


def _refuse_declarations(name: str, system_id: str | None, public_id: str | None, internal_subset: bool) -> None:
    if internal_subset:
        raise _HasDeclarations


def elements(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each outermost well-formed element, in order.

    An element is open until its end tag. Text that isn't XML invalidates all open elements, because each of them would contain
    it. Elements that are already closed stay valid.
    """
    found: list[tuple[int, int]] = []
    opened: list[tuple[str, int]] = []
    last_ends = {end: text.rfind(end) for end in ("]]>", "?>")}
    position = 0
    while (start := text.find("<", position)) >= 0:
        if opened and not _is_fit(_NO_CHARACTER_DATA, text, position, start):
            opened.clear()
        if tag := _START_TAG.match(text, start):
            position = tag.end()
            if not _attributes_fit(text, *tag.span(2)):
                opened.clear()
            elif tag[3]:
                _close(found, start, position)
            else:
                opened.append((tag[1], start))
        elif tag := _END_TAG.match(text, start):
            position = tag.end()
            if opened and opened[-1][0] == tag[1]:
                _close(found, opened.pop()[1], position)
            else:
                opened.clear()
        else:
            end = _end_of_other_markup(text, start, last_ends, inside=bool(opened))
            if end is None or _NO_CHARACTER.search(text, start, end):
                opened.clear()
            position = end or start + 1
    return found


def _end_of_other_markup(text: str, start: int, last_ends: dict[str, int], *, inside: bool) -> int | None:
    """Return the end of the comment, instruction or CDATA section at ``start``, or None."""
    if text.startswith("<!--", start):
        end = text.find("--", start + 4)
        return end + 3 if text.startswith("-->", end) else None
    if inside and text.startswith("<![CDATA[", start) and start < last_ends["]]>"]:
        return text.find("]]>", start) + 3
    if _INSTRUCTION.match(text, start) and start < last_ends["?>"]:
        return text.find("?>", start) + 2
    return None


def _close(found: list[tuple[int, int]], start: int, end: int) -> None:
    while found and found[-1][0] > start:  # nested in this element
        found.pop()
    found.append((start, end))


def _is_fit(unfit: re.Pattern[str], text: str, start: int, end: int) -> bool:
    return unfit.search(text, start, end) is None and all(
        _NO_CHARACTER.match(chr(number)) is None if number <= 0x10FFFF else False
        for decimal, hexadecimal in _NUMBERED.findall(text, start, end)
        for number in (int(decimal or hexadecimal, 10 if decimal else 16),)
    )


def _attributes_fit(text: str, start: int, end: int) -> bool:
    names = _ATTRIBUTE_NAME.findall(text, start, end)
    return len(set(names)) == len(names) and _is_fit(_NO_ATTRIBUTE, text, start, end)
