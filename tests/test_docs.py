"""What the documentation shows is run: Python blocks are executed, configurations loaded, the rest is parsed.

A block without a language, or in one that is not checked here, fails: nothing is skipped silently.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.root import Config
from otel_agenteval.config.section import option_paths
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.evaluation.selection import select_metrics
from scripts import first_five_minutes, quickstarts

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
DOCUMENTS = [
    path
    for path in (
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "SECURITY.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    )
    if path.name != "README.md" or path.exists()
]


class Block(NamedTuple):
    """A fenced block: where it begins, its language, its text."""

    line: int
    language: str
    text: str


def blocks_of(text: str) -> list[Block]:
    found = []
    for fence in FENCE.finditer(text):
        indent, language = fence[1], fence[3].strip()
        body = "".join(line.removeprefix(indent) for line in fence[4].splitlines(keepends=True))
        found.append(Block(text.count("\n", 0, fence.start()) + 2, language, body))
    return found


def program_of(blocks: list[Block]) -> str:
    """The Python blocks as one program whose line numbers are the document's."""
    lines: list[str] = []
    for block in blocks:
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


def check_yaml(text: str, folder: Path) -> None:
    """A mapping with one of our top-level keys is a configuration; other programs' YAML is only parsed."""
    found = yaml.safe_load(text)
    if isinstance(found, dict) and found.keys() & {path[0] for path in option_paths(Config)}:
        file = folder / "agenteval.yaml"
        file.write_text(text, encoding="utf-8")
        secrets = dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", text), "a-secret")
        select_metrics(load_config(file, secrets))


def check_json(text: str, folder: Path) -> None:
    """One document, or one on each line."""
    try:
        json.loads(text)
    except ValueError:
        for line in text.strip().splitlines():
            json.loads(line)


def check_shell(text: str, folder: Path) -> None:
    """It parses, and the commands and make targets of ours that it uses are there."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z]+)", text, re.MULTILINE)) <= targets
    for command in set(re.findall(r"\botel-agenteval ([a-z-]+)", text)):
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0, f"otel-agenteval {command}: no such command"


def check_openmetrics(text: str, folder: Path) -> None:
    """An excerpt of ``/metrics``."""
    assert list(text_string_to_metric_families(text.rstrip("\n").removesuffix("# EOF") + "\n# EOF\n"))


def not_checked(text: str, folder: Path) -> None:
    """Pictures in letters, outputs: for people."""


CHECKS: dict[str, Callable[[str, Path], None]] = {
    "python": not_checked,  # run as one program per document, below
    "yaml": check_yaml,
    "json": check_json,
    "bash": check_shell,
    "openmetrics": check_openmetrics,
    "text": not_checked,
    "js": not_checked,  # run with the pages that have them, by scripts/quickstarts.py
    "java": not_checked,
    "xml": not_checked,
    "properties": not_checked,
}
RUN_ELSEWHERE = {*quickstarts.all_pages(), first_five_minutes.PAGE}
"""Pages that go with packages of their own, and with a model: their scripts run them."""
DOCUMENT = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))


@DOCUMENT
def test_blocks_say_their_language_and_are_well_formed(document: Path, tmp_path: Path) -> None:
    text = document.read_text(encoding="utf-8")
    assert text.count("```") == 2 * len(blocks_of(text)), "a fence is not closed"
    for block in blocks_of(text):
        place = f"{document.relative_to(ROOT)}:{block.line}"
        assert block.language in CHECKS, f"{place}: language {block.language!r}; one of {', '.join(CHECKS)}"
        try:
            CHECKS[block.language](block.text, tmp_path)
        except Exception as error:
            raise AssertionError(f"{place}: {error}") from error


@DOCUMENT
def test_python_blocks_run(document: Path, tmp_path: Path) -> None:
    program = program_of(blocks_of(document.read_text(encoding="utf-8")))
    if not program.strip() or document in RUN_ELSEWHERE:
        return
    file = tmp_path / f"test_{document.stem}.py"
    file.write_text(program, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(file)]
    if "def test_" in program:
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-W",
            "error",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            "--rootdir",
            str(tmp_path),
            str(file),
        ]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PYTEST_"))}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


@DOCUMENT
def test_links_into_the_repository_lead_somewhere(document: Path) -> None:
    for target in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
        if "://" not in target and not target.startswith(("#", "mailto:")):
            assert (document.parent / target.partition("#")[0]).exists(), target


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("yaml", "turn: {idle_timout: 5m}\n"),
        ("yaml", "metrics: [code_no_such_metric]\n"),
        ("yaml", "a: b: c\n"),
        ("json", '{"a": }\n'),
        ("bash", "if true; then\n"),
        ("bash", "make no-such-target\n"),
        ("bash", "otel-agenteval no-such-command\n"),
        ("openmetrics", "agenteval_score{ 1\n"),
    ],
)
def test_the_checks_find_what_is_wrong(language: str, text: str, tmp_path: Path) -> None:
    with pytest.raises((AssertionError, ConfigError, ValueError, yaml.YAMLError)):
        CHECKS[language](text, tmp_path)


def test_the_program_of_a_document_has_its_line_numbers() -> None:
    text = "# Title\n\n```python\nx = 1\n```\n\n- item\n\n  ```python\n  y = x / 0\n  ```\n"
    assert program_of(blocks_of(text)).splitlines() == ["", "", "", "x = 1", "", "", "", "", "", "y = x / 0"]


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
def test_make_alone_lists_the_targets() -> None:
    done = subprocess.run(["make", "--no-print-directory"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert {line.split()[1] for line in done.stdout.splitlines()} == {
        "demo",
        "test",
        "coverage",
        "wheel",
        "servers",
        "otelcol",
        "lint",
        "house",
        "unseen",
        "bench",
        "hosts",
        "quickstarts",
        "docs",
        "tools",
        "format",
        "pin",
    }
