"""Tenants of the sidecar: identification by token, quotas that slow only one tenant, and separate turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.rpc import error_details_pb2
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import effective_yaml, load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.pacing import TokenBucket
from otel_agenteval.core.tenancy import base_of, number_of, tenant_of, trace_id_of, turn_id_in
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.server.auth import check_exposure
from otel_agenteval.spans.split import split_spans
from otel_agenteval.turns.assembler import Assembler
from otel_agenteval.turns.late_data import role_of_span
from otel_agenteval.turns.state import TurnLimits
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.receiver import GrpcReceiver, plain
from tests.support.service import ANY_PORT, CHAT, Sidecar, left_in, request, turn_of

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
A, B = {"name": "a", "token": "token-a"}, {"name": "b", "token": "token-b"}


def of(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def tenants(*given: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"inline": {"metrics": ["code_latency"]}, "serve": {"tenants": list(given) or [A, B]}, **more}


def call(sidecar: Sidecar, body: bytes, token: str) -> Any:
    with grpc.insecure_channel(sidecar.addresses["grpc"]) as channel:
        try:
            return channel.unary_unary(TRACES)(body, timeout=60, metadata=(("authorization", f"Bearer {token}"),))
        except grpc.RpcError as error:
            return error


def retry_after(error: Any) -> float:
    info = error_details_pb2.RetryInfo.FromString(dict(error.trailing_metadata())["google.rpc.retryinfo-bin"])
    return float(info.retry_delay.seconds + info.retry_delay.nanos / 1e9)


def spans(count: int, trace: int = 1) -> bytes:
    return request(*[{"trace": trace, "id": number + 1, "attributes": CHAT} for number in range(count)])


# --- the configuration


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ([{"name": "a"}], "serve.tenants[0].token"),
        ([{"token": "t"}], "serve.tenants[0].name"),
        ([{**A, "token": " "}], "serve.tenants[0].token"),
        ([{**A, "name": "a:b"}], "serve.tenants[0].name"),
        ([{**A, "quotas": {"spans": 1}}], "serve.tenants[0].quotas.spans"),
        ([{**A, "quotas": {"spans_per_second": 0}}], "serve.tenants[0].quotas.spans_per_second"),
        ([{**A, "labels": {"gen_ai.agent.name": "x"}}], "}. Names must not start with 'agenteval.' or 'gen_ai.'"),
        ([A, {**B, "name": "a"}], "tenants[0] and tenants[1] have the same name"),
        ([A, {**B, "token": "token-a"}], "have the same token"),
        ([{**A, "token": "of-the-api"}], "tenant 'a'"),
    ],
)
def test_a_tenant_that_is_not_allowed_is_named_with_its_path(given: Any, named: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config({"serve": {"tenants": given, "token": "of-the-api"}})
    assert named in str(error.value)
    assert "token-" not in str(error.value)
    assert "of-the-api" not in str(error.value)


def test_tokens_come_from_the_environment_and_are_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("A_TOKEN", "hidden-token")
    file = tmp_path / "c.yaml"
    file.write_text(
        'serve:\n  tenants:\n    - {name: a, token: "${env:A_TOKEN}", quotas: {bytes_per_second: 1MiB}, labels: {team: x}}\n'
    )
    config = load_config(file)
    (tenant,) = config.serve.tenants
    assert (tenant.token, tenant.quotas.bytes_per_second, tenant.labels) == ("hidden-token", 2**20, {"team": "x"})
    assert "hidden-token" not in effective_yaml(config)
    assert main(["check-config", str(file)]) == 0
    shown = capsys.readouterr().out
    assert "name: a" in shown
    assert "hidden-token" not in shown


# --- who sends


def test_a_tenant_is_found_by_its_token_over_both_transports_and_nobody_else_sends() -> None:
    with Sidecar({**tenants(), "serve": {"tenants": [A, B], "token": "operator"}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1), of("token-a"))[0] == 200
        assert call(sidecar, turn_of(2), "token-b") == b""
        for headers in ({}, of("wrong"), of("operator"), of("token-"), of("token-a x")):
            assert sidecar.post("/v1/traces", turn_of(3), headers)[0] == 401
        assert call(sidecar, turn_of(3), "wrong").code() is grpc.StatusCode.UNAUTHENTICATED
        assert {turn.turn_id for turn in sidecar.turns()} == {key_of("a"), key_of("b", 2)}


def test_otlp_json_is_of_its_tenant_too() -> None:
    span = {"traceId": f"{1:032x}", "spanId": f"{1:016x}", "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "2"}
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [{**span, "attributes": attributes}]}]}]}).encode()
    with Sidecar(tenants()) as sidecar:
        for token in ("token-a", "token-b"):
            assert sidecar.post("/v1/traces", body, {**of(token), "Content-Type": "application/json"})[0] == 200
        assert {turn.turn_id for turn in sidecar.turns()} == {f"{name}:{1:032x}-{1:016x}" for name in "ab"}


def test_a_tenant_asks_of_its_own_turns_only_and_the_api_s_token_of_all() -> None:
    with Sidecar({**tenants(), "serve": {"tenants": [A, B], "token": "operator"}}) as sidecar:
        sidecar.post("/v1/traces", turn_of(1), of("token-a"))
        (turn,) = sidecar.turns()
        path = f"/api/why/{turn.turn_id}"
        found = {token: sidecar.get(path, "web", of(token))[0] for token in ("token-a", "token-b", "operator", "wrong")}
        assert found == {"token-a": 200, "token-b": 404, "operator": 200, "wrong": 401}
        assert sidecar.get("/api/status", "web", of("token-a"))[0] == 403
        assert sidecar.get("/api/status", "web", of("operator"))[0] == 200


def test_why_asks_with_the_tenant_s_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Sidecar(tenants()) as sidecar:
        sidecar.post("/v1/traces", turn_of(1), of("token-a"))
        (turn,) = sidecar.turns()
        file = tmp_path / "c.yaml"
        file.write_text(json.dumps({"serve": {"tenants": [A, B]}}))
        asked = ["why", turn.turn_id, "--url", f"http://{sidecar.addresses['web']}", "--config", str(file)]
        assert main(asked) == 0
        assert "code_latency" in capsys.readouterr().out


@pytest.mark.parametrize("stores", [True, False])
def test_why_finds_a_turn_without_the_tenant_s_name(stores: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A trace backend shows only the trace id and the span id."""
    store, own = str(tmp_path / "scores.db"), turn_of(1).replace(bytes(15) + b"\1", b"\xbe\xef" * 8)
    config = {**tenants(), "outlets": {"store": {"path": store}} if stores else {}}
    config["serve"]["token"] = "operator"
    with Sidecar(config) as sidecar:
        sidecar.post("/v1/traces", own, of("token-a"))
        for token in ("token-a", "token-b"):
            sidecar.post("/v1/traces", turn_of(7), of(token))
        sidecar.turns()
        for short in ("beef", f"{'beef' * 8}-{1:016x}", f"{'beef' * 8}-{'e' * 16}", "a:beef"):
            for token, status in (("operator", 200), ("token-a", 200), ("token-b", 404)):
                found, text = sidecar.get(f"/api/why/{short}", "web", of(token))
                assert (found, status == 404 or json.loads(text)["turn_id"]) == (
                    status,
                    status == 404 or f"a:{'beef' * 8}-{1:016x}",
                )
        assert sidecar.get(f"/api/why/{7:032x}", "web", of("operator"))[0] == 409
        assert sidecar.get("/api/why/cafe", "web", of("operator"))[0] == 404
    for short, status, says in (
        ("beef", 0, "turn a:beef"),
        ("cafe", 1, "not found"),
        (f"{7:032x}", 2, "matches several turn IDs"),
    ):
        if stores:
            assert main(["why", short, "--store", store]) == status
            assert says in "".join(capsys.readouterr())


