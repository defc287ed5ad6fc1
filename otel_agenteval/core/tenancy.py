"""Trace keys: trace ids that include the tenant.

A receiver with tenants identifies a trace by its *trace key*: the trace id, with the tenant's number in the bits above the lower
128. Code that finds traces by id also works with keys, and equal trace ids of two tenants never mix. Without a tenant, the key is
the trace id.
"""

from __future__ import annotations

import threading

_BITS = 128
_TRACE_ID = (1 << _BITS) - 1

_lock = threading.Lock()
_names: list[str | None] = [None]
_numbers: dict[str | None, int] = {None: 0}


def number_of(tenant: str | None) -> int:
    """Return the tenant's number in this process, or 0 for None. Numbers are never freed, so tenants must be configured."""
    number = _numbers.get(tenant)
    if number is None:
        with _lock:
            number = _numbers.get(tenant)
            if number is None:
                number = len(_names)
                _names.append(tenant)
                _numbers[tenant] = number
    return number


def base_of(tenant: str | None) -> int:
    """Return the number to add to a tenant's trace id to get the trace key."""
    return number_of(tenant) << _BITS


def number_in(key: int) -> int:
    return key >> _BITS


def tenant_of(key: int) -> str | None:
    return _names[key >> _BITS]


def trace_id_of(key: int) -> int:
    return key & _TRACE_ID


def trace_name(key: int) -> str:
    """Return the trace id of a key in hex, prefixed with the tenant if there is one."""
    return qualified(tenant_of(key), f"{trace_id_of(key):032x}")


def turn_id_in(key: int, span_id: int) -> str:
    return f"{trace_name(key)}-{span_id:016x}"


def qualified(tenant: str | None, name: str) -> str:
    """Return a globally unique name: ``<tenant>:<name>``, or the name itself without a tenant."""
    return name if tenant is None else f"{tenant}:{name}"
