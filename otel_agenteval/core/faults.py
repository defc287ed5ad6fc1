"""What is wrong with a configuration, all of it at once."""

from __future__ import annotations

from .errors import ConfigError


class Faults:
    """Collects what several steps find wrong, so that all of it is said at once: ``with faults:`` around each, and :meth:`check` at the end."""

    def __init__(self) -> None:
        self._lines: dict[str, None] = {}

    @property
    def lines(self) -> list[str]:
        """What was found, a line each."""
        return list(self._lines)

    def __enter__(self) -> None:
        """Begin a step."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Keep what the step raised, if it is a fault of the configuration."""
        if not isinstance(error, ConfigError):
            return False
        self._lines.update(dict.fromkeys(str(error).splitlines()))
        return True

    def check(self) -> None:
        """Raise what was found.

        Raises:
            ConfigError: all of it.
        """
        if self._lines:
            raise ConfigError("\n".join(self._lines))
