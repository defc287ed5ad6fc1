"""Find card, telephone, and social security numbers in the notations of many countries.

A card number has an issuer's prefix, a valid length, and a valid check digit. A telephone number has an international prefix or a
national grouping, or follows a word such as "phone". Most dates, decimals, IP addresses, versions, and amounts are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

from ..texts import Span, has_any, in_small_letters, lazy, words
from .tables import cells_in
from .views import folded

_NOT_DIGITS = lazy(r"[^0-9]+")


def digits_of(text: str) -> str:
    return _NOT_DIGITS.sub("", text)


# --- cards

_DIGITS_IN_GROUPS = r"[0-9](?:(?:[ .,*\-_/\u00b7]{1,5}|\+|[ \t\\-]{0,20}\r?\n[ \t>]{0,20})?[0-9]){13,18}(?![0-9])"
_CARD_RUN = lazy(r"(?<![0-9])(?:(?=[2-69][0-9]{3})|(?<![0-9][ .\-_/+\u00b7\n])(?=[2-69]))" + _DIGITS_IN_GROUPS)
"""Pattern for digits with the length of a card number, such as ``4111 1111 1111 1111``. The digits can span lines."""
_SHORTEST_CARD = 14
_LONG_ROW = lazy(r"[0-9](?:[ .,|\-_/+\\\u00b7\t\r\n>]{0,42}[0-9]){13}")
_ISSUED_CARD = lazy(
    r"4(?:\d{15}|\d{18})|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}|3(?:0[0-5]|[689]\d)\d{11}"
    r"|6(?:011|4[4-9]\d|5\d\d)\d{12,15}|62\d{14,17}|35(?:2[89]|[3-8]\d)\d{12}|(?:5018|5020|5038|5893|6304|6759|676[1-3])\d{12,15}|9792\d{12}"
)
_CARD_GROUPS = frozenset(  # sizes of groups: "3782 822463 10005" has 4-6-5
    ("4-4-4-4", "4-6-5", "4-6-4", "4-4-4-4-3", "6-13", "8-8", "8-11", "6-4-4-2", "4-4-4-4-4", "4-8-4", "6-10", "4-12", "12-4")
)


def cards(text: str) -> Iterator[Span]:
    """Yield card numbers of 14 to 19 digits in common groupings. They can be next to letters or split across lines."""
    if _LONG_ROW.search(text) is None:
        return
    position = 0
    while (row := _CARD_RUN.search(text, position)) is not None:
        if (card := _card_in(text, *row.span())) is not None:
            yield card
            _, position = card
        else:  # try from the next group
            position = next((index for index in range(*row.span()) if not text[index].isdigit()), row.end())


def _card_in(text: str, start: int, end: int) -> Span | None:
    """Return the range of the card number at the start of a run of digits, or None. An expiry date can follow the number."""
    stop = end
    while stop > start:
        row = text[start:stop]
        digits = digits_of(row)
        if len(digits) < _SHORTEST_CARD:
            return None
        is_valid = _ISSUED_CARD.fullmatch(digits) and luhn_valid(digits) and _has_card_groups(row)
        is_card = is_valid and not _is_part_of_longer_number(text, start, stop)
        if is_card and ("," not in row or _is_near_card_word(text, start, stop)):
            return start, stop
        without_last_group = row.rstrip("0123456789").rstrip(" .,*|-_/+\u00b7\t\r\n>")
        stop = start + len(without_last_group)
    return None


def _has_card_groups(row: str) -> bool:
    without_breaks = re.sub(r"[ \t\\-]*\r?\n[ \t>]*", "", row) if "\n" in row else row
    for digits in (without_breaks, row):
        sizes = [len(group) for group in re.split(r"[^0-9]+", digits)]
        if len(set(sizes)) == 1 or "-".join(map(str, sizes)) in _CARD_GROUPS:
            return True
    return False


def _is_near_card_word(text: str, start: int, end: int) -> bool:
    """Return True if a word such as "card" is near, or if the number stands alone. Return False for a number in a list."""
    before, after = text[max(0, start - 64) : start], text[end : end + 48]
    if re.search(r"[0-9], ?\Z", before) or re.match(r", ?[0-9]", after):
        return False
    return not (before + after).strip() or _CARD_WORD.search(f"{before} {after}") is not None


_CARD_WORD = lazy(
    r"card|visa|master|amex|american express|kart[ae]|carte|tarjeta|carta|cart[ãa]o|\bpan\b|cv[vc]\b", re.IGNORECASE
)


def _is_part_of_longer_number(text: str, start: int, end: int) -> bool:
    """Return True if digits are part of a decimal, longer number, parcel number, or hash."""
    before, after = text[max(0, start - 40) : start], text[end : end + 40]
    if re.search(r"[0-9]\.\Z|[0-9][-:]\Z|1Z\Z", before) or re.match(r"\.[0-9]*[1-9]|[-:][0-9]", after):
        return True
    joined_before = re.search(r"[0-9A-Za-z]*\Z", before)
    joined_after = re.match(r"[0-9A-Za-z]*", after)
    joined = (joined_before.group() if joined_before else "") + (joined_after.group() if joined_after else "")
    return len(joined) + end - start >= 20 and re.fullmatch(r"[0-9a-fA-F]+", joined) is not None


def luhn_valid(digits: str) -> bool:
    doubled = sum(map(int, "".join(str(2 * int(digit)) for digit in digits[-2::-2])))
    return (doubled + sum(map(int, digits[-1::-2]))) % 10 == 0 and digits.strip("0") != ""


_BETWEEN_NAME_AND_NUMBER = (
    r"[.\"'`*\])]{0,3}(?:[\"'],\s{0,3}[\"']?value)?[\"']?\s{0,2}(?:is|est(?: le)?|es(?: el)?|ist(?: die)?|lautet|è(?: il)?|é(?: o)?|:|=|\uff1a|at|on|to|me|us|n°|no\.?|#|-|は|是|为|為|は|는|은){0,2}"
    r"\s{0,2}[\"'`*(]{0,3}\s{0,2}"
)
"""Pattern for text between a number's name and the number, such as ``": "`` or ``" is "``."""

