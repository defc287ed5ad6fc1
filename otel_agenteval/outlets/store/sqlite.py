"""Score store in an SQLite file, which all processes on one machine can share."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from ...core import jsonio
from ...core.errors import StoreError
from ...core.sqlite import Schema, SqliteFile, open_to_read
from .statements import Syntax, create_tables, migrations

_BUSY_SECONDS = 2.0

SYNTAX = Syntax(
    p="?",
    types={},
    by_key_only=" WITHOUT ROWID",
    like="LIKE",
    contains="instr({}, {}) > 0",
    field="json_extract({}, {})",
    field_name=lambda name: f"$.{jsonio.dumps(name)}",
    number="(SELECT CASE WHEN typeof(v) <> 'text' THEN v END FROM (SELECT {} AS v))",
    floor="CAST({} AS INTEGER)",
    integer="CAST({} AS INTEGER)",
    total="total({})",
    unindexed="+{}",
    score_order="scores.rowid",
)


def _script(statements: Sequence[str]) -> str:
    return "".join(f"{statement};\n" for statement in statements)


SCHEMA = Schema(
    "score store", 0x4F414556,  # "OAEV"
    _script(create_tables(SYNTAX)), tuple(_script(step) for step in migrations(SYNTAX)), shrinks=True,
)  # fmt: skip


def open_writer(path: str) -> SqliteFile:
    return SqliteFile(path, SCHEMA, _BUSY_SECONDS)


def open_reader(path: str) -> sqlite3.Connection:
    """Open a score store for reading. If the store is unreadable or has another version, raise StoreError."""
    if not Path(path).is_file():
        folder = Path(path).absolute().parent
        raise StoreError(f"{path}: {'file not found' if folder.is_dir() else f'folder not found: {folder}'}")
    try:
        db = open_to_read(path, SCHEMA, _BUSY_SECONDS)
    except sqlite3.Error as error:
        text = str(error)  # complete for a file of another version
        if "not a database" in text:
            text = f"{path}: must be a score store, got another kind of file. To read traces or scores, use `otel-agenteval ui`"
        text = text if text.startswith(f"{path}: ") else f"{path}: can't read the score store: {text}"
        raise StoreError(text) from None
    db.row_factory = sqlite3.Row
    return db


def bytes_used(db: sqlite3.Connection) -> int:
    pages, free, size = (int(db.execute(f"PRAGMA {key}").fetchone()[0]) for key in ("page_count", "freelist_count", "page_size"))
    return (pages - free) * size
