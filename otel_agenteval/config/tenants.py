"""Section ``serve.tenants``: senders with their own tokens and limits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from .section import NO_ENTRIES, Section
from .types import Before, Count, Secret, Size

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _tenant_name(value: Any) -> str:
    if isinstance(value, str) and _TENANT.fullmatch(value):
        return value
    raise ValueError("must be a name of at most 64 letters, digits, '.', '_' and '-', starting with a letter or digit")


def _labels(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping) and all(
        isinstance(key, str) and key.strip() and isinstance(label, (str, int, float, bool)) for key, label in value.items()
    ):
        clash = next((key for key in value if key.startswith(("agenteval.", "gen_ai."))), None)
        if clash is None:
            return {key.strip(): str(label).lower() if label.__class__ is bool else str(label) for key, label in value.items()}
    raise ValueError("must be a mapping of names to texts, without names that start with agenteval. or gen_ai.")


class QuotaOptions(Section):
    """Limits of one tenant. Beyond a limit, the tenant's senders must retry. Other tenants aren't affected."""

    bytes_per_second: Size | None = None
    """Maximum average bytes of decompressed requests per second, with bursts of one second's volume. Null means no limit."""
    spans_per_second: Count | None = None
    """Maximum average spans per second, with bursts of one second's volume. Null means no limit."""
    open_turns: Count | None = None
    """Maximum open turns. At the limit, new turns are refused. Null means no limit."""


class TenantOptions(Section):
    """A sender or group of senders with its own token: ``{name: shop, token: "${env:SHOP_TOKEN}", quotas: {spans_per_second: 2000}}``."""

    name: Annotated[str, Before(_tenant_name)]
    """Name of the tenant. Its turns and scores carry it as ``agenteval.tenant`` and in their ids."""
    token: Secret
    """Token of the senders, sent as ``Authorization: Bearer …`` and configured as ``${env:NAME}``. It must be unique."""
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
