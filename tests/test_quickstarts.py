"""Three pages of docs/get-started/integrations run here. ``make quickstarts`` runs all of them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from scripts import first_five_minutes, quickstarts
from scripts.quickstarts import Page, Step

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


@pytest.mark.parametrize(
    "path",
    [
        quickstarts.PAGES / "own-spans.md",
        *(pytest.param(path, marks=pytest.mark.slow) for path in (quickstarts.PAGES / "pydantic-ai.md", first_five_minutes.PAGE)),
    ],
    ids=lambda path: path.stem,
)
def test_what_a_page_shows_is_what_its_program_prints(path: Path, tmp_path: Path) -> None:
    shown = quickstarts.page_of(path)
    # the rest of the pack needs an extra, which is here
    core = {"OTEL_AGENTEVAL_INLINE__METRICS": "[default, -code_tool_schema_validity]"}
    printed = quickstarts.run(shown, BINARIES, tmp_path, more=core)
    assert any("turn " in one for one in printed)
    assert quickstarts.difference(shown, printed) == ""


def test_more_than_times_and_line_breaks_is_a_difference_that_can_be_written(tmp_path: Path) -> None:
    right = page(tmp_path, PRINTS.format("good day,\n  it took 12 ms"))
    shown = page(tmp_path, PRINTS.format("good evening, it took 0.31 s"))
    printed = quickstarts.run(shown, BINARIES, tmp_path)
    assert quickstarts.difference(right, printed) == ""
    assert "good day" in quickstarts.difference(shown, printed)
    again = page(tmp_path, quickstarts.written(shown, printed))
    assert quickstarts.difference(again, printed) == ""


def test_commands_after_the_end_of_steps_are_not_run(tmp_path: Path) -> None:
    shown = page(tmp_path, PRINTS.format("good day") + "\n<!-- end of steps -->\n\n```bash\nfalse\n```\n")
    assert [step.command for step in shown.steps] == ["python greet.py"]


def test_a_page_creates_no_environment_of_its_own(tmp_path: Path) -> None:
    text = "```bash\npython3 -m venv .venv && . .venv/bin/activate\npip install pandas\npython3 -m http.server\n```\n"
    shown = page(tmp_path, text)
    assert (shown.installs, [step.command for step in shown.steps]) == (["pip install pandas"], ["python3 -m http.server"])


def test_install_pages_create_an_environment_first() -> None:
    root = quickstarts.ROOT
    for path in (root / "README.md", first_five_minutes.PAGE, first_five_minutes.PAGE.parent / "installation.md"):
        before, _, _ = path.read_text(encoding="utf-8").partition("\npip install ")
        assert before.splitlines()[-1] == "python3 -m venv .venv && . .venv/bin/activate", path


@pytest.mark.parametrize("path", quickstarts.all_pages(), ids=lambda path: path.stem)
def test_a_page_contains_the_programs_that_it_runs(path: Path) -> None:
    shown = quickstarts.page_of(path)
    programs = {file for step in shown.steps for file in re.findall(r"^(?:python|node) ([\w.-]+)", step.command, re.MULTILINE)}
    assert programs - {"-c", "-m"} <= shown.files.keys()


@pytest.mark.parametrize("keeps_running", [False, True])
def test_a_step_that_fails_is_named_with_what_it_said(keeps_running: bool, tmp_path: Path) -> None:
    step = Step("python app.py", printed="", keeps_running=keeps_running)
    broken = Page("broken", "", files={"app.py": "raise SystemExit('no key')"}, steps=[step])
    with pytest.raises(RuntimeError, match=r"(?s)python app.py.*no key"):
        quickstarts.run(broken, BINARIES, tmp_path)
