"""Recordings with hostile values, as an instrumentation, a proxy or an attacker may put them into spans.

A case depends only on a recording and a number, so that failures can be repeated.
"""

from __future__ import annotations

import copy
import json
import random
import tarfile
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

from otel_agenteval.spans.writing import value_as_json
from tests.support.recordings import CORPUS

_MOST_SPANS = 40
"""Maximum number of spans of a case before it is mutated. More spans would allow fewer cases in the same time."""
_MOST_REPEATS = 120


class Item(NamedTuple):
    """A span or log record as OTLP/JSON, with its resource and scope."""

    resource: list[Any]
    scope: str
    is_span: bool
    value: dict[str, Any]

    @property
    def trace(self) -> str:
        return str(self.value.get("traceId"))

    @property
    def attributes(self) -> dict[str, Any]:
        """Return its attributes as Python values, with tuples for sequences."""
        found = {}
        held = self.value.get("attributes")
        for pair in held if isinstance(held, list) else ():
            if isinstance(pair, dict):
                value = _from_otlp(pair.get("value"))
                found[str(pair.get("key"))] = tuple(value) if isinstance(value, list) else value
        return found

    def message(self) -> dict[str, Any]:
        """Return a request that contains only this item."""
        kinds = ("resourceSpans", "scopeSpans", "spans") if self.is_span else ("resourceLogs", "scopeLogs", "logRecords")
        scopes = [{"scope": {"name": self.scope}, kinds[2]: [self.value]}]
        return {kinds[0]: [{"resource": {"attributes": self.resource}, kinds[1]: scopes}]}


def items_of(line: bytes | str) -> Iterator[Item]:
    message = json.loads(line)
    for is_span, groups, scopes, items in (
        (True, "resourceSpans", "scopeSpans", "spans"),
        (False, "resourceLogs", "scopeLogs", "logRecords"),
    ):
        for group in message.get(groups, ()):
            for scope in group.get(scopes, ()):
                name = scope.get("scope", {}).get("name", "")
                for item in scope.get(items, ()):
                    yield Item(group.get("resource", {}).get("attributes", []), name, is_span, item)


@cache
def recordings() -> dict[str, list[bytes]]:
    """Return the lines of every recording, including its log records."""
    found: dict[str, list[bytes]] = {}
    for packed in sorted([*CORPUS.parent.glob("*.tar.xz"), *CORPUS.parent.glob("recordings/*.tar.xz")]):
        with tarfile.open(packed) as archive:
            for member in archive.getmembers():
                if member.name.endswith(".jsonl"):
                    name = f"{packed.name}/{member.name.removeprefix('./').replace('.logs.jsonl', '.jsonl')}"
                    content = archive.extractfile(member)
                    assert content is not None
                    found.setdefault(name, []).extend(line for line in content.read().splitlines() if line.strip())
    return dict(sorted(found.items()))


def case(seed: int) -> list[Item]:
    """Return some traces of a recording with a few mutations."""
    dice = random.Random(seed)
    names = list(recordings())
    items = [item for line in recordings()[dice.choice(names)] for item in items_of(line)]
    traces = list(dict.fromkeys(item.trace for item in items))
    first = dice.randrange(len(traces))
    wanted = traces[first : first + dice.choice((1, 1, 2, 4))]
    items = copy.deepcopy([item for item in items if item.trace in wanted][:_MOST_SPANS])
    for number, trace in enumerate(wanted):  # unique trace ids for each case
        for item in items:
            if item.trace == trace:
                item.value["traceId"] = f"{seed % 2**48:012x}{number:04x}{trace[16:]}"
    for _ in range(dice.choice((1, 1, 2, 3, 6))):
        dice.choice(_MUTATIONS)(items, dice)
    return items


# --- values

WORDS = (
    "role", "parts", "content", "type", "text", "id", "name", "arguments", "tool_calls", "tool_call_id", "function", "kwargs", "lc", "data", "message",
    "messages", "choices", "result", "response", "output", "input", "documents", "metadata", "score", "finish_reason", "user", "assistant", "tool", "system",
    "chat", "invoke_agent", "execute_tool", "LLM", "AGENT", "TOOL", "stop", "tool_call", "tool_call_response", "usage", "model", "error", "value",
)  # fmt: skip


def _nested(opener: str, depth: int) -> str:
    return opener * depth + "1" + {"[": "]", '{"a":': "}", "{1: ": "}", "('x', ": ")"}[opener] * depth


