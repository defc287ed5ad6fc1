"""A text that makes a metric loop endlessly affects only its own turn."""

from __future__ import annotations

import sqlite3
import urllib.request
from pathlib import Path

import pytest

from tests.support.collector import Collector
from tests.support.servers import until
from tests.support.service import AGENT, request, turn_of
from tests.support.sidecar import Sidecar

LOOPS = r"""
import re
import otel_agenteval as oa

@oa.metric(needs=("agent",))
def code_loops(turn: oa.Turn) -> float:
    '''Runs for hours on two agents.'''
    if turn.agent == "expression":
        re.fullmatch(r"(?:[-a]+)+\|", "-" * 60)
    while turn.agent == "loop":
        pass
    return 1.0
"""


def post(receiver: Sidecar | Collector, body: bytes, path: str = "/v1/traces") -> None:
    """Send a request over HTTP, which must be accepted."""
    headers = {"Content-Type": "application/x-protobuf"}
    with urllib.request.urlopen(urllib.request.Request(f"{receiver.http}{path}", body, headers), timeout=60):
        pass


def hostile(number: int, agent: str) -> bytes:
    return request({"trace": number, "name": "invoke_agent", "attributes": {**AGENT, "gen_ai.agent.name": agent}})


@pytest.mark.slow
@pytest.mark.parametrize("agent", ["expression", "loop"])
def test_hostile_turn_is_dropped_and_others_are_scored(tmp_path: Path, agent: str) -> None:
    store = tmp_path / "scores.db"
    config = {
        "turn": {"decision_delay": "50ms", "max_work": "1500ms"}, "inline": {"metrics": ["code_loops"]}, "outlets": {"store": str(store)},
    }  # fmt: skip
    with Sidecar(tmp_path, config, script=LOOPS) as sidecar:
        post(sidecar, hostile(1, agent))
        for number in range(2, 12):  # the receiver goes on
            post(sidecar, turn_of(number))
        until(lambda: sidecar.metric("agenteval_dropped_total", reason="too_long") == 1, "the turn is dropped")
        assert f"trace {1:032x}: dropped" in sidecar.text()
        assert sidecar.stop() == 1
        assert sidecar.ledger()["spans"]["not_used"] == {"too_long": 1}
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT count(DISTINCT turn_id) FROM scores").fetchone() == (10,)


def test_stop_ends_a_sidecar_in_the_middle_of_a_hostile_turn(tmp_path: Path) -> None:
    config = {"turn": {"decision_delay": "50ms", "max_work": "1h"}, "inline": {"metrics": ["code_loops"]}, "exit_timeout": "1s"}
    with Sidecar(tmp_path, {**config, "serve": {"drain_timeout": "1s"}}, script=LOOPS) as sidecar:
        post(sidecar, hostile(1, "expression"))
        until(lambda: sidecar.metric("agenteval_turns_open") == 0, "the turn is being scored")
        assert sidecar.stop() == 1
        assert sidecar.ledger()["spans"]["not_used"] == {"shutdown": 1}
