"""Parse values in JSON text, in Python's ``repr``, and in attributes with dotted names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from ...core import jsonio, literals
from ...core.wellformed import plain
from .keys import MOST_NAMES

_LONGEST_REPR = 200_000
_MAX_INDEX = 2_000
_MAX_PATH = 16
_SHOWN_OBJECT = re.compile(
    r"""'(?:[^'\\]|\\.)*(?:'|\\?\Z)|"(?:[^"\\]|\\.)*(?:"|\\?\Z)|<(?:[\w.]+:\s*(?P<value>'[^'\n]*'|"[^"\n]*"|-?\d+)|[^<>'"\n]{1,200})>""",
    re.DOTALL,
)
_SHOWN = re.compile(r"content=('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\") (?:additional_kwargs|name|tool_call_id|id)=")
_SPEAKER = re.compile(r"^(system|user|human|assistant|ai|tool|developer|model): ?", re.IGNORECASE | re.MULTILINE)
_CALLED = r"[A-Za-z_][\w.]*(?:\[[\w., ]+\])?\("
_CALL = re.compile(_CALLED)
_REPR_START = re.compile(r"[{\[][')]|\[\{'|\[" + _CALLED)
_TYPE_PREFIX = re.compile(r"@[\w.=]{1,30}:(?=[{\[])")  # @ag.type=json:{"city": "Porto"}
_BRACKETS = re.compile(r"\[(\d{1,4})\]")
_MESSAGE_CLASSES = frozenset(("AIMessage", "HumanMessage", "SystemMessage", "ToolMessage", "AIMessageChunk"))
Path: TypeAlias = tuple[str, ...]


def opened(value: Any) -> Any:
    """Parse JSON objects, lists, and strings, some Python ``repr`` texts, and ``toString()`` of Java maps. Keep other values."""
    if value.__class__ is not str:
        return value
    head = (value := _TYPE_PREFIX.sub("", value) if value[:1] == "@" else value)[:1]
    if head in ("{", "["):
        if "}\n{" in value:  # JSON lines: a file, not a value
            return value
        if _REPR_START.match(value) and (found := python_value(value)) is not None:
            return found
        found, _ = jsonio.loads_or_text(value)
        return found if found.__class__ is not str else _with_messages(literals.java_value(value) or value)
    if head == '"' and value[-1:] == '"' and len(value) > 1:
        found, _ = jsonio.loads_or_text(value)
        return opened(found) if found[:1] in ("{", "[") else found
    is_call = value[-1:] == ")" and _CALL.match(value)
    found = _shown_message(value) if value.startswith("content=") else python_value(value) if is_call else None
    return value if found is None else found


def _with_messages(value: Any) -> Any:
    if value.__class__ is list:
        return [*map(_with_messages, value)]
    if value.__class__ is not dict:
        return value
    if literals.JAVA_CLASS in value:
        return dict(literals.java_message(value))
    return {key: _with_messages(inner) for key, inner in value.items()}


def _shown_message(text: str) -> dict[str, Any] | None:
    """Parse the ``str()`` of a LangChain message: ``content='…' additional_kwargs={} …``. Return None for other texts."""
    if (found := _SHOWN.match(text)) is None:
        return None
    try:
        content = literals.python_literal(found[1])
    except ValueError:
        return None
    if (call := re.search(r" tool_call_id='([^']*)'", text[found.end(1) :])) is not None:
        return {"role": "tool", "content": content, "tool_call_id": call[1]}
    return {"role": "assistant", "content": content}


def transcript(text: str) -> list[dict[str, Any]] | None:
    """Split text such as ``user: …`` into messages. Return None if the text doesn't begin with an author."""
    if _SPEAKER.match(text) is None:
        return None
    found = list(_SPEAKER.finditer(text))
    ends = [other.start() for other in found[1:]] + [len(text)]
    return [{"role": one[1].lower(), "content": text[one.end() : end].strip()} for one, end in zip(found, ends, strict=True)]


