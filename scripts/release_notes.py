"""Print the release notes: a version's section of CHANGELOG.md, with links to the files of its tag.

    python scripts/release_notes.py 0.1.0               # prints the notes of version 0.1.0
    python scripts/release_notes.py 0.1.0 --close       # first renames the section "Unreleased" to 0.1.0, with today's date

The changelog is written by hand, one entry with each change.
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
    """Raised if CHANGELOG.md lacks information for a release."""


def notes(changelog: str, version: str, repository: str = "") -> str:
    """Return a version's section, without its heading.

    Args:
        changelog: the whole file.
        version: as in the heading, ``## [1.2.3] - 2026-12-01``.
        repository: its address. If set, links to repository files lead to the files of the release.

    Raises:
        ChangelogError: If the section is missing or empty, or its heading has no date.
    """
    headings = {heading["name"]: heading for heading in _HEADING.finditer(changelog)}
    if version not in headings:
        raise ChangelogError(f"CHANGELOG.md has no section [{version}]. Sections: {', '.join(headings) or 'none'}")
    heading = headings[version]
    if not re.fullmatch(r" - \d{4}-\d\d-\d\d", heading["rest"]):
        raise ChangelogError(f"CHANGELOG.md: the heading of [{version}] has no date, must be '## [{version}] - YYYY-MM-DD'")
    following = _HEADING.search(changelog, heading.end())
    text = changelog[heading.end() : following.start() if following else len(changelog)].strip()
    if not text:
        raise ChangelogError(f"CHANGELOG.md: the section [{version}] is empty")
    if repository:
        text = _LINK.sub(rf"\g<1>{repository.rstrip('/')}/blob/v{version}/\g<2>\g<3>", text)
    return text + "\n"


def closed(changelog: str, version: str, day: datetime.date) -> str:
    """Rename the unreleased section to a version, and add a new unreleased section above it.

    Raises:
        ChangelogError: If there is no unreleased section, or the version already has a section.
    """
    headings = {heading["name"]: heading for heading in _HEADING.finditer(changelog)}
    if version in headings:
        raise ChangelogError(f"CHANGELOG.md already has a section [{version}]")
    if "Unreleased" not in headings:
        raise ChangelogError("CHANGELOG.md has no section [Unreleased]")
    heading = headings["Unreleased"]
    return f"{changelog[: heading.start()]}{_EMPTY}## [{version}] - {day:%Y-%m-%d}{changelog[heading.end() :]}"


def package_version() -> str:
    """Return the version of the package.

    Raises:
        ChangelogError: If the version line is missing.
    """
    found = _VERSION.search((ROOT / "otel_agenteval" / "core" / "version.py").read_text(encoding="utf-8"))
    if found is None:
        raise ChangelogError('otel_agenteval/core/version.py has no line __version__ = "…"')
    return found[1]


def main(arguments: list[str]) -> int:
    """Print the notes. Return 1 if there are none."""
    parser = argparse.ArgumentParser(description="Print the notes of a release from CHANGELOG.md.")
    parser.add_argument("version")
    parser.add_argument("--close", action="store_true", help="first rename the section Unreleased to this version")
    parser.add_argument("--repository", default="", metavar="URL", help="repository address for links to files of the tag")
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
