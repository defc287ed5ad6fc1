"""Classify host names without a lookup: reserved, placeholder, namespace or well known."""

from __future__ import annotations

import re
from functools import cache

from .lists import word_set


@cache
def endings() -> frozenset[str]:
    """Return the top-level domains that can make a dotted word a host name. Some of them are also words: if they aren't in the
    section ``sure``, the host needs a path, a hyphen or ``www.``.
    """
    return word_set("hosts.txt", "sure") | word_set("hosts.txt", "unsure")


def well_known() -> frozenset[str]:
    """Return the hosts that readers recognize, even if the agent wasn't given them."""
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
_NAMESPACE = re.compile(
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
_SECOND_LEVEL = frozenset(("co", "com", "org", "net", "gov", "edu", "ac", "gob", "go", "or", "ne"))


_LONGEST_HOST = 253


def is_no_claim(host: str, key: str) -> bool:
    """Return True for reserved or private hosts, placeholders, namespaces and licenses, which can't be a wrong page."""
    return (len(host) <= _LONGEST_HOST and _RESERVED.fullmatch(host) is not None) or _NAMESPACE.fullmatch(key) is not None


def is_host(host: str, *, plain: bool) -> bool:
    """Return True if a dotted word without a scheme is a host name. It is ``plain`` without a path and ``www.``."""
    name, _, top = host.rpartition(".")
    if host in _NO_HOST or host.startswith(_PACKAGE) or host.endswith(_PACKAGE[-2:]) or top not in endings():
        return False
    return not plain or top in word_set("hosts.txt", "sure") or "-" in name


def site_of(host: str) -> str:
    """Return the registered domain of a host: ``shop.acme.co.uk`` → ``acme.co.uk``."""
    labels = host.split(":", 1)[0].split(".")
    count = 3 if len(labels) > 2 and labels[-2] in _SECOND_LEVEL and len(labels[-1]) == 2 else 2
    return ".".join(labels[-count:])


def imitates_a_well_known_one(host: str) -> bool:
    """Return True if a host imitates a well-known one, by one changed letter or an added word."""
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
    """Return True if replacing, adding or removing a letter, or swapping two neighbors, turns one string into the other."""
    start = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
    return (
        a[start + 1 :] == b[start + 1 :]
        or a[start:] == b[start + 1 :]
        or a[start + 1 :] == b[start:]
        or (a[start : start + 2] == b[start : start + 2][::-1] and a[start + 2 :] == b[start + 2 :])
    )
