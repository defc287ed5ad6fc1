"""Failure modes on the page: their API, and what leads to their turns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.evaluation.first_fault import Fault
from otel_agenteval.page.api import Options, Reader
from tests.support.page import ServedPage
from tests.support.postgres import Anywhere
from tests.support.stored_turns import failed_row, filled, score_row, turn_row

TIMEOUT = Fault("tool_error", "tool_calls[0]", "book failed and wasn't repaired", "book", "timeout")


def stored(path: str) -> str:
    """A store of 60 turns, of which every third failed, half of them of a tenant."""
    rows = []
    for number in range(60):
        tenant = "acme" if number % 2 else "globex"
        fault = TIMEOUT if number % 4 else Fault("code_refusal")
        turn = turn_row(number, tenant=tenant) if number % 3 else failed_row(number, fault, tenant=tenant)
        rows.append((turn, [score_row(turn, value=float(number % 3 > 0))]))
    return filled(path, rows)


def test_modes_equal_those_of_the_command(anywhere: Anywhere, capsys: pytest.CaptureFixture[str]) -> None:
    path = stored(anywhere())
    assert main(["failure-modes", "--store", path, "--format", "json"]) == 0
    with ServedPage(path) as served:
        found = served.get("failure-modes")
        assert found["modes"] == json.loads(capsys.readouterr().out)
        assert found["turns"] == 60
        assert [(mode["kind"], mode["failed"]) for mode in found["modes"]] == [("tool_error", 15), ("code_refusal", 5)]


def test_mode_leads_to_its_turns(anywhere: Anywhere) -> None:
    with ServedPage(stored(anywhere())) as served:
        for mode in served.get("failure-modes")["modes"]:
            turns = served.get("turns", mode=mode["id"])["turns"]
            assert len(turns) == mode["failed"]
            assert {turn["turn_id"] for turn in turns} >= set(mode["examples"])
        assert served.get("turns", mode="0")["turns"] == []


def test_filters_and_tenants_limit_the_modes(anywhere: Anywhere) -> None:
    path = stored(anywhere())
    with ServedPage(path) as served:
        assert served.get("failure-modes", agent="nobody") == {"modes": [], "turns": 0, "middle": 0.0}
        assert sum(mode["failed"] for mode in served.get("failure-modes", metric="code_refusal", outcome="fail")["modes"]) == 20
        assert served.get("failure-modes", metric="code_other", outcome="fail")["modes"] == []
    with ServedPage(path, readers={"t": Reader("read", "acme")}) as served:
        served.client.headers["authorization"] = "Bearer t"
        found = served.get("failure-modes")
        assert (found["turns"], [mode["failed"] for mode in found["modes"]]) == (30, [10])


def test_modes_are_compared_by_version(anywhere: Anywhere) -> None:
    turns = [failed_row(number, TIMEOUT, service_version=f"1.{number // 20}") for number in range(60)]
    with ServedPage(filled(anywhere(), [(turn, [score_row(turn, value=0.0)]) for turn in turns])) as served:
        found = served.get("failure-modes", by="version")
        assert [part["group"] for part in found["modes"][0]["groups"]] == ["1.0", "1.1", "1.2"]
        assert found["middle"] is None


def test_cases_of_a_mode_are_a_data_set(anywhere: Anywhere, tmp_path: Path) -> None:
    rows = []
    for number in range(6):
        tenant = "acme" if number % 2 else "globex"
        turn = failed_row(number, TIMEOUT, tenant=tenant, content={"input": f"Book {number}", "output": "Done."})
        turn["turn_id"] = f"{tenant}:{turn['turn_id']}"
        rows.append((turn, [score_row(turn, "code_tool_success", 0.2, threshold=0.7)]))
    path = filled(anywhere(), rows)
    cases = f"/api/v1/failure-modes/{TIMEOUT.mode}/cases"
    labels = tmp_path / "labels.jsonl"
    label = {"turn_id": rows[5][0]["turn_id"], "label": "fail", "comment": '{"ground_truth": "Booked."}'}
    labels.write_text(json.dumps(label), encoding="utf-8")
    with ServedPage(path, Options(content=True, labels=str(labels)), readers={"t": Reader("read", "acme")}) as served:
        served.client.headers["authorization"] = "Bearer t"
        answer = served.client.get(cases, params={"limit": "2"})
        assert answer.headers["content-type"].startswith("application/x-ndjson")
        newest, before = (json.loads(line) for line in answer.text.splitlines())
        assert (newest["input"], newest["ground_truth"], before["input"]) == ("Book 5", "Booked.", "Book 3")
        assert newest["metrics"] == [{"code_tool_success": {"repair_all": True}, "policy": "gate"}]
        assert served.client.get("/api/v1/failure-modes/0/cases").status_code == 404
    with ServedPage(path, Options()) as served:
        assert served.client.get(cases).status_code == 404
