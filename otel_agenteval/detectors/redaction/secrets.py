"""Find access tokens, private keys, passwords, and other values next to a secret's name.

A token is recognized by its prefix (:mod:`..tokens`), even if it wraps across lines. At the end of a truncated text, the start of a
token counts too, because it still reveals most of the secret. Other secrets are recognized by the text before them: ``password=…``,
``"client_secret": "…"``, ``Authorization: …``, ``?token=…``, ``scheme://user:…@host``. Placeholders, code, and most ordinary words
after this text are ignored.

Most searches run only if the text contains a word that the search requires. Limited repetitions keep the search time linear.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from ..texts import Span, has_any, in_small_letters, lazy
from ..tokens import Token, formats, tokens
from .commands import in_commands
from .named import named_secrets
from .words import PLACEHOLDER, is_mixed, is_nothing, is_template


def secrets(text: str) -> Iterator[Span]:
    """Yield the range of each secret. Ranges can overlap."""
    if "PRIVATE KEY" in text:
        yield from _pem_keys(text)
    if "Private-Lines" in text:
        yield from (found.span() for found in _PUTTY.finditer(text))
    if _ENCODED_BEGIN in text:
        for found in _ENCODED_KEY.finditer(text):
            if b"PRIVATE KEY" in (_decoded(found.group()[:80]) or b""):
                yield found.span()
    yield from _tokens(text)
    yield from _jwts(text)
    for form in formats("shaped"):
        if form.may_be_in(text):
            yield from (found.span() for found in form.pattern.finditer(text))
    lowered = in_small_letters(text)
    yield from _headers(text, lowered)
    yield from _in_urls(text, lowered)
    yield from named_secrets(text, lowered)
    yield from in_commands(text, lowered)


# --- private keys

_LONGEST_KEY = 20_000
_BEGIN = lazy(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: ?-{4,5})?")
_END = lazy(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: ?-{0,5})")
_BREAK = r"(?:[ \t>|#*]|\r|\n|\\+[nrt]|\\+(?=\r?\n))"
"""Pattern for a space, line break, or mark such as ``>`` between the lines of a key. The line break can be escaped."""
_BODY = lazy(
    rf"""
    (?:
        {_BREAK}{{0,80}}
        (?: (?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash):[ ]?[^\n\\\"]{{0,120}} | [A-Za-z0-9+/]{{16,20000}}={{0,2}} )
    )*
    (?: {_BREAK}{{1,80}} [A-Za-z0-9+/]{{1,76}} ={{0,2}} (?![A-Za-z0-9]) )?  # the last line, which can be short
    """,
    re.VERBOSE,
)
_KEY_LINE = lazy(r"[A-Za-z0-9+/=]{4,200}")
_QUOTED_LINE = lazy(r"[A-Za-z0-9+/=]{8,}")
_PUTTY = lazy(r"Private-Lines: ?[0-9]{1,3}(?:\s{1,8}[A-Za-z0-9+/=]{4,76}){1,200}(?:\s{1,8}Private-MAC: ?[0-9a-f]{32,64})?")
_ENCODED_BEGIN = "LS0tLS1CRUdJTi"
"""``-----BEGIN`` in base64."""
_ENCODED_KEY = lazy(_ENCODED_BEGIN + r"[A-Za-z0-9+/]{30,20000}={0,2}")


class _KeyMark(NamedTuple):
    start: int
    end: int
    begins: bool


def _pem_keys(text: str) -> Iterator[Span]:
    """Yield private keys. If the BEGIN or END line is missing, the key consists of all adjacent lines that look like key lines."""
    marks = [_KeyMark(*found.span(), True) for found in _BEGIN.finditer(text)]
    marks += [_KeyMark(*found.span(), False) for found in _END.finditer(text)]
    begin: _KeyMark | None = None
    for mark in sorted(marks):
        if begin is None:
            if not mark.begins:
                yield from _key_without_begin(text, mark)
        elif mark.begins or mark.start - begin.end > _LONGEST_KEY:
            yield from _key_without_end(text, begin)
        else:
            inside = text[begin.end : mark.start]
            if '"' in inside or "'" in inside:  # quoted lines: yield only their contents, so that the text remains code
                lines = _QUOTED_LINE.finditer(inside)
                yield from ((begin.end + line.start(), begin.end + line.end()) for line in lines)
            else:
                yield begin.start, mark.end
        begin = mark if mark.begins else None
    if begin is not None:
        yield from _key_without_end(text, begin)


def _key_without_end(text: str, begin: _KeyMark) -> Iterator[Span]:
    body = _BODY.match(text, begin.end)
    if body is not None and body.end() > begin.end:
        yield begin.start, body.end()


def _key_without_begin(text: str, end: _KeyMark) -> Iterator[Span]:
    key_start, limit = end.start, max(0, end.start - _LONGEST_KEY)
    while key_start > limit:
        line_start = max(limit, text.rfind("\n", limit, key_start - 1) + 1)  # start of the previous line
        if _KEY_LINE.fullmatch(text[line_start:key_start].strip(" \t\r\n>|")) is None:
            break
        key_start = line_start
    if key_start < end.start:
        yield key_start, end.end


def _decoded(text: str) -> bytes | None:
    plain = text.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return base64.b64decode(plain[: len(plain) // 4 * 4], validate=True)
    except (ValueError, binascii.Error):
        return None


# --- tokens

_TOKEN_RUN = lazy(r"[A-Za-z0-9+/_.~=%-]{8,}")
_NOT_IN_PROSE = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LINE_BREAK = lazy(r"[ \t`\"']{0,8}\\?\r?\n[ \t>|#*`\"'+]{0,40}")
"""Pattern for a line break inside a wrapped token, and quote marks next to it."""
_CUT = lazy(r"[\"'`)\]}\s]{0,4}(?:\Z|\u2026|\.\.\.|\[(?:trunc|cut|\.\.\.))")
_LEAST_CUT = 6
"""Minimum length of a truncated token at the end of a text. Shorter matches also occur in names and prose."""
_SHOWN = 200
"""Number of characters in a token's body to check for placeholders."""
_LEAST_DIFFERENT = 5
"""Minimum number of different characters in a token's body. Placeholders such as ``xxxx-xxxx`` have fewer."""


class _TokenSearch(NamedTuple):
    token: Token
    literals: tuple[str, ...]
    """Texts for a fast pre-check. Every token of this kind contains one of these texts."""
    prefix: re.Pattern[str]
    body: re.Pattern[str]


@cache
def _searches() -> tuple[_TokenSearch, ...]:
    return tuple(
        _TokenSearch(
            token,
            token.starts(),
            lazy(("" if token.glued else r"(?<![A-Za-z0-9])") + f"(?:{token.prefix})"),
            lazy(f"[{token.body}]{{1,{token.most}}}"),
        )
        for token in tokens()
    )


@cache
def _literals() -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return texts for a fast pre-check: those to find in runs of token characters, and those to find anywhere."""
    in_runs = [literal for token in tokens() if not token.literals for literal in token.starts()]
    return tuple(in_runs), tuple(literal for token in tokens() for literal in token.literals)


def _tokens(text: str) -> Iterator[Span]:
    runs = " ".join(run for run in _TOKEN_RUN.findall(text) if not _NOT_IN_PROSE.isdisjoint(run[1:]))
    in_runs, anywhere = _literals()
    if not runs or not (has_any(runs, in_runs) or has_any(text, anywhere)):
        return
    for search in _searches():
        if not has_any(text if search.token.literals else runs, search.literals):
            continue
        last_end = 0
        for prefix in search.prefix.finditer(text):
            if prefix.start() < last_end:  # inside a token
                continue
            body = _joined_body(text, prefix.end(), search)
            if body is not None and _is_secret(*body, search.token, text):
                last_end = body[1]
                yield prefix.start(), last_end


def _joined_body(text: str, start: int, search: _TokenSearch) -> tuple[str, int] | None:
    """Return a token's body, joined across lines, and its end, or None if the body is missing or only ordinary words complete it."""
    token, found = search.token, search.body.match(text, start)
    if found is None:
        return None
    content, end = found.group(), found.end()
    while len(content) < token.most:
        line_break = _LINE_BREAK.match(text, end)
        more = search.body.match(text, line_break.end()) if line_break is not None else None
        if more is None:
            break
        line = more.group()[: token.most - len(content)]
        if not is_mixed(line):  # an ordinary word, unless it completes a token
            if len(content) >= token.least:
                break
            if not is_mixed(content + line):
                return None
        content += line
        end = more.start() + len(line)
    return content, end


def _is_secret(content: str, end: int, token: Token, text: str) -> bool:
    if len(content) < token.least:
        is_cut = token.cut and len(content) >= _LEAST_CUT and _CUT.match(text, end) is not None
        return is_cut and is_mixed(content, least=_LEAST_CUT) and not PLACEHOLDER.search(content)
    if len(set(content[:_SHOWN])) < _LEAST_DIFFERENT or PLACEHOLDER.search(content, 0, _SHOWN) is not None:
        return False
    return token.glued or any(sign.isdigit() for sign in content)  # such a prefix also starts words


_JWT = lazy(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{8,20000}(?:\.[A-Za-z0-9_-]{0,20000}){0,4}")
"""Pattern for a JSON Web Token. It starts with the base64 of ``{"`` and has up to five parts."""
_JWT_LINE = lazy(r"[A-Za-z0-9_.-]{1,4000}")
_LEAST_JWT_LINE = 6
_CLAIMS = re.compile(rb'"(?:alg|typ|enc|kid|cty|jku|x5t|zip)"')


def _jwts(text: str) -> Iterator[Span]:
    if "eyJ" not in text:
        return
    end = 0
    for found in _JWT.finditer(text):
        if found.start() < end:
            continue
        header, _, remainder = found.group().partition(".")
        if _CLAIMS.search(_decoded(header) or b"") is None and not remainder.startswith("eyJ"):
            continue
        end = found.end()
        while (line_break := _LINE_BREAK.match(text, end)) is not None:
            more = _JWT_LINE.match(text, line_break.end())
            if more is None or not is_mixed(more.group(), least=_LEAST_JWT_LINE):
                break
            end = more.end()
        yield found.start(), end


# --- headers

_AUTHORIZATION = lazy(
    r"""
    (?:authorization|x-auth(?:-token)?|x-api-key) [\"'\]`*]{0,4}
    \s{0,4} (?:=>|[:=,]) \s{0,4} \[? [\"'`]{0,2} \s{0,4}
    (?:[A-Za-z][\w-]{1,19}\s{1,4})? [\"'`]?  # the scheme
    ([A-Za-z0-9._~+/=:-]{6,8000})
    """,
    re.IGNORECASE | re.VERBOSE,
)
_LONG = 20
"""Minimum length of a value that can't be an ordinary word."""
_PARAMETERS_REACH = 2_000
"""Maximum length of the parameters after a scheme such as ``Digest``."""
_DIGEST = lazy(
    r"(?:response|credential|signature|oauth_token|oauth_signature|oauth_consumer_key)=[\"']?([A-Za-z0-9%+/=_.-]{8,500})",
    re.IGNORECASE,
)
_BASIC = lazy(r"(?<![A-Za-z])basic\s{1,4}([A-Za-z0-9+/_-]{6,2000}={0,2})(?![A-Za-z0-9])", re.IGNORECASE)
_BEARER = lazy(r"(?<![A-Za-z])bearer[:\s]{1,4}[\"'`]?([A-Za-z0-9._~+/-]{8,8000}={0,2})", re.IGNORECASE)
_COOKIES = lazy(
    r"""(?:set-)?cookie [\"'\]]{0,3} \s{0,3} (?:=>|[:=,]) \s{0,3} \[? [\"'`]{0,2} ([^\r\n\"`\\]{3,8000})""",
    re.IGNORECASE | re.VERBOSE,
)
_COOKIE = lazy(r"([A-Za-z0-9_.$-]{1,80})=([^;,\s\"']{6,4096})")
_TELLING_COOKIE = lazy(
    r"sess|sid|token|auth|jwt|csrf|xsrf|remember|login|secret|__secure|__host|connect|ticket|identity|credential", re.IGNORECASE
)


def _headers(text: str, lowered: str) -> Iterator[Span]:
    if "auth" in lowered or "x-api-key" in lowered:
        yield from _authorizations(text, lowered)
    if "basic" in lowered:
        for found in _BASIC.finditer(text):
            login = _decoded(found.group(1)) or b""
            if b":" in login and min(login) >= ord(" "):
                yield found.span(1)
    if "bearer" in lowered:
        yield from (
            found.span(1) for found in _BEARER.finditer(text) if is_mixed(found.group(1)) and not is_nothing(found.group(1))
        )
    if "cookie" in lowered:
        for header in _COOKIES.finditer(text):
            for cookie in _COOKIE.finditer(text, header.start(1), header.end(1)):
                name, value = cookie.groups()
                is_telling = _TELLING_COOKIE.search(name) is not None or (len(value) >= _LONG and is_mixed(value))
                if is_telling and not is_nothing(value):
                    yield cookie.span(2)


def _authorizations(text: str, lowered: str) -> Iterator[Span]:
    for found in _AUTHORIZATION.finditer(text):
        value = found.group(1)
        if (len(value) >= _LONG or is_mixed(value, least=6)) and not is_nothing(value):
            yield found.span(1)
        if value.lower() in ("digest", "oauth", "aws4-hmac-sha256"):
            parameters = _DIGEST.finditer(text, found.end(), found.end() + _PARAMETERS_REACH)
            yield from (parameter.span(1) for parameter in parameters)
    if "digest" in lowered or "oauth_" in lowered or "aws4" in lowered:
        yield from (found.span(1) for found in _DIGEST.finditer(text) if is_mixed(found.group(1)))


# --- URLs

_USER_INFO = lazy(
    r"""
    (?<![A-Za-z0-9+.-]) [A-Za-z][A-Za-z0-9+.-]{0,19}://
    ([^\s/@\"'<>`]{0,256} (?:@[^\s/@\"'<>`]{0,64})?)  # a password can contain an @
    @(?=[A-Za-z0-9\[%_.-])
    """,
    re.VERBOSE,
)
_LEAST_TOKEN_AS_USER = 16
_PARAMETER_MARKS = "?&;#"
_QUERY = lazy(
    rf"""
    [{_PARAMETER_MARKS}] (?:amp;)?
    (
        (?:[A-Za-z0-9_.-]{{0,30}}[_.-])?
        (?:
            token|access_token|auth|apikey|api_key|api-key|key|sig|signature|code|secret|password|passwd|pwd|pass
            |sid|session|session_id|sessionid|jwt|credential|otp|ticket|hash|hmac|invite|nonce|state|subscription-key
        )
    )
    =([^\s&#;\"'<>`\\)\]}}]{{4,4096}})
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SURE_IN_QUERY = lazy(
    r"token|secret|passw|pwd|pass|jwt|apikey|api[_-]key|subscription-key|sig(?:nature)?\Z|credential|otp|session|sid|auth",
    re.IGNORECASE,
)
"""Pattern for names of query parameters with secrets. For other names, only long random values are secrets."""
_LEAST_SURE, _LEAST_RANDOM = 6, 16
_PAGES = lazy(r"page|next|cursor|continuation|sync|offset", re.IGNORECASE)
_LINK_WORDS = ("reset", "verify", "invite", "magic", "confirm", "activate", "unsubscribe", "login")
_LINK = lazy(
    rf"/(?:{'|'.join(_LINK_WORDS)}|reset[_-]password|password[_-]reset|verify[_-]email|magic[_-]link)/([A-Za-z0-9_-]{{20,512}})(?![A-Za-z0-9])",
    re.IGNORECASE,
)


def _in_urls(text: str, lowered: str) -> Iterator[Span]:
    if "://" in text and "@" in text:
        for found in _USER_INFO.finditer(text):
            user, colon, password = found.group(1).partition(":")
            if colon and len(password) >= 2 and not is_template(password):
                yield found.end(1) - len(password), found.end(1)
            elif not colon and len(user) >= _LEAST_TOKEN_AS_USER and is_mixed(user):
                yield found.span(1)
    if "=" in text and has_any(text, _PARAMETER_MARKS):
        for found in _QUERY.finditer(text):
            value = found.group(2).rstrip(".,:!?")
            if _is_secret_parameter(found.group(1), value):
                yield found.start(2), found.start(2) + len(value)
    if "/" in text and has_any(lowered, _LINK_WORDS):
        yield from (found.span(1) for found in _LINK.finditer(text) if is_mixed(found.group(1)))


def _is_secret_parameter(name: str, value: str) -> bool:
    if is_nothing(value) or _PAGES.search(name) is not None:
        return False
    is_sure = len(value) >= _LEAST_SURE and _SURE_IN_QUERY.search(name) is not None
    return is_sure or (len(value) >= _LEAST_RANDOM and is_mixed(value))
