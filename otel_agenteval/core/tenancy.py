"""Trace keys: trace IDs that include the tenant.

A receiver with tenants identifies a trace by its *trace key*: an integer with the trace ID in the lower 128 bits and the tenant's
number in the bits above. Code for trace IDs also works with trace keys, and equal trace IDs from two tenants stay separate. Without
a tenant, the trace key equals the trace ID.
"""

from __future__ import annotations

import threading

_BITS = 128
_TRACE_ID = (1 << _BITS) - 1

_lock = threading.Lock()
_names: list[str | None] = [None]
_numbers: dict[str | None, int] = {None: 0}


def number_of(tenant: str | None) -> int:
    """Return the tenant's number in this process, or 0 for None. Numbers are never freed, so pass only configured tenants."""
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
    return number_of(tenant) << _BITS


def number_in(key: int) -> int:
    return key >> _BITS


def tenant_of(key: int) -> str | None:
    return _names[key >> _BITS]


def trace_id_of(key: int) -> int:
    return key & _TRACE_ID


def trace_name(key: int) -> str:
    """Return the trace ID in hex, after ``<tenant>:`` if the trace key contains a tenant."""
    return qualified(tenant_of(key), f"{trace_id_of(key):032x}")


def turn_id_in(key: int, span_id: int) -> str:
    return f"{trace_name(key)}-{span_id:016x}"


def matches(turn_id: str, short: str) -> bool:
    """Return True if ``turn_id``, with or without its tenant, starts with ``short``."""
    return turn_id.startswith(short) or turn_id.partition(":")[2].startswith(short)


def qualified(tenant: str | None, name: str) -> str:
    return name if tenant is None else f"{tenant}:{name}"
