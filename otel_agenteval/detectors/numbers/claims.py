"""Find the numbers, dates, and times of day that an answer states."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from ..texts import in_small_letters
from .reading import MONTHS, Day, Reading, clocks_in, days_of, readings_of, scale_after

_CODE = re.compile(r"```.*?(?:```|\Z)|``?[^`\n]{1,300}``?", re.DOTALL)
_LINK = re.compile(r"\]\([^()\s]{1,2000}\)|(?:https?://|www\.)[^\s()<>]{1,2000}|[^\s@]{1,100}@[^\s@]{1,100}")


def statements(text: str) -> str:
    text = _CODE.sub(_blank, text) if "`" in text else text
    may_have_links = "://" in text or "](" in text or "@" in text or "www." in text
    return _LINK.sub(_blank, text) if may_have_links else text


def code_in(text: str) -> list[str]:
    return _CODE.findall(text) if "```" in text else []


def _blank(found: re.Match[str]) -> str:
    return " " * (found.end() - found.start()) if "\n" not in found.group() else re.sub(r"[^\n]", " ", found.group())


class Claim(NamedTuple):
    """A number, date, or time of day in an answer. Some claims, such as ``1.234``, have several possible values."""

    text: str
    at: int
    end: int
    readings: tuple[Reading, ...] = ()
    scale: float = 1.0
    """Factor of the word or sign after the number: 1,000,000 for ``million``, 0.01 for ``%``."""
    after: str = ""
    """The word or sign after the number that scales it, such as ``million``."""
    days: tuple[Day, ...] = ()
    minutes: int = -1
    """Minutes since midnight, or -1 if the claim isn't a time of day."""

    @property
    def is_small(self) -> bool:
        """True for 0, 100 %, and whole numbers up to 10 (but not ``5 %``), which don't need a source."""
        value, half = self.readings[0]
        return not value or (value <= 10 and half == 0.5 and self.scale == 1.0)

    @property
    def scaled(self) -> list[Reading]:
        return [(value * self.scale, half * self.scale) for value, half in self.readings]


NUMBER = re.compile(r"[0-9]+(?:[.,:/'’\u00a0\u202f-][0-9]+)*")
_PLAIN_BEFORE = frozenset(" \n\t($€£*|")
_LIST_MARKER = re.compile(r"[0-9]{1,3}[.)](?![0-9])")
_FOOTNOTE = re.compile(r"[0-9]{1,3}\]")
_NAME_BEFORE = re.compile(r"[A-Za-z_](?<!Rp)[-_./\\]?$")
_POWER = re.compile(r"[eE]([-+][0-9]{1,2})(?![0-9A-Za-z])|\s?[×·⋅x*]\s?10(?:\^|\*\*)([-+]?[0-9]{1,2})(?![.,]?\d)")  # 6 × 10^23
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){2,3}")
_GLUED = re.compile(r"(?![hHx×])[A-Za-z]{1,4}[0-9]")
"""Pattern for letters and digits that make a number part of an identifier: ``B2`` in ``7B2``."""
_LONGEST = 200
_DEEPEST_LIST = 40


def _is_name(text: str, at: int, token: str) -> bool:
    """Return True if a number belongs to a name (``GPT-4``), list marker, footnote, or version, or is very long."""
    end = at + len(token)
    before, behind = text[at - 1 : at] or "\n", text[end : end + 1]
    if (behind.isalpha() and _GLUED.match(text, end)) or len(token) > _LONGEST:
        return True
    is_footnote = before == "[" and _FOOTNOTE.match(text, at) is not None
    if is_footnote or (before not in _PLAIN_BEFORE and _NAME_BEFORE.search(text, max(0, at - 2), at)):
        return True
    if behind in ".)" and _LIST_MARKER.match(text, at):
        line = text.rfind("\n", max(0, at - _DEEPEST_LIST), at)
        if (line >= 0 or at <= _DEEPEST_LIST) and not text[line + 1 : at].strip(" \t>#*_-"):
            return True
    is_version = token.count(".") > 1 and _VERSION.fullmatch(token) is not None and not days_of(token)
    return is_version and not all(len(group) == 3 for group in token.split(".")[1:])  # thousands


