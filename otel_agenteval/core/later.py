"""A value that is read once it is needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Later:
    """Content that its reader turns into a common shape of JSON types, once it is needed."""

    __slots__ = ("raw", "reader")

    def __init__(self, reader: Callable[[Any], Any], raw: Any) -> None:
        self.reader = reader
        self.raw = raw
