"""Offsets of a partition that may be committed: the next reader gets every open trace completely, and no part of a finished trace."""

from __future__ import annotations

import random

import pytest

from otel_agenteval.kafka.offsets import MAX_REPLAY, OtherVersion, Partition, Place


def test_an_open_trace_holds_its_first_message_back() -> None:
    partition = Partition(Place(0, 0), 0)
    for offset, trace in enumerate([1, 2, 1, 3]):
        partition.note(offset, [trace])
    assert partition.done(held={2, 3}) == Place(1, 0)  # trace 1 began before it and went on after it
    assert partition.done(held={3}) == Place(3, 3)
    assert partition.done(held=set()) == Place(4, 4)
    assert partition.done(held=set(), waiting=[2]) == Place(2, 0)


def test_where_to_look_from_is_kept_beside_the_offset() -> None:
    place = Place(7, 3)
    assert Place.read(7, place.metadata()) == place
    assert Place.read(7, None) == Place(7, 7)
    assert Place.read(7, "somebody else's") == Place(7, 7)
    assert Place.read(2, Place(7, 3).metadata()) == Place(2, 2)


@pytest.mark.parametrize("version", [0, 2])
def test_offset_of_another_version_is_refused(version: int) -> None:
    with pytest.raises(OtherVersion, match=f"got {version}"):
        Place.read(7, f"agenteval.v{version} from=3")


def test_traces_that_were_done_are_passed_over_until_what_was_there_is_read() -> None:
    partition = Partition(Place(5, 2), 9)
    for offset, trace in ((2, 1), (3, 2), (4, 1)):
        partition.skip(offset, [trace])
    assert partition.passed_over == {1, 2}
    assert partition.done(held=set()) == Place(5, 2)
    partition.note(5, [3])
    assert partition.done(held=set()) == Place(6, 2)  # the rests of 1 and 2 may still come
    for offset in (6, 7, 8):
        partition.note(offset, [4])
    assert partition.passed_over == set()
    assert partition.done(held={4}) == Place(6, 2)  # and may lie between 6 and 9
    assert partition.done(held=set()) == Place(9, 9)


def test_a_trace_that_is_open_for_too_long_holds_nothing_back() -> None:
    partition = Partition(Place(0, 0), 0)
    partition.note(0, [1])
    partition.note(MAX_REPLAY + 10, [2])
    assert partition.done(held={1, 2}).offset == MAX_REPLAY + 10


def test_what_can_no_longer_matter_is_forgotten() -> None:
    partition = Partition(Place(0, 0), 0)
    for offset in range(1_000):
        partition.note(offset, [offset // 2])
        if offset % 10 == 0:
            partition.commit(partition.done(held={offset // 2}))
    assert len(partition.traces) < 20


@pytest.mark.parametrize("seed", range(8))
def test_however_often_it_dies_every_trace_is_scored_whole_and_never_in_part(seed: int) -> None:
    """Interleaved traces of random lengths, with readers that commit and die at random."""
    chosen = random.Random(seed)
    log: list[int] = []  # the partition: trace of each message
    sizes: dict[int, int] = {}
    running: dict[int, int] = {}
    while len(log) < 400 or running:
        if len(log) < 400 and (not running or (len(running) < 8 and chosen.random() < 0.4)):
            trace = len(sizes)
            sizes[trace] = running[trace] = chosen.choice((1, 2, 3, 40))
        trace = chosen.choice(list(running))
        log.append(trace)
        running[trace] -= 1
        if not running[trace]:
            del running[trace]
    committed = Place(0, 0)
    scored: dict[int, int] = {}
    furthest = 0
    for _ in range(1_000):
        partition = Partition(committed, furthest)  # nobody has read more, so far: no rest can lie behind it
        got: dict[int, int] = {}
        looks: list[tuple[int, set[int]]] = []
        alive = chosen.randrange(1, 500)
        for offset in range(partition.position, len(log)):
            if offset < partition.begin:
                partition.skip(offset, [log[offset]])
                continue
            trace = log[offset]
            if trace not in partition.passed_over:
                got[trace] = got.get(trace, 0) + 1
                if got[trace] == sizes[trace]:
                    scored[trace] = scored.get(trace, 0) + 1
                partition.note(offset, [trace])
            else:
                partition.note(offset, [])
            furthest = max(furthest, partition.position)
            held = {trace for trace, count in got.items() if count < sizes[trace]}
            if chosen.random() < 0.1:
                looks.append((partition.position, held))
            if looks and chosen.random() < 0.1:  # what was closed at a look is handled by now
                position, before = looks.pop(0)
                if position >= partition.begin:
                    committed = partition.done(held | before, waiting=[position])
                    partition.commit(committed)
            alive -= 1
            if alive == 0:
                break
        rests = {trace for trace in got if log.index(trace) < partition.begin}
        assert rests == set(), "parts of traces that would be taken for turns"
        if partition.position == len(log):
            break
    assert scored.keys() == sizes.keys()


def test_who_looked_back_tells_the_next_to_do_so_until_all_rests_are_behind() -> None:
    """A trace that ends at message 8 is done. While another trace is open at message 6, the next reader gets the done trace's messages again."""
    partition = Partition(Place(6, 3), 10)
    for offset in (3, 4, 5):
        partition.skip(offset, [1])
    partition.note(6, [2])
    partition.note(7, [3])
    partition.note(8, [])  # the rest was passed over
    partition.note(9, [4])
    assert not partition.passed_over
    assert partition.done(held={2}) == Place(6, 3)
    assert partition.done(held={3}) == Place(7, 3)
    partition.commit(Place(7, 3))
    assert partition.done(held={3}, waiting=[7]) == Place(7, 3)
    assert partition.done(held=set()) == Place(10, 10)
