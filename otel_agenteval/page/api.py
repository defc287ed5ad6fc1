"""API of the web UI, independent of the HTTP server."""

from __future__ import annotations

import base64
import csv
import io
import itertools
import math
import statistics
import urllib.parse
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..core import jsonio
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import AgentEvalError, ConfigError, JudgeError, StoreError
from ..core.finding import value_at, with_evidence
from ..core.score import pass_rate
from ..core.tenancy import qualified
from ..core.turn import Turn
from ..judging.models.base import JudgeModel
from ..judging.models.prompt import SYSTEM, prompt_of
from ..metrics.bound_metric import get_metric
from ..metrics.descriptions import described, headline, value_of
from ..metrics.question import Question
from ..metrics.registry import catalog
from ..outlets.store.export import for_csv
from ..outlets.store.reader import NO_CAUSES, fault_of_row
from ..outlets.store.statements import HOUR
from ..outlets.store.views import Cursor, Filter, Order, SumCell, Views
from ..outlets.turn_text import one_line
from ..report.differences import as_data, differences_of, differences_of_group
from ..report.failure_modes import as_data as modes_as_data
from ..report.failure_modes import modes_of
from ..report.mode_cases import references_of, stored_cases
from ..statistics.groups import Compared, Difference, adjusted_ps, compare_values, difference
from .labels import Labels
from .parameters import Problem, facts_in, filter_of

if TYPE_CHECKING:
    from collections.abc import Iterator

Role = Literal["read", "label"]
_BEGINNING = 240
_MOST_VALUES = 200
_CANDIDATES = 1_000
"""Number of latest turns from which the next turn to label is chosen."""
_FAILED_AT_ONCE = 100
"""Number of failed turns to read at a time. The first batch usually provides enough test cases."""
_LOW = 0.1
"""If less than this share of a judge budget remains, the page shows a warning."""
_WITHOUT_TEXTS = {"turn_id", "conversation_id", "service", "agent", "start", "duration_s", "cost_usd", "llm_calls", "references"}
"""Fields of a turn that a file of scores contains. Such a file doesn't contain the turn's texts."""
_SCORE_FACTS = ("kind", "unit", "direction", "type", "threshold", "policy", "version")


@dataclass(frozen=True, slots=True)
class Reader:
    role: Role = "label"
    tenant: str | None = None
    """Tenant whose turns the user can see. None if the user can see the turns of all tenants."""
    name: str = "someone"


@dataclass(frozen=True, slots=True)
class Options:
    content: bool = False
    """True to show turn content, if the store contains content."""
    trace_url: str | None = None
    """URL template for a trace in the user's tracing backend. Contains ``{trace_id}``."""
    labels: str | None = None
    """Path of the file for labels. None disables labeling."""
    compared: tuple[str, str] | None = None


@dataclass(slots=True)
class Request:
    params: dict[str, Any]
    reader: Reader
    body: Any = None


class FileResponse(NamedTuple):
    body: bytes
    content_type: str
    filename: str | None = None


