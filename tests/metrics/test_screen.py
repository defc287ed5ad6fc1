"""One scan of a text for the words of all detectors. It never rules out an existing word, and results are the same without the scan."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_agenteval.core.turn import Turn
from otel_agenteval.detectors import credentials, personal_marks, screen
from otel_agenteval.detectors.numbers import words
from otel_agenteval.detectors.screen import Finder, Look, ScreenedWords
from otel_agenteval.evaluation.evaluator import run
from otel_agenteval.metrics.bound_metric import live_metric

CASES = Path(__file__).parent.parent / "data" / "detectors"
GROUPS = {
    "homes": personal_marks.HOMES.ascii,
    "births": personal_marks.BIRTHS.ascii,
    "papers": personal_marks.PAPERS.ascii,
    "secrets": credentials._STEMS,
    "codes": credentials._CODE_STEMS,
}
LOOKING = ("pii_leakage", "secret_leak", "ungrounded_numbers")
FILLER = "Thank you for your patience, we will get back to you with all that there is to know as soon as we can, and then again. "


def turns(name: str) -> Iterator[dict[str, object]]:
    for half in ("train", "test"):
        for line in (CASES / half / f"{name}.jsonl").read_text(encoding="utf-8").split("\n"):
            if line:
                yield json.loads(line)["turn"]


def outputs() -> list[str]:
    return [str(turn.get("output") or "") for name in LOOKING for turn in turns(name)]


def test_no_group_is_ruled_out_of_a_text_that_has_one_of_its_pieces() -> None:
    """This also holds next to letters outside ASCII, and at both ends of the text."""
    for name, group in GROUPS.items():
        for output in outputs():
            written = output.encode("utf-8", "replace")
            for text, data in ((output, written), (output.lower(), output.lower().encode("utf-8", "replace"))):
                if group.occur_in(data):
                    assert group.may_be_in(Look(text)), f"{name}: {text!r}"


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("around", ["{}", "é{}ü" + FILLER, FILLER.upper() + " 漢{}字"])
def test_each_piece_is_seen_wherever_it_stands(group: str, around: str) -> None:
    for piece in GROUPS[group]._pieces:
        assert GROUPS[group].may_be_in(Look(around.format(piece.decode()))), piece


@pytest.mark.parametrize("gap", [" ", "-", "\u00a0", "\u3000"])
def test_each_word_for_a_number_is_seen_between_all_kinds_of_gaps(gap: str) -> None:
    """This holds in lower and upper case, and at both ends of a text."""
    for word in words._ALONE:
        for text in (f"{word}{gap}{FILLER}", f"{FILLER}{gap}{word}", f"{FILLER}{gap}{word.upper()}{gap}{FILLER}"):
            if words.may_have_words(text):
                assert words.may_have_words(text, Look(text)), repr(text)


def test_a_look_rules_out_what_is_not_there() -> None:
    """Otherwise, the scan would be useless."""
    look = Look(FILLER * 3)
    assert not any(group.may_be_in(look) for group in GROUPS.values())
    assert not words.may_have_words(look.text, look)
    assert not words._SCREENED.may_be_in(look)


@pytest.mark.parametrize("name", LOOKING)
def test_detectors_find_the_same_without_looks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Labeled turns give the same results, whatever the scan rules out."""
    metric = live_metric(f"code_{name}", {})
    some = list(turns(name))[::2]
    looked = [metric.evaluate(Turn.from_dict(turn)) for turn in some]
    monkeypatch.setattr(Look, "found", lambda self: screen._ALL)
    assert [metric.evaluate(Turn.from_dict(turn)) for turn in some] == looked


def test_a_turn_that_was_evaluated_keeps_no_look() -> None:
    """Thousands of turns are kept for late data, so memory matters."""
    turn = Turn.from_dict({"output": FILLER * 3 + " 1001"})
    metrics = [live_metric(f"code_{name}", {}) for name in LOOKING]
    metrics[0].evaluate(turn)
    assert turn.shared
    run(metrics, turn)
    assert not turn.shared


def test_a_group_that_is_made_later_is_not_ruled_out_by_an_earlier_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Detectors are imported on first use."""
    monkeypatch.setattr(screen, "_GROUPS", list(screen._GROUPS))
    monkeypatch.setattr(screen, "_FINDER", screen.Finder())
    monkeypatch.setattr(screen, "_FOUND_GROUPS", 0)
    look = Look(FILLER * 3)
    look.found()
    later = ScreenedWords(("patience",))
    assert later.may_be_in(look)
    assert later.may_be_in(Look(FILLER * 3))
    assert not ScreenedWords(("zebra",)).may_be_in(Look(FILLER * 3))


LETTERS = st.lists(st.integers(1, 6), min_size=3, max_size=7).map(bytes)


@given(pieces=st.lists(LETTERS, min_size=1, max_size=40), text=st.lists(st.integers(1, 6), max_size=60).map(bytes))
def test_pieces_are_found_just_where_they_stand(pieces: list[bytes], text: bytes) -> None:
    """This includes pieces of fewer than four letters, which must be followed by letters."""
    finder = Finder([(piece, 1 << place % 8) for place, piece in enumerate(pieces)])
    padded = text + bytes(4)
    expected = 0
    for place, piece in enumerate(pieces):
        if piece in padded:
            expected |= 1 << place % 8
    assert finder.found_in(padded) == expected
