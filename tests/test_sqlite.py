"""The shared code to open, share and close SQLite files."""

from __future__ import annotations

import logging
import re
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core.sqlite import Schema, SqliteFile, open_file, open_to_read, transaction
from otel_agenteval.judging.models import cache
from otel_agenteval.judging.queues import sqlite as queue
from otel_agenteval.outlets.otlp import spool
from otel_agenteval.outlets.store import sqlite as store
from tests.support.process import ROOT, environment, run
from tests.support.rig import Rig

NOTES = Schema("list of notes", 0x4E4F5445, "CREATE TABLE notes (text TEXT NOT NULL);")
KINDS = (queue.SCHEMA, cache.SCHEMA, spool.SCHEMA, store.SCHEMA)


def notes(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as db:
        return [row[0] for row in db.execute("SELECT text FROM notes ORDER BY rowid")]


def change(db: sqlite3.Connection, *statements: str) -> None:
    with transaction(db):
        for statement in statements:
            db.execute(statement)


def test_a_file_is_for_its_owner_only_and_opens_again_unless_closed_for_good(tmp_path: Path) -> None:
    file = SqliteFile(tmp_path / "notes.db", NOTES)
    for _ in range(2):
        with file.transaction() as db:
            db.execute("INSERT INTO notes VALUES ('a')")
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}
        file.close()
        assert [path.name for path in tmp_path.iterdir()] == ["notes.db"]
    file.close(for_good=True)
    with pytest.raises(sqlite3.ProgrammingError), file.connection():
        pass
    assert notes(tmp_path / "notes.db") == ["a", "a"]


def test_what_fails_is_rolled_back_and_the_next_transaction_goes_through(tmp_path: Path) -> None:
    with closing(open_file(tmp_path / "notes.db", NOTES)) as db:
        with pytest.raises(sqlite3.IntegrityError):
            change(db, "INSERT INTO notes VALUES ('before a statement that fails')", "INSERT INTO notes VALUES (NULL)")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        db.execute("CREATE TABLE children (parent INTEGER REFERENCES parents (id) DEFERRABLE INITIALLY DEFERRED)")
        with pytest.raises(sqlite3.IntegrityError):
            change(db, "INSERT INTO notes VALUES ('before a commit that fails')", "INSERT INTO children VALUES (1)")
        db.execute("PRAGMA max_page_count = 1")
        too_much = "INSERT INTO notes VALUES (hex(zeroblob(1000000)))"
        with pytest.raises(sqlite3.OperationalError, match="full"):
            change(db, "INSERT INTO notes VALUES ('before the disk is full')", too_much)
        change(db, "INSERT INTO notes VALUES ('the next one')")
    assert notes(tmp_path / "notes.db") == ["the next one"]


TAKES = """
    import sqlite3, sys
    from otel_agenteval.core.sqlite import open_file
    from tests.test_sqlite import NOTES
    try:
        open_file(sys.argv[1], NOTES, exclusive=True)
    except sqlite3.OperationalError as error:
        print(error)
"""


def test_neither_a_second_opening_nor_a_look_ends_the_locks_of_a_process(tmp_path: Path) -> None:
    """A POSIX lock ends as soon as its process closes any descriptor of the file."""
    path = tmp_path / "notes.db"
    held = open_file(path, NOTES, exclusive=True)
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        open_file(path, NOTES, busy=0.0)
    assert NOTES.fault_of(str(path)) is None
    assert run(TAKES, str(path)).stdout == "database is locked\n"
    held.close()
    assert run(TAKES, str(path)).stdout == ""


FORKS = """
    import os, sys, threading
    from otel_agenteval.core.sqlite import SqliteFile
    from tests.test_sqlite import NOTES

    file, ended = SqliteFile(sys.argv[1], NOTES), threading.Event()

    def write(*texts):
        for text in texts:
            with file.transaction() as db:
                db.execute("INSERT INTO notes VALUES (?)", (text,))

    def write_on():
        while not ended.is_set():
            write("of a thread")

    write("before")
    thread = threading.Thread(target=write_on)
    thread.start()
    children = []
    for number in range(5):
        told, go_on = os.pipe()
        child = os.fork()
        if not child:
            os.close(go_on)
            write(f"child {number}")
            os.read(told, 1)  # until the parent has closed the file
            write(f"child {number}")
            os._exit(0)
        os.close(told)
        children.append((child, go_on))
    ended.set()
    thread.join()
    file.close()
    for _, go_on in children:
        os.close(go_on)
    for child, _ in children:
        assert os.waitpid(child, 0)[1] == 0
    write("after")
"""


def test_parent_and_children_keep_all_that_they_write_whatever_a_thread_does_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    done = run(FORKS, str(path))
    assert (done.returncode, done.stderr) == (0, "")
    found = [note for note in notes(path) if note != "of a thread"]
    assert (found[0], found[-1]) == ("before", "after")
    assert sorted(found[1:-1]) == sorted([f"child {number}" for number in range(5)] * 2)


