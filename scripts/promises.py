"""The table of what the catalogs of the five systems promise: ``tests/systems/promises.yaml``, in ``docs/reference/metrics/coverage.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
PROMISES: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "tests/systems/promises.yaml").read_text(encoding="utf-8"))
TITLE = "## Promised by the five catalogs"


def table() -> str:
    """Return the table, one part for each system."""
    lines = []
    for system, rows in PROMISES.items():
        lines += [f"### {system}\n", "| feature | here | test | difference |\n|---|---|---|---|"]
        for row in rows:
            file, _, name = row["test"].partition("::")
            test = f"[`{name}`](../../../tests/{file})"
            lines.append(f"| {row['feature']} | {row['how']} | {test} | {row.get('differs', '–')} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def section() -> str:
    """Return the part of the page that has the table."""
    count = sum(map(len, PROMISES.values()))
    intro = f"Each of {count} features has a test that fails without it. Differences have a reason. See also the pages on moving:"
    pages = " · ".join(
        f"[{title}](../../guides/moving-from-{seed}.md)"
        for seed, title in (
            ("agenteval", "AgentEval"), ("pandaprobe", "PandaProbe"), ("trusys", "Trusys"), ("hpd", "HPD-Agent"), ("agentunit", "AgentUnit")
        )
    )  # fmt: skip
    return f"{TITLE}\n\n{intro} {pages}.\n\n{table()}\n"
