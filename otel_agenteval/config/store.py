"""Section ``outlets.store``: turns and scores kept in an SQLite file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, model_validator

from .section import _Section
from .types import Duration, Size, Switch, _file


class StoreOptions(_Section):
    """Turns and scores kept in an SQLite file: ``{path: scores.db}``, or only the path."""

    path: Annotated[str, BeforeValidator(_file)]
    """The file; its folder must exist. Processes of one machine may share it."""
    max_age: Duration = 30 * 86400.0
    """Seconds after which a turn goes, with its scores."""
    max_bytes: Size = 2**30
    """Size of the file from which the oldest turns go."""
    content: Switch = False
    """Whether what was said is kept with each turn, redacted as ``privacy.redact`` says."""

    @model_validator(mode="before")
    @classmethod
    def _with_a_path(cls, value: Any) -> Any:
        if isinstance(value, (str, os.PathLike)):
            return {"path": value}
        if isinstance(value, Mapping) and value.get("path") is None:
            raise ValueError("the path of a file, or a mapping with a path, is")
        return value
