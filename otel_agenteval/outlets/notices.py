"""Notices about scores that need attention, formatted for Slack, Teams, PagerDuty, or other services.

If a metric fails a thousand times, one notice contains the count. Services limit the size of messages, so long texts are shortened.
"""

from __future__ import annotations

import hashlib
import html
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..config.outlets import WebhookOptions
from ..core import jsonio
from ..core.score import Score
from ..evaluation.scored_turn import Root, ScoredTurn
from ..metrics.registry import EPSILON
from .log_events import change_attributes
from .turn_text import one_line

if TYPE_CHECKING:
    from ..statistics.changes import Change

Kind = Literal["gate", "critical", "failed", "error", "floor", "recovered", "change"]
_MOST_EXAMPLES = 3
_MOST_SERIES = 1_000
"""Maximum number of tracked means. Each combination of metric, agent, and service has one mean."""
_PARTS = 12
_MOST_NOTICES = 20
"""Maximum number of notices in a chat message. Chat services limit the length of messages."""
_MOST_CHARS = 300
_SEVERITY = {
    "gate": "critical", "critical": "critical", "failed": "error", "error": "warning", "floor": "error", "recovered": "info", "change": "warning",
}  # fmt: skip
_SIGN = {"gate": "🛑", "critical": "🚨", "failed": "❌", "error": "⚠️", "floor": "📉", "recovered": "✅", "change": "📈"}


@dataclass(frozen=True, slots=True)
class Example:
    turn_id: str
    trace_id: str
    span_id: str
    value: float | None
    explanation: str | None = None


@dataclass(slots=True)
class Notice:
    kind: Kind
    metric: str
    agent: str
    service: str
    count: int
    threshold: float | None = None
    """Threshold of the metric. In a notice about a floor: the floor, which is the worst allowed mean."""
    mean: float | None = None
    """Mean that crossed the floor or, in a notice about a change in scores, the new mean. None in other notices."""
    error_type: str | None = None
    change: Change | None = None
    examples: list[Example] = field(default_factory=list)
    records: int = 1
    """Number of notices that this notice combines, including itself."""

    @property
    def key(self) -> tuple[str, ...]:
        """Key for merging notices. A notice about a crossed floor and a notice about the recovery have the same key."""
        kind = "floor" if self.kind == "recovered" else self.kind
        tenant = self.change.tenant if self.change is not None else None
        return kind, self.metric, self.agent, self.service, *([tenant] if tenant is not None else [])

    @property
    def facts(self) -> tuple[str, ...]:
        """Attribute values that are more frequent in failed turns than in other turns. Only for notices about worse scores."""
        return self.change.facts if self.change is not None else ()

    @property
    def title(self) -> str:
        agent = f" of {self.agent}" if self.agent else ""
        times = "once" if self.count == 1 else f"{self.count:,} times"
        if self.change is not None:
            return self.change.title
        if self.kind == "gate":
            return f"Gate {self.metric}{agent} failed {times}"
        if self.kind == "critical":
            return f"{self.metric}{agent} has a critical finding" + ("" if self.count == 1 else f", {times}")
        if self.kind == "failed":
            return f"{self.metric}{agent} failed {times}"
        if self.kind == "error":
            return f"{self.metric}{agent} couldn't be evaluated {times} ({self.error_type})"
        where = "crossed" if self.kind == "floor" else "is back within"
        return f"{self.metric}{agent} {where} its floor of {self.threshold:g}: mean {self.mean:.3g} of {self.count:,} turns"

    def merged(self, later: Notice) -> Notice:
        records = self.records + later.records
        if later.kind in ("floor", "recovered", "change"):
            return replace(later, records=records)
        examples = (self.examples + later.examples)[:_MOST_EXAMPLES]
        return replace(later, count=self.count + later.count, examples=examples, records=records)

    def to_dict(self) -> dict[str, Any]:
        found = {"title": self.title, **asdict(replace(self, change=None))}
        del found["records"]
        if self.change is not None:
            found["change"] = change_attributes(self.change, "")
        found["examples"] = [{key: value for key, value in one.items() if value not in (None, "")} for one in found["examples"]]
        return {key: value for key, value in found.items() if value not in (None, [], "")}


