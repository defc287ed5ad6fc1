"""Restrict an answer to its statements, without code, samples and incidental numbers."""

from __future__ import annotations

import json
import re

from ..texts import in_small_letters
from .reading import Number

_INLINE_CODE = re.compile(r"``?[^`\n]{1,300}``?")
_LINK_TARGET = re.compile(r"\]\([^()\s]{1,2000}\)")


def statements(text: str) -> str:
    """Return the text without code, link targets and sample objects.

    Line breaks stay.
    """
    if "`" in text:
        if "```" in text:
            text = "\n".join(text.split("```")[::2])
        text = _INLINE_CODE.sub(" ", text)
    if "]" in text and "](" in text:
        text = _LINK_TARGET.sub("]", text)
    if "{" in text and text.lstrip()[:1] not in "{[":
        text = "\n".join(block for block in text.split("\n") if not _is_json(block))
    return text


def _is_json(line: str) -> bool:
    line = line.strip()
    if not (line.startswith(("{", "[{")) and line.endswith(("}", "]"))):
        return False
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


_NAME = re.compile(
    r"(?:\b(?:ISO|IEC|DIN|EN|IEEE|NIST|ANSI|RFC|ECMA|ASTM|CVE|CWE|KB|PEP|SOC|PCI|GDPR|DSGVO|RGPD|BGB|StGB|HGB|USC|U\.S\.C\.|CFR|"
    r"Windows|Win|Office|Python|Java|JDK|PHP|Ruby|Go|Rust|Perl|Kotlin|Swift|Scala|Node(?:\.js)?|npm|Django|Rails|React|Angular|Vue|Spring(?: Boot)?|Kubernetes|K8s|"
    r"PostgreSQL|Postgres|MySQL|MariaDB|Oracle|SQL Server|MongoDB|Redis|OpenSSL|TLS|SSL|HTTP|HTTPS|SHA|AES|RSA|UTF|IPv|USB|HDMI|Bluetooth|Wi-?Fi|WLAN|"
    r"Ubuntu|Debian|Fedora|CentOS|RHEL|Alpine|macOS|OS X|iOS|iPadOS|Android|Chrome|Firefox|Safari|"
    r"iPhone|iPad|Galaxy|Pixel|PlayStation|PS|Xbox|GPT|Claude|Gemini|Llama|Boeing|Airbus|Embraer|MiG|Formula|Formel|Fórmula|Euro|Covid|COVID|Route|Form|Schedule|Catch|Apollo|"
    r"port|ports|version|Version|versión|versione|версия|версии|v|release|build|status(?: code)?|error(?: code)?|Fehler|code|exit code|"
    r"[Aa]rt(?:icle|ikel|ículo|icolo|igo|\.)?|[Ss]ection|[Ss]ec\.|[Pp]aragraph|[Cc]hapter|[Cc]lause|Kapitel|Abschnitt|Abs\.|Absatz|"
    r"[Ss]tep|[Ss]chritt|[ÉéEe]tape|[Pp]aso|[Pp]asso|[Ss]tap|[Kk]rok|[Шш]аг|[Ff]ig(?:ure|\.)?|[Tt]able|Abb\.|Tabelle|[Ll]evel|"
    r"Ст\.|ст\.|стать[яеи]|madde|статт[яі])|§§?|第)[ \u00a0-]?$"
)
_AFTER_NAME = re.compile(r"\(k\)|-?bit\b|[GD]\b|p\b| MAX\b")
_VERSION = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9}){2,3}")
_CONSTANTS = (
    (frozenset((365.0, 366.0)), re.compile(r"365|366")),
    (frozenset((24.0,)), re.compile(r"24[ -]?(?:h(?:ours?|rs?)?|Stunden|heures|horas|ore|часа)\b.{0,12}(?:a|per|am|pro|par|sur|al|del|en|в|every|/) ?", re.DOTALL)),
    (frozenset((60.0,)), re.compile(r"60 (?:min|sec)\w* (?:in|per|an|make|are)")),
)  # fmt: skip
_STATUS = frozenset(
    (200, 201, 202, 204, 206, 301, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 410, 412, 413, 415, 418, 422, 423, 429, 431, 451, 500, 501, 502, 503, 504)
)  # fmt: skip
_STATUS_BEFORE = re.compile(
    r"\b(?:an?|no|any|or|and|the|with|returns?|returned|got|gets?|ein(?:e|en|em|er)?|kein(?:e|en)?|mit|liefert|un|una|uno|des|les|con|de|код\w*|ошибк\w+)\s$",
    re.IGNORECASE,
)
_STATUS_BEHIND = re.compile(
    r"(?:e?r?s|-?er)?(?:[.,;:!?)]| (?:in|within|or|and|would|means?|if|when|from|on|response|error|und|oder|bei|wenn|würde|et|ou|y|o|si)\b|$)"
)
_OF_SERVERS = re.compile(
    r"\b(?:https?|servers?|endpoints?|api|respon\w+|requests?|status|webhooks?|gateways?|serv(?:eur|idor|izio)|сервер\w*)\b",
    re.IGNORECASE,
)
_EVERY = re.compile(r"\b(?:every|each|alle|toutes les|cada|ogni|każde|каждые|кожні|var|elke|her)\s$", re.IGNORECASE)
_DAILY = re.compile(
    r"\b(?:per day|a day|daily|pro tag|täglich|par jour|al día|diari\w+|al giorno|por dia|per dag|dziennie|в день|на день)\b",
    re.IGNORECASE,
)
_PER = re.compile(
    r"(?:\b(?:per|pro|je|for each|out of|pour|sur|por cada|cada|ogni|su|per każde|на|из|на каждые)|/|每|auf|par)\s?$",
    re.IGNORECASE,
)
_HYPOTHETICAL = re.compile(
    r"\b(?:for example|for instance|e\.g\.|suppose|imagine|let's say|say you|if you (?:put|had|were|earn|invest|buy|save)|hypothetical|as a rule|"
    r"rule of thumb|in general\b|generally speaking|generally|zum beispiel|beispielsweise|z\. ?b\.|angenommen|im allgemeinen|generell|allgemein gilt|faustregel|"
    r"par exemple|p\. ?ex\.|supposons|imaginons|en général|en règle générale|por ejemplo|p\. ?ej\.|supongamos|en general|por lo general|per esempio|ad esempio|"
    r"in generale|por exemplo|em geral|bijvoorbeeld|bijv\.|stel dat|over het algemeen|na przykład|np\.|ogólnie|например|допустим|предположим|как правило|"
    r"наприклад|припустимо|зазвичай|örneğin|diyelim|genel olarak|till exempel|t\.ex\.|i allmänhet|misalnya|contohnya|umumnya|ví dụ|thông thường|esimerkiksi|"
    r"například|for eksempel)"
)
"""Phrases in lower case that introduce an example or a general statement."""
_HYPOTHETICAL_BEYOND_LATIN = (
    "例えば", "たとえば", "一般的に", "一般に", "比如", "例如", "假设", "一般来说", "예를 들어", "일반적으로", "على سبيل المثال", "مثلا", "बत के तौर", "उदाहरण", "לדוגמה", "למשל", "ตัวอย่าง",
)  # fmt: skip
_SENTENCE_END = re.compile(r"[.!?…][ \n\"”)]|[\n。！？]")
_HEDGE = re.compile(
    r"(?:about|around|roughly|approximately|approx\.|almost|nearly|just (?:over|under)|over|under|more than|less than|some|close to|~|≈|circa|ca\.|etwa|rund|knapp|gut|ungefähr|über|fast|"
    r"environ|près de|plus de|presque|unos|unas|cerca de|alrededor de|aproximadamente|casi|más de|quasi|oltre|около|примерно|почти|более|приблизно|близько|"
    r"yaklaşık|約|约|大约|将近|超过|およそ|ほぼ|약|noin|cca|asi|około|ok\.|ponad|ongeveer|bijna|ruim|omkring|drygt|knappt|cirka|nästan|khoảng|gần|sekitar|kurang lebih|"
    r"حوالي|نحو|تقريبا|حدود|लगभग|करीब|প্রায়|ประมาณ|περίπου|בערך|כ-)\s?[$€£¥₹]?\s?$",
    re.IGNORECASE,
)


