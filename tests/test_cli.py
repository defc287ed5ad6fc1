"""The command line on real recordings: output, errors and exit statuses."""

from __future__ import annotations

import argparse
import codecs
import gzip
import html
import importlib.metadata
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

import otel_agenteval as oa
from otel_agenteval.cli import explain, serve
from otel_agenteval.cli.main import COMMANDS, build_parser, command_named, main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.metrics.registry import catalog, default_pack
from otel_agenteval.outlets.store.reader import GROUPED_BY
from otel_agenteval.outlets.turn_text import render_turn
from otel_agenteval.report.outputs import OutcomeTable
from otel_agenteval.server.app import Service
from scripts.gen_docs import help_sentences
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
    assert main(["turns", str(unpack(GOOD, tmp_path)), str(unpack(LOOP, tmp_path))]) == 0
    first, *others = lines_of(capsys.readouterr().out)
    assert first["input"] == "What is the weather in Paris right now?"
    assert first["tool_calls"][0]["name"] == "get_weather"
    assert oa.Turn.from_dict(first).turn_id == first["turn_id"]
    assert len({turn["trace_id"] for turn in (first, *others)}) == 1 + len(others) >= 2


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.jsonl.gz", gzip.compress(recording(GOOD))),
        ("t.jsonl.zst", zstandard.ZstdCompressor().compress(recording(GOOD))),
        ("t.jsonl", codecs.BOM_UTF8 + recording(GOOD)),
        ("-", recording(GOOD)),
    ],
    ids=["gzip", "zstandard", "byte order mark", "standard input"],
)
def test_forms_of_a_file_are_read(
    name: str, content: bytes, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    Path(name).write_bytes(content)
    assert main(["turns", name]) == 0
    printed = capsys.readouterr()
    assert ([turn["agent"] for turn in lines_of(printed.out)], printed.err) == (["support_agent"], "")


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


def test_what_was_read_before_a_pack_broke_off_counts(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "traces.jsonl.gz"
    file.write_bytes(gzip.compress(recording(GOOD)) + b"no pack at all")
    assert main(["turns", str(file)]) == 0
    printed = capsys.readouterr()
    assert len(lines_of(printed.out)) == 1
    assert f"{file}:" in printed.err


@pytest.mark.parametrize("command", ["turns", "eval"])
@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("t.jsonl", b"", "no spans"),
        ("t.jsonl", b"\xff\xfe\x00\n", "t.jsonl"),
        ("log.txt", b"a line of a log\n" * 40, "log.txt: "),
        ("t.jsonl", b"PAR1\x15\x04\n\n", "`otel-agenteval backfill`"),
        ("t.jsonl", '{"resourceSpans": []}\n'.encode("utf-16"), "UTF-16"),
        ("t.jsonl.gz", gzip.compress(recording(GOOD))[:200], "t.jsonl.gz:1: "),
        ("t.jsonl.zst", b"no pack at all\n", "t.jsonl.zst:1: "),
        ("nowhere.jsonl", None, "nowhere.jsonl: file not found"),
        ("folder/", None, "folder/*.jsonl"),
    ],
    ids=["empty", "no text", "log", "Parquet", "UTF-16", "cut gzip", "no zstandard", "missing", "folder"],
)
def test_nothing_to_read_is_status_2(
    command: str, name: str, content: bytes | None, says: str, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    if content is not None:
        Path(name).write_bytes(content)
    assert main([command, name]) == 2
    printed = capsys.readouterr()
    assert (printed.out, says in printed.err) == ("", True)
    assert len(printed.err.splitlines()) <= 2


def test_spans_without_a_turn_are_said_to_be_none(tmp_path: Path, capsys: Capture) -> None:
    span = {"traceId": "a" * 32, "spanId": "b" * 16, "name": "GET /", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    file = tmp_path / "traces.jsonl"
    file.write_text(json.dumps({"resourceSpans": [{"scopeSpans": [{"scope": {"name": "acme.shop"}, "spans": [span]}]}]}))
    assert main(["turns", str(file)]) == 0
    assert main(["eval", str(file)]) == 2  # nothing was scored
    (said, again) = capsys.readouterr().err.splitlines()
    assert said == again
    assert "acme.shop 1" in said
    file.write_text(files_in("recordings/openlit-1.33-loop.tar.xz")["openlit-1.33-loop/s10.jsonl"])
    assert main(["eval", str(file)]) == 2
    assert "trace model calls too" in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    files = [str(unpack(GOOD, tmp_path)), *[str(unpack(LOOP, tmp_path))] * 40]
    command = f"{sys.executable} -m otel_agenteval eval {' '.join(files)} | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120, check=True)
    line, status = done.stdout.splitlines()
    assert json.loads(line)["metric"] in NAMES
    assert (status, done.stderr) == ("0", "")


def test_what_the_output_cannot_encode_is_escaped(tmp_path: Path) -> None:
    file = tmp_path / "traces.jsonl"
    file.write_bytes(recording(GOOD).replace(b"What is the weather", b"W\\\\u00e4re \xe2\x98\x83"))
    code = f"from otel_agenteval.cli.main import main; main(['turns', {str(file)!r}]); main(['eval', '--format', 'table', {str(file)!r}])"
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    turns, _, table = done.stdout.partition(b"\n")
    assert b"\\u2603" in turns
    assert b"\\u2603" in table


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


@pytest.mark.parametrize("metrics", ["code_tool_sucess", "@safty", "", " , "])
def test_a_bad_choice_of_metrics_is_refused(metrics: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--metrics", metrics]) == 2
    suggested = {"code_tool_sucess": "Did you mean code_tool_success", "@safty": "Did you mean 'safety'"}
    assert suggested.get(metrics, "--metrics: ") in capsys.readouterr().err


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
def test_the_metrics_of_a_group_are_chosen_by_its_name(chosen: str, evaluated: Any, tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, GROUPS)
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--metrics", chosen]) == 0
    assert [(s["metric"], s["policy"]) for s in lines_of(capsys.readouterr().out)] == evaluated


def test_a_configuration_says_what_is_evaluated(tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, "inline: {metrics: [code_cost]}\nmetrics: [{code_max_tokens: {max_tokens: 1}, policy: gate}]\n")
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config]) == 0
    scores = {score["metric"]: score for score in lines_of(capsys.readouterr().out)}
    assert scores.keys() == {"code_cost", "code_max_tokens"}
    assert (scores["code_max_tokens"]["passed"], scores["code_max_tokens"]["policy"]) == (False, "gate")
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--metrics", "code_max_tokens", "--gate"]) == 1
    (score,) = lines_of(capsys.readouterr().out)
    assert (score["status"], score["passed"]) == ("ok", False)


@pytest.mark.parametrize(
    ("entry", "status", "said"),
    [
        ("code_max_tokens: {max_tokens: 1}, policy: gate", 1, "1 gate score failed"),
        ("code_max_tokens: {max_tokens: 10_000}, policy: gate", 0, ""),
        ("code_max_tokens: {max_tokens: 1}, policy: trend", 1, "no metric in this run has policy: gate"),
        ("code_contains: {}, policy: gate", 1, "'value' is missing"),
    ],
    ids=["a gate that fails", "a gate that passes", "a trend never gates", "a gate that can't be evaluated"],
)
def test_gates_decide_the_exit_status(entry: str, status: int, said: str, tmp_path: Path, capsys: Capture) -> None:
    command = ["eval", str(unpack(GOOD, tmp_path)), "--config", configured(tmp_path, f"metrics: [{{{entry}}}]\n")]
    assert main([*command, "--gate"]) == status
    assert said in capsys.readouterr().err
    assert main(command) == 0


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


def test_gate_without_any_verdict_is_allowed_beside_a_baseline(tmp_path: Path) -> None:
    config = configured(tmp_path, "metrics: [{code_mrr: {threshold: 0.5}, policy: gate}]\n")
    command = ["eval", str(unpack(GOOD, tmp_path)), "--config", config]
    assert main([*command, "--format", "jsonl", "--out", str(tmp_path / "now.jsonl")]) == 0
    rows = [row for row in map(json.loads, (tmp_path / "now.jsonl").read_text().splitlines()) if row["metric"] == "code_mrr"]
    before = [{**row, "value": 1.0, "passed": True, "label": "pass", "skipped": None} for row in rows]
    (tmp_path / "before.jsonl").write_text("\n".join(map(json.dumps, before)))
    command += ["--gate", "--baseline", str(tmp_path / "before.jsonl")]
    assert main(command) == 1
    assert main([*command, "--allow-unevaluated"]) == 0


@pytest.mark.parametrize("options", [[], ["--format", "table"], ["--gate", "--format", "table"]])
def test_first_explanation_of_errors_is_printed(options: list[str], tmp_path: Path, capsys: Capture) -> None:
    config = configured(tmp_path, "metrics: [{code_weighted_score: {weights: [1]}}]\n")
    main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, *options])
    said = capsys.readouterr().err
    assert "code_weighted_score: 1 error: missing_parameter: entries: required to evaluate a turn" in said


