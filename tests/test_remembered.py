"""The cache for results of reading texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from otel_agenteval.core import caches as module
from otel_agenteval.core.caches import forget, remembered


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARACTERS", 8_000)
    forget()


def counted(times: int = 1) -> tuple[Callable[[str], int], list[str]]:
    """Return a cached function, and the list of texts that it has read."""
    read: list[str] = []

    def length(text: str) -> int:
        read.append(text)
        return len(text)

    return remembered(length, times=times), read


def test_text_is_read_once() -> None:
    length, read = counted()
    assert [length("a" * 500), length("a" * 500), length("b")] == [500, 500, 1]
    assert len(read) == 2
    assert (remembered(str.upper)("b"), remembered(str.title)("bb")) == ("B", "Bb")


def test_kept_texts_are_bounded() -> None:
    length, read = counted()
    assert length("a" * 2_000) == length("a" * 2_000) == 2_000
    assert len(read) == 2, "a long text isn't kept"
    read.clear()
    for number in range(1_000):
        length(f"{number:500}")
        length("used often")
    assert len(read) == 1_001, "a text that is used often stays"
    read.clear()
    length(f"{0:500}")
    assert read, "the oldest are gone"


def test_parts_of_results_count() -> None:
    read: list[str] = []

    @remembered
    def parts(text: str) -> tuple[str, ...]:
        read.append(text)
        return tuple(text)

    for text in ("a" * 50, "a" * 50, "b", "b"):
        parts(text)
    assert read == ["a" * 50, "a" * 50, "b"], "fifty parts are more than an eighth of all"


def test_text_with_a_large_result_counts_several_times() -> None:
    large, read = counted(times=4)
    assert [large("a" * 500), large("a" * 500), large("b" * 50), large("b" * 50)] == [500, 500, 50, 50]
    assert read == ["a" * 500, "a" * 500, "b" * 50]
