"""Build the package, install it in a clean environment with the lowest versions of its dependencies, and run the core tests.

    python scripts/test_wheel.py              # lowest versions in pyproject.toml, all extras
    python scripts/test_wheel.py --newest     # newest available versions
    python scripts/test_wheel.py -- -k turns  # arguments after -- go to pytest

The wheel is built from the source distribution. The tests also come from the source distribution, without the package's source.
A pass therefore shows that both files are complete, and that the lowest versions in ``pyproject.toml`` work. Needs network access.
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
    *("celery", "gunicorn"),  # the newest FastAPI doesn't work with this project's lowest versions
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
"""Tests of the basis for agents, the command line and the sidecar. They need no external servers."""
_AT_LEAST = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?>=(?P<version>[0-9][0-9A-Za-z.]*)")


def lowest(project: Mapping[str, Any]) -> dict[str, str]:
    """Return the lowest allowed version of each dependency, including extras.

    Raises:
        ValueError: If a requirement has no lowest version, or a package has two.
    """
    extras = project["optional-dependencies"]
    requirements = [*project["dependencies"], *(one for extra in extras if extra not in {"all", "dev"} for one in extras[extra])]
    found: dict[str, str] = {}
    for requirement in requirements:
        match = _AT_LEAST.fullmatch(requirement)
        if match is None:
            raise ValueError(f"{requirement!r}: must have a lowest version; example: 'numpy>=2.0'")
        if found.setdefault(match["name"], match["version"]) != match["version"]:
            raise ValueError(f"{match['name']}: has two lowest versions: {found[match['name']]} and {match['version']}")
    return found


def pinned(names: Sequence[str]) -> list[str]:
    """Return the lines of requirements/dev.txt for some packages. A package can have one line for each range of Python versions.

    Raises:
        ValueError: If a package isn't locked.
    """
    text = (ROOT / "requirements" / "dev.txt").read_text(encoding="utf-8")
    found = [re.findall(rf"^{re.escape(name)}==.*$", text, re.MULTILINE) for name in names]
    if not all(found):
        raise ValueError(f"requirements/dev.txt: a version is missing for one of {', '.join(names)}. Run make pin")
    return [line for lines in found for line in lines]


def environment(folder: Path, *requirements: str) -> Path:
    """Create an environment with some packages, and return its Python."""
    venv.create(folder)
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", python, *requirements)
    return python


def run(*command: str | Path, cwd: Path = ROOT) -> None:
    """Run a command without this process's Python and OpenTelemetry variables.

    Raises:
        subprocess.CalledProcessError: If the command fails.
    """
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PYTEST", "OTEL_"))}
    subprocess.run([str(part) for part in command], cwd=cwd, env=clean, check=True)


def built(folder: Path) -> tuple[Path, Path]:
    """Build and return the source distribution, and the wheel from it, with pinned tools."""
    locked = str(ROOT / "requirements" / "build.txt")
    tools = environment(folder / "builder", "--no-deps", "--require-hashes", "--requirement", locked)
    environment(folder / "builder", "--no-deps", *pinned(["build", "pyproject-hooks"]))
    run(tools, "-m", "build", "--no-isolation", "--outdir", folder / "dist", ROOT)
    (source,), (wheel,) = (list((folder / "dist").glob(pattern)) for pattern in ("*.tar.gz", "*.whl"))
    return source, wheel


def tests_of(source: Path, folder: Path) -> Path:
    """Unpack the source distribution without the package, and return the folder."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # noqa: S202 - it was built here
    (root,) = folder.iterdir()
    shutil.rmtree(root / "otel_agenteval")
    return root


def constraints(folder: Path) -> list[str]:
    """Return pip options that allow only the lowest versions."""
    import tomllib  # needs Python 3.11. Only --newest runs with older versions

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    file = folder / "lowest.txt"
    file.write_text("".join(f"{name}=={version}\n" for name, version in lowest(project).items()), encoding="utf-8")
    return ["--constraint", str(file)]


def main(arguments: Sequence[str]) -> int:
    """Build, install and test. Return the exit status of the first step that failed."""
    parser = argparse.ArgumentParser(description="Test the built package with the lowest versions that it declares.")
    parser.add_argument("--newest", action="store_true", help="install the newest versions instead of the lowest")
    parser.add_argument("pytest", nargs="*", metavar="PYTEST_ARGUMENT", help=f"default: {' '.join(CORE_TESTS)}")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as name:
        folder = Path(name)
        try:
            print("==> building the source distribution, then the wheel from it", flush=True)
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
                print("==> running failed tests again, one at a time", flush=True)
                run(python, "-m", "pytest", "-q", "--last-failed", "--last-failed-no-failures", "none", *chosen, cwd=root)
        except subprocess.CalledProcessError as failed:
            return int(failed.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
