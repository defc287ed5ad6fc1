"""Every text of a score is redacted before any outlet gets it, and only then."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.backfill import score_batch
from otel_agenteval.cli.main import main
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import MetricError
from otel_agenteval.evaluation import redaction
from otel_agenteval.evaluation.redaction import Redactor
from otel_agenteval.outlets.otlp.outlet import OtlpOutlet
from otel_agenteval.outlets.store.outlet import StoreOutlet
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.report import FORMATS
from otel_agenteval.spans.columnar import table_of
from otel_agenteval.spans.record import SpanRecord
from otel_agenteval.turns.recordings import Reading, read_items
from tests.support.judges import ScriptedModels
from tests.support.receiver import Receiver
from tests.support.rig import Rig, chat_attributes

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
CARD = "4111 1111 1111 1111"
SAID = f"See https://acme.test/reset?token={TOKEN}, card {CARD}, ada@example.org."
LEAKS = (TOKEN, "4111 1111", "41111111", "ada@example.org")  # ids of a trace hold any four digits by chance


@pytest.fixture(autouse=True)
def quoting() -> None:
    """Metrics that quote the turn wherever a score has a text."""

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
        """Fails with the answer."""
        raise MetricError("quoting", f"cannot read {turn.output}")

    @oa.metric()
    def code_quotes_conversation(turn: oa.Turn) -> Any:
        """Quotes what was said."""
        return oa.Result(0.25, passed=False, explanation=turn.output)


QUOTING = ["code_quotes", "code_quotes_later", "code_quotes_in_an_error"]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def everything(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())


def assert_nothing_leaks(what: str) -> None:
    assert [leak for leak in LEAKS if leak in what] == []


def test_no_outlet_gets_what_a_score_quotes(tmp_path: Path, receiver: Receiver) -> None:
    out = tmp_path / "out"
    out.mkdir()
    outlets = {
        "log_events": True, "jsonl": str(out / "scores.jsonl"), "store": str(out / "scores.db"),
        "otlp": {"endpoint": receiver.url, "protocol": "http", "evaluate_spans": "linked", "log_events": "all", "spool": {"directory": str(out / "spool")}},
    }  # fmt: skip
    config = {
        "inline": {"metrics": QUOTING}, "outlets": outlets, "conversation": {"metrics": ["code_quotes_conversation"]},
        "metrics": [],
    }  # fmt: skip
    with Rig(config) as rig:
        rig.run(says=SAID, attributes={"gen_ai.conversation.id": "c1"})
        [scored] = rig.scored()
        assert rig.engine.end_conversation("c1")
        events = rig.score_events("invoke_agent bot")
        logs = [dict(event.attributes) for event in rig.log_events()]
        left = receiver.wait_for(lambda: len(receiver.scores()) >= 4 and receiver.requests)
        assert rig.engine.flush(10)
        held = everything(out)
    assert scored.turn.output == SAID
    for where in (events, logs, left, [score.to_dict() for kept in rig.kept for score in kept.scores]):
        assert_nothing_leaks(str(where))
    assert_nothing_leaks(held.decode("latin-1"))
    assert {event[semconv.EVALUATION_NAME] for event in logs} == {*QUOTING, "code_quotes_conversation"}
    redacted = "See https://acme.test/reset?token=[SECRET_1], card [CARD_1], [EMAIL_1]."
    assert events["code_quotes"][semconv.EXPLANATION] == redacted
    assert [event[semconv.EXPLANATION] for event in logs if event[semconv.EVALUATION_NAME] == "code_quotes_later"] == [redacted]
    lines = [json.loads(line) for line in (out / "scores.jsonl").read_text().splitlines()]
    [line] = [line for line in lines if line["metric"] == "code_quotes"]
    assert line["detail"] == {
        "said": {redacted: [redacted]}, "card": "[CARD_1]", "calls": 3, "start": 1_732_234_567_123, "trace_id": "4" * 32,
    }  # fmt: skip
    assert line["also"]["inner"]["explanation"] == redacted
    assert (line["value"], line["passed"], line["result_id"]) == (0.25, False, events["code_quotes"][semconv.RESULT_ID])
    with StoreReader(out / "scores.db") as reader:
        rows = {row["metric"]: row for row in reader.scores(scored.turn.turn_id)}
    assert rows["code_quotes"]["explanation"] == redacted
    assert [oct(stat.S_IMODE(file.stat().st_mode)) for file in out.rglob("*") if file.is_file()] == ["0o600"] * len(
        [file for file in out.rglob("*") if file.is_file()]
    )


def test_what_a_judge_says_is_redacted_too(models: ScriptedModels, tmp_path: Path) -> None:
    models.play({"score": 10, "reasoning": SAID})
    judge = {"base_url": models.url, "model": "scripted"}
    file = tmp_path / "scores.jsonl"
    with Rig({"inline": {"metrics": []}, "metrics": ["llm_relevance"], "judge": judge, "outlets": {"jsonl": str(file)}}) as rig:
        rig.run()
        assert rig.engine.drain(30, judges=True)
        assert_nothing_leaks(str([dict(event.attributes) for event in rig.log_events()]))
    assert_nothing_leaks(file.read_text())
    assert "[EMAIL_1]" in file.read_text()


def test_a_find_has_the_same_marker_in_scores_content_and_judges_questions(models: ScriptedModels, tmp_path: Path) -> None:
    models.play({"score": 10})
    judge = {"base_url": models.url, "model": "scripted"}
    config = {
        "inline": {"metrics": ["code_quotes_later"]}, "metrics": ["llm_relevance"], "judge": judge,
        "outlets": {"store": {"path": str(tmp_path / "scores.db"), "content": True}}, "privacy": {"export_content": True},
    }  # fmt: skip
    with Rig(config) as rig:
        rig.run(user="I am bob@example.org.", says="Ask ada@example.org.")
        [scored, *_] = rig.scored()
        assert rig.engine.drain(30, judges=True)
        events = [dict(event.attributes) for event in rig.log_events()]
    assert "ada@" not in str(events)
    with StoreReader(tmp_path / "scores.db") as reader:
        turn = reader.turn(scored.turn.turn_id)
    assert turn is not None
    assert (turn["content"]["input"], turn["content"]["output"]) == ("I am [EMAIL_1].", "Ask [EMAIL_2].")
    assert {(event[semconv.TURN_INPUT], event[semconv.TURN_OUTPUT]) for event in events} == {
        ("I am [EMAIL_1].", "Ask [EMAIL_2].")
    }
    assert "Ask [EMAIL_2]." in models.asked[0]
    assert [event[semconv.EXPLANATION] for event in events if semconv.EXPLANATION in event] == ["Ask [EMAIL_2]."]


def test_what_a_caller_gets_is_not_redacted() -> None:
    turn = oa.Turn.from_dict({"turn_id": "t", "output": SAID})
    score = oa.get_metric("code_quotes").evaluate(turn)
    assert (score.explanation, score.detail["said"]) == (SAID, {SAID: [SAID]})
    left = Redactor(redaction.KINDS).score(score)
    assert_nothing_leaks(str(left.to_dict()))
    assert (score.explanation, score.detail["said"], score.also["inner"].explanation) == (SAID, {SAID: [SAID]}, SAID)


def test_nothing_is_redacted_where_nothing_is_to_be() -> None:
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
        assert_nothing_leaks(str(dict(event.attributes)))
        assert rig.engine.outlets.errors[("redaction", "ValueError")] >= 1
        assert rig.engine.flush(10)
        assert_nothing_leaks(everything(tmp_path).decode("latin-1"))
    assert {json.loads(line)["metric"] for line in file.read_text().splitlines()} == {"code_quotes", "code_latency"}


def test_text_is_redacted_first_and_cut_after() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "Ab1/" * 1_600 + "\n-----END PRIVATE KEY-----"
    turn = oa.Turn.from_dict({"turn_id": "t", "output": f"{key} {'x ' * 800} {TOKEN} end"})
    said = redaction.exported(turn, redaction.KINDS)[semconv.TURN_OUTPUT]
    assert TOKEN[:12] not in said
    assert len(said) <= redaction.MOST_EXPORTED


def test_outlets_of_scores_know_nothing_of_redaction() -> None:
    assert "redact" not in OtlpOutlet.__init__.__annotations__
    assert "redact" in StoreOutlet.__init__.__annotations__  # of the content that it keeps


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    """A turn that quotes, as a file of OTLP/JSON."""
    known = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot", **chat_attributes("Hello.", SAID)}
    span = {
        "traceId": "a" * 32, "spanId": "b" * 16, "name": "invoke_agent bot",
        "startTimeUnixNano": "1000000000", "endTimeUnixNano": "2000000000",
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
    rows = score_batch(table, {"inline": {"metrics": QUOTING}}).to_pylist()
    assert {row["metric"] for row in rows} == set(QUOTING)
    assert_nothing_leaks(str(rows))
