"""Routes of the API, and the OpenAPI document that describes these routes."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..core.finding import SEVERITIES
from ..core.version import __version__
from ..evaluation.turn_facts import CONDITION
from ..outlets.store.views import GROUPS, MOST_COUNTED, RANKED
from .api import Api, FileResponse, Request
from .labels import CHOICES, FIELDS
from .parameters import MOST_GIVEN, OF_SUMS, OF_TURNS, WHEN, WHOSE, Parameter, Problem

BASE = "/api/v1"
_TURN_ID = Parameter("turn_id", "text", "ID of the turn, or a unique prefix", required=True)
_GROUP = Parameter(
    "group",
    "condition",
    "turns with this fact, such as `model=gpt-5` or `duration_s>20` (repeatable, all must hold)",
    many=True,
    required=True,
)
_CURSOR = Parameter("cursor", "text", "value of `next` from the previous page")
_BY = Parameter("by", "text", "attribute to group turns by", tuple(GROUPS), default="agent")


@dataclass(frozen=True, slots=True)
class Route:
    method: Literal["GET", "POST"]
    path: str
    """Path below :data:`BASE`, with parameters in braces."""
    answer: Callable[[Api, Request], Mapping[str, Any] | FileResponse]
    about: str
    query: tuple[Parameter, ...] = ()
    in_path: tuple[Parameter, ...] = ()
    body: Mapping[str, Mapping[str, Any]] | None = None
    """Keys of the request body, each with its JSON Schema."""
    gives: tuple[str, ...] = ()
    """Keys of a JSON response's body. For other responses, the possible media types."""

    @property
    def pattern(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.path))


