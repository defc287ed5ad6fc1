"""Names and ids that contain personal data or secrets leave as the same markers everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa
from otel_agenteval.backfill import score_batch
from otel_agenteval.cli.main import main
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import MetricError
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.names import public_id, public_name
from otel_agenteval.evaluation.redaction import KINDS
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.spans.columnar import table_of
from otel_agenteval.spans.record import SpanRecord
from otel_agenteval.turns.recordings import Reading, read_items
from tests.outlets.test_webhook import Receiver as Hook
from tests.support.judges import ScriptedModels
from tests.support.receiver import Receiver
from tests.support.rig import Rig, chat_attributes

ADA, BOB, NUMBER = "ada@example.org", "bob@example.org", "+4915112345678"
TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
LEAKS = ("ada@", "bob@", "15112345678", TOKEN)


@pytest.mark.parametrize(
    "name",
    [
        "gpt-4o-2024-11-20", "claude-sonnet-4-5-20250929", "ft:gpt-4o-mini-2024-07-18:acme::A1b2C3d4", "lookup_order_v3", "mcp__github__create_issue", "billing-agent",
        "550e8400-e29b-41d4-a716-446655440000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "thread_abc123DEF456ghi789", "01JD8X2M9QZ4V7K3T5R6W8Y0AB", "conv-2026-11-20-0001",
        "1763640000", "1763640000123", "session-20261120-120000-7", "4711", "user-4711", "20261120001", "2026112000", "order 20261120001", "ValueError", "timeout", "http_503", "openai.RateLimitError",
        "0123456789abcdef0123456789abcdef",
    ],
)  # fmt: skip
def test_ordinary_names_and_ids_stay(name: str) -> None:
    assert (public_name(name, KINDS), public_id(name, KINDS)) == (name, name)


@pytest.mark.parametrize(
    "written",
    [NUMBER, "4915112345678", "004915112345678", "+49 151 12345678", "whatsapp:+4915112345678", "wa-4915112345678"],
)
def test_a_number_has_one_mark_however_an_id_writes_it(written: str) -> None:
    left = public_id(written, KINDS)
    assert "12345678" not in left
    assert public_id(NUMBER, KINDS) in left
    assert public_id(left, KINDS) == left


@pytest.mark.parametrize("written", ["14155552671", "4155552671", "13812345678", "user:ada@example.org", f"agent {TOKEN}"])
def test_people_and_secrets_in_ids_become_marks(written: str) -> None:
    left = public_id(written, KINDS)
    assert left != written
    assert "[" in left
    assert public_id(f"{written}x", KINDS) != left


def test_names_stay_where_nothing_is_to_be_redacted() -> None:
    assert public_id(NUMBER, ()) == NUMBER


@pytest.fixture(autouse=True)
def metrics() -> None:
    @oa.metric()
    def code_named(turn: oa.Turn) -> float:
        """Sees the names as they are."""
        return float((turn.agent, turn.conversation_id, turn.user_id) == (ADA, NUMBER, BOB))

    @oa.metric()
    def code_named_error(turn: oa.Turn) -> float:
        """Fails with a name."""
        raise MetricError(f"not found: {BOB}", "it is not there")

    @oa.metric()
    def code_named_conversation(turn: oa.Turn) -> float:
        """Of a whole conversation."""
        return 1.0


NAMED = ["code_named", "code_named_error"]
OF_AGENT = {
    "gen_ai.agent.name": ADA, "gen_ai.conversation.id": NUMBER, "user.id": BOB, "session.id": NUMBER, "gen_ai.request.model": f"model-of-{ADA}",
    "gen_ai.response.model": f"model-of-{ADA}", "error.type": f"NoSuchUser({BOB})",
}  # fmt: skip


def everything(folder: Path) -> str:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).decode("latin-1")


def assert_nothing_leaks(what: str) -> None:
    assert [leak for leak in LEAKS if leak in what] == []


def test_no_outlet_gets_a_name_of_a_person(tmp_path: Path, models: ScriptedModels) -> None:
    models.play({"score": 10, "reasoning": "fine"})
    receiver, hook = Receiver(), Hook()
    out = tmp_path / "out"
    out.mkdir()
    outlets = {
        "log_events": True, "jsonl": str(out / "scores.jsonl"), "store": {"path": str(out / "scores.db"), "content": True, "attributes": ["user.id", "service.name"]},
        "otlp_file": str(out / "spans.jsonl"), "webhook": {"url": hook.url, "about": ["failed", "errors"], "every": 0},
        "otlp": {"endpoint": receiver.url, "protocol": "http", "evaluate_spans": "linked", "log_events": "all"}, "otlp_metrics": True,
    }  # fmt: skip
    config = {
        "inline": {"metrics": NAMED}, "conversation": {"metrics": ["code_named_conversation"]}, "metrics": ["llm_relevance"],
        "judge": {"base_url": models.url, "model": "scripted", "queue": {"backend": "sqlite", "path": str(out / "queue.db")}}, "outlets": outlets,
    }  # fmt: skip
    provider = TracerProvider(resource=Resource({"service.name": f"bot of {BOB}"}), shutdown_on_exit=False)
    with Rig(config, provider=provider) as rig:
        rig.run(attributes=OF_AGENT)
        assert rig.engine.drain(30, judges=True)
        assert rig.engine.end_conversation(NUMBER)
        assert rig.engine.flush(10)
        logs = [dict(event.attributes) for event in rig.log_events()]
        exposed = str(
            [(family.instrument.name, family.values, family.distributions) for family in rig.engine.telemetry.collect()]
        )
        received = str(receiver.requests) + str(hook.raw)
        why = str([rig.engine.why(turn_id) for turn_id in rig.engine.known_turns("")] + rig.engine.known_turns(""))
    held = everything(out)
    for where in (str(logs), exposed, received, why, held, str(models.asked)):
        assert_nothing_leaks(where)
    values = {event[semconv.EVALUATION_NAME]: event.get(semconv.SCORE_VALUE) for event in logs}
    assert values["code_named"] == 1.0
    number, ada = public_id(NUMBER, KINDS), public_name(ADA, KINDS)
    assert {(event[semconv.CONVERSATION_ID], event[semconv.AGENT_NAME]) for event in logs} == {(number, ada)}
    assert {"code_named", "llm_relevance", "code_named_conversation"} <= values.keys()
    with StoreReader(out / "scores.db") as reader:
        turns = list(reader.turns())
    assert {(turn["conversation_id"], turn["agent"]) for turn in turns} == {(number, ada)}
    assert f"conversation-{number}" in {turn["turn_id"] for turn in turns}
    assert ada in exposed
    assert hook.raw
    receiver.close()
    hook.close()


def test_a_label_is_public_however_it_comes_to_be_counted() -> None:
    telemetry = Telemetry(public=lambda name: public_name(name, KINDS))
    for _ in range(2):
        telemetry.add(semconv.RESULTS, metric="m", agent=ADA, outcome="dropped")
    telemetry.record([(semconv.RESULTS, ("m", ADA, "dropped"), 1)])
    telemetry.watch(semconv.ESTIMATE_MEAN, lambda: [({"metric": "m", "agent": ADA, "window": "1h"}, 0.5)])
    ada = public_name(ADA, KINDS)
    assert telemetry.read(semconv.RESULTS).values == {("m", ada, "dropped"): 3}
    assert telemetry.read(semconv.ESTIMATE_MEAN).values == {("m", ada, "1h"): 0.5}
    assert telemetry.folded(semconv.RESULTS, ("m", ADA, "dropped")) == ("m", ada, "dropped")


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    known = {"gen_ai.operation.name": "invoke_agent", **chat_attributes("Hello.", "Hi."), **OF_AGENT}
    span = {
        "traceId": "a" * 32, "spanId": "b" * 16, "name": "invoke_agent", "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000",
        "attributes": [{"key": key, "value": {"stringValue": str(value)}} for key, value in known.items()],
    }  # fmt: skip
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n")
    return file


@pytest.mark.parametrize("form", ["jsonl", "table", "junit", "markdown", "html"])
def test_no_report_has_a_name_of_a_person(recording: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "report"
    assert main(["eval", str(recording), "--metrics", ",".join(NAMED), "--format", form, "--out", str(out)]) == 0
    assert "code_named" in out.read_text()
    assert_nothing_leaks(out.read_text())


def test_no_result_of_a_backfill_has_a_name_of_a_person(recording: Path) -> None:
    table = table_of([item for item in read_items([str(recording)], Reading(), print) if isinstance(item, SpanRecord)])
    rows: list[dict[str, Any]] = score_batch(table, {"inline": {"metrics": NAMED}}).to_pylist()
    assert {row["conversation_id"] for row in rows} == {public_id(NUMBER, KINDS)}
    assert_nothing_leaks(str(rows))
