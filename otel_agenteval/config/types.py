"""The types of options: what reads a value, how it is described in the documentation, and what writes it again.

Readers raise ValueError with the clause that follows "… is not allowed; ": what the value must be.
"""

from __future__ import annotations

import math
import os
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_LONGEST = 365 * 86400.0  # beyond any use, and within what a lock can wait
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|d|h|m|s)")
_BYTES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+)):([0-9]{1,5})")
_SIZE = re.compile(rf"([0-9]{{1,13}}(?:\.[0-9]+)?)\s*({'|'.join(_BYTES)})?")


@dataclass(frozen=True)
class Kind:
    """What the documentation says of a type of values, and how a value is written where YAML has no notation for it."""

    described: str
    write: Callable[[Any], Any] | None = None


@dataclass(frozen=True)
class Before:
    """Reads a value, before it is compared with its type. pydantic asks it for its schema."""

    read: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """A schema that calls it."""
        from pydantic_core.core_schema import no_info_before_validator_function

        return no_info_before_validator_function(self.read, handler(source))


@dataclass(frozen=True)
class After:
    """Checks a value that has its type."""

    check: Callable[[Any], Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        """A schema that calls it."""
        from pydantic_core.core_schema import no_info_after_validator_function

        return no_info_after_validator_function(self.check, handler(source))


# --- reading -------------------------------------------------------------------------------------------------------


def seconds(value: Any) -> float:
    """A duration in seconds from ``"5m"``, ``"1h30m"`` or ``"5ms"``; a bare number is milliseconds.

    Raises:
        ValueError: anything else.
    """
    number = finite_number(value)
    found = number / 1000 if number is not None else _with_units(value)
    if found is not None and found <= _LONGEST:
        return found
    raise ValueError("it must be a duration up to 365d (5m, 1h30m, 2s, 5ms, or a number of milliseconds)")


def size(value: Any) -> int:
    """A size in bytes from ``"4MiB"`` or ``"64kB"``; a bare number is bytes.

    Raises:
        ValueError: anything else.
    """
    found = _SIZE.fullmatch(_plain_text(value))
    if found is None or float(found[1]) * _BYTES[found[2] or "B"] < 1:
        raise ValueError("it must be a size from 1 byte (4MiB, 64kB, or a number of bytes)")
    return int(float(found[1]) * _BYTES[found[2] or "B"])


def whole_number(value: Any, least: int, most: int, allowed: str) -> int:
    """A whole number within bounds, also written as text.

    Raises:
        ValueError: anything else; ``allowed`` is the message.
    """
    text = _plain_text(value)
    if not re.fullmatch(r"[0-9]{1,13}", text) or not least <= int(text) <= most:
        raise ValueError(allowed)
    return int(text)


def finite_number(value: Any) -> float | None:
    """A finite number from 0, also written as text; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def split_address(value: Any) -> tuple[str, int]:
    """Host and port of ``127.0.0.1:4318``, ``[::1]:4318`` or ``localhost:0`` (any free port).

    Raises:
        ValueError: anything else.
    """
    found = _ADDRESS.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or int(found[3]) > 65535:
        raise ValueError("it must be HOST:PORT, as in 127.0.0.1:4318 or [::1]:4318 (port 0 is any free one; null is none)")
    return found[1] or found[2], int(found[3])


def http_url(value: Any) -> str:
    """The address of a server, without the slash at its end. Keys belong into headers: it has no credentials and no query.

    Raises:
        ValueError: anything else; the message holds nothing of it.
    """
    text = value.strip() if isinstance(value, str) else ""
    try:
        parts = urllib.parse.urlsplit(text)
        good = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    if not good or parts.query or parts.fragment or "@" in text or not text.isprintable() or " " in text:
        raise ValueError("it must be an address that begins with http:// or https://, without credentials, query or fragment")
    return text.rstrip("/")


def file_path(value: Any) -> str:
    """The path of a file, from text or a ``Path``.

    Raises:
        ValueError: anything else.
    """
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value):
        raise ValueError("it must be the path of a file")
    return str(os.fspath(value))


def _with_units(value: Any) -> float | None:
    text = value.strip() if isinstance(value, str) else ""
    parts = _DURATION.findall(text)
    if not text or "".join(amount + unit for amount, unit in parts) != text:
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in parts)


def _plain_text(value: Any) -> str:
    """A whole number or text, as text: the environment has nothing else."""
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _positive(value: Any) -> float:
    found = seconds(value)
    if found <= 0:
        raise ValueError("it must be a duration above 0")
    return found


def _delay(value: Any) -> Any:
    try:
        return "auto" if value == "auto" else seconds(value)
    except ValueError as error:
        raise ValueError(str(error).replace("it must be", "it must be auto or", 1)) from None


def _switch(value: Any) -> bool:
    """Only ``true`` is true, in any case; ``1`` and ``yes`` are refused rather than guessed at."""
    text = value.strip().lower() if isinstance(value, str) else value
    if text is True or text == "true":
        return True
    if text is False or text == "false":
        return False
    raise ValueError("it must be true or false")


def _amount(value: Any, *allowed: str) -> str:
    """One of some words; ``true`` and ``false`` in any case are ``all`` and ``off``."""
    if value is True or value is False:
        return "all" if value else "off"
    text = value.strip() if isinstance(value, str) else ""
    found = {"true": "all", "false": "off"}.get(text.lower(), text)
    if found in allowed:
        return found
    raise ValueError(f"it must be {', '.join(allowed[:-1])} or {allowed[-1]} (true is all, false is off)")


def _log_events(value: Any) -> str:
    return _amount(value, "auto", "all", "notable", "off")


def _console(value: Any) -> str:
    return _amount(value, "all", "failed", "off")


def _count(value: Any) -> int:
    return whole_number(value, 1, 10**12, "it must be a whole number from 1")


def _port(value: Any) -> int:
    return whole_number(value, 0, 65535, "it must be a port from 0 (any that is free) to 65535")


def _share(value: Any) -> float:
    number = finite_number(value)
    if number is None or number > 1:
        raise ValueError("it must be a share from 0 to 1")
    return number


def name_list(what: str) -> Callable[[Any], tuple[str, ...]]:
    """What checks a list of names of something."""

    def read(value: Any) -> tuple[str, ...]:
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) and item.strip() for item in value):
            return tuple(item.strip() for item in value)
        raise ValueError(f"it must be a list of {what}")

    return read


def _address(value: Any) -> str:
    host, port = split_address(value)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _text(value: Any) -> str:
    if isinstance(value, str) and value.strip():
        return value.strip()
    raise ValueError("it must be a text that is not empty")


# --- writing -------------------------------------------------------------------------------------------------------


def duration_text(duration: float) -> str:
    """Seconds as they are written in a configuration: ``5m``, ``1.5s``, ``5ms``."""
    for unit in ("h", "m", "s"):
        if duration >= _SECONDS[unit] and (duration / _SECONDS[unit]).is_integer():
            return f"{duration / _SECONDS[unit]:.0f}{unit}"
    return f"{format(duration * 1000, '.15g')}ms"


def size_text(count: int) -> str:
    """Bytes as they are written in a configuration: ``4MiB``, ``64kB``, ``1000001B``."""
    return next(f"{count // factor}{unit}" for unit, factor in _BYTES.items() if count % factor == 0)


def _delay_text(delay: Any) -> str:
    return delay if isinstance(delay, str) else duration_text(delay)


# --- the types -----------------------------------------------------------------------------------------------------

Duration = Annotated[float, Before(_positive), Kind("duration above 0", duration_text)]
DurationOrZero = Annotated[float, Before(seconds), Kind("duration", duration_text)]
DurationOrAuto = Annotated[Literal["auto"] | float, Before(_delay), Kind("`auto` or duration", _delay_text)]
Size = Annotated[int, Before(size), Kind("size", size_text)]
Count = Annotated[int, Before(_count), Kind("whole number from 1")]
Share = Annotated[float, Before(_share), Kind("share from 0 to 1")]
Switch = Annotated[bool, Before(_switch), Kind("`true` or `false`")]
LogEvents = Annotated[
    Literal["auto", "all", "notable", "off"],
    Before(_log_events),
    Kind("`auto`, `all` (`true`), `notable` or `off` (`false`)"),
]
"""Which scores leave as log events."""
Console = Annotated[
    Literal["all", "failed", "off"],
    Before(_console),
    Kind("`all` (`true`), `failed` or `off` (`false`)"),
]
"""Which turns are shown on the terminal."""
Port = Annotated[int, Before(_port), Kind("port")]
Address = Annotated[str, Before(_address), Kind("HOST:PORT")]
Url = Annotated[str, Before(http_url), Kind("http(s) address")]
FilePath = Annotated[str, Before(file_path), Kind("path")]
Text = Annotated[str, Before(_text), Kind("text")]
