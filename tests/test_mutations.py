"""No hostile span value breaks reading, composing, scoring or showing a turn.

``AGENTEVAL_MUTATIONS`` is the number of cases with the fixed seed, and with a new seed. A failure prints its seed.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.trace import Span, Status, StatusCode, set_span_in_context

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import NotOtlp
from otel_agenteval.core.semconv import EMIT_ERRORS
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.engine.engine import BEHIND_OTLP
from otel_agenteval.outlets.store.views import Filter
from otel_agenteval.page.api import Api, Options, Reader, Request
from otel_agenteval.server.feed import Feed
from otel_agenteval.turns.recordings import Reading, items_in, turn_of, wholes_of
from tests.support.checked import METRICS, check_turn, strict
from tests.support.mutations import SCALARS, Item, case, hostile
from tests.support.receiver import Receiver
from tests.support.rig import Rig

CASES = int(os.environ.get("AGENTEVAL_MUTATIONS", "250"))
NAMES = [metric.name for metric in METRICS if not metric.metric.required]
LOSSES = {"fault", "error", "stuck", "queue_full"}
"""Reasons for which spans aren't scored although they should be."""
TOGETHER = 25
"""Number of cases whose turns are closed together."""


def lines_of(items: list[Item]) -> list[bytes]:
    """Return the items as OTLP/JSON, including values that only Python's JSON encoder writes."""
    return [json.dumps(item.message()).encode() for item in items]


class Sidecar:
    """An engine with every outlet that renders, and the web UI of its store."""

    def __init__(self, folder: Path) -> None:
        self._store = folder / "scores.db"
        self._receiver = Receiver()
        self._logs = InMemoryLogRecordExporter()
        self._now = 0.0
        self._shown: set[str] = set()
        provider = LoggerProvider(shutdown_on_exit=False)
        provider.add_log_record_processor(SimpleLogRecordProcessor(self._logs))
        config = load_config(
            {
                "inline": {"metrics": NAMES},
                "privacy": {"export_content": True},
                "statistics": {"state": None},
                "outlets": {
                    "log_events": "all", "console": "all", "jsonl": str(folder / "scores.jsonl"), "otlp_file": str(folder / "turns.jsonl"),
                    "otlp": {"endpoint": self._receiver.url, "protocol": "http", "evaluate_spans": "linked", "metrics_interval": 0},
                    "store": {"path": str(self._store), "content": True, "attributes": ["gen_ai.agent.name", "service.name"]},
                },
            }
        )  # fmt: skip
        self.engine = engine_from(config, decision_delay=BEHIND_OTLP, logger_provider=provider, waited=lambda: self._now)
        self.engine.keep_all()
        self._feed = Feed(self.engine, config.serve)
        self._api = Api(str(self._store), Options(content=True, trace_url="https://example.com/{trace_id}"))

    def receive(self, items: list[Item]) -> None:
        for item, line in zip(items, lines_of(items), strict=True):
            try:
                self._feed.pass_on(self._feed.read("traces" if item.is_span else "logs", line, True))
            except NotOtlp:
                continue

    def check(self) -> None:
        """Close all turns, deliver their scores, and check that nothing was lost and that the web UI shows everything."""
        engine = self.engine
        for _ in range(3):  # turns, what waited for their continuation, and late spans
            self._now += 10_000.0
            assert engine.flush(60)
        assert not engine.failures
        assert not engine.intake.waits
        errors = engine.telemetry.read(EMIT_ERRORS)
        assert errors is None or not any(errors.values.values()), errors.values
        assert not LOSSES.intersection(engine.status.unused_spans())
        encode_logs(self._logs.get_finished_logs())
        self._logs.clear()
        with self._api.views() as views:
            stored = {turn["turn_id"] for turn in views.listed(Filter(), 10_000).turns}
        for turn_id in stored - self._shown:
            self._page(turn_id)
        self._shown = stored

    def _page(self, turn_id: str) -> None:
        given = {"turn_id": turn_id, "limit": 5, "cursor": None, "order": "newest", "format": "csv"}
        request = Request(given, Reader())
        for answer in (self._api.turn, self._api.why, self._api.case):
            strict(answer(request))

    def close(self) -> None:
        self.engine.shutdown()
        self._receiver.close()


