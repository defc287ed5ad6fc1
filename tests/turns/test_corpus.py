"""Recordings of real frameworks, with the truth beside them (``tests/data/*.tar.xz``; the corpus's NOTES.md says what they hold).

The floors are what the engine reaches less a little slack; they only go up.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from tests.support.recordings import unpack_all

TESTS = Path(__file__).parents[1]
INCOMPLETE = {
    "openai_sdk-otel_v2": 98.5,  # no span for a call that parses its answer
    "openai_sdk-otel_v2_legacy": 98.5,
    "openai_sdk-traceloop-responses": 92.0,  # the span of an answer that was cut is never sent
    "pydantic_ai-logfire": 99.5,  # an answer was scrubbed
}
"""Sets in which something is not in the recording at all; the facts of all others are right to the last."""
INCOMPLETE_B = {
    "crewai-traceloop": 94.0,  # tools of a run that failed, and of an agent to which work was delegated, are written nowhere
    "llama-index-otel-genai-agentonly": 90.0,  # a retrieval alone is no turn: its model call has no span
    "smolagents-otel-genai-agentonly": 74.3,  # without a model's spans nothing shows a tool's call
}
"""The same of the second set."""


def check(folder: Path) -> dict:
    """What the checker says of the recordings in a folder."""
    out = folder / "result.json"
    command = [sys.executable, str(TESTS / "support" / "check_turns.py"), str(folder), "--show", "0", "--json", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(TESTS.parent)}
    subprocess.run(command, check=False, env=environment, capture_output=True, timeout=300)
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory):
    """A folder for each archive."""
    folders = {
        archive: tmp_path_factory.mktemp("recordings") for archive in ("corpus.tar.xz", "corpus_b.tar.xz", "frameworks.tar.xz")
    }
    for archive, folder in folders.items():
        unpack_all(TESTS / "data" / archive, folder)
    return folders


@pytest.fixture(scope="module")
def corpus(unpacked):
    """The large set: 33 ways to instrument seven frameworks, 879 recordings."""
    return check(unpacked["corpus.tar.xz"])


@pytest.fixture(scope="module")
def corpus_b(unpacked):
    """The second set: 27 ways to instrument nine frameworks, 320 recordings."""
    return check(unpacked["corpus_b.tar.xz"])


@pytest.fixture(scope="module")
def frameworks(unpacked):
    """A few recordings each of further frameworks and instrumentations."""
    return check(unpacked["frameworks.tar.xz"])


RECORDINGS = sorted((TESTS / "data" / "recordings").glob("*.tar.xz"))


@pytest.fixture(scope="module")
def recordings(tmp_path_factory):
    """One archive per way to instrument a framework or to send from a vendor's SDK (``tests/recording`` made them)."""
    folder = tmp_path_factory.mktemp("further")
    for archive in RECORDINGS:
        unpack_all(archive, folder)
    return folder, check(folder)


@pytest.mark.parametrize("name", [archive.name.removesuffix(".tar.xz") for archive in RECORDINGS])
def test_a_set_of_recordings_comes_out_right(recordings, name):
    folder, result = recordings
    truth = json.loads((folder / name / "truth.json").read_text(encoding="utf-8"))
    assert share(result, name) >= truth.get("floor", INCOMPLETE.get(name, 100.0)), truth.get("why")


@pytest.fixture(scope="module")
def alone(unpacked, recordings, tmp_path_factory):
    """The recordings that show rules, each a set of its own."""
    sets = tmp_path_factory.mktemp("rules")
    for _, recording in rules():
        name, file = recording.split("/")
        folders = (*(unpacked[archive] for archive in ("corpus.tar.xz", "frameworks.tar.xz", "corpus_b.tar.xz")), recordings[0])
        found = (folder / name for folder in folders)
        source = next(folder for folder in found if (folder / file).exists())  # sets of the second one have names of others
        target = sets / recording.replace("/", " ")
        target.mkdir(exist_ok=True)
        for part in source.glob(f"{Path(file).stem}.*"):
            shutil.copy(part, target)
        content = json.loads((source / "truth.json").read_text())
        if "files" in content:
            one = {**content, "files": {file: content["files"][file]}}
        else:
            one = {"scenarios": {key: entry for key, entry in content["scenarios"].items() if entry["file"] == file}}
        (target / "truth.json").write_text(json.dumps(one))
    return check(sets)


def names_in(archive: str) -> list[str]:
    with tarfile.open(TESTS / "data" / archive) as packed:
        return sorted({name.removeprefix("./").split("/")[0] for name in packed.getnames() if name.endswith("truth.json")})


def share(result: dict, name: str) -> float:
    good, total = result["sets"][name]
    assert total > 0
    return 100 * good / total


@pytest.mark.parametrize("name", names_in("corpus.tar.xz"))
def test_turns_of_a_framework_come_out_right(corpus, name):
    assert share(corpus, name) >= INCOMPLETE.get(name, 100.0)


@pytest.mark.parametrize("name", names_in("corpus_b.tar.xz"))
def test_turns_of_a_framework_of_the_second_set_come_out_right(corpus_b, name):
    assert share(corpus_b, name) >= INCOMPLETE_B.get(name, 100.0)


@pytest.mark.parametrize("name", names_in("frameworks.tar.xz"))
def test_turns_of_a_further_framework_come_out_right(frameworks, name):
    assert share(frameworks, name) >= INCOMPLETE.get(name, 100.0)


def test_turns_of_all_frameworks_come_out_right_on_the_whole(corpus):
    assert corpus["share"] >= 99.7


def test_turns_of_the_second_set_come_out_right_on_the_whole(corpus_b):
    assert corpus_b["share"] >= 99.4


def rules() -> list[tuple[str, str]]:
    """Each rule of docs/internals/turn-stitching-rules.md and the recording that shows it."""
    text = (
        (TESTS.parent / "docs" / "internals" / "turn-stitching-rules.md")
        .read_text(encoding="utf-8")
        .split("## Rules", 1)[1]
        .split("\n## ", 1)[0]
    )
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("| ")]
    return [(rule, recording) for rule, _, recording in rows[1:]]


@pytest.mark.parametrize(("rule", "recording"), rules())
def test_a_rule_s_recording_comes_out_right(alone, rule, recording):
    assert share(alone, recording.replace("/", " ")) == 100.0
