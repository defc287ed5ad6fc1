"""What is said about a value that is not allowed: where it stands, the value, and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import nearest
from .budget import BudgetOptions, SpendingOptions
from .conversation import ConversationOptions
from .judge import JudgeChoice, JudgeOptions, ServerOptions
from .keypath import KeyPath, _where
from .masking import masked
from .metrics import GroupOptions, MetricEntry
from .references import GivenReferences, ReferenceOptions
from .root import Config
from .sampling import SampleOptions, SampleRate
from .section import _Section, _section_of
from .serve import ServeOptions
from .tenants import TenantOptions


def _explain(fault: dict[str, Any], sources: Mapping[KeyPath, str]) -> str:
    """One line on one fault: where it stands, the value, what is allowed."""
    path: KeyPath = tuple(fault["loc"])
    section = _at(path[:-1]) if path else None
    if fault["type"] in ("extra_forbidden", "invalid_key") and section is not None:
        path = (*path[:-1], str(path[-1]))
        names = list(section.model_fields)
        return f"{_where(path, sources)}: unknown key; did you mean {nearest(str(path[-1]), names, 1)[0]!r}? (allowed: {', '.join(names)})"
    value, found = fault["input"], _at(path)
    if fault["type"] in ("model_type", "dict_type") and found is not None:
        allowed = f"a mapping of {', '.join(found.model_fields)} is"
    elif fault["type"] == "dict_type":
        allowed = "a mapping by names is"
    elif fault["type"] == "literal_error":
        allowed = f"{fault['ctx']['expected'].replace(chr(39), '')} is"
    elif fault["type"] in ("tuple_type", "list_type"):
        allowed = "a list is"
    else:
        allowed = str(fault.get("ctx", {}).get("error", fault["msg"]))
    return f"{_where(path, sources)}: {_shown(value, path[-1] if path else '')} is not allowed; {allowed}"


_ENTRIES: dict[tuple[type[_Section], str | int], type[_Section]] = {
    (Config, "metrics"): MetricEntry, (Config, "groups"): GroupOptions, (GroupOptions, "metrics"): MetricEntry,
    (BudgetOptions, "metrics"): SpendingOptions, (ConversationOptions, "metrics"): MetricEntry, (ReferenceOptions, "given"): GivenReferences, (SampleOptions, "rates"): SampleRate,
    (JudgeOptions, "servers"): ServerOptions, (JudgeOptions, "choose"): JudgeChoice,
    (ServeOptions, "tenants"): TenantOptions,
}  # fmt: skip
"""Lists, and mappings by names that the user chooses, of sections."""


def _at(path: KeyPath) -> type[_Section] | None:
    """The section at a path; None where there is something else."""
    section: type[_Section] | None = Config
    parts = iter(path)
    for part in parts:
        if section is None:
            return None
        entry = _ENTRIES.get((section, part))
        if entry is not None:
            section = entry if next(parts, None) is not None else None  # the index or name
        else:
            field = section.model_fields.get(str(part))
            section = _section_of(field.annotation) if field is not None else None
    return section


def _shown(value: Any, key: Any = "") -> str:
    text = repr(masked(value, key))
    return text if len(text) <= 80 else f"{text[:79]}…"
