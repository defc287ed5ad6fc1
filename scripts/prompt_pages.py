"""Write ``docs/reference/prompts/``: each judge prompt for one realistic turn, with its number of tokens (for ``gen_docs.py``)."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import otel_agenteval as oa
from otel_agenteval.core import jsonio
from otel_agenteval.judging.models.prompt import SYSTEM, prompt_of, tokens_of, trusted_of
from otel_agenteval.judging.models.reply import hints_of, schema_of
from otel_agenteval.metrics.question import Answers
from otel_agenteval.metrics.question import Question as JudgeCall
from otel_agenteval.metrics.registry import Asks, Metric, catalog
from scripts.unwrap import unwrapped

ROOT = Path(__file__).parent.parent
TURN: dict[str, Any] = json.loads((ROOT / "tests" / "data" / "prompt_turn.json").read_text(encoding="utf-8"))
PAGES = ROOT / "docs" / "reference" / "prompts"
MOST = 1.5
"""Maximum length of a judge call, as a multiple of its useful content."""
MOST_INSTRUCTIONS = 390
"""Maximum number of tokens of a task."""
_SHOWN = 24
"""Number of characters that a page shows of each part of the material."""

_RUBRIC = "A good answer names every amount and date, says what was done and what was not, and asks before it does anything new."
PARAMS: dict[str, Any] = {
    "rubric": _RUBRIC,
    "criteria": _RUBRIC,
    "allowed_topics": ["orders and deliveries", "refunds", "warranty of coffee machines"],
    "role": "The support agent of a shop for coffee machines: factual, friendly, and honest about being a program.",
    "policy_text": "Refunds are paid only to the means of payment of the order. No delivery date is promised that the carrier does not confirm.",
    "categories": ["order", "complaint", "other"],
    "field": "summary",
    "expected": "en",
}
"""Values of required parameters, by parameter name."""
_CODE = '''Here is the function:

```python
def refund_total(order: dict) -> float:
    """Price of all items and the express fee, in EUR."""
    total = 0.0
    for item in order["items"]:
        if item["price"] < 0:
            raise ValueError(f"negative price: {item['name']}")
        total += item["price"] * item.get("quantity", 1)
    return round(total + order.get("express_fee", 0.0), 2)


def may_cancel(order: dict, today: str) -> bool:
    """Whether an order that was promised for a past day may still be cancelled."""
    return order["status"] != "delivered" and today > order["promised"]


def cancel(db, order: dict, today: str) -> float:
    """Cancel the order and book the refund; the amount."""
    if not may_cancel(order, today):
        raise PermissionError(order["order_id"])
    amount = refund_total(order)
    db.execute("UPDATE orders SET status = ? WHERE id = ?", ("cancelled", order["order_id"]))
    db.execute("INSERT INTO refunds (order_id, amount, reason) VALUES (?, ?, ?)", (order["order_id"], amount, "late"))
    return amount


class Queue:
    """Orders that wait for the carrier's forecast, the oldest first."""

    def __init__(self, forecast, clock) -> None:
        self._forecast = forecast
        self._clock = clock
        self._waiting: list[dict] = []

    def add(self, order: dict) -> None:
        """Wait for the forecast of an order, unless it waits already."""
        if all(other["order_id"] != order["order_id"] for other in self._waiting):
            self._waiting.append({**order, "since": self._clock.now()})

    def work(self, db, today: str, wanted_by: dict[str, str]) -> list[tuple[str, float]]:
        """Ask for the forecast of each order, and cancel those that come too late; what was refunded."""
        refunded, still_waiting = [], []
        for order in self._waiting:
            try:
                earliest = self._forecast(order["tracking_id"])
            except TimeoutError:
                still_waiting.append(order)
                continue
            limit = wanted_by.get(order["order_id"])
            if limit is not None and earliest > limit:
                refunded.append((order["order_id"], cancel(db, order, today)))
        self._waiting = still_waiting
        return refunded


