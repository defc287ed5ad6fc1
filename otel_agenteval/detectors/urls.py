"""Find links in a text, even if they're disguised, and normalize them for comparison."""

from __future__ import annotations

import html
import re
import unicodedata
from contextlib import suppress
from functools import cache
from typing import NamedTuple
from urllib.parse import unquote_plus

from .texts import lazy, word_set

# --- host names, classified without a lookup: reserved, placeholder, namespace or well known


@cache
def endings() -> frozenset[str]:
    """Return the top-level domains that links without a scheme can have. :func:`_is_host` then checks each of these links."""
    return _prose_endings() | word_set("hosts.txt", "files")


def _prose_endings() -> frozenset[str]:
    return word_set("hosts.txt", "sure") | word_set("hosts.txt", "unsure")


def well_known() -> frozenset[str]:
    """Return well-known hosts, whose front pages don't need a source."""
    return word_set("hosts.txt", "well_known")


@cache
def _known_labels() -> frozenset[str]:
    labels = (host.split(".", 1)[0] for host in well_known())
    return frozenset(label for label in labels if len(label) >= 6)


_RESERVED = re.compile(
    r"""(?:(?:.*\.)?(?:api|www|company|domain|site|server|app|host|shop|store|tenant|user|customer)\.)?example |
        (?:.*\.)?(?:example\.(?:com|net|org|edu|[a-z]{2}|co\.[a-z]{2})|test|invalid|localhost|local|(?:your|my|mein|ihre?|mon|tu|su)-?_?
            (?:company|domain|site|website|server|app|host|org|firma|unternehmen|shop|store|brand|instance|tenant|workspace|dominio|domaine|empresa)(?:\.[a-z.]+)?
          | (?:yourdomain|mydomain|domain|somedomain|beispiel|exemple|ejemplo|esempio|exemplo|voorbeeld|przyklad)\.[a-z]{2,3}  # codespell:ignore exemple
          | (?:localhost|host\.docker\.internal|cluster\.local))(?::[0-9]+)?
      | (?:127|10)(?:\.[0-9]+){3}(?::[0-9]+)? | 0\.0\.0\.0(?::[0-9]+)? | (?:192\.168|169\.254|172\.(?:1[6-9]|2[0-9]|3[01]))(?:\.[0-9]+){2}(?::[0-9]+)?
      | (?:192\.0\.2|198\.51\.100|203\.0\.113)\.[0-9]+(?::[0-9]+)?""",
    re.VERBOSE,
)
_NAMESPACE_KEY = re.compile(
    r"""(?:json-)?schema\.org(?:/.*)? | w3\.org/(?:[0-9]{4}/.*|ns(?:/.*)?|xml.*|tr/.*) | (?:[a-z0-9-]+\.)?schemas?\.[a-z.]+(?:/.*)?
      | (?:xmlns|purl|xmlns\.jcp|ns\.adobe|rdfs|opengis)\.[a-z]+(?:/.*)? | ogp\.me(?:/ns.*)? | maven\.apache\.org/(?:pom|xsd|settings).*
      | java\.sun\.com/xml.* | springframework\.org/schema.* | sitemaps\.org/schemas.* | hl7\.org/fhir.* | docs\.oasis-open\.org/.*/ns.*
      | terminology\.hl7\.org.* | snomed\.info.* | loinc\.org | unitsofmeasure\.org | semver\.org.* | keepachangelog\.com.*
      | (?:creativecommons\.org|apache\.org|spdx\.org|opensource\.org|gnu\.org)/(?:publicdomain|licen[sc]es?).*""",
    re.VERBOSE,
)
_LIKE = str.maketrans("015", "ols")
_PACKAGE = ("com.", "org.", "net.", "io.", "de.", "edu.", "gov.", "dev.", "kubernetes.io", "k8s.io")
_NO_HOST = frozenset(("asp.net", "vb.net", "ado.net", "ml.net", "system.net", "socket.io", "draw.io", "paint.net", "e.g", "i.e"))
_CODE_OBJECTS = frozenset(
    ("cls", "console", "df", "log", "logger", "logging", "np", "numpy", "os", "pd", "self", "sys", "tf", "this", "torch")
)
_SECOND_LEVEL = frozenset(("co", "com", "org", "net", "gov", "edu", "ac", "gob", "go", "or", "ne"))


