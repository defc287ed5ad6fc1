"""The store of turns and scores: insertion, replacement, deletion and reading."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import jsonio, semconv
from otel_agenteval.core.score import Exchange, Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import Judged, Root
from otel_agenteval.outlets.store.outlet import StoreOutlet
from otel_agenteval.outlets.store.postgres import is_address
from otel_agenteval.outlets.store.reader import StoreReader, Wanted
from tests.outlets.factories import SPAN_ID, TRACE_ID, scored_turn
from tests.support.clock import FakeClock
from tests.support.page import ServedPage
from tests.support.postgres import Anywhere
from tests.support.process import ROOT, environment

TURN = f"{TRACE_ID:032x}-{SPAN_ID:016x}"
TIMEOUT = [{"name": "book", "arguments": {}, "error": {"type": "timeout"}}]


def score(number: int = 1, metric: str = "code_tool_success", **more: Any) -> Score:
    return Score(metric, **{"value": 0.75, "passed": True, "label": "pass", "result_id": f"{number:032x}", **more})


class Kept:
    """A store with its outlet and a reader."""

    def __init__(self, path: str | Path, clock: FakeClock, **options: Any) -> None:
        wanted = load_config({"outlets": {"store": {"path": path, **options}}}, {}).outlets.store
        assert wanted is not None
        self.path = path
        self.telemetry = Telemetry()
        self.outlet = StoreOutlet(wanted, self.telemetry, lambda: "engine-1", ("email",), clock)

    def reader(self) -> StoreReader:
        return StoreReader(self.path)

    def rows(self, **wanted: Any) -> list[dict[str, Any]]:
        with self.reader() as reader:
            return list(reader.rows(Wanted(**wanted)))

    def outcomes(self) -> dict[str, float]:
        return {key[1]: value for key, value in self.telemetry.read(semconv.EMIT_RECORDS).values.items()}


@pytest.fixture
def kept(anywhere: Anywhere, clock: FakeClock) -> Iterator[Kept]:
    """Return a store in a file, and in PostgreSQL."""
    kept = Kept(anywhere(), clock)
    yield kept
    kept.outlet.close()


@pytest.fixture
def kept_in_file(tmp_path: Path, clock: FakeClock) -> Iterator[Kept]:
    kept = Kept(tmp_path / "scores.db", clock)
    yield kept
    kept.outlet.close()


# --- what is kept


def test_failed_turn_has_its_first_fault(kept: Kept) -> None:
    failing, calls = score(value=0.0, passed=False, label="fail"), {"tool_calls": TIMEOUT}
    kept.outlet.emit([scored_turn(score(2), turn={**calls, "turn_id": "passes"}), scored_turn(failing, turn=calls)])
    with kept.reader() as reader:
        row = reader.turn(TURN)
        assert row is not None
        assert (row["fault"]["kind"], row["fault"]["step"], row["failed"]) == ("tool_error", "book", 1.0)
        assert [(one.fault.mode, one.examples) for one in reader.modes().modes] == [(row["mode"], [TURN])]


@pytest.mark.parametrize("judged_first", [False, True])
def test_judged_failure_has_the_turns_first_fault(kept: Kept, judged_first: bool) -> None:
    """If a judge fails a turn with an earlier harmless fault, this fault is the turn's mode, in either order of arrival."""
    passing = scored_turn(score(), turn={"tool_calls": TIMEOUT})
    judged = scored_turn(score(2, "llm_helpfulness", value=0.0, passed=False), turn={}, judged=Judged("llm", 0.25))
    for one in (judged, passing) if judged_first else (passing, judged):
        kept.outlet.emit([one])
    with kept.reader() as reader:
        ((fault, halves, _),) = reader.modes().modes
    assert (fault.kind, fault.step) == ("tool_error", "book")
    assert sum(half.represented for half in halves) == 4.0


