"""No span from outside breaks reading, composing, scoring or showing a turn: every recording, with hostile values in it.

``AGENTEVAL_MUTATIONS`` sets how many cases are tried from the fixed seed, and as many from a new one. A failure names its seed.
"""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import NotOtlp
from otel_agenteval.core.semconv import EMIT_ERRORS
from otel_agenteval.engine.engine import BEHIND_OTLP, Engine
from otel_agenteval.outlets.sqlite.views import Filter
from otel_agenteval.page.api import Api, Options, Reader, Request
from otel_agenteval.server.feed import Feed
from otel_agenteval.turns.recordings import Reading, items_in, turn_of, wholes_of
from tests.support.checked import METRICS, check_turn, strict
from tests.support.mutations import Item, case
from tests.support.receiver import Receiver

CASES = int(os.environ.get("AGENTEVAL_MUTATIONS", "350"))
TOGETHER = 25
"""Cases whose turns are closed together."""


def lines_of(items: list[Item]) -> list[bytes]:
    """The items as OTLP/JSON, with whatever Python writes that JSON has no word for."""
    return [json.dumps(item.message()).encode() for item in items]


class Sidecar:
    """An engine with every outlet that renders, and the page of its store."""

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
                "inline": {"metrics": [metric.name for metric in METRICS if not metric.metric.required]},
                "privacy": {"export_content": True},
                "statistics": {"state": None},
                "outlets": {
                    "log_events": "all", "console": "all", "jsonl": str(folder / "scores.jsonl"), "otlp_file": str(folder / "turns.jsonl"),
                    "otlp": {"endpoint": self._receiver.url, "protocol": "http", "evaluate_spans": "linked", "metrics_interval": 0},
                    "store": {"path": str(self._store), "content": True, "attributes": ["gen_ai.agent.name", "service.name"]},
                },
            }
        )  # fmt: skip
        self.engine = Engine(config, decision_delay=BEHIND_OTLP, logger_provider=provider, waited=lambda: self._now)
        self.engine.keep_all()
        self._feed = Feed(self.engine, config.serve)
        self._api = Api(str(self._store), Options(content=True, trace_url="https://example.com/{trace_id}"))

    def receive(self, items: list[Item]) -> None:
        """Take requests."""
        for item, line in zip(items, lines_of(items), strict=True):
            try:
                self._feed.give(self._feed.read("traces" if item.is_span else "logs", line, True))
            except NotOtlp:
                continue

    def check(self) -> None:
        """Close all turns, deliver their scores, see that nothing was lost on the way, and that the page shows all."""
        engine = self.engine
        for _ in range(3):  # turns, what waited for their continuation, and late spans
            self._now += 10_000.0
            assert engine.flush(60)
        assert not engine.failures
        assert not engine.waits
        errors = engine.telemetry.read(EMIT_ERRORS)
        assert errors is None or not any(errors.values.values()), errors.values
        lost = {
            reason: count
            for reason, count in engine.unused_spans().items()
            if reason in ("fault", "error", "stuck", "queue_full")
        }
        assert not lost
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


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, random.SystemRandom().randrange(1, 2**31) * 10_000], ids=["fixed", "new"])
def test_mutated_recordings_are_read_scored_and_shown(first: int, sidecar: Sidecar) -> None:
    for seed in range(first, first + CASES):
        items = case(seed)
        try:
            read = [item for line in lines_of(items) for item in items_in(line, Reading(), lambda why: None)]
            for group in wholes_of(read, lambda scope: None):
                check_turn(turn_of(group))
            sidecar.receive(items)
            if seed % TOGETHER == TOGETHER - 1:
                sidecar.check()
        except Exception as error:
            raise AssertionError(f"case({seed}); what a sidecar took before begins at {seed - seed % TOGETHER}") from error