# --- social security numbers

_SSN = lazy(r"(?<![\w-])(?<!\d[.,/])(?!000|666|9)[0-9]{3}-(?!00)[0-9]{2}-(?!0000)[0-9]{4}(?![\w]|-[0-9])")
_SSN_FORM = lazy(r"[0-9]{3}-[0-9]{2}-[0-9]{4}")  # 123-45-6789
_NAMED_SSN = lazy(  # "SSN is 123456789"
    r"(?:\bssn|social[ _-]?security(?:[ _-]?(?:number|no\.?|#))?|\bsocial|\btax[ _-]?id|\bitin)"
    + _BETWEEN_NAME_AND_NUMBER
    + r"([0-9]{3}([ ./+-]?)[0-9]{2}\2[0-9]{4})(?![0-9])",
    re.IGNORECASE,
)
_SSN_NAME = lazy(r"(?:ssn|social[_ -]?security(?:[_ -]?(?:number|no))?)\Z", re.IGNORECASE)
_SSN_WORDS = ("ssn", "social", "tax", "itin")


def ssns(text: str) -> Iterator[Span]:
    """Yield US social security numbers with dashes, or with a name such as "SSN"."""
    if _SSN_FORM.search(text) is not None:
        yield from (ssn.span() for ssn in _SSN.finditer(text))
    lowered = in_small_letters(text)
    if has_any(lowered, _SSN_WORDS):
        yield from (named.span(1) for named in _NAMED_SSN.finditer(text))
        for cell in cells_in(text, _starts_of_words(lowered, _SSN_WORDS)):
            if is_ssn_name(cell.head) and is_ssn(text[cell.start : cell.end]):
                yield cell.start, cell.end


def is_ssn_name(name: str) -> bool:
    return _SSN_NAME.search(name) is not None


def is_ssn(value: str) -> bool:
    return len(digits_of(value)) == 9


def _starts_of_words(lowered: str, words: Iterable[str]) -> list[int]:
    return sorted(match.start() for word in words if word in lowered for match in re.finditer(re.escape(word), lowered))