def test_column_that_no_metric_reads_is_named(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "cases.jsonl").write_text('{"input": "Hello", "expected_tool": ["search"], "ground_truth": "Hi"}\n')
    config = configured(tmp_path, f"references: {{dataset: {tmp_path}/cases.jsonl}}\n")
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config]) == 0
    said = capsys.readouterr().err
    assert "'expected_tool'" in said
    assert "'expected_tools'" in said
    assert "'ground_truth'" in said
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--config", config, "--metrics", "code_equals_ground_truth"]) == 0
    assert "'ground_truth'" not in capsys.readouterr().err


# --- the table


def test_the_table_has_what_failed_first_and_says_why(tmp_path: Path, capsys: Capture) -> None:
    assert main(["eval", str(unpack(LOOP, tmp_path)), "--format", "table"]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"✗ code_repeated_tool_calls +check_job was called \d times", printed)
    assert printed.index("✗") < printed.index("· measured") < printed.index("✓")
    assert max(map(len, printed.splitlines())) <= 100


FOUND = {"found": [{"name": "x", "count": 3, "start": 9, "where": "y"}]}


@pytest.mark.parametrize(
    ("score", "shown"),
    [
        (oa.Score("m", 0.25, False, threshold=0.5), "✗ m 0.25, at least 0.5 passes"),
        (oa.Score("m", 0.5, False, explanation="too loud"), "✗ m 0.5: too loud"),
        (
            oa.Score("m", 0.0, False, explanation="b is bad", detail={"found": ["b", "c"], "by": "two"}),
            "✗ m 0: b is bad: found c; by two",
        ),
        (oa.Score("m", 0.0, False, type="boolean", detail=FOUND), "✗ m found x (count 3, where y)"),
        (oa.Score("m", 0.0, False, type="boolean", policy="gate", explanation="no"), "✗ m gate; no"),
        (oa.Score("m", status="error", error_type="ValueError"), "! m error ValueError"),
        (oa.Score("code_refusal", 0.0, False, type="boolean", direction="neutral"), "· measured refusal no"),
        (oa.Score("m", 12345.0, unit="{token}"), "· measured m 12,345 tokens"),
        (oa.Score("m", status="skipped", detail={"reason": "missing:output"}), "- skipped m (missing:output)"),
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
    ordered = sorted(catalog(), key=lambda metric: (metric.family, metric.name))
    assert re.findall(r"^  [* ] (\w+)", printed, re.MULTILINE) == [metric.name for metric in ordered]
    assert set(re.findall(r"^  \* (\w+)", printed, re.MULTILINE)) == {metric.name for metric in ordered if metric.inline}
    assert main(["metrics", "--json"]) == 0
    found = {item["name"]: item for item in json.loads(capsys.readouterr().out)}
    assert sorted(found) == NAMES
    assert found["code_contains"]["parameters"]["value"]["required"] is True
    assert found["code_tool_success"]["parameters"]["empty_value"] == {"type": "number 0..1 or null", "default": 1.0}
    assert "agentunit:tool_success" in found["code_tool_success"]["aliases"]
    assert "deepeval:FaithfulnessMetric" in found["llm_faithfulness"]["other_tools"]


def test_explain_says_what_another_tool_s_name_means_here(capsys: Capture) -> None:
    assert main(["explain", "deepeval:RoleAdherenceMetric"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("llm_role_adherence ")
    for name in ("chatbot_role", "strict_mode", "mlflow:ConversationalRoleAdherence"):
        assert name in printed
    assert main(["explain", "deepeval:HallucinationMetric"]) == 2
    assert "llm_faithfulness" in capsys.readouterr().err


def test_explain_prints_the_whole_documentation(capsys: Capture) -> None:
    for metric in catalog():
        assert explain.run(argparse.Namespace(name=metric.name, imports=())) == 0
        printed = capsys.readouterr().out
        assert metric.doc.replace("``", "`") in printed
        assert all(f"Parameter:   {parameter} (" in printed for parameter in metric.parameters)


def test_explain_takes_a_name_of_another_catalogue_with_what_it_presets(capsys: Capture) -> None:
    assert main(["explain", "agenteval:code_recall_at_5"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("code_recall_at_k  (ir)")
    assert "default 5, set by agenteval:code_recall_at_5" in printed
    assert main(["explain", "code_tool_succes"]) == 2
    suggested = capsys.readouterr().err.split("Did you mean ")[1].split(", ")
    assert (suggested[0], len(suggested)) == ("code_tool_success", 3)
    for name in ("nope", "foo", "zzz"):
        assert main(["explain", name]) == 2
        assert "Did you mean" not in capsys.readouterr().err


# --- check-config


def test_check_config_prints_a_configuration(tmp_path: Path, capsys: Capture) -> None:
    text = "turn: {idle_timeout: 90s}\noutlets: {jsonl: scores.jsonl}\nmetrics: [{code_contains: {value: Paris}, policy: gate}]\n"
    text += "conversation: {metrics: [code_latency]}\n"
    assert main(["check-config", configured(tmp_path, text)]) == 0
    printed = capsys.readouterr().out
    assert "policy: gate" in printed
    assert f"{len(default_pack()) + 1} metrics on each turn" in printed
    assert "# 1 metric on each conversation: code_latency" in printed
    again = configured(tmp_path, printed)
    assert load_config(again) == load_config(configured(tmp_path, text))
    assert main(["check-config", again]) == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("turn:\n  idle_timout: 5m\n", ":2: turn.idle_timout: unknown key. Did you mean 'idle_timeout'?"),
        ("metrics: [{code_contains: {valu: x}}]\n", "code_contains.valu: unknown parameter. Did you mean 'value'?"),
        ("imports: [no_such_module]\n", "imports"),
        ("metrics: [{code_empty_answer: {}, polciy: gate}]\n", "Did you mean 'policy'?"),
        (
            "metrics: [{code_weighted_score: {metrics: [code_text_f1, code_rouge], weights: [1]}}]\n",
            "weights: must have one number per metric (2), got 1",
        ),
        ("a: [\n", "agenteval.yaml"),
        (None, "agenteval.yaml: file not found"),
    ],
)
def test_check_config_says_what_is_wrong_and_where(text: str | None, said: str, tmp_path: Path, capsys: Capture) -> None:
    file = str(tmp_path / "agenteval.yaml") if text is None else configured(tmp_path, text)
    assert main(["check-config", file]) == 2
    printed = capsys.readouterr()
    assert (printed.out, said in printed.err) == ("", True)


# --- use


@pytest.mark.parametrize("arguments", [["no-such-command"], ["eval"], ["demo", "--port", "x"]], ids=" ".join)
def test_wrong_use_is_status_2_with_usage(arguments: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert "usage: otel-agenteval" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["eval", "x", "--format", "jsn"], "--format: must be one of jsonl, table, junit, markdown, html, got 'jsn'. Did you mean 'jsonl'?"),
        (["differences", "--format", "yaml"], "--format: must be one of table, json, markdown, html, got 'yaml'"),
        (["serve", "--log-level=warn"], "--log-level: must be one of debug, info, warning, error, got 'warn'. Did you mean 'warning'?"),
        (["judge", "prob"], "COMMAND: must be one of probe, bench, drift, got 'prob'. Did you mean 'probe'?"),
    ],
)  # fmt: skip
def test_a_wrong_choice_is_one_line_with_the_nearest_choice(arguments: list[str], says: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert capsys.readouterr() == ("", f"otel-agenteval: {says}\n")


def test_help_needs_no_extra() -> None:
    extras = {"re2"} | {name.replace("-", "_") for name in EXTRAS}
    program = f"""
import sys
sys.modules.update(dict.fromkeys({sorted(extras)}))
from otel_agenteval.cli.main import main
for command in {[*COMMANDS]}:
    try:
        main([command, "--help"])
    except SystemExit as left:
        print("status", command, left.code)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^status (.+)$", done.stdout, re.MULTILINE) == [f"{command} 0" for command in COMMANDS]
    assert re.findall(r"^usage: otel-agenteval ([\w-]+)", done.stdout, re.MULTILINE) == [*COMMANDS]


def test_commands_import_only_what_they_need(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main([])
    printed = capsys.readouterr()
    assert (left.value.code, printed.out) == (2, "")
    assert all(f"\n    {command}" in printed.err for command in COMMANDS)
    program = """
import sys
from otel_agenteval.cli.main import build_parser, main
try:
    main(["--help"])
except SystemExit:
    print(*sys.modules)
build_parser(["turns"])
print(*sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    of_list, of_turns = (set(line.split()) for line in done.stdout.splitlines()[-2:])
    assert not {"pydantic", "numpy", "opentelemetry", "yaml", "grpc", "httpx"} & of_list
    assert not {f"otel_agenteval.cli.{name.replace('-', '_')}" for name in COMMANDS if name != "turns"} & of_turns


@pytest.mark.parametrize(
    ("command", "option", "meant"),
    [
        ("eval", "--gat", "--gate"),
        ("serve", "--metric", "--metrics"),
        ("eval", "--zzz", None),
        ("check-config", "--outlets", None),
    ],
)
def test_an_option_has_to_be_written_out(command: str, option: str, meant: str | None, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main([command, "x", option])
    error = capsys.readouterr().err
    assert f"unknown option {option}" in error
    assert ("Did you mean" in error) == (meant is not None)
    assert f"Did you mean {meant!r}?" in error or meant is None


@pytest.mark.parametrize("place", ["argument", "option", "variable"])
def test_check_config_reads_the_file_from_each_place(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("turn: {max_open: 7}\n")
    if place == "variable":
        monkeypatch.setenv("OTEL_AGENTEVAL_CONFIG_FILE", str(file))
    given = {"argument": [str(file)], "option": ["--config", str(file)], "variable": []}[place]
    assert main(["check-config", *given]) == 0
    assert "max_open: 7" in capsys.readouterr().out


@pytest.mark.parametrize(("given", "meant"), [("evl", "eval"), ("check", "check-config"), ("server", "serve")])
def test_an_unknown_command_is_answered_with_the_nearest(given: str, meant: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main([given, "--config", "x"])
    assert left.value.code == 2
    assert f"unknown command {given!r}. Did you mean {meant!r}?" in capsys.readouterr().err


def test_every_command_documents_its_exit_codes(capsys: Capture) -> None:
    page = (Path(__file__).parent.parent / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    for name in COMMANDS:
        codes = command_named(name).EXIT_CODES
        assert {0, 2} <= codes.keys() <= {0, 1, 2, 130}
        section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
        assert all(f"| {code} | {help_sentences(meaning)} |" in section for code, meaning in codes.items()), name
        for called in ([name], ["judge", "probe"], ["judge", "bench"]) if name == "judge" else ([name],):
            with pytest.raises(SystemExit):
                main([*called, "--help"])
            printed = capsys.readouterr().out
            table = " ".join(printed[printed.index("exit codes:") :].split())
            assert all(f"{code} {meaning}" in table for code, meaning in codes.items()), name


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_an_example_that_can_be_parsed(name: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main([name, "--help"])
    *_, heading, example = capsys.readouterr().out.splitlines()
    program, *arguments = shlex.split(example)
    assert (heading, program, arguments[0]) == ("example:", "otel-agenteval", name)
    args, unknown = build_parser([name]).parse_known_args(arguments)
    assert (args.command, unknown) == (name, [])
    assert getattr(args, "by", None) in (None, *GROUPED_BY)


def test_the_version_is_the_package_s(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert (left.value.code, capsys.readouterr().out) == (0, f"otel-agenteval {oa.__version__}\n")


@pytest.mark.parametrize(
    ("options", "some", "none"),
    [
        (["--family", "ir"], "code_mrr", "code_latency"),
        (["--need", "retrieved_ids"], "code_recall_at_k", "code_word_count"),
        (["--seed", "deepeval"], "llm_g_eval", "code_turn_error"),
        (["--kind", "llm", "--family", "rag_judges"], "llm_relevance", "code_latency"),
    ],
)
def test_the_list_of_metrics_can_be_filtered(options: list[str], some: str, none: str, capsys: Capture) -> None:
    assert main(["metrics", *options]) == 0
    listed = {line.lstrip(" *").split(" ")[0] for line in capsys.readouterr().out.splitlines()}
    assert some in listed
    assert none not in listed


def test_filters_that_leave_nothing_say_so(capsys: Capture) -> None:
    assert main(["metrics", "--family", "guards", "--kind", "llm"]) == 0
    printed = capsys.readouterr()
    assert (printed.out, printed.err != "") == ("", True)
    for option, value, meant in (("--family", "irr", "ir"), ("--need", "outptu", "output"), ("--seed", "trusis", "trusys")):
        assert main(["metrics", option, value]) == 2
        error = capsys.readouterr().err
        assert option in error
        assert f"Did you mean '{meant}'?" in error


@pytest.mark.parametrize("share", ["abc", "2", "nan"])
def test_a_share_is_between_0_and_1(share: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["judge", "probe", "--max-rate", share])
    assert ended.value.code == 2
    assert "--max-rate" in capsys.readouterr().err


@pytest.mark.parametrize("form", ["markdown", "html", "table"])
def test_a_report_shows_the_question_of_a_failed_turn_unless_it_is_left_out(form: str, tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(recording(LOOP))
    assert main(["turns", str(file)]) == 0
    asked = next(turn["input"] for turn in lines_of(capsys.readouterr().out) if turn["input"])
    for options, is_shown in (([], True), (["--no-content"], False)):
        assert main(["eval", str(file), "--format", form, *options]) == 0
        shown = re.sub(r"\s+", " ", html.unescape(capsys.readouterr().out))
        assert (asked[:40] in shown) is is_shown


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
    """Write a module with a metric into the current folder."""
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
    assert main([*command, "--import", "no_such_module"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("otel-agenteval: --import: no_such_module: ModuleNotFoundError")
    config = configured(tmp_path, f"imports: [{own_metric}]\nmetrics: [code_of_{own_metric}]\n")
    assert main(["check-config", config]) == 0
    assert main([*command, "--config", config, "--jobs", "2"]) == 0
    assert f"code_of_{own_metric}" in capsys.readouterr().out


def test_check_config_reports_one_fault_of_a_required_option(tmp_path: Path, capsys: Capture) -> None:
    text = "outlets: {otlp: {endpoint: 'http://h:4318/v1/logs', protocol: http}, webhook: {}}\n"
    assert main(["check-config", configured(tmp_path, text)]) == 2
    [first, second] = capsys.readouterr().err.splitlines()
    assert ("outlets.webhook.url: required" in first, "without /v1/logs" in second) == (True, True)


SERVE_FAULTS = [
    ("{grpc: null, http: null}", "both are off"),
    ("{http: 0.0.0.0:14318}", "without authentication"),
    ("{grpc: 127.0.0.1:14317, http: 127.0.0.1:14317}", "is also the port of serve.grpc"),
    ("{grpc: 127.0.0.1:14317, metrics: 0.0.0.0:14317, token: t}", "is also the port of serve.grpc"),
    ("{tls: {cert_file: none.pem, key_file: none.pem}}", "serve.tls.cert_file: none.pem"),
    ("{ready_outlets: [store]}", "must be enabled outlets, got store"),
]


@pytest.mark.parametrize(("section", "said"), SERVE_FAULTS)
def test_check_config_refuses_what_serve_refuses(section: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    file = configured(tmp_path, f"serve: {section}\n")
    assert main(["check-config", file]) == 2
    assert said in capsys.readouterr().err
    with pytest.raises(ConfigError, match=re.escape(said)):
        Service(serve.configured(build_parser().parse_args(["serve", "--config", file])))


def test_check_config_names_an_unusable_journal_folder_and_creates_none(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "file").write_text("")
    assert main(["check-config", configured(tmp_path, f"serve: {{journal: {tmp_path / 'file' / 'journal'}}}\n")]) == 2
    assert "serve.journal" in capsys.readouterr().err
    text = f"serve: {{journal: {tmp_path / 'journal'}, ready_outlets: [jsonl, prometheus]}}\noutlets: {{jsonl: a.jsonl}}\n"
    assert main(["check-config", configured(tmp_path, text)]) == 0
    assert not (tmp_path / "journal").exists()


# --- what a valid configuration can hardly mean


JUDGE = 'base_url: "http://127.0.0.1:1/v1",'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'judge: {{{JUDGE} model: "${{MODEL}}"}}', "write ${env:MODEL}"),
        ("outlets: {jsonl: nowhere/scores.jsonl}", "outlets.jsonl: folder not found"),
        ("metrics: [llm_relevance]", "no judge is configured"),
        ("metrics: [{embed_similar: {value: x}}]", "no embedder is configured"),
        ("metrics: [code_contains]", "'value' is missing"),
        (f"judge: {{{JUDGE} model: m, budget: {{usd_per_day: 5}}}}\nmetrics: [llm_relevance]", "the price of m is unknown"),
    ],
)
def test_doubtful_value_is_named_and_accepted(text: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    assert main(["check-config", configured(tmp_path, f"{text}\n")]) == 0
    assert said in capsys.readouterr().err


def test_ordinary_configuration_raises_no_doubt(tmp_path: Path, capsys: Capture) -> None:
    text = f"judge: {{{JUDGE} model: gpt-4o, timeout: 500ms}}\nmetrics: [llm_relevance]\n"
    assert main(["check-config", configured(tmp_path, text)]) == 0
    assert capsys.readouterr().err == ""
