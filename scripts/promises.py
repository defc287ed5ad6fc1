"""Generate the section on five other evaluation systems in ``docs/reference/metrics/coverage.md`` from ``promises.yaml``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parent.parent
PROMISES: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "tests/systems/promises.yaml").read_text(encoding="utf-8"))
EXAMPLES: dict[str, list[dict[str, Any]]] = yaml.safe_load((ROOT / "tests/systems/examples.yaml").read_text(encoding="utf-8"))
"""Printed examples by system name prefix. ``tests/systems/test_examples.py`` runs each example."""
TITLE = "## Differences from other systems"


_NAMES = re.compile(r"(?:`[^`]+`(?:, )?)+(?: of a workflow)?")
"""A feature that consists only of names, such as assertion names."""


def table() -> str:
    """Return differing features, and counterparts of names, with one section for each system."""
    lines = []
    for system, rows in PROMISES.items():
        differing = [row for row in rows if "differs" in row]
        names = [row for row in rows if "differs" not in row and _NAMES.fullmatch(row["feature"]) and "`" in row["how"]]
        if differing:
            lines += [f"### {system}\n", "| Feature | In otel-agenteval | Reason for the difference |\n|---|---|---|"]
            lines += [f"| {row['feature']} | {row['how']} | {row['differs']} |" for row in differing]
            lines.append("")
        if len(names) > 1:
            lines += [
                f"These {system} names have counterparts in otel-agenteval:\n",
                f"| {system} | otel-agenteval |\n|---|---|",
            ]
            lines += [f"| {row['feature']} | {row['how']} |" for row in names]
            lines.append("")
    return "\n".join(lines).rstrip()


def counts() -> str:
    """Return a sentence with the numbers of features and examples, then the examples with another result."""
    heading = "| System | Documented features | Printed examples | Same in otel-agenteval | Different | Different because the system contradicts itself |"
    lines = [f"{heading}\n|---|---|---|---|---|---|"]
    other = ["| Example | Page | Result in otel-agenteval | Printed result | Reason |\n|---|---|---|---|---|"]
    for (system, rows), (prefix, examples) in zip(
        PROMISES.items(), EXAMPLES.items(), strict=False
    ):  # other prefixes belong to all five systems
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
    return "\n".join([*lines, "", "In these printed examples, otel-agenteval returns a different result:", "", *other])


def section() -> str:
    """Return the section of the page."""
    count, shared = sum(map(len, PROMISES.values())), len(PROMISES["All five"])
    intro = (
        f"[`promises.yaml`](../../../tests/systems/promises.yaml) lists {count} features that five evaluation systems document, "
        f"with a test for each. The first table below omits {shared} features that aren't specific to one system. "
        "The tests also run every documented example that shows a result. "
        "To switch to otel-agenteval, see the guide for your system:"
    )
    pages = " · ".join(
        f"[{title}](../../guides/moving-from-{seed}.md)"
        for seed, title in (
            ("agenteval", "AgentEval"), ("pandaprobe", "PandaProbe"), ("trusys", "Trusys"), ("hpd", "HPD-Agent"), ("agentunit", "AgentUnit")
        )
    )  # fmt: skip
    return f"{TITLE}\n\n{intro} {pages}.\n\n{counts()}\n\n{table()}\n"
