"""Parsers for Python source and for values printed by Python or Java. They don't run code, and reject texts that parse slowly."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from typing import Any, Literal

from . import jsonio
from .wellformed import plain

LONGEST_PYTHON = 1_000_000
"""Maximum length of a text to parse, in characters."""
_F_STRING = re.compile(r"(?<![A-Za-z0-9_])(?:[rR]?[fF]|[fF][rR])['\"]")
_MOST_FIELDS = 100_000_000
"""Maximum product of opening braces and text length, for f-strings. Python's parser copies the remaining text for each brace."""


def python_tree(text: str, mode: Literal["eval", "exec"] = "eval", name: str = "<text>") -> Any:
    """Return the syntax tree of an expression or, in mode ``exec``, a module. For invalid or overlong text, raise a ValueError."""
    if len(text) > LONGEST_PYTHON or (text.count("{") * len(text) > _MOST_FIELDS and _F_STRING.search(text) is not None):
        raise ValueError("text is too long to parse")
    try:
        return ast.parse(text, name, mode)
    except (SyntaxError, MemoryError, RecursionError) as error:
        raise ValueError(f"not valid Python: {type(error).__name__}") from None


def python_value(text: str) -> Any:
    """Parse JSON, or a Python literal that begins with a bracket or brace. Return other text unchanged."""
    for read in (jsonio.loads, python_literal) if text.lstrip()[:1] in ("{", "[") else (jsonio.loads,):
        try:
            return read(text)
        except ValueError:
            pass
    return text


def python_literal(source: str | ast.expr) -> Any:
    """Return the value of a Python literal (text or syntax tree), converted to JSON types. For other text, raise a ValueError."""
    try:
        return plain(ast.literal_eval(python_tree(source.lstrip(" \t")) if isinstance(source, str) else source))
    except (MemoryError, RecursionError, TypeError) as error:  # nested too deeply, or a dictionary with a list as a key
        raise ValueError(f"not a Python literal: {type(error).__name__}") from None


# --- values as printed by ``toString`` in Java and Kotlin: ``Type{key='…', …}``, ``Type[key=…]``

LONGEST_JAVA = 200_000
"""Maximum length of a text to parse, in characters."""
JAVA_CLASS = "java_class"
_DEEPEST = 40
_START = re.compile(r"\[?\s?(?:(?:[A-Za-z]\w{0,30}\.){0,8}[A-Z][\w$]{0,80}\s?[\[{(]\s?|\{)[A-Za-z]\w{0,60}\s?=(?!=)")
_OPEN = re.compile(r"\s*(?:(?P<name>[A-Za-z][\w.$]{0,100})\s?)?(?P<open>[\[{(])\s*")
_KEY = re.compile(r"\s*(?P<key>[A-Za-z_][\w.]{0,60})\s?=(?!=)\s?")
_NEXT = r"(?=\s{0,4}(?:,\s{0,4}[A-Za-z_][\w.]{0,60}\s?[=\[{(]|[\]})]\s{0,4}(?:[,\]})]|\Z)|\Z))"
_QUOTE_ENDS = {quote: re.compile(rf"{quote}(?:{_NEXT}|(?= [A-Za-z]\w{{0,60}} = [\"\w\[{{]))") for quote in ("'", '"')}
"""Patterns for the end of a quoted value, by quotation mark. LangChain4j can omit commas: ``id = "c1" text = "4"``."""
_BARE_END = re.compile(_NEXT)
_CLOSERS = {"[": "]", "{": "}", "(": ")"}
_OPENERS = {"]": "[", "}": "{", ")": "("}
_WORDS: dict[str, Any] = {"null": None, "true": True, "false": False}
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")
_JSON = json.JSONDecoder()
_JSON_STARTS = (*'"[]{}-0123456789',)
"""If one of these characters follows an opening bracket, the value is parsed as JSON first."""
_FAILURES = 20
"""Maximum number of failed attempts to parse JSON. Failures are slow, because ``json`` counts the complete text's lines."""


def java_value(text: str) -> Any:
    """Parse fields printed by Java's ``toString``: ``Tool{id=7}`` → ``{"java_class": "Tool", "id": 7}``. For other text, return None."""
    if text[-1:] not in ("}", "]", ")") or len(text) > LONGEST_JAVA or _START.match(text) is None:
        return None
    try:
        value, end = _Parser(text).value(0, 0)
    except ValueError:
        return None
    return value if end == len(text) else None


