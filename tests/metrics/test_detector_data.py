"""The word lists and tables of detectors have the format that their loader expects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from otel_agenteval.core.files import load_yaml
from otel_agenteval.detectors.identity_numbers import CHECKS, identity_numbers
from otel_agenteval.detectors.refusal.evidence import LANGUAGES, Lexicon, lexicon
from otel_agenteval.detectors.texts import FOLDER, sections

LISTS = sorted(str(path.relative_to(FOLDER)).replace("\\", "/") for path in FOLDER.rglob("*.txt"))
PATTERNS = ("personal/words",)
"""Folders and files whose entries are regular expressions."""


@pytest.mark.parametrize("name", LISTS)
def test_list_has_sections_of_unique_entries(name: str) -> None:
    text = Path(FOLDER, name).read_text(encoding="utf-8")
    assert text.startswith("# "), "the first line describes the list"
    assert text.endswith("\n")
    assert not [line for line in text.split("\n") if line != line.strip()], "an open box stands for a space at either end"
    for section, entries in sections(name).items():
        assert re.fullmatch(r"[a-z][a-z0-9_ -]*", section), section
        assert all(entries), f"{section} has an empty line"
        assert sorted(set(entries)) == sorted(entries), f"{section} has an entry twice"


@pytest.mark.parametrize("name", [name for name in LISTS if name.startswith(PATTERNS)])
def test_each_entry_of_a_pattern_list_compiles(name: str) -> None:
    for entries in sections(name).values():
        for entry in entries:
            re.compile(entry)


def test_every_file_of_refusal_words_is_a_lexicon() -> None:
    assert {f"refusal/{language}.txt" for language in LANGUAGES} == {name for name in LISTS if name.startswith("refusal/")}
    for language in LANGUAGES:
        assert sections(f"refusal/{language}.txt").keys() | {"common"} == set(Lexicon._fields)
        assert lexicon(language)


def test_each_identity_number_has_its_fields_and_each_check_is_used() -> None:
    rows = load_yaml(FOLDER / "identity_numbers.yaml")
    for row in rows:
        assert {"country", "number", "shape"} <= row.keys() <= {"country", "number", "kind", "words", "shape", "check"}
        assert re.compile(row["shape"]).groups == 0, "the search counts groups"
    assert {row.get("check", "none") for row in rows} == CHECKS.keys()


@pytest.mark.parametrize("before", ["", "İzmir. ", "Kişi: İSTANBUL'DA. "])
@pytest.mark.parametrize("word", ["Steuer-ID", "STEUER-ID"])
def test_words_before_identity_numbers_are_found_in_any_case(before: str, word: str) -> None:
    text = f"{before}Seine {word}: 86095742719"
    assert [(kind, text[start:end]) for kind, start, end, _ in identity_numbers(text)] == [("national_id", "86095742719")]
