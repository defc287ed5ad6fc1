"""Worker processes of a command end with the command."""

from __future__ import annotations

import subprocess
import sys

import psutil

from tests.support.process import ROOT, environment

WORK = """
from itertools import count
from otel_agenteval.core.processes import Processes

if __name__ == "__main__":
    with Processes(2) as processes:
        for found in processes.map(abs, count()):
            if found == 10:
                print("at work", flush=True)
"""


def test_processes_end_after_their_parent_was_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", WORK], stdout=subprocess.PIPE, env=environment(), cwd=ROOT) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"at work\n"
        children = psutil.Process(process.pid).children()
        process.kill()
    assert len(children) >= 2
    left = psutil.wait_procs(children, 120)[1]
    for each in left:
        each.kill()
    assert not left