# --- telephone numbers

_ADJACENT_LETTER = r"0-9A-Za-z_\u00c0-\u052f"
"""Characters that can't be next to a telephone number. Letters of scripts without spaces are allowed, so they're omitted."""
_LEFT = rf"(?<![{_ADJACENT_LETTER}@#$€£%])(?<![0-9][.,/:+])(?<![A-Za-z0-9]-)"
_RIGHT = rf"(?![{_ADJACENT_LETTER}@%€£$])(?![.,:/][0-9])(?!-\w)"
_EXTENSION = (  # " ext. 12"
    r"(?:\s{0,2}(?:[,;]?\s?(?:ext(?:ension)?\.?|x|#|;ext=|Durchwahl|poste|int\.?|ramal)\s?[:=]?\s?)[0-9]{1,6}(?![0-9A-Za-z]))?"
)
_INTERNATIONAL_PHONE = lazy(  # "+49 30 1234567", "0049 30 1234567"
    rf"(?<![{_ADJACENT_LETTER}+.])(?:\+|\(\+|(?<![0-9] )00(?=[1-9]))[ (]?[1-9](?:(?:[ ./\-\u00b7()]{{0,3}}|\+)[0-9]){{7,14}}(?![0-9])"
    + _EXTENSION
)
_BROKEN_PHONE = lazy(  # "+49 30\n1234567", "(555)\n123-4567"
    rf"(?<![{_ADJACENT_LETTER}+.])(?:\+[1-9](?:[ ./\-()]{{0,3}}[0-9]){{1,6}}|\(?[2-9][0-9]{{2}}[).-])[ )-]{{0,2}}\r?\n[ \t>]{{0,8}}\(?[0-9](?:[ ./\-)]{{0,2}}[0-9]){{4,9}}(?![0-9])"
)
_NATIONAL_FORMS = (
    r"(?:1[ .-]?)?(?:\([2-9][0-9]{2}\)[ .-]{0,2}|[0-9]{3}-|[2-9][0-9]{2}[ .])[0-9]{3}(?:[.-]| - | )[0-9]{4}",  # North America
    r"8[ -]?\(?[0-9]{3,4}\)?[ -][0-9]{2,3}[ -][0-9]{2}[ -][0-9]{2}",  # Russia
    r"\([1-9][0-9]\) ?9?[0-9]{4}[ -]?[0-9]{4}|[1-9][0-9] 9[0-9]{4}-[0-9]{4}",  # Brazil
    r"[6-9][0-9]{4}[ -][0-9]{5}",  # India
    r"1[3-9][0-9][ -][0-9]{4}[ -][0-9]{4}",  # China
    r"1[38]00[ -][0-9]{3}[ -][0-9]{3}",  # Australia
    r"[6-9][0-9]{2} [0-9]{2} [0-9]{2} [0-9]{2}|[89][0-9] [0-9]{3} [0-9]{2} [0-9]{2}|[6-9][0-9]{2}-[0-9]{3}-[0-9]{3}",  # Spain
    r"[49][0-9]{2} [0-9]{2} [0-9]{3}",  # Norway
    r"[1-9][0-9] [0-9]{3} [0-9]{2} [0-9]{2}",  # Poland
    r"3[0-9]{2} [0-9]{6,7}|3[0-9]{2}[ .-][0-9]{2,3}[ .-][0-9]{2}[ .-][0-9]{2}",  # Italy, mobile
    r"[5-9][0-9]{2}-[0-9]{3}-[0-9]{3}",  # Poland
)
_NATIONAL_PHONE = lazy(_LEFT + "(?:" + "|".join(_NATIONAL_FORMS) + ")" + _EXTENSION + _RIGHT)
_TRUNK_PHONE = lazy(  # "(030) 123 45 67", "030/1234567"
    _LEFT
    + r"(?<![0-9] )(?:\(0[1-9][0-9]{0,4}\)(?: / | - |[ ./-])?|0[1-9][0-9]{0,4}(?: / | - |[ ./-])|\(0\) ?[1-9][0-9]{1,3}[ ./-])"
    r"[0-9]{1,8}(?:(?: - |[ ./-])[0-9]{1,8}){0,4}" + _EXTENSION + _RIGHT
)
_DATE = lazy(  # 31.12.2026, 12/31/2026
    r"(?:[0-3]?[0-9])([./ -])(?:[01]?[0-9])\1(?:19|20)[0-9]{2}(?![0-9])|(?:[01]?[0-9])([./ -])(?:[0-3]?[0-9])\2(?:19|20)[0-9]{2}(?![0-9])"
)
_PHONE_WORDS = (
    r"(?:tele)?phone|my (?:new )?number|meine (?:neue )?nummer|(?:cell|mobile|home|work|office|contact|emergency|phone|tel|fax)[ _-]?(?:phone)?[ _-]?(?:number|no|nr|num)|tel|telefon\w{0,6}|t[ée]l(?:[ée]phone)?|tel[ée]fono|telefone|"
    r"mobil[e]?|(?:tele)?m[óo]vel|m[óo]vil|celular|cell|cellulare|portable|handy|fax|msisdn|whats ?app|signal|sms|rufnummer|numero|número|numéro|puhelin|gsm|komórka|"
    r"电话|電話|手机|手機|携帯(?:電話)?|전화|휴대폰|핸드폰|연락처|телефон|тел|\u260e\ufe0f?|\U0001f4de|\U0001f4f1|\u2706|\u2121"
)
_NAMED_PHONE = lazy(  # "Tel.: 1234567"
    r"(?:(?<![A-Za-z])(?:" + _PHONE_WORDS + r")|(?<=[a-z])(?-i:Phone|Mobile|Fax|Tel))(?:[ _-]?(?:number|no|nr|num|#|nummer)|号码?|號碼?|番号|\s?번호)?" + _BETWEEN_NAME_AND_NUMBER
    + r"((?:\+|00)?\(?[0-9](?:(?:[ ()./-]{0,3}|\+)[0-9]){6,14})" + _EXTENSION + r"(?![0-9])(?![.:/-][0-9])",
    re.IGNORECASE,
)  # fmt: skip
_PHONE_LINK = lazy(  # "tel:+4930123456", "wa.me/4930123456"
    r"(?:tel|sms|smsto|callto|facetime|whatsapp|sip|sips):(?://)?(\+?[0-9](?:[ ()./-]{0,3}[0-9]){6,14})(?:;ext=[0-9]{1,6})?(?![0-9])"
    r"|wa\.me/(\+?[0-9]{8,15})(?![0-9])|[?&]phone=(\+?[0-9]{8,15})(?![0-9])",
    re.IGNORECASE,
)
_PHONE_TO_CALL = lazy(  # "call me at 555-123-4567", "ruf mich an unter 030 12345678"
    r"(?<![A-Za-z])(?:(?:call|ring|dial|text|phone|reach|contact)(?:ing|ed)?\s{1,2}(?:(?:me|us|him|her|them|back|you|now|please|support|home|the office)\s{1,2}){0,3}(?:(?:at|on|under)\s{1,2})?:?\s{0,2}"
    r"((?:1[ .-]?)?\(?[2-9][0-9]{2}\)?[ .-]?[2-9][0-9]{2}[ .-]?[0-9]{4}|0[1-9](?:[ /-]?[0-9]){8,9}|[6-9][0-9]{8,9}|8[0-9]{10}|[5-9][0-9]{2}[ -][0-9]{3}[ -][0-9]{3}|[2-9][0-9]{2}[.-][0-9]{4})"
    r"|(?:ruf\w{0,4}|appel\w{1,3}|ll[aá]m\w{1,5}|chiam\w{1,5}|lig[aou]\w{0,3})[\s-]{1,2}(?:(?:mich|uns|moi|nous|me)\s{1,2}){0,2}(?:(?:an|unter|au|al|el|no|para|pelo):?\s{1,2}){0,2}"
    r"(0[1-9](?:[ /-]?[0-9]){8,10}|[3-9](?:[ -]?[0-9]){8,9}|[1-9]{2}9[0-9]{8}))" + _EXTENSION + r"(?![0-9])(?![.:/-][0-9])",
    re.IGNORECASE,
)  # fmt: skip
_EAST_ASIAN_PHONE = lazy(  # "电话:张三 13812345678"
    r"(?:电话|電話|手机|手機|联系|聯絡|连络|連絡|微信|号码|號碼|番号|致电|拨|撥|短信|携帯|전화|휴대|번호|연락)[^0-9\n]{0,16}(1[3-9][0-9](?:[ -]?[0-9]{4}){2}|0[5-9][0-9]{8,9}|01[016-9][0-9]{7,8})(?![0-9])(?![.,:/-][0-9])"
)
_THOUSANDS = lazy(r"\+?[0-9]{1,3}(?:([ .])[0-9]{3})(?:\1[0-9]{3})*")  # 1.234.567