def test_store_without_causes_keeps_none(kept_in_file: Kept, clock: FakeClock, capsys: pytest.CaptureFixture[str]) -> None:
    path = kept_in_file.path
    kept = Kept(path, clock, causes=False)
    kept.outlet.emit([scored_turn(score(value=0.0, passed=False), turn={"tool_calls": TIMEOUT})])
    kept.outlet.close()
    with kept.reader() as reader:
        row = reader.turn(TURN)
        assert row is not None
        assert {row[name] for name in ("facts", "fault", "mode", "failed")} == {None}
        assert not reader.keeps_causes()
    for command in ("differences", "failure-modes"):
        assert main([command, "--store", str(path)]) != 0
        assert "outlets.store.causes" in capsys.readouterr().err
    with ServedPage(str(path)) as served:
        for route in ("differences?metric=code_a", "failure-modes"):
            answer = served.client.get(f"/api/v1/{route}")
            assert answer.status_code == 404
            assert "outlets.store.causes" in answer.text


@pytest.mark.parametrize("names", [[f"tool-{number}" for number in range(10_000)], ["x" * 500_000, "y" * 500_000]])
def test_facts_are_bounded_for_many_or_long_names(kept_in_file: Kept, names: list[str]) -> None:
    calls = {"tool_calls": [{"name": name, "error": {"type": name}} for name in names], "error": {"type": names[0]}}
    kept_in_file.outlet.emit([scored_turn(score(value=0.0, passed=False), turn=calls)])
    with kept_in_file.reader() as reader:
        row = reader.turn(TURN)
    assert row is not None
    assert len(row["facts"]["tool"]) <= 50
    assert len(jsonio.dumps(row["facts"])) + len(jsonio.dumps(row["fault"])) < 200_000


def test_a_turn_and_its_scores(kept: Kept, clock: FakeClock) -> None:
    texts = {"explanation": "Ask ann@example.com.", "detail": {"who": ["ann@example.com"]}}
    failed = score(2, "code_b", value=0.1, passed=False, label="fail", threshold=0.5, policy="gate", **texts)
    error = Score("code_c", status="error", error_type="boom", result_id="e" * 32)
    kept.outlet.emit([scored_turn(score(), failed, error, Score("code_d", status="skipped", detail={"reason": "no tools"}))])
    with kept.reader() as reader:
        turn = reader.turn(TURN)
        assert turn is not None
        assert (turn["agent"], turn["service"], turn["model"], turn["complete"]) == ("travel", "shop", "gpt-5", True)
        assert (turn["trace_id"], turn["span_id"], turn["input_tokens"]) == (f"{TRACE_ID:032x}", f"{SPAN_ID:016x}", 100)
        assert (turn["content"], turn["stored_at"], turn["instance_id"]) == (None, clock.time_ns() / 1e9, "engine-1")
        found = {row["metric"]: row for row in reader.scores(TURN)}
        assert found.keys() == {"code_tool_success", "code_b", "code_c"}
        assert (found["code_b"]["passed"], found["code_b"]["threshold"], found["code_b"]["policy"]) == (False, 0.5, "gate")
        assert {name: found["code_b"][name] for name in texts} == texts
        assert (found["code_c"]["status"], found["code_c"]["value"], found["code_c"]["error_type"]) == ("error", None, "boom")
        assert reader.why(TURN) == {
            "code_tool_success": "scored", "code_b": "scored", "code_c": "error: boom", "code_d": "skipped: no tools",
        }  # fmt: skip
        assert reader.why("no such turn") is None
    assert kept.outcomes() == {"sent": 3}
    if not is_address(str(kept.path)):
        file = Path(kept.path)
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"SECRET" not in file.read_bytes() + file.with_name("scores.db-wal").read_bytes()


