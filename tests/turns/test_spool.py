"""Recordings spread over files on disk and over processes give the same turns in the same order as in memory."""

from __future__ import annotations

import itertools
import json
import os
import stat
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import AgentEvalError
from otel_agenteval.core.processes import Processes
from otel_agenteval.core.turn import Turn
from otel_agenteval.turns import spool
from otel_agenteval.turns.recordings import Reading, load_turns, to_stderr
from tests.support.judges import ScriptedModels
from tests.support.recordings import CORPUS, unpack_all


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: Any) -> list[str]:
    """Return files of every third recording: traces and logs, turns in several traces, threads, and calls recorded twice."""
    folder = tmp_path_factory.mktemp("recorded")
    for name in ("corpus", "corpus_b"):
        (folder / name).mkdir()
        unpack_all(CORPUS.with_name(f"{name}.tar.xz"), folder / name)
    parts = sorted(folder.rglob("*.jsonl"))[::3]
    files = [folder / f"all-{i}.jsonl" for i in range(3)]
    for i, file in enumerate(files):
        file.write_bytes(b"".join(part.read_bytes() for part in parts[i::3]))
    return [str(file) for file in files]


@pytest.fixture
def spooled(monkeypatch: Any) -> None:
    """Treat every recording as large."""
    monkeypatch.setattr(spool, "SMALL_BYTES", 0)
    monkeypatch.setattr(spool, "BATCH_BYTES", 500_000)


