"""Section ``serve``: the sidecar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from .outlets import OutletOptions
from .section import NO_ENTRIES, Section
from .types import Address, After, Before, Count, Duration, FilePath, Kind, Secret, Share, Size, Switch, matching, texts

_tenant_name = matching(
    "must be a name of at most 64 letters, digits, '.', '_', and '-', starting with a letter or digit",
    r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}",
)


def _labels(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping) and all(
        isinstance(key, str) and key.strip() and isinstance(label, (str, int, float, bool)) for key, label in value.items()
    ):
        clash = next((key for key in value if key.startswith(("agenteval.", "gen_ai."))), None)
        if clash is None:
            return {key.strip(): str(label).lower() if label.__class__ is bool else str(label) for key, label in value.items()}
    raise ValueError("must be a mapping of names to simple values. Names must not start with 'agenteval.' or 'gen_ai.'")


class QuotaOptions(Section):
    """Limits of one tenant. Above a limit, the tenant's senders must retry. Other tenants aren't affected."""

    bytes_per_second: Size | None = None
    """Maximum average decompressed bytes per second, with bursts of one second's volume. Null means no limit."""
    spans_per_second: Count | None = None
    """Maximum average spans per second, with bursts of one second's volume. Null means no limit."""
    open_turns: Count | None = None
    """Maximum open turns. At the limit, new turns are refused. Null means no limit."""


class TenantOptions(Section):
    """Sender, or group of senders, with its own token: ``{name: shop, token: "${env:SHOP_TOKEN}", quotas: {spans_per_second: 2000}}``."""

    name: Annotated[str, Before(_tenant_name)]
    """Name of the tenant. The attribute ``agenteval.tenant`` and the IDs of the tenant's turns and scores contain this name."""
    token: Secret
    """Unique token that senders send as ``Authorization: Bearer …``. Write the token as ``${env:NAME}``."""
    quotas: QuotaOptions = QuotaOptions()
    """Limits of the tenant."""
    labels: Annotated[dict[str, str], Before(_labels)] = NO_ENTRIES
    """Attributes to add to the tenant's scores: ``{team: checkout, plan: gold}``."""


def _once(tenants: tuple[TenantOptions, ...]) -> tuple[TenantOptions, ...]:
    for index, tenant in enumerate(tenants):
        for earlier, other in enumerate(tenants[:index]):
            if tenant.name == other.name:
                raise ValueError(f"tenants[{earlier}] and tenants[{index}] have the same name {tenant.name!r}. Use unique names")
            if tenant.token == other.token:
                raise ValueError(
                    f"{other.name!r} (tenants[{earlier}]) and {tenant.name!r} (tenants[{index}]) have the same token. Use unique tokens"
                )
    return tenants


_tokens = texts(
    "must be a non-empty string or list of strings, without control characters",
    lambda text: text.strip() and text.strip().isprintable(), least=1, make=str.strip,
)  # fmt: skip
Names = Annotated[
    tuple[str, ...],
    Before(texts("must be a string or a list of strings", str.strip, make=lambda text: text.strip().lower())),
    Kind("list of names"),
]
_OUTLETS = [name for name in OutletOptions._defaults if name != "span_events"]


class TlsOptions(Section):
    """Certificate of the server, in PEM files. Send SIGHUP to reload the files."""

    cert_file: FilePath | None = None
    """PEM file with the certificate and its chain. Null means no TLS."""
    key_file: FilePath | None = None
    """PEM file with the certificate's private key."""
    client_ca_file: FilePath | None = None
    """PEM file with the authorities for client certificates. Clients without a certificate from these authorities are refused."""

    def _check(self) -> None:
        if (self.cert_file is None) != (self.key_file is None) or (self.client_ca_file is not None and self.cert_file is None):
            raise ValueError("set both cert_file and key_file, or neither. client_ca_file requires both")


def _trace_url(value: Any) -> Any:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")) or "{trace_id}" not in value:
        raise ValueError("must be a URL with {trace_id}. Example: https://grafana.example/explore?trace={trace_id}")
    if "@" in value.split("/")[2] or not value.isprintable() or " " in value:
        raise ValueError("must be a URL without credentials, spaces, or invisible characters")
    return value


