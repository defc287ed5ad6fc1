"""Secrets: access tokens, private keys, passwords, and values next to the name of a secret.

A token is recognized by its prefix (:mod:`..tokens`), also if it wraps across lines. At the end of a text, the beginning of a
token is enough, because a truncated secret still reveals most of it. Other secrets are recognized by the name before them:
``password=…``, ``"client_secret": "…"``, ``Authorization: …``, ``?token=…``, ``scheme://user:…@host``. Placeholders, code and
ordinary words after such a name don't count.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import cache

from ..texts import has_any, in_small_letters, lazy
from ..tokens import Token, shaped_tokens, tokens
from .commands import in_commands
from .named import named_secrets
from .values import PLACEHOLDER, is_mixed, is_nothing, is_template

Span = tuple[int, int]

_LEAST_CUT = 6
"""Minimum length of a token's truncated body at the end of a text."""
_WRAP = lazy(r"[ \t`\"']{0,8}\\?\r?\n[ \t>|#*`\"'+]{0,40}")
_CUT = lazy(r"[\"'`)\]}\s]{0,4}(?:\Z|\u2026|\.\.\.|\[(?:trunc|cut|\.\.\.))")


def secrets(text: str) -> Iterator[Span]:
    """Yield the position of each secret. Positions can overlap."""
    if "PRIVATE KEY" in text:
        yield from _pem_keys(text)
    if "Private-Lines" in text:
        yield from (found.span() for found in _PUTTY.finditer(text))
    if "LS0tLS1CRUdJTi" in text:
        for found in _ENCODED_KEY.finditer(text):
            if b"PRIVATE KEY" in (_decoded(found.group()[:80]) or b""):
                yield found.span()
    yield from _tokens(text)
    yield from _jwts(text)
    for form in shaped_tokens():
        if form.may_be_in(text):
            yield from (found.span() for found in form.pattern.finditer(text))
    lowered = in_small_letters(text)
    yield from _headers(text, lowered)
    yield from _in_urls(text, lowered)
    yield from named_secrets(text, lowered)
    yield from in_commands(text, lowered)


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


def _pem_keys(text: str) -> Iterator[Span]:
    """Yield private keys between their BEGIN and END lines, or the text's edge if one is missing."""
    marks = sorted(
        [(*found.span(), True) for found in _BEGIN.finditer(text)] + [(*found.span(), False) for found in _END.finditer(text)]
    )
    open_at: tuple[int, int] | None = None
    for start, end, begins in marks:
        if open_at is not None and not begins and start - open_at[1] <= _LONGEST_KEY:
            inside = text[open_at[1] : start]
            if '"' in inside or "'" in inside:  # a list of quoted lines
                yield from ((open_at[1] + run.start(), open_at[1] + run.end()) for run in _RUN.finditer(inside))
            else:
                yield open_at[0], end
            open_at = None
            continue
        if open_at is not None:
            yield from _key_without_end(text, *open_at)
        elif not begins:
            yield from _key_without_begin(text, start, end)
        open_at = (start, end) if begins else None
    if open_at is not None:
        yield from _key_without_end(text, *open_at)


def _key_without_end(text: str, start: int, end: int) -> Iterator[Span]:
    body = _BODY.match(text, end)
    if body is not None and body.end() > end:
        yield start, body.end()


