"""Find national identity numbers and IBANs in a text.

``data/identity_numbers.yaml`` lists the kinds of numbers, with their shapes, check digits, and the words that usually precede them.
Most kinds are found only after a word such as "passport", because many random numbers have valid check digits.

Because a search for dozens of shapes would be slow, kinds that require a word are found in three steps:

1. Find numbers that have at least four digits and aren't in ``given``.
2. Before each of these numbers, find a word that usually precedes a kind of number.
3. After the word, search only for the shape of this kind of number.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import cycle
from typing import NamedTuple

from ..core.files import load_yaml
from .redaction.numbers import luhn_valid
from .texts import FOLDER, in_small_letters, lazy, table

Check = Callable[[str], bool]


# --- validation functions, which data/identity_numbers.yaml refers to by name


def _weighted_sum(digits: str, weights: Iterable[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _divisible(modulus: int, weights: Iterable[int]) -> Check:
    each = tuple(weights)
    return lambda digits: _weighted_sum(digits, each) % modulus == 0


def _remainder(modulus: int, weights: Iterable[int]) -> Check:
    each = tuple(weights)
    return lambda digits: _weighted_sum(digits, each) % modulus % 10 == int(digits[-1])


def _both(one: Check, other: Check) -> Check:
    return lambda text: one(text) and other(text)


def _ends_with_11_minus(digits: str, weights: Iterable[int]) -> bool:
    """Return True if the last digit is 11 minus the other digits' weighted sum modulo 11. Results of 10 and 11 become 0."""
    return int(digits[-1]) == (11 - _weighted_sum(digits[:-1], weights) % 11) % 11 % 10


def _is_date(year: str, month: str, day: str) -> bool:
    try:
        datetime.date(int(year) if len(year) == 4 else 2000 + int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def _begins_with_date(digits: str) -> bool:
    return _is_date(digits[:2], digits[2:4], digits[4:6])


def _german(digits: str) -> bool:
    """Return True if the check digit of a German tax ID is valid (ISO 7064 MOD 11,10)."""
    product = 10
    for digit in digits[:-1]:
        product = ((int(digit) + product) % 10 or 10) * 2 % 11
    return digits[0] != "0" and (11 - product) % 10 == int(digits[-1])


_VALUES_AT_ODD_PLACES = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)  # fmt: skip


def _italian(text: str) -> bool:
    odd = sum(_VALUES_AT_ODD_PLACES[sign] for sign in text[:15:2])
    even = sum(int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in text[1:15:2])
    return chr(ord("A") + (odd + even) % 26) == text[15] and text != "RSSMRA85T10A562S"


