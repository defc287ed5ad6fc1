"""Every text, name and id of a score or turn is redacted before an outlet or judge receives it, and not earlier."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
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
from otel_agenteval.evaluation import redaction
from otel_agenteval.evaluation.names import public_id, public_name
from otel_agenteval.evaluation.redaction import KINDS, Redactor
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.report import FORMATS
from otel_agenteval.spans.columnar import table_of
from otel_agenteval.spans.record import SpanRecord
from otel_agenteval.turns.recordings import Reading, read_items
from tests.outlets.test_webhook import Receiver as Hook
from tests.support.judges import ScriptedModels
from tests.support.receiver import Receiver
from tests.support.rig import Rig, chat_attributes
from tests.support.service import Sidecar

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
SAID = f"See https://acme.test/reset?token={TOKEN}, card 4111 1111 1111 1111, ada@example.org."
REDACTED = "See https://acme.test/reset?token=[SECRET_1], card [CARD_1], [EMAIL_1]."
ADA, BOB, NUMBER = "ada@example.org", "bob@example.org", "+4915112345678"
LEAKS = (TOKEN, "4111 1111", "41111111", "ada@", "bob@", "15112345678")  # ids of a trace hold any four digits by chance
OF_AGENT = {
    "gen_ai.agent.name": ADA, "gen_ai.conversation.id": NUMBER, "user.id": BOB, "session.id": NUMBER, "gen_ai.request.model": f"model-of-{ADA}",
    "gen_ai.response.model": f"model-of-{ADA}", "error.type": f"NoSuchUser({BOB})",
}  # fmt: skip
QUOTING = ["code_quotes", "code_quotes_later", "code_quotes_in_an_error", "code_named"]


@pytest.fixture(autouse=True)
def quoting() -> None:
    """Register metrics that quote the turn in every text field of a score."""

    @oa.metric()
    def code_quotes(turn: oa.Turn) -> Any:
        """Quotes the answer."""
        said = turn.output or ""
        inner = oa.Score("code_quotes_inner", 0.5, explanation=said, detail={"said": [said]})
        return oa.Result(
            0.25, passed=False, label=f"by {said[-16:-1]}", explanation=said, also={"inner": inner},
            detail={"said": {said: [said]}, "card": 4111111111111111, "calls": 3, "start": 1_732_234_567_123, "trace_id": "4" * 32},
        )  # fmt: skip

    @oa.metric(traits=("heavy",))
    def code_quotes_later(turn: oa.Turn) -> Any:
        """Quotes the answer, on the worker."""
        return oa.Result(0.25, passed=False, explanation=turn.output)

    @oa.metric()
    def code_quotes_in_an_error(turn: oa.Turn) -> float:
        """Fails with the answer and a name."""
        raise MetricError(f"not found: {BOB}", f"cannot read {turn.output}")

    @oa.metric()
    def code_named(turn: oa.Turn) -> float:
        """Sees the names as they are."""
        return float((turn.agent, turn.conversation_id, turn.user_id) == (ADA, NUMBER, BOB))

    @oa.metric()
    def code_quotes_conversation(turn: oa.Turn) -> Any:
        """Quotes what was said."""
        return oa.Result(0.25, passed=False, explanation=turn.output)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def hook() -> Iterator[Hook]:
    hook = Hook()
    yield hook
    hook.close()


def everything(folder: Path) -> str:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file()).decode("latin-1")


def assert_nothing_leaks(what: object) -> None:
    assert [leak for leak in LEAKS if leak in str(what)] == []


def test_no_outlet_gets_what_a_score_quotes_or_a_name(
    tmp_path: Path, receiver: Receiver, hook: Hook, models: ScriptedModels
) -> None:
    models.play({"score": 10, "reasoning": SAID})
    out = tmp_path / "out"
    out.mkdir()
    spool = {"directory": str(out / "spool")}
    outlets = {
        "log_events": True, "jsonl": str(out / "scores.jsonl"), "store": {"path": str(out / "scores.db"), "content": True, "attributes": ["user.id", "service.name"]},
        "otlp_file": str(out / "spans.jsonl"), "webhook": {"url": hook.url, "about": ["failed", "errors"], "every": 0}, "otlp_metrics": True,
        "otlp": {"endpoint": receiver.url, "protocol": "http", "evaluate_spans": "linked", "log_events": "all", "spool": spool},
    }  # fmt: skip
    config = {
        "inline": {"metrics": QUOTING}, "conversation": {"metrics": ["code_quotes_conversation"]}, "metrics": ["llm_relevance"], "outlets": outlets,
        "judge": {"base_url": models.url, "model": "scripted", "queue": {"backend": "sqlite", "path": str(out / "queue.db")}},
    }  # fmt: skip
    provider = TracerProvider(resource=Resource({"service.name": f"bot of {BOB}"}), shutdown_on_exit=False)
    with Rig(config, provider=provider) as rig:
        rig.run(says=SAID, attributes=OF_AGENT)
        [scored, *_] = rig.scored()
        assert rig.engine.drain(60, judges=True)
        assert rig.engine.end_conversation(NUMBER)
        events = rig.score_events("invoke_agent bot")
        receiver.wait_for(lambda: len(receiver.scores()) >= 5 and receiver.requests)
        assert rig.engine.flush(60)
        logs = [dict(event.attributes) for event in rig.log_events()]
        exposed = [(family.instrument.name, family.values, family.distributions) for family in rig.engine.telemetry.collect()]
        why = [rig.engine.why(turn_id) for turn_id in rig.engine.known_turns("")] + rig.engine.known_turns("")
        kept = [score.to_dict() for kept in rig.kept for score in kept.scores]
    assert scored.turn.output == SAID
    for where in (events, logs, exposed, kept, why, receiver.requests, hook.raw, models.asked, everything(out)):
        assert where
        assert_nothing_leaks(where)
    values = {event[semconv.EVALUATION_NAME]: event.get(semconv.SCORE_VALUE) for event in logs}
    assert values.keys() == {*QUOTING, "code_quotes_conversation", "llm_relevance"}
    assert values["code_named"] == 1.0
    number, ada = public_id(NUMBER, KINDS), public_name(ADA, KINDS)
    assert ada in str(exposed)
    assert {(event[semconv.CONVERSATION_ID], event[semconv.AGENT_NAME]) for event in logs} == {(number, ada)}
    assert events["code_quotes"][semconv.EXPLANATION] == REDACTED
    assert [event[semconv.EXPLANATION] for event in logs if event[semconv.EVALUATION_NAME] == "code_quotes_later"] == [REDACTED]
    lines = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    [line] = [line for line in lines if line["metric"] == "code_quotes"]
    assert line["detail"] == {
        "said": {REDACTED: [REDACTED]}, "card": "[CARD_1]", "calls": 3, "start": 1_732_234_567_123, "trace_id": "4" * 32,
    }  # fmt: skip
    assert line["also"]["inner"]["explanation"] == REDACTED
    assert (line["value"], line["passed"], line["result_id"]) == (0.25, False, events["code_quotes"][semconv.RESULT_ID])
    with StoreReader(out / "scores.db") as reader:
        turns = list(reader.turns())
        rows = {row["metric"]: row for row in reader.scores(scored.turn.turn_id)}
    assert rows["code_quotes"]["explanation"] == REDACTED
    assert {(turn["conversation_id"], turn["agent"]) for turn in turns} == {(number, ada)}
    assert f"conversation-{number}" in {turn["turn_id"] for turn in turns}
    assert {oct(stat.S_IMODE(file.stat().st_mode)) for file in out.rglob("*") if file.is_file()} == {"0o600"}


def test_a_find_has_the_same_marker_in_scores_content_and_judges_questions(models: ScriptedModels, tmp_path: Path) -> None:
    models.play({"score": 10})
    config = {
        "inline": {"metrics": ["code_quotes_later"]}, "metrics": ["llm_relevance"], "judge": {"base_url": models.url, "model": "scripted"},
        "outlets": {"store": {"path": str(tmp_path / "scores.db"), "content": True}}, "privacy": {"export_content": True},
    }  # fmt: skip
    with Rig(config) as rig:
        rig.run(user="I am bob@example.org.", says="Ask ada@example.org.")
        [scored, *_] = rig.scored()
        assert rig.engine.drain(60, judges=True)
        events = [dict(event.attributes) for event in rig.log_events()]
    with StoreReader(tmp_path / "scores.db") as reader:
        turn = reader.turn(scored.turn.turn_id)
    assert turn is not None
    redacted = ("I am [EMAIL_1].", "Ask [EMAIL_2].")
    assert (turn["content"]["input"], turn["content"]["output"]) == redacted
    assert {(event[semconv.TURN_INPUT], event[semconv.TURN_OUTPUT]) for event in events} == {redacted}
    assert "Ask [EMAIL_2]." in models.asked[0]
    assert [event[semconv.EXPLANATION] for event in events if semconv.EXPLANATION in event] == ["Ask [EMAIL_2]."]


def test_neither_a_caller_nor_a_configuration_without_kinds_gets_redacted_scores() -> None:
    turn = oa.Turn.from_dict({"turn_id": "t", "output": SAID})
    score = oa.get_metric("code_quotes").evaluate(turn)
    assert_nothing_leaks(Redactor(KINDS).score(score).to_dict())
    assert (score.explanation, score.detail["said"], score.also["inner"].explanation) == (SAID, {SAID: [SAID]}, SAID)
    with Rig({"inline": {"metrics": ["code_quotes"]}, "privacy": {"redact": []}}) as rig:
        rig.run(says=SAID)
        assert rig.score_events("invoke_agent bot")["code_quotes"][semconv.EXPLANATION] == SAID


def test_a_score_that_cannot_be_redacted_leaves_without_its_texts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def failing(*_: Any) -> Any:
        raise ValueError("redaction failed")

    monkeypatch.setattr(Redactor, "text", failing)
    file = tmp_path / "scores.jsonl"
    outlets = {"jsonl": str(file), "store": {"path": str(tmp_path / "scores.db"), "content": True}}
    with Rig({"inline": {"metrics": ["code_quotes", "code_latency"]}, "outlets": outlets}) as rig:
        rig.run(says=SAID)
        [event] = [event for event in rig.log_events() if event.attributes[semconv.EVALUATION_NAME] == "code_quotes"]
        assert (event.attributes[semconv.SCORE_VALUE], event.attributes[semconv.PASSED]) == (0.25, False)
        assert_nothing_leaks(dict(event.attributes))
        assert rig.engine.outlets.errors[("redaction", "ValueError")] >= 1
        assert rig.engine.flush(60)
        assert_nothing_leaks(everything(tmp_path))
    assert {json.loads(line)["metric"] for line in file.read_text().splitlines()} == {"code_quotes", "code_latency"}


def test_text_is_redacted_first_and_cut_after() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "Ab1/" * 1_600 + "\n-----END PRIVATE KEY-----"
    turn = oa.Turn.from_dict({"turn_id": "t", "output": f"{key} {'x ' * 800} {TOKEN} end"})
    said = redaction.exported(turn, KINDS)[semconv.TURN_OUTPUT]
    assert TOKEN[:12] not in said
    assert len(said) <= redaction.MOST_EXPORTED


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """Write an OTLP/JSON file with a turn that quotes."""
    known = {"gen_ai.operation.name": "invoke_agent", **chat_attributes("Hello.", SAID), **OF_AGENT}
    span = {
        "traceId": "a" * 32, "spanId": "b" * 16, "name": "invoke_agent", "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000",
        "attributes": [{"key": key, "value": {"stringValue": str(value)}} for key, value in known.items()],
    }  # fmt: skip
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}) + "\n")
    return file


@pytest.mark.parametrize("form", FORMATS)
def test_reports_of_the_command_line_are_redacted_and_their_owners_alone(recording: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "report"
    assert main(["eval", str(recording), "--metrics", ",".join(QUOTING), "--format", form, "--out", str(out)]) == 0
    assert "code_quotes" in out.read_text()
    assert_nothing_leaks(out.read_text())
    assert stat.S_IMODE(out.stat().st_mode) == 0o600


def test_results_of_a_backfill_are_redacted(recording: Path) -> None:
    table = table_of([item for item in read_items([str(recording)], Reading(), print) if isinstance(item, SpanRecord)])
    rows: list[dict[str, Any]] = score_batch(table, {"inline": {"metrics": QUOTING}}).to_pylist()
    assert {row["metric"] for row in rows} == set(QUOTING)
    assert {row["conversation_id"] for row in rows} == {public_id(NUMBER, KINDS)}
    assert_nothing_leaks(rows)


def test_no_outlet_gets_personal_data_from_any_field_of_a_request(tmp_path: Path, receiver: Receiver) -> None:
    """Report: outlets leaked an email address in a scope name, a call id, an event name and a resource key."""

    def mail(where: str) -> str:
        return f"{where}@leak.example.org"

    def pairs(**values: Any) -> list[dict[str, Any]]:
        of_all = {
            name.replace("__", "."): value if isinstance(value, dict) else {"stringValue": value}
            for name, value in values.items()
        }
        return [{"key": name, "value": value} for name, value in of_all.items()]

    def parts(kind: str, **more: Any) -> str:
        return json.dumps([{"role": "assistant" if kind == "tool_call" else "tool", "parts": [{"type": kind, **more}]}])

    asked = parts("tool_call", id=mail("request"), name="lookup", arguments={"a": 1})
    answered = parts("tool_call_response", id=mail("request"), result="ok")
    at = 1_700_000_000_000_000_000

    def span(number: int, trace: str = "ab", **values: Any) -> dict[str, Any]:
        parent = {"parentSpanId": f"{1:016x}"} if number > 1 else {}
        return {
            "traceId": trace * 16, "spanId": f"{number:016x}", "name": mail("span"), "startTimeUnixNano": str(at + number), "endTimeUnixNano": str(at + 10**9),
            "attributes": [*pairs(**values), *[{"key": mail("key"), "value": {"stringValue": "x"}}]], "status": {"code": 2, "message": mail("status")},
            "events": [{"name": mail("event"), "timeUnixNano": str(at), "attributes": pairs(a=mail("of-event"))}], **parent,
        }  # fmt: skip

    found = [
        span(1, gen_ai__operation__name="invoke_agent", gen_ai__agent__name="bot", gen_ai__input__messages=answered, gen_ai__output__messages=asked),
        span(2, gen_ai__operation__name="chat", gen_ai__response__id=mail("response"), gen_ai__response__finish_reasons=mail("finish"), gen_ai__output__messages=asked),
        span(3, gen_ai__operation__name="execute_tool", gen_ai__tool__name="lookup", gen_ai__tool__call__id=mail("call"), error__type=mail("error")),
    ]  # fmt: skip
    values = {"arrayValue": {"values": [{"stringValue": mail("list")}]}}
    keys = {"kvlistValue": {"values": pairs(**{mail("inner"): mail("value")})}}
    resource = {"attributes": [*pairs(a=values, b=keys), {"key": mail("resource"), "value": {"stringValue": "x"}}]}
    unread = {
        "scope": {"name": mail("unread")},
        "spans": [span(1, "cd", gen_ai__operation__name="chat", gen_ai__request__model="m")],
    }
    scopes = [{"scope": {"name": mail("scope"), "version": mail("version")}, "spans": found}, unread]
    log = {
        "traceId": "ab" * 16,
        "spanId": f"{1:016x}",
        "timeUnixNano": str(at),
        "eventName": mail("log"),
        "body": {"stringValue": mail("body")},
    }
    logs = {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": {"name": mail("logs")}, "logRecords": [log]}]}]}
    out = tmp_path / "out"
    out.mkdir()
    outlets = {
        "jsonl": str(out / "scores.jsonl"), "store": {"path": str(out / "scores.db"), "content": True}, "otlp_file": str(out / "spans.jsonl"),
        "otlp": {"endpoint": receiver.url, "protocol": "http", "evaluate_spans": "linked", "log_events": "all"},
    }  # fmt: skip
    with Sidecar({"outlets": outlets, "privacy": {"export_content": True}, "inline": {"metrics": "all"}}) as sidecar:
        is_json = {"Content-Type": "application/json"}
        assert sidecar.post("/v1/logs", json.dumps(logs).encode(), is_json)[0] == 200
        assert (
            sidecar.post(
                "/v1/traces", json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]}).encode(), is_json
            )[0]
            == 200
        )
        turn_id = sidecar.turns()[0].turn_id
        assert sidecar.engine.flush(60)
        pages = ("/api/v1/turns", f"/api/v1/turns/{turn_id}", f"/api/why/{turn_id}", "/api/status", "/api/v1/facets")
        shown = [sidecar.get("/metrics", "metrics")[1], *[sidecar.get(page, "web")[1] for page in pages]]
    with StoreReader(out / "scores.db") as reader:
        kept = reader.turn(turn_id)
    assert kept is not None
    assert all("EMAIL" in str(where) for where in (kept["content"], receiver.requests, shown[0]))
    for where in (shown, kept, str(receiver.requests), everything(out)):
        assert "leak.example" not in str(where)
