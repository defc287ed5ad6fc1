"""From the first request to the ledger: draining, reloading, sampling, two instances, what becomes of a turn."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import grpc
import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.server.settings import as_sidecar
from tests.support.clock import FakeClock
from tests.support.service import AGENT, ANY_PORT, CHAT, Sidecar, request, said_by, turn_of

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- turns close by the timers


def test_a_turn_closes_a_decision_delay_after_its_root_and_an_idle_timeout_without_one(clock: FakeClock) -> None:
    with Sidecar(clock=clock) as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        sidecar.post(
            "/v1/traces", request({"trace": 2, "id": 5, "parent": 4, "attributes": AGENT})
        )  # its caller is still to come
        clock.advance(9.9)
        assert sidecar.engine.worker.flush(10)
        assert not sidecar.kept
        clock.advance(0.2)
        assert sidecar.engine.worker.flush(10)
        assert [(s.turn.trace_id[-1], s.turn.close_reason, s.turn.complete) for s in sidecar.kept] == [("1", "delay", True)]
        clock.advance(300)
        assert sidecar.engine.worker.flush(10)
        assert [(s.turn.trace_id[-1], s.turn.close_reason, s.turn.complete) for s in sidecar.kept][1:] == [("2", "idle", False)]


def test_a_nested_agent_that_comes_first_is_not_taken_for_the_turn(clock: FakeClock) -> None:
    with Sidecar(clock=clock) as sidecar:
        nested = {
            "trace": 1,
            "id": 3,
            "parent": 1,
            "name": "invoke_agent inner",
            "attributes": {**AGENT, "gen_ai.agent.name": "inner"},
        }
        sidecar.post("/v1/traces", request(nested, {"trace": 1, "id": 4, "parent": 3, "attributes": CHAT}))
        clock.advance(60)
        assert sidecar.engine.worker.flush(10)
        assert not sidecar.kept
        sidecar.post("/v1/traces", turn_of(1))
        clock.advance(11)
        assert sidecar.engine.worker.flush(10)
        assert [(s.turn.agent, len(s.turn.agent_runs)) for s in sidecar.kept] == [("bot", 2)]


@pytest.mark.parametrize(("flags", "delay"), [(0x300, True), (0x100, False), (0x0, False)])
def test_a_parent_that_flags_say_is_remote_makes_a_local_root(flags: int, delay: bool, clock: FakeClock) -> None:
    with Sidecar(clock=clock) as sidecar:
        sidecar.post("/v1/traces", request({"id": 5, "parent": 4, "attributes": AGENT, "flags": flags}))
        clock.advance(11)
        assert sidecar.engine.worker.flush(10)
        assert bool(sidecar.kept) is delay


def test_what_comes_after_the_close_revises_the_turn_once(clock: FakeClock) -> None:
    with Sidecar(clock=clock) as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        clock.advance(11)
        assert sidecar.engine.worker.flush(10)
        late = request({"id": 9, "parent": 1, "name": "execute_tool x", "attributes": {"gen_ai.operation.name": "execute_tool"}})
        for _ in range(3):  # a Collector that got no answer
            sidecar.post("/v1/traces", late)
        clock.advance(11)
        assert sidecar.engine.worker.flush(10)
        assert [(s.turn.revision, s.supersedes, len(s.turn.spans)) for s in sidecar.kept] == [
            (1, None, 2),
            (2, sidecar.kept[0].turn.turn_id, 3),
        ]
        assert sidecar.engine.assembler.late_spans == 3


# --- two instances


def test_a_turn_that_is_split_over_two_instances_is_flagged_and_no_result_is_there_twice() -> None:
    tool = {"id": 3, "parent": 1, "name": "execute_tool x", "attributes": {"gen_ai.operation.name": "execute_tool"}}
    child = {"id": 4, "parent": 3, "attributes": CHAT}
    with Sidecar() as one, Sidecar() as other:
        one.post("/v1/traces", turn_of(1))
        other.post("/v1/traces", request(tool, child))
        (whole,), (part,) = one.turns(), other.turns()
        assert (whole.complete, whole.revision) == (True, 1)
        assert (part.complete, part.revision) == (False, 1)
        assert whole.turn_id != part.turn_id
        # the sender got no answer from the other one, and sends the same to the first: it is the turn's next revision
        one.post("/v1/traces", request(tool, child))
        until(lambda: one.turns()[-1].revision == 2)
        assert [(s.turn.revision, s.supersedes) for s in one.kept] == [(1, None), (2, whole.turn_id)]
        # and what both have seen has one id wherever it was scored
        other.post("/v1/traces", turn_of(2))
        one.post("/v1/traces", turn_of(2))
        one.turns(), other.turns()
        here, there = said_by(one.kept), said_by(other.kept)
        same = {key for key in here if key[0].startswith(f"{2:032x}")}
        assert len(same) > 5
        assert {key: here[key] for key in same} == {key: there[key] for key in same}
        ids = [said[-1] for key, said in {**here, **there}.items() if said[0] != "skipped"]
        assert len(set(ids)) == len(ids)


# --- sampling


def test_a_share_of_the_traces_is_read_the_same_in_every_instance() -> None:
    config = {"serve": {"sample_rate": 0.25}}
    chosen = []
    for _ in range(2):
        with Sidecar(config) as sidecar:
            for first in range(0, 400, 100):
                spans = [{"trace": 1 + (first + number) * 7919, "attributes": CHAT} for number in range(100)]
                assert sidecar.post("/v1/traces", request(*spans))[0] == 200
            chosen.append({turn.trace_id for turn in sidecar.turns()})
            ledger = sidecar.service.ledger()["spans"]
            out = 400 - len(chosen[-1])
            assert ledger == {"received": 400, "scored": 400 - out, "held": 0, "not_used": {"sampled_out": out}}
    assert chosen[0] == chosen[1]
    assert 60 < len(chosen[0]) < 140


# --- more than can be evaluated


def test_a_flood_is_sent_away_before_anything_is_lost() -> None:
    with Sidecar({"queue": {"max_bytes": "256kB"}, "turn": {"max_open": 10}}) as sidecar:
        acknowledged = 0
        with sidecar.engine.worker._working:  # evaluation stands still
            for number in range(1, 2_000):
                status, headers, _ = sidecar.post("/v1/traces", turn_of(number))
                if status == 503:
                    break
                assert status == 200
                acknowledged += 1
        assert (status, headers["retry-after"]) == (503, "1")
        assert 5 <= acknowledged <= 10
        turns = sidecar.turns()
        assert (len(turns), all(turn.complete for turn in turns)) == (acknowledged, True)
        spans = 2 * acknowledged
        assert sidecar.service.ledger()["spans"] == {"received": spans, "scored": spans, "held": 0, "not_used": {}}
        assert sidecar.post("/v1/traces", turn_of(9_999))[0] == 200  # and it goes on


# --- draining


def test_a_drain_evaluates_what_is_open_and_says_what_became_of_everything() -> None:
    with Sidecar() as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        sidecar.post("/v1/traces", turn_of(1))
        sidecar.post("/v1/traces", b"nonsense")
        open_before = sidecar.service.ledger()["turns"]["open"]
        ledger = sidecar.stop()
    assert open_before == 1
    assert ledger["requests"] == {"bad_data": 1, "ok": 2}
    assert ledger["spans"] == {"received": 4, "scored": 2, "held": 0, "not_used": {"duplicate": 2}}
    assert ledger["turns"] == {"open": 0, "waiting": 0, "closed": {"shutdown": 1}}
    assert (ledger["handed_over"], ledger["faults"], ledger["outlet_errors"]) == (True, {}, {})
    assert sum(ledger["results"].values()) > 5


def test_a_drain_that_runs_out_of_time_says_so() -> None:
    sidecar = Sidecar({"serve": {"drain_timeout": "400ms"}})
    sidecar.post("/v1/traces", turn_of(1))
    stuck = threading.Event()
    next(iter(sidecar.engine.outlets)).emit = lambda _: stuck.wait(30)
    started = time.monotonic()
    ledger = sidecar.stop()
    assert time.monotonic() - started < 5
    assert ledger["handed_over"] is False
    stuck.set()


def test_who_comes_during_a_drain_is_sent_elsewhere_and_who_is_inside_gets_an_answer() -> None:
    with Sidecar() as sidecar:
        sidecar.service.receiver.stopping = True
        assert sidecar.get("/readyz") == (503, "shutting down\n")
        status, headers, _ = sidecar.post("/v1/traces", turn_of(1))
        assert (status, headers["retry-after"]) == (503, "1")
        with grpc.insecure_channel(sidecar.addresses["grpc"]) as channel, pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(TRACES)(turn_of(1), timeout=5)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]


def test_a_request_that_is_inside_when_the_drain_begins_is_answered_and_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sidecar() as sidecar:
        take = sidecar.service.receiver.take
        inside, go = threading.Event(), threading.Event()

        def slow(request: Any) -> Any:
            inside.set()
            assert go.wait(20)
            return take(request)

        monkeypatch.setattr(sidecar.service.receiver, "take", slow)
        answers: list[int] = []
        sender = threading.Thread(target=lambda: answers.append(sidecar.post("/v1/traces", turn_of(1))[0]))
        sender.start()
        assert inside.wait(10)
        drain = threading.Thread(target=sidecar.stop)
        drain.start()
        until(lambda: sidecar.service.receiver.stopping)
        go.set()
        sender.join(20)
        drain.join(20)
    assert answers == [200]
    assert sidecar.ledger["turns"]["closed"] == {"shutdown": 1}


# --- reloading


def reload(sidecar: Sidecar, config: dict[str, Any]) -> list[str]:
    listening = dict.fromkeys(("grpc", "http", "metrics", "web"), ANY_PORT)
    given = {**config, "serve": {**listening, "drain_timeout": "10s", **config.get("serve", {})}}
    given["statistics"] = {"state": None, **config.get("statistics", {})}  # as the test's sidecar has it

    async def work() -> list[str]:
        return sidecar.service.reload(load_config(given))

    found: list[str] = sidecar.on_loop(work)
    return found


def test_a_reload_changes_metrics_references_limits_and_tokens_while_turns_stay_open() -> None:
    with Sidecar({"inline": {"metrics": ["code_latency"]}}) as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        config = {
            "inline": {"metrics": ["code_tool_call_count"]},
            "turn": {"max_spans": 1},
            "serve": {"token": "t0ken", "sample_rate": 1.0},
        }
        assert reload(sidecar, config) == []
        assert sidecar.post("/v1/traces", turn_of(2))[0] == 401
        sidecar.turns()
        assert [{score.metric for score in scored.scores} for scored in sidecar.kept] == [{"code_tool_call_count"}]
        assert sidecar.post("/v1/traces", turn_of(2), {"Authorization": "Bearer t0ken"})[0] == 200
        assert sidecar.engine.worker.flush(10)
        assert sidecar.kept[-1].turn.close_reason == "span_limit"


def test_a_reload_names_what_needs_a_restart_and_a_bad_one_changes_nothing() -> None:
    with Sidecar({"inline": {"metrics": ["code_latency"]}}) as sidecar:
        assert reload(sidecar, {"outlets": {"jsonl": "x"}, "serve": {"max_body": "1MiB"}}) == ["outlets", "serve.max_body"]
        assert "statistics" in reload(sidecar, {"statistics": {"changes": {"least": 0.5}}})
        metrics = [metric.name for metric in sidecar.engine.pipeline.evaluator.metrics]
        with pytest.raises(ConfigError):
            reload(sidecar, {"inline": {"metrics": ["code_nonsense"]}})
        assert [metric.name for metric in sidecar.engine.pipeline.evaluator.metrics] == metrics
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200


# --- what others ask


def test_the_api_says_what_became_of_a_turn_and_of_everything() -> None:
    with Sidecar() as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        (turn,) = sidecar.turns()
        status, text = sidecar.get(f"/api/why/{turn.turn_id}", "web")
        assert (status, json.loads(text)["turn_id"]) == (200, turn.turn_id)
        assert "scored" in json.loads(text)["metrics"].values()
        assert sidecar.get("/no/such/page", "web")[0] == 404
        status, text = sidecar.get("/api/why/unknown", "web")
        assert (status, json.loads(text)) == (404, {"turn_id": "unknown", "metrics": None})
        assert json.loads(sidecar.get("/api/status", "web")[1])["requests"] == {"ok": 1}
        assert sidecar.post("/api/status", server="web")[0] == 405


def test_the_metrics_page_has_turns_requests_and_exemplars() -> None:
    with Sidecar() as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        sidecar.turns()
        _, text = sidecar.get("/metrics", "metrics", {"Accept": "application/openmetrics-text"})
        assert 'agenteval_serve_requests_total{outcome="ok",signal="traces",transport="http"} 1.0' in text
        assert 'agenteval_turns_total{agent="bot"' in text
        assert f'trace_id="{1:032x}"' in text
        assert "process_resident_memory_bytes" in text
        assert sidecar.get("/", "metrics")[0] == 404


# --- the queue of judge jobs


def test_judge_jobs_wait_in_a_file_unless_the_configuration_says_where(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "m"}
    queue = as_sidecar(load_config({"judge": judge})).judge.queue
    assert (queue.backend, queue.path) == ("sqlite", str(tmp_path / "otel-agenteval" / "queue.db"))
    assert as_sidecar(load_config({"judge": {**judge, "queue": {"backend": "memory"}}})).judge.queue.backend == "memory"
    assert as_sidecar(load_config({})).judge.queue.backend == "memory"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match=r"judge\.queue\.path"):
        as_sidecar(load_config({"judge": judge}))
