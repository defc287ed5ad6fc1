"""Update the outputs of commands in docs/guides/find-the-cause.md, for three incidents.

    python scripts/incident_stories.py

``tests/support/incidents.py`` plays each incident into a new store. Its commands follow the mark ``<!-- incident: NAME -->``. Their
output is the next block.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from tests.support.incidents import INCIDENTS, play  # noqa: E402 - of this checkout

PAGE = ROOT / "docs" / "guides" / "find-the-cause.md"
STORE = "scores.db"


def blocks(text: str, name: str) -> list[tuple[str, str]]:
    """Return the commands of an incident with the output on the page."""
    return re.findall(rf"<!-- incident: {name} -->\n```bash\n(.*?)```\n\n```text\n(.*?)```", text, re.DOTALL)


def printed(commands: str, folder: Path) -> str:
    """Return the output of commands in a folder with the store.

    Raises:
        CalledProcessError: If a command fails.
    """
    variables = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        ["/bin/bash", "-euo", "pipefail", "-c", commands], cwd=folder, env=variables, capture_output=True, text=True, check=True
    ).stdout


def without_figures(text: str) -> str:
    """Remove numbers and column widths, which change with the number of compared facts."""
    return " ".join(re.sub(r"[−+]?\d[\d.,]*", "0", text).split())


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    for incident in INCIDENTS:
        with tempfile.TemporaryDirectory() as folder:
            play(incident, Path(folder, STORE))
            for commands, shown in blocks(text, incident.name):
                output = printed(commands, Path(folder))
                text = text.replace(f"{commands}```\n\n```text\n{shown}```", f"{commands}```\n\n```text\n{output}```", 1)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