def python_value(text: str) -> Any:
    """Parse a Python ``repr``, and convert objects to dicts of their keyword arguments. Return None for truncated or other text."""
    if len(text) > _LONGEST_REPR:
        return None
    try:
        # Keep texts. Replace enums with their values, and objects without a value with None.
        shown = _SHOWN_OBJECT.sub(lambda found: found[0] if found[0][0] != "<" else found["value"] or "None", text)
        tree = literals.python_tree(shown)
        return plain(_value_of(tree.body, 0))
    except (ValueError, RecursionError):
        return None


def _value_of(node: ast.expr, depth: int) -> Any:
    if depth > 40:
        raise ValueError
    if isinstance(node, ast.Constant):
        return node.value if node.value.__class__ in (str, int, float, bool) or node.value is None else str(node.value)
    if isinstance(node, ast.Dict):
        pairs = zip(node.keys, node.values, strict=True)
        return {str(_value_of(key, depth + 1)): _value_of(inner, depth + 1) for key, inner in pairs if key is not None}
    if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
        return [_value_of(item, depth + 1) for item in node.elts]
    if isinstance(node, ast.Call):
        return _object_of(node, depth)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _value_of(node.operand, depth + 1)
        return -inner if isinstance(inner, (int, float)) else None
    if isinstance(node, (ast.Name, ast.Attribute)):
        return None
    raise ValueError


def _object_of(call: ast.Call, depth: int) -> Any:
    """Convert a call such as ``Order(id=1)`` to a dict with its keyword arguments, or to its only argument."""
    if call.keywords:
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        members = {word.arg.lstrip("_"): _value_of(word.value, depth + 1) for word in call.keywords if word.arg is not None}
        return _named(name, members)
    if not isinstance(call.func, (ast.Name, ast.Attribute)) or "." in ast.unparse(call.func).strip("."):
        raise ValueError
    return _value_of(call.args[0], depth + 1) if len(call.args) == 1 else None


def _named(name: str, members: dict[str, Any]) -> dict[str, Any]:
    if name in _MESSAGE_CLASSES and "type" not in members:
        return {"type": name, **members}
    if name == "ToolCall" and "tool_name" in members:
        return {"tool_call": members}
    if name == "ToolCallResult" and "origin" in members:
        origin = members["origin"]
        return {
            "tool_call_result": {**members, "origin": origin.get("tool_call", origin) if isinstance(origin, dict) else origin}
        }
    return members


def paths_of(keys: Iterable[str]) -> tuple[tuple[str, Path], ...]:
    """Pair attribute names with their paths. ``a.0.b`` and ``a[0].b`` have the same path. Omit names with more than 16 segments."""
    return tuple((key, path) for key in keys if len(path := _path(key)) <= _MAX_PATH)


def tree_of(attributes: Mapping[str, Any], paths: Iterable[tuple[str, Path]]) -> dict[str, Any]:
    """Nest attributes with dotted names into objects and lists. Values aren't parsed."""
    return {key: _lists(value) for key, value in branches_of(attributes, paths).items()}


def branches_of(attributes: Mapping[str, Any], paths: Iterable[tuple[str, Path]]) -> dict[str, Any]:
    """Nest attributes with dotted names into objects. If both ``a`` and ``a.b`` exist, the value of ``a`` gets the key ``""``."""
    root: dict[str, Any] = {}
    for key, path in paths:
        at = root
        for name in path[:-1]:
            inner = at.get(name)
            if inner.__class__ is not Branch:
                inner = at[name] = Branch() if inner is None else Branch({"": inner})
            at = inner
        last = path[-1]
        if at.get(last).__class__ is Branch:
            at[last][""] = attributes[key]
        else:
            at[last] = attributes[key]
    return root


@lru_cache(MOST_NAMES)
def _path(key: str) -> Path:
    return tuple((_BRACKETS.sub(r".\1", key) if "[" in key else key).replace(":", ".").split("."))


class Branch(dict[str, Any]):
    """Object built from attributes with dotted names. JSON objects in values are plain dicts instead."""


def _lists(value: Any) -> Any:
    if value.__class__ is not Branch:
        return value
    for key, inner in value.items():
        if inner.__class__ is Branch:
            value[key] = _lists(inner)
    if value and all(key.isdecimal() and len(key) <= 6 for key in value):
        return [value[key] for key in sorted(value, key=int)[:_MAX_INDEX]]
    return value
