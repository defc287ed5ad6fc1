"""From the first request to the ledger: draining, reloading, sampling, and outcomes of turns."""

from __future__ import annotations

import json
import threading
from typing import Any

import grpc
import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.server.app import as_sidecar
from tests.support.clock import FakeClock
from tests.support.redis_server import RedisServer
from tests.support.rig import chat_attributes
from tests.support.servers import until
from tests.support.service import AGENT, ANY_PORT, CHAT, Sidecar, request, turn_of

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


@pytest.mark.parametrize(("flags", "delay"), [(0x300, True), (0x100, False), (0x0, False)])
def test_a_parent_that_flags_say_is_remote_makes_a_local_root(flags: int, delay: bool, clock: FakeClock) -> None:
    with Sidecar(clock=clock) as sidecar:
        sidecar.post("/v1/traces", request({"id": 5, "parent": 4, "attributes": AGENT, "flags": flags}))
        clock.advance(11)
        assert sidecar.engine.worker.flush(60)
        assert bool(sidecar.kept) is delay


def test_a_share_of_the_traces_is_read_the_same_in_every_instance() -> None:
    config = {"serve": {"sample_rate": 0.25}}
    chosen = []
    for _ in range(2):
        with Sidecar(config) as sidecar:
            for first in range(0, 400, 100):
                spans = [{"trace": 1 + (first + number) * 7919, "attributes": CHAT} for number in range(100)]
                assert sidecar.post("/v1/traces", request(*spans))[0] == 200
            chosen.append({turn.trace_id for turn in sidecar.turns()})
            ledger = sidecar.service.ledger()["spans"]["not_used"]
            assert ledger == {"sampled_out": 400 - len(chosen[-1])}
    assert chosen[0] == chosen[1]
    assert 60 < len(chosen[0]) < 140


def test_a_drain_that_runs_out_of_time_says_so() -> None:
    sidecar = Sidecar({"serve": {"drain_timeout": "400ms"}})
    sidecar.post("/v1/traces", turn_of(1))
    stuck = threading.Event()
    next(iter(sidecar.engine.outlets)).emit = lambda _: stuck.wait(600)
    ledger = sidecar.stop()
    assert not stuck.is_set(), "the drain ended although the outlet goes on"
    assert ledger["handed_over"] is False
    stuck.set()


def test_who_comes_during_a_drain_is_sent_elsewhere_and_who_is_inside_gets_an_answer() -> None:
    with Sidecar() as sidecar:
        sidecar.service.receiver.stopping = True
        assert sidecar.get("/readyz") == (503, "shutting down\n")
        status, headers, _ = sidecar.post("/v1/traces", turn_of(1))
        assert (status, headers["retry-after"]) == (503, "1")
        with grpc.insecure_channel(sidecar.addresses["grpc"]) as channel, pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(TRACES)(turn_of(1), timeout=60)
        assert caught.value.code() is grpc.StatusCode.UNAVAILABLE  # type: ignore[attr-defined]


def test_a_request_that_is_inside_when_the_drain_begins_is_answered_and_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sidecar() as sidecar:
        take = sidecar.service.receiver.process
        inside, go = threading.Event(), threading.Event()

        def slow(request: Any) -> Any:
            inside.set()
            assert go.wait(60)
            return take(request)

        monkeypatch.setattr(sidecar.service.receiver, "process", slow)
        answers: list[int] = []
        sender = threading.Thread(target=lambda: answers.append(sidecar.post("/v1/traces", turn_of(1))[0]))
        sender.start()
        assert inside.wait(60)
        drain = threading.Thread(target=sidecar.stop)
        drain.start()
        until(lambda: sidecar.service.receiver.stopping, "it drains")
        go.set()
        sender.join(60)
        drain.join(60)
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


def test_a_reload_names_what_needs_a_restart_and_a_bad_one_changes_nothing() -> None:
    with Sidecar({"inline": {"metrics": ["code_latency"]}}) as sidecar:
        assert reload(sidecar, {"outlets": {"jsonl": "x"}, "serve": {"max_body": "1MiB"}}) == ["outlets", "serve.max_body"]
        assert "statistics" in reload(sidecar, {"statistics": {"changes": {"least": 0.5}}})
        metrics = [metric.name for metric in sidecar.engine.pipeline.evaluator.metrics]
        with pytest.raises(ConfigError):
            reload(sidecar, {"inline": {"metrics": ["code_nonsense"]}})
        assert [metric.name for metric in sidecar.engine.pipeline.evaluator.metrics] == metrics
        for _ in range(2):
            assert "turn.stitch_timeout" in reload(sidecar, {"turn": {"stitch_timeout": "1s"}})
        assert reload(sidecar, {}) == [], "back to the options in effect"
        assert reload(sidecar, {"turn": {"max_spans": 1}}) == []
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        assert sidecar.turns()[0].close_reason == "span_limit"


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


def test_the_metrics_page_has_turns_and_exemplars() -> None:
    with Sidecar() as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        sidecar.turns()
        _, text = sidecar.get("/metrics", "metrics", {"Accept": "application/openmetrics-text"})
        assert 'agenteval_turns_total{agent="bot"' in text
        assert f'trace_id="{1:032x}"' in text
        assert sidecar.get("/", "metrics")[0] == 404


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


def test_waiting_judge_jobs_are_queued_without_judge_threads(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.server.app._CHECK_EVERY", 0.1)
    server = RedisServer(tmp_path)
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "queue": {"backend": "redis", "url": server.url, "work": False}}
    try:
        with Sidecar({"judge": judge, "metrics": ["llm_relevance"], "turn": {"decision_delay": "100ms"}}) as sidecar:
            server.kill()
            sidecar.post("/v1/traces", request({"trace": 1, "id": 1, "attributes": chat_attributes("Who?", "Me.")}))
            until(lambda: sidecar.engine.unsent_jobs == 1, "the job waits in memory")
            server.start()
            until(lambda: sidecar.engine.unsent_jobs == 0, "the job is queued")
    finally:
        server.stop()
