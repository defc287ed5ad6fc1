"""Lock what is installed here, for every supported Python at once, or check that each of them can install it. Run by ``make pin``.

python requirements/pin.py             keep the locked versions that still fit pyproject.toml
python requirements/pin.py --upgrade   take the newest versions
python requirements/pin.py --check     resolve each file for each Python, and install nothing
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.10.0", "3.11.2", "3.12.0", "3.13.0", "3.14.0")
"""The oldest release of each Python that a distribution ships."""
PLATFORMS = ("x86_64-manylinux_2_34", "aarch64-manylinux_2_34")
"""The oldest C library of a distribution that ships Python 3.10 or newer."""
FROM_SOURCE = ("rouge-score", "wordllama")
"""Packages without wheels: ``rouge-score`` has none, ``wordllama`` none for Python 3.14 and aarch64."""
IMAGE_PYTHON = "3.12"
IMAGE_EXTRAS = ("cost", "postgres", "redis", "serve", "structured", "text")


@dataclass(frozen=True)
class Lock:
    """A file of pinned versions.

    Args:
        wanted: the requirements, as arguments of ``uv pip compile``.
        how: more arguments, for writing the file.
        beside: the lock of the environment that the file is installed into.
        pythons: the versions that must be able to install the file.
    """

    wanted: tuple[str, ...]
    how: tuple[str, ...] = ("--universal", "--python-version", "3.10")
    beside: str | None = None
    pythons: tuple[str, ...] = PYTHONS


_HASHED = ("--generate-hashes", "--only-binary", ":all:", "--python-version", IMAGE_PYTHON, "--python-platform", PLATFORMS[0])
LOCKS = {
    "dev.txt": Lock(("--extra", "all", "--extra", "dev", "pyproject.toml")),
    "docs.txt": Lock(("--group", "docs"), beside="dev.txt"),
    "image.txt": Lock(
        (*(part for extra in IMAGE_EXTRAS for part in ("--extra", extra)), "pyproject.toml"), _HASHED, "dev.txt", (IMAGE_PYTHON,)
    ),
    "build.txt": Lock(("--group", "build"), _HASHED, pythons=(IMAGE_PYTHON,)),
}


def write(name: str, more: Sequence[str] = (), root: Path = ROOT) -> None:
    """Write one lock.

    Raises:
        subprocess.CalledProcessError: no versions satisfy all requirements.
    """
    lock = LOCKS[name]
    file = ("--custom-compile-command", "make pin", "--output-file", f"requirements/{name}")
    _compile(lock, (*file, *lock.how, *more), [lock.beside], root)


def faults(root: Path = ROOT) -> Iterator[str]:
    """Yield, for each Python that can't install a lock, the reason."""
    cases = [(name, python, platform) for name, lock in LOCKS.items() for python in lock.pythons for platform in PLATFORMS]
    with ThreadPoolExecutor(2) as pool:
        for case, fault in zip(cases, pool.map(lambda case: _fault(*case, root), cases), strict=True):
            if fault:
                name, python, platform = case
                yield f"requirements/{name}: Python {python} on {platform}: {fault}; run make pin"


def _fault(name: str, python: str, platform: str, root: Path) -> str:
    how = ("--no-header", "--python-version", python, "--python-platform", platform, "--only-binary", ":all:")
    how += tuple(part for package in FROM_SOURCE for part in ("--no-binary", package))
    try:
        resolved = _compile(LOCKS[name], how, [name, LOCKS[name].beside], root)
    except subprocess.CalledProcessError as failed:
        return str(failed.stderr).strip()
    locked = set(re.findall(r"^[^\s#]+==[^\s;]+", (root / "requirements" / name).read_text(encoding="utf-8"), re.MULTILINE))
    return ", ".join(f"{pin} isn't locked" for pin in resolved.split() if pin not in locked)


def _compile(lock: Lock, how: Sequence[str], constraints: Sequence[str | None], root: Path) -> str:
    uv = [sys.executable, "-m", "uv", "pip", "compile", "--python", sys.executable]
    beside = [part for name in constraints if name for part in ("--constraint", f"requirements/{name}")]
    command = [*uv, "--quiet", "--no-annotate", "--system-certs", *beside, *how, *lock.wanted]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout


def main(arguments: Sequence[str]) -> int:
    """Write the locks, or check them; return 1 if that fails."""
    if "--check" in arguments:
        found = list(faults())
        print(*found, sep="\n", end="\n" if found else "", file=sys.stderr)
        return int(bool(found))
    for name in LOCKS:
        try:
            write(name, arguments)
        except subprocess.CalledProcessError as failed:
            print(f"requirements/{name}: {failed.stderr}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
