"""Applications without a model create no turn, and add nothing to the turn of an agent in the same traces.

In ``plain/…``, each application is alone. In ``mixed-…``, its spans are around and below model calls of an agent with a known
instrumentation. ``git log --diff-filter=D -- tests/recording`` finds the programs that created them. No rule was written with the
held-out recordings. The list of wrong results may only become shorter.
"""

from __future__ import annotations

import json
import logging
from functools import cache

import pytest

from otel_agenteval import load_turns
from tests.support.recordings import files_in
from tests.support.streams import Stream, pieces

KNOWN, HELD_OUT = "ordinary_apps.tar.xz", "ordinary_apps_held_out.tar.xz"
TAKEN_FOR_AGENTS = {"mixed-workflow-engine/s2.jsonl"}  # a service's span that calls itself a tool, with input and output
"""Held-out recordings with wrong results."""


@cache
def recordings(archive: str) -> dict[str, list[str]]:
    """Return the lines of each recording, log lines after span lines."""
    found: dict[str, list[str]] = {}
    for name, text in sorted(files_in(archive).items()):
        if name.endswith(".jsonl"):
            found.setdefault(name.replace(".logs.jsonl", ".jsonl"), []).extend(text.splitlines())
    return found


@cache
def truths(archive: str) -> dict[str, dict]:
    """Return the truth of each recording in a mixed set."""
    found = {}
    for name, text in files_in(archive).items():
        if name.endswith("/truth.json"):
            for scenario in json.loads(text)["scenarios"].values():
                found[name.replace("truth.json", scenario["file"])] = scenario
    return found


def plain(archive):
    return [name for name in recordings(archive) if name.startswith("plain/")]


def turns_of(archive, name, folder):
    path = folder / "telemetry.jsonl"
    path.write_text("\n".join(recordings(archive)[name]), encoding="utf-8")
    return sorted((turn.to_dict() for turn in load_turns([path], report=pytest.fail)), key=lambda turn: turn["start"])


@pytest.mark.parametrize("name", plain(KNOWN))
def test_an_application_without_a_model_makes_no_turn(name, tmp_path, caplog):
    with caplog.at_level(logging.WARNING, "otel_agenteval"):
        assert turns_of(KNOWN, name, tmp_path) == []
    assert caplog.messages == []  # nobody looks for a reader for it


def check_mixed(archive, name, folder):
    turns = turns_of(archive, name, folder)
    expected = truths(archive)[name]["turns"]
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


@pytest.mark.parametrize("name", sorted(truths(KNOWN)))
def test_an_application_beside_a_known_agent_adds_nothing_to_its_turns(name, tmp_path):
    check_mixed(KNOWN, name, tmp_path)


def test_nor_do_most_of_those_that_no_rule_was_written_by(tmp_path):
    wrong = {name for name in plain(HELD_OUT) if turns_of(HELD_OUT, name, tmp_path)}
    for name in truths(HELD_OUT):
        try:
            check_mixed(HELD_OUT, name, tmp_path)
        except AssertionError:
            wrong.add(name)
    assert wrong <= TAKEN_FOR_AGENTS


def test_applications_make_no_turn_as_they_stream_in_either():
    stream = Stream()
    for name in plain(KNOWN):  # a log record is only taken for a span that may be part of a turn
        stream.send([line for is_log, _, line in pieces(recordings(KNOWN)[name]) if not is_log])
    stream.finish()
    assert stream.turns() == {}
    stream.engine.shutdown()
