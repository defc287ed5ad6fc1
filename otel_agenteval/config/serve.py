"""Section ``serve``: the sidecar."""

from __future__ import annotations

from typing import Annotated, Any

from .outlets import OutletOptions
from .page import PageOptions
from .section import Section
from .tenants import TenantOptions, _once
from .tls import TlsOptions
from .types import Address, After, Before, Count, Duration, FilePath, Kind, Share, Size, Switch, Text


def _hosts(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(isinstance(item, str) and item.strip() for item in items):
        return tuple(item.strip().lower() for item in items)
    raise ValueError("it must be a text or a list of texts")


Names = Annotated[tuple[str, ...], Before(_hosts), Kind("list of names")]


def _outlets(value: Any) -> Any:
    known = [name for name in OutletOptions._defaults if name != "span_events"]
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item in known for item in value):
        return tuple(value)
    raise ValueError(f"it must be a list of {', '.join(known)}")


class ServeOptions(Section):
    """The sidecar, ``otel-agenteval serve``: where it listens, and what it accepts from whom."""

    grpc: Address | None = "127.0.0.1:14317"
    """Address of OTLP/gRPC."""
    http: Address | None = "127.0.0.1:14318"
    """Address of OTLP/HTTP, and of ``/healthz`` and ``/readyz``."""
    metrics: Address | None = "127.0.0.1:19464"
    """Address of ``/metrics``, and of ``/healthz`` and ``/readyz``, which answer there even when the other addresses do not."""
    web: Address | None = "127.0.0.1:19465"
    """Address of the web page and its API."""
    insecure: Switch = False
    """Whether other machines may connect although neither a token nor a client certificate is required."""
    token: Text | None = None
    """What senders and users of the API must give as ``Authorization: Bearer …``, written as ``${env:NAME}``. If there are ``tenants``, it gives access to the API only."""
    tenants: Annotated[
        tuple[TenantOptions, ...], After(_once), Kind("list of tenants, see [the sidecar](../operate/sidecar.md#tenants)")
    ] = ()
    """Who may send, each with its own token and limits. If there are any, no one else may send, and turn ids begin with the tenant's name."""
    page: PageOptions = PageOptions()
    """The web page."""
    ready_outlets: Annotated[tuple[str, ...], Before(_outlets), Kind("list of outlets")] = ()
    """Outlets without which ``/readyz`` answers 503, by their names in ``outlets``: ``[store]``. By default it is about receiving alone. ``/readyz?verbose`` always reports all outlets."""
    tls: TlsOptions = TlsOptions()
    """Certificate of gRPC, HTTP and the API."""
    allowed_hosts: Names = ()
    """Host names under which HTTP clients may reach the sidecar, besides those of this machine. While the list is empty, any name is accepted on addresses that are not loopback."""
    allowed_origins: Names = ()
    """Origins of web pages whose scripts may call the sidecar (``https://ui.example``)."""
    max_body: Size = 64 * 2**20
    """Maximum bytes of one request, also after it is unpacked."""
    max_inflight: Size | None = None
    """Maximum bytes that requests in progress may take together, packed, unpacked and while they are read; beyond that senders are asked to retry. Null means four times ``max_body``, and at least 256 MiB."""
    max_requests: Count = 32
    """Maximum requests at once; beyond that senders are asked to retry."""
    max_connections: Count = 512
    """Maximum connections at once, for gRPC and for each HTTP port."""
    client_connections: Count = 128
    """Maximum HTTP connections at once from one address."""
    client_rate: Size | None = None
    """Bytes per second that one address may send on average; null means no limit."""
    body_timeout: Duration = 10.0
    """Seconds within which a request must have arrived completely."""
    drain_timeout: Duration = 20.0
    """Seconds from SIGTERM to the end, in which open turns are evaluated and scores delivered."""
    sample_rate: Share = 1.0
    """Share of the traces that are evaluated, chosen by trace id; the others are counted and not read."""
    journal: FilePath | None = None
    """Folder in which requests are kept until the scores of their turns are delivered, so that acknowledged requests survive a crash."""
    journal_bytes: Size = 2**30
    """Maximum bytes of the journal; beyond that senders are asked to retry."""

    def _check(self) -> None:
        if self.page.read_token is not None and (self.token is None or self.page.read_token == self.token):
            raise ValueError("serve.page.read_token needs a serve.token, and one that differs from it")
        same = next((tenant.name for tenant in self.tenants if tenant.token == self.token), None)
        if same is not None:
            raise ValueError(
                f"serve.token must differ from every tenant's token, but tenant {same!r} has the same one; beside tenants, serve.token opens the API only"
            )
