"""Only scopes with missing turns or content are counted and logged."""

from __future__ import annotations

import json
import math
import pickle
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from otel_agenteval.core.turn import Turn
from otel_agenteval.dialects.reader import CALLER, CONTENT, TURN
from otel_agenteval.spans.record import LogPart, SpanEvent, SpanRecord
from otel_agenteval.turns.readings import Readings
from otel_agenteval.turns.recordings import Reading, items_in, read_turns, wholes_of
from tests.support.recordings import CORPUS
from tests.support.spans import agent, chat, span, tool

SCOPE = "acme.agents"
ASKED, ANSWERED = "What is the weather in Rome?", "It is 21 degrees and sunny."
ARGUMENTS, RESULT = '{"city": "Rome"}', "21"
CALL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
TOOL = {"gen_ai.tool.call.arguments": ARGUMENTS, "gen_ai.tool.call.result": RESULT}
CHAIN, TOOL_KIND = {"openinference.span.kind": "CHAIN"}, {"openinference.span.kind": "TOOL", "tool.name": "weather"}
OPENINFERENCE = "openinference.instrumentation.acme"
ARCHIVED = json.dumps([{"role": "user", "content": ASKED}, {"role": "assistant", "content": ANSWERED}])


def read(items: Iterable[object]) -> tuple[list[Turn], Readings]:
    readings = Readings(math.inf)
    turns = [turn for _, turn in read_turns(wholes_of(items, readings.note_unread), readings)]  # type: ignore[arg-type]
    readings.finish()
    return turns, readings


def call(**more: object) -> SpanRecord:
    return span(1, 0, "chat m", {**CALL, **more}, scope=SCOPE)


def weather(**attributes: object) -> SpanRecord:
    return span(2, 1, "weather", attributes, scope=SCOPE, at=2, ms=3)


