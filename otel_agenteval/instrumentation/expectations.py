"""References for a turn, given in code around the call that makes the turn."""

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
    """References for the turns that start inside: ground truth, expected tools, relevant ids, whatever a metric needs.

    A context manager, and a decorator for functions and coroutine functions::

        with expect(ground_truth="Paris", expected_tools=["search"]):
            agent.run("What is the capital of France?")

    The references travel in a private context key: asyncio tasks and ``asyncio.to_thread`` inherit it, plain threads do not.
    Nothing goes to other processes, except ``agenteval.case.id`` as baggage when ``propagate=True``. Inner references win
    over outer ones, name by name. What is known only once the agent is at work is added inside, before the turn ends::

        with expect() as given:
            agent.run("Who pays for the damage?")
            given.add(conflicts=[{"resolved": True}])

    Args:
        case_id: the case in a data set that this is.
        propagate: whether the case id travels to other processes. Baggage goes to every party that is called.
        references: by name, as metrics know them: ``ground_truth``, ``relevant_ids``, ``expected_tools``, ``schema``, …
    """

    in_use = False
    """Whether ``expect`` was ever used: until then no span start has to look."""

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
        """Give more to the turns that started inside and have not ended: facts that come up on the way, such as ``interactions`` and ``logprobs``.

        Raises:
            ConfigError: it is not called inside ``with``.
        """
        if not self._inside:
            raise ConfigError("expect().add: there is nothing to add to outside of the with statement")
        self._inside[-1].update(references)

    def __call__(self, fn: _F) -> _F:
        """As a decorator: each call of the function has the references."""
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
        """A fresh one for each call: calls may overlap."""
        other = expect(**self._references)
        other._case_id = self._case_id
        return other


def current_references(parent_context: context.Context | None, accepted: Collection[str] = ()) -> dict[str, Any] | None:
    """The references that hold where a span starts, and under ``baggage:`` those of the ``accepted`` baggage keys that are set."""
    here = parent_context if parent_context is not None else context.get_current()
    found = here.get(_KEY)
    carried = {key: value for key in accepted if (value := baggage.get_baggage(key, here)) is not None}
    if carried:
        return {**(found if isinstance(found, dict) else {}), BAGGAGE: carried}
    return found if isinstance(found, dict) else None