def test_content_is_kept_where_it_is_wanted_and_redacted(tmp_path: Path, clock: FakeClock) -> None:
    kept = Kept(tmp_path / "scores.db", clock, content=True)
    kept.outlet.emit([scored_turn(score(), turn={"output": "Write to ann@example.com."})])
    asked = (Exchange("rate", "qwen3", "Is ann@example.com right?", '{"score": 90}'), Exchange("sum", "qwen3", "Well?", None))
    judged_so = Judged("llm", 0.1, "qwen3", 0.002, exchanges=asked)
    kept.outlet.emit([scored_turn(score(2, "llm_relevance", kind="llm"), judged=judged_so)])
    with kept.reader() as reader:
        turn = reader.turn(TURN)
        assert turn is not None
        assert (turn["content"]["input"], turn["content"]["output"]) == ("SECRET QUESTION", "Write to [EMAIL_1].")
        (judged,) = [row for row in reader.scores(TURN) if row["metric"] == "llm_relevance"]
        assert (judged["sample_probability"], judged["judge_model"], judged["judge_cost_usd"]) == (0.1, "qwen3", 0.002)
        assert reader.questions(judged["result_id"]) == [
            {"stage": "rate", "model": "qwen3", "question": "Is [EMAIL_1] right?", "reply": '{"score": 90}'},
            {"stage": "sum", "model": "qwen3", "question": "Well?", "reply": None},
        ]
    kept.outlet.close()


@pytest.mark.parametrize("content", [True, False])
def test_what_a_judge_was_asked_is_content_and_goes_with_its_turn(anywhere: Anywhere, clock: FakeClock, content: bool) -> None:
    judged = Judged("llm", 1.0, "qwen3", exchanges=(Exchange("rate", "qwen3", "Is it right?", "90"),))
    kept = Kept(anywhere(), clock, content=content)
    kept.outlet.emit([scored_turn(score(2, "llm_relevance", kind="llm"), judged=judged)])
    with kept.reader() as reader:
        (row,) = reader.scores(TURN)
        assert len(reader.questions(row["result_id"])) == content
    clock.advance(900 * 86_400)
    kept.outlet._store.retain()
    with kept.reader() as reader:
        assert (reader.scores(TURN), reader.questions(row["result_id"])) == ([], [])
    kept.outlet.close()


def test_old_turns_are_deleted_even_if_no_more_turns_arrive(kept: Kept, clock: FakeClock) -> None:
    kept.outlet.emit([scored_turn(score())])
    clock.advance(31 * 86_400)
    kept.outlet.check()
    with kept.reader() as reader:
        assert reader.turn(TURN) is None


def test_the_same_result_again_changes_nothing(kept: Kept) -> None:
    kept.outlet.emit([scored_turn(score(), score(2, "code_b"))])
    kept.outlet.emit([scored_turn(score(value=0.1), score(2, "code_b"))])
    assert [(row["metric"], row["value"]) for row in kept.rows()] == [("code_tool_success", 0.75), ("code_b", 0.75)]


def revision(number: int, **more: Any) -> Any:
    """Return a revision of the turn, with one score."""
    turn = {"revision": number, **more.pop("turn", {})}
    return scored_turn(score(number, value=number / 10), turn=turn, new=number == 1, **more)


@pytest.mark.parametrize("order", [(3, 2, 1), (2, 2, 1, 3, 1)])
def test_a_revision_supersedes_in_whatever_order_they_come(kept: Kept, order: tuple[int, ...]) -> None:
    for number in order:
        kept.outlet.emit([revision(number, supersedes=TURN if number > 1 else None)])
    assert [(row["revision"], row["value"]) for row in kept.rows()] == [(3, 0.3)]
    assert len(kept.rows(revisions=True)) == 3
    with kept.reader() as reader:
        assert [row["revision"] for row in reader.scores(TURN)] == [3]
        assert len(reader.turns()) == 1


