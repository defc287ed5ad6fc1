"""Run one agent in each kind of host program, in separate environments, and record in which kinds each turn gets its scores.

    python scripts/hosts.py                    all installed Python versions, with the newest and the oldest SDK
    python scripts/hosts.py --python 3.13      only this Python version
    python scripts/hosts.py --write            also writes the table of docs/reference/compatibility.md

The kinds are threads, asyncio, uvloop, gevent, ``opentelemetry-instrument`` (opentelemetry-distro), and programs that use the
tracer provider of Logfire or Langfuse. The agent is ``tests/support/host_agent.py``. It runs concurrent turns, each with its own
references. Needs network access.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT)] if str(ROOT) not in sys.path else []

from scripts.test_wheel import built  # noqa: E402 - found only now
from tests.support import host_agent  # noqa: E402 - the same

AGENT = Path(host_agent.__file__)
PAGE = ROOT / "docs" / "reference" / "compatibility.md"
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
NEEDS = {
    "threads": "",
    "asyncio": "",
    "uvloop": "uvloop",
    "gevent": "gevent",
    "distro": "opentelemetry-distro",
    "logfire": "logfire",
    "langfuse": "langfuse",
}
"""Package that each kind needs in addition."""
_SECONDS = 600


@dataclass
class Result:
    python: str
    sdk: str
    kind: str
    good: bool
    why: str = ""
    """Short reason for a failure."""


def interpreter(version: str) -> str | None:
    """Return the path of a Python interpreter of this version, or None if none runs."""
    candidates = [f"python{version}", *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        candidates.insert(0, sys.executable)
    for candidate in candidates:
        try:
            said = subprocess.run(
                [candidate, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):  # a pyenv shim fails if its version isn't selected
            continue
        return said.stdout.strip()
    return None


def oldest_sdk() -> str:
    """Return the lowest version of the SDK in ``pyproject.toml``."""
    found = re.search(r'"opentelemetry-sdk>=([0-9.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def clean_environment() -> dict[str, str]:
    """Return this process's environment variables, except those that affect Python or its SDK."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "OTEL_", "VIRTUAL_ENV"))}


def environment(folder: Path, python: str, wheel: Path, *requirements: str) -> str:
    """Create an environment with the package and more requirements. Return its Python, or "" if pip fails."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True, env=clean_environment())
    inside = str(folder / "bin" / "python")
    install = [
        inside,
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--quiet",
        "--prefer-binary",
        str(wheel),
        *requirements,
    ]
    return inside if subprocess.run(install, env=clean_environment(), check=False).returncode == 0 else ""


def run_kind(python: str, kind: str) -> str:
    """Run the agent. Return what is wrong, or "" if every turn got its scores."""
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as folder:
        command, more = [python, str(AGENT), kind, folder], {}
        if kind == "distro":
            command[:1] = [str(Path(python).with_name("opentelemetry-instrument")), python]
            more = _variables(Path(folder))
        try:
            done = subprocess.run(
                command, env=clean_environment() | more, cwd=folder, capture_output=True, text=True, timeout=_SECONDS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"not finished within {_SECONDS} s"
    return difference(done.returncode, done.stdout, done.stderr)


def difference(status: int, out: str, err: str) -> str:
    """Return what is wrong with a run, or "" if it is as expected."""
    if status:
        return (err.strip().splitlines() or [f"exit status {status}"])[-1]
    outcome = json.loads(out.strip().splitlines()[-1])
    wrong = {key: outcome.get(key) for key, right in host_agent.expected().items() if outcome.get(key) != right}
    return f"instead: {json.dumps(wrong)}" if wrong else ""


def _variables(folder: Path) -> dict[str, str]:
    """Return environment variables that configure ``opentelemetry-instrument``."""
    config = folder / "agenteval.yaml"
    config.write_text(f"inline: {{metrics: {json.dumps(host_agent.METRICS)}}}\noutlets: {{prometheus: null}}\n", encoding="utf-8")
    return {
        "OTEL_AGENTEVAL_ENABLED": "true",
        "OTEL_AGENTEVAL_CONFIG_FILE": str(config),
        "OTEL_AGENTEVAL_OUTLETS__JSONL": str(folder / "scores.jsonl"),
        "OTEL_AGENTEVAL_INLINE__EXPECTED": "false",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
    }


def results(pythons: Mapping[str, str], wheel: Path, folder: Path) -> Iterator[Result]:
    """Yield a result for each kind and environment. Kinds that pip can't install with the oldest SDK are left out."""
    for version, python in pythons.items():
        for sdk, pin in (("newest", "opentelemetry-sdk"), ("oldest", f"opentelemetry-sdk=={oldest_sdk()}")):
            base = environment(folder / f"{version}-{sdk}", python, wheel, pin)
            for kind, needed in NEEDS.items():
                inside = environment(folder / f"{version}-{sdk}-{kind}", python, wheel, pin, needed) if needed else base
                if not inside and sdk == "oldest" and kind not in ("threads", "asyncio"):
                    continue
                why = run_kind(inside, kind) if inside else "can't be installed"
                print(f"{'ok    ' if not why else 'FAILED'} Python {version}, {sdk} SDK, {kind}  {why}", flush=True)
                yield Result(version, sdk, kind, not why, why)


def table(found: list[Result]) -> str:
    """Return a Markdown table with one row per kind and one column per environment."""
    columns = list(dict.fromkeys((one.python, one.sdk) for one in found))
    by_place = {(one.kind, one.python, one.sdk): one for one in found}
    sdks = {"newest": "newest SDK", "oldest": f"SDK {oldest_sdk()}"}
    lines = [
        "| Program | " + " | ".join(f"Python {python}, {sdks[sdk]}" for python, sdk in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for kind in NEEDS:
        cells = [by_place.get((kind, *column)) for column in columns]
        lines.append(f"| {kind} | " + " | ".join("–" if one is None else "yes" if one.good else "**no**" for one in cells) + " |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", choices=PYTHONS, help="only these versions")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reference/compatibility.md")
    options = parser.parse_args()
    pythons = {version: found for version in options.python or PYTHONS if (found := interpreter(version))}
    for version in set(options.python or ()) - set(pythons):
        parser.error(f"Python {version} isn't installed")
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as name:
        print("==> building the wheel", flush=True)
        _, wheel = built(Path(name))
        found = list(results(pythons, wheel, Path(name)))
    text = table(found)
    print(text)
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        head, _, rest = page.partition("<!-- hosts -->\n")
        _, _, tail = rest.partition("<!-- end of hosts -->")
        PAGE.write_text(f"{head}<!-- hosts -->\n\n{text}\n\n<!-- end of hosts -->{tail}", encoding="utf-8")
    return int(not all(one.good for one in found))


if __name__ == "__main__":
    sys.exit(main())
