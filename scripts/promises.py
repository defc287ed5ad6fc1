"""The table of what the catalogs of the five systems promise: ``tests/systems/promises.yaml``, in ``docs/reference/metrics/coverage.md``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
PROMISES: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "tests/systems/promises.yaml").read_text(encoding="utf-8"))
EXAMPLES: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "tests/systems/examples.yaml").read_text(encoding="utf-8"))
"""Printed examples, by the prefix of a system's names. ``tests/systems/test_examples.py`` runs each."""
TITLE = "## Promised by the five catalogs"


def table() -> str:
    """Return the table, one part for each system."""
    lines = []
    for system, rows in PROMISES.items():
        same = sum("differs" not in row for row in rows)
        lines += [
            f"### {system}\n",
            f"{same} of {len(rows)} are as promised.\n",
            "| feature | here | test | difference |\n|---|---|---|---|",
        ]
        for row in rows:
            file, _, name = row["test"].partition("::")
            test = f"[`{name}`](../../../tests/{file})"
            lines.append(f"| {row['feature']} | {row['how']} | {test} | {row.get('differs', '–')} |")
        lines.append("")
    return "\n".join(lines).rstrip()


def counts() -> str:
    """Return the numbers of features and printed examples, and the examples with another result."""
    heading = "| system | features | examples | as promised | different | of these, the system contradicts itself |"
    lines = [f"{heading}\n|---|---|---|---|---|---|"]
    other = ["| example | page | here | printed | reason |\n|---|---|---|---|---|"]
    for (system, rows), (prefix, examples) in zip(
        PROMISES.items(), EXAMPLES.items(), strict=False
    ):  # others are those of all five
        assert system.partition("-")[0].lower() == prefix
        differing = [example for example in examples if "differs" in example]
        reasons = [row["differs"] for row in (*rows, *differing) if "differs" in row]
        total, its_own = len(rows) + len(examples), sum("contradicts" in reason for reason in reasons)
        kept = f"{total - len(reasons)} ({100 - 100 * len(reasons) / total:.0f} %)"
        lines.append(f"| {system} | {len(rows)} | {len(examples)} | {kept} | {len(reasons)} | {its_own} |")
        for example in differing:
            name = f"`{prefix}:{next(iter(example['metric']))}`"
            other.append(
                f"| {name} | {example['page']} | {example['value']} | {example.get('said', '–')} | {example['differs']} |"
            )
    return "\n".join([*lines, "", "Examples with another result than printed:", "", *other])


def section() -> str:
    """Return the part of the page that has the table."""
    count = sum(map(len, PROMISES.values()))
    intro = f"Each of {count} features has a test that fails without it, and each printed example is run. Differences have a reason. See also the pages on moving:"
    pages = " · ".join(
        f"[{title}](../../guides/moving-from-{seed}.md)"
        for seed, title in (
            ("agenteval", "AgentEval"), ("pandaprobe", "PandaProbe"), ("trusys", "Trusys"), ("hpd", "HPD-Agent"), ("agentunit", "AgentUnit")
        )
    )  # fmt: skip
    return f"{TITLE}\n\n{intro} {pages}.\n\n{counts()}\n\n{table()}\n"
