"""Section ``serve.tenants``: who may send, with which token, and how much."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any

from .section import NO_ENTRIES, Section
from .types import Before, Count, Size, Text

_TENANT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def _tenant_name(value: Any) -> str:
    if isinstance(value, str) and _TENANT.fullmatch(value):
        return value
    raise ValueError(
        "it must be a name of letters, digits, '.', '_' and '-', which begins with a letter or digit and has at most 64 characters"
    )


def _labels(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping) and all(
        isinstance(key, str) and key.strip() and isinstance(label, (str, int, float, bool)) for key, label in value.items()
    ):
        clash = next((key for key in value if key.startswith(("agenteval.", "gen_ai."))), None)
        if clash is None:
            return {key.strip(): str(label).lower() if label.__class__ is bool else str(label) for key, label in value.items()}
    raise ValueError("it must be a mapping of names to texts, and no name may begin with agenteval. or gen_ai.")


class QuotaOptions(Section):
    """How much one tenant may send. Beyond that its senders, and no others, are asked to retry."""

    bytes_per_second: Size | None = None
    """Bytes of unpacked requests per second on average, in bursts of up to one second's worth. Null means no limit."""
    spans_per_second: Count | None = None
    """Spans per second on average, in bursts of up to one second's worth. Null means no limit."""
    open_turns: Count | None = None
    """Maximum turns held open; at the limit new ones are refused. Null means no limit."""


class TenantOptions(Section):
    """A sender, or a group of them, with its own token: ``{name: shop, token: "${env:SHOP_TOKEN}", quotas: {spans_per_second: 2000}}``."""

    name: Annotated[str, Before(_tenant_name)]
    """Attached to its turns and scores as ``agenteval.tenant``, and part of their ids."""
    token: Text
    """What its senders give as ``Authorization: Bearer …``, written as ``${env:NAME}``; no two tenants may have the same."""
    quotas: QuotaOptions = QuotaOptions()
    """How much it may send."""
    labels: Annotated[dict[str, str], Before(_labels)] = NO_ENTRIES
    """Attributes added to its scores: ``{team: checkout, plan: gold}``."""


def _once(tenants: tuple[TenantOptions, ...]) -> tuple[TenantOptions, ...]:
    for index, tenant in enumerate(tenants):
        for earlier, other in enumerate(tenants[:index]):
            if tenant.name == other.name:
                raise ValueError(
                    f"each tenant needs a name of its own, but tenants[{earlier}] and tenants[{index}] are both {tenant.name!r}"
                )
            if tenant.token == other.token:
                raise ValueError(
                    f"each tenant needs a token of its own, but {other.name!r} (tenants[{earlier}]) and {tenant.name!r} (tenants[{index}]) have the same one"
                )
    return tenants
