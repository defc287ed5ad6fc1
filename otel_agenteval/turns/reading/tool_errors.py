"""Recognize failed tools, and tools that a person didn't approve, by their results."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...core import jsonio
from ...core.turn import ErrorInfo, ToolState
from ...dialects.payloads import says_failed, unquoted, unwrap_result

_FAILED_TEXT = ("error:", "error executing", "traceback (most recent call last)", "exception:", "tool error:")
_EXCEPTION = re.compile(r"(?:[a-z_]\w*\.)*([A-Z]\w*(?:Error|Exception|Timeout)): ?")
_NOT_A_TOOL_S = re.compile(
    r"max(?:imum)?[ _]?(?:number of )?(?:steps|turns|iterations|rounds|tokens)|(?:recursion|usage|request|token)s?[ _]?limit|rate[ _]?limit|"
    r"(?:error|status|code|http)\W{0,3}[45]\d\d\b|\b[45]\d\d\b \w{0,12} ?(?:request|server|error|gateway|unavailable)|statuserror|api\w{0,20}error|"
    r"server ?(?:had an ?)?error|unavailable|overloaded|too ?many ?requests|cancelled",
    re.IGNORECASE,
)
"""Errors that come from a loop's limits or a model."""
_LONGEST_REFUSAL = 300
"""Maximum characters of a result that says only why a tool didn't run."""
_DECLINED = re.compile(
    r"\b(?:user|human|operator|reviewer)\b (?:has |have )?(?:declined|denied|rejected|refused|doesn't want|did(?:n't| not) (?:approve|allow|accept|confirm))\b|"
    r"\btool(?: call| use| execution| request)? (?:was |is |has been )?(?:denied|rejected|declined|not approved)\b",
    re.IGNORECASE,
)
_WAITS = re.compile(
    r"\btool(?: call| use| execution)? (?:is )?(?:requires?|needs?|awaits|awaiting|waiting for|pending)(?: \w+)? (?:approval|confirmation)\b",
    re.IGNORECASE,
)


def error_in(result: Any) -> ErrorInfo | None:
    """Return the failure that a tool's result reports as text or in an object."""
    if isinstance(result, str):
        result = unquoted(result)
    if isinstance(result, str):
        if result[:40].lower().startswith(_FAILED_TEXT):
            return ErrorInfo("tool_error", result[:200])
        exception = _EXCEPTION.match(result)
        if exception is not None:
            return ErrorInfo(exception[1], result[exception.end() :][:200])
        if result[:1] != "{":
            return None
        try:
            result = jsonio.loads(result)
        except ValueError:
            return None
    if isinstance(result, dict):
        message = result.get("error") or result.get("error_message") or result.get("error_details")
        if message or says_failed(result):
            return ErrorInfo("tool_error", jsonio.text_of(message)[:200] if message else None)
    return None


def error_by_flag(raw: Any) -> ErrorInfo | None:
    """Return the failure that a flag beside a result reports. Unwrapping the result loses the flag."""
    if raw.__class__ is str:
        if raw[:1] != "{" or ("rror" not in raw[-200:] and "rror" not in raw[:200]):
            return None
        raw, _ = jsonio.loads_or_text(raw)
    if isinstance(raw, Mapping) and "content" in raw and says_failed(raw):
        return ErrorInfo("tool_error", jsonio.text_of(unwrap_result(raw))[:200])
    return None


def error_of_last_tool(error: ErrorInfo | None) -> ErrorInfo | None:
    """Return a turn's error as the error of its last tool. Returns None if the loop or its model caused it."""
    text = f"{error.type} {error.message}" if error is not None else ""
    return None if _NOT_A_TOOL_S.search(text) else error


def state_of(error: ErrorInfo | None, result: Any) -> ToolState:
    """Return the state that an error or a result reports for a call that a person had to approve."""
    text = (error.message if error is not None and error.message else result) or ""
    if text.__class__ is not str or len(text) > _LONGEST_REFUSAL:
        return "executed"
    return "declined" if _DECLINED.search(text) else "requested" if _WAITS.search(text) else "executed"
