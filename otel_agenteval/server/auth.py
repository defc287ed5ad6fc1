"""Access control: tokens, tenants with quotas, and protection against web pages that call a server on the user's machine.

A token lookup takes the same time for every token. A tenant that exceeds its quota must retry later. Other tenants aren't affected.
Quota usage survives a configuration reload.

Web pages from other sites must not reach a server on loopback. Three headers reveal these requests. If a script sends the request,
``Origin`` usually contains the page's origin. If the page's host name resolves to this machine, ``Host`` contains this name.
``Sec-Fetch-Site`` reports another site even for requests without a script, such as images.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from ..config.serve import ServeOptions, TenantOptions
from ..config.types import split_address
from ..core import semconv
from ..core.errors import ConfigError
from ..core.pacing import TokenBucket
from ..core.telemetry import Telemetry
from ..core.tenancy import base_of, number_of
from ..engine.status import TenantTurns
from .http_server import Head, Response
from .logformat import caller
from .responses import Refusal

Quota = Literal["bytes_per_second", "spans_per_second", "open_turns"]
_LONGEST_WAIT = 300.0
_SHORTEST_WAIT = 0.1


class Tenant:
    def __init__(self, options: TenantOptions, now: Callable[[], float]) -> None:
        self.name = options.name
        self.number = number_of(options.name)
        self.base = base_of(options.name)
        """Number that is added to a trace ID to compute the tenant's trace key."""
        self.bytes = 0
        self.spans = 0
        self.refused: Counter[str] = Counter(dict.fromkeys((*_RATES, "open_turns"), 0))
        self._now = now
        self._lock = threading.Lock()
        self._buckets: dict[Quota, TokenBucket] = {}
        self.set_options(options)

    def set_options(self, options: TenantOptions) -> None:
        self.options = options
        rates = options.quotas.bytes_per_second, options.quotas.spans_per_second
        with self._lock:
            for quota, rate in zip(_RATES, rates, strict=True):
                if rate is None:
                    self._buckets.pop(quota, None)
                elif quota in self._buckets:
                    self._buckets[quota].set_rate(rate)
                else:
                    self._buckets[quota] = TokenBucket(rate, self._now)

    def admit(self) -> None:
        """Admit a request if the rate quotas allow the request. Otherwise, raise a Refusal with the time until a retry."""
        with self._lock:
            waits = [(bucket.wait(), quota) for quota, bucket in self._buckets.items()]
        wait, quota = max(waits, default=(0.0, None))
        if wait > 0 and quota is not None:
            raise _over(quota, wait)

    def admit_turns(self, turns: TenantTurns) -> None:
        """Raise a Refusal if new turns would exceed the quota. If the tenant has no open turns, the request may exceed it."""
        most = self.options.quotas.open_turns
        if most is not None and turns.new and turns.open and turns.open + turns.new > most:
            raise _over("open_turns", turns.next_close)

    def charge(self, *, size: int = 0, spans: int = 0) -> None:
        with self._lock:
            self.bytes += size
            self.spans += spans
            for quota, amount in zip(_RATES, (size, spans), strict=True):
                if amount and quota in self._buckets:
                    self._buckets[quota].take(amount)

    def refuse(self, reason: str) -> None:
        with self._lock:
            self.refused[reason] += 1


class Tenants:
    def __init__(self, options: Sequence[TenantOptions], now: Callable[[], float]) -> None:
        self._now = now
        self._by_name: dict[str, Tenant] = {}
        self.set_options(options)

    def set_options(self, options: Sequence[TenantOptions]) -> None:
        """Replace the tenants. A tenant with the same name keeps its quota usage."""
        kept = {}
        for one in options:
            tenant = self._by_name.get(one.name)
            if tenant is None:
                tenant = Tenant(one, self._now)
            else:
                tenant.set_options(one)
            kept[one.name] = tenant
        self._by_name = kept
        self._digests = [(_digest(tenant.options.token), tenant) for tenant in kept.values()]

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __iter__(self) -> Iterator[Tenant]:
        return iter(list(self._by_name.values()))

    def by_token(self, token: str) -> Tenant | None:
        digest = _digest(token)
        found = None
        for known, tenant in self._digests:
            if hmac.compare_digest(known, digest):
                found = tenant
        return found

    @property
    def labels(self) -> dict[str, Mapping[str, str]]:
        return {tenant.name: tenant.options.labels for tenant in self if tenant.options.labels}

    def watch(self, telemetry: Telemetry, open_turns: Callable[[int], int]) -> None:

        def each(value: Callable[[Tenant], float]) -> Callable[[], list[tuple[Mapping[str, str], float]]]:
            return lambda: [({"tenant": tenant.name}, value(tenant)) for tenant in self]

        telemetry.watch(semconv.TENANT_BYTES, each(lambda tenant: tenant.bytes))
        telemetry.watch(semconv.TENANT_SPANS, each(lambda tenant: tenant.spans))
        telemetry.watch(semconv.TENANT_OPEN, each(lambda tenant: open_turns(tenant.number)))
        telemetry.watch(
            semconv.TENANT_REFUSED,
            lambda: [
                ({"tenant": tenant.name, "reason": reason}, count)
                for tenant in self
                for reason, count in tenant.refused.copy().items()
            ],
        )


