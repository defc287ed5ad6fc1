"""Undelivered scores appear in ``/readyz?verbose`` and metrics before the next turn and, if configured, make the sidecar not ready."""

from __future__ import annotations

import json
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import grpc
import psycopg
import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import ConfigError, MissingExtra
from otel_agenteval.core.sqlite import open_file
from otel_agenteval.outlets.store.sqlite import SCHEMA
from otel_agenteval.server.app import Service
from tests.support.postgres import PostgresServer
from tests.support.receiver import GrpcReceiver
from tests.support.servers import free_port, until
from tests.support.service import Sidecar, turn_of
from tests.support.stored_turns import filled, some_turns

VERBOSE = "/readyz?verbose"
Broken = Callable[[PostgresServer, Path], str]


def wrong_password(server: PostgresServer, folder: Path) -> str:
    return server.database().replace("secret", "wr0ng")


def missing_rights(server: PostgresServer, folder: Path) -> str:
    """Return a user who may write all tables except one."""
    address = filled(server.database(), some_turns(2))
    database = address.rpartition("/")[2]
    user = f"writer_{database}"
    with psycopg.connect(address, autocommit=True) as db:
        db.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'secret'")
        db.execute(f"GRANT CREATE ON DATABASE {database} TO {user}")
        db.execute(f"GRANT ALL ON SCHEMA agenteval TO {user}")
        db.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA agenteval TO {user}")
        db.execute(f"REVOKE INSERT ON agenteval.scores FROM {user}")
    return address.replace("agenteval:secret", f"{user}:secret")


def newer_file(server: PostgresServer, folder: Path) -> str:
    with closing(open_file(folder / "scores.db", SCHEMA)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA.version + 1}")
    return str(folder / "scores.db")


def no_folder(server: PostgresServer, folder: Path) -> str:
    return str(folder / "nowhere" / "scores.db")


BROKEN = {
    wrong_password: "password authentication failed",
    missing_rights: "permission denied for table scores",
    newer_file: "upgrade otel-agenteval",
    no_folder: "No such file or directory",
}


def evaluate(sidecar: Sidecar) -> None:
    """Close and evaluate open turns, even if their scores can't be delivered."""
    with sidecar.engine.assembler.lock:
        closed = sidecar.engine.assembler.close_all("delay")
    sidecar.engine.intake.take(closed)
    assert sidecar.engine.evaluate_closed(60)


def checks(sidecar: Sidecar) -> dict[str, dict[str, Any]]:
    status, body = sidecar.get(VERBOSE, "metrics", {"Accept": "application/json"})[:2]
    found = json.loads(body)
    assert found["ready"] == (status == 200) == (not found["reason"])
    return {check["name"]: check for check in found["checks"]}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_store_that_cannot_be_written_is_reported(broken: Broken, postgres: PostgresServer, tmp_path: Path) -> None:
    path = broken(postgres, tmp_path)
    with Sidecar({"outlets": {"store": path, "jsonl": str(tmp_path / "lines")}}) as own:
        own.engine.outlets.check()
        assert own.get("/readyz", "metrics") == (200, "ok\n")
        status, text = own.get(VERBOSE, "metrics")[:2]
        (line,) = [line for line in text.splitlines() if line.startswith("[-]")]
        assert status == 200
        assert text.endswith("\nready\n")
        assert line.startswith("[-] outlet store: ")
        assert BROKEN[broken] in line
        assert "[+] outlet jsonl: ok" in text
        assert "secret" not in text
        assert "wr0ng" not in text
        assert checks(own)["outlet store"]["required"] is False
        delivering = own.engine.telemetry.read(semconv.OUTLET_DELIVERING).values
        assert (delivering["store",], delivering["jsonl",]) == (0, 1)
        assert own.get("/healthz", "metrics") == (200, "ok\n")


def test_readiness_includes_the_outlets_that_it_names(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    with Sidecar({"outlets": {"store": str(folder / "scores.db")}, "serve": {"ready_outlets": ["store"]}}) as own:
        own.engine.outlets.check()
        for server in ("metrics", "http"):
            status, text = own.get("/readyz", server)[:2]
            assert (status, text.startswith("outlet store: ")) == (503, True)
            assert own.get(VERBOSE, server)[0] == 503
        assert checks(own)["outlet store"]["required"] is True
        assert own.post("/v1/traces", turn_of(1))[0] == 200, "spans are taken all the same"
        folder.mkdir()
        own.engine.outlets.check()
        assert own.get("/readyz") == (200, "ok\n")
        assert checks(own)["outlet store"]["reason"] == ""


def test_check_writes_what_waits_although_no_turn_comes(tmp_path: Path) -> None:
    folder = tmp_path / "later"
    with Sidecar({"outlets": {"store": str(folder / "scores.db")}}) as own:
        own.post("/v1/traces", turn_of(1))
        evaluate(own)
        assert own.engine.outlets.records()["store"].waiting > 0
        assert "records wait" in checks(own)["outlet store"]["reason"]
        folder.mkdir()
        own.engine.outlets.check()
        assert own.engine.outlets.records()["store"].waiting == 0
        with closing(sqlite3.connect(folder / "scores.db")) as db:
            assert db.execute("SELECT count(*) FROM turns").fetchone() == (1,), "the check leaves nothing"


def test_wrong_token_of_an_otlp_receiver_is_reported() -> None:
    receiver = GrpcReceiver()
    receiver.refusals += [(grpc.StatusCode.UNAUTHENTICATED, ())]
    outlet = {"endpoint": f"http://{receiver.address}", "protocol": "grpc", "metrics_interval": 0}
    with Sidecar({"outlets": {"otlp": outlet}}) as own:
        own.post("/v1/traces", turn_of(1))
        evaluate(own)
        own.engine.flush(60)
        assert "UNAUTHENTICATED" in checks(own)["outlet otlp"]["reason"]
    receiver.close()


def test_readiness_of_an_outlet_that_is_off_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"serve\.ready_outlets"):
        Service(load_config({"serve": {"ready_outlets": ["store"]}}))


def test_missing_extra_of_the_store_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtra, match=r"outlets\.store\.path: .*otel-agenteval\[postgres\]"):
        Service(load_config({"outlets": {"store": "postgresql://127.0.0.1:1/db"}}))


@pytest.mark.parametrize("has_journal", [True, False])
def test_undelivered_scores_at_shutdown_are_logged(has_journal: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    serve = {"drain_timeout": "1s", **({"journal": str(tmp_path / "journal")} if has_journal else {})}
    with Sidecar({"serve": serve, "outlets": {"otlp": {"endpoint": f"http://127.0.0.1:{free_port()}"}}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        evaluate(sidecar)
        until(lambda: any(check.name == "outlet otlp" and check.reason for check in sidecar.service.checks()), "it fails")
    assert any("scores kept until the next start: " in line for line in caplog.messages) == has_journal
    assert ("not all scores were delivered before shutdown: outlet otlp: " in caplog.text) != has_journal
    assert "increase" not in caplog.text
