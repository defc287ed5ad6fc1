"""Find credentials in an answer by their format or by a nearby word such as "password".

A value without a known format counts only if it looks random. Placeholders, documentation samples, hashes, variable references
and code don't count. Values that the user wrote aren't leaks either.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from .lists import words
from .passwords import chosen_passwords, codes, login_pairs, quoted_phrases
from .places import Taken
from .redaction.patterns import lazy
from .redaction.secrets import secrets
from .redaction.views import MAX_LAYERS, View, first_view, next_view
from .screen import Look, ScreenedWords
from .secret_values import PUBLIC, looks_random, may_be_chosen, needs_no_secret
from .tokens import SCAN_LIMIT, is_sample, secret_spans


class Credential(NamedTuple):
    """A value in a text that grants access."""

    type: str
    start: int
    end: int
    value: str
    has_format: bool
    """True if the value has a published format. False if a nearby word identifies it."""

    def shown(self) -> dict[str, object]:
        """Return the credential for a score's detail, with the value masked.

        Only values with a published format keep their first four characters.
        """
        head = self.value[:4] if self.has_format and self.end - self.start > 12 else ""
        return {"type": self.type, "masked": f"{head}…({self.end - self.start})", "position": self.start}


# --- fast pre-check

_AS_ONE = bytes(32 if code == 32 else 120 for code in range(256))
_CLASSES = bytes(
    48 if 48 <= code <= 57 else 33 if not chr(code).isalpha() and 33 <= code < 127 else 97 if 33 <= code < 127 else 32
    for code in range(256)
)
_LONG_WORD = b"x" * 20
_CAPITALS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_HIDING = (
    b"\xef\xbc",
    b"\xe2\x80\x8b",
    b"\xe2\x80\x8c",
    b"\xe2\x80\x8d",
    b"\xe2\x81\xa0",
    b"\xef\xbb\xbf",
    b"\xc2\xad",
    b"\xf0\x9d",
)
"""First bytes of full-width letters, mathematical letters and invisible characters."""
_STEMS = ScreenedWords(words("secrets.txt", "stems"))
"""Parts of words in lower case. Every short secret has one of them nearby."""
_CODE_STEMS = ScreenedWords(words("secrets.txt", "code_stems"))


def may_hold(text: str, look: Look | None = None) -> bool:
    """Return True if a text needs the full check.

    The text needs one if it contains a long token, a short token with digits near a word for secrets, or a code near a word for
    codes.

    Args:
        text: Text of the answer.
        look: Screen of the same text, if available.
    """
    if ("://" in text and "@" in text) or " phrase" in text:
        return True
    written = text.encode("utf-8", "replace") if look is None else look.written
    shape = written.translate(_CLASSES)
    if _has_long_word(written, shape):
        return True
    ascii_only = len(written) == len(text)
    if not ascii_only and any(hiding in written for hiding in _HIDING):
        return True
    if b"0" not in shape:
        return b"phrase" in written or b"asswor" in written
    mixed = _mixed_word(shape, written)
    if mixed == "letters":
        return True
    if mixed == "word":
        if not ascii_only and any(word in text for word in words("secrets.txt", "foreign_words")):
            return True
        if _STEMS.may_be_in(look) and _STEMS.occur_in(written.lower()):
            return True
    if b"0000" in shape or b"00a" in shape:
        if _CODE_STEMS.may_be_in(look) and _CODE_STEMS.occur_in(written.lower()):
            return True
        return not ascii_only and any(word in text for word in words("secrets.txt", "code_words"))
    return False


def _has_long_word(written: bytes, shape: bytes) -> bool:
    """Return True if a word of at least 20 characters has a digit or at least four capitals.

    Compound words and rows of punctuation have neither.
    """
    words = shape.translate(_AS_ONE)
    at = words.find(_LONG_WORD)
    while at >= 0:
        end = words.find(b" ", at)
        end = len(words) if end < 0 else end
        if b"0" in shape[at:end] or end - at - len(written[at:end].translate(None, _CAPITALS)) > 3:
            return True
        at = words.find(_LONG_WORD, end)
    return False


_NUMBER_OF_A_THING = re.compile(rb"\W*[A-Z]{1,4}[-/#]?[0-9]{2,8}\W*")
"""``A-1001``, ``BX4417``: numbers of orders, trains and seats, which are frequent in ordinary answers."""


def _mixed_word(shape: bytes, written: bytes) -> str | None:
    """Return ``word`` or ``letters`` if the text has a token like a secret, or None.

    ``word`` is a token of at least six characters with letters and digits. ``letters`` is a token that is spelled letter by
    letter.
    """
    at = shape.find(b"0")
    while at >= 0:
        end = shape.find(b" ", at)
        if end < 0:
            end = len(shape)
        start = shape.rfind(b" ", 0, at) + 1
        if end - start >= _SHORTEST:
            if b"a" in shape[start:end] and _NUMBER_OF_A_THING.fullmatch(written, start, end) is None:
                return "word"
        elif end - start == 1 and (shape.count(b" ", end, end + 12) >= 6 or shape.count(b" ", max(0, start - 12), start) >= 6):
            return "letters"
        at = shape.find(b"0", end)
    return None


_SHORTEST = 6


# --- values behind a word for secrets

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


def _behind_words(text: str) -> Iterator[Credential]:
    """Yield the first value behind each word for secrets that looks random."""
    for word in _SECRET_WORDS.finditer(text):
        if needs_no_secret(text, word.end()) or text[max(0, word.start() - 1) : word.start()] in (":", "/"):
            continue
        stop = text.find("\n", word.end(), word.end() + _REACH)
        if stop >= 0 and text[word.end() : stop].strip(" :*_`") == "":  # the value is on the next line
            stop = text.find("\n", stop + 1, word.end() + _REACH)
        reach = stop if stop >= 0 else min(len(text), word.end() + _REACH)
        for found in _VALUE.finditer(text, word.end(), min(len(text), reach + 512)):
            if found.start() >= reach:
                break
            value = _trimmed(found.group())
            if value and looks_random(value) and PUBLIC.search(text, max(0, word.start() - 30), found.start()) is None:
                at = found.start() + found.group().find(value)
                kind = "password" if _IS_PASSWORD.match(word.group().casefold()) is not None else "secret"
                yield Credential(kind, at, at + len(value), value, False)
                break


_IS_PASSWORD = lazy(
    r"pass|kennw|pwd|contrase|senha|palavra|mot de|parola|wacht|lösen|losen|adgang|salasana|has|şifre|sifre|парол|密码|密碼|口令|パス|暗証|비밀|암호|كلمة|סיסמ|पास|mật|kata|sandi|รหัส"
)


def _trimmed(word: str) -> str:
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


def _placed(text: str) -> Iterator[Credential]:
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
        behind_password = _BEHIND_PASSWORD.search(before) is not None
        hidden = _password_in_base64(bare)
        if not looks_random(hidden or bare, least=6) and not ((behind_password or hidden) and may_be_chosen(hidden or bare)):
            continue
        if PUBLIC.search(before) is None:
            yield Credential("password" if behind_password else "credential", start, end, value, False)


_BEHIND_PASSWORD = lazy(
    rf"(?:{_CHOSEN_NAMES})[\"'`*\])\\>]{{0,4}}\s{{0,2}}(?:is|ist|lautet|es|est|é|è|to|=>|:=|==?|:|\uff1a|-)?[\"'`*(\\\s]{{0,6}}\Z|-{{1,2}}(?:u|user)[ =]\S{{1,60}}:\Z|://[^\s/]{{0,60}}:\Z",
    re.IGNORECASE,
)


def _password_in_base64(value: str) -> str | None:
    """Return the password of a basic authentication header, or None."""
    decoded = _decoded(value)
    return decoded.partition(":")[2] if decoded is not None and ":" in decoded else None


def _decoded(value: str) -> str | None:
    plain = value.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        match = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True).decode("ascii")
    except (ValueError, binascii.Error):
        return None
    return match if match.isprintable() or "\n" in match else None


_BASE64 = lazy(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,4000}={0,2}(?![A-Za-z0-9+/])")
_HEX = lazy(r"(?<![0-9A-Za-z])(?:[0-9a-f]{2}){20,2000}(?![0-9A-Za-z])|(?<![0-9A-Za-z])(?:[0-9A-F]{2}){20,2000}(?![0-9A-Za-z])")


def _encoded(text: str) -> Iterator[Credential]:
    """Yield tokens of a published format that are encoded in base64 or hex."""
    for pattern, decode in ((_BASE64, _decoded), (_HEX, _from_hex)):
        for found in pattern.finditer(text):
            match = decode(found.group())
            inner = next(secret_spans(match), None) if match is not None else None
            if inner is not None:
                yield Credential(inner[0], found.start(), found.end(), found.group(), False)


def _from_hex(value: str) -> str | None:
    try:
        return bytes.fromhex(value).decode("ascii")
    except ValueError:
        return None


_LETTERS = lazy(
    r"(?<!\S)(?:[A-Za-z0-9_+/.](?:[ \u00b7,]{1,2}|-[ \u00b7,-]?|[ \u00b7,]-)|-(?:[ \u00b7,]{1,2}|-)){15,200}[A-Za-z0-9_+/.-]?"
)
_MARKS = lazy(r"[*`]{1,3}(?:\s?\+\s?)?[*`]{0,3}|[\"']\s?\+\s?[\"']|\\?\n[>|\s]{0,8}")


def _joined(text: str) -> Iterator[Credential]:
    """Yield tokens that are spelled letter by letter or split by Markdown, code or newlines."""
    for found in _LETTERS.finditer(text):
        plain = re.sub(r"[ \u00b7,]", "", found.group())
        inner = next(secret_spans(plain), None)
        if inner is not None:
            yield Credential(inner[0], found.start(), found.end(), found.group(), False)
    if "`" in text or "**" in text or "\n" in text or "+" in text:
        plain = _MARKS.sub("", text)
        for kind, start, end in secret_spans(plain):
            value = plain[start:end]
            if value not in text and kind not in ("url_password", "jwt"):
                at = max(text.find(value[:8]), 0)
                yield Credential(kind, at, min(len(text), at + len(value)), value, True)


def _passwords(text: str) -> Iterator[Credential]:
    for finder in (chosen_passwords, login_pairs, quoted_phrases, codes):
        for kind, start, end in finder(text):
            yield Credential(kind, start, end, text[start:end], False)


_PHRASE = lazy(
    r"(?:(?:recovery|seed|mnemonic|secret|backup)[ -](?:recovery )?phrase|mnemonic|wiederherstellungs(?:phrase|wörter)|frase (?:semilla|de recuperaci[óo]n)|phrase de r[ée]cup[ée]ration)[^\n:]{0,30}(?:is|are|:|ist|lautet|es|est)[\s:*`\"]{1,6}((?:(?:[0-9]{1,2}[.)] ?)?[a-z]{3,8}[ ,\n]{1,2}){11,23}[a-z]{3,8})(?![a-z])",
    re.IGNORECASE,
)


def _phrases(text: str) -> Iterator[Credential]:
    for found in _PHRASE.finditer(text):
        phrase = re.findall(r"[a-z]{3,8}", found.group(1))
        if len(phrase) in (12, 15, 18, 21, 24) and len(set(phrase)) > 9 and phrase.count("abandon") < 2:
            yield Credential("recovery_phrase", *found.span(1), found.group(1), False)


def _formats(text: str) -> Iterator[Credential]:
    for kind, start, end in secret_spans(text):
        near = text[max(0, start - 40) : start]
        if _NOT_REAL.search(near) is None:
            yield Credential(kind, start, end, text[start:end], True)


_NOT_REAL = lazy(r"fake|dummy|made[- ]up|not (?:a )?real|fictional|fictitious|invalid sample", re.IGNORECASE)
_FINDERS: tuple[Callable[[str], Iterator[Credential]], ...] = (
    _formats, _joined, _encoded, _behind_words, _placed, _passwords, _phrases,
)  # fmt: skip


# --- all finders

_WANTS_NEW = lazy(
    r"(?:generat|creat|suggest|make|invent|propose|give me a (?:random|strong|secure)|come up|erzeug|generier|erstell|schlag|vorschlag|gener|cr[ée]e|propos|sug[ei]|crea|invent|genera|cria|gere|suger|maak|bedenk|wygeneruj|utwórz|zaproponuj|oluştur|üret|öner|сгенерируй|созда|придум|згенеруй|створ|生成|作成|作って|创建|만들|생성|أنشئ|ولّد|اقترح|צור|הצע|बनाओ|बनाइए|बनाएं|tạo|buat|skapa|föreslå|random|example|sample|dummy|fake|test data)"
    r"[^\n]{0,60}?(?:pass|kennw|token|secret|key|pin\b|pwd|contrase|clave|senha|mot de|wacht|has[łl]o|şifre|parola|парол|ключ|密|パスワード|キー|비밀|암호|키|كلمة|سיסמ|סיסמ|पास|mật|sandi|lösen|schlüssel|cl[ée]|credential)|(?:密码|パスワード|비밀번호|पासवर्ड|parola|şifre)[^\n]{0,20}(?:生成|作|만들|생성|बना|oluştur|üret|öner)",
    re.IGNORECASE,
)


def credentials(text: str, *, given: Callable[[], str], asked: str, users: str) -> list[Credential]:
    """Return the credentials that a text discloses, in order and without overlaps.

    Args:
        text: The answer.
        given: Returns the text that the agent got from others than the user. Called only if it decides the result.
        asked: The user's words in this turn.
        users: Everything that the user wrote in the conversation.
    """
    text = text[:SCAN_LIMIT]
    found: list[Credential] = []
    taken = Taken()
    view: View | None = first_view(text)
    for _ in range(MAX_LAYERS + 1):
        if view is None:
            break
        for finder in _FINDERS:
            for each in finder(view.text):
                start, end = view.origin(each.start, each.end)
                if taken.take(start, end):
                    found.append(each._replace(start=start, end=end))
        view = next_view(view)
    if not found:
        return []
    own = re.sub(r"\s+", "", users)
    new = _WANTS_NEW.search(asked[:2000]) is not None
    left = [each for each in found if re.sub(r"\s+", "", each.value) not in own]
    if new:
        left = [each for each in left if each.value in given()]
    return sorted(left, key=lambda each: each.start)
