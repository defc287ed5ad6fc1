"""A request that ended the process is tried once again after a restart, and then skipped."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agenteval.core.tenancy import trace_name
from otel_agenteval.server.poison import PoisonList
from tests.server.test_watchdog import LOOPS, hostile, post
from tests.support.process import ROOT
from tests.support.servers import until
from tests.support.service import AGENT, CHAT, request, turn_of
from tests.support.sidecar import Sidecar

DIES = """
import os
import sys
from pathlib import Path

from otel_agenteval.server.poison import PoisonList

found = PoisonList(Path(sys.argv[1]))
found.begin(7)
if sys.argv[2] == "after":
    found.end()
os.kill(os.getpid(), 9)
"""


def die(folder: Path, when: str) -> None:
    subprocess.run([sys.executable, "-c", DIES, str(folder), when], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)


def strikes(folder: Path) -> tuple[bool, bool]:
    found = PoisonList(folder)
    try:
        return found.is_suspect(trace_name(7)), found.is_poisoned(trace_name(7))
    finally:
        found.close()


def test_trace_is_poisoned_after_its_second_death(tmp_path: Path) -> None:
    die(tmp_path, "during")
    assert strikes(tmp_path) == (True, False)
    assert strikes(tmp_path) == (True, False)  # looking is no strike
    die(tmp_path, "during")
    assert strikes(tmp_path) == (False, True)


def test_trace_that_was_scored_before_the_death_has_no_strike(tmp_path: Path) -> None:
    die(tmp_path, "after")
    assert strikes(tmp_path) == (False, False)


def test_trace_in_the_hand_of_a_living_process_has_no_strike(tmp_path: Path) -> None:
    living = PoisonList(tmp_path)
    living.begin(7)
    assert strikes(tmp_path) == (False, False)
    living.close()


def test_full_disk_neither_ends_the_process_nor_later_records(tmp_path: Path) -> None:
    full = "import resource as r; r.setrlimit(r.RLIMIT_FSIZE, (0, r.RLIM_INFINITY))\n"
    freed = "found.begin(7)\nr.setrlimit(r.RLIMIT_FSIZE, (r.RLIM_INFINITY,) * 2)\nfound.begin(7)\n"
    script = full + DIES.replace("found.begin(7)\n", "found.begin(7)\nfound.end()\n" + freed, 1)
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path), "during"], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert strikes(tmp_path) == (True, False)


KILLS = """
import os
import otel_agenteval as oa

@oa.metric(needs=("agent",))
def code_kills(turn: oa.Turn) -> float:
    '''Ends the process on one agent.'''
    if turn.agent == "killer":
        os.kill(os.getpid(), 9)
    return 1.0
"""


@pytest.mark.slow
def test_turn_that_kills_the_process_is_tried_once_more_and_costs_no_other(tmp_path: Path) -> None:
    store = tmp_path / "scores.db"
    config = {"turn": {"decision_delay": "2s"}, "inline": {"metrics": ["code_kills"]}, "outlets": {"store": str(store)}}
    with Sidecar(tmp_path, config, journal=True, script=KILLS) as sidecar:
        for number in range(2, 12):
            post(sidecar, turn_of(number))
        post(sidecar, hostile(1, "killer"))
        for _ in range(2):
            until(lambda: not sidecar.running, "the turn has killed the process")
            sidecar.start()
        until(lambda: sidecar.metric("agenteval_spans_dropped_total", reason="poisoned") == 1, "the turn is passed over")
        assert f"{trace_name(1)}: skipped" in sidecar.text()
        until(lambda: sidecar.metric("agenteval_journal_size_bytes") == 0, "the journal drains")
        assert sidecar.stop() == 1
    with sqlite3.connect(store) as db:
        assert db.execute("SELECT count(DISTINCT turn_id) FROM scores").fetchone() == (10,)


@pytest.mark.slow
def test_turn_that_took_too_long_is_passed_over_after_a_restart(tmp_path: Path) -> None:
    config = {"turn": {"decision_delay": "50ms", "max_work": "1s"}, "inline": {"metrics": ["code_loops"]}}
    with Sidecar(tmp_path, config, journal=True, script=LOOPS) as sidecar:
        open_turn = {"trace": 2, "id": 5, "parent": 4, "attributes": CHAT}  # the journal keeps their request for it
        agent = {**AGENT, "gen_ai.agent.name": "loop"}
        post(sidecar, request({"trace": 1, "name": "invoke_agent", "attributes": agent}, open_turn))
        until(lambda: sidecar.metric("agenteval_dropped_total", reason="too_long") == 1, "the turn is dropped")
        os.kill(sidecar.pid, signal.SIGKILL)
        until(lambda: not sidecar.running, "the process is gone")
        sidecar.start()
        assert sidecar.stop() == 1
        assert sidecar.ledger()["spans"]["not_used"] == {"poisoned": 1}
        assert sidecar.ledger()["results"].get("dropped") is None