SCALARS: tuple[Any, ...] = (
    None, "", " ", "\x00", "a\x00b", "\ud83d", "x\udfff", "\u202e\u2028\x85", "NaN", "-Infinity", "1e999", "1e400", "0x10", "١٢", "true", "null", "-1", "9" * 25,
    "9" * 5_000, "x" * 3_000, "🙂" * 700, "[REDACTED]", "{", "[", '[{"role":', "[{'role': 'user', 'content': {1, 2}}]", "{[1]: 2}", "{(1, 2): {3}, None: b'x'}",
    "{'a': 1e999, 2: ...}", "content='x' name='y' tool_call_id='z'", "ChatMessage(_role=1, _content=[2])", "Calling tools:\n[{'id': [1]}]", "lambda: 0", "f'{x}'",
    0, -1, 1, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63) - 1, 10**30, 10**400, 0.0, -0.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), True, False,
    _nested("[", 70), _nested("[", 300), _nested("[", 900), _nested('{"a":', 250), _nested('{"a":', 600), _nested("{1: ", 90), _nested("('x', ", 90),
    "data:image/png;base64,AAAA", "https://example.com/x", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "00" * 16, "\\ud83d\\u0000",
)  # fmt: skip
"""Values to insert in place of expected values. Numbers that OTLP can't represent become strings, or raw JSON numbers."""


def hostile(dice: random.Random, depth: int = 0) -> Any:
    """A value of any type."""
    kind = dice.randrange(10 if depth < 3 else 7)
    if kind < 4:
        return dice.choice(SCALARS)
    if kind < 6:
        return dice.choice(WORDS)
    if kind == 6:
        return dice.choice(([], {}, [[]], [{}], [None], [[None]], {"": {}}, [""], [0], {"id": {}}, {"id": [1]}, [[["a"]]]))
    if kind == 7:
        return [hostile(dice, depth + 1) for _ in range(dice.randrange(4))]
    if kind == 8:
        return {dice.choice(WORDS): hostile(dice, depth + 1) for _ in range(dice.randrange(4))}
    return text_of(hostile(dice, depth + 1), dice)


def text_of(value: Any, dice: random.Random) -> str:
    """Return a value as text: JSON, Python, cut text, or a JSON string with one of them."""
    kind = dice.randrange(8)
    text = str(value) if kind == 0 else json.dumps(value, default=str)
    if kind == 1:
        return json.dumps(text)
    if kind in (2, 3):
        return text[: dice.randrange(len(text) + 1)]
    return text


def changed(value: Any, dice: random.Random) -> Any:
    """Return the value with one part changed."""
    if isinstance(value, dict) and value and dice.randrange(5):
        key = dice.choice(list(value))
        rest = {name: inner for name, inner in value.items() if name != key}
        kind = dice.randrange(12)
        if kind == 0:
            return rest
        if kind == 1:
            return {**rest, dice.choice(WORDS): value[key]}
        return {**value, key: changed(value[key], dice)}
    if isinstance(value, list) and value and dice.randrange(5):
        at = dice.randrange(len(value))
        kind = dice.randrange(12)
        if kind == 0:
            return value * dice.choice((2, 3, 50))
        if kind == 1:
            return value[at]
        return [*value[:at], changed(value[at], dice), *value[at + 1 :]]
    if isinstance(value, str) and value[:1] in ("{", "[") and dice.randrange(8):
        try:
            return text_of(changed(json.loads(value), dice), dice)
        except (ValueError, RecursionError):
            return value[: dice.randrange(len(value))]
    if isinstance(value, str) and value and not dice.randrange(6):
        return value * dice.choice((2, 40, 300)) if len(value) < 2_000 else value[1:]
    return [value] if not dice.randrange(12) else hostile(dice)


def _as_otlp(value: Any, dice: random.Random) -> Any:
    """Return a value in the form of OTLP/JSON, even if OTLP doesn't allow it."""
    if isinstance(value, int) and not dice.randrange(2):
        return {"intValue": value}
    if not dice.randrange(25):
        kind = dice.choice(
            ("stringValue", "intValue", "doubleValue", "boolValue", "bytesValue", "arrayValue", "kvlistValue", "odd")
        )
        return {kind: value}
    return value_as_json(value)


def _from_otlp(value: Any) -> Any:
    if not isinstance(value, dict):
        return None
    kind, inner = next(iter(value.items()), (None, None))
    values = inner.get("values") if isinstance(inner, dict) else None
    if kind == "arrayValue" and isinstance(values, list):
        return [_from_otlp(one) for one in values]
    if kind == "kvlistValue" and isinstance(values, list):
        return {str(one.get("key")): _from_otlp(one.get("value")) for one in values if isinstance(one, dict)}
    return inner


# --- mutations


