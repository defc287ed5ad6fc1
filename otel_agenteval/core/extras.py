"""Optional packages: import on first use, with an error that names the missing extra."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .errors import MissingExtra
from .late_imports import late_imports

_EXTRA_PROBES = {
    "audio": "jiwer", "bedrock": "botocore", "code": "pydantic_monty", "cost": "genai_prices", "media": "av", "ocr": "rapidocr", "structured": "jsonschema_rs", "sustainability": "ecologits",
    "text": "re2",
}  # fmt: skip


def extra_installed(extra: str) -> bool:
    return installed(_EXTRA_PROBES[extra])


def installed(module: str) -> bool:
    """Return True if a package can be found, without importing it."""
    return importlib.util.find_spec(module) is not None


def version_of(module: str) -> str:
    """Return a version from the metadata's folder (``importlib.metadata`` imports slowly). Raises a ModuleNotFoundError."""
    spec = importlib.util.find_spec(module)
    found = [*Path(spec.origin).parents[1].glob(f"{module}-*.dist-info")] if spec is not None and spec.origin else []
    if len(found) == 1:
        return found[0].stem.removeprefix(f"{module}-")
    return str(importlib.import_module("importlib.metadata").version(module))


def entry_points(group: str) -> Iterable[Any]:
    """Return a group's entry points. ``importlib.metadata`` takes long, so it is only used if a package names the group."""
    if not _is_named(group.encode()):
        return ()
    found: Iterable[Any] = importlib.import_module("importlib.metadata").entry_points(group=group)
    return found


def _is_named(group: bytes) -> bool:
    """Return True if a package may have entry points of this group."""
    if any(hasattr(finder, "find_distributions") and not _is_standard(finder) for finder in sys.meta_path):
        return True
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")  # noqa: PTH208 - many times faster
        except NotADirectoryError:  # an archive
            return True
        except OSError:
            continue
        for name in names:
            if name.lower().endswith("-info"):
                with contextlib.suppress(OSError):
                    if group in Path(folder, name, "entry_points.txt").read_bytes():
                        return True
    return False


def _is_standard(finder: Any) -> bool:
    return str(getattr(finder, "__module__", "")).startswith(("importlib", "_frozen_importlib"))


def require(module: str, *, feature: str, extra: str) -> Any:
    """Import an optional package on first use, or raise a :class:`MissingExtra` that names the extra."""
    try:
        with late_imports():
            return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(feature, extra) from None
