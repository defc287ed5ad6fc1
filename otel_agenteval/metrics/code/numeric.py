"""These metrics compare a number in the output with an expected number or a limit.

If the output contains only a number, the metric compares this number. The number can have a sign (``-``, ``+``, or ``−``), a
decimal point, an exponent, a currency symbol, or a trailing ``%`` (``15%`` is 15). A comma, an apostrophe, a non-breaking space, or
LaTeX's ``{,}`` can separate groups of three digits (``1,234`` is 1234). ``3 × 10^8`` is 300000000. The metric also reads other
notations if they are unambiguous: ``4,2``, ``0,125``, and ``1999,99`` have a decimal comma, ``12,34,567`` is 1234567, and
``1.234,56`` is 1234.56. ``(4,2)``, ``ports 8080,8443``, and ``in 2024,12 people`` contain two numbers each.

If the output contains other text, ``extract`` selects the number. A hyphen after a digit or Latin letter isn't a sign: ``COVID-19``
contains 19, and ``3-5`` contains 3 and 5. ``NaN`` and ``Infinity`` aren't numbers.
"""

from __future__ import annotations

import decimal
import math
import operator
import re
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from typing import Annotated, Literal

from annotated_types import Ge, Predicate

from ...core.errors import MetricError
from ...core.turn import Turn
from ...detectors.numbers.reading import readings_of
from ..registry import Result, metric
from .text_matching import EXPECTED_OUTPUT

Extract = Literal["only", "first", "last"]