def report(refunded: list[tuple[str, float]]) -> str:
    """One line for each refund, and their sum."""
    lines = [f"{order_id}: {amount:.2f} EUR" for order_id, amount in refunded]
    lines.append(f"total: {sum(amount for _, amount in refunded):.2f} EUR")
    return "\\n".join(lines)
```

`Queue.work` keeps an order whose forecast timed out for the next round, and forgets one that will arrive in time.

`may_cancel` compares dates as text, which is right for ISO dates. `cancel` leaves the transaction to its caller, so that both rows are
written or none. Call it with the order as `get_order` returns it; a quantity that is missing counts as one. For order BM-48213 it books
362.80 EUR. Prices are floats because the order service sends them so; for more than a few thousand items use Decimal instead.
'''
_SQL = {
    "input": "Revenue per month and country in 2026, delivered orders only.",
    "output": "SELECT date_trunc('month', o.placed) AS month, a.country, sum(i.price * i.quantity) AS revenue FROM orders o JOIN items i ON "
    "i.order_id = o.id JOIN addresses a ON a.id = o.address_id WHERE o.status = 'delivered' AND o.placed >= '2026-01-01' AND o.placed < "
    "'2027-01-01' GROUP BY 1, 2 ORDER BY 1, 2",
    "ground_truth": "SELECT to_char(placed, 'YYYY-MM') AS month, country, sum(price * quantity) FROM orders JOIN items ON items.order_id = "
    "orders.id JOIN addresses ON addresses.id = orders.address_id WHERE status = 'delivered' AND extract(year FROM placed) = 2026 GROUP BY 1, 2",
    "references": {
        "schema": "orders(id, placed, status, address_id); items(order_id, name, price, quantity); addresses(id, country, city)"
    },
}
_IMAGES = [
    {"modality": "image", "uri": "https://shop.example/label.png"},
    {"modality": "image", "uri": "https://shop.example/package.png"},
]
_CHANGES: dict[str, dict[str, Any]] = {
    "code_evaluation": {"input": "Write a function that cancels a late order and books the refund.", "output": _CODE},
    "llm_code_security_risk": {"output": _CODE},
    "llm_code_security_risk_passed": {"output": _CODE},
    "llm_sql_semantic_equivalence": _SQL,
    "llm_semantic_field_equality": {"output": json.dumps({"order": "BM-48213", "summary": TURN["output"]})},
    "llm_noise_sensitivity": {"references": {"baseline_response": f"Certainly. {TURN['output']} Is there more that I can do?", "noisy_input": TURN["input"].replace("order", "ordre")}},
    "multimodal_image": {"attachments": _IMAGES},
    "audio": {"attachments": [{"modality": "audio", "uri": "https://shop.example/call.mp3", "transcript": f"USER: {TURN['input']}\nAGENT: {TURN['output']}"}]},
    "video": {"attachments": [{"modality": "video", "uri": "https://shop.example/unboxing.mp4"}]},
}  # fmt: skip
"""Changes to the turn, by family or metric."""
WITHOUT_TEXTS = ("audio", "multimodal_image", "video", "code_evaluation", "structured_output")
"""Families that have little text, such as media. Their ratio of prompt to useful content isn't meaningful."""


@dataclass(frozen=True, slots=True)
class Question:
    """One judge call of a metric for the turn."""

    stage: str
    task: str
    data: Mapping[str, Any]
    reply: str
    criteria: Mapping[str, str | Sequence[str]]
    media: Sequence[str]

    @property
    def text(self) -> str:
        """Prompt as sent, with ``WORD`` in place of the random word."""
        sent = prompt_of(JudgeCall(self.stage, self.task, self.data, self.reply, self.criteria, self.media)).message.text
        word = re.search(r"^(?:<<<|\[\[\[)[A-Z_0-9]+ (\w{16})$", sent, re.MULTILINE)
        return sent if word is None else sent.replace(word[1], "WORD")

    @property
    def material(self) -> str:
        return "\n".join(value if isinstance(value, str) else jsonio.text_of(value) for value in self.data.values())

    @property
    def trusted(self) -> str:
        return "\n".join(trusted_of(self.criteria).values())


@dataclass
class Listener(Answers):
    """Judge that records its calls and answers with values of the requested form."""

    sentences: Sequence[str]
    entries: int = 1
    asked: list[Question] = field(default_factory=list)
    found: list[str] = field(default_factory=list)
    """Texts in its replies."""
    _said: int = 0

    def answer(self, question: JudgeCall) -> dict[str, Any]:
        """Answer with values of the requested form."""
        asked = (
            question.stage,
            question.task,
            dict(question.data),
            question.reply,
            dict(question.criteria or {}),
            question.media,
        )
        self.asked.append(Question(*asked))
        form = question.schema or schema_of(question.reply)
        found = self._value(form) if form is not None else self._open(question.reply)
        self.found += [text for text in _texts_of(found) if len(text) > 20]
        return dict(found)

    def _value(self, schema: Mapping[str, Any]) -> Any:
        if "enum" in schema:
            return schema["enum"][0]
        kind = schema.get("type")
        if kind == "object":
            return {key: self._value(inner) for key, inner in schema.get("properties", {}).items()}
        if kind == "array":
            return [self._value(schema["items"]) for _ in range(self.entries)]
        if kind in ("number", "integer"):
            return 1
        return True if kind == "boolean" else self._text()

    def _open(self, form: str) -> dict[str, Any]:
        """Return a reply for a form without a schema."""
        found: dict[str, Any] = {}
        for key in hints_of(form):
            begin = form.partition(f'"{key}":')[2].lstrip()
            if begin.startswith("["):
                found[key] = [self._text() for _ in range(self.entries)]
            elif begin.startswith("{"):
                found[key] = {"order": self._text()}
            else:
                found[key] = True if "true" in begin[:20] else 1 if re.match(r"<[\d.]+ to", begin) else self._text()
        return found

    def _text(self) -> str:
        self._said += 1
        return self.sentences[self._said % len(self.sentences)]


def _texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts_of(inner)
    elif isinstance(value, (list, tuple)):
        for inner in value:
            yield from _texts_of(inner)


def known_of(metric: Metric) -> dict[str, Any]:
    """Return the turn (``turn.v1``) with the changes for a metric."""
    known = {**TURN, **_CHANGES.get(metric.family, {}), **_CHANGES.get(metric.name, {})}
    if metric.family == "audio":
        known.pop("output")
    return known


def questions_of(
    metric: Metric, known: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None
) -> list[Question]:
    """Return all judge calls of a metric for the turn, or for another turn."""
    return heard(metric, known, params).asked


def questions_by_method(metric: Metric) -> dict[str, list[Question]]:
    """Return the judge calls of each method of a metric, default first. Without methods, the key is ""."""
    return {f"method: {given['method']}" if given else "": questions_of(metric, params=given) for given in methods_of(metric)}


def methods_of(metric: Metric) -> list[dict[str, Any]]:
    """Return the parameters for each method of a metric, default first. Without methods, return ``[{}]``."""
    method = metric.parameters.get("method")
    if method is None:
        return [{}]
    return [{"method": name} for name in sorted(typing.get_args(method.annotation), key=lambda name: name != method.default)]


def heard(
    metric: Metric, known: Mapping[str, Any] | None = None, params: Mapping[str, Any] | None = None, judge: Asks | None = None
) -> Listener:
    """Evaluate the metric, and return the listener. With another ``judge``, the listener stays empty."""
    known = known_of(metric) if known is None else known
    given = dict(params or {})
    for parameter in metric.parameters.values():
        if parameter.required:
            given.setdefault(parameter.name, PARAMS[parameter.name])
    calls = len(known.get("tool_calls") or ()) or 1
    sentences = [part for part in re.split(r"(?<=[.?])\s+", str(known.get("output") or "No answer.")) if len(part) > 30] or [
        "No answer."
    ]
    listener = Listener(sentences, entries=max(calls, 5))
    oa.get_metric(metric.name, **given).evaluate(oa.Turn.from_dict(dict(known)), judge=judge or listener)
    return listener


# --- tokens


@dataclass(frozen=True, slots=True)
class Cost:
    """Number of tokens of a metric's largest judge call, and of all of its calls."""

    questions: int
    instructions: int
    """Tokens of the task and of the reply form."""
    trusted: int
    useful: int
    largest: int
    """Tokens of the whole call, without the system prompt. Servers cache the system prompt, because it is always the same."""
    all: int
    """Tokens of all calls, including system prompts."""

    @property
    def share(self) -> float:
        """Size of the largest call relative to its useful content, which includes criteria."""
        return self.largest / max(1, self.useful + self.trusted)


def cost_of(metric: Metric) -> Cost:
    judge = heard(metric)
    known = known_of(metric)
    sizes = [tokens_of(question.text) for question in judge.asked]
    place = max(range(len(sizes)), key=sizes.__getitem__)
    largest = judge.asked[place]
    return Cost(
        len(sizes),
        tokens_of(largest.task) + tokens_of(largest.reply),
        tokens_of(largest.trusted),
        useful_in(largest, known, judge.found),
        sizes[place],
        sum(sizes) + len(sizes) * tokens_of(SYSTEM),
    )


def useful_in(question: Question, known: Mapping[str, Any], found: Sequence[str]) -> int:
    """Return the number of tokens of the material that come from the turn or from earlier replies.

    Each text is counted at most as often as the turn has it. A shortened text is counted up to the cut.
    """
    rest = _plain(question.material)
    count = 0
    for text in sorted([*_units(known), *set(found)], key=lambda text: (len(text), text), reverse=True):
        plain = _plain(text)
        if len(plain) < 2:
            continue
        if plain in rest:
            rest = rest.replace(plain, " ", 1)
            count += tokens_of(text)
            continue
        kept = next((length for length in range(len(plain) - 1, 60, -20) if plain[:length] in rest), 0)
        if kept:
            rest = rest.replace(plain[:kept], " ", 1)
            count += tokens_of(text) * kept // len(plain)
    return count


def _plain(text: str) -> str:
    """Keep only letters and digits, because punctuation differs between JSON and lists of steps."""
    return "".join(character for character in text.casefold() if character.isalnum())


def _units(known: Mapping[str, Any]) -> Iterator[str]:
    for name in ("input", "output", "reasoning", "ground_truth", "system"):
        if known.get(name):
            yield str(known[name])
    output = known.get("output") or ""
    if output.startswith("{"):
        yield from _texts_of(json.loads(output))
    yield from known.get("context") or ()
    for call in known.get("tool_calls") or ():
        yield call["name"]
        for key, value in call["arguments"].items():
            yield f"{key} {jsonio.text_of(value)}"
        for part in ("result", "error"):
            if call.get(part) is not None:
                yield jsonio.text_of(call[part] if part == "result" else f"{call[part]['type']}: {call[part]['message']}")
    for tool in known.get("tool_definitions") or ():
        yield f"{tool['name']}: {tool['description']}"
        yield tool["description"]
        for name, schema in tool["parameters"]["properties"].items():
            yield f"{name} {schema['type']}"
            yield from (f"{key} {schema[key]}" for key in ("minimum", "maximum", "default", "format") if key in schema)
            yield from (schema[key] for key in ("description",) if key in schema)
            yield " ".join(schema.get("enum", ()))
    for message in (*(known.get("messages") or ()), *(known.get("history") or ())):
        yield from (str(message[key]) for key in ("content", "input", "output") if message.get(key))
    yield from map(str, (known.get("references") or {}).values())
    for attachment in known.get("attachments") or ():
        yield from (str(attachment[key]) for key in ("transcript", "uri") if attachment.get(key))


# --- pages


def judged() -> list[Metric]:
    """Return all metrics that use a judge."""
    return [metric for metric in catalog() if metric.kind == "llm"]


def pages() -> Iterator[tuple[Path, str]]:
    """Yield the file and text of each family's page and of the overview."""
    families: dict[str, list[Metric]] = {}
    for metric in judged():
        families.setdefault(metric.family, []).append(metric)
    rows = []
    for family, metrics in sorted(families.items()):
        parts = [
            f"# Judge prompts for {family}\n",
            f"{_NOTE}\n",
        ]
        shown: dict[str, str] = {}
        for metric in metrics:
            parts.append(f"## {metric.name}\n")
            for method, questions in questions_by_method(metric).items():
                parts += [_shown(question, method, metric.name, shown) for question in _different(questions)]
            cost = cost_of(metric)
            rows.append(
                f"| [`{metric.name}`]({family}.md#{metric.name}) | {cost.questions} | {cost.instructions:,} | {cost.trusted:,} | "
                f"{cost.useful:,} | {cost.largest:,} | {cost.share:.2f} | {cost.all:,} |"
            )
        yield PAGES / f"{family}.md", "\n".join(parts).rstrip() + "\n"
    table = [
        "| Metric | Calls | Instructions | Criteria | Useful | Largest prompt | ÷ useful | All |",
        "|---|---|---|---|---|---|---|---|",
        *rows,
    ]
    parts = [
        "# Judge prompts\n",
        unwrapped(_ABOUT),
        _COLUMNS,
        "\n".join(table) + "\n",
        f"## System prompt\n\nEvery prompt starts with this system prompt of {tokens_of(SYSTEM)} tokens.\n\n```text\n{SYSTEM}\n```",
    ]
    yield PAGES / "README.md", "\n".join(parts).rstrip() + "\n"


_ABOUT = """\
Each page shows the judge prompts of one metric family, filled with the data of one realistic turn. The table lists the size of
each metric's prompts in tokens. `scripts/gen_docs.py` generates these pages.

The turn is `tests/data/prompt_turn.json` (about 2,000 tokens of text). For metrics that evaluate code, output fields, images, audio, or video, we
add such data to the turn. Instead of a model, a script replies in the requested format, so that every stage of a metric runs.

Token counts are estimates, as for `judge.max_input_tokens`: four ASCII characters, or one other character, count as one token.
"""
_COLUMNS = """\
| Column | Meaning |
|---|---|
| Calls | Number of judge calls. |
| Instructions | Tokens of the task and the reply format, in the largest prompt. |
| Criteria | Tokens of your own criteria, in the largest prompt. |
| Useful | Tokens of the turn's data and of earlier stages' results, in the largest prompt. The data includes the request, answer, reasoning, documents, tool calls, tool definitions, earlier messages, and references. |
| Largest prompt | All tokens of the largest prompt, without the system prompt. |
| ÷ useful | Tokens of the largest prompt, divided by the sum of its useful tokens and criteria. The ratio is at most 1.5 for prompts with 700 or more useful tokens. |
| All | Tokens of all calls, including the system prompt. |
"""
_NOTE = (
    "These are the prompts for an example turn, with long texts shortened, and one prompt for each stage of a metric. "
    "In a real call, `WORD` is a new random word. For token counts, see [Judge prompts](README.md)."
)


def _different(questions: Sequence[Question]) -> list[Question]:
    return list({question.stage: question for question in reversed(questions)}.values())[::-1]


def _shown(question: Question, method: str, metric: str, shown: dict[str, str]) -> str:
    """Return a prompt's section. ``shown`` maps the prompts that are already on the page to their headings."""

    def part(found: re.Match[str]) -> str:
        text = found[2]
        cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN].rpartition(' ')[0]} [… {tokens_of(text)} tokens …]"
        return f"{found[1]}{cut}{found[3]}"

    text = re.sub(r"(^<<<[A-Z_0-9]+ WORD\n)(.*?)(\nWORD>>>$)", part, question.text, flags=re.MULTILINE | re.DOTALL)
    heading = f"{question.stage} ({method})" if method else question.stage
    first = shown.setdefault(text, metric if question.stage == "verdict" else f"{metric}, {heading}")
    if first != (metric if question.stage == "verdict" else f"{metric}, {heading}"):
        return f"### {heading}\n\nThis prompt is identical to the prompt of {first}.\n"
    return f"### {heading}\n\n```text\n{text.replace('```', '` ` `')}\n```\n"
