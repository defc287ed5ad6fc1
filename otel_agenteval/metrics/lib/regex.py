r"""Regular expressions that come from configuration: RE2 only, whose time is linear in the text.

The standard library's engine can run for hours on a short text; RE2 has no look-around and no back-references, and its
``\\b``, ``\\d`` and ``\\w`` mean ASCII.
"""

from __future__ import annotations

import functools
from typing import Any

from ...core.errors import MetricError
from ...core.extras import require

SCAN_LIMIT = 100_000
"""Characters of a text that are searched."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str, flags: str = "") -> Any:
    """The compiled RE2 pattern; ``flags`` are any of ``i`` (ignore case), ``m`` (^ and $ at lines), ``s`` (. takes newlines).

    Raises:
        MetricError: RE2 does not accept the pattern.
        MissingExtra: the package ``google-re2`` is not installed.
    """
    re2 = require("re2", feature="regular expressions", extra="text")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        raise MetricError("invalid_pattern", f"pattern {pattern[:80]!r} is not allowed: {_reason(error)}") from None


def _reason(error: Exception) -> str:
    first = error.args[0] if error.args else error
    return first.decode("utf-8", "replace") if isinstance(first, bytes) else str(first)


def search(pattern: str, text: str, flags: str = "") -> Any:
    """The first match anywhere in the first :data:`SCAN_LIMIT` characters, or None.

    Raises:
        MetricError: RE2 does not accept the pattern.
        MissingExtra: the package ``google-re2`` is not installed.
    """
    text = text[:SCAN_LIMIT]
    try:
        return compiled(pattern, flags).search(text)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot say
        return compiled(pattern, flags).search(text.encode("utf-8", "replace").decode())
