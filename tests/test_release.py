"""What a release is made of: notes from the changelog, a wheel that works with the oldest versions, and tooling that finds its files."""

from __future__ import annotations

import datetime
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.support.modules import module_of

ROOT = Path(__file__).parent.parent
release_notes = module_of(ROOT / "scripts" / "release_notes.py")
install_sizes = module_of(ROOT / "scripts" / "install_sizes.py")
test_wheel = module_of(ROOT / "scripts" / "test_wheel.py")
test_wheel.__test__ = False
CHANGELOG = """\
# Changelog

## [Unreleased]

### Added

- Something.

## [0.2.0] - 2026-12-01

### Fixed

- A fault, see [turns](docs/turns.md), [above](#changelog) and [the standard](https://example.org).

## [0.1.0]

- No date.

## [0.0.1] - 2026-01-01
"""


def tooling(name: str) -> str:
    """A file that stands in the checkout, but not in a source distribution."""
    file = ROOT / name
    if not file.exists():
        pytest.skip(f"{name} is not part of the source distribution")
    return file.read_text(encoding="utf-8")


def test_the_notes_of_a_release_are_its_section() -> None:
    assert release_notes.notes(CHANGELOG, "0.2.0").splitlines() == [
        "### Fixed",
        "",
        "- A fault, see [turns](docs/turns.md), [above](#changelog) and [the standard](https://example.org).",
    ]


def test_links_of_the_notes_lead_into_the_release() -> None:
    last = release_notes.notes(CHANGELOG, "0.2.0", "https://example.org/us/it/").splitlines()[-1]
    assert "[turns](https://example.org/us/it/blob/v0.2.0/docs/turns.md), [above](#changelog)" in last
    assert "[the standard](https://example.org)." in last


@pytest.mark.parametrize(
    ("version", "says"),
    [
        pytest.param(
            "0.3.0", r"no section \[0\.3\.0\]; its sections are: Unreleased, 0\.2\.0, 0\.1\.0, 0\.0\.1", id="no section"
        ),
        pytest.param("0.1.0", r"must end in its date: ## \[0\.1\.0\] - YYYY-MM-DD", id="no date"),
        pytest.param("0.0.1", "is empty", id="nothing in it"),
    ],
)
def test_a_changelog_that_does_not_say_what_changed_makes_no_release(version: str, says: str) -> None:
    with pytest.raises(release_notes.ChangelogError, match=says):
        release_notes.notes(CHANGELOG, version)


def test_closing_names_and_dates_what_was_unreleased() -> None:
    changelog = release_notes.closed(CHANGELOG, "0.3.0", datetime.date(2026, 12, 24))
    assert "## [Unreleased]\n\n## [0.3.0] - 2026-12-24\n\n### Added\n\n- Something.\n" in changelog
    assert release_notes.notes(changelog, "0.3.0") == "### Added\n\n- Something.\n"


def test_a_version_is_closed_once() -> None:
    with pytest.raises(release_notes.ChangelogError, match=r"has a section \[0\.2\.0\] already"):
        release_notes.closed(CHANGELOG, "0.2.0", datetime.date(2026, 12, 24))


def test_the_changelog_can_be_released_as_it_is() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release_notes.notes(release_notes.closed(changelog, "99.0.0", datetime.date(2026, 12, 24)), "99.0.0").startswith(
        "### "
    )


def test_another_version_than_the_package_has_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "release_notes.py", "99.0.0"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 1
    assert re.fullmatch(r"the package has version \S+, not 99\.0\.0\n", done.stderr)


def test_each_requirement_names_its_lowest_version() -> None:
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {"numpy", "opentelemetry-sdk", "redis"} <= test_wheel.lowest(project).keys()


