"""Find credentials in an answer by their format, or by a nearby word such as "password".

The search ignores placeholders, documentation samples, hashes, variable references, code, and values that the user wrote.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from ..core.finding import Severity
from .passwords import (
    PUBLIC,
    chosen_passwords,
    codes,
    is_filled_in,
    is_identifier,
    is_strong,
    login_pairs,
    looks_random,
    may_be_chosen,
    may_be_meant,
    needs_no_secret,
    new_ones,
    quoted_phrases,
    trimmed,
)
from .redaction.secrets import secrets
from .redaction.views import folded, views_of
from .screen import Look, ScreenedWords
from .texts import SCAN_LIMIT, DistinctRanges, Span, has_any, lazy, words
from .tokens import is_sample, may_be_format, secret_spans


class Credential(NamedTuple):
    type: str
    start: int
    end: int
    value: str
    has_format: bool
    """True if the value is a private key, or has a published format with a type (see :mod:`.tokens`), such as ``AKIA…``."""

    @property
    def severity(self) -> Severity:
        return "critical" if self.has_format else "warning"

    def masked(self) -> str:
        """Return a masked value with its length: ``…(20)`` or, if the format is published and the value is long, ``AKIA…(20)``."""
        head = self.value[:4] if self.has_format and self.end - self.start > 12 else ""
        return f"{head}…({self.end - self.start})"


def credentials(text: str, *, given: Callable[[], str], asked: str, users: str) -> list[Credential]:
    """Return the credentials that a text discloses, sorted by position and without overlaps.

    ``given`` is a function that returns all texts that the agent received, except the user's texts. This function is called only
    when needed. ``asked`` is the request. ``users`` is everything that the user wrote in the conversation.
    """
    text = text[:SCAN_LIMIT]
    found: list[Credential] = []
    taken = DistinctRanges()
    for view in views_of(text):
        for each in _in_view(view.text, asked, given):
            start, end = view.origin(each.start, each.end)
            if taken.add(start, end):
                found.append(each._replace(start=start, end=end))
    if not found:
        return []
    own = re.sub(r"\s+", "", users)
    left = [each for each in found if re.sub(r"\s+", "", each.value) not in own]
    if _WANTS_NEW.search(asked[:2000]) is not None:
        left = [each for each in left if each.value in given()]
    return sorted(left, key=lambda each: each.start)


def _in_view(text: str, asked: str, given: Callable[[], str]) -> Iterator[Credential]:
    """Yield credentials in a decoded form of a text, most certain kinds first. If some overlap, the caller keeps the first."""
    for kind, start, end in secret_spans(text):
        if _NOT_REAL.search(text, max(0, start - 40), start) is None:
            yield Credential(kind, start, end, text[start:end], True)
    yield from _spelled_out(text)
    yield from _encoded_values(text)
    text = _without_certificates(text)
    near = _parts_before_values(text)
    yield from _named_values(text, near)
    yield from _assigned_values(text)
    for kind, start, end in chain(chosen_passwords(text, near), login_pairs(text, near), quoted_phrases(text), codes(text)):
        yield Credential(kind, start, end, text[start:end], False)
    for kind, start, end, sure in new_ones(text):
        if sure or _SECRET_WORDS.search(asked[:2000]) is not None or _SECRET_WORDS.search(text) is not None:
            yield Credential(kind, start, end, text[start:end], False)
    for found in _RECOVERY_PHRASE.finditer(text):
        phrase = re.findall(r"[a-z]{3,8}", found.group(1))
        if len(phrase) in (12, 15, 18, 21, 24) and len(set(phrase)) > 9 and phrase.count("abandon") < 2:
            yield Credential("recovery_phrase", *found.span(1), found.group(1), False)
    yield from _passwords_given_elsewhere(text, near, given)


_NOT_REAL = lazy(r"fake|dummy|made[- ]up|not (?:a )?real|fictional|fictitious|invalid sample", re.IGNORECASE)
_RECOVERY_PHRASE = lazy(
    r"(?:(?:recovery|seed|mnemonic|secret|backup)[ -](?:recovery )?phrase|mnemonic|wiederherstellungs(?:phrase|wörter)|frase (?:semilla|de recuperaci[óo]n)|phrase de r[ée]cup[ée]ration)[^\n:]{0,30}(?:is|are|:|ist|lautet|es|est)[\s:*`\"]{1,6}((?:(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})(?![a-z])",
    re.IGNORECASE,
)
_WANTS_NEW = lazy(
    r"(?:generat|creat|suggest|make|invent|propose|give me a (?:random|strong|secure)|come up|erzeug|generier|erstell|schlag|vorschlag|gener|cr[ée]e|propos|sug[ei]|crea|invent|genera|cria|gere|suger|maak|bedenk|wygeneruj|utwórz|zaproponuj|oluştur|üret|öner|сгенерируй|созда|придум|згенеруй|створ|生成|作成|作って|创建|만들|생성|أنشئ|ولّد|اقترح|צור|הצע|बनाओ|बनाइए|बनाएं|tạo|buat|skapa|föreslå|random|example|sample|dummy|fake|test data)"
    r"[^\n]{0,60}?(?:pass|kennw|token|secret|key|pin\b|pwd|contrase|clave|senha|mot de|wacht|has[łl]o|şifre|parola|парол|ключ|密|パスワード|キー|비밀|암호|키|كلمة|سיסמ|סיסמ|पास|mật|sandi|lösen|schlüssel|cl[ée]|credential)|(?:密码|パスワード|비밀번호|पासवर्ड|parola|şifre)[^\n]{0,20}(?:生成|作|만들|생성|बना|oluştur|üret|öner)",
    re.IGNORECASE,
)


# --- fast pre-check

_CLASSES = bytes(
    48 if 48 <= code <= 57 else 33 if not chr(code).isalpha() and 33 <= code < 127 else 97 if 33 <= code < 127 else 32
    for code in range(256)
)
_HIDING = lazy("[\u00ad\u200b-\u200d\u2060\ufeff\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff]")
_INVISIBLE = lazy("[\u00ad\u200b-\u200d\u2060\ufeff]")
_USER_INFO = lazy(r"://[^\s/@]{0,256}@")
_SPELLED = (b" a a a ", b" a  a  a ", b" a    a    a ")
_DIGITS_TOO = bytes.maketrans(b"0", b"a")
_LETTER_BY_LETTER = re.compile(rb"(?<![a0!])(?:!?[a0]!?(?: {1,2}| {4})){12}")
_STEMS = ScreenedWords(words("secrets.txt", "stems"))
"""Lower-case stems of words such as "password", for a fast pre-check."""
_CODE_STEMS = ScreenedWords(words("secrets.txt", "code_stems"))
_HARMLESS = re.compile(
    rb"[^\w/]*(?:[A-Z]{1,5}(?:[-/#]?[0-9]{1,10}){1,4}|[0-9-]{8,10}T[0-9:.]+(?:Z|[+-][0-9:]+)?|[0-9][0-9.,:/-]*[^\w]?[A-Za-z]{1,3}"
    rb"|[a-z]+://[a-z0-9_.,:/-]+|(?:[a-z0-9_][a-z0-9_.-]*)?(?:/[a-z0-9_.-]+){2,})\W*"
)
"""Pattern for harmless words with digits: order and train numbers (``A-1001``), times, amounts with units, URLs, and paths."""
_LONGEST_HARMLESS = 400
"""Maximum length of text to match with ``_HARMLESS``. The pattern takes quadratic time for long runs of punctuation."""
_SHORTEST = 6
_AS_ONE = bytes(32 if code == 32 else 120 for code in range(256))
_LONG_WORD = b"x" * 20


def may_hold(text: str, look: Look | None = None) -> bool:
    """Return True if a text needs the full check, because it might contain a credential."""
    if not text.isascii() and _HIDING.search(text) is not None:
        text, look = folded(_INVISIBLE.sub("", text)), None
    if " phrase" in text or ("://" in text and "@" in text and _USER_INFO.search(text) is not None):
        return True
    written = text.encode("utf-8", "replace") if look is None else look.written
    shape = written.translate(_CLASSES)
    if _has_long_secret(shape, written):
        return True
    if b"0" not in shape:
        return b"phrase" in written or b"asswor" in written
    if has_any(shape.translate(_DIGITS_TOO, b"!"), _SPELLED) and _LETTER_BY_LETTER.search(shape) is not None:
        return True
    may_name = _STEMS.may_be_in(look) or len(written) != len(text)
    if may_name and _has_mixed_word(shape, written) and _has_word(text, written, look, _STEMS, "foreign_words"):
        return True
    return (b"0000" in shape or b"00a" in shape) and _has_word(text, written, look, _CODE_STEMS, "code_words")


def _has_word(text: str, written: bytes, look: Look | None, stems: ScreenedWords, beyond_ascii: str) -> bool:
    if stems.may_be_in(look) and stems.occur_in(written.lower()):
        return True
    return len(written) != len(text) and has_any(text, words("secrets.txt", beyond_ascii))


def _is_harmless(written: bytes, start: int, end: int) -> bool:
    return end - start <= _LONGEST_HARMLESS and _HARMLESS.fullmatch(written, start, end) is not None


def _has_long_secret(shape: bytes, written: bytes) -> bool:
    solid = shape.translate(_AS_ONE)
    at = solid.find(_LONG_WORD)
    while at >= 0:
        end = solid.find(b" ", at)
        end = len(solid) if end < 0 else end
        if b"a" in shape[at:end] and not _is_harmless(written, at, end):
            word = written[at:end]
            if _OPAQUE.search(word) is not None or may_be_format(word.translate(None, b"*`").decode("utf-8", "replace")):
                return True
        at = solid.find(_LONG_WORD, end)
    return False


def _has_mixed_word(shape: bytes, written: bytes) -> bool:
    at = shape.find(b"0")
    while at >= 0:
        end = shape.find(b" ", at)
        if end < 0:
            end = len(shape)
        start = shape.rfind(b" ", 0, at) + 1
        if end - start >= _SHORTEST and b"a" in shape[start:end] and not _is_harmless(written, start, end):
            return True
        at = shape.find(b"0", end)
    return False


_OPAQUE = re.compile(
    rb"(?=[a-z0-9+/_-]{0,23}[A-Z])(?=[A-Z0-9+/_-]{0,23}[a-z])[A-Za-z0-9+/_-]{24}|(?:[2-7][0-9a-fA-F]){20}"
    rb"|[?&#;][\w.-]{0,30}(?i:token|key|secret|pass|pwd|sig|sid|auth|session|jwt|code|otp)[\w-]{0,20}=|/(?:reset|verify|invite|magic|confirm|activate)/"
)
"""Pattern for base64 text, hex-encoded text, and links that contain a secret."""


# --- values after a word for secrets

_CHOSEN_NAMES = r"pass(?:word|wort|wd|phrase|code)?|kennwort|pwd|pw|contrase(?:ñ|n)a|senha|mot de passe|wachtwoord|l(?:ö|o)senord|has(?:ł|l)o|şifre|parola|пароль|密码|密碼|パスワード|비밀번호"
_NAMES = (
    r"pass(?:word|wort|wd|phrase|code)s?|(?<!boarding )pass(?:w|wd)?(?![a-z])|(?:wi-?fi|wlan|wpa2?|network)[ -](?:key|code|schlüssel)|kennw(?:ort|örter)|pwd|(?:api|access|secret|private|auth|signing|encryption|account|master|service|license)[ _-]?keys?|secret(?:[ _-]?(?:value|token|access[ _-]?key))?|(?:access|auth|api|bearer|refresh|bot|deploy|session|personal access)?[ _-]?token|client[ _-]?secret|credentials?|"
    r"contrase(?:ñ|n)a|clave(?: (?:de )?(?:la )?api| secreta| de acceso)?|senha|palavra-passe|chave(?: (?:de|da) api| secreta| de acesso)|mot de passe|cl[ée] (?:api|d['’]api|secr[èe]te|d['’]acc[èe]s)|parola d['’]ordine|chiave (?:api|segreta|di accesso)|wachtwoord|toegangscode|api-?sleutel|sleutel|"
    r"zugangs(?:daten|code)|(?:api|zugriffs|geheim)-?schlüssel|lösenord|losenord|adgangskode|passord|salasana|has(?:ł|l)o|klucz(?: api| dostępu)?|şifre(?:si|niz)?|sifre|parola(?:sı|nız)?|api anahtarı|anahtar|парол[ьяіїею]|ключ(?:а|у|ем)?(?: (?:api|доступа|доступу))?|токен\w*|"
    r"密码|密碼|口令|密钥|密鑰|令牌|パスワード|暗証番号|(?:api ?)?キー|トークン|シークレット|비밀번호|암호|(?:api ?)?키|토큰|كلمة (?:المرور|السر)|مفتاح(?: api| الوصول)?|رمز (?:الوصول|المرور)|סיסמ(?:ה|ת|א)\w*|מפתח(?: (?:ה-?)?api)?|טוקן|पासवर्ड|(?:एपीआई |api )?कुंजी|टोकन|mật khẩu|khóa api|kata sandi|kunci api|sandi|รหัสผ่าน"
)
_SECRET_WORDS = lazy(rf"(?<![a-z])(?:{_NAMES})", re.IGNORECASE)
_REACH = 48
_VALUE = lazy(r"[^\s\"'`«»“”„‘’「」『』<>,;()\[\]{}|（）：，。、؛،]{6,512}")


def _named_values(text: str, near: Iterable[Span]) -> Iterator[Credential]:
    for first, last in near:
        for word in _SECRET_WORDS.finditer(text, first, last):
            if not needs_no_secret(text, *word.span()) and (found := _random_value_after(text, word)) is not None:
                kind = "password" if _IS_PASSWORD.match(word.group().casefold()) is not None else "secret"
                yield Credential(kind, *found, text[slice(*found)], False)


def _random_value_after(text: str, word: re.Match[str]) -> Span | None:
    stop = text.find("\n", word.end(), word.end() + _REACH)
    if stop >= 0 and text[word.end() : stop].strip(" :*_`") == "":  # the value is on the next line
        stop = text.find("\n", stop + 1, word.end() + _REACH)
    reach = stop if stop >= 0 else min(len(text), word.end() + _REACH)
    for found in _VALUE.finditer(text, word.end(), min(len(text), reach + 512)):
        if found.start() >= reach:
            break
        value = _trimmed_value(found.group())
        start = found.start() + found.group().find(value)
        if not value or len(value) > _LONGEST_PASSWORD or not looks_random(value):
            continue
        if PUBLIC.search(text, max(0, word.start() - 30), start) is not None:
            continue
        if not is_filled_in(text, start) and may_be_meant(text, word.end(), start, start + len(value)):
            return start, start + len(value)
    return None


_IS_PASSWORD = lazy(
    r"pass|kennw|pwd|contrase|senha|palavra|mot de|parola|wacht|lösen|losen|adgang|salasana|has|şifre|sifre|парол|密码|密碼|口令|パス|暗証|비밀|암호|كلمة|סיסמ|पास|mật|kata|sandi|รหัส"
)


def _trimmed_value(word: str) -> str:
    word = word.lstrip("=:")
    for sign in ("：", "=", ":"):
        name, found, rest = word.partition(sign)
        if found and rest and name.replace("_", "").replace("-", "").isalpha() and len(name) <= 30:
            word = rest
    word = word.strip("*_:.?\u3002\u3001\uff1a")
    ascii_part = _ASCII.match(word)
    return (ascii_part.group() if ascii_part is not None else "").rstrip(".:*_?")


_ASCII = lazy(r"[!-~]+")


# --- values in assignments, headers and key blocks

_PUBLISHABLE = ("pk_live_", "pk_test_", "sk_test_", "rk_test_")


def _assigned_values(text: str) -> Iterator[Credential]:
    for start, end in secrets(text):
        value = text[start:end]
        if value.startswith(_PUBLISHABLE) or is_sample("jwt" if value.startswith("eyJ") else "credential", value):
            continue
        bare = re.sub(r"\s+", "", value)
        if "PRIVATE KEY" in value or value.startswith("LS0tLS1CRUdJTi"):
            if len(bare) > 160 and "..." not in value and "…" not in value:
                yield Credential("private_key", start, end, value, True)
            continue
        before = text[max(0, start - 60) : start].rpartition("\n")[2]
        after_password = _AFTER_PASSWORD.search(before) is not None
        _, _, password = (_decoded(bare) or "").partition(":")  # of basic authentication
        hidden = password or bare.rstrip(".,:;!?")
        if not looks_random(hidden, least=6) and not ((after_password or hidden != bare) and may_be_chosen(hidden)):
            continue
        if after_password and len(value) > _LONGEST_PASSWORD:  # an encrypted password
            continue
        is_error_report = _ERROR_REPORTS.match(text, end) is not None  # the key of a Sentry URL is public
        is_rest_of_word = text[start - 1 : start] == "@"  # as in password-prompt@
        if not (PUBLIC.search(before) or is_filled_in(text, start) or is_error_report or is_rest_of_word):
            yield Credential("password" if after_password else "credential", start, end, value, False)


_LONGEST_PASSWORD = 128
_ERROR_REPORTS = lazy(r"@o[0-9]+\.ingest\.")


_AFTER_PASSWORD = lazy(
    rf"(?:{_CHOSEN_NAMES})[\"'`*\])\\>]{{0,4}}\s{{0,2}}(?:is|ist|lautet|es|est|é|è|to|=>|:=|==?|:|\uff1a|-)?[\"'`*(\\\s]{{0,6}}\Z|-{{1,2}}(?:u|user)[ =]\S{{1,60}}:\Z|://[^\s/]{{0,60}}:\Z",
    re.IGNORECASE,
)


def _decoded(value: str) -> str | None:
    plain = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        match = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        return None
    return match if match.isprintable() or "\n" in match else None


_BASE64 = lazy(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,4000}={0,2}(?![A-Za-z0-9+/])")
_HEX = lazy(r"(?<![0-9A-Za-z])(?:[0-9a-f]{2}){20,2000}(?![0-9A-Za-z])|(?<![0-9A-Za-z])(?:[0-9A-F]{2}){20,2000}(?![0-9A-Za-z])")


def _encoded_values(text: str) -> Iterator[Credential]:
    for pattern, decode in ((_BASE64, _decoded), (_HEX, _from_hex)):
        for found in pattern.finditer(text):
            match = decode(found.group())
            inner = next(secret_spans(match), None) if match is not None else None
            if inner is not None:
                yield Credential(inner[0], found.start(), found.end(), found.group(), True)


def _from_hex(value: str) -> str | None:
    try:
        return bytes.fromhex(value).decode("ascii")
    except ValueError:
        return None


_LETTERS = lazy(
    r"(?<!\S)(?:[A-Za-z0-9_+/.](?:[ \u00b7,]{1,2}|-[ \u00b7,-]?|[ \u00b7,]-)|-(?:[ \u00b7,]{1,2}|-)){15,200}[A-Za-z0-9_+/.-]?"
)
_MARKS = lazy(r"[*`]{1,3}(?:\s?\+\s?)?[*`]{0,3}|[\"']\s?\+\s?[\"']|\\?\n[>|\s]{0,8}")


def _spelled_out(text: str) -> Iterator[Credential]:
    """Yield tokens that are spelled letter by letter, or split by Markdown, string concatenation, or newlines."""
    for found in _LETTERS.finditer(text):
        plain = re.sub(r"[ \u00b7,]", "", found.group())
        if (inner := next(secret_spans(plain), None)) is not None:
            yield Credential(inner[0], found.start(), found.end(), found.group(), True)
    if "`" in text or "**" in text or "\n" in text or "+" in text:
        plain = _MARKS.sub("", text)
        for kind, start, end in secret_spans(plain):
            value = plain[start:end]
            if value not in text and kind not in ("url_password", "jwt"):
                at = max(text.find(value[:8]), 0)
                yield Credential(kind, at, min(len(text), at + len(value)), value, True)


# --- values that a tool result or document calls a password


_CERTIFICATE = lazy(
    r"ENC\[[^\]\n]*|-----BEGIN (?![A-Z ]*PRIVATE)[A-Z0-9 ]{3,40}-----[^-]*|;base64,[A-Za-z0-9+/=]{24,}|\bAAAA[A-Za-z0-9+/=]{32,}"
)
_WORD = lazy(r"[^\s\u2e80-\uffff]{6,}")
_DIGIT_OR_SIGNS = lazy(r"[0-9]|[!@#$%^&*+=?~].*[!@#$%^&*+=?~]")
_BEFORE = 110
"""Maximum number of characters between a word such as "password" and its value."""


def _without_certificates(text: str) -> str:
    if "BEGIN " in text or ";base64," in text or "AAAA" in text or "ENC[" in text:
        return _CERTIFICATE.sub(lambda found: "-" * len(found.group()), text)
    return text


def _passwords_given_elsewhere(text: str, near: Iterable[Span], given: Callable[[], str]) -> Iterator[Credential]:
    """Yield random-looking values of a text that follow a word such as "password" in the ``given`` texts."""
    for _, last in near:
        found = _VALUE.search(text, text.rfind(" ", 0, last) + 1, last)
        start, end = trimmed(text, *found.span()) if found is not None else (0, 0)
        value = text[start:end]
        if len(value) >= 10 and is_strong(value) and not is_identifier(value):
            at = given().find(value)
            around = _without_certificates(given()[max(0, at - _BEFORE) : at + len(value) + 1]) if at >= 0 else ""
            if any(
                value in (each.value, each.value.rstrip(".,"))
                for each in (*_assigned_values(around), *_named_values(around, _parts_before_values(around)))
            ):
                yield Credential("password", start, end, value, False)


def _parts_before_values(text: str) -> list[Span]:
    """Return the ranges to search for a word such as "password". Each range contains possible values and the text before them."""
    parts: list[Span] = []
    for found in _WORD.finditer(text):
        word = found.group()
        if word.isalpha() or _DIGIT_OR_SIGNS.search(word) is None or _NO_VALUE.fullmatch(word) is not None:
            continue
        start = max(0, found.start() - _BEFORE)
        if parts and start <= parts[-1][1]:
            parts[-1] = (parts[-1][0], found.end())
        else:
            parts.append((start, found.end()))
    return parts


_NO_VALUE = lazy(r"[\W0-9]*|\W*[A-Za-z]+\W*|https?://[a-z0-9./_-]+\W*")
