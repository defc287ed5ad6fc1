"""The time of every parser, detector and metric grows linearly with the length of hostile texts."""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core import jsonio, literals
from otel_agenteval.core.errors import ConfigError, MetricError
from otel_agenteval.core.prices import Tokens, table_cost
from otel_agenteval.core.turn import Message, ToolCall
from otel_agenteval.detectors.credentials import credentials
from otel_agenteval.detectors.redaction.find import find_in
from otel_agenteval.dialects import content, payloads
from otel_agenteval.dialects.generic import values
from otel_agenteval.evaluation.redaction import KINDS, redacted_text
from otel_agenteval.judging.models.prompt import escaped, visible
from otel_agenteval.judging.models.reply import verdict_in
from otel_agenteval.media.access import content_of, may_open
from otel_agenteval.media.metadata import without_metadata
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.lib.steps import steps_of
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.spans.exports import messages_of
from otel_agenteval.turns.reading import messages
from tests.support.growth import FLOOR, SIZES, seconds, steep
from tests.support.hostile import Hostile, hostile, sample
from tests.support.patterns import patterns
from tests.support.spans import chat, span, turns_of

NOW, TOKENS = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc), Tokens(10, 10)
ANSWER = "On 12 May 2024 order 4711 of 1,249.50 EUR went to ada@example.org, see https://acme.example/orders/4711 and call +49 30 1234567."
CANDIDATES: tuple[Any, ...] = ("search", 1, 0.5, ["search"], {"type": "object"}, {"a": 1}, "code_word_count", ["code_word_count"], [{"tool": "search"}])  # fmt: skip
"""Values for required parameters. The first allowed value is used."""


def weigh(text: str) -> int:
    return jsonio.weight(text.encode(errors="replace"))


def find_credentials(text: str) -> list[Any]:
    return credentials(text, given=str, asked="", users="")


def redact(text: str) -> list[Any]:
    return list(find_in(text, KINDS))


def metric(name: str, field: str = "output", **known: Any) -> Callable[[str], oa.Score]:
    bound = oa.get_metric(name)
    return lambda text: bound.evaluate(oa.Turn(input="?", **{**known, field: [text] if field == "context" else text}))


def other_pages(text: str) -> oa.Score:
    return oa.get_metric("code_ungrounded_urls").evaluate(oa.Turn(output=text.replace("/p", "/q"), context=[text]))


