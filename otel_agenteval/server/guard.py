"""Protection of the HTTP servers against web pages: a page in a browser must not reach a server on loopback.

A script of such a page sends an unknown ``Origin``; if its own host name was made to resolve to this machine, it sends that name
as ``Host``. What it loads without a script, such as an image, has no ``Origin``, and browsers say in ``Sec-Fetch-Site`` where it comes from.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence

from ..config.types import split_address
from .http_server import Head
from .responses import Refusal

_LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


def is_loopback(address: str) -> bool:
    """Whether an address is reached from this machine alone."""
    host = split_address(address)[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_cross_site(head: Head) -> bool:
    """Return True if a browser says that a page of another address made the request; another port is another address."""
    return head.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


class Guard:
    """Checks ``Host``, ``Origin`` and ``Sec-Fetch-Site``.

    Args:
        address: what the server listens on.
        hosts: names under which it may be reached beside this machine's own.
        origins: pages whose scripts may use it.
        serves_page: whether pages come from this server too, whose scripts may use it.
    """

    def __init__(self, address: str, hosts: Sequence[str], origins: Sequence[str], *, serves_page: bool = False) -> None:
        self._serves_page = serves_page
        self._any_host = not hosts and not is_loopback(address)
        self._hosts = _LOCAL | {split_address(address)[0].lower()} | set(hosts)
        self._origins = frozenset(origins)

    def check(self, head: Head) -> None:
        """Let a request pass.

        Raises:
            Refusal: it came under a name or from a page that is not allowed.
        """
        origin = head.headers.get("origin")
        own = (f"http://{head.headers.get('host', '')}", f"https://{head.headers.get('host', '')}") if self._serves_page else ()
        allowed = origin is not None and (origin.lower() in self._origins or origin in own)
        is_link = head.method in ("GET", "HEAD") and head.headers.get("sec-fetch-dest") == "document"
        if not allowed and (origin is not None or (is_cross_site(head) and not is_link)):
            raise Refusal("forbidden", "requests of this origin are not allowed (serve.allowed_origins)")
        if not self._any_host and _name_of(head.headers.get("host", "")) not in self._hosts:
            raise Refusal("forbidden", "requests to this host name are not allowed (serve.allowed_hosts)")


def _name_of(host: str) -> str:
    """The name in ``localhost:4318`` or ``[::1]:4318``."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
