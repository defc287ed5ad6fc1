"""These metrics are the opposites of ``code_contains`` and ``code_equals``. They have the same skip reasons and errors."""

from __future__ import annotations

from typing import Annotated, Any

from ...core.turn import Turn
from ..registry import Result, metric
from .text_matching import EXPECTED_OUTPUT, TextOrNumber, code_contains, code_equals


def _negated(found: Result) -> Result:
    return Result(not found.value, detail=found.detail)


@metric(needs=("output",), boolean=True)
def code_not_equals(turn: Turn, *, value: Annotated[TextOrNumber | dict[str, Any] | list[Any], EXPECTED_OUTPUT]) -> Result:
    """Check that the output differs from a given text or JSON value.

    The metric passes if ``code_equals`` fails. For example, if ``value`` is an object, an output that isn't JSON passes.

    Parameters:
        value: Value to compare with. See ``code_equals``.

    Detail: ``expected`` and ``actual`` (the first 200 characters of each).
    """
    return _negated(code_equals(turn, value=value))


@metric(needs=("output",), boolean=True)
def code_not_contains(turn: Turn, *, value: Annotated[TextOrNumber, EXPECTED_OUTPUT]) -> Result:
    """Check that the output doesn't contain a given string (case-sensitive).

    An empty output passes. An empty ``value`` is an error, as in ``code_contains``.

    Parameters:
        value: String to search for. See ``code_contains``. For several strings, use ``code_contains_any`` with ``inverse``.

    Detail: ``value``, as text.
    """
    return _negated(code_contains(turn, value=value))
