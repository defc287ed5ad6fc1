"""Regular expressions that are compiled on first use, because most processes need only a few of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cached_property
from typing import Any, cast


class _Lazy:
    def __init__(self, pattern: str | Callable[[], str], flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern if isinstance(self._pattern, str) else self._pattern(), self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def lazy(pattern: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is made, by the function if given, and compiled on first use."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))
