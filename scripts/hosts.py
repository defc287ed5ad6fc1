"""Run one agent under every kind of host program, in environments of their own, and write down which of them give each turn its scores.

    python scripts/hosts.py                    every Python that is found, with the newest and the oldest SDK
    python scripts/hosts.py --python 3.13      one Python
    python scripts/hosts.py --write            also write the table of docs/reference/compatibility.md

A kind is threads, asyncio, uvloop, gevent, ``opentelemetry-instrument`` (opentelemetry-distro), and programs whose tracer provider is
Logfire's or Langfuse's. ``tests/support/host_agent.py`` is the agent: concurrent turns, each with references of its own. It needs the network.
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
"""What each kind needs beside the package."""
_SECONDS = 600


@dataclass
class Result:
    """What came of one kind in one environment."""

    python: str
    sdk: str
    kind: str
    good: bool
    why: str = ""
    """What was wrong, in a few words."""


def interpreter(version: str) -> str | None:
    """The command of a Python of this version, None when there is none that runs."""
    candidates = [f"python{version}", *map(str, Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))]
    if f"{sys.version_info.major}.{sys.version_info.minor}" == version:
        candidates.insert(0, sys.executable)
    for candidate in candidates:
        try:
            said = subprocess.run(
                [candidate, "-c", "import sys; print(sys.executable)"], capture_output=True, text=True, check=True
            )
        except (OSError, subprocess.CalledProcessError):  # a shim of a version that is not chosen fails
            continue
        return said.stdout.strip()
    return None


def oldest_sdk() -> str:
    """The lowest version of the SDK that the package declares."""
    found = re.search(r'"opentelemetry-sdk>=([0-9.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert found is not None
    return found[1]


def clean_environment() -> dict[str, str]:
    """This process's variables without those that would change another Python or its SDK."""
    return {name: text for name, text in os.environ.items() if not name.startswith(("PYTHON", "OTEL_", "VIRTUAL_ENV"))}


def environment(folder: Path, python: str, wheel: Path, *requirements: str) -> str:
    """The Python of a new environment with the package and some more; an empty text and the reason on standard error where pip cannot."""
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
    """Run the agent; what was wrong with it, empty when every turn got its scores."""
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
            return f"no end within {_SECONDS} s"
    return difference(done.returncode, done.stdout, done.stderr)


def difference(status: int, out: str, err: str) -> str:
    """In what a run differs from what it must be, empty when it does not."""
    if status:
        return (err.strip().splitlines() or [f"exit status {status}"])[-1]
    outcome = json.loads(out.strip().splitlines()[-1])
    wrong = {key: outcome.get(key) for key, right in host_agent.expected().items() if outcome.get(key) != right}
    return f"instead: {json.dumps(wrong)}" if wrong else ""


def _variables(folder: Path) -> dict[str, str]:
    """How ``opentelemetry-instrument`` is configured."""
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
    """Every kind in every environment. What pip cannot install together with the oldest SDK is no result."""
    for version, python in pythons.items():
        for sdk, pin in (("newest", "opentelemetry-sdk"), ("oldest", f"opentelemetry-sdk=={oldest_sdk()}")):
            base = environment(folder / f"{version}-{sdk}", python, wheel, pin)
            for kind, needed in NEEDS.items():
                inside = environment(folder / f"{version}-{sdk}-{kind}", python, wheel, pin, needed) if needed else base
                if not inside and sdk == "oldest" and kind not in ("threads", "asyncio"):
                    continue
                why = run_kind(inside, kind) if inside else "it cannot be installed"
                print(f"{'ok    ' if not why else 'WRONG '} Python {version}, {sdk} SDK, {kind}  {why}", flush=True)
                yield Result(version, sdk, kind, not why, why)


def table(found: list[Result]) -> str:
    """Kinds by Pythons."""
    columns = list(dict.fromkeys((one.python, one.sdk) for one in found))
    by_place = {(one.kind, one.python, one.sdk): one for one in found}
    sdks = {"newest": "newest SDK", "oldest": f"SDK {oldest_sdk()}"}
    lines = [
        "| | " + " | ".join(f"{python}, {sdks[sdk]}" for python, sdk in columns) + " |",
        "|---|" + "---|" * len(columns),
    ]
    for kind in NEEDS:
        cells = [by_place.get((kind, *column)) for column in columns]
        lines.append(f"| {kind} | " + " | ".join("–" if one is None else "yes" if one.good else "**no**" for one in cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Run, print, and say by the exit status whether every turn got its scores everywhere."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--python", action="append", choices=PYTHONS, help="only these versions")
    parser.add_argument("--write", action="store_true", help="write the table into docs/reference/compatibility.md")
    options = parser.parse_args()
    pythons = {version: found for version in options.python or PYTHONS if (found := interpreter(version))}
    for version in set(options.python or ()) - set(pythons):
        parser.error(f"there is no Python {version} here")
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