_LONGEST_HOST = 253


def _is_no_claim(host: str, key: str) -> bool:
    """Return True if a link doesn't claim that a page exists, because it's a private host, a placeholder, or a namespace."""
    return (len(host) <= _LONGEST_HOST and _RESERVED.fullmatch(host) is not None) or _NAMESPACE_KEY.fullmatch(key) is not None


def site_of(host: str) -> str:
    """Return a host's registered domain: ``acme.co.uk`` for ``shop.acme.co.uk``. Rare suffixes (``ltd.uk``) aren't recognized."""
    labels = host.split(":", 1)[0].split(".")
    count = 3 if len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2 else 2
    return ".".join(labels[-count:])


def imitates_a_well_known_one(host: str) -> bool:
    """Return True if a host resembles a long well-known host: ``paypa1.com`` has a typo, ``paypal-login.com`` an added word."""
    site = site_of(host)
    label = site.split(".", 1)[0]
    if site in well_known() or len(label) < 5 or label in _known_labels():
        return False
    label = label.translate(_LIKE).replace("rn", "m").replace("vv", "w")
    if label in _known_labels():
        return True
    parts = set(label.split("-"))
    if len(parts) > 1 and not parts.isdisjoint(_known_labels()):
        return True
    return any(abs(len(label) - len(known)) <= 1 and _one_apart(label, known) for known in _known_labels())


def _one_apart(a: str, b: str) -> bool:
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return (
        a[start + 1 :] == b[start + 1 :]
        or a[start:] == b[start + 1 :]
        or a[start + 1 :] == b[start:]
        or (a[start : start + 2] == b[start : start + 2][::-1] and a[start + 2 :] == b[start + 2 :])
    )


# --- links


class Link(NamedTuple):
    keys: tuple[str, ...]
    """Possible keys of the page, most likely first (see :func:`key_of` and :func:`readings`)."""
    written: str
    bare: bool

    @property
    def key(self) -> str:
        return self.keys[0]

    @property
    def host(self) -> str:
        return host_of(self.key)


_REST = r"[^\s<>\"`\\|{}\[\]^\u3000-\u303f\uff00-\uffef]{1,2048}"
_URL = re.compile(rf"://({_REST})")  # the scheme is checked later: a case-insensitive start is slow
_SCHEMES = ("http", "https", "hxxp", "hxxps")
REST = re.compile(_REST)


def _any_of(words: frozenset[str]) -> str:
    return "|".join(sorted(words, key=len, reverse=True))


_LETTER = r"a-z0-9\u00df-\u024f\u0370-\u058f"
_BARE = lazy(
    lambda: (
        rf"(?<![{_LETTER}_@./:=#$%+&?-])((?:[{_LETTER}](?:[{_LETTER}-]{{0,61}}[{_LETTER}])?\.){{1,6}}(?:{_any_of(endings())}|xn--[a-z0-9-]+))(?![{_LETTER}_@(=-]|\.[{_LETTER}])"
        rf"(:[0-9]{{2,5}})?([/?](?:{_REST})?)?"
    ),
    re.IGNORECASE,
)
_SITES = {"pl": "[ąćęłńśźż]", "pt": "[ãõ]"}
"""Letters of a country's language, by top-level domain. With such a letter nearby, ``shop.pl`` is a site, not a Perl script."""
_SHOWN_AS_SITE = re.compile(
    r"\b(?:visit|(?:web)?site|homepage|(?:log|sign) (?:in|up) (?:at|on|to)|(?:book|buy|order|pay|shop)\b[^.\n]{0,20} (?:at|on|via|from))[\s:*_\"(\[]+\Z",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"\.[A-Za-z\])}\U0001d400-\U0001d7ff]")  # a literal start lets the search skip most of a text