def printed(capsys: Any, *arguments: str) -> str:
    assert main([*arguments]) == 0
    return str(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        pytest.param(("turns",), id="turns"),
        pytest.param(("turns", "--conversations"), id="conversations"),
        pytest.param(("eval",), id="scores"),
        pytest.param(("eval", "--format", "table", "--metrics", "code_refusal,code_latency"), id="a table"),
    ],
)
def test_the_output_is_the_same_in_the_same_order(command: tuple[str, ...], recorded: Any, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(spool, "SMALL_BYTES", 2**30)
    in_memory = printed(capsys, *command, *recorded)
    assert len(in_memory.splitlines()) > 400
    monkeypatch.setattr(spool, "SMALL_BYTES", 0)
    monkeypatch.setattr(spool, "BATCH_BYTES", 500_000)
    for jobs in "1", "2":
        assert printed(capsys, *command, "--jobs", jobs, *recorded) == in_memory


def test_the_same_trace_in_another_process_than_its_continuation(recorded: Any, spooled: None, monkeypatch: Any) -> None:
    """Without moving related traces to the same process, turns would be split. These recordings contain such traces."""
    whole = [turn.turn_id for turn in load_turns(recorded)]
    monkeypatch.setattr(spool, "moved_together", lambda slots, *_: slots)
    parts = list(spool.results(recorded, ids, seen=Reading()))
    assert sorted(parts) != sorted(whole)
    assert len(parts) > len(whole)


def ids(turns: Iterable[tuple[Any, Turn]]) -> Iterator[tuple[Any, Any]]:
    yield from ((key, turn.turn_id) for key, turn in turns)


def test_all_turns_of_a_conversation_meet(recorded: Any, spooled: None) -> None:
    def conversations(turns: Iterable[tuple[Any, Turn]]) -> Iterator[tuple[Any, Any]]:
        yield (), {turn.conversation_id for _, turn in turns if turn.conversation_id}

    looked_at = list(spool.results(recorded, conversations, meet=True, seen=Reading()))
    found = [conversation for together in looked_at for conversation in together]
    assert len(found) == len(set(found)) > 50
    assert sum(map(bool, looked_at)) > 10  # and they are not all in one place


def test_what_cannot_be_read_is_told_and_counted_alike(tmp_path: Path, spooled: None, capsys: Any, monkeypatch: Any) -> None:
    file = tmp_path / "bad.jsonl"
    file.write_text("".join(f"no {i} {'x' * 100_000}\n" for i in range(30)) + "{}\n\n[]\n")
    other = tmp_path / "other.jsonl"
    other.write_text("nor this\n")

    def told() -> tuple[list[str], tuple[int, int]]:
        seen = Reading()
        list(spool.results([file, other], ids, seen=seen, report=to_stderr))
        return capsys.readouterr().err.splitlines(), (seen.lines, seen.bad)

    by_batches = told()
    monkeypatch.setattr(spool, "SMALL_BYTES", 2**30)
    assert told() == by_batches
    lines, counts = by_batches
    assert counts == (33, 33)
    assert [line.partition(": ")[0] for line in lines] == [str(file), str(other)]


def test_what_is_written_down_is_private_and_removed(recorded: Any, spooled: None, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    modes = set()

    def looks(turns: Iterable[tuple[Any, Turn]]) -> Iterator[tuple[Any, Any]]:
        for folder in tmp_path.iterdir():
            modes.add(stat.S_IMODE(folder.stat().st_mode) & 0o077)
            modes.update(stat.S_IMODE(file.stat().st_mode) & 0o077 for file in folder.iterdir())
        yield (), sum(1 for _ in turns)

    assert sum(spool.results(recorded[:1], looks, seen=Reading())) > 100
    assert modes == {0}
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_never_held_as_a_whole(recorded: Any, capsys: Any, monkeypatch: Any) -> None:
    with open(recorded[0], "rb") as stream:  # noqa: PTH123 - as standard input is
        monkeypatch.setattr("sys.stdin", type("Stdin", (), {"buffer": stream}))
        monkeypatch.setattr(spool, "wholes_of", refused_in(spool.wholes_of, 200))
        found = printed(capsys, "turns", "-")
    monkeypatch.undo()
    assert found == printed(capsys, "turns", recorded[0])


def refused_in(wholes_of: Any, most: int) -> Any:
    """Run ``wholes_of`` on only a small part of the spans."""

    def checked(items: Any, unread: Any) -> Any:
        held = list(items)
        traces = {item.trace_id for item in held}
        assert len(traces) <= most
        return wholes_of(held, unread)

    return checked


def _pid(item: int) -> tuple[int, int]:
    return item, os.getpid()


def test_processes_keep_the_order_and_one_item_starts_none() -> None:
    with Processes(2) as processes:
        assert list(processes.map(_pid, [7])) == [(7, os.getpid())]
        found = list(processes.map(_pid, range(20)))
    assert [item for item, _ in found] == list(range(20))
    assert os.getpid() not in {pid for _, pid in found}
    assert [item for item, pid in Processes(1).map(_pid, range(3)) if pid == os.getpid()] == [0, 1, 2]


def _killed(item: int) -> int:
    os._exit(9)


def test_a_process_that_is_killed_is_an_error_with_a_hint(capsys: Any) -> None:
    with Processes(2) as processes, pytest.raises(AgentEvalError, match="--jobs 1"):
        list(processes.map(_killed, range(3)))


@pytest.mark.parametrize("jobs", ["0", "two"])
def test_jobs_are_a_number_from_one(jobs: str, recorded: Any, capsys: Any) -> None:
    assert main(["turns", f"--jobs={jobs}", recorded[0]]) == 2
    assert "--jobs: " in capsys.readouterr().err


class Meets(ScriptedModels):
    """Responds to the first two calls when both have arrived."""

    def __init__(self) -> None:
        super().__init__()
        self._both = threading.Barrier(2)
        self._first = itertools.count()

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if next(self._first) < 2:
            self._both.wait(120)
        reply = json.dumps({"reason": "It answers.", "score": 90})
        return 200, {"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": reply}}]}


@pytest.mark.slow
def test_models_are_asked_about_several_turns_at_a_time(recorded: Any, spooled: None, tmp_path: Path, capsys: Any) -> None:
    """Models are called from this process, which has their budgets, cache and connections. Turns keep their order nevertheless."""
    server = Meets()
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps({"judge": {"base_url": server.url, "model": "m"}}))
    found = printed(capsys, "eval", "--metrics", "llm_relevance", "--config", str(config), "--jobs", "2", recorded[0])
    lines = [json.loads(line) for line in found.splitlines()]
    assert [line["turn_id"] for line in lines] == [turn.turn_id for turn in load_turns(recorded[:1])]
    assert {line["status"] for line in lines} <= {"ok", "skipped"}
    assert sum(line["status"] == "ok" for line in lines) > 50
