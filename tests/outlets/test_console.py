from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.rig import Rig


def _answer(rig: Rig, output: str, ground_truth: str = "Paris") -> None:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "guide",
        "gen_ai.input.messages": '[{"role": "user", "parts": [{"type": "text", "content": "I am ada@example.org. The capital?"}]}]',
        "gen_ai.output.messages": f'[{{"role": "assistant", "parts": [{{"type": "text", "content": "{output}"}}]}}]',
    }
    with oa.expect(ground_truth=ground_truth):
        rig.tracer.start_span("invoke_agent guide", attributes=attributes).end()
    assert rig.engine.flush(30)


def _shown(capsys: pytest.CaptureFixture[str], console: Any, *outputs: str) -> str:
    with Rig({"metrics": ["code_equals_ground_truth"], "outlets": {"console": console}}) as rig:
        for output in outputs:
            _answer(rig, output)
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


def test_each_turn_is_shown_with_what_was_said_and_its_scores(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys, True, "Paris", "Rome")
    assert re.findall(r"^── guide · turn [0-9a-f]{8} ─", shown, re.MULTILINE)
    assert shown.count("── guide") == 2
    assert "user      I am [EMAIL_1]. The capital?" in shown
    assert "ada@example.org" not in shown
    assert re.search(r"✗ code_equals_ground_truth +\S", shown)
    assert "\033[" not in shown


PROGRAM = """
import os, sys
from opentelemetry.sdk.trace import TracerProvider
import otel_agenteval as oa
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider)
if "fork" in sys.argv and os.fork() == 0:
    os._exit(0)
if "turn" in sys.argv:
    provider.get_tracer("app").start_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}).end()
handle.shutdown()
"""


@pytest.mark.parametrize(("arguments", "hints"), [([], 1), (["turn"], 0), (["fork"], 0)])
def test_a_program_without_turns_gets_a_hint_at_exit(arguments: list[str], hints: int) -> None:
    """The process of a child that scored turns doesn't get the hint."""
    env = {**os.environ, "OTEL_AGENTEVAL_OUTLETS__CONSOLE": "failed"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], env=env, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr.count("run `otel-agenteval doctor`") == hints, done.stderr


def test_failed_shows_failed_turns_only(capsys: pytest.CaptureFixture[str]) -> None:
    shown = _shown(capsys, "failed", "Paris", "Rome")
    assert shown.count("── guide") == 1
    assert "agent     Rome" in shown


def test_whole_conversation_is_shown_with_its_id(capsys: pytest.CaptureFixture[str]) -> None:
    config: Any = {"inline": {"metrics": []}, "conversation": {"metrics": ["code_latency"]}, "outlets": {"console": True}}
    with Rig(config) as rig:
        rig.run(attributes={"gen_ai.conversation.id": "thread:1"})
        rig.turns()
        assert rig.engine.end_conversation("thread:1")
        rig.scored()
    assert "── bot · conversation-thread:1 ─" in capsys.readouterr().err


@pytest.mark.parametrize("closed", [True, False])
def test_a_program_without_standard_error_goes_on(monkeypatch: pytest.MonkeyPatch, closed: bool) -> None:
    stream = io.StringIO()
    stream.close()
    with Rig({"outlets": {"console": True}}) as rig:
        monkeypatch.setattr(sys, "stderr", stream if closed else None)
        _answer(rig, "Rome")
        assert len(rig.scored()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="it has no pty")
@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_a_terminal_has_colours_unless_they_are_unwanted(monkeypatch: pytest.MonkeyPatch, no_color: str, coloured: bool) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal, Rig({"outlets": {"console": True}}) as rig:
        monkeypatch.setattr(sys, "stderr", terminal)
        _answer(rig, "Rome")
        monkeypatch.undo()
        shown = os.read(ours, 65_536).decode()
    os.close(ours)
    assert ("\033[1m── guide" in shown) is coloured
