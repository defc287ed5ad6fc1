"""``otel-agenteval ui`` as a process, and the web UI of a real sidecar."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from tests.support.browser import chromium
from tests.support.process import ROOT, environment
from tests.support.service import Sidecar, turn_of
from tests.support.stored_turns import filled, some_turns

RECORDINGS = ROOT / "tests" / "data" / "recordings"


@contextmanager
def ui(*args: str, env: dict[str, str] | None = None) -> Iterator[str]:
    """Yield the address of the process, and check that it exits with status 0."""
    command = [sys.executable, "-m", "otel_agenteval", "ui", *args, "--web", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(env)) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:\d+", line)
        if found is None:
            _, said = process.communicate(timeout=60)
            raise AssertionError(f"{line}{said}")
        try:
            yield found[0]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def get(url: str, path: str, **params: Any) -> Any:
    response = httpx.get(f"{url}/api/v1/{path}", params=params, timeout=60)
    assert response.status_code == 200, response.text
    return response.json()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("traces")
    with tarfile.open(RECORDINGS / "ag2-agent.tar.xz") as packed:
        packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    return folder


def test_a_store_is_shown_and_labelled(tmp_path: Path) -> None:
    path, labels = filled(tmp_path / "scores.db", some_turns(20, content=True)), tmp_path / "labels.jsonl"
    with ui(str(path), "--labels", str(labels), "--trace-url", "https://t.example/{trace_id}") as url:
        turn = get(url, "turns", limit=1)["turns"][0]
        assert turn["asked"] == "Question 19?"
        assert get(url, f"turns/{turn['turn_id']}")["trace_url"] == f"https://t.example/{turn['trace_id']}"
        httpx.post(f"{url}/api/v1/labels", json={"turn_id": turn["turn_id"], "label": "pass"}).raise_for_status()
        assert 'script type="module"' in httpx.get(url).text
    assert json.loads(labels.read_text())["label"] == "pass"


def test_recorded_traces_are_scored_and_shown(traces: Path) -> None:
    with ui(str(traces)) as url:
        turns = get(url, "turns", limit=100)["turns"]
        assert len(turns) > 10
        found = {score["metric"] for turn in turns for score in turn["scores"]}
        assert found >= {"code_refusal", "code_tool_success", "code_turn_error"}
        shown = get(url, f"turns/{turns[2]['turn_id']}")
        assert shown["content"]["spans"]
        assert set(shown["outcomes"].values()) >= {"scored"}
    with ui(str(traces), "--metrics", "code_refusal", "--no-content") as url:
        turns = get(url, "turns", limit=100)["turns"]
        assert {score["metric"] for turn in turns for score in turn["scores"]} == {"code_refusal"}
        assert "asked" not in turns[0]


def test_two_runs_are_compared_case_by_case(tmp_path: Path) -> None:
    """Compare two runs of an experiment, whose turns may have the same ids."""
    (tmp_path / "again").mkdir()
    for name, worse in (("main.jsonl", None), ("branch.jsonl", 2), ("again/main.jsonl", None)):
        rows = [
            {"turn_id": f"{number:032x}-{1:016x}", "case_id": f"case-{number}", "metric": "code_equals_ground_truth", "value": float(number != worse),
             "passed": number != worse, "status": "ok", "result_id": f"{number:032x}"}
            for number in range(4)
        ]  # fmt: skip
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    runs = {"by": "version", "before": "main.jsonl", "after": "branch.jsonl"}
    with ui(str(tmp_path / "main.jsonl"), str(tmp_path / "branch.jsonl")) as url:
        found = get(url, "compare/cases", **runs)["cases"]
        assert [(one["case"], [(each["metric"], each["difference"]) for each in one["differences"]]) for one in found] == [
            ("case-0", []), ("case-1", []), ("case-2", [("code_equals_ground_truth", -1.0)]), ("case-3", []),
        ]  # fmt: skip
        assert get(url, "compare", **runs)["lines"][0]["difference"]["size"] == -0.25
        assert get(url, "facets")["compared"] == ["main.jsonl", "branch.jsonl"]
        with chromium() as browser:
            tab = browser.new_page()
            tab.goto(f"{url}/compare")
            tab.wait_for_selector("text=Case by case")
            assert [tab.get_by_label(side).input_value() for side in ("Before", "After")] == ["main.jsonl", "branch.jsonl"]
    main_, again = str(tmp_path / "main.jsonl"), str(tmp_path / "again" / "main.jsonl")
    with ui(main_, again) as url:  # two of one name are told apart by their paths
        assert {one["name"]: one["turns"] for one in get(url, "facets")["versions"]} == {main_: 4, again: 4}


def test_a_file_of_scores_is_shown_with_the_facts_that_it_has(tmp_path: Path) -> None:
    turn = {
        "turn_id": "run-1/7",
        "agent": "bot",
        "input": "What is due?",
        "output": "Nothing.",
        "start": "2026-11-18T10:00:00Z",
        "status": "ok",
    }
    rows = [
        {"metric": "code_latency", "value": 2.5},
        {"metric": "code_cost", "value": 0.25, "unit": "USD"},
        {"metric": "code_refusal", "value": 1.0},
    ]
    file = tmp_path / "scores.jsonl"
    file.write_text("".join(json.dumps({**turn, **row}) + "\n" for row in rows))
    with ui(str(file)) as url:
        [shown] = get(url, "turns")["turns"]
        assert (shown["turn_id"], shown["asked"], shown["answered"]) == ("run-1/7", "What is due?", "Nothing.")
        assert (shown["duration_s"], shown["cost_usd"], shown["start"]) == (2.5, 0.25, 1_794_996_000.0)
        assert get(url, "turns/run-1%2F7")["content"]["output"] == "Nothing."


def test_scores_of_an_experiment_have_neither_facts_nor_texts(tmp_path: Path) -> None:
    cases = [{"case_id": str(number), "input": "Hi", "output": "Ho" * (number % 2)} for number in range(8)]
    oa.evaluate(None, cases, ["code_empty_answer"]).write(tmp_path / "scores.jsonl")
    with ui(str(tmp_path / "scores.jsonl")) as url:
        response = httpx.get(f"{url}/api/v1/differences", params={"metric": "code_empty_answer"})
        assert (response.status_code, "to compare" in response.text) == (404, True)
        turn_id = get(url, "turns")["turns"][0]["turn_id"]
        assert get(url, f"turns/{turn_id}")["content_kept"] is False


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["none.db"], "none.db: file or folder not found"),
        (["empty"], "empty: contains neither turns nor scores"),
        (["text.txt"], "text.txt: contains neither turns nor scores"),
        (["other.db"], "must be a score store"),
        (["s.db", "broken.jsonl"], "s.db: a store can't be combined"),
        (["broken.jsonl", "postgresql://h/db"], "postgresql://h/db: a store can't be combined"),
        (["broken.jsonl"], "broken.jsonl:2: must be a score"),
        (["s.db", "--web", "0.0.0.0:0"], "--web: 0.0.0.0:0"),
        (["s.db", "--web", "here"], "here"),
        (["s.db", "--trace-url", "https://t.example"], "serve.page.trace_url"),
    ],
)
def test_what_cannot_be_shown_is_said(
    args: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sqlite3

    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("text.txt").write_text("nothing\n")
    Path("broken.jsonl").write_text('{"turn_id": "a", "metric": "code_refusal", "value": 1, "status": "ok"}\n{"metric": 5}\n')
    with sqlite3.connect("other.db") as db:
        db.execute("CREATE TABLE x (y)")
    filled(Path("s.db"), some_turns(2))
    assert main(["ui", *args]) == 2
    assert says in capsys.readouterr().err


# --- the sidecar


def test_the_sidecar_shows_its_own_turns_as_they_come(tmp_path: Path) -> None:
    config = {"outlets": {"store": {"path": str(tmp_path / "scores.db"), "content": True}}, "serve": {"page": {"content": True}}}
    with Sidecar(config) as sidecar:
        url = f"http://{sidecar.addresses['web']}"
        assert get(url, "turns")["turns"] == []  # before anything was kept
        sidecar.post("/v1/traces", turn_of(1))
        (turn,) = sidecar.turns()
        sidecar.engine.flush(60)
        (shown,) = get(url, "turns")["turns"]
        assert shown["turn_id"] == turn.turn_id
        assert get(url, f"turns/{turn.turn_id}")["outcomes"] == sidecar.engine.why(turn.turn_id)
        assert (
            get(url, f"turns/{turn.turn_id}/why")["metrics"]
            == json.loads(sidecar.get(f"/api/why/{turn.turn_id}", "web")[1])["metrics"]
        )
        health = get(url, "health")
        assert "queue.size requests" in health["sidecar"]["more"]
        assert health["sidecar"]["spans"]["received"] == sidecar.service.ledger()["spans"]["received"] > 0
        assert httpx.get(url).status_code == 200


def test_what_is_left_for_judges_is_shown(tmp_path: Path) -> None:
    judge = {"base_url": "http://127.0.0.1:1/v1", "model": "m", "budget": {"usd_per_hour": 2}, "queue": {"backend": "memory"}}
    store = filled(tmp_path / "scores.db", some_turns(3))
    config = {"outlets": {"store": {"path": store, "max_age": "365d"}}, "judge": judge, "metrics": ["llm_relevance"]}
    with Sidecar(config) as sidecar:
        assert get(f"http://{sidecar.addresses['web']}", "facets")["budget_usd"] == 2


def test_a_sidecar_without_a_store_says_what_is_missing() -> None:
    with Sidecar() as sidecar:
        url = f"http://{sidecar.addresses['web']}"
        response = httpx.get(f"{url}/api/v1/turns")
        assert (response.status_code, "outlets.store" in response.json()["error"]) == (404, True)
        assert httpx.get(url).status_code == 200


def test_tokens_of_the_sidecar_are_those_of_the_page(tmp_path: Path) -> None:
    path = filled(tmp_path / "scores.db", some_turns(5, content=True))
    page = {"labels": str(tmp_path / "labels.jsonl"), "read_token": "reads"}
    config = {
        "outlets": {"store": {"path": str(path), "max_age": "365d"}},
        "serve": {"token": "all", "page": page, "tenants": [{"name": "acme", "token": "acmes"}]},
    }
    with Sidecar(config) as sidecar:
        url = f"http://{sidecar.addresses['web']}"
        for auth, turns in ((None, None), (("x", "no"), None), (("x", "reads"), 5), (("x", "all"), 5), (("x", "acmes"), 0)):
            response = httpx.get(f"{url}/api/v1/turns", auth=auth)
            assert response.status_code == (401 if turns is None else 200)
            assert turns is None or len(response.json()["turns"]) == turns
        turn_id = httpx.get(f"{url}/api/v1/turns", auth=("x", "all")).json()["turns"][0]["turn_id"]
        assert httpx.get(f"{url}/api/v1/turns/{turn_id}", auth=("x", "all")).json()["content"] is None
        label = {"turn_id": turn_id, "label": "fail"}
        assert httpx.post(f"{url}/api/v1/labels", json=label, auth=("x", "reads")).status_code == 403
        assert httpx.post(f"{url}/api/v1/labels", json=label, auth=("x", "acmes")).status_code == 404
        assert httpx.post(f"{url}/api/v1/labels", json=label, auth=("ann", "all")).json()["label"]["by"] == "ann"
