"""Registry of functions that run when the process forks.

A forked child inherits memory, but not threads. In the child, other threads' locks are never released, and queued work belongs to
the parent. After the fork, functions run in the order of :class:`Step`. Before the fork, they run in reverse order.
"""

from __future__ import annotations

import enum
import functools
import itertools
import logging
import os
import weakref
from collections.abc import Callable
from types import MethodType
from typing import Any, cast

_log = logging.getLogger("otel_agenteval")


class Step(enum.IntEnum):
    """Steps of fork handlers, in the order in which they run after a fork."""

    FILES = 0
    """First step: release or replace the locks of imports and SQLite files, because any later step might need these locks."""
    STATE = 1
    """The child discards the parent's turns, counts, and jobs, and creates new locks."""
    OUTLETS = 2
    """Outlets discard the parent's records and read the engine's new instance ID."""
    THREADS = 3


_handlers: list[tuple[Step, Callable[[], object], Callable[[], object], Callable[[], object]]] = []
_resets: dict[Step, dict[int, tuple[weakref.ref[Any], Callable[[Any], object]]]] = {step: {} for step in Step}
_numbers = itertools.count()


def _nothing() -> None:
    """Do nothing. This is the default handler."""


def at_fork(
    step: Step,
    *,
    before: Callable[[], object] = _nothing,
    in_parent: Callable[[], object] = _nothing,
    in_child: Callable[[], object] = _nothing,
) -> None:
    _handlers.append((step, before, in_parent, in_child))
    _handlers.sort(key=lambda handler: handler[0])


def in_child(reset: Callable[[], object], step: Step = Step.STATE) -> None:
    """Register the bound method ``reset``, which each forked child calls. The registry doesn't keep the method's object alive."""
    known, number, method = _resets[step], next(_numbers), cast("MethodType", reset)
    known[number] = weakref.ref(method.__self__, lambda _: known.pop(number, None)), method.__func__


def _before() -> None:
    for _, before, _, _ in reversed(_handlers):
        _call(before)


def _in_parent() -> None:
    for _, _, in_parent, _ in _handlers:
        _call(in_parent)


def _in_child() -> None:
    for step in Step:
        for _, _, _, in_child in [handler for handler in _handlers if handler[0] is step]:
            _call(in_child)
        for reference, method in list(_resets[step].values()):
            owner = reference()
            if owner is not None:
                _call(functools.partial(method, owner))


def _call(function: Callable[[], object]) -> None:
    try:
        function()
    except Exception as error:  # the other functions must still run
        _log.warning("otel-agenteval: a fork handler failed: %s", type(error).__name__)


os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
