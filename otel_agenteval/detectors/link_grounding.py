"""Find links in an answer that aren't supported by the texts that the agent received."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice, pairwise
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

from .texts import SCAN_LIMIT, GivenTexts, text_of
from .urls import (
    NEXT_URL,
    REST,
    Link,
    ascii_host,
    host_of,
    imitates_a_well_known_one,
    key_of,
    may_hold_links,
    readings,
    revealed,
    shown_otherwise,
    site_of,
    well_known,
)

_TRACKING = re.compile(
    r"[?&](?:utm_[a-z_]+|gclid|fbclid|msclkid|mc_[ce]id|igshid|ref|ref_src|referrer|source|src|lang|hl|locale|language|si|feature|share)=[^&]*"
)
_LOCALE = re.compile(r"/[a-z]{2}(?:[-_][a-z]{2,4})?(?=/|$)")
_INDEX = re.compile(r"/(?:index|default)\.(?:html?|php|aspx?)$|/$")
_SLOT = re.compile(
    r"\\?\{\\?\{?[^{}\s]{0,60}\\?\}?\\?\}|<[^<>\s]{1,60}>|\[[^\[\]\s]{1,60}\]|(?<=/):[a-z_]\w*|%[sd]|\$\w+"
    r"|(?<=[/=])(?:[a-z]+_){1,3}(?:id|number|no|code|slug|key|ref)\b|(?<=[/=])x{3,}\b|(?<=[/=])\*"
)
_LEVEL = re.compile(r"[/?&#]")
_TEMPLATE = re.compile(r"(?:https?://)([^\s\"'`|]{1,300})", re.IGNORECASE)
_WRAP = re.compile(r"(?:=|(?<![ \t=]))[ \t]*\r?\n[ \t>]*")
_WORD = re.compile(r"[^\W_]+")
_DATA = re.compile(r"(?<![^\W_])(?=[^\W_]*[0-9])(?!(?:19|20)[0-9]{2}(?![^\W_]))[^\W_]{4,}")
"""Pattern for numbers and IDs of at least four characters, except years."""
_NAMED = re.compile(r"\b[A-Z][\w]{3,}")
_READERS = re.compile(r"fetch|read|open|brows|visit|get|scrape|crawl|load|navigat|url|web|http|page|curl", re.IGNORECASE)
_NO_PAGE = re.compile(r"\W*(?:\w+\W+){0,2}(?:error|404|403|410|50[0-9]|not[ _]found|failed|timeout|could not)", re.IGNORECASE)
_PAGE = 120  # a result with at least this many characters shows that the opened page exists
_EXAMINED = 100
"""Maximum number of links without an exact match to check one by one. Further links are ignored."""
_ROUTE = 8
"""Maximum length of a path segment that doesn't need a source, such as ``issues``."""
_LEVELS = 10
"""Maximum number of parent paths to try as the base of a relative link."""
_MAX_OCCURRENCES = 50
_TEMPLATES = 100
_SLOTS = 2
"""Maximum number of placeholders in one segment of a URL template. With more placeholders, too many links would match."""


Call: TypeAlias = tuple[str, Any, Any]
"""Name, arguments, and result of a successful tool call."""


def ungrounded_urls(
    links: dict[str, Link],
    given: GivenTexts,
    text: str,
    *,
    calls: Iterable[Call],
    system: str,
    has_results: Callable[[], bool],
    allowed: Sequence[str] = (),
) -> list[str] | None:
    """Return links without a source, and links whose text shows another site than their target.

    If links lack a source, but the agent received neither links nor other results (``has_results`` returns False), return only
    suspicious links, or None if there are none. Arguments of calls that opened a page are given texts too.
    """
    left = [link for link in links.values() if not _is_allowed(link.key, allowed)]
    if left := _not_written(left, given):
        evidence = _LinkEvidence([*given, *_opened(calls)])
        left = [link for link in left[:_EXAMINED] if not evidence.supports(link)]
        if left and not has_results() and not (evidence.has("://") or evidence.has("www.")):
            left = [link for link in left if _is_suspicious(link, system)]
            return [link.written for link in left] or None
    keys = {link.key for link in left}
    lines = [link.written for link in left]
    for shown, target, whole in shown_otherwise(text)[:_EXAMINED]:
        deceives = site_of(host_of(shown)) != site_of(host_of(target)) and keys.isdisjoint((shown, target))
        if deceives and not any(whole in source for source in given):
            lines.append(whole)
    return lines


def _is_allowed(key: str, allowed: Sequence[str]) -> bool:
    host = host_of(key)
    for rule in allowed:
        wanted = key_of(rule.lower().split("://", 1)[-1].removeprefix("*."))
        if rule.startswith("*.") and host.endswith("." + host_of(wanted)):
            wanted = host + wanted[len(host_of(wanted)) :]
        if key == wanted or key.startswith((wanted + "/", wanted + "?")):
            return True
    return False


