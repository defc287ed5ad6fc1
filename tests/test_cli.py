"""The command line over real recordings: what it prints, what it refuses, and how it exits."""

from __future__ import annotations

import codecs
import gzip
import html
import importlib
import importlib.metadata
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
import zstandard
from annotated_types import Ge, Gt, Le, MinLen

import otel_agenteval as oa
from otel_agenteval.cli.main import COMMANDS, build_parser, command_named, main
from otel_agenteval.core.turn import ToolCall
from otel_agenteval.metrics.descriptions import type_name
from otel_agenteval.metrics.registry import catalog, default_pack
from otel_agenteval.outlets.turn_text import render_turn
from otel_agenteval.report.table import OutcomeTable
from tests.support.recordings import files_in, recording, unpack

GOOD = "pydantic_ai-native_v6/s2.jsonl"
LOOP = "pydantic_ai-native_v6/s13.jsonl"
RECORD, LOG_RECORD = "openai_sdk-otel_genai_event/s11.jsonl", "openai_sdk-otel_genai_event/s11.logs.jsonl"
NAMES = [metric.name for metric in catalog()]
EXTRAS = [
    re.split(r"[^\w-]", line)[0] for line in importlib.metadata.requires("otel-agenteval") or [] if "extra == 'all'" in line
]

Capture = pytest.CaptureFixture[str]


def lines_of(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# --- turns


def test_turns_prints_one_turn_per_line_in_form_turn_v1(tmp_path: Path, capsys: Capture) -> None:
    assert main(["turns", str(unpack(GOOD, tmp_path))]) == 0
    (turn,) = lines_of(capsys.readouterr().out)
    assert turn["input"] == "What is the weather in Paris right now?"
    assert turn["tool_calls"][0]["name"] == "get_weather"
    assert (
        oa.Turn.from_dict(turn).turn_id == f"{turn['trace_id']}-{turn['spans'][0]['id']}"
        or turn["close_reason"] == "recorded_file"
    )


def test_several_files_are_one_reading(tmp_path: Path, capsys: Capture) -> None:
    assert main(["turns", str(unpack(GOOD, tmp_path)), str(unpack(LOOP, tmp_path))]) == 0
    found = lines_of(capsys.readouterr().out)
    assert len({turn["trace_id"] for turn in found}) == len(found) >= 2


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [
        pytest.param(".gz", gzip.compress, id="gzip"),
        pytest.param(".zst", zstandard.ZstdCompressor().compress, id="zstandard"),
    ],
)
def test_packed_files_are_unpacked(suffix: str, pack: Any, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / f"traces.jsonl{suffix}"
    file.write_bytes(pack(recording(GOOD)))
    assert main(["turns", str(file)]) == 0
    assert lines_of(capsys.readouterr().out)[0]["agent"] == "support_agent"


@pytest.mark.parametrize("name", ["cut.jsonl.gz", "text.jsonl.gz", "text.jsonl.zst"])
def test_a_broken_pack_is_an_error_without_traceback(name: str, tmp_path: Path, capsys: Capture) -> None:
    pack = gzip.compress if name.endswith(".gz") else zstandard.ZstdCompressor().compress
    data = b"no pack at all\n" if name.startswith("text") else pack(recording(GOOD))[:200]
    file = tmp_path / name
    file.write_bytes(data)
    assert main(["turns", str(file)]) == 2
    assert f"{file}:1: can't be read from this line on: " in capsys.readouterr().err


def test_what_was_read_before_a_pack_broke_off_counts(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "traces.jsonl.gz"
    file.write_bytes(gzip.compress(recording(GOOD)) + b"no pack at all")
    assert main(["turns", str(file)]) == 0
    printed = capsys.readouterr()
    assert len(lines_of(printed.out)) == 1
    assert "can't be read from this line on" in printed.err


def test_a_dash_is_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(recording(GOOD))))
    assert main(["turns", "-"]) == 0
    assert lines_of(capsys.readouterr().out)[0]["agent"] == "support_agent"


def test_content_in_a_file_of_log_records_joins_its_spans(tmp_path: Path, capsys: Capture) -> None:
    spans, logs = unpack(RECORD, tmp_path), unpack(LOG_RECORD, tmp_path)
    assert main(["turns", str(spans)]) == 0
    assert [turn for turn in lines_of(capsys.readouterr().out) if turn.get("output")] == []
    assert main(["turns", str(logs), str(spans)]) == 0
    assert [turn for turn in lines_of(capsys.readouterr().out) if turn.get("output")] != []


