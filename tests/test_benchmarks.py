"""What the benchmarks share: rows with bounds, tables between marks, and children of one checkout or two in turn."""

from __future__ import annotations

import re
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

FOLDER = Path(__file__).parents[1] / "benchmarks"
CHILD = """
import json, os, sys
with open(json.loads(sys.argv[2])["log"], "a") as log:
    print(os.environ["PYTHONPATH"], json.loads(sys.argv[2])["name"], file=log)
print("said on the way")
print(json.dumps({"us": 7 if os.environ["PYTHONPATH"].endswith("other") else 3}))
"""


@pytest.fixture(scope="module")
def harness():
    name = "harness"
    sys.modules[name] = SimpleNamespace()  # dataclasses look their module up
    try:
        return SimpleNamespace(**runpy.run_path(str(FOLDER / "harness.py"), run_name=name))
    finally:
        del sys.modules[name]


def test_a_row_says_whether_its_bound_holds_and_what_it_was_before(harness):
    missed = harness.Row("a | b", "3 µs", bound="≤ 2 µs", over=1.5).compared(3.0, 6.0)

    assert (missed.verdict, missed.before, missed.change) == ("MISSED", "6 µs", "0.50 ×")
    assert harness.Row("", "", over=1.0).verdict == "holds"
    assert harness.Row("", "").verdict == ""


def test_a_column_without_anything_is_left_out(harness):
    assert harness.table([harness.Row("this", "3 µs")]).splitlines() == [
        "|      | measured |",
        "|------|----------|",
        "| this | 3 µs     |",
    ]


def test_a_table_takes_the_place_of_the_one_before(harness, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- one -->\n\nold\n\n<!-- end of one -->\nafter\n")

    harness.write("new", "one", page)

    assert page.read_text() == "before\n<!-- one -->\n\nnew\n\n<!-- end of one -->\nafter\n"
    with pytest.raises(ValueError, match="has no marks <!-- two -->"):
        harness.write("new", "two", page)


def test_checkouts_and_setups_alternate(harness, tmp_path):
    script, log, other = tmp_path / "child.py", tmp_path / "log", tmp_path / "other"
    script.write_text(CHILD)
    setups = {name: {"name": name, "log": str(log)} for name in ("alone", "with us")}

    found = harness.alternate(str(script), setups, other, 2, shared=("alone",))

    ran = [(Path(tree).name, name) for tree, _, name in (line.partition(" ") for line in log.read_text().splitlines())]
    assert ran == [
        (harness.ROOT.name, "alone"), ("other", "with us"), (harness.ROOT.name, "with us"),
        (harness.ROOT.name, "with us"), ("other", "with us"), (harness.ROOT.name, "alone"),
    ]  # fmt: skip
    assert (found.best("with us", "us"), found.before("with us", "us"), found.before("alone", "us")) == (3.0, 7.0, None)


def test_a_child_that_fails_says_why(harness, tmp_path):
    script = tmp_path / "child.py"
    script.write_text("raise ValueError('no such setup')")

    with pytest.raises(RuntimeError, match="no such setup"):
        harness.child(str(script), harness.ROOT, {})


def test_each_script_of_make_bench_has_its_place_in_a_page():
    makefile = (FOLDER.parent / "Makefile").read_text()
    names = [name for line in re.findall(r"^(?:COMPARING|MEASURING) := (.*)$", makefile, re.MULTILINE) for name in line.split()]
    readme = (FOLDER / "README.md").read_text()

    assert len(names) >= 9
    for name in names:
        source = (FOLDER / f"{name}.py").read_text()
        mark = re.search(r'harness\.(?:report|write)\([^\n]*"([\w-]+)"\)', source)
        assert mark is not None, name
        assert f"<!-- {mark[1]} -->" in readme, name
        assert f"<!-- end of {mark[1]} -->" in readme, name


def test_mix_has_turns_of_each_kind():
    mix = runpy.run_path(str(FOLDER / "mix.py"), run_name="mix")
    large = [case for case in mix["cases"]() if case.kind in mix["LARGE"]]
    turns = {kind: [turn for case in large if case.kind == kind for turn in case.turns()] for kind in mix["LARGE"]}

    assert {kind: len(some) for kind, some in turns.items()} == dict.fromkeys(mix["LARGE"], mix["EACH"])
    assert all(turn.output and turn.system and turn.reading == "exact" for some in turns.values() for turn in some)
    assert min(len(mix["text_of"](turn)) for turn in turns["tool results of 100 kB"]) > 100_000
    assert min(len(turn.messages) for turn in turns["long history"]) > 60