def claims_in(text: str) -> list[Claim]:
    wholes: dict[int, Claim] = {}
    for whole in (*_clock_claims(text), *_spaced_claims(text)):
        if whole.at not in wholes or wholes[whole.at].end <= whole.end:
            wholes[whole.at] = whole
    claims: list[Claim] = []
    for found in NUMBER.finditer(text):
        at, token = found.start(), found.group()
        if (claims and at < claims[-1].end) or _is_name(text, at, token):
            continue
        if at in wholes or token.isdigit():
            claims.append(wholes[at] if at in wholes else _whole_claim(text, at, token))
        else:
            claims += _split_claims(text, at, token)
    return claims


def _split_claims(text: str, at: int, token: str) -> Iterator[Claim]:
    """Yield the claims in digits with punctuation: a date, a decimal, or several numbers."""
    end = at + len(token)
    if text.startswith("24/7", at):
        return
    days = days_of(token)
    if days and (len(token) > 5 or "/" in token or (text[end : end + 1] == "." and not text[end + 1 : end + 2].isdigit())):
        readings: tuple[Reading, ...] = ()
        if len(token) <= 5:
            readings = readings_of(token)[0] if "." in token else ((max(map(float, re.split("[-/]", token))), 0.5),)
        yield Claim(token, at, end, readings, days=days)
        return
    start = at
    for piece in re.split("[-/:]", token):
        if piece.isdigit() and start + len(piece) == end:
            yield _whole_claim(text, start, piece)  # 17-18 February
        else:
            yield from (_number_claim(text, start, piece, each) for each in readings_of(piece))
        start += len(piece) + 1


def _whole_claim(text: str, at: int, token: str) -> Claim:
    value = int(token[:300])
    if 1 <= value <= 31:
        day, end = _day_beside(text, at, at + len(token), value)
        if day is not None:
            return Claim(text[at:end], at, end, days=(day,))
    return _number_claim(text, at, token, ((float(value), 0.5),))


def _number_claim(text: str, at: int, token: str, readings: tuple[Reading, ...]) -> Claim:
    end = at + len(token)
    if (power := _POWER.match(text, end)) is not None:
        end, factor = power.end(), float(f"1e{power[1] or power[2]}")
        return Claim(text[at:end], at, end, (*readings, *((value * factor, half * factor) for value, half in readings)))
    scale, word = scale_after(text, end)
    if scale == 0.01 and readings[0][0] == 100.0:
        return Claim(token, at, end, ((0.0, 0.5),))  # the whole
    return Claim(token, at, end, readings, scale, word)


# --- dates and times -----------------------------------------------------------------------------------------------

_MONTH_BEHIND = re.compile(
    r"(?:st|nd|rd|th|er|º|ª|-?го|-е|\.)?,?(?:\s(?:de|of|di)(?=\s))?[ \u00a0]?(?:d[’'])?ב?([^\s\d.,;:!?()|*/–-]{3,16})\.?(?:,?\s(?:de |del |of )?([12][0-9]{3})(?![0-9]))?"
)
_ENDS = frozenset(("", "\n", "|", ")", "%", ":", ";", "*"))
_YEAR_BEHIND = re.compile(r"(?:st|nd|rd|th)?,? ([12][0-9]{3})(?![0-9])")


def _day_beside(text: str, at: int, end: int, day: int) -> tuple[Day | None, int]:
    if text[end : end + 1] not in _ENDS:
        found = _MONTH_BEHIND.match(text, end)
        if found is not None and (month := MONTHS.get(found.group(1).lower())) is not None:
            return (int(found.group(2) or 0), month, day), found.end(2) if found.group(2) else found.end(1)
    if text[at - 1 : at] == " ":
        before = text[max(0, at - 22) : at - 1].rstrip(".").removesuffix(" the")
        month = MONTHS.get(before[before.rfind(" ") + 1 :].lstrip("*(").lower())
        if month is not None:
            year = _YEAR_BEHIND.match(text, end)
            return (int(year.group(1)) if year is not None else 0, month, day), year.end() if year is not None else end
    return None, end


