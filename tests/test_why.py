"""``otel-agenteval why`` shows each finding with its text."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval import Score
from otel_agenteval.cli.main import main
from otel_agenteval.core.finding import Finding, detail_of
from otel_agenteval.evaluation.first_fault import Fault
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.outlets.turn_text import columns, render_outcomes
from tests.support.certificates import Authority
from tests.support.rig import Rig
from tests.support.service import Sidecar
from tests.support.stored_turns import failed_row, filled, score_row, turn_row

ANSWER = "The order costs\n468.00\teuros. " + "Thank you for asking. " * 20
CONTENT = {"input": "x", "output": ANSWER, "tool_calls": [{"name": "get_order", "result": {"total": 498.0}}]}
NUMBER = Finding("output", 16, 22, "number", "info", "468.00", "tool_calls[0].result", "498.0")


def stored(folder: Path, content: Any, *findings: Finding, **detail: Any) -> str:
    turn = turn_row(1, content=content)
    score = score_row(turn, "code_numbers", 0.0, explanation="1 number", detail={**detail_of(findings or [NUMBER]), **detail})
    return filled(folder / "s.db", [(turn, [score])])


def test_why_quotes_a_finding_and_what_it_was_compared_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "0000", "--store", stored(tmp_path, CONTENT, count=4)]) == 0
    out = capsys.readouterr().out
    lines = [line for line in out.splitlines() if not line.startswith("first fault")]
    assert lines[1].endswith("1 number")
    assert lines[2].startswith("    info     number in output: The order costs »468.00« euros. Thank you")
    assert lines[2].endswith("…")
    assert lines[3].strip() == 'compared with get_order result: {"total":»498.0«}'
    assert "3 more findings" in lines[4]
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(("turn_id", "says"), [
    ("000", "'000' is too short: enter at least 4 characters of the turn id"), ("beef", "turn beef not found in store "),
])  # fmt: skip
def test_why_explains_an_id_without_turn(turn_id: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", turn_id, "--store", stored(tmp_path, CONTENT)]) == 1
    assert capsys.readouterr().out.startswith(says)


@pytest.mark.parametrize(("severity", "code"), [("critical", "31"), ("warning", "33"), ("odd", "1")])
def test_findings_have_the_color_of_their_severity(severity: str, code: str) -> None:
    evidence = {"path": "output", "start": 0, "end": 3, "type": "t", "severity": severity, "place": "output"}
    excerpt = {"before": "a ", "found": "found\x1b[2J" + "y" * 300, "after": " z"}
    text = render_outcomes({}, [Score("code_x", 0.0, False)], evidence={"code_x": [{**evidence, **excerpt}]}, color=True)
    assert f"\x1b[{code}m{severity:<8}\x1b[0m t in output: a \x1b[1;{code}mfound�[2Jy" in text
    assert "…\x1b[0m" in text


def test_why_returns_evidence_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "0000", "--store", stored(tmp_path, CONTENT), "--json"]) == 0
    (finding,) = json.loads(capsys.readouterr().out)["scores"]["code_numbers"]["evidence"]
    assert (finding["before"], finding["found"]) == ("The order costs\n", "468.00")
    assert (finding["compared"]["place"], finding["compared"]["found"]) == ("get_order result", "498.0")


@pytest.mark.parametrize("content", [True, False])
def test_a_sidecar_gives_evidence_if_it_shows_content(
    content: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = {"path": stored(tmp_path, CONTENT), "max_age": "365d"}
    config = {"outlets": {"store": store}, "serve": {"token": "secret", "page": {"content": content}}}
    with Sidecar(config) as sidecar:
        command = ["why", "0000", "--url", f"http://{sidecar.addresses['web']}"]
        assert main(command) == 2
        assert "token" in capsys.readouterr().err
        monkeypatch.setenv("OTEL_AGENTEVAL_SERVE__TOKEN", "secret")
        assert main(command) == 0
        out = capsys.readouterr().out
        assert ("»468.00« euros" in out) is content
        assert ("characters 16 to 22" in out) is not content


@pytest.mark.parametrize(("found", "says"), [
    (Fault("tool_error", "tool_calls[0]", "get_order failed"), "first fault: tool_calls[0]: get_order failed\n"),
    (Fault("unknown"), "first fault: unknown\n"),
])  # fmt: skip
def test_a_sidecar_gives_the_first_fault(found: Fault, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its judge can't be asked, so the command doesn't advise this."""
    turn = failed_row(1, found)
    store = filled(tmp_path / "s.db", [(turn, [score_row(turn, "code_tool_success", 0.0)])])
    with Sidecar({"outlets": {"store": {"path": store, "max_age": "365d"}}}) as sidecar:
        assert main(["why", "0000", "--url", f"http://{sidecar.addresses['web']}"]) == 0
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(("path", "says"), [
    ("tool_calls[0]", "get_order failed (TimeoutError: no answer in 5 s)"), ("tool_calls[1]", "get_order failed"),
    ("llm_calls[0]", "get_order failed (RateLimitError)"), ("output", "get_order failed"),
    ("retrievals[3]", "get_order failed"),
])  # fmt: skip
def test_why_prints_the_first_faults_error(path: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    calls = [{"name": "get_order", "error": {"type": "TimeoutError", "message": "no answer in 5 s"}}, {"name": "get_order"}]
    content = {"tool_calls": calls, "llm_calls": [{"error": {"type": "RateLimitError"}}], "field_of_a_newer_version": 1}
    turn = failed_row(1, Fault("tool_error", path, "get_order failed"), content=content)
    store = filled(tmp_path / "s.db", [(turn, [score_row(turn, "code_tool_success", 0.0)])])
    assert main(["why", "0000", "--store", store]) == 0
    assert f": {says}\n" in capsys.readouterr().out
    assert main(["why", "0000", "--store", store, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first_fault"]["reason"] == says


def test_why_explains_a_failed_tls_connection(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    certificate, key = Authority(tmp_path).issue("server")
    tls = {"cert_file": str(certificate), "key_file": str(key)}
    with Sidecar({"serve": {"tls": tls}}) as with_tls, Sidecar() as without:
        for url, says in (
            (f"https://{with_tls.addresses['web']}", "unable to get local issuer certificate"),
            (f"https://{with_tls.addresses['web']}", "; set SSL_CERT_FILE to the file of its CA certificate"),
            (f"http://{with_tls.addresses['web']}", "; if the port uses TLS, use https://"),
            (f"https://{without.addresses['web']}", "; if the port doesn't use TLS, use http://"),
            ("http://127.0.0.1:9", "Connection refused; use the web address that `otel-agenteval serve` prints"),
        ):
            assert main(["why", "beef", "--url", url]) == 2
            assert says in capsys.readouterr().err


def test_why_accepts_any_span_of_a_turn(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = stored(tmp_path, CONTENT)
    with StoreReader(store) as reader:
        turn_id = reader.turns()[0]["turn_id"]
    assert main(["why", f"{turn_id.partition('-')[0]}-{'e' * 16}", "--store", store]) == 0
    assert capsys.readouterr().out.startswith(f"turn {turn_id}")
    assert main(["why", f"{'e' * 32}-{'e' * 16}", "--store", store]) == 1


def test_live_why_accepts_any_span_of_a_turn() -> None:
    with Rig({}) as rig:
        start, root = rig.tracer.start_as_current_span, {"gen_ai.operation.name": "invoke_agent"}
        with start("invoke_agent a", attributes=root), start("inner"):
            inner = oa.turn_id()
        engine = rig.processor.engine
        assert engine.flush(10)
        assert engine.why(str(inner)) == engine.why(rig.turn().turn_id) != {}
        assert engine.why(f"{'e' * 32}-{'e' * 16}") is None


def test_width_follows_the_variable_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert columns(io.StringIO()) == 100
    monkeypatch.setenv("COLUMNS", "120")
    assert columns(io.StringIO()) == 120