@dataclass(slots=True)
class Api:
    """Handlers of the API routes in :data:`.routes.ROUTES`.

    ``status`` returns the sidecar's status. Without a sidecar, ``status`` is None. ``outcomes`` returns a turn's outcomes from a
    running engine. ``parameters`` returns a metric's configured parameters.
    """

    path: str
    options: Options = Options()
    status: Callable[[], dict[str, Any]] | None = None
    outcomes: Callable[[str], dict[str, str] | None] = lambda _: None
    parameters: Callable[[str], Mapping[str, Any]] = lambda _: {}
    clock: Clock = SYSTEM_CLOCK
    labels: Labels | None = field(init=False)

    def __post_init__(self) -> None:
        self.labels = Labels(self.options.labels) if self.options.labels is not None else None

    @property
    def now(self) -> float:
        return self.clock.time_ns() / 1e9

    @contextmanager
    def views(self) -> Iterator[Views]:
        """Open the store for one request. If the store is missing or unreadable, raise Problem."""
        try:
            views = Views(self.path)
        except StoreError as error:
            raise Problem(503, f"can't read the store: {error}") from None
        with views:
            yield views

    # --- turns

    def turns(self, request: Request) -> dict[str, Any]:
        params = request.params
        with self.views() as views:
            found = views.listed(self.filter(request), params["limit"], _cursor_in(params["cursor"]), params["order"])
            turns = self._shortened(views, found.turns)
        return {
            "turns": turns,
            "next": _text_of(found.end),
            "searching": found.end is not None and len(found.turns) < params["limit"],
        }

    def count(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            turns, complete = views.counted(self.filter(request))
        return {"turns": turns, "complete": complete}

    def conversations(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            page = views.listed(self.filter(request), request.params["limit"], _cursor_in(request.params["cursor"]))
            latest = {turn["conversation_id"]: turn["turn_id"] for turn in reversed(page.turns) if turn["conversation_id"]}
            found, texts = views.conversations([*latest], request.reader.tenant), self._beginnings(views, [*latest.values()])
        rows = [{**one, **texts.get(latest[one["id"]], {})} for one in found]
        return {"conversations": rows, "next": _text_of(page.end)}

    def turn(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            turn = self._stored_turn(views, request)
            turn_id, fault = turn["turn_id"], fault_of_row(turn)
            kept = turn.pop("content", None)
            content = kept if self.options.content else None
            rows = views.scores(turn_id)
            scores = with_evidence(rows, content)
            outcomes = {**(views.why(turn_id) or {}), **(self.outcomes(turn_id) or {})}
            conversation = self._conversation(views, turn, request)
        url = self.options.trace_url
        return {
            "turn": turn,
            "content": content,
            "content_kept": kept is not None and not kept.keys() <= _WITHOUT_TEXTS,
            "scores": scores,
            "first_fault": None if fault is None else fault._asdict(),
            "texts": _texts(content, scores),
            "outcomes": outcomes,
            "conversation": conversation,
            "trace_url": url and url.replace("{trace_id}", urllib.parse.quote(turn["trace_id"] or "", safe="")),
            "labels": [label for label in self.labels.all() if label["turn_id"] == turn_id] if self.labels is not None else [],
        }

    def why(self, request: Request) -> dict[str, Any]:
        found = self.turn(request)
        return {"turn_id": found["turn"]["turn_id"], "metrics": found["outcomes"], "scores": found["scores"]}

    def case(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            content = self._stored_turn(views, request).get("content")
        if content is None or not self.options.content:
            raise Problem(
                404, "the content of this turn isn't stored or isn't shown. Set outlets.store.content and serve.page.content"
            )
        return dict(content)

    def question(self, request: Request) -> dict[str, Any]:
        """Return a metric's stored judge calls on a turn or, without stored calls, the first prompt that the metric would send."""
        metric = request.params["metric"]
        content = self.case(request)
        with self.views() as views:
            scores = views.scores(self._stored_turn(views, request)["turn_id"])
            score = next((score for score in scores if score["metric"] == metric), None)
            sent = views.questions(score["result_id"]) if score is not None else []
        if score is None or not sent:
            return {**_question_about(content, metric, self.parameters(metric)), "sent": []}
        stage, text = sent[0]["stage"], sent[0]["question"]
        return {"metric": metric, "version": score["version"], "stage": stage, "system": SYSTEM, "question": text, "sent": sent}

    def neighbours(self, request: Request) -> dict[str, Any]:
        wanted = self.filter(request)
        with self.views() as views:
            turn = self._stored_turn(views, request)
            at = Cursor(turn["start"] if turn["start"] is not None else turn["stored_at"], turn["turn_id"])
            ways: tuple[tuple[str, Order], ...] = (("older", "newest"), ("newer", "oldest"))
            found = {name: views.listed(wanted, 1, at, order).turns for name, order in ways}
        return {name: turns[0]["turn_id"] if turns else None for name, turns in found.items()}

    def export(self, request: Request) -> FileResponse:
        form, limit = request.params["format"], request.params["limit"]
        with self.views() as views:
            rows = list(itertools.islice(views.all_listed(self.filter(request), limit), limit))
            scores = views.scores_of([turn["turn_id"] for turn in rows]) if form != "dataset" else {}
            for turn in rows:
                content = (views.turn(turn["turn_id"]) or {}).get("content") if self.options.content else None
                turn |= {"content": content, "scores": scores.get(turn["turn_id"], [])}
        if form == "csv":
            return FileResponse(_as_csv(rows), "text/csv; charset=utf-8", "turns.csv")
        if form == "dataset":
            asked = [(turn["turn_id"], (turn["content"] or {}).get("input")) for turn in rows]
            rows = [{"case_id": turn_id, "input": text} for turn_id, text in asked if text]
            if not rows:
                raise Problem(
                    404,
                    "the input of these turns isn't stored or isn't shown. Set outlets.store.content and serve.page.content",
                )
        return _json_lines(rows, "cases.jsonl" if form == "dataset" else "turns.jsonl")

    def lately(self, request: Request, since: float | None) -> tuple[float, list[dict[str, Any]]]:
        """Return the next call's ``since``, and the turns stored or scored after ``since``. Without ``since``, return no turns."""
        with self.views() as views:
            if since is None:
                return views.last_stored(), []
            turns = self._shortened(views, views.changed_since(since, self.filter(request)))
        return max([since, *(turn["stored_at"] for turn in turns)]), turns

    # --- sums

    def facets(self, request: Request) -> dict[str, Any]:
        wanted = self.filter(request)
        with self.views() as views:
            since, until = views.extent(request.reader.tenant) or (None, None)
            releases = [version for version, _ in views.releases(Filter(tenant=request.reader.tenant))[-2:]]
            metrics = views.metrics_of()
            if request.reader.tenant is not None:
                own = {cell.metric for cell in views.cells(Filter(tenant=request.reader.tenant))}
                metrics = {name: facts for name, facts in metrics.items() if name in own}
            return {
                **{
                    f"{by}s": [{"name": name, "turns": n} for name, n in views.groups_of(by, wanted, _MOST_VALUES).items()]
                    for by in ("agent", "service", "version", "model", "judge")
                },
                "metrics": [{"name": name, **facts} for name, facts in metrics.items()],
                "since": since,
                "until": until,
                "content": self.options.content,
                "causes": views.keeps_causes(),
                "users": views.knows_users(),
                "labels": self.labels is not None and request.reader.role == "label",
                "tenant": request.reader.tenant,
                **self._warnings(request.reader),
                "trace_url": self.options.trace_url,
                "compared": self.options.compared or (releases if len(releases) == 2 else None),
            }

    def _warnings(self, reader: Reader) -> dict[str, Any]:
        status = self.status() if self.status is not None and reader.tenant is None else {}
        budgets = status.get("budgets", [])
        return {
            "budget_usd": min((one["remaining"] for one in budgets if one["unit"] == "usd"), default=None),
            "low_budgets": [one for one in budgets if one["remaining"] < _LOW * one["limit"]],
            "unread_traces": sum(one["traces"] for one in status.get("unread_traces", [])),
        }

    def estimates(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            facts = views.metrics_of()
            cells = views.cells(self.filter(request), request.params["by"])
            unsummed = len(views.stale())
        turns = {cell.group: cell.turns for cell in cells if not cell.metric}
        estimates = [_estimated(cell, turns.get(cell.group, 0), facts.get(cell.metric, {})) for cell in cells if cell.metric]
        verdicts: dict[str | None, list[int]] = {}
        for cell in cells:
            passed, failed = verdicts.setdefault(cell.group, [0, 0])
            verdicts[cell.group] = [passed + cell.passed, failed + cell.failed]
        groups = [_group(cell, cell.group) for cell in cells if not cell.metric]
        groups.sort(key=lambda one: _rank_of_badness(pass_rate(*verdicts[one["group"]]), one["errors"] / one["turns"]))
        estimates.sort(key=lambda one: (*_rank_of_badness(one["pass_rate"], one["errors"]), one["metric"], one["group"] or ""))
        return {"groups": groups, "estimates": estimates, "hours_not_summed": unsummed}  # the worst first

    def headline(self, request: Request) -> dict[str, Any]:
        wanted = self.filter(request)
        with self.views() as views:
            rows = views.latest_of(wanted, _READ)
            causes = wanted.metric is not None or views.keeps_causes()
        ends = [row["at"] for row in (*rows[-1:], *rows[:1])] or [0.0, 0.0]
        middle = sum(ends) / 2
        halves = [row for row in rows if row["at"] < middle], [row for row in rows if row["at"] >= middle]
        names = ("all", "before", "after")
        return {
            "since": ends[0], "middle": middle, "until": ends[1], "is_all": len(rows) < _READ,
            **{name: _summary(some, causes) for name, some in zip(names, (rows, *halves), strict=True)},
        }  # fmt: skip

    def series(self, request: Request) -> dict[str, Any]:
        params = request.params
        wanted = self.filter(request)
        with self.views() as views:
            extent = views.extent(request.reader.tenant)
            low = wanted.since if wanted.since is not None else extent[0] if extent is not None else self.now
            high = wanted.until if wanted.until is not None else extent[1] if extent is not None else self.now
            turns = sum(cell.turns for cell in views.cells(replace(wanted, metric="")))
            groups = len(views.groups_of(params["by"], wanted, _LINES)) or 1
            step = params["step"] * HOUR if params["step"] else _step_for(high - low, turns, groups)
            cells = views.cells(wanted, params["by"], step)
            changes = [
                change
                for change in _changes(views, low if extent is not None else wanted.since or 0.0, request.reader)
                if wanted.metric in (None, change["metric"]) and (not wanted.agents or change["agent"] in wanted.agents)
            ]
            releases = [{"version": version, "at": at} for version, at in views.releases(wanted)[1:]]
            units = {metric: facts["unit"] for metric, facts in views.metrics_of().items()}
        found: dict[tuple[str | None, str], list[dict[str, Any]]] = {}
        for cell in cells:
            found.setdefault((cell.group, cell.metric), []).append(_point(cell, units.get(cell.metric)))
        return {
            "step_s": step, "since": low, "until": high, "changes": changes, "releases": releases,
            "series": [{"group": group, "metric": metric, "points": points} for (group, metric), points in found.items()],
        }  # fmt: skip

    def changes(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            return {"changes": _changes(views, request.params["since"], request.reader)}

    def compare(self, request: Request) -> dict[str, Any]:
        by = request.params["by"]
        with self.views() as views:
            facts = views.metrics_of()
            wanted = self.filter(request)
            before, after = request.params["before"], request.params["after"]
            every = views.cells(wanted, by, groups=(before, after))
            cells = {(cell.group, cell.metric): cell for cell in every if cell.group in (before, after)}
            for name in (before, after):
                if all(group != name for group, _ in cells):
                    known = ", ".join(views.groups_of(by, wanted)) or "none"
                    raise Problem(404, f"{by}: no turn has the value {name!r}; known values: {known}")
            if sum(cell.scored for cell in cells.values()) <= _COMPARED:
                compared = compare_values(views.group_values(by, (before, after), wanted), before, after)[0]
            else:
                compared = _of_sums(cells, before, after, facts)
        by_metric: dict[str, Compared] = {}
        for one in compared:
            by_metric.setdefault(one.metric, one)  # the mean, or the pass rate of a metric without a mean
        turns = {cell.group: cell.turns for cell in cells.values() if not cell.metric}
        lines = [
            {
                "metric": metric, **facts.get(metric, {}),
                **_line((cells.get((before, metric)), cells.get((after, metric))), turns, by_metric.get(metric), facts.get(metric, {})),
            }
            for metric in sorted({metric for _, metric in cells if metric})
        ]  # fmt: skip
        others = sum(cell.turns for cell in every if not cell.metric and cell.group not in (before, after))
        sides = {side: _group(cells.get((name, "")), name) for side, name in (("before", before), ("after", after))}
        return {"by": by, **sides, "others": others, "lines": lines}

    def differences(self, request: Request) -> dict[str, Any]:
        wanted = self.filter(request)
        with self.views() as views:
            rows = views.filtered_verdicts(wanted)
            _require_causes(views, rows)
            if not rows and any(cell.passed or cell.failed for cell in views.cells(wanted)):
                raise Problem(404, "these turns have no attributes to compare. Open the recorded traces or a score store")
        return as_data([differences_of(request.params["metric"], rows)])[0]

    def group_differences(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            rows = views.filtered_facts(self.filter(request))
            _require_causes(views, rows)
        conditions = facts_in(request.params["group"], "group")
        try:
            return as_data([differences_of_group(rows, conditions, "group")])[0]
        except ConfigError as error:  # no turn has the fact
            raise Problem(404, str(error)) from None

    def failure_modes(self, request: Request) -> dict[str, Any]:
        with self.views() as views:
            found = views.filtered_modes(self.filter(request), request.params["by"])
            _require_causes(views, found.modes)
        return {"modes": modes_as_data(modes_of(found)), "turns": sum(found.totals), "middle": found.middle}

    def mode_cases(self, request: Request) -> FileResponse:
        wanted = self.filter(request)
        if not self.options.content:
            raise Problem(404, "content isn't shown. Set serve.page.content")
        with self.views() as views:
            listed = views.all_listed(wanted, _FAILED_AT_ONCE)
            turns = (turn for one in listed if (turn := views.turn(one["turn_id"])) is not None)
            references = references_of(self._labels_of(request)) if self.labels is not None else {}
            cases = stored_cases(views, turns, request.params["limit"], self.parameters, references)
        if not cases:
            raise Problem(
                404,
                "no turn of this failure mode has a stored input (outlets.store.content) and a metric that can be evaluated again",
            )
        return _json_lines(cases, "cases.jsonl")

    def cases(self, request: Request) -> dict[str, Any]:
        params = request.params
        with self.views() as views:
            pairs = views.pairs(
                params["by"], params["before"], params["after"], self.filter(request), params["limit"], params["cursor"] or ""
            )
            ids = [turn_id for _, *both in pairs for turn_id in both]
            scores = views.scores_of(ids) if ids else {}
            texts = self._beginnings(views, ids)
        turns = {turn_id: {"turn_id": turn_id, **texts.get(turn_id, {})} for turn_id in ids}
        return {
            "cases": [
                {"case": case, "before": turns[one], "after": turns[other], "differences": _differences(scores.get(one, []), scores.get(other, []))}
                for case, one, other in pairs
            ],
            "next": pairs[-1][0] if len(pairs) == params["limit"] else None,
        }  # fmt: skip

    # --- metrics, health, labels

    def metrics(self, request: Request) -> dict[str, Any]:
        return {
            "metrics": [
                {**described(metric), "headline": headline(metric), "meaning": value_of(metric)}
                for metric in sorted(catalog(), key=lambda one: (one.family, one.name))
            ]
        }

    def health(self, request: Request) -> dict[str, Any]:
        if request.reader.tenant is not None:
            raise Problem(403, "health: not available to tenants, which can read only their own turns")
        with self.views() as views:
            since, until = views.extent() or (None, None)
            turns = sum(cell.turns for cell in views.cells(Filter()) if not cell.metric)
            unsummed = len(views.stale())
        return {
            "sidecar": self.status() if self.status is not None else None,
            "store": {"turns": turns, "since": since, "until": until, "hours_not_summed": unsummed},
        }

    def labelled(self, request: Request) -> dict[str, Any]:
        return {"labels": self._labels_of(request)}

    def _labels_of(self, request: Request) -> list[dict[str, Any]]:
        mine = qualified(request.reader.tenant, "") if request.reader.tenant is not None else ""
        return [label for label in self._labels(request).all() if str(label["turn_id"]).startswith(mine)]

    def label(self, request: Request) -> dict[str, Any]:
        labels = self._labels(request)
        if request.reader.role != "label":
            raise Problem(403, "this token is read-only")
        turn_id = request.body.get("turn_id") if isinstance(request.body, dict) else None
        if isinstance(turn_id, str) and turn_id:
            with self.views() as views:
                self._stored_turn(views, Request({"turn_id": turn_id}, request.reader))
        return {"label": labels.add(request.body, request.reader.name, self.now)}

    def next_to_label(self, request: Request) -> dict[str, Any]:
        """Return an unlabeled turn's ID (or None), and the number of labeled turns. A repeated request usually gets the same turn."""
        labelled = {label["turn_id"] for label in self._labels_of(request)}
        wanted, doubts = self.filter(request), dict[str, tuple[bool, float]]()
        with self.views() as views:
            turns = [turn["turn_id"] for turn in views.listed(wanted, _CANDIDATES).turns if turn["turn_id"] not in labelled]
            if request.params["choice"] == "random":
                found = min(turns, key=lambda one: zlib.crc32(f"{one} {request.reader.name}".encode()), default=None)
            else:
                thresholds = {name: facts["threshold"] for name, facts in views.metrics_of().items()}
                for turn_id, scores in views.scores_of(turns).items():
                    for score in scores:
                        if (
                            score["passed"] is not None
                            and score["value"] is not None
                            and wanted.metric in (None, score["metric"])
                        ):
                            threshold = thresholds.get(score["metric"])
                            doubt = score["kind"] != "llm", abs(score["value"] - (0.5 if threshold is None else threshold))
                            doubts[turn_id] = min(doubt, doubts.get(turn_id, doubt))
                found = min(doubts, key=lambda one: doubts[one], default=None)
        return {"turn_id": found, "labelled": len(labelled)}

    def _labels(self, request: Request) -> Labels:
        if self.labels is None:
            raise Problem(404, "no file for labels is configured. Set serve.page.labels or ui --labels")
        return self.labels

    # --- helpers

    def filter(self, request: Request) -> Filter:
        """Return a request's filter. For an invalid condition, or for a search in content that isn't shown, raise Problem."""
        wanted = filter_of(request.params, request.reader.tenant)
        if wanted.text is not None and not self.options.content:
            raise Problem(403, "text: content isn't shown, so it can't be searched. Set serve.page.content")
        return wanted

    def _stored_turn(self, views: Views, request: Request) -> dict[str, Any]:
        """Return a turn by ID or unique prefix. If the ID is ambiguous, unknown, or another tenant's, raise Problem."""
        short = request.params["turn_id"]
        tenant = request.reader.tenant
        if tenant is not None and not short.startswith(qualified(tenant, "")):
            raise Problem(404, "turn not found")
        try:
            turn_id = views.find(short)
        except StoreError as error:
            raise Problem(409, str(error)) from None
        turn = views.turn(turn_id) if turn_id is not None else None
        if turn is None:
            raise Problem(404, "turn not found")
        return turn

    def _conversation(self, views: Views, turn: Mapping[str, Any], request: Request) -> dict[str, Any] | None:
        conversation = turn["conversation_id"]
        if conversation is None:
            return None
        found = views.listed(Filter(conversation=conversation, tenant=request.reader.tenant), 500, order="oldest").turns
        scores = views.scores_of([one["turn_id"] for one in found])
        return {
            "id": conversation,
            "turns": [
                {
                    "turn_id": one["turn_id"], "at": one["at"],
                    "failed": [
                        score["metric"] for score in scores.get(one["turn_id"], [])
                        if score["status"] == "error" or (score["passed"] is False and score["direction"] != "neutral")
                    ],
                }
                for one in found
            ],
        }  # fmt: skip

    def _shortened(self, views: Views, turns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        ids = [turn["turn_id"] for turn in turns]
        scores, texts = views.scores_of(ids), self._beginnings(views, ids)
        return [{**turn, **texts.get(turn["turn_id"], {}), "scores": scores.get(turn["turn_id"], [])} for turn in turns]

    def _beginnings(self, views: Views, turn_ids: list[str]) -> dict[str, dict[str, str | None]]:
        if not self.options.content:
            return {}

        def short(text: str | None) -> str | None:
            return one_line(text, _BEGINNING) if text else None

        texts = views.texts_of(turn_ids, _BEGINNING)
        return {turn_id: {"asked": short(asked), "answered": short(answered)} for turn_id, asked, answered in texts}


# --- forms -----------------------------------------------------------------------------------------------------------


def _cursor_in(text: str | None) -> Cursor | None:
    if text is None:
        return None
    try:
        at, _, turn_id = base64.urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4)).decode().partition(" ")
        if turn_id and math.isfinite(start := float.fromhex(at)):
            return Cursor(start, turn_id)
    except (ValueError, OverflowError):
        pass
    raise Problem(400, "cursor: must be the value of `next` from the previous page")


def _text_of(cursor: Cursor | None) -> str | None:
    if cursor is None:
        return None
    return base64.urlsafe_b64encode(f"{float(cursor.at).hex()} {cursor.turn_id}".encode()).decode().rstrip("=")


def _texts(content: Mapping[str, Any] | None, scores: list[dict[str, Any]]) -> dict[str, str]:
    """Map the path of each non-text value with findings to the value's compact JSON, to which the findings' positions refer."""
    places = [place for score in scores for one in score["evidence"] for place in (one, one.get("compared")) if place]
    values = {place["path"]: value_at(content, place["path"]) for place in places if "found" in place}
    return {path: jsonio.text_of(value) for path, value in values.items() if not isinstance(value, str)}


def _changes(views: Views, since: float, reader: Reader) -> list[dict[str, Any]]:
    return [change for change in views.changes(since) if reader.tenant in (None, change["tenant"])]


def _require_causes(views: Views, found: Sized) -> None:
    """If ``found`` is empty because ``outlets.store.causes`` is off, raise Problem."""
    if not found and not views.keeps_causes():
        raise Problem(404, NO_CAUSES)


def _differences(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> list[dict[str, Any]]:
    later = {score["metric"]: score for score in after}
    found = []
    for score in before:
        other = later.get(score["metric"])
        if other is not None and any(other[name] != score[name] for name in ("value", "passed", "status")):
            both = score["value"] is not None and other["value"] is not None
            found.append({
                "metric": score["metric"], "unit": score["unit"], "direction": score["direction"], "before": score["value"], "after": other["value"],
                "passed_before": score["passed"], "passed_after": other["passed"], "difference": other["value"] - score["value"] if both else None,
            })  # fmt: skip
    return found


def _rank_of_badness(passed: float | None, errors: float) -> tuple[float, float]:
    return 2.0 if passed is None else passed, -errors


def _summary(rows: Sequence[Mapping[str, Any]], causes: bool) -> dict[str, Any]:
    """Return the number of turns, the share of failed turns, the duration's median and 95th percentile, and the mean cost."""
    durations = [row["duration_s"] for row in rows if row["duration_s"] is not None]
    costs = [row["cost_usd"] for row in rows if row["cost_usd"] is not None]
    parts = (
        statistics.quantiles(durations * 2 if len(durations) == 1 else durations, n=20, method="inclusive") if durations else []
    )
    p50, p95 = (parts[9], parts[18]) if parts else (None, None)
    return {
        "turns": len(rows), "failed": sum(row["failed"] for row in rows) / len(rows) if rows and causes else None,
        "p50_s": p50, "p95_s": p95, "cost_usd": math.fsum(costs) / len(costs) if costs else None,
    }  # fmt: skip


def _group(cell: SumCell | None, name: str | None) -> dict[str, Any]:
    if cell is None:
        return {"group": name, "turns": 0}
    return {"group": name, "turns": cell.turns, "errors": cell.errors, **_usage(cell)}


def _usage(cell: SumCell) -> dict[str, Any]:
    mean = cell.duration_s / cell.timed if cell.timed else None
    return {**_cost(cell), "cost_estimated": cell.estimated > 0, "tokens": cell.tokens or None, "duration_s": mean}


def _cost(cell: SumCell) -> dict[str, Any]:
    return {"cost_usd": float(f"{cell.cost_usd:.12g}") if cell.priced else None, "priced": cell.priced}


def _of_sums(
    cells: Mapping[tuple[str | None, str], SumCell], before: str, after: str, facts: Mapping[str, Mapping[str, Any]]
) -> list[Compared]:
    """Compare two groups' scores from precomputed sums, because reading all scores would take too long."""
    found: dict[str, Difference] = {}
    for (group, metric), cell in cells.items():
        other = cells.get((after, metric)) if group == before else None
        first, second = (
            one.estimate(facts.get(metric, {}).get("unit")) if metric and one is not None else None for one in (cell, other)
        )
        if first is not None and second is not None:
            found[metric] = difference(first, second)
    adjusted = adjusted_ps([(one.p, one.varies) for one in found.values()])
    return [Compared(metric, "mean", one, p) for (metric, one), p in zip(found.items(), adjusted, strict=True)]


def _line(
    cells: Iterable[SumCell | None], turns: Mapping[str | None, int], found: Compared | None, facts: Mapping[str, Any]
) -> dict[str, Any]:
    line: dict[str, Any] = {
        side: None if cell is None else _estimated(cell, turns.get(cell.group, 0), facts)
        for side, cell in zip(("before", "after"), cells, strict=True)
    }
    if found is None:
        return {**line, "difference": None}
    of = found.difference
    line["before"] |= of.before._asdict()
    line["after"] |= of.after._asdict()
    line["difference"] = {
        "size": of.size, "low": of.interval[0], "high": of.interval[1], "p": found.adjusted, "detectable": of.detectable,
        "pairs": of.turns[0] if of.paired else None,
    }  # fmt: skip
    return line


def _estimated(cell: SumCell, turns: int, facts: Mapping[str, Any]) -> dict[str, Any]:
    estimate = cell.estimate(facts.get("unit"))
    return {
        "group": cell.group, "metric": cell.metric, **{name: facts.get(name) for name in _SCORE_FACTS if facts},
        "turns": turns, "scored": cell.scored, "passed": cell.passed, "failed": cell.failed, "failed_turns": cell.wv - cell.wp, "critical": cell.critical, "errors": cell.errors, **_cost(cell), "pass_rate": pass_rate(cell.wp, cell.wv - cell.wp),
        **(dict(estimate._asdict()) if estimate is not None else dict.fromkeys(("mean", "low", "high", "n_eff"))),
    }  # fmt: skip


def _point(cell: SumCell, unit: str | None) -> dict[str, Any]:
    found = {"at": cell.at, "turns": cell.turns, "scored": cell.scored, "failed": cell.failed, "errors": cell.errors}
    if not cell.metric:
        return {**found, **_usage(cell)}
    estimate = cell.estimate(unit)
    return {**found, **{name: None if estimate is None else getattr(estimate, name) for name in ("mean", "low", "high")}}


_COMPARED = 50_000
"""Maximum number of scores that are compared individually. With more scores, only the sums of the groups are compared."""
_STEPS = (60, 120, 300, 600, 900, 1_800, *(hours * HOUR for hours in (1, 2, 3, 6, 12, 24, 48, 168, 336, 720)))
_POINTS = 45
_LINES = 6
_PER_POINT = 20
"""Target number of turns per point in a chart. A mean over fewer turns is imprecise."""
_READ = 20_000
"""Maximum number of turns in the summary of :meth:`Api.headline`, and in a chart with time steps of less than an hour."""


def _step_for(seconds: float, turns: int, groups: int) -> int:
    """Return a chart's smallest time step, in seconds, with at most 45 points and about 20 turns per point and group."""
    points = min(_POINTS, max(4, turns // (_PER_POINT * groups)))
    least = 0 if turns <= _READ else HOUR
    return next((step for step in _STEPS if step >= least and seconds / step <= points), _STEPS[-1])


_COLUMNS = (
    "turn_id", "at", "agent", "service", "service_version", "model", "conversation_id", "duration_s", "cost_usd", "cost_estimated", "input_tokens",
    "output_tokens", "error",
)  # fmt: skip


def _json_lines(rows: list[dict[str, Any]], filename: str) -> FileResponse:
    return FileResponse("".join(jsonio.dumps(row) + "\n" for row in rows).encode(), "application/x-ndjson", filename)


def _as_csv(rows: list[dict[str, Any]]) -> bytes:
    metrics = sorted({score["metric"] for row in rows for score in row["scores"]})
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow((*_COLUMNS, *map(for_csv, metrics)))
    for row in rows:
        values = {score["metric"]: score["value"] for score in row["scores"]}
        table.writerow([for_csv(row.get(name)) for name in _COLUMNS] + [for_csv(values.get(name)) for name in metrics])
    return out.getvalue().encode()


# --- the prompt of a judged metric -----------------------------------------------------------------------------------


class _PromptRecorder(JudgeModel):
    """Judge that records the first prompt and never answers."""

    model = "nobody"

    def __init__(self) -> None:
        self.question: str | None = None
        self.stage: str | None = None

    def answer(self, question: Question) -> dict[str, Any]:
        if self.question is None:
            self.question, self.stage = prompt_of(question).message.text, question.stage
        raise JudgeError("this judge only records prompts")


def _question_about(content: Mapping[str, Any], metric: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first prompt that a judged metric would send about a turn (``turn.v1``). Raises Problem for an unknown metric,
    for invalid content, or if the metric doesn't call the judge for this turn.
    """
    try:
        bound = get_metric(metric, **parameters)
        turn = Turn.from_dict(dict(content))
    except AgentEvalError as error:
        raise Problem(404, str(error)) from None
    judge = _PromptRecorder()
    score = bound.evaluate(turn, judge=judge)
    if judge.question is None:
        raise Problem(
            404,
            f"{metric}: doesn't call the judge for this turn: {score.status} {score.detail.get('reason', score.error_type or '')}",
        )
    return {"metric": metric, "version": bound.metric.version, "stage": judge.stage, "system": SYSTEM, "question": judge.question}
