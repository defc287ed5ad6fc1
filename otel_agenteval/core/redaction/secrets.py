"""Secrets: access tokens, private keys, passwords, and what stands behind the name of one.

A token is known by its prefix (:mod:`.rules`), and followed where it is wrapped over lines; at the end of a text its beginning is enough, for
what was cut is still most of a secret. Other secrets are known by the name before them: ``password=…``, ``"client_secret": "…"``, ``Authorization: …``,
``?token=…``, ``scheme://user:…@host``. Placeholders, code and plain words behind such a name are left alone.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from itertools import pairwise

from .patterns import lazy
from .rules import NO_VALUES, PASSWORDS, SHAPED, STRONG_NAMES, TOKENS, WEAK_NAMES, Prefixed

Span = tuple[int, int]

_LEAST_CUT = 6
"""Characters of a token's body from which its beginning at the end of a text is one."""
_PLACEHOLDER = lazy(r"placeholder|redacted|changeme|x{5,}|\*{3,}|\.{4,}|your[_-]?|<|0{8,}|\[[A-Z]+_[0-9]+\]", re.IGNORECASE)
_WRAP = lazy(r"[ \t`\"']{0,8}\\?\r?\n[ \t>|#*`\"'+]{0,40}")
_CUT = lazy(r"[\"'`)\]}\s]{0,4}(?:\Z|\u2026|\.\.\.|\[(?:trunc|cut|\.\.\.))")


def secrets(text: str) -> Iterator[Span]:
    """Where each secret begins and ends; they may overlap."""
    yield from _keys(text)
    yield from _tokens(text)
    yield from _jwts(text)
    for mark, pattern in SHAPED:
        if mark in text:
            yield from (found.span() for found in pattern.finditer(text))
    lowered = text.lower()
    yield from _headers(text, lowered)
    yield from _in_urls(text, lowered)
    yield from _named(text, lowered)


# --- private keys

_BEGIN = lazy(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: ?-{4,5})?")
_END = lazy(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: ?-{0,5})")
_LONGEST_KEY = 20_000
_BREAK = r"(?:[ \t>|#*]|\r|\n|\\+[nrt]|\\+(?=\r?\n))"
_BODY = lazy(
    rf"(?:{_BREAK}{{0,80}}(?:(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): ?[^\n\\\"]{{0,120}}|[A-Za-z0-9+/]{{16,20000}}={{0,2}}))*"
    rf"(?:{_BREAK}{{1,80}}[A-Za-z0-9+/]{{1,76}}={{0,2}}(?![A-Za-z0-9]))?"
)
_KEY_LINE = lazy(r"[A-Za-z0-9+/=]{4,200}")
_RUN = lazy(r"[A-Za-z0-9+/=]{8,}")
_PUTTY = lazy(r"Private-Lines: ?[0-9]{1,3}(?:\s{1,8}[A-Za-z0-9+/=]{4,76}){1,200}(?:\s{1,8}Private-MAC: ?[0-9a-f]{32,64})?")
_ENCODED_KEY = lazy(r"LS0tLS1CRUdJTi[A-Za-z0-9+/]{30,20000}={0,2}")


def _keys(text: str) -> Iterator[Span]:
    if "PRIVATE KEY" in text:
        yield from _pem_keys(text)
    if "Private-Lines" in text:
        yield from (found.span() for found in _PUTTY.finditer(text))
    if "LS0tLS1CRUdJTi" in text:
        for found in _ENCODED_KEY.finditer(text):
            if b"PRIVATE KEY" in (_decoded(found.group()[:80]) or b""):
                yield found.span()


def _pem_keys(text: str) -> Iterator[Span]:
    """Keys between their marks, from a mark on where the other one was cut off, or up to one."""
    marks = sorted(
        [(*found.span(), True) for found in _BEGIN.finditer(text)] + [(*found.span(), False) for found in _END.finditer(text)]
    )
    open_at: tuple[int, int] | None = None
    for start, end, begins in marks:
        if open_at is not None and not begins and start - open_at[1] <= _LONGEST_KEY:
            inside = text[open_at[1] : start]
            if '"' in inside or "'" in inside:  # a list of lines: each is a text of its own
                yield from ((open_at[1] + run.start(), open_at[1] + run.end()) for run in _RUN.finditer(inside))
            else:
                yield open_at[0], end
            open_at = None
            continue
        if open_at is not None:
            yield from _begun(text, *open_at)
        elif not begins:
            yield from _ended(text, start, end)
        open_at = (start, end) if begins else None
    if open_at is not None:
        yield from _begun(text, *open_at)


