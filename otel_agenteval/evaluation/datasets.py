"""Read the cases of a data set from JSON lines, CSV, Parquet, or objects in memory."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ..core import jsonio
from ..core.errors import ConfigError
from ..core.extras import require

_CASE_COLUMNS = ("case_id", "id", "case")


class Case(NamedTuple):
    case_id: str | None
    input: Any
    """The input, or None if only the id is known."""
    references: dict[str, Any]
    """Values that metrics compare with, by name."""
    metrics: Any = None
    """The column ``metrics``: metrics and parameters of this case (:class:`~.case_metrics.CaseMetrics`)."""
    place: str = ""
    """Beginning of an error message about the case: its file and line."""


def cases_in(source: str | Path | Iterable[Mapping[str, Any]] | Any, where: str = "dataset") -> Iterator[Case]:
    """Yield the cases of a file, a list of mappings, or a pandas DataFrame.

    Files have the extension ``.jsonl``, ``.csv`` or ``.parquet``. The columns ``case_id`` (or ``id``, ``case``) and
    ``input`` identify a case, and ``metrics`` (or ``assert``) has its metrics. The fields of an object in the column ``references`` and all
    other columns are references.

    Args:
        source: the file or the rows.
        where: prefix for error messages.

    Raises:
        ConfigError: the file can't be read, or a case has neither an id nor an input.
    """
    for place, row in rows_in(source, where):
        case = next((str(row.pop(column)) for column in _CASE_COLUMNS if row.get(column) not in (None, "")), None)
        asked = row.pop("input", None)
        inner, own, promptfoo = (row.pop(column, None) for column in ("references", "metrics", "assert"))
        if own is not None and promptfoo is not None:
            raise ConfigError(f"{where}: {place}: must have metrics or assert, got both. Move all entries into metrics")
        found = {key: value for key, value in row.items() if key not in _CASE_COLUMNS and value is not None}
        found |= inner if isinstance(inner, dict) else {} if inner is None else {"references": inner}
        if case is None and (asked is None or asked == "") and "turns" not in found and "user" not in found:
            raise ConfigError(f"{where}: {place}: a case must have a case_id, an input (text), or both")
        yield Case(case, asked, found, promptfoo if own is None else own, f"{where}: {place}")


def rows_in(source: Any, where: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place and content of each row in a file, a list of mappings or a DataFrame.

    Error messages begin with the place.

    Raises:
        ConfigError: the file can't be read, or a row isn't a mapping.
    """
    if isinstance(source, (str, Path)):
        for line, row in _rows_of_file(str(source), where):
            yield f"{source}:{line}", row
        return
    rows = source.to_dict("records") if hasattr(source, "to_dict") else source
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise ConfigError(f"{where}: case {number}: must be a mapping, got {type(row).__name__}")
        yield (
            f"case {number}",
            {
                str(key): value.tolist() if hasattr(value, "tolist") else value  # a DataFrame from Parquet has arrays
                for key, value in row.items()
                if (value != value) is not True  # noqa: PLR0124 - missing values of a DataFrame are NaN
            },
        )


def _rows_of_file(path: str, where: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the line number and row of a JSON lines, CSV or Parquet file.

    Raises:
        ConfigError: the file can't be read, or has another format.
    """
    try:
        with Path(path).open("rb") as file:
            other = _other_format(file.read(_HEAD))
        if other is not None:
            raise ConfigError(f"{where}: {path}: must be JSON lines, CSV or Parquet, got {other}")
        if path.endswith(".parquet"):
            table = require("pyarrow.parquet", feature="reading a Parquet data set", extra="parquet").read_table(path)
            yield from enumerate(table.to_pylist(), 1)
        elif path.endswith(".csv"):
            with Path(path).open(encoding="utf-8", newline="") as file:
                for number, row in enumerate(csv.DictReader(file), 2):
                    yield number, {key: written_value(value) if value else None for key, value in row.items() if key}
        else:
            with Path(path).open(encoding="utf-8", newline="\n") as file:
                for number, line in enumerate(file, 1):
                    if line.strip():
                        yield number, _object(line, f"{where}: {path}:{number}")
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        missing = isinstance(problem, FileNotFoundError)
        why = "file not found" if missing else f"can't be read: {getattr(problem, 'strerror', None) or problem}"
        raise ConfigError(f"{where}: {path}: {why}") from None


_HEAD = 64
_SHEETS = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""How .xlsx, .ods and .xls files begin."""


def _other_format(head: bytes) -> str | None:
    """Return the format of a file that isn't a data set, with a fix; None for all others."""
    if head.startswith(_SHEETS):
        return "a spreadsheet or ZIP file; save the sheet as CSV"
    if head.removeprefix(codecs.BOM_UTF8).lstrip()[:1] == b"[":
        return "a JSON array; write one object per line, for example with jq -c '.[]'"
    return None


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        row = jsonio.loads(line)
    except ValueError as problem:
        raise ConfigError(f"{where}: must be one JSON object per line; {problem}") from None
    if not isinstance(row, dict):
        raise ConfigError(f"{where}: must be a JSON object, got {type(row).__name__}")
    return row


def written_value(raw: Any) -> Any:
    """Return the value of an attribute, baggage entry or CSV cell.

    Lists and objects are parsed from JSON text.
    """
    if isinstance(raw, str) and raw[:1] in '[{"':
        try:
            return jsonio.loads(raw)
        except ValueError:
            return raw
    return list(raw) if isinstance(raw, tuple) else raw
