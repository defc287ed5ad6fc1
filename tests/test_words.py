"""One word for one thing: what the field calls by another name, or plain English does, is not called by a word of our own.

``MEANT`` lists where such a word has to stay. An entry that is no longer needed fails the test until it is removed.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RETIRED: Mapping[str, tuple[str, str]] = {
    "fate": (r"fates?", "outcome"),
    "dear": (r"dear", "expensive"),
    "door": (r"doors?", "entry point; receiver, where OTLP comes in; listener, for an address"),
    "courier": (r"couriers?", "client"),
    "outbox": (r"outbox(es)?", "spool"),
    "parcel": (r"parcels?", "batch"),
    "leftover": (r"leftovers?", "unmatched, or remainder"),
    "settle": (r"settle[sd]?|settling", "acknowledge, deliver, or finish"),
    "hand over": (r"hand(s|ed|ing)? (it |them |this |everything |all |scores )?over", "deliver"),
    "look for cycles": (r"look(s|ed)? for cycles", "garbage collection"),
    "stand twice": (r"stands? twice", "duplicate"),
    "nothing is not allowed": (r"nothing is not allowed", "X is required"),
}
"""What is retired, in names, texts and comments → how it is found, and what to write."""
RETIRED_NAMES: Mapping[str, tuple[str, str]] = {
    "told": (r"told|tells?", "reported, given; report"),
    "asking": (r"asking", "session"),
    "offer": (r"offer(s|ed)?", "plan, planner"),
    "somebody": (r"who|whom|somebody|nobody", "a noun that says what it is"),
}
"""What is retired as a name, or part of one, in code; in a sentence it is fine."""
GUIDES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")
FOLDERS = ("docs", "examples", "deploy", "collector_config", "scripts", "benchmarks", "otel_agenteval")
KINDS = {".py", ".md", ".yaml", ".yml", ".tpl", ".txt", ".service", ".html", ".js"}

KEPT = re.compile(r'"handed_over"')
"""A key of the ledger that ``serve`` prints: other programs read it."""
MEANT = {
    ("benchmarks/scenario.py", "courier"): "the made-up conversation is about a delivery",
    ("benchmarks/scenario.py", "parcel"): "the same",
    ("otel_agenteval/evaluation", "dear"): "a name that configurations may still use",
    ("otel_agenteval/metrics", "dear"): "how a letter begins, which two detectors look for",
    ("otel_agenteval/metrics", "door"): "the code of a door is a secret",
    ("otel_agenteval/metrics", "hand over"): "what agents say that decline to",
    ("otel_agenteval/outlets", "fate"): "a table of older files",
    ("otel_agenteval/outlets", "outbox"): "the name of older files",
    ("otel_agenteval/outlets", "parcel"): "a table of older files",
    ("otel_agenteval/turns", "hand over"): "a tool call that hands a value over to its caller",
}
"""Where a word has its usual meaning, or has to stay, and why."""


def place_of(file: Path) -> str:
    """A room of the package; of all others the file."""
    parts = file.relative_to(ROOT).parts
    return "/".join(parts[:2]) if parts[0] == "otel_agenteval" else "/".join(parts)


def plain(text: str) -> str:
    """Words apart as in a sentence, also those of names: ``FateOf`` and ``fate_of`` are two words."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", KEPT.sub("", text)).replace("_", " ").lower()
    return re.sub(r"\s+(#:? )?", " ", text)


def names_in(source: str) -> Iterator[str]:
    """Every name that a module gives to something."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def retired_in(text: str, words: Mapping[str, tuple[str, str]] = RETIRED) -> set[str]:
    """The retired words of a text, as the table names them."""
    text = plain(text)
    return {word for word, (pattern, _) in words.items() if re.search(rf"\b(?:{pattern})\b", text)}


def files() -> Iterator[Path]:
    yield from (ROOT / name for name in GUIDES)
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*")):
            if file.suffix in KINDS and "__pycache__" not in file.parts:
                yield file


@functools.cache
def found() -> dict[tuple[str, str], str]:
    """(place, word) → a file in which it is."""
    words: dict[tuple[str, str], str] = {}
    for file in files():
        text = file.read_text(encoding="utf-8")
        retired = retired_in(text)
        if file.suffix == ".py":
            retired |= retired_in("\n".join(f"{name}." for name in names_in(text)), RETIRED_NAMES)
        words.update({(place_of(file), word): str(file.relative_to(ROOT)) for word in retired})
    return words


def test_no_retired_word_comes_back() -> None:
    back = {key: file for key, file in found().items() if key not in MEANT}
    assert [f"{file}: {word!r}; see RETIRED for what to write" for (_, word), file in sorted(back.items())] == []


def test_a_word_that_is_gone_leaves_the_list() -> None:
    assert sorted(MEANT.keys() - found().keys()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("Fates and a fate", {"fate"}, id="a word and its plural"),
        pytest.param("class FateOf: fate_of = 1", {"fate"}, id="a part of a name"),
        pytest.param("fatal, indoors, adoor", set(), id="no part of another word"),
        pytest.param("what was handed\n    # over", {"hand over"}, id="a phrase over the end of a line of comment"),
        pytest.param("hands them over", {"hand over"}, id="a phrase with a word in between"),
    ],
)
def test_retired_words_are_found(text: str, words: set[str]) -> None:
    assert retired_in(text) == words


def test_names_are_held_to_more_than_sentences() -> None:
    source = "def f(who):\n    # who is told\n    self.nobody_told = told = 1\n"
    assert retired_in("\n".join(f"{name}." for name in names_in(source)), RETIRED_NAMES) == {"somebody", "told"}
    assert retired_in(source) == set()