def test_tenants_are_enough_to_listen_to_other_machines() -> None:
    check_exposure(load_config({"serve": {"grpc": "0.0.0.0:14317", "tenants": [A]}}).serve)


@pytest.mark.parametrize(("option", "fix"), [("http", "Set serve.token"), ("metrics", "Use a loopback address")])
def test_open_address_is_refused_with_a_fix_that_works(option: str, fix: str) -> None:
    with pytest.raises(ConfigError, match=rf"serve\.{option}: 0\.0\.0\.0:1 is reachable .*\. {fix}"):
        check_exposure(load_config({"serve": {option: "0.0.0.0:1"}}).serve)


def test_a_reload_changes_tokens_quotas_and_labels() -> None:
    with Sidecar(tenants(A)) as sidecar:
        listening = dict.fromkeys(("grpc", "http", "metrics", "web"), ANY_PORT)
        changed = [{**A, "token": "new", "labels": {"team": "x"}, "quotas": {"spans_per_second": 1}}, B]

        async def work() -> list[str]:
            serve = {**listening, "drain_timeout": "10s", "tenants": changed}
            given = {**tenants(), "serve": serve, "statistics": {"state": None}}
            return sidecar.service.reload(load_config(given))

        assert sidecar.on_loop(work) == []
        assert sidecar.post("/v1/traces", turn_of(1), of("token-a"))[0] == 401
        assert sidecar.post("/v1/traces", turn_of(1), of("token-b"))[0] == 200
        assert sidecar.post("/v1/traces", turn_of(1), of("new"))[0] == 200
        assert sidecar.post("/v1/traces", turn_of(2), of("new"))[0] == 429
        sidecar.turns()
        assert {scored.root.tenant: dict(scored.root.labels) for scored in sidecar.kept} == {"a": {"team": "x"}, "b": {}}


