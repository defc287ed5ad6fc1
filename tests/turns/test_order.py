"""The same turns result from any order of telemetry, and from other telemetry in between.

Recordings of every archive are sent with children first, root first, log records before or after their spans, one span per request,
everything twice, and fifty recordings in one stream.
"""

from __future__ import annotations

import random
from functools import cache

import pytest

from otel_agenteval import load_turns
from otel_agenteval.core.jsonio import loads
from otel_agenteval.spans.otlp import from_json
from tests.support.recordings import CORPUS, files_in
from tests.support.streams import Stream, pieces

KINDS = ["shuffled, everything twice", "logs first, root first", "children first, logs last"]
ARCHIVES = [
    "corpus.tar.xz",
    "corpus_b.tar.xz",
    "frameworks.tar.xz",
    "ordinary_apps.tar.xz",
    *sorted(f"recordings/{path.name}" for path in (CORPUS.parent / "recordings").glob("*.tar.xz")),
]
_DIFFERS = ("close_reason", "complete", "revision", "supersedes")


@cache
def lines_in(archive):
    """Return the lines of each recording, log lines after span lines."""
    found = {}
    for name, text in sorted(files_in(archive).items(), key=lambda item: ".logs." in item[0]):
        if name.endswith(".jsonl"):
            recording = name.removeprefix("./").replace(".logs.jsonl", ".jsonl")
            found.setdefault(recording, []).extend(line for line in text.splitlines() if line.strip())
    return found


def turns_of(lines, folder):
    path = folder / "telemetry.jsonl"
    path.write_text("\n".join(lines))
    return [turn.to_dict() for turn in load_turns([path], report=pytest.fail)]


def order_of(kind, lines):
    found = list(pieces(lines))
    if kind == "shuffled, everything twice":
        mixed = found * 2
        random.Random(len(mixed)).shuffle(mixed)
        logs = [piece for piece in found if piece[0]]
        if len({(log.get("timeUnixNano") or log.get("observedTimeUnixNano"), log.get("spanId")) for _, log, _ in logs}) < len(
            logs
        ):  # only their order shows what came first
            in_order = iter(logs * 2)
            mixed = [next(in_order) if piece[0] else piece for piece in mixed]
        return [line for _, _, line in mixed]
    start = lambda piece: int(piece[1].get("startTimeUnixNano", 0))  # noqa: E731
    if kind == "logs first, root first":
        return [line for _, _, line in sorted(found, key=lambda piece: (not piece[0], start(piece)))]
    return [line for _, _, line in sorted(found, key=lambda piece: (piece[0], -start(piece)))]


def without(turn, *more):
    return {key: value for key, value in turn.items() if key not in (*_DIFFERS, *more)}


def whole(recordings):
    """Group recordings of the same traces, because a process sends the last spans and logs during its next run."""
    first_with = {}
    found = {}
    for name, lines in recordings.items():
        items = [item for line in lines for item in from_json(loads(line))]
        traces = {item.trace_id for item in items if item.trace_id}
        homes = {first_with[trace_id] for trace_id in traces if trace_id in first_with}
        home = min([name, *homes])
        found[home] = [line for one in sorted(homes) for line in found.pop(one)] + lines
        first_with |= dict.fromkeys(traces, home) | {trace_id: home for trace_id, one in first_with.items() if one in homes}
    return found


def check_orders(archive, step, folder):
    """Check each ``step``-th recording in one of the orders, and as spans that arrive over OTLP in any order."""
    stream, expected = Stream(), {}
    recordings = whole(lines_in(archive))
    for name in sorted(recordings)[::step]:
        turns = turns_of(lines := recordings[name], folder)
        kind = random.Random(name).choice(KINDS)
        assert turns_of(order_of(kind, lines), folder) == turns, (name, kind)
        if "_nowrap_off" not in name:
            expected |= {turn["turn_id"]: without(turn) for turn in turns}
            spans = [line for is_log, _, line in pieces(lines) if not is_log]
            random.Random(name).shuffle(spans)
            stream.send(spans)
            stream.send_logs([line for is_log, _, line in pieces(lines) if is_log])
            stream.finish()
    assert {turn_id: without(turn) for turn_id, turn in stream.turns().items()} == expected
    stream.engine.shutdown()


@pytest.mark.parametrize("archive", ARCHIVES)
def test_order_of_telemetry_does_not_matter(archive, tmp_path):
    check_orders(archive, 5, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("archive", ARCHIVES)
def test_order_of_every_recording_does_not_matter(archive, tmp_path):
    check_orders(archive, 1, tmp_path)


def test_fifty_recordings_in_one_stream_are_the_union_of_their_turns(tmp_path):
    corpus = lines_in("corpus.tar.xz")
    names = random.Random(7).sample([name for name in corpus if "_nowrap_off" not in name], 50)
    mixed = [line for name in names for _, _, line in pieces(corpus[name])]
    random.Random(8).shuffle(mixed)
    alone = [turn for name in names for turn in turns_of(corpus[name], tmp_path)]
    together = turns_of(mixed, tmp_path)
    key = lambda turn: turn["turn_id"]  # noqa: E731
    assert sorted(together, key=key) == sorted(alone, key=key)


@pytest.mark.parametrize("recordings", ["pydantic_ai-native_v6", "langchain-openinference", "strands-native"])
def test_what_comes_after_the_close_makes_the_turn_of_the_file_too(recordings, tmp_path):
    stream, expected = Stream(), {}
    for name, lines in lines_in("corpus.tar.xz").items():
        if name.startswith(f"{recordings}/"):
            expected |= {turn["turn_id"]: without(turn, "spans") for turn in turns_of(lines, tmp_path)}
            found = [line for _, _, line in sorted(pieces(lines), key=lambda piece: int(piece[1]["startTimeUnixNano"]))]
            stream.send(found[:1])
            stream.clock.advance(3)
            stream.engine.intake.tick()
            assert stream.engine.flush(60)
            stream.send(found[1:])
    assert {turn_id: without(turn, "spans") for turn_id, turn in stream.turns().items()} == expected
    assert stream.engine.assembler.late_spans > 0
    stream.engine.shutdown()
