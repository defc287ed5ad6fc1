"""The pages ``docs/guides/moving-from-*.md`` contain every name, differing parameter and difference."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.metrics.names import presets, seeds
from scripts import moving

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("seed", presets())
def test_page_has_each_name_and_differing_parameter(seed: str) -> None:
    text = (ROOT / moving.FOLDER / f"moving-from-{seed}.md").read_text(encoding="utf-8")
    for aliases in moving.names_of(seed).values():
        for alias in aliases:
            assert f"`{alias.partition(':')[2]}`" in text
    of_all, by_metric = seeds().get(seed, ({}, {}))
    for theirs in (*of_all, *(name for spellings in by_metric.values() for name in spellings)):
        assert re.search(rf"`{re.escape(theirs)}`[^;|]*(?: →|:)", text)


def test_parameters_of_documents_alone_work() -> None:
    turn = oa.Turn.from_dict({"tool_calls": [{"name": "Search"}, {"name": "DELETERECORD"}, {"name": "Search"}]})
    for forbidden, value, named in ((["DeleteRecord"], 0, ["DELETERECORD"]), (["DropTable"], 0.9, []), (None, 0.9, [])):
        metric = oa.get_metric("agenteval:ToolSelectionMetric", expectedTools=["Search"], forbiddenTools=forbidden)
        score = metric.evaluate(turn)
        assert (score.value, score.detail["violation_tools"]) == (value, named)
    for optimal, value in ((3, 1), (2, 2 / 3), (9, 1), (0, 0)):
        assert oa.get_metric("agenteval:ToolEfficiencyMetric", optimalCallCount=optimal).evaluate(turn).value == value


BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)
FILE = re.compile(r"`([\w-]+\.(?:json|jsonl|yaml|csv|py))`")


@pytest.mark.parametrize("seed", [seed for seed, facts in moving.FACTS.items() if "start" in facts])
def test_page_starts_with_a_file_that_its_command_scores(
    seed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / moving.FOLDER / f"moving-from-{seed}.md").read_text(encoding="utf-8")
    intro, first, rest = text.partition(f"## {moving.START}\n")
    assert first
    assert "## " not in intro.removeprefix("# ")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", [folder for folder in sys.path if not folder.startswith(str(tmp_path.parent.parent))])
    monkeypatch.delitem(sys.modules, "app", raising=False)
    ran, name, end = 0, "", 0
    section = rest.partition("\n## ")[0]
    for block in BLOCK.finditer(section):
        name, end = [name, *FILE.findall(section[end : block.start()])][-1], block.end()
        if block[1] == "bash":
            command, *arguments = shlex.split(block[2])
            assert (command, main(arguments)) == ("otel-agenteval", 0)
            ran += 1
        elif block[1] == "text":
            printed = [line.split() for line in "".join(capsys.readouterr()).splitlines()]
            assert [line for line in map(str.split, block[2].splitlines()) if line not in printed] == [], printed
        else:
            (tmp_path / name).write_text(block[2], encoding="utf-8")
    monkeypatch.delitem(sys.modules, "app", raising=False)
    assert ran == 1
