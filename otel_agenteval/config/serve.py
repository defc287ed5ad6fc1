"""Section ``serve``: the sidecar."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, model_validator

from .section import Section
from .tenants import TenantOptions, _once
from .tls import TlsOptions
from .types import Address, Count, Duration, FilePath, Kind, Share, Size, Switch, Text


def _hosts(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(isinstance(item, str) and item.strip() for item in items):
        return tuple(item.strip().lower() for item in items)
    raise ValueError("it must be a text or a list of texts")


Names = Annotated[tuple[str, ...], BeforeValidator(_hosts), Kind("list of names")]


class ServeOptions(Section):
    """The sidecar, ``otel-agenteval serve``: where it listens, and what it takes from whom."""

    grpc: Address | None = "127.0.0.1:14317"
    """Address of OTLP/gRPC."""
    http: Address | None = "127.0.0.1:14318"
    """Address of OTLP/HTTP, and of ``/healthz`` and ``/readyz``."""
    metrics: Address | None = "127.0.0.1:19464"
    """Address of ``/metrics``, and of ``/healthz`` and ``/readyz``, which are answered there whatever the others do."""
    web: Address | None = "127.0.0.1:19465"
    """Address of the API that says what became of a turn."""
    insecure: Switch = False
    """Whether other machines may connect although neither a token nor certificates of clients are asked for."""
    token: Text | None = None
    """What senders and users of the API must give as ``Authorization: Bearer …``, as ``${env:NAME}``. Beside ``tenants`` it opens the API only."""
    tenants: Annotated[
        tuple[TenantOptions, ...], AfterValidator(_once), Kind("list of tenants, see [the sidecar](sidecar.md#tenants)")
    ] = ()
    """Who may send, each with a token and limits of its own; with them nobody else may, and turn ids begin with the tenant's name."""
    tls: TlsOptions = TlsOptions()
    """Certificate of gRPC, HTTP and the API."""
    allowed_hosts: Names = ()
    """Names under which HTTP clients may reach us, beside those of this machine; past loopback any may, while there are none here."""
    allowed_origins: Names = ()
    """Pages whose scripts may talk to us (``https://ui.example``)."""
    max_body: Size = 64 * 2**20
    """Bytes of one request, also after it was unpacked."""
    max_inflight: Size | None = None
    """Bytes that requests under way may take together, packed, unpacked and while they are read; more are asked to come again. Null is four times ``max_body``, and at least 256 MiB."""
    max_requests: Count = 32
    """Requests at once; more are asked to come again."""
    max_connections: Count = 512
    """Connections at once, of gRPC and of each HTTP port."""
    client_connections: Count = 128
    """HTTP connections of one address at once."""
    client_rate: Size | None = None
    """Bytes per second that one address may send, in the long run; null is without limit."""
    body_timeout: Duration = 10.0
    """Seconds in which a request must have come in."""
    drain_timeout: Duration = 20.0
    """Seconds from SIGTERM to the end: open turns are evaluated, and scores handed over."""
    sample_rate: Share = 1.0
    """Share of the traces that is evaluated, by trace id; the others are counted and never read."""
    journal: FilePath | None = None
    """Folder in which requests are kept until their turns are handed over: what was acknowledged then survives a crash."""
    journal_bytes: Size = 2**30
    """Bytes of the journal; past it senders are asked to come again."""

    @model_validator(mode="after")
    def _token_is_no_tenant_s(self) -> ServeOptions:
        same = next((tenant.name for tenant in self.tenants if tenant.token == self.token), None)
        if same is not None:
            raise ValueError(
                f"serve.token must differ from every tenant's token, but tenant {same!r} has the same one; beside tenants, serve.token opens the API only"
            )
        return self