# --- quotas


def test_a_bucket_lets_a_second_s_worth_pass_and_says_when_it_may_again() -> None:
    clock = FakeClock()
    bucket = TokenBucket(100, clock.monotonic)
    assert bucket.wait() == 0
    bucket.take(350)
    assert bucket.wait() == pytest.approx(2.5)
    clock.advance(2.0)
    assert bucket.wait() == pytest.approx(0.5)
    bucket.set_rate(50)
    assert bucket.wait() == pytest.approx(1.0)
    clock.advance(1.1)
    assert bucket.wait() == 0


@pytest.mark.parametrize("quota", ["spans_per_second", "bytes_per_second"])
def test_a_tenant_over_its_quota_waits_as_long_as_it_is_told_and_others_do_not(quota: str, clock: FakeClock) -> None:
    body = spans(50)
    rate = {"spans_per_second": 10, "bytes_per_second": len(body) // 5}[quota]
    with Sidecar(tenants({**A, "quotas": {quota: rate}}, B), clock=clock) as sidecar:
        assert sidecar.post("/v1/traces", body, of("token-a"))[0] == 200
        status, headers, _ = sidecar.post("/v1/traces", body, of("token-a"))
        assert (status, headers["retry-after"]) == (429, "4")
        refused = call(sidecar, body, "token-a")
        assert refused.code() is grpc.StatusCode.UNAVAILABLE
        assert retry_after(refused) == pytest.approx(4.0, abs=0.1)
        assert sidecar.post("/v1/traces", spans(50, 2), of("token-b"))[0] == 200
        clock.advance(3.9)
        assert sidecar.post("/v1/traces", body, of("token-a"))[0] == 429
        clock.advance(0.2)
        assert call(sidecar, spans(1, 3), "token-a") == b""
        page = sidecar.get("/metrics", "metrics")[1]
        assert f'agenteval_tenant_refused_total{{reason="{quota}",tenant="a"}} 3.0' in page
        assert f'agenteval_tenant_refused_total{{reason="{quota}",tenant="b"}} 0.0' in page
        assert 'agenteval_tenant_spans_total{tenant="a"} 51.0' in page
        assert 'agenteval_tenant_turns_open{tenant="b"} 1.0' in page


def test_a_tenant_with_too_many_open_turns_opens_no_more_and_ends_those_it_has(clock: FakeClock) -> None:
    child = request({"trace": 1, "id": 2, "parent": 1, "attributes": CHAT})
    with Sidecar(tenants({**A, "quotas": {"open_turns": 2}}, B), clock=clock) as sidecar:
        for trace in (1, 2):
            assert sidecar.post("/v1/traces", turn_of(trace), of("token-a"))[0] == 200
        status, headers, _ = sidecar.post("/v1/traces", turn_of(3), of("token-a"))
        assert (status, headers["retry-after"]) == (429, "10")
        assert sidecar.post("/v1/traces", child, of("token-a"))[0] == 200
        assert sidecar.post("/v1/traces", turn_of(3), of("token-b"))[0] == 200
        assert call(sidecar, turn_of(3), "token-a").code() is grpc.StatusCode.UNAVAILABLE
        assert sidecar.engine.assembler.open_turns == 3
        clock.advance(10.1)
        sidecar.engine.intake.tick()
        assert sidecar.post("/v1/traces", turn_of(3), of("token-a"))[0] == 200


def opened(assembler: Assembler, tenant: str, body: bytes) -> list[str | None]:
    """Give a tenant's spans to an assembler, and return the tenants whose turns it evicts."""
    base = base_of(tenant)
    return [
        tenant_of(closed.trace_id)
        for trace, part in split_spans(body, base=base)[0].items()
        for closed in assembler.add_received(base + int.from_bytes(trace, "big"), part.spans, part.size, part.local_root)
    ]


def test_the_flood_of_one_tenant_evicts_none_of_another_s_turns(clock: FakeClock) -> None:
    assembler = Assembler(TurnLimits(max_open=10), role_of_span, clock.monotonic)
    for trace in range(4):
        assert opened(assembler, "quiet", turn_of(trace + 1)) == []
    assert [evicted for trace in range(100) for evicted in opened(assembler, "loud", turn_of(trace + 1))] == ["loud"] * 94
    assert [assembler.open_turns_of(number_of(name)) for name in ("quiet", "loud")] == [4, 6]
    assembler.close_all("shutdown")
    assert [assembler.open_turns_of(number_of(name)) for name in ("quiet", "loud")] == [0, 0]
    assert assembler.bytes == 0


def test_eviction_by_bytes_takes_from_whom_holds_most(clock: FakeClock) -> None:
    assembler = Assembler(TurnLimits(total_bytes=60_000), role_of_span, clock.monotonic)
    for trace in range(8):  # many small ones
        assert opened(assembler, "quiet", turn_of(trace + 1)) == []
    assert {evicted for number in range(10) for evicted in opened(assembler, "loud", spans(30, number + 1))} == {"loud"}
    assert assembler.open_turns_of(number_of("quiet")) == 8


def key_of(tenant: str, trace: int = 1) -> str:
    return f"{tenant}:{trace:032x}-{1:016x}"


def message(role: str, part: dict[str, Any]) -> str:
    return json.dumps([{"role": role, "parts": [part]}])


def text(content: str) -> dict[str, Any]:
    return {"type": "text", "content": content}


# --- what is kept apart


def test_tenants_with_the_same_trace_and_span_ids_have_turns_of_their_own(tmp_path: Path) -> None:
    store, lines = tmp_path / "store.db", tmp_path / "scores.jsonl"
    labelled = {**A, "labels": {"team": "checkout", "plan": "gold"}}
    outlets = {"store": str(store), "jsonl": str(lines)}
    child = request({"trace": 1, "id": 3, "parent": 1, "attributes": CHAT})
    with Sidecar(tenants(labelled, B, outlets=outlets)) as sidecar:
        for token in ("token-a", "token-b"):
            assert sidecar.post("/v1/traces", turn_of(1), of(token))[0] == 200
        assert sidecar.post("/v1/traces", child, of("token-b"))[0] == 200
        turns = {turn.turn_id: turn for turn in sidecar.turns()}
        assert {name: len(turn.spans) for name, turn in turns.items()} == {key_of("a"): 2, key_of("b"): 3}
        assert {turn.trace_id for turn in turns.values()} == {f"{1:032x}"}
        results = [score.result_id for scored in sidecar.kept for score in scored.scores]
        assert len(set(results)) == len(results) == 2
        assert {scored.root.trace_id for scored in sidecar.kept} == {1}
    written = [json.loads(line) for line in lines.read_text().splitlines()]
    assert {(line["tenant"], line["turn_id"], line["trace_id"]) for line in written} == {
        (name, key_of(name), f"{1:032x}") for name in "ab"
    }
    assert [line.get("labels") for line in sorted(written, key=lambda line: line["tenant"])] == [labelled["labels"], None]
    with StoreReader(store) as reader:
        kept = {row["tenant"]: row for row in reader.turns()}
        assert kept["a"]["labels"] == labelled["labels"]
        assert {row["tenant"] for row in reader.rows()} == {"a", "b"}
        assert reader.why(key_of("a")) == {"code_latency": "scored"}


def test_late_spans_logs_and_duplicates_stay_with_their_tenant() -> None:
    late = request({"trace": 1, "id": 9, "parent": 1, "attributes": CHAT})
    with Sidecar(tenants()) as sidecar:
        sidecar.post("/v1/traces", turn_of(1), of("token-a"))
        sidecar.post("/v1/traces", turn_of(1), of("token-b"))
        sidecar.turns()
        sidecar.post("/v1/traces", late, of("token-b"))
        sidecar.turns()
        found = [(scored.turn.tenant, scored.turn.revision, len(scored.turn.spans)) for scored in sidecar.kept]
        assert sorted(found) == [("a", 1, 2), ("b", 1, 2), ("b", 2, 3)]
        for token in ("token-a", "token-a", "token-b"):
            sidecar.post("/v1/traces", turn_of(2), of(token))
        assert sidecar.engine.assembler.duplicates == 2


def test_a_log_record_that_came_early_waits_for_its_own_tenant_s_span() -> None:
    request = ExportLogsServiceRequest()
    record = request.resource_logs.add().scope_logs.add().log_records.add()
    record.trace_id, record.span_id = (7).to_bytes(16, "big"), (2).to_bytes(8, "big")
    record.event_name = "gen_ai.client.inference.operation.details"
    record.attributes.add(key="gen_ai.output.messages").value.string_value = message("assistant", text("of a"))
    with Sidecar(tenants()) as sidecar:
        assert sidecar.post("/v1/logs", request.SerializeToString(), of("token-a"))[0] == 200
        for token in ("token-b", "token-a"):
            sidecar.post("/v1/traces", turn_of(7), of(token))
        assert {turn.tenant: turn.output for turn in sidecar.turns()} == {"a": "of a", "b": None}


def test_parts_of_turns_in_several_traces_join_within_a_tenant_only() -> None:
    def call_of(trace: int, span: int, asked: str, said: str, **times: int) -> bytes:
        attributes = {**CHAT, "gen_ai.input.messages": asked, "gen_ai.output.messages": said}
        return request({"trace": trace, "id": span, "attributes": attributes, **times})

    def asks(trace: int) -> bytes:
        called = {"type": "tool_call", "id": "call-1", "name": "search", "arguments": {}}
        return call_of(trace, 1, message("user", text("Where?")), message("assistant", called))

    def answers(trace: int) -> bytes:
        result = {"type": "tool_call_response", "id": "call-1", "response": "here"}
        later = {"start": 1_700_000_002_000_000_000, "end": 1_700_000_003_000_000_000}
        return call_of(trace, 2, message("tool", result), message("assistant", text("There.")), **later)

    with Sidecar(tenants()) as sidecar:
        for body, token in ((asks(1), "token-a"), (asks(2), "token-b"), (answers(3), "token-b"), (answers(4), "token-a")):
            sidecar.post("/v1/traces", body, of(token))
            sidecar.turns()
        sidecar.stop()
        found = {turn.turn_id: len(turn.llm_calls) for turn in (scored.turn for scored in sidecar.kept)}
        assert found == {key_of("a"): 2, key_of("b", 2): 2}


def test_conversations_of_two_tenants_with_the_same_id_never_mix() -> None:
    def said(trace: int, content: str) -> bytes:
        asked = message("user", text(content))
        attributes = {**CHAT, "gen_ai.conversation.id": "c", "gen_ai.input.messages": asked}
        return request({"trace": trace, "id": 1, "attributes": attributes})

    config = tenants(conversation={"metrics": ["code_conversation_completeness"]})
    with Sidecar(config) as sidecar:
        for trace, content, token in ((1, "one", "token-a"), (2, "two", "token-b"), (3, "three", "token-a")):
            sidecar.post("/v1/traces", said(trace, content), of(token))
            sidecar.turns()
        sidecar.stop()
        whole = {scored.turn.turn_id: scored for scored in sidecar.kept if scored.conversation}
        assert set(whole) == {"a:conversation-c", "b:conversation-c"}
        assert {scored.turn.tenant: len(scored.turn.history) for scored in whole.values()} == {"a": 1, "b": 0}


def test_the_journal_gives_each_request_back_to_its_tenant(tmp_path: Path) -> None:
    sent = ((1, "a"), (1, "b"), (2, "gone"), (3, None))  # the last before there were tenants
    left_in(tmp_path, *(("traces", turn_of(trace), False, tenant) for trace, tenant in sent))
    config = tenants()
    config["serve"]["journal"] = str(tmp_path)
    with Sidecar(config) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1), of("token-b"))[0] == 200  # sent again: once counts
        found = {turn.turn_id: len(turn.spans) for turn in sidecar.turns()}
        assert found == {key_of("a"): 2, key_of("b"): 2, key_of("gone", 2): 2, f"{3:032x}-{1:016x}": 2}
        ledger = sidecar.stop()
    assert (ledger["handed_over"], ledger["journal"]["replayed"], ledger["journal"]["broken"]) == (True, 4, 0)
    assert not list(tmp_path.rglob("*.requests"))