_WHOLE = re.compile(
    r"(?P<sign>[-+]?)(?:(?P<currency>[^\w\s.,+%-])\s*(?P<inner_sign>[-+]?))?"
    r"(?P<digits>(?:(?!0)\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?P<exponent>(?:[eE][-+]?\d+)?)\s*[%$\xa3\xa5\u20a0-\u20cf]?"
)
_TOKEN = re.compile(
    r"(?:(?<![^\W_\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\uabff])(?<!\d[)\]])(?<![%\xb0])([-+])[$\xa3\xa5\u20a0-\u20cf]?)?"
    r"((?:(?!0)\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|(?<![\w.])\.\d+)"
)
"""Pattern for the sign and digits of a number in a text. A sign can follow a letter only in scripts without spaces."""
_BOUND = re.compile(r"(?:(?<!<)[<≤≥]=?|>=|(?<=[^\s>] )>)\s*[$\xa3\xa5\u20a0-\u20cf]?\Z")
"""Matches a comparison sign before a number: ``<42``, ``x > 42``. Block quotes (``> 42``), arrows, and tags don't match."""
_MINUS = str.maketrans("\u2212\ufe63\uff0d", "---")
_RAISED = str.maketrans("\u207b⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_THOUSANDS = re.compile(r"(?<=[0-9])(?:\{,\}|\\[, ])(?=[0-9]{3}(?![0-9]))")  # 9{,}500 in LaTeX
_POWER = re.compile(
    r"(?<=[0-9])\s?(?:[×·⋅*x]|\\times|\\cdot)\s?10(?:(?:\^|\*\*)\{?([-+\u2212]?[0-9]{1,3})(?![.,]?[0-9])\}?|([\u207b⁰¹²³⁴-⁹][⁰¹²³⁴-⁹]{0,2}))"
)  # 3 × 10^8, 3·10⁻⁸
_SEPARATED = re.compile(
    r"(?<![0-9.,])([\[({]?)([0-9]+(?:[,'\u2019\xa0\u2009\u202f][0-9]+|\.[0-9]{3}(?![0-9]))+(?:\.[0-9]+)?)(?![.,]?[0-9])([\])}]?)"
)
"""Pattern for digits with separators other than one decimal point, including brackets around the digits."""
_EXACT = decimal.Context(prec=700)  # context with enough digits to add any two floats without rounding
_EXACT_INTEGERS = Decimal(10) ** 15
_PAIR = re.compile(
    r"[0-9]{4,},[0-9]{4,}|(?:(?<=\bin )|(?<=\b(?:since|until) )|(?<=\byear ))(?:19|20)[0-9]{2},[0-9]{2,}", re.IGNORECASE
)


def _plain(text: str) -> str:
    """Normalize number notations: ``−`` → ``-``, ``× 10^8`` → ``e8``, ``1,234`` → ``1234``."""
    text = _THOUSANDS.sub(",", _POWER.sub(lambda found: f"e{found[1] or found[2].translate(_RAISED)}", text))
    return _SEPARATED.sub(_without_separators, text.translate(_MINUS))


def _without_separators(found: re.Match[str]) -> str:
    opening, number, closing = found.groups()
    *whole, last = re.split("[^0-9]", number)
    readings = readings_of(number)
    is_several = opening and closing and {*number} <= {*"0123456789,"}  # (4,2)
    is_address = {*number} <= {*"0123456789."}  # 192.168.100.200
    is_pair = found[0] != found.string and _PAIR.fullmatch(found.string, *found.span(2))  # in 2024,12 people
    if len(readings) != 1 or len(readings[0]) != 1 or is_several or is_address or is_pair:
        return found[0]
    ((_, half_a_unit),) = readings[0]
    return f"{opening}{''.join(whole)}{'.' if half_a_unit < 0.5 else ''}{last}{closing}"


def _decimal(text: str) -> Decimal | None:
    try:
        return Decimal(text.replace(",", ""))
    except decimal.InvalidOperation:  # an exponent out of range
        return None


def _whole_number(text: str) -> Decimal | None:
    if (found := _WHOLE.fullmatch(_plain(text).strip())) is None:
        return None
    currency, inner_sign = found["currency"], found["inner_sign"] or ""
    if currency and (unicodedata.category(currency) != "Sc" or (found["sign"] and inner_sign)):
        return None
    return _decimal(found["sign"] + inner_sign + found["digits"] + found["exponent"])


def _configured(value: str | float) -> Decimal | None:
    return _whole_number(value) if isinstance(value, str) else Decimal(str(value))


def _is_number(value: str | float) -> bool:
    return not isinstance(value, bool) and (number := _configured(value)) is not None and math.isfinite(float(number))


Number = Annotated[str | bool | int | float, Predicate(_is_number), "number or string"]
"""A finite number, or its text. Without ``bool`` in the type, a boolean would become 0 or 1 before the predicate can reject it."""


def _shown(number: Decimal) -> float | str:
    if -_EXACT_INTEGERS < number < _EXACT_INTEGERS and number == int(number):
        return int(number)
    near = float(number)
    return near if math.isfinite(near) else str(number)[:40]


def _compared(turn: Turn, value: str | float, extract: Extract, holds: Callable[[Decimal, Decimal], bool]) -> Result:
    if (wanted := _configured(value)) is None:
        raise MetricError("invalid_parameter", "value: must be a number")
    text = turn.output or ""
    what = "limit" if holds in (operator.gt, operator.lt) else "expected number"
    is_bound = False
    if (number := _whole_number(text)) is None:
        plain = _plain(text)
        numbers = [*_TOKEN.finditer(plain)]
        if len(numbers) == 1 or (numbers and extract != "only"):
            token = numbers[-1 if extract == "last" else 0]
            number = _decimal((token[1] or "") + token[2])
            is_bound = what != "limit" and _BOUND.search(plain[: token.start()]) is not None and plain[token.end() :][:1] != ">"
    detail = {"number": None if number is None else _shown(number), "value": _shown(wanted)}
    if number is not None and not is_bound and holds(number, wanted):
        return Result(True, detail=detail)
    found = detail["number"] if number is not None else "several numbers" if len(numbers) > 1 else "no number"
    found = f"a limit of {found}" if is_bound else found
    why = f"found {found}, but the {what} is {detail['value']}"
    return Result(False, explanation=why, detail={"reason": "no_number", **detail} if number is None else detail)


@metric(needs=("output",), boolean=True, aliases=("trusys:equals-number",), version="2")
def code_equals_number(
    turn: Turn,
    *,
    value: Annotated[Number, EXPECTED_OUTPUT],
    tolerance: Annotated[float, Ge(0), Predicate(math.isfinite)] = 0.0,
    extract: Extract = "only",
) -> Result:
    """Check that the number in the output equals an expected number.

    An output without a number fails. A comparison sign before the number, as in ``< 42``, usually fails too. The metric ignores
    comparisons in words, so ``at most 42`` equals 42. Numbers are decimals, so 0.3 and 0.2 are within a ``tolerance`` of 0.1.

    Parameters:
        value: Expected number, as a number or as text. Aliases: ``expected_output``, ``expcted_output`` (spelled as in Trusys).
        tolerance: Maximum difference between numbers that count as equal.
        extract: Which number to compare if the output contains other text. With ``only``, an output with several numbers fails.

    Detail: ``number`` and ``value``. Without a number to compare, ``number`` is null and ``reason`` is ``no_number``.
    """
    slack = Decimal(str(tolerance))
    return _compared(
        turn, value, extract, lambda number, wanted: _EXACT.subtract(wanted, slack) <= number <= _EXACT.add(wanted, slack)
    )


@metric(needs=("output",), boolean=True, aliases=("trusys:greater-than",), version="2")
def code_greater_than(turn: Turn, *, value: Annotated[Number, EXPECTED_OUTPUT], extract: Extract = "only") -> Result:
    """Check that the number in the output is greater than a limit.

    A number that equals the limit fails. An output without a number also fails.

    Parameters:
        value: Limit. For details, see ``code_equals_number``.
        extract: Which number to compare. See ``code_equals_number``.

    Detail: ``number`` and ``value``. Without a number to compare, ``number`` is null and ``reason`` is ``no_number``.
    """
    return _compared(turn, value, extract, operator.gt)


@metric(needs=("output",), boolean=True, aliases=("trusys:less-than",), version="2")
def code_less_than(turn: Turn, *, value: Annotated[Number, EXPECTED_OUTPUT], extract: Extract = "only") -> Result:
    """Check that the number in the output is less than a limit.

    A number that equals the limit fails. An output without a number also fails.

    Parameters:
        value: Limit. For details, see ``code_equals_number``.
        extract: Which number to compare. See ``code_equals_number``.

    Detail: ``number`` and ``value``. Without a number to compare, ``number`` is null and ``reason`` is ``no_number``.
    """
    return _compared(turn, value, extract, operator.lt)
