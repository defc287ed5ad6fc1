"""Registered fork handlers: order, lifetime, and failures."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.process import output_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")

SCRIPT = """
import gc, logging, os
from otel_agenteval.core import forks

logging.disable()
calls = []

class Part:
    def __init__(self, name, step):
        self.name = name
        forks.in_child(self.reset, step)
    def reset(self):
        calls.append(self.name)
        if self.name == "broken":
            raise ValueError("told")

parts = [Part("thread", forks.Step.THREADS), Part("broken", forks.Step.STATE), Part("state", forks.Step.STATE)]
Part("gone", forks.Step.STATE)
gc.collect()
forks.at_fork(
    forks.Step.FILES,
    before=lambda: calls.append("before files"),
    in_parent=lambda: calls.append("parent"),
    in_child=lambda: calls.append("files"),
)
forks.at_fork(forks.Step.OUTLETS, before=lambda: calls.append("before outlets"))
read_end, write_end = os.pipe()
pid = os.fork()
if pid == 0:
    os.write(write_end, json.dumps(calls).encode())
    os._exit(0)
os.waitpid(pid, 0)
print(json.dumps([calls, json.loads(os.read(read_end, 10_000))]))
"""


def test_fork_handlers_run_in_the_order_of_their_steps() -> None:
    before = ["before outlets", "before files"]
    parent, child = json.loads(output_of(SCRIPT))
    assert parent == [*before, "parent"]
    assert child == [*before, "files", "broken", "state", "thread"]
