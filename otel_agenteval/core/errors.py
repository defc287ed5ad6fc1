"""Every exception this package raises to its caller.

    AgentEvalError
    ├── ConfigError        unknown name, parameter or key; a value that is not allowed
    │   └── MissingExtra   the feature needs an optional package; the message names the extra
    ├── JudgeError         a judge or embedder could not be asked or read
    └── MetricError        raised by a metric function: the configuration or the input cannot be evaluated

Inside the pipeline none of them travels: a metric that fails is a score with ``status="error"``, a span that cannot be
read is a counter. They are raised only where a person or a program asked for something and can act on the answer.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class AgentEvalError(Exception):
    """Base of all errors of this package."""


class ConfigError(AgentEvalError):
    """A name, parameter or value that is not allowed. The message says where it stands and what is allowed."""


class MissingExtra(ConfigError):
    """An optional package is not installed. The message gives the ``pip install`` line."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs the extra [{extra}]: pip install 'otel-agenteval[{extra}]'")
        self.extra = extra


class JudgeError(AgentEvalError):
    """A judge or embedder could not be reached, or its reply could not be read. The message holds no content."""

    def __init__(self, message: str, error_type: str = "judge_error", retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.retry_after = retry_after
        """Seconds that the server wants to be left alone for; 0 when it did not say."""


class MetricError(AgentEvalError):
    """Raised by a metric function whose configuration or input cannot be evaluated: becomes ``status="error"``."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The ``count`` known names that look most like ``name``, best first (always that many when there are enough)."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=count, cutoff=0.0)
    return close[:count]
