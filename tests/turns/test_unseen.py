"""Every dialect is needed, and most facts are read without any dialect (``make unseen``)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "unseen.py"


@pytest.fixture(scope="module")
def unseen():
    spec = importlib.util.spec_from_file_location("unseen", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    path = sys.path.copy()
    spec.loader.exec_module(module)
    sys.path[:] = path  # the script adds folders whose modules have the names of packages
    return module


def recording(*right, **more):
    return {"right": [*right], "more": [more], "dialects": ["x"]}


@pytest.mark.parametrize(
    ("before", "after", "lost", "gained", "pays"),
    [
        (recording(True, True), recording(True, False), 1, 0, True),
        (recording(True, True), recording(True, True), 0, 0, False),
        (recording(True, False), recording(True, True), 0, 1, False),
        (recording(True, cost=1.0), recording(True, cost=None), 0, 0, True),
        (recording(False, cost=1.0), recording(True, cost=None), 0, 1, False),
        (recording(True, cost=None), recording(True, cost=1.0), 0, 0, False),
    ],
)
def test_dialect_pays_if_facts_are_lost_without_it(unseen, before, after, lost, gained, pays):
    row = unseen.compared("x", {"a": before}, {"a": after})
    assert (row.lost, row.gained, row.pays(1_000)) == (lost, gained, pays)


def test_names_are_those_of_the_readers_dialects(unseen):
    from otel_agenteval.dialects.reader import DIALECTS

    assert unseen.names() == sorted(dialect.__name__.rpartition(".")[2] for dialect in DIALECTS)


@pytest.mark.slow
def test_each_dialect_loses_facts_when_left_out():
    done = subprocess.run([sys.executable, str(SCRIPT), "--check"], check=False, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