def _clock_claims(text: str) -> Iterator[Claim]:
    for start, end, minutes in clocks_in(text):
        token = text[start:end]
        readings: tuple[Reading, ...] = ()
        days: tuple[Day, ...] = ()
        if "." in token and token[-1].isdigit():  # may be a number or a date
            readings, days = readings_of(token)[0], days_of(token) if text[end : end + 1] == "." else ()
            scale, word = scale_after(text, end)
            if scale != 1.0:
                yield Claim(token, start, end, readings, scale, word)
                continue
        elif token.isdigit() and text[end:].lstrip()[:1] in "hH":
            readings = ((float(token), 0.5),)
        yield Claim(token, start, end, readings, days=days, minutes=minutes)


_SPACED = re.compile(
    r"[0-9](?<![0-9A-Za-z.,][0-9])(?<![0-9][ \u00a0\u202f][0-9])[0-9]{0,2}(?:[ \u00a0\u202f][0-9]{3}){1,4}(?:[.,][0-9]{1,2})?(?![ \u00a0\u202f]?[0-9])"
)


def _spaced_claims(text: str) -> Iterator[Claim]:
    for found in _SPACED.finditer(text):
        whole, mark, cents = re.sub("[ \u00a0\u202f]", "", found.group()).replace(",", ".").partition(".")
        reading = float(f"{whole}{mark}{cents}"), 0.5 * 10.0 ** -len(cents)
        yield Claim(found.group(), found.start(), found.end(), (reading,), *scale_after(text, found.end()))


# --- numbers that state nothing ------------------------------------------------------------------------------------

_NAME = re.compile(
    r"(?:\b(?:ISO|IEC|DIN|EN|IEEE|NIST|ANSI|RFC|ECMA|ASTM|CVE|CWE|KB|PEP|SOC|PCI|GDPR|DSGVO|RGPD|BGB|StGB|HGB|USC|U\.S\.C\.|CFR|"
    r"Windows|Win|Office|Python|Java|JDK|PHP|Ruby|Go|Rust|Perl|Kotlin|Swift|Scala|Node(?:\.js)?|npm|Django|Rails|React|Angular|Vue|Spring(?: Boot)?|Kubernetes|K8s|"
    r"PostgreSQL|Postgres|MySQL|MariaDB|Oracle|SQL Server|MongoDB|Redis|OpenSSL|TLS|SSL|HTTP|HTTPS|SHA|AES|RSA|UTF|IPv|USB|HDMI|Bluetooth|Wi-?Fi|WLAN|"
    r"Ubuntu|Debian|Fedora|CentOS|RHEL|Alpine|macOS|OS X|iOS|iPadOS|Android|Chrome|Firefox|Safari|"
    r"iPhone|iPad|Galaxy|Pixel|PlayStation|PS|Xbox|GPT|Claude|Gemini|Llama|Boeing|Airbus|Embraer|MiG|Formula|Formel|Fórmula|Euro|Covid|COVID|Route|Form|Schedule|Catch|Apollo|"
    r"port|ports|version|Version|versión|versione|версия|версии|v|release|build|status(?: code)?|error(?: code)?|Fehler|code|exit code|"
    r"[Aa]rt(?:icle|ikel|ículo|icolo|igo|\.)?|[Ss]ection|[Ss]ec\.|[Pp]aragraph|[Cc]hapter|[Cc]lause|Kapitel|Abschnitt|Abs\.|Absatz|"
    r"[Ss]tep|[Ss]chritt|[ÉéEe]tape|[Pp]aso|[Pp]asso|[Ss]tap|[Kk]rok|[Шш]аг|[Ff]ig(?:ure|\.)?|[Tt]able|Abb\.|Tabelle|[Ll]evel|"
    r"Ст\.|ст\.|стать[яеи]|madde|статт[яі])|§§?|第|№)[ \u00a0-]?$"
)
_AFTER_NAME = re.compile(r"\(k\)|-?bit\b|[GD]\b|p\b| MAX\b|\. ?(?:madde|satır)| ?GHz\b")
_HYPOTHETICAL = re.compile(
    r"\b(?:for example|for instance|e\.g\.|suppose|imagine|let's say|say you|if you (?:put|had|were|earn|invest|buy|save)|hypothetical|as a rule|"
    r"rule of thumb|in general\b|generally speaking|generally|zum beispiel|beispielsweise|z\.\s?b\.|angenommen|im allgemeinen|generell|allgemein gilt|faustregel|"
    r"par exemple|p\.\s?ex\.|supposons|imaginons|en général|en règle générale|por ejemplo|p\.\s?ej\.|supongamos|en general|por lo general|per esempio|ad esempio|"
    r"in generale|por exemplo|em geral|bijvoorbeeld|bijv\.|stel dat|over het algemeen|na przykład|np\.|ogólnie|например|допустим|предположим|как правило|"
    r"наприклад|припустимо|зазвичай|örneğin|diyelim|genel olarak|till exempel|t\.ex\.|i allmänhet|misalnya|contohnya|umumnya|ví dụ|thông thường|esimerkiksi|"
    r"például|for eksempel|if\b.{1,120}?(?:\bwould\b|'d\b)|würden?|wäre|olursa|olsa)(?:\b|(?<=\.))"
)
"""Pattern for lower-case phrases in examples, hypotheses, and general statements."""
_HYPOTHETICAL_BEYOND_LATIN = (
    "例えば", "たとえば", "一般的に", "一般に", "比如", "例如", "假设", "一般来说", "예를 들어", "일반적으로", "على سبيل المثال", "مثلا", "बत के तौर", "उदाहरण", "לדוגמה", "למשל", "ตัวอย่าง",
)  # fmt: skip
_SENTENCE_END = re.compile(  # but not the dots in "e.g.", "z. B.", "p. ex.", …
    r"(?i)[.!?…](?<!\be\.g\.|\bz\.b\.)(?<!\bz\.\sb\.|\b[pt]\.ex\.|\bp\.ej\.|\bbijv\.)(?<!\bp\.\se[xj]\.)(?<!\bnp\.)(?<!\b[zp]\.(?=\s(?:b|e[xj])\.))[ \n\"”)]|[\n。！？]"
)


