"""The Prometheus page, parsed as Prometheus does."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import socket
import urllib.request
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, Counter, parser
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics_parser

import otel_agenteval as oa
from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.outlets import workers
from otel_agenteval.outlets.accounting import account
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from tests.outlets.factories import scored_turn
from tests.support.clock import FakeClock
from tests.support.process import output_of
from tests.support.rig import Rig
from tests.support.servers import free_port

IDS = {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "00f067aa0ba902b7"}
OPENMETRICS = "application/openmetrics-text; version=1.0.0"


def scrape(port: int | None, accept: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": accept})
    with urllib.request.urlopen(request, timeout=10) as response:
        return str(response.read().decode())


def errors(telemetry: Telemetry) -> dict[tuple[str, ...], float]:
    return telemetry.read(semconv.EMIT_ERRORS).values


@pytest.fixture(scope="module")
def fed() -> Telemetry:
    telemetry = Telemetry(FakeClock())
    passed = Score("code_a", 0.75, True)
    others = Score("code_b", 1.0, True), Score("code_c", 3.0, unit="s"), Score("code_d", status="error")
    account(telemetry, scored_turn(passed, *others))
    account(telemetry, scored_turn(passed, turn={"agent": 'quo"te\\d\nname'}))
    return telemetry


@pytest.fixture(scope="module")
def served(fed: Telemetry) -> Iterator[PrometheusOutlet]:
    outlet = PrometheusOutlet(fed, port=0)
    yield outlet
    outlet.close()


def families(text: str, accept: str) -> dict[str, Metric]:
    read = openmetrics_parser if accept == OPENMETRICS else parser
    return {family.name: family for family in read.text_string_to_metric_families(text)}


@pytest.mark.parametrize("accept", [OPENMETRICS, "text/plain"])
def test_a_scrape_of_our_own_port_parses_and_has_the_numbers(served: PrometheusOutlet, accept: str) -> None:
    found = families(scrape(served.port, accept), accept)
    assert "agenteval_measure_tokens" not in found, "it has no values"
    assert found["agenteval_turns"].type == "counter"
    assert sum(sample.value for sample in found["agenteval_turns"].samples if sample.name == "agenteval_turns_total") == 2
    duration = {s.name: s.value for s in found["agenteval_turn_duration_seconds"].samples if s.labels["agent"] == "travel"}
    assert (duration["agenteval_turn_duration_seconds_count"], duration["agenteval_turn_duration_seconds_sum"]) == (1, 2.5)
    score = {
        s.labels["le"]: s.value
        for s in found["agenteval_score"].samples
        if s.name.endswith("_bucket") and s.labels["metric"] == "code_a" and s.labels["agent"] == "travel"
    }
    assert (score["0.7"], score["0.8"], score["+Inf"]) == (0, 1, 1)
    results = {
        (s.labels["metric"], s.labels["outcome"]): s.value
        for s in found["agenteval_results"].samples
        if s.labels["agent"] == "travel"
    }
    assert results == {("code_a", "pass"): 1, ("code_b", "pass"): 1, ("code_c", "ok"): 1, ("code_d", "error"): 1}
    assert {s.labels["agent"] for s in found["agenteval_turns"].samples} == {"travel", 'quo"te\\d\nname'}


def test_openmetrics_has_the_exemplars(served: PrometheusOutlet) -> None:
    found = families(scrape(served.port, OPENMETRICS), OPENMETRICS)
    wanted = {"agent": "travel", "metric": "code_a"}.items()
    (score,) = [s for s in found["agenteval_score"].samples if s.exemplar and wanted <= s.labels.items()]
    assert score.exemplar is not None
    assert (score.labels["le"], score.exemplar.labels, score.exemplar.value) == ("0.8", IDS, 0.75)
    assert float(score.exemplar.timestamp or 0) == FakeClock().time_ns() / 1e9
    assert found["agenteval_turn_duration_seconds"].unit == "seconds"


def test_documented_number_of_series() -> None:
    """See *Labels and cardinality* in ``docs/guides/prometheus.md``."""

    def series(agents: int) -> int:
        with Rig() as rig:
            for k in range(agents):
                with rig.agent(f"bot {k}"):
                    rig.chat("What is the capital of France?", "Paris.")
                    rig.tool()
            rig.processor.force_flush()
            registry = CollectorRegistry()
            PrometheusOutlet(rig.engine.telemetry, registry=registry)
            return sum(len(family.samples) for family in registry.collect())

    one, two, three = map(series, (1, 2, 3))
    assert 150 <= two - one == three - two <= 250
    assert 150 <= one - (two - one) <= 250


def test_registering_reads_no_values() -> None:
    telemetry, read = Telemetry(), []
    telemetry.watch(semconv.TURNS_OPEN, lambda: read.append(1) or [({}, 1)])
    registry = CollectorRegistry(auto_describe=True)
    PrometheusOutlet(telemetry, registry=registry)
    assert read == []
    assert registry.get_sample_value("agenteval_turns_open") == 1
    assert read == [1]


def test_two_engines_in_one_registry_are_added_up_and_leave_one_by_one(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    first, second = Telemetry(), Telemetry()
    outlets = [PrometheusOutlet(first, registry=registry), PrometheusOutlet(second, registry=registry)]
    for telemetry in (first, second, second):
        account(telemetry, scored_turn())
    labels = {"agent": "travel", "service_name": "shop", "close_reason": "root_ended", "complete": "true"}
    assert registry.get_sample_value("agenteval_turns_total", labels) == 3
    outlets[0].close()
    outlets[0].close()
    assert registry.get_sample_value("agenteval_turns_total", labels) == 2
    outlets[1].close()
    assert list(registry.collect()) == []
    PrometheusOutlet(first, registry=registry)
    assert registry.get_sample_value("agenteval_turns_total", labels) == 1
    assert caplog.records == []


def test_a_name_that_the_application_has_costs_that_metric_and_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    Counter("agenteval_turns", "The application's.", registry=registry).inc(42)
    telemetry = Telemetry()
    outlet = PrometheusOutlet(telemetry, registry=registry)
    PrometheusOutlet(Telemetry(), registry=registry)
    account(telemetry, scored_turn(Score("code_a", 1.0, True)))
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "agenteval_turns_total" in caplog.text
    assert errors(telemetry) == {("prometheus", "name_clash"): 1}
    assert registry.get_sample_value("agenteval_turns_total") == 42
    assert registry.get_sample_value("agenteval_results_total", {"metric": "code_a", "agent": "travel", "outcome": "pass"}) == 1
    outlet.close()
    assert registry.get_sample_value("agenteval_turns_total") == 42


@pytest.mark.parametrize(
    ("addr", "port", "reason"),
    [("127.0.0.1", None, "port_in_use"), ("203.0.113.1", None, "bind_failed"), ("127.0.0.1", 70_000, "bind_failed")],
    ids=["taken port", "address of another host", "no port"],
)
def test_a_port_that_cannot_be_opened_is_one_warning_and_a_counter(
    addr: str, port: int | None, reason: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.Workers, "_is_one_of_many", lambda self: False)  # a child of another test could have the port
    with socket.create_server(("127.0.0.1", 0)) as taken:
        telemetry = Telemetry()
        outlet = PrometheusOutlet(telemetry, port=port or taken.getsockname()[1], addr=addr)
        assert outlet.port is None
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        assert errors(telemetry) == {("prometheus", reason): 1}
        outlet.emit([])
        assert outlet.flush(0)
        outlet.close()


def test_close_frees_the_loopback_port_and_can_be_called_twice(fed: Telemetry) -> None:
    outlet = PrometheusOutlet(fed, port=0)
    port = outlet.port
    assert port is not None
    socket.create_server(("127.0.0.2", port)).close()  # only 127.0.0.1 is served
    outlet.close()
    outlet.close()
    socket.create_server(("127.0.0.1", port)).close()


def test_a_forked_child_lets_go_of_the_port_and_the_parent_goes_on(served: PrometheusOutlet) -> None:
    assert served._server is not None
    listening = served._server.socket.fileno()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # newer Pythons warn of any fork beside threads
        child = os.fork()
    if child == 0:
        held = True
        try:
            served.after_fork_in_child()
            served.close()  # must not wait for a server thread that the child does not have
            os.fstat(listening)
        except OSError:
            held = False
        finally:
            os._exit(1 if held else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert "agenteval_turns_total" in scrape(served.port, OPENMETRICS)


def test_a_registry_that_nobody_uses_any_more_can_go() -> None:
    gc.disable()
    try:
        registry = CollectorRegistry()
        PrometheusOutlet(Telemetry(), registry=registry)
        gone = weakref.ref(registry)
        del registry
        gc.collect(0)
        assert gone() is None
    finally:
        gc.enable()


def test_default_registry_has_scores_after_the_first_turn() -> None:
    script = """
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider, config={"inline": {"metrics": ["code_latency"]}})
assert "prometheus_client" not in sys.modules
turn(provider.get_tracer("t"))
handle.flush()
import prometheus_client
print("agenteval_turns_total" in prometheus_client.generate_latest().decode())
"""
    assert output_of(script) == "True\n"


def test_a_mounted_page_without_scores_names_the_possible_reasons(caplog: pytest.LogCaptureFixture) -> None:
    with Rig({"outlets": {"prometheus": {"port": free_port()}}}):
        app = oa.metrics_app()
        for _ in range(2):
            app({"REQUEST_METHOD": "GET", "PATH_INFO": "/"}, lambda *_: None)
    [record] = [record for record in caplog.records if "metrics_app()" in record.getMessage()]
    assert record.getMessage().endswith("or otel-agenteval is off, or outlets.prometheus isn't {registry: default}")


def test_metrics_page_responds_if_a_server_assumes_asgi_2() -> None:
    """uvicorn assumes ASGI 2 for an application that isn't a coroutine function, if the page isn't mounted in another application."""
    sent: list[Any] = []

    async def serve() -> None:
        async def receive() -> dict[str, str]:
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            sent.append(message)

        await oa.metrics_app()({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []})(receive, send)

    asyncio.run(serve())
    assert sent[0]["status"] == 200