ROUTES = (
    Route("GET", "/turns", Api.turns, "List turns in pages", (
        *OF_TURNS, Parameter("limit", "count", "maximum number of results", least=1, most=500, default=100), _CURSOR,
        Parameter("order", "text", "sort order. `newest` and `oldest` sort by start time. Other orders sort only the turns that can be read within the time limit", ("newest", "oldest", *RANKED), default="newest"),
    ), gives=("turns", "next", "searching")),
    Route("GET", "/count", Api.count, f"Count turns, up to {MOST_COUNTED:,}. If `complete` is false, there can be more turns", OF_TURNS, gives=("turns", "complete")),
    Route("GET", "/conversations", Api.conversations, "List conversations that contain a matching turn, with totals, in pages, latest first. A conversation can be on several pages", (
        *OF_TURNS, Parameter("limit", "count", "number of matching turns whose conversations are listed", least=1, most=500, default=500), _CURSOR,
    ), gives=("conversations", "next")),
    Route("GET", "/turns/{turn_id}", Api.turn, "Get one turn with its scores and the outcome of each metric", in_path=(_TURN_ID,), gives=("turn", "content", "content_kept", "scores", "first_fault", "texts", "outcomes", "conversation", "trace_url", "labels")),
    Route("GET", "/turns/{turn_id}/why", Api.why, "Get the outcome of each metric on a turn", in_path=(_TURN_ID,), gives=("turn_id", "metrics", "scores")),
    Route("GET", "/turns/{turn_id}/case", Api.case, "Get a turn in the form turn.v1, for use as a test case", in_path=(_TURN_ID,)),
    Route("GET", "/turns/{turn_id}/question", Api.question, "Get the judge calls of a metric on a turn with their replies (`sent`) or, if they aren't stored, the first prompt that the current version would send", (Parameter("metric", "text", "the judged metric", required=True),), (_TURN_ID,), gives=("metric", "version", "stage", "system", "question", "sent")),
    Route("GET", "/turns/{turn_id}/neighbours", Api.neighbours, "Get the previous and next turn in a filtered list", OF_TURNS, (_TURN_ID,), gives=("older", "newer")),
    Route("GET", "/export", Api.export, "Export filtered turns as a file", (
        *OF_TURNS, Parameter("format", "text", "file format: JSON lines, CSV, or cases for `experiment`", ("jsonl", "csv", "dataset"), default="jsonl"),
        Parameter("limit", "count", "maximum number of results", least=1, most=10_000, default=10_000),
    ), gives=("application/x-ndjson", "text/csv")),
    Route("GET", "/facets", Api.facets, "List the values by which turns can be filtered, with their counts", (*WHEN, *WHOSE), gives=("agents", "services", "versions", "models", "judges", "metrics", "since", "until", "content", "causes", "users", "labels", "tenant", "budget_usd", "low_budgets", "unread_traces", "trace_url", "compared")),
    Route("GET", "/estimates", Api.estimates, "Get fleet estimates by metric and group, with 95 % intervals. Times are rounded to whole hours", (*OF_SUMS, _BY), gives=("groups", "estimates", "hours_not_summed")),
    Route("GET", "/headline", Api.headline, "Get the share of failed turns, the duration quantiles, and the mean cost for the latest 20,000 turns, and for each half of their time range", OF_SUMS, gives=("since", "middle", "until", "is_all", "all", "before", "after")),
    Route("GET", "/series", Api.series, "Get means over time with 95 % intervals", (
        *OF_SUMS, _BY, Parameter("step", "count", "hours per point; if unset, the shortest step of at least a minute with at most 45 points and about 20 turns per point. For more than 20,000 turns, a step is at least an hour", least=1, most=8_760),
    ), gives=("step_s", "since", "until", "changes", "releases", "series")),
    Route("GET", "/changes", Api.changes, "List detected score changes, latest first", (Parameter("since", "time", "changes detected at or after this time"),), gives=("changes",)),
    Route("GET", "/differences", Api.differences, "Find the facts, and pairs of facts, that distinguish turns that failed a metric from turns that passed", (
        *WHEN, *WHOSE, Parameter("metric", "text", "metric whose failed turns are compared", required=True),
    ), gives=("metric", "failed", "passed", "tested", "same", "findings")),
    Route("GET", "/differences/group", Api.group_differences, "Find the facts, and pairs of facts, that distinguish a group of turns from all other turns. Findings contain `group` and `rest` instead of `failed` and `passed`", (
        *WHEN, *WHOSE, _GROUP,
    ), gives=("where", "group", "rest", "tested", "same", "findings")),
    Route("GET", "/failure-modes", Api.failure_modes, "Group failed turns by their first fault, with the share of each group and its change from the first to the second half of the time range", (
        *OF_TURNS, Parameter("by", "text", "group turns by this attribute, and compare the two latest groups instead of the halves of the time range", tuple(name for name in GROUPS if name != "judge")),
    ), gives=("modes", "turns", "middle")),
    Route("GET", "/failure-modes/{mode}/cases", Api.mode_cases, "Get the latest failed turns of a mode as cases for `experiment`, one per distinct input. The cases usually fail while the mode persists", (
        *WHEN, *WHOSE, Parameter("limit", "count", "maximum number of cases", least=1, most=1_000, default=50),
    ), (Parameter("mode", "text", "ID of the failure mode", required=True),), gives=("application/x-ndjson",)),
    Route("GET", "/compare", Api.compare, "Compare two groups of turns by metric", (
        *OF_SUMS, Parameter("by", "text", "attribute to group turns by", tuple(GROUPS), default="version"),
        Parameter("before", "text", "first group", required=True), Parameter("after", "text", "second group", required=True),
    ), gives=("by", "before", "after", "others", "lines")),
    Route("GET", "/compare/cases", Api.cases, "List the cases that two groups share, with each group's latest turn and the score differences", (
        *OF_TURNS, Parameter("by", "text", "attribute to group turns by", ("version", "model", "agent", "service"), default="version"),
        Parameter("before", "text", "first group", required=True), Parameter("after", "text", "second group", required=True),
        Parameter("limit", "count", "maximum number of results", least=1, most=500, default=50), _CURSOR,
    ), gives=("cases", "next")),
    Route("GET", "/metrics", Api.metrics, "Get the catalog of metrics", gives=("metrics",)),
    Route("GET", "/health", Api.health, "Get the status of the sidecar and the store", gives=("sidecar", "store")),
    Route("GET", "/labels", Api.labelled, "List the current labels", gives=("labels",)),
    Route("GET", "/labels/next", Api.next_to_label, "Get an unlabeled turn from the latest 1,000: drawn at random, or with a score close to its threshold", (*WHEN, *WHOSE, Parameter("metric", "text", "metric of the label"), Parameter("choice", "text", "how to choose the turn", CHOICES[:2], default="random")), gives=("turn_id", "labelled")),
    Route("POST", "/labels", Api.label, "Store a label for `calibrate`", body=FIELDS, gives=("label",)),
)  # fmt: skip


def route_of(method: str, path: str) -> tuple[Route, dict[str, str]]:
    """Return the route for a method and a path below :data:`BASE`, and the path parameters. For unknown routes, raise Problem."""
    allowed = []
    for route in ROUTES:
        match = route.pattern.fullmatch(path)
        if match is not None:
            if route.method == ("GET" if method == "HEAD" else method):
                return route, match.groupdict()
            allowed.append(route.method)
    if allowed:
        allow = ", ".join(allowed)
        raise Problem(405, f"method not allowed, got {method[:10]}; allowed: {allow}", allow)
    raise Problem(404, f"unknown path; see {BASE}/openapi.json")


_AGO, _EPOCH = r"[0-9]{1,6}[mhd]", r"[0-9]{1,10}(\.[0-9]{1,6})?"
_ISO = r"20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z"
_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": "string", "minLength": 1, "maxLength": 1_000},
    "number": {"type": "number"},
    "count": {"type": "integer"},
    "time": {"type": "string", "pattern": f"^({_AGO}|{_EPOCH}|{_ISO})$", "examples": ["24h", "2026-11-21T02:57:01Z", "1795000000"]},
    "flag": {"type": "boolean"},
    "condition": {"type": "string", "maxLength": 1_000, "pattern": f"^{CONDITION}$"},
}  # fmt: skip
_ERROR = {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}}
_PROBLEM = {"description": "Reason why the request failed", "content": {"application/json": {"schema": _ERROR}}}
_TOO_LONG = {
    "description": "Path, query, and headers together are too long",
    "content": {"text/plain": {"schema": {"type": "string"}}},
}