_AFTER_DOT = lazy(
    lambda: (
        rf"(?:{_any_of(_prose_endings())}|xn--)(?![a-z0-9_])|(?:{_any_of(word_set('hosts.txt', 'files'))})[/:?]|(?<=www\.)"
        r"|[\])}]|[\U0001d400-\U0001d7ff]"
    ),
    re.IGNORECASE,
)
_WIDE_DOTTED = re.compile(r"。(com|net|org|cn|jp|kr|tw|hk)")
_DISGUISES = ("\uff0e", "\uff61", "\u2024", "\ufe52", "\uff0f", "\u200b", "\u200c", "\u200d", "\u2060", "\ufeff", "\u00ad")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_WIDE_MARKS = re.compile("[（）［］｛｝，；！？＂＇＜＞｀｜～]|：(?![/／])")
"""Pattern for full-width punctuation, which ends a link. As ASCII, it would be part of the link."""
_SEPARATOR = re.compile(r"[,;'\u0590-\uffff]")
_HOST_BEFORE_SEPARATOR = lazy(lambda: rf"(?:[A-Za-z0-9-]{{1,63}}\.){{1,6}}(?i:{_any_of(endings())})(?=[,;'\u0590-\uffff])")
_DOT = re.compile(
    r"\s?[\[({]\s?(?:\.|dot|punkt|punto|point|点)\s?[\])}]\s?|(?<=[a-z0-9]) dot (?=(?:[a-z0-9-]+ dot )?(?:com|org|net|io|info)\b)",
    re.IGNORECASE,
)
_BRACKET_DOT = re.compile(r"[\[({]\s?(?:\.|dot|punkt|punto|point|点)", re.IGNORECASE)
_SLASHES = re.compile(r"(h(?<!\wh)(?:ttps?|xxps?))(?:\s?(?:\[:\]|\[://\]|:\s?)\s?//\s?|\[://\])", re.IGNORECASE)
_ESCAPE = re.compile(r"\\([-_.&~()*#+!?=])")
_CODE = re.compile(r"(```|~~~).*?(?:\1|\Z)|(`+)(?!`)[^\n]{1,2000}?(?<!`)\2(?!`)", re.DOTALL)
_COMMAND = re.compile(
    r"^[ \t]*(?:[$#>%][ \t]+)?(?:sudo[ \t]+)?(?:curl|wget|http|git (?:clone|remote|submodule)|pip3? install|npm|docker|helm|kubectl|brew|apt|ping|nslookup|dig|ssh|openssl)[ \t][^\n]*(?:\\\n[^\n]*)*",
    re.MULTILINE,
)
_NAMESPACES = re.compile(
    r"(?:xmlns(?::[\w.-]+)?|xsi:schemalocation|targetnamespace|\$schema|\$id|\$ref|@context|@vocab|@type|itemtype)[\"']?\s{0,3}[=:]\s{0,3}(?:\"[^\"]{0,2000}\"|'[^']{0,2000}')",
    re.IGNORECASE,
)
_DATA = frozenset(("", "json", "markdown", "md", "text", "csv"))
"""Labels of code blocks that contain data, not code."""
_MARKDOWN = re.compile(r"\[([^\[\]\n]{4,300})\]\(<?((?:https?:)?//[^\s()<>]{3,2048}|www\.[^\s()<>]{3,2048})")
_END = ".,;:!?'*_~/·”’»«„“("
_PREFIX = re.compile(r"(?:www[0-9]?|m|mobile|amp)\.(?=[^/?]*\.)")
NEXT_URL = re.compile(r"(?<![,;)'])[,;)']+(?=https?://)")
_NEXT_LINE = re.compile(r"-?[ \t]*\r?\n[ \t>*-]*([^\s<>\"`|]{1,500})")


