"""The sidecar's own metrics, as a scraper sees them."""

from __future__ import annotations

import platform
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from otel_agenteval import __version__
from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.semconv import INSTRUMENTS, KNOWN_LABELS, known_label_sets, prometheus_name
from tests.support.clock import FakeClock
from tests.support.servers import until
from tests.support.service import Sidecar, turn_of

NAME = {instrument.name: prometheus_name(instrument) for instrument in INSTRUMENTS}


def scraped(sidecar: Sidecar) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return every sample of ``/metrics``, by name and labels."""
    _, text = sidecar.get("/metrics", "metrics")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(sidecar: Sidecar, name: str, **labels: str) -> float | None:
    return scraped(sidecar).get((NAME[name], tuple(sorted(labels.items()))))


@pytest.fixture
def sidecar() -> Iterator[Sidecar]:
    with Sidecar({"serve": {"token": "open-sesame", "client_connections": 3}, "outlets": {"jsonl": "/dev/null"}}) as found:
        yield found


def test_what_may_be_counted_is_there_as_0_before_the_first_request(sidecar: Sidecar) -> None:
    given = {
        semconv.EMIT_ERRORS: {"outlet": ["metrics", "jsonl"]},
        semconv.DROPPED: {"metric": ["code_turn_error"], "reason": ["queue_full"]},
    }
    of_others = {
        semconv.EMIT_RECORDS, semconv.JUDGE_REQUESTS, semconv.JUDGE_CACHE, semconv.KAFKA_MESSAGES, semconv.KAFKA_REBALANCES,
    }  # fmt: skip
    found = scraped(sidecar)
    for name in KNOWN_LABELS.keys() - of_others:
        expected = {(NAME[name], tuple(sorted(labels.items()))) for labels in known_label_sets(name, given.get(name, {}))}
        assert expected
        assert {key: found.get(key) for key in expected} == dict.fromkeys(expected, 0.0)


def test_a_transport_that_is_off_has_no_series() -> None:
    with Sidecar({"serve": {"grpc": None}}) as sidecar:
        assert value(sidecar, semconv.SERVE_REQUESTS, transport="grpc", signal="traces", outcome="ok") is None
        assert value(sidecar, semconv.SERVE_REQUESTS, transport="http", signal="traces", outcome="ok") == 0


@pytest.mark.parametrize(("work", "expected"), [(True, 0), (False, None)])
def test_judge_calls_have_series_only_in_processes_that_make_calls(tmp_path: Path, work: bool, expected: int | None) -> None:
    """AgentEvalJudgeStalled must not fire for a process that leaves the calls to workers."""
    queue = {"backend": "sqlite", "path": str(tmp_path / "queue.db"), "work": work}
    judge = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "queue": queue}
    with Sidecar({"judge": judge, "metrics": ["llm_relevance"]}) as sidecar:
        assert value(sidecar, semconv.JUDGE_REQUESTS, outcome="ok") == expected
        assert value(sidecar, semconv.QUEUE_SIZE, queue="judge") == 0


def test_it_says_which_version_runs(sidecar: Sidecar) -> None:
    assert value(sidecar, semconv.BUILD_INFO, version=__version__, python=platform.python_version()) == 1


def test_connections_are_counted_by_listener_and_those_past_the_bound_as_refused(sidecar: Sidecar) -> None:
    host, _, port = sidecar.addresses["http"].rpartition(":")
    assert value(sidecar, semconv.SERVE_CONNECTIONS_REFUSED, listener="http", reason="limit") == 0
    held = [socket.create_connection((host, int(port)), timeout=60) for _ in range(3)]
    until(lambda: value(sidecar, semconv.SERVE_CONNECTIONS, listener="http") == 3, "three connections are open")
    with socket.create_connection((host, int(port)), timeout=60) as one_too_many:
        until(lambda: one_too_many.recv(1) == b"", "it is closed")
    assert value(sidecar, semconv.SERVE_CONNECTIONS_REFUSED, listener="http", reason="limit") == 1
    for one in held:
        one.close()
    until(lambda: value(sidecar, semconv.SERVE_CONNECTIONS, listener="http") == 0, "all are closed")


def test_how_full_the_journal_is_can_be_watched_as_every_queue_can(tmp_path: Path) -> None:
    with Sidecar({"serve": {"journal": str(tmp_path / "journal"), "journal_bytes": "1MiB"}}) as sidecar:
        assert value(sidecar, semconv.QUEUE_SIZE, queue="journal") == 0
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        kept = value(sidecar, semconv.QUEUE_SIZE, queue="journal")
        assert kept is not None
        assert kept > len(turn_of(1))
        assert value(sidecar, semconv.QUEUE_CAPACITY, queue="journal") == 2**20


def test_a_reload_says_whether_it_was_taken_and_when_one_was() -> None:
    clock = FakeClock()
    with Sidecar({}, clock=clock) as sidecar:
        started = clock.time_ns() / 1e9
        config = sidecar.engine.config
        assert (value(sidecar, semconv.RELOAD_OK), value(sidecar, semconv.RELOAD_TIME)) == (1, pytest.approx(started))
        clock.advance(10)
        broken = load_config(config, overrides={"inline": {"metrics": ["code_nonsense"]}})
        with pytest.raises(ConfigError):
            sidecar.service.reload(broken)
        assert (value(sidecar, semconv.RELOAD_OK), value(sidecar, semconv.RELOAD_TIME)) == (0, pytest.approx(started))
        clock.advance(10)
        sidecar.service.reload(config)
        assert (value(sidecar, semconv.RELOAD_OK), value(sidecar, semconv.RELOAD_TIME)) == (1, pytest.approx(started + 20))