@pytest.mark.parametrize(
    ("call", "make", "sizes"),
    [
        (find_credentials, lambda n: "0" + "-" * n + "|", (20, 80, 320)),
        (weigh, lambda n: '"' + '{\\"' * (n // 3) + "\\", (4_000, 16_000, 64_000)),
        (redact, lambda n: "eyJhbGciOiJIUzI1NiJ9\n" * (n // 21), SIZES),
        (redact, lambda n: f'{{"password": "a{"_0" * n}!"}}', (10, 40, 160)),
        (values.opened, lambda n: "['" + "\\'\\'\\'" * (n // 6), SIZES),
        (payloads.literal, lambda n: "[f'" + "{1}" * (n // 3) + "']", (8_000, 32_000, 128_000)),
        (metric("code_is_sql"), lambda n: "(000).0" * (n // 7), (600, 2_400, 9_600)),
        (metric("code_injection_markers", "context"), lambda n: f"The assistant reads a{'_' * n}bb.", (20, 80, 320)),
        (metric("code_ungrounded_urls"), lambda n: f"```json\nhttps://a.example{chr(10) * n}x```", SIZES),
        (metric("code_ungrounded_urls", "context", output=f"See https://acme.io/{'a' * 60}%"), lambda n: f"https://acme.io/{'{a}' * n}!", (2, 8, 32)),
        (other_pages, lambda n: "".join(f"https://acme.io/p{i}/{i} " for i in range(n // 24)), SIZES),
        (metric("code_pii_leakage"), lambda n: "".join(f"```a{i}@acme{i}.io``` " for i in range(n // 20)), SIZES),
        (metric("code_ungrounded_numbers", context=["On 3 May 2021 17 came."]), lambda n: "".join(f"{i % 90}万 " for i in range(n // 4)), SIZES),
        (find_credentials, lambda n: "backup codes: 1234-5678 резервн" + "0резервн" * (n // 8), SIZES),
    ],
    ids=[
        "letters one by one", "an open string of JSON", "heads of tokens", "a name of many parts", "an open repr", "fields of an f-string",
        "calls of calls in SQL", "a letter and underscores", "a fence and blank lines", "a template with many open places",
        "many pages of one host", "addresses in code", "numbers in myriads", "stems of codes",
    ],
)  # fmt: skip
def test_hostile_text_takes_linear_time(call: Callable[[str], Any], make: Callable[[int], str], sizes: tuple[int, ...]) -> None:
    assert steep(call, make, sizes) is None


def with_parameters(name: str) -> BoundMetric | None:
    """Return the metric with allowed values for its required parameters."""
    given: dict[str, Any] = {}
    for parameter in oa.get_metric(name).metric.parameters.values():
        for candidate in CANDIDATES if parameter.required else ():
            try:
                oa.get_metric(name, **given, **{parameter.name: candidate})
            except ConfigError:
                continue
            given[parameter.name] = candidate
            break
    return oa.get_metric(name, **given)


def turn_that_says(text: str) -> oa.Turn:
    return oa.Turn(input="How much?", output=text, ground_truth=text, context=[ANSWER], system=ANSWER)


def turn_that_was_given(text: str) -> oa.Turn:
    """Return a turn whose sources for comparison with the answer are all hostile."""
    said = [Message("system", text), Message("user", text), Message("tool", text)]
    calls = [ToolCall("search", {"query": text}, text)]
    return oa.Turn(input=text, output=ANSWER, ground_truth=ANSWER, context=[text], system=text, messages=said, tool_calls=calls)


def turn_of_nothing_else(text: str) -> oa.Turn:
    calls = [ToolCall("search", {"query": text}, text)]
    return oa.Turn(input=text, output=text, ground_truth=text, context=[text], system=text, tool_calls=calls)


def evaluating(name: str, make: Callable[[str], oa.Turn]) -> Callable[[str], Any]:
    bound = with_parameters(name)
    assert bound is not None
    return lambda text: bound.evaluate(make(text))


def quietly(call: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a function that ignores errors of a parser."""

    def read(text: str) -> None:
        with suppress(ValueError, MetricError):
            call(text)

    return read


KEYS = (
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions", "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result", "gen_ai.conversation.id", "gen_ai.agent.name", "input.value", "output.value", "final_result", "error.type",
    "llm.input_messages.0.message.content", "llm.output_messages.0.message.content", "traceloop.entity.input", "traceloop.entity.output",
    "gen_ai.prompt.0.content", "gen_ai.completion.0.content", "metadata", "retrieval.documents.0.document.content", "session.id",
)  # fmt: skip


def read_span(text: str) -> None:
    record = chat(1, user="hello", says="hello", attributes=dict.fromkeys(KEYS, text))
    record.name = text
    for turn in turns_of(record):
        turn.to_dict()


def read_unknown_span(text: str) -> None:
    attributes = {"prompt": text, "response": text, "model": "gpt-4", text[:100]: text}
    for turn in turns_of(span(1, name=text[:200], attributes=attributes)):
        turn.to_dict()


READERS: dict[str, Callable[[str], Any]] = {
    "redaction": lambda text: redacted_text(text, KINDS),
    "redaction of JSON": lambda text: redacted_text(jsonio.dumps({"a": [text, {"password": text}]}), KINDS),
    "weight of JSON": weigh,
    "JSON or text": jsonio.loads_or_text,
    "JSON that was cut": jsonio.loads_cut,
    "JSON with NaN": quietly(jsonio.loads_lenient),
    "a message": lambda text: content.decode(text, "user"),
    "an answer": lambda text: content.decode([{"role": "assistant", "content": text}], "assistant"),
    "messages": lambda text: content.decode("[" + text, "user"),
    "a literal": payloads.literal,
    "a literal that begins": lambda text: payloads.literal("['" + text),
    "arguments": payloads.arguments_of,
    "arguments that begin": lambda text: payloads.arguments_of('{"a": "' + text),
    "a result": payloads.unwrap_result,
    "what toString writes": lambda text: literals.java_value("Call{a=" + text + "}"),
    "a list that toString writes": lambda text: literals.java_value("[Call(a=[" + text + ")"),
    "a repr of a message": lambda text: payloads.repr_text("content='" + text),
    "an opened value": values.opened,
    "a value that begins": lambda text: values.opened("[Call(a='" + text),
    "a transcript": lambda text: values.transcript("user: " + text),
    "a prompt with documents": lambda text: messages.question_in("Context:\n" + text + "\nQuestion: what?"),
    "fields of a prompt": lambda text: messages.question_in("[[ ## question ## ]]\n" + text),
    "an answer in fields": lambda text: messages.answer_in("[[ ## answer ## ]]\n" + text),
    "a span": read_span,
    "an unknown span": read_unknown_span,
    "an export": lambda text: list(messages_of({"name": text, "attributes": {"a": text}})),
    "a judge's reply": lambda text: verdict_in(text, ["score", "reason"]),
    "material of a judge": escaped,
    "invisible characters": visible,
    "steps": lambda text: steps_of(turn_of_nothing_else(text)),
    "a model's name": lambda text: table_cost(text, TOKENS, NOW, base_url=f"https://{text}"),
    "an address of media": may_open,
    "media in the text": quietly(lambda text: content_of("data:image/png;base64," + text, "image")),
    "a PNG": quietly(lambda text: without_metadata(b"\x89PNG\r\n\x1a\n" + text.encode())),
    "a JPEG": quietly(lambda text: without_metadata(b"\xff\xd8\xff" + text.encode())),
    "a GIF": quietly(lambda text: without_metadata(b"GIF89a" + text.encode())),
    "a WebP": quietly(lambda text: without_metadata(b"RIFF\0\0\0\0WEBP" + text.encode())),
    **{
        f"{one.name}, {what}": evaluating(one.name, make)
        for one in catalog()
        if one.kind == "code"
        for what, make in (("answer", turn_that_says), ("sources", turn_that_was_given), ("both", turn_of_nothing_else))
    },
}


@cache
def pieces(seed: int) -> tuple[str, ...]:
    """Return the words of the package's patterns."""
    texts = (sample(used.pattern, seed) for used in patterns() if isinstance(used.pattern.pattern, str))
    return tuple(sorted({text for text in texts if text}))


@cache
def texts(seed: int, count: int) -> tuple[Hostile, ...]:
    return tuple(islice(hostile(seed, pieces(seed)), count))


def slow_on(call: Callable[[str], Any], those: tuple[Hostile, ...]) -> Iterator[str]:
    """Yield the texts on which a function's time grows too fast."""
    call("warm up")
    for one in those:
        if seconds(call, one.text(SIZES[-1])) > FLOOR and (times := steep(call, one.text)) is not None:
            yield f"{times} {one}"


SEED = int(os.environ.get("AGENTEVAL_TEST_SEED", "2"))
"""Seed of some additional texts. Set a new number to search for new faults."""


@pytest.mark.slow
@pytest.mark.parametrize("name", READERS)
def test_reader_takes_linear_time_for_any_text(name: str) -> None:
    those = (*texts(1, 40), *texts(SEED, 10))
    assert list(slow_on(READERS[name], those)) == [], f"AGENTEVAL_TEST_SEED={SEED}"
