"""List of installed packages, and detection of instrumentations that can't record spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

_OF_THEIR_TARGET = re.compile(r"""extra\s*==\s*['"]instruments(?:-any)?['"]""")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_GROUPS = ("opentelemetry_instrumentor", "openinference_instrumentor")


class Instrumentation(NamedTuple):
    name: str
    version: str
    targets: tuple[str, ...]
    """Packages that the instrumentation supports."""
    unmet: tuple[str, ...]
    """Requirements on the targets' versions that the installed packages don't meet."""
    module: str = ""
    """Module of the instrumentation, usually also the scope of its spans."""
    enabled_by: str = ""
    """Name of the instrumentation's class in :attr:`module`, such as ``LangChainInstrumentor``."""

    @property
    def is_broken(self) -> bool:
        """True if targets are installed, but only in unsupported versions. In this case, spans aren't recorded."""
        return len(self.unmet) == len(self.targets) > 0 and any(target in installed() for target in self.targets)


@cache
def installed() -> dict[str, str]:
    import importlib.metadata

    found: dict[str, str] = {}
    for one in importlib.metadata.distributions():
        if name := one.metadata["Name"]:
            found.setdefault(normal(name), one.version)
    return found


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def instrumentations() -> Iterator[Instrumentation]:
    import importlib.metadata

    for one in importlib.metadata.distributions():
        name = one.metadata["Name"]
        entry = next((entry for entry in one.entry_points if entry.group in _GROUPS), None)
        if not name or entry is None:
            continue
        asked = [text.partition(";")[0].strip() for text in one.requires or () if _OF_THEIR_TARGET.search(text)]
        targets = [found[0] for text in asked if (found := _NAME.match(text)) is not None]
        unmet = [text for text in asked if not _is_met(text)]
        yield Instrumentation(normal(name), one.version, tuple(map(normal, targets)), tuple(unmet), entry.module, entry.attr)


def broken() -> list[str]:
    """Describe each instrumentation that can't record spans because the instrumented package has an unsupported version."""
    return [f"{one.name} {one.version} needs {' or '.join(one.unmet)}" for one in sorted(instrumentations()) if one.is_broken]


def _is_met(requirement: str) -> bool:
    try:
        from packaging.requirements import Requirement  # a dependency of every instrumentation

        wanted = Requirement(requirement)
    except (ImportError, ValueError):
        return True
    version = installed().get(normal(wanted.name))
    return version is not None and wanted.specifier.contains(version, prereleases=True)