def _spanish(text: str) -> bool:
    if len(text) != 9 or text[:-1] in ("12345678", "00000000", "11111111"):
        return False
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return text[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


def _brazilian(digits: str) -> bool:
    if len(set(digits)) == 1 or digits == "12345678909":
        return False
    return _ends_with_11_minus(digits[:10], range(10, 1, -1)) and _ends_with_11_minus(digits, range(11, 1, -1))


def _mexican(text: str) -> bool:
    signs = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    total = sum(signs.index(sign) * (18 - place) for place, sign in enumerate(text[:17]))
    return str(-total % 10) == text[17] and _is_date(text[4:6], text[6:8], text[8:10])


_PRINTED_SSNS = frozenset(("078051120", "219099999", "123456789", "111111111", "123121234", "457555462"))


def _us_ssn(digits: str) -> bool:
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000" and digits not in _PRINTED_SSNS


def _chinese(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    check_sign = "10X98765432"[_weighted_sum(text[:17], weights) % 11]
    return check_sign == text[17] and _is_date(text[6:10], text[10:12], text[12:14]) and text != "11010519491231002X"


_VERHOEFF_PRODUCTS = ("0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432", "7659821043", "8765932104", "9876543210")  # fmt: skip
_VERHOEFF_PERMUTATIONS = ("0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258")  # fmt: skip


def _aadhaar(digits: str) -> bool:
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = int(_VERHOEFF_PRODUCTS[check][int(_VERHOEFF_PERMUTATIONS[place % 8][int(digit)])])
    return check == 0 and digits[0] in "23456789" and len(set(digits)) > 3


def _indonesian(digits: str) -> bool:
    day = int(digits[6:8])
    return _is_date(digits[10:12], digits[8:10], str(day - 40 if day > 40 else day))  # days of women are 41 to 71


def _singaporean(text: str) -> bool:
    total = _weighted_sum(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(text[0], 0)
    letters = "JZIHGFEDCBA" if text[0] in "ST" else "XWUTRQPNMLK" if text[0] in "FG" else "KLJNPQRTUWX"
    return letters[total % 11] == text[8]


def _turkish(digits: str) -> bool:
    *numbers, tenth, eleventh = map(int, digits)
    odd, even = sum(numbers[::2]), sum(numbers[1::2])
    return (7 * odd - even) % 10 == tenth and (odd + even + tenth) % 10 == eleventh


CHECKS: Mapping[str, Check] = {
    "none": lambda _: True,
    "luhn": luhn_valid,
    "luhn_of_last_10": lambda digits: luhn_valid(digits[-10:]),
    "divisible_by_11": lambda digits: int(digits) % 11 == 0,
    "begins_with_date": _begins_with_date,
    "passport": lambda text: sum(map(str.isdigit, text)) >= 4,
    "driver_license": lambda text: 7 <= len(text) <= 18 and sum(map(str.isdigit, text)) >= 5,
    # Europe
    # Belgium: 97 minus the remainder. For births since 2000, the number starts with an added 2
    "belgian_national": lambda digits: int(digits[9:]) in (97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97),
    "bulgarian_egn": _remainder(11, (2, 4, 8, 5, 10, 9, 7, 3, 6)),
    "danish_cpr": lambda digits: _is_date(digits[4:6], digits[2:4], digits[:2]),  # since 2007 without a check digit
    "dutch_bsn": _both(_divisible(11, (9, 8, 7, 6, 5, 4, 3, 2, -1)), lambda digits: digits not in ("123456782", "111222333")),
    "finnish_henkilotunnus": _both(
        lambda text: _is_date(text[4:6], text[2:4], text[:2]),
        lambda text: "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[-4:-1]) % 31] == text[-1],
    ),
    # France: 97 minus the remainder. The departments of Corsica, 2A and 2B, become 19 and 18
    "french_nir": lambda text: int(text[:13].replace("2A", "19").replace("2B", "18")) % 97 == 97 - int(text[13:]),
    "german_tax": _german,
    "italian_codice_fiscale": _italian,
    "norwegian_fodselsnummer": _both(
        _divisible(11, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)), _divisible(11, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1))
    ),
    "polish_pesel": _both(  # the month includes a multiple of 20 for the century
        _divisible(10, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1)), lambda digits: 1 <= int(digits[2:4]) % 20 <= 12
    ),
    "portuguese_nif": lambda digits: _ends_with_11_minus(digits, range(9, 1, -1)),
    # a remainder of 10 counts as 1
    "romanian_cnp": lambda digits: "01234567891"[_weighted_sum(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11] == digits[12],
    "russian_inn": _both(
        lambda digits: _weighted_sum(digits, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10 == int(digits[10]),
        _remainder(11, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)),
    ),
    "russian_snils": lambda digits: _weighted_sum(digits, range(9, 0, -1)) % 101 % 100 == int(digits[9:]),
    "spanish_dni": _spanish,
    "swiss_ahv": _both(_divisible(10, (*(1, 3) * 6, 1)), lambda digits: digits != "7569217076985"),
    "uk_national_insurance": lambda text: (
        text[:2] not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ") and text[2:8] not in ("123456", "000000")
    ),
    "uk_nhs": _divisible(11, range(10, 0, -1)),
    "ukrainian_rnokpp": _remainder(11, (-1, 5, 7, 9, 4, 6, 10, 5, 7)),
    # America
    "argentine_cuit": _divisible(11, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)),
    "brazilian_cpf": _brazilian,
    "chilean_rut": lambda text: "0123456789K"[-_weighted_sum(text[-2::-1], cycle(range(2, 8))) % 11] == text[-1],
    "mexican_curp": _mexican,
    "us_ssn": _us_ssn,
    # Asia, Africa and Australia
    "arabic_identity": lambda digits: len(digits) == 14 or luhn_valid(digits),  # 14 digits in Egypt, 10 in Saudi Arabia
    "australian_tfn": _divisible(11, (1, 4, 3, 7, 5, 8, 6, 9, 10)),
    "chinese_resident": _chinese,
    "indian_aadhaar": _aadhaar,
    "indian_pan": lambda text: text[5:9] not in ("1234", "0000"),
    "indonesian_nik": _indonesian,
    "japanese_my_number": lambda digits: _ends_with_11_minus(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)),
    "korean_resident": lambda digits: _begins_with_date(digits) and digits[6] in "12345678",
    "singaporean_nric": _singaporean,
    "south_african_identity": _both(luhn_valid, _begins_with_date),
    "thai_identity": lambda digits: (11 - _weighted_sum(digits[:12], range(13, 1, -1)) % 11) % 10 == int(digits[12]),
    "turkish_identity": _turkish,
}
"""Validation functions by name. They receive a number in upper case without separators. Some also reject documentation samples."""


# --- numbers of persons


class _NumberKind(NamedTuple):
    name: str
    """Kind of number: ``ssn``, ``national_id``, ``passport``, or ``driver_license``."""
    words: tuple[str, ...]
    word: re.Pattern[str]
    shape: str
    number: re.Pattern[str]
    is_valid: Check


@cache
def _kinds(*, named: bool) -> tuple[_NumberKind, ...]:
    """Return the kinds of numbers that require a preceding word or, if ``named`` is false, all other kinds."""
    return tuple(
        _NumberKind(
            row.get("kind", "national_id"),
            words := tuple(row.get("words", ())),
            lazy("|".join(words)),
            row["shape"],
            lazy(f"(?<![A-Za-z0-9])(?:{row['shape']})(?![A-Za-z0-9])(?!-[0-9])"),
            CHECKS[row.get("check", "none")],
        )
        for row in load_yaml(FOLDER / "identity_numbers.yaml")
        if bool(row.get("words")) == named
    )


