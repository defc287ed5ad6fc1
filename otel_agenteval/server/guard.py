"""Protection of the HTTP servers against web pages in a browser on the same machine.

A page from elsewhere must not reach a server on loopback. A script on such a page sends an unknown ``Origin``. If its own
host name resolves to this machine, ``Host`` contains that name. Resources that load without a script, such as images, have no
``Origin``. For those, browsers report the site in ``Sec-Fetch-Site``.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from ..config.types import split_address
from .http_server import Head
from .responses import Refusal

_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+))(?::[0-9]{0,5})?")
_LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


def is_loopback(address: str) -> bool:
    host = split_address(address)[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_cross_site(head: Head) -> bool:
    """Return True if the browser reports a request from another origin, or port."""
    return head.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


class Guard:
    """Check of the ``Host``, ``Origin`` and ``Sec-Fetch-Site`` headers for own names, ``hosts``, and scripts of a served page."""

    def __init__(self, address: str, hosts: Sequence[str], origins: Sequence[str], *, serves_page: bool = False) -> None:
        self._serves_page = serves_page
        self._any_host = not hosts and not is_loopback(address)
        self._hosts = _LOCAL | {split_address(address)[0].lower()} | set(hosts)
        self._origins = frozenset(origins)

    def check(self, head: Head) -> None:
        origin = head.headers.get("origin")
        own = (f"http://{head.headers.get('host', '')}", f"https://{head.headers.get('host', '')}") if self._serves_page else ()
        allowed = origin is not None and (origin.lower() in self._origins or origin in own)
        is_link = head.method in ("GET", "HEAD") and head.headers.get("sec-fetch-dest") == "document"
        if not allowed and (origin is not None or (is_cross_site(head) and not is_link)):
            raise Refusal("forbidden", "requests from this origin aren't allowed (serve.allowed_origins)")
        if not self._any_host and _name_of(head.headers.get("host", "")) not in self._hosts:
            raise Refusal("forbidden", "requests to this host name aren't allowed (serve.allowed_hosts)")


def _name_of(host: str) -> str:
    """Return the host name without its port, such as ``::1`` from ``[::1]:4318``, or an empty text if it isn't one."""
    found = _HOST.fullmatch(host.strip().lower())
    return found[1] or found[2] if found is not None else ""
