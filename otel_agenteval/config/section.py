"""Base class for configuration sections. A section is an immutable set of declared options.

Annotations declare options. Because most agents use the defaults, pydantic is imported only if an option is set.
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple, get_args, get_origin

from ..core.errors import ConfigError
from .types import Kind

if typing.TYPE_CHECKING:
    from typing_extensions import Self
_options: dict[type, dict[str, Option]] = {}
_validators: dict[type, Any] = {}
NO_ENTRIES: dict[str, Any] = {}
"""Default value for options that map names to values."""


class Option(NamedTuple):
    annotation: Any
    metadata: tuple[Any, ...]
    default: Any
    """Default value, or ``...`` if the option is required."""


class Section:
    """Set of options, declared by annotations with type, default, and documentation. Invalid options raise pydantic.ValidationError."""

    __slots__ = ("__dict__", "__pydantic_extra__", "__pydantic_fields_set__", "__pydantic_private__")
    __pydantic_fields_set__: set[str]
    _defaults: ClassVar[Mapping[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        own = [name for name in vars(cls).get("__annotations__", ()) if not name.startswith("_")]
        cls._defaults = {**cls._defaults, **{name: vars(cls).get(name, ...) for name in own}}

    def __init__(self, /, **options: Any) -> None:
        if options or ... in self._defaults.values():
            validator_of(type(self)).validate_python(options, self_instance=self)
        else:
            self._fill({})

    @classmethod
    def of(cls, **options: Any) -> Self:
        """Create a section from ``options`` without checking their values."""
        section = cls.__new__(cls)
        section._fill(options)
        return section

    def _fill(self, options: Mapping[str, Any]) -> None:
        defaults = {name: dict(value) if value.__class__ is dict else value for name, value in self._defaults.items()}
        object.__setattr__(self, "__dict__", {**defaults, **options})
        object.__setattr__(self, "__pydantic_fields_set__", set(options))

    @classmethod
    def _read(cls, value: Any) -> Any:
        """Convert a section's short form, such as a path, into a mapping. Subclasses with a short form override this method."""
        return value

    def _check(self) -> None:
        """Raise a ValueError if options contradict each other. Subclasses whose options can conflict override this method."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema as schemas

        fields = {}
        for name, hint in _hints(cls).items():
            field = handler.generate_schema(hint)
            default = cls._defaults[name]
            if default.__class__ is dict:
                field = schemas.with_default_schema(field, default_factory=dict)
            elif default is not ...:
                field = schemas.with_default_schema(field, default=default)
            fields[name] = schemas.model_field(field)
        inner: Any = schemas.model_fields_schema(fields, model_name=cls.__name__, extra_behavior="forbid")
        if cls._read.__func__ is not Section._read.__func__:  # type: ignore[attr-defined]
            inner = schemas.no_info_before_validator_function(cls._read, inner)
        schema: Any = schemas.model_schema(cls, inner)
        return schema if cls._check is Section._check else schemas.no_info_after_validator_function(_checked, schema)

    @property
    def options_given(self) -> set[str]:
        """Names of the options that were set explicitly, even to their default."""
        return self.__pydantic_fields_set__

    def replaced(self, **options: Any) -> Self:
        """Return a copy in which ``options`` replace some values, without checking these values."""
        section = type(self).of(**{**vars(self), **options})
        object.__setattr__(section, "__pydantic_fields_set__", {*self.options_given, *options})
        return section

    def __setattr__(self, name: str, value: Any = None) -> None:
        raise ConfigError(f"{name}: a configuration is immutable. For a changed copy, call load_config(config, overrides={{…}})")

    __delattr__ = __setattr__

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __copy__(self, memo: object = None) -> Self:
        return self

    __deepcopy__ = __copy__

    def __setstate__(self, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
        object.__setattr__(self, "__dict__", state[0])
        for name, value in state[1].items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Return the section with masked secrets, because programs can log a section's ``repr``."""
        from .masking import masked

        key = type(self).__name__.removesuffix("Options")  # the URL of a section "Webhook" is a secret
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in masked({key: self.to_dict()})[key].items())})"

    def to_dict(self) -> dict[str, Any]:
        """Return the section in configuration-file form, with defaults and unmasked secrets."""
        return {
            name: file_form(getattr(self, name), option.metadata, option.annotation)
            for name, option in options_of(type(self)).items()
        }


def _checked(section: Section) -> Section:
    section._check()
    return section


def _hints(section: type[Section]) -> dict[str, Any]:
    hints = typing.get_type_hints(section, include_extras=True)
    return {name: hints[name] for name in section._defaults}


def options_of(section: type[Section]) -> Mapping[str, Option]:
    found = _options.get(section)
    if found is None:
        found = _options[section] = {}
        for name, hint in _hints(section).items():
            metadata = getattr(hint, "__metadata__", ())
            found[name] = Option(hint.__origin__ if metadata else hint, metadata, section._defaults[name])
    return found


def validator_of(section: type[Section]) -> Any:
    """Return pydantic's validator for a section. To save memory, pydantic's other objects aren't cached."""
    found = _validators.get(section)
    if found is None:
        from pydantic import TypeAdapter

        found = _validators[section] = TypeAdapter(section).validator
    return found


def file_form(value: Any, metadata: Any = (), annotation: Any = None) -> Any:
    """Convert a value to its notation in a configuration file: ``5m`` for 300 seconds, ``4MiB``, or a mapping for a section."""
    if isinstance(value, Section):
        return value.to_dict()
    if isinstance(value, (tuple, list)):
        return [file_form(item) for item in value]
    if isinstance(value, dict):
        return {key: file_form(item) for key, item in value.items()}
    kind = kind_of(metadata, annotation)
    return value if value is None or kind is None or kind.write is None else kind.write(value)


def kind_of(metadata: Any, annotation: Any) -> Kind | None:
    for item in metadata:
        if isinstance(item, Kind):
            return item
    found = (kind_of(getattr(part, "__metadata__", ()), part) for part in get_args(annotation))
    return next((kind for kind in found if kind is not None), None)


def section_of(annotation: Any) -> type[Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    if get_origin(annotation) in (tuple, dict):
        return None
    return next((found for found in map(section_of, get_args(annotation)) if found is not None), None)


def entry_of(annotation: Any) -> type[Section] | None:
    if get_origin(annotation) not in (tuple, dict):
        return None
    return next((part for part in get_args(annotation) if isinstance(part, type) and issubclass(part, Section)), None)


def option_paths(section: type[Section]) -> list[tuple[str, ...]]:
    """Return the paths of all options and subsections in ``section``, in the order of declaration."""
    found: list[tuple[str, ...]] = []
    for name, option in options_of(section).items():
        found.append((name,))
        inner = section_of(option.annotation)
        if inner is not None:
            found.extend((name, *path) for path in option_paths(inner))
    return found