def test_judged_scores_carry_what_their_job_kept_of_the_tenant(models: ScriptedModels, tmp_path: Path) -> None:
    models.play({"score": 90, "reason": "Good."}, {"score": 80, "reason": "Good."})
    messages = {"input": message("user", text("Where?")), "output": message("assistant", text("There."))}
    said = {**CHAT, **{f"gen_ai.{name}.messages": value for name, value in messages.items()}}
    queue = {"backend": "sqlite", "path": str(tmp_path / "queue.db")}  # a job holds all that its score is to carry
    judge = {"base_url": models.url, "model": "scripted", "max_concurrency": 1, "queue": queue}
    with Sidecar(tenants({**A, "labels": {"team": "x"}}, B, metrics=["llm_relevance"], judge=judge)) as sidecar:
        for token in ("token-a", "token-b"):
            assert sidecar.post("/v1/traces", request({"trace": 1, "id": 1, "attributes": said}), of(token))[0] == 200
        sidecar.turns()
        assert sidecar.engine.drain(60, judges=True)
        judged = [scored for scored in sidecar.kept if scored.judged is not None]
    assert {(one.turn.turn_id, one.root.tenant, one.root.trace_id, dict(one.root.labels).get("team")) for one in judged} == {
        (key_of("a"), "a", 1, "x"), (key_of("b"), "b", 1, None),
    }  # fmt: skip
    assert len({score.result_id for one in judged for score in one.scores}) == 2


