"""Find email addresses with ``@`` or in words, such as ``ada at example dot com``."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..texts import Span, lazy, word_set

_LONGEST_LOCAL = 64
_LOCAL = lazy(r"[\w.!#$%'*+/=?^{|}~-]+\Z")
_ASCII_LOCAL = lazy(r"[A-Za-z0-9.!#$%'*+/=?^_{|}~-]+\Z")
_QUOTED_LOCAL = lazy(r'"(?:[^"\\\r\n@]|\\.){1,64}"\Z')
_ASCII_DOMAIN = lazy(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9_-]{0,62})\.){1,8}(?:[A-Za-z]{2,24}|xn--[A-Za-z0-9-]{2,59})(?![A-Za-z0-9_\u00c0-\u052f]|-[A-Za-z0-9])"
)
_DOMAIN = lazy(r"(?:[^\W_](?:[\w-]{0,62})\.){1,8}(?:[^\W\d_]{2,24}|xn--[A-Za-z0-9-]{2,59})(?!\w)")
_IP_DOMAIN = lazy(r"\[(?:IPv6:[0-9A-Fa-f:.]{2,45}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})\]")
_EAST_ASIAN = lazy(r"[\u2e80-\ud7ff]")
_LONGEST_USER_INFO = 300
_NO_USER_INFO = lazy(r"[\s/?#\"'<>]")
_TOP = r"(?:com|org|net|edu|gov|io|dev|ai|app|co|info|biz|me|de|fr|es|it|uk|nl|ch|at|be|se|no|dk|fi|pl|cz|pt|br|in|jp|cn|au|ca|us|ru|eu|example|test)"
_SPELLED = lazy(
    r"(?<![\w.+-])[A-Za-z0-9_.+-]{1,64}\s{0,2}[\[({<]\s?(?:at|@|AT|At)\s?[\])}>]\s{0,2}[A-Za-z0-9-]{1,63}"
    r"(?:\s{0,2}(?:\.|[\[({<]\s?(?:dot|DOT|Dot|\.)\s?[\])}>])\s{0,2}[A-Za-z0-9-]{1,63}){1,5}"
)
_SPOKEN = lazy(
    r"(?<![\w.+-])[A-Za-z0-9_+-]{1,64}(?:(?:\.| dot )[A-Za-z0-9_+-]{1,64}){0,3} at [A-Za-z0-9-]{1,63}(?: dot [A-Za-z0-9-]{1,63}){0,3} dot "
    + _TOP + r"(?![\w-])",
    re.IGNORECASE,
)  # fmt: skip
_SPACED = lazy(
    r"(?<![\w.+-])(?:[A-Za-z0-9_.+-]{1,64}(?: {1,2}@ {0,2}|@(?: {1,2}|[ \t]?\r?\n[ \t>]{0,8}))|[A-Za-z0-9_+-]{1,32}\.[A-Za-z0-9_+-]{1,32}\r?\n[ \t>]{0,8}@)"
    r"[A-Za-z0-9-]{1,63}(?: ?\. ?[A-Za-z0-9-]{1,63}){0,4} ?\. ?" + _TOP + r"(?![\w-])"
)


def emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    end = 0
    while at >= 0:
        start = _local(text, end, at)
        domains = (_ASCII_DOMAIN, _DOMAIN, _IP_DOMAIN) if start < at else ()
        domain = next((found for each in domains if (found := each.match(text, at + 1)) is not None), None)
        if domain is not None and not _is_no_address(text, start, at, domain.end()):
            end = domain.end()
            yield start, end
        at = text.find("@", at + 1)
    lowered = text.lower()
    if any(bracket in lowered for bracket in ("at]", "at)", "at}", "at>", "at ]", "at )", "[@", "(@")):
        yield from (found.span() for found in _SPELLED.finditer(text))
    if " dot " in lowered and " at " in lowered:
        yield from (found.span() for found in _SPOKEN.finditer(text))
    if any(broken in text for broken in ("@ ", " @", "@\n", "@\r", "\n@")):
        yield from (found.span() for found in _SPACED.finditer(text))


def _local(text: str, end: int, at: int) -> int:
    """Return the start of the local part before the ``@``, or ``at`` if this part is empty."""
    before = text[max(end, at - _LONGEST_LOCAL - 2) : at]
    if before.endswith('"'):
        quoted = _QUOTED_LOCAL.search(before)
        return at - len(before) + quoted.start() if quoted is not None else at
    run = _tail(before, _LOCAL)
    # A sentence without spaces can end in an address.
    if _EAST_ASIAN.search(run) is not None and not _EAST_ASIAN.match(run[-1:]):
        run = _tail(before, _ASCII_LOCAL)
    # A path, key or template directly before the address isn't part of it.
    run = run[max(run.rfind(sign) for sign in "/=|{}?'") + 1 :].lstrip(".%+-!#$*^~")
    return at - len(run)


def _tail(text: str, pattern: re.Pattern[str]) -> str:
    kept = len(text)
    while kept and pattern.match(text[kept - 1]):
        kept -= 1
    return text[kept:]


def _is_no_address(text: str, start: int, at: int, stop: int) -> bool:
    ending = text[at + 1 : stop].rpartition(".")[2].lower()
    if ending in word_set("hosts.txt", "file_endings") or (text[start:at] == "git" and text[stop : stop + 1] in (":", "/")):
        return True
    before = text[max(0, start - _LONGEST_USER_INFO) : start]
    scheme = before.rfind("://")
    if scheme < 0 or _NO_USER_INFO.search(before, scheme + 3) is not None:
        return False
    following = _NO_USER_INFO.search(text, stop)  # in a URL's authority, the last @ follows the password
    return "@" not in text[stop : following.start() if following is not None else stop + _LONGEST_USER_INFO]
