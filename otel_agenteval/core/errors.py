"""Every exception that this package raises to its caller.

    AgentEvalError
    ├── ConfigError        a name, a parameter, a key or a value is not allowed
    │   └── MissingExtra   the feature needs an optional package; the message names the extra
    ├── JudgeError         a judge or an embedder could not be reached, or its reply could not be read
    │   └── NotAnswered    there was no reply, or it was a refusal
    ├── MetricError        a metric cannot be evaluated with this configuration or this turn
    ├── SealError          encrypted data cannot be decrypted
    └── StoreError         a score store cannot be read

    ValueError             (Python's own: the fault lies in the data)
    ├── NotASpan           a message holds no usable span or log record
    └── NotOtlp            the bytes are not an OTLP request

    ConnectionError        (Python's own: a server refuses, or cannot be reached)
    └── Unusable           a database cannot be used at the moment

    NoModel                a metric asked a model, and none is configured

None of them travels through the pipeline: a metric that fails becomes a score with ``status="error"``, and a span that cannot be
read is counted. They are raised only where a person or a program asked for something and can act on the answer. Exceptions
that a room raises and catches itself stay in that room.
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
        """Seconds for which the server wants no more requests; 0 when it did not say."""


class NotAnswered(JudgeError):
    """The server of a judge or an embedder sent no reply, or refused the request."""

    def __init__(
        self,
        message: str,
        error_type: str,
        *,
        status: int | None = None,
        transient: bool = False,
        retry_after: float = 0.0,
        hints: frozenset[str] = frozenset(),
    ) -> None:
        super().__init__(message, error_type, retry_after)
        self.status = status
        self.transient = transient
        """Whether the same request may succeed the next time."""
        self.hints = hints
        """What a refusal is about: ``context``, ``format``, ``temperature``, ``refusal``, ``credit``, ``batch``, ``key``, or some ``parameter``."""


class MetricError(AgentEvalError):
    """Raised by a metric function that cannot evaluate its configuration or its turn: the score gets ``status="error"``.

    Args:
        error_type: a short name of the kind of fault, with few possible values: it becomes a label of metrics.
        message: what is wrong, for a person.
    """

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


class NoModel(Exception):
    """Raised where a metric asks a judge or an embedder and none is configured: the score gets ``status="skipped"``."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SealError(AgentEvalError):
    """Encrypted data cannot be decrypted: it is damaged, or its key is not among the keys that were given."""


class StoreError(AgentEvalError):
    """A score store cannot be read: the file does not exist, or it is something else."""


class Unusable(ConnectionError):
    """A database cannot be used at the moment."""

    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        """What the server says, or the network. It holds no content."""


class NotOtlp(ValueError):
    """The bytes are not an OTLP request of the expected kind. The message holds nothing of them."""


class NotASpan(ValueError):
    """A message holds no usable span or log record; the text says why."""


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """The ``count`` known names that look most like ``name``, best first (always that many when there are enough)."""
    names = sorted(set(known))
    close = difflib.get_close_matches(name, names, n=count, cutoff=0.0)
    return close[:count]