# --- bad input


def test_a_line_that_cannot_be_read_is_named_counted_and_skipped(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(b'garbage\n{"half": \n\n{"not": "otlp"}\n[1]\n' + recording(GOOD))
    assert main(["turns", str(file)]) == 0
    printed = capsys.readouterr()
    assert len(lines_of(printed.out)) == 1
    assert re.findall(rf"^{re.escape(str(file))}:(\d+): not (JSON|OTLP)", printed.err, re.MULTILINE) == [
        ("1", "JSON"), ("2", "JSON"), ("4", "OTLP"), ("5", "OTLP"),
    ]  # fmt: skip
    assert "4 of " in printed.err.splitlines()[-1]


def test_a_mark_before_utf8_is_no_part_of_the_first_line(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(codecs.BOM_UTF8 + recording(GOOD))
    assert main(["turns", str(file)]) == 0
    printed = capsys.readouterr()
    assert (len(lines_of(printed.out)), printed.err) == (1, "")


def test_a_file_of_another_kind_is_told_in_one_line(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "log.txt"
    file.write_text("".join(f"line {number} of a log\n" for number in range(40)))
    assert main(["turns", str(file)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert said[0].startswith(f"{file}: ")
    assert "line 1" in said[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"PAR1\x15\x04\n\n", "`otel-agenteval backfill`"),
        ('{"resourceSpans": []}\n'.encode("utf-16"), "UTF-16"),
    ],
    ids=["Parquet", "UTF-16"],
)
def test_a_file_of_another_kind_is_told_by_its_beginning(content: bytes, said: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(content)
    assert main(["eval", str(file)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"{file}: ")
    assert said in line


def test_for_a_folder_its_files_are_asked_for(tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", f"{tmp_path}/"]) == 2
    said = capsys.readouterr().err
    assert f"{tmp_path}/: " in said
    assert f"{tmp_path}/*.jsonl" in said


@pytest.mark.parametrize("command", ["turns", "eval"])
@pytest.mark.parametrize(
    "content", [b"", b"garbage\n", b"\n\n", b"\xff\xfe\x00\n"], ids=["empty", "garbage", "blank lines", "no text"]
)
def test_nothing_to_read_is_status_2(command: str, content: bytes, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(content)
    assert main([command, str(file)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "no spans" in printed.err or f"{file}: " in printed.err


def test_spans_without_a_turn_are_said_to_be_none(tmp_path: Path, capsys: Capture) -> None:
    span = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "GET /", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "acme.shop"}, "spans": [span]}]}]}))
    assert main(["turns", str(file)]) == 0
    assert main(["eval", str(file)]) == 2  # nothing was scored
    (said, again) = capsys.readouterr().err.splitlines()
    assert said == again
    assert "no turns" in said
    assert "acme.shop 1" in said
    assert "docs/get-started/integrations" in said


def test_eval_of_spans_without_a_model_call_names_their_scope(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_text(files_in("recordings/openlit-1.33-loop.tar.xz")["openlit-1.33-loop/s10.jsonl"])
    assert main(["eval", str(file)]) == 2
    assert "openlit 1); also trace the model calls" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["turns", "eval"])
def test_a_missing_file_is_named(command: str, tmp_path: Path, capsys: Capture) -> None:
    assert main([command, str(tmp_path / "nowhere.jsonl")]) == 2
    assert capsys.readouterr().err == f"otel-agenteval: {tmp_path}/nowhere.jsonl: file not found\n"


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    file = unpack(GOOD, tmp_path)
    many = tmp_path / "many.jsonl"
    many.write_bytes(file.read_bytes())
    command = f"{sys.executable} -m otel_agenteval eval {many} {' '.join([str(unpack(LOOP, tmp_path))] * 40)} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=60, check=True)
    line, status = done.stdout.splitlines()
    assert json.loads(line)["metric"] in NAMES
    assert (status, done.stderr) == ("0", "")


def test_what_the_output_cannot_encode_is_escaped(tmp_path: Path) -> None:
    data = recording(GOOD).replace(b"What is the weather", b"W\\\\u00e4re \xe2\x98\x83")
    file = tmp_path / "traces.jsonl"
    file.write_bytes(data)
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    for form in (["turns", str(file)], ["eval", "--format", "table", str(file)]):
        done = subprocess.run(
            [sys.executable, "-m", "otel_agenteval", *form], env=env, capture_output=True, timeout=60, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"\\u2603" in done.stdout


# --- eval


def test_eval_prints_one_object_per_score(tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(GOOD, tmp_path))]) == 0
    scores = lines_of(capsys.readouterr().out)
    assert [score["metric"] for score in scores] == default_pack()
    assert {score["turn_id"] for score in scores} == {scores[0]["turn_id"]}
    assert {"agent": "support_agent", "service": "acme-support-bot"}.items() <= scores[0].items()