def test_reader_writes_nothing_and_refuses_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    open_file(path, NOTES).close()
    before = path.read_bytes()
    with closing(open_to_read(path, NOTES)) as db, pytest.raises(sqlite3.OperationalError, match="readonly"):
        db.execute("INSERT INTO notes VALUES ('b')")
    assert path.read_bytes() == before
    (tmp_path / "empty.db").touch()
    with pytest.raises(sqlite3.DatabaseError):
        open_to_read(tmp_path / "empty.db", NOTES)


def later(schema: Schema) -> Schema:
    """Return the schema of the next version."""
    added = "\nCREATE TABLE later (x);\nINSERT INTO later VALUES (1);\n"
    return replace(schema, tables=schema.tables + added, migrations=(*schema.migrations, added))


@pytest.mark.parametrize("schema", KINDS, ids=lambda schema: schema.name)
@pytest.mark.parametrize("other", ["later version", "other kind"])
def test_file_of_a_later_version_or_another_kind_is_refused_unchanged(tmp_path: Path, schema: Schema, other: str) -> None:
    path = tmp_path / "file.db"
    open_file(path, later(schema) if other == "later version" else NOTES).close()
    before = path.read_bytes()
    message = rf"{schema.name} .*, got {schema.version + 1}" if other == "later version" else f"must be a {schema.name}"
    for opens in (open_file, open_to_read):
        with pytest.raises(sqlite3.DatabaseError, match=message):
            opens(path, schema)
    assert re.search(message, schema.fault_of(str(path)) or "")
    assert [path.name for path in tmp_path.iterdir()] == ["file.db"]
    assert path.read_bytes() == before


def test_older_file_is_migrated_once_by_a_writer(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    with closing(open_file(path, NOTES)) as db:
        db.execute("INSERT INTO notes VALUES ('a')")
    before = path.read_bytes()
    with pytest.raises(sqlite3.DatabaseError, match="got 1; "):
        open_to_read(path, later(NOTES))
    assert path.read_bytes() == before
    too_much = "CREATE TABLE much (content BLOB);\nPRAGMA max_page_count = 1;\nINSERT INTO much VALUES (zeroblob(10000000));"
    with pytest.raises(sqlite3.OperationalError, match="full"):
        open_file(path, replace(NOTES, migrations=(*later(NOTES).migrations, too_much)))
    for _ in range(2):
        with closing(open_file(path, later(NOTES))) as db:
            assert db.execute("SELECT x FROM later").fetchall() == [(1,)]
    assert notes(path) == ["a"]


CREATES = """
    import sys
    from otel_agenteval.core.sqlite import open_file
    from tests.test_sqlite import KINDS, later

    for line in sys.stdin:
        number, _, path = line.strip().partition(" ")
        open_file(path, later(KINDS[int(number)])).close()
        print("done", flush=True)
"""


def test_processes_create_or_migrate_a_file_at_once(tmp_path: Path) -> None:
    command = [sys.executable, "-c", textwrap.dedent(CREATES)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
    with ExitStack() as stack:
        running = [stack.enter_context(subprocess.Popen(command, **pipes, env=environment(), cwd=ROOT)) for _ in range(3)]
        for number, schema in enumerate(KINDS):
            for turn in range(2):
                path = tmp_path / f"{number}-{turn}.db"
                if turn % 2:
                    open_file(path, schema).close()
                for process in running:
                    process.stdin.write(f"{number} {path}\n")
                assert [process.stdout.readline() for process in running] == ["done\n"] * 3
                with closing(sqlite3.connect(path)) as db:
                    assert db.execute("SELECT count(*) FROM later").fetchone() == (1,)
        for process in running:
            process.stdin.close()
            assert process.wait(120) == 0


def test_files_of_a_later_version_are_named_at_the_start_and_turns_are_evaluated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"judge.queue.path": queue.SCHEMA, "judge.cache.path": cache.SCHEMA, "outlets.store": store.SCHEMA}
    paths = {option: tmp_path / f"{option}.db" for option in options}
    for option, schema in options.items():
        open_file(paths[option], later(schema)).close()
    before = {path: path.read_bytes() for path in paths.values()}
    judge = {
        "base_url": "http://127.0.0.1:1/v1", "model": "m", "queue": {"backend": "sqlite", "path": str(paths["judge.queue.path"])},
        "cache": {"path": str(paths["judge.cache.path"])},
    }  # fmt: skip
    config = {"judge": judge, "metrics": ["llm_relevance"], "outlets": {"store": str(paths["outlets.store"])}}
    with caplog.at_level(logging.WARNING), Rig(config) as rig:
        rig.run(says="Paris.")
        assert not rig.processor.force_flush()  # the store's scores wait
        assert rig.kept
    for option, schema in options.items():
        assert any(line.startswith(option) and schema.name in line for line in caplog.messages), caplog.messages
    assert {path: path.read_bytes() for path in before} == before