@pytest.fixture
def sidecar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Sidecar]:
    found = Sidecar(tmp_path)
    yield found
    found.close()


FIRST = pytest.mark.parametrize("first", [0, int(os.environ.get("AGENTEVAL_TEST_SEED", "2")) * 10_000], ids=["fixed", "other"])
"""The seed of the first case."""


@pytest.mark.slow
@FIRST
def test_mutated_recordings_are_read_scored_and_shown(first: int, sidecar: Sidecar) -> None:
    for seed in range(first, first + CASES):
        items = case(seed)
        try:
            read = [item for line in lines_of(items) for item in items_in(line, Reading(), lambda why: None)]
            for group in wholes_of(read):
                check_turn(turn_of(group))
            sidecar.receive(items)
            if seed % TOGETHER == TOGETHER - 1:
                sidecar.check()
        except Exception as error:
            raise AssertionError(f"case({seed}); what a sidecar took before begins at {seed - seed % TOGETHER}") from error


class Program:
    """A program that puts hostile values on its own spans."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def run(self, items: list[Item], dice: random.Random) -> None:
        """Start the spans of a case, each below its parent, and end them in any order."""
        found: dict[Any, Span] = {}
        for item in (item for item in items if item.is_span):
            parent = found.get(str(item.value.get("parentSpanId")))
            span = self._start(item, parent, dice)
            found[str(item.value.get("spanId"))] = span
            if not dice.randrange(3):
                body = dice.choice(({1: 2}, {"content": [{}]}, float("nan"), b"x", hostile(dice)))
                self._log(span, body, dice)
        spans = list(found.values())
        dice.shuffle(spans)
        for span in spans:
            if not dice.randrange(5):
                span.set_status(Status(StatusCode.ERROR, dice.choice(("late", "\ud83d", None))))
            span.end(end_time=dice.choice((None, None, None, 2**70, -1)))

    def _start(self, item: Item, parent: Span | None, dice: random.Random) -> Span:
        attributes = {key: value if dice.randrange(15) else dice.choice(SCALARS) for key, value in item.attributes.items()}
        name: Any = item.value.get("name") if dice.randrange(20) else dice.choice((5, None, "\ud83d", "\x00"))
        context = Context() if parent is None else set_span_in_context(parent, Context())
        tracer = self._rig.provider.get_tracer(item.scope if isinstance(item.scope, str) else "acme")
        started: Any = dice.choice((None, None, None, 1.5e18, -5, 2**70))
        return tracer.start_span(name, context, attributes=attributes, start_time=started)

    def _log(self, span: Span, body: Any, dice: random.Random) -> None:
        context = set_span_in_context(span, Context())
        record = LogRecord(context=context, event_name="gen_ai.user.message", body=body, attributes={"a": dice.choice(SCALARS)})
        with suppress(Exception):  # the SDK refuses some of it
            self._rig.logger_provider.get_logger("acme").emit(record)


@pytest.mark.slow
@FIRST
def test_mutated_spans_of_this_process_are_scored(first: int) -> None:
    config = {"inline": {"metrics": NAMES}, "statistics": {"state": None}}
    for batch in range(first, first + CASES // 2, TOGETHER):
        with Rig(config) as rig:
            for seed in range(batch, batch + TOGETHER):
                Program(rig).run(case(seed), random.Random(seed))
            assert rig.processor.force_flush(60_000)
            assert not rig.engine.failures, f"cases from {batch}"
            assert not LOSSES.intersection(rig.engine.status.unused_spans()), f"cases from {batch}"
            for turn in rig.turns():
                check_turn(turn)