def test_the_metrics_that_are_named_are_the_only_ones_in_their_order(tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--metrics", "code_token_usage, agentunit:tool_success"]) == 0
    assert [s["metric"] for s in lines_of(capsys.readouterr().out)] == ["code_token_usage", "code_tool_success"]


@pytest.mark.parametrize(
    ("metrics", "status", "said"),
    [
        ("code_tool_sucess", 2, "unknown metric 'code_tool_sucess'. Did you mean code_tool_success, "),
        ("", 2, "--metrics: must be one or more names"),
        (" , ", 2, "--metrics: must be one or more names"),
    ],
)
def test_a_bad_choice_of_metrics_is_refused(metrics: str, status: int, said: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--metrics", metrics]) == status
    assert said in capsys.readouterr().err


def configured(tmp_path: Path, text: str) -> str:
    file = tmp_path / "agenteval.yaml"
    file.write_text(text)
    return str(file)


GROUPS = "inline: {metrics: [code_latency]}\ngroups:\n  safety: {policy: gate, metrics: [code_turn_error, code_secret_leak]}\n  cost: {metrics: [code_cost]}\n"


@pytest.mark.parametrize(
    ("chosen", "evaluated"),
    [
        ("@safety", [("code_turn_error", "gate"), ("code_secret_leak", "gate")]),
        ("@cost,code_latency,@cost", [("code_cost", "trend"), ("code_latency", "trend")]),
    ],
)
def test_the_metrics_of_a_group_are_chosen_by_its_name(
    chosen: str, evaluated: list[tuple[str, str]], tmp_path: Path, capsys: Capture
) -> None:
    config = configured(tmp_path, GROUPS)
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--metrics", chosen]) == 0
    assert [(s["metric"], s["policy"]) for s in lines_of(capsys.readouterr().out)] == evaluated


@pytest.mark.parametrize(
    ("text", "said"),
    [(GROUPS, "@safty: unknown group. Did you mean 'safety'? (groups: safety, cost, default, quality, all,"), ("", "@safty: unknown group. Did you mean 'safety'? (groups: default, safety, quality, cost, all,")],
)  # fmt: skip
def test_a_group_that_is_not_configured_is_refused(text: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", configured(tmp_path, text), "--metrics", "@safty"]) == 2
    assert said in capsys.readouterr().err


def test_a_configuration_says_what_is_evaluated(tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, "inline: {metrics: [code_cost]}\nmetrics: [{code_max_tokens: {max_tokens: 1}, policy: gate}]\n")
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config]) == 0
    scores = {score["metric"]: score for score in lines_of(capsys.readouterr().out)}
    assert scores.keys() == {"code_cost", "code_max_tokens"}
    assert (scores["code_max_tokens"]["passed"], scores["code_max_tokens"]["policy"]) == (False, "gate")


def test_a_metric_that_is_named_keeps_its_configured_parameters(tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, "metrics: [{code_max_tokens: {max_tokens: 1}, policy: gate}]\n")
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--metrics", "code_max_tokens", "--gate"]) == 1
    (score,) = lines_of(capsys.readouterr().out)
    assert (score["status"], score["passed"]) == ("ok", False)


@pytest.mark.parametrize(
    ("limit", "policy", "status", "said"),
    [
        pytest.param(1, "gate", 1, "1 gate score failed\n", id="a gate that fails"),
        pytest.param(10_000, "gate", 0, "", id="a gate that passes"),
        pytest.param(
            1,
            "trend",
            1,
            "--gate: no metric has policy: gate in the configuration, so nothing can fail\nto pass anyway, set --allow-unevaluated\n",
            id="a trend never gates",
        ),
    ],
)
def test_gates_decide_the_exit_status(limit: int, policy: str, status: int, said: str, tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, f"metrics: [{{code_max_tokens: {{max_tokens: {limit}}}, policy: {policy}}}]\n")
    command = ["eval", str(unpack(GOOD, tmp_path)), "--config", config]
    assert main([*command, "--gate"]) == status
    assert capsys.readouterr().err == said
    assert main(command) == 0


def test_a_gate_that_cannot_be_evaluated_fails(tmp_path: Path) -> None:
    config = configured(tmp_path, "metrics: [{code_contains: {}, policy: gate}]\n")  # its parameter is required
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--gate"]) == 1


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        pytest.param("code_bleu: {}", "missing:reference", id="a reference that no turn has"),
        pytest.param("code_latency: {}", "no verdict", id="a metric without a threshold"),
        pytest.param("code_empty_answer: {}, when: {agent: nobody}", "applies to no turn", id="a selector that matches nothing"),
        pytest.param("code_ungrounded_urls: {}", "nothing to evaluate", id="turns with nothing to evaluate"),
    ],
)
def test_gate_without_any_verdict_fails(metric: str, reason: str, tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, f"metrics: [{{{metric}, policy: gate}}]\n")
    command = ["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--gate"]
    assert main(command) == 1
    said = capsys.readouterr().err
    assert metric.partition(":")[0] in said
    assert reason in said
    assert main([*command, "--format", "markdown"]) == 1
    assert "1 gate without a verdict" in capsys.readouterr().out
    assert main([*command, "--allow-unevaluated"]) == 0


