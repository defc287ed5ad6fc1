"""Print the notes of a release: the section of its version in CHANGELOG.md, with links that lead into its tag.

    python scripts/release_notes.py 0.1.0               # what the release page says
    python scripts/release_notes.py 0.1.0 --close       # first gives the section "Unreleased" that version and today's date

The changelog is written by hand, entry by entry, with the change that it is about. Nothing else is written for a release.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
_HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?P<rest>.*)$", re.MULTILINE)
_LINK = re.compile(r"(\[[^\]]*\]\()(?![a-z]+:|#)([^)\s]+)(\))")
_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_EMPTY = "## [Unreleased]\n\n"


class ChangelogError(Exception):
    """The changelog does not say what a release needs."""


def notes(changelog: str, version: str, repository: str = "") -> str:
    """The text of a version's section, without its heading.

    Args:
        changelog: the whole file.
        version: as in the heading, ``## [1.2.3] - 2026-12-01``.
        repository: its address; given, links to files of the repository lead to them as they are in the release.

    Raises:
        ChangelogError: there is no such section, it has no date, or it is empty.
    """
    headings = {heading["name"]: heading for heading in _HEADING.finditer(changelog)}
    if version not in headings:
        raise ChangelogError(f"CHANGELOG.md has no section [{version}]; its sections are: {', '.join(headings) or 'none'}")
    heading = headings[version]
    if not re.fullmatch(r" - \d{4}-\d\d-\d\d", heading["rest"]):
        raise ChangelogError(f"CHANGELOG.md: the heading of [{version}] must end in its date: ## [{version}] - YYYY-MM-DD")
    following = _HEADING.search(changelog, heading.end())
    text = changelog[heading.end() : following.start() if following else len(changelog)].strip()
    if not text:
        raise ChangelogError(f"CHANGELOG.md: the section [{version}] is empty")
    if repository:
        text = _LINK.sub(rf"\g<1>{repository.rstrip('/')}/blob/v{version}/\g<2>\g<3>", text)
    return text + "\n"


def closed(changelog: str, version: str, day: datetime.date) -> str:
    """The changelog with its unreleased section named by a version, and a new unreleased section above it.

    Raises:
        ChangelogError: nothing is unreleased, or the version has a section already.
    """
    headings = {heading["name"]: heading for heading in _HEADING.finditer(changelog)}
    if version in headings:
        raise ChangelogError(f"CHANGELOG.md has a section [{version}] already")
    if "Unreleased" not in headings:
        raise ChangelogError("CHANGELOG.md has no section [Unreleased]")
    heading = headings["Unreleased"]
    return f"{changelog[: heading.start()]}{_EMPTY}## [{version}] - {day:%Y-%m-%d}{changelog[heading.end() :]}"


def package_version() -> str:
    """The version that the package says it has.

    Raises:
        ChangelogError: it says none.
    """
    found = _VERSION.search((ROOT / "otel_agenteval" / "core" / "version.py").read_text(encoding="utf-8"))
    if found is None:
        raise ChangelogError('otel_agenteval/core/version.py has no line __version__ = "…"')
    return found[1]


def main(arguments: list[str]) -> int:
    """Print the notes; exit status 1 when there are none to print."""
    parser = argparse.ArgumentParser(description="Print the notes of a release from CHANGELOG.md.")
    parser.add_argument("version")
    parser.add_argument("--close", action="store_true", help="first give the section Unreleased this version and today's date")
    parser.add_argument("--repository", default="", metavar="URL", help="make links to files of the repository lead to its tag")
    options = parser.parse_args(arguments)
    file = ROOT / "CHANGELOG.md"
    try:
        if options.version != package_version():
            raise ChangelogError(f"the package has version {package_version()}, not {options.version}")
        changelog = file.read_text(encoding="utf-8")
        if options.close:
            changelog = closed(changelog, options.version, datetime.datetime.now(datetime.timezone.utc).date())
            file.write_text(changelog, encoding="utf-8")
        sys.stdout.write(notes(changelog, options.version, options.repository))
    except ChangelogError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
