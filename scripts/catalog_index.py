"""The index of the catalogue: what a configuration needs to know of a metric before its module is imported.

python scripts/catalog_index.py --write     writes otel_agenteval/metrics/catalog_index.json
python scripts/catalog_index.py             exits 1 if that is not up to date
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from otel_agenteval.metrics.registry import Metric, catalog  # noqa: E402

FILE = ROOT / "otel_agenteval" / "metrics" / "catalog_index.json"
COMMAND = "python scripts/catalog_index.py --write"


def row_of(metric: Metric) -> dict[str, Any]:
    """Return a metric's module, aliases, and declarations other than defaults."""
    module = metric.fn.__module__
    defaults = {"family": module.rsplit(".", 1)[-1], "live": {}}
    row: dict[str, Any] = {"module": module.removeprefix("otel_agenteval.metrics."), "aliases": [*metric.aliases]}
    for field in dataclasses.fields(Metric):
        value = getattr(metric, field.name)
        if field.name not in ("name", "source") and value != defaults.get(field.name, field.default):
            row[field.name] = value
    return row


def text() -> str:
    """Return the text of the file, with one line for each metric."""
    rows = ",\n".join(f"{json.dumps(metric.name)}: {json.dumps(row_of(metric))}" for metric in catalog() if metric.is_ours)
    return f"{{\n{rows}\n}}\n"


def main() -> int:
    """Write or compare the file."""
    parser = argparse.ArgumentParser(description="Write or check the catalog index.")
    parser.add_argument("--write", action="store_true", help="write the file instead of checking it")
    wanted = text()
    if parser.parse_args().write:
        FILE.write_text(wanted, encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != wanted:
        print(f"{FILE.relative_to(ROOT)} is out of date: run `{COMMAND}`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
