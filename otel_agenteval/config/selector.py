"""The key ``when``: a selector of turns."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from .section import NO_ENTRIES, Section, options_of, written
from .types import Before, Kind


def _patterns(value: Any) -> Any:
    items = [value] if isinstance(value, str) else value
    if isinstance(items, (list, tuple)) and items and all(isinstance(item, str) and item for item in items):
        return tuple(items)
    raise ValueError("must be a text or a list of texts. A star matches any characters")


def _some_patterns(value: Any) -> Any:
    return () if value in ([], ()) else _patterns(value)


Patterns = Annotated[tuple[str, ...], Before(_patterns), Kind("text or list of texts")]
PatternsOrNone = Annotated[tuple[str, ...], Before(_some_patterns), Kind("text or list of texts")]


Steps = Annotated[tuple[Literal["tool", "llm", "retrieval", "sub_agent", "handoff"], ...], Before(_patterns)]


class Selector(Section):
    """A selector of turns. All conditions must hold. Each condition has one or more values, with ``*`` for any characters."""

    agent: Patterns = ()
    """Name of the turn's agent."""
    service: Patterns = ()
    """``service.name`` of the root span's resource."""
    model: Patterns = ()
    """Model of at least one model call of the turn."""
    conversation: Patterns = ()
    """Conversation id."""
    step: Steps = ()
    """Kinds of steps that the turn contains: ``tool``, ``llm``, ``retrieval``, ``sub_agent``, ``handoff``."""
    attribute: dict[str, Patterns] = NO_ENTRIES
    """Attributes of the turn's root span."""

    def to_dict(self) -> dict[str, Any]:
        """Return the conditions that are set."""
        return {name: written(value) for name in options_of(type(self)) if (value := getattr(self, name))}
