"""The CI script runs failed tests again, alone, and lists them at the end. It also checks coverage and the built package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MAKEFILE = f"""
demo tools:
	@true
servers:
	@test ! -e no-servers
test test-all:
	@test ! -e no-servers
	@echo $(COVER) >>covered
	@{sys.executable} -m pytest -q -o addopts= $(ARGS)
lint pin docs wheel quickstarts coverage:
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

@pytest.mark.slow
def test_slow():
    assert runs("slow") == 1

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


PARTS = ["demo", "test", "tools", "lint", "pin", "docs", "wheel", "quickstarts", "servers", "test-all", "test-slow", "coverage"]
TIMES = "==> minutes of each part: elapsed, of one core, exit status"


def ci(folder: Path, *, flaky: bool = False, broken: bool = False) -> tuple[int, list[str], dict[str, str]]:
    """Run CI in a project with four tests. Return the exit status, the listed tests, and the exit status of each part."""
    for name in (".ci", ".venv/bin"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    shutil.copy(ROOT / ".ci" / "run", folder / ".ci")
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (folder / "Makefile").write_text(MAKEFILE, encoding="utf-8")
    (folder / "test_it.py").write_text(f"FLAKY, BROKEN = {flaky}, {broken}\n{TESTS}", encoding="utf-8")
    (folder / ".gitignore").write_text("bad-*\nno-servers\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MAKE", "XDG_"))}
    environment |= {"HOME": str(folder / "home"), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    author = ["-c", "user.name=ci", "-c", "user.email=ci@example.com"]
    for command in (["init", "--quiet"], ["add", "."], [*author, "commit", "--quiet", "--message", "all"]):
        subprocess.run(["git", *command], cwd=folder, env=environment, check=True)
    done = subprocess.run([folder / ".ci" / "run"], env=environment, capture_output=True, text=True, timeout=300, check=False)
    named, _, times = done.stdout.partition("==> failed twice: ")[2].partition(f"{TIMES}\n")
    rows = [line.split() for line in times.splitlines()]
    assert rows[-1][0] == "all", done.stdout + done.stderr
    assert all(float(seconds) >= 0 for row in rows for seconds in row[1:3])
    return done.returncode, named.splitlines(), {row[0]: row[3] for row in rows[:-1]}


def test_a_run_without_failures_says_so(tmp_path: Path) -> None:
    status, said, parts = ci(tmp_path)
    assert (status, said) == (0, ["none", "==> failed at first and passed alone: none"])
    assert parts == dict.fromkeys(PARTS, "0")


@pytest.mark.slow
@pytest.mark.parametrize("broken", [False, True])
def test_what_fails_twice_is_a_failure_and_what_passes_alone_is_named(broken: bool, tmp_path: Path) -> None:
    status, said, parts = ci(tmp_path, flaky=True, broken=broken)
    failed, _, alone = " ".join(said).partition(" ==> failed at first and passed alone: ")
    assert set(failed.split()) == ({"test_it.py::test_bad", "test_it.py::test_worse"} if broken else {"none"})
    assert "test_it.py::test_shaky[a b]" in alone
    assert "test_it.py::test_shaky[c]" in alone
    assert (status != 0, parts["test-all"] != "0", parts["test-all-again"] != "0") == (broken, True, broken)
    assert (tmp_path / "covered").read_text(encoding="utf-8").split() == ["yes", "append"], "the repetition adds to the coverage"


@pytest.mark.slow
@pytest.mark.parametrize("failing", [["lint"], ["pin", "docs", "wheel", "quickstarts"], ["coverage"]], ids=" ".join)
def test_each_part_beside_the_tests_counts(failing: list[str], tmp_path: Path) -> None:
    for part in failing:
        (tmp_path / f"bad-{part}").touch()
    status, _, parts = ci(tmp_path)
    assert status != 0
    assert [name for name, failed in parts.items() if failed != "0"] == failing


@pytest.mark.slow
def test_without_its_servers_nothing_has_passed(tmp_path: Path) -> None:
    cache = tmp_path / ".pytest_cache" / "v" / "cache"
    cache.mkdir(parents=True)
    (cache / "lastfailed").write_text("{}", encoding="utf-8")
    (tmp_path / "no-servers").touch()
    assert ci(tmp_path)[0] != 0
