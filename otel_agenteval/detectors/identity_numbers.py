"""Find national identity numbers and IBANs in a text.

Each kind of number has a shape, check digits and words that stand before it. A random number has valid check digits one time in
ten or less, and answers contain many numbers. So most kinds count only after a word that names them. Kinds with ``alone`` have
such a special shape that they need no word.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import cycle
from typing import NamedTuple

from .lists import table
from .redaction.numbers import luhn_valid
from .texts import lazy


class IdentityNumber(NamedTuple):
    kind: str
    """``ssn`` (United States) or ``national_id``."""
    words: str
    """Pattern of the words before the number, in lower case."""
    shape: str
    """Pattern of the number as written."""
    is_valid: Callable[[str], bool]
    """Returns True if the letters and digits, without separators, are a valid number."""
    alone: bool = False


def _numbers(digits: str) -> list[int]:
    return [int(digit) for digit in digits]


def _weighted(digits: str, weights: Iterable[int]) -> int:
    return sum(digit * weight for digit, weight in zip(_numbers(digits), weights, strict=False))


def _is_date(year: str, month: str, day: str) -> bool:
    try:
        datetime.date(int(year) if len(year) == 4 else 2000 + int(year), int(month), int(day))
    except ValueError:
        return False
    return True


def _mod_11(weights: Sequence[int], *, ten: str = "") -> Callable[[str], bool]:
    """Return a check that the last digit is 11 minus the weighted sum modulo 11: 0 for 11, and ``ten``, if any, for 10."""

    def check(digits: str) -> bool:
        left = (11 - _weighted(digits, weights) % 11) % 11
        return digits[-1] == (ten if left == 10 else str(left))

    return check


def _ssn(digits: str) -> bool:
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return area not in ("000", "666") and area[0] != "9" and group != "00" and serial != "0000" and digits not in _PRINTED_SSNS


_PRINTED_SSNS = frozenset(("078051120", "219099999", "123456789", "111111111", "123121234", "457555462"))


def _steuer_id(digits: str) -> bool:
    product = 10
    for digit in _numbers(digits[:-1]):
        product = ((digit + product) % 10 or 10) * 2 % 11
    return digits[0] != "0" and (11 - product) % 10 == int(digits[-1])


def _nir(text: str) -> bool:
    return int(text[:13].replace("2A", "19").replace("2B", "18")) % 97 == 97 - int(text[13:])


_DNI_LETTERS = "TRWAGMYFPDXBNJZSQVHLCKE"


def _dni(text: str) -> bool:
    number = text[:-1].replace("X", "0").replace("Y", "1").replace("Z", "2")
    return text[-1] == _DNI_LETTERS[int(number) % 23] and text[:-1] not in ("12345678", "00000000", "11111111")


_CF_ODD = dict(
    zip(
        "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ",
        (1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 1, 0, 5, 7, 9, 13, 15, 17, 19, 21, 2, 4, 18, 20, 11, 3, 6, 8, 12, 14, 16, 10, 22, 25, 24, 23),
        strict=True,
    )
)  # fmt: skip


def _codice_fiscale(text: str) -> bool:
    total = sum(_CF_ODD[sign] if place % 2 == 0 else int(sign, 36) % 10 if sign.isdigit() else ord(sign) - 65
                for place, sign in enumerate(text[:15]))  # fmt: skip
    return chr(65 + total % 26) == text[15] and text != "RSSMRA85T10A562S"


def _pesel(digits: str) -> bool:
    return -_weighted(digits[:-1], cycle((1, 3, 7, 9))) % 10 == int(digits[-1]) and 1 <= int(digits[2:4]) % 20 <= 12


def _hetu(text: str) -> bool:
    day = _is_date(text[4:6], text[2:4], text[:2])
    return day and "0123456789ABCDEFHJKLMNPRSTUVWXY"[int(text[:6] + text[-4:-1]) % 31] == text[-1]


def _fodselsnummer(digits: str) -> bool:
    first = _mod_11((3, 7, 6, 1, 8, 9, 4, 5, 2))(digits[:10])
    return first and _mod_11((5, 4, 3, 2, 7, 6, 5, 4, 3, 2))(digits)


def _tckn(digits: str) -> bool:
    d = _numbers(digits)
    return d[0] != 0 and (7 * sum(d[:9:2]) - sum(d[1:8:2])) % 10 == d[9] and sum(d[:10]) % 10 == d[10]


def _cpf(digits: str) -> bool:
    if len(set(digits)) == 1 or digits == "12345678909":
        return False
    return _mod_11(range(10, 1, -1), ten="0")(digits[:10]) and _mod_11(range(11, 1, -1), ten="0")(digits)


_VERHOEFF_D = ("0123456789", "1234067895", "2340178956", "3401289567", "4012395678", "5987604321", "6598710432", "7659821043", "8765932104", "9876543210")  # fmt: skip
_VERHOEFF_P = ("0123456789", "1576283094", "5803796142", "8916043527", "9453126870", "4286573901", "2793806415", "7046913258")


def _aadhaar(digits: str) -> bool:
    check = 0
    for place, digit in enumerate(reversed(digits)):
        check = int(_VERHOEFF_D[check][int(_VERHOEFF_P[place % 8][int(digit)])])
    return check == 0 and digits[0] in "23456789" and len(set(digits)) > 3


def _resident_id(text: str) -> bool:
    weights = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
    check = "10X98765432"[_weighted(text[:17], weights) % 11]
    return check == text[17] and _is_date(text[6:10], text[10:12], text[12:14]) and text != "11010519491231002X"


def _my_number(digits: str) -> bool:
    rest = _weighted(digits[:11], (6, 5, 4, 3, 2, 7, 6, 5, 4, 3, 2)) % 11
    return int(digits[11]) == (0 if rest <= 1 else 11 - rest)


_CURP_SIGNS = "0123456789ABCDEFGHIJKLMNÑOPQRSTUVWXYZ"


def _curp(text: str) -> bool:
    total = sum(_CURP_SIGNS.index(sign) * (18 - place) for place, sign in enumerate(text[:17]))
    return str(-total % 10) == text[17] and _is_date(text[4:6], text[6:8], text[8:10])


def _inn(digits: str) -> bool:
    first = _weighted(digits, (7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10
    second = _weighted(digits, (3, 7, 2, 4, 10, 3, 5, 9, 4, 6, 8)) % 11 % 10
    return digits[10:] == f"{first}{second}"


def _cnp(digits: str) -> bool:
    rest = _weighted(digits[:12], (2, 7, 9, 1, 4, 6, 3, 5, 8, 2, 7, 9)) % 11
    return int(digits[12]) == (1 if rest == 10 else rest)


def _rut(text: str) -> bool:
    rest = -_weighted(text[-2::-1], cycle(range(2, 8))) % 11
    return text[-1] == ("K" if rest == 10 else str(rest))


def _nric(text: str) -> bool:
    total = _weighted(text[1:8], (2, 7, 6, 5, 4, 3, 2)) + (4 if text[0] in "TG" else 3 if text[0] == "M" else 0)
    letters = "JZIHGFEDCBA" if text[0] in "ST" else "XWUTRQPNMLK" if text[0] in "FG" else "KLJNPQRTUWX"
    return letters[total % 11] == text[8]


def _nik(digits: str) -> bool:
    day = int(digits[6:8])
    return _is_date(digits[10:12], digits[8:10], f"{day - 40 if day > 40 else day:02d}")


def _spaced(*groups: int) -> str:
    return "[ .-]?".join(f"[0-9]{{{group}}}" for group in groups)


NUMBERS: tuple[IdentityNumber, ...] = (
    IdentityNumber("ssn", r"\bssn|social|\bitin\b|tax(?:payer)?[ -]id|\btin\b", _spaced(3, 2, 4), _ssn),
    IdentityNumber("national_id", r"national insurance|\bnino?\b|\bni (?:number|no)", r"(?:[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z]) ?[0-9]{2} ?[0-9]{2} ?[0-9]{2} ?[A-D]", lambda text: text[:2] not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ") and text[2:8] not in ("123456", "000000")),
    IdentityNumber("national_id", r"\bnhs\b", _spaced(3, 3, 4), _mod_11(range(10, 1, -1))),
    IdentityNumber("national_id", r"steuer-?(?:id|nummer)|steueridentifikations|\bidnr|\btin\b", _spaced(2, 3, 3, 3), _steuer_id),
    IdentityNumber("national_id", r"sozialversicherung|rentenversicherung|\bsv-nummer|\brvnr", r"[0-9]{2} ?[0-9]{6} ?[A-Z] ?[0-9]{3}", lambda _: True),
    IdentityNumber("national_id", r"", r"[12] ?[0-9]{2} ?(?:0[1-9]|1[0-2]|[2-9][0-9]) ?(?:[0-9]{2}|2[AB]) ?[0-9]{3} ?[0-9]{3} ?[0-9]{2}", _nir, alone=True),
    IdentityNumber("national_id", r"\bdni\b|\bnie\b|\bnif\b|documento|identidad|identificado|\bd\. ?n\. ?i", r"[XYZ]?[- ]?[0-9]{1,2}[. ]?[0-9]{3}[. ]?[0-9]{3}[- ]?[A-Z]", lambda text: len(text) == 9 and _dni(text)),
    IdentityNumber("national_id", r"", r"[A-Z]{6} ?[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2} ?[A-Z][0-9LMNP-V]{3}[A-Z]", _codice_fiscale, alone=True),
    IdentityNumber("national_id", r"\bnif\b|contribuinte|n[úu]mero fiscal", _spaced(3, 3, 3), _mod_11(range(9, 1, -1), ten="0")),
    IdentityNumber("national_id", r"\bbsn\b|burgerservice|sofinummer", _spaced(4, 2, 3) + "|" + _spaced(3, 3, 3), lambda text: _weighted(text, (9, 8, 7, 6, 5, 4, 3, 2, -1)) % 11 == 0 and text not in ("123456782", "111222333")),
    IdentityNumber("national_id", r"pesel", "[0-9]{11}", _pesel),
    IdentityNumber("national_id", r"personnummer|person-?nr|samordningsnummer", r"(?:19|20)?[0-9]{6}[-+ ]?[0-9]{4}", lambda text: luhn_valid(text[-10:])),
    IdentityNumber("national_id", r"henkilötunnus|\bhetu\b|personbeteckning", r"[0-3][0-9][01][0-9]{3}[-+A-FU-Y][0-9]{3}[0-9A-Y]", _hetu),
    IdentityNumber("national_id", r"\bcpr\b|personnummer", r"[0-3][0-9][01][0-9]{3}[- ]?[0-9]{4}", lambda text: _is_date(text[4:6], text[2:4], text[:2])),
    IdentityNumber("national_id", r"fødselsnummer|personnummer|fodselsnummer|fnr\b", r"[0-7][0-9]{5} ?[0-9]{5}", _fodselsnummer),
    IdentityNumber("national_id", r"t\. ?c\.|\btc\b|tckn|kimlik|vatandaşlık", "[1-9][0-9]{10}", _tckn),
    IdentityNumber("national_id", r"", r"[0-9]{3}\.[0-9]{3}\.[0-9]{3}-[0-9]{2}", _cpf, alone=True),
    IdentityNumber("national_id", r"\bcpf\b", r"[0-9]{11}|[0-9]{3} [0-9]{3} [0-9]{3} [0-9]{2}", _cpf),
    IdentityNumber("national_id", r"a[ad]dha?ar|आधार|ஆதார்|\buid\b|ఆధార్|আধার", _spaced(4, 4, 4), _aadhaar),
    IdentityNumber("national_id", r"\bpan\b|पैन|permanent account", "[A-Z]{3}[PH][A-Z][0-9]{4}[A-Z]", lambda text: text[5:9] not in ("1234", "0000")),
    IdentityNumber("national_id", r"", r"[1-9][0-9]{5} ?(?:19|20)[0-9]{2}[01][0-9][0-3][0-9] ?[0-9]{3}[0-9Xx]", _resident_id, alone=True),
    IdentityNumber("national_id", r"주민|외국인등록|resident registration|\brrn\b", "[0-9]{6} ?- ?[0-9]{7}|[0-9]{13}", lambda text: _is_date(text[:2], text[2:4], text[4:6]) and text[6] in "12345678"),
    IdentityNumber("national_id", r"マイナンバー|個人番号|my number", _spaced(4, 4, 4), _my_number),
    IdentityNumber("national_id", r"", "[A-Z][AEIOUX][A-Z]{2}[0-9]{6}[HM][A-Z]{5}[0-9A-Z][0-9]", _curp, alone=True),
    IdentityNumber("national_id", r"\bcui[lt]\b", "(?:2[0347])-?[0-9]{8}-?[0-9]", _mod_11((5, 4, 3, 2, 7, 6, 5, 4, 3, 2))),
    IdentityNumber("national_id", r"זהות|ת\.? ?ז|israeli id|teudat", "[0-9]{9}|[0-9]{8}-[0-9]", luhn_valid),
    IdentityNumber("national_id", r"\bid\b|identity|\bsaid\b", "[0-9]{6} ?[0-9]{4} ?[01][89][0-9]|[0-9]{6} ?[0-9]{4} ?[01][0-9]{2}", lambda text: luhn_valid(text) and _is_date(text[:2], text[2:4], text[4:6])),
    IdentityNumber("national_id", r"инн|\binn\b", "[0-9]{12}", _inn),
    IdentityNumber("national_id", r"снилс|snils", "[0-9]{3}[- ]?[0-9]{3}[- ]?[0-9]{3}[- ]?[0-9]{2}", lambda text: _weighted(text[:9], range(9, 0, -1)) % 101 % 100 == int(text[9:])),
    IdentityNumber("national_id", r"рнокпп|іпн|податков|індивідуальн", "[0-9]{10}", lambda text: _weighted(text, (-1, 5, 7, 9, 4, 6, 10, 5, 7)) % 11 % 10 == int(text[9])),
    IdentityNumber("national_id", r"", r"756\.?[0-9]{4}\.?[0-9]{4}\.?[0-9]{2}", lambda text: -_weighted(text[:12], cycle((1, 3))) % 10 == int(text[12]) and text != "7569217076985", alone=True),
    IdentityNumber("national_id", r"rijksregister|registre national|national number|\binsz\b|\bniss\b", r"[0-9]{2}\.?[0-9]{2}\.?[0-9]{2}[- ]?[0-9]{3}[. ]?[0-9]{2}", lambda text: int(text[9:]) in (97 - int(text[:9]) % 97, 97 - int("2" + text[:9]) % 97)),
    IdentityNumber("national_id", r"\bcnp\b|cod numeric", "[1-8][0-9]{12}", _cnp),
    IdentityNumber("national_id", r"rodné|rodne|birth number", "[0-9]{6}/?[0-9]{4}", lambda text: int(text) % 11 == 0),
    IdentityNumber("national_id", r"บัตรประชาชน|thai id|national id", "[1-8][- ]?[0-9]{4}[- ]?[0-9]{5}[- ]?[0-9]{2}[- ]?[0-9]", lambda text: (11 - _weighted(text[:12], range(13, 1, -1)) % 11) % 10 == int(text[12])),
    IdentityNumber("national_id", r"\bru[tn]\b", r"[0-9]{1,2}\.?[0-9]{3}\.?[0-9]{3}-?[0-9Kk]", _rut),
    IdentityNumber("national_id", r"nric|\bfin\b", "[STFGM][0-9]{7}[A-Z]", _nric),
    IdentityNumber("national_id", r"\bsin\b|social insurance|assurance sociale", _spaced(3, 3, 3), luhn_valid),
    IdentityNumber("national_id", r"\btfn\b|tax file", _spaced(3, 3, 3), lambda text: _weighted(text, (1, 4, 3, 7, 5, 8, 6, 9, 10)) % 11 == 0),
    IdentityNumber("national_id", r"\bnik\b|\bktp\b|kependudukan", "[1-9][0-9]{15}", _nik),
    IdentityNumber("national_id", r"cccd|căn cước|cmnd|chứng minh", "[0-9]{12}|[0-9]{9}", lambda _: True),
    IdentityNumber("national_id", r"mykad|\bic\b|kad pengenalan", "[0-9]{6}-?[0-9]{2}-?[0-9]{4}", lambda text: _is_date(text[:2], text[2:4], text[4:6])),
    IdentityNumber("national_id", r"\bcc\b|cédula|cedula|c\.c\.", r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}(?:\.[0-9]{3})?|[0-9]{8,10}", lambda _: True),
    IdentityNumber("national_id", r"национальн\w+ id|национален|егн", "[0-9]{10}", lambda text: _weighted(text, (2, 4, 8, 5, 10, 9, 7, 3, 6)) % 11 % 10 == int(text[9])),
    IdentityNumber("national_id", r"الهوية|هوية|الإقامة|القومي|بطاقة", "[12][0-9]{9}|[23][0-9]{13}", lambda text: len(text) == 14 or luhn_valid(text)),
    IdentityNumber("passport", r"passport|reisepass|pass(?:nummer|-nr)|passeport|pasaporte|passaporto|passaporte|paspoort|paszport|pasaport|паспорт|закордон|جواز|דרכון|पासपोर्ट|パスポート|旅券|护照|護照|여권|hộ chiếu|paspor", r"[A-Z]{1,3} ?[0-9]{6,9}|[A-Z]{1,2} [0-9]{4} ?[0-9]{3,4}|[0-9]{2} ?[0-9]{2}[ ,№]{0,3}[0-9]{6}|[0-9]{6,9}|(?=[A-Z0-9]{7,10}(?![A-Za-z0-9]))[A-Z0-9]{7,10}", lambda text: sum(map(str.isdigit, text)) >= 4),
    IdentityNumber("driver_license", r"driv(?:er|ing)(?:['’]?s)? licen[cs]e|führerschein|permis de conduire|carn[eé] de conducir|licencia de conducir|patente|carteira de (?:motorista|habilita)|\bcnh\b|rijbewijs|prawo jazdy|prawa jazdy|водительск|ehliyet|körkort|kørekort|førerkort|免許証|驾驶证|驾照|운전면허", r"[A-Z]{0,5}[0-9][A-Z0-9]{0,4}(?:[- ]?[0-9A-Z]{2,6}){1,4}", lambda text: 7 <= len(text) <= 18 and sum(map(str.isdigit, text)) >= 5),
)  # fmt: skip
"""Kinds of identity numbers. For kinds without a check, only the word before the number identifies it."""

_NOT_ALNUM = lazy(r"[\W_]+")
_ANY_ALONE = lazy(
    "(?<![A-Za-z0-9])(?<![0-9][.,/:-])(?:"
    + "|".join(f"(?P<n{index}>{row.shape})" for index, row in enumerate(NUMBERS) if row.alone)
    + ")(?![A-Za-z0-9])(?![.,:/-][0-9])"
)
_ANY_NAMED = {
    index: lazy(f"(?<![A-Za-z0-9])(?:{row.shape})(?![A-Za-z0-9])(?!-[0-9])") for index, row in enumerate(NUMBERS) if not row.alone
}
_WORDS = {index: lazy(row.words) for index, row in enumerate(NUMBERS) if not row.alone}


def _any_of(branches: Iterable[str]) -> re.Pattern[str]:
    """Return one pattern for all alternatives that tests a word boundary only once."""
    each = list(dict.fromkeys(branches))
    bounded = [branch.removeprefix(r"\b") for branch in each if branch.startswith(r"\b")]
    return lazy("|".join([rf"\b(?:{'|'.join(bounded)})", *(branch for branch in each if not branch.startswith(r"\b"))]))


def _branches(pattern: str) -> list[str]:
    """Split a pattern into its top-level alternatives."""
    found, depth = [""], 0
    for sign in pattern:
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and not depth:
            found.append("")
        else:
            found[-1] += sign
    return found


_BRANCHES = [branch for row in NUMBERS if row.words for branch in _branches(row.words)]
_ANY_WORD = _any_of(_BRANCHES)
_ANY_ASCII_WORD = _any_of(branch for branch in _BRANCHES if re.sub(r"\[[^]]*\]", "", branch).isascii())
_CANDIDATE = lazy(r"(?<![A-Za-z0-9])[A-Z]{0,6}[- ]?[0-9](?:[ .,\-/]{0,2}[A-Z0-9]){3,24}")
_LEAST_DIGITS = 4
_AROUND = " .,-/ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REACH = 60
"""Maximum number of characters between the word and its number."""


def identity_numbers(text: str, given: str = "") -> Iterable[tuple[str, int, int, bool]]:
    """Yield ``(kind, start, end, is_valid)`` of numbers, by shape or the word before, that aren't in ``given`` as written."""
    for found in _ANY_ALONE.finditer(text):
        row = NUMBERS[int((found.lastgroup or "n0")[1:])]
        if row.is_valid(plain(found.group())):
            yield row.kind, found.start(), found.end(), True
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters have a longer lower-case form
        lowered = text
    any_word = _ANY_ASCII_WORD if lowered.isascii() else _ANY_WORD
    tried: set[int] = set()
    skipped: dict[str, bool] = {}  # a number that is repeated is searched once, because the other text can be long
    for found in _CANDIDATE.finditer(text):
        number = found.group()
        if number not in skipped:
            skipped[number] = sum(map(str.isdigit, number)) < _LEAST_DIGITS or number.strip(_AROUND) in given
        if skipped[number]:
            continue
        for word in any_word.finditer(lowered, max(0, found.start() - _REACH), found.end()):
            if word.end() not in tried:
                tried.add(word.end())
                yield from _first_number_after(text, lowered, word.end())


