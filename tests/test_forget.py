"""``otel-agenteval forget`` deletes all turns of a user or conversation, and nothing else."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.judging.job import Payload
from otel_agenteval.judging.queues import JobQueue, SqliteQueue
from otel_agenteval.judging.queues.redis import RedisQueue
from otel_agenteval.outlets.store.views import Filter, Views
from otel_agenteval.server.journal_folder import JournalFolder
from otel_agenteval.server.wal import Journal, Record
from tests.support.postgres import Anywhere
from tests.support.redis_server import RedisServer
from tests.support.rig import Rig
from tests.support.sender import ANSWERED, SAID
from tests.support.service import AGENT, CHAT, Sidecar, left_in, request
from tests.support.stored_turns import filled, some_turns

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def config(tmp_path: Path) -> dict[str, Any]:
    """Return a configuration with a store, and a judge queue that only collects jobs."""
    return {
        "outlets": {"store": {"path": str(tmp_path / "scores.db"), "content": True}},
        "judge": {
            "model": "m", "base_url": "http://127.0.0.1:9/v1",
            "queue": {"backend": "sqlite", "path": str(tmp_path / "queue.db"), "work": False},
        },
        "metrics": [{"llm_relevance": {}, "sample": {"rate": 1.0}}],
    }  # fmt: skip


def run_turns(config: dict[str, Any]) -> None:
    """Run six turns of two users in three conversations."""
    with Rig(config) as rig:
        for number in range(6):
            who = {"user.id": f"u-{number % 2}", "gen_ai.conversation.id": f"c-{number % 3}"}
            rig.run(user=f"Question {number} of Mallory?", says=f"Answer-{number}-xyzzy", attributes=who)


def forget(*args: str, config: dict[str, Any], tmp_path: Path) -> int:
    known = {key: value for key, value in config.items() if key != "metrics"}
    (tmp_path / "agenteval.yaml").write_text(json.dumps(known))
    return main(["forget", *args, "--config", str(tmp_path / "agenteval.yaml")])


def jobs_in(path: Path) -> list[str | None]:
    queue = SqliteQueue(str(path), 1 << 30)
    found = [Payload.decode(job.payload).turn().user_id for job in queue.claim(100, 1.0)]
    queue.close()
    return found


@pytest.mark.parametrize(("args", "left"), [(("--user", "u-0"), {1, 3, 5}), (("--conversation", "c-2"), {0, 1, 3, 4})])
def test_turns_are_deleted_in_store_and_queue(
    args: tuple[str, str], left: set[int], config: dict[str, Any], tmp_path: Path, capsys: Capture
) -> None:
    run_turns(config)
    assert forget(*args, config=config, tmp_path=tmp_path) == 0
    said = capsys.readouterr().out
    assert f"judge queue: {6 - len(left)} jobs deleted" in said
    assert f"{6 - len(left)} turns deleted" in said
    with Views(tmp_path / "scores.db") as views:
        turns = [views.turn(turn["turn_id"]) for turn in views.listed(Filter()).turns]
        assert {int(turn["content"]["output"].split("-")[1]) for turn in turns if turn} == left
        assert sum(cell.turns for cell in views.cells(Filter()) if not cell.metric) == len(left)
    assert len(jobs_in(tmp_path / "queue.db")) == len(left)
    raw = b"".join(file.read_bytes() for file in tmp_path.iterdir() if file.name.startswith(("scores.db", "queue.db")))
    assert {number for number in range(6) if f"Answer-{number}-xyzzy".encode() in raw} == left


def postpone(queue: JobQueue) -> None:
    """Claim all six jobs. Return four of them for a later day, and keep the others, as a killed process does."""
    for job in queue.claim(100, 3_600.0)[:4]:
        queue.retry_at(job, time.time() + 90_000)
    queue.close()


def test_jobs_that_wait_for_a_budget_or_another_process_are_deleted(
    config: dict[str, Any], tmp_path: Path, capsys: Capture
) -> None:
    run_turns(config)
    path = tmp_path / "queue.db"
    postpone(SqliteQueue(str(path), 1 << 30))
    assert jobs_in(path) == []
    assert forget("--user", "u-0", config=config, tmp_path=tmp_path) == 0
    assert "judge queue: 3 jobs deleted" in capsys.readouterr().out
    assert jobs_in(path) == ["u-1"] * 3, "the others can run"
    assert b"Answer-0-xyzzy" not in b"".join(file.read_bytes() for file in tmp_path.glob("queue.db*"))


def test_an_interrupted_command_returns_all_jobs(config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_turns(config)
    monkeypatch.setattr(Payload, "decode", lambda payload: (_ for _ in ()).throw(KeyboardInterrupt))
    assert forget("--user", "u-0", config=config, tmp_path=tmp_path) == 130
    queue = SqliteQueue(str(tmp_path / "queue.db"), 1 << 30)
    assert [job.attempts for job in queue.claim(100, 1.0)] == [1] * 6
    queue.close()


def test_the_default_queue_of_a_sidecar_is_found(
    config: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """``serve`` puts judge jobs into its state folder, even if the configuration has no queue."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    (tmp_path / "otel-agenteval").mkdir()
    path = tmp_path / "otel-agenteval" / "queue.db"
    config["judge"]["queue"]["path"] = str(path)
    run_turns(config)
    del config["judge"]["queue"], config["outlets"]
    assert forget("--user", "u-0", config=config, tmp_path=tmp_path) == 0
    assert "judge queue: 3 jobs deleted" in capsys.readouterr().out
    assert set(jobs_in(path)) == {"u-1"}
    path.unlink()
    assert forget("--user", "u-0", config=config, tmp_path=tmp_path) == 2
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "agenteval.yaml"))
    config["outlets"] = {"store": {"path": str(tmp_path / "scores.db")}}
    assert forget("--user", "u-0", config=config, tmp_path=tmp_path) == 0, "without a folder for state"
    assert not path.exists(), "a command that deletes data creates none"