def may_hold_links(text: str) -> bool:
    """Return True if a text might contain a link. The check is fast for ordinary prose, and misses only rare disguises."""
    if "://" in text or _has_host(text) or _BRACKET_DOT.search(text) or ("dot" in text and _DOT.search(text)):
        return True
    if text.isascii():
        return False
    for sign in _DISGUISES:  # a generator would be slower than the search
        if sign in text:
            return True
    return _WIDE_DOTTED.search(text) is not None


def _has_host(text: str) -> bool:
    return any(_AFTER_DOT.match(text, found.end() - 1) is not None for found in _DOTTED.finditer(text))


def revealed(text: str) -> str:
    """Undo disguises of links, such as invisible and full-width characters, ``[.]``, ``[:]//``, and escapes."""
    if not text.isascii():
        text = _WIDE_MARKS.sub(" ", _WIDE_DOTTED.sub(r".\1", _INVISIBLE.sub("", text)))
        text = unicodedata.normalize("NFKC", text)
    if "\\" in text:
        text = _ESCAPE.sub(r"\1", text)
    if "&" in text and ";" in text:
        text = html.unescape(text)
    if "[" in text or "(" in text or "dot" in text or "{" in text:
        if _BRACKET_DOT.search(text) is not None or " dot " in text.lower():
            text = _DOT.sub(".", text)
        text = _SLASHES.sub(r"\1://", text)
    return text


def without_code(text: str) -> str:
    """Remove code blocks, inline code, commands, and XML namespaces. If the whole text is a block of data, keep the data."""
    if "`" in text or "~~~" in text:
        kind, _, rest = text.strip().removeprefix("```").removesuffix("```").partition("\n")
        data, newline, last = rest.rpartition("\n")
        fenced = text.count("```") == 2 and text.lstrip().startswith("```") and text.rstrip().endswith("```")
        is_data = fenced and newline and kind.rstrip() in _DATA and not last.strip()
        text = data if is_data else _CODE.sub(" ", text)
    text = _COMMAND.sub(" ", text)
    return _NAMESPACES.sub(" ", text) if '"' in text or "'" in text else text


def links_in(text: str) -> dict[str, Link]:
    """Return links by key (see :func:`key_of`), except placeholders and reserved links. Pass the result of :func:`without_code`."""
    found: dict[str, Link] = {}
    spans: list[str] = []
    at = 0
    for match in _URL.finditer(text):
        scheme = text[max(0, match.start() - 5) : match.start()].lower()
        if not scheme.endswith(_SCHEMES):
            continue
        begin = match.start() - (5 if scheme.endswith("s") else 4)
        spans.append(text[at:begin])
        at = match.end()
        for written in NEXT_URL.split(text[begin:at]):
            scheme, _, rest = written.partition("://")
            is_template = text[at : at + 1] in ("{", "<") and rest.endswith(("/", "=", ".", "-"))
            if not (is_template or "/your" in rest.lower() or rest.endswith("://")):
                _add(found, f"{scheme}://", rest, _NEXT_LINE.match(text, at))
    spans.append(text[at:])
    rest_of_text = "\n".join(spans)
    for match in _BARE.finditer(rest_of_text) if _has_host(rest_of_text) else ():
        host, port, rest = match[1].lower(), match[2] or "", match[3] or ""
        if _is_host(match, host, rest) and not _is_sentence_break(match[1]):
            _add(found, "", match[1] + port + rest)
    return found


def _is_host(found: re.Match[str], host: str, rest: str) -> bool:
    """Return True if a dotted word without a scheme is a host name. If its ending is also a word, it needs a path, a hyphen, or
    ``www.``. If its ending is also a file extension, it needs ``www.`` or, for ``.pl`` and ``.pt``, another sign of a site.
    """
    name, _, top = host.rpartition(".")
    if host in _NO_HOST or host.startswith(_PACKAGE) or host.endswith(_PACKAGE[-2:]):
        return False
    if name.startswith("www."):
        return True
    if any(map(str.isalnum, rest)):
        return top in _prose_endings()
    if top in word_set("hosts.txt", "files"):
        return top in _SITES and ("." in name or _is_shown_as_site(found, _SITES[top]))
    return top in _prose_endings() and ("-" in name or (top in word_set("hosts.txt", "sure") and name not in _CODE_OBJECTS))