def _first_number_after(text: str, lowered: str, at: int) -> Iterable[tuple[str, int, int, bool]]:
    """Yield the first number after a word, with the first kind whose shape it has, or better, for which it is valid."""
    stop = min(len(text), at + _REACH)
    wrong: tuple[str, int, int, bool] | None = None
    head = lowered[max(0, at - 40) : at]
    for index, words in _WORDS.items():
        if not any(word.end() == len(head) for word in words.finditer(head)):
            continue
        found = _ANY_NAMED[index].search(text, at, min(len(text), stop + 30))
        if found is None or found.start() > stop:
            continue
        if NUMBERS[index].is_valid(plain(found.group())):
            yield NUMBERS[index].kind, found.start(), found.end(), True
            return
        wrong = wrong or (NUMBERS[index].kind, found.start(), found.end(), False)
    if wrong is not None:
        yield wrong


def plain(text: str) -> str:
    return _NOT_ALNUM.sub("", text).upper()


# --- bank accounts

_IBAN = lazy(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Z0-9]{4}){2,7}(?:[ \u00a0-]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")


def ibans(text: str) -> Iterable[tuple[int, int]]:
    """Yield the start and end of each IBAN with its country's length and valid check digits."""
    known = table("ibans.json")
    lengths, samples = known["lengths"], known["samples"]
    for found in _IBAN.finditer(text):
        start = found.start()
        whole = plain(found.group())
        length = lengths.get(whole[:2], 0)
        if not length or len(whole) < length or whole[:length] in samples:
            continue
        number = whole[4:length] + whole[:4]
        if int("".join(str(int(sign, 36)) for sign in number)) % 97 == 1:
            end = start
            for _ in range(length):
                while not text[end].isalnum():
                    end += 1
                end += 1
            yield start, end
