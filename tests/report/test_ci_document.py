"""The commands of docs/guides/gate-ci.md run unchanged on a real recording."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from otel_agenteval.cli.main import main
from tests.support.recordings import recording
from tests.test_docs import blocks_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "gate-ci.md"
BLOCKS = [(block.language, block.text) for block in blocks_of(DOCUMENT.read_text(encoding="utf-8"))]


def scripts() -> Iterator[str]:
    """Yield every ``eval`` command of the page, from code blocks and pipeline steps."""
    for language, text in BLOCKS:
        found = [text] if language == "bash" else steps_of(yaml.safe_load(text)) if language == "yaml" else ()
        yield from (script for script in found if "otel-agenteval eval" in script)


def steps_of(document: dict[Any, Any]) -> Iterator[str]:
    for job in {**document.get("jobs", {}), **document}.values():
        if isinstance(job, dict):
            yield from (step["run"] for step in job.get("steps", ()) if "run" in step)
            yield from job.get("script", ())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a checkout after its tests: traces, the page's configuration, and an earlier run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "step.md"))
    traces = b"".join(recording(f"pydantic_ai-native_v6/s{number}.jsonl") for number in (1, 2, 10, 11, 14, 15))
    (tmp_path / "traces.jsonl").write_bytes(traces)
    settings = next(text for language, text in BLOCKS if language == "yaml" and text.startswith("metrics:"))
    (tmp_path / "agenteval.yaml").write_text(settings, encoding="utf-8")
    assert main(["eval", "traces.jsonl", "--config", "agenteval.yaml", "--out", "baseline.jsonl"]) == 0
    return tmp_path


def run(script: str) -> int:
    """Run the script's only command in a shell, and return the exit status."""
    shell = ["bash", "-ec", f"otel-agenteval() {{ printf '%s\\0' \"$@\"; }}\n{script}"]
    return main(subprocess.run(shell, capture_output=True, text=True, check=True).stdout.split("\0")[:-1])


@pytest.mark.parametrize("script", list(scripts()))
def test_the_command_writes_its_files_and_fails_when_a_gate_does(
    script: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(script) == 0
    assert capsys.readouterr() == ("", "")
    files = re.findall(r"--out ([\w.]+)", script)
    assert files
    assert all((folder / name).stat().st_size for name in files)
    settings = folder / "agenteval.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("20000", "1"), encoding="utf-8")
    assert run(script) == 1


def test_the_pipeline_works_without_a_baseline(folder: Path) -> None:
    (folder / "baseline.jsonl").unlink()
    (script,) = (script for script in scripts() if "GITHUB_STEP_SUMMARY" in script)
    assert run(script) == 0
    assert "Against" not in (folder / "step.md").read_text(encoding="utf-8")
