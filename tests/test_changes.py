"""Score changes in a running engine: notifications, and state across restarts."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.core.turn import ToolCall, Turn
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.engine.engine import Engine
from otel_agenteval.engine.score_statistics import StateFile
from otel_agenteval.engine.work import JudgedTurns
from otel_agenteval.evaluation.scored_turn import Judged, Root, ScoredTurn
from otel_agenteval.outlets.console import ConsoleOutlet
from otel_agenteval.outlets.log_events import change_attributes
from otel_agenteval.outlets.notices import Context, bodies, notice_of
from otel_agenteval.outlets.otlp.encoding import ScoreEncoder
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.statistics.change import ChangeExemplar
from otel_agenteval.statistics.changes import Change
from tests.support.clock import FakeClock
from tests.support.rig import Rig

WATCHED = {"statistics": {"changes": {"detect": True}}}


def turns(values: list[float], *, judged: float | None = None, first: int = 1, version: str = "1") -> list[ScoredTurn]:
    """Return scored turns of an agent, one for each value of a metric."""
    found = []
    for number, value in enumerate(values, first):
        root = Root(number, number, resource={"service.name": "shop", "service.version": version})
        turn = Turn(turn_id=f"{number:032x}-{number:016x}", agent="bot")
        how = None if judged is None else Judged("llm", judged)
        one = Score("llm_relevance", value, value >= 0.5, kind="llm", threshold=0.5, result_id=f"{number:032x}")
        found.append(ScoredTurn(turn, root, [one], judged=how))
    return found


@contextlib.contextmanager
def engine_of(config: dict[str, Any], clock: FakeClock | None = None) -> Iterator[Engine]:
    """Return an engine that is shut down after the test."""
    engine = engine_from(load_config(config), clock=clock or FakeClock(time_ns=10**18))
    try:
        yield engine
    finally:
        engine.shutdown()


def changed() -> tuple[Change, Root]:
    with engine_of({**WATCHED, "outlets": {"prometheus": None}}) as engine:
        [(change, root)] = engine.pipeline.statistics.changes_in(turns([0.9] * 300 + [0.2] * 40))
    return change, root


def test_every_outlet_hears_of_a_change(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "scores.db"
    config = {**WATCHED, "outlets": {"store": str(path)}}
    with Rig(config) as rig:
        rig.engine.worker.put(JudgedTurns(turns([0.9] * 300 + [0.2] * 100, judged=0.5), 0), 0)
        assert rig.engine.flush(120)
        records = [item.log_record for item in rig._logs.get_finished_logs()]
        [record] = [one for one in records if one.event_name == semconv.CHANGE_EVENT]
        said = dict(record.attributes or {})
        named = (semconv.EVALUATION_NAME, semconv.AGENT_NAME, semconv.CHANGE_VERDICT)
        assert tuple(said[name] for name in named) == ("llm_relevance", "bot", "worse")
        assert said[semconv.CHANGE_BEFORE] == pytest.approx(0.9, abs=0.02)
        assert said[semconv.CHANGE_LOW] <= said[semconv.CHANGE_DIFFERENCE] <= said[semconv.CHANGE_HIGH] < 0
        assert len(said[semconv.CHANGE_TRACES]) == len(said[semconv.CHANGE_TURNS]) >= 1
        assert record.severity_text in (None, "WARN")
        assert f"{record.trace_id:032x}" in said[semconv.CHANGE_TRACES]
        values = rig.engine.telemetry.read(semconv.CHANGE_SIZE).values
        assert values == {("llm_relevance", "bot", "worse"): pytest.approx(-0.7, abs=0.05)}
        with StoreReader(path) as reader:
            [row] = reader.changes()
        assert (row["metric"], row["agent"], row["service"], row["verdict"]) == ("llm_relevance", "bot", "shop", "worse")
        assert row["turns"] == list(said[semconv.CHANGE_TURNS])
    assert "llm_relevance is worse for bot" in caplog.text


def test_change_for_the_worse_names_facts_of_failed_turns(tmp_path: Path) -> None:
    """The facts are read on another thread, so that a slow store doesn't delay turns."""
    usual, worse = turns([0.9] * 300), turns([0.2, 0.2, 0.9] * 60, first=301)
    for scored in [*usual, *worse]:
        scored.turn.tool_calls = [ToolCall("pay" if scored.scores[0].value == 0.2 else "search")]
    with Rig({**WATCHED, "outlets": {"store": {"path": str(tmp_path / "scores.db")}}}) as rig:
        for batch in (usual, worse):
            rig.engine.worker.put(JudgedTurns(batch, 0), 0)
            assert rig.engine.flush(120)
        records = [item.log_record for item in rig._logs.get_finished_logs()]
        [record] = [one for one in records if one.event_name == semconv.CHANGE_EVENT]
        [fact] = dict(record.attributes or {})[semconv.CHANGE_FACTS]
        assert fact.startswith("tool = pay (100 % of failed")