def _sentence_of(text: str, at: int) -> str:
    begin = 0
    for found in _SENTENCE_END.finditer(text, max(0, at - 300), at):
        begin = found.end()
    end = _SENTENCE_END.search(text, at, at + 300)
    return text[max(begin, at - 300) : end.end() if end is not None else at + 300]


def is_no_claim(claim: Claim, text: str) -> bool:
    """Return True if a claim is part of a name, example, hypothesis, or question, or is a constant such as 365."""
    sentence = _sentence_of(text, claim.at)
    if sentence.rstrip()[-1:] in ("?", "？", "؟") or _is_hypothetical(sentence):
        return True
    if not claim.readings:
        return False
    at = claim.at
    while text[at - 1 : at] == "-" and text[at - 2 : at - 1].isdigit():
        at = claim.at - len(_ROW.search(text[max(0, claim.at - 20) : claim.at]).group())  # type: ignore[union-attr]
    if _NAME.search(text, max(0, at - 18), at) or _AFTER_NAME.match(text, claim.end):
        return True
    value = claim.readings[0][0]
    return value in _PERIODS and (value > 360 or _BY.search(text, max(0, at - 8), at) is not None)


_ROW = re.compile("[0-9-]+$")
_PERIODS = frozenset((12.0, 24.0, 52.0, 60.0, 100.0, 1000.0, 365.0, 366.0))
_BY = re.compile(r"(?:[×÷/*:^]|per|pro|je|par|por|per|na|на|every|alle|各|毎)\s?$")


@lru_cache(maxsize=64)
def _is_hypothetical(sentence: str) -> bool:
    if _HYPOTHETICAL.search(in_small_letters(sentence)) is not None:
        return True
    return not sentence.isascii() and any(words in sentence for words in _HYPOTHETICAL_BEYOND_LATIN)