def _is_shown_as_site(found: re.Match[str], letters: str) -> bool:
    start, end = max(0, found.start() - 100), found.end() + 100
    return _SHOWN_AS_SITE.search(found.string[start : found.start()]) is not None or (
        re.search(letters, found.string[start:end], re.IGNORECASE) is not None
    )


def _add(found: dict[str, Link], scheme: str, rest: str, next_line: re.Match[str] | None = None) -> None:
    """Add a link, unless it's reserved or a placeholder. ``next_line`` matches the next line's first word, for wrapped links."""
    parts = readings(rest)
    first = key_of(parts[0])
    if parts[0].endswith("...") and "/" in first:
        first += "…"  # a shortened display of a longer link
    others = (*parts[1:], rest + next_line[1]) if next_line is not None else parts[1:]
    if host_of(first) and first not in found and not _is_no_claim(host_of(first), first):
        written = scheme + parts[0]
        if not written.endswith(")") or written.count(")") > written.count("("):
            written = written.rstrip(".,;:!?'*)")
        found[first] = Link((first, *map(key_of, others)), written, not scheme)


def readings(rest: str) -> tuple[str, ...]:
    """Return possible links at the start of ``rest``, most likely first. In CSV or unspaced text, a link's end can be unclear."""
    separator = _SEPARATOR.search(rest)
    if separator is None:
        return (rest,)
    host = _HOST_BEFORE_SEPARATOR.match(rest)
    if host is not None:
        return (host.group(),)
    before = rest[: separator.start()]
    runs_on = before[-1:].isalnum() and not separator.group().isascii()
    return (before, rest) if runs_on else (rest, before)


def _is_sentence_break(written: str) -> bool:
    """Return True if a dot ends a sentence and the space after it is missing, as in ``done.In``."""
    before, _, top = written.rpartition(".")
    return top[:1].isupper() and not top.isupper() and "." not in before


def key_of(rest: str) -> str:
    """Return a link's host, path, and query in lower case. Remove parts such as the user, ``www.``, and the fragment."""
    rest = rest.split("#", 1)[0]
    if "&amp;" in rest:
        rest = rest.replace("&amp;", "&")
    while rest and (rest[-1] in _END or (rest[-1] == ")" and rest.count(")") > rest.count("("))):
        rest = rest[:-1]
    if "+" in rest or "%" in rest:
        rest = unquote_plus(rest)
    host, mark, page = _split(rest.lower())
    host = host.rpartition("@")[2].rstrip(".")
    if ":" in host:
        host = host.removesuffix(":443").removesuffix(":80")
    if "xn--" in host:
        labels = host.split(".")
        for at, label in enumerate(labels):
            if label.startswith("xn--"):
                with suppress(UnicodeError):
                    labels[at] = label[4:].encode("ascii").decode("punycode")
        host = ".".join(labels)
    prefix = _PREFIX.match(host)
    return host[prefix.end() if prefix is not None else 0 :] + mark + page


def _split(rest: str) -> tuple[str, str, str]:
    at = min((i for i in (rest.find("/"), rest.find("?")) if i >= 0), default=len(rest))
    return rest[:at], rest[at : at + 1], rest[at + 1 :]


def host_of(key: str) -> str:
    return _split(key)[0]


def ascii_host(host: str) -> str:
    return ".".join(
        label if label.isascii() else "xn--" + label.encode("punycode", "replace").decode("ascii") for label in host.split(".")
    )


def shown_otherwise(text: str) -> list[tuple[str, str, str]]:
    """Return ``(displayed key, target key, Markdown)`` of links whose text shows another host."""
    found = []
    if "](" in text:
        for match in _MARKDOWN.finditer(text):
            shown = next(iter(links_in(match[1])), None) if "." in match[1] else None
            target = key_of(match[2].split("//", 1)[-1])
            if shown is not None and host_of(shown) != host_of(target):
                found.append((shown, target, match.group()))
    return found