def _any_word(*, ascii_only: bool) -> str:
    words = dict.fromkeys(word for kind in _kinds(named=True) for word in kind.words)
    used = [word for word in words if not ascii_only or re.sub(r"\[[^]]*\]", "", word).isascii()]
    bounded = "|".join(word.removeprefix(r"\b") for word in used if word.startswith(r"\b"))
    return "|".join([rf"\b(?:{bounded})", *(word for word in used if not word.startswith(r"\b"))])  # one test of the boundary


_UNNAMED = lazy(
    lambda: (
        rf"(?<![A-Za-z0-9])(?<![0-9][.,/:-])(?:{'|'.join(f'({kind.shape})' for kind in _kinds(named=False))})"
        r"(?![A-Za-z0-9])(?![.,:/-][0-9])"
    )
)
"""Pattern for numbers that don't require a preceding word. Each kind of number has its own capturing group."""
_ANY_WORD = lazy(lambda: _any_word(ascii_only=False))
_ANY_ASCII_WORD = lazy(lambda: _any_word(ascii_only=True))
_CANDIDATE = lazy(r"(?<![A-Za-z0-9])[A-Z]{0,6}[- ]?[0-9](?:[ .,\-/]{0,2}[A-Z0-9]){3,24}")
_LEAST_DIGITS = 4
_AROUND_DIGITS = " .,-/ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REACH = 60
"""Maximum number of characters between a word such as "passport" and its number."""
_LONGEST_NUMBER = 30
_LONGEST_WORD = 40


def identity_numbers(text: str, given: str = "") -> Iterable[tuple[str, int, int, bool]]:
    """Yield ``(kind, start, end, is_valid)`` of identity numbers. Skip numbers in ``given`` if their kind requires a word."""
    for found in _UNNAMED.finditer(text):
        kind = _kinds(named=False)[(found.lastindex or 1) - 1]
        if kind.is_valid(_without_separators(found.group())):
            yield kind.name, found.start(), found.end(), True
    lowered = in_small_letters(text)
    any_word = _ANY_ASCII_WORD if lowered.isascii() else _ANY_WORD
    tried: set[int] = set()
    skipped: dict[str, bool] = {}  # repeated numbers are searched once, because ``given`` can be long
    for found in _CANDIDATE.finditer(text):
        candidate = found.group()
        if candidate not in skipped:
            skipped[candidate] = sum(map(str.isdigit, candidate)) < _LEAST_DIGITS or candidate.strip(_AROUND_DIGITS) in given
        if skipped[candidate]:
            continue
        for word in any_word.finditer(lowered, max(0, found.start() - _REACH), found.end()):
            if word.end() not in tried:
                tried.add(word.end())
                yield from _first_number_after(text, lowered, word.end())


def _first_number_after(text: str, lowered: str, word_end: int) -> Iterator[tuple[str, int, int, bool]]:
    """Yield the number after a word, if possible of a kind for which it is valid."""
    before = lowered[max(0, word_end - _LONGEST_WORD) : word_end]
    last_start = min(len(text), word_end + _REACH)
    invalid: tuple[str, int, int, bool] | None = None
    for kind in _kinds(named=True):
        if not any(word.end() == len(before) for word in kind.word.finditer(before)):
            continue
        found = kind.number.search(text, word_end, last_start + _LONGEST_NUMBER)
        if found is None or found.start() > last_start:
            continue
        if kind.is_valid(_without_separators(found.group())):
            yield kind.name, found.start(), found.end(), True
            return
        invalid = invalid or (kind.name, found.start(), found.end(), False)
    if invalid is not None:
        yield invalid


_SEPARATORS = lazy(r"[\W_]+")


def _without_separators(text: str) -> str:
    return _SEPARATORS.sub("", text).upper()


# --- bank accounts

_IBAN = lazy(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Za-z0-9]{4}){2,7}(?:[ \u00a0-]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_ONE_CASE = lazy("[A-Z0-9]+|[a-z]{2}[0-9]+[a-z]{0,5}[0-9]+")  # unlike random text in lower case


def ibans(text: str) -> Iterable[tuple[int, int]]:
    known = table("ibans.json")
    lengths, samples = known["lengths"], known["samples"]
    at = 0
    while (found := _IBAN.search(text, at)) is not None:
        start, at = found.start(), found.start() + 4  # the match can contain another IBAN after a word
        written = _SEPARATORS.sub("", found.group())  # can include a word after the IBAN
        length = lengths.get(written[:2].upper(), 0)
        iban = written[:length].upper()
        if not length or len(iban) < length or iban in samples or not _ONE_CASE.fullmatch(written[:length]):
            continue
        if int("".join(str(int(sign, 36)) for sign in iban[4:] + iban[:4])) % 97 == 1:
            end = start
            for _ in range(length):
                while not text[end].isalnum():
                    end += 1
                end += 1
            yield start, (at := end)