def test_column_that_no_metric_reads_is_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "cases.jsonl").write_text('{"input": "Hello", "expected_tool": ["search"], "ground_truth": "Hi"}\n')
    config = configured(tmp_path, f"references: {{dataset: {tmp_path}/cases.jsonl}}\n")
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config]) == 0
    said = capsys.readouterr().err
    assert "'expected_tool'" in said
    assert "'expected_tools'" in said
    assert "ground_truth" not in said


def test_a_bad_configuration_is_refused_before_anything_is_read(tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, "turn: {idle_timout: 5m}\n")
    assert main(["eval", "nowhere.jsonl", "--config", config]) == 2
    assert "turn.idle_timout: unknown key. Did you mean 'idle_timeout'" in capsys.readouterr().err


# --- the table


def test_the_table_has_what_failed_first_and_says_why(tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(LOOP, tmp_path)), "--format", "table"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"✗ code_repeated_tool_calls +check_job was called \d times", printed)
    assert printed.index("✗") < printed.index("· measured") < printed.index("✓")
    assert max(map(len, printed.splitlines())) <= 100


def test_the_table_of_several_turns_ends_in_a_summary(tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(GOOD, tmp_path)), str(unpack(LOOP, tmp_path)), "--format", "table"]) == 0
    printed = capsys.readouterr().out
    heading = re.search(r"^(\d+) turns +pass +fail +vacuous +error +skipped +mean$", printed, re.MULTILINE)
    assert heading is not None
    assert int(heading[1]) == printed.count("── ")
    assert re.search(r"^code_repeated_tool_calls +\d+ +1 ", printed, re.MULTILINE)


def test_a_turn_cannot_write_to_the_terminal() -> None:
    turn = oa.Turn(agent="\033[31mbot", input="a\rb\x1b]0;title\x07", output="c\u202ed\n\ne", tool_calls=[ToolCall("x\033[2J")])
    shown = render_turn(turn, [])
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", shown)
    assert "c�d e" in shown


