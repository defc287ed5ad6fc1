"""Every supported name of the catalogs resolves, with its preset parameters (``tests/data/names.json``)."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import otel_agenteval as oa
from otel_agenteval.metrics.registry import catalog

CATALOGUE = json.loads((Path(__file__).parents[1] / "data" / "names.json").read_text(encoding="utf-8"))
REGISTERED = {metric.name for metric in catalog()}
ROWS = [row for row in CATALOGUE if row["metric"] in REGISTERED]
NAMES = [(row["metric"], alias) for row in ROWS for alias in row["aliases"]]
NEGATED = {"trusys:not-equals": "code_equals", "trusys:not-contains": "code_contains"}
"""Names that preset ``inverse`` of another metric."""


def test_every_deterministic_metric_of_the_catalogues_is_there():
    assert {row["metric"] for row in CATALOGUE if row["metric"].startswith("code_")} <= REGISTERED


def test_a_name_of_another_catalogue_leads_to_our_metric():
    for metric, alias in NAMES:
        found = oa.get_metric(re.sub(r"\{\w+\}", "7", alias))
        assert found.name == NEGATED.get(alias, metric), alias
        assert "{" not in alias or 7 in found.params.values(), alias


def test_a_name_of_another_catalogue_presets_its_parameters():
    for alias, preset in ((alias, preset) for row in ROWS for alias, preset in row["presets"].items() if "=" in preset):
        wanted = dict(pair.split("=") for pair in preset.split(","))
        metric = oa.get_metric(alias)
        # what is the metric's default already need not be preset
        effective = {name: metric.params.get(name, metric.metric.parameters[name].default) for name in wanted}
        assert effective == wanted, alias


def test_a_name_without_its_catalogue_resolves_or_lists_the_candidates():
    owners_of = defaultdict(set)
    for row in ROWS:
        for alias in row["aliases"]:
            if "{" not in alias:
                owners_of[alias.split(":")[1]].add(row["metric"])
    for name, owners in owners_of.items():
        try:
            found, listed = oa.get_metric(name).name, ""
        except oa.ConfigError as error:
            found, listed = None, str(error)
            assert len(owners) > 1, listed
        allowed = owners if len(owners) > 1 else owners | set(NEGATED.values())
        assert found in allowed or (len(owners) > 1 and all(owner in listed or name in listed for owner in owners)), (name, found)
