"""Type-safe access to server responses, in which any value can have the wrong type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ....core import jsonio
from ....core.errors import JudgeError

_LARGEST_COUNT = 10**9


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, (dict, Mapping)) else {}  # nearly always a dict, for which the check is much faster


def mappings(value: Any) -> Iterator[Mapping[str, Any]]:
    return (item for item in value if isinstance(item, (dict, Mapping))) if isinstance(value, list) else iter(())


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def said(words: str, role: Any, stop: Any) -> str:
    """Return the model's final text. If another role wrote the text or if the model stopped to call a tool, return ``""``."""
    is_final = role in (None, "", "assistant", "model") and text(stop).lower() not in ("tool_calls", "function_call", "tool_use")
    return words if is_final else ""


def count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST_COUNT else None


def is_object(words: str) -> bool:
    try:
        return isinstance(jsonio.loads(words), dict)
    except ValueError:
        return False


def failed(provider: str) -> JudgeError:
    return JudgeError(f"{provider} failed during the reply", "server_error")


def no_answer(provider: str) -> JudgeError:
    return JudgeError(f"the reply doesn't have the format of {provider}", "invalid_answer")
