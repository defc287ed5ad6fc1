"""Scores as JSON lines on a real disk, which can fail."""

from __future__ import annotations

import datetime
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core.score import FIELDS, Score
from otel_agenteval.outlets.jsonl import JsonLinesOutlet
from tests.outlets.factories import SPAN_ID, TRACE_ID, scored_turn

PASSED = Score("code_a", 0.75, True, label="pass", detail={"calls": 4}, result_id="f" * 32)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "scores.jsonl"


@pytest.fixture
def outlet(path: Path) -> Iterator[JsonLinesOutlet]:
    made = JsonLinesOutlet(path)
    yield made
    made.close()


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_line_says_where_the_score_belongs_and_what_it_is(path: Path, outlet: JsonLinesOutlet) -> None:
    outlet.emit([scored_turn(PASSED, turn={"system": "SECRET SYSTEM", "start": "2026-11-21T02:57:01Z"})])
    trace, span = f"{TRACE_ID:032x}", f"{SPAN_ID:016x}"
    turn = {"turn_id": f"{trace}-{span}", "trace_id": trace, "span_id": span, "service": "shop", "agent": "travel"}
    state = {"cost_usd": 0.25, "close_reason": "root_ended", "complete": True, "revision": 1}
    turn |= {"conversation_id": "conv-1", "model": "gpt-5", "start": "2026-11-21T02:57:01.000000Z"}
    [line] = lines(path)
    assert datetime.datetime.fromisoformat(line.pop("scored_at")).utcoffset() == datetime.timedelta(0)
    assert line == {**turn, **state, **PASSED.to_dict()}


def test_the_score_can_be_read_back(path: Path, outlet: JsonLinesOutlet) -> None:
    failed = Score("code_b", status="error", error_type="timeout")
    outlet.emit([scored_turn(PASSED, failed, turn={"agent": None}, supersedes="t-1")])
    found = lines(path)
    assert [Score.from_dict({k: v for k, v in line.items() if k in FIELDS}) for line in found] == [PASSED, failed]
    assert all("agent" not in line and line["supersedes"] == "t-1" for line in found)


def test_nothing_is_opened_before_there_is_a_score(path: Path, outlet: JsonLinesOutlet) -> None:
    outlet.emit([scored_turn(Score("code_a", status="skipped", detail={"reason": "missing:output"}))])
    assert outlet.flush(0)
    outlet.close()
    outlet.close()
    assert not path.exists()


def test_each_batch_is_on_disk_at_once_and_what_was_there_stays(path: Path, outlet: JsonLinesOutlet) -> None:
    path.write_text('{"metric":"code_before"}\n')
    other_process = JsonLinesOutlet(path)
    outlet.emit([scored_turn(PASSED), scored_turn(PASSED, PASSED)])
    assert len(lines(path)) == 4
    other_process.emit([scored_turn(Score("code_other", 1.0))])
    other_process.close()
    outlet.close()
    outlet.emit([scored_turn(PASSED)])
    assert [line["metric"] for line in lines(path)] == ["code_before", *["code_a"] * 3, "code_other", "code_a"]


def test_a_file_that_cannot_be_opened_is_told_and_tried_again_with_the_next_batch(tmp_path: Path) -> None:
    path = tmp_path / "later" / "scores.jsonl"
    outlet = JsonLinesOutlet(path)
    for _ in range(2):
        with pytest.raises(OSError, match=r"scores\.jsonl"):
            outlet.emit([scored_turn(PASSED)])
    assert not outlet.flush(0)
    path.parent.mkdir()
    outlet.emit([scored_turn(PASSED)])
    outlet.close()
    assert len(lines(path)) == 3  # nothing was lost meanwhile
    assert outlet.records.to_dict() == {"made": 3, "delivered": 3, "waiting": 0, "failed": {}}


def test_a_full_disk_is_told_and_leaves_a_file_whose_later_lines_can_be_read(path: Path, outlet: JsonLinesOutlet) -> None:
    outlet.emit([scored_turn(PASSED)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 40, hard))
    try:
        for _ in range(2):
            with pytest.raises(OSError, match="File too large"):
                outlet.emit([scored_turn(Score("code_lost", 0.5))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    outlet.emit([scored_turn(Score("code_after", 0.5))])
    first, torn, *rest = path.read_text().splitlines()
    assert [json.loads(line)["metric"] for line in (first, *rest)] == ["code_a", "code_lost", "code_lost", "code_after"]
    with pytest.raises(json.JSONDecodeError):
        json.loads(torn)


def test_what_a_disk_does_not_take_waits_within_bounds_and_the_account_balances(path: Path) -> None:
    path.mkdir()  # what stands there is no file
    outlet = JsonLinesOutlet(path, max_waiting=2_000)
    for _ in range(20):
        with pytest.raises(OSError, match="scores"):
            outlet.emit([scored_turn(PASSED)])
    assert outlet.full
    waiting, lost = outlet.records.waiting, outlet.records.failed["queue_full"]
    assert (waiting > 0, lost > 0, waiting + lost) == (True, True, 20)
    path.rmdir()
    assert outlet.flush(0)
    assert (len(lines(path)), outlet.records.delivered, outlet.full) == (waiting, waiting, False)
    outlet.close()


def test_where_nothing_may_be_dropped_all_of_it_waits(path: Path) -> None:
    path.mkdir()
    outlet = JsonLinesOutlet(path, max_waiting=500)
    outlet.keep_all()
    for _ in range(20):
        with pytest.raises(OSError, match="scores"):
            outlet.emit([scored_turn(PASSED)])
    assert (outlet.full, outlet.records.waiting) == (True, 20)
    outlet.close()
    assert outlet.records.to_dict() == {"made": 20, "delivered": 0, "waiting": 0, "failed": {"shutdown": 20}}
