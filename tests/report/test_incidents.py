"""The cause of each prepared incident is found from its alert. A normal day has no finding."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.outlets.store.reader import StoreReader
from scripts import incident_stories
from tests.support.incidents import ATTRIBUTES, INCIDENTS, LASTS, SINCE, STALE, Incident, play
from tests.support.stored_turns import NOW

pytestmark = pytest.mark.slow

BEGINS = NOW - LASTS


class Played(NamedTuple):
    incident: Incident
    store: str
    recorded: str


@pytest.fixture(scope="module", params=INCIDENTS, ids=lambda one: one.name)
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    folder = tmp_path_factory.mktemp(request.param.name)
    play(request.param, folder / "scores.db", recorded=folder / "spans.jsonl")
    return Played(request.param, str(folder / "scores.db"), str(folder / "spans.jsonl"))


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    assert main([*args, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def names_of(finding: dict[str, Any]) -> set[str]:
    return {f"{fact['attribute']} = {fact['value']}" for fact in [*finding["facts"], *finding["also"]]}


def assert_names_cause(findings: list[dict[str, Any]], incident: Incident) -> None:
    causes = [finding for finding in findings if not finding["effect"]]
    assert any(incident.cause <= names_of(finding) for finding in causes[:3])
    assert all(names_of(finding) & incident.cause for finding in causes)


def test_change_is_detected_after_an_incident_began(played: Played) -> None:
    with StoreReader(played.store) as reader:
        changes = reader.changes()
    affected = [one for one in changes if one["agent"] == played.incident.agent]
    assert (played.incident.metric, "worse") in {(one["metric"], one["verdict"]) for one in affected}
    assert {one["metric"] for one in changes if one not in affected} <= {
        played.incident.metric
    }  # the prompt leaks in other agents too
    assert min(one["at"] for one in affected) < BEGINS + 10 * 3600
    assert all(one["at"] > BEGINS for one in changes)


def test_differences_of_store_name_the_cause_only(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = printed(capsys, "differences", "--store", played.store, "--since", SINCE, "--metric", played.incident.metric)
    assert_names_cause(found["findings"], played.incident)


def test_differences_of_recording_name_no_false_cause(played: Played, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"outlets": {"store": {"path": str(tmp_path / "x.db"), "attributes": ATTRIBUTES}}}))
    found = {one["metric"]: one for one in printed(capsys, "differences", played.recorded, "--config", str(config))}
    if played.incident is not STALE:  # recordings have no scores of user feedback
        causes = [finding for finding in found[played.incident.metric]["findings"] if not finding["effect"]]
        assert causes
        assert all(names_of(finding) & played.incident.cause for finding in causes)


def test_failure_mode_of_an_incident_grows_most(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    of_store = printed(capsys, "failure-modes", "--store", played.store)
    of_recording = printed(capsys, "failure-modes", played.recorded) if played.incident is not STALE else []
    for modes in filter(None, (of_store, of_recording)):
        worse = [mode for mode in modes if mode["trend"] in ("new", "growing")]
        first = max(worse, key=lambda mode: mode["change"][0])
        assert (first["kind"], first["step"] or "") == played.incident.mode
        assert len(worse) == 1


def test_why_names_the_step_of_an_example(played: Played, capsys: pytest.CaptureFixture[str]) -> None:
    modes = printed(capsys, "failure-modes", "--store", played.store)
    mode = next(mode for mode in modes if (mode["kind"], mode["step"] or "") == played.incident.mode)
    assert main(["why", mode["examples"][0], "--store", played.store, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["metrics"][played.incident.metric] == "scored"
    assert found.get("first_fault", {}).get("path") == played.incident.path


def test_guide_shows_what_its_commands_print(played: Played) -> None:
    shown = incident_stories.blocks(incident_stories.PAGE.read_text(encoding="utf-8"), played.incident.name)
    assert shown
    for commands, output in shown:
        now = incident_stories.printed(commands, Path(played.store).parent)
        assert incident_stories.without_figures(now) == incident_stories.without_figures(output)


def test_quiet_day_has_no_change_no_cause_and_no_new_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "scores.db")
    play(None, Path(store))
    with StoreReader(store) as reader:
        assert reader.changes() == []
    found = printed(capsys, "differences", "--store", store, "--since", SINCE)
    assert [finding for one in found for finding in one["findings"] if not finding["effect"]] == []
    assert {mode["trend"] for mode in printed(capsys, "failure-modes", "--store", store)} <= {"steady", "shrinking", "gone"}
