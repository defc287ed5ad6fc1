"""PostgreSQL score store: outages, several writers, versions, and secrets in errors."""

from __future__ import annotations

import json
import os
import threading
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import StoreError
from otel_agenteval.core.score import Score
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.outlets.store import postgres as postgres_store
from otel_agenteval.outlets.store.outlet import StoreOutlet
from otel_agenteval.outlets.store.postgres import Connection, PostgresDatabase, is_address, without_password
from otel_agenteval.outlets.store.reader import StoreReader
from otel_agenteval.outlets.store.statements import migrations
from otel_agenteval.outlets.store.views import Filter, Views
from otel_agenteval.outlets.store.writer import Rows
from tests.outlets.factories import scored_turn
from tests.support.page import ServedPage
from tests.support.postgres import PostgresServer, postgres_server
from tests.support.rig import Rig
from tests.support.stored_turns import filled, score_row, some_turns, store_at, turn_row


def test_an_outage_delays_scores_and_loses_none() -> None:
    with postgres_server() as server:
        address = server.database()
        wanted = load_config({"outlets": {"store": address}}, {}).outlets.store
        assert wanted is not None
        outlet = StoreOutlet(wanted, Telemetry(), lambda: "engine-1")
        outlet.emit([scored_turn(Score("code_a", 1.0, result_id="1" * 32))])
        with ServedPage(address) as page:
            serving = psutil.Process(server.process.pid).children(recursive=True)
            server.process.kill()
            assert not psutil.wait_procs(serving, timeout=60)[1], "a connection outlives the server that made it, for a moment"
            response = page.client.get("/api/v1/turns")
            assert response.status_code == 503
            assert "secret" not in response.text
            for number in (2, 3):
                with pytest.raises(OSError, match=r"^PostgreSQL: \w+$"):
                    outlet.emit([scored_turn(Score(f"code_{number}", 1.0, result_id=str(number) * 32))])
            assert outlet.flush(0) is False
            server.start()
            outlet.emit([scored_turn(Score("code_4", 1.0, result_id="4" * 32))])
            outlet.close()
            assert len(page.get("turns")["turns"]) == 1
        with StoreReader(address) as reader:
            assert [row["metric"] for row in reader.rows()] == ["code_a", "code_2", "code_3", "code_4"]


def test_several_sidecars_write_at_once(postgres: PostgresServer) -> None:
    address = postgres.database()
    faults: list[BaseException] = []

    def write(writer: int) -> None:
        store = store_at(address)
        try:
            for batch in range(6):
                turns = [turn_row(batch * 10 + number) for number in range(10)]  # all of them the same turns
                store.write(Rows(turns, [score_row(turn, f"code_{writer}") for turn in turns]))
        except BaseException as error:
            faults.append(error)
        finally:
            store.close()

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    with Views(address) as views:
        found = {cell.metric: (cell.turns, cell.scored) for cell in views.cells(Filter())}
    assert found == {"": (60, 0), **{f"code_{writer}": (60, 60) for writer in range(3)}}


