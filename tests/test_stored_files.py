"""Files that earlier versions wrote open, migrate and lose nothing; what later versions wrote is left as it is."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.sqlite import Schema, Step, open_file, open_to_read
from otel_agenteval.judging.models import cache
from otel_agenteval.judging.queues import sqlite as queue
from otel_agenteval.outlets.otlp import spool
from otel_agenteval.outlets.store import reader as store
from otel_agenteval.outlets.store.reader import SCORE_COLUMNS, TURN_COLUMNS, Retention, ScoreStore, StoreError, StoreReader
from otel_agenteval.server.journal_folder import ALONE, JournalFolder
from tests.support.process import ROOT, environment
from tests.support.stored_files import ARCHIVES, StoredFiles

ROOM = 1 << 30


class Kind(NamedTuple):
    """A kind of SQLite file."""

    file: str
    """Where an archive has it."""
    schema: Schema
    tables: tuple[str, ...]
    """Those that hold what must not be lost."""


KINDS = {
    "store": Kind("scores.db", store.SCHEMA, ("turns", "scores", "outcomes")),
    "queue": Kind("queue.db", queue.SCHEMA, ("jobs", "done", "totals", "spent")),
    "cache": Kind("verdicts.db", cache.SCHEMA, ("verdicts", "total")),
    "spool": Kind("spool/outbox-0.db", spool.SCHEMA, ("batches",)),
}
ONE_MORE = Step("CREATE TABLE steps_taken (number INTEGER);\nINSERT INTO steps_taken VALUES (1);\n")


@pytest.fixture(params=ARCHIVES, ids=lambda archive: archive.name.partition(".")[0])
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> StoredFiles:
    """The files of each version."""
    return StoredFiles(request.param, tmp_path / "stored")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    """Each kind of SQLite file."""
    return KINDS[request.param]


def rows_of(db: sqlite3.Connection, kind: Kind) -> dict[str, list[Any]]:
    return {table: sorted(db.execute(f"SELECT * FROM {table}").fetchall(), key=repr) for table in kind.tables}


def rows_today(path: Path, kind: Kind) -> dict[str, list[Any]]:
    """What a file holds once it has today's version; the file itself stays as it is."""
    copy = path.with_name("copy.db")
    for suffix in ("", "-wal"):
        shutil.copy(f"{path}{suffix}", f"{copy}{suffix}")
    with closing(open_file(copy, kind.schema)) as db:
        found = rows_of(db, kind)
    copy.unlink()
    assert any(found.values())
    return found


def later(schema: Schema) -> Schema:
    """The schema of a later version."""
    return replace(schema, steps=(*schema.steps, ONE_MORE))


# --- each kind opens, and goes on


def test_a_store_is_read_before_and_after_it_migrates(stored: StoredFiles) -> None:
    def read() -> tuple[Any, ...]:
        with StoreReader(stored.store) as reader:
            turns = reader.turns()
            whys = [reader.why(turn["turn_id"]) for turn in turns]
            return list(reader.rows()), [{**turn} for turn in turns], whys, reader.summary()

    before = read()
    rows, turns, whys, _ = before
    assert (len(rows), len(turns)) == (14, 6)
    assert {turn["content"]["output"] for turn in turns} == {f"City {number}." for number in range(6)}
    assert sum(why.get("llm_relevance") == "scored" for why in whys) == 2
    kept = ScoreStore(stored.store, Retention(1e9, ROOM), stored.clock())
    kept.write([], [], [(turns[0]["turn_id"], "code_new", "dropped: why")])
    kept.close()
    assert read()[:2] == (rows, turns)
    with StoreReader(stored.store) as reader:
        assert (reader.why(turns[0]["turn_id"]) or {})["code_new"] == "dropped: why"


def test_what_waits_in_a_spool_is_sent(stored: StoredFiles) -> None:
    with closing(open_file(Path(stored.spool, "outbox-0.db"), spool.SCHEMA, exclusive=True)) as db:
        batches = db.execute("SELECT signal, items, body FROM batches ORDER BY number").fetchall()
    assert {signal for signal, _, _ in batches} == {"logs"}
    requests = [ExportLogsServiceRequest.FromString(body) for _, _, body in batches]
    records = [
        record
        for request in requests
        for logs in request.resource_logs
        for scope in logs.scope_logs
        for record in scope.log_records
    ]
    assert len(records) == sum(items for _, items, _ in batches) == 14


def test_a_journal_of_the_first_version_is_refused(stored: StoredFiles) -> None:
    (segment,) = stored.journal.glob("*.requests")
    before = segment.read_bytes()
    with pytest.raises(
        ConfigError, match=f"{segment}: segment of an older version, got 1, .*; run the version of otel-agenteval that wrote it"
    ):
        JournalFolder(str(stored.journal)).share_out(ALONE)
    assert segment.read_bytes() == before


# --- every kind of SQLite file


def test_a_file_that_migrated_has_the_tables_of_a_new_one(stored: StoredFiles, kind: Kind) -> None:
    def tables(path: Path) -> dict[str, set[tuple[Any, ...]]]:
        with closing(open_file(path, kind.schema)) as db:
            names = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'index', 'trigger')")]
            facts = {name: {tuple(row[1:5]) for row in db.execute(f"PRAGMA table_info({name})")} for name in names}
        return {name: rows for name, rows in facts.items() if not name.startswith("sqlite_")}

    assert tables(stored.folder / kind.file) == tables(stored.folder / "new.db")


