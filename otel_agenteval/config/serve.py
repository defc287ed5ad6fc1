"""Section ``serve``: the sidecar."""

from __future__ import annotations

from typing import Annotated, Any

from .outlets import OutletOptions
from .section import Section
from .tenants import TenantOptions, _once
from .types import Address, After, Before, Count, Duration, FilePath, Kind, Secret, Share, Size, Switch


def _hosts(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and all(isinstance(item, str) and item.strip() for item in items):
        return tuple(item.strip().lower() for item in items)
    raise ValueError("must be a text or a list of texts")


Names = Annotated[tuple[str, ...], Before(_hosts), Kind("list of names")]


def _outlets(value: Any) -> Any:
    known = [name for name in OutletOptions._defaults if name != "span_events"]
    if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item in known for item in value):
        return tuple(value)
    raise ValueError(f"must be a list of {', '.join(known)}")


class TlsOptions(Section):
    """Certificate of the server, in PEM files. SIGHUP reloads them."""

    cert_file: FilePath | None = None
    """Certificate with its chain. Null means no TLS."""
    key_file: FilePath | None = None
    """Private key of the certificate."""
    client_ca_file: FilePath | None = None
    """Authority of client certificates. If set, clients without such a certificate are refused."""

    def _check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None) or (self.client_ca_file is not None and self.cert_file is None):
            raise ValueError("set both cert_file and key_file, or neither. To use client_ca_file, set both")


def _trace_url(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or "{trace_id}" not in value:
        raise ValueError("must be a URL with {trace_id}. Example: https://grafana.example/explore?trace={trace_id}")
    if "@" in value.split("/")[2] or not value.isprintable() or " " in value:
        raise ValueError("must be a URL without credentials")
    return value


class PageOptions(Section):
    """The web page at ``serve.web``. It requires a score store (``outlets.store``)."""

    content: Switch = False
    """Show the messages of a turn, if ``outlets.store.content`` stores them."""
    trace_url: Annotated[str, Before(_trace_url), Kind("address with {trace_id}")] | None = None
    """Link to a trace in your tracing backend, with ``{trace_id}`` in it."""
    labels: FilePath | None = None
    """File for labels given on the page, for ``calibrate``. Null disables labeling."""
    read_token: Secret | None = None
    """Token for read-only access to the page and its API. Requires ``serve.token``."""


class ServeOptions(Section):
    """The sidecar ``otel-agenteval serve``: addresses, access and limits."""

    grpc: Address | None = "127.0.0.1:14317"
    """Address of OTLP/gRPC."""
    http: Address | None = "127.0.0.1:14318"
    """Address of OTLP/HTTP, and of ``/healthz`` and ``/readyz``."""
    metrics: Address | None = "127.0.0.1:19464"
    """Address of ``/metrics``, and of ``/healthz`` and ``/readyz``, which stay available here if other addresses are overloaded."""
    web: Address | None = "127.0.0.1:19465"
    """Address of the web page and its API."""
    insecure: Switch = False
    """Accept other machines without a token or a client certificate."""
    token: Secret | None = None
    """Token of senders and API clients, sent as ``Authorization: Bearer …`` and configured as ``${env:NAME}``. With ``tenants``, it is valid for the API only."""
    tenants: Annotated[
        tuple[TenantOptions, ...], After(_once), Kind("list of tenants, see [the sidecar](../operate/sidecar.md#tenants)")
    ] = ()
    """Senders with their own tokens and limits. With tenants, all other senders are refused, and turn ids start with the tenant's name."""
    page: PageOptions = PageOptions()
    """The web page."""
    ready_outlets: Annotated[tuple[str, ...], Before(_outlets), Kind("list of outlets")] = ()
    """Outlets that ``/readyz`` requires, by their names in ``outlets``: ``[store]``. By default, ``/readyz`` only checks the receivers. ``/readyz?verbose`` reports all outlets."""
    tls: TlsOptions = TlsOptions()
    """Certificate for gRPC, HTTP and the API."""
    allowed_hosts: Names = ()
    """Host names in HTTP requests that are accepted, besides the names of this machine. If the list is empty, non-loopback addresses accept any name."""
    allowed_origins: Names = ()
    """Origins of web pages that can call the sidecar (``https://ui.example``)."""
    max_body: Size = 64 * 2**20
    """Maximum bytes of one request, compressed and decompressed."""
    max_inflight: Size | None = None
    """Maximum memory of all requests in progress. Beyond it, senders must retry. Null means four times ``max_body``, and at least 256 MiB."""
    max_requests: Count = 32
    """Maximum concurrent requests. Beyond it, senders must retry."""
    max_connections: Count = 512
    """Maximum concurrent connections, for gRPC and for each HTTP port."""
    client_connections: Count = 128
    """Maximum concurrent connections from one address, for gRPC and for each HTTP port."""
    client_rate: Size | None = None
    """Maximum average bytes per second from one address. Null means no limit."""
    body_timeout: Duration = 10.0
    """Maximum seconds until a request has arrived completely."""
    drain_timeout: Duration = 20.0
    """Maximum seconds after SIGTERM to evaluate open turns and deliver scores."""
    sample_rate: Share = 1.0
    """Share of traces to evaluate, chosen by trace id. The others are counted, but not read."""
    journal: FilePath | None = None
    """Folder that keeps requests until the scores of their turns are delivered, so that acknowledged requests survive a crash."""
    journal_bytes: Size = 2**30
    """Maximum bytes of the journal. Beyond it, senders must retry."""

    def _check(self) -> None:
        if self.page.read_token is not None and (self.token is None or self.page.read_token == self.token):
            raise ValueError("serve.page.read_token requires serve.token, with a different value")
        same = next((tenant.name for tenant in self.tenants if tenant.token == self.token), None)
        if same is not None:
            raise ValueError(
                f"serve.token is also the token of tenant {same!r}. Use a different one, because serve.token gives access to the API"
            )