_DIALABLE = lazy(r"[0-9](?:(?:[ ()./\-\u00b7]{0,4}|\+)[0-9]){6,40}")
_WINDOW_BEFORE, _WINDOW_AFTER = 64, 24
"""Number of characters before the digits to search for a word, and after the digits to search for an extension."""
_PHONE_NAME = lazy(
    rf"(?:\A|[^a-z]|(?<=[a-z])(?=[A-Z]))(?:{_PHONE_WORDS})(?:[ _-]?(?:number|no|nr|num|nummer)|号码?|號碼?|番号|번호)?[0-9]?\Z|(?:phone|mobile|telefon|telefono)(?:[_-]?(?:number|no|nr|num))?[0-9]?\Z",
    re.IGNORECASE,
)
_CHINESE_MOBILE = lazy(r"1[3-9][0-9]{9}")
_PHONE_VALUE = lazy(r"\+?\(?[0-9](?:(?:[ ()./-]{0,3}|\+)[0-9]){6,14}")


def phones(text: str) -> Iterator[Span]:
    """Yield telephone numbers in a known format or with a name such as "phone". ``phonenumbers`` checks other grouped digits."""
    candidate_count = 0
    for row in _DIALABLE.finditer(text):
        is_grouped = not row.group().isdigit()
        numbers = list(_phones_in(text, row.start(), row.end(), is_grouped=is_grouped))
        yield from numbers
        if is_grouped and not numbers and candidate_count < _MOST_CANDIDATES:
            for candidate in _CANDIDATE.finditer(text, max(0, row.start() - 1), min(row.end() + 2, len(text))):
                candidate_count += 1
                number = candidate.group()
                may_be_phone = _THOUSANDS.fullmatch(number) is None and _DATE.match(number) is None
                if may_be_phone and 8 <= len(digits_of(number)) <= 11 and _is_assigned(number):
                    yield candidate.span()
    if "\n" in text:
        yield from (number.span() for number in _BROKEN_PHONE.finditer(text))
    if "\n" in text or "<tr" in text:
        lowered = in_small_letters(text)
        for cell in cells_in(text, _starts_of_words(lowered, words("phones.txt", "headings"))):
            if is_phone_name(cell.head) and is_phone(text[cell.start : cell.end]):
                yield cell.start, cell.end


