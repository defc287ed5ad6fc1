"""A store that is read-only for a while is an outage like any other: everything waits, and is stored once it can be."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psycopg
import pytest

from otel_agenteval.outlets.fan_out import FanOut
from otel_agenteval.outlets.store.postgres import Connection, is_address
from otel_agenteval.outlets.store.sqlite import SCHEMA
from tests.outlets.factories import scored_turn
from tests.outlets.test_not_storable import scores_stored, turn_of
from tests.outlets.test_store import Kept, score
from tests.support.clock import FakeClock
from tests.support.postgres import Anywhere, PostgresServer


@pytest.fixture
def kept(anywhere: Anywhere, clock: FakeClock) -> Iterator[Kept]:
    """In a file, and in PostgreSQL."""
    kept = Kept(anywhere(), clock)
    yield kept
    kept.outlet.close()


@contextmanager
def read_only(address: str) -> Iterator[None]:
    """The database after a failover: connections have ended, and new ones write nothing."""
    name = address.rpartition("/")[2]
    with psycopg.connect(address, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        admin.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}' AND pid <> pg_backend_pid()"
        )
        try:
            yield
        finally:
            admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")


def emit_in_vain(kept: Kept, numbers: range) -> None:
    for number in numbers:
        with pytest.raises((OSError, sqlite3.Error)):
            kept.outlet.emit([turn_of(number)])


def check_stored(kept: Kept, turns: int) -> None:
    assert kept.outlet.flush(1)
    assert scores_stored(kept) == {turn_of(number).turn.turn_id: 2 for number in range(turns)}
    assert kept.outcomes() == {"sent": 2 * turns}
    kept.outlet.close()


def test_read_only_database_delays_turns(postgres: PostgresServer, clock: FakeClock) -> None:
    address = postgres.database()
    kept = Kept(address, clock)
    kept.outlet.emit([turn_of(0)])
    with read_only(address):
        emit_in_vain(kept, range(1, 20))
    check_stored(kept, 20)


def test_former_primary_is_left_for_the_new_one(postgres: PostgresServer, clock: FakeClock) -> None:
    kept = Kept(postgres.database(), clock)
    kept.outlet.emit([turn_of(0)])
    kept.outlet._store._file._connection._connection.execute("SET default_transaction_read_only = on")
    emit_in_vain(kept, range(1, 2))
    check_stored(kept, 2)


def test_read_only_file_delays_turns(tmp_path: Path, clock: FakeClock) -> None:
    kept = Kept(tmp_path / "scores.db", clock)
    kept.outlet.emit([turn_of(0)])
    kept.outlet._store._file._db.execute("PRAGMA query_only = on")  # as a connection that was opened while the file was read-only
    emit_in_vain(kept, range(1, 2))
    check_stored(kept, 2)


def test_outage_of_many_default_turns_fits_in_memory(tmp_path: Path, clock: FakeClock) -> None:
    """Without a journal, 3,000 turns with a score of each default metric wait for the store."""
    folder = tmp_path / "later"
    kept = Kept(folder / "scores.db", clock)
    names = [f"code_{place}" for place in range(25)]
    for first in range(0, 3_000, 100):
        batch = [
            scored_turn(
                *[score(number * 25 + place, name) for place, name in enumerate(names)], turn={"turn_id": f"{number:032x}-1"}
            )
            for number in range(first, first + 100)
        ]
        with pytest.raises(OSError):  # noqa: PT011 - whichever the system gives
            kept.outlet.emit(batch)
    folder.mkdir()
    assert kept.outlet.flush(1)
    assert kept.outcomes() == {"sent": 3_000 * len(names)}
    kept.outlet.close()


def test_store_of_a_newer_version_delays_turns(kept: Kept, caplog: pytest.LogCaptureFixture) -> None:
    kept.outlet.emit([turn_of(0)])
    path = str(kept.path)
    change = "UPDATE version SET number = {}" if is_address(path) else "PRAGMA user_version = {}"

    def set_version(number: int) -> None:
        kept.outlet._store._file.close()
        with closing(Connection(path, read_only=False) if is_address(path) else sqlite3.connect(path)) as db:
            db.execute(change.format(number))

    set_version(SCHEMA.version + 1)
    FanOut([kept.outlet], kept.telemetry).emit([turn_of(1)])
    assert "upgrade otel-agenteval" in caplog.text
    set_version(SCHEMA.version)
    check_stored(kept, 2)


def test_attempt_that_fails_slowly_is_not_made_for_every_turn(tmp_path: Path, clock: FakeClock) -> None:
    kept = Kept(tmp_path / "scores.db", clock)
    file, transaction = kept.outlet._store._file, kept.outlet._store._file.transaction
    attempts = []

    def away() -> None:
        attempts.append(1)
        clock.advance(5)
        raise ConnectionError

    file.transaction = away
    emit_in_vain(kept, range(10))
    assert len(attempts) == 1
    clock.advance(11)
    emit_in_vain(kept, range(10, 20))
    assert len(attempts) == 2
    file.transaction = transaction
    check_stored(kept, 20)
