"""Webhook messages, posted to a local server."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest

import otel_agenteval as oa
from otel_agenteval.config.outlets import WebhookOptions
from otel_agenteval.core.finding import Finding, detail_of
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import Judged, Root
from otel_agenteval.outlets import webhook as outlet_module
from otel_agenteval.outlets.webhook import WebhookOutlet
from otel_agenteval.report.differences import explained
from otel_agenteval.statistics.change import Found
from otel_agenteval.statistics.changes import Change
from tests.outlets.factories import scored_turn
from tests.support.clock import FakeClock
from tests.support.process import output_of
from tests.support.rig import Rig
from tests.support.stored_turns import NOW, failing_turns, filled


class Receiver:
    """Received posts, and the next responses."""

    def __init__(self) -> None:
        self.bodies: list[Any] = []
        self.raw: list[bytes] = []
        self.headers: list[Mapping[str, str]] = []
        self.answers: list[int | tuple[int, dict[str, str]]] = []
        self.arrived = threading.Event()
        mine = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                answer = mine.answers.pop(0) if mine.answers else 200
                status, headers = answer if isinstance(answer, tuple) else (answer, {})
                mine.raw.append(raw)
                mine.headers.append(dict(self.headers.items()))
                if status == 200:
                    mine.bodies.append(json.loads(raw))
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "0")
                self.end_headers()
                mine.arrived.set()

            def log_message(self, *_: Any) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def notices(receiver: Receiver) -> list[dict[str, Any]]:
    return [notice for body in receiver.bodies for notice in body["notices"]]


def kinds(receiver: Receiver) -> list[str]:
    return [notice["kind"] for notice in notices(receiver)]


def gate(value: float = 0.0, **more: Any) -> Score:
    return Score("code_gate", value, value >= 0.5, policy="gate", threshold=0.5, explanation="it <b>quotes</b> & more", **more)


class Rigged:
    """An outlet with a stopped clock, which sends only on flush."""

    def __init__(self, receiver: Receiver, **options: Any) -> None:
        self.clock = FakeClock()
        self.telemetry = Telemetry()
        options = {"every": "1h", "url": receiver.url, **options}
        wanted = oa.load_config({"outlets": {"webhook": options}}, env={}).outlets.webhook
        assert isinstance(wanted, WebhookOptions)
        self.outlet = WebhookOutlet(wanted, lambda: "engine-1", self.telemetry, self.clock.monotonic)

    def emit(self, *scores: Score, **turn: Any) -> None:
        self.outlet.emit([scored_turn(*scores, **turn)])

    def flush(self) -> None:
        assert self.outlet.flush(60)

    def counted(self) -> dict[str, Any]:
        return self.outlet.records.to_dict()


@pytest.fixture
def make(receiver: Receiver) -> Iterator[Any]:
    made: list[Rigged] = []

    def make(**options: Any) -> Rigged:
        made.append(Rigged(receiver, **options))
        return made[-1]

    yield make
    for one in made:
        one.outlet.close()


def test_a_failed_gate_is_one_notice_however_often_it_fails(make: Any, receiver: Receiver) -> None:
    rig = make(link="https://tempo.example/trace/{trace_id}")
    for _ in range(50):
        rig.emit(gate(), Score("code_other", 0.0, False), gate(1.0))
    rig.flush()
    (message,) = receiver.bodies
    assert (message["type"], message["version"], message["sender"]) == ("agenteval.notices", 1, "engine-1")
    (notice,) = message["notices"]
    assert (notice["kind"], notice["metric"], notice["agent"], notice["count"]) == ("gate", "code_gate", "travel", 50)
    assert len(notice["examples"]) == 3
    example = notice["examples"][0]
    assert example["link"] == f"https://tempo.example/trace/{example['trace_id']}"
    assert example["explanation"] == "it <b>quotes</b> & more"
    assert rig.counted() == {"made": 50, "delivered": 50, "waiting": 0, "failed": {}}
    rig.flush()
    assert len(receiver.bodies) == 1


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        (["gates"], ["gate"]),
        (["failed"], ["failed"] * 3),
        (["errors"], ["error"]),
        (["critical"], ["critical"] * 2),
        (["gates", "failed", "errors"], ["gate", "failed", "error", "failed"]),
    ],
    ids=str,
)
def test_what_is_reported_is_configured(about: list[str], expected: list[str], make: Any, receiver: Receiver) -> None:
    critical, counted = (detail_of([Finding("output", 0, 4, "key", severity)]) for severity in ("critical", "info"))
    rig = make(about=about)
    rig.emit(
        gate(), Score("code_b", 0.0, False), Score("code_c", status="error", error_type="TypeError"), Score("code_d", 1.0, True),
        Score("code_e", status="skipped"), Score("code_secret", 0.0, False, detail=critical),
        Score("code_signal", 0.0, direction="neutral", detail=critical), Score("code_other", 0.0, direction="neutral", detail=counted),
    )  # fmt: skip
    rig.flush()
    assert kinds(receiver) == expected


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_mean_that_leaves_its_floor_is_reported_once_and_once_when_it_is_back(
    direction: Any, make: Any, receiver: Receiver
) -> None:
    rig = make(floors={"code_latency": 0.5}, least=4)

    def play(*found: float) -> None:
        for value in found:
            rig.emit(Score("code_latency", value if direction == "up" else 1 - value, direction=direction))
        rig.flush()

    play(0.0, 0.0, 0.0)
    assert receiver.bodies == []  # too few
    play(0.0, 0.0)
    assert kinds(receiver) == ["floor"]
    (notice,) = notices(receiver)
    assert (notice["mean"], notice["threshold"], notice["count"]) == (float(direction == "down"), 0.5, 4)
    play(0.0, 0.0)
    assert kinds(receiver) == ["floor"]
    rig.clock.advance(7_200)  # the bad ones leave the window
    play(1.0, 1.0, 1.0, 1.0)
    assert kinds(receiver) == ["floor", "recovered"]


def test_judged_scores_count_by_how_likely_they_were_judged(make: Any, receiver: Receiver) -> None:
    rig = make(floors={"llm_relevance": 0.5}, least=2)
    for value, probability in ((1.0, 1.0), (0.0, 0.01)):
        scored = scored_turn(Score("llm_relevance", value, kind="llm"))
        scored.judged = Judged("llm", probability)
        rig.outlet.emit([scored])
    rig.flush()
    assert receiver.bodies[0]["notices"][0]["mean"] == pytest.approx(1 / 101)


def test_a_floor_of_no_metric_is_a_fault_of_the_configuration() -> None:
    with pytest.raises(oa.ConfigError, match=r"outlets\.webhook\.floors\.code_latncy: unknown metric 'code_latncy'"):
        Rig({"outlets": {"webhook": {"url": "http://127.0.0.1:1", "floors": {"code_latncy": 1}}}})


def test_slack_gets_text_that_it_cannot_take_for_markup(make: Any, receiver: Receiver) -> None:
    rig = make(format="slack", link="https://tempo.example/{trace_id}")
    rig.emit(gate())
    rig.flush()
    (message,) = receiver.bodies
    assert message["text"] == "Gate code_gate of travel failed once"
    text = message["blocks"][0]["text"]["text"]
    assert "it &lt;b&gt;quotes&lt;/b&gt; &amp; more" in text
    assert "<https://tempo.example/" in text


def test_many_notices_fit_a_message(make: Any, receiver: Receiver) -> None:
    for form in ("slack", "teams"):
        rig = make(format=form, about=["failed"])
        for number in range(75):
            rig.emit(Score(f"code_m{number}", 0.0, False, explanation="x" * 5_000))
        rig.flush()
    slack, teams = receiver.bodies
    assert len(slack["blocks"]) == 21
    assert all(len(block["text"]["text"]) <= 3_000 for block in slack["blocks"][:-1])
    assert slack["blocks"][-1]["elements"][0]["text"] == "and 55 more"
    assert teams["attachments"][0]["content"]["body"][-1]["text"] == "and 55 more"
    assert len(receiver.raw[1]) < 28_000  # what Teams takes


def test_teams_gets_an_adaptive_card(make: Any, receiver: Receiver) -> None:
    rig = make(format="teams", link="https://tempo.example/{trace_id}")
    rig.emit(gate())
    rig.flush()
    (attachment,) = receiver.bodies[0]["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert (card["type"], card["body"][0]["text"]) == ("AdaptiveCard", "🛑 Gate code\\_gate of travel failed once")
    assert card["actions"][0]["url"].startswith("https://tempo.example/")


def test_pagerduty_gets_an_event_for_each_notice_and_a_recovery_resolves_its_own(make: Any, receiver: Receiver) -> None:
    rig = make(format="pagerduty", routing_key="r-1", floors={"code_tool_success": 0.5}, least=1)
    rig.emit(gate(), Score("code_tool_success", 0.0))
    rig.flush()
    rig.clock.advance(7_200)
    rig.emit(Score("code_tool_success", 1.0))
    rig.flush()
    assert [(event["event_action"], event["payload"]["severity"], event["routing_key"]) for event in receiver.bodies] == [
        ("trigger", "critical", "r-1"), ("trigger", "error", "r-1"), ("resolve", "info", "r-1"),
    ]  # fmt: skip
    assert receiver.bodies[1]["dedup_key"] == receiver.bodies[2]["dedup_key"] != receiver.bodies[0]["dedup_key"]


def test_pagerdutys_events_that_were_taken_are_not_sent_again(make: Any, receiver: Receiver) -> None:
    rig = make(format="pagerduty", routing_key="r-1", about=["failed"])
    rig.emit(Score("code_a", 0.0, False), Score("code_b", 0.0, False), Score("code_c", 0.0, False))
    receiver.answers = [200, 503]
    assert not rig.outlet.flush(60)
    rig.outlet.begin_exit()  # which flushes in spite of the failure
    rig.flush()
    assert [event["payload"]["group"] for event in receiver.bodies] == ["code_a", "code_b", "code_c"]
    assert rig.counted() == {"made": 3, "delivered": 3, "waiting": 0, "failed": {}}


def test_a_message_is_signed(make: Any, receiver: Receiver) -> None:
    rig = make(signing_secret="s3cret", headers={"X-Team": "desk"})
    rig.emit(gate())
    rig.flush()
    headers = receiver.headers[0]
    seconds, signature = (part.partition("=")[2] for part in headers["X-Agenteval-Signature"].split(","))
    assert signature == hmac.new(b"s3cret", f"{seconds}.".encode() + receiver.raw[0], hashlib.sha256).hexdigest()
    assert {name.lower(): value for name, value in headers.items()}["x-team"] == "desk"


def test_httpx_logs_no_webhook_address_but_the_hosts_own_requests(
    make: Any, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make()
    rig.emit(gate())
    with caplog.at_level("INFO", logger="httpx"):
        rig.flush()
        assert receiver.bodies
        assert receiver.url not in caplog.text
        httpx.post(receiver.url, content=b"{}")
    assert receiver.url in caplog.text


def test_what_is_refused_for_now_waits_and_is_merged_with_what_comes(
    make: Any, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make()
    rig.emit(gate())
    receiver.answers = [(429, {"Retry-After": "7"})]
    assert not rig.outlet.flush(60)
    rig.emit(gate())
    assert not rig.outlet.flush(60)  # it is left alone
    assert len(receiver.raw) == 1
    rig.outlet.begin_exit()
    rig.flush()
    assert receiver.bodies[0]["notices"][0]["count"] == 2
    assert rig.counted() == {"made": 2, "delivered": 2, "waiting": 0, "failed": {}}
    assert caplog.text.count("refused a message: HTTP 429") == 1


@pytest.mark.parametrize("status", [400, 302])
def test_what_is_refused_for_good_is_counted_and_not_sent_again(status: int, make: Any, receiver: Receiver) -> None:
    rig = make()
    rig.emit(gate())
    receiver.answers = [status]
    assert not rig.outlet.flush(60)
    assert rig.counted() == {"made": 1, "delivered": 0, "waiting": 0, "failed": {"rejected": 1}}
    rig.emit(gate())
    rig.flush()
    assert len(receiver.bodies) == 1


def test_notice_that_is_refused_leaves_the_others(make: Any, receiver: Receiver) -> None:
    rig = make()
    rig.emit(gate(), *(Score(f"code_{number}", 0.0, False, policy="gate", threshold=0.5) for number in (1, 2, 3)))
    receiver.answers = [400, 200, 400, 400, 200]  # the third is the cause
    assert not rig.outlet.flush(60)
    assert [notice["metric"] for notice in notices(receiver)] == ["code_gate", "code_1", "code_3"]
    assert rig.counted() == {"made": 4, "delivered": 3, "waiting": 0, "failed": {"rejected": 1}}


def test_a_message_is_given_up_in_the_end(make: Any, receiver: Receiver) -> None:
    rig = make(retry_for="60s")
    rig.outlet.begin_exit()
    rig.emit(gate())
    receiver.answers = [503, 503]
    assert not rig.outlet.flush(60)
    rig.clock.advance(61)
    assert not rig.outlet.flush(60)
    assert rig.counted()["failed"] == {"expired": 1}


def test_what_waits_has_a_bound(make: Any) -> None:
    rig = make(about=["failed"])
    for number in range(1_100):
        rig.emit(Score(f"code_m{number}", 0.0, False))
    assert rig.counted()["failed"] == {"queue_full": 100}


def test_nobody_listens(make: Any, caplog: pytest.LogCaptureFixture) -> None:
    rig = make(url="http://127.0.0.1:1/hook")
    rig.emit(gate())
    assert not rig.outlet.flush(60)
    rig.outlet.close()
    assert rig.counted()["failed"] == {"shutdown": 1}
    assert "a message was not sent: can't reach the address (Connection refused)" in caplog.text
    assert "hook" not in caplog.text.replace("outlet webhook", "").replace("webhook.py", "")


@pytest.mark.parametrize(
    ("count", "keeps_all", "logged"),
    [
        (1, False, "1 notice was not delivered before shutdown and was dropped"),
        (2, False, "2 notices were not delivered before shutdown and were dropped"),
        (1, True, "1 notice was not delivered before shutdown. The journal or Kafka topic keeps the turns for the next start"),
        (0, False, ""),
    ],
)
def test_close_logs_undelivered_notices(
    count: int, keeps_all: bool, logged: str, make: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rig = make(about=["failed"])
    if keeps_all:
        rig.outlet.keep_all()
    for number in range(count):
        rig.emit(Score(f"code_m{number}", 0.0, False))
    rig.outlet.close()
    assert caplog.messages == ([f"outlet webhook: {logged}"] if logged else [])


@pytest.mark.parametrize("answer", [None, 404])
def test_shutdown_names_the_outlet_that_failed(answer: int | None, receiver: Receiver, caplog: pytest.LogCaptureFixture) -> None:
    url = "http://127.0.0.1:1/hook" if answer is None else receiver.url
    receiver.answers = [] if answer is None else [answer]
    rig = Rig({"outlets": {"webhook": {"url": url}}, "exit_timeout": "1h"})
    next(one for one in rig.engine.outlets if one.name == "webhook").emit([scored_turn(gate())])
    assert not rig.engine.shutdown()
    reason = "can't reach the address (Connection refused)" if answer is None else "HTTP 404"
    assert f"not all scores were delivered before shutdown: outlet webhook: {reason}" in caplog.messages


def test_shutdown_names_the_limit_if_time_ran_out(caplog: pytest.LogCaptureFixture) -> None:
    rig = Rig({"outlets": {"webhook": {"url": "http://127.0.0.1:1/hook"}}, "exit_timeout": "0s"})
    next(one for one in rig.engine.outlets if one.name == "webhook").emit([scored_turn(gate())])
    assert not rig.engine.shutdown()
    assert "not all scores were delivered within 0 s; increase exit_timeout" in caplog.messages


def test_the_thread_sends_by_itself(receiver: Receiver) -> None:
    rig = Rigged(receiver, every=0)
    rig.emit(gate())
    assert receiver.arrived.wait(60)
    rig.outlet.close()


def test_a_program_that_ends_at_once_sends_what_it_has(receiver: Receiver) -> None:
    output_of(
        """
