"""Examples in the documentation run: Python blocks are executed, configurations are loaded, other blocks are parsed.

A block without a language, or in an unknown language, fails. Nothing is skipped silently.
"""

from __future__ import annotations

import contextlib
import io
import json
import multiprocessing
import os
import re
import runpy
import subprocess
import sys
import warnings
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
from otel_agenteval.evaluation.selection import select_metrics
from scripts import first_five_minutes, quickstarts

ROOT = Path(__file__).parent.parent
FENCE = re.compile(r"^( *)(`{3,})([^\n`]*)\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]
DOCUMENTS = [path for path in (*PAGES, *sorted((ROOT / "docs").rglob("*.md"))) if path.exists()]


class Block(NamedTuple):
    """A fenced block: position, language and text."""

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
    """Join the Python blocks to one program with the page's line numbers."""
    lines: list[str] = []
    for block in blocks:
        if block.language == "python":
            lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    return "\n".join(lines) + "\n"


def check_yaml(text: str, folder: Path) -> None:
    """Load a mapping with one of our top-level keys as a configuration. Only parse other YAML."""
    found = yaml.safe_load(text)
    if isinstance(found, dict) and found.keys() & {path[0] for path in option_paths(Config)}:
        file = folder / "agenteval.yaml"
        file.write_text(text, encoding="utf-8")
        secrets = dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", text), "a-secret")
        select_metrics(load_config(file, secrets))


def check_json(text: str, folder: Path) -> None:
    """Parse one document, or one per line."""
    try:
        json.loads(text)
    except ValueError:
        for line in text.strip().splitlines():
            json.loads(line)


def check_shell(text: str, folder: Path) -> None:
    """Parse it, and check that our commands and make targets in it exist."""
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"^make ([a-z]+)", text, re.MULTILINE)) <= targets
    for command in set(re.findall(r"\botel-agenteval ([a-z-]+)", text)):
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(SystemExit) as left:
            main([command, "--help"])
        assert left.value.code == 0, f"otel-agenteval {command}: no such command"


def check_openmetrics(text: str, folder: Path) -> None:
    """Parse an excerpt of ``/metrics``."""
    assert list(text_string_to_metric_families(text.rstrip("\n").removesuffix("# EOF") + "\n# EOF\n"))


def not_checked(text: str, folder: Path) -> None:
    """Text diagrams and outputs."""


CHECKS: dict[str, Callable[[str, Path], None]] = {
    "yaml": check_yaml,
    "json": check_json,
    "bash": check_shell,
    "openmetrics": check_openmetrics,
    # Python runs as one program per document, below. JavaScript runs with its pages, by scripts/quickstarts.py.
    **dict.fromkeys(("python", "text", "js", "java", "xml", "properties"), not_checked),
}
RUN_ELSEWHERE = {*quickstarts.all_pages(), first_five_minutes.PAGE}
"""Pages with their own packages and a model. ``scripts/quickstarts.py`` and ``scripts/first_five_minutes.py`` run them."""
PROGRAMS = [
    path
    for path in DOCUMENTS
    if path not in RUN_ELSEWHERE and any(block.language == "python" for block in blocks_of(path.read_text(encoding="utf-8")))
]
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["tests.test_docs", "otel_agenteval.instrumentation.attach", "opentelemetry.sdk.trace"])


def test_blocks_say_their_language_and_are_well_formed(tmp_path: Path) -> None:
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        assert text.count("```") == 2 * len(blocks_of(text)), f"{document}: a fence is not closed"
        for block in blocks_of(text):
            place = f"{document.relative_to(ROOT)}:{block.line}"
            assert block.language in CHECKS, f"{place}: language {block.language!r}; one of {', '.join(CHECKS)}"
            try:
                CHECKS[block.language](block.text, tmp_path)
            except Exception as error:
                raise AssertionError(f"{place}: {error}") from error


def run_program(file: Path, output: Path) -> None:
    """Run a program (with warnings as errors) or its tests, in a separate process that starts with the imports done."""
    os.chdir(file.parent)
    os.dup2(os.open(output, os.O_WRONLY | os.O_CREAT), 1)
    os.dup2(1, 2)
    for name in [name for name in os.environ if name.startswith(("OTEL_", "PYTEST_"))]:
        del os.environ[name]
    if "def test_" in file.read_text(encoding="utf-8"):
        options = ["-q", "-Werror", "-Wignore::pytest.PytestAssertRewriteWarning", "-pno:cacheprovider", f"-c{os.devnull}"]
        sys.exit(pytest.main([*options, f"--rootdir={file.parent}", str(file)]))
    warnings.simplefilter("error")
    sys.argv[:] = [str(file)]
    runpy.run_path(str(file), run_name="__main__")


@pytest.mark.parametrize("document", PROGRAMS, ids=lambda path: str(path.relative_to(ROOT)))
def test_python_blocks_run(document: Path, tmp_path: Path) -> None:
    file, output = tmp_path / f"test_{document.stem}.py", tmp_path / "output"
    file.write_text(program_of(blocks_of(document.read_text(encoding="utf-8"))), encoding="utf-8")
    child = PROCESSES.Process(target=run_program, args=(file, output))
    child.start()
    child.join(300)
    child.kill()
    assert child.exitcode == 0, output.read_text(encoding="utf-8")


def test_readme_has_at_most_600_words() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").split()) <= 600


def test_links_into_the_repository_lead_somewhere() -> None:
    for document in DOCUMENTS:
        for target in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
            if "://" not in target and not target.startswith(("#", "mailto:")):
                assert (document.parent / target.partition("#")[0]).exists(), f"{document}: {target}"
