"""What every section of a configuration is: options that do not change, and no others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError

from ..core.errors import ConfigError
from .types import Kind


class Section(BaseModel):
    """A mapping of options. Each option is a field: its type, its default, and its meaning in the text below it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuses options: whoever holds a configuration relies on it."""
        try:
            super().__setattr__(name, value)
        except ValidationError:
            raise _frozen(name) from None

    def __delattr__(self, name: str) -> None:
        """Refuses options."""
        try:
            super().__delattr__(name)
        except ValidationError:
            raise _frozen(name) from None

    def to_dict(self) -> dict[str, Any]:
        """The section in the form that is read, defaults included and secrets as they are."""
        return {name: written(getattr(self, name), field.metadata, field.annotation) for name, field in fields_of(self)}


def _frozen(name: str) -> ConfigError:
    return ConfigError(f"{name}: a configuration is frozen once it is made; load_config(config, overrides={{…}}) makes another")


def fields_of(section: Section) -> Iterator[tuple[str, Any]]:
    """Name and declaration of each option."""
    yield from type(section).model_fields.items()


def written(value: Any, metadata: Any = (), annotation: Any = None) -> Any:
    """A value in the form that is read: ``5m``, ``4MiB``, sections as mappings."""
    if isinstance(value, Section):
        return value.to_dict()
    if isinstance(value, (tuple, list)):
        return [written(item) for item in value]
    if isinstance(value, dict):
        return {key: written(item) for key, item in value.items()}
    kind = kind_of(metadata, annotation)
    return value if value is None or kind is None or kind.write is None else kind.write(value)


def kind_of(metadata: Any, annotation: Any) -> Kind | None:
    """The kind of an option, also of one that may be null."""
    for item in metadata:
        if isinstance(item, Kind):
            return item
    found = (kind_of(getattr(part, "__metadata__", ()), part) for part in get_args(annotation))
    return next((kind for kind in found if kind is not None), None)


def section_of(annotation: Any) -> type[Section] | None:
    """The section that an option is, also one that may be null."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    if get_origin(annotation) in (tuple, dict):
        return None
    return next((found for found in map(section_of, get_args(annotation)) if found is not None), None)


def entry_of(annotation: Any) -> type[Section] | None:
    """The section that each entry of an option is: of a list, or of a mapping by names that the user chooses."""
    if get_origin(annotation) not in (tuple, dict):
        return None
    return next((part for part in get_args(annotation) if isinstance(part, type) and issubclass(part, Section)), None)


def option_paths(section: type[Section]) -> list[tuple[str, ...]]:
    """The path of every option and section within a section, in the order of their declaration."""
    found: list[tuple[str, ...]] = []
    for name, field in section.model_fields.items():
        found.append((name,))
        inner = section_of(field.annotation)
        if inner is not None:
            found.extend((name, *path) for path in option_paths(inner))
    return found
