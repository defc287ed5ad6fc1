"""Negated checks on the output text. They are errors or skipped wherever the plain check is."""

from __future__ import annotations

from typing import Any

from ...core.turn import Turn
from ..registry import Result, metric
from .text_matching import TRUSYS_VALUE, TextOrNumber, code_contains, code_equals


def _negated(found: Result) -> Result:
    return Result(not found.value, detail=found.detail)


@metric(needs=("output",), boolean=True, spellings=TRUSYS_VALUE)
def code_not_equals(turn: Turn, *, value: TextOrNumber | dict[str, Any] | list[Any]) -> Result:
    """Whether the output is anything but the expected text or JSON value.

    Passes exactly where ``code_equals`` does not: also when ``value`` is an object or list and the output is not JSON.

    Parameters:
        value: required; as in ``code_equals``.

    Detail: ``expected``, ``actual``, the first 200 characters of each.

    Source: Trusys not-equals, whose name stands for ``code_equals`` with ``inverse``: the same values.
    """
    return _negated(code_equals(turn, value=value))


@metric(needs=("output",), boolean=True, spellings=TRUSYS_VALUE)
def code_not_contains(turn: Turn, *, value: TextOrNumber) -> Result:
    """Whether a text does not occur in the output, case-sensitive.

    An empty output passes. An empty ``value`` is an error, as in ``code_contains``.

    Parameters:
        value: required; as in ``code_contains``. For several texts use ``code_contains_any`` with ``inverse``.

    Detail: ``value``, as it was looked for.

    Source: Trusys not-contains, whose name stands for ``code_contains`` with ``inverse``: the same values.
    """
    return _negated(code_contains(turn, value=value))