def _key_without_begin(text: str, start: int, end: int) -> Iterator[Span]:
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
    """Decode base64 up to the last complete group."""
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain[: len(plain) // 4 * 4], validate=True)
    except (ValueError, binascii.Error):
        return None


# --- tokens


@cache
def _prefixes() -> tuple[tuple[tuple[str, ...], re.Pattern[str], re.Pattern[str], Token], ...]:
    """Return each kind of token after texts of which it contains one, and the patterns of its prefix and body."""
    return tuple(
        (
            token.starts(),
            lazy(("" if token.glued else r"(?<![A-Za-z0-9])") + f"(?:{token.prefix})"),
            lazy(f"[{token.body}]{{1,{token.most}}}"),
            token,
        )
        for token in tokens()
    )


@cache
def _starts() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the texts of which a token in a run of letters contains one, and those of other tokens."""
    in_runs = [start for token in tokens() if not token.literals for start in token.starts()]
    return tuple(in_runs), tuple(start for token in tokens() for start in token.literals)


_RUN_OF_TOKEN = lazy(r"[A-Za-z0-9+/_.~=%-]{8,}")
_SHOWN = 200
"""Letters of a token's body that show whether it is a placeholder."""
_NOT_OF_PROSE = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")


def _tokens(text: str) -> Iterator[Span]:
    runs = " ".join(run for run in _RUN_OF_TOKEN.findall(text) if not _NOT_OF_PROSE.isdisjoint(run[1:]))
    if not runs or not any(map(has_any, (runs, text), _starts())):
        return
    for starts, prefix, body, token in _prefixes():
        if not has_any(text if token.literals else runs, starts):
            continue
        done = 0
        for found in prefix.finditer(text):
            if found.start() < done:  # inside a token
                continue
            end = _end_of(text, found.end(), body, token)
            if end is not None:
                yield found.start(), end
                done = end


def _end_of(text: str, at: int, body: re.Pattern[str], token: Token) -> int | None:
    """Return the end of a token's body, or None if it isn't valid."""
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
        if have >= token.least and not is_mixed(line):
            break
        if have < token.least and not (is_mixed(line) or is_mixed("".join(parts) + line)):
            return None
        parts.append(line)
        end = more.start() + len(line)
    whole = "".join(parts)
    if len(whole) < token.least:
        cut = token.cut and len(whole) >= _LEAST_CUT and _CUT.match(text, end) is not None
        return end if cut and is_mixed(whole, least=_LEAST_CUT) and not PLACEHOLDER.search(whole) else None
    if len(set(whole[:_SHOWN])) < 5 or PLACEHOLDER.search(whole, 0, _SHOWN) is not None:
        return None
    if not token.glued and not any(sign.isdigit() for sign in whole):
        return None
    return end


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
        decoded = _decoded(header) or b""
        if _CLAIMS.search(decoded) is None and not remainder.startswith("eyJ"):
            continue
        end = found.end()
        while (wrap := _WRAP.match(text, end)) is not None:  # wrapped across lines
            more = _JWT_LINE.match(text, wrap.end())
            if more is None or not is_mixed(more.group(), least=6):
                break
            end = more.end()
        yield found.start(), end


# --- headers

_AUTHORIZATION = lazy(
    r"(?:authorization|x-auth(?:-token)?|x-api-key)[\"'\]`*]{0,4}\s{0,4}(?:=>|[:=,])\s{0,4}\[?[\"'`]{0,2}\s{0,4}"
    r"(?:[A-Za-z][\w-]{1,19}\s{1,4})?[\"'`]?([A-Za-z0-9._~+/=:-]{6,8000})",
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


def _headers(text: str, lowered: str) -> Iterator[Span]:
    if "auth" in lowered or "x-api-key" in lowered:
        yield from _authorizations(text, lowered)
    if "basic" in lowered:
        yield from (found.span(1) for found in _BASIC.finditer(text) if _is_login(_decoded(found.group(1))))
    if "bearer" in lowered:
        yield from (
            found.span(1) for found in _BEARER.finditer(text) if is_mixed(found.group(1)) and not is_nothing(found.group(1))
        )
    if "cookie" in lowered:
        for header in _COOKIES.finditer(text):
            cookies = _COOKIE.finditer(text, header.start(1), header.end(1))
            yield from (found.span(2) for found in cookies if _is_secret_cookie(*found.groups()))


def _authorizations(text: str, lowered: str) -> Iterator[Span]:
    for found in _AUTHORIZATION.finditer(text):
        value = found.group(1)
        if (len(value) >= 20 or is_mixed(value, least=6)) and not is_nothing(value):
            yield found.span(1)
        if value.lower() in ("digest", "oauth", "aws4-hmac-sha256"):
            yield from (part.span(1) for part in _DIGEST.finditer(text, found.end(), found.end() + 2000))
    if "digest" in lowered or "oauth_" in lowered or "aws4" in lowered:
        yield from (found.span(1) for found in _DIGEST.finditer(text) if is_mixed(found.group(1)))


def _is_login(decoded: bytes | None) -> bool:
    return decoded is not None and b":" in decoded and all(code >= 32 for code in decoded)


def _is_secret_cookie(name: str, value: str) -> bool:
    if is_nothing(value):
        return False
    return _TELLING_COOKIE.search(name) is not None or (len(value) >= 20 and is_mixed(value))


# --- URLs

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


_LINK_WORDS = ("reset", "verify", "invite", "magic", "confirm", "activate", "unsubscribe")


def _in_urls(text: str, lowered: str) -> Iterator[Span]:
    if "://" in text and "@" in text:
        for found in _USER_INFO.finditer(text):
            user, colon, password = found.group(1).partition(":")
            if colon and len(password) >= 2 and not is_template(password):
                yield found.end(1) - len(password), found.end(1)
            elif not colon and len(user) >= 16 and is_mixed(user):
                yield found.span(1)
    if "=" in text and ("?" in text or "&" in text or "#" in text):
        for found in _QUERY.finditer(text):
            value = found.group(2).rstrip(".,:!?")
            if _is_secret_parameter(found.group(1), value):
                yield found.start(2), found.start(2) + len(value)
    if "/" in text and any(word in lowered for word in _LINK_WORDS):
        yield from (found.span(1) for found in _LINK.finditer(text) if is_mixed(found.group(1)))


def _is_secret_parameter(name: str, value: str) -> bool:
    if is_nothing(value) or _PAGES.search(name) is not None:
        return False
    return (len(value) >= 6 and _SURE_IN_QUERY.search(name) is not None) or (len(value) >= 16 and is_mixed(value))
