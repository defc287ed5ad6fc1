"""Option types: parsers, notation in configuration files, and descriptions for the documentation.

The message of a parser's ValueError starts with *must*. An example or a fix can follow.
"""

from __future__ import annotations

import math
import os
import re
import urllib.parse
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

_SECONDS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_LONGEST = 365 * 86400.0  # far above useful values, but valid as the timeout of a lock
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|d|h|m|s)")
_BYTES = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10, "GB": 10**9, "MB": 10**6, "kB": 10**3, "B": 1}
_ADDRESS = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9_.-]+)):([0-9]{1,5})")
_HEADER = re.compile(r"[A-Za-z0-9_.-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SIZE = re.compile(rf"([0-9]{{1,13}}(?:\.[0-9]+)?)\s*({'|'.join(_BYTES)})?")


@dataclass(frozen=True)
class Kind:
    """Description of an option type, for the documentation. ``write`` converts a value to file notation, such as 300 to ``5m``."""

    described: str
    write: Callable[[Any], Any] | None = None
    secret: bool = False
    """True if error messages must not contain the value."""


@dataclass(frozen=True)
class Before:
    read: Callable[[Any], Any]
    _validator: ClassVar[str] = "no_info_before_validator_function"

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return getattr(core_schema, self._validator)(self.read, handler(source))


class After(Before):
    _validator = "no_info_after_validator_function"


# --- reading -------------------------------------------------------------------------------------------------------


def seconds(value: Any) -> float:
    """Return the seconds in a duration such as ``"1h30m"`` or ``"5ms"``, or raise a ValueError. Numbers are milliseconds."""
    number = finite_number(value)
    found = None if number is None else number / 1000
    if number is None and isinstance(value, str):
        parts = _DURATION.findall(value)
        if parts and "".join(amount + unit for amount, unit in parts) == value.strip():
            found = sum(float(amount) * _SECONDS[unit] for amount, unit in parts)
    if found is not None and found <= _LONGEST:
        return found
    raise ValueError("must be a duration up to 365d. Examples: 30s, 5m, 1h30m, 5ms (a number without a unit is milliseconds)")


def size(value: Any) -> int:
    """Return the bytes in a size such as ``"4MiB"`` or ``"64kB"``, or raise a ValueError. Numbers are bytes."""
    found = _SIZE.fullmatch(_plain_text(value))
    if found is None or float(found[1]) * _BYTES[found[2] or "B"] < 1:
        raise ValueError("must be a size of at least 1 byte. Examples: 4MiB, 64kB (a number without a unit means bytes)")
    return int(float(found[1]) * _BYTES[found[2] or "B"])


def whole_number(value: Any, least: int, most: int, allowed: str) -> int:
    """Parse a number or text as a whole number from ``least`` to ``most``, or raise a ValueError with the message ``allowed``."""
    text = _plain_text(value)
    if not re.fullmatch(r"[0-9]{1,13}", text) or not least <= int(text) <= most:
        raise ValueError(allowed)
    return int(text)


def finite_number(value: Any) -> float | None:
    """Parse a number or text as a finite number of at least 0. For other values, return None."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def split_address(value: Any) -> tuple[str, int]:
    """Split ``127.0.0.1:4318``, ``[::1]:4318``, or ``localhost:0`` (any free port) into host and port, or raise a ValueError."""
    found = _ADDRESS.fullmatch(value.strip()) if isinstance(value, str) else None
    if found is None or int(found[3]) > 65535:
        raise ValueError("must be HOST:PORT or null. Examples: 127.0.0.1:4318, [::1]:4318 (port 0 means any free port)")
    return found[1] or found[2], int(found[3])


def http_url(value: Any, *, is_whole: bool = False) -> str:
    """Return a server's URL without a trailing slash. If the URL is invalid or has credentials or a query, raise a ValueError. If
    ``is_whole`` is true, as for a webhook, the URL can have a query, and a trailing slash is kept.
    """
    text = value.strip() if isinstance(value, str) else ""
    with suppress(ValueError):
        parts = urllib.parse.urlsplit(text)
        is_plain = not ((parts.query and not is_whole) or parts.fragment or "@" in parts.netloc or " " in text)
        is_server = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
        if is_plain and is_server and text.isprintable():
            return text if is_whole else text.rstrip("/")
    without = "credentials or fragment" if is_whole else "credentials, query, or fragment"
    raise ValueError(f"must be a URL that starts with http:// or https://, without {without}")


def file_path(value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value) or "\0" in str(value):
        raise ValueError("must be a path")
    return str(os.fspath(value))


def _plain_text(value: Any) -> str:
    """Return a string or whole number as text, for parsers that accept both types. For other values, return ``""``."""
    return str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""


def _delay(value: Any) -> Any:
    try:
        return "auto" if value == "auto" else seconds(value)
    except ValueError as error:
        raise ValueError(str(error).replace("must be", "must be auto or", 1)) from None


def valid(rule: str, read: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a parser that calls ``read``, and raises a ValueError with the message ``rule`` if ``read`` returns None."""

    def checked(value: Any) -> Any:
        if (found := read(value)) is None:
            raise ValueError(rule)
        return found

    return checked


def matching(rule: str, pattern: str) -> Callable[[Any], Any]:
    """Return a parser for strings that match an ASCII pattern. For other values, the parser raises a ValueError (``rule``)."""
    form = re.compile(pattern, re.ASCII | re.DOTALL)
    return valid(rule, lambda value: value if isinstance(value, str) and form.fullmatch(value) else None)


_YES, _NO = frozenset(("true", "yes", "on", "1")), frozenset(("false", "no", "off", "0"))


def truth_of(value: Any) -> bool | None:
    """Return True for ``true``, ``yes``, ``on``, or 1 in any letter case, False for the opposites, and None for other values."""
    text = str(value).strip().lower() if isinstance(value, (str, int)) else ""
    return True if text in _YES else False if text in _NO else None


def _amount(value: Any, *allowed: str) -> str:
    """Parse one of the allowed words, or raise a ValueError. ``true`` means ``all``, and ``false`` means ``off``."""
    text = value.strip() if isinstance(value, str) else ""
    switched = truth_of(value)
    found = text if switched is None else "all" if switched else "off"
    if found in allowed:
        return found
    raise ValueError(f"must be {', '.join(allowed[:-1])}, or {allowed[-1]} (true means all, false means off)")


def texts(
    rule: str, is_allowed: Callable[[str], object] = bool, *, alone: bool = True, least: int = 0, make: Callable[[str], str] = str
) -> Callable[[Any], tuple[str, ...]]:
    """Return a parser for a list of strings. With ``alone``, the parser also accepts a single string. Errors contain ``rule``."""

    def read(value: Any) -> tuple[str, ...]:
        items = [value] if alone and isinstance(value, str) else value
        if (
            isinstance(items, (list, tuple))
            and len(items) >= least
            and all(isinstance(item, str) and is_allowed(item) for item in items)
        ):
            return tuple(map(make, items))
        raise ValueError(rule)

    return read


def names(what: str) -> Callable[[Any], tuple[str, ...]]:
    return texts(f"must be a list of {what}. Example: [gen_ai.prompt.version, app.tier]", str.strip, alone=False, make=str.strip)


def _headers(value: Any) -> dict[str, str]:
    if isinstance(value, Mapping) and all(
        isinstance(name, str) and _HEADER.fullmatch(name) and isinstance(text, str) and text.strip().isprintable()
        for name, text in value.items()
    ):
        return {name.lower(): text.strip() for name, text in value.items()}
    raise ValueError("must be a mapping of header names to strings. Example: {x-api-key: SECRET}")


def _address(value: Any) -> str:
    host, port = split_address(value)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


# --- writing -------------------------------------------------------------------------------------------------------


def duration_text(duration: float) -> str:
    """Format a number of seconds for a configuration file: ``5m``, ``1500ms``."""
    for unit in ("h", "m", "s"):
        if duration >= _SECONDS[unit] and (duration / _SECONDS[unit]).is_integer():
            return f"{duration / _SECONDS[unit]:.0f}{unit}"
    return f"{format(duration * 1000, '.15g')}ms"


def size_text(count: int) -> str:
    """Format a number of bytes for a configuration file: ``4MiB``, ``64kB``, ``1000001B``."""
    return next(f"{count // factor}{unit}" for unit, factor in _BYTES.items() if count % factor == 0)


# --- the types -----------------------------------------------------------------------------------------------------

_positive = valid("must be a duration above 0. Example: 30s", lambda value: seconds(value) or None)
Duration = Annotated[float, Before(_positive), Kind("duration above 0", duration_text)]
DurationOrZero = Annotated[float, Before(seconds), Kind("duration", duration_text)]
DurationOrAuto = Annotated[
    Literal["auto"] | float,
    Before(_delay),
    Kind("`auto` or duration", lambda delay: delay if delay == "auto" else duration_text(delay)),
]
Size = Annotated[int, Before(size), Kind("size", size_text)]
Count = Annotated[
    int, Before(lambda value: whole_number(value, 1, 10**12, "must be an integer from 1 to 10¹²")), Kind("positive whole number")
]
_share = valid("must be a share from 0 to 1", lambda value: n if (n := finite_number(value)) is not None and n <= 1 else None)
Share = Annotated[float, Before(_share), Kind("share from 0 to 1")]
Switch = Annotated[bool, Before(valid("must be true or false", truth_of)), Kind("`true` or `false`")]
_auto = valid("must be auto, true, or false", lambda value: "auto" if value == "auto" else truth_of(value))
Toggle = Annotated[Literal["auto"] | bool, Before(_auto), Kind("`auto`, `true`, or `false`")]
LogEvents = Annotated[
    Literal["auto", "all", "notable", "off"],
    Before(lambda value: _amount(value, "auto", "all", "notable", "off")),
    Kind("`auto`, `all` (`true`), `notable`, or `off` (`false`)"),
]
Console = Annotated[
    Literal["all", "failed", "off"],
    Before(lambda value: _amount(value, "all", "failed", "off")),
    Kind("`all` (`true`), `failed`, or `off` (`false`)"),
]
Port = Annotated[
    int, Before(lambda value: whole_number(value, 0, 65535, "must be a port from 0 (any free port) to 65535")), Kind("port")
]
Address = Annotated[str, Before(_address), Kind("HOST:PORT")]
URL = "HTTP or HTTPS URL"
Url = Annotated[str, Before(http_url), Kind(URL, secret=True)]
WholeUrl = Annotated[str, Before(partial(http_url, is_whole=True)), Kind("HTTP or HTTPS URL, also with a query", secret=True)]
FILE = Kind("path", secret=True)  # the path of a score store can contain a database password
FilePath = Annotated[str, Before(file_path), FILE]
_text = valid(
    "must be a non-empty string without control characters",
    lambda value: (value.strip() or None) if isinstance(value, str) and not _CONTROL.search(value.strip()) else None,
)
Text = Annotated[str, Before(_text), Kind("string")]
Secret = Annotated[str, Before(_text), Kind("string", secret=True)]
Headers = Annotated[dict[str, str], Before(_headers), Kind("mapping of headers", secret=True)]


# --- places of values

KeyPath = tuple[str | int, ...]


def dotted(path: KeyPath) -> str:
    return "".join(
        f"[{part}]" if isinstance(part, int) else f".{part if str(part).isprintable() else ascii(part)}" for part in path
    ).removeprefix(".")


def location(path: KeyPath, sources: Mapping[KeyPath, str]) -> str:
    """Return a value's location for an error message: ``FILE:LINE: PATH`` or ``VARIABLE: PATH``, or only the path if neither is known."""
    place = next((sources[path[:end]] for end in range(len(path), -1, -1) if path[:end] in sources), None)
    return ": ".join(part for part in (place, dotted(path)) if part)
