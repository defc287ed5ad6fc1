"""Agents' text can't control a terminal, and appears in its real order."""

from __future__ import annotations

import io
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli import doctor
from otel_agenteval.cli.diagnosis import DoctorFinding
from otel_agenteval.cli.main import main
from otel_agenteval.core.display import LINES, escaped
from otel_agenteval.outlets.console import ConsoleOutlet
from otel_agenteval.outlets.store.export import write_text
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.outlets.turn_text import render_outcomes, render_scores, render_turn
from otel_agenteval.server.logformat import TextFormatter
from tests.outlets.factories import scored_turn
from tests.support.stored_turns import filled, score_row, turn_row

COMMANDS = {
    "colours": "\x1b[31m", "a title": "\x1b]0;x\x07", "C1": "\x9b31m \x9d0;x\x9c", "a deletion": "a\x7f\x08", "a return": "a\rb",
    "an override": "\u202etxt.exe\u2066", "marks": "\u200e\u200f\u061c", "nothing": "\u200b\ufeff\u2060\u00ad", "tags": "\U000e0041\U000e007f",
    "lines": "a\u2028b\x85c\x0bd",
}  # fmt: skip
OBEYED = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u2028\u202e\u2060\u2066\ufeff\U000e0041\U000e007f]"
)
HOSTILE = "".join(COMMANDS.values())
TURN_ID = turn_row(0)["turn_id"]


@pytest.mark.parametrize("text", COMMANDS.values(), ids=COMMANDS)
def test_what_a_terminal_obeys_is_escaped(text: str) -> None:
    assert not OBEYED.search(escaped(text))
    assert json.loads(escaped(json.dumps({text: [text]}, ensure_ascii=False))) == {text: [text]}


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("Grüße, 東京\u3000駅, שלום, नमस्ते ❤️ 🇩🇪", 'C:\\new "x"', ""):
        assert escaped(text) == text
    assert escaped("a\n\tb\x1b", LINES) == "a\n\tb\\u001b"


def score(**more: Any) -> oa.Score:
    said = dict.fromkeys(("metric", "label", "explanation", "error_type"), HOSTILE)
    return oa.Score(**said, detail={"reason": HOSTILE, "by": HOSTILE}, **more)


SCORES = [
    score(value=0.0, passed=False), score(value=1.0, passed=True, type="boolean"), score(value=1.0, type="boolean", direction="neutral"),
    score(status="error"), score(status="skipped"), score(value=None),
]  # fmt: skip
NAMES = ("turn_id", "agent", "input", "output", "close_reason", "error")
TURN = oa.Turn.from_dict({**dict.fromkeys(NAMES, HOSTILE), "tool_calls": [{"name": HOSTILE}]})


def test_no_table_of_a_turn_and_no_log_line_commands_the_terminal() -> None:
    outcomes = {HOSTILE: HOSTILE, "code_x": HOSTILE}
    line = TextFormatter().format(logging.LogRecord("otel_agenteval", logging.WARNING, "", 1, "%s", (HOSTILE,), None))
    tables = (render_turn(TURN, SCORES), render_scores(SCORES, title=HOSTILE), render_outcomes(outcomes, SCORES, evidence={}))
    for text in (line, *tables):
        assert not OBEYED.search(text)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_neither_an_exported_table_nor_the_console_outlet_commands_a_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = turn_row(1, agent=HOSTILE)
    with StoreReader(filled(tmp_path / "s.db", [(row, [score_row(row)])])) as reader:
        terminal, file = Terminal(), io.StringIO()
        assert write_text(reader.rows(), "csv", terminal) == write_text(reader.rows(), "csv", file) == 1
    assert not OBEYED.search(terminal.getvalue())
    assert "txt.exe" in file.getvalue()
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    scored = scored_turn(*SCORES)
    scored.turn.agent, scored.turn.input = HOSTILE, HOSTILE
    ConsoleOutlet("all").emit([scored])
    assert "txt.exe" in shown.getvalue()
    assert not OBEYED.search(shown.getvalue())


def test_the_doctor_commands_no_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(doctor, "sidecar_findings", lambda *_: [DoctorFinding("bad", HOSTILE, HOSTILE)])
    main(["doctor", "--url", "http://127.0.0.1:1"])
    shown = capsys.readouterr().out
    assert "txt.exe" in shown
    assert not OBEYED.search(shown)


def recorded(folder: Path) -> Path:
    """Write traces of an agent whose texts are all hostile."""
    said = {
        "gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": HOSTILE, "gen_ai.conversation.id": HOSTILE, "gen_ai.request.model": HOSTILE,
        "gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": HOSTILE}]}]),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": f"{HOSTILE} sk-{'a' * 40}"}]}]),
    }  # fmt: skip
    attributes = [{"key": key, "value": {"stringValue": value}} for key, value in said.items()]
    span = {
        "traceId": "1" * 32, "spanId": "2" * 16, "name": HOSTILE, "attributes": attributes, "startTimeUnixNano": "1795000000000000000",
        "endTimeUnixNano": "1795000001000000000", "status": {"code": 2, "message": HOSTILE},
    }  # fmt: skip
    resource = {"attributes": [{"key": "service.name", "value": {"stringValue": HOSTILE}}]}
    file = folder / "traces.jsonl"
    scope = {"scope": {"name": HOSTILE}, "spans": [span]}
    file.write_text(json.dumps({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]}) + f'\n{{"x": {HOSTILE}\n')
    return file


@pytest.mark.parametrize(
    "command",
    [
        ["turns", "FILE"], ["turns", "FILE", "--conversations"], ["eval", "FILE", "--format", "table"], ["eval", "FILE", "--format", "jsonl"],
        ["eval", "FILE", "--format", "markdown"], ["turns", "--store", "STORE"], ["turns", "--store", "STORE", "--json"], ["why", TURN_ID, "--store", "STORE"],
        ["why", TURN_ID, "--store", "STORE", "--json"], ["export", "--store", "STORE"], ["estimates", "--store", "STORE"],
        ["compare", "--store", "STORE", "--by", "version"], ["turns", HOSTILE],
    ],
)  # fmt: skip
def test_no_command_lets_an_agent_command_the_terminal(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = []
    for number in range(2):
        said = {"agent": HOSTILE, "model": HOSTILE, "service": HOSTILE, "error": HOSTILE, "service_version": f"{number}{HOSTILE}"}
        row = turn_row(number, content={"input": HOSTILE}, **said)
        rows.append((row, [score_row(row, HOSTILE, 0.0, explanation=HOSTILE, label=HOSTILE)]))
    store = filled(tmp_path / "s.db", rows)
    main([{"FILE": str(recorded(tmp_path)), "STORE": store}.get(word, word) for word in command])
    shown = capsys.readouterr()
    assert "txt.exe" in shown.out + shown.err
    assert not OBEYED.search(shown.out)
    assert not OBEYED.search(shown.err)
