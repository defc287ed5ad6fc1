"""Load the word lists and tables in ``data``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..core import jsonio

FOLDER = Path(__file__).with_name("data")


def table(name: str) -> Any:
    """Return the content of a JSON file in ``data``."""
    return jsonio.loads((FOLDER / name).read_bytes())
