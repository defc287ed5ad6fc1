"""``otel-agenteval differences`` finds the cause of three incidents in a store and in recorded traces."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.core.turn import ErrorInfo, LlmCall, ToolCall, Turn
from otel_agenteval.evaluation.scored_turn import Judged, Root, ScoredTurn
from otel_agenteval.outlets.store.outlet import StoreOutlet
from otel_agenteval.spans.record import SpanRecord
from tests.support.recordings import unpack_all

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
QUESTIONS = {
    "en": "What is the status of my order, and when will it be delivered?",
    "de": "Wie ist der Stand meiner Bestellung, und wann wird sie geliefert?",
}


def traffic(count: int, seed: int = 1) -> list[ScoredTurn]:
    """Return turns in which a tool times out for one model, and one prompt leaks its instructions in German."""
    draw = random.Random(seed)
    found = []
    for number in range(1, count + 1):
        model, language = draw.choice(["small", "large", "large"]), draw.choice(["en", "en", "en", "de"])
        prompt = draw.choice(["p1", "p2"])
        tools = [ToolCall(name) for name in ("search", "pay", "mail") if draw.random() < 0.5]
        slow = model == "small" and any(call.name == "pay" for call in tools) and draw.random() < 0.7
        for call in tools:
            if call.name == "pay" and slow:
                call.error = ErrorInfo("timeout")
        turn = Turn(
            turn_id=f"{draw.getrandbits(128):032x}-{number:016x}", agent="shop", llm_calls=[LlmCall(model=model)], tool_calls=tools,
            input=QUESTIONS[language], output="Soon.", duration_s=draw.expovariate(1), conversation_id=f"c{number}",
        )  # fmt: skip
        leaks = draw.random() < (0.6 if (language, prompt) == ("de", "p2") else 0.03)
        works = not slow or draw.random() < 0.1
        ids = (f"{number:032x}", f"{number + 10_000:032x}", f"{number + 20_000:032x}")
        success = Score("code_task_success", float(works), works, threshold=1.0, result_id=ids[0])
        refusal = Score("code_refusal", 1.0, True, detail={"vacuous": True}, result_id=ids[1])
        judged = Score("llm_prompt_leak", float(not leaks), not leaks, threshold=0.5, kind="llm", result_id=ids[2])
        root = Root(number, number, resource={"service.version": "1.0"})
        span = SpanRecord("chat", number, number, attributes={"gen_ai.prompt.version": prompt})
        found.append(ScoredTurn(turn, root, [success, refusal], spans=(span,)))
        if draw.random() < 0.5:
            found.append(ScoredTurn(turn.without_content(), root, [judged], judged=Judged("llm", 0.5)))
    return found


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = str(tmp_path_factory.mktemp("store") / "scores.db")
    options = load_config({"outlets": {"store": {"path": path, "attributes": ["gen_ai.prompt.version"]}}}, {}).outlets.store
    assert options is not None
    outlet = StoreOutlet(options, Telemetry(), lambda: "engine-1")
    outlet.emit(traffic(1_200))
    outlet.close()
    return path


def found_in(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert main(["differences", *args, "--format", "json"]) == 0
    return {one["metric"]: one for one in json.loads(capsys.readouterr().out)}


def facts_of(finding: dict[str, Any]) -> set[tuple[str, str]]:
    return {(fact["attribute"], fact["value"]) for fact in finding["facts"]}


def test_store_shows_tool_that_times_out_for_one_model(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = found_in(capsys, "--store", store)
    assert found.keys() == {"code_task_success", "llm_prompt_leak"}
    cause, effect = found["code_task_success"]["findings"]
    assert facts_of(cause) == {("model", "small"), ("tool", "pay")}
    assert (facts_of(effect), effect["effect"], effect["failed"]) == ({("tool failed", "pay")}, True, 1)
    assert effect["interval"][0] > 0.9


def test_store_shows_prompt_that_leaks_in_one_language(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    (leak,) = found_in(capsys, "--store", store, "--metric", "llm_prompt_leak").values()
    assert facts_of(leak["findings"][0]) == {("language", "de"), ("gen_ai.prompt.version", "p2")}
    assert leak["failed"] + leak["passed"] < 800


@pytest.mark.parametrize("form", ["table", "markdown", "html"])
def test_reports_name_the_facts(form: str, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["differences", "--store", store, "--format", form]) == 0
    assert "tool failed = pay" in capsys.readouterr().out


def test_recorded_traces_are_scored_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unpack_all(RECORDINGS / "ag2-agent.tar.xz", tmp_path)
    found = found_in(capsys, *map(str, tmp_path.rglob("*.jsonl")))
    assert found
    assert all(one["failed"] for one in found.values())


def test_all_conditions_of_a_group_hold(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    german, second = "language=de", "gen_ai.prompt.version = p2"
    for groups in ([german], [second], [german, second], ["duration_s>1.5"]):
        args = [arg for group in groups for arg in ("--group", group)]
        assert main(["differences", "--store", store, *args, "--format", "json"]) == 0
        (found,) = json.loads(capsys.readouterr().out)
        counts.append(found["group"])
        assert found["group"] + found["rest"] == 1_200
        names = {name for one in found["findings"] for name, _ in facts_of(one)}
        assert not names & {group.partition("=")[0] for group in groups}
    assert counts[2] < 0.6 * min(counts[:2])
    assert 0.15 < counts[3] / 1_200 < 0.3


def span(trace: str, number: int, at: int, name: str, attributes: dict[str, str], **more: Any) -> dict[str, Any]:
    """Return an OTLP/JSON span. The first span of a trace is its root."""
    start = number * 10**9 + at
    pairs = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    parent = {} if at == 1 else {"parentSpanId": f"{1:016x}"}
    times = {"startTimeUnixNano": str(start), "endTimeUnixNano": str(start + 1)}
    return {"traceId": trace, "spanId": f"{at:016x}", **parent, "name": name, **times, "attributes": pairs, **more}


def recorded(path: Path, count: int, version: str, seed: int = 1, *, fails: float = 0.03, tool: str = "search") -> str:
    """Return traces of a release, with its version in model and prompt names. Turns with the tool ``pay`` fail with a probability."""
    draw = random.Random(seed)
    lines = []
    for number in range(1, count + 1):
        chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": f"m{version}", "prompt": f"p{draw.choice('12')}"}
        used = tool if draw.random() < 0.3 else "mail"
        failed = {"status": {"code": 2}} if draw.random() < (fails if used == "pay" else 0.03) else {}
        trace = f"{draw.getrandbits(128):032x}"
        root = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "shop"}
        end = str(number * 10**9 + draw.randrange(10**8))
        spans = [
            span(trace, number, 1, "invoke_agent shop", root, endTimeUnixNano=end, **failed),
            span(trace, number, 2, "chat", chat),
            span(trace, number, 3, f"execute_tool {used}", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": used}),
        ]
        resource = {"attributes": [{"key": "service.version", "value": {"stringValue": version}}]}
        lines.append(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}))
    path.write_text("\n".join(lines))
    return str(path)


def test_group_of_recorded_turns_is_compared_with_the_rest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [recorded(tmp_path / "1.jsonl", 80, "1"), recorded(tmp_path / "2.jsonl", 80, "2", 2, tool="pay")]
    assert main(["differences", *files, "--group", "service.version=2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("service.version = 2: 80 of 160 turns (same turns: model = m2)\n")
    assert "tool = pay" in text
    assert main(["differences", *files, "--group", "prompt=p1", "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert 60 < found["group"] < 100
    assert found["findings"] == []


def test_failed_turns_of_two_runs_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The new release calls another tool, and turns with it fail. The version itself isn't a finding."""
    old, new = recorded(tmp_path / "1.jsonl", 400, "1"), recorded(tmp_path / "2.jsonl", 400, "2", 2, tool="pay", fails=0.8)
    args = ["differences", new, "--baseline", old, "--metric", "code_turn_error"]
    assert main([*args, "--format", "json"]) == 0
    worse, now, before = json.loads(capsys.readouterr().out)
    assert (worse["metric"], now["now"], now["baseline"], before["baseline"]) == ("code_turn_error", 400, 400, 400)
    assert worse["failed"] > 4 * worse["failed_in_baseline"]
    assert facts_of(worse["findings"][0]) == {("tool", "pay")}
    assert [facts_of(one["findings"][0]) for one in (now, before)] == [{("tool", "pay")}, {("tool", "search")}]
    assert {"attribute": "service.version", "value": "2"} in now["same"]
    assert main(args) == 0
    assert capsys.readouterr().out.startswith("code_turn_error got worse: ")
    assert main(["differences", old, "--baseline", old, "--metric", "code_turn_error", "--format", "json"]) == 0
    assert [one["findings"] for one in json.loads(capsys.readouterr().out)] == [[], []]