def notice_of(change: Change, root: Root) -> Notice:
    found, service = change.found, str(root.resource.get("service.name") or "")
    examples = [Example(one.turn_id, one.trace_id, one.span_id, None) for one in found.exemplars]
    return Notice("change", change.metric, change.agent, service, round(found.n), None, found.after, None, change, examples)


@dataclass(slots=True)
class _Mean:
    parts: deque[tuple[int, float, float, int]] = field(default_factory=deque)
    """One tuple per time step: step number, weighted sum of values, sum of weights, and number of turns."""
    is_below: bool = False

    def add(self, step: int, value: float, weight: float) -> tuple[float, int]:
        if self.parts and self.parts[-1][0] == step:
            _, total, weights, turns = self.parts.pop()
            self.parts.append((step, total + value * weight, weights + weight, turns + 1))
        else:
            self.parts.append((step, value * weight, weight, 1))
        while self.parts[0][0] <= step - _PARTS:
            self.parts.popleft()
        weights = sum(part[2] for part in self.parts)
        return sum(part[1] for part in self.parts) / weights, sum(part[3] for part in self.parts)


class Watch:
    """Detector of scores that need a notice, such as failed gates. Not thread-safe.

    ``window`` is the averaging window in seconds. A metric's mean over fewer than ``least`` turns isn't compared with the floor.
    """

    def __init__(self, about: Collection[str], floors: Mapping[str, float], window: float, least: int) -> None:
        self._about = frozenset(about)
        self._floors = floors
        self._step = window / _PARTS
        self._least = least
        self._means: dict[tuple[str, str, str], _Mean] = {}

    def notices(self, scored: ScoredTurn, now: float) -> list[Notice]:
        """Return notices about a turn's redacted scores. ``now`` is the monotonic time in seconds."""
        found = []
        agent, service = scored.turn.agent or "", scored.turn.service or ""
        for score in scored.scores:
            kind = self._kind(score)
            if kind is not None:
                error = score.error_type if kind == "error" else None
                example = _example(scored, score)
                found.append(Notice(kind, score.metric, agent, service, 1, score.threshold, None, error, examples=[example]))
            floor = self._floors.get(score.metric)
            if floor is not None and score.status == "ok" and score.value is not None and scored.new and not score.vacuous:
                notice = self._compared(scored, score, floor, now)
                if notice is not None:
                    found.append(notice)
        return found

    def _kind(self, score: Score) -> Kind | None:
        result = score.summary.outcome
        if result == "error":
            return "error" if "errors" in self._about else None
        if score.severity == "critical" and "critical" in self._about:
            return "critical"
        if result != "fail":
            return None
        if score.policy == "gate" and "gates" in self._about:
            return "gate"
        return "failed" if "failed" in self._about else None

    def _compared(self, scored: ScoredTurn, score: Score, floor: float, now: float) -> Notice | None:
        """Return a notice if this score moves the metric's mean across ``floor`` in either direction. Otherwise, return None."""
        assert score.value is not None  # callers check this
        key = score.metric, scored.turn.agent or "", scored.turn.service or ""
        series = self._means.get(key)
        if series is None:
            if len(self._means) >= _MOST_SERIES:
                return None
            series = self._means[key] = _Mean()
        judged = scored.judged
        weight = 1 / judged.probability if judged is not None and judged.probability > 0 else 1.0
        mean, turns = series.add(int(now // self._step), score.value, weight)
        if turns < self._least:
            return None
        below = mean > floor + EPSILON if score.direction == "down" else mean < floor - EPSILON
        if below == series.is_below:
            return None
        series.is_below = below
        examples = [_example(scored, score)] if below else []
        return Notice("floor" if below else "recovered", *key, turns, floor, mean, examples=examples)


def _example(scored: ScoredTurn, score: Score) -> Example:
    root = scored.root
    return Example(scored.turn.turn_id, f"{root.trace_id:032x}", f"{root.span_id:016x}", score.value, score.explanation)


class Context(NamedTuple):
    options: WebhookOptions
    sender: str
    time: str
    since: float | None = None
    """Monotonic time when the oldest notice started to wait. Retries don't change this time."""


Bodies = list[dict[str, Any]]


def bodies(notices: Sequence[Notice], context: Context) -> Bodies:
    return _FORMATS[context.options.format](notices, context)


def link_of(example: Example, options: WebhookOptions) -> str | None:
    if options.link is None or (not example.trace_id and ("{trace_id}" in options.link or "{span_id}" in options.link)):
        return None
    return options.link.format(trace_id=example.trace_id, span_id=example.span_id, turn_id=example.turn_id)


def _generic(notices: Sequence[Notice], context: Context) -> Bodies:
    found = []
    for notice in notices:
        shown_notice = notice.to_dict()
        for example, shown in zip(notice.examples, shown_notice.get("examples", ()), strict=False):
            link = link_of(example, context.options)
            if link is not None:
                shown["link"] = link
        found.append(shown_notice)
    same = jsonio.dumps([context.sender, context.since, found])  # in each delivery of this message
    message_id = hashlib.sha256(same.encode()).hexdigest()[:32]
    head = {"type": "agenteval.notices", "version": 1, "id": message_id, "time": context.time, "sender": context.sender}
    return [{**head, "notices": found}]


def _slack(notices: Sequence[Notice], context: Context) -> Bodies:
    blocks: list[dict[str, Any]] = []
    escaped = partial(html.escape, quote=False)
    for notice in notices[:_MOST_NOTICES]:
        lines = [f"{_SIGN[notice.kind]} *{escaped(notice.title)}*"]
        lines += [f"• {escaped(one_line(text, _MOST_CHARS))}" for text in notice.facts]
        for example in notice.examples:
            link, short = link_of(example, context.options), example.turn_id[:8]
            where = f"<{link}|{short}>" if link is not None else f"`{short}`"
            lines.append(f"• {where} {escaped(_explanation(example))}".rstrip())
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:2_900]}})
    if len(notices) > _MOST_NOTICES:
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": f"and {len(notices) - _MOST_NOTICES:,} more"}]})
    more = f" and {len(notices) - 1} more" if len(notices) > 1 else ""
    return [{"text": escaped(f"{notices[0].title}{more}"), "blocks": blocks}]


