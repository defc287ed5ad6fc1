"""Recordings of real frameworks compared with their truth (``tests/data/*.tar.xz``, described in the corpus's NOTES.md).

The minimum results are slightly below the actual results, and may only be raised.
"""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path

import pytest

from tests.support import check_turns
from tests.support.recordings import unpack_all

TESTS = Path(__file__).parents[1]
ARCHIVES = {
    "corpus": [TESTS / "data" / "corpus.tar.xz"],  # 33 ways to instrument seven frameworks, 879 recordings
    "corpus_b": [TESTS / "data" / "corpus_b.tar.xz"],  # 27 ways to instrument nine frameworks, 320 recordings
    "frameworks": [TESTS / "data" / "frameworks.tar.xz"],  # a few recordings each of further ones
    "recordings": sorted((TESTS / "data" / "recordings").glob("*.tar.xz")),  # one archive for each way (``tests/recording``)
}
INCOMPLETE = {
    ("corpus", "openai_sdk-otel_v2"): 98.5,  # no span for a call that parses its answer
    ("corpus", "openai_sdk-otel_v2_legacy"): 98.5,
    ("corpus", "openai_sdk-traceloop-responses"): 92.0,  # the span of an answer that was cut is never sent
    ("corpus", "pydantic_ai-logfire"): 99.5,  # an answer was scrubbed
    ("corpus_b", "crewai-traceloop"): 94.0,  # tools of a failed run, and of an agent with delegated work, are nowhere
    ("corpus_b", "llama-index-otel-genai-agentonly"): 90.0,  # a retrieval alone is no turn: its model call has no span
    ("corpus_b", "smolagents-otel-genai-agentonly"): 74.3,  # without a model's spans nothing shows a tool's call
}
"""Sets whose recordings lack information. All facts of the other sets are right."""


def check(folder: Path) -> dict:
    """Return the checker's results for the recordings in a folder."""
    out = folder / "result.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["check_turns.py", str(folder), "--show", "0", "--json", str(out)])
        check_turns.main()
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return a folder for each group of archives."""
    found = {}
    for group, archives in ARCHIVES.items():
        found[group] = tmp_path_factory.mktemp(group)
        for archive in archives:
            unpack_all(archive, found[group])
    return found


@pytest.fixture(scope="module")
def results(folders):
    return {group: check(folder) for group, folder in folders.items()}


def names_in(archive: Path) -> list[str]:
    if archive.parent.name == "recordings":
        return [archive.name.removesuffix(".tar.xz")]
    with tarfile.open(archive) as packed:
        return sorted({name.removeprefix("./").split("/")[0] for name in packed.getnames() if name.endswith("truth.json")})


def sets() -> list[tuple[str, str]]:
    return [(group, name) for group, archives in ARCHIVES.items() for archive in archives for name in names_in(archive)]


def share(result: dict, name: str) -> float:
    good, total = result["sets"][name]
    assert total > 0
    return 100 * good / total


@pytest.mark.parametrize(("group", "name"), sets())
def test_turns_of_a_set_of_recordings_come_out_right(folders, results, group, name):
    truth = json.loads((folders[group] / name / "truth.json").read_text(encoding="utf-8"))
    assert share(results[group], name) >= truth.get("floor", INCOMPLETE.get((group, name), 100.0)), truth.get("why")


def rules() -> list[tuple[str, str]]:
    """Return each rule of docs/internals/turn-stitching-rules.md, with the recording that shows it."""
    text = (TESTS.parent / "docs" / "internals" / "turn-stitching-rules.md").read_text(encoding="utf-8")
    lines = text.split("## Rules", 1)[1].split("\n## ", 1)[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return [(rule, recording) for rule, _, recording in rows[1:]]


@pytest.fixture(scope="module")
def alone(folders, tmp_path_factory):
    """Return the recordings that show rules, each as a separate set."""
    target_of = tmp_path_factory.mktemp("rules")
    for _, recording in rules():
        name, file = recording.split("/")
        found = (folders[group] / name for group in ("corpus", "frameworks", "corpus_b", "recordings"))
        source = next(folder for folder in found if (folder / file).exists())  # sets of corpus_b have names of others
        target = target_of / recording.replace("/", " ")
        target.mkdir(exist_ok=True)
        for part in source.glob(f"{Path(file).stem}.*"):
            shutil.copy(part, target)
        content = json.loads((source / "truth.json").read_text())
        if "files" in content:
            one = {**content, "files": {file: content["files"][file]}}
        else:
            one = {"scenarios": {key: entry for key, entry in content["scenarios"].items() if entry["file"] == file}}
        (target / "truth.json").write_text(json.dumps(one))
    return check(target_of)


@pytest.mark.parametrize(("rule", "recording"), rules())
def test_a_rule_s_recording_comes_out_right(alone, rule, recording):
    assert share(alone, recording.replace("/", " ")) == 100.0
