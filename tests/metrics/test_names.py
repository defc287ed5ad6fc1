"""Every name of the catalogues that we cover resolves, with the parameters that it presets (``tests/data/names.json``)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.registry import catalog

CATALOGUE = json.loads((Path(__file__).parents[1] / "data" / "names.json").read_text(encoding="utf-8"))
REGISTERED = {metric.name for metric in catalog()}
ROWS = [row for row in CATALOGUE if row["metric"] in REGISTERED]
NAMES = [(row["metric"], alias) for row in ROWS for alias in row["aliases"]]
NEGATED = {"trusys:not-equals": "code_equals", "trusys:not-contains": "code_contains"}
"""Names whose catalogue presets another metric's parameter ``inverse``."""


def test_every_deterministic_metric_of_the_catalogues_is_there():
    assert {row["metric"] for row in CATALOGUE if row["metric"].startswith("code_")} <= REGISTERED


@pytest.mark.parametrize("name", [row["metric"] for row in ROWS])
def test_a_metric_resolves_by_its_own_name(name):
    assert oa.get_metric(name).name == name


@pytest.mark.parametrize(("metric", "alias"), NAMES)
def test_a_name_of_another_catalogue_leads_to_our_metric(metric, alias):
    found = oa.get_metric(re.sub(r"\{\w+\}", "7", alias))
    assert found.name == NEGATED.get(alias, metric)
    if "{" in alias:
        assert 7 in found.params.values()


PRESETS = [(alias, preset) for row in ROWS for alias, preset in row["presets"].items() if "=" in preset]


@pytest.mark.parametrize(("alias", "preset"), PRESETS)
def test_a_name_of_another_catalogue_presets_its_parameters(alias, preset):
    wanted = dict(pair.split("=") for pair in preset.split(","))
    metric = oa.get_metric(alias)
    # what is the metric's default already need not be preset
    effective = {name: metric.params.get(name, metric.metric.parameters[name].default) for name in wanted}
    assert effective == wanted


@pytest.mark.parametrize("alias", NEGATED)
def test_a_negated_name_presets_the_inverse(alias):
    assert oa.get_metric(alias).params["inverse"] is True


@pytest.mark.parametrize("name", sorted({alias.split(":")[1] for row in ROWS for alias in row["aliases"] if "{" not in alias}))
def test_a_name_without_its_catalogue_resolves_or_lists_the_candidates(name):
    owners = {row["metric"] for row in CATALOGUE for alias in row["aliases"] if alias.split(":")[1] == name}
    if len(owners) > 1:
        try:
            found = oa.get_metric(name).name
        except oa.ConfigError as error:
            found = None
            listed = str(error)
        assert found in owners or all(owner in listed or name in listed for owner in owners)
    else:
        assert oa.get_metric(name).name in owners | set(NEGATED.values())