def test_scored_turns_give_differences_and_failure_modes() -> None:
    turns = []
    for number in range(200):
        call = ToolCall("pay" if number % 4 == 0 else "search", error=ErrorInfo("timeout") if number % 4 == 0 else None)
        turns.append(Turn(turn_id=f"t{number}", agent="shop", output="Soon.", tool_calls=[call], llm_calls=[LlmCall(model="m1")]))
    scored = oa.score_turns(turns, ["code_tool_success", "code_refusal"])
    frame = scored.differences("code_tool_success")
    assert [*frame.columns] == ["metric", "fact", "failed", "passed", "low", "high", "p_adjusted", "turns", "few"]
    assert {*frame["metric"]} == {"code_tool_success"}
    (first, *_) = frame.to_dict("records")
    assert (first["fact"], first["failed"], first["passed"], first["turns"], first["few"]) == ("tool = pay", 1, 0, 50, False)
    assert 0 < first["low"] < first["high"] <= 1
    assert len(scored.differences()) == len(frame)
    (mode,) = scored.failure_modes().to_dict("records")
    assert (mode["kind"], mode["step"], mode["error"], mode["turns"], mode["rate"]) == ("tool_error", "pay", "timeout", 50, 0.25)
    assert oa.score_turns(turns[1:4], ["code_tool_success"]).failure_modes().empty


