"""Release notes from the changelog, the lowest tested versions, and actions pinned by commit."""

from __future__ import annotations

import datetime
import re
from pathlib import Path

import pytest

from tests.support.modules import module_of

ROOT = Path(__file__).parent.parent
release_notes = module_of(ROOT / "scripts" / "release_notes.py")
test_wheel = module_of(ROOT / "scripts" / "test_wheel.py")
test_wheel.__test__ = False
DAY = datetime.date(2026, 12, 24)
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


def test_the_notes_of_a_release_are_its_section_with_links_into_the_release() -> None:
    heading, _, last = release_notes.notes(CHANGELOG, "0.2.0", "https://example.org/us/it/").splitlines()
    assert heading == "### Fixed"
    assert "[turns](https://example.org/us/it/blob/v0.2.0/docs/turns.md), [above](#changelog)" in last
    assert "[the standard](https://example.org)." in last


@pytest.mark.parametrize("version", ["0.3.0", "0.1.0", "0.0.1"], ids=["no section", "no date", "nothing in it"])
def test_a_changelog_that_does_not_say_what_changed_makes_no_release(version: str) -> None:
    with pytest.raises(release_notes.ChangelogError):
        release_notes.notes(CHANGELOG, version)


def test_closing_names_and_dates_what_was_unreleased() -> None:
    changelog = release_notes.closed(CHANGELOG, "0.3.0", DAY)
    assert "## [Unreleased]\n\n## [0.3.0] - 2026-12-24\n\n### Added\n\n- Something.\n" in changelog
    assert release_notes.notes(changelog, "0.3.0") == "### Added\n\n- Something.\n"
    with pytest.raises(release_notes.ChangelogError):
        release_notes.closed(changelog, "0.3.0", DAY)


def test_the_changelog_can_be_released_as_it_is() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert release_notes.notes(release_notes.closed(changelog, "99.0.0", DAY), "99.0.0").startswith("### ")


@pytest.mark.parametrize(("dependencies", "extras"), [(["numpy"], {}), (["numpy>2"], {}), (["numpy>=2"], {"a": ["numpy>=1"]})])
def test_a_requirement_without_one_lowest_version_is_refused(dependencies: list[str], extras: dict[str, list[str]]) -> None:
    with pytest.raises(ValueError, match="numpy"):
        test_wheel.lowest({"dependencies": dependencies, "optional-dependencies": extras})


def test_workflows_pin_each_action_by_its_commit() -> None:
    """A tag can be moved to other code. The comment names the version for the next update."""
    if not (ROOT / ".github").exists():
        pytest.skip("workflows are not part of the source distribution")
    files = [file.read_text(encoding="utf-8") for file in (ROOT / ".github").rglob("*.y*ml")]
    used = [action for text in files for action in re.findall(r"\buses: *(.+)", text)]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
