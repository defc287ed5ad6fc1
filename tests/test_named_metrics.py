"""Several configurations of one metric have separate scores everywhere."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.evaluation.selection import named, select_metrics
from otel_agenteval.judging.sampling import rules_of
from tests.support.recordings import unpack
from tests.support.rig import Rig

REFUND = {"code_contains": {"value": "refund"}, "name": "refund"}
SORRY = {"code_contains": {"value": "sorry"}, "name": "apology", "policy": "gate"}
NAMES = ["code_contains.refund", "code_contains.apology"]


def test_each_entry_has_scores_labels_and_reasons_of_its_own() -> None:
    with Rig({"inline": {"metrics": []}, "metrics": [REFUND, SORRY]}) as rig:
        rig.run()
        assert [score.metric for score in rig.scored()[-1].scores] == NAMES
        assert rig.processor.engine.why(rig.turn().turn_id) == dict.fromkeys(NAMES, "scored")
        assert {labels[0] for labels in rig.count("agenteval.results")} >= set(NAMES)


def test_report_has_a_row_for_each_entry(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text(json.dumps({"inline": {"metrics": []}, "metrics": [REFUND, SORRY]}))
    command = ["eval", str(unpack("pydantic_ai-native_v6/s2.jsonl", tmp_path)), "--config", str(tmp_path / "c.yaml")]
    assert main([*command, "--format", "markdown", "--gate"]) == 1
    out = capsys.readouterr().out
    assert all(name in out for name in NAMES)
    assert main([*command, "--metrics", NAMES[0]]) == 0
    assert [json.loads(line)["metric"] for line in capsys.readouterr().out.splitlines()] == NAMES[:1]


def test_entries_without_names_get_stable_suffixes(caplog: pytest.LogCaptureFixture) -> None:
    entries = [{"code_word_count": {"min": 3}}, {"code_word_count": {"min": 5}}]
    first, second = (
        [bound.name for bound in select_metrics(load_config({"inline": {"metrics": []}, "metrics": given}))]
        for given in (entries, entries[::-1])
    )
    assert first == second[::-1]
    assert len({*first}) == 2
    assert all(name.startswith("code_word_count.v") for name in first)
    assert sum("code_word_count" in line and "name" in line for line in caplog.messages) <= 2


def test_condition_and_cascade_name_an_entry() -> None:
    judged = {"llm_g_eval": {"criteria": "Is it kind?"}, "name": "kind"}
    sample = {"rate": 0, "always_if": "score.code_contains.refund < 1"}
    other = {"llm_g_eval": {"criteria": "Is it short?"}, "name": "short", "sample": sample}
    config = load_config({"metrics": [REFUND, judged, other]})
    metrics = select_metrics(config)
    assert len(rules_of(config, metrics)) == 2
    assert oa.get_metric("code_contains.refund", value="x").name == "code_contains"


@pytest.mark.parametrize(
    ("entries", "place"),
    [
        ([{"code_contains": {"value": "a"}, "name": "x y"}], r"metrics\[0\]\.name"),
        ([REFUND, {**SORRY, "name": "refund"}], "same name"),
        ([REFUND, {**REFUND, "name": "other"}], "same parameters"),
    ],
)
def test_name_that_tells_nothing_apart_is_refused(entries: list[Any], place: str) -> None:
    with pytest.raises(ConfigError, match=place):
        select_metrics(load_config({"metrics": entries}))


def test_name_without_its_metric_has_a_suggestion() -> None:
    config = load_config({"metrics": [{"code_contains": {"value": "refund"}, "name": "my_refund"}]})
    with pytest.raises(ConfigError, match=r"Did you mean 'code_contains\.my_refund'"):
        named(config, ["my_refund"], select_metrics(config), [])
