"""Recognize public network addresses.

All other addresses may refer to this machine or to hosts in a private network.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

_PUBLIC = ipaddress.IPv6Network("2000::/3")
"""All addresses assigned for the Internet. Others belong to a network, a link or a machine, or represent an IPv4
address.
"""
_NOT_PUBLIC = tuple(map(ipaddress.ip_network, ("192.88.99.0/24", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")))
"""Networks that some versions of Python report as global: relays, protocols, examples, and addresses that represent
others.
"""
_EMBEDDING = tuple(map(ipaddress.IPv6Network, ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96")))
"""IPv6 networks whose addresses end with the IPv4 address that they represent: compatible, mapped, translated and NAT64."""
_ISATAP = (0x0000_5EFE, 0x0200_5EFE)


def is_public(address: str) -> bool:
    """Return True if an address and every IPv4 address that it represents are public."""
    found = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(found, ipaddress.IPv4Address):
        return _is_global(found)
    embedded = list(_embedded(found))
    stands_for_another = found.teredo is not None or found.sixtofour is not None or any(found in net for net in _EMBEDDING)
    return all(map(_is_global, embedded)) and (stands_for_another or (found in _PUBLIC and _is_global(found)))


def _is_global(found: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    return (
        found.is_global
        and not found.is_multicast
        and not any(found in net for net in _NOT_PUBLIC if net.version == found.version)
    )


def _embedded(found: ipaddress.IPv6Address) -> Iterator[ipaddress.IPv4Address]:
    number = int(found)
    last = ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    if any(found in net for net in _EMBEDDING) or (number >> 32) & 0xFFFF_FFFF in _ISATAP:
        yield last
    if found.sixtofour is not None:
        yield found.sixtofour
    if found.teredo is not None:
        yield from found.teredo