def test_over_otlp_it_is_the_same_record() -> None:
    change, root = changed()
    request = ExportLogsServiceRequest.FromString(ScoreEncoder("1").change(change, root, 5, "engine-1"))
    [group] = request.resource_logs
    assert {pair.key: pair.value.string_value for pair in group.resource.attributes}["service.name"] == "shop"
    [record] = group.scope_logs[0].log_records
    assert (record.event_name, record.body.string_value) == (semconv.CHANGE_EVENT, change.title)
    assert record.trace_id == root.trace_id.to_bytes(16, "big")
    names = {pair.key for pair in record.attributes}
    assert names == set(change_attributes(change, "engine-1"))


@pytest.mark.parametrize("form", ["generic", "slack", "teams", "pagerduty"])
def test_a_webhook_says_it_in_each_form(form: str) -> None:
    change, _ = changed()
    options = load_config({"outlets": {"webhook": {"url": "http://127.0.0.1:1", "format": form, "routing_key": "r"}}}, {})
    assert options.outlets.webhook is not None
    assert "changes" in options.outlets.webhook.about
    notice = notice_of(change, Root(1, 2, resource={"service.name": "shop"}))
    said = json.dumps(bodies([notice], Context(options.outlets.webhook, "engine-1", "now")))
    assert "llm_relevance is worse for bot" in said.replace("\\", "")
    assert change.found.exemplars[0].turn_id[:8] in said


@pytest.mark.parametrize(("link", "shown"), [
    ("https://tempo.example/{trace_id}?turn={turn_id}", None), ("https://ui.example/{turn_id}", "https://ui.example/{}"),
])  # fmt: skip
@pytest.mark.parametrize("turn_id", ["acme:conversation-7-b", "conversation-user:42-7", "conversation-thread:abc"])
def test_conversations_of_a_change_have_no_trace_ids(turn_id: str, link: str, shown: str | None) -> None:
    change, root = changed()
    change = replace(change, found=replace(change.found, exemplars=(ChangeExemplar(turn_id),)))
    said = change_attributes(change, "engine-1")
    assert semconv.CHANGE_TRACES not in said
    assert said[semconv.CHANGE_TURNS] == [turn_id]
    options = load_config({"outlets": {"webhook": {"url": "http://127.0.0.1:1", "link": link}}}, {}).outlets.webhook
    assert options is not None
    [example] = bodies([notice_of(change, root)], Context(options, "engine-1", "now"))[0]["notices"][0]["examples"]
    assert "trace_id" not in example
    assert example.get("link") == (shown and shown.format(turn_id))


def test_revisions_are_no_second_look() -> None:
    with Rig() as rig:
        assert rig.engine.pipeline.statistics.changes is None  # in process, unless it is configured
    again = turns([0.9] * 300)
    for scored in again:
        scored.new = False
    with engine_of({**WATCHED, "outlets": {"prometheus": None}}) as engine:
        assert engine.pipeline.statistics.changes_in(again) == []
        assert engine.pipeline.statistics.changes is not None
        assert engine.pipeline.statistics.changes.state() == []


# --- over restarts


def judged_config(path: Path) -> dict[str, Any]:
    return {
        "statistics": {"changes": {"detect": True}, "state": str(path)},
        "judge": {"base_url": "http://127.0.0.1:1/v1", "model": "m"},
        "metrics": ["llm_relevance"],
        "outlets": {"prometheus": None},
    }


def estimates_of(engine: Engine) -> Any:
    assert engine.judging is not None
    return engine.judging.sample.estimates


def test_estimates_and_what_is_usual_outlive_the_process(tmp_path: Path) -> None:
    path, clock = tmp_path / "state" / "statistics.json", FakeClock(time_ns=10**18)
    with engine_of(judged_config(path), clock) as first:
        estimates = estimates_of(first)
        for number in range(60):
            estimates.add_proxies("llm_relevance", "bot", f"t{number}", (0.5, 0.0, number % 2))
            if number % 2:
                estimates.choose("llm_relevance", "bot", 0.5, "drawn", f"t{number}")
                estimates.add("llm_relevance", "bot", f"t{number}", f"t{number}", float(number % 4 > 1), 0.5)
        first.pipeline.statistics.changes_in(turns([0.9] * 300))
        before = estimates.read(), estimates.read_since_start()
    assert path.stat().st_mode & 0o777 == 0o600
    with engine_of(judged_config(path), clock) as second:
        assert (estimates_of(second).read(), estimates_of(second).read_since_start()) == before
        assert second.pipeline.statistics.changes_in(turns([0.2] * 40)) != []  # it knows what was usual
    clock.advance(7_200)
    with engine_of(judged_config(path), clock) as third:
        assert estimates_of(third).read() == {}  # the hour is over
        assert estimates_of(third).read_since_start() == before[1]


