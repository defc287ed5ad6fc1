"""Comparisons of the number in the output.

An output that is one number as a whole is that number: optional sign, digits with or without ``,`` between groups of three,
decimal point, exponent, a currency symbol before it or ``%`` after it (which does not divide). Otherwise the number is looked
for among the numbers in the text, as ``extract`` says. ``NaN`` and ``Infinity`` are not numbers.
"""

from __future__ import annotations

import decimal
import itertools
import math
import operator
import re
import unicodedata
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Literal

from annotated_types import Ge, Predicate

from ...core.errors import MetricError
from ...core.turn import Turn
from ..registry import Result, metric
from .text_matching import TRUSYS_VALUE

Extract = Literal["only", "first", "last"]

_WHOLE = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<currency>[^\w\s.,+%-])\s*(?P<inner_sign>[-+]?))?"
    r"(?P<digits>(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?P<exponent>(?:[eE][-+]?\d+)?)\s*%?"
)
_TOKEN = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
_EXACT = decimal.Context(prec=700)
"""Digits enough to add any two floats without rounding."""
_EXACT_INTEGERS = Decimal(10) ** 15


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", ""))
    except decimal.InvalidOperation:  # an exponent beyond all bounds
        return None


def _whole_number(text: str) -> Decimal | None:
    """The number that the text is, or None."""
    found = _WHOLE.fullmatch(text.strip())
    if found is None:
        return None
    currency, inner_sign = found["currency"], found["inner_sign"] or ""
    if currency and (unicodedata.category(currency) != "Sc" or (found["sign"] and inner_sign)):
        return None
    return _decimal(found["sign"] + inner_sign + found["digits"] + found["exponent"])


def _number(text: str, extract: Extract) -> Decimal | None:
    whole = _whole_number(text)
    if whole is not None:
        return whole
    tokens = (found[0] for found in _TOKEN.finditer(text))
    if extract == "first":
        picked = list(itertools.islice(tokens, 1))
    elif extract == "last":
        picked = list(deque(tokens, maxlen=1))
    else:
        picked = list(itertools.islice(tokens, 2))
    return _decimal(picked[0]) if len(picked) == 1 else None


def _configured(value: str | float) -> Decimal | None:
    return _whole_number(value) if isinstance(value, str) else Decimal(str(value))


def _is_number(value: str | float) -> bool:
    if isinstance(value, bool):
        return False
    number = _configured(value)
    return number is not None and math.isfinite(float(number))


Number = Annotated[str | bool | int | float, Predicate(_is_number)]
"""A finite number, or a text that is one. (``bool`` is listed so that it can be refused: otherwise it would be read as 0 or 1.)"""


def _shown(number: Decimal) -> float | str:
    """The number for ``detail``: an int where it is a whole number, and text where it is beyond any float."""
    if -_EXACT_INTEGERS < number < _EXACT_INTEGERS and number == int(number):
        return int(number)
    near = float(number)
    return near if math.isfinite(near) else str(number)[:40]


def _compared(turn: Turn, value: str | float, extract: Extract, holds: Callable[[Decimal, Decimal], bool]) -> Result:
    """Whether it ``holds`` between the output's number and the configured one."""
    wanted = _configured(value)
    if wanted is None:
        raise MetricError("invalid_parameter", "value must be a number")
    number = _number(turn.output or "", extract)
    if number is None:
        return Result(False, detail={"reason": "no_number", "number": None, "value": _shown(wanted)})
    return Result(holds(number, wanted), detail={"number": _shown(number), "value": _shown(wanted)})


@metric(needs=("output",), boolean=True, aliases=("trusys:equals-number",), spellings=TRUSYS_VALUE)
def code_equals_number(
    turn: Turn,
    *,
    value: Number,
    tolerance: Annotated[float, Ge(0), Predicate(math.isfinite)] = 0.0,
    extract: Extract = "only",
) -> Result:
    """Whether the number in the output is the expected one.

    An output that is one number as a whole is that number: ``42``, ``42.0``, ``-1,234.5``, ``1e3``, ``$5`` and ``15%`` (which
    is 15) are. Otherwise the numbers in the text are looked at, as ``extract`` says; an output without such a number fails.
    Numbers are compared as decimals, so that 0.3 is exactly 0.1 away from 0.2.

    Parameters:
        value: required; a number, or a text that is one. Trusys also spells it ``expected_output`` and ``expcted_output``.
        tolerance: the largest distance that still counts as equal.
        extract: which number of a longer text counts: ``first``, ``last``, or ``only``, where there must be exactly one.

    Detail: ``number`` (null when there is none), ``value``; ``reason`` ``no_number``.

    Source: Trusys equals-number.
    """
    slack = Decimal(str(tolerance))
    return _compared(
        turn, value, extract, lambda number, wanted: _EXACT.subtract(wanted, slack) <= number <= _EXACT.add(wanted, slack)
    )


@metric(needs=("output",), boolean=True, aliases=("trusys:greater-than",), spellings=TRUSYS_VALUE)
def code_greater_than(turn: Turn, *, value: Number, extract: Extract = "only") -> Result:
    """Whether the number in the output is greater than a bound; one that is equal is not.

    The number is found as in ``code_equals_number``; an output without one fails.

    Parameters:
        value: required; the bound, a number or a text that is one.
        extract: as in ``code_equals_number``.

    Detail: ``number`` (null when there is none), ``value``; ``reason`` ``no_number``.

    Source: Trusys greater-than.
    """
    return _compared(turn, value, extract, operator.gt)


@metric(needs=("output",), boolean=True, aliases=("trusys:less-than",), spellings=TRUSYS_VALUE)
def code_less_than(turn: Turn, *, value: Number, extract: Extract = "only") -> Result:
    """Whether the number in the output is less than a bound; one that is equal is not.

    The number is found as in ``code_equals_number``; an output without one fails.

    Parameters:
        value: required; the bound, a number or a text that is one.
        extract: as in ``code_equals_number``.

    Detail: ``number`` (null when there is none), ``value``; ``reason`` ``no_number``.

    Source: Trusys less-than.
    """
    return _compared(turn, value, extract, operator.lt)
