"""Set references, such as a ground truth, in code around the call that runs an agent."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from opentelemetry import baggage, context

from ..core import semconv
from ..core.errors import ConfigError
from ..evaluation.references import BAGGAGE

if TYPE_CHECKING:
    from typing_extensions import Self

_KEY = context.create_key("otel-agenteval-references")
_F = TypeVar("_F", bound=Callable[..., Any])


class expect:  # noqa: N801 - used as a verb: ``with expect(...)`` and ``@expect(...)``
    """Context manager that sets references, such as a ground truth, for turns that start inside the block.

    Use ``expect`` as a context manager, or as a decorator for functions and coroutine functions::

        with expect(ground_truth="Paris", expected_tools=["search"]):
            agent.run("What is the capital of France?")

    The OpenTelemetry context stores the references. asyncio tasks and ``asyncio.to_thread`` inherit this context, but plain threads
    don't. Other processes receive only the case ID, and only with ``propagate=True``. If blocks are nested, inner references
    replace outer references with the same name.

    Use :meth:`add` for references that become available only while the agent runs::

        with expect() as given:
            agent.run("Who pays for the damage?")
            given.add(conflicts=[{"resolved": True}])

    Args:
        case_id: ID of the dataset case.
        propagate: True to send the case ID to other processes as baggage. All services that the agent calls receive this ID.
        references: reference values by name, such as ``ground_truth``, ``relevant_ids``, ``expected_tools``, and ``schema``.
    """

    in_use = False
    """True after the first use of ``expect``. Before that, the span processor looks up only references in baggage."""

    def __init__(self, *, case_id: str | None = None, propagate: bool = False, **references: Any) -> None:
        self._references = references if case_id is None else {"case_id": case_id, **references}
        self._case_id = case_id if propagate else None
        self._tokens: list[Any] = []
        self._inside: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        expect.in_use = True
        current = context.get_current()
        outer = current.get(_KEY)
        merged = {**outer, **self._references} if isinstance(outer, dict) else dict(self._references)
        self._inside.append(merged)
        inside = context.set_value(_KEY, merged, current)
        if self._case_id is not None:
            inside = baggage.set_baggage(semconv.CASE_ID, self._case_id, inside)
        self._tokens.append(context.attach(inside))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._inside.pop()
        context.detach(self._tokens.pop())

    def add(self, **references: Any) -> None:
        """Add references to the block's turns, except turns that are already scored or that start in a nested block.

        Raises:
            ConfigError: If called outside the ``with`` block.
        """
        if not self._inside:
            raise ConfigError("expect().add: must be called inside the with block")
        self._inside[-1].update(references)

    def __call__(self, fn: _F) -> _F:
        if inspect.iscoroutinefunction(fn):

            @functools.wraps(fn)
            async def run_async(*args: Any, **kwargs: Any) -> Any:
                with self._again():
                    return await fn(*args, **kwargs)

            return run_async  # type: ignore[return-value]

        @functools.wraps(fn)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self._again():
                return fn(*args, **kwargs)

        return run  # type: ignore[return-value]

    def _again(self) -> expect:
        return expect(propagate=self._case_id is not None, **self._references)


def current_references(parent_context: context.Context | None, accepted: Collection[str] = ()) -> dict[str, Any] | None:
    """Return the references for a span that starts now, or None. ``baggage:`` contains the baggage that has ``accepted`` keys."""
    here = parent_context if parent_context is not None else context.get_current()
    found = here.get(_KEY)
    carried = {key: value for key in accepted if (value := baggage.get_baggage(key, here)) is not None}
    if carried:
        return {**(found if isinstance(found, dict) else {}), BAGGAGE: carried}
    return found if isinstance(found, dict) else None