def test_colours_are_used_when_asked_for_and_change_no_word() -> None:
    scores = [oa.Score("code_secret_leak", 0.0, False, type="boolean"), oa.Score("code_cost", 0.5, unit="USD", direction="down")]
    turn = oa.Turn(input="Hi", output="Ho")
    coloured = render_turn(turn, scores, color=True)
    assert "\033[31m✗" in coloured
    assert re.sub(r"\033\[\d+m", "", coloured) == render_turn(turn, scores)


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        pytest.param(oa.Score("m", 0.25, False, threshold=0.5), "✗ m 0.25, at least 0.5 passes", id="below a bound"),
        pytest.param(
            oa.Score("m", 3.0, False, threshold=2.0, direction="down", unit="s"), "✗ m 3 s, at most 2 passes", id="above a bound"
        ),
        pytest.param(oa.Score("m", 0.5, False, explanation="too loud"), "✗ m 0.5: too loud", id="a number is explained"),
        pytest.param(
            oa.Score("m", 0.0, False, type="boolean", explanation="b is bad", detail={"found": ["b", "c"], "n": 2, "by": "two"}),
            "✗ m b is bad: c; by two",
            id="facts that the explanation does not name are added",
        ),
        pytest.param(
            oa.Score("m", 0.0, False, type="boolean", detail={"found": [{"name": "x", "count": 3, "start": 9, "where": "y"}]}),
            "✗ m x (count 3, where y)",
            id="found things are named, their positions are not",
        ),
        pytest.param(
            oa.Score("m", 0.0, False, type="boolean", policy="gate", explanation="no"), "✗ m gate; no", id="a gate is named"
        ),
        pytest.param(oa.Score("m", status="error", error_type="ValueError"), "! m error ValueError", id="an error is no failure"),
        pytest.param(
            oa.Score("code_refusal", 0.0, False, type="boolean", direction="neutral"), "· measured refusal no", id="a detector"
        ),
        pytest.param(oa.Score("m", 1.0, True, detail={"vacuous": True}), "✓ 1 passed m", id="nothing to evaluate"),
        pytest.param(oa.Score("m", 12345.0, unit="{token}"), "· measured m 12,345 tokens", id="tokens"),
        pytest.param(
            oa.Score("m", status="skipped", detail={"reason": "missing:output"}), "- skipped m (missing:output)", id="skipped"
        ),
    ],
)
def test_each_kind_of_score_has_its_line(score: oa.Score, shown: str) -> None:
    lines = [" ".join(line.split()) for line in render_turn(oa.Turn(), [score]).splitlines()]
    assert shown in lines


def test_what_was_not_captured_is_not_shown_as_empty() -> None:
    assert "agent     (not captured)" in render_turn(oa.Turn(), [])
    assert "agent     (empty)" in render_turn(oa.Turn(output=""), [])


def test_the_summary_counts_outcomes_and_averages_what_was_evaluated() -> None:
    summary = OutcomeTable()
    for score in (
        oa.Score("m", 1.0, True), oa.Score("m", 0.0, False), oa.Score("m", 1.0, True, detail={"vacuous": True}),
        oa.Score("m", status="error", error_type="E"), oa.Score("m", status="skipped"),
    ):  # fmt: skip
        summary.add([score, oa.Score("code_never", status="skipped")])
    assert [line.split() for line in summary.render().splitlines()] == [
        ["5", "turns", "pass", "fail", "vacuous", "error", "skipped", "mean"],
        ["m", "1", "1", "1", "1", "1", "0.5"],
        ["never", "applied:", "never"],
    ]


# --- metrics, explain


def test_metrics_lists_every_metric_with_its_family(capsys: Capture) -> None:
    assert main(["metrics"]) == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^  [* ] (\w+)", printed, re.MULTILINE) == [
        m.name for m in sorted(catalog(), key=lambda m: (m.family, m.name))
    ]
    assert re.findall(r"^(\w+)$", printed, re.MULTILINE) == sorted({m.family for m in catalog()})
    assert set(re.findall(r"^  \* (\w+)", printed, re.MULTILINE)) == {m.name for m in catalog() if m.inline}


def test_metrics_as_json_has_everything_a_program_needs(capsys: Capture) -> None:
    assert main(["metrics", "--json"]) == 0
    found = {item["name"]: item for item in json.loads(capsys.readouterr().out)}
    assert sorted(found) == NAMES
    assert found["code_contains"]["parameters"]["value"]["required"] is True
    assert found["code_tool_success"]["parameters"]["empty_value"] == {"type": "float 0..1 or null", "default": 1.0}
    assert "agentunit:tool_success" in found["code_tool_success"]["aliases"]
    assert "deepeval:FaithfulnessMetric" in found["llm_faithfulness"]["other_tools"]


