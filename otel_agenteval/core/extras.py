"""Optional packages: import on first use, with an error that names the missing extra."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from .errors import MissingExtra
from .late_imports import late_imports

_EXTRA_PROBES = {
    "audio": "jiwer", "bedrock": "botocore", "code": "pydantic_monty", "cost": "genai_prices", "encryption": "cryptography", "media": "av", "ocr": "rapidocr", "structured": "jsonschema_rs", "sustainability": "ecologits",
    "text": "re2",
}  # fmt: skip


def extra_installed(extra: str) -> bool:
    return installed(_EXTRA_PROBES[extra])


def installed(module: str) -> bool:
    """Return True if a package can be found, without importing it."""
    return importlib.util.find_spec(module) is not None


def require(module: str, *, feature: str, extra: str) -> Any:
    """Import an optional package on first use.

    Raises:
        MissingExtra: If the package isn't installed. The message names the extra.
    """
    try:
        with late_imports():
            return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(feature, extra) from None