_ROLES = {
    "UserMessage": "user", "AssistantMessage": "assistant", "AiMessage": "assistant", "SystemMessage": "system",
    "ToolResponseMessage": "tool", "ToolExecutionResultMessage": "tool",
}  # fmt: skip


def java_message(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a Java library's chat message to ``role``, ``content``, and ``tool_calls``. Return a value without a role unchanged."""
    inner = value.get("assistantMessage", value.get("aiMessage"))
    if isinstance(inner, Mapping) and JAVA_CLASS in inner:
        return java_message(inner)
    stated = value.get("role", value.get("messageType"))
    role = _ROLES.get(value[JAVA_CLASS]) or (stated.lower() if stated.__class__ is str else None)
    if role is None:
        return value
    texts = (value.get(name) for name in ("content", "text", "textContent", "contents"))
    results = [one for one in value.get("responses") or () if isinstance(one, Mapping)]
    parts: Any = [{"type": "tool_call_response", **one, "response": one.get("responseData")} for one in results]
    return {
        "role": role,
        "content": parts or next((text for text in texts if text is not None), None),
        "tool_calls": value.get("toolCalls") or value.get("toolExecutionRequests"),
        "name": value.get("toolName"),
        "tool_call_id": value.get("id") if role == "tool" else None,
    }


def java_message_in(text: str) -> Mapping[str, Any] | None:
    """Parse a chat message that LangChain4j printed by ``toString``. Return None for other text."""
    value = java_value(text) if text.partition(" ")[0] in _ROLES else None
    return java_message(value) if isinstance(value, Mapping) else None


def _scalar(word: str) -> Any:
    if word in _WORDS:
        return _WORDS[word]
    return json.loads(word) if _NUMBER.fullmatch(word) and not word.lstrip("-").startswith("0") else word


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._failures = 0

    def value(self, at: int, depth: int, closer: str = "") -> tuple[Any, int]:
        """Return the value at position ``at``, and the position of its end. ``closer`` is the enclosing object's closing bracket."""
        text = self._text
        if depth > _DEEPEST:
            raise ValueError
        opening = _OPEN.match(text, at)
        if opening is not None:
            name = opening["name"]
            if name is None and opening["open"] != "(" and text[opening.end() : opening.end() + 1] in _JSON_STARTS:
                try:
                    return _JSON.raw_decode(text, opening.start("open"))
                except (ValueError, RecursionError):
                    self._failures += 1
                    if self._failures > _FAILURES:
                        raise ValueError from None
            if name is None or name.rpartition(".")[2][:1].isupper():
                return self._inside(opening, depth)
        quote = _QUOTE_ENDS.get(text[at : at + 1])
        if quote is not None:
            end = quote.search(text, at + 1)
            if end is None:
                raise ValueError
            return text[at + 1 : end.start()], end.end()
        end = _BARE_END.search(text, at)
        while end is not None:
            bracket = text[end.start() : end.start() + 5].lstrip()[:1]
            if bracket == closer or bracket not in _OPENERS or text.find(_OPENERS[bracket], at, end.start()) < 0:
                break
            end = _BARE_END.search(text, end.start() + 1)  # the bracket belongs to the value: a timeout (HTTP 504)
        if end is None:
            raise ValueError
        return _scalar(text[at : end.start()].strip()), end.start()

    def _inside(self, opening: re.Match[str], depth: int) -> tuple[Any, int]:
        text = self._text
        closer, at = _CLOSERS[opening["open"]], opening.end()
        members: dict[str, Any] = {JAVA_CLASS: opening["name"].rpartition(".")[2]} if opening["name"] else {}
        items: list[Any] = []
        while text[at : at + 1] != closer:
            key = _KEY.match(text, at)
            if key is not None:
                members[key["key"]], at = self.value(key.end(), depth + 1, closer)
            else:
                item, end = self.value(at, depth + 1, closer)
                if end == at:  # another kind of bracket closes here
                    raise ValueError
                items.append(item)
                at = end
            while text[at : at + 1] in (" ", ",", "\n"):
                at += 1
            if at >= len(text):
                raise ValueError
        return (items if items and len(members) <= 1 else members if members or opening["open"] == "{" else items), at + 1