def _not_written(left: list[Link], given: Iterable[str]) -> list[Link]:
    """Return the links that no given text contains. A site's front page counts as given if any page of the site is given."""
    for text in given:
        if not left:
            break
        lowered = text.lower()
        pages = {host: _pages(lowered, host) for host in {link.host for link in left}}
        left = [link for link in left if not _is_among(link, pages[link.host])]
    return left


def _is_among(link: Link, pages: set[str]) -> bool:
    return not pages.isdisjoint(link.keys) or (bool(pages) and _plain(link.key) == link.host)


def _pages(text: str, host: str) -> set[str]:
    found: set[str] = set()
    known = host_of(key_of(host))
    at = text.find(host)
    while at >= 0:
        end = at + len(host)
        before = text[at - 1 : at]
        joined = before and (before == "-" or (before.isalnum() and before < "\u0590"))
        if not (joined or (before == "." and not text[max(0, at - 7) : at].endswith(("www.", "/m.", " m.", "mobile.", "amp.")))):
            match = REST.match(text, at)
            rest = match.group() if match is not None else host
            rest = NEXT_URL.split(rest, maxsplit=1)[0]
            # A longer host name that begins with this name is another host.
            found.update(key for key in map(key_of, readings(rest)) if host_of(key) == known)
            end = max(end, at + len(rest))
        at = text.find(host, end)
    return found


class _Site:
    def __init__(self, pages: set[str]) -> None:
        self.pages = pages
        self.plain = {_plain(page) for page in pages}
        self.queries: dict[str, set[str]] = {}
        """Query parameters (``name=value``) in the given texts, by page."""
        for known in self.plain:
            page, _, query = known.partition("?")
            self.queries.setdefault(page, set()).update(query.split("&") if query else ())


class _LinkEvidence:
    """Texts that the agent was given, prepared for checking links."""

    def __init__(self, given: list[str]) -> None:
        self._given = given
        self._texts = [(revealed(text) if may_hold_links(text) else text).lower() for text in self._given]
        self._sites: dict[str, _Site] = {}
        self._tokens: dict[str, bool] = {}

    def supports(self, link: Link) -> bool:
        host = link.host
        if (site := self._sites.get(host)) is None:
            names = (host,) if host.isascii() else (host, ascii_host(host))
            site = self._sites[host] = _Site({page for text in self._texts for name in names for page in _pages(text, name)})
        if site.pages and (_is_among(link, site.pages) or any(self._follows(key, site) for key in link.keys)):
            return True
        is_well_known = site_of(host) in well_known()
        if _plain(link.key) == host and (
            is_well_known or self._is_named(host) or (host == site_of(host) and self.has(f".{host}"))
        ):
            return True
        if is_well_known and any(map(self._shows_given_data, link.keys)):
            return True
        return any(
            self._fills_a_template(key) or ("/" in key and any(key in text for text in self._unwrapped)) for key in link.keys
        )

    def _follows(self, key: str, site: _Site) -> bool:
        plain = _plain(key)
        page, _, query = plain.partition("?")
        if plain in site.plain or (page in site.queries and self._only_sets_options(query, site.queries[page])):
            return True
        if key.endswith("…") and any(known.startswith(key[:-1]) for known in site.plain):
            return True
        for base, rest in _parts_of(plain, "/"):
            for other in (base, base + "/"):
                if other in site.pages and other != host_of(other) and self._stands_as_path(rest, other):
                    return True
        if any(base + "=" in site.pages and self._is_token(rest) for base, rest in _parts_of(plain, "=")):
            return True
        below = sum(known.startswith(plain + "/") for known in site.plain)
        if below > 1 or (below and site_of(host_of(plain)) in well_known()):
            return True  # parent of given pages
        base, _, last = plain.rpartition("/")
        if _is_data(last) and self._is_token(last) and any(_is_place_of_data(base, known) for known in site.plain):
            return True
        rest = plain[len(host_of(plain)) :]
        return len(rest) > 2 and (self._is_token(rest) or (rest.count("/") > 1 and self._is_token(rest[1:])))

    def _only_sets_options(self, query: str, given: set[str]) -> bool:
        """Return True if each parameter of the query was given, has a given value, or is new and contains no data."""
        names = {pair.partition("=")[0] for pair in given}
        for pair in query.split("&"):
            name, _, value = pair.partition("=")
            needs_source = pair not in given and (name in names or _DATA.search(value))
            if needs_source and not (len(value) > 1 and self._is_given(value)):
                return False
        return True

    def _shows_given_data(self, key: str) -> bool:
        """Return True if a URL of a well-known site contains given data, such as search words, a name, or an ID."""
        page, _, query = key.partition("?")
        values = [value for _, value in parse_qsl(query) if len(value) > 1]
        if values:
            return all(map(self._is_given, values))
        parts = [part for part in page.split("/")[1:] if part]
        unknown = [part for part in parts if not self._is_token(part)]
        if any(len(part) > _ROUTE or not part.isalpha() for part in unknown):
            return False
        named = any(self._is_token(f"{one}/{other}") for one, other in pairwise(parts))
        return named or any(_is_data(part) and part not in unknown for part in parts)

    def _stands_as_path(self, rest: str, base: str) -> bool:
        if self._is_token("/" + rest) or ("/" in rest and self._is_token(rest)):
            return True
        if len(rest) <= 2 or rest.isalpha() or not self._is_token(rest):
            return False
        folder = base + "/"  # as in a given URL that ends with a slash
        places = [(text, text.find(folder) + len(folder)) for text in self._texts if folder in text]
        return any(not text[end : end + 1].isalnum() for text, end in places)

    def _is_token(self, token: str) -> bool:
        """Return True if a given text has the token as a word or at a path's end. With a leading ``/``, it must be a whole path."""
        if (known := self._tokens.get(token)) is None:
            known = self._tokens[token] = self._search_token(token)
        return known

    def _search_token(self, token: str) -> bool:
        for text in self._texts:
            at = text.find(token)
            for _ in range(_MAX_OCCURRENCES):
                if at < 0:
                    break
                before, after = text[at - 1 : at], text[at + len(token) : at + len(token) + 1]
                is_joined = before and (before.isalnum() or before in ("-_/.~" if token[0] == "/" else "-_"))
                if not is_joined and not (after and (after.isalnum() or after in "-_/")):
                    return True
                at = text.find(token, at + 1)
        return False

    def has(self, piece: str) -> bool:
        return any(piece in text for text in self._texts)

    def _is_named(self, host: str) -> bool:
        """Return True if a text names the site, as in "Acme" for ``acme.com``. Ignore short names, and names with other endings."""
        label = host.split(".", 1)[0]
        if host != site_of(host) or len(label) < 4 or not (label.isascii() and label.isalpha()):
            return False
        with_other_top = re.compile(rf"(?<![\w-]){re.escape(label)}\.[a-z]{{2,}}")
        if self.has(f"{label}.") and any(with_other_top.search(text) for text in self._texts):
            return False
        pattern = re.compile(rf"(?<![\w.@/-]){re.escape(label)}(?![\w@-]|\.\w)", re.IGNORECASE)
        return any(found.group()[0].isupper() for text in self._given for found in pattern.finditer(text))

    @cached_property
    def _templates(self) -> list[re.Pattern[str]]:
        made = (pattern for text in self._texts if "://" in text for pattern in _templates(text))
        return list(map(re.compile, islice(dict.fromkeys(made), _TEMPLATES)))

    def _fills_a_template(self, key: str) -> bool:
        plain = _plain(key)
        for template in self._templates:
            filled = template.fullmatch(plain) or template.fullmatch(key)
            if filled is not None and all(map(self._is_given, filled.groups())):
                return True
        return False

    def _is_given(self, value: str) -> bool:
        return self._is_token(value) or all(map(self._is_token, _WORD.findall(value)))

    @cached_property
    def _unwrapped(self) -> list[str]:
        return [_WRAP.sub("", text) for text in self._texts if "\n" in text]