def test_a_store_has_the_columns_that_are_written(tmp_path: Path) -> None:
    with closing(open_file(tmp_path / "scores.db", store.SCHEMA)) as db:
        for table, columns in (("turns", TURN_COLUMNS), ("scores", SCORE_COLUMNS)):
            kinds = {row[1]: row[2] for row in db.execute(f"PRAGMA table_info({table})")}
            assert kinds == {name: text.split()[0] for name, text in columns.items()}


def test_one_more_step_is_taken_once_and_changes_nothing_else(stored: StoredFiles, kind: Kind) -> None:
    path = stored.folder / kind.file
    before = rows_today(path, kind)
    for _ in range(2):
        with closing(open_file(path, later(kind.schema))) as db:
            assert rows_of(db, kind) == before
            assert db.execute("SELECT * FROM steps_taken").fetchall() == [(1,)]
            assert db.execute("PRAGMA user_version").fetchone()[0] == len(kind.schema.steps) + 1


def test_a_file_of_a_later_version_is_refused_and_left_as_it_is(stored: StoredFiles, kind: Kind) -> None:
    path = stored.folder / kind.file
    open_file(path, later(kind.schema)).close()
    before = {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}
    newest, known = len(kind.schema.steps) + 1, len(kind.schema.steps)
    said = f"{path}: {kind.schema.name} of a newer version, got {newest}, this program reads {known}; upgrade otel-agenteval"
    for opens in (open_file, open_to_read):
        with pytest.raises(sqlite3.DatabaseError) as refused:
            opens(path, kind.schema)
        assert str(refused.value).startswith(said)
    assert (kind.schema.fault_of(str(path)) or "").startswith(said)
    assert {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")} == before


def test_a_file_of_another_kind_is_refused_and_left_as_it_is(stored: StoredFiles, kind: Kind) -> None:
    for other in KINDS.values():
        path = stored.folder / other.file
        open_file(path, other.schema).close()
        before = path.read_bytes()
        if other is not kind:
            with pytest.raises(sqlite3.DatabaseError, match=f"must be a {kind.schema.name}"):
                open_file(path, kind.schema)
            assert f"must be a {kind.schema.name}" in (kind.schema.fault_of(str(path)) or "")
        else:
            assert kind.schema.fault_of(str(path)) is None
        assert path.read_bytes() == before


def test_readers_name_the_version_that_they_cannot_read(stored: StoredFiles) -> None:
    open_file(stored.store, later(store.SCHEMA)).close()
    now = len(store.SCHEMA.steps)
    with pytest.raises(StoreError) as refused:
        StoreReader(stored.store)
    assert str(refused.value) == (
        f"{stored.store}: score store of a newer version, got {now + 1}, this program reads {now}; upgrade otel-agenteval, or choose another file"
    )


MIGRATES = """
    import sys
    from pathlib import Path
    from otel_agenteval.core.sqlite import open_file
    from tests.test_stored_files import KINDS, later

    for line in sys.stdin:
        name, _, path = line.strip().partition(" ")
        open_file(Path(path), later(KINDS[name].schema)).close()
        print("done", flush=True)
"""


def test_processes_that_migrate_a_file_at_once_take_each_step_once(stored: StoredFiles) -> None:
    command = [sys.executable, "-c", textwrap.dedent(MIGRATES)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen(command, **pipes, env=environment(), cwd=ROOT)) for _ in range(3)]
        for name, kind in KINDS.items():
            for turn in range(6):
                path = stored.folder / f"copy {turn} of {Path(kind.file).name}"
                if turn % 2:  # else a file that is new
                    for suffix in ("", "-wal"):
                        shutil.copy(f"{stored.folder / kind.file}{suffix}", f"{path}{suffix}")
                for process in running:
                    process.stdin.write(f"{name} {path}\n")
                assert [process.stdout.readline() for process in running] == ["done\n"] * 3
                with closing(sqlite3.connect(path)) as db:
                    assert db.execute("SELECT count(*) FROM steps_taken").fetchone() == (1,)
                    assert any(rows_of(db, kind).values()) or not turn % 2
        for process in running:
            process.stdin.close()
            assert process.wait(30) == 0


def test_a_disk_that_is_full_while_a_file_migrates_loses_nothing(stored: StoredFiles, kind: Kind) -> None:
    path = stored.folder / kind.file
    before = rows_today(path, kind)
    too_much = Step(
        "PRAGMA max_page_count = 1;\n"  # no page more than there are
        "CREATE TABLE much (content BLOB);\nINSERT INTO much VALUES (zeroblob(10000000));\n"
    )
    full = replace(kind.schema, steps=(*kind.schema.steps, ONE_MORE, too_much))
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            open_file(path, full)
    with closing(open_file(path, later(kind.schema))) as db:  # there is room again
        assert rows_of(db, kind) == before
        assert db.execute("SELECT count(*) FROM steps_taken").fetchone()[0] == 1


FULL = """
    import resource, sqlite3, sys
    from pathlib import Path
    from otel_agenteval.core.sqlite import open_file
    from tests.test_stored_files import KINDS

    resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
    for kind in KINDS.values():
        try:
            open_file(Path(sys.argv[1], kind.file), kind.schema).close()
            print("opened")
        except sqlite3.OperationalError as error:
            print("refused", error, file=sys.stderr)
"""


def test_files_that_nothing_can_be_written_to_migrate_once_it_can(stored: StoredFiles) -> None:
    before = {name: rows_today(stored.folder / kind.file, kind) for name, kind in KINDS.items()}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL), str(stored.folder)],
        env=environment(), cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == "", done.stderr
    for name, kind in KINDS.items():
        with closing(open_file(stored.folder / kind.file, kind.schema)) as db:
            assert rows_of(db, kind) == before[name]
