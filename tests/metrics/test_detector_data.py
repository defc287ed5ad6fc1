"""The word lists and tables of detectors have the form that their loader expects."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from otel_agenteval.detectors import tokens
from otel_agenteval.detectors.lists import FOLDER, sections, table
from otel_agenteval.detectors.refusal.lexicon import LANGUAGES, Lexicon, lexicon

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


def test_token_formats_compile_and_have_a_literal() -> None:
    for form in (*tokens.shaped_tokens(), *tokens._answer_formats()):
        re.compile(form.pattern.pattern)
        assert form.literals
    for token in tokens.tokens():
        re.compile(f"(?:{token.prefix})[{token.body}]{{{token.least},{token.most}}}")


def test_time_zones_are_offsets_with_names() -> None:
    for offsets, names in table("time_zones.json"):
        assert names == [name.lower() for name in names]
        assert 1 <= len(offsets) <= 2
        assert all(-720 <= minutes <= 840 for minutes in offsets)


def test_number_words_are_complete() -> None:
    found = table("number_words.json")
    for names in found["languages"].values():
        assert names.keys() == {"units", "tens", "hundred", "thousand"}
        assert 10 <= len(names["units"].split()) <= 20
    assert all(isinstance(value, (int, float)) for value in found["others"].values())


def test_sample_ibans_have_their_countrys_length() -> None:
    found = table("ibans.json")
    assert all(len(sample) == found["lengths"][sample[:2]] for sample in found["samples"])


def test_every_file_of_refusal_words_is_a_lexicon() -> None:
    assert {f"refusal/{language}.txt" for language in LANGUAGES} == {name for name in LISTS if name.startswith("refusal/")}
    for language in LANGUAGES:
        assert sections(f"refusal/{language}.txt").keys() | {"common"} == set(Lexicon._fields)
        assert lexicon(language)
