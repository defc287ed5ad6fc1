"""The prose check flags sentences that read badly, and refuses commit subjects outside the template."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "prose.py"
prose = runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(
    "sentence",
    [
        "The report lists what the judge left open.",
        "The queue is full; the job waits.",
        "The file says which metrics run.",
        "There is none of the three columns.",
        "A timeout is an error, else the score is stored.",
        "Whether a judge may be called.",
    ],
)
def test_awkward_sentences_are_flagged(sentence):
    assert prose["flags"](sentence)


@pytest.mark.parametrize(
    "sentence",
    [
        "Return the open turns of a trace, oldest first.",
        "The sidecar drops a turn that exceeds `turn.max_work; else` and counts it.",
        "Parse a duration, for example `30s`.",
    ],
)
def test_plain_sentences_pass(sentence):
    assert not prose["flags"](sentence)


@pytest.mark.parametrize(
    ("subject", "status"),
    [
        ("outlets: Fix the retry after a 429", 0),
        ("Merge branch 'retry'", 0),
        ("fix the retry", 1),
        ("outlets: Let the retry wait", 1),
        (f"outlets: Fix {'very ' * 15}long subjects", 1),
    ],
)
def test_hook_refuses_subjects_outside_the_template(tmp_path, subject, status):
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text(f"{subject}\n\nWhy this was needed; in any words.\n")
    run = subprocess.run([sys.executable, SCRIPT, "--subject", message], capture_output=True, text=True, check=False)
    assert run.returncode == status, run.stdout
    assert (subject in run.stdout) == bool(status)


def test_each_pool_has_sentences():
    found = prose["pools"]("2000-01-01")
    assert {"readme", "docs", "docstrings", "errors"} <= {name for name, sentences in found.items() if len(sentences) > 10}
