"""Proxy selection from environment variables. Unlike :mod:`.outbound`, this module works without httpx."""

from __future__ import annotations

import contextlib
import ipaddress
import urllib.parse
import urllib.request


def proxy_for(url: str) -> str | None:
    """Return the proxy for a URL from ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY``, and ``NO_PROXY``, or None."""
    parts = urllib.parse.urlsplit(url)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    for excluded in proxies.get("no", "").split(","):
        with contextlib.suppress(ValueError):  # a name, which urllib has compared
            if ipaddress.ip_address(parts.hostname or "") in ipaddress.ip_network(excluded.strip(), strict=False):
                return None
    return proxy if "://" in proxy else f"http://{proxy}"  # as curl does