@pytest.mark.parametrize("late", [False, True])
def test_a_turn_whose_root_was_found_later_replaces_the_one_without(kept: Kept, late: bool) -> None:
    rootless = scored_turn(score(1), turn={"turn_id": f"{TRACE_ID:032x}-0000000000000009"})
    found = scored_turn(score(2), turn={"revision": 2}, supersedes=rootless.turn.turn_id, new=False)
    for scored in (found, rootless) if late else (rootless, found):
        kept.outlet.emit([scored])
    assert [row["turn_id"] for row in kept.rows()] == [TURN]
    with kept.reader() as reader:
        assert [turn["turn_id"] for turn in reader.turns()] == [TURN]
        assert reader.turn(rootless.turn.turn_id)["superseded_by"] == TURN  # type: ignore[index]


def test_a_judged_score_that_comes_later_belongs_to_its_turn(kept: Kept) -> None:
    kept.outlet.emit([scored_turn(score())])
    kept.outlet.record_outcome(TURN, "llm_faithfulness", "waiting")
    kept.outlet.record_outcome(TURN, "llm_relevance", "sampled out (p=0.05)")
    assert kept.outlet.flush(1)
    with kept.reader() as reader:
        assert reader.why(TURN)["llm_faithfulness"] == "waiting"  # type: ignore[index]
    kept.outlet.emit([scored_turn(score(2, "llm_faithfulness"), judged=Judged("llm", 0.5))])
    with kept.reader() as reader:
        assert reader.why(TURN) == {
            "code_tool_success": "scored", "llm_faithfulness": "scored", "llm_relevance": "sampled out (p=0.05)",
        }  # fmt: skip


# --- what goes


def many(kept: Kept, count: int, **more: Any) -> None:
    ids = [f"{number:032x}-{SPAN_ID:016x}" for number in range(count)]
    turns = [scored_turn(score(at, **more), turn={"turn_id": turn_id}, root=Root(at, SPAN_ID)) for at, turn_id in enumerate(ids)]
    for start in range(0, count, 100):
        kept.outlet.emit(turns[start : start + 100])


def test_turns_go_when_they_are_old(kept: Kept, clock: FakeClock) -> None:
    many(kept, 300)
    kept.outlet.record_outcome("a turn that never came", "llm_relevance", "dropped: queue_full")
    kept.outlet.flush(1)
    clock.advance(29 * 86400)
    kept.outlet.emit([scored_turn(score(5_000))])
    assert len(kept.rows()) == 301
    clock.advance(2 * 86400)
    kept.outlet.emit([])
    kept.outlet.flush(1)
    assert [row["turn_id"] for row in kept.rows()] == [TURN]
    with kept.reader() as reader:
        assert reader.why("a turn that never came") is None
        assert reader.turn(TURN) is not None


