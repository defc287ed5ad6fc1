"""Recordings of real frameworks, with the truth beside them (``tests/data/corpus.tar.xz``; its NOTES.md says what they hold).

The floors are what the engine reaches less a little slack; they only go up.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
FLOORS = {
    "pydantic_ai-native_v5": 99.5,
    "pydantic_ai-native_v6": 99.5,
    "langchain-openinference": 99.0,
    "langchain-otel_genai": 99.0,
    "openai_sdk-otel_genai": 94.0,
    "openai_sdk-traceloop": 94.0,
    "openai_sdk-openinference": 94.0,
    "openai_sdk-otel_genai_event": 93.0,
}


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """Share of facts that are right, in percent, by recording set."""
    folder = tmp_path_factory.mktemp("corpus")
    with tarfile.open(TESTS / "data" / "corpus.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    out = folder / "result.json"
    command = [sys.executable, str(TESTS / "support" / "check_turns.py"), str(folder), "--show", "0", "--json", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    subprocess.run(command, check=False, env=environment, capture_output=True, timeout=300)
    result = json.loads(out.read_text())
    return {name: 100 * good / total for name, (good, total) in result["sets"].items()} | {"all": 100 * result["share"] / 100}


@pytest.mark.parametrize("name", FLOORS)
def test_turns_of_a_framework_come_out_right(shares, name):
    assert shares[name] >= FLOORS[name]


def test_turns_of_all_frameworks_come_out_right_on_the_whole(shares):
    assert shares["all"] >= 96.0
