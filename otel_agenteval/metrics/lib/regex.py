r"""Compile and search regular expressions from the configuration, with RE2 only.

RE2 takes linear time, but the standard library's engine can run for hours on a short text. RE2 doesn't support look-around or
back-references. Its ``\b``, ``\d``, and ``\w`` match ASCII only.
"""

from __future__ import annotations

import functools
from typing import Any

from ...core.errors import MetricError
from ...core.extras import require

SCAN_LIMIT = 100_000
"""Maximum number of characters that are searched in a text."""


@functools.lru_cache(maxsize=512)
def compiled(pattern: str, flags: str = "") -> Any:
    """Compile a pattern with RE2.

    ``flags`` can contain ``i`` (ignore case), ``m`` (``^`` and ``$`` match at each line), and ``s`` (``.`` matches newlines).

    Raises:
        MetricError: If RE2 doesn't accept the pattern.
        MissingExtra: If the package ``google-re2`` isn't installed.
    """
    re2 = require("re2", feature="regular expressions", extra="text")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(f"(?{flags}){pattern}" if flags else pattern, options)
    except (re2.error, UnicodeEncodeError) as error:
        first = error.args[0] if error.args else error
        reason = first.decode("utf-8", "replace") if isinstance(first, bytes) else first
        raise MetricError("invalid_pattern", f"pattern: RE2 can't compile {pattern[:80]!r}: {reason}") from None


def search(pattern: str, text: str, flags: str = "") -> Any:
    text = text[:SCAN_LIMIT]
    try:
        return compiled(pattern, flags).search(text)
    except UnicodeEncodeError:  # UTF-8 can't encode a lone surrogate
        return compiled(pattern, flags).search(text.encode("utf-8", "replace").decode())
