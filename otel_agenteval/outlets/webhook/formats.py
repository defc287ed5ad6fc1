"""Rendering of notices for each service, within the service's limits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...config.outlets import WebhookOptions
from ..turn_text import one_line
from .notices import Example, Notice

_MOST_NOTICES = 20
"""Notices per chat message. Services would truncate more."""
_MOST_CHARS = 300
"""Characters of an explanation."""
_SEVERITY = {
    "gate": "critical", "critical": "critical", "failed": "error", "error": "warning", "floor": "error", "recovered": "info", "change": "warning",
}  # fmt: skip
_SIGN = {"gate": "🛑", "critical": "🚨", "failed": "❌", "error": "⚠️", "floor": "📉", "recovered": "✅", "change": "📈"}


class Context(NamedTuple):
    options: WebhookOptions
    sender: str
    time: str
    """Time of sending, ISO 8601."""


Bodies = list[dict[str, Any]]
ONE_EACH = frozenset(("pagerduty",))


def bodies(notices: Sequence[Notice], context: Context) -> Bodies:
    return _FORMATS[context.options.format](notices, context)


def link_of(example: Example, options: WebhookOptions) -> str | None:
    if options.link is None:
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
    return [{"type": "agenteval.notices", "version": 1, "time": context.time, "sender": context.sender, "notices": found}]


def _slack(notices: Sequence[Notice], context: Context) -> Bodies:
    blocks: list[dict[str, Any]] = []
    for notice in notices[:_MOST_NOTICES]:
        lines = [f"{_SIGN[notice.kind]} *{_mrkdwn(notice.title)}*"]
        lines += [f"• {_mrkdwn(one_line(text, _MOST_CHARS))}" for text in notice.facts]
        for example in notice.examples:
            link, short = link_of(example, context.options), example.turn_id[:8]
            where = f"<{link}|{short}>" if link is not None else f"`{short}`"
            lines.append(f"• {where} {_mrkdwn(_explanation(example))}".rstrip())
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(lines)[:2_900]}})
    rest = _number_left_out(notices)
    if rest:
        blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": rest}]})
    more = f" and {len(notices) - 1} more" if len(notices) > 1 else ""
    return [{"text": _mrkdwn(f"{notices[0].title}{more}"), "blocks": blocks}]


def _mrkdwn(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


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
    rest = _number_left_out(notices)
    if rest:
        body.append(_text_block(rest, isSubtle=True))
    card = {
        "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
        "type": "AdaptiveCard",
        "version": "1.4",
        "body": body,
        "actions": actions,
    }
    return [{"type": "message", "attachments": [{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}]}]


def _text_block(text: str, **style: Any) -> dict[str, Any]:
    return {"type": "TextBlock", "text": text, "wrap": True, **style}


def _markdown(text: str) -> str:
    """Escape Markdown for an adaptive card."""
    return "".join(f"\\{one}" if one in "\\`*_[]#" else one for one in text)


def _pagerduty(notices: Sequence[Notice], context: Context) -> Bodies:
    found = []
    for notice in notices:
        links = [
            {"href": link, "text": example.turn_id[:8]}
            for example in notice.examples
            if (link := link_of(example, context.options)) is not None
        ]
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


def _number_left_out(notices: Sequence[Notice]) -> str:
    left = len(notices) - _MOST_NOTICES
    return f"and {left:,} more" if left > 0 else ""


def _explanation(example: Example) -> str:
    text = " ".join((example.explanation or "").split())
    return text if len(text) <= _MOST_CHARS else f"{text[: _MOST_CHARS - 1]}…"


_FORMATS: dict[str, Callable[[Sequence[Notice], Context], Bodies]] = {
    "generic": _generic, "slack": _slack, "teams": _teams, "pagerduty": _pagerduty,
}  # fmt: skip