def sentence_of(text: str, at: int) -> str:
    """Return the sentence around a position, at most 600 characters."""
    begin = 0
    for found in _SENTENCE_END.finditer(text, max(0, at - 300), at):
        begin = found.end()
    end = _SENTENCE_END.search(text, at, at + 300)
    return text[max(begin, at - 300) : end.start() if end is not None else at + 300]


def is_no_claim(number: Number, text: str) -> bool:
    """Return True if a number doesn't state anything.

    Such a number is part of a name or an example, a constant, or the number of a step.
    """
    at, end = number.at, number.end
    before = text[max(0, at - 40) : at]
    if _NAME.search(text, max(0, at - 16), at) or _AFTER_NAME.match(text, end):
        return True
    version = _VERSION.search(text, max(0, at - 12), end + 12)
    if version is not None and version.start() <= at < version.end() and _is_version(version.group()):
        return True
    value = number.readings[0][0]
    if any(value in values and pattern.match(text, at) for values, pattern in _CONSTANTS):
        return True
    if value in (100.0, 1000.0) and _PER.search(before):
        return True
    sentence = sentence_of(text, at)
    if value == 24.0 and _EVERY.search(before) and _DAILY.search(sentence):
        return True
    if value in _STATUS and _is_status(text, at, end, sentence):
        return True
    return _is_hypothetical(sentence)


def _is_status(text: str, at: int, end: int, sentence: str) -> bool:
    """Return True for a server's status code, as in ``a 200`` or ``no 500s``."""
    return (
        _STATUS_BEFORE.search(text, max(0, at - 12), at) is not None
        and _STATUS_BEHIND.match(text, end) is not None
        and _OF_SERVERS.search(sentence) is not None
    )


def _is_hypothetical(sentence: str) -> bool:
    if _HYPOTHETICAL.search(in_small_letters(sentence)) is not None:
        return True
    return not sentence.isascii() and any(words in sentence for words in _HYPOTHETICAL_BEYOND_LATIN)


def _is_version(token: str) -> bool:
    """Return True for a version such as ``3.0.13``, not for ``13.05.2024`` or ``1.234.567``."""
    groups = token.split(".")
    if len(groups) == 3 and len(groups[2]) == 4 and int(groups[0]) <= 31 and int(groups[1]) <= 31:
        return False
    return not all(len(group) == 3 for group in groups[1:])


def is_hedged(number: Number, text: str) -> bool:
    return _HEDGE.search(text, max(0, number.at - 24), number.at) is not None
