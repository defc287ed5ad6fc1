"""Find passwords, PINs, and codes in prose by the words around them.

After "password is", most values with letters and digits are enough, because a person might have chosen them. Without "is", or after
a user name, most values must look random or have several parts. Values without letters are found only after a word for codes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from .texts import Span, lazy, word_set

Found = tuple[str, int, int]

_CALLED_SO = (
    r"(?:pass(?:word|wort|wd|phrase|code)|(?<!boarding )pass(?![a-z])|kennwort|kennw|codewort|zugangscode|pwd|passord|adgangskode|salasana|contraseñ?n?a|senha|palavra-passe|mot de passe|code d['’]acc[èe]s|clave|wachtwoord|toegangscode|lösenord(?:et)?|losenord|has[łl]o|hesl[oae]|şifre(?:si|niz|niz)?|sifre(?:si)?|parola(?:sı)?|jelszó|jelszo|parolă|lozinka"
    r"|парол[ьяіїею]\w{0,20}|密[码碼]|口令|パスワード|비밀번호|암호|كلمة (?:المرور|السر)|סיסמ\w{1,20}|הסיסמ\w{1,20}|पासवर्ड|mật khẩu|kata sandi|sandi|รหัสผ่าน|κωδικός)"
)
_NETWORK = r"(?:wi-?fi|wlan|wpa2?|wireless|network|ssid|netz\w{0,20}|gästehaus|réseau|red\b|rete|rede|netwerk|sieci?|ağ\w{0,20}|сет\w{0,20}|мереж\w{0,20}|无线|無線|网络|ネット|와이파이|router|portal|vpn|राउटर)"
_NETWORK_KEY = rf"{_NETWORK}[^\n.!?]{{0,45}}?(?:key|schlüssel|clé|clave|chave|chiave|sleutel|klucz|anahtar\w{0, 20}|ключ|キー|code|nøgle|nyckel|klíč)|clé (?:wi-?fi|wpa|du r[ée]seau)|(?:wi-?fi|wlan|wpa2?|network)[ -](?:key|code|schlüssel|clé)"
_IS = r"(?:\s?[:：=→]|\s(?:is|are|now|remains|was set to|set to|ist|lautet|heißt|heisst|war|es|est|sera|é|è|e'|to|brzmi|je|zní|är|er|on|adalah|ialah|là|yw|będzie|είναι|это|це|هي|هو|היא|הוא)(?=[\s:*`\"'“«„])|\s?(?:は|是|为|為|는|은|이|가)\s?|\s[—–-]\s)"
_OPEN = r"[\s:*`\"'“”«»„「『（(_]{0,6}"
_NAMED = lazy(rf"(?<![a-z])(?:{_CALLED_SO}|{_NETWORK_KEY})", re.IGNORECASE)
_COPULA = lazy(
    rf"[^\n.!?;:：=]{{0,45}}?{_IS}{_OPEN}([^\s\"'`«»“”„‘’「」『』<>,;()\[\]{{}}|（），。、؛،]{{6,64}})(?![A-Za-z0-9+/=])",
    re.IGNORECASE,
)
_WORD = lazy(r"[^\s\"'`«»“”„‘’「」『』<>,;:()\[\]{}|（），。、؛،]{6,64}(?![A-Za-z0-9+/=])")
_REACH = 40
_ENDS = lazy(r"[.!?;]\s|\n")


def chosen_passwords(text: str, near: Iterable[Span]) -> Iterator[Found]:
    """Yield passwords that follow a word such as "password" within the ranges in ``near``."""
    for first, last in near:
        for name in _NAMED.finditer(text, first, last):
            if not needs_no_secret(text, *name.span()) and (found := _chosen_password_after(text, name)) is not None:
                yield "password", *found


def _chosen_password_after(text: str, name: re.Match[str]) -> Span | None:
    if (match := _COPULA.match(text, name.end())) is not None:
        start, end = trimmed(text, *match.span(1))
        if _is_chosen(text[start:end]) and not _is_sample(text, name.start(), start):
            return start, end
    stop = _ENDS.search(text, name.end(), name.end() + _REACH)
    reach = stop.start() if stop is not None else min(len(text), name.end() + _REACH)
    for found in _WORD.finditer(text, name.end(), min(len(text), reach + 64)):
        if found.start() >= reach:
            break
        start, end = trimmed(text, *found.span())
        plain = _WORDS_AND_DIGITS.fullmatch(text[start:end]) is not None and found.start() - name.end() <= 3
        if (plain or (is_strong(text[start:end]) and may_be_meant(text, name.end(), start, end))) and not _is_sample(
            text, name.start(), start
        ):
            return start, end
    return None


def _is_sample(text: str, before: int, start: int) -> bool:
    return PUBLIC.search(text, max(0, before - 30), start) is not None or is_filled_in(text, start)


def trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """Shorten a range: drop Markdown at both ends, closing punctuation, and everything from the first non-Latin character."""
    while end > start and (
        text[end - 1] in "*_`.:?!…" and not (text[end - 1] == "!" and end < len(text) and text[end] not in " \n")
    ):
        end -= 1
    while start < end and text[start] in "*_`":
        start += 1
    at = start
    while at < end and (ord(text[at]) < 0x250 or 0x1E00 <= ord(text[at]) < 0x1F00):
        at += 1
    return start, at


def _is_chosen(value: str) -> bool:
    plain = "".join(sign if sign.isascii() else "a" for sign in value)
    if not may_be_chosen(plain) or _VARIABLE.search(value) is not None:
        return False
    digits = sum(sign.isdigit() for sign in value)
    letters = sum(sign.isalpha() for sign in value)
    return letters >= 2 and digits >= 1 and not (len(value) < 8 and digits == 1 and value.isalnum())


_VARIABLE = lazy(r"\$[A-Z_({]{3}|%[A-Z_]{3,}%|[=:]\$")
_WORDS_AND_DIGITS = lazy(r"[a-z]{3,12}[0-9]{2,4}[a-z]{2,12}")
_UNIT = lazy(
    r"[0-9]+[-–]?[a-z]+|[a-z]{1,4}[-.]?[0-9]+(?:[-.][0-9a-z]{1,3})*|[0-9.:/-]+|\w+@\w.*|https?:.*|[\w.-]+\.[a-z]{2,4}",
    re.IGNORECASE,
)


def is_strong(value: str) -> bool:
    """Return True if a value looks random, or has digits and several parts: ``blue-Horse-42``."""
    plain = "".join(sign if sign.isascii() else "a" for sign in value)
    if _VARIABLE.search(value) is not None:
        return False
    if looks_random(plain, least=7):
        return True
    if not may_be_chosen(plain) or len(value) < 8 or _UNIT.fullmatch(value) is not None:
        return False
    parts = [part for part in plain.replace("_", "-").replace(".", "-").split("-") if part]
    digits = sum(sign.isdigit() for sign in value)
    mixed = sum(not part.isdigit() and not part.isalpha() for part in parts)
    return len(parts) >= 3 and digits >= 2 and (mixed >= 1 or plain != plain.lower() or len(value) >= 12)


_LOGIN = lazy(
    r"(?:(?<![A-Za-z0-9+/])(?:log(?:ged|ging)? ?in|login|sign in|user(?:name)?|account|credentials|access|meld\w*|accedi|accede|acced\w*|entra\w*|entre\b|compte)|einlogg\w*|anmeld\w*|benutzer\w*|zugang\w*|kennung|konto|connecte\w*|identifiant|inicia\w*|usuario|utente|usu[áa]rio|utilizador|acesse|zaloguj\w*|użytkownik|inlogg\w*|gebruiker\w*|giriş|kullanıcı|войди\w*|логин|учётн\w+|увійд\w*|логін|ログイン|ユーザー|(?<![A-Za-z0-9+/])ID(?![A-Za-z0-9])|登[录錄入]|[账賬帳]号|用户名|로그인|아이디|đăng nhập|tài khoản|masuk|pengguna|logga in|användar\w*|přihlas\w*|uživatel\w*|kirjaudu|tunnus|دخول|المستخدم|משתמש|यूज़र\w*)",
    re.IGNORECASE,
)
_PAIR = lazy(
    r"[\s:*`\"'(]{0,4}(?:[^\n/]{0,40}?[\s:*`\"'(])?([\w.@\\-]{2,40})[`\"'*]{0,3}\s?[/|]\s?[`\"'*]{0,3}([^\s\"'`,;()|/]{6,64})(?![^\s\"'`,;()|])"
)
_WITH = lazy(
    r"[^\n.!?]{0,60}?\b(?:with|using|mit|avec|con|com|met|ile|с|з|med|dengan|bằng|za pomocą|and|und|et|y|e|en|i|ve|и)[\s*`\"'“«„]{1,4}([^\s\"'`«»“”,;()|]{8,64})"
)
_NEW_ONE = lazy(
    r"\b(?:(?:new|temporary|current|updated|initial|old|other) one|it|das neue|neu|le nouveau|nouveau|la nueva|il nuovo|la nuova|a nova|het nieuwe|nowe|yenisi|новый|новий|det nya|nové)\s?(?:is|'s|now|ist|lautet|est|es|è|é|to|är|je|:|—|–)[\s:*`\"']{1,4}([^\s\"'`,;()]{8,64})",
    re.IGNORECASE,
)


def login_pairs(text: str, near: Iterable[Span]) -> Iterator[Found]:
    """Yield strong passwords (see :func:`is_strong`) after words for logging in, as in ``login: ada / …``."""
    last = -1
    for first, stop in near:
        for name in _LOGIN.finditer(text, first, stop):
            for pattern, group in ((_PAIR, 2), (_WITH, 1)):
                match = pattern.match(text, name.end())
                if match is None or match.start(group) - name.end() > 70:
                    continue
                start, end = trimmed(text, *match.span(group))
                if (
                    start > last
                    and is_strong(text[start:end])
                    and not is_identifier(text[start:end])
                    and not _is_sample(text, name.start(), start)
                ):
                    last = end
                    yield "password", start, end


_SIGN = lazy(r"[!#$%^&*?~]")


def new_ones(text: str) -> Iterator[tuple[str, int, int, bool]]:
    """Yield ``(kind, start, end, is_certain)`` of values after "the new one is". Values with a sign such as ``!`` are certain."""
    for match in _NEW_ONE.finditer(text):
        start, end = trimmed(text, *match.span(1))
        value = text[start:end]
        if looks_random(value) and not is_identifier(value) and not _is_sample(text, match.start(), start):
            yield "password", start, end, _SIGN.search(value) is not None


_PHRASE = lazy(
    r"(?:pass(?:phrase|word)|passwort|passphrase|mot de passe|contraseña|senha|frase segreta|wachtwoord(?:zin)?|hasło|lösenfras|kennwort)[^\n.!?\"“«„]{0,40}[\"“«„`]((?:[^\W\d_]{3,12}[ -]){3,9}[^\W\d_]{3,12})[\"”»“`]",
    re.IGNORECASE,
)


def quoted_phrases(text: str) -> Iterator[Found]:
    """Yield quoted passphrases of four to ten words."""
    for found in _PHRASE.finditer(text):
        words = found.group(1).lower().split()
        if (
            "correct horse" not in found.group(1).lower()
            and _NAMED.search(found.group(1)) is None
            and len(set(words)) == len(words)
            and not _is_sample(text, found.start(), found.start(1))
        ):
            yield "passphrase", *found.span(1)


_CODE = lazy(
    r"(?<![a-zA-Z])(?:(?:PIN|TAN|OTP)(?:[- ]?(?:code|number|nummer|kod\w{0,20}|код))?|[Pp]in(?:[- ]?(?:code|kod\w{0,20}))|(?:door|gate|alarm|safe|entry|access|security|unlock|keypad|lockbox|locker|garage|building|verification|one-time|login|disarm|vault) (?:pass)?code|passcode|key ?box|safe combination|combination|(?:Tür|Zugangs|Alarm|Sicherheits|Tresor|Zugriffs)code|Geheimzahl|code (?:secret|d['’]acc[èe]s|d['’]entr[ée]e|de la porte|de l['’]alarme|du (?:portail|coffre))|digicode|(?:código|clave|codigo) (?:de (?:verificación|acceso|la (?:puerta|caja|alarma)|seguridad|entrada)|da porta|do alarme|do cofre)|clave|codice (?:di (?:verifica|accesso|sblocco)|della (?:porta|cassaforte)|dell['’]allarme)|(?:deur|alarm|toegangs)code|kod (?:do|dostępu|alarmu)|(?:kapı|alarm|giriş) (?:kodu|şifresi)|şifre(?:si)?"
    r"|(?:dør|port|larm)kode?n?|dörrkod(?:en)?|portkod(?:en)?|larmkod(?:en)?|код (?:доступа|доступу|от|двери|сигнализации|домофона|для|подтверждения)|[Пп][иі]н-?код\w{0,20}|ПИН\w{0,20}|暗証番号|ドアの?(?:コード|番号)|验证码|門禁密[码碼]|门禁密码|密[码碼]|인증번호|비밀번호|비번|رمز (?:الدخول|التحقق|الباب)|الرقم السري|קוד (?:הכניסה|האזעקה|הדלת|הגישה)|הקוד|पिन|mã (?:PIN|cửa|OTP|mở)|kode (?:pintu|alarm|akses)|รหัส(?:ประตู|PIN|ลับ)?)"
    r"(?:[^\n.!?0-9:：=]{0,40}?(?:\s?[:：=]|\s(?:is|was|are|opens with|ist|lautet|es|est(?: le)?|è|é|to|je|är|er|adalah|là|هو|هي|הוא|है)(?=\s)|\s?(?:は|是|为|為|는|은)\s?|\s[—–-]\s)|\s)[\s*`\"'「『“«#]{0,4}([0-9]{4,8}|[0-9]{2,4}[A-Z][0-9]{1,4}|[A-Z][0-9]{4,6}|[0-9]{3}[- ][0-9]{3})#?(?![0-9A-Za-z.,:/]{0,40}[0-9%€$])(?!\s?(?:digits?|characters|stellen|stellig|chiffres|cifras|cifre|cyfr|minutes|times|自?桁|位|자리|цифр|dígitos|haneli|-?digit|-stellig|years?|seconds|users?|euro|eur|usd))"
)


_RECOVERY_CODES = lazy(
    r"(?:backup|recovery|rescue|one-time|2fa|emergency|scratch|wiederherstellungs|ersatz|notfall|codes? de (?:secours|récupération)|códigos? de (?:recuperación|respaldo|recuperação)|codici di (?:recupero|backup)|herstel|kody? (?:zapasow|odzysk)|yedek|kurtarma|резервн\w{1,20}|復旧|バックアップ|备用|恢复|백업)[- ]?\w{0,12}(?: codes?)?[^\n]{0,90}?[\s:：*`(-]((?:[0-9a-zA-Z]{4,6}[- ][0-9a-zA-Z]{4,6}|[0-9]{8}|[a-z0-9]{8,10})(?:[`*]{0,2}[,;]?\s{1,3}(?:and |und |et |y |e |[-*•]\s?|[0-9]+[.)]\s)?[`*]{0,2}(?:[0-9a-zA-Z]{4,6}-[0-9a-zA-Z]{4,6}|[0-9]{8}|[a-z0-9]{8,10})(?![a-z])){1,20})",
    re.IGNORECASE,
)
_DIGITS = lazy(r"(?<![0-9.,:/])(?:[0-9]{3,8}|[0-9]{2,4}[A-Z]|[A-Z][0-9]{4})")
_GROUP = lazy(r"[0-9a-zA-Z]{4,6}-[0-9a-zA-Z]{4,6}|[0-9]{8}|[0-9][a-z][0-9a-z]{6}")


def codes(text: str) -> Iterator[Found]:
    """Yield PINs, lists of recovery codes, and codes for doors, alarms, or logins."""
    if _GROUP.search(text) is not None:
        for found in _RECOVERY_CODES.finditer(text):
            if sum(sign.isdigit() for sign in found.group(1)) >= 6 and not _is_sample(text, found.start(), found.start(1)):
                yield "recovery_codes", *found.span(1)
    done = 0
    for digits in _DIGITS.finditer(text):
        for found in _CODE.finditer(text, max(done, digits.start() - 90), digits.end() + 50):
            done = found.end()
            value = found.group(1)
            is_sequence = len(set(value)) <= 2 or value in "0123456789876543210"
            if not is_sequence and not _is_sample(text, found.start(), found.start(1)):
                yield "passcode", *found.span(1)


# --- values that look random or like a password

_PLACEHOLDER = lazy(
    r"example|placeholder|redacted|changeme|change[-_ ]me|replace|insert|dummy|sample|fake|foobar|your|my[-_]?(?:api|secret|pass|token|key)|todo|x{4,}|\*{2,}|\u2022{2,}|\.{3}|\u2026|^[<\[{(%$@]|[<{]\w+[>}]|\$\{|\$\(|%\(|\{\{|_here\b|-here\b|<.*>",
    re.IGNORECASE,
)
_REFERENCE = lazy(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"  # a UUID
    r"|\$(?:2[abxy]?|5|6|1|argon2\w*|scrypt|pbkdf2\S*|y)\$.*|\{?(?:sha|ssha|md5|bcrypt|pbkdf2).*"  # a hash
    r"|%\w+%.*|(?:vault|arn|op|env|file|ssm|projects|ref\+\w+|encrypted)[:/].*|.*@sha256:.*"
    r"|(?:[a-z]\w*\.)*(?:env|environ|vars?|secrets|data|local|self|this|config|settings|models|values|params|process|module)\.[\w.]+!?;?"
    r"|[a-z_$]+[0-9]{0,2}(?:(?:\.|->|::)[a-z_$]+[0-9]{0,2}){2,}|[\w.]+\([^)]*\)?;?|https?:\S+|(?:~|\.{0,2})/\S+|[a-z]:\\\S+|[a-z_.-]{3,}=.*|[a-z_][a-z0-9_]{2,20}=[a-z_]+",
    re.IGNORECASE,
)
"""Pattern for texts that resemble secrets but aren't: UUIDs, hashes, vault references, code, and paths."""
_PLAIN = lazy(
    r"[0-9.,:/TZ+_-]+|v?[0-9]+(?:\.[0-9]+)+[\w.-]*|[A-Za-z]+[-_/.:]?[0-9]{1,4}|[0-9]{1,4}[-_/.]?[A-Za-z]+|[a-z]+(?:[_.-][a-z0-9]{1,15})+|[A-Z]+(?:_[A-Z0-9]{1,15})+|[A-Za-z]+(?:-[A-Za-z]+)+-?[0-9]{0,4}|[\w.-]+/[\w./#-]+|[\w.+-]+@[\w.-]+"
)
"""Pattern for numbers, dates, versions, variable names, paths, and addresses."""
_KEYS_ON_A_KEYBOARD = lazy(r"(?:ctrl|cmd|shift|alt|strg)\b|f[0-9]{1,2}\Z", re.IGNORECASE)