def _is_suspicious(link: Link, system: str) -> bool:
    if imitates_a_well_known_one(link.host):
        return True
    if site_of(link.host) in well_known():
        return False
    label = site_of(link.host).split(".", 1)[0]
    names = {name.lower() for name in _NAMED.findall(system[:SCAN_LIMIT])}
    return any(name in label and 2 * len(name) >= len(label) for name in names)


def _opened(calls: Iterable[Call]) -> Iterator[str]:
    for name, arguments, result in calls:
        if arguments and result and _READERS.search(name):
            text = text_of(result)
            if len(text) >= _PAGE and not _NO_PAGE.match(text[:200]):
                yield text_of(arguments)


def _plain(key: str) -> str:
    """Remove parts of a URL key that don't change the page, such as tracking parameters and the locale."""
    if "?" in key:
        page, _, query = key.partition("?")
        query = _TRACKING.sub("", "?" + query).lstrip("&?")
        key = f"{page.rstrip('/')}?{query}" if query else page
    host = host_of(key)
    page, mark, query = key[len(host) :].partition("?")
    page = _INDEX.sub("", _LOCALE.sub("", page, count=1) if _LOCALE.match(page) else page)
    return host + page + mark + query


def _is_place_of_data(base: str, known: str) -> bool:
    if known == base:
        return "/" in base
    return known.startswith(base + "/") and _is_data(known[len(base) + 1 :])


def _is_data(part: str) -> bool:
    return len(part) > 3 and not part.isalpha() and any(map(str.isdigit, part))


def _parts_of(key: str, mark: str) -> Iterator[tuple[str, str]]:
    at = len(key)
    for _ in range(_LEVELS):
        at = key.rfind(mark, 0, at)
        if at < 0:
            return
        yield key[:at], key[at + 1 :]


def _templates(text: str) -> Iterator[str]:
    for found in _TEMPLATE.finditer(text):
        rest = found[1].rstrip(".,;)*_")
        marked = _SLOT.sub("\0", rest)
        if marked != rest and all(level.count("\0") <= _SLOTS for level in _LEVEL.split(marked)):
            parts = _SLOT.split(rest.removeprefix("www."))
            yield "([^/?&#]{1,200})".join(map(re.escape, parts)).rstrip("/") + "/?"