def test_names_in_recorded_traces_are_redacted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Model names contain an address, and half of the turns fail."""
    lines = []
    for number in range(1, 61):
        kind, error = ("ann@example.com", {"code": 2}) if number % 2 else ("m1", {})
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": kind, **({"error.type": kind} if error else {})}
        spans = [span(f"{number:032x}", number, 1, "chat", attributes, status=error)]
        lines.append(json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}))
    file, config = tmp_path / "traces.jsonl", tmp_path / "agenteval.yaml"
    file.write_text("\n".join(lines))
    config.write_text("privacy: {redact: [email]}")
    assert main(["differences", str(file), "--metric", "code_turn_error", "--config", str(config)]) == 0
    said = capsys.readouterr().out
    assert "[EMAIL" in said.upper()
    assert "ann@example.com" not in said


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--store", "{store}", "--metric", "code_unknown"], "code_task_success"),
        (["--store", "{store}", "--since", "yesterday"], "--since"),
        (["--store", "{store}", "traces.jsonl"], "--store"),
        ([], "--store"),
        (["--store", "{store}", "--metric", "code_refusal"], "code_refusal"),
        (["--store", "{store}", "--group", "model"], "--group"),
        (["--store", "{store}", "--baseline", "old.jsonl"], "--baseline"),
        (["--store", "{store}", "--group", "duration_s>long"], "--group"),
        (["--store", "{store}", "--group", "modle=small"], "model"),
        (["--store", "{store}", "--group", "model=small", "--metric", "code_refusal"], "--metric"),
    ],
)
def test_wrong_input_is_refused(args: list[str], says: str, store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["differences", *(arg.format(store=store) for arg in args)]) == 2
    assert says in capsys.readouterr().err
