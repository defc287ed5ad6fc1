"""Applications without a model make no turn, whatever their telemetry looks like, and add nothing to the turn of an agent beside them.

``tests/recording/ordinary_apps.py`` made the recordings: ``plain/…`` each application alone, ``mixed-…`` around and below the model calls of
an agent that a known instrumentation traces.
"""

from __future__ import annotations

import json
import logging
from functools import cache

import pytest

from otel_agenteval import load_turns
from tests.support.recordings import files_in
from tests.support.streams import Stream, pieces

ARCHIVES = ("ordinary_apps.tar.xz",)


@cache
def recordings() -> dict[str, list[str]]:
    """Recording → its lines, log lines after span lines."""
    found: dict[str, list[str]] = {}
    for archive in ARCHIVES:
        for name, text in sorted(files_in(archive).items()):
            if name.endswith(".jsonl"):
                found.setdefault(name.replace(".logs.jsonl", ".jsonl"), []).extend(text.splitlines())
    return found


@cache
def truths() -> dict[str, dict]:
    """Recording of a mixed set → its truth."""
    found = {}
    for archive in ARCHIVES:
        for name, text in files_in(archive).items():
            if name.endswith("/truth.json"):
                for scenario in json.loads(text)["scenarios"].values():
                    found[name.replace("truth.json", scenario["file"])] = scenario
    return found


PLAIN = [name for name in recordings() if name.startswith("plain/")]
MIXED = sorted(truths())


def turns_of(name, folder):
    path = folder / "telemetry.jsonl"
    path.write_text("\n".join(recordings()[name]), encoding="utf-8")
    return sorted((turn.to_dict() for turn in load_turns([path], report=pytest.fail)), key=lambda turn: turn["start"])


@pytest.mark.parametrize("name", PLAIN)
def test_an_application_without_a_model_makes_no_turn(name, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "otel_agenteval"):
        assert turns_of(name, tmp_path) == []
    assert caplog.messages == []  # nobody looks for a reader for it


@pytest.mark.parametrize("name", MIXED)
def test_an_application_beside_a_known_agent_adds_nothing_to_its_turns(name, tmp_path):
    turns = turns_of(name, tmp_path)
    expected = truths()[name]["turns"]
    assert len(turns) == len(expected)
    for turn, truth in zip(turns, expected, strict=True):
        answered = [call for call in truth["llm_calls"] if call["status"] == "ok"]
        assert turn["input"] == truth["user_input"]
        assert turn.get("output") == truth["final_answer"]
        assert ("error" in turn) == truth["error"]
        assert len(turn["llm_calls"]) == len(truth["llm_calls"])
        for tokens in ("input_tokens", "output_tokens"):
            assert turn["usage"][tokens] == sum(call[tokens] for call in answered)
        called = [(call["name"], call.get("arguments")) for call in turn["tool_calls"]]
        assert called == [(call["name"], call["arguments"]) for call in truth["tool_calls"]]
        assert turn.keys().isdisjoint(("agent", "agent_runs", "handoffs", "workflow"))


def test_applications_make_no_turn_as_they_stream_in_either():
    stream = Stream()
    for name in PLAIN:  # a log record is only taken for a span that may be part of a turn
        stream.send([line for is_log, _, line in pieces(recordings()[name]) if not is_log])
    stream.finish()
    assert stream.turns() == {}
    stream.engine.shutdown()
