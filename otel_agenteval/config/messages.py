"""Error messages about a configuration: one line per fault, with its place, the rule and the value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import ConfigError, meant, refusal
from .masking import MASK, masked
from .metrics import BESIDE_A_METRIC, FAULTY, MetricEntry
from .section import Section, entry_of, kind_of, options_of, section_of, validator_of
from .types import KeyPath, location

if TYPE_CHECKING:
    from pydantic_core import ValidationError

MOST_FAULTS = 100
_CONSTANTS = {None: "null", True: "true", False: "false"}
"""Constants as in YAML."""


def explained(error: ValidationError, root: type[Section], sources: Mapping[KeyPath, str]) -> str:
    """Return the faults of a configuration, one line each, and how many more there are than :data:`MOST_FAULTS`."""
    faults = [fault for fault in error.errors(include_url=False) if fault["input"] != FAULTY]
    lines = [_line(dict(fault), root, sources) for fault in faults[:MOST_FAULTS]]
    more = len(faults) - len(lines)
    return "\n".join([*lines, *([f"and {more:,} more errors"] if more else [])])


def entry_from(value: Any) -> MetricEntry:
    """Return a metric that isn't part of a configuration, or raise a ConfigError that begins with the path inside it."""
    from pydantic_core import ValidationError

    try:
        return validator_of(MetricEntry).validate_python(value)  # type: ignore[no-any-return]
    except ValidationError as error:
        raise ConfigError(explained(error, MetricEntry, {}).removeprefix(": ")) from None


def mapping_of(section: type[Section]) -> str:
    """Return the rule for a section: ``must be a mapping of …``."""
    return f"must be a mapping of {', '.join(options_of(section))}"


def value_text(value: Any, secret: bool = False) -> str:
    """Return a value for a message, shortened. Of a value that can contain a secret, only the form is shown."""
    if value is None or isinstance(value, bool):
        return _CONSTANTS[value]
    if secret and value:
        return _form_of(value)
    text = repr(masked(value))
    return text if len(text) <= 80 else f"{text[:79]}…"


def _form_of(value: Any) -> str:
    if isinstance(value, str):
        return MASK
    return "a list" if isinstance(value, (list, tuple)) else "a mapping" if isinstance(value, Mapping) else "a number"


def _line(fault: dict[str, Any], root: type[Section], sources: Mapping[KeyPath, str]) -> str:
    path: KeyPath = tuple(fault["loc"])
    section = _section_at(path[:-1], root) if path else None
    if fault["type"] in ("extra_forbidden", "invalid_key") and section is not None:
        key, known = str(path[-1]), list(options_of(section))
        place = location((*path[:-1], key), sources)
        if key in BESIDE_A_METRIC and key != "name":
            return f"{place}: unknown key. Move {key} into an entry of metrics, beside the name of a metric"
        return f"{place}: unknown key{meant(key, known)} (allowed: {', '.join(known)})"
    if fault["type"] == "missing":
        return f"{location(path, sources)}: required"
    rule = _rule(fault, _section_at(path, root))
    if rule.startswith("must "):
        return refusal(location(path, sources), value_text(fault["input"], _is_secret(path, root)), rule)
    return f"{location(path, sources)}: {rule}"


def _is_secret(path: KeyPath, root: type[Section]) -> bool:
    """Return True for a section, a list or mapping of sections, and an option with a secret value."""
    parent = _section_at(path[:-1], root) if path else None
    option = None if parent is None else options_of(parent).get(str(path[-1]))
    if option is None:  # the root, or an entry of a list or mapping
        return _section_at(path, root) is not None
    if section_of(option.annotation) is not None or entry_of(option.annotation) is not None:
        return True
    kind = kind_of(option.metadata, option.annotation)
    return kind is not None and kind.secret


def _rule(fault: dict[str, Any], section: type[Section] | None) -> str:
    """Return the rule that a value violates. The readers of :mod:`.types` raise theirs as a ValueError."""
    if fault["type"] in ("model_type", "dict_type"):
        return "must be a mapping of names" if section is None else mapping_of(section)
    if fault["type"] == "literal_error":
        return f"must be {fault['ctx']['expected'].replace(chr(39), '')}"
    if fault["type"] in ("tuple_type", "list_type"):
        return "must be a list"
    return str(fault.get("ctx", {}).get("error", fault["msg"]))


def _section_at(path: KeyPath, root: type[Section]) -> type[Section] | None:
    """Return the section at a path, or None for other values."""
    if not path:
        return root
    option = options_of(root).get(str(path[0]))
    if option is None:
        return None
    section, entry = section_of(option.annotation), entry_of(option.annotation)
    if section is not None:
        return _section_at(path[1:], section)
    return None if entry is None or len(path) < 2 else _section_at(path[2:], entry)  # path[1] is the index or name of the entry
