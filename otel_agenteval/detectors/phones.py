"""Find phone numbers that a country has issued. ``phonenumbers`` is imported only if a text might contain such a number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import chain, islice
from typing import NamedTuple

from .redaction.numbers import digits_of, parsed, phone_library
from .texts import lazy, words


class DigitRow(NamedTuple):
    start: int
    end: int
    written: str
    may_stand_alone: bool
    """True if the prefix or the grouping identifies a phone number. Other numbers require a nearby word such as "phone"."""


_ROW = lazy(
    r"(?<![\w@#$€£%&=/?.,+-])(?<![0-9][:,])(?:\+|00)?[ (]{0,2}[0-9](?:[ .\-/()\u00b7]{0,3}(?:(?<=\))\n)?[0-9]){5,16}(?![0-9])(?![.,:/-][0-9])(?![%€$£@]|\w)"
)
_AFTER_EAST_ASIAN = lazy(r"(?<=[\u0590-\u08ff\u3040-\ud7ff])(?:\+|00)?[ (]{0,2}[0-9](?:[ .\-/()]{0,3}[0-9]){6,14}(?![0-9])(?![.,:/-][0-9])(?![%A-Za-z])")  # fmt: skip
_DATE = lazy(
    r"(?:19|20)[0-9]{2}[-./ ][01]?[0-9][-./ ][0-3]?[0-9]|[0-3]?[0-9][-./ ][0-3]?[0-9][-./ ](?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}[01][0-9][0-3][0-9]"
)
_THOUSANDS = lazy(r"[1-9][0-9]{0,2}(?:([ .])[0-9]{3})(?:\1[0-9]{3})+")
_DIALLED = lazy(
    r"\(?[2-9][0-9]{2}\)[ .\n-]{0,2}[2-9][0-9]{2}[ .-][0-9]{4}|[2-9][0-9]{2}([.-])[2-9][0-9]{2}\1[0-9]{4}|0[1-9](?:\.[0-9]{2}){4}|0[67](?: [0-9]{2}){4}|06-[0-9]{8}|0[1-9]0[- ][0-9]{3,4}[- ][0-9]{4}|05[0-9]-[0-9]{7}|\([1-9][0-9]\) ?9?[0-9]{4}-[0-9]{4}"
    r"|8 ?\(9[0-9]{2}\) ?[0-9]{3}[ -]?[0-9]{2}[ -]?[0-9]{2}|01[567][0-9][ /-][0-9]{7,8}|07[0-9]{3} [0-9]{3} ?[0-9]{3}|0[2378][0-9]{1,3}[ -][0-9]{3,4} ?[0-9]{4}"
)
"""Pattern for groups of digits that rarely occur outside phone numbers."""
_RESERVED = lazy(
    r"1?[2-9][0-9]{2}555(?:01[0-9]{2})|1?5550[0-9]{3}|(?:44|0)?(?:7700900|2079460|1632960|1134960|1144960|1154960|1164960|1174960|1184960|1214960|1314960|1414960|1514960|1614960|1914980|2890180|2920180|8081570|9098790|3069990)[0-9]{3}"
    r"|(?:61|0)?(?:491570|491571|255501|355501|755501|855501)[0-9]{3,4}|(?:33|0)?(?:199000|2619100|3535301|465719|5369000|639980)[0-9]{3,4}|(?:49|0)?(?:3023125|6990009|4066969|221 ?4710|8999998)[0-9]{2,5}"
    r"|1?1?234567890?|0?123456789|.*00000.*|.*99999.*"
)
"""Pattern for numbers that are reserved for films and documentation."""
_AT_MOST = 200


def rows(text: str) -> Iterator[DigitRow]:
    """Yield digits that look like a phone number, except dates and reserved numbers."""
    found_after = () if text.isascii() else _AFTER_EAST_ASIAN.finditer(text)
    for found in islice(chain(_ROW.finditer(text), found_after), _AT_MOST):
        start, written = found.start(), found.group().rstrip(" .-/(\n")
        lead = len(written) - len(written.lstrip(" "))
        start, written = start + lead, written[lead:]
        digits = digits_of(written)
        if not 7 <= len(digits) <= 16 or _DATE.search(written) is not None:
            continue
        if _RESERVED.fullmatch(digits.removeprefix("00")) is not None or len(set(digits)) < 4:
            continue
        alone = written.lstrip("(").startswith(("+", "00")) or _DIALLED.fullmatch(written) is not None
        yield DigitRow(start, start + len(written), written.replace("\n", " "), alone and _THOUSANDS.fullmatch(written) is None)


@lru_cache(maxsize=512)
def national_digits(written: str) -> str | None:
    """Return a phone number's digits without prefixes, or None if :func:`_issued_numbers` doesn't yield the number."""
    return next((digits for digits, _ in _issued_numbers(written)), None)


@lru_cache(maxsize=512)
def is_fixed_line(written: str) -> bool:
    """Return False if a country issued the number as another kind than a fixed line. Organizations often publish fixed lines."""
    return all(kind == phone_library().PhoneNumberType.FIXED_LINE for _, kind in _issued_numbers(written))


def _issued_numbers(written: str) -> Iterator[tuple[str, int]]:
    """Yield a number's national digits and type for each known issuing country, except toll-free and other special numbers."""
    library = phone_library()
    types = library.PhoneNumberType
    regions: Iterable[str | None] = words("phones.txt", "regions")
    if written.lstrip("(").startswith(("+", "00")):
        written, regions = re.sub(r"\A\(?00", "+", written).replace("(0)", ""), (None,)
    for region in regions:
        if (number := parsed(written, region)) is None:
            continue
        if library.is_valid_number(number) if region is None else library.is_valid_number_for_region(number, region):
            kind = library.number_type(number)
            if kind not in (types.TOLL_FREE, types.PREMIUM_RATE, types.SHARED_COST, types.UAN, types.VOICEMAIL, types.PAGER):
                yield str(number.national_number), kind