def test_it_is_written_now_and_then_so_that_a_kill_loses_a_minute(tmp_path: Path) -> None:
    path, clock = tmp_path / "statistics.json", FakeClock(time_ns=10**18)
    with engine_of(judged_config(path), clock) as engine:
        engine.pipeline.statistics.changes_in(turns([0.9] * 300))
        engine.intake.tick()
        assert not path.exists()
        clock.advance(61)
        engine.intake.tick()
        assert json.loads(path.read_text())["changes"][0][:2] == ["llm_relevance", "bot"]


def test_processes_that_share_a_path_have_a_file_each(tmp_path: Path) -> None:
    files = [StateFile(str(tmp_path / "s.json")) for _ in range(3)]
    assert [file.path.name for file in files] == ["s.json", "s.1.json", "s.2.json"]
    files[1].write({"form": 1, "at": 0})
    files[1].close()
    child = os.fork()
    if not child:
        files[0].close()  # the parent still has its own
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    again = StateFile(str(tmp_path / "s.json"))
    assert (again.path.name, again.read()) == ("s.1.json", {"form": 1, "at": 0})
    for file in (files[0], files[2], again):
        file.close()


def test_process_that_waited_for_another_goes_on_with_its_state(tmp_path: Path) -> None:
    path = tmp_path / "statistics.json"
    with engine_of(judged_config(path)) as first:
        first.pipeline.statistics.changes_in(turns([0.9] * 300))
        with engine_of(judged_config(path)) as second:  # as the first one stops
            second.pipeline.statistics.reopen()
            assert second.pipeline.statistics.changes_in(turns([0.2] * 40)) == []
        third = engine_from(load_config(judged_config(path)), clock=FakeClock(time_ns=10**18))
    third.pipeline.statistics.reopen()
    assert third.pipeline.statistics.changes_in(turns([0.2] * 40)) != []  # it knows what was usual
    third.shutdown()


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"form": 1, "at": "x"}', b'{"form": 1, "at": 0, "estimates": [1], "changes": [[1, 2]]}']
)
def test_a_file_that_cannot_be_read_is_begun_anew(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "statistics.json"
    path.write_bytes(content)
    with engine_of(judged_config(path)) as engine:
        assert estimates_of(engine).read() == {}
    assert json.loads(path.read_text())["form"] == 1


@pytest.mark.parametrize(("form", "fix"), [(99, "upgrade otel-agenteval"), (0, "remove the file")])
def test_state_of_another_version_is_left_as_it_is(tmp_path: Path, form: int, fix: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "statistics.json"
    path.write_text(json.dumps({"form": form}))
    with engine_of(judged_config(path)) as engine:
        assert estimates_of(engine).read() == {}
    assert json.loads(path.read_text()) == {"form": form}
    assert f"statistics.state: {path}: " in caplog.text
    assert fix in caplog.text


def test_a_folder_that_cannot_be_written_costs_nothing_but_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    with engine_of(judged_config(tmp_path / "file" / "statistics.json")) as engine:
        engine.pipeline.statistics.changes_in(turns([0.9] * 3))
    assert "file unusable, so a restart can lose estimates" in caplog.text


def test_the_terminal_shows_it_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    change, root = changed()
    for shown in ("all", "failed"):
        ConsoleOutlet(shown).announce(change, root)
    assert capsys.readouterr().err == f"{change.title}\n" * 2


def test_a_fault_in_looking_at_many_turns_costs_no_score(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("otel_agenteval.statistics.changes.Changes.add", broken)
    monkeypatch.setattr("otel_agenteval.statistics.changes.Changes.state", broken)
    monkeypatch.setattr("otel_agenteval.engine.feedback.feedback_in", broken)
    config = {
        "statistics": {"changes": {"detect": True}, "state": str(tmp_path / "s.json")},
        "inline": {"metrics": ["code_latency"]},
    }
    with Rig(config) as rig:
        rig.run()
        rig.run()
        assert [len(scored.scores) for scored in rig.scored()] == [1, 1]
        assert len(rig.log_events()) == 2
        assert rig.engine.outlets.errors["changes", "ZeroDivisionError"] >= 1  # by batch
        assert rig.engine.outlets.errors["feedback", "ZeroDivisionError"] == 2
        rig.engine.pipeline.statistics.save()
    assert not (tmp_path / "s.json").exists()