_RATES: tuple[Quota, Quota] = ("bytes_per_second", "spans_per_second")


def _over(quota: Quota, wait: float) -> Refusal:
    wait = max(_SHORTEST_WAIT, min(wait, _LONGEST_WAIT))
    return Refusal("throttled", f"this tenant is over its quota {quota} (serve.tenants); retry in {wait:.1f} s", wait, quota)


def _digest(token: str) -> bytes:
    """Return a digest of fixed length, so that comparing tokens doesn't reveal their length."""
    return hashlib.sha256(token.encode()).digest()


def bearer_in(authorization: str | None) -> str | None:
    kind, _, given = (authorization or "").partition(" ")
    return given.strip() if kind.lower() == "bearer" and given.strip() else None


def is_token(given: str | None, tokens: Sequence[str]) -> bool:
    """Return True if ``given`` is in ``tokens``. The comparison takes the same time for every token."""
    return given is not None and any([hmac.compare_digest(_digest(given), _digest(token)) for token in tokens])  # noqa: C419


_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@\[\]]+))(?::[0-9]{0,5})?")
"""Pattern of a ``Host`` header: a name or an IPv6 address in brackets, optionally with a port."""
_LOCAL = frozenset(("localhost", "127.0.0.1", "::1"))


def is_loopback(address: str) -> bool:
    host = split_address(address)[0]
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_cross_site(head: Head) -> bool:
    """Return True if the browser reports that another origin sent the request. A different port is another origin."""
    return head.headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


class Guard:
    """Check of the headers ``Host``, ``Origin``, and ``Sec-Fetch-Site``. ``hosts`` and ``origins`` are extra allowed values."""

    def __init__(self, address: str, hosts: Sequence[str], origins: Sequence[str], *, serves_page: bool = False) -> None:
        self._serves_page = serves_page
        self._any_host = not hosts and not is_loopback(address)
        self._hosts = _LOCAL | {split_address(address)[0].lower()} | set(hosts)
        self._origins = frozenset(origins)

    def check(self, head: Head) -> Response | None:
        """Return the response to an allowed CORS preflight request, or None for other allowed requests. For forbidden requests,
        raise a Refusal.
        """
        origin = head.headers.get("origin")
        own = (f"http://{head.headers.get('host', '')}", f"https://{head.headers.get('host', '')}") if self._serves_page else ()
        allowed = origin is not None and (origin.lower() in self._origins or origin in own)
        is_link = head.method in ("GET", "HEAD") and head.headers.get("sec-fetch-dest") == "document"
        if not allowed and (origin is not None or (is_cross_site(head) and not is_link)):
            raise Refusal("forbidden", "requests from this origin aren't allowed (serve.allowed_origins)")
        host = _HOST.fullmatch(head.headers.get("host", "").strip().lower())
        if not self._any_host and (host[1] or host[2] if host is not None else "") not in self._hosts:
            raise Refusal("forbidden", "requests to this host name aren't allowed (serve.allowed_hosts)")
        if not allowed:
            return None
        if (known := caller.get()) is not None:
            caller.set(known._replace(origin=origin))
        wanted = head.headers.get("access-control-request-headers", "")
        headers = {
            "access-control-allow-methods": "GET, POST",
            "access-control-allow-headers": wanted if wanted.isascii() else "",
        }
        return Response(200, headers=[*headers.items()]) if head.method == "OPTIONS" else None


def check_exposure(options: ServeOptions) -> None:
    if options.insecure or options.token is not None or options.tenants or options.tls.client_ca_file is not None:
        return
    for name in ("grpc", "http", "metrics", "web"):
        address = getattr(options, name)
        if address is not None and not is_loopback(address):
            fix = "Set serve.token, serve.tenants, or serve.tls.client_ca_file"
            if name == "metrics":  # the options above don't protect it
                own = f"127.0.0.1:{split_address(address)[1]}"
                fix = f"Use a loopback address, such as {own}, set serve.token (/metrics doesn't require it)"
            raise ConfigError(
                f"serve.{name}: {address} is reachable from other machines without authentication. "
                f"{fix}, or allow this with --insecure (serve.insecure: true)"
            )
