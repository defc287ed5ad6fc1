"""Build the package, install it in a clean environment with the lowest versions that it declares, and run the core tests there.

    python scripts/test_wheel.py              # the lowest versions of pyproject.toml, all extras
    python scripts/test_wheel.py --newest     # the newest versions that the index has instead
    python scripts/test_wheel.py -- -k turns  # what follows goes to pytest

The wheel is built from the source distribution, and the tests are those of the source distribution without the package beside them. So
this shows that both are complete, and that what ``pyproject.toml`` promises about older versions is true. It needs the network.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TEST_TOOLS = (
    *("cryptography", "hypothesis", "networkx", "nltk", "psutil", "pytest", "pytest-xdist", "rouge-score"),
    *("celery", "gunicorn"),  # FastAPI's newest needs newer packages than the lowest that this project allows
)
CORE_TESTS = (
    "tests/dialects",
    "tests/instrumentation",
    "tests/judging/test_queues.py",
    "tests/judging/test_sampling.py",
    "tests/metrics",
    "tests/outlets",
    "tests/report",
    "tests/server/test_wire.py",
    "tests/test_cli.py",
    "tests/test_config.py",
    "tests/test_fresh_import.py",
    "tests/test_public_api.py",
    "tests/test_redaction.py",
    "tests/test_references.py",
    "tests/test_registry.py",
    "tests/turns",
)
"""What an agent, the command line and the sidecar stand on; no test of these needs a server that is not part of the package."""
_AT_LEAST = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=(?P<version>[0-9][0-9A-Za-z.]*)")


def lowest(project: Mapping[str, Any]) -> dict[str, str]:
    """The lowest version of each package that the project needs, extras included, by its name.

    Raises:
        ValueError: a requirement names no lowest version, or two of them name different ones.
    """
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(one for extra in extras if extra not in {"all", "dev"} for one in extras[extra])]
    found: dict[str, str] = {}
    for requirement in requirements:
        match = _AT_LEAST.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r} must name its lowest version, as in 'numpy>=2.0'")
        if found.setdefault(match["name"], match["version"]) != match["version"]:
            raise ValueError(f"{match['name']} has two lowest versions: {found[match['name']]} and {match['version']}")
    return found


def pinned(names: Sequence[str]) -> list[str]:
    """Return the lines of requirements/dev.txt for some packages: one, or one for each range of Pythons.

    Raises:
        ValueError: a package isn't locked.
    """
    text = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    found = [re.findall(rf"^{re.escape(name)}==.*$", text, re.MULTILINE) for name in names]
    if not all(found):
        raise ValueError(f"requirements/dev.txt: no line for one of {', '.join(names)}; run make pin")
    return [line for lines in found for line in lines]


def environment(folder: Path, *requirements: str) -> Path:
    """The Python of a new environment with some packages."""
    venv.create(folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *requirements)
    return python


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a program that must succeed, without what this process has on its path.

    Raises:
        subprocess.CalledProcessError: it failed.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "OTEL_"))}
    subprocess.run([str(part) for part in command], cwd=cwd, env=clean, check=True)


def built(folder: Path) -> tuple[Path, Path]:
    """The source distribution and the wheel that was built from it, with the pinned tools."""
    locked = str(ROOT / "requirements" / "build.txt")
    tools = environment(folder / "builder", "--no-deps", "--require-hashes", "--requirement", locked)
    environment(folder / "builder", "--no-deps", *pinned(["build", "pyproject-hooks"]))
    run(tools, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT)
    (source,), (wheel,) = (list((folder / "dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    return source, wheel


def tests_of(source: Path, folder: Path) -> Path:
    """A folder with everything of the source distribution but the package."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # noqa: S202 - it was built here
    (root,) = folder.iterdir()
    shutil.rmtree(root / "otel_agenteval")
    return root


def constraints(folder: Path) -> list[str]:
    """Options for pip that allow no other than the lowest versions."""
    import tomllib  # the lowest versions are tried with Python 3.11, the newest with all

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    file = folder / "lowest.txt"
    file.write_text("".join(f"{name}=={version}\n" for name, version in lowest(project).items()), encoding="utf-8")
    return ["--constraint", str(file)]


def main(arguments: Sequence[str]) -> int:
    """Build, install and test; the exit status is that of the step that failed."""
    parser = argparse.ArgumentParser(description="Test the built package with the lowest versions that it declares.")
    parser.add_argument("--newest", action="store_true", help="install the newest versions instead of the lowest")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST_ARGUMENT", help=f"default: {' '.join(CORE_TESTS)}")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as name:
        folder = Path(name)
        try:
            print("==> building the source distribution, and the wheel from it", flush=True)
            source, wheel = built(folder)
            which = "newest" if options.newest else "lowest"
            print(f"==> installing the wheel with the {which} versions", flush=True)
            limits = [] if options.newest else constraints(folder)
            python = environment(folder / "clean", *limits, f"{wheel}[all]", *pinned(TEST_TOOLS))
            run(sys.executable, "-m", "uv", "pip", "check", "--quiet", "--python", python)
            print("==> running the core tests against it", flush=True)
            (folder / "source").mkdir()
            root = tests_of(source, folder / "source")
            chosen = ("-m", "not slow", *(options.pytest or CORE_TESTS))
            try:
                run(python, "-m", "pytest", "-q", "--numprocesses", "auto", "--dist", "worksteal", *chosen, cwd=root)
            except subprocess.CalledProcessError:
                print("==> once more, alone, what failed", flush=True)
                run(python, "-m", "pytest", "-q", "--last-failed", "--last-failed-no-failures", "none", *chosen, cwd=root)
        except subprocess.CalledProcessError as failed:
            return int(failed.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
