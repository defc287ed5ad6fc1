"""An invalid surrogate or byte affects only one character, not its batch, line, file or job."""

from __future__ import annotations

import json
import math
import sqlite3
from http import HTTPStatus
from pathlib import Path
from typing import Any

import orjson
import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

import otel_agenteval as oa
from otel_agenteval.config import yaml
from otel_agenteval.core import jsonio, literals
from otel_agenteval.core.wellformed import MAX_DEPTH, decoded, plain, well_formed
from otel_agenteval.instrumentation.expectations import expect
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.turns.recordings import Reading, load_turns
from tests.support.judges import ScriptedModels
from tests.support.rig import Rig
from tests.support.service import AGENT, Sidecar, request

HALF, GONE = "\ud83d", "\ufffd"
ESCAPED = "\\ud83d"
LLM = {"openinference.span.kind": "LLM"}
IN_JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        (f"a{HALF}b", f"a{GONE}b"),
        (f"{HALF}\ude00", "\N{GRINNING FACE}"),
        ("\ude00\ud83d", GONE * 2),
        ("é\N{GRINNING FACE}", "é\N{GRINNING FACE}"),
    ],
)
def test_a_half_is_replaced_and_a_whole_stays(text: str, expected: str) -> None:
    assert well_formed(text) == expected
    value = {text: [text, (text,), {"k": text}], "n": 1}
    assert plain(value) == {expected: [expected, (expected,), {"k": expected}], "n": 1}
    assert (plain(value) is value) is (text == expected)
    assert decoded(text.encode("utf-8", "surrogatepass")) == expected