def document() -> dict[str, Any]:
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(BASE + route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "otel-agenteval",
            "version": __version__,
            "description": "Read turns and their scores, and label turns.",
        },
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}, "basic": {"type": "http", "scheme": "basic"}}
        },
        "security": [{}, {"bearer": []}, {"basic": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    if any("/" in one for one in route.gives):
        content: dict[str, Any] = {media: {"schema": {"type": "string"}} for media in route.gives}
    else:
        known = {name: schema for name, schema in _RESPONSE_KEYS.items() if name in route.gives}
        content = {"application/json": {"schema": {"type": "object", "required": list(route.gives), "properties": known}}}
    found: dict[str, Any] = {
        "summary": route.about,
        "operationId": f"{route.method.lower()}{route.path.replace('/', '_').replace('{', '').replace('}', '')}",
        "parameters": [_parameter(one, "path") for one in route.in_path] + [_parameter(one, "query") for one in route.query],
        "responses": {
            "200": {"description": "Successful response", "content": content},
            **dict.fromkeys(("400", "401", "403", "404", "409", "503"), _PROBLEM),
            "431": _TOO_LONG,
        },
    }
    if route.body is not None:
        schema = {"type": "object", "required": ["turn_id", "label"], "properties": route.body, "additionalProperties": False}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        found["responses"] |= {"413": _PROBLEM, "415": _PROBLEM}
    return found


_EXCERPT: dict[str, Any] = {
    "path": {"type": "string", "description": "path in the turn, such as output or tool_calls[0].result"},
    "place": {"type": "string", "description": "the same path in readable form, with the tool's name"},
    "start": {"type": "integer", "description": "first character in the text at `path`, or in its compact JSON"},
    "end": {"type": "integer"},
    "before": {"type": "string"},
    "found": {"type": "string", "description": "the characters from `start` to `end`, if content is stored and shown"},
    "after": {"type": "string"},
}
_FINDING: dict[str, Any] = {
    "type": "object",
    "required": ["path", "place", "start", "end", "type"],
    "properties": {
        **_EXCERPT,
        "type": {"type": "string"},
        "severity": {"type": "string", "description": ", ".join(SEVERITIES)},
        "compared": {
            "type": "object", "description": "text that the finding was compared with, if content is stored and shown",
            "required": list(_EXCERPT), "properties": _EXCERPT,
        },
    },
}  # fmt: skip
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}
_FACT = {
    "type": "object",
    "required": ["attribute", "value"],
    "properties": {
        "attribute": {"type": "string"},
        "value": {"type": "string", "description": "text or, if it begins with > or ≤, a range of numbers"},
    },
}
_RESPONSE_KEYS: dict[str, dict[str, Any]] = {
    "scores": {"type": "array", "items": {
        "type": "object", "required": ["metric", "evidence"],
        "properties": {"evidence": {"type": "array", "description": "the findings of a score", "items": _FINDING}},
    }},
    "findings": {"type": "array", "description": "facts that are more frequent in failed turns, sorted by the lower end of `interval`, possible effects last", "items": {
        "type": "object", "required": ["facts", "interval", "p_adjusted", "turns", "few", "also", "effect"],
        "properties": {
            "facts": {"type": "array", "items": _FACT, "minItems": 1, "maxItems": 2},
            "failed": {**_SHARE, "description": "share of failed turns that have these facts"},
            "passed": {**_SHARE, "description": "share of passed turns that have these facts"},
            "interval": {"type": "array", "items": {"type": "number"}, "description": "confidence interval of the difference between the shares"},
            "p_adjusted": {**_SHARE, "description": "p-value, corrected for the number of facts"},
            "turns": {"type": "array", "items": {"type": "integer"}, "description": "numbers of failed and passed turns that have these facts"},
            "few": {"type": "boolean", "description": "true if few failed turns have these facts"},
            "also": {"type": "array", "items": _FACT, "description": "other facts that hold for nearly the same turns"},
            "effect": {"type": "boolean", "description": "true if the fact may be an effect of the failure"},
        },
    }},
    "texts": {
        "type": "object", "description": "compact JSON of each non-text value with findings, by path",
        "additionalProperties": {"type": "string"},
    },
}  # fmt: skip


def _parameter(one: Parameter, where: str) -> dict[str, Any]:
    schema: dict[str, Any] = {**_TYPES[one.kind]}
    if one.choices:
        schema = {"type": "string", "enum": list(one.choices)}
    if one.least is not None:
        schema["minimum"] = one.least
    if one.most is not None:
        schema["maximum"] = one.most
    if one.default is not None:
        schema["default"] = one.default
    if one.many:
        schema = {"type": "array", "items": schema, "minItems": int(one.required), "maxItems": MOST_GIVEN}
    return {"name": one.name, "in": where, "description": one.about, "required": one.required, "schema": schema}
