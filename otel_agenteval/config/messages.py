"""What a user reads about a configuration that is wrong: one line per fault, with its place, the value, and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import nearest
from .keypath import KeyPath, placed
from .masking import masked
from .metrics import FAULTY
from .section import Section, entry_of, options_of, section_of

if TYPE_CHECKING:
    from pydantic_core import ValidationError

_CONSTANTS = {None: "null", True: "true", False: "false"}
"""As YAML has them."""


def explained(error: ValidationError, root: type[Section], sources: Mapping[KeyPath, str]) -> str:
    """All faults of a configuration, a line each."""
    return "\n".join(_line(dict(fault), root, sources) for fault in error.errors(include_url=False) if fault["input"] != FAULTY)


def mapping_of(section: type[Section]) -> str:
    """What a value must be that is no mapping, but should be this section."""
    return f"it must be a mapping of {', '.join(options_of(section))}"


def shown(value: Any, key: Any = "") -> str:
    """A value as it may be quoted: short, and without secrets."""
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    text = repr(masked(value, key))
    return text if len(text) <= 80 else f"{text[:79]}…"


def _line(fault: dict[str, Any], root: type[Section], sources: Mapping[KeyPath, str]) -> str:
    path: KeyPath = tuple(fault["loc"])
    section = _section_at(path[:-1], root) if path else None
    if fault["type"] in ("extra_forbidden", "invalid_key") and section is not None:
        return _unknown_key((*path[:-1], str(path[-1])), list(options_of(section)), sources)
    if fault["type"] == "missing":
        return f"{placed(path, sources)} is required"
    key = path[-1] if path else ""
    return f"{placed(path, sources)}: {shown(fault['input'], key)} is not allowed; {_allowed(fault, _section_at(path, root))}"


def _unknown_key(path: KeyPath, known: list[str], sources: Mapping[KeyPath, str]) -> str:
    meant = nearest(str(path[-1]), known, 1)[0]
    return f"{placed(path, sources)}: unknown key; did you mean {meant!r}? (allowed: {', '.join(known)})"


def _allowed(fault: dict[str, Any], section: type[Section] | None) -> str:
    """What the value must be; the readers of values say so themselves."""
    if fault["type"] in ("model_type", "dict_type"):
        return "it must be a mapping by names" if section is None else mapping_of(section)
    if fault["type"] == "literal_error":
        return f"it must be {fault['ctx']['expected'].replace(chr(39), '')}"
    if fault["type"] in ("tuple_type", "list_type"):
        return "it must be a list"
    return str(fault.get("ctx", {}).get("error", fault["msg"]))


def _section_at(path: KeyPath, root: type[Section]) -> type[Section] | None:
    """The section at a path; None where there is something else."""
    section: type[Section] | None = root
    parts = iter(path)
    for part in parts:
        field = None if section is None else options_of(section).get(str(part))
        if field is None:
            return None
        section = section_of(field.annotation)
        if section is None and next(parts, None) is not None:  # the index of an entry, or its name
            section = entry_of(field.annotation)
    return section