def _teams(notices: Sequence[Notice], context: Context) -> Bodies:
    body: list[dict[str, Any]] = []
    actions: list[dict[str, Any]] = []
    for notice in notices[:_MOST_NOTICES]:
        color = {"recovered": "good", "error": "warning"}.get(notice.kind, "attention")
        body.append(_text_block(f"{_SIGN[notice.kind]} {_markdown(notice.title)}", weight="bolder", color=color))
        body += [_text_block(_markdown(one_line(text, _MOST_CHARS)), isSubtle=True) for text in notice.facts]
        for example in notice.examples:
            body.append(_text_block(f"{example.turn_id[:8]} {_markdown(_explanation(example))}".rstrip(), isSubtle=True))
            link = link_of(example, context.options)
            if link is not None and len(actions) < 6:
                actions.append({"type": "Action.OpenUrl", "title": f"Turn {example.turn_id[:8]}", "url": link})
    if len(notices) > _MOST_NOTICES:
        body.append(_text_block(f"and {len(notices) - _MOST_NOTICES:,} more", isSubtle=True))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard", "version": "1.4", "body": body,
        "actions": actions,
    }  # fmt: skip
    return [{"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}]}]


def _text_block(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True, **style}


def _markdown(text: str) -> str:
    return "".join(f"\\{one}" if one in "\\`*_[]#" else one for one in text)


def _pagerduty(notices: Sequence[Notice], context: Context) -> Bodies:
    found = []
    for notice in notices:
        found_links = ((link_of(example, context.options), example) for example in notice.examples)
        links = [{"href": link, "text": example.turn_id[:8]} for link, example in found_links if link is not None]
        event: dict[str, Any] = {
            "routing_key": context.options.routing_key,
            "event_action": "resolve" if notice.kind == "recovered" else "trigger",
            "dedup_key": hashlib.sha256("\n".join(notice.key).encode()).hexdigest()[:32],
            "payload": {
                "summary": notice.title[:1_024], "source": notice.service or context.sender, "severity": _SEVERITY[notice.kind],
                "component": notice.agent or None, "group": notice.metric, "class": notice.kind, "timestamp": context.time,
                "custom_details": notice.to_dict(),
            },
        }  # fmt: skip
        found.append({**event, "links": links} if links else event)
    return found


def _explanation(example: Example) -> str:
    text = " ".join((example.explanation or "").split())
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…"


_FORMATS: dict[str, Callable[[Sequence[Notice], Context], Bodies]] = {
    "generic": _generic, "slack": _slack, "teams": _teams, "pagerduty": _pagerduty,
}  # fmt: skip
