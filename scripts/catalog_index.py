"""The index of the catalogue: what a configuration needs to know of a metric before its module is imported.

python scripts/catalog_index.py --write     writes otel_agenteval/metrics/catalog_index.py
python scripts/catalog_index.py             exits 1 if that is not up to date
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from otel_agenteval.metrics.registry import GROUPS, Metric, catalog, groups_of  # noqa: E402

FILE = ROOT / "otel_agenteval" / "metrics" / "catalog_index.py"
COMMAND = "python scripts/catalog_index.py --write"
HEAD = f'''"""Declarations of the built-in metrics, so that a process only imports those it uses.

Generated from the decorators by ``{COMMAND}``. Do not edit it.
"""

from __future__ import annotations

from typing import Any

# fmt: off

'''


def facts_of(metric: Metric) -> Iterator[tuple[str, Any]]:
    """Yield a metric's declarations other than defaults."""
    for field in dataclasses.fields(Metric):
        value = getattr(metric, field.name)
        if field.name == "live":
            if value:
                yield field.name, tuple(value.items())
        elif field.name == "family":
            if value != metric.fn.__module__.rsplit(".", 1)[-1]:
                yield field.name, value
        elif field.name not in ("name", "source") and value != field.default:
            yield field.name, value


def text() -> str:
    """Return the text of the module."""
    ours = [metric for metric in catalog() if metric.is_ours]
    rows = [f"    {m.name!r}: ({m.fn.__module__!r}, {tuple(facts_of(m))!r}, {tuple(m.aliases)!r})," for m in ours]
    groups = [f"    {group!r}: {tuple(m.name for m in ours if group in groups_of(m))!r}," for group in GROUPS]
    return "\n".join((
        f"{HEAD}METRICS: dict[str, tuple[str, tuple[tuple[str, Any], ...], tuple[str, ...]]] = {{", *rows, "}",
        '"""Module, declarations other than defaults, and aliases by metric name."""', "",
        "GROUPS: dict[str, tuple[str, ...]] = {", *groups, "}",
        '"""Members by group, including those whose optional packages are missing."""', "",
    )).replace("'", '"')  # fmt: skip


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
