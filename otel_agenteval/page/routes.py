"""What can be asked of the API: the one table that requests are matched with and the OpenAPI document is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..outlets.sqlite.views import GROUPS
from .api import Api, Document, Request
from .labels import FIELDS
from .parameters import OF_SUMS, OF_TURNS, WHEN, WHOSE, Parameter, Problem

BASE = "/api/v1"
_TURN_ID = Parameter("turn_id", "text", "id of the turn, or the beginning of it", required=True)
_CURSOR = Parameter("cursor", "text", "`next` of the part before")
_BY = Parameter("by", "text", "what makes groups", tuple(GROUPS), default="agent")


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked."""

    method: Literal["GET", "POST"]
    path: str
    """With names in braces."""
    answer: Callable[[Api, Request], Mapping[str, Any] | Document]
    about: str
    query: tuple[Parameter, ...] = ()
    in_path: tuple[Parameter, ...] = ()
    body: Mapping[str, str] | None = None
    """Keys of the object that is sent, and what they mean."""
    gives: tuple[str, ...] = ()
    """Keys of the object that is answered, or a media type."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """Matches paths."""
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path))


ROUTES = (
    Route("GET", "/turns", Api.turns, "Turns, newest first, a part at a time", (
        *OF_TURNS, Parameter("limit", "count", "how many at most", least=1, most=500, default=100), _CURSOR,
        Parameter("order", "text", "by when they began", ("newest", "oldest"), default="newest"),
    ), gives=("turns", "next", "searching")),
    Route("GET", "/turns/{turn_id}", Api.turn, "One turn with its scores, and why it has no others", in_path=(_TURN_ID,), gives=("turn", "content", "content_kept", "scores", "outcomes", "conversation", "trace_url", "labels")),
    Route("GET", "/turns/{turn_id}/why", Api.why, "The outcome of each metric on a turn", in_path=(_TURN_ID,), gives=("turn_id", "metrics", "scores")),
    Route("GET", "/turns/{turn_id}/case", Api.case, "A turn in form turn.v1: a test case", in_path=(_TURN_ID,)),
    Route("GET", "/turns/{turn_id}/question", Api.question, "What the judge of a metric was asked about a turn, as it was sent, and what it replied (`sent`); where that is not kept, the first question that it would be asked today", (Parameter("metric", "text", "the judged metric", required=True),), (_TURN_ID,), gives=("metric", "version", "stage", "system", "question", "sent")),
    Route("GET", "/turns/{turn_id}/neighbours", Api.neighbours, "The turns before and after one in the list of a filter", OF_TURNS, (_TURN_ID,), gives=("older", "newer")),
    Route("GET", "/export", Api.export, "The turns of a filter as a file", (
        *OF_TURNS, Parameter("format", "text", "JSON lines, CSV, or cases for `experiment`", ("jsonl", "csv", "dataset"), default="jsonl"),
        Parameter("limit", "count", "how many at most", least=1, most=10_000, default=10_000),
    ), gives=("application/x-ndjson", "text/csv")),
    Route("GET", "/facets", Api.facets, "What turns can be filtered by, with how many there are", (*WHEN, *WHOSE), gives=("agents", "services", "versions", "models", "judges", "metrics", "since", "until", "content", "labels", "tenant", "budget_usd", "trace_url")),
    Route("GET", "/estimates", Api.estimates, "What the scores say of all turns, by metric and group, with 95 % intervals; times count by whole hours", (*OF_SUMS, _BY), gives=("groups", "estimates", "hours_not_summed")),
    Route("GET", "/series", Api.series, "Means over time, with intervals where one metric is asked for", (
        *OF_SUMS, _BY, Parameter("step", "count", "hours of a point; default: as many as make 45 points", least=1, most=8_760),
    ), gives=("step_s", "since", "until", "changes", "releases", "series")),
    Route("GET", "/changes", Api.changes, "Changes of scores that were found, the latest first", (Parameter("since", "time", "found at or after this"),), gives=("changes",)),
    Route("GET", "/compare", Api.compare, "Two groups of turns, metric by metric", (
        *OF_SUMS, Parameter("by", "text", "what makes groups", tuple(GROUPS), default="version"),
        Parameter("before", "text", "the one group", required=True), Parameter("after", "text", "the other", required=True),
    ), gives=("by", "before", "after", "lines")),
    Route("GET", "/compare/cases", Api.cases, "The cases that two groups have in common: the latest turn of both, and where their scores differ", (
        *OF_TURNS, Parameter("by", "text", "what makes groups", ("version", "model", "agent", "service"), default="version"),
        Parameter("before", "text", "the one group", required=True), Parameter("after", "text", "the other", required=True),
        Parameter("limit", "count", "how many at most", least=1, most=500, default=50), _CURSOR,
    ), gives=("cases", "next")),
    Route("GET", "/metrics", Api.metrics, "The catalogue of metrics", gives=("metrics",)),
    Route("GET", "/health", Api.health, "How the sidecar itself does", gives=("sidecar", "store")),
    Route("GET", "/labels", Api.labelled, "The labels that hold", gives=("labels",)),
    Route("GET", "/labels/next", Api.next_to_label, "The turn whose label would say most", (*WHEN, *WHOSE, Parameter("metric", "text", "that the label is about")), gives=("turn_id", "labelled")),
    Route("POST", "/labels", Api.label, "Keep a label, for `calibrate`", body=FIELDS, gives=("label",)),
)  # fmt: skip


def route_of(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """The route of a request below :data:`BASE`, and what its path names.

    Raises:
        Problem: the path is unknown, or the method isn't allowed.
    """
    allowed = []
    for route in ROUTES:
        match = route.pattern.fullmatch(path)
        if match is not None:
            if route.method == ("GET" if method == "HEAD" else method):
                return route, match.groupdict()
            allowed.append(route.method)
    if allowed:
        allow = ", ".join(allowed)
        raise Problem(405, f"{allow} only", allow)
    raise Problem(404, f"unknown path; see {BASE}/openapi.json")