@pytest.mark.parametrize(
    ("spans", "missing"),
    [
        pytest.param([call(**{"gen_ai.usage.output_tokens": 7})], CONTENT, id="a model answered"),
        pytest.param([call(**{"gen_ai.response.id": "r"})], CONTENT, id="a response without tokens"),
        pytest.param([span(1, name="chat m", attributes=CALL, scope=SCOPE, logs=[LogPart("acme.note", {}, "x")])], CONTENT, id="an unread log record"),
        pytest.param([span(1, name="chat m", attributes=CALL, scope=SCOPE, events=[SpanEvent("acme.say", {"n": 1})])], CONTENT, id="an unread event"),
        pytest.param([agent(1, scope=SCOPE), tool(2, 1, scope=SCOPE, at=1)], CONTENT, id="an agent's tool ran"),
        pytest.param([span(1, 0, "ask", {"question": ASKED, "answer": ANSWERED}), tool(2, 1, attributes=TOOL, scope=SCOPE)], TURN, id="the convention's tool"),
        pytest.param(
            [span(1, 0, "ask", {"input.value": ASKED, "output.value": ANSWERED}), weather(**{"tool.name": "weather", "tool.arguments": ARGUMENTS})],
            TURN, id="a tool in any spelling",
        ),
        pytest.param(
            [span(1), span(3, 1, "in", {"request.text": ASKED}), span(4, 1, "out", {"response.text": ANSWERED}), tool(2, 1, attributes=TOOL, scope=SCOPE)],
            TURN, id="texts on two spans",
        ),
        pytest.param(
            [
                span(1, 0, "ask", {**CHAIN, "input.value": ASKED, "output.value": ANSWERED}, scope=OPENINFERENCE),
                span(2, 1, "weather", {**TOOL_KIND, "input.value": ARGUMENTS, "output.value": RESULT}, scope=SCOPE),
            ],
            TURN, id="a dialect's chain and tool",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("last_first", [False, True], ids=["in order", "reversed"])
def test_missing_part_is_reported(
    spans: list[SpanRecord], missing: str, last_first: bool, caplog: pytest.LogCaptureFixture
) -> None:
    for record in spans:
        record.dialects = None
    turns, readings = read(spans[::-1] if last_first else spans)
    assert [turn.reading for turn in turns] == ([None] if missing == CONTENT else [])
    assert readings.unread == {(SCOPE, missing): 1}
    (said,) = caplog.messages
    assert repr(SCOPE) in said


@pytest.mark.parametrize(
    "spans",
    [
        pytest.param([call()], id="a cancelled call"),
        pytest.param([span(1, 0, "chat m", {**CALL, "error.type": "429"}, error="Too many requests")], id="a failed call"),
        pytest.param([agent(1)], id="an agent without any step"),
        pytest.param([call(**{"gen_ai.usage.output_tokens": 7}), chat(3, 0, user=ASKED, says=ANSWERED, scope=SCOPE, trace_id=2)], id="another turn has texts"),
        pytest.param([span(1, 0, "save", {"archive.messages": ARCHIVED}), chat(3, 0, user=ASKED, says=ANSWERED, trace_id=2)], id="a copy of a turn"),
        pytest.param([chat(3, 0, user=ASKED, says=ANSWERED, trace_id=2), span(1, 0, "save", {"a.messages": ARCHIVED}, scope="b", at=99)], id="a later copy"),
        pytest.param(
            [
                span(1, 0, "request", {"fw.model": "gpt-4.1-mini", "fw.usage": '{"input_tokens": 3}', "http.url": "x"}, scope="b"),
                span(2, 0, "save", {"archive.messages": ARCHIVED}, scope="b", trace_id=2),
                chat(3, 0, user=ASKED, says=ANSWERED, trace_id=3),
            ],
            id="another trace of a scope that copies turns",
        ),
        pytest.param([span(1, 0, "embed", {"fw.model": "text-embedding-3-small", "fw.usage.input_tokens": 12})], id="an embedding"),
        pytest.param([weather(**{"tool.name": "weather", "tool.arguments": ARGUMENTS, "tool.result": "21 degrees"})], id="a tool alone"),
        pytest.param([span(1, 0, "rpc", {"request.body": '{"id": 7}', "response.body": '{"ok": true}'}), tool(2, 1, attributes=TOOL)], id="no words"),
    ],
)  # fmt: skip
def test_nothing_is_reported_if_nothing_is_missing(spans: list[SpanRecord], caplog: pytest.LogCaptureFixture) -> None:
    assert read(spans)[1].unread == {}
    assert caplog.messages == []


def test_counts_of_processes_are_added(caplog: pytest.LogCaptureFixture) -> None:
    whole = Readings(math.inf)
    for says in (None, None, "Hello"):
        part = Readings(math.inf)
        spans = [
            chat(1, 0, says=says, scope="read", attributes={"gen_ai.usage.output_tokens": 7}),
            call(**{"gen_ai.response.id": "r"}),
        ]
        spans[1].trace_id = 2
        list(read_turns(wholes_of(spans, part.note_unread), part))
        whole.add(pickle.loads(pickle.dumps(part)))
    assert caplog.messages == []
    whole.finish()
    assert whole.unread == {(SCOPE, CONTENT): 3}
    assert whole.turns == {("read", "none"): 2, ("read", "exact"): 1, (SCOPE, "none"): 3}
    assert len(caplog.messages) == 1


ARCHIVES = [
    *(CORPUS.with_name(f"{name}.tar.xz") for name in ("corpus", "corpus_b", "frameworks")),
    *sorted((CORPUS.parent / "recordings").glob("*.tar.xz")),
]


def recordings(archive: Path) -> dict[str, list[bytes]]:
    """Return the files of spans and of log records for each recording."""
    found: dict[str, list[bytes]] = defaultdict(list)
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            if member.name.endswith(".jsonl"):
                found[member.name.replace(".logs.jsonl", ".jsonl")].append(packed.extractfile(member).read())  # type: ignore[union-attr]
    return found


def read_files(files: list[bytes]) -> tuple[list[Turn], Readings]:
    return read(item for file in files for line in file.splitlines() for item in items_in(line, Reading(), pytest.fail))


def reported(archive: Path) -> Counter[tuple[str, bool]]:
    """Return the missing data in an archive's recordings, each with True if the recording has a turn with an output."""
    found: Counter[tuple[str, bool]] = Counter()
    found_in = list(recordings(archive).values())
    for files in found_in[:: 4 if len(found_in) > 100 else 1]:
        turns, readings = read_files(files)
        missed = {missing for _, missing in readings.unread} - {CALLER}  # some recordings have tools of one of two nested runs
        found.update((missing, any(turn.output is not None for turn in turns)) for missing in missed)
    return found


WITHOUT_CONTENT = {"autogen-agent", "effect-ai", "genai-otel-openai", "langsmith-anthropic", "corpus", "frameworks"}
"""Archives without "off" in their names that contain recordings without content."""


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.partition(".tar")[0])
def test_recordings_with_content_are_not_reported(archive: Path) -> None:
    name = archive.name.partition(".tar")[0]
    found = reported(archive)
    assert {has_output for _, has_output in found} <= {False}
    assert bool(found) == (name in WITHOUT_CONTENT or name.endswith("-off"))


def test_tool_without_model_calls_in_its_trace_is_reported() -> None:
    """LangSmith traced the run and its tool. The model's SDK traced the calls without content, in another trace."""
    files = recordings(CORPUS.parent / "recordings" / "langsmith-anthropic.tar.xz")["langsmith-anthropic/s10b.jsonl"]
    turns, readings = read_files(files)
    assert [turn.reading for turn in turns] == [None]
    assert readings.unread == {("langsmith", TURN): 1, ("com.anthropic.sdk.python", CONTENT): 1}


@pytest.mark.parametrize("archive", ["ordinary_apps", "ordinary_apps_held_out"])
def test_ordinary_applications_are_not_reported(archive: str) -> None:
    files = recordings(CORPUS.with_name(f"{archive}.tar.xz"))
    found = {name for name in files if name.startswith("plain/") and read_files(files[name])[1].unread}
    assert found <= {"plain/shop-assistants.jsonl"}  # people who answer as a model does, with its roles