def _holders(items: list[Item]) -> list[list[Any]]:
    """Return all attribute lists."""
    found = [item.value["attributes"] for item in items if item.value.get("attributes").__class__ is list]
    events = [event for item in items if item.value.get("events").__class__ is list for event in item.value["events"]]
    found += [event["attributes"] for event in events if isinstance(event, dict) and event.get("attributes").__class__ is list]
    return [holder for holder in found if holder]


def _attribute(items: list[Item], dice: random.Random) -> tuple[list[Any], int] | None:
    holders = _holders(items)
    if not holders:
        return None
    holder = dice.choice(holders)
    at = dice.randrange(len(holder))
    return (holder, at) if isinstance(holder[at], dict) else None


def _change_attribute(items: list[Item], dice: random.Random) -> None:
    found = _attribute(items, dice)
    if found is not None:
        holder, at = found
        new = changed(_from_otlp(holder[at].get("value")), dice)
        holder[at] = {**holder[at], "value": _as_otlp(new, dice)}


def _replace_attribute(items: list[Item], dice: random.Random) -> None:
    found = _attribute(items, dice)
    if found is not None:
        holder, at = found
        holder[at] = {**holder[at], "value": _as_otlp(hostile(dice), dice)}


def _change_many_attributes(items: list[Item], dice: random.Random) -> None:
    for _ in range(dice.randrange(2, 20)):
        dice.choice((_change_attribute, _replace_attribute))(items, dice)


def _change_key(items: list[Item], dice: random.Random) -> None:
    found = _attribute(items, dice)
    if found is not None:
        holder, at = found
        key = str(holder[at].get("key"))
        parts = key.split(".")
        place = dice.randrange(len(parts))
        parts[place] = dice.choice(("0", "1", "-1", "99999999999", "x", "", parts[place] * 2, *WORDS))
        more = {"key": dice.choice((".".join(parts), key + "." + dice.choice(WORDS), key.rpartition(".")[0] or key))}
        holder.insert(
            at, {**holder[at], **more, "value": _as_otlp(hostile(dice), dice) if dice.randrange(2) else holder[at].get("value")}
        )


def _drop_attributes(items: list[Item], dice: random.Random) -> None:
    for holder in _holders(items):
        if dice.randrange(3):
            continue
        del holder[dice.randrange(len(holder))]


def _take_from_another(items: list[Item], dice: random.Random) -> None:
    """Add attributes of another instrumentation or another span."""
    name = dice.choice(list(recordings()))
    others = items if not dice.randrange(3) else [item for line in recordings()[name][:2] for item in items_of(line)]
    sources, holders = _holders(others), _holders(items)
    if sources and holders:
        source = dice.choice(sources)
        dice.choice(holders).extend(copy.deepcopy(dice.sample(source, dice.randrange(1, len(source) + 1))))


def _change_scope(items: list[Item], dice: random.Random) -> None:
    name = dice.choice(list(recordings()))
    other = next(items_of(dice.choice(recordings()[name])), None)
    at = dice.randrange(len(items))
    scope = dice.choice((other.scope if other is not None else "", "", "acme", 5, None, [], {}, "x" * 3_000))
    items[at] = items[at]._replace(scope=scope)


def _change_field(items: list[Item], dice: random.Random) -> None:
    value = dice.choice(items).value
    key = dice.choice(
        (
            "name",
            "status",
            "flags",
            "kind",
            "events",
            "attributes",
            "links",
            "traceState",
            "droppedAttributesCount",
            "body",
            "eventName",
        )
    )
    value[key] = dice.choice((hostile(dice), [hostile(dice)], {"code": hostile(dice), "message": hostile(dice)}))


def _change_event(items: list[Item], dice: random.Random) -> None:
    value = dice.choice(items).value
    names = (
        "exception",
        "gen_ai.choice",
        "gen_ai.user.message",
        "gen_ai.client.inference.operation.details",
        "user_feedback",
        hostile(dice),
    )
    attributes = [{"key": key, "value": _as_otlp(hostile(dice), dice)} for key in dice.sample(WORDS, 3)]
    attributes += [
        {"key": key, "value": _as_otlp(hostile(dice), dice)}
        for key in ("exception.type", "gen_ai.input.messages", "content", "message")
    ]
    event = {"name": dice.choice(names), "timeUnixNano": dice.choice(SCALARS), "attributes": attributes}
    held = value.get("events")
    value["events"] = [*(held if isinstance(held, list) else ()), event]


def _change_body(items: list[Item], dice: random.Random) -> None:
    logs = [item for item in items if not item.is_span]
    if logs:
        value = dice.choice(logs).value
        value["body"] = _as_otlp(changed(_from_otlp(value.get("body")), dice), dice)


