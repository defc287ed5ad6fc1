"""What requests may be given, and how it is read: one definition for reading and for the OpenAPI document."""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..outlets.sqlite.views import Filter

Kind = Literal["text", "number", "count", "time", "flag"]
_AGO = re.compile(r"(\d{1,6})(m|h|d)")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 1_000
MOST_GIVEN = 40
"""Values of a parameter that may be given several times."""
_MOST_TIME = 1e11
"""Seconds; what is larger is given in milliseconds by mistake."""


class Problem(Exception):
    """A request that cannot be answered as it is.

    Args:
        status: of HTTP.
        message: what is wrong, and what is allowed.
        allow: methods that are allowed where another one was used.
    """

    def __init__(self, status: int, message: str, allow: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.allow = allow


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a query."""

    name: str
    kind: Kind
    about: str
    choices: tuple[str, ...] = ()
    many: bool = False
    least: float | None = None
    most: float | None = None
    default: Any = None
    required: bool = False

    def read(self, text: str, now: float) -> Any:
        """The value that a text gives.

        Raises:
            Problem: it gives none.
        """
        if self.choices and text not in self.choices:
            raise self._wrong(text, f"one of {', '.join(self.choices)}")
        if self.kind == "flag":
            if text not in ("true", "false"):
                raise self._wrong(text, "true or false")
            return text == "true"
        if self.kind == "time":
            found = _time_in(text, now)
            if found is None:
                raise self._wrong(text, "seconds since 1970, a time as 2026-11-21T02:57:01Z, or how long ago: 30m, 24h, 7d")
            return found
        if self.kind in ("number", "count"):
            return self._number(text)
        if not text or len(text) > _LONGEST:
            raise self._wrong(text, f"a text of 1 to {_LONGEST} characters")
        return text

    def _number(self, text: str) -> float | int:
        low = -sys.float_info.max if self.least is None else self.least
        high = sys.float_info.max if self.most is None else self.most
        try:
            found = int(text) if self.kind == "count" else float(text)
        except ValueError:
            raise self._wrong(text, "a whole number" if self.kind == "count" else "a number") from None
        if not low <= found <= high:  # of integers too that no float can hold
            raise self._wrong(text, f"a number from {low:g} to {high:g}" if self.least is not None else "a finite number")
        return found

    def _wrong(self, text: str, allowed: str) -> Problem:
        return Problem(400, f"{self.name}: {text[:40]!r} is not allowed; it must be {allowed}")


def _time_in(text: str, now: float) -> float | None:
    ago = _AGO.fullmatch(text)
    if ago is not None:
        return now - int(ago[1]) * _SECONDS[ago[2]]
    try:
        found = float(text)
    except ValueError:
        try:
            at = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
            found = (at if at.tzinfo is not None else at.replace(tzinfo=datetime.timezone.utc)).timestamp()
        except (ValueError, OverflowError):
            return None
    return found if 0 <= found < _MOST_TIME else None


def read(query: Mapping[str, Sequence[str]], parameters: Sequence[Parameter], now: float) -> dict[str, Any]:
    """The values of a query by name, with the defaults of what it does not give.

    Raises:
        Problem: a name is unknown, a value is not allowed, or a parameter that is needed is missing.
    """
    known = {parameter.name: parameter for parameter in parameters}
    for name in query:
        if name not in known:
            raise Problem(400, f"{name[:40]!r} is no parameter here; there are: {', '.join(known) or 'none'}")
    found: dict[str, Any] = {}
    for name, parameter in known.items():
        given = query.get(name, ())
        most = MOST_GIVEN if parameter.many else 1
        if len(given) > most:
            raise Problem(400, f"{name} is given {len(given)} times; {most} is the most")
        if parameter.many:
            found[name] = tuple(parameter.read(text, now) for text in given)
        elif given:
            found[name] = parameter.read(given[0], now)
        elif parameter.required:
            raise Problem(400, f"{name} is missing: {parameter.about}")
        else:
            found[name] = parameter.default
    return found


WHEN = (
    Parameter("since", "time", "turns that began at or after this"),
    Parameter("until", "time", "turns that began before this"),
)
WHOSE = (
    Parameter("agent", "text", "turns of this agent; several may be given", many=True),
    Parameter("service", "text", "turns of this service; several may be given", many=True),
    Parameter("version", "text", "turns of this `service.version`; several may be given", many=True),
    Parameter("model", "text", "turns that this model answered; several may be given", many=True),
)
OF_TURNS = (
    *WHEN,
    *WHOSE,
    Parameter("conversation", "text", "turns of this conversation"),
    Parameter("metric", "text", "turns with a score of this metric"),
    Parameter("outcome", "text", "with this outcome of the metric; without `metric`, of any", ("pass", "fail", "error")),
    Parameter("below", "number", "with a value of the metric below this"),
    Parameter("above", "number", "with a value of the metric above this"),
    Parameter("tool", "text", "turns that called this tool"),
    Parameter("error", "flag", "turns that ended with an error", default=False),
    Parameter("text", "text", "turns with this in what was said, where content is kept and shown"),
)
OF_SUMS = (*WHEN, *WHOSE, Parameter("metric", "text", "only this metric"))


def filter_of(given: Mapping[str, Any], tenant: str | None) -> Filter:
    """The filter that parameters give, for what a reader may see."""
    return Filter(
        since=given.get("since"), until=given.get("until"), agents=given.get("agent", ()), services=given.get("service", ()), versions=given.get("version", ()),
        models=given.get("model", ()), tenant=tenant, conversation=given.get("conversation"), metric=given.get("metric"), outcome=given.get("outcome"),
        below=given.get("below"), above=given.get("above"), tool=given.get("tool"), error=bool(given.get("error")), text=given.get("text"),
    )  # fmt: skip
