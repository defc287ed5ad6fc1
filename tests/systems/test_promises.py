"""Each feature of the five catalogs (``promises.yaml``) names an existing test."""

from __future__ import annotations

import re
from pathlib import Path

from scripts import promises

TESTS = Path(__file__).parent.parent


def test_each_promise_has_its_test() -> None:
    missing = []
    for row in (row for rows in promises.PROMISES.values() for row in rows):
        assert row.keys() <= {"feature", "how", "test", "differs"}
        assert row["how"].strip().lower() not in ("", "missing")
        file, _, name = row["test"].partition("::")
        if not (TESTS / file).exists() or not re.search(
            rf"^(async )?def {name}\(", (TESTS / file).read_text("utf-8"), re.MULTILINE
        ):
            missing.append(row["test"])
    assert missing == []