def _change_times(items: list[Item], dice: random.Random) -> None:
    for _ in range(dice.choice((1, 1, len(items)))):
        value = dice.choice(items).value
        start, end = value.get("startTimeUnixNano"), value.get("endTimeUnixNano")
        odd = dice.choice(
            ("0", "", 0, -1, "-5", 2**63, 2**64, str(253402300800 * 10**9), "9" * 40, 1.5, "1e3", None, [], {}, True, start, end)
        )
        value.update(
            dice.choice(
                (
                    {"startTimeUnixNano": end, "endTimeUnixNano": start},
                    {"startTimeUnixNano": odd},
                    {"endTimeUnixNano": odd},
                    {"timeUnixNano": odd},
                )
            )
        )


def _change_ids(items: list[Item], dice: random.Random) -> None:
    spans = [item.value for item in items if item.is_span]
    if not spans:
        return
    one, other = dice.choice(spans), dice.choice(spans)
    kind = dice.randrange(8)
    if kind == 0:
        one["parentSpanId"] = one.get("spanId")
    elif kind == 1:  # often creates a cycle
        one["parentSpanId"] = other.get("spanId")
    elif kind == 2:
        one["parentSpanId"] = dice.choice(
            ("", "0" * 16, "f" * 16, f"{dice.getrandbits(64):016x}", 5, None, "x", "-000000000000001", {})
        )
    elif kind == 3:
        one["spanId"] = other.get("spanId")
    elif kind == 4:
        one["traceId"] = other.get("traceId")
    elif kind == 5:
        one[dice.choice(("traceId", "spanId"))] = dice.choice(
            ("", "0" * 32, "0" * 16, "z" * 32, "+" + "0" * 14 + "1", "٣" * 16, 7, None, [], {}, "\x00")
        )
    elif kind == 6:
        one["links"] = [{"traceId": one.get("traceId"), "spanId": one.get("spanId")}] * dice.choice((1, 50))
    else:  # a cycle of all spans
        for before, after in zip(spans, [*spans[1:], spans[0]], strict=True):
            after["parentSpanId"] = before.get("spanId")


def _repeat(items: list[Item], dice: random.Random) -> None:
    item = dice.choice(items)
    same = bool(dice.randrange(2))
    for number in range(dice.choice((1, 2, _MOST_REPEATS))):
        value = (
            copy.deepcopy(item.value)
            if same or not item.is_span
            else {**copy.deepcopy(item.value), "spanId": f"{number + 1:016x}"}
        )
        items.append(item._replace(value=value))


def _copy_trace(items: list[Item], dice: random.Random) -> None:
    """Copy a trace under another id, as a second instrumentation or a retry would."""
    source = dice.choice(items).trace
    to = dice.choice(("f" * 32, f"{dice.getrandbits(127) + 1:032x}"))
    scope = dice.choice((None, "acme", items[0].scope))
    pause = dice.choice((0, 1, 10**9, -(10**9)))
    for item in [item for item in items if item.trace == source and not dice.randrange(4)]:
        value = copy.deepcopy(item.value)
        value["traceId"] = to
        for key in ("startTimeUnixNano", "endTimeUnixNano"):
            if str(value.get(key)).isdecimal():
                value[key] = str(int(value[key]) + pause)
        if dice.randrange(2):
            value.pop("parentSpanId", None)
        items.append(item._replace(value=value, scope=item.scope if scope is None else scope))


def _share_value(items: list[Item], dice: random.Random) -> None:
    """Use one value, such as an id, in many spans."""
    found = _attribute(items, dice)
    if found is None:
        return
    same = found[0][found[1]]
    key = same.get("key")
    for holder in _holders(items):
        for at, other in enumerate(holder):
            if isinstance(other, dict) and (other.get("key") == key or not dice.randrange(30)):
                holder[at] = {**other, "value": same.get("value")}


def _lose(items: list[Item], dice: random.Random) -> None:
    if len(items) > 1:
        del items[dice.randrange(len(items))]


_MUTATIONS: tuple[Callable[[list[Item], random.Random], None], ...] = (
    _change_attribute, _change_attribute, _change_attribute, _change_attribute, _replace_attribute, _replace_attribute, _change_many_attributes,
    _change_many_attributes, _change_key, _drop_attributes, _take_from_another, _take_from_another, _change_scope, _change_field, _change_event, _change_body,
    _change_times, _change_ids, _change_ids, _repeat, _copy_trace, _share_value, _lose,
)  # fmt: skip