@pytest.mark.parametrize(
    ("dependencies", "extras", "says"),
    [
        pytest.param(["numpy"], {}, "'numpy' must name its lowest version", id="no version"),
        pytest.param(["numpy>2"], {}, "'numpy>2' must name its lowest version", id="another bound"),
        pytest.param(["numpy>=2"], {"a": ["numpy>=1"]}, "numpy has two lowest versions: 2 and 1", id="two bounds"),
    ],
)
def test_a_requirement_without_one_lowest_version_is_refused(
    dependencies: list[str], extras: dict[str, list[str]], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        test_wheel.lowest({"dependencies": dependencies, "optional-dependencies": extras})


def test_the_core_tests_and_tools_of_the_wheel_are_there() -> None:
    assert [name for name in test_wheel.CORE_TESTS if not (ROOT / name).exists()] == []
    assert len(test_wheel.pinned(test_wheel.TEST_TOOLS)) >= len(test_wheel.TEST_TOOLS)


def test_ci_tests_the_wheel_and_the_coverage() -> None:
    ci = tooling(".ci/run")
    assert "make wheel" in ci
    assert "make coverage" in ci


@pytest.mark.parametrize("name", ["ci", "release"])
def test_the_workflows_run_what_everybody_can_run(name: str) -> None:
    workflow = yaml.safe_load(tooling(f".github/workflows/{name}.yaml"))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    commands = "\n".join(step.get("run", "") for step in steps)
    assert ".ci/run" in commands
    assert [script for script in re.findall(r"scripts/\w+\.py", commands) if not (ROOT / script).exists()] == []
    assert workflow["permissions"] == {"contents": "read"}, "no job has more rights than it names itself"


def test_workflows_pin_each_action_by_its_commit() -> None:
    """A tag can be moved to other code; the comment names the version for whoever renews the pin."""
    tooling(".github/workflows/release.yaml")
    files = [file.read_text(encoding="utf-8") for file in (ROOT / ".github").rglob("*.y*ml")]
    used = [action for text in files for action in re.findall(r"\buses: *(.+)", text)]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []


def test_the_forms_for_issues_can_be_filled_in() -> None:
    for name in ("bug", "feature"):
        form = yaml.safe_load(tooling(f".github/ISSUE_TEMPLATE/{name}.yml"))
        assert {"name", "description", "body"} <= form.keys()
        ids = [field["id"] for field in form["body"] if field["type"] != "markdown"]
        assert len(ids) == len(set(ids)) > 1


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_hooks_before_a_commit_run(tmp_path: Path) -> None:
    """The quick ones, in a project of one file: what they find stops the commit, and the rest passes."""
    config = yaml.safe_load(tooling(".pre-commit-config.yaml"))
    hooks = [hook for repository in config["repos"] for hook in repository["hooks"]]
    assert {hook["entry"].split()[0] for hook in hooks} <= {
        f".venv/bin/{tool}" for tool in ("codespell", "mypy", "python", "ruff")
    }
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    shutil.copy(ROOT / ".pre-commit-config.yaml", tmp_path)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "it.py").write_text('"""Recieve."""\n\nimport os\n', encoding="utf-8")
    environment = {**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home"), "SKIP": "mypy,layers,generated-docs"}
    for command in (["git", "init", "--quiet"], ["git", "add", "it.py"]):
        subprocess.run(command, cwd=tmp_path, env=environment, check=True, timeout=60)
    command = [sys.executable, "-m", "pre_commit", "run", "--files", "it.py"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    assert "F401" in done.stdout
    assert "Recieve ==> Receive" in done.stdout
    assert re.search(r"ruff \(format\)\.+Passed", done.stdout)


def test_the_page_about_installing_has_every_extra() -> None:
    pytest.importorskip("tomllib", reason="Python 3.10 has no reader of pyproject.toml")
    page = (ROOT / "docs" / "get-started" / "installation.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `\[(\w+)\]` \|", page, re.MULTILINE) == [*sorted(install_sizes.extras()), "all"]
    assert install_sizes.PURPOSES.keys() == set(install_sizes.extras())