def _begun(text: str, start: int, end: int) -> Iterator[Span]:
    body = _BODY.match(text, end)
    if body is not None and body.end() > end:
        yield start, body.end()


def _ended(text: str, start: int, end: int) -> Iterator[Span]:
    first, floor = start, max(0, start - _LONGEST_KEY)
    while first > floor:
        before = text.rfind("\n", floor, first - 1) + 1 if first - 1 > floor else 0
        line = text[max(before, floor) : first].strip(" \t\r\n>|")
        if _KEY_LINE.fullmatch(line) is None:
            break
        first = max(before, floor)
    if first < start:
        yield first, end


def _decoded(text: str) -> bytes | None:
    """What base64 says, as far as it goes."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain[: len(plain) // 4 * 4], validate=True)
    except (ValueError, binascii.Error):
        return None


# --- tokens

_PREFIXES = tuple(
    (
        lazy(("" if token.glued else r"(?<![A-Za-z0-9])") + f"(?:{token.prefix})"),
        lazy(f"[{token.body}]{{1,{token.most}}}"),
        token,
    )
    for token in TOKENS
)


def _literal(prefix: str) -> str:
    """The letters that every token of a prefix has; for a quick look."""
    plain = re.match(r"[A-Za-z0-9_-]*", prefix)
    found = plain.group() if plain is not None else ""
    remainder = prefix[len(found) :]
    return found[:-1] if remainder[:1] in ("?", "*", "{") else found


_LITERALS = tuple(_literal(token.prefix) for token in TOKENS)


def _tokens(text: str) -> Iterator[Span]:
    for (prefix, body, token), literal in zip(_PREFIXES, _LITERALS, strict=True):
        if literal and literal not in text:
            continue
        for found in prefix.finditer(text):
            end = _end_of(text, found.end(), body, token)
            if end is not None:
                yield found.start(), end


def _end_of(text: str, at: int, body: re.Pattern[str], token: Prefixed) -> int | None:
    """Where the body of a token ends; None where it is none."""
    run = body.match(text, at)
    if run is None:
        return None
    parts, end = [run.group()], run.end()
    while sum(map(len, parts)) < token.most:
        wrap = _WRAP.match(text, end)
        more = body.match(text, wrap.end()) if wrap is not None else None
        if more is None:
            break
        have = sum(map(len, parts))
        line = more.group()[: token.most - have]
        if have >= token.least and not _looks_random(line):
            break
        if have < token.least and not (_looks_random(line) or _looks_random("".join(parts) + line)):
            return None
        parts.append(line)
        end = more.start() + len(line)
    whole = "".join(parts)
    if len(whole) < token.least:
        cut = token.cut and len(whole) >= _LEAST_CUT and _CUT.match(text, end) is not None
        return end if cut and _looks_random(whole, least=_LEAST_CUT) and not _PLACEHOLDER.search(whole) else None
    if len(set(whole)) < 5 or _PLACEHOLDER.search(whole) is not None:
        return None
    if not token.glued and not any(sign.isdigit() for sign in whole):
        return None
    return end


def _looks_random(word: str, least: int = 8) -> bool:
    """Whether a word has letters and digits mixed, or capitals in its middle, as words of a language have not."""
    if len(word) < least:
        return False
    digits = sum(sign.isdigit() for sign in word)
    letters = sum(sign.isalpha() for sign in word)
    turns = sum(a.isupper() and b.islower() for a, b in pairwise(word[1:]))
    return (digits > 0 and letters > 0) or turns >= 2


_JWT = lazy(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,20000}(?:\.[A-Za-z0-9_-]{0,20000}){0,4}")
_JWT_LINE = lazy(r"[A-Za-z0-9_.-]{1,4000}")
_CLAIMS = re.compile(rb'"(?:alg|typ|enc|kid|cty|jku|x5t|zip)"')


def _jwts(text: str) -> Iterator[Span]:
    if "eyJ" not in text:
        return
    end = 0
    for found in _JWT.finditer(text):
        if found.start() < end:
            continue
        header, _, remainder = found.group().partition(".")
        said = _decoded(header) or b""
        if _CLAIMS.search(said) is None and not remainder.startswith("eyJ"):
            continue
        end = found.end()
        while (wrap := _WRAP.match(text, end)) is not None:  # wrapped over lines
            more = _JWT_LINE.match(text, wrap.end())
            if more is None or not _looks_random(more.group(), least=6):
                break
            end = more.end()
        yield found.start(), end


# --- headers

_AUTHORIZATION = lazy(
    r"(?:authorization|x-auth(?:-token)?|x-api-key)[\"'\]`*]{0,4}\s{0,4}(?:=>|[:=,])\s{0,4}\[?[\"'`]{0,2}\s{0,4}"
    r"(?:(?:basic|bearer|token|digest|apikey|negotiate|ntlm|hawk|sso-key|splunk|key)\s{1,4})?[\"'`]?([A-Za-z0-9._~+/=:-]{6,8000})",
    re.IGNORECASE,
)
_DIGEST = lazy(
    r"(?:response|credential|signature|oauth_token|oauth_signature|oauth_consumer_key)=[\"']?([A-Za-z0-9%+/=_.-]{8,500})",
    re.IGNORECASE,
)
_BASIC = lazy(r"(?<![A-Za-z])basic\s{1,4}([A-Za-z0-9+/_-]{6,2000}={0,2})(?![A-Za-z0-9])", re.IGNORECASE)
_BEARER = lazy(r"(?<![A-Za-z])bearer[:\s]{1,4}[\"'`]?([A-Za-z0-9._~+/-]{8,8000}={0,2})", re.IGNORECASE)
_COOKIES = lazy(r"(?:set-)?cookie[\"'\]]{0,3}\s{0,3}(?:=>|[:=,])\s{0,3}\[?[\"'`]{0,2}([^\r\n\"`\\]{3,8000})", re.IGNORECASE)
_COOKIE = lazy(r"([A-Za-z0-9_.$-]{1,80})=([^;,\s\"']{6,4096})")
_TELLING_COOKIE = lazy(
    r"sess|sid|token|auth|jwt|csrf|xsrf|remember|login|secret|__secure|__host|connect|ticket|identity|credential", re.IGNORECASE
)
_CURL_USER = lazy(r"(?<!\S)(?:-u|--user|--proxy-user|-U)[ =]{1,3}[\"']?[^\s:\"'\\]{1,100}:([^\s\"'\\]{2,200})")


def _headers(text: str, lowered: str) -> Iterator[Span]:
    if "auth" in lowered or "x-api-key" in lowered:
        for found in _AUTHORIZATION.finditer(text):
            value = found.group(1)
            if not _is_no_value(value) and (_looks_random(value, least=6) or len(value) >= 20):
                yield found.span(1)
            if value.lower() in ("digest", "oauth", "aws4-hmac-sha256"):
                yield from (part.span(1) for part in _DIGEST.finditer(text, found.end(), found.end() + 2000))
        if "digest" in lowered or "oauth_" in lowered or "aws4" in lowered:
            for found in _DIGEST.finditer(text):
                if _looks_random(found.group(1)):
                    yield found.span(1)
    if "basic" in lowered:
        for found in _BASIC.finditer(text):
            said = _decoded(found.group(1))
            if said is not None and b":" in said and all(code >= 32 for code in said):
                yield found.span(1)
    if "bearer" in lowered:
        for found in _BEARER.finditer(text):
            if not _is_no_value(found.group(1)) and _looks_random(found.group(1)):
                yield found.span(1)
    if "cookie" in lowered:
        for header in _COOKIES.finditer(text):
            for found in _COOKIE.finditer(text, header.start(1), header.end(1)):
                telling = _TELLING_COOKIE.search(found.group(1)) is not None
                if not _is_no_value(found.group(2)) and (
                    telling or (len(found.group(2)) >= 20 and _looks_random(found.group(2)))
                ):
                    yield found.span(2)
    if "curl" in lowered or "wget" in lowered or "http" in lowered:
        yield from (found.span(1) for found in _CURL_USER.finditer(text) if not _is_no_value(found.group(1)))


# --- addresses

_USER_INFO = lazy(
    r"(?<![A-Za-z0-9+.-])[A-Za-z][A-Za-z0-9+.-]{0,19}://([^\s/@\"'<>`]{0,256}(?:@[^\s/@\"'<>`]{0,64})?)@(?=[A-Za-z0-9\[%_.-])"
)
_QUERY = lazy(
    r"[?&;#](?:amp;)?((?:[A-Za-z0-9_.-]{0,30}[_.-])?(?:token|access_token|auth|apikey|api_key|api-key|key|sig|signature|code|secret|password|passwd|pwd|pass|"
    r"sid|session|session_id|sessionid|jwt|credential|otp|ticket|hash|hmac|invite|nonce|state|subscription-key))=([^\s&#;\"'<>`\\)\]}]{4,4096})",
    re.IGNORECASE,
)
_SURE_IN_QUERY = lazy(
    r"token|secret|passw|pwd|pass|jwt|apikey|api[_-]key|subscription-key|sig(?:nature)?\Z|credential|otp|session|sid|auth",
    re.IGNORECASE,
)
_PAGES = lazy(r"page|next|cursor|continuation|sync|offset", re.IGNORECASE)
_LINK = lazy(
    r"/(?:reset|reset[_-]password|password[_-]reset|verify|verify[_-]email|invite|magic|magic[_-]link|confirm|activate|unsubscribe|login|share)/([A-Za-z0-9_-]{20,512})(?![A-Za-z0-9])",
    re.IGNORECASE,
)


def _in_urls(text: str, lowered: str) -> Iterator[Span]:
    if "://" in text and "@" in text:
        for found in _USER_INFO.finditer(text):
            user, colon, password = found.group(1).partition(":")
            if colon and len(password) >= 2 and not _is_template(password):
                yield found.end(1) - len(password), found.end(1)
            elif not colon and len(user) >= 16 and _looks_random(user):
                yield found.span(1)
    if "=" in text and ("?" in text or "&" in text or "#" in text):
        for found in _QUERY.finditer(text):
            name, value = found.group(1), found.group(2).rstrip(".,:!?")
            if _is_no_value(value) or _PAGES.search(name) is not None:
                continue
            sure = _SURE_IN_QUERY.search(name) is not None
            if (sure and len(value) >= 6) or (len(value) >= 16 and _looks_random(value)):
                yield found.start(2), found.start(2) + len(value)
    if "/" in text and any(
        word in lowered for word in ("reset", "verify", "invite", "magic", "confirm", "activate", "unsubscribe")
    ):
        yield from (found.span(1) for found in _LINK.finditer(text) if _looks_random(found.group(1)))


# --- what stands behind a name

_IS = r"[\"'`*\])]{0,4}\\{0,3}[\"']?\s{0,4}(?:=>|:=|==?|:|\uff1a)[*_]{0,2}\s{0,4}"
_VALUE = r"(?:\\{0,3}\"((?:[^\"\\\r\n]|\\[^\"]){1,2000})\\{0,3}(?:\"|(?=[\r\n]|\Z))|'([^'\r\n]{1,2000})'|`([^`\r\n]{1,2000})`|([^\s\"'`,;&<>(){}\[\]\\|](?:[^\s\"'`,;&<>(){}\[\]\\|]|[,;&](?![\w.-]{1,30}\s?[=:]|[\s\"'`<>(){}\[\]\\|]|\Z)){1,2000}))"
_STRONG = lazy(
    rf"(?:({PASSWORDS})|{STRONG_NAMES})(?:[_-]?(?:[0-9]{{1,2}}|prod|dev|test|live|staging|old|new))?(?![A-Za-z0-9_-]){_IS}{_VALUE}",
    re.IGNORECASE,
)
_WEAK = lazy(rf"(?:(?<![A-Za-z])|(?<=[a-z])(?=[A-Z]))(?:{WEAK_NAMES})(?![A-Za-z0-9_-]){_IS}{_VALUE}", re.IGNORECASE)
_SPOKEN = lazy(
    r"(?<![A-Za-z])(?:pass(?:word|wd|phrase|code)|passwort|pwd|contraseña|senha|mot de passe|token|api key|secret(?: key)?|secret access key)\s{1,2}"
    r"(?:is|was|to|ist|lautet|es|est|é|:|=|-|will be)\s{0,2}:?\s{0,2}[\"'`*]{0,3}([^\s\"'`,;<>(){}\[\]]{4,500})",
    re.IGNORECASE,
)
_ELEMENT = lazy(
    rf"<[\w:.-]{{0,40}}?(?:({PASSWORDS})|{STRONG_NAMES}|token|secret)>\s{{0,8}}([^<\s]{{3,2000}})\s{{0,8}}</", re.IGNORECASE
)
_FLAG = lazy(
    r"(?<!\S)--?(?:[a-z0-9]{1,20}-)?(?:password|passwd|pass|token|secret|api-?key|access-key|secret-key|client-secret)(?:[ =]{1,2})[\"']?([^\s\"'`-][^\s\"'`]{3,500})",
    re.IGNORECASE,
)
_NETRC = lazy(r"\blogin\s{1,4}\S{1,100}\s{1,4}password\s{1,4}(\S{2,200})", re.IGNORECASE)
_TELLING = ("pass", "pwd", "secret", "key", "token", "auth", "credential", "kennwort", "contrase", "senha", "wachtwoord", "sid", "sess", "pin", "pw", "sig", "dsn", "nonce",
            "verifier", "otp", "connection", "cookie", "lösenord", "losenord", "hasło", "haslo", "парол", "密", "口令", "パスワード", "비밀번호")  # fmt: skip
_PLAIN = lazy(r"[A-Z]?[a-zà-ÿ]+[.!?:]?|[A-Z]+[.!?:]?")
_CODE = lazy(
    r"[A-Za-z_$][\w$]*(?:(?:\.|->|::)[A-Za-z_$][\w$]*)+[.;]?|\$[A-Z_][A-Z0-9_]*|%[sdr]|%\([a-z_]+\)s|@[a-z_.]+|:[a-z_]+|![A-Za-z]+"
)
_IN_ONE_LINE = str.maketrans({'"': "'", "\\": "/", "\n": " ", "\r": " "})
_PATH = lazy(r"[a-z_-]+(?:/[\w.-]+)+")
_TEMPLATE = lazy(r"[{<\[]|\$[{(]|\*{3,}|\u2022{2,}|x{4,}\Z|\.{3,}", re.IGNORECASE)


def _named(text: str, lowered: str) -> Iterator[Span]:
    if not any(word in lowered for word in _TELLING):
        return
    for found in _STRONG.finditer(text):
        group = found.lastindex or 2
        value = found.group(group)
        if value is None or _is_no_value(value) or (group == 5 and not _may_stand_bare(text, found, value)):
            continue
        if found.group(1) is None and not (_looks_random(value, least=6) and " " not in value and not _PATH.fullmatch(value)):
            continue
        if len(value) >= 3 and not (" " in value and len(value) > 200):
            yield found.span(group)
    for found in _WEAK.finditer(text):
        group = found.lastindex or 1
        value = found.group(group)
        if value is None or _is_no_value(value) or " " in value or _CODE.fullmatch(value) is not None:
            continue
        if _PAGES.search(text, max(0, found.start() - 16), found.start()) is not None or _PATH.fullmatch(value):
            continue
        if _is_random_value(value) and text[found.end() : found.end() + 1] != "(":
            yield found.span(group)
    if "</" in text:
        for found in _ELEMENT.finditer(text):
            if not _is_no_value(found.group(2)) and (found.group(1) is not None or _looks_random(found.group(2), least=6)):
                yield found.span(2)
    for pattern in (_SPOKEN, _FLAG, _NETRC):
        for found in pattern.finditer(text):
            value = found.group(1).rstrip(".!?")
            if value.isdigit() and len(value) < 6:
                continue
            if (
                not _is_no_value(value)
                and not _PLAIN.fullmatch(value)
                and not _CODE.fullmatch(value)
                and _has_sign_or_digit(value)
            ):
                yield found.start(1), found.start(1) + len(value)


def is_named_secret(name: str, value: str) -> bool:
    """Whether a value is a secret by the name of its field, as ``{"password": "…"}`` says it."""
    plain = value.translate(_IN_ONE_LINE)
    return any(start == len(name) + 2 for start, _ in _named(f'{name}="{plain}"', name.lower()))


def _may_stand_bare(text: str, found: re.Match[str], value: str) -> bool:
    """Whether a value without quotation marks is one: not a word of the sentence, a call, or a name of a program."""
    follows = text[found.end() : found.end() + 1]
    if follows in ("(", "[", "{") or _CODE.fullmatch(value) is not None:
        return False
    if not _PLAIN.fullmatch(value):
        return True
    spaced = text[found.start(5) - 1] in " \t"
    ends = re.match(r"[ \t]*(?:\Z|[\r\n&;,])", text[found.end() : found.end() + 20]) is not None
    return len(value) >= 6 and ends and (not spaced or value.rstrip(".!?").islower())


def _is_no_value(value: str) -> bool:
    plain = value.strip(" .!?:*_-\"'").casefold()
    return (
        len(plain) < 2
        or plain in NO_VALUES
        or _is_template(value)
        or _PLACEHOLDER.search(value) is not None
        or len(set(plain)) == 1
    )


def _is_template(value: str) -> bool:
    return _TEMPLATE.match(value) is not None or (
        value.startswith(("$", "%")) and re.fullmatch(r"[$%][A-Z_][A-Z0-9_]*%?", value) is not None
    )


def _is_random_value(value: str) -> bool:
    """Whether a value looks as if it were drawn: long, of letters and digits, and no date, version or identifier of code."""
    if len(value) < 8 or _CODE.fullmatch(value) is not None or re.fullmatch(r"[0-9.,:T Z+-]+", value):
        return False
    digits = sum(sign.isdigit() for sign in value)
    return digits >= 2 and sum(sign.isalpha() for sign in value) >= 3 and (len(value) >= 16 or digits >= 3)


def _has_sign_or_digit(value: str) -> bool:
    return any(sign.isdigit() or sign in "!@#$%^&*+=?~" for sign in value)
