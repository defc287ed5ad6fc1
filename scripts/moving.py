"""Generate the pages ``docs/guides/moving-from-*.md``, with the names, differing parameters and other differences of five catalogs.

Names and parameters come from the metrics and from ``otel_agenteval/metrics/names``. Other content comes from ``scripts/moving.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from otel_agenteval.core.files import load_yaml
from otel_agenteval.metrics import names
from otel_agenteval.metrics.bound_metric import live_metric
from otel_agenteval.metrics.registry import Metric, catalog, resolve
from otel_agenteval.metrics.spellings import Spellings, Unsupported
from otel_agenteval.metrics.spellings import meaning_of as spelled

FACTS: dict[str, dict[str, Any]] = load_yaml(Path(__file__).with_name("moving.yaml"))
BY_METHOD = {
    ("llm_context_precision", "holistic"): 0.7,
    ("llm_context_recall", "holistic"): 0.7,
    ("llm_task_completion", "holistic"): 0.7,
    ("llm_task_completion", "two_stage"): 0.5,
}
"""Default thresholds of metrics whose threshold depends on the method."""
METRICS = {metric.name: metric for metric in catalog()}
FOLDER = "docs/guides"
START = "Start with an existing file"
"""Title of the section with a sample file and a command that scores it. ``tests/test_moving.py`` runs the command."""


def names_of(seed: str) -> dict[str, list[str]]:
    """Return the other catalog's names by metric of otel-agenteval."""
    found: dict[str, list[str]] = {}
    for metric in METRICS.values():
        for alias in metric.aliases:
            if alias.startswith(f"{seed}:"):
                found.setdefault(metric.name, []).append(alias)
    return found


def page(seed: str) -> str:
    facts, preset = FACTS[seed], names.presets()[seed]
    formulas = facts.get("formulas", f"{preset.title}'s formulas")
    parts = [
        f"# Moving from {preset.title}\n",
        f"{facts['intro']} This page covers {preset.title} {facts['version']}.\n",
        *([f"## {START}\n\n{facts['start']}"] if "start" in facts else []),
        "## Turn on the metrics\n",
        f"The [preset](../reference/metrics/other-tools.md#presets) `{seed}` runs {_in_preset(seed)}:\n",
        f"```yaml\npreset: {seed}\n```\n",
        f"```bash\notel-agenteval eval traces.jsonl --preset {seed}\n```\n",
        f"You can also use {preset.title}'s metric and parameter names in a configuration or in Python:\n",
        f"```python\n{facts['python']}```\n",
        f"## Equivalents\n\n| {preset.title} | otel-agenteval |\n|---|---|",
        *(f"| {theirs} | {_cell(ours)} |" for theirs, ours in facts["features"].items()),
        "\n## Names\n",
        f"You can omit the prefix `{seed}:` if only {preset.title} uses the name.\n",
        f"| {preset.title} name | otel-agenteval metric | Defaults with this name |\n|---|---|---|",
        *_name_rows(seed),
        "\n## Parameters\n",
        f"This table lists {preset.title}'s parameters that differ from otel-agenteval's. `a` → `b` means that {preset.title}'s parameter `a` sets the parameter `b`. For all other parameters, see the metric's reference. All names also work in camel case.{facts.get('parameters', '')}\n",
        "| Metric | Parameters |\n|---|---|",
        *(
            f"| each metric that has one of these parameters | {_cell(shown)} |"
            for shown in ["<br>".join(_spelled(names.seeds().get(seed, ({}, {}))[0]))]
            if shown
        ),
        *(
            f"| {_linked(metric)} | {parameters} |"
            for metric, aliases in names_of(seed).items()
            if (parameters := _parameters(seed, METRICS[metric], aliases[0]))
        ),
        "\n## Differences\n",
        f"Deterministic metrics that this table doesn't list use {formulas}. Values of all judged metrics can differ.\n",
        "| Metric | Difference |\n|---|---|",
        *(f"| {_linked(metric)} | {_cell(said)} |" for metric, said in facts["differences"].items()),
    ]
    return "\n".join(parts) + "\n"


def _in_preset(seed: str) -> str:
    preset = names.presets()[seed]
    entries = [next(iter(one)) if isinstance(one, dict) else one for one in (*preset.metrics, *preset.conversation)]
    is_all = names_of(seed).keys() <= {resolve(name).metric.name for name in entries}
    return f"{preset.title}'s metrics" if is_all else f"a selection of {preset.title}'s metrics"


def _linked(metric: str) -> str:
    return f"[`{metric}`](../reference/metrics/{METRICS[metric].family}.md#{metric})"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _name_rows(seed: str) -> Iterator[str]:
    for metric, aliases in names_of(seed).items():
        same: dict[str, list[str]] = {}
        for alias in aliases:
            plain = "{" not in alias
            found = resolve(alias) if plain else None
            sets = (
                [f"`{key}={value!r}`" for key, value in found.preset.items() if key != "threshold"]
                if found
                else [f"`{next(iter(METRICS[metric].parameters))}` from the name"]
            )
            bound = live_metric(alias if plain else metric, {})
            mark = BY_METHOD.get((metric, bound.params.get("method", "")), bound.threshold)
            settings = ", ".join([*sets, *([] if mark is None else [f"threshold {mark:g}"])])
            same.setdefault(f"{_linked(metric)} | {settings}", []).append(alias)
        for row, several in same.items():
            listed = ", ".join(f"`{alias.partition(':')[2]}`" for alias in several)
            yield f"| {listed} | {row} |"


def _parameters(seed: str, metric: Metric, alias: str) -> str:
    of_all, by_metric = names.seeds().get(seed, ({}, {}))
    own = by_metric.get(metric.name) or names.seed_spellings(seed, alias.partition(":")[2], metric.name, metric.parameters)
    special = {theirs: spelling for theirs, spelling in own.items() if of_all.get(theirs) is not spelling}
    return _cell("<br>".join(_spelled(special)))


def _spelled(spellings: Spellings) -> Iterator[str]:
    same: dict[str, list[str]] = {}
    for theirs, spelling in spellings.items():
        how = (
            f"not supported. {spelling.how[0].upper()}{spelling.how[1:]}"
            if isinstance(spelling, Unsupported)
            else f"`{spelling}`{' (unchanged)' * (spelling == theirs)}"
            if isinstance(spelling, str)
            else spelled(spelling)
        )
        same.setdefault(how, []).append(f"`{theirs}`")
    for how, several in same.items():
        own_name = f"{several[0]} ("
        if how.startswith(own_name) and len(several) == 1:  # only the values differ
            yield f"{several[0]}: {how[len(own_name) : -1]}"
            continue
        yield f"{', '.join(several[:-1])}{',' * (len(several) > 2)}{' and ' if several[1:] else ''}{several[-1]}{': ' if how.startswith('not ') else ' → '}{how}"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the path and text of each page."""
    for seed in FACTS:
        yield f"{FOLDER}/moving-from-{seed}.md", page(seed)
