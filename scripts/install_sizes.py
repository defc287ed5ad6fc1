"""Measure the installed size of the package and its extras, for the table in docs/get-started/installation.md.

``gen_docs.py --measure sizes`` calls this module. Each row is a separate installation into an empty folder, with the versions of
requirements/dev.txt and without compiled bytecode. A first installation fills pip's cache, so that seconds don't include downloads.
Needs network access, and takes some minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
PAGE, PART = ROOT / "docs" / "get-started" / "installation.md", "sizes"
PURPOSES = {
    "asr": "a local speech-to-text model for recordings",
    "audio": "word and character error rates of transcripts",
    "backfill": "`otel-agenteval backfill`, with Daft, ClickHouse, and Parquet",
    "bedrock": "judges on Amazon Bedrock without an API key",
    "clip": "a local CLIP or SigLIP model",
    "code": "running code in a sandbox, and measuring code complexity",
    "cost": "newer model prices than the built-in ones",
    "embed": "a small local embedding model",
    "fsspec": "media in object stores. Also install the store's package (`s3fs`, `gcsfs`).",
    "kafka": "spans from Kafka",
    "media": "metrics for images, audio, and video. Also video frames for judges.",
    "notebook": "turns and scores as pandas DataFrames",
    "ocr": "metrics that read text in images",
    "parquet": "Parquet files",
    "postgres": "turns and scores in PostgreSQL",
    "redis": "judge jobs in Redis",
    "serve": "zstd and faster gzip in the sidecar",
    "structured": "metrics that check JSON Schema, SQL, and HTML, including the default metric `code_tool_schema_validity`",
    "sustainability": "energy and carbon metrics",
    "text": "linear-time regular expressions, and edit distance",
    "zstd": "compressed recordings (`.zst`)",
}
"""Purpose of each extra for the table. ``all`` and ``dev`` are only for development."""


class Size(NamedTuple):
    packages: int
    megabytes: float
    seconds: float


def extras() -> list[str]:
    """Return the names of all extras except ``all`` and ``dev``."""
    import tomllib  # needs Python 3.11

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [name for name, needs in project["optional-dependencies"].items() if name not in {"all", "dev"} and needs]


def installed(requirement: str) -> Size:
    with tempfile.TemporaryDirectory(prefix="otel-agenteval-") as folder:
        began = time.monotonic()
        subprocess.run(
            [
                *(
                    sys.executable,
                    "-m",
                    "pip",
                    "install",
                    "--quiet",
                    "--disable-pip-version-check",
                    "--no-compile",
                    "--target",
                    folder,
                ),
                *("--constraint", str(ROOT / "requirements" / "dev.txt"), requirement),
            ],
            check=True,
        )
        seconds = time.monotonic() - began
        files = [path for path in Path(folder).rglob("*") if path.is_file() and not path.is_symlink()]
        packages = len([path for path in Path(folder).iterdir() if path.name.endswith(".dist-info")])
        return Size(packages, sum(path.stat().st_size for path in files) / 1e6, seconds)


def table() -> Iterator[str]:
    """Yield the lines of the table, starting with the package without extras."""
    installed(str(ROOT))  # fills pip's cache
    core = installed(str(ROOT))
    yield "| Package or extra | Purpose | Packages | MB | Seconds |"
    yield "|---|---|---|---|---|"
    yield f"| `otel-agenteval` | all features that need no extra | {core.packages} | {core.megabytes:.0f} | {core.seconds:.0f} |"
    for extra in sorted(extras()):
        wanted = f"{ROOT}[{extra}]"
        installed(wanted)
        found = installed(wanted)
        more = found.packages - core.packages, found.megabytes - core.megabytes, max(0.0, found.seconds - core.seconds)
        yield f"| `[{extra}]` | {PURPOSES[extra]} | +{more[0]} | +{more[1]:.0f} | +{more[2]:.0f} |"
    installed(f"{ROOT}[all]")
    all_of_it = installed(f"{ROOT}[all]")
    yield f"| `[all]` | all extras, for development | {all_of_it.packages} | {all_of_it.megabytes:.0f} | {all_of_it.seconds:.0f} |"
