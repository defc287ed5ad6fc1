"""The word lists of the detectors are needed for the labeled cases of the test half."""

from __future__ import annotations

import importlib.util
from collections import defaultdict
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "detectors.py"
MOST_WITHOUT_LOSS = 58
"""Number of lists that may be removed without a loss. Only lower it: a new list has to find new cases."""
EXCEPTIONS = {
    r"data/refusal/\w+\.txt": "a language: the test half has few faults of most. In cross-validation, refusals lose half of what they find without theirs",
    r"data/(?:secrets|phones)\.txt.*": "names and places that redaction needs; tests/data/redaction measures them",
    r"identity_(?:numbers|checks)\..*": "national formats with check digits",
    r"data/hosts\.txt\[file_endings\]": "endings that redaction needs",
    r"data/hosts\.txt\[files\]": "public reports: tests/reports/test_detector_reports.py has the cases",
    r"credentials\._WANTS_NEW|personal\._WANTED|data/personal\[sample_wanted\]": "documented: what the user requested is no leak",
    r"pii\._ADDRESS": "the broad rules of code_pii_leakage, which aren't default",
    r"data/personal\[(?:birth|home|resides|roles|company_line|not_phone)\]|data/personal/screened\.txt": (
        "births, homes, role addresses and public lines: the test half has no such case, test_detectors_pii.py and the whole turns have"
    ),
    r"screen\._FREQUENT_QUADS": "speed: signs that a quick check looks for",
}
"""Lists that aren't counted, with the reason."""


@pytest.mark.slow
def test_lists_of_detectors_pay_on_the_test_half() -> None:
    spec = importlib.util.spec_from_file_location("detectors", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    detectors = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(detectors)
    changes = defaultdict(list)
    for change in detectors.without("*", detectors.DETECTORS, ["test"], except_for="|".join(EXCEPTIONS)):
        changes[change.list].append(change)
    assert len(changes) > 100
    free = [name for name, found in changes.items() if not any(change.loses for change in found)]
    assert len(free) <= MOST_WITHOUT_LOSS, f"delete a list that loses nothing: {', '.join(free)}"
