"""Authentication: tenants by their tokens, and how much each may send.

Looking a token up takes the same time whichever it is. A tenant that sends more than its quotas allow is asked to retry when it may
send again, and no other tenant notices. What a tenant has used up outlives a reload of the configuration.
"""

from __future__ import annotations

import hashlib
import hmac
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from ..config.tenants import TenantOptions
from ..core import semconv
from ..core.telemetry import Telemetry
from ..core.tenancy import base_of, number_of
from ..engine.status import TenantTurns
from .responses import Refusal

Quota = Literal["bytes_per_second", "spans_per_second", "open_turns"]
_LONGEST_WAIT = 300.0
"""The longest delay that is asked of a sender, in seconds."""
_SHORTEST_WAIT = 0.1


class TokenBucket:
    """How much may pass: a second's worth at once, then as fast as its rate. One that took more than it had left waits.

    Args:
        rate: what may pass in a second.
        now: monotonic seconds.
    """

    def __init__(self, rate: int, now: float) -> None:
        self._rate = rate
        self._left = float(rate)
        self._at = now

    def wait(self, now: float) -> float:
        """Seconds until something may pass; 0 if it may."""
        self._fill(now)
        return 0.0 if self._left > 0 else -self._left / self._rate

    def take(self, amount: int) -> None:
        """Count what passed."""
        self._left -= amount

    def set_rate(self, rate: int, now: float) -> None:
        """Another rate from now on; what was taken stays taken."""
        self._fill(now)
        self._rate = rate
        self._left = min(self._left, float(rate))

    def _fill(self, now: float) -> None:
        self._left = min(float(self._rate), self._left + (now - self._at) * self._rate)
        self._at = now


class Tenant:
    """One tenant, with what it used of its quotas. Thread-safe.

    Args:
        options: its name, token, quotas and labels.
        now: monotonic seconds.
    """

    def __init__(self, options: TenantOptions, now: Callable[[], float]) -> None:
        self.name = options.name
        self.number = number_of(options.name)
        self.base = base_of(options.name)
        """What makes a trace id its trace key."""
        self.bytes = 0
        """Of its accepted requests, unpacked."""
        self.spans = 0
        """In its requests that were accepted."""
        self.refused: Counter[str] = Counter(dict.fromkeys(_QUOTAS, 0))
        """Its requests that were refused, by the quota or another reason."""
        self._now = now
        self._lock = threading.Lock()
        self._buckets: dict[Quota, TokenBucket] = {}
        self.set_options(options)

    def set_options(self, options: TenantOptions) -> None:
        """Another token, other quotas and labels from now on."""
        self.options = options
        now = self._now()
        with self._lock:
            for quota, rate in _rates(options):
                if rate is None:
                    self._buckets.pop(quota, None)
                elif quota in self._buckets:
                    self._buckets[quota].set_rate(rate, now)
                else:
                    self._buckets[quota] = TokenBucket(rate, now)

    def admit(self) -> None:
        """Let a request in if the tenant may send.

        Raises:
            Refusal: it sent too much lately. The response gives the time after which it may send again.
        """
        now = self._now()
        with self._lock:
            waits = [(bucket.wait(now), quota) for quota, bucket in self._buckets.items()]
        wait, quota = max(waits, default=(0.0, None))
        if wait > 0 and quota is not None:
            raise _over(quota, wait)

    def admit_turns(self, turns: TenantTurns) -> None:
        """Let new turns in if the tenant may have more open. A request that alone has too many is taken when nothing else is open.

        Args:
            turns: how many of its turns are open, and how many the request would open.

        Raises:
            Refusal: too many are open.
        """
        most = self.options.quotas.open_turns
        if most is not None and turns.new and turns.open and turns.open + turns.new > most:
            raise _over("open_turns", turns.next_close)

    def take_bytes(self, size: int) -> None:
        """A request was unpacked to so many bytes."""
        with self._lock:
            self.bytes += size
            self._take("bytes_per_second", size)

    def take_spans(self, spans: int) -> None:
        """So many spans were in it."""
        with self._lock:
            self.spans += spans
            self._take("spans_per_second", spans)

    def refuse(self, reason: str) -> None:
        """A request was refused."""
        with self._lock:
            self.refused[reason] += 1

    def _take(self, quota: Quota, amount: int) -> None:
        bucket = self._buckets.get(quota)
        if bucket is not None:
            bucket.take(amount)


class Tenants:
    """The configured tenants.

    Args:
        options: of all of them.
        now: monotonic seconds.
    """

    def __init__(self, options: Sequence[TenantOptions], now: Callable[[], float]) -> None:
        self._now = now
        self._by_name: dict[str, Tenant] = {}
        self.set_options(options)

    def set_options(self, options: Sequence[TenantOptions]) -> None:
        """Replace the tenants. One that stays keeps the account of what it used."""
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
        """The tenant that has a token. Takes the same time for any."""
        digest = _digest(token)
        found = None
        for known, tenant in self._digests:
            if hmac.compare_digest(known, digest):
                found = tenant
        return found

    def named(self, name: str | None) -> Tenant | None:
        """The tenant of a name, as the journal has it."""
        return self._by_name.get(name) if name is not None else None

    @property
    def labels(self) -> dict[str, Mapping[str, str]]:
        """What scores of each tenant carry."""
        return {tenant.name: tenant.options.labels for tenant in self if tenant.options.labels}

    def watch(self, telemetry: Telemetry, open_turns: Callable[[int], int]) -> None:
        """Show what each tenant sends and holds.

        Args:
            telemetry: shows it.
            open_turns: the number of open turns of a tenant, by the tenant's number.
        """

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


_QUOTAS: tuple[Quota, ...] = ("bytes_per_second", "spans_per_second", "open_turns")


def _rates(options: TenantOptions) -> list[tuple[Quota, int | None]]:
    quotas = options.quotas
    return [("bytes_per_second", quotas.bytes_per_second), ("spans_per_second", quotas.spans_per_second)]


def _over(quota: Quota, wait: float) -> Refusal:
    """The refusal of a request whose tenant is over a quota."""
    seconds = max(_SHORTEST_WAIT, min(wait, _LONGEST_WAIT))
    return Refusal("throttled", f"this tenant sends more than it may (serve.tenants: {quota})", seconds, quota)


def _digest(token: str) -> bytes:
    """All of one length, so that comparing them reveals nothing about a token's length."""
    return hashlib.sha256(token.encode()).digest()


def bearer_in(authorization: str | None) -> str | None:
    """The token of an ``Authorization`` header; None where there is none."""
    kind, _, given = (authorization or "").partition(" ")
    return given.strip() if kind.lower() == "bearer" and given.strip() else None


def is_token(given: str | None, token: str | None) -> bool:
    """Whether a given token is the right one, where there is one. Takes the same time for any."""
    return given is not None and token is not None and hmac.compare_digest(_digest(given), _digest(token))
