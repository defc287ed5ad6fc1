"""The commands of docs/guides/gate-ci.md, run as they stand there over a real recording."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts.gen_docs import INSTALLED_AS
from tests.support.recordings import recording
from tests.test_docs import blocks_of

DOCUMENT = Path(__file__).parents[2] / "docs" / "guides" / "gate-ci.md"
BLOCKS = [
    (block.language, block.text)
    for block in blocks_of(DOCUMENT.read_text(encoding="utf-8"))
    if block.language in ("bash", "yaml")
]


def scripts() -> Iterator[str]:
    """Every shell command that the document shows: in blocks, and in the steps of its pipelines."""
    for language, text in BLOCKS:
        found: list[str] = [text] if language == "bash" else list(steps_of(yaml.safe_load(text)))
        yield from (script for script in found if "otel-agenteval eval" in script)


def steps_of(document: dict[Any, Any]) -> Iterator[str]:
    for job in {**document.get("jobs", {}), **document}.values():
        if isinstance(job, dict):
            yield from (step["run"] for step in job.get("steps", ()) if "run" in step)
            yield from job.get("script", ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkout after its tests: traces, the document's configuration, and a former run."""
    (tmp_path / "traces.jsonl").write_bytes(
        b"".join(recording(f"pydantic_ai-native_v6/s{i}.jsonl") for i in (1, 2, 10, 11, 14, 15))
    )
    settings = next(text for language, text in BLOCKS if language == "yaml" and text.startswith("metrics:"))
    (tmp_path / "agenteval.yaml").write_text(settings, encoding="utf-8")
    assert run("otel-agenteval eval traces.jsonl --config agenteval.yaml --out baseline.jsonl", tmp_path).returncode == 0
    return tmp_path


def run(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = f'otel-agenteval() {{ "{sys.executable}" -m otel_agenteval "$@"; }}\n{script}'
    env = {**os.environ, "GITHUB_STEP_SUMMARY": str(folder / "step.md")}
    return subprocess.run(["bash", "-ec", command], cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("script", list(scripts()))
def test_the_command_passes_and_writes_its_files(script: str, folder: Path) -> None:
    done = run(script, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    files = re.findall(r"--out ([\w.]+)", script)
    assert files
    assert all((folder / name).stat().st_size for name in files)


@pytest.mark.parametrize("script", list(scripts()))
def test_the_command_fails_when_a_gate_does(script: str, folder: Path) -> None:
    settings = folder / "agenteval.yaml"
    settings.write_text(settings.read_text(encoding="utf-8").replace("20000", "1"), encoding="utf-8")
    assert run(script, folder).returncode == 1


def test_the_pipeline_works_without_a_baseline(folder: Path) -> None:
    (folder / "baseline.jsonl").unlink()
    (script,) = (script for script in scripts() if "GITHUB_STEP_SUMMARY" in script)
    assert run(script, folder).returncode == 0
    assert "Against" not in (folder / "step.md").read_text(encoding="utf-8")


def test_there_are_commands_for_both_services() -> None:
    assert len(list(scripts())) == 4


@pytest.mark.parametrize("pipeline", [text for language, text in BLOCKS if language == "yaml" and "otel-agenteval eval" in text])
def test_a_pipeline_installs_the_package_before_it_scores(pipeline: str) -> None:
    steps = list(steps_of(yaml.safe_load(pipeline)))
    scores = next(place for place, step in enumerate(steps) if "otel-agenteval eval" in step)
    assert f"pip install {INSTALLED_AS}" in steps[:scores]
