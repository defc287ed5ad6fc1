"""What is installed in this Python, as far as it tells why nothing is traced."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_OF_THEIR_TARGET = re.compile(r"""extra\s*==\s*['"]instruments(?:-any)?['"]""")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_GROUPS = ("opentelemetry_instrumentor", "openinference_instrumentor")


class Instrumentation(NamedTuple):
    """A package that traces another one."""

    name: str
    version: str
    targets: tuple[str, ...]
    """Names of the packages that it traces; it may know several of which one is enough."""
    unmet: tuple[str, ...]
    """What it asks of them and they do not have."""

    @property
    def is_broken(self) -> bool:
        """Whether its library is there, and in no version that it knows: it does not trace at all then, and says so in a log line at most."""
        return len(self.unmet) == len(self.targets) > 0 and any(target in installed() for target in self.targets)


@cache
def installed() -> dict[str, str]:
    """Versions of all packages, by their names in normal form."""
    found: dict[str, str] = {}
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        if name:
            found.setdefault(normal(name), one.version)
    return found


def normal(name: str) -> str:
    """A package's name as it is compared: ``Google_ADK`` is ``google-adk``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def instrumentations() -> Iterator[Instrumentation]:
    """Those that are installed, with what keeps them from tracing."""
    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        if not name or not any(entry.group in _GROUPS for entry in one.entry_points):
            continue
        asked = [text.partition(";")[0].strip() for text in one.requires or () if _OF_THEIR_TARGET.search(text)]
        targets = [found[0] for text in asked if (found := _NAME.match(text)) is not None]
        unmet = [text for text in asked if not _is_met(text)]
        yield Instrumentation(normal(name), one.version, tuple(map(normal, targets)), tuple(unmet))


def broken() -> list[str]:
    """Instrumentations that do not trace, because their library is there in a version that they do not know; a few words about each."""
    return [f"{one.name} {one.version} needs {' or '.join(one.unmet)}" for one in sorted(instrumentations()) if one.is_broken]


def _is_met(requirement: str) -> bool:
    """Whether a requirement is met by what is installed; taken for met where nobody can say."""
    try:
        from packaging.requirements import InvalidRequirement, Requirement  # instrumentations bring it along
    except ImportError:
        return True
    try:
        wanted = Requirement(requirement)
    except InvalidRequirement:
        return True
    version = installed().get(normal(wanted.name))
    return version is not None and wanted.specifier.contains(version, prereleases=True)
