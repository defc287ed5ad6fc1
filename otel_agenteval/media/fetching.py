"""Functions that fetch a media file over HTTP. URLs can't reach the local network, unless the rules allow private addresses.

A host name is resolved once, and all of its IP addresses are checked. The connection uses one of these addresses, because a second
resolution could return another address. Each redirect is checked in the same way before it is followed. Requests don't use proxies,
cookies, or credentials.
"""

from __future__ import annotations

import ipaddress
import urllib.parse

import httpx

from ..core.clock import SYSTEM_CLOCK
from ..core.deadlines import Deadline, addresses_of
from ..core.errors import MetricError
from ..core.outbound import Transport, bounded_by, trusted
from ..core.threads import unseen
from .rules import Rules

_MOST_REDIRECTS = 3
_HEADERS = {"accept-encoding": "identity"}


def fetched(address: str, rules: Rules) -> bytes:
    """Download a media file from an allowed host. Raises MetricError with the same types as :func:`.access.content_of`."""
    deadline = Deadline(SYSTEM_CLOCK, SYSTEM_CLOCK.monotonic() + rules.fetch_timeout)
    client = httpx.Client(transport=Transport(trusted()), trust_env=False, follow_redirects=False, headers=_HEADERS)
    try:
        with unseen(), bounded_by(deadline), client:
            for _ in range(_MOST_REDIRECTS + 1):
                found = _fetch_or_redirect(client, address, rules, deadline)
                if isinstance(found, bytes):
                    return found
                address = found
                if not rules.allow_host(address):
                    raise MetricError("media_not_allowed", "the URL redirects to an address that media.hosts doesn't allow")
    except (httpx.TimeoutException, TimeoutError):
        raise rules.late() from None
    except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
        raise MetricError("media_unreachable", f"fetching the media file failed ({type(error).__name__})") from None
    raise MetricError("media_unreachable", f"the URL redirects more than {_MOST_REDIRECTS} times")


def _fetch_or_redirect(client: httpx.Client, address: str, rules: Rules, deadline: Deadline) -> bytes | str:
    url = httpx.URL(address)
    entries = addresses_of(url.host.strip("[]"), url.port or (443 if url.scheme == "https" else 80), deadline)
    places = list(dict.fromkeys(str(entry[4][0]) for entry in entries))
    if not rules.private_addresses and not all(map(is_public, places)):  # a name with both kinds may be an attack
        raise MetricError("media_not_allowed", "the host has a private address. Set media.private_addresses to allow such hosts")
    for last, place in zip((*[False] * (len(places) - 1), True), places, strict=True):
        try:
            return _fetch_from(client, url, place, rules)
        except httpx.ConnectError:  # this machine may not reach IPv6 addresses, for example
            if last:
                raise
    raise AssertionError(places)


def _fetch_from(client: httpx.Client, url: httpx.URL, place: str, rules: Rules) -> bytes | str:
    """Return the file at ``url``, or the URL to which the server redirects. ``place`` is the IP address to connect to."""
    client.cookies.clear()  # a redirect can set cookies
    request = client.build_request(
        "GET", url.copy_with(host=place), headers={"host": url.netloc.decode("ascii")}, extensions={"sni_hostname": url.host}
    )
    response = client.send(request, stream=True)
    try:
        if response.is_redirect:
            return str(urllib.parse.urljoin(str(url), response.headers.get("location", "")))
        if response.status_code != 200:
            kind = "media_not_found" if response.status_code in (404, 410) else "media_unreachable"
            raise MetricError(kind, f"the server returned status {response.status_code}")
        if response.headers.get("content-encoding", "identity") != "identity":
            raise MetricError(
                "media_unreachable", "the server compressed the media file, although the request didn't allow compression"
            )
        found = bytearray()
        for piece in response.iter_raw():
            found += piece
            if len(found) > rules.max_bytes:
                raise rules.too_large()
        return bytes(found)
    finally:
        response.close()


_PUBLIC = ipaddress.IPv6Network("2000::/3")
"""IPv6 addresses on the public Internet. Other IPv6 addresses are local, reserved, or contain an IPv4 address."""
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
"""Networks that aren't public, but that some Python versions report as global, such as networks for documentation."""
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
"""IPv6 networks whose addresses end with an IPv4 address (compatible, mapped, translated, and NAT64 addresses)."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def is_public(address: str) -> bool:
    """Return True if an IP address is public. An IPv4 address that is embedded in an IPv6 address must also be public."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return _is_global(found)
    number, is_embedding = int(found), any(found in net for net in _EMBEDDING)
    embedded = [other for other in (found.sixtofour, *(found.teredo or ())) if other is not None]
    stands_for_another = is_embedding or embedded != []
    if is_embedding or (number >> 32) & 0xFFFF_FFFF in _ISATAP:
        embedded.append(ipaddress.IPv4Address(number & 0xFFFF_FFFF))
    return all(map(_is_global, embedded)) and (stands_for_another or (found in _PUBLIC and _is_global(found)))


def _is_global(ip: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return ip.is_global and not ip.is_multicast and not any(ip in net for net in _NOT_PUBLIC if net.version == ip.version)
