"""Exceptions that several subpackages use.

In the scoring pipeline, a failed metric becomes a score with ``status="error"``, and an unreadable span is counted.
"""

from __future__ import annotations

from collections.abc import Iterable


class AgentEvalError(Exception):
    """Base class of the package's errors."""


class ConfigError(AgentEvalError):
    """Error for an invalid name, parameter, or value. The message usually contains the location and the fix."""


class MissingExtra(ConfigError):
    """Error for an optional package that can't be imported. The message contains the ``pip install`` command."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} requires the extra [{extra}]: pip install 'otel-agenteval[{extra}]'")
        self.extra = extra


class JudgeError(AgentEvalError):
    """Error for a failed call to a judge or embedder, or for an unreadable reply. The message doesn't contain turn content."""

    def __init__(self, message: str, error_type: str = "judge_error", retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.retry_after = retry_after
        """Seconds to wait before the next request, according to the server's response, or 0."""


class NotAnswered(JudgeError):
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
        self.hints = hints
        """Likely causes, such as ``context``, ``format``, or ``credit``."""


class MetricError(AgentEvalError):
    """Error of a metric that can't evaluate a turn or can't use its parameters. The score gets ``status="error"``.

    Args:
        error_type: short failure name. The name becomes a Prometheus label value, so use only a few different names.
        message: explanation for people.
    """

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


class NoModel(Exception):
    """Error of a metric that requires a judge or embedder that isn't configured. The score is skipped."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class StoreError(AgentEvalError):
    """Error for a score store that can't be read, or for a turn ID that matches several turns."""


class Unusable(ConnectionError):
    def __init__(self, message: str, reason: str) -> None:
        super().__init__(message)
        self.reason = reason
        """Error text from the server or the network, without turn content."""


class NotOtlp(ValueError):
    """Error for bytes that aren't an OTLP request for the expected signal. The message doesn't quote the bytes."""


class NotASpan(ValueError):
    """Error for a message or table row without a usable span or log record. The error text states the reason."""


def refusal(where: str, shown: str, rule: str) -> str:
    """Return ``{where}: {rule}, got {shown}``. If ``rule`` has several sentences, ``, got {shown}`` follows the first."""
    must, period, fix = rule.partition(". ")
    return f"{where}: {must}, got {shown}{period}{fix}"


def nearest(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    import difflib

    return difflib.get_close_matches(name, sorted(set(known)), n=count, cutoff=0.0)


def meant(name: str, known: Iterable[str]) -> str:
    """Return ``. Did you mean 'x'?`` for the most similar name in ``known``, or an empty string if no known name is similar."""
    close = nearest(name, known, 1)
    is_similar = bool(close) and (name in close[0] or likeness(name.strip("-"), close[0].strip("-")) >= 0.6)
    return f". Did you mean {close[0]!r}?" if is_similar else ""


def likeness(name: str, other: str) -> float:
    import difflib

    return difflib.SequenceMatcher(None, name, other).ratio()


class Faults:
    """Collector of configuration errors. Run each step in ``with faults:``. Then, :meth:`check` raises all errors as one error."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def __enter__(self) -> None:
        """Start to collect errors."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Collect a ``ConfigError`` from the ``with`` block. Other exceptions propagate."""
        if not isinstance(error, ConfigError):
            return False
        self.lines += [line for line in dict.fromkeys(str(error).splitlines()) if not self._is_known(line)]
        return True

    def _is_known(self, line: str) -> bool:
        """Return True if ``line``, or another error about the same required option, is already collected."""
        place, is_required, _ = line.partition(": required")
        option = f"{place.rpartition(': ')[2]}: "
        return line in self.lines or (bool(is_required) and any(option in known for known in self.lines))

    def check(self) -> None:
        if self.lines:
            raise ConfigError("\n".join(self.lines))
