"""Additions to a configuration file change nothing else. The file isn't written if the result doesn't load."""

from __future__ import annotations

from pathlib import Path

import pytest

from otel_agenteval.config.editing import Addition, add_to_file, with_additions
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.types import KeyPath
from otel_agenteval.core.errors import ConfigError

NEW = 'code_u: {allowed: [docs.acme.com, "+49 30"]}'
FIRST: list[KeyPath] = [("metrics", 0)]


def edited(text: str, entries: list[KeyPath]) -> str:
    return with_additions(text, "f.yaml", [Addition("code_u", "allowed", ["docs.acme.com", "+49 30"], entries)])


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param("", f"metrics:\n  - {NEW}\n", id="empty"),
        pytest.param("turn: {} # x\n\n# end\n", f"turn: {{}} # x\nmetrics:\n  - {NEW}\n\n# end\n", id="other sections"),
        pytest.param("turn: {}", f"turn: {{}}\nmetrics:\n  - {NEW}\n", id="no final line end"),
        pytest.param(
            "metrics:\n  - a # c\n  # d\nturn: {}\n", f"metrics:\n  - a # c\n  - {NEW}\n  # d\nturn: {{}}\n", id="a list"
        ),
        pytest.param(
            "metrics:\n- a\n- b:\n    x: |\n      y\n\nturn: {}\n",
            f"metrics:\n- a\n- b:\n    x: |\n      y\n\n- {NEW}\nturn: {{}}\n",
            id="a list without indent, after a block of text",
        ),
        pytest.param("metrics: [a, b,]\n", f"metrics: [a, b, {{{NEW}}},]\n", id="a list in brackets"),
        pytest.param("metrics: []\n", f"metrics: [{{{NEW}}}]\n", id="an empty list"),
        pytest.param("metrics:\nturn: {}\n", f"metrics: [{{{NEW}}}]\nturn: {{}}\n", id="nothing"),
        pytest.param("{turn: {}}\n", f"{{turn: {{}}, metrics: [{{{NEW}}}]}}\n", id="a file in braces"),
        pytest.param("---\nmetrics:\n  - b\n...\n", f"---\nmetrics:\n  - b\n  - {NEW}\n...\n", id="a document with marks"),
        pytest.param("metrics:\r\n  - b\r\nturn: {}\r\n", f"metrics:\r\n  - b\r\n  - {NEW}\r\nturn: {{}}\r\n", id="CRLF"),
    ],
)
def test_a_new_entry_keeps_the_rest(text: str, result: str) -> None:
    assert edited(text, []) == result


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param("metrics:\n  - code_u # ü\n  - b\n", f"metrics:\n  - {NEW} # ü\n  - b\n", id="a name"),
        pytest.param("metrics: ['code_u', b]\n", f"metrics: ['code_u'{NEW[6:]}, b]\n", id="a quoted name in brackets"),
        pytest.param("\ufeffmetrics:\n  - code_u\n", f"\ufeffmetrics:\n  - {NEW}\n", id="a byte order mark"),
        pytest.param("metrics:\n  - code_u:\n    policy: gate\n", f"metrics:\n  - {NEW}\n    policy: gate\n", id="no parameters"),
        pytest.param("metrics:\n  - code_u: {}\n", f"metrics:\n  - {NEW}\n", id="empty parameters"),
        pytest.param(
            "metrics:\n  - policy: gate\n    code_u: {allowed: [a.com]}\n",
            'metrics:\n  - policy: gate\n    code_u: {allowed: [a.com, docs.acme.com, "+49 30"]}\n',
            id="a list in brackets",
        ),
        pytest.param(
            "metrics:\n  - code_u: {allowed: [\n     a.com, # one\n   ], x: 1}\n",
            'metrics:\n  - code_u: {allowed: [\n     a.com, docs.acme.com, "+49 30", # one\n   ], x: 1}\n',
            id="a list in brackets over several lines",
        ),
        pytest.param(
            "metrics:\n  - code_u:\n      allowed:\n        - a.com # one\n        # end\n      x: 1\n",
            'metrics:\n  - code_u:\n      allowed:\n        - a.com # one\n        - docs.acme.com\n        - "+49 30"\n        # end\n      x: 1\n',
            id="a list of lines",
        ),
        pytest.param(
            "metrics:\n  - code_u:\n      x: 1 # one\n    when: {agent: a}\n",
            'metrics:\n  - code_u:\n      x: 1 # one\n      allowed: [docs.acme.com, "+49 30"]\n    when: {agent: a}\n',
            id="other parameters",
        ),
    ],
)
def test_an_existing_entry_is_extended(text: str, result: str) -> None:
    assert edited(text, FIRST) == result


def test_several_entries_of_one_metric_are_extended() -> None:
    text = "groups:\n  mine:\n    metrics: [code_u]\nmetrics:\n  - code_u: {x: 2}\n"
    found = edited(text, [("metrics", 0), ("groups", "mine", "metrics", 0)])
    assert found == text.replace("[code_u]", f"[{NEW}]").replace("x: 2", 'x: 2, allowed: [docs.acme.com, "+49 30"]')


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("x: &p {allowed: [a]}\nmetrics:\n  - code_u: *p\n", id="an alias"),
        pytest.param("metrics:\n  - code_u: {allowed: a}\n", id="a text"),
        pytest.param("metrics: []\n", id="an entry that only another source has"),
        pytest.param("metrics\n", id="a file with only a word"),
    ],
)
def test_a_place_that_cannot_be_edited_is_refused_with_the_setting(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^f\.yaml: code_u can't be edited here. Add this setting by hand: code_u: \{allowed"):
        edited(text, FIRST)


def test_any_value_is_read_back_as_written(tmp_path: Path) -> None:
    for number, value in enumerate(["true", "1.5", "a: b", "# x", "*@acme.com", "##.##", 'a"b', "€ ##"]):
        file = tmp_path / f"{number}.yaml"
        add_to_file(file, [Addition("code_ungrounded_urls", "allowed", [value])], load_config)
        assert load_config(file).metrics[0].params == {"allowed": [value]}
    with pytest.raises(ConfigError, match="by hand"):
        add_to_file(file, [Addition("code_ungrounded_urls", "allowed", ["${env:X}"])], load_config)


def test_a_file_that_does_not_load_is_not_written(tmp_path: Path) -> None:
    def refuse(file: Path) -> None:
        raise ConfigError(f"{file}:1: no")

    file = tmp_path / "c.yaml"
    file.write_text("turn: {}\n")
    with pytest.raises(ConfigError, match=rf"^{file}:1: no$"):
        add_to_file(file, [Addition("code_u", "allowed", ["a.com"])], refuse)
    assert file.read_text() == "turn: {}\n"
    assert [one.name for one in tmp_path.iterdir()] == ["c.yaml"]


def test_a_written_file_keeps_mode_and_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    real.write_text("turn: {}\n")
    real.chmod(0o640)
    link.symlink_to(real)
    add_to_file(link, [Addition("code_ungrounded_urls", "allowed", ["a.com"])], load_config)
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert "a.com" in real.read_text()
