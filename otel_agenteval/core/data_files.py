"""Data files of the package, such as prompts and tables of names."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def load_yaml(path: Path) -> Any:
    import yaml  # imported on first use, because importing the package imports only the standard library

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C loader is 100 times faster, but not in every build of PyYAML
    return yaml.load(path.read_bytes(), Loader=loader)  # noqa: S506 - both loaders are safe