import sys
from opentelemetry.sdk.trace import TracerProvider
import otel_agenteval as oa
provider = TracerProvider()
oa.instrument(tracer_provider=provider, config={"metrics": [{"code_contains": {"value": "Rome"}, "policy": "gate"}],
              "outlets": {"prometheus": None, "webhook": {"url": sys.argv[1]}}})
turn(provider.get_tracer("app"), "desk")
print(1)
""",
        receiver.url,
    )
    assert [notice["agent"] for notice in notices(receiver)] == ["desk"]


def test_a_fault_of_ours_loses_its_notices_alone_and_counts_them(
    make: Any, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make()
    rig.emit(gate())
    with monkeypatch.context() as broken:
        broken.setattr(outlet_module, "bodies", lambda notices, context: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            rig.outlet.flush(60)
    rig.emit(gate())
    rig.flush()
    assert rig.counted() == {"made": 2, "delivered": 1, "waiting": 0, "failed": {"fault": 1}}


def test_a_flush_does_not_wait_longer_than_it_may_for_another_one(make: Any, receiver: Receiver) -> None:
    rig = make()
    rig.emit(gate())
    with rig.outlet._sending:
        assert not rig.outlet.flush(0.05)
    rig.flush()


# --- changes


@pytest.mark.parametrize("form", ["generic", "slack", "teams", "pagerduty"])
def test_change_for_the_worse_names_facts_of_its_turns(form: str, make: Any, receiver: Receiver, tmp_path: Path) -> None:
    turns = [*failing_turns("tool failed", "pay", "p1"), *failing_turns("stop_kind", "<b>", "p1", tenant="acme", start=400)]
    more = {"routing_key": "k"} if form == "pagerduty" else {}
    outlet = make(format=form, about=["changes"], **more).outlet
    path = filled(tmp_path / "s.db", turns)
    found = Found("cusum", 0.9, 0.5, (-0.5, -0.3), NOW - 3_600, 100.0)
    for tenant, store, named in (("acme", path, True), ("nobody", path, False), ("acme", str(tmp_path / "none.db"), False)):
        change = Change("code_tool_success", "travel", "worse", found, NOW, tenant)
        outlet.announce(explained(store, change), Root(1, 2, tenant=tenant))
        assert outlet.flush(60)
        body = json.dumps(receiver.bodies.pop(), ensure_ascii=False)
        assert ("% of failed" in body) == named
        assert "tool failed" not in body, "another tenant's facts"
        assert ("<b>" in body) == (named and form != "slack")


def test_changes_of_two_tenants_are_two_notices(make: Any, receiver: Receiver) -> None:
    outlet = make(about=["changes"]).outlet
    found = Found("cusum", 0.9, 0.5, (-0.5, -0.3), NOW - 3_600, 100.0)
    for tenant in ("acme", "globex"):
        outlet.announce(Change("code_tool_success", "travel", "worse", found, NOW, tenant), Root(1, 2, tenant=tenant))
    assert outlet.flush(60)
    assert [notice["change"]["agenteval.tenant"] for notice in receiver.bodies[0]["notices"]] == ["acme", "globex"]