_DIGITS_IN_ID = lazy(  # "whatsapp_4915123456789", but neither a date (20261231) nor a part of a UUID
    r"(?<![0-9A-Za-z])(?<![0-9a-fA-F]{4}-)(?!(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01]))\+?[0-9]{9,15}(?![0-9A-Za-z]|-[0-9a-fA-F]{4})"
)


def numbers_in_id(text: str) -> Iterator[Span]:
    """Yield assigned telephone numbers in an ID, such as ``whatsapp_4915123456789``."""
    for run in _DIGITS_IN_ID.finditer(folded(text)):
        digits = run.group().lstrip("+")
        numbers = (parsed(f"+{digits}", None), parsed(digits, "US") if len(digits) == 10 else None)
        is_valid = any(number is not None and phone_library().is_valid_number(number) for number in numbers)
        if is_valid or _CHINESE_MOBILE.fullmatch(digits) is not None:
            yield run.span()


def is_phone_name(name: str) -> bool:
    return _PHONE_NAME.search(name) is not None


def is_phone(value: str) -> bool:
    return _PHONE_VALUE.fullmatch(folded(value).strip()) is not None


def _phones_in(text: str, start: int, end: int, *, is_grouped: bool) -> Iterator[Span]:
    """Yield telephone numbers in a run of digits. They're recognized by their format or by a preceding word."""
    stop = min(end + _WINDOW_AFTER, len(text))
    head = text[max(0, start - 3) : end]
    if "+" in head or "00" in head:
        numbers = _INTERNATIONAL_PHONE.finditer(text, max(0, start - 3), stop)
        yield from (number.span() for number in numbers if _is_international_number(number.group()))
    if is_grouped:
        numbers = _NATIONAL_PHONE.finditer(text, max(0, start - 2), stop)
        yield from (number.span() for number in numbers if _DATE.match(number.group()) is None)
        numbers = _TRUNK_PHONE.finditer(text, max(0, start - 2), stop)
        yield from (number.span() for number in numbers if _is_trunk_number(number.group()))
    window_start = max(0, start - _WINDOW_BEFORE)
    lowered = text[window_start:start].lower()
    if has_any(lowered, words("phones.txt", "hints")):  # without a hint, only the format of the number counts
        for pattern in (_NAMED_PHONE, _PHONE_TO_CALL, _EAST_ASIAN_PHONE, _PHONE_LINK):
            for match in pattern.finditer(text, window_start, stop):
                group = match.lastindex or 1
                if pattern is _PHONE_LINK or _DATE.match(match.group(group)) is None:
                    yield match.start(group), match.end()