def test_the_key_of_a_trace_holds_its_tenant_and_gives_it_back() -> None:
    key = base_of("shop") + 5
    assert (tenant_of(key), trace_id_of(key), turn_id_in(key, 6)) == ("shop", 5, f"shop:{5:032x}-{6:016x}")
    assert (tenant_of(5), trace_id_of(5), turn_id_in(5, 6)) == (None, 5, f"{5:032x}-{6:016x}")
    assert base_of("shop") == base_of("shop") != base_of("other") != base_of(None) == 0


def test_log_events_carry_tenant_and_labels(tmp_path: Path) -> None:
    receiver = GrpcReceiver()
    try:
        otlp = {"endpoint": f"http://{receiver.address}", "metrics_interval": 0, "spool": {"directory": str(tmp_path / "spool")}}
        config = tenants({**A, "labels": {"team": "checkout"}}, B, outlets={"otlp": otlp})
        with Sidecar(config) as sidecar:
            for token in ("token-a", "token-b"):
                sidecar.post("/v1/traces", turn_of(1), of(token))
            sidecar.turns()
        records = receiver.scores()
        assert {record.trace_id for record in records} == {(1).to_bytes(16, "big")}
        found = {plain(record.attributes)[semconv.TENANT]: plain(record.attributes).get("team") for record in records}
        assert found == {"a": "checkout", "b": None}
    finally:
        receiver.close()
