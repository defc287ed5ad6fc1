"""Writes requirements/dev.txt: what is installed in this environment, pinned. Run by ``make pin``."""

from __future__ import annotations

import re
from importlib import metadata
from pathlib import Path

HEADER = """\
# Everything that the tests and the demo run with, pinned; made by `make pin` from an environment in which `make test` passes.
# A package whose pinned version has left Python 3.10 behind is pinned from 3.11 on only.
"""
LEFT_OUT = {"otel-agenteval", "pip", "setuptools", "wheel"}


def pins() -> list[str]:
    """One requirement per installed distribution, by name."""
    found = {}
    for distribution in metadata.distributions():
        name = re.sub(r"[-_.]+", "-", distribution.name).lower()
        if name not in LEFT_OUT:
            needs = re.search(r">=\s*3\.(\d+)", distribution.metadata.get("Requires-Python") or "")
            marker = f' ; python_version >= "3.{needs[1]}"' if needs and int(needs[1]) > 10 else ""
            found[name] = f"{name}=={distribution.version}{marker}"
    return [found[name] for name in sorted(found)]


if __name__ == "__main__":
    Path(__file__).with_name("dev.txt").write_text(HEADER + "\n".join(pins()) + "\n", encoding="utf-8")