def test_a_store_without_content_finds_a_user_and_does_not_contain_the_id(tmp_path: Path, capsys: Capture) -> None:
    with Rig({"outlets": {"store": {"path": str(tmp_path / "scores.db")}}}) as rig:
        rig.run(attributes={"user.id": "mallory@example.com"})
    assert b"mallory" not in (tmp_path / "scores.db").read_bytes()
    for expected in ("1 turn", "0 turns"):
        assert main(["forget", "--user", "mallory@example.com", "--store", str(tmp_path / "scores.db")]) == 0
        assert f"{expected} deleted" in capsys.readouterr().out


def traces_in(folder: Path) -> list[tuple[bool, str | None, int]]:
    """Return the remaining requests with their numbers of spans, as read after a restart."""
    found: list[Record] = []
    journal = Journal(JournalFolder(str(folder)).part(0), 1 << 30)
    journal.replay(lambda record: (found.append(record), {1})[1])
    journal.close(delivered=False)
    assert journal.broken == 0
    return [
        (one.is_json, one.tenant, one.body.count(b'"spanId"') if one.is_json else one.body.count(b"invoke_agent bot"))
        for one in found
    ]


def test_traces_are_deleted_in_the_journal_of_a_stopped_sidecar(tmp_path: Path, capsys: Capture) -> None:
    def turn(trace: int, user: str) -> list[dict[str, Any]]:  # only the root names the user
        root = {"trace": trace, "id": 1, "name": "invoke_agent bot", "attributes": {**AGENT, "enduser.id": user}}
        return [root, {"trace": trace, "id": 2, "parent": 1, "attributes": CHAT}]

    spans = [
        {
            "traceId": f"{number:032x}",
            "spanId": f"{1:016x}",
            "name": "chat",
            "attributes": [{"key": "user.id", "value": {"stringValue": f"u-{number % 2}"}}],
        }
        for number in range(20, 23)
    ]
    as_json = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    late = request({"trace": 1, "id": 3, "parent": 1, "name": "invoke_agent bot", "attributes": CHAT})
    folder = tmp_path / "journal"
    left_in(
        folder, ("traces", request(*turn(1, "u-0"), *turn(2, "u-1")), False, None), ("traces", late, False, "acme"), ("traces", as_json, True, None),
        ("traces", request(*turn(3, "somebody u-0")), False, None),
    )  # fmt: skip
    assert traces_in(folder) == [(False, None, 2), (False, "acme", 1), (True, None, 3), (False, None, 1)]
    assert main(["forget", "--user", "u-0", "--journal", str(folder)]) == 0
    assert "3 traces deleted" in capsys.readouterr().out
    assert traces_in(folder) == [(False, None, 1), (False, "acme", 0), (True, None, 1), (False, None, 1)]


def test_only_data_of_a_tenant_is_deleted(config: dict[str, Any], tmp_path: Path, capsys: Capture) -> None:
    """Two tenants have a user with the same id, and a trace with the same id."""
    config["serve"] = {"tenants": [{"name": name, "token": name} for name in ("acme", "other")]}
    root = {"trace": 1, "id": 1, "name": "invoke_agent bot", "attributes": {**AGENT, "user.id": "u-0"}}
    content = {"gen_ai.input.messages": SAID, "gen_ai.output.messages": ANSWERED}
    spans = request(root, {"trace": 1, "id": 2, "parent": 1, "attributes": {**CHAT, **content}})
    with Sidecar(config) as sidecar:
        for name in ("acme", "other"):
            assert sidecar.post("/v1/traces", spans, {"authorization": f"Bearer {name}"})[0] == 200
    folder = tmp_path / "journal"
    left_in(folder, ("traces", spans, False, "acme"), ("traces", spans, False, "other"))
    assert forget("--user", "u-0", "--tenant", "acme", "--journal", str(folder), config=config, tmp_path=tmp_path) == 0
    said = capsys.readouterr().out
    assert [line.rpartition(": ")[2] for line in said.splitlines()] == ["1 trace deleted", "1 job deleted", "1 turn deleted"]
    assert traces_in(folder) == [(False, "acme", 0), (False, "other", 1)]
    with Views(tmp_path / "scores.db") as views:
        assert [turn["tenant"] for turn in views.listed(Filter()).turns] == ["other"]
    assert len(jobs_in(tmp_path / "queue.db")) == 1


