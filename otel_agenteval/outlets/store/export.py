"""Export of scores as JSON lines, CSV, or Parquet, one row per score."""

from __future__ import annotations

import csv
import datetime
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, TextIO

from ...core import jsonio
from ...core.display import LINES, escaped
from ...core.errors import AgentEvalError
from ...core.extras import require
from ...core.files import private
from ...core.wellformed import for_document
from .reader import EXPORTED
from .statements import SCORE_COLUMNS, TURN_COLUMNS

FORMATS = ("jsonl", "csv", "parquet")
_TIMES = ("start", "scored_at")
_BATCH = 10_000
_FORMULA_SIGNS = frozenset("=+-@\t\r\uff1d\uff0b\uff0d\uff20")
"""First characters that make a spreadsheet interpret a cell as a formula. See OWASP, "CSV injection"."""
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def write_file(rows: Iterator[dict[str, Any]], kind: str, out: Path) -> int:
    partial = out.with_name(f"{out.name}.partial")
    try:
        os.close(private(str(partial), os.O_WRONLY | os.O_CREAT | os.O_TRUNC))
        if kind == "parquet":
            count = _write_parquet(rows, partial)
        else:
            with partial.open("w", encoding="utf-8", newline="") as stream:
                count = write_text(rows, kind, stream)
        partial.replace(out)
    except OSError as error:
        raise AgentEvalError(f"{out}: can't be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
    return count


def write_text(rows: Iterable[dict[str, Any]], kind: str, stream: TextIO) -> int:
    count = 0
    if kind == "csv":
        table = csv.writer(stream, lineterminator="\n")
        table.writerow(EXPORTED)
        shown = stream.isatty()
        for row in rows:
            cells = [for_csv(row[name]) for name in EXPORTED]
            table.writerow([escaped(text, LINES) if shown and isinstance(text, str) else text for text in cells])
            count += 1
        return count
    for row in rows:
        known = {name: value for name, value in row.items() if value is not None}
        for name in known.keys() & set(_TIMES):
            moment = datetime.datetime.fromtimestamp(known[name], datetime.timezone.utc)
            known[name] = moment.isoformat(timespec="microseconds").replace("+00:00", "Z")
        stream.write(f"{escaped(jsonio.dumps({**known, 'value': row['value']}))}\n")
        count += 1
    return count


def for_csv(value: Any) -> Any:
    """Return a CSV cell that spreadsheets don't interpret as a formula. Carriage returns become line feeds. Characters that HTML
    and XML forbid become U+FFFD.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        value = jsonio.dumps(value)
    if not isinstance(value, str):
        return value
    plain = for_document(value).replace("\r\n", "\n").replace("\r", "\n")
    is_formula = value.lstrip(" \ufeff\u200b\n")[:1] in _FORMULA_SIGNS and _NUMBER.fullmatch(value) is None
    return f"'{plain}" if is_formula else plain


def _write_parquet(rows: Iterator[dict[str, Any]], file: Path) -> int:
    arrow = require("pyarrow", feature="writing Parquet", extra="parquet")
    parquet = require("pyarrow.parquet", feature="writing Parquet", extra="parquet")
    kinds = {"TEXT": arrow.string(), "REAL": arrow.float64(), "INTEGER": arrow.int64()}
    known = {**TURN_COLUMNS, **SCORE_COLUMNS}
    special = {
        **dict.fromkeys(("complete", "passed", "cost_estimated"), arrow.bool_()),
        **dict.fromkeys(_TIMES, arrow.timestamp("us", "UTC")),
    }
    schema = arrow.schema([(name, special.get(name) or kinds[known[name].split()[0]]) for name in EXPORTED])
    count = 0
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while batch := list(islice(rows, _BATCH)):
            for row in batch:
                for name in _TIMES:
                    row[name] = None if row[name] is None else round(row[name] * 1e6)
                for name in ("detail", "also"):
                    row[name] = None if row[name] is None else jsonio.dumps(row[name])
            writer.write_batch(arrow.RecordBatch.from_pylist(batch, schema=schema))
            count += len(batch)
    return count