def test_an_engine_keeps_its_turns_and_every_command_reads_them(
    postgres: PostgresServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = postgres.database()
    with Rig({"outlets": {"store": {"path": address, "content": True}}}) as rig:
        rig.run()
        written = {record.attributes["agenteval.result.id"] for record in rig.log_events()}
        with StoreReader(address) as reader:
            (turn,) = reader.turns()
            assert {row["result_id"] for row in reader.rows()} == written
            assert reader.why(turn["turn_id"]) == rig.engine.why(turn["turn_id"])
    assert main(["why", turn["turn_id"][:40], "--store", address, "--json"]) == 0
    assert "scored" in json.loads(capsys.readouterr().out)["metrics"].values()
    assert main(["export", "--store", address]) == 0
    assert turn["turn_id"] in capsys.readouterr().out
    assert main(["turns", "--store", address]) == 0
    assert main(["estimates", "--store", address, "--by", "service"]) == 0
    capsys.readouterr()
    with ServedPage(address) as page:
        assert page.get("turns")["turns"][0]["turn_id"] == turn["turn_id"]
        assert page.get(f"turns/{turn['turn_id']}")["content"]["turn_id"] == turn["turn_id"]


def test_what_is_no_store_of_ours_is_said_without_the_password(
    postgres: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    address = postgres.database()
    for given in (address, address.replace("secret", "wrong"), address.replace("127.0.0.1", "127.0.0.2")):
        assert main(["why", "abcd", "--store", given]) == 2
        said = capsys.readouterr().err
        assert "can't read the score store" in said
        assert "secret" not in said
        assert "wrong" not in said
    assert without_password("postgresql://ann:pass@h/db") == "postgresql://ann:****@h/db"
    assert without_password("postgresql://ann:p@ss@h/db") == "postgresql://ann:****@h/db"
    assert (
        without_password("postgresql://ann@h/db?password=pass&sslmode=require")
        == "postgresql://ann@h/db?password=****&sslmode=require"
    )
    assert without_password("postgresql://h/db") == "postgresql://h/db"


def test_store_of_a_later_version_is_refused(postgres: PostgresServer) -> None:
    address = filled(postgres.database(), some_turns(3))
    with closing(Connection(address, read_only=False)) as db:
        db.execute("UPDATE version SET number = 99")
    with pytest.raises(StoreError, match=r"newer version: must be .*, got 99"):
        StoreReader(address)
    with closing(PostgresDatabase(address)) as database, pytest.raises(StoreError, match="newer"), database.transaction():
        pass


def test_store_of_an_older_version_is_migrated_by_a_writer(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    address = filled(postgres.database(), some_turns(3))
    with closing(Connection(address, read_only=False)) as db:
        db.execute("ALTER TABLE turns DROP COLUMN case_key")
    monkeypatch.setattr(postgres_store, "VERSION", 2)
    monkeypatch.setattr(postgres_store, "migrations", lambda sql: migrations(sql, [[("turns", "case_key")]]))
    with pytest.raises(StoreError, match="older version"):
        StoreReader(address)
    filled(address, some_turns(3))
    with StoreReader(address) as reader:
        assert len(reader.turns()) == 3


def test_a_forked_child_uses_a_connection_of_its_own(postgres: PostgresServer) -> None:
    address = postgres.database()
    store = store_at(address)
    store.write(Rows([turn_row(1)], []))
    child = os.fork()
    if child == 0:  # pragma: no cover - another process
        try:
            store.write(Rows([turn_row(2)], []))
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0
    store.write(Rows([turn_row(3)], []))
    store.close()
    with Views(address) as views:
        assert len(views.listed(Filter()).turns) == 3


def test_a_forked_child_that_closes_leaves_the_parents_session_open(postgres: PostgresServer) -> None:
    with closing(PostgresDatabase(postgres.database())) as database:
        with database.connection() as db:
            session = db.execute("SELECT pg_backend_pid()").fetchone()[0]
        child = os.fork()
        if child == 0:  # pragma: no cover - another process
            try:
                database.close()
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitpid(child, 0)[1] == 0
        with database.connection() as db:
            assert db.execute("SELECT pg_backend_pid()").fetchone()[0] == session


def test_a_reader_cannot_write(postgres: PostgresServer) -> None:
    address = filled(postgres.database(), some_turns(3))
    with StoreReader(address) as reader, pytest.raises(ConnectionError, match="ReadOnlySqlTransaction"):
        reader._db.execute("DELETE FROM turns")


def test_texts_that_postgresql_cannot_hold_are_kept_as_far_as_it_can(postgres: PostgresServer) -> None:
    turn = turn_row(1, agent="a\0b", content={"input": "50 % of ? and :name 'quoted'"})
    with Views(filled(postgres.database(), [(turn, [score_row(turn, explanation="x\0y %s ?")])])) as views:
        (shown,) = views.listed(Filter(text="50 % of ?")).turns
        assert shown["agent"] == "a\ufffdb"
        assert views.scores(shown["turn_id"])[0]["explanation"] == "x\ufffdy %s ?"


def test_addresses_are_told_from_files() -> None:
    assert is_address("postgresql://h/db")
    assert is_address("postgres://h/db")
    assert not is_address("postgresql.db")
