"""What CI runs: a test that fails is run once more, alone, and is named at the end; coverage and the built package count too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = f"""
lint:
	@echo clean
test:
	@test ! -e no-servers
	@echo $(COVER) >>covered
	@{sys.executable} -m pytest -q -o addopts= $(filter-out --numprocesses 0,$(ARGS))
coverage wheel docs quickstarts:
	@test ! -e bad-$@
"""
TESTS = """
import pathlib

import pytest

def runs(name):
    path = pathlib.Path(name)
    path.write_text(path.read_text() + "x" if path.exists() else "x")
    return len(path.read_text())

def test_good():
    assert runs("good") == 1

@pytest.mark.parametrize("case", ["a b", "c"])
def test_shaky(case):
    assert runs(f"shaky {case}") > (1 if FLAKY else 0)

@pytest.fixture
def broken():
    raise OSError

def test_bad(request):
    assert not BROKEN

def test_worse(request):
    if BROKEN:
        request.getfixturevalue("broken")
"""


def ci(folder: Path, *, flaky: bool = False, broken: bool = False) -> tuple[int, list[str]]:
    """The exit status of CI in a project with four tests, and its last lines."""
    for name in (".ci", ".venv/bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (folder / "test_it.py").write_text(f"FLAKY, BROKEN = {flaky}, {broken}\n{TESTS}", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MAKE"))}
    done = subprocess.run([folder / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout.partition("==> failed twice: ")[2].splitlines()


def test_a_run_without_failures_says_so(tmp_path: Path) -> None:
    assert ci(tmp_path) == (0, ["none", "==> failed at first and passed alone: none"])


def test_what_passes_alone_is_named_and_is_no_failure(tmp_path: Path) -> None:
    named = ["==> failed at first and passed alone: test_it.py::test_shaky[a b]", "test_it.py::test_shaky[c]"]
    assert ci(tmp_path, flaky=True) == (0, ["none", *named])
    assert (tmp_path / "covered").read_text(encoding="utf-8").split() == ["yes", "append"], "the repetition adds to the coverage"


def test_what_fails_twice_is_a_failure_also_beside_what_does_not(tmp_path: Path) -> None:
    status, said = ci(tmp_path, flaky=True, broken=True)
    assert status != 0
    assert said == [
        "test_it.py::test_bad",
        "test_it.py::test_worse",
        "==> failed at first and passed alone: test_it.py::test_shaky[a b]",
        "test_it.py::test_shaky[c]",
    ]


@pytest.mark.parametrize("what", ["coverage", "wheel", "docs", "quickstarts"])
def test_coverage_the_built_package_and_the_documentation_count(what: str, tmp_path: Path) -> None:
    (tmp_path / f"bad-{what}").touch()
    status, said = ci(tmp_path)
    assert status != 0
    assert said == ["none", "==> failed at first and passed alone: none"]


@pytest.mark.parametrize("stale", ["{}", '{"test_it.py::test_good": true}'])
def test_without_its_servers_nothing_has_passed(tmp_path: Path, stale: str) -> None:
    cache = tmp_path / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text(stale, encoding="utf-8")
    (tmp_path / "no-servers").touch()
    assert ci(tmp_path)[0] != 0