class Odd:
    """An application's object."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({7: 2, None: 3, True: 4, (5,): 6}, {"7": 2, "null": 3, "true": 4, "(5,)": 6}),
        ([math.nan, math.inf, 1.5], [None, None, 1.5]),
        ([2**64 - 1, 2**64, -(2**70), 10**400], [2**64 - 1, float(2**64), float(-(2**70)), None]),
        ({"b", "a"}, ["a", "b"]),
        (b"\x00\xff", "AP8="),
        (HTTPStatus.OK, 200),
        (Odd(), None),
    ],
)
def test_plain_value_has_json_types(value: Any, expected: Any) -> None:
    found = plain(value)
    assert found == expected
    assert plain(found) is found
    assert orjson.loads(orjson.dumps(found)) == found


def test_plain_value_ends_at_a_depth() -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    assert orjson.dumps(plain(deep)).count(b"[") == 200


def test_literal_has_json_types() -> None:
    assert literals.python_literal("{(1, 2): {3}, 4: b'x', 'a': (1e999, None)}") == {
        "(1, 2)": [3],
        "4": "eA==",
        "a": (None, None),
    }


@pytest.mark.parametrize("text", ["{[1]: 2}", "x()", "[" * 9_999, "'\\N{no such name}'"])
def test_literal_is_refused_if_it_is_none(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
        literals.python_literal(text)


def test_json_deeper_than_the_encoder_takes_is_refused() -> None:
    deepest = f'{"[" * MAX_DEPTH}"{"x" * 500}"{"]" * MAX_DEPTH}'
    assert jsonio.dumps(jsonio.loads(deepest)) == deepest
    for depth in (1, 50, 700):
        with pytest.raises(ValueError, match="deep"):
            jsonio.loads("[" * depth + deepest + "]" * depth)


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (rf'["{ESCAPED}"]', [GONE]),
        (rf'["{ESCAPED}\\ude00 x {ESCAPED}"]', [rf"{GONE}\ude00 x {GONE}"]),
        (rf'["{ESCAPED}\ude00 {ESCAPED}\n{ESCAPED}\u0041"]', [f"\N{GRINNING FACE} {GONE}\n{GONE}A"]),
        (r'["\\ud83d", "\uDE00\uD83D"]', [r"\ud83d", GONE * 2]),
        (rf'{{"{ESCAPED}": "\uDFFF"}}', {GONE: GONE}),
    ],
)
def test_json_with_halves_is_json(document: str, expected: Any) -> None:
    for form in (document, document.encode()):
        assert jsonio.loads(form) == jsonio.loads_lenient(form) == expected
    assert jsonio.loads_or_text(document) == (expected, False)
    for invalid in (document[:-1], document + "x"):
        with pytest.raises(ValueError):  # noqa: PT011 - the parser's own words
            jsonio.loads(invalid)


def test_raw_halves_and_bytes_are_replaced_too() -> None:
    for raw in (f'["{HALF}é"]', b'["\xed\xa0\xbd\xc3\xa9"]', b'["\xff\xc3\xa9"]'):
        assert jsonio.loads(raw) == [f"{GONE}é"]
    assert jsonio.dumps({HALF: [f"{HALF}é", 2**70]}) == f'{{"{GONE}":["{GONE}é",{2**70}]}}'
    assert jsonio.loads(jsonio.dumps({"a": HALF}).encode()) == {"a": GONE}  # as a job, or a line


def turn_as_json(text: str) -> dict[str, Any]:
    def attributes(**values: str) -> list[dict[str, Any]]:
        return [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in values.items()]

    said = attributes(
        gen_ai__operation__name="chat", openinference__span__kind="LLM", input__value=text, output__value=f"{text}!"
    )
    chat = {"spanId": f"{2:016x}", "parentSpanId": f"{1:016x}", "name": "chat", "attributes": said}
    agent = {"spanId": f"{1:016x}", "name": text, "attributes": attributes(gen_ai__operation__name="invoke_agent")}
    spans = [{"traceId": f"{1:032x}", **span} for span in (chat, agent)]
    return {"resourceSpans": [{"resource": {"attributes": attributes(service__name=text)}, "scopeSpans": [{"spans": spans}]}]}


def test_a_batch_in_json_and_a_line_of_a_file_are_taken_whole(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps(turn_as_json(f"x{HALF}")) + "\n")
    reading = Reading()
    assert [turn.output for turn in load_turns(file, reading=reading)] == [f"x{GONE}!"]
    assert (reading.bad, reading.spans) == (0, 2)
    with Sidecar() as sidecar:
        for trace, body in ((1, json.dumps(turn_as_json(HALF)).encode()), (2, json.dumps(turn_as_json("\xff")).encode())):
            sent = body.replace(b"\\u00ff", b"\xff").replace(f"{1:032x}".encode(), f"{trace:032x}".encode())
            status, _, answer = sidecar.post("/v1/traces", sent, IN_JSON)
            assert (status, answer) == (200, b"{}")
        assert [(turn.service, turn.output) for turn in sidecar.turns()] == [(GONE, f"{GONE}!")] * 2


def test_protobuf_texts_that_are_not_utf_8_are_read() -> None:
    spans = (
        {"id": 1, "name": "invoke_agent bot", "attributes": AGENT},
        {"id": 2, "parent": 1, "attributes": {**LLM, "input.value": "in@@", "output.value": "out@@", "k@@": "v"}},
    )
    # of the same length, so that protobuf's own counts stay true
    body = request(*spans, service="s@@@").replace(b"@@@", b"\xed\xa0\xbd").replace(b"@@", b"\xff\xff")
    with Sidecar() as sidecar:
        assert sidecar.post("/v1/traces", body)[0] == 200
        [turn] = sidecar.turns()
        assert (turn.agent, turn.output, turn.service) == ("bot", f"out{GONE * 2}", f"s{GONE}")
        message = ExportLogsServiceRequest()
        records = message.resource_logs.add().scope_logs.add().log_records
        record = records.add(trace_id=(9).to_bytes(16, "big"), span_id=(1).to_bytes(8, "big"), event_name="gen_ai.user.message")
        record.attributes.add(key="k@@").value.string_value = "v@@"
        record.body.kvlist_value.values.add(key="content").value.string_value = "hello@@"
        status, _, answer = sidecar.post("/v1/logs", message.SerializeToString().replace(b"@@", b"\xff\xff"))
        assert (status, answer) == (200, b"")
        assert sidecar.engine.intake.early_logs


def test_what_an_sdk_holds_leaves_through_every_outlet(models: ScriptedModels, tmp_path: Path) -> None:
    models.play({"score": 90, "reason": f"It answers {HALF}."})
    scores, store = tmp_path / "scores.jsonl", tmp_path / "store.db"
    queue = {"backend": "sqlite", "path": str(tmp_path / "queue.db")}
    config = {
        "metrics": ["llm_relevance"], "inline": {"metrics": ["code_latency"]}, "privacy": {"redact": []},
        "judge": {"base_url": models.url, "model": "scripted", "queue": queue},
        "outlets": {"jsonl": str(scores), "store": {"path": str(store), "content": True}, "log_events": True},
    }  # fmt: skip
    registry = CollectorRegistry()
    with Rig(config) as rig:
        rig.engine.outlets.add(PrometheusOutlet(rig.engine.telemetry, registry=registry))
        said = {"gen_ai.conversation.id": f"c{HALF}"}
        with expect(ground_truth=f"Paris{HALF}"), rig.agent(f"bot{HALF}", attributes=said) as span:
            span.add_event("exception", {"exception.message": f"x{HALF}"})
            rig.chat(f"where{HALF}", f"here{HALF}", attributes={f"k{HALF}": (f"v{HALF}",)})
        assert rig.engine.drain(60, judges=True)
        assert rig.engine.flush(60)
        turn = rig.kept[0].turn
        assert (turn.agent, turn.conversation_id, turn.output) == (f"bot{GONE}", f"c{GONE}", f"here{GONE}")
        encode_logs(rig._logs.get_finished_logs())  # as the application's own exporter does
        assert f"bot{GONE}".encode() in generate_latest(registry)
        assert rig.count("agenteval.judge.requests") == {("ok",): 1}
        assert not rig.engine.outlets.errors
        assert not rig.engine.failures
    assert {json.loads(line)["agent"] for line in scores.read_text().splitlines()} == {f"bot{GONE}"}
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT count(*) FROM scores").fetchone() == (2,)
    assert f"where{GONE}" in models.asked[0] or f"here{GONE}" in models.asked[0]


def test_turns_and_configurations_hold_none(models: ScriptedModels) -> None:
    messages = [{"role": "user", "content": f"q{HALF}"}]
    turn = oa.Turn.from_dict({"input": f"q{HALF}", "output": "a", "messages": messages, "metadata": {HALF: [HALF]}})
    assert (turn.input, turn.messages[0].content, turn.metadata) == (f"q{GONE}", f"q{GONE}", {GONE: [GONE]})
    assert models.score("llm_relevance", oa.Turn(input=f"q{HALF}", output="a"), {"score": 90}).value == 0.9
    assert f"q{GONE}" in models.asked[0]
    assert yaml.load('a: "\\ud83d"\nb: ${env:X}', "f", {"X": "\udcff"})[0] == {"a": GONE, "b": GONE}
