"""Optional packages: imported on first use, with an error that names the extra to install."""

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
    """Whether the extra's package can be imported."""
    return installed(_EXTRA_PROBES[extra])


def installed(module: str) -> bool:
    """Whether a package can be imported."""
    return importlib.util.find_spec(module) is not None


def require(module: str, *, feature: str, extra: str) -> Any:
    """Import an optional package on first use.

    Raises:
        MissingExtra: it is not installed; the message names the extra.
    """
    try:
        with late_imports():
            return importlib.import_module(module)
    except ImportError:
        raise MissingExtra(feature, extra) from None
