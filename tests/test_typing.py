"""mypy accepts correct uses of the public names, and refuses wrong uses."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ACCEPTED, REFUSED = ROOT / "tests" / "typing" / "accepts.py", ROOT / "tests" / "typing" / "refuses.py"


@pytest.mark.slow
def test_right_programs_are_accepted_and_wrong_ones_refused_where_they_are_wrong() -> None:
    command = [sys.executable, "-m", "mypy", "--no-error-summary", "--no-pretty", str(ACCEPTED), str(REFUSED)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_COLOR": "1"}, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 1, done.stdout + done.stderr
    found: dict[Path, set[tuple[int, str]]] = {ACCEPTED: set(), REFUSED: set()}
    for line in done.stdout.splitlines():
        match = re.fullmatch(r"(.+?):(\d+): error: .+\[([a-z-]+)\]", line)
        if match is not None:
            found[ROOT / match[1]].add((int(match[2]), match[3]))
    assert found[ACCEPTED] == set()
    lines = enumerate(REFUSED.read_text(encoding="utf-8").splitlines(), 1)
    marked = {(number, match[1]) for number, line in lines if (match := re.search(r"# refused: ([a-z-]+)$", line)) is not None}
    assert len(marked) > 15
    assert found[REFUSED] == marked
