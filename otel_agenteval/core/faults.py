"""A collector for configuration errors, so that all of them are reported together."""

from __future__ import annotations

from .errors import ConfigError


class Faults:
    """Collects configuration errors from several steps. Wrap each step in ``with faults:``, and call :meth:`check` at the end."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @property
    def lines(self) -> list[str]:
        return list(self._lines)

    def __enter__(self) -> None:
        """Begin a step."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Record the step's ``ConfigError``, if any. Other exceptions propagate."""
        if not isinstance(error, ConfigError):
            return False
        self._lines.update(dict.fromkeys(str(error).splitlines()))
        return True

    def check(self) -> None:
        """Raise one ConfigError with a line for each collected error, if any."""
        if self._lines:
            raise ConfigError("\n".join(self._lines))
