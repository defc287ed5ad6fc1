"""What every section of a configuration is: frozen, and closed to unknown keys."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from pydantic import BaseModel, ConfigDict


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _section_of(annotation: Any) -> type[_Section] | None:
    if isinstance(annotation, type) and issubclass(annotation, _Section):
        return annotation
    if get_origin(annotation) in (tuple, dict):
        return None
    return next((found for found in map(_section_of, get_args(annotation)) if found is not None), None)
