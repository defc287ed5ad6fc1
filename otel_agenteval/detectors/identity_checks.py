"""Check digits, dates and other rules of identity numbers, by the names in ``data/identity_numbers.yaml``.

A check gets the letters and digits of a number, in upper case and without separators, and the number has the shape in the table.
Numbers that are printed in documentation are invalid.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from itertools import cycle

from .redaction.numbers import luhn_valid

Check = Callable[[str], bool]


def _weighted_sum(digits: str, weights: Iterable[int]) -> int:
    return sum(int(digit) * weight for digit, weight in zip(digits, weights, strict=False))


def _divisible(modulus: int, weights: Iterable[int]) -> Check:
    """Return a check that the weighted sum is a multiple of the modulus. The check digits have weights too."""
    each = tuple(weights)
    return lambda digits: _weighted_sum(digits, each) % modulus == 0


def _remainder(modulus: int, weights: Iterable[int]) -> Check:
    """Return a check that the last digit is the last one of the remainder of the weighted sum."""
    each = tuple(weights)
    return lambda digits: _weighted_sum(digits, each) % modulus % 10 == int(digits[-1])


def _is_date(year: str, month: str, day: str) -> bool:
    try:
        datetime.date(int(year) if len(year) == 4 else 2000 + int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def begins_with_date(digits: str) -> bool:
    return _is_date(digits[:2], digits[2:4], digits[4:6])


# --- Europe


def belgian_national(digits: str) -> bool:
    """Check 97 minus the remainder of the number, which has a 2 before it for those born from 2000."""
    return int(digits[9:]) in (97 - int(digits[:9]) % 97, 97 - int("2" + digits[:9]) % 97)


def danish_cpr(digits: str) -> bool:
    return _is_date(digits[4:6], digits[2:4], digits[:2])  # numbers since 2007 have no check digit


_DUTCH_WEIGHTS = _divisible(11, (9, 8, 7, 6, 5, 4, 3, 2, -1))


def dutch_bsn(digits: str) -> bool:
    return _DUTCH_WEIGHTS(digits) and digits not in ("123456782", "111222333")


def finnish_henkilotunnus(text: str) -> bool:
    is_date = _is_date(text[4:6], text[2:4], text[:2])
    return is_date and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[-4:-1]) % 31] == text[-1]


def french_nir(text: str) -> bool:
    """Check 97 minus the remainder of the number, in which the departments of Corsica count as 19 and 18."""
    return int(text[:13].replace("2A", "19").replace("2B", "18")) % 97 == 97 - int(text[13:])


def german_tax(digits: str) -> bool:
    """Check ISO 7064 MOD 11,10."""
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


def italian_codice_fiscale(text: str) -> bool:
    """Check the letter of the sum. At even places, a digit counts as itself and a letter as its place in the alphabet."""
    odd = sum(_VALUES_AT_ODD_PLACES[sign] for sign in text[:15:2])
    even = sum(int(sign) if sign.isdigit() else ord(sign) - ord("A") for sign in text[1:15:2])
    return chr(ord("A") + (odd + even) % 26) == text[15] and text != "RSSMRA85T10A562S"


_NORWEGIAN_WEIGHTS = (_divisible(11, (3, 7, 6, 1, 8, 9, 4, 5, 2, 1)), _divisible(11, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)))


def norwegian_fodselsnummer(digits: str) -> bool:
    return all(has_check_digit(digits) for has_check_digit in _NORWEGIAN_WEIGHTS)


_POLISH_WEIGHTS = _divisible(10, (1, 3, 7, 9, 1, 3, 7, 9, 1, 3, 1))


def polish_pesel(digits: str) -> bool:
    return _POLISH_WEIGHTS(digits) and 1 <= int(digits[2:4]) % 20 <= 12  # the month has a multiple of 20 for the century


def portuguese_nif(digits: str) -> bool:
    return _ends_with_11_minus(digits, range(9, 1, -1))


def _ends_with_11_minus(digits: str, weights: Iterable[int]) -> bool:
    """Check that the last digit is 11 minus the remainder of the weighted sum of the others, or 0 for 10 and 11."""
    return int(digits[-1]) == (11 - _weighted_sum(digits[:-1], weights) % 11) % 11 % 10


def romanian_cnp(digits: str) -> bool:
    remainder = _weighted_sum(digits, (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return int(digits[12]) == (1 if remainder == 10 else remainder)


def russian_inn(digits: str) -> bool:
    first = _weighted_sum(digits, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10
    second = _weighted_sum(digits, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10
    return digits[10:] == f"{first}{second}"


def russian_snils(digits: str) -> bool:
    return _weighted_sum(digits, range(9, 0, -1)) % 101 % 100 == int(digits[9:])


def spanish_dni(text: str) -> bool:
    """Check the letter of the remainder of the number, in which the first letter of a foreigner is a digit."""
    if len(text) != 9 or text[:-1] in ("12345678", "00000000", "11111111"):
        return False
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return text[-1] == "TRWAGMYFPDXBNJZSQVHLCKE"[int(number) % 23]


_SWISS_WEIGHTS = _divisible(10, (*(1, 3) * 6, 1))


def swiss_ahv(digits: str) -> bool:
    return _SWISS_WEIGHTS(digits) and digits != "7569217076985"


def uk_national_insurance(text: str) -> bool:
    return text[:2] not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ") and text[2:8] not in ("123456", "000000")


# --- America


def brazilian_cpf(digits: str) -> bool:
    if len(set(digits)) == 1 or digits == "12345678909":
        return False
    return _ends_with_11_minus(digits[:10], range(10, 1, -1)) and _ends_with_11_minus(digits, range(11, 1, -1))


def chilean_rut(text: str) -> bool:
    remainder = -_weighted_sum(text[-2::-1], cycle(range(2, 8))) % 11
    return text[-1] == ("K" if remainder == 10 else str(remainder))


def mexican_curp(text: str) -> bool:
    signs = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"
    total = sum(signs.index(sign) * (18 - place) for place, sign in enumerate(text[:17]))
    return str(-total % 10) == text[17] and _is_date(text[4:6], text[6:8], text[8:10])


_PRINTED_SSNS = frozenset(("078051120", "219099999", "123456789", "111111111", "123121234", "457555462"))


def us_ssn(digits: str) -> bool:
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000" and digits not in _PRINTED_SSNS


# --- Asia, Africa and Australia


def arabic_identity(digits: str) -> bool:
    return len(digits) == 14 or luhn_valid(digits)  # 14 digits in Egypt, 10 in Saudi Arabia


def chinese_resident(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    check_sign = "10X98765432"[_weighted_sum(text[:17], weights) % 11]
    return check_sign == text[17] and _is_date(text[6:10], text[10:12], text[12:14]) and text != "11010519491231002X"


_VERHOEFF_PRODUCTS = ("0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432", "7659821043", "8765932104", "9876543210")  # fmt: skip
_VERHOEFF_PERMUTATIONS = ("0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258")  # fmt: skip


def indian_aadhaar(digits: str) -> bool:
    """Check the Verhoeff algorithm."""
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = int(_VERHOEFF_PRODUCTS[check][int(_VERHOEFF_PERMUTATIONS[place % 8][int(digit)])])
    return check == 0 and digits[0] in "23456789" and len(set(digits)) > 3


def indian_pan(text: str) -> bool:
    return text[5:9] not in ("1234", "0000")


def indonesian_nik(digits: str) -> bool:
    day = int(digits[6:8])
    return _is_date(digits[10:12], digits[8:10], str(day - 40 if day > 40 else day))  # days of women are 41 to 71


def japanese_my_number(digits: str) -> bool:
    remainder = _weighted_sum(digits, (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return int(digits[11]) == (0 if remainder <= 1 else 11 - remainder)


def korean_resident(digits: str) -> bool:
    return begins_with_date(digits) and digits[6] in "12345678"


def singaporean_nric(text: str) -> bool:
    total = _weighted_sum(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + {"T": 4, "G": 4, "M": 3}.get(text[0], 0)
    letters = "JZIHGFEDCBA" if text[0] in "ST" else "XWUTRQPNMLK" if text[0] in "FG" else "KLJNPQRTUWX"
    return letters[total % 11] == text[8]


def south_african_identity(digits: str) -> bool:
    return luhn_valid(digits) and begins_with_date(digits)


def thai_identity(digits: str) -> bool:
    return (11 - _weighted_sum(digits[:12], range(13, 1, -1)) % 11) % 10 == int(digits[12])


def turkish_identity(digits: str) -> bool:
    *numbers, tenth, eleventh = map(int, digits)
    odd, even = sum(numbers[::2]), sum(numbers[1::2])
    return (7 * odd - even) % 10 == tenth and (odd + even + tenth) % 10 == eleventh


# --- any country


def passport(text: str) -> bool:
    return sum(map(str.isdigit, text)) >= 4


def driver_license(text: str) -> bool:
    return 7 <= len(text) <= 18 and sum(map(str.isdigit, text)) >= 5


CHECKS: Mapping[str, Check] = {
    **{
        check.__name__: check
        for check in (
            belgian_national, danish_cpr, dutch_bsn, finnish_henkilotunnus, french_nir, german_tax, italian_codice_fiscale,
            norwegian_fodselsnummer, polish_pesel, portuguese_nif, romanian_cnp, russian_inn, russian_snils, spanish_dni,
            swiss_ahv, uk_national_insurance, brazilian_cpf, chilean_rut, mexican_curp, us_ssn, arabic_identity,
            chinese_resident, indian_aadhaar, indian_pan, indonesian_nik, japanese_my_number, korean_resident,
            singaporean_nric, south_african_identity, thai_identity, turkish_identity, begins_with_date, driver_license,
            passport,
        )
    },
    "bulgarian_egn": _remainder(11, (2, 4, 8, 5, 10, 9, 7, 3, 6)),
    "uk_nhs": _divisible(11, range(10, 0, -1)),
    "ukrainian_rnokpp": _remainder(11, (-1, 5, 7, 9, 4, 6, 10, 5, 7)),
    "argentine_cuit": _divisible(11, (5, 4, 3, 2, 7, 6, 5, 4, 3, 2, 1)),
    "australian_tfn": _divisible(11, (1, 4, 3, 7, 5, 8, 6, 9, 10)),
    "divisible_by_11": lambda digits: int(digits) % 11 == 0,
    "luhn": luhn_valid,
    "luhn_of_last_10": lambda digits: luhn_valid(digits[-10:]),
    "none": lambda _: True,
}  # fmt: skip