class PageOptions(Section):
    """The web UI at ``serve.web``, which requires a score store (``outlets.store``)."""

    content: Switch = False
    """Show each turn's messages in the web UI. Requires ``outlets.store.content``, which stores the messages."""
    trace_url: Annotated[str, Before(_trace_url), Kind("URL with `{trace_id}`")] | None = None
    """Link to a trace in your tracing backend, with the placeholder ``{trace_id}``."""
    labels: FilePath | None = None
    """File for the labels that you set in the web UI. ``calibrate`` reads this file. Null disables labeling."""
    read_token: Secret | None = None
    """Token for read-only access to the web UI, ``/api/v1``, ``/api/status``, and ``/api/why``. Requires ``serve.token``."""


class ServeOptions(Section):
    grpc: Address | None = "127.0.0.1:14317"
    """Address that receives OTLP/gRPC."""
    http: Address | None = "127.0.0.1:14318"
    """Address that receives OTLP/HTTP, and serves ``/healthz`` and ``/readyz``."""
    metrics: Address | None = "127.0.0.1:19464"
    """Address of ``/metrics``, ``/healthz``, and ``/readyz``. It stays available if the OTLP addresses are overloaded."""
    web: Address | None = "127.0.0.1:19465"
    """Address of the web UI and its API. Without ``outlets.store``, only ``/api/status`` and ``/api/why`` work."""
    insecure: Switch = False
    """Accept connections from other machines without a token or client certificate."""
    token: Annotated[tuple[str, ...], Before(_tokens), Kind("token or list of tokens", secret=True)] | None = None
    """Token that senders and API clients send as ``Authorization: Bearer …``. Write it as ``${env:NAME}``. With ``tenants``, the token
    is valid only for the API. In a list, all tokens are valid."""
    tenants: Annotated[
        tuple[TenantOptions, ...], After(_once), Kind("list of tenants, see [the sidecar](../operate/sidecar.md#tenants)")
    ] = ()
    """Senders with their own tokens and limits. If you list tenants, all other senders are refused, and turn IDs start with the tenant's name."""
    page: PageOptions = PageOptions()
    """The web UI."""
    ready_outlets: Annotated[
        tuple[str, ...],
        Before(texts(f"must be a list of {', '.join(_OUTLETS)}", _OUTLETS.__contains__, alone=False)),
        Kind("list of outlets"),
    ] = ()
    """Names of outlets that ``/readyz`` requires, as in ``outlets``: ``[store]``. By default, ``/readyz`` doesn't require an outlet. ``/readyz?verbose`` reports all outlets."""
    tls: TlsOptions = TlsOptions()
    """Certificate for gRPC, HTTP, and the API."""
    allowed_hosts: Names = ()
    """Host names to accept in HTTP requests, in addition to ``localhost`` and the listening address. If the list is empty,
    non-loopback addresses accept any name."""
    allowed_origins: Names = ()
    """Origins of web pages that can call the sidecar (``https://ui.example``)."""
    max_body: Size = 64 * 2**20
    """Maximum bytes of one request, before and after decompression."""
    max_inflight: Size | None = None
    """Maximum memory of all active requests. Above it, senders must retry, or drop a request that is larger. Null means 4 times
    ``max_body``, at least 256 MiB."""
    max_requests: Count = 32
    """Maximum number of concurrent requests. Above the limit, senders must retry."""
    max_connections: Count = 512
    """Maximum number of concurrent connections, for gRPC and for each HTTP port."""
    client_connections: Count = 128
    """Maximum number of concurrent connections from one address, for gRPC and for each HTTP port."""
    client_rate: Size | None = None
    """Maximum average bytes per second from one address. Null means no limit."""
    body_timeout: Duration = 10.0
    """Maximum seconds to receive a whole request."""
    drain_timeout: Duration = 20.0
    """Maximum seconds after SIGTERM to evaluate open turns and deliver scores."""
    sample_rate: Share = 1.0
    """Share of traces that ``serve`` evaluates, chosen by trace ID. Other traces are counted but not read."""
    journal: FilePath | None = None
    """Folder that stores requests until the scores of their turns are delivered. Acknowledged requests survive a crash."""
    journal_bytes: Size = 2**30
    """Maximum bytes of each process's journal. If a journal is full, senders must retry."""

    def _check(self) -> None:
        if self.page.read_token is not None and (self.token is None or self.page.read_token in self.token):
            raise ValueError("serve.page.read_token requires serve.token, with a different value")
        same = next((tenant.name for tenant in self.tenants if tenant.token in (self.token or ())), None)
        if same is not None:
            raise ValueError(
                f"serve.token is also the token of tenant {same!r}. Change one, because serve.token gives access to the API"
            )
