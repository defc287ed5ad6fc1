"""The pages of docs/get-started/integrations can be gone through: two of them here, with the frameworks that the tests have; all of them by ``make quickstarts``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from scripts import first_five_minutes, quickstarts
from scripts.quickstarts import Page, Step

ROOT = Path(__file__).parent.parent
PAGES = [*quickstarts.all_pages(), first_five_minutes.PAGE]
BINARIES = Path(sys.executable).parent
PRINTS = """\
# A page

In `greet.py`:

```python
print("good day, it took 0.31 s")
```

```bash
python greet.py
```

<!-- printed -->
```text
{}
```
"""


def page(tmp_path: Path, text: str) -> Page:
    file = tmp_path / "page.md"
    file.write_text(text, encoding="utf-8")
    return quickstarts.page_of(file)


@pytest.mark.parametrize("name", ["pydantic-ai", "langgraph", "openai-sdk", "own-spans"])
def test_what_a_page_shows_is_what_its_program_prints(name: str, tmp_path: Path) -> None:
    shown = quickstarts.page_of(quickstarts.PAGES / f"{name}.md")
    core = {
        "OTEL_AGENTEVAL_INLINE__METRICS": "[default, -code_tool_schema_validity]"
    }  # the rest of the pack needs an extra, which is here
    printed = quickstarts.run(shown, BINARIES, tmp_path, more=core)
    assert "turn" in printed[0]
    assert quickstarts.difference(shown, printed) == ""


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_installs_runs_and_shows_scores(path: Path) -> None:
    found = quickstarts.page_of(path)
    assert any("otel-agenteval" in line for line in found.installs)
    assert found.files or any(step.keeps_running for step in found.steps)
    shown = [step.printed for step in found.steps if step.printed is not None]
    assert shown, "what it prints is not shown"
    assert all(text.strip() for text in shown), "not run with --write yet"


@pytest.mark.parametrize("path", quickstarts.all_pages(), ids=lambda path: path.stem)
def test_a_page_has_its_versions_and_its_places(path: Path) -> None:
    assert (quickstarts.PINS / f"{path.stem}.txt").read_text(encoding="utf-8").count("==") > 10
    assert f"({path.name})" in quickstarts.INDEX.read_text(encoding="utf-8")
    assert f"get-started/integrations/{path.name}" in (ROOT / "mkdocs.yaml").read_text(encoding="utf-8")


def test_times_ids_and_line_breaks_may_differ(tmp_path: Path) -> None:
    shown = page(tmp_path, PRINTS.format("good day,\n  it took 12 ms"))
    assert quickstarts.difference(shown, quickstarts.run(shown, BINARIES, tmp_path)) == ""


def test_anything_else_is_a_difference_and_can_be_written(tmp_path: Path) -> None:
    shown = page(tmp_path, PRINTS.format("good evening, it took 0.31 s"))
    printed = quickstarts.run(shown, BINARIES, tmp_path)
    assert "good day" in quickstarts.difference(shown, printed)
    again = page(tmp_path, quickstarts.written(shown, printed))
    assert quickstarts.difference(again, printed) == ""


def test_a_step_that_fails_is_named_with_what_it_said(tmp_path: Path) -> None:
    broken = Page("broken", "", files={"app.py": "raise SystemExit('no key')"}, steps=[Step("python app.py", printed="")])
    with pytest.raises(RuntimeError, match=r"(?s)exit status 1: python app.py.*no key"):
        quickstarts.run(broken, BINARIES, tmp_path)


def test_a_server_that_ends_is_named_with_what_it_said(tmp_path: Path) -> None:
    broken = Page("broken", "", steps=[Step("python -c 'print(\"port is taken\")'", keeps_running=True)])
    with pytest.raises(RuntimeError, match=r"(?s)does not listen.*port is taken"):
        quickstarts.run(broken, BINARIES, tmp_path)


def test_the_sidecar_shows_what_a_page_sends(tmp_path: Path) -> None:
    """Whatever language the program is in: here a request by hand."""
    ports = "--grpc off --http 127.0.0.1:0 --metrics off --web off"
    sends = """
import json, re, urllib.request
port = re.search(r"http=127.0.0.1:([0-9]+)", open("server-0.log").read())[1]
span = {
    "traceId": "1" * 32, "spanId": "2" * 16, "name": "invoke_agent desk", "startTimeUnixNano": "1", "endTimeUnixNano": "2",
    "attributes": [{"key": key, "value": {"stringValue": text}} for key, text in (("gen_ai.operation.name", "invoke_agent"), ("gen_ai.agent.name", "desk"))],
}
body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}).encode()
request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/traces", body, {"Content-Type": "application/json"})
urllib.request.urlopen(request, timeout=10)
"""
    serve = f"OTEL_AGENTEVAL_TURN__DECISION_DELAY=100ms OTEL_AGENTEVAL_OUTLETS__CONSOLE=true otel-agenteval serve {ports}"
    steps = [Step(serve, keeps_running=True, printed="── desk · turn 22 ──"), Step("python sends.py")]
    (printed,) = quickstarts.run(Page("sidecar", "", files={"sends.py": sends}, steps=steps), BINARIES, tmp_path)
    assert printed.startswith("── desk · turn 11111111 ──")


def test_a_page_whose_tool_is_missing_is_left_out_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    outcome = quickstarts.try_page(quickstarts.PAGES / "spring-ai.md", tmp_path, pin=False, write=False)
    assert outcome.skipped == "mvn, java is not installed"
    assert not outcome.wrong


def test_the_first_five_minutes_are_three_commands_and_were_measured() -> None:
    text = first_five_minutes.PAGE.read_text(encoding="utf-8")
    found = quickstarts.page_of(first_five_minutes.PAGE)
    assert len(found.installs) + len(found.steps) == first_five_minutes.COMMANDS
    together = re.search(r"together.*\*\*([0-9]+) s\*\*", text)
    assert together is not None
    assert int(together[1]) <= first_five_minutes.LIMIT
