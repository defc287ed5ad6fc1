"""Conversations, memory and composites have the same results live, in ``eval``, in ``turns`` and in a backfill, for any files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.engine.builder import engine_from
from tests.support.judges import SteadyModels
from tests.support.recordings import recording
from tests.support.streams import Stream

pq = pytest.importorskip("pyarrow.parquet")

RECORDINGS = (
    "anthropic_sdk-native/s6",
    "langchain-openinference/s6",
    "pydantic_ai-native_v6/s6",
    "openai_agents-otel_genai/s16b",
)
MEMORY, WHOLE, MADE = "llm_steady_memory", "llm_steady_whole", "code_composite_mean"


@pytest.fixture(autouse=True)
def _own_metrics(_process: None) -> None:
    """Register one metric that reads earlier turns, and one for conversations."""

    @oa.metric(needs=("output",), uses=("history",))
    def llm_steady_memory(turn: oa.Turn, judge: Any) -> float:
        """What the judge says of what was said before."""
        said = {"output": turn.output, "history": turn.history}
        return float(judge.ask("memory", "Does it remember?", said, '{"score": 0 to 1}')["score"])

    @oa.metric(needs=("output",))
    def llm_steady_whole(turn: oa.Turn, judge: Any) -> float:
        """What the judge says of all that was said."""
        said = {"messages": [[one.role, one.content] for one in turn.messages]}
        return float(judge.ask("whole", "Did it go well?", said, '{"score": 0 to 1}')["score"])


@pytest.fixture
def models() -> Iterator[SteadyModels]:
    served = SteadyModels()
    yield served
    served.close()


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """Write every second span to a second file, so that each conversation and trace is in two files, and later spans come first."""
    folder = tmp_path / "recorded"
    folder.mkdir()
    lines: list[list[str]] = [[], []]
    for name in RECORDINGS:
        spans = recording(f"{name}.jsonl").decode().splitlines()
        for at, line in enumerate(_single_spans(spans)):
            lines[at % 2].append(line)
    for at, some in enumerate(lines):
        (folder / f"{'ba'[at]}.jsonl").write_text("\n".join(reversed(some)) + "\n", encoding="utf-8")
    return folder


def _single_spans(lines: list[str]) -> list[str]:
    from tests.support.streams import pieces

    return [line for is_log, _, line in pieces(lines) if not is_log]


def config(models: SteadyModels, **more: Any) -> dict[str, Any]:
    server = {"base_url": models.url, "model": "steady", "max_concurrency": 2}
    return {
        "judge": server, "embedder": server, "inline": {"metrics": []},
        "metrics": [
            MEMORY, "embed_loop_detection", "llm_confidence", "code_word_count", "code_ungrounded_numbers",
            {MADE: {"metrics": [MEMORY, "llm_confidence", {"code_word_count": {}}]}},
        ],
        "conversation": {"metrics": ["code_agent_reliability", "code_agent_consistency", WHOLE, "code_word_count"], "idle_timeout": "10m"},
        **more,
    }  # fmt: skip


Found = dict[tuple[str, str], Any]


def live(given: dict[str, Any], recorded: Path) -> Found:
    """Return the final results of an engine that gets the files one after another."""
    outlets = {"span_events": "off", "log_events": False, "prometheus": None}
    stream = Stream()
    stream.engine.shutdown()
    stream.engine = engine_from(load_config({**given, "outlets": outlets}), clock=stream.clock)
    stream.kept = []
    stream.engine.keep_turns(stream.kept)
    for file in sorted(recorded.iterdir()):
        stream.send(file.read_text(encoding="utf-8").splitlines())
    for _ in range(9):
        assert stream.engine.drain(120, judges=True)  # the lease of a running judge would end with the clock's next step
        stream.clock.advance(400)
        stream.engine.intake.tick()
        assert stream.engine.flush(60)
    assert stream.engine.drain(120, judges=True)
    found: Found = {}
    for scored in stream.kept:
        for score in scored.scores:
            if score.status != "skipped":
                found[scored.turn.turn_id, score.metric] = (score.status, score.value)
    assert stream.engine.failures == {}
    stream.engine.shutdown()
    return found


def evaluated(given: dict[str, Any], files: list[Path], folder: Path, capsys: Any) -> Found:
    """Return the results of ``eval``."""
    file = folder / "config.yaml"
    file.write_text(json.dumps(given), encoding="utf-8")
    capsys.readouterr()
    assert main(["eval", *map(str, files), "--config", str(file)]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    return {(row["turn_id"], row["metric"]): (row["status"], row["value"]) for row in rows if row["status"] != "skipped"}


def backfilled(folder: Path, out: Path, *more: str) -> Found:
    """Return the results of a backfill, and check that each occurs once."""
    assert main(["backfill", str(folder / "recorded"), "--out", str(out), "--config", str(folder / "config.yaml"), *more]) == 0
    rows = [row for file in sorted(out.rglob("parts/*.parquet")) for row in pq.read_table(file).to_pylist()]
    found = {(row["turn_id"], row["metric"]): (row["status"], row["value"]) for row in rows}
    assert len(found) == len(rows)
    return found


def test_live_eval_and_backfill_agree(models: SteadyModels, recorded: Path, tmp_path: Path, capsys: Any) -> None:
    given = config(models)
    wanted = live(given, recorded)
    metrics = {metric for _, metric in wanted}
    assert {MEMORY, WHOLE, MADE, "embed_loop_detection", "llm_confidence", "code_agent_reliability"} <= metrics
    conversations = {turn_id for turn_id, _ in wanted if "conversation-" in turn_id}
    assert len(conversations) == 2
    assert evaluated(given, sorted(recorded.iterdir()), tmp_path, capsys) == wanted
    assert evaluated(given, sorted(recorded.iterdir(), reverse=True), tmp_path, capsys) == wanted
    for buckets in ("1", "7"):
        assert backfilled(tmp_path, tmp_path / f"out{buckets}", "--buckets", buckets) == wanted


def test_a_backfill_adds_what_is_made_of_scores_that_are_there(
    models: SteadyModels, recorded: Path, tmp_path: Path, capsys: Any
) -> None:
    given = config(models)
    wanted = evaluated(given, sorted(recorded.iterdir()), tmp_path, capsys)
    out = tmp_path / "out"
    first = backfilled(tmp_path, out, "--buckets", "3", "--metrics", f"{MEMORY},llm_confidence")
    assert {metric for _, metric in first} == {MEMORY, "llm_confidence"}
    asked = len(models.requests)
    assert backfilled(tmp_path, out, "--metrics", f"{MADE},llm_confidence,{MEMORY}").items() <= wanted.items()
    assert len(models.requests) == asked, "what was asked before is not asked again, and its scores count"
    assert backfilled(tmp_path, out) == wanted


def test_turns_shows_histories_and_wholes(recorded: Path, capsys: Any) -> None:
    capsys.readouterr()
    files = [str(file) for file in sorted(recorded.iterdir())]
    assert main(["turns", *files]) == 0
    plain = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert main(["turns", "--conversations", *files]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    wholes = [one for one in found if one["turn_id"].startswith("conversation-")]
    turns = [one for one in found if not one["turn_id"].startswith("conversation-")]
    assert [{key: value for key, value in one.items() if key != "history"} for one in turns] == plain
    for whole in wholes:
        mine = [one for one in turns if one.get("conversation_id") == whole["conversation_id"]]
        assert [one["start"] for one in mine] == sorted(one["start"] for one in mine)
        assert [one.get("history", []) for one in mine] == [
            [{"input": each.get("input"), "output": each.get("output")} for each in mine[:at]] for at in range(len(mine))
        ]
        assert whole.get("history", []) == [{"input": each.get("input"), "output": each.get("output")} for each in mine[:-1]]
    assert max(len(one.get("history", [])) for one in turns) > 5


def test_a_backfill_in_parts_refuses_what_needs_whole_conversations(
    models: SteadyModels, recorded: Path, tmp_path: Path, capsys: Any
) -> None:
    (tmp_path / "config.yaml").write_text(json.dumps(config(models)), encoding="utf-8")
    given = ["backfill", str(recorded), "--out", str(tmp_path / "out"), "--config", str(tmp_path / "config.yaml")]
    assert main([*given, "--shard", "0/2"]) == 2
    assert "in one process" in capsys.readouterr().err
    assert main([*given, "--shard", "0/2", "--metrics", "code_latency,llm_relevance"]) == 0
