"""Request parameters of the API, defined once for parsing and for the OpenAPI document."""

from __future__ import annotations

import datetime
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ..core.errors import ConfigError
from ..core.finding import SEVERITIES
from ..evaluation.turn_facts import FactCondition
from ..outlets.store.views import Filter

Kind = Literal["text", "number", "count", "time", "flag", "condition"]
_AGO = re.compile(r"(\d{1,6})(m|h|d)")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0}
_LONGEST = 1_000
MOST_GIVEN = 40
_MOST_TIME = 1e11
"""Maximum time in seconds. Larger values are probably milliseconds."""


class Problem(Exception):
    """Error for a request that can't be answered. For an invalid method, ``allow`` lists the allowed methods."""

    def __init__(self, status: int, message: str, allow: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.allow = allow


@dataclass(frozen=True, slots=True)
class Parameter:
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
        if self.choices and text not in self.choices:
            raise self._wrong(text, f"one of {', '.join(self.choices)}")
        if self.kind == "flag":
            if text not in ("true", "false"):
                raise self._wrong(text, "true or false")
            return text == "true"
        if self.kind == "time":
            found = _time_in(text, now)
            if found is None:
                raise self._wrong(text, "seconds since 1970, a time such as 2026-11-21T02:57:01Z, or an age such as 30m, 24h, 7d")
            return found
        if self.kind in ("number", "count"):
            return self._number(text)
        if not text or len(text) > _LONGEST:
            raise self._wrong(text, f"a string of 1 to {_LONGEST} characters")
        return text

    def _number(self, text: str) -> float | int:
        low = -sys.float_info.max if self.least is None else self.least
        high = sys.float_info.max if self.most is None else self.most
        try:
            number = int(text) if self.kind == "count" else float(text)
        except ValueError:
            raise self._wrong(text, "a whole number" if self.kind == "count" else "a number") from None
        if not low <= number <= high:  # also refuses integers beyond the range of a float
            raise self._wrong(text, f"a number from {low:g} to {high:g}" if self.least is not None else "a finite number")
        return number

    def _wrong(self, text: str, allowed: str) -> Problem:
        return Problem(400, f"{self.name}: must be {allowed}, got {text[:40]!r}")


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
    """Parse a query and add defaults. For an unknown name, an invalid value, or a missing required parameter, raise Problem."""
    known = {parameter.name: parameter for parameter in parameters}
    for name in query:
        if name not in known:
            raise Problem(400, f"{name[:40]!r}: unknown parameter; known parameters: {', '.join(known) or 'none'}")
    found: dict[str, Any] = {}
    for name, parameter in known.items():
        given = query.get(name, ())
        most = MOST_GIVEN if parameter.many else 1
        if len(given) > most:
            raise Problem(400, f"{name}: too many values, got {len(given)}; at most {most}")
        if parameter.required and not given:
            raise Problem(400, f"{name}: required parameter ({parameter.about})")
        if parameter.many:
            found[name] = tuple(parameter.read(text, now) for text in given)
        else:
            found[name] = parameter.read(given[0], now) if given else parameter.default
    return found


WHEN = (
    Parameter("since", "time", "turns that started at or after this time"),
    Parameter("until", "time", "turns that started before this time"),
)
WHOSE = (
    Parameter("agent", "text", "turns of this agent (repeatable)", many=True),
    Parameter("service", "text", "turns of this service (repeatable)", many=True),
    Parameter("version", "text", "turns of this `service.version` (repeatable)", many=True),
    Parameter("model", "text", "turns that this model answered (repeatable)", many=True),
)
OF_TURNS = (
    *WHEN,
    *WHOSE,
    Parameter("conversation", "text", "turns of this conversation"),
    Parameter("metric", "text", "turns with a score of this metric"),
    Parameter("outcome", "text", "turns with this outcome of `metric` or, if unset, of any metric", ("pass", "fail", "error")),
    Parameter("severity", "text", "turns with a finding of this severity in a matching score", tuple(SEVERITIES)),
    Parameter("below", "number", "turns with a value of `metric` below this number"),
    Parameter("above", "number", "turns with a value of `metric` above this number"),
    Parameter("tool", "text", "turns that called this tool"),
    Parameter("mode", "text", "turns with the failure mode of this ID"),
    Parameter(
        "fact",
        "condition",
        "turns with this fact, such as `language=de` or `duration_s>20` (repeatable, all must hold)",
        many=True,
    ),
    Parameter("error", "flag", "turns that ended with an error", default=False),
    Parameter("text", "text", "turns with this text in their content, if content is stored and shown"),
)
OF_SUMS = (*WHEN, *WHOSE, Parameter("metric", "text", "scores of this metric only"))


def facts_in(texts: Sequence[str], name: str = "fact") -> tuple[FactCondition, ...]:
    try:
        return tuple(FactCondition.parse(text, name) for text in texts)
    except ConfigError as error:
        raise Problem(400, str(error)) from None


def filter_of(given: Mapping[str, Any], tenant: str | None) -> Filter:
    return Filter(
        since=given.get("since"), until=given.get("until"), agents=given.get("agent", ()), services=given.get("service", ()), versions=given.get("version", ()),
        models=given.get("model", ()), tenant=tenant, conversation=given.get("conversation"), metric=given.get("metric"), outcome=given.get("outcome"),
        severity=given.get("severity"), below=given.get("below"), above=given.get("above"), tool=given.get("tool"), mode=given.get("mode"), error=bool(given.get("error")), facts=facts_in(given.get("fact", ())), text=given.get("text"),
    )  # fmt: skip