@pytest.mark.parametrize("restarted", [True, False])
def test_clock_that_is_a_year_ahead_deletes_nothing_at_once(
    anywhere: Anywhere, clock: FakeClock, restarted: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = anywhere()
    kept = Kept(path, clock)
    many(kept, 10)
    ahead = FakeClock(clock.monotonic(), clock.time_ns() + 365 * 86_400 * 10**9)
    if restarted:
        kept.outlet.close()
        kept = Kept(path, ahead)
    else:
        kept.outlet._clock = kept.outlet._store._clock = ahead
    for seconds, left in ((61, 10), (3_000, 10), (1_000, 0)):
        ahead.advance(seconds)
        kept.outlet.emit([scored_turn(score(5_000))])
        assert sum(row["turn_id"] != TURN for row in kept.rows()) == left
    assert caplog.text.count("365 days ago") == 1
    kept.outlet.close()


def test_the_oldest_turns_go_when_the_file_is_full_and_the_file_shrinks(tmp_path: Path, clock: FakeClock) -> None:
    kept = Kept(tmp_path / "scores.db", clock, max_bytes="2MB")
    many(kept, 1_500, explanation="x" * 4_000)
    assert kept.path.stat().st_size < 4_000_000
    for _ in range(20):
        clock.advance(61)
        kept.outlet.emit([])
    rows = kept.rows()
    assert 100 < len(rows) < 500
    assert rows[-1]["result_id"] == f"{1_499:032x}"
    kept.outlet.close()
    assert kept.path.stat().st_size < 3_000_000


# --- what is in the way


def test_a_file_that_is_in_use_gets_the_scores_later(kept_in_file: Kept) -> None:
    kept = kept_in_file
    kept.outlet.emit([scored_turn(score(1))])
    kept.outlet._store._file._db.execute("PRAGMA busy_timeout = 20")
    other = sqlite3.connect(kept.path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    with pytest.raises(sqlite3.OperationalError):
        kept.outlet.emit([scored_turn(score(2, "code_b"))])
    assert not kept.outlet.flush(0)
    other.execute("ROLLBACK")
    other.close()
    assert kept.outlet.flush(0)
    assert len(kept.rows()) == 2
    assert kept.outcomes() == {"sent": 2}


def test_what_can_never_be_written_is_bounded_and_counted(tmp_path: Path, clock: FakeClock) -> None:
    kept = Kept(tmp_path / "no such folder" / "scores.db", clock, queue_bytes="1MB")
    batch = [scored_turn(*[score(number) for number in range(100)])]
    for _ in range(30):
        with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
            kept.outlet.emit(batch)
    (dropped,) = kept.outcomes().values()
    assert 0 < dropped < 2_500
    kept.outlet.close()
    assert kept.outcomes() == {"queue_full": dropped, "shutdown": 3_000 - dropped}


WRITER = """
import os, signal, sys
from tests.outlets.test_store import Kept, many
from tests.support.clock import FakeClock
kept = Kept(sys.argv[1], FakeClock())
many(kept, 200)
if sys.argv[2] == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_processes_share_a_file_and_a_kill_loses_nothing_that_was_written(tmp_path: Path, clock: FakeClock) -> None:
    path = tmp_path / "scores.db"
    command = [sys.executable, "-c", WRITER, str(path)]
    running = [subprocess.Popen([*command, how], cwd=ROOT, env=environment(), stderr=subprocess.PIPE) for how in ("end", "kill")]
    assert [(process.communicate(timeout=120)[1], process.returncode) for process in running] == [(b"", 0), (b"", -9)]
    with StoreReader(path) as reader:
        assert len(list(reader.rows())) == 200, "both wrote the same 200 results"


# --- what readers get


def test_filters_and_sums(kept: Kept, clock: FakeClock) -> None:
    for number, agent in enumerate(("a", "b", "a")):
        kept.outlet.emit([
            scored_turn(
                score(number), score(10 + number, "code_b", value=1.0, passed=number > 0, detail={"vacuous": True} if number else {}),
                turn={"turn_id": f"t{number}", "agent": agent, "service": f"s{number}"},
            )
        ])  # fmt: skip
        clock.advance(60)
    start = clock.time_ns() / 1e9 - 180
    assert {row["turn_id"] for row in kept.rows(agents=["a"])} == {"t0", "t2"}
    assert {row["metric"] for row in kept.rows(metrics=["code_b"])} == {"code_b"}
    assert {row["turn_id"] for row in kept.rows(since=start + 30)} == {"t1", "t2"}
    assert {row["turn_id"] for row in kept.rows(until=start + 30)} == {"t0"}
    assert {row["turn_id"] for row in kept.rows(services=["s1"])} == {"t1"}
    with kept.reader() as reader:
        assert [turn["turn_id"] for turn in reader.turns(limit=2)] == ["t2", "t1"]
        assert [turn["turn_id"] for turn in reader.turns(limit=2, before=reader.turns(limit=2)[-1]["stored_at"])] == ["t0"]
        assert [turn["turn_id"] for turn in reader.turns(Wanted(metrics=["code_b"], agents=["b"]))] == ["t1"]


# --- through the engine