def _before_extension(number: str) -> str:
    return re.split(r"[,;]?\s?(?:ext|x|#|Durch|poste|int|ramal)", number, maxsplit=1)[0]


def _is_international_number(match: str) -> bool:
    number = _before_extension(match)
    digits = digits_of(number)
    if number.startswith("00"):
        return 8 <= len(digits) - 2 <= 16 and (len(digits) >= 12 or any(sign in number for sign in " -/.("))
    return 8 <= len(digits) <= 16 and (len(digits) >= 10 or _THOUSANDS.fullmatch(number) is None)


def _is_trunk_number(match: str) -> bool:
    """Return True if a number with a leading zero has a valid length and isn't a date."""
    number = _before_extension(match)
    digits = digits_of(number)
    groups = re.findall(r"[0-9]+", number)
    if not 9 <= len(digits) <= 12 or len(groups) < 2 or _DATE.match(number) is not None:
        return False
    separators = set(re.findall(r"[./-]", number))
    if separators == {"."} and len(groups) in (2, 4):  # a decimal or an IP address
        return False
    return len(groups[0]) >= 2 or number.startswith("(0)")


# --- validation with phonenumbers, the Python port of libphonenumber

_CANDIDATE = lazy(_LEFT + r"\(?[1-9][0-9]{0,4}\)?([ .-])[0-9]{2,5}(?:\1[0-9]{2,5}){0,3}" + _RIGHT)
_REGIONS = ("ES", "PL", "NO", "DK", "PT", "CZ", "GR", "SG", "HK", "MX", "IT", "IN", "CL", "CO")
_MOST_CANDIDATES = 200
"""Maximum number of candidates to validate per text. Each candidate takes about 50 µs."""


@cache
def phone_library() -> ModuleType:
    import phonenumbers  # on first use: it takes 20 ms

    return phonenumbers


def parsed(number: str, region: str | None) -> Any:
    try:
        return phone_library().parse(number, region)
    except phone_library().NumberParseException:
        return None


@lru_cache(maxsize=1024)
def _is_assigned(text: str) -> bool:
    library = phone_library()
    for region in _REGIONS:
        number = parsed(text, region)
        if number is not None and library.is_valid_number_for_region(number, region):
            usual_form = library.format_number(number, library.PhoneNumberFormat.NATIONAL)
            if re.findall(r"[0-9]+", usual_form) == re.findall(r"[0-9]+", text):
                return True
    return False
