"""Output of a sidecar's scores: back to the sidecar itself, into a store, and to ``why``."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import grpc
import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import StoreError
from otel_agenteval.outlets.store.reader import StoreReader, Wanted
from tests.support.receiver import GrpcReceiver, plain
from tests.support.servers import free_port, until
from tests.support.service import turn_of
from tests.support.sidecar import Sidecar

QUICK = {"turn": {"decision_delay": "100ms"}, "inline": {"metrics": ["code_turn_error", "code_latency"]}}


TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def export(sidecar: Sidecar, number: int, token: str = "") -> bool:
    """Export one turn with this trace number in one request, and return True if it was acknowledged."""
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    with grpc.insecure_channel(sidecar.grpc) as channel:
        try:
            channel.unary_unary(TRACES)(turn_of(number), timeout=60, metadata=metadata)
        except grpc.RpcError:
            return False
    return True


def turn_id(number: int) -> str:
    return f"{number:032x}-{1:016x}"


def test_a_sidecar_that_sends_to_itself_evaluates_nothing_of_it(tmp_path: Path) -> None:
    port = free_port()
    otlp = {"endpoint": f"http://127.0.0.1:{port}", "evaluate_spans": "child", "metrics_interval": 0}
    with Sidecar(tmp_path, {**QUICK, "outlets": {"otlp": otlp, "jsonl": str(tmp_path / "scores")}}) as sidecar:
        sidecar.command[sidecar.command.index(sidecar.grpc)] = f"127.0.0.1:{port}"  # the address that its scores go to is its own
        sidecar.grpc = f"127.0.0.1:{port}"
        sidecar.stop()
        sidecar.start()
        for number in range(1, 11):
            assert export(sidecar, number)
        sent = {"outlet": "otlp", "outcome": "sent"}
        until(lambda: sidecar.metric("agenteval_emit_records_total", **sent) == 30, "20 scores and 10 spans went round")
        came = {"transport": "grpc", "signal": "logs", "outcome": "ok"}
        until(lambda: sidecar.metric("agenteval_serve_requests_total", **came) >= 1, "and came back")
        assert sidecar.stop() == 0
        ledger = sidecar.ledger()
        assert sum(ledger["turns"]["closed"].values()) == 10
    lines = [json.loads(line) for line in (tmp_path / "scores").read_text().splitlines()]
    assert Counter(line["turn_id"] for line in lines) == {turn_id(number): 2 for number in range(1, 11)}
    assert {line["revision"] for line in lines} == {1}


@pytest.fixture
def receiver() -> Iterator[GrpcReceiver]:
    receiver = GrpcReceiver()
    yield receiver
    receiver.close()


def test_what_a_killed_sidecar_had_not_sent_the_next_one_sends_before_any_traffic(tmp_path: Path, receiver: GrpcReceiver) -> None:
    receiver.refusals.extend([(grpc.StatusCode.UNAVAILABLE, ())] * 1_000_000)
    otlp = {"endpoint": f"http://{receiver.address}", "metrics_interval": 0, "spool": {"directory": str(tmp_path / "spool")}}
    with Sidecar(tmp_path, {**QUICK, "outlets": {"otlp": otlp}}) as sidecar:
        for number in range(1, 21):
            assert export(sidecar, number)
        until(lambda: sidecar.metric("agenteval_turns_total") == 20, "they are evaluated")
        until(lambda: receiver.attempts, "it was tried")
        sidecar.kill()
        receiver.refusals.clear()
        sidecar.start()
        until(lambda: len(receiver.scores()) == 40, "every score is sent")
        assert {plain(record.attributes)["agenteval.turn.id"] for record in receiver.scores()} == set(map(turn_id, range(1, 21)))
        groups = [group for request in receiver.requests for group in request.resource_logs]
        assert {plain(group.resource.attributes)["service.name"] for group in groups} == {"shop"}


def test_kill_9_with_a_journal_leaves_one_row_per_result_in_the_store(tmp_path: Path) -> None:
    store = tmp_path / "scores.db"
    config = {**QUICK, "turn": {"decision_delay": "1s"}, "outlets": {"store": str(store)}}
    with Sidecar(tmp_path, config, journal=True) as sidecar:
        acknowledged: list[int] = []
        stop = threading.Event()

        def stream() -> None:
            number = 0
            while not stop.is_set() and number < 5_000:
                number += 1
                if export(sidecar, number):
                    acknowledged.append(number)

        thread = threading.Thread(target=stream)
        thread.start()
        until(lambda: len(kept(store)) >= 20, "scores are kept")
        sidecar.kill()
        stop.set()
        thread.join(120)
        sent = {turn_id(number) for number in acknowledged}
        assert sent - {turn for turn, _ in kept(store)}, "there was nothing to lose"
        sidecar.start()
        until(lambda: sent <= {turn for turn, _ in kept(store)}, "every acknowledged turn is kept")
        until(lambda: not list((tmp_path / "journal").rglob("*.requests")), "the journal is empty")
        assert sidecar.stop() == 0
        assert sidecar.ledger()["journal"]["replayed"] > 0
    rows = kept(store)
    assert set(Counter(rows).values()) == {1}
    assert Counter(turn for turn, _ in rows).keys() >= sent
    assert {count for turn, count in Counter(turn for turn, _ in rows).items() if turn in sent} == {2}


def test_a_journal_does_not_fill_up_while_a_receiver_of_scores_is_gone(tmp_path: Path, receiver: GrpcReceiver) -> None:
    receiver.refusals.extend([(grpc.StatusCode.UNAVAILABLE, ())] * 1_000_000)
    otlp = {"endpoint": f"http://{receiver.address}", "metrics_interval": 0}
    with Sidecar(tmp_path, {**QUICK, "outlets": {"otlp": otlp}}, journal=True) as sidecar:
        for number in range(1, 51):
            assert export(sidecar, number)
        until(lambda: not list((tmp_path / "journal").rglob("*.requests")), "the journal is empty")
        assert not receiver.scores()
        receiver.refusals.clear()
        until(lambda: len(receiver.scores()) == 100, "every score is sent")


def kept(store: Path) -> Sequence[tuple[str, str]]:
    """Return (turn, metric) of every row, including superseded rows."""
    try:
        with StoreReader(store) as reader:
            return [(row["turn_id"], row["metric"]) for row in reader.rows(Wanted(revisions=True))]
    except StoreError:  # it is about to be made
        return []


@pytest.mark.slow
def test_why_asks_a_running_sidecar_and_its_store(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "scores.db"
    config: dict[str, Any] = {
        **QUICK, "outlets": {"store": str(store)}, "serve": {"token": "s3cret"},
        "judge": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}, "metrics": [{"llm_relevance": {}, "sample": {"rate": 0}}],
    }  # fmt: skip

    def why(*arguments: str) -> tuple[int, str, str]:
        status = main(["why", *arguments])
        return status, *capsys.readouterr()

    with Sidecar(tmp_path, config) as sidecar:
        assert export(sidecar, 7, "s3cret")
        until(lambda: sidecar.metric("agenteval_turns_total") == 1, "it is evaluated")
        status, _, error = why(turn_id(7), "--url", sidecar.web)
        assert (status, "serve.token" in error) == (2, True)
        monkeypatch.setenv("OTEL_AGENTEVAL_SERVE__TOKEN", "s3cret")
        status, asked, _ = why(turn_id(7), "--url", sidecar.web, "--json")
        said = json.loads(asked)
        assert (status, said["scores"]["code_latency"]["unit"]) == (0, "s")
        skipped = "skipped: missing:input"  # no chance could have given it a score
        assert said["metrics"] == {"code_turn_error": "scored", "code_latency": "scored", "llm_relevance": skipped}
        assert why(turn_id(7)[:20], "--url", sidecar.web, "--json")[1] == asked
        status, unknown, _ = why(turn_id(8), "--url", sidecar.web)
        assert (status, turn_id(8) in unknown) == (1, True)
        for door in (f"http://{sidecar.metrics}", sidecar.http):  # neither knows turns: that is no answer about this one
            status, out, error = why(turn_id(7), "--url", door)
            assert (status, out, "serve --web" in error) == (2, "", True)
        sidecar.stop()
        sidecar.start()  # a later process remembers nothing, its store does
        assert json.loads(why(turn_id(7), "--url", sidecar.web, "--json")[1]) == said
    assert json.loads(why(turn_id(7), "--store", str(store), "--json")[1]) == said
    assert why(turn_id(7), "--url", sidecar.web)[0] == 2
