"""A value that is parsed on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Later:
    """Raw content, and the function that converts it to JSON types when needed."""

    __slots__ = ("raw", "reader")

    def __init__(self, reader: Callable[[Any], Any], raw: Any) -> None:
        self.reader = reader
        self.raw = raw
