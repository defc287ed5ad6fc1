"""Writes what is pinned here. Run by ``make pin``.

    dev.txt    what is installed in this environment
    image.txt  what the image installs: the same versions, of the packages that it needs, with the hashes that the index has published
    build.txt  the same, of what builds the package

Hashes come from pip's own reports, for Linux on both architectures; pip knows the index.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

HERE = Path(__file__).parent
IMAGE_PYTHON = "3.12"
IMAGE_EXTRAS = ("cost", "encryption", "postgres", "privacy", "redis", "serve", "structured", "text")
PLATFORMS = ("x86_64", "aarch64")
LIBC = ("manylinux_2_36", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
"""Of the image's base, and the older ones that run on it."""

HEADER = """\
# Everything that the tests and the demo run with, pinned; made by `make pin` from an environment in which `make test` passes.
# A package whose pinned version has left Python 3.10 behind is pinned from 3.11 on only.
"""
HASHED_HEADER = """\
# {what}, pinned and with the hashes of its wheels for Linux (x86_64 and aarch64, Python {python}); made by `make pin`.
# pip install --require-hashes takes nothing else.
"""
LEFT_OUT = {"otel-agenteval", "pip", "setuptools", "wheel"}


def pins() -> list[str]:
    """One requirement per installed distribution, by name."""
    found = {}
    for distribution in metadata.distributions():
        name = normal(distribution.name)
        if name not in LEFT_OUT:
            needs = re.search(r">=\s*3\.(\d+)", distribution.metadata.get("Requires-Python") or "")
            marker = f' ; python_version >= "3.{needs[1]}"' if needs and int(needs[1]) > 10 else ""
            found[name] = f"{name}=={distribution.version}{marker}"
    return [found[name] for name in sorted(found)]


def normal(name: str) -> str:
    """A distribution's name as indexes spell it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def wanted(extras: Sequence[str]) -> list[str]:
    """The requirements of the package with some of its extras."""
    import tomllib

    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [*project["dependencies"], *(one for extra in extras for one in project["optional-dependencies"][extra])]


def build_tools() -> list[str]:
    """What builds the package."""
    import tomllib

    return list(tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"])


def hashed(requirements: Sequence[str], constraints: Path | None) -> list[str]:
    """The requirements and all that they need: one line per distribution, with the hashes for every platform.

    Raises:
        subprocess.CalledProcessError: pip finds no versions that go together, or no wheel of one of them.
    """
    found: dict[str, set[str]] = {}
    for machine in PLATFORMS:
        for name, version, digest in _resolved(requirements, constraints, machine):
            found.setdefault(f"{normal(name)}=={version}", set()).add(digest)
    return [" \\\n".join([pin, *(f"    --hash=sha256:{digest}" for digest in sorted(found[pin]))]) for pin in sorted(found)]


def _resolved(requirements: Sequence[str], constraints: Path | None, machine: str) -> Iterable[tuple[str, str, str]]:
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--quiet", "--ignore-installed", "--report", "-"]
    command += ["--target", "unused", "--only-binary", ":all:", "--implementation", "cp", "--python-version", IMAGE_PYTHON]
    command += [part for libc in LIBC for part in ("--platform", f"{libc}_{machine}")]
    command += ["--constraint", str(constraints)] if constraints is not None else []
    done = subprocess.run([*command, *requirements], stdout=subprocess.PIPE, text=True, check=True)  # noqa: S603 - from our own files
    for item in json.loads(done.stdout)["install"]:
        about = item["metadata"]
        yield about["name"], about["version"], item["download_info"]["archive_info"]["hashes"]["sha256"]


def main() -> None:
    """Write the files."""
    dev = HERE / "dev.txt"
    dev.write_text(HEADER + "\n".join(pins()) + "\n", encoding="utf-8")
    for name, what, requirements, constraints in (
        ("image.txt", "What the image installs", wanted(IMAGE_EXTRAS), dev),
        ("build.txt", "What builds the package", build_tools(), None),
    ):
        header = HASHED_HEADER.format(what=what, python=IMAGE_PYTHON)
        (HERE / name).write_text(header + "\n".join(hashed(requirements, constraints)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