def test_explain_says_what_another_tool_s_name_means_here(capsys: Capture) -> None:
    assert main(["explain", "deepeval:RoleAdherenceMetric"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("llm_role_adherence ")
    assert "As deepeval:RoleAdherenceMetric: chatbot_role" in printed
    assert "Spelled:     strict_mode: threshold=1.0" in printed
    assert "Other tools: deepeval:RoleAdherenceMetric, mlflow:ConversationalRoleAdherence" in printed
    assert main(["explain", "deepeval:HallucinationMetric"]) == 2
    assert "llm_faithfulness" in capsys.readouterr().err


@pytest.mark.parametrize("name", NAMES)
def test_explain_prints_the_whole_documentation(name: str, capsys: Capture) -> None:
    assert main(["explain", name]) == 0
    printed = capsys.readouterr().out
    metric = next(metric for metric in catalog() if metric.name == name)
    assert metric.doc.replace("``", "`") in printed
    assert all(f"Parameter:   {parameter} (" in printed for parameter in metric.parameters)


def test_explain_takes_a_name_of_another_catalogue_with_what_it_presets(capsys: Capture) -> None:
    assert main(["explain", "agenteval:code_recall_at_5"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("code_recall_at_k  (ir)")
    assert "default 5, set by agenteval:code_recall_at_5" in printed


def test_explain_names_the_three_closest_when_there_is_no_such_metric(capsys: Capture) -> None:
    assert main(["explain", "code_tool_succes"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("otel-agenteval: unknown metric 'code_tool_succes'. Did you mean code_tool_success, ")
    assert len(error.split("Did you mean ")[1].split(", ")) == 3


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (float | None, "float or null"),
        (Annotated[float, Ge(0), Le(1)], "float 0..1"),
        (Annotated[int, Gt(0)], "int > 0"),
        (Annotated[str, MinLen(1)], "non-empty str"),
        (Literal["a", "b"], '"a" or "b"'),
        (list[str] | None, "list of str or null"),
        (dict[str, Any], "mapping of anything"),
    ],
)
def test_types_are_said_in_words(annotation: Any, said: str) -> None:
    assert type_name(annotation) == said


# --- check-config


def test_check_config_prints_what_is_in_effect(tmp_path: Path, capsys: Capture) -> None:
    file = configured(tmp_path, "turn: {idle_timeout: 90s}\nmetrics: [{code_contains: {value: Paris}, policy: gate}]\n")
    assert main(["check-config", file]) == 0
    printed = capsys.readouterr().out
    assert "idle_timeout: 90s" in printed or "idle_timeout: 1.5m" in printed
    assert "policy: gate" in printed
    assert f"# valid; {len(default_pack()) + 1} metrics on every turn: " in printed


def test_what_check_config_prints_is_a_configuration(tmp_path: Path, capsys: Capture) -> None:
    assert main(["check-config", configured(tmp_path, "outlets: {jsonl: scores.jsonl}\n")]) == 0
    again = configured(tmp_path, capsys.readouterr().out)
    assert main(["check-config", again]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("turn:\n  idle_timout: 5m\n", ":2: turn.idle_timout: unknown key. Did you mean 'idle_timeout'?"),
        ("exit_timeout: soon\n", ":1: exit_timeout: must be a duration"),
        ("metrics:\n  - code_tool_sucess\n", "unknown metric 'code_tool_sucess'. Did you mean code_tool_success, "),
        ("metrics: [{code_contains: {valu: x}}]\n", "code_contains.valu: unknown parameter. Did you mean 'value'?"),
        ("a: [\n", "agenteval.yaml"),
    ],
)
def test_check_config_says_what_is_wrong_and_where(text: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["check-config", configured(tmp_path, text)]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert said in printed.err


def test_check_config_names_a_file_that_is_not_there(capsys: Capture) -> None:
    assert main(["check-config", "nowhere.yaml"]) == 2
    assert capsys.readouterr().err == "otel-agenteval: nowhere.yaml: file not found\n"


# --- use


@pytest.mark.parametrize("arguments", [["no-such-command"], ["eval"], ["explain"], ["demo", "--port", "x"]], ids=" ".join)
def test_wrong_use_is_status_2_with_usage(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: otel-agenteval" in capsys.readouterr().err


@pytest.mark.parametrize("command", COMMANDS)
def test_help_on_a_command_needs_no_extra(command: str) -> None:
    extras = {"re2"} | {name.replace("-", "_") for name in EXTRAS}
    program = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(extras)}))
from otel_agenteval.cli.main import main
main([{command!r}, "--help"])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"usage: otel-agenteval {command}")


def test_the_list_of_commands_costs_the_import_of_none(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main([])
    printed = capsys.readouterr()
    assert (left.value.code, printed.out) == (2, "")
    assert all(f"\n    {command}" in printed.err for command in COMMANDS)
    program = "import sys; from otel_agenteval.cli.main import main\ntry: main(['--help'])\nfinally: print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert {"pydantic", "numpy", "opentelemetry", "yaml", "grpc", "httpx"} & set(done.stdout.splitlines()[-1].split()) == set()


@pytest.mark.parametrize(
    ("given", "meant"), [("evl", "eval"), ("check", "check-config"), ("server", "serve"), ("back-fill", "backfill")]
)
def test_an_unknown_command_is_answered_with_the_nearest(given: str, meant: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main([given, "--config", "x"])
    assert left.value.code == 2
    assert f"unknown command {given!r}. Did you mean {meant!r}?" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_documents_its_exit_codes(name: str, capsys: Capture) -> None:
    command = command_named(name)
    assert {0, 2} <= command.EXIT_CODES.keys() <= {0, 1, 2}
    for called in ([name], ["judge", "probe"], ["judge", "bench"]) if name == "judge" else ([name],):
        with pytest.raises(SystemExit):
            main([*called, "--help"])
        printed = capsys.readouterr().out
        table = " ".join(printed[printed.index("exit codes:") :].split())
        assert all(f"{code} {meaning}" in table for code, meaning in command.EXIT_CODES.items())


def test_the_documentation_has_every_command_with_its_exit_codes() -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert all(f"| {code} | {meaning} |" in section for code, meaning in command_named(name).EXIT_CODES.items()), name


def test_the_module_of_every_command_is_in_the_list() -> None:
    folder = Path(importlib.import_module("otel_agenteval.cli").__path__[0])
    commands = {
        file.stem.replace("_", "-") for file in folder.glob("*.py") if "\ndef add_arguments(" in file.read_text(encoding="utf-8")
    }
    assert commands == set(COMMANDS)


def test_the_parser_of_one_command_imports_no_other() -> None:
    program = "import sys; from otel_agenteval.cli.main import build_parser; build_parser(['turns']); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    others = {f"otel_agenteval.cli.{name.replace('-', '_')}" for name in COMMANDS if name != "turns"}
    assert others & set(done.stdout.split()) == set()
    assert build_parser().parse_args(["turns", "x"]).files == ["x"]


def test_the_version_is_the_package_s(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert (left.value.code, capsys.readouterr().out) == (0, f"otel-agenteval {oa.__version__}\n")


@pytest.mark.parametrize(
    ("options", "some", "none"),
    [
        (["--family", "ir"], "code_mrr", "code_latency"),
        (["--need", "retrieved_ids"], "code_recall_at_k", "code_word_count"),
        (["--seed", "trusys"], "code_icontains", "code_turn_error"),
        (["--seed", "deepeval"], "llm_g_eval", "code_turn_error"),
        (["--kind", "code"], "code_latency", "llm_relevance"),
        (["--kind", "llm", "--family", "rag_judges"], "llm_relevance", "code_latency"),
    ],
)
def test_the_list_of_metrics_can_be_filtered(options, some, none, capsys):
    assert main(["metrics", *options]) == 0
    listed = {line.lstrip(" *").split(" ")[0] for line in capsys.readouterr().out.splitlines()}
    assert some in listed
    assert none not in listed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--family", "irr"], "--family: unknown value 'irr'. Did you mean 'ir'?"),
        (["--need", "outptu"], "Did you mean 'output'?"),
        (["--seed", "trusis"], "Did you mean 'trusys'?"),
    ],
)
def test_a_filter_that_nothing_can_match_is_refused(options, message, capsys):
    assert main(["metrics", *options]) == 2
    assert message in capsys.readouterr().err


def test_filters_that_leave_nothing_say_so(capsys: Capture) -> None:
    assert main(["metrics", "--family", "guards", "--kind", "llm"]) == 0
    assert capsys.readouterr() == ("", "no metric matches all filters\n")


@pytest.mark.parametrize("share", ["abc", "2", "nan"])
def test_a_share_is_between_0_and_1(share: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["judge", "probe", "--max-rate", share])
    assert ended.value.code == 2
    assert f"must be a share from 0 to 1, got {share}" in capsys.readouterr().err


def test_a_metric_without_its_required_parameter_is_told(tmp_path: Path, capsys: Capture) -> None:
    said = "code_icontains: the required parameter 'value' is missing, so each score is an error\n"
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--metrics", "trusys:icontains"]) == 0
    assert capsys.readouterr().err == said
    config = tmp_path / "agenteval.yaml"
    for text, expected in (("metrics: [code_icontains]\n", said), ("metrics: [code_icontains: {value: x}]\n", "")):
        config.write_text(text)
        assert main(["check-config", str(config)]) == 0
        assert capsys.readouterr().err == expected


@pytest.mark.parametrize("form", ["markdown", "html", "table"])
@pytest.mark.parametrize("without", [False, True])
def test_a_report_shows_the_question_of_a_failed_turn_unless_it_is_left_out(
    form: str, without: bool, tmp_path: Path, capsys: Capture
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(recording(LOOP))
    assert main(["turns", str(file)]) == 0
    asked = next(turn["input"] for turn in lines_of(capsys.readouterr().out) if turn["input"])
    assert main(["eval", str(file), "--format", form, *(["--no-content"] if without else [])]) == 0
    shown = re.sub(r"\s+", " ", html.unescape(capsys.readouterr().out))
    assert (asked[:40] in shown) is not without


def test_what_a_report_shows_is_redacted(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "t.jsonl"
    text = recording(LOOP).decode()
    asked = "ada@example.org"
    file.write_text(re.sub(r'(\\"content\\": ?\\")', rf"\1{asked} ", text))
    assert main(["turns", str(file)]) == 0
    assert asked in capsys.readouterr().out
    assert main(["eval", str(file), "--format", "markdown"]) == 0
    shown = capsys.readouterr().out
    assert asked not in shown
    assert "[EMAIL_1]" in shown


# --- metrics of one's own


@pytest.fixture
def own_metric(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder that defines a metric."""
    name = f"metrics_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(
        "import otel_agenteval as oa\n\n\n@oa.metric(boolean=True)\n"
        f"def code_of_{name}(turn):\n    '''Return True if there is an answer.'''\n    return bool(turn.output)\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OTEL_AGENTEVAL_IMPORTS", "")
    monkeypatch.setattr(sys, "path", [*sys.path])
    return name


def test_imported_module_defines_a_metric(own_metric: str, tmp_path: Path, capsys: Capture) -> None:
    command = ["eval", str(unpack(GOOD, tmp_path)), "--metrics", f"code_of_{own_metric}"]
    assert main([*command, "--import", own_metric]) == 0
    assert [line["passed"] for line in lines_of(capsys.readouterr().out)] == [True]
    assert main(["explain", f"code_of_{own_metric}", "--import", own_metric]) == 0


def test_configured_module_defines_a_metric(own_metric: str, tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, f"imports: [{own_metric}]\nmetrics: [code_of_{own_metric}]\n")
    assert main(["check-config", config]) == 0
    assert (
        main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--metrics", f"code_of_{own_metric}", "--jobs", "2"]) == 0
    )
    assert f"code_of_{own_metric}" in capsys.readouterr().out


@pytest.mark.parametrize("module", ["nowhere", "a b", ""])
def test_module_that_cannot_be_imported_is_named(module: str, own_metric: str, tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, f"imports: ['{module}']\n")
    assert main(["check-config", config]) == 2
    assert "imports" in capsys.readouterr().err


# --- what a valid configuration can hardly mean


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('judge: {base_url: "http://127.0.0.1:1/v1", model: "${MODEL}"}', "write ${env:MODEL}"),
        ('judge: {base_url: "http://127.0.0.1:1/v1", model: m, timeout: 30}', "judge.timeout: means 30 ms"),
        ("outlets: {jsonl: nowhere/scores.jsonl}", "outlets.jsonl: folder not found"),
        ("metrics: [llm_relevance]", "no judge is configured"),
        ("metrics: [{embed_similar: {value: x}}]", "no embedder is configured"),
        ("metrics: [code_contains]", "'value' is missing"),
        (
            'judge: {base_url: "http://127.0.0.1:1/v1", model: m, budget: {usd_per_day: 5}}\nmetrics: [llm_relevance]',
            "the price of m is unknown",
        ),
    ],
)
def test_doubtful_value_is_named_and_accepted(text: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["check-config", configured(tmp_path, f"{text}\n")]) == 0
    assert said in capsys.readouterr().err


def test_ordinary_configuration_raises_no_doubt(tmp_path: Path, capsys: Capture) -> None:
    text = 'judge: {base_url: "http://127.0.0.1:1/v1", model: gpt-4o, timeout: 500ms}\nmetrics: [llm_relevance]\n'
    assert main(["check-config", configured(tmp_path, text)]) == 0
    assert capsys.readouterr().err == ""
