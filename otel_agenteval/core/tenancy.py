"""Which tenant a trace belongs to.

A receiver with tenants knows a trace by its *trace key*: the trace id, and above its 128 bits the number that this process
gave the tenant. Everything that finds a trace by its id finds it by its key without knowing of tenants, so two tenants with
the same trace id have nothing in common. Without a tenant the key is the trace id.
"""

from __future__ import annotations

import threading

_BITS = 128
_TRACE_ID = (1 << _BITS) - 1

_lock = threading.Lock()
_names: list[str | None] = [None]
_numbers: dict[str | None, int] = {None: 0}


def number_of(tenant: str | None) -> int:
    """The number that a tenant has in this process for as long as it runs; 0 for none. Tenants come from configuration only."""
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
    """What is added to a trace id of the tenant to make its key."""
    return number_of(tenant) << _BITS


def number_in(key: int) -> int:
    """The tenant's number in a trace key; 0 for none."""
    return key >> _BITS


def tenant_of(key: int) -> str | None:
    """The tenant of a trace key."""
    return _names[key >> _BITS]


def trace_id_of(key: int) -> int:
    """The trace id in a trace key."""
    return key & _TRACE_ID


def trace_name(key: int) -> str:
    """The trace id in a trace key in hex, and before it the tenant if there is one."""
    return qualified(tenant_of(key), f"{trace_id_of(key):032x}")


def turn_id_in(key: int, span_id: int) -> str:
    """The turn id of a root in a trace."""
    return f"{trace_name(key)}-{span_id:016x}"


def qualified(tenant: str | None, name: str) -> str:
    """A name that is unique among the tenant's own, made unique among all: ``<tenant>:<name>``."""
    return name if tenant is None else f"{tenant}:{name}"
