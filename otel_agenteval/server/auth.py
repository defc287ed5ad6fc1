"""Authentication of tenants by token, and their quotas.

A token lookup takes the same time for every token. A tenant over its quota is asked to retry later. Other tenants aren't
affected. Quota usage survives a reload of the configuration.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from ..config.serve import TenantOptions
from ..core import semconv
from ..core.pacing import TokenBucket
from ..core.telemetry import Telemetry
from ..core.tenancy import base_of, number_of
from ..engine.status import TenantTurns
from .responses import Refusal

Quota = Literal["bytes_per_second", "spans_per_second", "open_turns"]
_LONGEST_WAIT = 300.0
_SHORTEST_WAIT = 0.1


class Tenant:
    def __init__(self, options: TenantOptions, now: Callable[[], float]) -> None:
        self.name = options.name
        self.number = number_of(options.name)
        self.base = base_of(options.name)
        """Number added to a trace id to make the tenant's trace key."""
        self.bytes = 0
        """Decompressed bytes of its accepted requests."""
        self.spans = 0
        self.refused: Counter[str] = Counter(dict.fromkeys((*_RATES, "open_turns"), 0))
        """Number of its refused requests, by quota or other reason."""
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
        """Admit a request within the rate quotas, or raise a Refusal with the delay."""
        with self._lock:
            waits = [(bucket.wait(), quota) for quota, bucket in self._buckets.items()]
        wait, quota = max(waits, default=(0.0, None))
        if wait > 0 and quota is not None:
            raise _over(quota, wait)

    def admit_turns(self, turns: TenantTurns) -> None:
        """Admit turns within the quota, or the tenant's only ones, or raise a Refusal."""
        most = self.options.quotas.open_turns
        if most is not None and turns.new and turns.open and turns.open + turns.new > most:
            raise _over("open_turns", turns.next_close)

    def take_bytes(self, size: int) -> None:
        with self._lock:
            self.bytes += size
            self._take("bytes_per_second", size)

    def take_spans(self, spans: int) -> None:
        with self._lock:
            self.spans += spans
            self._take("spans_per_second", spans)

    def refuse(self, reason: str) -> None:
        with self._lock:
            self.refused[reason] += 1

    def _take(self, quota: Quota, amount: int) -> None:
        bucket = self._buckets.get(quota)
        if bucket is not None:
            bucket.take(amount)


class Tenants:
    def __init__(self, options: Sequence[TenantOptions], now: Callable[[], float]) -> None:
        self._now = now
        self._by_name: dict[str, Tenant] = {}
        self.set_options(options)

    def set_options(self, options: Sequence[TenantOptions]) -> None:
        """Replace the tenants. Tenants that remain keep their quota usage."""
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
        """Return the tenant with a token, or None. Takes the same time for every token."""
        digest = _digest(token)
        found = None
        for known, tenant in self._digests:
            if hmac.compare_digest(known, digest):
                found = tenant
        return found

    def named(self, name: str | None) -> Tenant | None:
        return self._by_name.get(name) if name is not None else None

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
    seconds = max(_SHORTEST_WAIT, min(wait, _LONGEST_WAIT))
    return Refusal(
        "throttled", f"this tenant is over its quota {quota} (serve.tenants); retry in {seconds:.1f} s", seconds, quota
    )


def _digest(token: str) -> bytes:
    """Return a digest of fixed length, so that comparing tokens doesn't reveal their length."""
    return hashlib.sha256(token.encode()).digest()


def bearer_in(authorization: str | None) -> str | None:
    kind, _, given = (authorization or "").partition(" ")
    return given.strip() if kind.lower() == "bearer" and given.strip() else None


def is_token(given: str | None, token: str | None) -> bool:
    """Return True if the given token matches the configured one, in constant time."""
    return given is not None and token is not None and hmac.compare_digest(_digest(given), _digest(token))