def test_the_journal_of_a_running_sidecar_is_left_alone(tmp_path: Path, capsys: Capture) -> None:
    with Sidecar({"serve": {"journal": str(tmp_path)}}):
        assert main(["forget", "--user", "u-0", "--journal", str(tmp_path)]) == 2
    printed = capsys.readouterr().err
    assert "in use by another process" in printed
    assert "0 s" not in printed


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--user", "u"], "no store, journal, queue, or cache is configured"),
        (["--user", "u", "--store", "{tmp}"], "{tmp} is a folder, not a file"),
        (["--user", "u", "--store", "{tmp}/other.db"], "{tmp}/other.db isn't an SQLite file"),
        (["--user", "u", "--store", "{tmp}/none.db"], "{tmp}/none.db: file not found"),
        (["--user", "u", "--store", "{tmp}/none/none.db"], "{tmp}/none/none.db: file not found"),
        (["--user", "u", "--journal", "{tmp}/none"], "--journal: {tmp}/none: folder not found"),
        (["--user", "u", "--journal", "{tmp}/other.db"], "--journal: {tmp}/other.db: folder not found"),
    ],
)
def test_what_cannot_be_used_is_an_error(args: list[str], says: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "other.db").write_text("not a database, but a text that is long enough to be a header of one")
    assert main(["forget", *(one.replace("{tmp}", str(tmp_path)) for one in args)]) == 2
    assert says.replace("{tmp}", str(tmp_path)) in capsys.readouterr().err
    assert [one.name for one in tmp_path.iterdir()] == ["other.db"]


def test_forget_creates_no_queue_or_cache(tmp_path: Path, capsys: Capture) -> None:
    files = {"queue": {"backend": "sqlite", "path": str(tmp_path / "queue.db")}, "cache": {"path": str(tmp_path / "cache.db")}}
    assert forget("--user", "u", config={"judge": files}, tmp_path=tmp_path) == 0
    assert "judge queue: 0 jobs deleted" in capsys.readouterr().out
    assert [one.name for one in tmp_path.iterdir()] == ["agenteval.yaml"]


@pytest.mark.parametrize("args", [[], ["--user", "a", "--conversation", "b"], ["--user", ""], ["--user", "a", "--tenant", " "]])
def test_a_user_or_a_conversation_is_required(args: list[str], capsys: Capture) -> None:
    with pytest.raises(SystemExit) as left:
        main(["forget", *args])
    assert left.value.code == 2
    assert "--user" in capsys.readouterr().err


@pytest.mark.parametrize("shards", [1, 3])
def test_jobs_are_deleted_in_redis(shards: int, config: dict[str, Any], tmp_path: Path, capsys: Capture) -> None:
    server = RedisServer(tmp_path / "redis")
    try:
        config["judge"]["queue"] = {"backend": "redis", "url": server.url, "work": False, "shards": shards}
        run_turns(config)
        postpone(RedisQueue(server.url, 1 << 30, shards=shards))
        assert forget("--user", "u-0", config=config, tmp_path=tmp_path) == 0
        assert "judge queue: 3 jobs deleted" in capsys.readouterr().out
        queue = RedisQueue(server.url, 1 << 30, shards=shards)
        left = [Payload.decode(job.payload).turn().user_id for job in queue.claim(100, 1.0)]
        queue.close()
        assert left == ["u-1"] * 3
        with server.client() as client:
            raw = b"".join(
                value
                for key in client.keys("*")
                if client.type(key) == b"stream"
                for _, fields in client.xrange(key)
                for value in fields.values()
            )
        assert {number for number in range(6) if f"Answer-{number}-xyzzy".encode() in raw} == {1, 3, 5}
        server.stop()
        assert forget("--user", "u-0", config=config, tmp_path=tmp_path) == 2
        assert "judge.queue: can't be used" in capsys.readouterr().err
    finally:
        server.stop()


def test_turns_of_a_conversation_are_deleted_in_any_store(anywhere: Anywhere, capsys: Capture) -> None:
    path = filled(anywhere(), some_turns(1_300))
    assert main(["forget", "--conversation", "conv-7", "--store", path]) == 0
    printed = capsys.readouterr().out
    assert "5 turns deleted" in printed
    assert ":secret@" not in printed
    with Views(path) as views:
        assert views.listed(Filter(conversation="conv-7")).turns == []
        assert sum(cell.turns for cell in views.cells(Filter()) if not cell.metric) == 1_295