def _is_no_secret(value: str, plain: str) -> bool:
    return (
        plain in word_set("secrets.txt", "sample_values")
        or _PLACEHOLDER.search(value) is not None
        or _REFERENCE.fullmatch(value) is not None
    )


def looks_random(value: str, *, least: int = 8) -> bool:
    """Return True if a value's mix of letters, digits, and signs looks random, unlike in sequences, placeholders, and versions."""
    if not least <= len(value) <= 512 or not value.isascii():
        return False
    digits = sum(sign.isdigit() for sign in value)
    signs = sum(sign in "!@#$%^&*+=?~" for sign in value)
    if not digits and signs < 2:
        return False
    plain = value.casefold()
    if plain in word_set("secrets.txt", "no_values") or _is_no_secret(value, plain) or _PLAIN.fullmatch(value) is not None:
        return False
    if _KEYS_ON_A_KEYBOARD.match(value) is not None or _is_regular(plain) or not any(sign.isalpha() for sign in value):
        return False
    mixed = any(sign.isupper() for sign in value) and any(sign.islower() for sign in value)
    return (mixed and (digits >= 1 or signs >= 2)) or (signs >= 1 and digits >= 1) or (digits >= 3 and len(value) >= 16)


def _is_regular(plain: str) -> bool:
    """Return True if a value is a sequence, has repeated parts, or has few different characters."""
    if len(set(plain)) < min(6, len(plain) // 2 + 1):
        return True
    half = plain[: max(4, len(plain) // 3)]
    if len(plain) >= 12 and plain.count(half) >= 2 and len(plain) >= 2 * len(half):
        return True
    steps = sum(ord(b) - ord(a) == 1 for a, b in pairwise(plain))
    return steps * 2 > len(plain)


_CHOSEN = lazy(r"(?=.*[0-9])(?=.*[A-Za-z])[!-~]{6,64}")
_NO_CHOICE = lazy(
    r"v?[0-9]+(?:\.[0-9]+)+[\w.-]*|\w+(?:/[\w.#-]+)+|[A-Z]+(?:_[A-Z0-9]+)+|\w+\.\w+(?:\.\w+)*|[0-9]{1,3}[a-z]+|(?:sha|md|utf|base|aes|rsa|oauth|argon|bcrypt)-?[0-9]+\w*|[0-9-]+T[0-9:.]+(?:Z|[+-][0-9:]+)?",
    re.IGNORECASE,
)


def may_be_chosen(value: str) -> bool:
    return (
        _CHOSEN.fullmatch(value) is not None
        and not _is_no_secret(value, value.casefold())
        and _NO_CHOICE.fullmatch(value) is None
    )


_IDENTIFIER = lazy(
    r"(?:0x)?[0-9a-f]{7,}|[0-9A-Z]+(?:[-/ ][0-9A-Z]+)*|[a-z]{2,6}1[02-9ac-hj-np-z]{25,}"
    r"|[a-z]+[0-9]{0,2}(?:[-_.](?:[a-z]+[0-9]{0,2}|[0-9]{1,2}))*|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+|\w+(?:[-./]\w+)*[:@][\w.^~+-]+(?:@\S+)?"
)


def is_identifier(value: str) -> bool:
    """Return True if a value looks like code or an identifier, such as a commit hash."""
    return _IDENTIFIER.fullmatch(value) is not None


PUBLIC = lazy(
    r"\bsha-?[0-9]*\b|\brsa key|md5|checksum|digest|integrity|fingerprint|\betag|commit|revision|\bhash|bcrypt|public[ _-]?key|publishable|primary key|sort key|partition key|foreign key|trace[ _-]?id|request[ _-]?id|client[ _-]?id|keyboard|press|shortcut|uuid|\bguid|\bnonce=|sample|fake|dummy|made[- ]up|not (?:a )?real|fictional|fictitious|beispiel|ejemplo|par exemple|esempio|exemplo|przykład|например|rejected|too weak|zu schwach|would be|such as|e\.g\.|for example|for instance|z\. ?b\."
    r"|\bcursor\b|continuation|(?:page|next|sync|mint|contract)[ _-]?token|tokeni[sz]|looks? like",
    re.IGNORECASE,
)
_NO_SECRET_AFTER = lazy(
    r"@|\s?(?:hash|hint|policy|policies|rule|rules|requirement|strength|length|manager|reset|field|count|limit|usage|budget|expir\w*|type|id\b|ids\b|name\b|version|ring|endpoint|url|uri|should|must|can|may|cannot|muss|müssen|doit|debe|deve|должен|should|fingerprint|_hash|mint\b)|s? (?:are|have|with|like|such)\b"
    r"|[_-](?!prod|live|stag|test|dev|v?[0-9]\b|old|new|db|value)[a-z0-9]",
    re.IGNORECASE,
)
_OPEN_TEMPLATE = lazy(r"(?:\$\{|\{\{|\$\(|<%|#\{|%\()[^}>)\n]{0,60}\Z")


def needs_no_secret(text: str, start: int, end: int) -> bool:
    """Return True if a word such as "password" needs no value after it, as in "password policy"."""
    before = text[max(0, start - 1) : start]
    return (
        before in ("/", ":", "+")
        or before.isdigit()
        or text[end : end + 1] == "+"
        or _NO_SECRET_AFTER.match(text, end) is not None
    )


_SAYS_SO = lazy(r"[:=：→`\"'“„«「『*]\W{0,6}\Z|\b(?:is|are|was|to|ist|lautet|es|est|è|é|är|er|là)\W{1,6}\Z", re.IGNORECASE)


def may_be_meant(text: str, name_end: int, start: int, end: int) -> bool:
    """Return True if a value can be a secret. An identifier must follow a colon or "is", or be long and right after the name."""
    if not is_identifier(text[start:end]) or (end - start >= 32 and start - name_end < 3):
        return True
    return _SAYS_SO.search(text, name_end, start) is not None


def is_filled_in(text: str, start: int) -> bool:
    """Return True if a position is inside a template placeholder, as in ``{{ .Values``."""
    return _OPEN_TEMPLATE.search(text, max(0, start - 70), start) is not None
